"""A2E's `mcp` capability: the MCP servers behind this host, their resources and prompts; and the agent's model for them.

Tools of MCP servers are tools like any others (`tool/list`); what is here is what A2E has messages of its own for.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar, cast, runtime_checkable

from pydantic import ValidationError

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    CapabilityContext,
    CapabilityError,
    ContentPart,
    EmbeddedResource,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    JsonObject,
    Page,
    PromptDescriptor,
    PromptProvider,
    ResourceDescriptor,
    ResourceProvider,
    StructuredPart,
    Subscribable,
    TextPart,
    Unavailable,
)
from anykit.runtime import Catalog, Session, Snapshot, Source, clean, state_of
from anykit.tools import describe_part, to_json
from anykit.wire.a2e import A2EMessage, Message
from anykit.wire.a2e.messages.mcp import (
    MCPPrompt,
    MCPPromptGetRequest,
    MCPPromptGetResponse,
    MCPPromptListRequest,
    MCPPromptListResponse,
    MCPPromptMessage,
    MCPResource,
    MCPResourceContent,
    MCPResourceListRequest,
    MCPResourceListResponse,
    MCPResourceReadRequest,
    MCPResourceReadResponse,
    MCPResourceSubscribeRequest,
    MCPResourceSubscribeResponse,
    MCPRoot,
    MCPRootsListRequest,
    MCPRootsListResponse,
    MCPSamplingRequest,
    MCPSamplingResponse,
    MCPServerConfig,
    MCPServerInfo,
    MCPServerListRequest,
    MCPServerListResponse,
    MCPServerPush,
    MCPServerRegisterRequest,
    MCPServerRegisterResponse,
    MCPServerUnregisterRequest,
    MCPServerUnregisterResponse,
)

from .outcomes import Refusal

log = logging.getLogger("anykit.a2e")

T = TypeVar("T")

KIND: Final = "mcp"
"""The kind of the sources that are MCP servers."""
CAPABILITY: Final = "mcp"
LIST_TIMEOUT: Final = 30.0
COUNT_TIMEOUT: Final = 2.0
"""Seconds that counting what a server has may take; what is not known by then is 0."""
READY_TIMEOUT: Final = 15.0
"""Seconds that a registered server has to come up before it is told of as it is."""
MODEL_TIMEOUT: Final = 300.0
"""Seconds that an agent's model has to answer."""
WATCHED: Final = 1000
"""Resources that one session may watch."""
ASKED: Final = 64
"""Questions to one agent's model at a time."""
NAME_SHOWN: Final = 128

_STATUS: Final = {
    "ready": "ready",
    "connecting": "connecting",
    "failed": "error",
    "closed": "disconnected",
    "disabled": "disconnected",
}


@runtime_checkable
class Catalogued(Protocol):
    """A workbench whose sources can be looked at."""

    @property
    def catalog(self) -> Catalog:
        """What there is."""
        ...


class Registrar(Protocol):
    """Takes MCP servers in that an agent registers, as far as the operator allows it."""

    def allows(self, command: Sequence[str], url: str) -> bool:
        """Whether exactly this command or URL stands on the operator's list."""
        ...

    async def add(self, name: str, *, command: Sequence[str], url: str, timeout: float) -> str:
        """Take it in as a source; gives the source's name. Raises `CapabilityError`."""
        ...

    async def remove(self, name: str) -> None:
        """Take it out again."""
        ...


class McpMessages:
    """Answers one session's `mcp/*` messages. Used on the loop's thread only.

    Args:
        catalog: Where the servers are.
        session: Gives the caller's verbs.
        push: Sends what no request asked for.
        registrar: Takes servers in; None takes none.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        session: Callable[[], Session],
        push: Callable[[Message], None],
        registrar: Registrar | None = None,
    ) -> None:
        self._catalog = catalog
        self._session = session
        self._push = push
        self._registrar = registrar
        self._mine: set[str] = set()
        """Servers that this session registered."""
        self._watched: dict[tuple[str, str], Callable[[], None]] = {}
        self._tools: dict[str, frozenset[str]] = {}
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Tell of changes from now on."""
        self._tools = _tools_of(self._seen)
        self._unsubscribe = self._catalog.subscribe(self._changed)

    async def close(self) -> None:
        """The session is over: what it registered and watched goes with it."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        for undo in self._watched.values():
            undo()
        self._watched.clear()
        for name in list(self._mine):
            await self._remove(name)

    async def answer(self, message: Message) -> Message:
        """The reply to one request. Raises `Refusal`."""
        match message:
            case MCPServerListRequest():
                return await self._list(message)
            case MCPServerRegisterRequest():
                return await self._register(message)
            case MCPServerUnregisterRequest():
                return await self._unregister(message)
            case MCPResourceListRequest():
                return await self._list_resources(message)
            case MCPResourceReadRequest():
                return await self._read(message)
            case MCPResourceSubscribeRequest():
                return await self._subscribe(message)
            case MCPPromptListRequest():
                return await self._list_prompts(message)
            case MCPPromptGetRequest():
                return await self._get_prompt(message)
            case _:
                raise Refusal("invalid_message", "that is not served here", capability=CAPABILITY)

    # servers

    @property
    def _seen(self) -> Snapshot:
        """The catalogue as the caller sees it."""
        return self._session().snapshot

    def _servers(self) -> list[Source]:
        return [source for source in self._seen.sources.values() if source.kind == KIND]

    def _server(self, server_id: str) -> Source:
        known = self._catalog.snapshot if server_id in self._mine else self._seen
        source = known.sources.get(server_id)
        if source is None or source.kind != KIND:
            shown = server_id[:NAME_SHOWN]
            names = [one.name for one in self._servers()]
            hint = self._seen.suggest(server_id, names)
            raise Refusal(
                "mcp_server_not_found",
                f"no MCP server {shown!r}{hint}",
                detail={"server_id": shown},
                capability=CAPABILITY,
            )
        return source

    def _among(self, server_id: str) -> list[Source]:
        """The server of that id; without one, all."""
        return [self._server(server_id)] if server_id else self._servers()

    async def _list(self, message: MCPServerListRequest) -> Message:
        wanted = message.status_filter.strip().lower()
        shown = await asyncio.gather(*(self._info(source) for source in self._servers()))
        return MCPServerListResponse(
            servers=[one.model_dump(mode="json") for one in shown if not wanted or one.status == wanted]
        )

    async def _info(self, source: Source) -> MCPServerInfo:
        state = state_of(source)
        resources = prompts = 0
        if state.status == "ready" and source.provider is not None:
            resources, prompts = await asyncio.gather(
                _count((one.list_resources for one in source.provider.resources()), self._resources_in(source)),
                _count((one.list_prompts for one in source.provider.prompts()), self._prompts_in(source)),
            )
        said, _, version = str(state.detail.get("server", "")).rpartition(" ")
        tools = self._seen.tools.values()
        return MCPServerInfo(
            server_id=source.name,
            name=source.name,
            transport="http" if source.location.startswith(("http://", "https://")) else "stdio",
            status=_STATUS.get(state.status, "disconnected"),
            mcp_version=str(state.detail.get("protocol", "")),
            server_name=said or version,
            server_version=version if said else "",
            tools_count=sum(entry.source == source.name for entry in tools),
            resources_count=resources,
            prompts_count=prompts,
            error="" if state.status == "ready" else state.reason,
            connected_at=state.since or 0.0 if state.status == "ready" else 0.0,
        )

    async def _register(self, message: MCPServerRegisterRequest) -> Message:
        try:
            config = MCPServerConfig.model_validate(message.config)
        except ValidationError as error:
            faults = [
                {"path": "".join(f"/{step}" for step in fault["loc"]), "message": fault["msg"]}
                for fault in error.errors(include_url=False, include_input=False, include_context=False)
            ]
            detail = {"errors": faults}
            raise Refusal("schema_violation", "that is no MCP server", detail=detail, capability=CAPABILITY) from None
        registrar = self._registrar
        allowed = registrar is not None and bool(config.cmd) != bool(config.url)
        # What the operator allowed is exactly that command or URL, with nothing that could change what it does.
        if registrar is None or not allowed or config.env or config.cwd or config.headers:
            raise _not_allowed()
        if not registrar.allows(config.cmd, config.url):
            raise _not_allowed()
        name = config.server_id if "server_id" in message.config else config.name or config.server_id
        try:
            added = await registrar.add(
                name[:NAME_SHOWN], command=config.cmd, url=config.url, timeout=float(config.timeout)
            )
        except CapabilityError as error:
            return MCPServerRegisterResponse(ok=False, error=error.message)
        self._mine.add(added)
        await self._until(lambda: state_of(self._server(added)).status != "connecting")
        info = await self._info(self._server(added))
        return MCPServerRegisterResponse(ok=True, server=info.model_dump(mode="json"))

    async def _until(self, reached: Callable[[], bool]) -> None:
        changed = asyncio.Event()
        unsubscribe = self._catalog.subscribe(lambda snapshot: changed.set())
        try:
            async with asyncio.timeout(READY_TIMEOUT):
                while not reached():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            pass
        finally:
            unsubscribe()

    async def _unregister(self, message: MCPServerUnregisterRequest) -> Message:
        name = self._server(message.server_id).name
        if name not in self._mine:
            raise Refusal(
                "unauthorized",
                f"MCP server {name} was not registered by this session",
                detail={"server_id": name},
                capability=CAPABILITY,
            )
        await self._remove(name)
        return MCPServerUnregisterResponse(ok=True, server_id=name)

    async def _remove(self, name: str) -> None:
        self._mine.discard(name)
        if self._registrar is not None:
            with contextlib.suppress(KeyError):
                await self._registrar.remove(name)

    def _changed(self, snapshot: Snapshot) -> None:
        before, self._tools = self._tools, _tools_of(self._seen)
        for server, tools in self._tools.items():
            if before.get(server) != tools:
                self._push(MCPServerPush(server_id=server, method="notifications/tools/list_changed"))

    # what of a server's is in the caller's view

    def _resources_in(self, source: Source) -> Callable[[ResourceDescriptor], bool]:
        lens = self._seen.lens
        return lambda one: lens is None or lens.resource((one.id, one.name), source=source.name)

    def _prompts_in(self, source: Source) -> Callable[[PromptDescriptor], bool]:
        lens = self._seen.lens
        prefix = f"{clean(source.name)}_"
        return lambda one: (
            lens is None or lens.prompt((prefix + one.id, one.id, f"{source.name}/{one.id}"), source=source.name)
        )

    async def _is_inside(self, source: Source, provider: ResourceProvider, uri: str) -> bool:
        lens = self._seen.lens
        if lens is None or lens.resource((uri,), source=source.name):
            return True
        if lens.excluded((uri,), source=source.name):
            return False
        inside = self._resources_in(source)
        return any(one.id == uri and inside(one) for one in await self._all(source, provider.list_resources))

    # resources

    async def _list_resources(self, message: MCPResourceListRequest) -> Message:
        found: list[MCPResource] = []
        for source in self._among(message.server_id):
            for provider in _resources_of(source):
                listed = filter(self._resources_in(source), await self._all(source, provider.list_resources))
                found += [_resource(one, source.name) for one in listed]
        page, cursor = _page(found, message.cursor)
        return MCPResourceListResponse(resources=[one.model_dump(mode="json") for one in page], next_cursor=cursor)

    async def _read(self, message: MCPResourceReadRequest) -> Message:
        context = self._context()
        uri = message.uri
        for source in self._among(message.server_id):
            for provider in _resources_of(source):
                if not await self._is_inside(source, provider, uri):
                    continue
                try:
                    read = await self._bounded(source, provider.read_resource(uri, context))
                except InvalidInput:
                    continue
                contents = [_content(uri, part).model_dump(mode="json") for part in read.parts]
                return MCPResourceReadResponse(contents=contents, server_id=source.name)
        raise _not_found("mcp_resource_not_found", "resource", uri)

    async def _subscribe(self, message: MCPResourceSubscribeRequest) -> Message:
        uri = message.uri
        for source in self._among(message.server_id):
            key = (source.name, uri)
            if key in self._watched:
                return MCPResourceSubscribeResponse(ok=True)
            for provider in _resources_of(source):
                if not isinstance(provider, Subscribable) or not await self._is_inside(source, provider, uri):
                    continue
                if len(self._watched) >= WATCHED:
                    return MCPResourceSubscribeResponse(ok=False, error="too many resources are watched already")
                try:
                    undo = await self._bounded(source, provider.subscribe_resource(uri, self._updated(source.name)))
                except InvalidInput:
                    continue
                self._watched[key] = undo
                return MCPResourceSubscribeResponse(ok=True)
        return MCPResourceSubscribeResponse(ok=False, error=f"no server tells when {uri[:NAME_SHOWN]!r} changes")

    def _updated(self, server: str) -> Callable[[str], None]:
        def tell(uri: str) -> None:
            method = "notifications/resources/updated"
            self._push(MCPServerPush(server_id=server, method=method, params={"uri": uri}))

        return tell

    # prompts

    async def _list_prompts(self, message: MCPPromptListRequest) -> Message:
        found: list[MCPPrompt] = []
        for source in self._among(message.server_id):
            for provider in _prompts_of(source):
                listed = filter(self._prompts_in(source), await self._all(source, provider.list_prompts))
                found += [_prompt(one, source.name) for one in listed]
        page, cursor = _page(found, message.cursor)
        return MCPPromptListResponse(prompts=[one.model_dump(mode="json") for one in page], next_cursor=cursor)

    async def _get_prompt(self, message: MCPPromptGetRequest) -> Message:
        context = self._context()
        for source in self._among(message.server_id):
            for provider in _prompts_of(source):
                listed = list(filter(self._prompts_in(source), await self._all(source, provider.list_prompts)))
                if all(one.id != message.name for one in listed):
                    continue
                try:
                    filled = await self._bounded(source, provider.get_prompt(message.name, message.arguments, context))
                except InvalidInput as error:
                    detail = {"errors": error.errors, "server_id": source.name}
                    raise Refusal("schema_violation", error.message, detail=detail, capability=CAPABILITY) from None
                messages = [
                    MCPPromptMessage(role=one.role, content=_block(part)).model_dump(mode="json")
                    for one in filled.messages
                    for part in one.content
                ]
                return MCPPromptGetResponse(
                    description=filled.description or "", messages=messages, server_id=source.name
                )
        raise _not_found("mcp_prompt_not_found", "prompt", message.name)

    # asking a server

    def _context(self) -> CapabilityContext:
        caller = self._session().caller
        return CapabilityContext(session_id=caller.session, principal=caller.principal)

    async def _bounded(self, source: Source, work: Awaitable[T]) -> T:
        """Ask a server something. `InvalidInput` passes; what else goes wrong is told in A2E's words."""
        try:
            async with asyncio.timeout(LIST_TIMEOUT):
                return await work
        except InvalidInput:
            raise
        except (Unavailable, TimeoutError) as error:
            reason = error.message if isinstance(error, Unavailable) else f"no answer within {LIST_TIMEOUT:g} s"
            raise Refusal(
                "mcp_server_unavailable",
                reason,
                detail={"server_id": source.name},
                retryable=True,
                capability=CAPABILITY,
            ) from None
        except CapabilityError as error:
            detail = {"server_id": source.name}
            raise Refusal("mcp_protocol_error", error.message, detail=detail, capability=CAPABILITY) from None

    async def _all(self, source: Source, list_page: Callable[[str | None], Awaitable[Page[T]]]) -> Sequence[T]:
        """Everything that a server lists. One that is away fails only where it was asked for by name."""
        if state_of(source).status not in ("ready", "failed"):
            return ()
        try:
            return await self._bounded(source, _pages(list_page))
        except InvalidInput as error:
            raise Refusal("mcp_protocol_error", error.message, capability=CAPABILITY) from None


def _tools_of(snapshot: Snapshot) -> dict[str, frozenset[str]]:
    tools: dict[str, set[str]] = {source.name: set() for source in snapshot.sources.values() if source.kind == KIND}
    for name, entry in snapshot.tools.items():
        if entry.source in tools:
            tools[entry.source].add(name)
    return {server: frozenset(names) for server, names in tools.items()}


def _resources_of(source: Source) -> Sequence[ResourceProvider]:
    return () if source.provider is None or source.disabled else source.provider.resources()


def _prompts_of(source: Source) -> Sequence[PromptProvider]:
    return () if source.provider is None or source.disabled else source.provider.prompts()


_PAGES: Final = 100
PAGE: Final = 1000


async def _pages(list_page: Callable[[str | None], Awaitable[Page[T]]]) -> list[T]:
    items: list[T] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await list_page(cursor)
        items += page.items
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    return items


async def _count(lists: Iterator[Callable[[str | None], Awaitable[Page[T]]]], inside: Callable[[T], bool]) -> int:
    try:
        async with asyncio.timeout(COUNT_TIMEOUT):
            return sum([sum(map(inside, await _pages(one))) for one in lists])
    except Exception as error:
        log.debug("an MCP server's list is not counted: %s", error)
        return 0


def _page(items: Sequence[T], cursor: str) -> tuple[Sequence[T], str]:
    """A page, and the token for the next; "" ends it. Raises `Refusal`."""
    if cursor and not (cursor.isdecimal() and len(cursor) < 10):
        raise Refusal("schema_violation", "the cursor is not one of this host's", capability=CAPABILITY)
    start = int(cursor or 0)
    following = start + PAGE
    return items[start:following], str(following) if following < len(items) else ""


def _not_allowed() -> Refusal:
    return Refusal(
        "unauthorized",
        "this host takes no MCP servers from agents, but for commands and URLs that its operator has allowed",
        detail={"reason": "not_allowed"},
        capability=CAPABILITY,
    )


def _not_found(code: str, what: str, name: str) -> Refusal:
    return Refusal(code, f"no {what} {name[:512]!r}", detail={what: name[:512]}, capability=CAPABILITY)


# what is told


def _resource(one: ResourceDescriptor, server: str) -> MCPResource:
    said: object = one.metadata.get("annotations")
    return MCPResource(
        uri=one.id,
        name=one.title or one.name,
        description=one.description or "",
        mime_type=one.media_type or "",
        server_id=server,
        annotations=cast(JsonObject, said) if isinstance(said, dict) else {},
    )


def _content(uri: str, part: ContentPart) -> MCPResourceContent:
    match part:
        case TextPart():
            return MCPResourceContent(uri=uri, mime_type=part.media_type, text=part.text)
        case StructuredPart():
            return MCPResourceContent(uri=uri, mime_type="application/json", text=to_json(part.value))
        case EmbeddedResource():
            kind = part.media_type or "application/octet-stream"
            if part.data is None:
                return MCPResourceContent(uri=part.uri, mime_type=part.media_type or "text/plain", text=part.text or "")
            return MCPResourceContent(uri=part.uri, mime_type=kind, blob=_base64(part.data), type="blob")
        case ImagePart() | AudioPart():
            return MCPResourceContent(uri=uri, mime_type=part.media_type, blob=_base64(part.data), type="blob")
        case BlobPart() if part.data is not None:
            return MCPResourceContent(uri=uri, mime_type=part.media_type, blob=_base64(part.data), type="blob")
        case _:
            return MCPResourceContent(uri=uri, text=describe_part(part))


def _prompt(one: PromptDescriptor, server: str) -> MCPPrompt:
    return MCPPrompt(
        name=one.id,
        description=one.description or "",
        server_id=server,
        arguments=[
            {"name": argument.name, "description": argument.description or "", "required": argument.required}
            for argument in one.arguments
        ],
    )


def _block(part: ContentPart) -> JsonObject:
    """A part as MCP's content block."""
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case ImagePart() | AudioPart():
            return {"type": part.kind, "data": _base64(part.data), "mimeType": part.media_type}
        case EmbeddedResource():
            inside: JsonObject = {"uri": part.uri, "mimeType": part.media_type or "application/octet-stream"}
            inside |= {"text": part.text or ""} if part.data is None else {"blob": _base64(part.data)}
            return {"type": "resource", "resource": inside}
        case _:
            return {"type": "text", "text": describe_part(part)}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


# the agent's model and folders


@dataclass(eq=False)
class _Agent:
    """A session whose agent can be asked."""

    ask: Callable[[A2EMessage], str]
    """Sends a message; gives its id."""
    waiting: dict[str, asyncio.Future[Message]]


class AgentModels:
    """Lets MCP servers use the models of agents (`mcp/sample`) and see their folders (`mcp/root/list`).

    Each question goes to the agent whose call the server is working on, and to no other. One for each host; `sample` is
    what the sources of MCP servers take as their sampler.
    """

    def __init__(self) -> None:
        self._agents: dict[str, _Agent] = {}

    def join(self, session_id: str, ask: Callable[[A2EMessage], str]) -> None:
        """An agent that negotiated `mcp` can be asked. `ask` sends a message and gives its id."""
        self._agents[session_id] = _Agent(ask, {})

    def leave(self, session_id: str) -> None:
        """It is gone: what it was asked stays without an answer."""
        agent = self._agents.pop(session_id, None)
        if agent is not None:
            for waiting in agent.waiting.values():
                if not waiting.done():
                    waiting.set_exception(ExecutionFailed("the agent is gone", code="mcp_sampling_refused"))

    def heard(self, session_id: str, message: Message) -> None:
        """An agent answered; an answer to nothing is dropped."""
        agent = self._agents.get(session_id)
        waiting = None if agent is None else agent.waiting.get(getattr(message, "req_id", ""))
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    async def sample(self, params: JsonObject, context: CapabilityContext) -> JsonObject:
        """Have the caller's agent answer `sampling/createMessage`: its params in, its result out, as MCP spells them.

        Raises `ExecutionFailed` where it refuses, or cannot be asked.
        """
        preferences: object = params.get("modelPreferences")
        metadata: object = params.get("metadata")
        given: dict[str, Any] = {
            "messages": params.get("messages") or [],
            "model_preferences": preferences if isinstance(preferences, dict) else {},
            "system_prompt": str(params.get("systemPrompt") or ""),
            "include_context": str(params.get("includeContext") or "none"),
            "max_tokens": params.get("maxTokens") or 1024,
            "stop_sequences": params.get("stopSequences") or [],
            "metadata": metadata if isinstance(metadata, dict) else {},
        }
        if isinstance(params.get("temperature"), int | float):
            given["temperature"] = params["temperature"]
        try:
            request = MCPSamplingRequest(**given)
        except ValidationError:
            raise ExecutionFailed("the server asks a model with what A2E cannot carry", code="unsupported") from None
        reply = await self._asked(request, context)
        if not isinstance(reply, MCPSamplingResponse):
            raise ExecutionFailed("the agent answered with something else", code="mcp_protocol_error")
        if reply.error or not reply.content:
            raise ExecutionFailed(reply.error or "the agent's model said nothing", code="mcp_sampling_refused")
        result: JsonObject = {"role": reply.role, "content": reply.content, "model": reply.model or "unknown"}
        if reply.stop_reason:
            result["stopReason"] = reply.stop_reason
        return result

    async def roots(self, context: CapabilityContext) -> list[JsonObject]:
        """The folders of the caller's agent, as MCP spells roots. Raises `ExecutionFailed`."""
        reply = await self._asked(MCPRootsListRequest(), context)
        if not isinstance(reply, MCPRootsListResponse):
            raise ExecutionFailed("the agent answered with something else", code="mcp_protocol_error")
        found: list[JsonObject] = []
        for one in reply.roots:
            with contextlib.suppress(ValidationError):
                root = MCPRoot.model_validate(one)
                if root.uri.startswith("file://"):
                    found.append({"uri": root.uri, "name": root.name} if root.name else {"uri": root.uri})
        return found

    async def _asked(self, message: A2EMessage, context: CapabilityContext) -> Message:
        agent = self._agents.get(context.session_id or "")
        if agent is None:
            raise ExecutionFailed("the caller has no model that could be asked", code="mcp_capability_missing")
        if len(agent.waiting) >= ASKED:
            raise ExecutionFailed("the caller's model is asked too much at once", code="busy", retryable=True)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        id = agent.ask(message)
        agent.waiting[id] = answer
        try:
            async with asyncio.timeout(MODEL_TIMEOUT):
                return await answer
        except TimeoutError:
            raise ExecutionFailed(f"the agent did not answer within {MODEL_TIMEOUT:g} s", code="timeout") from None
        finally:
            agent.waiting.pop(id, None)
