"""The least host over HTTP: a bare ASGI function with the three routes, under the same uvicorn."""

import asyncio
import json
import socket
import sys
from uuid import uuid4

import uvicorn
from floor import answer

streams: dict[bytes, asyncio.Queue[bytes]] = {}


async def reply(send, body: bytes) -> None:
    head = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": body})


async def app(scope, receive, send) -> None:
    if scope["type"] != "http":
        return
    if scope["path"] == "/session":
        session = uuid4().hex
        streams[session.encode()] = asyncio.Queue()
        await reply(send, json.dumps({"session_id": session}).encode())
        return
    queue = streams[dict(scope["headers"])[b"x-session-id"]]
    if scope["path"] == "/send":
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        queue.put_nowait(await answer(body))
        await reply(send, b'{"ok":true}')
    elif scope["path"] == "/stream":
        head = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        while True:
            chunk = b"data: " + await queue.get() + b"\n\n"
            await send({"type": "http.response.body", "body": chunk, "more_body": True})


listener = socket.create_server(("127.0.0.1", 0))
print(f"floor: listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
