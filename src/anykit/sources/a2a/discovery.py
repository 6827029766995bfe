"""Where an agent's card is, and whether what is there is one.

http://host/a            http://host/a/.well-known/agent-card.json, .../agent.json, http://host/a
http://host/a/card.json  only that
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

from anykit.capabilities import JsonObject, Unavailable
from anykit.sources.hostile import clean_text
from anykit.transports import HttpAnswer, public_url
from anykit.wire.a2a import Card, CardFault, WireError, WireRequest, an_object, decode, read_card

from .agent import Agent, Remembered
from .errors import CardError, Tried
from .signatures import BadKey, Unsigned, verified

MAX_CARD = 1024 * 1024
"""Bytes of a card."""
CARD_TIMEOUT = 15.0
"""Seconds that one place may take to answer."""
WELL_KNOWN = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""A2A 0.3 and later; before."""
_NOT_HERE = frozenset({404, 405, 410})

Ask = Callable[[WireRequest, float], Awaitable[HttpAnswer]]
"""Sends a request with whatever proves who asks, in so many seconds. Raises `Unavailable`."""


@dataclass(frozen=True, slots=True)
class Found:
    """A card, and the place that it came from (None where it was given)."""

    card: Card
    document: JsonObject
    url: str | None
    max_age: float | None = None
    """Seconds for which its server says that it will not change."""


def places(url: str) -> tuple[str, ...]:
    """Where the card of `url` may be, in the order in which to look."""
    parts = urlsplit(url)
    if parts.path.lower().endswith(".json") or "/.well-known/" in parts.path:
        return (url,)
    base = parts.path.rstrip("/")
    return (*(urlunsplit(parts._replace(path=base + path, query="", fragment="")) for path in WELL_KNOWN), url)


async def find_card(agent: Agent, ask: Ask) -> Found:
    """Find the card and read it. Raises `CardError`, which names every place that was tried."""
    url = agent.card_url
    if url is None:
        assert not isinstance(agent.card, str)
        return read_found(agent, dict(agent.card), None)
    tried: list[Tried] = []
    for place in places(url):
        answer, document = await _look(agent, place, ask, tried)
        if document is not None:
            try:
                found = read_found(agent, document, place, answer)
            except CardError as error:
                tried.append(Tried(error.url, error.status, error.message))
                continue
            if answer is not None:
                _remember(agent, place, answer, document)
            return found
        if tried[-1].status is None or (tried[-1].status not in _NOT_HERE and tried[-1].status >= 300):
            break
    raise _not_found(tried)


async def _look(agent: Agent, place: str, ask: Ask, tried: list[Tried]) -> tuple[HttpAnswer | None, JsonObject | None]:
    """What is at one place: its answer and document, or nothing and an entry in `tried`."""
    known = agent.remembered.get(place)
    headers = {"accept": "application/json"}
    if known is not None and known.etag:
        headers["if-none-match"] = known.etag
    elif known is not None and known.last_modified:
        headers["if-modified-since"] = known.last_modified
    try:
        answer = await ask(WireRequest("GET", place, headers), min(CARD_TIMEOUT, agent.timeout))
    except Unavailable as error:
        status = error.detail.get("status")
        tried.append(Tried(public_url(place), status if isinstance(status, int) else None, error.message))
        return None, None
    if answer.status == 304 and known is not None:
        return answer, known.document
    if answer.status != 200:
        tried.append(Tried(public_url(place), answer.status, answer.describe()))
        return None, None
    if len(answer.body) > MAX_CARD:
        tried.append(Tried(public_url(place), answer.status, f"HTTP 200, more than {MAX_CARD} bytes"))
        return None, None
    try:
        document = an_object(decode(answer.body))
    except WireError:
        tried.append(Tried(public_url(place), answer.status, f"no JSON: {answer.describe()}"))
        return None, None
    if document is None:
        tried.append(Tried(public_url(place), answer.status, f"no JSON object with members: {answer.describe()}"))
    return answer, document


def read_found(agent: Agent, document: JsonObject, place: str | None, answer: HttpAnswer | None = None) -> Found:
    """Check and read a card that came from `place`. Raises `CardError`."""
    where = "the card" if place is None else public_url(place)
    status = None if answer is None else answer.status
    try:
        if agent.keys:
            document = verified(document, agent.keys)
        # Relative urls start where the card really came from: behind a redirect, at its end.
        card = read_card(document, place if answer is None else _real_place(place, answer))
    except (CardFault, Unsigned, BadKey) as fault:
        reason = f"not a usable agent card: {clean_text(str(fault), 500)}"
        raise CardError(reason, url=where, status=status) from None
    return Found(card, document, place, None if answer is None else _max_age(answer.headers.get("cache-control", "")))


def _real_place(place: str | None, answer: HttpAnswer) -> str | None:
    return place if place is None or public_url(place) == answer.url else answer.url


def _remember(agent: Agent, place: str, answer: HttpAnswer, document: JsonObject) -> None:
    etag, modified = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
    if answer.status == 200 and (etag or modified) and len(etag) + len(modified) < 1024:
        agent.remembered[place] = Remembered(etag, document, modified)
    elif answer.status == 200:
        agent.remembered.pop(place, None)


def _max_age(header: str) -> float | None:
    for word in header.split(","):
        name, _, value = word.strip().partition("=")
        if name.lower() == "max-age" and value.isdigit() and len(value) < 10:
            return float(value)
    return None


def _not_found(tried: list[Tried]) -> CardError:
    """One error for all places; the last one decides where the search ended early, the first where nothing was there."""
    early = tried[-1]
    decisive = early if early.status is None or early.status not in _NOT_HERE else tried[0]
    if decisive.status == 200 or (early.status is not None and early.status < 300):
        decisive = next((one for one in tried if one.status == 200), decisive)
    if len(tried) == 1:
        return CardError(
            f"no agent card at {early.url}: {early.reason}", url=early.url, status=early.status, tried=tried
        )
    lines = "; ".join(f"{one.url}: {one.reason}" for one in tried)
    return CardError(f"no agent card; tried {lines}", url=decisive.url, status=decisive.status, tried=tried)
