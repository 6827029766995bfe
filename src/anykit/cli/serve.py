"""`anykit serve`: the sources, offered to agents over HTTP, or over stdin and stdout."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from anykit.app import AppConfig, ConfigError, Workbench
from anykit.app.serving import a2e_host, serve_lines, server, tokens_of
from anykit.runtime import Snapshot, state_of
from anykit.servers import A2EHost, Address, TokenRequired, Tokens, new_event_loop
from anykit.stores import UnresolvedReference, resolve
from anykit.transports import ProtocolStreams, take_stdio

from .errors import CommandError, Exit, usage
from .follower import Follower
from .invocation import Invocation
from .local import configuration, data_folder, entered, importable, known_view, problems_of, sources_of, token_of
from .place import here
from .terminal import Terminal


def run(
    invocation: Invocation,
    sources: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE",
            help="Python files and modules, URLs of A2E hosts, anykit:filesystem and the like, instead of those of the"
            " file; with none at all the three built-in toolkits.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="Where to listen (127.0.0.1).", show_default=False)
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="The port (7777); 0 picks one.", show_default=False),
    ] = None,
    stdio: Annotated[
        Literal["a2e", "mcp"] | None,
        typer.Option("--stdio", help="Speak this on stdin and stdout instead; no port is opened.", show_default=False),
    ] = None,
    tls_cert: Annotated[
        str | None, typer.Option("--tls-cert", metavar="FILE", help="A certificate chain, PEM.", show_default=False)
    ] = None,
    tls_key: Annotated[
        str | None, typer.Option("--tls-key", metavar="FILE", help="Its key, PEM.", show_default=False)
    ] = None,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            "--trusted-proxy",
            metavar="ADDRESS",
            help="A proxy whose X-Forwarded-Proto is believed; may be repeated.",
            show_default=False,
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="NAME",
            help="One more name that it answers to; may be repeated.",
            show_default=False,
        ),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin", metavar="ORIGIN", help="Pages that may call it; may be repeated.", show_default=False
        ),
    ] = None,
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            metavar="NAME",
            help="Offer this view of the configuration instead of everything; a token's own view stays its own.",
            show_default=False,
        ),
    ] = None,
    reload: Annotated[
        bool, typer.Option("--reload", help="Follow edits of the Python sources, and of what they import beside them.")
    ] = False,
) -> int:
    """Offer the sources to agents over A2E, A2A and MCP.

    On 127.0.0.1 it is open to whoever is on this machine, unless there is a --token; elsewhere a token is required.
    Changes of the file are applied while it serves, and again at a SIGHUP; a bad one is told of and changes nothing.
    SIGTERM and Ctrl-C end it in good order.
    """
    # First of all: what a source prints while it is imported must not reach the protocol.
    streams = take_stdio() if stdio else None
    try:
        config = configuration(invocation, sources or ())
        how = listening(invocation, config, host=host, port=port, tls_cert=tls_cert, tls_key=tls_key)
        how = how.with_more(trusted_proxy or [], allow_host or [], allow_origin or [])
        with importable(config), asyncio.Runner(loop_factory=new_event_loop) as runner:
            return runner.run(
                _serve(invocation, config, tuple(sources or ()), how, streams, stdio or "a2e", view, reload=reload)
            )
    finally:
        if streams is not None:
            streams.close()


@dataclass(frozen=True, slots=True)
class Listening:
    """How to listen: the line over the file over the defaults."""

    host: str
    port: int
    token: str
    tls_cert: str | None
    tls_key: str | None
    trusted_proxies: tuple[str, ...]
    allow_hosts: tuple[str, ...]
    allow_origins: tuple[str, ...]

    def with_more(self, proxies: list[str], hosts: list[str], origins: list[str]) -> Listening:
        """The same, with what the line adds."""
        return Listening(
            self.host,
            self.port,
            self.token,
            self.tls_cert,
            self.tls_key,
            (*self.trusted_proxies, *proxies),
            (*self.allow_hosts, *hosts),
            (*self.allow_origins, *origins),
        )


def listening(
    invocation: Invocation,
    config: AppConfig,
    *,
    host: str | None = None,
    port: int | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
) -> Listening:
    """Put together how to listen. Raises `CommandError` for a token that refers to nothing."""
    said = config.serve
    token = token_of(invocation)
    if token is None and said.token is not None:
        try:
            token = resolve(said.token.get_secret_value(), None, config.folder, where="serve.token")
        except UnresolvedReference as error:
            raise usage(str(error), code="bad_config") from None

    def file(on_line: str | None, in_file: str | None) -> str | None:
        if on_line:
            return str(here(on_line))
        return str(config.folder / Path(in_file).expanduser()) if in_file else None

    return Listening(
        host=host or said.host,
        port=said.port if port is None else port,
        token=token or "",
        tls_cert=file(tls_cert, said.tls_cert),
        tls_key=file(tls_key, said.tls_key),
        trusted_proxies=tuple(said.trusted_proxies),
        allow_hosts=tuple(said.allow_hosts),
        allow_origins=tuple(said.allow_origins),
    )


async def _serve(
    invocation: Invocation,
    config: AppConfig,
    on_line: tuple[str, ...],
    how: Listening,
    streams: ProtocolStreams | None,
    protocol: Literal["a2e", "mcp"],
    view: str | None = None,
    *,
    reload: bool = False,
) -> int:
    terminal = invocation.terminal
    try:
        tokens = tokens_of(config, how.token)
    except ConfigError as error:
        raise usage(str(error), code="bad_config") from None
    plain, named = sources_of(invocation, config, on_line)
    # Nothing is waited for: who is there is served while the others still connect.
    bench = Workbench(*named, config=plain, data_dir=data_folder(invocation, config), settle=0.0)
    bench.served = known_view(bench, view)
    watch = SourceWatch(terminal)
    stop_watching = bench.catalog.subscribe(watch)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(stop_watching)
        await entered(stack, bench)
        for problem in problems_of(bench, replaced=bool(on_line or invocation.flags.sources)).values():
            terminal.warn(problem)
        host = a2e_host(bench, token=tokens if streams is None else "")
        for problem in host.problems:
            terminal.warn(str(problem))
        if not on_line and not invocation.flags.sources and not (config.sources or config.agents):
            terminal.note(f"no source is named, so this offers {', '.join(bench.catalog.snapshot.toolkits)}")
        if config.path is not None or reload:
            follower = Follower(invocation, bench, config, on_line, python=reload)
            await stack.enter_async_context(_followed(follower))
        if streams is not None:
            return await _over_stdio(bench, host, streams, protocol)
        return await _over_http(terminal, bench, host, how, tokens)


async def _over_stdio(
    bench: Workbench, host: A2EHost, streams: ProtocolStreams, protocol: Literal["a2e", "mcp"]
) -> int:
    stop = asyncio.Event()
    with _signals(stop) as came:
        await serve_lines(bench, streams.open(max_line=host.limits.body), protocol, a2e=host, stop=stop)
    return Exit.INTERRUPTED if signal.SIGINT in came else Exit.OK


async def _over_http(terminal: Terminal, bench: Workbench, host: A2EHost, how: Listening, tokens: Tokens) -> int:
    def listens(address: Address) -> None:
        terminal.announce(f"anykit: listening on {address.url}")
        for protocol, url in listener.urls:
            terminal.announce(f"  {protocol:<5} {url}")

    try:
        listener = server(
            bench,
            a2e=host,
            host=how.host,
            port=how.port,
            token=tokens,
            tls_cert=how.tls_cert,
            tls_key=how.tls_key,
            allow_hosts=how.allow_hosts,
            allow_origins=how.allow_origins,
            trusted_proxies=how.trusted_proxies,
            listening=listens,
        )
    except TokenRequired as error:
        raise usage(
            str(error), ("give one", "export ANYKIT_TOKEN=...   or   --token TOKEN"), code="token_required"
        ) from None
    except ValueError as error:
        raise usage(str(error)) from None
    try:
        await listener.serve()
    except OSError as error:
        fixes = [("pick another", "--port 0, or --port N")] if "listen" in str(error) else []
        text = error.strerror or str(error)
        raise CommandError(text, code="cannot_listen", exit=Exit.UNREACHABLE, fixes=fixes) from None
    return Exit.INTERRUPTED if listener.signalled == signal.SIGINT else Exit.OK


class SourceWatch:
    """Tells how sources fare, each time that changes."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told: dict[str, tuple[str, str]] = {}

    def __call__(self, snapshot: Snapshot) -> None:
        """Look at every source again."""
        for name, source in snapshot.sources.items():
            state = state_of(source)
            now = (state.status, state.reason)
            before = self._told.get(name)
            if now == before:
                continue
            self._told[name] = now
            if state.status == "failed":
                self._terminal.warn(f"source {name} is not available: {state.reason}")
            elif state.status == "ready" and before is not None and before[0] != "ready":
                self._terminal.note(f"source {name} is ready")


@contextlib.asynccontextmanager
async def _followed(follower: Follower) -> AsyncGenerator[None]:
    """Let the follower run, and SIGHUP poke it. Where the terminal went with that signal, the host goes too."""
    loop = asyncio.get_running_loop()
    following = loop.create_task(follower.run(), name="follow the file")
    at_terminal = sys.stdin is not None and sys.stdin.isatty()

    def hung_up() -> None:
        if at_terminal and not _is_there():
            os.kill(os.getpid(), signal.SIGTERM)
        else:
            follower.poke()

    taken = hasattr(signal, "SIGHUP") and threading.current_thread() is threading.main_thread()
    if taken:
        loop.add_signal_handler(signal.SIGHUP, hung_up)
    try:
        yield
    finally:
        if taken:
            loop.remove_signal_handler(signal.SIGHUP)
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _is_there() -> bool:
    """Whether the terminal of this process still answers."""
    try:
        os.tcgetpgrp(0)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def _signals(stop: asyncio.Event) -> Generator[list[signal.Signals]]:
    """Let SIGINT and SIGTERM set `stop`; gives what came."""
    loop = asyncio.get_running_loop()
    came: list[signal.Signals] = []

    def take(number: signal.Signals) -> None:
        came.append(number)
        stop.set()

    for one in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(one, take, one)
    try:
        yield came
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(one)
