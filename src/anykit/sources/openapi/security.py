"""What proves who asks: the document's security schemes, filled with the operator's secrets, never by an argument."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast
from urllib.parse import quote

from anykit.capabilities import ExecutionFailed, JsonObject
from anykit.sources.hostile import clean_text

from .references import Misplaced, References
from .styles import form_text

Requirement: TypeAlias = "Mapping[str, tuple[str, ...]]"
"""Schemes that are needed together, each with its scopes; {} asks for none."""

NOT_CONFIGURED = "not_configured"


@dataclass(frozen=True, slots=True)
class Scheme:
    """One security scheme of a document."""

    name: str
    kind: str
    place: str = ""
    """Of an API key: header, query, cookie."""
    parameter: str = ""
    """Its name there."""
    scheme: str = ""
    """Of `http`: bearer, basic, ..., in lower case."""
    token_url: str = ""

    @property
    def is_bearer(self) -> bool:
        """Whether its secret may be a token that is sent as such."""
        return self.kind in ("oauth2", "openIdConnect") or (self.kind == "http" and self.scheme == "bearer")

    def described(self) -> str:
        """What it is, for whoever has to configure it."""
        match self.kind:
            case "apiKey":
                return f"an API key, in the {self.place} {clean_text(self.parameter, 60)!r}"
            case "http" if self.scheme == "basic":
                return "a user and a password"
            case "oauth2":
                return "an OAuth2 token, or client credentials"
            case "openIdConnect":
                return "an OpenID Connect token"
            case _:
                return f"an HTTP {clean_text(self.scheme, 30) or self.kind} credential"

    def example(self) -> str:
        """How its secret is given."""
        key = self.name if self.name.replace("_", "").replace("-", "").isalnum() else f'"{clean_text(self.name, 60)}"'
        variable = "".join(c if c.isascii() and c.isalnum() else "_" for c in self.name).upper()[:40]
        if self.kind == "http" and self.scheme == "basic":
            return f'{key} = "user:${{{variable}}}"'
        if self.kind == "oauth2" and self.token_url:
            return f'{key} = "${{{variable}}}" or {key} = {{ client_id = "...", client_secret = "${{{variable}}}" }}'
        return f'{key} = "${{{variable}}}"'


@dataclass
class Credentials:
    """What a request shows: added to its headers, query and cookies."""

    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    query: list[str] = field(default_factory=list[str])
    cookies: list[str] = field(default_factory=list[str])
    secrets: list[str] = field(default_factory=list[str])
    """Values that nothing may quote."""


def schemes_of(document: JsonObject, references: References) -> dict[str, Scheme]:
    """The schemes by name; what is none is not there."""
    components: Any = document.get("components")
    given: Any = cast(JsonObject, components).get("securitySchemes") if isinstance(components, dict) else None
    found: dict[str, Scheme] = {}
    for name, value in cast(JsonObject, given).items() if isinstance(given, dict) else ():
        try:
            entry, _ = references.object_at(value, "", f"security scheme {name}")
        except Misplaced:
            continue
        kind = entry.get("type")
        if not isinstance(kind, str):
            continue
        found[name] = Scheme(
            name,
            kind,
            place=_text(entry.get("in")),
            parameter=_text(entry.get("name")),
            scheme=_text(entry.get("scheme")).lower(),
            token_url=_token_url(entry),
        )
    return found


def requirements_of(value: object) -> tuple[Requirement, ...] | None:
    """The alternatives of a `security` list; None where there is no list."""
    if not isinstance(value, list):
        return None
    return tuple(
        {
            name: tuple(str(scope) for scope in cast("list[Any]", scopes)) if isinstance(scopes, list) else ()
            for name, scopes in cast(JsonObject, one).items()
        }
        for one in cast("list[Any]", value)
        if isinstance(one, dict)
    )


def chosen(
    requirements: Sequence[Requirement], schemes: Mapping[str, Scheme], configured: frozenset[str]
) -> Requirement | None:
    """The alternative that is used: the first whose schemes all have a secret; {} where that is one; None where none is."""
    for one in requirements:
        if one and all(name in configured and name in schemes for name in one):
            return one
    return {} if not requirements or any(not one for one in requirements) else None


def missing(requirements: Sequence[Requirement], schemes: Mapping[str, Scheme], configured: frozenset[str]) -> str:
    """What an operation asks for and nobody gave, and how it is given."""
    wanted: list[str] = []
    examples: list[str] = []
    for one in requirements[:4]:
        names: list[str] = []
        for name in one:
            scheme = schemes.get(name)
            if scheme is None:
                names.append(f"{clean_text(name, 60)!r}, which the document does not describe")
                continue
            if name not in configured:
                names.append(f"{clean_text(name, 60)!r} ({scheme.described()})")
                examples.append(scheme.example())
        wanted.append(" and ".join(names))
    how = f"; set it in the source's table: security = {{ {examples[0]} }}" if examples else ""
    return f"it needs the security scheme {' or '.join(one for one in wanted if one)}{how}"


def shown(scheme: Scheme, secret: Any, into: Credentials) -> None:
    """Add a secret that needs no fetching to what a request shows. Raises `ExecutionFailed`."""
    match scheme.kind:
        case "apiKey":
            value = _secret(scheme, secret)
            into.secrets.append(value)
            if scheme.place == "query":
                into.query.append(f"{quote(scheme.parameter, safe='[]$@:')}={form_text(value)}")
            elif scheme.place == "cookie":
                into.cookies.append(f"{scheme.parameter}={value}")
            else:
                into.headers.append((scheme.parameter, value))
        case "http" if scheme.scheme == "basic":
            pair = _pair(scheme, secret)
            encoded = base64.b64encode(pair.encode()).decode()
            into.secrets += [encoded, pair.partition(":")[2]]
            into.headers.append(("authorization", f"Basic {encoded}"))
        case "http" if scheme.scheme not in ("", "bearer"):
            value = _secret(scheme, secret)
            into.secrets.append(value)
            word = scheme.scheme if scheme.scheme.isupper() else scheme.scheme[:1].upper() + scheme.scheme[1:]
            into.headers.append(("authorization", f"{word} {value}"))
        case "http" | "oauth2" | "openIdConnect":
            value = _secret(scheme, secret)
            into.secrets.append(value)
            into.headers.append(("authorization", f"Bearer {value.removeprefix('Bearer ')}"))
        case _:
            raise wrong(scheme, f"{clean_text(scheme.kind, 40)!r} is not supported")


def wrong(scheme: Scheme, why: str) -> ExecutionFailed:
    """The failure of a secret that cannot be used."""
    return ExecutionFailed(f"security scheme {clean_text(scheme.name, 60)!r}: {why}", code=NOT_CONFIGURED)


def is_client(secret: object) -> bool:
    """Whether a secret is a table with client credentials, for which a token is fetched."""
    return isinstance(secret, Mapping) and "client_id" in secret


def _secret(scheme: Scheme, secret: Any) -> str:
    if isinstance(secret, Mapping):
        table = cast("Mapping[str, Any]", secret)
        secret = next((table[key] for key in ("token", "value", "key", "access_token") if key in table), None)
    if not isinstance(secret, str) or not secret:
        raise wrong(scheme, "its secret is a text")
    return secret


def _pair(scheme: Scheme, secret: Any) -> str:
    if isinstance(secret, Mapping):
        table = cast("Mapping[str, Any]", secret)
        secret = f"{table.get('username', table.get('user', ''))}:{table.get('password', '')}"
    if not isinstance(secret, str) or ":" not in secret:
        raise wrong(scheme, 'its secret is "user:password", or a table with `username` and `password`')
    return secret


def _token_url(entry: JsonObject) -> str:
    flows: Any = entry.get("flows")
    flow: Any = cast(JsonObject, flows).get("clientCredentials") if isinstance(flows, dict) else None
    return _text(cast(JsonObject, flow).get("tokenUrl")) if isinstance(flow, dict) else ""


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
