"""HTTP+SSE of 2024-11-05: one stream down, which names the address for what goes up.

Imports the SDK; comes in with `session.py`.
"""

from __future__ import annotations

import asyncio
from urllib.parse import urljoin

from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, RequestId

from anykit.capabilities import CapabilityError, MetadataMap, Unavailable
from anykit.transports import MAX_LINE, HttpClient, SseDecoder
from anykit.transports import public_url as shown

from .channel import cancelled_id
from .credentials import Credentials, refusal
from .frames import encode
from .http import EVENTS, JSON, MESSAGE_SECONDS, HttpChannel, NotSpoken, origin_of
from .servers import McpServer


class EventStream(HttpChannel):
    """HTTP+SSE of 2024-11-05: one stream down, which names the address for what goes up."""

    def __init__(self, server: McpServer, client: HttpClient, credentials: Credentials) -> None:
        super().__init__(server, client, credentials)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open(self) -> None:
        """Open the stream and wait for the address. Raises `CapabilityError`."""
        stream = self._spawn(self._read_stream(), "events")
        await asyncio.wait({self._endpoint, stream}, return_when=asyncio.FIRST_COMPLETED)
        if not self._endpoint.done():
            await stream
            raise Unavailable(self.ended.result() if self.ended.done() else f"{self._server.place} named no endpoint")
        await self._endpoint

    async def send(self, item: SessionMessage) -> None:
        """See `Channel`."""
        if self.ended.done():
            raise Unavailable(self.ended.result())
        message = item.message
        body = encode(self._note(item))
        if isinstance(message, JSONRPCRequest):
            self._spawn(self._ask(message.id, body), f"post-{message.method}")
            return
        if (cancelled := cancelled_id(message)) is not None:
            self._forget(cancelled)
        await self._post(body)

    async def _read_stream(self) -> None:
        decoder = SseDecoder(MAX_LINE)
        try:
            async with self._request("GET", headers={"accept": EVENTS, "cache-control": "no-store"}) as answer:
                if answer.status != 200 or answer.content_type != EVENTS:
                    body = await answer.excerpt()
                    detail: MetadataMap = {"status": answer.status, "content_type": answer.content_type}
                    raise NotSpoken(f"{answer.url} sends no stream of events: {body.describe()}", detail)
                events = self._events(answer, decoder)
                try:
                    async for event in events:
                        if event.event == "endpoint" and not self._endpoint.done():
                            self._endpoint.set_result(self._checked(event.data, answer.location))
                        else:
                            await self._take_event(event)
                finally:
                    await events.aclose()
            self._lost(f"{self._server.place} ended its stream of events")
        except CapabilityError as error:
            if not self._endpoint.done():
                self._endpoint.set_exception(error)
            self._lost(error.message)

    def _checked(self, data: bytes, base: str) -> str:
        """The address for messages: of the stream's own origin, or a peer would choose who gets our credentials."""
        address = urljoin(base, data.decode("utf-8", "replace").strip())
        if origin_of(address) != origin_of(base):
            raise Unavailable(f"{self._server.place} names an endpoint elsewhere ({shown(address)}), which is not used")
        return address

    async def _ask(self, id: RequestId, body: bytes) -> None:
        try:
            await self._post(body)
        except CapabilityError as error:
            self._failed(id, error)
            if isinstance(error, Unavailable) and not error.sent:
                self.on_unreachable(error.message)

    async def _post(self, body: bytes) -> None:
        endpoint = await self._endpoint
        credentials = await self._credentials.headers()
        headers = {**credentials, "content-type": JSON, "accept": f"{JSON}, {EVENTS}"}
        answer = await self._client.request(
            "POST", endpoint, headers=headers, body=body, timeout=MESSAGE_SECONDS, max_redirects=0
        )
        if answer.status in (401, 403):
            raise refusal(self._server, answer.status, answer.headers)
        if answer.status == 404:
            self._lost(f"{answer.url} has ended the session")
            raise Unavailable(f"{answer.url} has ended the session")
        if answer.status >= 300:
            raise answer.unexpected("MCP", sent=answer.status >= 500)
