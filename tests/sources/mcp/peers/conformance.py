"""The client that the MCP conformance suite drives: `conformance client --command "python conformance.py"`.

It does what a scenario asks of a client with our source and nothing else: connect (log in where the server wants that),
list, call every tool. The suite appends the server's URL; scenario, context and revision come in the environment.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any
from urllib.parse import urljoin

from anykit.capabilities import (
    Answer,
    CapabilityContext,
    CapabilityError,
    Invocable,
    InvocableRequest,
    Question,
    Resume,
    Suspension,
)
from anykit.sources.connection import Backoff
from anykit.sources.mcp import McpServer, McpSource, OAuth, login
from anykit.sources.mcp.vault import Forgetful
from anykit.transports import HttpClient
from anykit.transports.guard import OPEN

CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"


def oauth(scenario: str, context: dict[str, Any]) -> OAuth | None:
    """What a user would have configured for the scenario."""
    if not scenario.startswith("auth/"):
        return None
    if "client-credentials" in scenario:
        return OAuth(
            "client_credentials",
            client_id=context["client_id"],
            client_secret=context["client_secret"],
            issuer=context.get("issuer", ""),
        )
    return OAuth(
        client_id=context.get("client_id", ""),
        client_secret=context.get("client_secret", ""),
        client_metadata_url=CLIENT_METADATA,
    )


async def browse(url: str) -> None:
    """A browser whose user consents: follows redirects until it is back at our port."""
    async with HttpClient(guard=OPEN) as client:
        for _ in range(5):
            answer = await client.request("GET", url, max_redirects=0)
            if "location" not in answer.headers:
                return
            url = urljoin(url, answer.headers["location"])


def arguments(schema: dict[str, Any]) -> dict[str, Any]:
    """Something for every property."""
    values: dict[str, Any] = {"string": "test", "integer": 5, "number": 3.5, "boolean": True, "array": [], "object": {}}
    found: dict[str, Any] = {}
    for name, property in schema.get("properties", {}).items():
        kind = property.get("type", "string")
        found[name] = property.get("default", values.get(kind if isinstance(kind, str) else kind[0]))
    return found


async def ask(question: Question) -> Answer:
    """Accepts with the defaults of the form."""
    properties: dict[str, Any] = (question.schema or {}).get("properties", {})
    given = arguments(question.schema or {})
    return Answer(
        True, {name: value for name, value in given.items() if "default" in properties[name] or value is not None}
    )


def wanted(source: McpSource, context: dict[str, Any]) -> list[tuple[Invocable, dict[str, Any]]]:
    """The calls that the scenario names; else every tool once."""
    tools = {tool.spec.name: tool for tool in source.invocables()}
    if "toolCalls" in context:
        return [(tools[one["name"]], one["arguments"]) for one in context["toolCalls"]]
    if "json_schema_echo" in tools:
        schema = next(tool.spec.input_schema for name, tool in tools.items() if name != "json_schema_echo")
        return [(tools["json_schema_echo"], {"schema": schema})]
    return [(tool, arguments(tool.spec.input_schema)) for tool in tools.values()]


async def call(source: McpSource, scenario: dict[str, Any]) -> None:
    """Makes the calls, and answers what they ask."""
    context = CapabilityContext(principal="conformance", ask=ask)
    for tool, given in wanted(source, scenario):
        resume = None
        for _ in range(5):
            outcome = await tool.invoke(InvocableRequest(input=given, call_id="1", resume=resume), context)
            if not isinstance(outcome, Suspension):
                break
            asked = Question(outcome.kind, outcome.prompt, outcome.schema, outcome.url)
            resume = Resume(outcome.state, await ask(asked))


async def main() -> int:
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    version = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "")
    server = McpServer(
        "conformance",
        url=sys.argv[-1],
        oauth=oauth(scenario, context),
        era="legacy" if version and version < "2026" else "auto",
    )
    vault = Forgetful()
    source = McpSource(server, vault=vault, backoff=Backoff(0.05, 0.2))
    tasks: set[asyncio.Task[None]] = set()

    def show(url: str) -> None:
        tasks.add(asyncio.create_task(browse(url)))

    try:
        await source.start()
        for _ in range(4):
            try:
                await work(source, context)
                return 0
            except CapabilityError as error:
                sys.stderr.write(f"{type(error).__name__}: {error}\n")
                if "anykit login" not in str(error):
                    return 1
            await login(server, vault, show=show, timeout=15)
        return 1
    finally:
        await source.close()


async def work(source: McpSource, context: dict[str, Any]) -> None:
    """What a client does with a server: list everything, call every tool."""
    await source.call(_nothing)
    for resources in source.resources():
        await resources.list_resources()
    for prompts in source.prompts():
        await prompts.list_prompts()
    await call(source, context)
    await asyncio.sleep(0.2)


async def _nothing(link: object) -> None:
    """Wait for the session."""


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
