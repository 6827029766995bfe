"""From the operator's table to a source. What a person got wrong is a source that says so, never an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from anykit.capabilities import CapabilityProvider

from .document import DocumentError
from .source import OpenApiSource, Options
from .tools import KIND

_URL = re.compile(r"https?://", re.IGNORECASE)


class Opening(Protocol):
    """What opening needs to know of its surroundings."""

    @property
    def folder(self) -> Path:
        """Where relative paths start."""
        ...

    @property
    def connect_timeout(self) -> float:
        """Seconds."""
        ...

    @property
    def private_hosts(self) -> tuple[str, ...]:
        """What may be reached on behalf of peers, although it is not public."""
        ...


@dataclass(frozen=True, slots=True)
class Opened:
    """A source as it goes into the catalogue; the fields are those of the runtime's `Source`."""

    name: str
    kind: str = KIND
    provider: CapabilityProvider | None = None
    toolkits: tuple[Any, ...] = ()
    prefixed: bool = True
    required: bool = False
    disabled: str | None = None
    failed: str | None = None
    location: str = ""


def open_source(config: Any, opening: Opening) -> Opened:
    """The entry point `openapi` of the group `anykit.sources`. References in the table are replaced already.

    Never raises for what a person may get wrong.
    """
    target = str(getattr(config, "url", None) or getattr(config, "target", None) or "").strip()
    named: str | None = getattr(config, "name", None)
    if not target:
        return Opened(named or KIND, failed="an OpenAPI source needs a `target`: a file or a URL")
    try:
        options = options_of(config, opening)
        if _URL.match(target):
            name = named or name_of(urlsplit(target).netloc.rpartition("@")[2] or KIND)
            return Opened(name, provider=OpenApiSource(name, target, options), location=target)
        file = opening.folder / Path(target).expanduser()
        name = named or name_of(file.stem)
        return Opened(name, provider=OpenApiSource(name, file, options), location=str(file))
    except (DocumentError, ValueError) as error:
        return Opened(named or name_of(Path(target).stem), failed=str(error), location=target)


def options_of(config: Any, opening: Opening) -> Options:
    """What a table says. Raises `ValueError`."""

    def given(key: str, default: Any) -> Any:
        value = getattr(config, key, None)
        return default if value is None else value

    return Options(
        server=str(given("server", "")).strip(),
        server_variables={name: str(value) for name, value in given("server_variables", {}).items()},
        security={name: _plain(secret) for name, secret in given("security", {}).items()},
        token=cast(str, _plain(given("token", ""))),
        headers=dict(given("headers", {})),
        document_headers=dict(given("document_headers", {})),
        include=tuple(given("include", ())),
        exclude=tuple(given("exclude", ())),
        allow_refs=tuple(given("allow_refs", ())),
        timeout=given("timeout", None),
        retries=given("retries", 2),
        max_bytes=given("max_bytes", 1024 * 1024),
        connect_timeout=opening.connect_timeout,
        private_hosts=opening.private_hosts,
    )


def _plain(secret: Any) -> Any:
    if isinstance(secret, SecretStr):
        return secret.get_secret_value()
    if isinstance(secret, Mapping):
        return {name: _plain(one) for name, one in cast("Mapping[str, Any]", secret).items()}
    return secret


def name_of(text: str) -> str:
    """A source's name from a file's or a host's."""
    cleaned = re.sub(r"[^A-Za-z0-9_-]", "_", text)[:48]
    return cleaned if cleaned and cleaned[0] not in "0123456789-" else f"_{cleaned}"
