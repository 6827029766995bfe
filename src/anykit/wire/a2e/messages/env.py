"""Environments: episodes of steps and observations."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field

from .envelope import A2EMessage, Int, ListOf, Number, WireModel, new_id, now


class EnvErrorCode(StrEnum):
    RUNTIME_ERROR = "runtime_error"
    UNKNOWN_ACTION = "unknown_action"
    RESET_DENIED = "reset_denied"


class EnvAction(WireModel):
    """What the agent does in one step."""

    action_type: str  # kind of action
    payload: dict[str, Any] | ListOf[Any] = Field(default_factory=list[Any])  # action parameters
    metadata: dict[str, Any] | None = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class EnvState(WireModel):
    """The state of an environment: whatever fields it has."""

    model_config = ConfigDict(extra="allow")


class EnvObservation(WireModel):
    """What the agent sees after a step."""

    episode_id: str  # which episode
    step_num: Int  # step count so far
    state: EnvState  # environment state, open object
    done: bool = False  # episode has ended
    truncated: bool = False  # ended by a limit
    reward: Number | None = 0.0  # reward of the last step
    created_at: Number = Field(default_factory=now)  # creation time, Unix seconds
    metadata: dict[str, Any] | None = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class EnvEvent(WireModel):
    """One thing that happened in an episode."""

    event_id: str = Field(default_factory=new_id)  # unique id of the event
    type: str  # event kind
    episode_id: str  # which episode
    step_id: Int  # step it belongs to
    action_id: str | None = None  # action that caused it
    payload: dict[str, Any] = Field(default_factory=dict[str, Any])  # event contents
    timestamp: Number = Field(default_factory=now)  # event time, Unix seconds
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class EnvResetRequest(A2EMessage):
    """`env/reset/req`, agent to host."""

    type: str = "env/reset/req"
    env_name: str  # which environment
    seed: Int | None = None  # random seed
    options: dict[str, Any] = Field(default_factory=dict[str, Any])  # environment-specific options


class EnvResetResponse(A2EMessage):
    """`env/reset/resp`, host to agent."""

    type: str = "env/reset/resp"
    req_id: str = ""
    obs: EnvObservation  # observation after this operation


class EnvStatePush(A2EMessage):
    """`env/state/push`, host to agent."""

    type: str = "env/state/push"
    episode_id: str  # which episode
    step_id: Int  # step it belongs to
    action_id: str | None = None  # action that caused it
    event_type: str  # what sort of change
    reason: str = ""  # short cause label
    delta: dict[str, Any] = Field(default_factory=dict[str, Any])  # only the changed fields
    reward: Number | None = None  # reward, when there is one
    reward_info: dict[str, Any] | None = Field(default_factory=dict[str, Any])  # extra facts on the reward
    terminal: bool = False  # does this end the episode


class EnvStepRequest(A2EMessage):
    """`env/step/req`, agent to host."""

    type: str = "env/step/req"
    episode_id: str  # which episode
    action: dict[str, Any]  # action to apply


class EnvStepResponse(A2EMessage):
    """`env/step/resp`, host to agent."""

    type: str = "env/step/resp"
    req_id: str = ""
    obs: EnvObservation  # observation after this operation


class EnvObserveRequest(A2EMessage):
    """`env/observe/req`, agent to host."""

    type: str = "env/observe/req"
    episode_id: str  # which episode


class EnvObserveResponse(A2EMessage):
    """`env/observe/resp`, host to agent."""

    type: str = "env/observe/resp"
    req_id: str = ""
    obs: EnvObservation  # observation after this operation


class EnvCloseRequest(A2EMessage):
    """`env/close/req`, agent to host."""

    type: str = "env/close/req"
    episode_id: str  # which episode


class EnvCloseResponse(A2EMessage):
    """`env/close/resp`, host to agent."""

    type: str = "env/close/resp"
    req_id: str = ""
    closed: bool = True  # was the episode closed


class EnvSpacesRequest(A2EMessage):
    """`env/space/req`, agent to host."""

    type: str = "env/space/req"
    env_name: str  # which environment


class EnvSpacesResponse(A2EMessage):
    """`env/space/resp`, host to agent."""

    type: str = "env/space/resp"
    req_id: str = ""
    action_space: dict[str, Any]  # schema of valid actions
    state_schema: dict[str, Any]  # schema of the state


class EnvRenderRequest(A2EMessage):
    """`env/render/req`, agent to host."""

    type: str = "env/render/req"
    episode_id: str  # which episode
    mode: str | None = "screenshot"  # screenshot, rgb_array or text


class EnvRenderResponse(A2EMessage):
    """`env/render/resp`, host to agent."""

    type: str = "env/render/resp"
    req_id: str = ""
    render: Any  # rendered picture or text


class EnvPlanRequest(A2EMessage):
    """`env/plan/req`, agent to host."""

    type: str = "env/plan/req"
    episode_id: str | None = None  # which episode
    state: dict[str, Any] | None = None  # state to plan from


class EnvPlanResponse(A2EMessage):
    """`env/plan/resp`, host to agent."""

    type: str = "env/plan/resp"
    req_id: str = ""
    suggested_actions: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # actions worth trying


class EnvBatchStepRequest(A2EMessage):
    """`env/batch_step/req`, agent to host."""

    type: str = "env/batch_step/req"
    episode_ids: ListOf[str]  # episodes to step
    actions: ListOf[dict[str, Any]]  # one action per episode


class EnvBatchStepResponse(A2EMessage):
    """`env/batch_step/resp`, host to agent."""

    type: str = "env/batch_step/resp"
    req_id: str = ""
    results: ListOf[EnvStepResponse]  # one step reply per episode


class EnvExpListRequest(A2EMessage):
    """`env/exp/list/req`, agent to host."""

    type: str = "env/exp/list/req"
    episode_id: str = ""  # one episode; empty means all
    limit: Int = 100  # maximum episodes returned


class EnvExpListResponse(A2EMessage):
    """`env/exp/list/resp`, host to agent."""

    type: str = "env/exp/list/resp"
    req_id: str = ""
    episodes: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # recorded transitions
