"""The SDK's session, with what a workbench needs otherwise: who asks, which era, errors in the layer's words.

Imports the SDK (a second of CPU): whoever wants this module imports it in a thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from anykit.capabilities import CapabilityError, ExecutionFailed, InvalidInput, JsonObject, Unavailable
from anykit.capabilities import outcomes as codes
from anykit.sources.hostile import clean_text

from .calls import Call, InFlight
from .channel import Channel
from .credentials import Refused
from .http import NotSpoken
from .servers import Era

R = TypeVar("R")


class _NotThePeers(logging.Filter):
    """Keeps out of the log what the SDK says of a peer's messages: how much that is would be for the peer to choose."""

    def filter(self, record: logging.LogRecord) -> bool:
        return "mcp" not in record.pathname


logging.getLogger("client").addFilter(_NotThePeers())
for _name in ("mcp.shared.jsonrpc_dispatcher", "mcp.client.subscriptions"):
    logging.getLogger(_name).addFilter(_NotThePeers())

PROBE_SECONDS = 2.0
"""What a server has to say whether it knows MCP 2026-07-28, before it is also asked the old way."""
MAX_DATA = 2_000
"""Characters of what a server says beside an error's text."""


class Lost(Unavailable):
    """The connection ended while the era was found out: servers of the old era may leave at a word they do not know."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason, sent=True, detail={"lost": True})


class Session(ClientSession):
    """A session that does not judge results by their output schema: the executor does, with a validator of ours."""

    async def validate_tool_result(self, name: str, result: types.CallToolResult) -> None:
        """Nothing. The SDK would list all tools anew for one that it does not know."""


class Asking:
    """Requests over one session, each with whom it is for, and its errors as the layer's."""

    def __init__(self, name: str, session: Session, channel: Channel, flying: InFlight) -> None:
        self.name = name
        self.session = session
        self._channel = channel
        self._flying = flying

    async def ask(self, call: Call, request: Callable[[], Awaitable[R]]) -> R:
        """Make a request. Raises `CapabilityError`; `MCPError` for the server's own errors (`explained` reads it)."""
        with self._flying.flying(call), self.translated(call):
            return await request()

    @contextmanager
    def translated(self, call: Call) -> Generator[None, None, None]:
        """What the SDK raises, as the layer's errors where it is not the server that speaks."""
        try:
            yield
        except MCPError as error:
            if call.failure is not None:
                raise call.failure from None
            if error.code == CONNECTION_CLOSED and self._channel.ended.done():
                raise Unavailable(f"{self.name}: {self._channel.ended.result()}", sent=True) from None
            raise
        except ValidationError as error:
            fault = error.errors()[0]
            where = "/".join(str(step) for step in fault["loc"])[:200]
            raise ExecutionFailed(
                f"{self.name} answered with what is no MCP result ({where}: {fault['msg'][:200]})",
                code=codes.INVALID_OUTPUT,
            ) from None
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Unavailable(f"{self.name}: the connection was lost") from None


async def negotiate(session: Session, channel: Channel, era: Era, *, probe_seconds: float = PROBE_SECONDS) -> None:
    """Find out which era the server speaks, and open the session in it. The caller has the deadline.

    `auto` asks the new way, and also the old way where that is refused or takes `probe_seconds`: a server of the old era
    may say nothing at all to what it does not know. Raises `CapabilityError`, `MCPError`; `Lost` where asking ended it.
    """
    if era == "legacy":
        await _own(session.initialize)
    elif era == "modern":
        await _own(session.discover)
    else:
        await _both(session, channel, probe_seconds)


async def _both(session: Session, channel: Channel, probe_seconds: float) -> None:
    probe = asyncio.create_task(_discovered(session), name="anykit-mcp-discover")
    tasks: list[asyncio.Task[Any]] = [probe]
    try:
        await asyncio.wait({probe, channel.ended}, timeout=probe_seconds, return_when=asyncio.FIRST_COMPLETED)
        if probe.done() and (error := probe.exception()) is not None and not _is_worth_a_handshake(error):
            raise error
        if channel.ended.done():
            raise Lost(channel.ended.result())
        if _adopted(session, probe):
            return
        handshake = asyncio.create_task(_own(session.initialize), name="anykit-mcp-initialize")
        tasks.append(handshake)
        waiting = {task for task in tasks if not task.done()}
        while waiting:
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            if _adopted(session, probe) or (handshake.done() and handshake.exception() is None):
                return
        if channel.ended.done():
            raise Lost(channel.ended.result())
        await handshake
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _adopted(session: Session, probe: asyncio.Task[types.DiscoverResult | None]) -> bool:
    """Whether the probe found a server of the new era; the session is one of it then."""
    if not probe.done() or probe.exception() is not None or (found := probe.result()) is None:
        return False
    session.adopt(found)
    return True


async def _discovered(session: Session) -> types.DiscoverResult | None:
    """What the server says to `server/discover`; None where it says that it is of the old era."""
    try:
        raw = await _own(lambda: session.send_discover(LATEST_MODERN_VERSION))
    except MCPError as error:
        mutual = [one for one in MODERN_PROTOCOL_VERSIONS if one in _supported(error)]
        if not mutual:
            raise
        raw = await _own(lambda: session.send_discover(mutual[-1]))
    try:
        found = types.DiscoverResult.model_validate(raw)
    except ValidationError:
        return None
    return found if any(one in found.supported_versions for one in MODERN_PROTOCOL_VERSIONS) else None


def _supported(error: MCPError) -> list[str]:
    """The versions that a server which does not know ours says that it knows."""
    if error.code != UNSUPPORTED_PROTOCOL_VERSION:
        return []
    try:
        return types.UnsupportedProtocolVersionErrorData.model_validate(error.data).supported
    except ValidationError:
        return []


def _is_worth_a_handshake(error: BaseException) -> bool:
    """Whether the probe's failure may mean that the server is of the old era. An outage or a 401 is no verdict on that."""
    if isinstance(error, MCPError):
        known = _supported(error)
        return not known or any(version not in MODERN_PROTOCOL_VERSIONS for version in known)
    if isinstance(error, Refused):
        return False
    if isinstance(error, NotSpoken | ExecutionFailed):
        return True
    return isinstance(error, Unavailable) and "status" in error.detail


async def _own(request: Callable[[], Awaitable[R]]) -> R:
    """A request on our own account, its transport's failure raised."""
    call = Call()
    flying = InFlight()
    with flying.flying(call):
        try:
            return await request()
        except (MCPError, anyio.BrokenResourceError):
            if call.failure is not None:
                raise call.failure from None
            raise


def explained(name: str, error: MCPError) -> CapabilityError:
    """A server's error as one of the layer's."""
    text = clean_text(error.message, MAX_DATA).strip() or f"error {error.code}"
    message = f"{name}: {text}"
    detail: JsonObject = {"code": error.code}
    if error.data is not None:
        detail["data"] = _bounded(error.data)
    match error.code:
        case types.INVALID_PARAMS | -32002:  # the second: no such resource, until 2025-11-25
            return InvalidInput(message, detail=detail)
        case types.METHOD_NOT_FOUND:
            return ExecutionFailed(message, code="unsupported", detail=detail)
        case types.MISSING_REQUIRED_CLIENT_CAPABILITY:
            return ExecutionFailed(
                f"{message} (it wants to ask for something that nobody here answers)",
                code="missing_capability",
                detail=detail,
            )
        case _:
            return ExecutionFailed(message, code="mcp_error", detail=detail)


def _bounded(data: Any) -> Any:
    text = data if isinstance(data, str) else None
    if text is not None:
        return clean_text(text, MAX_DATA)
    return data if len(repr(data)) <= MAX_DATA else clean_text(repr(data), MAX_DATA)
