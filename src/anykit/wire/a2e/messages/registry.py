"""Every type string of the wire: who sends it, what for, under which capability, and the class that it is read into.

The namespaces' modules are imported when one of their types is first met: a host that serves tools and toolkits never
builds the other hundred classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, cast

from .envelope import Message

Kind: TypeAlias = Literal["request", "reply", "event"]
Sender: TypeAlias = Literal["agent", "host"]


@dataclass(frozen=True)
class WireType:
    """One message type. Its class is imported when it is first asked for."""

    name: str
    """The wire string, such as `tool/call/req`."""
    capability: str | None
    """Under which negotiated capability it travels; None for the base protocol."""
    kind: Kind
    sender: Sender
    module: str
    """Where the class lives, a full module name."""
    class_name: str

    @classmethod
    def of(
        cls,
        name: str,
        model: type[Message],
        *,
        capability: str | None,
        kind: Kind = "request",
        sender: Sender = "agent",
    ) -> WireType:
        """A type of one's own, of a class that is at hand."""
        made = cls(name, capability, kind, sender, model.__module__, model.__qualname__)
        made.__dict__["model"] = _built(model)
        return made

    @cached_property
    def model(self) -> type[Message]:
        """The class of the message, built."""
        return _built(cast("type[Message]", getattr(import_module(self.module), self.class_name)))

    @cached_property
    def validate(self) -> Callable[[Any], Message]:
        """Turn an object into a message; raises `pydantic.ValidationError`."""
        return cast("Callable[[Any], Message]", self.model.__pydantic_validator__.validate_python)


def _built(model: type[Message]) -> type[Message]:
    if not model.__pydantic_complete__:
        model.model_rebuild()
    return model


def _namespace(
    module: str,
    capability: str | None,
    *,
    requests: Mapping[str, str],
    replies: Mapping[str, str],
    events: Mapping[str, str] = MappingProxyType({}),
    host_requests: Mapping[str, str] = MappingProxyType({}),
    agent_replies: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[WireType]:
    tables: tuple[tuple[Kind, Sender, Mapping[str, str]], ...] = (
        ("request", "agent", requests),
        ("reply", "host", replies),
        ("event", "host", events),
        ("request", "host", host_requests),
        ("reply", "agent", agent_replies),
    )
    for kind, sender, table in tables:
        for name, class_name in table.items():
            yield WireType(name, capability, kind, sender, f"{__package__}.{module}", class_name)


_ALL: Final = (
    *_namespace(
        "base",
        None,
        requests={
            "handshake/req": "HandshakeRequest",
            "ping": "Ping",
            "shutdown": "Shutdown",
        },
        replies={
            "handshake/resp": "HandshakeResponse",
            "error": "A2EError",
            "pong": "Pong",
        },
        events={
            "invoke/event": "A2EEvent",
        },
    ),
    *_namespace(
        "tools",
        "tools",
        requests={
            "tool/list/req": "ToolListRequest",
            "tool/call/req": "ToolCallRequest",
        },
        replies={
            "tool/list/resp": "ToolListResponse",
            "tool/call/resp": "ToolCallResponse",
        },
        events={
            "tool/event": "ToolEvent",
        },
    ),
    *_namespace(
        "toolkits",
        "toolkits",
        requests={
            "toolkit/list/req": "ToolkitListRequest",
            "toolkit/configure/req": "ToolkitConfigureRequest",
        },
        replies={
            "toolkit/list/resp": "ToolkitListResponse",
            "toolkit/configure/resp": "ToolkitConfigureResponse",
        },
    ),
    *_namespace(
        "mcp",
        "mcp",
        requests={
            "mcp/server/register/req": "MCPServerRegisterRequest",
            "mcp/server/list/req": "MCPServerListRequest",
            "mcp/server/unregister/req": "MCPServerUnregisterRequest",
            "mcp/resource/list/req": "MCPResourceListRequest",
            "mcp/resource/read/req": "MCPResourceReadRequest",
            "mcp/resource/subscribe/req": "MCPResourceSubscribeRequest",
            "mcp/prompt/list/req": "MCPPromptListRequest",
            "mcp/prompt/get/req": "MCPPromptGetRequest",
        },
        replies={
            "mcp/server/register/resp": "MCPServerRegisterResponse",
            "mcp/server/list/resp": "MCPServerListResponse",
            "mcp/server/unregister/resp": "MCPServerUnregisterResponse",
            "mcp/resource/list/resp": "MCPResourceListResponse",
            "mcp/resource/read/resp": "MCPResourceReadResponse",
            "mcp/resource/subscribe/resp": "MCPResourceSubscribeResponse",
            "mcp/prompt/list/resp": "MCPPromptListResponse",
            "mcp/prompt/get/resp": "MCPPromptGetResponse",
        },
        events={
            "mcp/server/push": "MCPServerPush",
        },
        host_requests={
            "mcp/sample/req": "MCPSamplingRequest",
            "mcp/root/list/req": "MCPRootsListRequest",
        },
        agent_replies={
            "mcp/sample/resp": "MCPSamplingResponse",
            "mcp/root/list/resp": "MCPRootsListResponse",
        },
    ),
    *_namespace(
        "skills",
        "skill",
        requests={
            "skill/discover/req": "SkillDiscoverRequest",
            "skill/call/req": "SkillCallRequest",
        },
        replies={
            "skill/discover/resp": "SkillDiscoverResponse",
            "skill/call/resp": "SkillCallResponse",
        },
        events={
            "skill/event": "SkillEvent",
        },
    ),
    *_namespace(
        "chains",
        "chains",
        requests={
            "chain/req": "ChainRequest",
        },
        replies={
            "chain/resp": "ChainResponse",
        },
        events={
            "chain/event": "ChainEvent",
        },
    ),
    *_namespace(
        "memory",
        "memory",
        requests={
            "memory/init/req": "MemoryInitRequest",
            "memory/store/req": "MemoryStoreRequest",
            "memory/retrieve/req": "MemoryRetrieveRequest",
            "memory/forget/req": "MemoryForgetRequest",
        },
        replies={
            "memory/init/resp": "MemoryInitResponse",
            "memory/store/resp": "MemoryStoreResponse",
            "memory/retrieve/resp": "MemoryRetrieveResponse",
            "memory/forget/resp": "MemoryForgetResponse",
        },
    ),
    *_namespace(
        "proc",
        "proc",
        requests={
            "proc/spawn/req": "ProcSpawnRequest",
            "proc/write/req": "ProcWriteRequest",
            "proc/kill/req": "ProcKillRequest",
            "proc/status/req": "ProcStatusRequest",
        },
        replies={
            "proc/spawn/resp": "ProcSpawnResponse",
            "proc/write/resp": "ProcWriteResponse",
            "proc/kill/resp": "ProcKillResponse",
            "proc/status/resp": "ProcStatusResponse",
        },
        events={
            "proc/read/event": "ProcReadEvent",
        },
    ),
    *_namespace(
        "env",
        "env",
        requests={
            "env/reset/req": "EnvResetRequest",
            "env/step/req": "EnvStepRequest",
            "env/observe/req": "EnvObserveRequest",
            "env/close/req": "EnvCloseRequest",
            "env/space/req": "EnvSpacesRequest",
            "env/render/req": "EnvRenderRequest",
            "env/plan/req": "EnvPlanRequest",
            "env/batch_step/req": "EnvBatchStepRequest",
            "env/exp/list/req": "EnvExpListRequest",
        },
        replies={
            "env/reset/resp": "EnvResetResponse",
            "env/step/resp": "EnvStepResponse",
            "env/observe/resp": "EnvObserveResponse",
            "env/close/resp": "EnvCloseResponse",
            "env/space/resp": "EnvSpacesResponse",
            "env/render/resp": "EnvRenderResponse",
            "env/plan/resp": "EnvPlanResponse",
            "env/batch_step/resp": "EnvBatchStepResponse",
            "env/exp/list/resp": "EnvExpListResponse",
        },
        events={
            "env/state/push": "EnvStatePush",
        },
    ),
    *_namespace(
        "learn",
        "learning",
        requests={
            "learn/feedback/req": "LearnFeedbackRequest",
            "learn/experience/req": "LearnExperienceRequest",
            "learn/adapt/req": "LearnAdaptRequest",
            "learn/stats/req": "LearnStatsRequest",
            "learn/refinement/plan/req": "LearnRefinementPlanRequest",
            "learn/refinement/apply/req": "LearnRefinementApplyRequest",
            "learn/refinement/rollback/req": "LearnRefinementRollbackRequest",
            "learn/refinement/review/req": "LearnRefinementReviewRequest",
            "learn/refinement/history/req": "LearnRefinementHistoryRequest",
        },
        replies={
            "learn/feedback/resp": "LearnFeedbackResponse",
            "learn/experience/resp": "LearnExperienceResponse",
            "learn/adapt/resp": "LearnAdaptResponse",
            "learn/stats/resp": "LearnStatsResponse",
            "learn/refinement/plan/resp": "LearnRefinementPlanResponse",
            "learn/refinement/apply/resp": "LearnRefinementApplyResponse",
            "learn/refinement/rollback/resp": "LearnRefinementRollbackResponse",
            "learn/refinement/review/resp": "LearnRefinementReviewResponse",
            "learn/refinement/history/resp": "LearnRefinementHistoryResponse",
        },
    ),
    *_namespace(
        "planning",
        "planning",
        requests={
            "planning/plan/create": "PlanCreateRequest",
            "planning/plan/list": "PlanListRequest",
            "planning/task/add": "TaskAddRequest",
            "planning/task/update": "TaskUpdateRequest",
            "planning/task/list": "TaskListRequest",
            "planning/plan/board": "PlanBoardRequest",
        },
        replies={
            "planning/plan/create/resp": "PlanCreateResponse",
            "planning/plan/list/resp": "PlanListResponse",
            "planning/task/add/resp": "TaskAddResponse",
            "planning/task/update/resp": "TaskUpdateResponse",
            "planning/task/list/resp": "TaskListResponse",
            "planning/plan/board/resp": "PlanBoardResponse",
        },
    ),
    *_namespace(
        "subagents",
        "multi_agent",
        requests={
            "SUBAGENT_SPAWN_REQ": "SubagentSpawnRequest",
            "SUBAGENT_DELEGATE_REQ": "SubagentDelegateRequest",
            "SUBAGENT_AWAIT_REQ": "SubagentAwaitRequest",
            "SUBAGENT_MESSAGE_REQ": "SubagentMessageRequest",
            "SUBAGENT_LIST_REQ": "SubagentListRequest",
            "SUBAGENT_CANCEL_REQ": "SubagentCancelRequest",
            "SUBAGENT_TERMINATE_REQ": "SubagentTerminateRequest",
            "SUBAGENT_MERGE_REQ": "SubagentMergeRequest",
        },
        replies={
            "SUBAGENT_SPAWN_RESP": "SubagentSpawnResponse",
            "SUBAGENT_DELEGATE_RESP": "SubagentDelegateResponse",
            "SUBAGENT_AWAIT_RESP": "SubagentAwaitResponse",
            "SUBAGENT_MESSAGE_RESP": "SubagentMessageResponse",
            "SUBAGENT_LIST_RESP": "SubagentListResponse",
            "SUBAGENT_MERGE_RESP": "SubagentMergeResponse",
        },
        events={
            "SUBAGENT_EVENT": "SubagentEvent",
        },
    ),
    *_namespace(
        "multi_agent",
        "multi_agent",
        requests={
            "multi_agent/spawn": "SpawnReq",
            "multi_agent/delegate": "DelegateReq",
            "multi_agent/await": "AwaitReq",
            "multi_agent/list": "ListReq",
            "multi_agent/terminate": "TerminateReq",
        },
        replies={
            "multi_agent/spawn/resp": "SpawnResp",
            "multi_agent/delegate/resp": "DelegateResp",
            "multi_agent/await/resp": "AwaitResp",
            "multi_agent/list/resp": "ListResp",
            "multi_agent/terminate/resp": "TerminateResp",
        },
    ),
)

MESSAGE_TYPES: Final[Mapping[str, WireType]] = MappingProxyType({entry.name: entry for entry in _ALL})
"""All 136 message types of A2E 1.0, by wire string."""

SESSION_TYPES: Final[Mapping[str, WireType]] = MappingProxyType(
    {
        **MESSAGE_TYPES,
        **{
            entry.name: entry
            for entry in _namespace(
                "answers",
                "tools",
                requests={"anykit/answer/req": "AnswerRequest"},
                replies={"anykit/answer/resp": "AnswerResponse"},
            )
        },
    }
)
"""What our sessions know: A2E 1.0 and, beyond it, answers to suspended calls."""

TYPE_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "env/spaces/req": "env/space/req",
        "env/spaces/resp": "env/space/resp",
        "env/state_push": "env/state/push",
        "mcp/sampling/req": "mcp/sample/req",
        "mcp/sampling/resp": "mcp/sample/resp",
        "mcp/roots/list/req": "mcp/root/list/req",
        "mcp/roots/list/resp": "mcp/root/list/resp",
    }
)
"""Names that some documents use, and the name that travels."""

CAPABILITY_ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {"skills": "skill", "learn": "learning", "procs": "proc", "subagents": "multi_agent"}
)
"""Names of capabilities that configurations in the wild use, and the name that travels."""

EVENT_TYPES: Final[Mapping[str, str]] = MappingProxyType(
    {"tools": "tool/event", "skill": "skill/event", "chains": "chain/event", "proc": "proc/read/event"}
)
"""The event type of a capability that has one of its own; every other capability's events are `invoke/event`."""
