"""Endpoints as tools, and the source that holds their connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from anykit.capabilities import (
    CapabilityContext,
    CapabilityProvider,
    Invocable,
    InvocableRequest,
    InvocableResult,
    Json,
    JsonObject,
    PromptProvider,
    ResourceProvider,
    State,
)
from anykit.tools import PermissionRequest, Tool
from anykit.transports import OPEN, AddressGuard

from .endpoint import KIND, Endpoint, endpoint, shown_url
from .exchange import Exchange
from .options import EndpointOptions
from .results import ResultKind


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as it goes into the catalogue; the fields are those of the runtime's `Source`."""

    name: str
    kind: str = KIND
    provider: CapabilityProvider | None = None
    prefixed: bool = False
    failed: str | None = None
    location: str = ""


class HttpTool(Tool):
    """An endpoint. By itself it opens a connection for each call; in a workbench or a source it keeps them."""

    def __init__(self, endpoint: Endpoint, exchange: Exchange) -> None:
        super().__init__(endpoint.spec)
        self._endpoint = endpoint
        self._exchange = exchange
        self._shown = shown_url(endpoint.url, endpoint.secrets)
        self._touches = (PermissionRequest("network", self._shown, {"method": endpoint.method}),)

    @property
    def may_ask(self) -> bool:
        """Never: a server is asked and answers."""
        return False

    @property
    def location(self) -> str:
        """Its URL with the placeholders, fit to be shown."""
        return self._shown

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """It talks to a server."""
        return self._touches

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """Send the request and give the answer. Raises as `Exchange.send` does."""
        one = self._endpoint
        return await self._exchange.send(
            one.request(request.input), context, result=one.result, limits=one.limits, watched=True
        )

    def as_source(self) -> Opened:
        """The source of this one tool, for a workbench: what it connects to lives as long."""
        return Opened(self.name, provider=HttpSource(self.name, [self], self._exchange), location=self.location)


class HttpSource:
    """A provider of endpoints that share connections. There is no state to lose: a server that is away fails its calls."""

    def __init__(self, name: str, tools: Sequence[Tool], exchange: Exchange) -> None:
        self.name = name
        self._tools = tuple(tools)
        self._exchange = exchange
        self._closed = False

    def __repr__(self) -> str:
        return f"<HttpSource {self.name}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The endpoints' tools."""
        return self._tools

    def resources(self) -> Sequence[ResourceProvider]:
        """None."""
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        """None."""
        return ()

    # Connected

    @property
    def state(self) -> State:
        """Always ready: nothing is connected to before a call."""
        return State("closed" if self._closed else "ready")

    async def start(self) -> None:
        """Keep connections from now on; none is made yet."""
        self._closed = False
        await self._exchange.start()

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        await self._exchange.close()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Nothing ever changes by itself."""
        return lambda: None


def http_tool(
    name: str,
    url: str,
    *,
    method: str = "GET",
    title: str | None = None,
    description: str = "",
    tags: Sequence[str] = (),
    query: Mapping[str, Json] | None = None,
    headers: Mapping[str, str] | None = None,
    body: Json = None,
    parameters: Mapping[str, Json] | None = None,
    input_schema: JsonObject | None = None,
    output_schema: JsonObject | None = None,
    result: ResultKind = "auto",
    timeout: float | None = None,
    idempotent: bool | None = None,
    read_only: bool | None = None,
    destructive: bool | None = None,
    retries: int | None = None,
    allow_redirects: bool = True,
    max_bytes: int | None = None,
    bearer: str | None = None,
    basic: str | None = None,
    guard: AddressGuard = OPEN,
) -> HttpTool:
    """Make a tool of one HTTP endpoint: `Workbench(http_tool("weather", "https://api.example.com/weather/{city}"))`.

    `{placeholders}` in `url`, `query`, `headers` and `body` are arguments; in the path each is one opaque segment.
    References (`${VAR}`) in what is written here are resolved at once.

    Args:
        name: What the tool is called.
        url: Scheme and host written out, then path and query, with placeholders.
        method: The HTTP method; it tells the tool's hints.
        title: A name for people.
        description: What it does, for a model.
        tags: Labels for filters and views.
        query: Parameters behind `?`: fixed, or `"{argument}"`.
        headers: Fixed ones, or with arguments, which may hold no line break.
        body: `json`, `form`, `multipart` (of the arguments that stand nowhere else), or `{"json": ...}` and so on,
            `{"raw": text, "content_type": ...}`.
        parameters: By argument a JSON Schema (`required` False where it may be left out), or a type such as `integer`.
        input_schema: JSON Schema of all arguments, instead.
        output_schema: JSON Schema of the result.
        result: What becomes of the answer: `auto` by its content type, `text`, `json`, `status`, `binary`.
        timeout: Seconds for a call.
        idempotent: Whether a repetition does no harm.
        read_only: Whether nothing is changed by it.
        destructive: Whether it destroys something.
        retries: How often an idempotent request is repeated; 2, if not given.
        allow_redirects: Whether redirects are followed.
        max_bytes: Bytes of an answer that are taken; 1 MiB, if not given.
        bearer: A token for `Authorization`.
        basic: `user:password` for `Authorization`.
        guard: Which addresses may be connected to.

    Raises `TemplateError` for what cannot be an endpoint, `UnresolvedReference` for a variable that is not set.
    """
    options = EndpointOptions(
        name=name,
        url=url,
        method=method,
        title=title,
        description=description,
        tags=tuple(tags),
        query=query or {},
        headers=headers or {},
        body=body,
        parameters=parameters or {},
        input_schema=input_schema,
        output_schema=output_schema,
        result=result,
        timeout=timeout,
        idempotent=idempotent,
        read_only=read_only,
        destructive=destructive,
        retries=retries,
        allow_redirects=allow_redirects,
        max_bytes=max_bytes,
        bearer=bearer,
        basic=basic,
    )
    return HttpTool(endpoint(options), Exchange(guard=guard))
