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
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import mcp_types as types
from mcp.client.subscriptions import PromptsListChanged, ResourcesListChanged, ResourceUpdated, Subscription, listen
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, METHOD_NOT_FOUND
from pydantic import TypeAdapter

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    CapabilityError,
    ExecutionFailed,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    Log,
    LogLevel,
    Progress,
    PromptContents,
    PromptDescriptor,
    Question,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.sources.connection import lose
from anykit.sources.hostile import Malformed, clean_text

from .calls import Call, InFlight
from .channel import Channel
from .http import HttpChannel
from .mending import NAMES, Report, reports_of
from .questions import Declined, question_of, response_of
from .rounds import Rounds
from .servers import Era, McpServer, Offers
from .session import Asking, Session, explained, negotiate
from .shaping import contents_of, log_of, prompt_of, prompted_of, resource_of, result_of, spec_of, template_of

log = logging.getLogger("anykit.sources.mcp")

MAX_ITEMS = 10_000
"""Of one list; the rest is left out."""
MAX_PAGES = 1_000
LISTEN_SECONDS = 10.0
"""What a server has to accept a subscription."""
HEALTH_SECONDS = 5.0
PAUSE = 0.5
"""Seconds before a subscription that ended is opened anew; twice as long after each failure."""
MAX_PAUSE = 30.0
STATE_PAUSES = (0.05, 0.1, 0.2)
"""Seconds between rounds in which the server asks nothing, only for more time; the last is kept."""
LOG_LEVEL: types.LoggingLevel = "info"

T = TypeVar("T")
U = TypeVar("U")
P = TypeVar("P")

_RESPONSES: TypeAdapter[types.InputResponses] = TypeAdapter(types.InputResponses)


class Watcher(Protocol):
    """Whoever is told what a server says unasked."""

    def list_changed(self, kind: str) -> None:
        """`tools`, `resources` or `prompts` are others now."""
        ...

    def resource_updated(self, uri: str) -> None:
        """A resource that was subscribed to, or one below it, has other contents."""
        ...

    def logged(self, level: LogLevel, text: str) -> None:
        """A log line that belongs to no call."""
        ...


class McpLink:
    """See the module. `ended` is done once the server is lost; by then every request has failed with it."""

    def __init__(self, server: McpServer, offers: Offers, channel: Channel, watcher: Watcher) -> None:
        self.server = server
        self.flying = InFlight()
        self._offers = offers
        self._channel = channel
        self._watcher = watcher
        self._tasks: set[asyncio.Task[None]] = set()
        self._uris: set[str] = set()
        self._uris_changed = asyncio.Event()
        self._doubted = asyncio.Event()
        self._doubt = ""
        self.session = Session(
            channel.reader,
            channel.writer,
            client_info=types.Implementation(name="anykit", version=_version()),
            elicitation_callback=self._elicited if offers.questions else None,
            sampling_callback=self._sampled if offers.sampler is not None else None,
            list_roots_callback=self._roots_listed if offers.roots is not None else None,
            logging_callback=self._logged,
            log_level=LOG_LEVEL,
            message_handler=self._told,
        )
        self._asking = Asking(server.name, self.session, channel, self.flying)

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
            if any(self.tells_changes(kind) for kind in ("tools", "resources", "prompts")):
                self._spawn(self._listen_for_changes(), "listen")
            self._spawn(self._listen_for_updates(), "updates")

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
                rounds.answers[key] = await self._answer_ourselves(one, call)
            if not asked:
                pause = next(pauses, pause)
                await asyncio.sleep(pause)

    async def _answer_ourselves(self, request: JsonObject, call: Call) -> JsonObject:
        match request.get("method"):
            case "roots/list" if self._offers.roots is not None:
                return {"roots": _roots(self._offers.roots)}
            case "sampling/createMessage" if self._offers.sampler is not None and call.context is not None:
                with call.waiting_for_a_person():
                    return await self._offers.sampler(dict(request.get("params") or {}), call.context)
            case method:
                raise ExecutionFailed(
                    f"{self.server.name} asks for {str(method)[:60]}, which was not offered to it", code="unsupported"
                )

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
        if uri in self._uris:
            return
        self._uris.add(uri)
        if self.modern:
            self._uris_changed.set()
            return
        request = types.SubscribeRequest(params=types.SubscribeRequestParams(uri=uri))
        try:
            await self._asking.ask(Call(), lambda: self.session.send_request(request, types.EmptyResult))
        except MCPError as error:
            self._uris.discard(uri)
            raise explained(self.server.name, error) from None
        except BaseException:
            self._uris.discard(uri)
            raise

    async def unsubscribe(self, uri: str) -> None:
        """Be told no more."""
        if uri not in self._uris:
            return
        self._uris.discard(uri)
        if self.modern:
            self._uris_changed.set()
            return
        request = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri=uri))
        with contextlib.suppress(MCPError, CapabilityError):
            await self._asking.ask(Call(), lambda: self.session.send_request(request, types.EmptyResult))

    def forget(self, uri: str) -> None:
        """The same, in the background."""
        self._spawn(self.unsubscribe(uri), "unsubscribe")

    async def _listen_for_changes(self) -> None:
        """One subscription to all lists that change, opened anew where it ends; there is no replay, so all is listed then."""
        kinds = [kind for kind in ("tools", "resources", "prompts") if self.tells_changes(kind)]
        pause = PAUSE
        first = True
        while True:
            async with AsyncExitStack() as stack:
                events = await self._opened(
                    stack,
                    **{f"{kind}_list_changed": True for kind in kinds if kind in ("tools", "resources", "prompts")},
                )
                if events is None:
                    pause = min(pause * 2, MAX_PAUSE)
                elif isinstance(events, str):
                    log.info("%s tells no changes: %s", self.server.name, events)
                    return
                else:
                    pause = PAUSE
                    if not first:
                        for kind in kinds:
                            self._watcher.list_changed(kind)
                    first = False
                    with contextlib.suppress(RuntimeError):  # SubscriptionLost
                        async for event in events:
                            self._changed(event)
            await asyncio.sleep(pause)

    async def _listen_for_updates(self) -> None:
        """A subscription to the resources that somebody watches, opened anew with each other set of them."""
        pause = PAUSE
        while True:
            while not self._uris:
                self._uris_changed.clear()
                await self._uris_changed.wait()
            self._uris_changed.clear()
            wanted = sorted(self._uris)
            async with AsyncExitStack() as stack:
                events = await self._opened(stack, resource_subscriptions=wanted)
                if isinstance(events, str):
                    log.info("%s tells no updates: %s", self.server.name, events)
                    return
                if events is None:
                    pause = min(pause * 2, MAX_PAUSE)
                else:
                    pause = PAUSE
                    if await self._updates(events):
                        continue
            await asyncio.sleep(pause)
            for uri in wanted:  # what happened meanwhile is not told again
                self._watcher.resource_updated(uri)

    async def _updates(self, events: Subscription) -> bool:
        """Hear updates until others are wanted (True) or the subscription ends."""

        async def hear() -> None:
            with contextlib.suppress(RuntimeError):
                async for event in events:
                    self._changed(event)

        hearing = asyncio.create_task(hear())
        changed = asyncio.create_task(self._uris_changed.wait())
        try:
            await asyncio.wait({hearing, changed}, return_when=asyncio.FIRST_COMPLETED)
            return changed.done()
        finally:
            hearing.cancel()
            changed.cancel()
            await asyncio.gather(hearing, changed, return_exceptions=True)

    async def _opened(self, stack: AsyncExitStack, **wanted: Any) -> Subscription | str | None:
        """A subscription; None where it failed for now, a reason where it will for ever."""
        call = Call()
        try:
            with InFlight().flying(call):
                async with asyncio.timeout(LISTEN_SECONDS):
                    return await stack.enter_async_context(listen(self.session, **wanted))
        except MCPError as error:
            if call.failure is None and error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
                return clean_text(error.message, 200)
            return None
        except (TimeoutError, RuntimeError, CapabilityError):
            return None

    def _changed(self, event: object) -> None:
        match event:
            case ResourceUpdated(uri):
                self._watcher.resource_updated(uri)
            case ResourcesListChanged():
                self._watcher.list_changed("resources")
            case PromptsListChanged():
                self._watcher.list_changed("prompts")
            case _:
                self._watcher.list_changed("tools")

    # what the server says and asks of its own accord

    async def _told(self, message: object) -> None:
        if self.modern:
            return  # all of it came over a subscription
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

    async def _logged(self, params: types.LoggingMessageNotificationParams) -> None:
        level, text = log_of(params)
        call = self.flying.addressee()
        if isinstance(call, Call) and call.context is not None:
            call.context.emit(Log(level, text))
        else:
            self._watcher.logged(level, text)

    async def _elicited(
        self, context: object, params: types.ElicitRequestParams
    ) -> types.ElicitResult | types.ErrorData:
        """A live question of a server of the old era: it waits inside its call's deadline."""
        call = self.flying.addressee()
        if not isinstance(call, Call):
            self._watcher.logged("warning", f"a question was declined: {call}")
            return types.ElicitResult(action="decline")
        question = question_of(self.server.name, params.model_dump(by_alias=True, mode="json", exclude_none=True))
        if isinstance(question, Declined):
            self._remark(call, question.reason)
            return types.ElicitResult(action="decline")
        try:
            answer = await self._asked(call, question)
            return types.ElicitResult.model_validate(response_of(question, answer))
        except CapabilityError as error:
            self._remark(call, error.message)
            return types.ElicitResult(action="cancel")

    async def _asked(self, call: Call, question: Question) -> Answer:
        """Ask the call's caller; whoever's call has ended need not answer any more."""
        assert call.context is not None
        async with call.asking:
            with call.waiting_for_a_person():
                asking = asyncio.create_task(call.context.ask(question))
                over = asyncio.create_task(call.over.wait())
                try:
                    await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
                    if not asking.done():
                        raise ExecutionFailed("the call is over", code=codes.CANCELLED)
                    return asking.result()
                finally:
                    for task in (asking, over):
                        task.cancel()
                    await asyncio.gather(asking, over, return_exceptions=True)

    def _remark(self, call: Call, reason: str) -> None:
        if call.context is not None:
            call.context.emit(Log("warning", reason))

    async def _sampled(
        self, context: object, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.CreateMessageResultWithTools | types.ErrorData:
        call = self.flying.addressee()
        if not isinstance(call, Call):
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"declined: {call}")
        try:
            answer = await self._answer_ourselves(
                {
                    "method": "sampling/createMessage",
                    "params": params.model_dump(by_alias=True, mode="json", exclude_none=True),
                },
                call,
            )
        except CapabilityError as error:
            self._remark(call, error.message)
            return types.ErrorData(code=types.INVALID_REQUEST, message=error.message)
        return types.CreateMessageResult.model_validate(answer)

    async def _roots_listed(self, context: object) -> types.ListRootsResult | types.ErrorData:
        return types.ListRootsResult.model_validate({"roots": _roots(self._offers.roots or ())})


def _roots(folders: Sequence[Any]) -> list[JsonObject]:
    paths = [Path(folder).expanduser().absolute() for folder in folders]
    return [{"uri": path.as_uri(), "name": path.name or str(path)} for path in paths]


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
