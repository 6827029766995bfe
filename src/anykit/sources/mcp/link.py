"""One open session with a server. It lives inside its owner's task; everyone else borrows it.

Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.metadata
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, cast

import mcp_types as types
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import TypeAdapter

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    Log,
    Progress,
    PromptContents,
    PromptDescriptor,
    Question,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
    Unavailable,
)
from anykit.sources.connection import lose
from anykit.sources.hostile import Malformed, clean_text

from .answering import Answerer
from .calls import Call, InFlight
from .channel import Channel
from .http import HttpChannel
from .listening import Listener, Watcher
from .mending import NAMES, Report, reports_of
from .rounds import Rounds
from .servers import Era, McpServer, Offers
from .session import Asking, Session, explained, negotiate
from .shaping import contents_of, prompt_of, prompted_of, resource_of, result_of, spec_of, template_of

log = logging.getLogger("anykit.sources.mcp")

MAX_ITEMS = 10_000
"""Of one list; the rest is left out."""
MAX_PAGES = 1_000
HEALTH_SECONDS = 5.0
STATE_PAUSES = (0.05, 0.1, 0.2)
"""Seconds between rounds in which the server asks nothing, only for more time; the last is kept."""
LOG_LEVEL: types.LoggingLevel = "info"

T = TypeVar("T")
U = TypeVar("U")
P = TypeVar("P")

_RESPONSES: TypeAdapter[types.InputResponses] = TypeAdapter(types.InputResponses)


class McpLink:
    """See the module. `ended` is done once the server is lost; by then every request has failed with it."""

    def __init__(self, server: McpServer, offers: Offers, channel: Channel, watcher: Watcher) -> None:
        self.server = server
        self.flying = InFlight()
        self._channel = channel
        self._watcher = watcher
        self._tasks: set[asyncio.Task[None]] = set()
        self._doubted = asyncio.Event()
        self._doubt = ""
        self._answerer = answerer = Answerer(server.name, offers, self.flying, watcher)
        self.session = Session(
            channel.reader,
            channel.writer,
            client_info=types.Implementation(name="anykit", version=_version()),
            elicitation_callback=answerer.elicited if offers.questions else None,
            sampling_callback=answerer.sampled if offers.sampler is not None else None,
            list_roots_callback=answerer.roots_listed if offers.roots is not None else None,
            logging_callback=answerer.logged,
            log_level=LOG_LEVEL,
            message_handler=self._told,
        )
        self._asking = Asking(server.name, self.session, channel, self.flying)
        self._listener = Listener(server.name, self.session, watcher)

    @property
    def ended(self) -> asyncio.Future[str]:
        """See `Link`."""
        return self._channel.ended

    @property
    def modern(self) -> bool:
        """Whether it speaks MCP 2026-07-28."""
        return self.session.discover_result is not None

    @property
    def capabilities(self) -> types.ServerCapabilities:
        """What the server says that it can do."""
        return self.session.server_capabilities or types.ServerCapabilities()

    @property
    def noise(self) -> int:
        """Lines and events that were no MCP so far."""
        return self._channel.noise

    def has(self, kind: str) -> bool:
        """Whether the server offers `tools`, `resources`, `prompts` or `completions`.

        One that says nothing at all is asked for its tools.
        """
        given = self.capabilities
        if getattr(given, kind) is not None:
            return True
        return kind == "tools" and given.resources is None and given.prompts is None

    def tells_changes(self, kind: str) -> bool:
        """Whether it says when a list changes."""
        return bool(getattr(getattr(self.capabilities, kind), "list_changed", False))

    def described(self) -> JsonObject:
        """What it says of itself, fit to be shown."""
        info = self.session.server_info
        shown: JsonObject = {"protocol": self.session.protocol_version or ""}
        if info is not None:
            shown["server"] = clean_text(f"{info.title or info.name} {info.version}".strip(), 200)
        if self.session.instructions:
            shown["instructions"] = clean_text(self.session.instructions, 4_096)
        return shown

    # its life

    async def begin(self, era: Era) -> None:
        """Open the session. Raises `CapabilityError`; the caller has the deadline."""
        call = Call()
        try:
            with self._asking.translated(call):
                await negotiate(self.session, self._channel, era)
        except MCPError as error:
            raise Unavailable(f"{self.server.name} refuses: {explained(self.server.name, error).message}") from None
        if isinstance(self._channel, HttpChannel):
            self._channel.on_unreachable = self._doubts
            self._spawn(self._examine(), "examine")
        if not self.modern and self.capabilities.logging is not None:
            self._spawn(self._set_log_level(), "log-level")
        if self.modern:
            if kinds := [kind for kind in ("tools", "resources", "prompts") if self.tells_changes(kind)]:
                self._spawn(self._listener.hear_changes(kinds), "changes")
            self._spawn(self._listener.hear_updates(), "updates")

    async def end(self) -> None:
        """Stop what runs beside the session."""
        lose(self._channel, "closed")
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.create_task(work, name=f"anykit-mcp-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _set_log_level(self) -> None:
        request = types.SetLevelRequest(params=types.SetLevelRequestParams(level=LOG_LEVEL))
        with contextlib.suppress(MCPError, CapabilityError):
            await self._asking.ask(Call(), lambda: self.session.send_request(request, types.EmptyResult))

    # health: over HTTP the server may be gone although there is a session

    def _doubts(self, reason: str) -> None:
        self._doubt = reason
        self._doubted.set()

    async def _examine(self) -> None:
        """After a request that did not even leave: if the server stays away, say so; calls in flight end by themselves."""
        while True:
            await self._doubted.wait()
            pause = 0.1
            while not await self._answers():
                if pause > 0.3 and not len(self.flying):
                    lose(self._channel, self._doubt)
                    return
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
            self._doubted.clear()

    async def _answers(self) -> bool:
        """Whether the server can be reached at all; what it answers does not matter."""
        call = Call()
        try:
            async with asyncio.timeout(HEALTH_SECONDS):
                with InFlight().flying(call):
                    if self.modern:
                        await self.session.send_discover(self.session.protocol_version or "")
                    else:
                        await self.session.send_request(types.PingRequest(), types.EmptyResult)
        except Unavailable as error:
            return error.sent
        except MCPError:
            return not isinstance(call.failure, Unavailable) or call.failure.sent
        except TimeoutError:
            return True
        except Exception:
            return True
        return True

    # lists

    async def tools(self) -> tuple[list[types.Tool], list[Report]]:
        """Every tool, and what was left out. Raises `CapabilityError`."""
        reports: list[Report] = []
        hidden: list[str] = []

        async def page(params: types.PaginatedRequestParams) -> types.ListToolsResult:
            result = await self.session.list_tools(params=params)
            kept = {tool.name for tool in result.tools}
            names: list[str] = (result.meta or {}).get(NAMES, [])
            hidden.extend(name for name in names if name not in kept)
            return result

        def same(tool: types.Tool) -> types.Tool:
            return tool

        tools = await self._all("tools", page, lambda result: result.tools, same, reports)
        reports += [(name, "its x-mcp-header annotations are not valid") for name in hidden]
        return tools, reports

    async def resources(self) -> tuple[list[ResourceDescriptor], list[Report]]:
        """Every resource, and what was left out. Raises `CapabilityError`."""
        reports: list[Report] = []
        listed = await self._all(
            "resources",
            lambda params: self.session.list_resources(params=params),
            lambda result: result.resources,
            resource_of,
            reports,
        )
        return listed, reports

    async def templates(self) -> tuple[list[ResourceTemplate], list[Report]]:
        """Every template, and what was left out. Raises `CapabilityError`."""
        reports: list[Report] = []
        listed = await self._all(
            "resources",
            lambda params: self.session.list_resource_templates(params=params),
            lambda result: result.resource_templates,
            template_of,
            reports,
        )
        return listed, reports

    async def prompts(self) -> tuple[list[PromptDescriptor], list[Report]]:
        """Every prompt, and what was left out. Raises `CapabilityError`."""
        reports: list[Report] = []
        listed = await self._all(
            "prompts",
            lambda params: self.session.list_prompts(params=params),
            lambda result: result.prompts,
            prompt_of,
            reports,
        )
        return listed, reports

    async def _all(
        self,
        kind: str,
        fetch: Callable[[types.PaginatedRequestParams], Awaitable[P]],
        items_of: Callable[[P], Sequence[T]],
        shape: Callable[[T], U],
        reports: list[Report],
    ) -> list[U]:
        """Every page of a list, in order; a list that turns in a circle, or does not end, is cut with a report."""
        if not self.has(kind):
            return []
        for last in (False, True):
            try:
                return await self._walk(fetch, items_of, shape, reports)
            except MCPError as error:
                if error.code == METHOD_NOT_FOUND:
                    return []
                if error.code == INVALID_PARAMS and not last:
                    reports.clear()  # a cursor that is no good any more: the list changed meanwhile
                    continue
                raise explained(self.server.name, error) from None
        return []

    async def _walk(
        self,
        fetch: Callable[[types.PaginatedRequestParams], Awaitable[P]],
        items_of: Callable[[P], Sequence[T]],
        shape: Callable[[T], U],
        reports: list[Report],
    ) -> list[U]:
        items: list[U] = []
        cursors: set[str] = set()
        params = types.PaginatedRequestParams()
        while True:
            asked = params
            result = await self._asking.ask(Call(), lambda: fetch(asked))  # noqa: B023 - awaited at once
            reports += reports_of(getattr(result, "meta", None))
            for each in items_of(result):
                if len(items) >= MAX_ITEMS:
                    reports.append(("", f"more than {MAX_ITEMS} of them; the rest is left out"))
                    return items
                try:
                    items.append(shape(each))
                except Malformed as error:
                    reports.append((clean_text(str(getattr(each, "name", "")), 100), str(error)))
            cursor: str | None = getattr(result, "next_cursor", None)
            if cursor is None:
                return items
            if cursor in cursors:
                reports.append(("", f"the list turns in a circle after {len(cursors) + 1} pages and is cut there"))
                return items
            if len(cursors) >= MAX_PAGES:
                reports.append(("", f"more than {MAX_PAGES} pages; the rest is left out"))
                return items
            cursors.add(cursor)
            params = types.PaginatedRequestParams(cursor=cursor)

    # calls

    async def call_tool(
        self, name: str, arguments: JsonObject, call: Call, rounds: Rounds
    ) -> InvocableResult | Question:
        """Call a tool until it has a result, or asks the caller something. Raises `CapabilityError`."""

        async def request(responses: types.InputResponses | None) -> Any:
            return await self.session.call_tool(
                name,
                arguments,
                progress_callback=self._progress(call),
                input_responses=responses,
                request_state=rounds.state,
                allow_input_required=True,
            )

        outcome = await self._in_rounds(request, call, rounds)
        return outcome if isinstance(outcome, Question) else result_of(name, outcome)

    def spec_of(self, tool: types.Tool) -> InvocableSpec:
        """The spec of a listed tool."""
        return spec_of(self.server.name, tool)

    async def read(self, uri: str, context: CapabilityContext) -> ResourceContents:
        """Read a resource; what the server asks is asked on the spot. Raises `CapabilityError`."""
        call = Call(context)
        rounds = Rounds(self.server.name)

        async def request(responses: types.InputResponses | None) -> Any:
            return await self.session.read_resource(
                uri, input_responses=responses, request_state=rounds.state, allow_input_required=True
            )

        return contents_of(uri, await self._inline(request, call, rounds))

    async def prompt(self, name: str, arguments: dict[str, str], context: CapabilityContext) -> PromptContents:
        """Fill a prompt in; what the server asks is asked on the spot. Raises `CapabilityError`."""
        call = Call(context)
        rounds = Rounds(self.server.name)

        async def request(responses: types.InputResponses | None) -> Any:
            return await self.session.get_prompt(
                name, arguments, input_responses=responses, request_state=rounds.state, allow_input_required=True
            )

        return prompted_of(await self._inline(request, call, rounds))

    async def complete(
        self, reference: str, is_template: bool, argument: str, value: str, context: CapabilityContext
    ) -> tuple[list[str], bool]:
        """Proposals for an argument; none where the server makes none. Raises `CapabilityError`."""
        if not self.has("completions"):
            return [], False
        ref = types.ResourceTemplateReference(uri=reference) if is_template else types.PromptReference(name=reference)
        try:
            result = await self._asking.ask(
                Call(context), lambda: self.session.complete(ref, {"name": argument, "value": value})
            )
        except MCPError as error:
            raise explained(self.server.name, error) from None
        values = [clean_text(one, 1_000) for one in result.completion.values]
        return values, bool(result.completion.has_more)

    async def _inline(
        self, request: Callable[[types.InputResponses | None], Awaitable[Any]], call: Call, rounds: Rounds
    ) -> Any:
        assert call.context is not None
        while True:
            result = await self._in_rounds(request, call, rounds)
            if not isinstance(result, Question):
                return result
            rounds.answered(result, await call.context.ask(result))

    async def _in_rounds(
        self, request: Callable[[types.InputResponses | None], Awaitable[Any]], call: Call, rounds: Rounds
    ) -> Any:
        pauses = iter(STATE_PAUSES)
        pause = STATE_PAUSES[-1]
        while True:
            if (question := rounds.next_question(call.remarks)) is not None:
                return question
            self._pass_on_remarks(call)
            responses = None if rounds.responses is None else _RESPONSES.validate_python(rounds.responses)
            call.over.clear()
            try:
                result = await self._asking.ask(call, lambda: request(responses))  # noqa: B023 - awaited at once
            except MCPError as error:
                visits = _visits(error)
                if not visits:
                    raise explained(self.server.name, error) from None
                rounds.must_visit(visits)
                continue
            if not isinstance(result, types.InputRequiredResult):
                return result
            asked = {
                key: one.model_dump(by_alias=True, mode="json", exclude_none=True)
                for key, one in (result.input_requests or {}).items()
            }
            ours = rounds.required(asked, result.request_state)
            for key, one in ours:
                rounds.answers[key] = await self._answerer.answer(one, call)
            if not asked:
                pause = next(pauses, pause)
                await asyncio.sleep(pause)

    def _progress(self, call: Call) -> ProgressFnT:
        async def heard(progress: float, total: float | None, message: str | None) -> None:
            if call.context is not None and not call.over.is_set():
                call.context.emit(Progress(progress, total, clean_text(message or "", 1_000)))

        return heard

    def _pass_on_remarks(self, call: Call) -> None:
        for remark in call.remarks:
            if call.context is not None:
                call.context.emit(Log("warning", remark))
        call.remarks.clear()

    # subscriptions

    async def subscribe(self, uri: str) -> None:
        """Be told when a resource changes. Raises `CapabilityError`."""
        if self.modern:
            self._listener.add(uri)
            return
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        try:
            await self._asking.ask(Call(), lambda: self.session.send_request(request, types.EmptyResult))
        except MCPError as error:
            raise explained(self.server.name, error) from None

    async def unsubscribe(self, uri: str) -> None:
        """Be told no more."""
        if self.modern:
            self._listener.remove(uri)
            return
        request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
        with contextlib.suppress(MCPError, CapabilityError):
            await self._asking.ask(Call(), lambda: self.session.send_request(request, types.EmptyResult))

    def forget(self, uri: str) -> None:
        """The same, in the background."""
        self._spawn(self.unsubscribe(uri), "unsubscribe")

    async def _told(self, message: object) -> None:
        """What a server of the old era says unasked; the new one's comes over subscriptions."""
        if self.modern:
            return
        match message:
            case types.ToolListChangedNotification():
                self._watcher.list_changed("tools")
            case types.ResourceListChangedNotification():
                self._watcher.list_changed("resources")
            case types.PromptListChangedNotification():
                self._watcher.list_changed("prompts")
            case types.ResourceUpdatedNotification():
                self._watcher.resource_updated(message.params.uri)
            case _:
                pass


def _visits(error: MCPError) -> list[JsonObject]:
    """The addresses that a server of 2025-11-25 wants visited first."""
    data: Any = error.data
    if error.code != types.URL_ELICITATION_REQUIRED or not isinstance(data, dict):
        return []
    listed: Any = cast(JsonObject, data).get("elicitations")
    return [cast(JsonObject, one) for one in cast("list[Any]", listed) if isinstance(one, dict)] if listed else []


@functools.cache
def _version() -> str:
    try:
        return importlib.metadata.version("anykit")
    except importlib.metadata.PackageNotFoundError:
        return "0"


@asynccontextmanager
async def open_session(
    server: McpServer, offers: Offers, channel: Channel, watcher: Watcher, era: Era
) -> AsyncGenerator[McpLink]:
    """Open a session over an open channel; end it on the way out. Raises `CapabilityError`."""
    link = McpLink(server, offers, channel, watcher)
    try:
        async with link.session:
            try:
                await link.begin(era)
                yield link
            finally:
                await link.end()
    except BaseExceptionGroup as group:
        # The session's task group wraps whatever passes through it.
        if (only := _only(group)) is None:
            raise
        raise only from None


def _only(error: BaseException) -> BaseException | None:
    """The one error in a group of groups of one; None where there are several."""
    while isinstance(error, BaseExceptionGroup):
        errors = cast("BaseExceptionGroup[BaseException]", error).exceptions
        if len(errors) != 1:
            return None
        error = errors[0]
    return error
