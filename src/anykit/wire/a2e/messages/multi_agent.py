"""Subagents: spawn, delegate, wait, list, terminate."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Int, ListOf


class SubagentStatus(StrEnum):
    READY = "READY"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TERMINATED = "TERMINATED"


class SpawnReq(A2EMessage):
    """`multi_agent/spawn`, agent to host."""

    type: str = "multi_agent/spawn"
    name: str  # child's name
    role: str = ""  # role label
    model: str = "default"  # language model to use
    max_steps: Int = 20  # step limit
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class DelegateReq(A2EMessage):
    """`multi_agent/delegate`, agent to host."""

    type: str = "multi_agent/delegate"
    subagent_id: str  # which child agent
    task_name: str  # task name
    instruction: str  # what to do
    success_criteria: ListOf[str] = Field(default_factory=list[str])  # when it counts as done


class AwaitReq(A2EMessage):
    """`multi_agent/await`, agent to host."""

    type: str = "multi_agent/await"
    subagent_id: str  # which child agent


class ListReq(A2EMessage):
    """`multi_agent/list`, agent to host."""

    type: str = "multi_agent/list"


class TerminateReq(A2EMessage):
    """`multi_agent/terminate`, agent to host."""

    type: str = "multi_agent/terminate"
    subagent_id: str  # which child agent


class SpawnResp(A2EMessage):
    """`multi_agent/spawn/resp`, host to agent."""

    type: str = "multi_agent/spawn/resp"
    req_id: str = ""
    subagent_id: str = ""  # which child agent
    status: str = ""  # state value after the operation


class DelegateResp(A2EMessage):
    """`multi_agent/delegate/resp`, host to agent."""

    type: str = "multi_agent/delegate/resp"
    req_id: str = ""
    accepted: bool = True  # was the task taken
    status: str = ""  # state value after the operation


class AwaitResp(A2EMessage):
    """`multi_agent/await/resp`, host to agent."""

    type: str = "multi_agent/await/resp"
    req_id: str = ""
    subagent_id: str = ""  # which child agent
    status: str = ""  # state value after the operation
    result: dict[str, Any] | None = None  # task result
    error: str | None = None  # failure text, empty when fine


class ListResp(A2EMessage):
    """`multi_agent/list/resp`, host to agent."""

    type: str = "multi_agent/list/resp"
    req_id: str = ""
    subagents: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # child agent records


class TerminateResp(A2EMessage):
    """`multi_agent/terminate/resp`, host to agent."""

    type: str = "multi_agent/terminate/resp"
    req_id: str = ""
    success: bool = False  # did the operation succeed
    subagent_id: str = ""  # which child agent
