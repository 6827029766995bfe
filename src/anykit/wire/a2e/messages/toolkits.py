"""Toolkits: bundles of tools with a configuration schema. Four messages, as the A2E toolkits capability defines them."""

from __future__ import annotations

import warnings
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, ListOf, WireModel

with warnings.catch_warnings():
    # The protocol calls the field `schema`; pydantic has a deprecated method of that name and says so.
    warnings.filterwarnings("ignore", message='Field name "schema"', category=UserWarning)

    class ToolkitDefinition(WireModel):
        """A toolkit as it is listed. `schema` is the JSON Schema that its configuration must fit."""

        name: str  # unique toolkit name
        alias: str = ""  # short display name
        description: str = ""  # human-readable explanation
        category: str = ""  # grouping label
        tags: ListOf[str] = Field(default_factory=list[str])  # labels used for filtering
        icon_svg: str | None = None  # SVG drawing for a UI
        schema: dict[str, Any] = Field(  # pyright: ignore[reportIncompatibleMethodOverride]
            default_factory=dict[str, Any]
        )  # JSON Schema the config must meet
        tools: ListOf[str]  # names of bundled tools
        configured: bool = False  # has configuration succeeded
        version: str = "1.0.0"  # toolkit's own version


class ToolkitListRequest(A2EMessage):
    """`toolkit/list/req`, agent to host."""

    type: str = "toolkit/list/req"
    filter_kind: str = ""  # only this kind; empty means all
    filter_tags: ListOf[str] = Field(default_factory=list[str])  # only items carrying these tags


class ToolkitListResponse(A2EMessage):
    """`toolkit/list/resp`, host to agent."""

    type: str = "toolkit/list/resp"
    req_id: str = ""
    toolkits: ListOf[ToolkitDefinition] = Field(
        default_factory=list[ToolkitDefinition]
    )  # toolkit definitions that match


class ToolkitConfigureRequest(A2EMessage):
    """`toolkit/configure/req`, agent to host."""

    type: str = "toolkit/configure/req"
    session_id: str = ""  # session handed out at handshake
    toolkit_name: str = ""  # toolkit to set up
    config: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # values obeying the toolkit schema


class ToolkitConfigureResponse(A2EMessage):
    """`toolkit/configure/resp`, host to agent."""

    type: str = "toolkit/configure/resp"
    req_id: str = ""
    toolkit_name: str = ""  # toolkit that was set up
    status: str = "ok"  # ok, partial or error
    message: str | None = None  # optional explanation
