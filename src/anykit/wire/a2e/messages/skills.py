"""Skills: instructions with tools of their own. The capability is called `skill` on the wire."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .base import A2EEvent
from .envelope import A2EMessage, Int, ListOf, Number, WireModel, now


class SkillErrorCode(StrEnum):
    UNKNOWN_SKILL = "unknown_skill"
    SKILL_ERROR = "skill_error"
    RUNTIME_ERROR = "runtime_error"


class SkillStatus(StrEnum):
    CREATED = "Created"
    BLOCKED = "Blocked"
    PUBLISHED = "Published"
    ARCHIVED = "Archived"


class ErrorCode(StrEnum):
    PARSE_ERROR = "parse_error"
    INVALID_MESSAGE = "invalid_message"
    UNKNOWN_SKILL = "unknown_skill"
    VERSION_MISMATCH = "version_mismatch"
    UNAUTHORIZED = "unauthorized"
    SCHEMA_VIOLATION = "schema_violation"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out_of_memory"
    SANDBOX_CRASH = "sandbox_crash"
    SKILL_ERROR = "skill_error"


class LLMConfig(WireModel):
    """The model that runs a skill."""

    provider_name: str  # model provider
    provider_credentials: dict[str, Any] = Field(repr=False)  # keys for that provider
    provider_config: dict[str, Any] | bool | None = Field(default=False, repr=False)  # provider-specific settings
    is_default: bool | None = False  # is it the default choice


class SkillDefinition(WireModel):
    """A skill as it is listed."""

    name: str  # unique skill name
    version: str  # skill's own version
    description: str  # human-readable explanation
    triggers: ListOf[str]  # phrases that suggest the skill
    tools: ListOf[Any] | None = None  # tools it depends on
    toolkits: ListOf[Any] | None = None  # toolkits it depends on
    status: SkillStatus  # lifecycle state (SkillStatus)
    input_schema: dict[str, Any] = Field(default_factory=dict[str, Any])  # JSON Schema of the inputs
    output_schema: dict[str, Any] = Field(default_factory=dict[str, Any])  # JSON Schema of the output
    instructions: str | None = None  # how an agent should use it
    file_path: str | None = None  # where the definition lives
    llm_config: LLMConfig | None = None  # default model settings
    arguments: ListOf[str] | dict[str, Any] | None = Field(default_factory=dict[str, Any])  # argument names
    when_to_use: str  # situations it suits
    argument_hint: str  # hint for filling arguments
    source: str  # user, system or project
    category: str | None = None  # grouping label
    tags: ListOf[str] | None = None  # labels used for filtering
    max_turns: Int | None = None  # turn limit
    timeout_seconds: Int | None = None  # run time limit
    icon: str | None = None  # icon for a UI
    metadata: dict[str, Any] | None = None  # free-form extra key/value data


class SkillEvent(A2EEvent):
    """`skill/event`, host to agent."""

    type: str = "skill/event"


class SkillResult(WireModel):
    """How a skill ended."""

    success: bool  # did the operation succeed
    data: Any = None  # value the skill produced
    summary: Any = None  # short form of the result
    truncated: bool | None = False  # was the output cut short
    error: str | None = None  # failure text, empty when fine
    error_code: str | None = None  # machine-readable failure code
    duration_ms: Int  # elapsed milliseconds
    events: ListOf[SkillEvent] = Field(default_factory=list[SkillEvent])  # events collected during the run


class SkillDiscoverRequest(A2EMessage):
    """`skill/discover/req`, agent to host."""

    type: str = "skill/discover/req"
    filter_tags: ListOf[str] = Field(default_factory=list[str])  # any of these tags suffices
    filter_categories: ListOf[str] = Field(default_factory=list[str])  # only these categories


class SkillDiscoverResponse(A2EMessage):
    """`skill/discover/resp`, host to agent."""

    type: str = "skill/discover/resp"
    req_id: str = ""
    skills: ListOf[SkillDefinition] = Field(default_factory=list[SkillDefinition])  # matching skill definitions


class SkillCallRequest(A2EMessage):
    """`skill/call/req`, agent to host."""

    type: str = "skill/call/req"
    name: str = ""  # skill to run
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # named input values
    correlation_id: str = ""  # caller's tracing tag for a turn
    timeout: Int = 60  # time limit in seconds
    streaming: bool = True  # caller wants intermediate events
    llm_override: LLMConfig | None = None  # model settings for this call
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class SkillCallResponse(A2EMessage):
    """`skill/call/resp`, host to agent."""

    type: str = "skill/call/resp"
    req_id: str = ""
    name: str = ""  # skill that ran
    data: SkillResult | None  # the SkillResult object
    error: dict[str, Any] | None = None  # transport failure: code, message, retryable
    created_at: Number = Field(default_factory=now)  # creation time, Unix seconds
