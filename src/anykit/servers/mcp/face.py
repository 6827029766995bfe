"""What is offered over MCP, for any number of callers: the SDK's low-level server over the catalogue. Imports the SDK."""

from __future__ import annotations

import asyncio
import base64
import importlib.metadata
import json
import logging
import os
import time
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import mcp_types as types
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import (
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import methods
from mcp_types.version import MODERN_PROTOCOL_VERSIONS, is_version_at_least
from pydantic import BaseModel, ValidationError

from anykit.capabilities import (
    Answer,
    CapabilityError,
    Denied,
    Failed,
    InvalidInput,
    JsonObject,
    Outcome,
    Suspended,
    Suspension,
)
from anykit.capabilities import outcomes as codes
from anykit.runtime import CallOptions, Session, ToolEntry

from . import content, toolkits
from .bench import Busy, Limits
from .configuring import Desk
from .definitions import Offered, offered
from .jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from .questions import Abilities, Request, Unaskable, answer_of, askable, requests_of
from .running import Running
from .streams import bare
from .telling import Switch, Teller
from .view import LEVELS, Level, News, Proposing, View, Watch, spawn, watch_resource

log = logging.getLogger("anykit.mcp")

T = TypeVar("T")
Context = ServerRequestContext[View, Any]

NAME: Final = "anykit"
PAGE: Final = 1000
"""Items of one page of a list."""
ROUNDS: Final = 10
"""How often one call may ask, and one question be asked again because its answer does not fit."""
COMPLETIONS: Final = 100
QUESTION_TIME: Final = 3600.0
"""Seconds that a live question waits where it does not say itself."""
STATE_TIME: Final = 24 * 3600.0
"""Seconds that a client may take to come back with an answer (MCP 2026-07-28)."""
CONFIGURING: Final = 60.0
"""Seconds that a call waits for its toolkit to be configured, before it is said again where."""
CLEANUP: Final = 2.0
"""Seconds that cancelled calls have when the host ends."""
ABANDONED: Final = 0.5
"""Seconds that a call has to end whose question nobody will answer."""
SWITCHES: Final = 1000
RESOURCE_NOT_FOUND: Final = -32002
"""Until 2025-11-25."""


class _Server(Server[View]):
    """The SDK's server, which says in every leg of the old era that lists may change."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """See `Server`."""
        return super().create_initialization_options(
            notification_options or NotificationOptions(True, True, True), experimental_capabilities, extensions
        )


class Face:
    """The handlers, and the server that they are handlers of.

    Args:
        limits: How much of everything.
        instructions: What clients are told of it.
        desk: Where toolkits are configured; None where there is no page.
        state_keys: Seal what a client carries between two rounds of a question, at least 32 bytes each: the first seals, all
            open. None makes a key that this process alone knows.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        instructions: str | None = None,
        desk: Desk | None = None,
        state_keys: Sequence[bytes] = (),
    ) -> None:
        self._limits = limits
        self._desk = desk
        self._running = Running()
        self._offered: dict[str, tuple[object, Offered]] = {}
        self._listens: set[ListenHandler] = set()
        self._switches: OrderedDict[str, Switch] = OrderedDict()
        private = CacheHint(ttl_ms=0, scope="private")
        self.server: Server[View] = _Server(
            NAME,
            version=_version(),
            lifespan=cast(Any, _no_lifespan),
            title=NAME,
            instructions=instructions,
            cache_hints=cast(Any, dict.fromkeys(CACHEABLE_METHODS, private)),
            on_list_tools=_as_model(self._list_tools),
            on_call_tool=_as_model(self._call_tool),
            on_list_resources=_as_model(self._list_resources),
            on_list_resource_templates=_as_model(self._list_templates),
            on_read_resource=_as_model(self._read_resource),
            on_subscribe_resource=_as_model(self._subscribe),
            on_unsubscribe_resource=_as_model(self._unsubscribe),
            on_subscriptions_listen=_as_model(self._listen),
            on_list_prompts=_as_model(self._list_prompts),
            on_get_prompt=_as_model(self._get_prompt),
            on_completion=_as_model(self._complete),
        )
        # Given to the constructor, these two would warn that the newest revision has them no more.
        self.server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, self._set_level)
        self.server.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)
        security = RequestStateSecurity(
            keys=list(state_keys) or [os.urandom(32)], ttl=STATE_TIME, bind_principal=_principal
        )
        around: list[ServerMiddleware[Any]] = [
            self._guard,
            RequestStateBoundary(security, default_audience=NAME),
            self._lane,
        ]
        self.server.middleware.extend(around)

    def end(self) -> None:
        """Streams of changes end in good order."""
        for listening in list(self._listens):
            listening.close()

    async def settle(self) -> None:
        """Wait, for a moment, for cancelled calls to clean up."""
        await self._running.settle(CLEANUP)

    # around every message

    async def _guard(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Settle who asks, and keep what breaks from the wire: the SDK would send an exception's text in the old era."""
        view = ctx.lifespan_context
        if _is_modern(ctx):
            view.without_session()
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):
            raise
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("%s could not be answered (error %s)", ctx.method, error_id)
            raise MCPError(INTERNAL_ERROR, f"it failed unexpectedly (error {error_id})") from None

    async def _lane(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """List tools without the SDK's models between, which drop nulls from schemas and cost most of the time."""
        if ctx.method != "tools/list" or ctx.request_id is None or ctx.session.client_capabilities is None:
            return await call_next(ctx)
        methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        params = types.PaginatedRequestParams.model_validate(ctx.params or {}, by_name=False)
        listed = await self._list_tools(ctx, params)
        if not _is_modern(ctx):
            listed.pop("resultType")
            return listed
        stamp = {types.SERVER_INFO_META_KEY: self.server.server_info_stamp}
        return {"ttlMs": 0, "cacheScope": "private", "_meta": stamp, **listed}

    # tools

    def offered(self, entry: ToolEntry) -> Offered:
        """A tool as it is listed; made once for each spec."""
        name = entry.tool.name
        known = self._offered.get(name)
        if known is None or known[0] is not entry.tool.spec:
            known = self._offered[name] = (entry.tool.spec, offered(entry))
        return known[1]

    async def _list_tools(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        entries = [entry for entry in context.lifespan_context.session.entries() if not entry.tool.deferred]
        page, cursor = _page(entries, _cursor_of(params), lambda entry: entry.tool.name)
        return _listed("tools", [self.offered(entry).definition for entry in page], cursor)

    async def _call_tool(self, context: Context, params: types.CallToolRequestParams) -> JsonObject:
        view = context.lifespan_context
        teller = Teller(context, _level(context), params.name)
        try:
            async with view.gate.turn():
                answer = await self._running.through(
                    self._called(context, params, teller), f"mcp call {params.name[:64]}"
                )
            await teller.close()
        except Busy as error:
            return content.failure(str(error), codes.BUSY, retryable=True)
        finally:
            teller.drop()
        return {"resultType": "complete", **answer}

    async def _called(self, context: Context, params: types.CallToolRequestParams, teller: Teller) -> JsonObject:
        view = context.lifespan_context
        session = view.session
        switch = Switch(teller)
        options = CallOptions(metadata=_trace_of(context), emit=switch)
        arguments = params.arguments or {}
        outcome: Outcome | None = None
        if _is_modern(context) and params.request_state is not None:
            state = json.loads(params.request_state)
            if (id := state.get("suspension")) is not None:
                return await self._gone_on(context, params, id, switch, options)
            if (refused := await self._configured(context, params, state)) is not None:
                return refused
        outcome = await session.run(params.name, arguments, options)
        if isinstance(outcome, Denied) and outcome.reason == codes.NOT_CONFIGURED:
            return await self._configure(context, params, outcome, options)
        return await self._concluded(context, params.name, outcome, switch, options)

    async def _concluded(
        self, context: Context, name: str, outcome: Outcome, switch: Switch, options: CallOptions
    ) -> JsonObject:
        """Ask what is asked; what it came to in the end."""
        if isinstance(outcome, Suspended):
            if _is_modern(context):
                return self._required(context, outcome.suspension, switch)
            outcome = await self._asked(context, outcome, options)
        if isinstance(outcome, Suspended):
            return _open_question(outcome.suspension)
        if isinstance(outcome, Failed) and outcome.code == codes.UNKNOWN_TOOL:
            raise MCPError(INVALID_PARAMS, outcome.message)
        entry = _entry(context.lifespan_context.session, name)
        if entry is None:
            return content.call_result(outcome, None)
        return content.call_result(outcome, self.offered(entry), limit=entry.tool.spec.max_output)

    # questions, 2026-07-28: the client comes again

    def _required(self, context: Context, suspension: Suspension, switch: Switch, note: str = "") -> JsonObject:
        asked = requests_of(suspension)
        if isinstance(asked, Unaskable):
            return _open_question(suspension, asked.reason)
        possible = askable(asked, _abilities(context))
        if not possible:
            if suspension.kind == "input":
                self._abandon(context.lifespan_context.session, suspension)
            raise _missing_capability(suspension, asked)
        self._switches[suspension.id] = switch
        if len(self._switches) > SWITCHES:
            self._switches.popitem(last=False)
        return _input_required(possible, {"suspension": suspension.id}, note)

    async def _gone_on(
        self, context: Context, params: types.CallToolRequestParams, id: str, switch: Switch, options: CallOptions
    ) -> JsonObject:
        """The client is back with an answer."""
        session = context.lifespan_context.session
        suspension = _waiting(session, id)
        kept = self._switches.get(id, switch)
        kept.teller = switch.teller
        if suspension is not None:
            asked = requests_of(suspension)
            if isinstance(asked, Unaskable):
                return _open_question(suspension, asked.reason)
            try:
                answer = answer_of(suspension, askable(asked, _abilities(context)), _responses(params))
            except ValueError as wrong:
                return self._required(context, suspension, kept, str(wrong))
            if answer is None:
                return self._required(context, suspension, kept)
        else:
            answer = Answer(False)  # answered elsewhere, or over: `answer` says so
        outcome = await session.answer(id, ok=answer.ok, data=answer.data, options=options)
        if isinstance(outcome, Failed) and (still := _waiting(session, id)) is not None:
            return self._required(context, still, kept, outcome.message)
        self._switches.pop(id, None)
        return await self._concluded(context, params.name, outcome, kept, options)

    # questions, until 2025-11-25: the client is asked while the call waits

    async def _asked(self, context: Context, outcome: Suspended, options: CallOptions) -> Outcome:
        session = context.lifespan_context.session
        abilities = _abilities(context)
        note = ""
        for _ in range(ROUNDS):
            suspension = outcome.suspension
            asked = requests_of(suspension)
            if isinstance(asked, Unaskable) or not (asked := askable(asked, abilities)):
                return outcome
            try:
                responses = {key: await _ask(context, one, suspension, note) for key, one in asked.items()}
            except asyncio.CancelledError:
                self._abandon(session, suspension)
                raise
            except MCPError as error:
                log.info("a client did not answer a question: %s", error.error.message[:200])
                responses = {key: {"action": "cancel"} for key in asked}
            try:
                answer = answer_of(suspension, asked, responses) or Answer(False)
            except ValueError as wrong:
                note = str(wrong)
                continue
            told = await session.answer(suspension.id, ok=answer.ok, data=answer.data, options=options)
            if isinstance(told, Failed) and _waiting(session, suspension.id) is not None:
                note = told.message
                continue
            if not isinstance(told, Suspended):
                return told
            outcome, note = told, ""
        self._abandon(session, outcome.suspension)
        return Failed(codes.EXECUTION_FAILED, f"it asked {ROUNDS} times without an end, or a fitting answer")

    def _abandon(self, session: Session, suspension: Suspension) -> None:
        """Nobody will answer: the call is told so, and ended."""

        async def refuse() -> None:
            try:
                async with asyncio.timeout(ABANDONED):
                    outcome = await session.answer(suspension.id, ok=False)
            except TimeoutError:
                return
            if isinstance(outcome, Suspended):  # it asks on and on: whoever waits for it takes it along
                waiting = spawn(session.answer(outcome.suspension.id, ok=False), "mcp abandon")
                await asyncio.sleep(0)
                waiting.cancel()

        self._switches.pop(suspension.id, None)
        spawn(refuse(), "mcp abandon")

    # toolkits that wait for a configuration

    async def _configure(
        self, context: Context, params: types.CallToolRequestParams, denied: Denied, options: CallOptions
    ) -> JsonObject:
        """Send the person to a page, where the client can open one; the call goes on once the toolkit is configured."""
        view = context.lifespan_context
        toolkit = str(denied.detail.get("toolkit", ""))
        address = None
        if self._desk is not None and _abilities(context).url:
            address = self._desk.address(view.session, toolkit, view.place)
        if address is None:
            said = Denied(f"{denied.message}: {toolkits.how_to(toolkit)}", denied.reason, denied.detail)
            return content.call_result(said, None)
        url: JsonObject = {
            "mode": "url",
            "message": f"Toolkit {toolkit} is not configured yet. Open this page to configure it.",
            "url": address.url,
            "elicitationId": address.id,
        }
        request = Request("elicitation/create", url, "none")
        if _is_modern(context):
            return _input_required({"configure": request}, {"toolkit": toolkit, "address": address.id})
        response = await _ask(context, request, None)
        if response.get("action") != "accept":
            return content.call_result(denied, None)
        try:
            async with asyncio.timeout(CONFIGURING):
                await address.configured.wait()
        except TimeoutError:
            said = Denied(f"{denied.message}; call it again once that is done", denied.reason, denied.detail)
            return content.call_result(said, None)
        await context.session.send_elicit_complete(address.id, context.request_id)
        outcome = await view.session.run(params.name, params.arguments or {}, options)
        return await self._concluded(context, params.name, outcome, cast(Switch, options.emit), options)

    async def _configured(
        self, context: Context, params: types.CallToolRequestParams, state: Mapping[str, Any]
    ) -> JsonObject | None:
        """The client is back from the page: None where the call can go on."""
        session = context.lifespan_context.session
        toolkit = str(state.get("toolkit"))
        view = session.toolkit(toolkit)
        if view is None or view.configured:
            return None
        response = _responses(params).get("configure", {})
        if response.get("action") != "accept":
            return content.failure(f"toolkit {toolkit} was not configured", codes.NOT_CONFIGURED)
        address = None if self._desk is None else self._desk.find(str(state.get("address")))
        if address is not None:
            try:
                async with asyncio.timeout(CONFIGURING):
                    await address.configured.wait()
            except TimeoutError:
                pass  # it is said again where
        return None

    # resources

    async def _list_resources(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        session = context.lifespan_context.session
        found = [*await session.resources(), *toolkits.descriptors(session)]
        page, cursor = _page(found, _cursor_of(params), lambda one: one.id)
        return _listed("resources", [content.resource(one) for one in page], cursor)

    async def _list_templates(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        found = await context.lifespan_context.session.templates()
        page, cursor = _page(found, _cursor_of(params), lambda one: one.uri_template)
        return _listed("resourceTemplates", [content.template(one) for one in page], cursor)

    async def _read_resource(self, context: Context, params: types.ReadResourceRequestParams) -> JsonObject:
        session = context.lifespan_context.session
        found = toolkits.read(session, params.uri)
        if found is None:
            try:
                found = await self._in_turn(context, session.read(params.uri))
            except InvalidInput as error:
                raise _not_found(context, params.uri, error.message) from None
        return {"resultType": "complete", "contents": content.contents(found)}

    async def _subscribe(self, context: Context, params: types.SubscribeRequestParams) -> JsonObject:
        try:
            await context.lifespan_context.watch(params.uri)
        except InvalidInput as error:
            raise _not_found(context, params.uri, error.message) from None
        except LookupError as error:
            raise MCPError(INVALID_PARAMS, str(error)) from None
        return {}

    async def _unsubscribe(self, context: Context, params: types.UnsubscribeRequestParams) -> JsonObject:
        context.lifespan_context.unwatch(params.uri)
        return {}

    # prompts

    async def _list_prompts(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        found = await context.lifespan_context.session.prompts()
        page, cursor = _page(found, _cursor_of(params), lambda one: one.id)
        return _listed("prompts", [content.prompt(one) for one in page], cursor)

    async def _get_prompt(self, context: Context, params: types.GetPromptRequestParams) -> JsonObject:
        session = context.lifespan_context.session
        try:
            filled = await self._in_turn(context, session.prompt(params.name, dict(params.arguments or {})))
        except InvalidInput as error:
            said = "; ".join(f"{fault['path'] or '/'} {fault['message']}" for fault in error.errors)
            raise MCPError(INVALID_PARAMS, f"{error.message}: {said}" if said else error.message) from None
        return {"resultType": "complete", **content.prompt_result(filled)}

    async def _complete(self, context: Context, params: types.CompleteRequestParams) -> JsonObject:
        session = context.lifespan_context.session
        reference = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        values: Sequence[str] = ()
        more = False
        if isinstance(session, Proposing):
            known: JsonObject = dict((params.context and params.context.arguments) or {})
            try:
                values, more = await self._in_turn(
                    context, session.complete(reference, params.argument.name, params.argument.value, known)
                )
            except InvalidInput as error:
                raise MCPError(INVALID_PARAMS, error.message) from None
        shown = list(values[:COMPLETIONS])
        completion = {"values": shown, "hasMore": more or len(values) > len(shown)}
        return {"resultType": "complete", "completion": completion}

    async def _in_turn(self, context: Context, work: Awaitable[T]) -> T:
        """Something that may take long, in its turn. `InvalidInput` passes; other failures become the protocol's."""
        try:
            async with context.lifespan_context.gate.turn():
                return await self._running.through(work, f"mcp {context.method}")
        except InvalidInput:
            raise
        except CapabilityError as error:
            raise MCPError(INTERNAL_ERROR, error.message) from None
        except TimeoutError:
            raise MCPError(INTERNAL_ERROR, "it took too long") from None
        except Busy as error:
            raise MCPError(INTERNAL_ERROR, str(error), {"retryable": True}) from None

    # news and logs

    async def _set_level(self, context: Context, params: types.SetLevelRequestParams) -> types.EmptyResult:
        context.lifespan_context.level = params.level
        return types.EmptyResult()

    async def _initialized(self, context: Context, params: types.NotificationParams) -> None:
        session = context.session

        async def tell(news: News) -> None:
            match news:
                case ("tools", _):
                    await session.send_tool_list_changed()
                case ("resources", _):
                    await session.send_resource_list_changed()
                case ("prompts", _):
                    await session.send_prompt_list_changed()
                case (_, uri):
                    await session.send_resource_updated(uri)

        await context.lifespan_context.begin(tell)

    async def _listen(
        self, context: Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        if len(self._listens) >= self._limits.listeners:
            raise MCPError(INTERNAL_ERROR, "too many streams of changes are open", {"retryable": True})
        uris = params.notifications.resource_subscriptions or []
        if len(uris) > self._limits.watched:
            raise MCPError(INVALID_PARAMS, f"more than {self._limits.watched} resources to watch")
        bus = _Bus(context.lifespan_context.session)
        listening = ListenHandler(bus)
        self._listens.add(listening)
        try:
            await bus.start(params.notifications)
            return await listening(replace(context, request_id=bare(context.request_id)), params)
        finally:
            self._listens.discard(listening)
            bus.stop()


@asynccontextmanager
async def _no_lifespan(server: object) -> AsyncGenerator[None]:
    """Never entered: whoever serves a connection says for whom."""
    yield


class _Bus:
    """What one caller is told of, as the SDK's bus of events."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._listener: Callable[[ServerEvent], None] | None = None
        self._watch: Watch | None = None
        self._undo: list[Callable[[], None]] = []

    async def start(self, wanted: types.SubscriptionFilter) -> None:
        """Look at what is listed now, so that changes can be told."""
        if wanted.tools_list_changed or wanted.resources_list_changed or wanted.prompts_list_changed:
            self._watch = Watch(self._session, self._tell)
            await self._watch.start()
        for uri in dict.fromkeys(wanted.resource_subscriptions or []):
            try:
                self._undo.append(await watch_resource(self._session, uri, self._updated))
            except CapabilityError as error:
                log.info("a resource is not watched: %s", error.message[:200])

    def stop(self) -> None:
        """End it."""
        if self._watch is not None:
            self._watch.stop()
        for undo in self._undo:
            undo()

    async def publish(self, event: ServerEvent) -> None:
        """See `SubscriptionBus`."""
        if self._listener is not None:
            self._listener(event)

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """See `SubscriptionBus`."""
        self._listener = listener

        def unsubscribe() -> None:
            self._listener = None

        return unsubscribe

    def _updated(self, uri: str) -> None:
        if self._listener is not None:
            self._listener(ResourceUpdated(uri=uri))

    async def _tell(self, news: News) -> None:
        match news:
            case ("tools", _):
                await self.publish(ToolsListChanged())
            case ("resources", _):
                await self.publish(ResourcesListChanged())
            case ("prompts", _):
                await self.publish(PromptsListChanged())
            case (_, uri):
                self._updated(uri)


def _version() -> str:
    try:
        return importlib.metadata.version("anykit")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def _as_model(handler: Callable[[Context, Any], Awaitable[Any]]) -> Any:
    """A handler whose result is JSON already: the SDK takes it, its constructor's types do not say so."""
    return handler


def _is_modern(context: Context) -> bool:
    return context.protocol_version in MODERN_PROTOCOL_VERSIONS


def _principal(context: Context) -> str:
    return context.lifespan_context.principal


def _entry(session: Session, name: str) -> ToolEntry | None:
    return next((entry for entry in session.entries() if entry.tool.name == name), None)


_TRACE: Final = ("traceparent", "tracestate", "baggage")


def _trace_of(context: Context) -> JsonObject:
    """The trace that the call belongs to (W3C Trace Context); nothing else of the client's goes on."""
    meta = cast("Mapping[str, Any]", context.meta or {})
    return {name: meta[name] for name in _TRACE if isinstance(meta.get(name), str)}


def _level(context: Context) -> Level | None:
    """From which level on logs are told; None tells none."""
    if not _is_modern(context):
        return context.lifespan_context.level
    wanted = cast("Mapping[str, Any]", context.meta or {}).get(types.LOG_LEVEL_META_KEY)
    return wanted if wanted in LEVELS else None


def _abilities(context: Context) -> Abilities:
    declared = context.session.client_capabilities
    if declared is None:
        return Abilities()
    elicitation = declared.elicitation
    modern = _is_modern(context)
    return Abilities(
        # `{}` is what clients declare that know of forms only.
        form=elicitation is not None and (elicitation.form is not None or elicitation.url is None),
        url=elicitation is not None
        and elicitation.url is not None
        and (modern or is_version_at_least(context.protocol_version, "2025-11-25")),
        sampling=declared.sampling is not None,
        roots=declared.roots is not None,
    )


async def _ask(context: Context, request: Request, suspension: Suspension | None, note: str = "") -> JsonObject:
    """Ask the client while its call waits. Raises `MCPError` where it does not answer."""
    params = _with_note(request, note)
    wanted: types.ServerRequest
    result: type[BaseModel]
    try:
        match request.need:
            case "sampling":
                wanted = types.CreateMessageRequest.model_validate({"method": request.method, "params": params})
                result = types.CreateMessageResultWithTools
            case "roots":
                wanted, result = types.ListRootsRequest(), types.ListRootsResult
            case _:
                wanted = types.ElicitRequest.model_validate({"method": request.method, "params": params})
                result = types.ElicitResult
        left = QUESTION_TIME
        if suspension is not None and suspension.expires_at is not None:
            left = max(1.0, suspension.expires_at - time.time())
        answer = await context.session.send_request(
            wanted, result, left, ServerMessageMetadata(related_request_id=context.request_id)
        )
    except ValidationError:
        raise MCPError(INTERNAL_ERROR, "the question or its answer is not as the protocol wants it") from None
    return answer.model_dump(mode="json", by_alias=True, exclude_none=True)


def _with_note(request: Request, note: str) -> JsonObject:
    if not note or "message" not in request.params:
        return request.params
    return {**request.params, "message": f"{request.params['message']}\n({note})"}


def _input_required(asked: Mapping[str, Request], state: JsonObject, note: str = "") -> JsonObject:
    return {
        "resultType": "input_required",
        "inputRequests": {
            key: {"method": request.method, "params": _with_note(request, note)} for key, request in asked.items()
        },
        "requestState": json.dumps(state),
    }


def _responses(params: types.CallToolRequestParams) -> dict[str, JsonObject]:
    return {
        key: one.model_dump(mode="json", by_alias=True, exclude_none=True)
        for key, one in (params.input_responses or {}).items()
    }


def _waiting(session: Session, id: str) -> Suspension | None:
    return next((one for one in session.suspensions() if one.id == id), None)


def _missing_capability(suspension: Suspension, asked: Mapping[str, Request]) -> MCPError:
    required: JsonObject = {}
    for request in asked.values():
        for name, said in request.capability.items():
            required[name] = {**required.get(name, {}), **said}
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"it asks something that this client cannot be asked: {suspension.prompt}",
        {"requiredCapabilities": required},
    )


def _open_question(suspension: Suspension, reason: str = "this client cannot be asked") -> JsonObject:
    """A call that waits for an answer that must come another way."""
    where = f"\n{suspension.url}" if suspension.url else ""
    text = f"{suspension.prompt}{where}\n({reason}; it waits for an answer to {suspension.id})"
    answer = content.failure(text, "suspended")
    answer["_meta"]["anykit/suspension"] = suspension.to_json()
    return answer


def _not_found(context: Context, uri: str, message: str) -> MCPError:
    code = INVALID_PARAMS if _is_modern(context) else RESOURCE_NOT_FOUND
    return MCPError(code, message or "Resource not found", {"uri": uri})


# pages


def _listed(name: str, items: Sequence[JsonObject], cursor: str | None) -> JsonObject:
    listed: JsonObject = {"resultType": "complete", name: list(items)}
    if cursor is not None:
        listed["nextCursor"] = cursor
    return listed


def _cursor_of(params: types.PaginatedRequestParams | None) -> str | None:
    return None if params is None else params.cursor


def _page(items: Sequence[T], cursor: str | None, key: Callable[[T], str]) -> tuple[Sequence[T], str | None]:
    """A page behind the item that a cursor names, and the next cursor. Raises `MCPError` for a cursor that is none."""
    start = 0
    if cursor is not None:
        last = _opened(cursor)
        start = next((index + 1 for index, item in enumerate(items) if key(item) == last), -1)
        if last is None or start < 0:
            raise MCPError(INVALID_PARAMS, "the cursor is not good, or the list has changed: start again without one")
    page = items[start : start + PAGE]
    more = start + PAGE < len(items)
    return page, _sealed(key(page[-1])) if more else None


def _sealed(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode(errors="surrogatepass")).decode()


def _opened(cursor: str) -> str | None:
    try:
        key = base64.urlsafe_b64decode(cursor.encode()).decode(errors="surrogatepass")
    except ValueError:
        return None
    return key if _sealed(key) == cursor else None
