"""The steps, in order. Each acts on what the ones before it left, raises where something is wrong, and says what it saw."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from anykit.capabilities import InvalidInput
from anykit.sources.a2e import A2ERequestError
from anykit.wire.a2e import ToolResult

from .sample import NOTE
from .stage import OUTSIDE, SECRET, Stage, require

TOOLS = ("read_file", "write_file", "edit_file", "list_dir", "glob", "grep")
PATIENCE = 12.0
"""Seconds to wait for what has to come at once."""


StageT = TypeVar("StageT")


@dataclass(frozen=True, slots=True)
class Step(Generic[StageT]):
    """One line of the demonstration."""

    title: str
    act: Callable[[StageT], Awaitable[str]]


async def handshake(stage: Stage) -> str:
    """The session is open and both capabilities are accepted."""
    agent = stage.agent
    require(bool(agent.session_id), "the host gave no session")
    require({"tools", "toolkits"} <= set(agent.accepted_caps), f"accepted is only {agent.accepted_caps}")
    await agent.ping()
    return f"session {agent.session_id[:8]}, {' and '.join(agent.accepted_caps)}"


async def list_toolkits(stage: Stage) -> str:
    """The toolkit is listed with its schema, not configured; its tools are not there yet."""
    toolkit = await stage.agent.toolkits.get("filesystem")
    require(toolkit is not None, "no toolkit filesystem is listed")
    if toolkit is None:
        return ""
    require("root_dir" in toolkit.schema.get("properties", {}), "its schema has no root_dir")
    require(set(TOOLS) <= set(toolkit.tools), f"it names only {toolkit.tools}")
    require(not toolkit.configured, "it is configured before anybody did that")
    early = set(TOOLS) & {one.name for one in await stage.agent.tools.list()}
    require(not early, f"tool/list shows {sorted(early)} before it is configured")
    return f"filesystem, {len(toolkit.tools)} tools, needs {', '.join(toolkit.schema.get('required', []))}"


async def refuse_invalid_configuration(stage: Stage) -> str:
    """Our client refuses it unsent; the host, asked past the client, refuses it with each reason. Nothing changed."""
    wrong: dict[str, Any] = {"read_only": "perhaps"}
    try:
        await stage.agent.toolkits.configure("filesystem", wrong)
    except InvalidInput as error:
        unsent = {fault["path"] for fault in error.errors}
    else:
        unsent = set[str]()
    require(unsent == {"/root_dir", "/read_only"}, f"the client named {sorted(unsent)}")
    try:
        await stage.agent.borrow("it", lambda link: link.configure_toolkit("filesystem", wrong), PATIENCE)
    except A2ERequestError as error:
        faults = {fault["path"]: fault["message"] for fault in error.detail.get("errors", [])}
        require(error.code == "runtime_error", f"the host's code is {error.code}")
    else:
        faults = {}
    require(set(faults) == {"/root_dir", "/read_only"}, f"the host named {sorted(faults)}")
    toolkit = await stage.agent.toolkits.get("filesystem")
    require(toolkit is not None and not toolkit.configured, "the toolkit is configured now")
    return "; ".join(f"{path}: {faults[path]}" for path in sorted(faults))


async def configure(stage: Stage) -> str:
    """A valid configuration is applied."""
    answer = await stage.agent.toolkits.configure("filesystem", {"root_dir": str(stage.root)})
    require(answer.status == "ok", f"status {answer.status}: {answer.message}")
    toolkit = await stage.agent.toolkits.get("filesystem")
    require(toolkit is not None and toolkit.configured, "the toolkit says that it is not configured")
    return f"{answer.status}: {answer.message}"


async def push(stage: Stage) -> str:
    """The host told about the configuration unasked."""
    async with asyncio.timeout(PATIENCE):
        async for event in stage.agent.events:
            data: dict[str, Any] = getattr(event, "data", {})
            if data.get("source") == "toolkit" and data.get("toolkit") == "filesystem":
                require(data.get("configured") is True, f"it says configured: {data.get('configured')}")
                return f"{event.type}: {data.get('toolkit')} {data.get('status')}"
    require(False, "no push came")
    return ""


async def list_tools(stage: Stage) -> str:
    """The tools are listed now, and belong to the toolkit."""
    listed = {one.name: one.toolkit for one in await stage.agent.tools.list()}
    missing = [name for name in TOOLS if listed.get(name) != "filesystem"]
    require(not missing, f"not listed with their toolkit: {missing}")
    return ", ".join(TOOLS)


async def work_on_files(stage: Stage) -> str:
    """Tools read and write real files; what they say is compared with the disk."""
    found = await _text(stage, "grep", pattern="tea")
    require("shopping.md" in found and "travel.md" in found, f"grep found {found[:200]!r}")
    line = await _text(stage, "read_file", path="notes/shopping.md", start_line=3, end_line=4)
    require("tea" in line and "sugar" in line and "bread" not in line, f"lines 3 and 4 are {line[:200]!r}")
    await _text(stage, "write_file", path="notes/new.md", content="Grüße: tea & sugar\n")
    new = stage.root / "notes" / "new.md"
    await _text(stage, "edit_file", path="notes/new.md", old="sugar", new="milk")
    require(new.read_text("utf-8") == "Grüße: tea & milk\n", f"on the disk is {new.read_text('utf-8')!r}")
    return "grep, read_file, write_file and edit_file agree with the disk"


async def refuse_escape(stage: Stage) -> str:
    """No path leads out of the root: not `..`, not an absolute one, not a link."""
    ways = (f"../{OUTSIDE}", str(stage.folder / OUTSIDE), "way-out.txt", f"notes/../../{OUTSIDE}")
    said = ""
    for path in ways:
        result = await _call(stage, "read_file", path=path)
        if isinstance(result, str):
            said = result
            require(SECRET not in result, f"the refusal of {path} shows the file")
        else:
            require(False, f"{path} was read")
    written = await _call(stage, "write_file", path=f"../{OUTSIDE}", content="overwritten")
    require(isinstance(written, str), "a file outside was written")
    require((stage.folder / OUTSIDE).read_text() == SECRET, "the file outside is changed")
    return said


async def isolate_sessions(stage: Stage) -> str:
    """Another agent sees nothing of what this one configured."""
    async with stage.another_agent() as other:
        require(other.session_id != stage.agent.session_id, "both have one session")
        toolkit = await other.toolkits.get("filesystem")
        require(toolkit is not None and not toolkit.configured, "the other session finds it configured")
        seen = set(TOOLS) & {one.name for one in await other.tools.list()}
        require(not seen, f"the other session sees {sorted(seen)}")
        try:
            await other.tools.call("read_file", {"path": "readme.txt"})
        except A2ERequestError as error:
            require(error.code == "tool_denied", f"the other session's call ends as {error.code}")
        else:
            require(False, "the other session read the file")
    require(isinstance(await _call(stage, "read_file", path="readme.txt"), ToolResult), "the first one cannot read now")
    return "the other session: not configured, no tools, its call is denied"


async def cancel_slow_tool(stage: Stage) -> str:
    """A tool that takes longer than its caller has is cancelled, and the session goes on."""
    note = stage.folder / NOTE
    note.unlink(missing_ok=True)
    begun = time.monotonic()
    try:
        await stage.agent.tools.call("count_slowly", {"upto": 60}, timeout=1)
    except A2ERequestError as error:
        require(error.code == "timeout", f"it ended as {error.code}")
    else:
        require(False, "it came to its end")
    took = time.monotonic() - begun
    require(took < PATIENCE, f"it took {took:.1f} s")
    async with asyncio.timeout(PATIENCE):
        while not note.exists():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.02)
    await stage.agent.ping()
    return f"timeout after {took:.1f} s; the tool noted: {note.read_text().strip() or 'cancelled'}"


STEPS = (
    Step("handshake", handshake),
    Step("list toolkits", list_toolkits),
    Step("an invalid configuration is refused, nothing changed", refuse_invalid_configuration),
    Step("a valid configuration is applied", configure),
    Step("the push is received", push),
    Step("tool/list shows the tools", list_tools),
    Step("calls on real files", work_on_files),
    Step("a path escape is refused", refuse_escape),
    Step("two sessions are isolated", isolate_sessions),
    Step("a slow tool is cancelled by its timeout", cancel_slow_tool),
)
"""What `anykit demo` shows over each transport. Later ones are added here."""


async def _call(stage: Stage, tool: str, **arguments: Any) -> ToolResult | str:
    """A result, or what the host says against it."""
    try:
        result = await stage.agent.tools.call(tool, arguments, timeout=10)
    except A2ERequestError as error:
        return error.message
    return result if result.success else result.error or result.summary or "failed"


async def _text(stage: Stage, tool: str, **arguments: Any) -> str:
    result = await _call(stage, tool, **arguments)
    if isinstance(result, str):
        require(False, f"{tool}: {result}")
        return ""
    return result.summary or str(result.data)
