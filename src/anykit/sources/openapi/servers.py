"""Where an operation's requests go: the document's servers, their variables, and what the operator says instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote, urljoin, urlsplit

from anykit.capabilities import JsonObject
from anykit.transports import public_url

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_URL = re.compile(r"https?://[^/?#\s]+", re.IGNORECASE)
_SAFE = "!$&'()*+,-./:;=?@_~%[]"


@dataclass(frozen=True, slots=True)
class Address:
    """Where an operation lives: `url` without a slash at its end, or "" and `missing`: what to do about it."""

    url: str = ""
    query: str = ""
    missing: str = ""
    chosen: bool = False
    """Whether the operator named it."""


@dataclass(frozen=True)
class Servers:
    """How servers are chosen for one document. `location` is the document's URL, "" for a file."""

    location: str = ""
    choice: str = ""
    """The operator's `server`: a URL, or the name, description or URL of one that the document lists."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def address(self, *levels: object) -> Address:
        """The address by the first of `levels` (operation, path, document) that lists servers."""
        listed = next((cast("list[Any]", one) for one in levels if isinstance(one, list) and one), [{"url": "/"}])
        servers = [cast(JsonObject, one) for one in listed if isinstance(one, dict)]
        if self.choice:
            picked = next((one for one in servers if self.choice in _names(one)), None)
            if picked is not None:
                return self._filled(picked, chosen=True)
            if _URL.match(self.choice):
                return self._filled({"url": self.choice}, chosen=True)
            document: Any = levels[-1] if levels else None
            of_document = cast("list[object]", document) if isinstance(document, list) else []
            if not any(self.choice in _names(one) for one in of_document):
                known = [name for one in of_document for name in _names(one)[:1]]
                return Address(missing=f"the document lists no server {self.choice[:100]!r}{_listed(known)}")
        if not servers:
            return Address(missing="its servers are no list of objects")
        return self._filled(servers[0])

    def _filled(self, server: JsonObject, *, chosen: bool = False) -> Address:
        url: Any = server.get("url")
        if not isinstance(url, str):
            return Address(missing="its server has no url")
        variables: Any = server.get("variables")
        table = cast(JsonObject, variables) if isinstance(variables, dict) else {}
        faults: list[str] = []

        def fill(match: re.Match[str]) -> str:
            value, fault = self._variable(match[1], table)
            if fault:
                faults.append(fault)
            return value

        text = _VARIABLE.sub(fill, url.strip())
        if faults:
            return Address(missing="; ".join(faults))
        try:
            whole = urljoin(self.location, text) if self.location else text
            parts = urlsplit(whole)
            fits = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
        except ValueError:
            fits, parts, whole = False, urlsplit(""), text
        if not fits:
            if whole.startswith(("/", ".")) or "://" not in whole:
                why = "the document names no server with an address"
                return Address(missing=f'{why}; name it in the configuration: server = "https://..."')
            return Address(missing=f"its server {public_url(whole)[:200]!r} is no http or https URL")
        netloc = parts.netloc
        if not netloc.isascii():
            try:
                netloc = parts.netloc.encode("idna").decode()
            except UnicodeError:
                return Address(missing=f"its server {public_url(whole)[:200]!r} is no URL")
        path = quote(parts.path, safe=_SAFE).rstrip("/")
        return Address(f"{parts.scheme}://{netloc}{path}", quote(parts.query, safe=_SAFE), chosen=chosen)

    def _variable(self, name: str, table: JsonObject) -> tuple[str, str]:
        """A server variable's value, or what is wrong with it."""
        entry: Any = table.get(name)
        described = cast(JsonObject, entry) if isinstance(entry, dict) else {}
        given = self.variables.get(name)
        value = given if given is not None else described.get("default")
        if not isinstance(value, str | int | float) or value == "":
            return "", f'the server needs {name!r}: server_variables = {{ {name} = "..." }}'
        choices: Any = described.get("enum")
        if (
            given is not None
            and isinstance(choices, list)
            and choices
            and given not in map(str, cast("list[Any]", choices))
        ):
            allowed = ", ".join(map(str, cast("list[Any]", choices)[:10]))
            return "", f"server_variables.{name}: {given[:100]!r} is none of {allowed}"
        return str(value), ""


def _names(server: object) -> Sequence[str]:
    entry = cast(JsonObject, server) if isinstance(server, dict) else {}
    return [entry[key] for key in ("name", "description", "url") if isinstance(entry.get(key), str)]


def _listed(known: Sequence[str]) -> str:
    return f"; it lists {', '.join(repr(one[:80]) for one in known[:8])}" if known else "; give its URL"
