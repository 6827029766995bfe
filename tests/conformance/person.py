"""What the conformance suite tests as a client: our MCP source in a workbench, and a person who agrees to everything.

Connects to a URL, logs in where that is asked, lists everything, reads and fills in what is listed, and calls each tool once, or
as the suite wants it called. The suite says what it wants in `MCP_CONFORMANCE_SCENARIO`, `..._CONTEXT` and
`..._PROTOCOL_VERSION`.

It waits on a socket (its argument) for `client.py`, which the suite starts for every scenario, all at once: each gets a fork
of this process, which has imported everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import traceback
from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from anykit import Workbench
from anykit.capabilities import CapabilityContext, CapabilityError, Failed, JsonObject, Suspended, Suspension
from anykit.runtime import Session, Source
from anykit.sources.mcp import McpServer, McpSource, OAuth, Offers, Sampler, login
from anykit.sources.mcp.connecting import sdk
from anykit.sources.mcp.vault import Forgetful

CONNECTING: Final = 10.0
LOGINS: Final = 2
"""How often a person logs in before giving up."""
NUMBERS: Final = {"a": 5, "b": 3}
METADATA: Final = "https://conformance-test.local/client-metadata.json"


def said(name: str) -> str:
    return os.environ.get(f"MCP_CONFORMANCE_{name}", "")


def told(*what: object) -> None:
    print(*what)  # noqa: T201 - the suite shows it where a scenario fails


def oauth_of(context: Mapping[str, Any]) -> OAuth:
    """How to log in: with what is registered already, or a document that describes the client."""
    if "client_id" in context:
        grant = "client_credentials" if "client-credentials" in said("SCENARIO") else "authorization_code"
        return OAuth(
            grant=grant, client_id=str(context["client_id"]), client_secret=str(context.get("client_secret", ""))
        )
    return OAuth(client_metadata_url=METADATA)


async def visit(url: str) -> None:
    """What the person's browser does: it is sent back to our port at once."""
    async with aiohttp.ClientSession() as browser, browser.get(url) as page:
        await page.read()


async def sample(params: JsonObject, context: CapabilityContext) -> JsonObject:
    """A model that has one answer."""
    return {"role": "assistant", "model": "test", "content": {"type": "text", "text": "an answer"}}


def default_of(schema: Mapping[str, Any], name: str) -> Any:
    """Some value that fits."""
    if "default" in schema:
        return schema["default"]
    if schema.get("enum"):
        return schema["enum"][0]
    match schema.get("type"):
        case "integer" | "number":
            return NUMBERS.get(name, 1)
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return filled(schema)
        case _:
            return "text"


def filled(schema: Mapping[str, Any]) -> JsonObject:
    properties: Mapping[str, Any] = schema.get("properties", {})
    return {name: default_of({} if isinstance(part, bool) else part, name) for name, part in properties.items()}


def answer_to(suspension: Suspension) -> JsonObject:
    """Everything as the form proposes it; what it proposes nothing for is left out where it may be."""
    schema: Mapping[str, Any] = suspension.schema or {}
    properties: Mapping[str, Any] = schema.get("properties", {})
    needed: list[str] = schema.get("required", [])
    return {name: default_of(part, name) for name, part in properties.items() if "default" in part or name in needed}


async def call(session: Session, name: str, arguments: JsonObject) -> bool:
    """Whether it could be called; else a person has to log in again."""
    outcome = await session.run(name, arguments)
    for _ in range(10):
        if not isinstance(outcome, Suspended):
            break
        outcome = await session.answer(outcome.suspension.id, ok=True, data=answer_to(outcome.suspension))
    told(name, type(outcome).__name__, str(outcome)[:400])
    return not (isinstance(outcome, Failed) and outcome.detail.get("needs") == "login")


async def use(bench: Workbench, context: Mapping[str, Any]) -> bool:
    """All that is there, once; whether it could be used."""
    session = bench.session()
    for resource in await session.resources():
        if not resource.id.startswith("anykit://"):
            told("read", resource.id, await attempt(session.read(resource.id)))
    for prompt in await session.prompts():
        arguments: JsonObject = {one.name: "text" for one in prompt.arguments}
        told("prompt", prompt.id, await attempt(session.prompt(prompt.id, arguments)))
    named = {entry.original: entry for entry in session.entries()}
    wanted: list[dict[str, Any]] = context.get("toolCalls") or [
        {"name": name, "arguments": filled(entry.tool.input_schema)} for name, entry in named.items()
    ]
    if said("SCENARIO") == "json-schema-2020-12-preservation":  # it wants one tool's schema given to the other
        [focal] = [entry for entry in named.values() if "schema" not in entry.tool.input_schema.get("properties", {})]
        [echo] = [entry for entry in named.values() if entry is not focal]
        wanted = [{"name": echo.original, "arguments": {"schema": focal.tool.input_schema}}]
    usable = True
    for one in wanted:
        if (entry := named.get(one["name"])) is not None:
            # Arguments are held against the tool's schema: null for what takes none is not sent at all.
            arguments = {name: value for name, value in one.get("arguments", {}).items() if value is not None}
            usable = await call(session, entry.tool.name, arguments) and usable
    return usable


async def attempt(work: Any) -> str:
    try:
        return str(await work)[:200]
    except CapabilityError as error:
        return f"{type(error).__name__}: {error}"


async def main(url: str) -> int:
    context: Mapping[str, Any] = json.loads(said("CONTEXT") or "{}")
    auth = said("SCENARIO").startswith("auth/")
    server = McpServer(
        "suite",
        url=url,
        era="modern" if said("PROTOCOL_VERSION") == "2026-07-28" else "legacy",
        oauth=oauth_of(context) if auth else None,
        connect_timeout=CONNECTING,
    )
    secrets = Forgetful()
    sampler: Sampler = sample
    for attempt_number in range(LOGINS + 1):
        source = McpSource(server, offers=Offers(sampler=sampler, roots=["/"]), vault=secrets)
        with tempfile.TemporaryDirectory() as folder:
            async with Workbench(Source("suite", "mcp", source), data_dir=folder, settle=CONNECTING) as bench:
                told("state", source.state)
                usable = source.state.status == "ready" and await use(bench, context)
                if not auth or usable:
                    return 0
        if attempt_number < LOGINS:
            await login(server, secrets, show=visit, timeout=10)
    return 1


def serve_one(connection: socket.socket) -> None:
    """One scenario; what is printed goes to whoever asked, and the exit code last."""
    with connection, connection.makefile("rw") as stream:
        asked = json.loads(stream.readline())
        os.environ.update(asked["env"])
        code = 1
        with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(stream):
            try:
                code = asyncio.run(main(asked["url"]))
            except Exception:
                traceback.print_exc()
        stream.write(f"\nexit {code}\n")


def serve(address: str) -> None:
    """A fork for each who comes."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    asyncio.run(sdk())
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen(128)
        while True:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                serve_one(connection)
                os._exit(0)
            connection.close()


serve(sys.argv[1])
