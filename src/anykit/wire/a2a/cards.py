"""Agent cards: 1.0, 0.3, both in one document, and the bare one of the Toolnexus A2A tools contract.

What cannot be used is left out one by one, with the reason; only a document that is no card at all raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from anykit.capabilities import Json, JsonObject

from .fields import a_list, a_text, an_object, member, texts, well_formed

MAX_NAME = 256
MAX_URL = 2048
MAX_SKILLS = 1000
MAX_INTERFACES = 64
MAX_SCHEMES = 64
MAX_DROPPED = 200

Version: TypeAlias = Literal["1.0", "0.3", "toolnexus"]
Binding: TypeAlias = Literal["JSONRPC", "HTTP+JSON"]
SchemeKind: TypeAlias = Literal["apiKey", "http", "oauth2", "openIdConnect"]

_BINDINGS: dict[str, Binding] = {
    "JSONRPC": "JSONRPC",
    "JSON-RPC": "JSONRPC",
    "HTTP+JSON": "HTTP+JSON",
    "HTTP_JSON": "HTTP+JSON",
    "REST": "HTTP+JSON",
}
_EVERYWHERE = frozenset({"0.0.0.0", "::"})
_NOT_IN_A_URL = re.compile(r"[\x00-\x20\x7f\\]")
_FOREIGN = re.compile(r"[^a-zA-Z0-9_-]")
_OF_A_FULL_CARD = ("protocolVersion", "preferredTransport", "additionalInterfaces", "capabilities", "defaultInputModes")


class CardFault(ValueError):
    """It is no card that can be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Skill:
    """One thing that an agent says it can do."""

    key: str
    """Its id, else its name: what a tool is called after, and what selects it."""
    name: str
    description: str
    """Its own, else its name, else its id."""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Interface:
    """Where an agent can be called, and in what."""

    url: str
    binding: Binding
    version: Version
    tenant: str = ""


@dataclass(frozen=True, slots=True)
class Scheme:
    """How an agent wants its callers to prove who they are."""

    name: str
    kind: SchemeKind
    place: str = ""
    """Of an API key: `header`, `query` or `cookie`."""
    parameter: str = ""
    """What the API key's header, parameter or cookie is called."""
    scheme: str = ""
    """Of HTTP authentication, in lower case: `bearer`, `basic`."""
    token_url: str = ""
    """Of OAuth2 client credentials."""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Dropped:
    """A part of a card that is not used, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Card:
    """An agent card, read."""

    name: str
    description: str
    version: str
    interfaces: tuple[Interface, ...]
    """Usable ones, the preferred first; at least one."""
    skills: tuple[Skill, ...]
    streaming: bool = False
    extended: bool = False
    """Whether callers that prove who they are may see more."""
    schemes: Mapping[str, Scheme] = field(default_factory=dict[str, Scheme])
    requirements: tuple[Mapping[str, tuple[str, ...]], ...] = ()
    """Alternatives, each the schemes that it needs together, with their scopes."""
    dropped: tuple[Dropped, ...] = ()


def sanitize(text: str) -> str:
    """Each character outside of `[a-zA-Z0-9_-]` as `_` (Toolnexus A2A tools contract)."""
    return _FOREIGN.sub("_", text)


def read_card(document: Json, card_url: str | None) -> Card:
    """Read a card that came from `card_url`; None where a person wrote it down.

    Raises `CardFault`.
    """
    card = an_object(document)
    if card is None:
        raise CardFault("it is no JSON object" if not isinstance(document, dict) else "it is empty")
    name = card.get("name")
    if not isinstance(name, str) or not name.strip():
        raise CardFault("it has no name")
    if len(name) > MAX_NAME:
        raise CardFault(f"its name is longer than {MAX_NAME} characters")
    dropped: list[Dropped] = []
    skills = _skills(card.get("skills"), dropped)
    interfaces = _interfaces(card, card_url, dropped)
    capabilities = an_object(card.get("capabilities")) or {}
    return Card(
        name=well_formed(name),
        description=a_text(card, "description"),
        version=a_text(card, "version", limit=64),
        interfaces=interfaces,
        skills=skills,
        streaming=capabilities.get("streaming") is True,
        extended=member(capabilities, "extendedAgentCard", "extended_agent_card") is True
        or card.get("supportsAuthenticatedExtendedCard") is True,
        schemes=_schemes(card, dropped),
        requirements=_requirements(card),
        dropped=tuple(dropped[:MAX_DROPPED]),
    )


# skills


def _skills(given: Json, dropped: list[Dropped]) -> tuple[Skill, ...]:
    if given is None:  # an empty repeated field is left out by protobuf, and null to some
        return ()
    if not isinstance(given, list):
        raise CardFault("its skills are no list")
    skills: dict[str, Skill] = {}
    for index, item in enumerate(a_list(given)):
        if index >= MAX_SKILLS:
            dropped.append(Dropped("skills", f"more than {MAX_SKILLS}; the rest is left out"))
            break
        try:
            skill = _skill(item)
            if skill.key in skills:
                raise CardFault("the card has a skill of that id already")
            skills[skill.key] = skill
        except CardFault as fault:
            dropped.append(Dropped(f"skill {_label(item, index)}", str(fault)))
    return tuple(skills.values())


def _skill(item: Json) -> Skill:
    skill = an_object(item)
    if skill is None:
        raise CardFault("it is null" if item is None else "it is no object")
    for key in ("id", "name"):
        value = skill.get(key)
        if isinstance(value, str) and len(value) > MAX_NAME:
            raise CardFault(f"its {key} is longer than {MAX_NAME} characters")
    id, name = (a_text(skill, key, limit=MAX_NAME) for key in ("id", "name"))
    id, name = (text if text.strip() else "" for text in (id, name))
    if not (id or name):
        raise CardFault("it has neither an id nor a name")
    description = a_text(skill, "description")
    return Skill(
        key=id or name,
        name=name or id,
        description=description if description.strip() else name or id,
        tags=texts(skill.get("tags")),
        examples=texts(skill.get("examples"), limit=1024),
    )


def _label(item: Json, index: int) -> str:
    skill = an_object(item) or {}
    return a_text(skill, "id", "name", limit=64) or f"#{index}"


# interfaces


def _interfaces(card: JsonObject, card_url: str | None, dropped: list[Dropped]) -> tuple[Interface, ...]:
    found: dict[tuple[str, str, str], Interface] = {}
    refused: list[Dropped] = []
    for binding, version, url, tenant in _offered(card):
        usable = _BINDINGS.get(binding.strip().upper())
        label = f"interface {binding[:64] or 'without a binding'}"
        if usable is None:
            refused.append(Dropped(label, "the binding is not one that is spoken here (JSONRPC, HTTP+JSON)"))
            continue
        if version == "toolnexus" and usable != "JSONRPC":
            version = "1.0"
        try:
            place = resolve_url(url, card_url)
        except CardFault as fault:
            refused.append(Dropped(label, f"its url cannot be used: {fault}"))
            continue
        if "/" in tenant or _NOT_IN_A_URL.search(tenant):
            refused.append(Dropped(label, "its tenant is no single word"))
            continue
        found.setdefault((place, usable, version), Interface(place, usable, version, tenant))
    dropped += refused
    if not found:
        reasons = "; ".join(f"{one.what}: {one.reason}" for one in refused[:4])
        raise CardFault(f"it has no interface that can be used{': ' if reasons else ''}{reasons}")
    return tuple(found.values())


def _offered(card: JsonObject) -> Iterable[tuple[str, Version, str | None, str]]:
    """(binding, version, url, tenant) of every interface, as written."""
    listed = a_list(member(card, "supportedInterfaces", "supported_interfaces"))[:MAX_INTERFACES]
    for item in listed:
        interface = an_object(item) or {}
        binding = a_text(interface, "protocolBinding", "protocol_binding", "transport")
        version = _version(a_text(interface, "protocolVersion", "protocol_version", limit=32) or "1.0")
        yield binding, version, _url(interface), a_text(interface, "tenant", limit=256)
    url = _url(card)
    if listed and url is None:
        return
    additional = a_list(card.get("additionalInterfaces"))[:MAX_INTERFACES]
    said = a_text(card, "protocolVersion", "protocol_version", limit=32)
    version: Version = _version(said) if said else "0.3"
    if not said and not listed and not any(key in card for key in _OF_A_FULL_CARD):
        version = "toolnexus"
    yield a_text(card, "preferredTransport", "preferred_transport") or "JSONRPC", version, url, ""
    for item in additional:
        interface = an_object(item) or {}
        yield a_text(interface, "transport", "protocolBinding"), version, _url(interface), ""


def _url(given: JsonObject) -> str | None:
    url = given.get("url")
    return url if isinstance(url, str) else None


def _version(text: str) -> Version:
    """1.0 for 1.x and whatever comes after it: it is tried, and the peer may say no."""
    return "0.3" if text.strip().lstrip("v").startswith("0") else "1.0"


def resolve_url(url: str | None, card_url: str | None) -> str:
    """Where an interface really is: an absent or empty url is the card's origin, a relative one starts at the card, and
    0.0.0.0 is the card's host. Raises `CardFault`."""
    base = None if card_url is None else urlsplit(card_url)
    if url is None or not url.strip():
        if base is None:
            raise CardFault("it is empty, and the card has no place that it came from")
        return f"{base.scheme}://{base.netloc.rpartition('@')[2]}/"
    url = url.strip()
    if len(url) > MAX_URL or _NOT_IN_A_URL.search(url):
        raise CardFault("it is too long" if len(url) > MAX_URL else "it holds spaces or control characters")
    try:
        parts = urlsplit(url if card_url is None else urljoin(card_url, url))
        scheme, host, port = parts.scheme.lower(), parts.hostname or "", parts.port
    except ValueError:
        raise CardFault("it is no URL") from None
    if not scheme:
        raise CardFault("it is relative, and the card has no place that it came from")
    if scheme not in ("http", "https"):
        raise CardFault(f"its scheme is {scheme[:32]!r}; only http and https are used")
    if not host:
        raise CardFault("it names no host")
    netloc = parts.netloc.rpartition("@")[2]
    if host in _EVERYWHERE:
        if base is None or not base.hostname:
            raise CardFault(f"{host} is no address to connect to")
        name = f"[{base.hostname}]" if ":" in base.hostname else base.hostname
        netloc = name if port is None else f"{name}:{port}"
    return urlunsplit(SplitResult(scheme, netloc, parts.path or "/", parts.query, ""))


# security


def _schemes(card: JsonObject, dropped: list[Dropped]) -> dict[str, Scheme]:
    schemes: dict[str, Scheme] = {}
    given = an_object(member(card, "securitySchemes", "security_schemes")) or {}
    for name, item in list(given.items())[:MAX_SCHEMES]:
        scheme = _scheme(name, an_object(item) or {})
        if scheme is None:
            dropped.append(Dropped(f"security scheme {name[:64]}", "it is of a kind that is not used here"))
        else:
            schemes[name] = scheme
    return schemes


def _scheme(name: str, given: JsonObject) -> Scheme | None:
    def inner(key: str, kind: str) -> JsonObject | None:
        if (nested := an_object(given.get(key))) is not None:  # 1.0
            return nested
        return given if given.get("type") == kind else None  # 0.3, as in OpenAPI

    if (scheme := inner("apiKeySecurityScheme", "apiKey")) is not None:
        place, parameter = a_text(scheme, "location", "in").lower(), a_text(scheme, "name", limit=128)
        usable = place in ("header", "query", "cookie") and parameter
        return Scheme(name, "apiKey", place=place, parameter=parameter) if usable else None
    if (scheme := inner("httpAuthSecurityScheme", "http")) is not None:
        word = a_text(scheme, "scheme", limit=32).lower()
        return Scheme(name, "http", scheme=word) if word in ("bearer", "basic") else None
    if (scheme := inner("oauth2SecurityScheme", "oauth2")) is not None:
        flows = an_object(scheme.get("flows")) or {}
        flow = an_object(member(flows, "clientCredentials", "client_credentials")) or {}
        url = a_text(flow, "tokenUrl", "token_url", limit=MAX_URL)
        return Scheme(name, "oauth2", token_url=url, scopes=tuple(an_object(flow.get("scopes")) or ()))
    if inner("openIdConnectSecurityScheme", "openIdConnect") is not None:
        return Scheme(name, "openIdConnect")
    return None


def _requirements(card: JsonObject) -> tuple[Mapping[str, tuple[str, ...]], ...]:
    found: list[Mapping[str, tuple[str, ...]]] = []
    for item in a_list(member(card, "securityRequirements", "security_requirements", "security"))[:MAX_SCHEMES]:
        if not isinstance(item, dict):
            continue
        requirement: dict[str, Any] = an_object(item) or {}
        needed = an_object(requirement.get("schemes")) or requirement
        scopes: dict[str, tuple[str, ...]] = {}
        for name, wanted in needed.items():
            nested = an_object(wanted)
            scopes[name] = texts(wanted if nested is None else nested.get("list"))
        found.append(scopes)
    return tuple(found)
