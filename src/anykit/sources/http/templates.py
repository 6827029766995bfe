"""Texts with `{placeholders}`: what stands around them is the operator's, what goes in is an argument and stays one.

A value in a path is one opaque segment, whatever is in it; one in a query is one value. A placeholder in front of the path
would let whoever fills it choose where the request goes, and is refused when the template is read.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote, urlsplit

from anykit.capabilities import InvalidInput, Json
from anykit.tools import to_json

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NO_SEGMENT = frozenset({"", ".", ".."})
_RESERVED = re.compile(r"[^A-Za-z0-9._~-]")
_NOT_IN_A_HEADER = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_SAFE = "!$&'()*+,-./:;=?@_~%"
"""Characters of a URL that the operator wrote and that stay as they are."""
MAX_SEGMENT = 16 * 1024
"""Characters of one value in a URL."""


class TemplateError(ValueError):
    """A template that cannot be used; the text says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Template:
    """A text in pieces: literals at even places, names of placeholders at odd ones."""

    pieces: tuple[str, ...]
    only: str | None = field(init=False, compare=False, repr=False)
    """The placeholder's name where the text is nothing else."""

    def __post_init__(self) -> None:
        alone = len(self.pieces) == 3 and not self.pieces[0] and not self.pieces[2]
        object.__setattr__(self, "only", self.pieces[1] if alone else None)

    @property
    def names(self) -> tuple[str, ...]:
        """Every placeholder once, in order."""
        return tuple(dict.fromkeys(self.pieces[1::2]))

    def mapped(self, change: Callable[[str], str]) -> Template:
        """The same with every literal changed."""
        return Template(tuple(piece if at % 2 else change(piece) for at, piece in enumerate(self.pieces)))

    def filled(self, values: Mapping[str, Json], write: Callable[[Json, str], str]) -> str:
        """The text with `write(value, name)` for each placeholder. Raises `InvalidInput` for one without a value."""
        pieces = self.pieces
        text = pieces[0]
        for at in range(1, len(pieces), 2):
            name = pieces[at]
            if name not in values:
                raise _refused(name, "it is needed and was not given")
            text += write(values[name], name) + pieces[at + 1]
        return text


@functools.lru_cache(512)
def template(text: str) -> Template:
    """Read a text. Raises `TemplateError` for a brace without its other half or a name that is none."""
    pieces = _PLACEHOLDER.split(text)
    for literal in pieces[::2]:
        if "{" in literal or "}" in literal:
            raise TemplateError(f"{_shown(text)}: a brace stands alone; write {{name}}, and %7B or %7D for a plain one")
    _check_names(text)
    return Template(tuple(pieces))


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A URL in pieces: `head` is scheme and host, `path` and `query` may have placeholders."""

    head: str
    path: Template
    query: Template | None

    @property
    def names(self) -> tuple[str, ...]:
        """Every placeholder once, in order."""
        return tuple(dict.fromkeys((*self.path.names, *(self.query.names if self.query else ()))))

    def filled(self, values: Mapping[str, Json]) -> str:
        """The URL as it is sent. Raises `InvalidInput` for a value that no path segment can be."""
        url = self.head + self.path.filled(values, segment)
        return url if self.query is None else f"{url}?{self.query.filled(values, query_value)}"


@functools.lru_cache(512)
def url_template(text: str) -> UrlTemplate:
    """Read a URL. Raises `TemplateError`, also for a placeholder that stands before the path or in the fragment.

    What the operator wrote stays as it is; only what no URL can hold (spaces, non-ASCII characters) is percent-encoded.
    """
    _check_names(text)
    found = re.fullmatch(r"([A-Za-z][A-Za-z0-9+.-]*://[^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#(.*))?", text, re.DOTALL)
    if found is None:
        if re.match(r"[^/?#]*\{", text) and "://" not in text.partition("{")[0]:
            raise TemplateError(
                f"{_shown(text)}: a placeholder stands where scheme and host belong; they must be written out"
            )
        raise TemplateError(f"{_shown(text)}: not a URL with scheme and host, such as https://api.example.com/items")
    head, path, query, fragment = found[1], found[2], found[3], found[4]
    if "{" in head or "}" in head:
        raise TemplateError(
            f"{_shown(text)}: a placeholder may not stand in the host, its port or the user: whoever fills it would choose"
            " where the request goes; write the host out, or make one endpoint for each host"
        )
    if fragment and "{" in fragment:
        raise TemplateError(f"{_shown(text)}: what stands behind '#' is never sent; a placeholder there has no use")
    scheme = head.partition(":")[0].lower()
    if scheme not in ("http", "https"):
        raise TemplateError(f"{_shown(text)}: only http and https can be called, not {scheme}")
    return UrlTemplate(
        _head(head, text),
        template(path or "/").mapped(_kept),
        None if query is None else template(query).mapped(_kept),
    )


def filled(text: str, values: Mapping[str, Json]) -> str:
    """`text` (a URL or the path of one) with each `{name}` filled: in the path one opaque segment, in the query one value.

    Raises `TemplateError` for a text that is no template, `InvalidInput` for a value that is none.
    """
    if "://" in text.partition("?")[0]:
        return url_template(text).filled(values)
    path, mark, query = text.partition("?")
    written = template(path).mapped(_kept).filled(values, segment)
    return f"{written}?{template(query).mapped(_kept).filled(values, query_value)}" if mark else written


def segment(value: Json, name: str) -> str:
    """A value as one opaque path segment: `/`, `?`, `#`, `%` and all else but letters, digits and `-._~` is encoded.

    Raises `InvalidInput` for what is no scalar, and for "", "." and "..", which name another place than they seem to.
    """
    text = value if isinstance(value, str) else scalar_text(value, name)
    if text in _NO_SEGMENT:
        what = "an empty value" if not text else repr(text)
        raise _refused(name, f"{what} cannot be a segment of a path")
    return _encoded(text, name)


def query_value(value: Json, name: str) -> str:
    """A value as a part of a query: everything but letters, digits and `-._~` is encoded."""
    return _encoded(scalar_text(value, name), name)


def header_value(value: Json, name: str) -> str:
    """A value as a part of a header. Raises `InvalidInput` for line breaks and other control characters."""
    text = scalar_text(value, name)
    if _NOT_IN_A_HEADER.search(text):
        raise _refused(name, "a header cannot hold line breaks or other control characters")
    _check_text(text, name)
    return text


def scalar_text(value: Json, name: str) -> str:
    """A scalar as text: booleans as `true` and `false`, numbers as JSON writes them. Raises `InvalidInput` for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return to_json(value)
    what = "null" if value is None else "a list" if isinstance(value, list) else "an object"
    raise _refused(name, f"a text, a number or a boolean is needed here, not {what}")


def body_text(value: Json, name: str) -> str:
    """A value as a part of a text: scalars as they are, null as nothing, the rest as JSON."""
    if value is None:
        return ""
    return to_json(cast(Json, value)) if isinstance(value, dict | list) else scalar_text(value, name)


def _check_names(text: str) -> None:
    for name in _PLACEHOLDER.findall(text):
        if not _NAME.fullmatch(name):
            raise TemplateError(
                f"{_shown(text)}: {{{name[:100]}}} is no placeholder; write {{name}} with letters, digits, '_', '-' and '.'"
            )


def _encoded(text: str, name: str) -> str:
    if len(text) > MAX_SEGMENT:
        raise _refused(name, f"at most {MAX_SEGMENT} characters fit into a URL")
    try:
        return percent_encoded(text)
    except UnicodeEncodeError:
        raise _refused(name, "it is no text: it has a lone surrogate") from None


def percent_encoded(text: str) -> str:
    """Everything but letters, digits and `-._~` encoded (RFC 3986 2.3). Raises `UnicodeEncodeError`."""
    # Most values are ASCII, and `quote` takes several times as long for them.
    return _RESERVED.sub(_as_hex, text) if text.isascii() else quote(text, safe="")


def _as_hex(character: re.Match[str]) -> str:
    return f"%{ord(character[0]):02X}"


def _check_text(text: str, name: str) -> None:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise _refused(name, "it is no text: it has a lone surrogate") from None


def _refused(name: str, why: str) -> InvalidInput:
    return InvalidInput(f"{name}: {why}", [{"path": f"/{name.replace('~', '~0').replace('/', '~1')}", "message": why}])


def _kept(literal: str) -> str:
    return quote(literal, safe=_SAFE)


def _head(head: str, text: str) -> str:
    scheme, _, netloc = head.partition("://")
    if not netloc.isascii():
        user, at, host = netloc.rpartition("@")
        try:
            netloc = f"{user}{at}{host.encode('idna').decode()}"
        except UnicodeError:
            raise TemplateError(f"{_shown(text)}: {host!r} is no host") from None
    try:
        parts = urlsplit(f"{scheme.lower()}://{netloc}")
        if not parts.hostname or parts.port == 0 or re.search(r"[\x00-\x20\x7f\\]", netloc):
            raise ValueError
    except ValueError:
        raise TemplateError(f"{_shown(text)}: {netloc.rpartition('@')[2]!r} is no host") from None
    return f"{scheme.lower()}://{netloc}"


def _shown(text: str) -> str:
    """A template fit for an error: without user, password and query, which may hold a secret."""
    return re.sub(r"//[^/?#@]*@", "//", text).partition("?")[0][:200] or "the template"
