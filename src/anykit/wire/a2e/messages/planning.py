"""Plans and tasks on boards. Requests have no `/req`; replies append `/resp`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from .envelope import A2EMessage, ListOf


class PlanCreateRequest(A2EMessage):
    """`planning/plan/create`, agent to host."""

    type: str = "planning/plan/create"
    name: str = "default"  # plan name
    columns: ListOf[str] = Field(default_factory=list[str])  # status columns; empty uses defaults
    description: str = ""  # human-readable explanation


class PlanListRequest(A2EMessage):
    """`planning/plan/list`, agent to host."""

    type: str = "planning/plan/list"


class TaskAddRequest(A2EMessage):
    """`planning/task/add`, agent to host."""

    type: str = "planning/task/add"
    plan_id: str  # which plan
    title: str  # short task title
    status: str = "backlog"  # starting column
    description: str = ""  # human-readable explanation
    assignee: str = ""  # who should do it
    deps: ListOf[str] = Field(default_factory=list[str])  # task ids that must precede
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class TaskUpdateRequest(A2EMessage):
    """`planning/task/update`, agent to host."""

    type: str = "planning/task/update"
    plan_id: str  # which plan
    task_id: str  # which task
    status: str = ""  # new column; empty keeps
    assignee: str = ""  # new owner; empty keeps
    deps: ListOf[str] = Field(default_factory=list[str])  # new prerequisites; empty keeps


class TaskListRequest(A2EMessage):
    """`planning/task/list`, agent to host."""

    type: str = "planning/task/list"
    plan_id: str = ""  # one plan; empty means all
    status: str = ""  # one column; empty means all


class PlanBoardRequest(A2EMessage):
    """`planning/plan/board`, agent to host."""

    type: str = "planning/plan/board"
    plan_id: str = ""  # one plan; empty means all


class PlanCreateResponse(A2EMessage):
    """`planning/plan/create/resp`, host to agent."""

    type: str = "planning/plan/create/resp"
    req_id: str = ""
    success: bool = False  # did the operation succeed
    plan_id: str = ""  # which plan
    columns: ListOf[str] = Field(default_factory=list[str])  # ordered list of status columns


class PlanListResponse(A2EMessage):
    """`planning/plan/list/resp`, host to agent."""

    type: str = "planning/plan/list/resp"
    req_id: str = ""
    plans: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # objects with plan_id, name, columns


class TaskAddResponse(A2EMessage):
    """`planning/task/add/resp`, host to agent."""

    type: str = "planning/task/add/resp"
    req_id: str = ""
    success: bool = False  # did the operation succeed
    task_id: str = ""  # which task
    status: str = ""  # state value after the operation


class TaskUpdateResponse(A2EMessage):
    """`planning/task/update/resp`, host to agent."""

    type: str = "planning/task/update/resp"
    req_id: str = ""
    success: bool = False  # did the operation succeed
    task_id: str = ""  # which task


class TaskListResponse(A2EMessage):
    """`planning/task/list/resp`, host to agent."""

    type: str = "planning/task/list/resp"
    req_id: str = ""
    tasks: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # task objects


class PlanBoardResponse(A2EMessage):
    """`planning/plan/board/resp`, host to agent."""

    type: str = "planning/plan/board/resp"
    req_id: str = ""
    boards: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # per plan, tasks grouped by column
