"""The older vocabulary of subagents, without an envelope: no id, version, ts, req_id. `multi_agent` is preferred."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import Int, ListOf, Message, WireModel


class SubagentStatus(StrEnum):
    READY = "READY"
    RUNNING = "RUNNING"
    WAITING = "WAITING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    TERMINATED = "TERMINATED"


class MemoryScope(StrEnum):
    SHARED = "shared"
    ISOLATED = "isolated"
    SNAPSHOT = "snapshot"


class ToolScope(StrEnum):
    SHARED = "shared"
    RESTRICTED = "restricted"
    ISOLATED = "isolated"


class SourceRef(WireModel):
    """Where something was said."""

    session_id: str | None = None  # session handed out at handshake
    trajectory_id: str | None = None  # trajectory concerned
    turn_id: str | None = None  # turn concerned


class SubagentConfig(WireModel):
    """What a subagent is made of."""

    name: str  # child's name
    role: str | None = None  # what the child is for
    model: str  # language model to use
    system_prompt: str | None = None  # prompt that sets behaviour
    capabilities: ListOf[str] = Field(default_factory=list[str])  # capabilities it may use
    memory_scope: MemoryScope = MemoryScope.SHARED  # shared, isolated or snapshot
    tool_scope: ToolScope = ToolScope.RESTRICTED  # shared, restricted or isolated
    max_steps: Int = 40  # step limit
    timeout_seconds: Int = 600  # run time limit
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class TaskDefinition(WireModel):
    """What a subagent is to do."""

    name: str  # task name
    instruction: str  # what to do
    success_criteria: ListOf[str] = Field(default_factory=list[str])  # when it counts as done
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class SubagentInfo(WireModel):
    """A subagent as it is listed."""

    subagent_id: str  # which child agent
    name: str  # child's name
    status: SubagentStatus  # state value after the operation
    parent_agent_id: str | None = None  # agent that spawned it
    root_agent_id: str | None = None  # top agent of the tree
    depth: Int = 0  # level in the tree
    config: SubagentConfig  # its SubagentConfig


class SubagentMessagePayload(WireModel):
    """What one subagent tells another."""

    type: str  # kind of message
    content: Any  # any JSON value


class SubagentSpawnRequest(Message):
    """`SUBAGENT_SPAWN_REQ`, agent to host."""

    type: str = "SUBAGENT_SPAWN_REQ"
    agent: SubagentConfig  # a SubagentConfig object
    parent_agent_id: str | None = None  # agent that spawned it
    root_agent_id: str | None = None  # top agent of the tree


class SubagentSpawnResponse(Message):
    """`SUBAGENT_SPAWN_RESP`, host to agent."""

    type: str = "SUBAGENT_SPAWN_RESP"
    subagent_id: str  # which child agent
    status: SubagentStatus  # state value after the operation


class SubagentDelegateRequest(Message):
    """`SUBAGENT_DELEGATE_REQ`, agent to host."""

    type: str = "SUBAGENT_DELEGATE_REQ"
    subagent_id: str  # which child agent
    task: TaskDefinition  # a TaskDefinition object


class SubagentDelegateResponse(Message):
    """`SUBAGENT_DELEGATE_RESP`, host to agent."""

    type: str = "SUBAGENT_DELEGATE_RESP"
    accepted: bool = True  # was the task taken
    status: SubagentStatus  # state value after the operation


class SubagentAwaitRequest(Message):
    """`SUBAGENT_AWAIT_REQ`, agent to host."""

    type: str = "SUBAGENT_AWAIT_REQ"
    subagent_id: str  # which child agent


class SubagentAwaitResponse(Message):
    """`SUBAGENT_AWAIT_RESP`, host to agent."""

    type: str = "SUBAGENT_AWAIT_RESP"
    subagent_id: str  # which child agent
    status: SubagentStatus  # state value after the operation
    result: dict[str, Any] | None = None  # task result
    error: str | None = None  # failure text, empty when fine


class SubagentMessageRequest(Message):
    """`SUBAGENT_MESSAGE_REQ`, agent to host."""

    type: str = "SUBAGENT_MESSAGE_REQ"
    from_subagent_id: str  # child agent that sends
    to_subagent_id: str  # child agent that receives
    message: SubagentMessagePayload  # a SubagentMessagePayload object


class SubagentMessageResponse(Message):
    """`SUBAGENT_MESSAGE_RESP`, host to agent."""

    type: str = "SUBAGENT_MESSAGE_RESP"
    delivered: bool = True  # did it arrive


class SubagentListRequest(Message):
    """`SUBAGENT_LIST_REQ`, agent to host."""

    type: str = "SUBAGENT_LIST_REQ"


class SubagentListResponse(Message):
    """`SUBAGENT_LIST_RESP`, host to agent."""

    type: str = "SUBAGENT_LIST_RESP"
    subagents: ListOf[SubagentInfo]  # list of SubagentInfo objects


class SubagentCancelRequest(Message):
    """`SUBAGENT_CANCEL_REQ`, agent to host."""

    type: str = "SUBAGENT_CANCEL_REQ"
    subagent_id: str  # which child agent


class SubagentTerminateRequest(Message):
    """`SUBAGENT_TERMINATE_REQ`, agent to host."""

    type: str = "SUBAGENT_TERMINATE_REQ"
    subagent_id: str  # which child agent


class SubagentMergeRequest(Message):
    """`SUBAGENT_MERGE_REQ`, agent to host."""

    type: str = "SUBAGENT_MERGE_REQ"
    subagent_ids: ListOf[str]  # children whose results merge
    strategy: str = "hierarchical_summary"  # hierarchical_summary, voting or custom


class SubagentMergeResponse(Message):
    """`SUBAGENT_MERGE_RESP`, host to agent."""

    type: str = "SUBAGENT_MERGE_RESP"
    merged_result: dict[str, Any]  # the combined result


class SubagentEvent(Message):
    """`SUBAGENT_EVENT`, host to agent."""

    type: str = "SUBAGENT_EVENT"
    subagent_id: str  # which child agent
    event: str  # what happened
    content: dict[str, Any] = Field(default_factory=dict[str, Any])  # event contents
