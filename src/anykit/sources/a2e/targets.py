"""Where an A2E host is: a URL, a command, or a transport that is there already; and how to open a transport to it."""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias, cast, runtime_checkable
from urllib.parse import urlsplit

from anykit.capabilities import Unavailable
from anykit.transports import (
    MAX_LINE,
    OPEN,
    Command,
    HttpClient,
    HttpSessionTransport,
    LineTransport,
    spawn,
)

Opener: TypeAlias = Callable[[], Awaitable[LineTransport]]
"""Opens a transport; is called again for each new connection."""


@runtime_checkable
class InProcess(Protocol):
    """A host in this process, an `A2EHost`: it opens transports to itself."""

    def connect(self) -> Awaitable[LineTransport]:
        """One to a new session."""
        ...


Target: TypeAlias = (
    str
    | os.PathLike[str]
    | Sequence[str]
    | Command
    | LineTransport
    | InProcess
    | Callable[[], LineTransport]
    | Callable[[], Awaitable[LineTransport]]
)
"""A URL, a command line, a program, an argv, a command with its environment, a transport, a host, or what makes one."""

_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://")


def opener(
    target: Target,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    headers: Mapping[str, str] | None = None,
    max_line: int = MAX_LINE,
) -> tuple[str, Opener]:
    """A name for people, with no secret in it, and what opens a transport to `target`.

    A command line (a string without a URL scheme) is split like a POSIX shell would, and nothing more of a shell; a list is
    taken as it is. Raises `ValueError` for what is no target.
    """
    if isinstance(target, str):
        found = _SCHEME.match(target.strip())
        if found is not None:
            return _url(target.strip(), found["scheme"].lower(), headers, max_line)
        try:
            target = shlex.split(target)
        except ValueError as error:
            raise ValueError(f"the command line cannot be split: {error}") from None
    if isinstance(target, os.PathLike):
        target = [os.fspath(cast("os.PathLike[str]", target))]
    if isinstance(target, list | tuple):
        target = Command(tuple(cast("Sequence[str]", target)), env=dict(env or {}), cwd=cwd)
    if isinstance(target, Command):
        command = target

        async def start() -> LineTransport:
            return await spawn(command, max_line=max_line)

        return os.path.basename(command.program) or command.program, start
    if isinstance(target, LineTransport):
        return "memory", _once(target)
    if isinstance(target, InProcess):
        return "memory", _made_by(target.connect)
    if callable(target):
        return getattr(target, "__name__", None) or "transport", _made_by(target)
    raise ValueError(
        f"an A2E host is a URL, a command, a list of strings, a transport or an A2EHost, not {type(target).__name__}"
    )


def _url(url: str, scheme: str, headers: Mapping[str, str] | None, max_line: int) -> tuple[str, Opener]:
    if scheme not in ("http", "https"):
        raise ValueError(f"an A2E host is reached over http or https, not {scheme!r}")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"the URL of the A2E host is not valid: {error}") from None
    if not host:
        raise ValueError("the URL of the A2E host has no host")
    shown = f"{scheme}://{f'[{host}]' if ':' in host else host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"

    async def connect() -> LineTransport:
        # What the operator wrote needs no bounds. One HTTP session a connection: no credential meets another's.
        client = HttpClient(guard=OPEN, headers=headers)
        try:
            return _Http(await HttpSessionTransport.open(url, client=client, max_line=max_line), client)
        except BaseException:
            await client.close()
            raise

    return shown, connect


class _Http:
    """A session over HTTP with the HTTP client that it was opened with."""

    def __init__(self, session: HttpSessionTransport, client: HttpClient) -> None:
        self._session = session
        self._client = client
        self.send = session.send
        self.receive = session.receive

    @property
    def secure(self) -> bool:
        return self._session.secure

    async def close(self) -> None:
        try:
            await self._session.close()
        finally:
            await self._client.close()


def _once(transport: LineTransport) -> Opener:
    used = False

    async def give() -> LineTransport:
        nonlocal used
        if used:
            raise Unavailable("the transport that was given is over; give a function that makes one to connect again")
        used = True
        return transport

    return give


def _made_by(make: Callable[[], LineTransport] | Callable[[], Awaitable[LineTransport]]) -> Opener:
    async def give() -> LineTransport:
        made = make()
        if inspect.isawaitable(made):
            return await made
        return made

    return give
