"""A workbench on a port, or on standard input and output: the faces of a host."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol

from pydantic import SecretStr

from anykit.runtime import Session
from anykit.servers import A2EHost, Address, Mount, Server, Tokens, Ways, a2e_mount, serve_connection
from anykit.servers.a2a import Limits as A2ALimits
from anykit.servers.a2a import a2a_mounts
from anykit.servers.a2e import Limits
from anykit.servers.a2e.mcp import AgentModels
from anykit.servers.mcp import Limits as McpLimits
from anykit.servers.mcp import mcp_mount, serve_mcp_lines
from anykit.stores import RecordStore, SecretError, SecretStore, UnresolvedReference, resolve
from anykit.transports import AddressGuard, LineTransport

from .config import AppConfig, ConfigError
from .registering import AllowedServers

log = logging.getLogger("anykit.serving")


class Served(Protocol):
    """What is served."""

    config: AppConfig
    models: AgentModels | None
    records: RecordStore
    secrets: SecretStore

    def session(self, *, principal: str = "local", face: str = "python", id: str | None = None) -> Session:
        """One caller's verbs."""
        ...

    async def add(self, source: Any) -> Any:
        """Add a source at run time."""
        ...

    async def remove(self, name: str) -> None:
        """Take one out."""
        ...


def a2e_host(bench: Served, *, token: str | Tokens = "") -> A2EHost:
    """The A2E face of a workbench, with the plugins and limits of its configuration."""
    limits = bench.config.limits
    return A2EHost(
        bench,
        token=token,
        plugins=bench.config.a2e.plugins,
        lenient_caps=bench.config.a2e.lenient_caps,
        models=bench.models,
        registrar=AllowedServers(bench, bench.config.a2e) if bench.config.a2e.allow_servers else None,
        limits=Limits(
            max_parallel=limits.max_parallel,
            queue=limits.queue,
            body=limits.body,
            rate=limits.rate,
            sessions=limits.sessions,
            idle=limits.idle,
        ),
    )


def tokens_of(config: AppConfig, token: str | None = None) -> Tokens:
    """The tokens that callers may show: the operator's (that of the configuration, if not given), and the named ones.

    Raises `ConfigError` for one that refers to nothing, is empty, or is another's too.
    """
    said = config.serve
    where = f"{config.path or 'config'}: serve.tokens"

    def resolved(secret: SecretStr, field: str) -> str:
        try:
            return resolve(secret.get_secret_value(), None, config.folder, where=field)
        except UnresolvedReference as error:
            raise ConfigError(f"{config.path or 'config'}: {error}") from None

    if token is None:
        token = resolved(said.token, "serve.token") if said.token is not None else ""
    named: dict[str, str] = {}
    for index, one in enumerate(said.tokens):
        text = resolved(one.token, f"serve.tokens.{index}.token")
        if not text:
            raise ConfigError(f"{where}.{index}: the token of {one.name} is empty")
        if text == token or text in named.values():
            raise ConfigError(f"{where}.{index}: the token of {one.name} is another's too; each needs its own")
        named[one.name] = text
    return Tokens(token, named=named)


def mounts(
    bench: Served, host: A2EHost, *, token: str | Tokens = "", trusted_proxies: Sequence[str] = ()
) -> list[Mount]:
    """Every face that has a place on the port; `host` is the A2E one."""
    ways = Ways(trusted_proxies=(*bench.config.serve.trusted_proxies, *trusted_proxies))
    limits = bench.config.limits
    guard = AddressGuard(private_hosts=tuple(bench.config.bounds.private_hosts))
    return [
        a2e_mount(host, ways=ways),
        *a2a_mounts(
            bench,
            records=bench.records,
            secrets=bench.secrets,
            secured=bool(token),
            guard=guard,
            ways=ways,
            limits=A2ALimits(max_parallel=limits.max_parallel, queue=limits.queue, body=limits.body),
        ),
        mcp_mount(bench, token=token, ways=ways, limits=_mcp_limits(bench), state_keys=_state_keys(bench)),
    ]


def _state_keys(bench: Served) -> Callable[[], Sequence[bytes]]:
    """What seals the state that MCP clients carry: a question is open also after a restart, as its record is."""

    def keys() -> Sequence[bytes]:
        try:
            return bench.secrets.derived_keys("mcp request state")
        except SecretError as error:
            log.warning("questions over MCP end with this process: %s", error)
            return ()

    return keys


def _mcp_limits(bench: Served) -> McpLimits:
    limits = bench.config.limits
    return McpLimits(
        max_parallel=limits.max_parallel,
        queue=limits.queue,
        body=limits.body,
        rate=limits.rate,
        sessions=limits.sessions,
        idle=limits.idle,
    )


def server(
    bench: Served,
    *,
    a2e: A2EHost | None = None,
    host: str | None = None,
    port: int | None = None,
    token: str | Tokens | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    trusted_proxies: Sequence[str] = (),
    listening: Callable[[Address], object] | None = None,
) -> Server:
    """The server of a workbench; what is not given is as its configuration says.

    A `token` that is a text stands for `local`, beside those of the configuration; `Tokens` are all that there are.

    Raises `TokenRequired` beyond loopback without a token, `ValueError` for half a TLS pair, `ConfigError` for a token of
    the configuration that cannot be used.
    """
    said = bench.config.serve
    if not isinstance(token, Tokens):
        token = tokens_of(bench.config, token)
    return Server(
        mounts(bench, a2e or a2e_host(bench, token=token), token=token, trusted_proxies=trusted_proxies),
        host=said.host if host is None else host,
        port=said.port if port is None else port,
        token=token,
        tls_cert=tls_cert or said.tls_cert,
        tls_key=tls_key or said.tls_key,
        allow_hosts=[*said.allow_hosts, *allow_hosts],
        allow_origins=[*said.allow_origins, *allow_origins],
        listening=listening,
    )


async def serve_lines(
    bench: Served,
    transport: LineTransport,
    protocol: Literal["a2e", "mcp"],
    *,
    a2e: A2EHost | None = None,
    stop: asyncio.Event | None = None,
) -> str:
    """Serve one peer over lines until it is gone, asks for the end, or `stop` is set; give why."""
    if protocol == "mcp":
        return await serve_mcp_lines(
            bench, transport, limits=_mcp_limits(bench), stop=stop, state_keys=_state_keys(bench)
        )
    return await serve_connection(a2e or a2e_host(bench), transport, stop=stop)
