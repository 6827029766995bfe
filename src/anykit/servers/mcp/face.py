"""What is offered over MCP, for any number of callers: the SDK's low-level server over the catalogue. Imports the SDK."""

from __future__ import annotations

import importlib.metadata
import logging
import os
import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar, cast

import mcp_types as types
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import methods
from pydantic import ValidationError

from anykit.capabilities import CapabilityError, InvalidInput, JsonObject

from . import content, toolkits
from .bench import Busy, Limits
from .calls import Calls
from .configuring import Desk
from .contexts import Context, is_modern, principal_of
from .jsonrpc import INTERNAL_ERROR, INVALID_PARAMS
from .listening import Bus
from .pages import cursor_of, listed, page_of
from .running import Running
from .skills import Skills
from .streams import bare
from .view import News, View

log = logging.getLogger("anykit.mcp")

T = TypeVar("T")

NAME: Final = "anykit"
COMPLETIONS: Final = 100
STATE_TIME: Final = 24 * 3600.0
"""Seconds that a client may take to come back with an answer (MCP 2026-07-28)."""
CLEANUP: Final = 2.0
"""Seconds that cancelled calls have when the host ends."""
DOWN: Final = 10
"""Sources that are down and that the instructions speak of; of more there is only the number."""
_OPENING: Final = frozenset({"initialize", "server/discover"})
RESOURCE_NOT_FOUND: Final = -32002
"""Until 2025-11-25."""


class _Server(Server[View]):
    """The SDK's server, which says in every leg of the old era that lists may change, and of skills where there are any."""

    skills: Skills | None = None

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

    def get_capabilities(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
        *,
        protocol_version: str | None = None,
    ) -> types.ServerCapabilities:
        """See `Server`."""
        declared = {**(self.extensions if extensions is None else extensions)}
        if self.skills is not None:
            declared |= self.skills.extensions()
        return super().get_capabilities(
            notification_options, experimental_capabilities, declared or None, protocol_version=protocol_version
        )


class Face:
    """The handlers, and the server that they are handlers of.

    Args:
        limits: How much of everything.
        instructions: What clients are told of it.
        desk: Where toolkits are configured; None where there is no page.
        skills: The handlers of the Skills extension; None does not know it.
        state_keys: Seal what a client carries between two rounds of a question, at least 32 bytes each: the first seals, all
            open. None makes a key that this process alone knows.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        instructions: str | None = None,
        desk: Desk | None = None,
        skills: Skills | None = None,
        state_keys: Sequence[bytes] = (),
    ) -> None:
        self._limits = limits
        self._running = Running()
        self._calls = Calls(desk, self._running)
        self._listens: set[ListenHandler] = set()
        private = CacheHint(ttl_ms=0, scope="private")
        self.server = _Server(
            NAME,
            version=_version(),
            lifespan=cast(Any, _no_lifespan),
            title=NAME,
            instructions=instructions,
            cache_hints=cast(Any, dict.fromkeys(CACHEABLE_METHODS, private)),
            on_list_tools=_as_model(self._calls.list),
            on_call_tool=_as_model(self._calls.call),
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
        if skills is not None:
            self.server.skills = skills
            skills.serve(self.server)
        security = RequestStateSecurity(
            keys=list(state_keys) or [os.urandom(32)], ttl=STATE_TIME, bind_principal=principal_of
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
        if is_modern(ctx):
            view.without_session()
        try:
            result = await call_next(ctx)
            return _instructed(result, view) if ctx.method in _OPENING else result
        except (MCPError, ValidationError):
            raise
        except Exception:
            error_id = uuid.uuid4().hex[:12]
            log.exception("%s could not be answered (error %s)", ctx.method, error_id)
            raise MCPError(INTERNAL_ERROR, f"it failed unexpectedly (error {error_id})") from None

    async def _lane(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """List tools without the SDK's models between, which drop nulls from schemas and cost most of the time."""
        if ctx.method == "initialize":
            return self._with_extensions(await call_next(ctx))
        if ctx.method != "tools/list" or ctx.request_id is None or ctx.session.client_capabilities is None:
            return await call_next(ctx)
        methods.validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
        params = types.PaginatedRequestParams.model_validate(ctx.params or {}, by_name=False)
        found = await self._calls.list(ctx, params)
        if not is_modern(ctx):
            found.pop("resultType")
            return found
        stamp = {types.SERVER_INFO_META_KEY: self.server.server_info_stamp}
        return {"ttlMs": 0, "cacheScope": "private", "_meta": stamp, **found}

    def _with_extensions(self, result: HandlerResult) -> HandlerResult:
        """The old era's schema has no extensions, and the SDK takes them out of a handshake: they are declared all the same."""
        skills = self.server.skills
        if skills is not None and skills.offered and isinstance(result, dict):
            capabilities = cast(JsonObject, result.get("capabilities") or {})
            result["capabilities"] = {**capabilities, "extensions": skills.extensions()}
        return result

    # resources

    async def _list_resources(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        session = context.lifespan_context.session
        found = [*await session.resources(), *toolkits.descriptors(session)]
        page, cursor = page_of(found, cursor_of(params), lambda one: one.id)
        return listed("resources", [content.resource(one) for one in page], cursor)

    async def _list_templates(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        found = await context.lifespan_context.session.templates()
        page, cursor = page_of(found, cursor_of(params), lambda one: one.uri_template)
        return listed("resourceTemplates", [content.template(one) for one in page], cursor)

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
        page, cursor = page_of(found, cursor_of(params), lambda one: one.id)
        return listed("prompts", [content.prompt(one) for one in page], cursor)

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
        bus = Bus(context.lifespan_context.session)
        listening = ListenHandler(bus)
        self._listens.add(listening)
        try:
            await bus.start(params.notifications)
            return await listening(replace(context, request_id=bare(context.request_id)), params)
        finally:
            self._listens.discard(listening)
            bus.stop()


def _instructed(result: HandlerResult, view: View) -> HandlerResult:
    """What a client is told at the beginning, with what its model has to know: what is down, and how to find the rest."""
    if not isinstance(result, dict):
        return result
    session = view.session
    lines = [result["instructions"]] if result.get("instructions") else []
    if (finder := session.snapshot.finder) is not None:
        lines.append(f"Not every tool is listed; {finder} finds the others.")
    down = session.unavailable()
    lines += down[:DOWN]
    if len(down) > DOWN:
        lines.append(f"{len(down) - DOWN} more sources are unavailable.")
    return {**result, "instructions": "\n".join(lines)} if lines else result


@asynccontextmanager
async def _no_lifespan(server: object) -> AsyncGenerator[None]:
    """Never entered: whoever serves a connection says for whom."""
    yield


def _version() -> str:
    try:
        return importlib.metadata.version("anykit")
    except importlib.metadata.PackageNotFoundError:
        return "0"


def _as_model(handler: Callable[[Context, Any], Awaitable[Any]]) -> Any:
    """A handler whose result is JSON already: the SDK takes it, its constructor's types do not say so."""
    return handler


def _not_found(context: Context, uri: str, message: str) -> MCPError:
    code = INVALID_PARAMS if is_modern(context) else RESOURCE_NOT_FOUND
    return MCPError(code, message or "Resource not found", {"uri": uri})
