"""Headers that a command prints (`headersHelper`), asked for before each connection. Only what the operator trusts has one."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any, Final, cast

from anykit.capabilities import JsonObject, Unavailable
from anykit.transports import Command, Oversized, received, spawn

SECONDS: Final = 10.0
"""What it may take, as in Claude Code."""
MAX_OUTPUT: Final = 64 * 1024
"""Bytes that it may print."""
MAX_HEADERS: Final = 100


async def helped(name: str, command: str, url: str) -> dict[str, str]:
    """The headers that a shell's command line prints as a JSON object of texts. Raises `Unavailable`, with no value in it."""
    shell = ("cmd", "/c", command) if sys.platform == "win32" else ("/bin/sh", "-c", command)
    env = {"CLAUDE_CODE_MCP_SERVER_NAME": name, "CLAUDE_CODE_MCP_SERVER_URL": url}
    try:
        async with asyncio.timeout(SECONDS):
            text, code = await _output(Command(shell, env=env))
    except TimeoutError:
        raise Unavailable(f"its headersHelper did not end within {SECONDS:g} s") from None
    if code:
        raise Unavailable(f"its headersHelper ended with exit code {code}")
    return _headers(text)


async def _output(command: Command) -> tuple[bytes, int | None]:
    process = await spawn(command, max_line=MAX_OUTPUT)
    pieces: list[bytes] = []
    try:
        async for line in received(process):
            if isinstance(line, Oversized) or sum(map(len, pieces)) + len(line) > MAX_OUTPUT:
                raise Unavailable(f"its headersHelper printed more than {MAX_OUTPUT} bytes")
            pieces.append(line)
        return b"\n".join(pieces), process.returncode
    finally:
        await process.close()


def _headers(text: bytes) -> dict[str, str]:
    try:
        said: Any = json.loads(text)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, dict):
        raise Unavailable("its headersHelper printed no JSON object")
    headers: dict[str, str] = {}
    for name, value in list(cast(JsonObject, said).items())[:MAX_HEADERS]:
        fits = name and name.isascii() and not any(c in "\r\n\0: " for c in name)
        if not fits or not isinstance(value, str) or any(c in "\r\n\0" for c in value):
            raise Unavailable(
                "its headersHelper printed a header that is none: names and values are single lines of text"
            )
        headers[name] = value
    return headers
