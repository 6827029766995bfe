"""Where A2A stands on a port: the card for everyone, `/a2a` for whoever has the token.

The SDK takes most of a second to import. It is imported in a thread once the server listens; who comes earlier waits.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, Protocol

from anykit.runtime import Session
from anykit.servers.http import Mount
from anykit.servers.identity import Receive, Scope, Send, Ways
from anykit.stores import MemoryRecords, RecordStore, SecretStore
from anykit.tools import Tool
from anykit.transports import PUBLIC_ONLY, AddressGuard

from .card import CARD_PATHS, About, CardApp
from .limits import Limits
from .normaliser import Normaliser, answer_json

if TYPE_CHECKING:
    from .application import Application  # imports the SDK

log = logging.getLogger("anykit.a2a")

PREFIX: Final = "/a2a"
READY_TIMEOUT: Final = 30.0
"""Seconds that an early request waits for the SDK."""
END_TIMEOUT: Final = 5.0


class Bench(Protocol):
    """What is served."""

    def session(self, *, principal: str = "local", face: str = "python", id: str | None = None) -> Session:
        """One caller's verbs."""
        ...


def a2a_mounts(
    bench: Bench,
    *,
    records: RecordStore | None = None,
    secrets: SecretStore | None = None,
    about: About | None = None,
    secured: bool = False,
    principal: str = "local",
    url: str = "",
    guard: AddressGuard = PUBLIC_ONLY,
    ways: Ways | None = None,
    limits: Limits | None = None,
) -> list[Mount]:
    """The A2A face of a workbench as mounts.

    Args:
        bench: Gives sessions; what they can call is what is exposed.
        records: Where tasks and webhooks are kept; by default in memory.
        secrets: Where the webhooks' tokens are kept; by default in memory.
        about: Who the agent says that it is.
        secured: Whether the server asks for a bearer token, so that the card says so.
        principal: Whom the callers stand for; tasks belong to it.
        url: The URL under which the world knows the server; by default the one that a request was sent to.
        guard: Which addresses webhooks may have.
        ways: Whose `X-Forwarded-Proto` is believed.
        limits: How much is taken on.
    """
    caller = bench.session(principal=principal, face="a2a")

    def exposed() -> list[Tool]:
        return [tool for tool in caller.tools() if not tool.deferred]

    chosen = limits or Limits()
    late = LateApp(
        bench,
        records=records or MemoryRecords(),
        secrets=secrets,
        principal=principal,
        guard=guard,
        limits=chosen,
    )
    card = CardApp(exposed, about=about or About(), secured=secured, url=url, ways=ways)
    return [
        Mount(card, paths=CARD_PATHS, open=True, shown=CARD_PATHS[:1], protocol="A2A"),
        Mount(
            Normaliser(late, prefix=PREFIX, body=chosen.body),
            prefixes=(PREFIX,),
            begin=late.begin,
            end=late.end,
            shown=(PREFIX,),
            protocol="A2A",
        ),
    ]


class LateApp:
    """The SDK's application, once there is one (ASGI).

    `load` gives the module that builds it; `ready_timeout` is how many seconds a request waits for that.
    """

    def __init__(
        self,
        bench: Bench,
        *,
        records: RecordStore,
        secrets: SecretStore | None,
        principal: str,
        guard: AddressGuard,
        limits: Limits,
        load: Callable[[str], Awaitable[Builder]] | None = None,
        ready_timeout: float = READY_TIMEOUT,
    ) -> None:
        self._bench = bench
        self._records = records
        self._secrets = secrets
        self._principal = principal
        self._guard = guard
        self._limits = limits
        self._load = load or _imported
        self._timeout = ready_timeout
        self._built: asyncio.Future[Application] | None = None
        self._ended = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ended:
            await answer_json(send, 503, {"detail": "The host is shutting down"})
            return
        try:
            async with asyncio.timeout(self._timeout):
                application = await asyncio.shield(self._ready())
        except TimeoutError:
            await answer_json(send, 503, {"detail": "The A2A face is still starting"}, (b"retry-after", b"5"))
            return
        except asyncio.CancelledError:
            if not self._ended:
                raise
            await answer_json(send, 503, {"detail": "The host is shutting down"})
            return
        except Exception:
            await answer_json(send, 503, {"detail": "The A2A face could not be started; the host's log says why"})
            return
        await application.app(scope, receive, send)

    async def begin(self) -> None:
        """Import the SDK."""
        try:
            await asyncio.shield(self._ready())
        except Exception:
            log.exception("the A2A face cannot be served")

    async def end(self) -> None:
        """End streams and tasks."""
        self._ended = True
        built, self._built = self._built, None
        if built is None or not built.done():
            if built is not None:
                built.cancel()
            return
        if not built.cancelled() and built.exception() is None:
            async with asyncio.timeout(END_TIMEOUT):
                await built.result().close()

    def _ready(self) -> asyncio.Future[Application]:
        if self._built is None:
            self._built = asyncio.ensure_future(self._build())
        return self._built

    async def _build(self) -> Application:
        module = await self._load("anykit.servers.a2a.application")
        return module.build(
            self._bench,
            prefix=PREFIX,
            records=self._records,
            secrets=self._secrets,
            principal=self._principal,
            guard=self._guard,
            limits=self._limits,
        )


class Builder(Protocol):
    """The module that puts the SDK together."""

    def build(
        self,
        bench: Bench,
        *,
        prefix: str,
        records: RecordStore,
        secrets: SecretStore | None,
        principal: str,
        guard: AddressGuard,
        limits: Limits,
    ) -> Application: ...


async def _imported(name: str) -> Builder:
    """A module, imported in a thread that nobody has to wait for at the end. Raises `ImportError`."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Builder] = loop.create_future()

    def tell(module: Builder | None, error: Exception | None) -> None:
        if done.done():
            return
        if module is not None:
            done.set_result(module)
        else:
            done.set_exception(error or ImportError(name))

    def work() -> None:
        module: Builder | None = None
        error: Exception | None = None
        try:
            module = importlib.import_module(name)  # type: ignore[assignment]
        except Exception as broken:
            error = broken if isinstance(broken, ImportError) else ImportError(f"{name}: {broken}")
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, module, error)

    threading.Thread(target=work, name="import a2a", daemon=True).start()
    return await done
