"""What an agent's card says, read from where it lies; nothing is called and nothing is changed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from anykit.capabilities import JsonObject
from anykit.runtime import clean
from anykit.sources.a2a import A2ASource, Agent, AgentClient, CardError, Found, configured_agent
from anykit.sources.a2a.discovery import places
from anykit.sources.a2a.tools import contract_names
from anykit.sources.hostile import clean_text
from anykit.stores import UnresolvedReference, resolve_all
from anykit.transports import public_url
from anykit.wire.a2a import Card, Scheme, a_text, an_object, ways

from .errors import CommandError, Exit, usage
from .invocation import Invocation
from .place import AgentFacts

MAX_TEXT = 4096
_UNAUTHORIZED = (401, 403)


def facts_of(card: Card, url: str | None, *, dialect: str = "", document: JsonObject | None = None) -> AgentFacts:
    """What a card from `url` says; `dialect` is the one in use, the card's own choice where "" is given."""
    document = document or {}
    way = ways(card)[0]
    provider = an_object(document.get("provider")) or {}
    names = tool_names(card)
    return AgentFacts(
        name=clean_text(card.name, 256),
        description=clean_text(card.description, MAX_TEXT).strip(),
        version=clean_text(card.version, 64),
        url=url,
        protocol=way.interface.version if not dialect else dialect.partition(" ")[0],
        dialect=dialect or way.dialect,
        interfaces=tuple(
            {"url": public_url(one.url), "binding": one.binding, "version": one.version} for one in card.interfaces
        ),
        skills=tuple(
            {
                "id": clean_text(skill.key, 256),
                "name": clean_text(skill.name, 256),
                "description": clean_text(skill.description, MAX_TEXT).strip(),
                "tags": [clean_text(tag, 64) for tag in skill.tags],
                "examples": [clean_text(example, 1024) for example in skill.examples],
                "tool": name,
            }
            for skill, name in zip(card.skills, names, strict=True)
        ),
        streaming=card.streaming,
        extended=card.extended,
        schemes={clean_text(name, 100): _said(scheme) for name, scheme in card.schemes.items()},
        required=tuple(tuple(clean_text(name, 100) for name in one) for one in card.requirements),
        provider=clean_text(a_text(provider, "organization"), 256),
        documentation=clean_text(a_text(document, "documentationUrl"), 1024),
        left_out=tuple(f"{clean_text(one.what, 100)}: {clean_text(one.reason, 300)}" for one in card.dropped),
    )


def facts_of_source(source: A2ASource) -> AgentFacts | None:
    """The same of an agent that is in use; None before its card was read."""
    return None if source.card is None else facts_of(source.card, source.agent.where, dialect=source.dialect)


def facts_of_found(found: Found) -> AgentFacts:
    """The same of a card that was just read."""
    url = None if found.url is None else public_url(found.url)
    return facts_of(found.card, url, document=found.document)


def tool_names(card: Card) -> list[str]:
    """What the card's skills are called as tools of a catalogue."""
    prefix = clean(card.name[:1])
    names = contract_names(card)
    return [f"_{name}" if prefix.startswith("_") and not name.startswith("_") else name for name in names]


def _said(scheme: Scheme) -> str:
    match scheme.kind:
        case "apiKey":
            return f"API key in {scheme.place} {clean_text(scheme.parameter, 128)}"
        case "http":
            return f"HTTP {scheme.scheme}"
        case "oauth2":
            return "OAuth2 client credentials" if scheme.token_url else "OAuth2"
        case "openIdConnect":
            return "OpenID Connect token"


async def card_at(
    invocation: Invocation, url: str, *, headers: Mapping[str, str], credentials: Mapping[str, Any], folder: str
) -> tuple[Found, str]:
    """Read the card of a URL; gives it, and the secrets that it asks for and nobody gave.

    Raises `CommandError`: what stands in the way of credentials, or `CardError` where there is no card.
    """
    block: JsonObject = {"card": url, "headers": dict(headers), "credentials": dict(credentials)}
    resolved(block, folder)
    try:
        agent = replace_timeout(configured_agent("NAME", block, base_dir=folder), invocation.wait)
    except ValueError as error:
        raise usage(str(error)) from None
    client = AgentClient(agent, lasting=True)
    try:
        async with asyncio.timeout(invocation.wait):
            found = await client.load()
    except TimeoutError:
        tried = ", ".join(public_url(place) for place in places(url))
        reason = f"no answer within {invocation.wait:g} s; tried {tried}"
        raise CardError(f"no agent card: {reason}", url=public_url(url)) from None
    except CardError as error:
        if error.status in _UNAUTHORIZED:
            raise not_let_in(error) from None
        raise
    finally:
        await client.close()
    return found, client.missing


def replace_timeout(agent: Agent, seconds: float) -> Agent:
    """The same agent, asked with so much time."""
    return replace(agent, timeout=max(seconds, 0.001))


def resolved(block: JsonObject, folder: str) -> JsonObject:
    """What the references of an entry mean. Raises `CommandError` for one that leads nowhere."""
    wanted = {key: value for key, value in block.items() if key in ("headers", "credentials", "token") and value}
    try:
        return resolve_all(wanted, None, folder)
    except UnresolvedReference as error:
        raise CommandError(
            str(error), code="unresolved", exit=Exit.CREDENTIALS, fixes=[("set it", "export NAME=...")]
        ) from None


def not_let_in(error: CardError) -> CommandError:
    """There may be a card, but not for everybody."""
    return CommandError(
        error.message,
        code="unauthorized",
        exit=Exit.CREDENTIALS,
        fixes=[("prove who asks", "--header 'Authorization: Bearer ${TOKEN}'")],
    )


def headers_of(given: Sequence[str], token: str | None) -> dict[str, str]:
    """`--header 'Name: value'` and `--token`, as a table. Raises `CommandError`."""
    headers: dict[str, str] = {}
    for line in given:
        name, colon, value = line.partition(":")
        if not colon or not name.strip() or not value.strip() or not name.strip().isascii() or " " in name.strip():
            raise usage("a --header is no header", ("write", "--header 'Name: value'"))
        headers[name.strip()] = value.strip()
    if token:
        headers.setdefault("Authorization", f"Bearer {token}")
    return headers
