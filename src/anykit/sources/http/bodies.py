"""Bodies of requests as bytes, with the content type that says what they are."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote_plus

from anykit.capabilities import Json
from anykit.tools import to_json

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a multipart body; a file where it has a `filename`."""

    name: str
    content: bytes = field(repr=False)
    filename: str | None = None
    content_type: str | None = None


@dataclass(frozen=True, slots=True)
class Multipart:
    """A `multipart/form-data` body (RFC 7578); parts may share a name."""

    parts: tuple[Part, ...] = field(repr=False)

    def encoded(self) -> tuple[str, bytes]:
        """Its content type and its bytes, around a boundary that is in no part."""
        boundary = secrets.token_hex(16)
        while any(boundary.encode() in part.content for part in self.parts):
            boundary = secrets.token_hex(16)
        pieces: list[bytes] = []
        for part in self.parts:
            disposition = f'form-data; name="{_escaped(part.name)}"'
            if part.filename is not None:
                disposition += f'; filename="{_escaped(part.filename)}"'
            kind = part.content_type or ("application/octet-stream" if part.filename is not None else None)
            head = f"--{boundary}\r\nContent-Disposition: {disposition}\r\n"
            if kind is not None:
                head += f"Content-Type: {re.sub(r'[^ -~]', '', kind)}\r\n"
            pieces += [head.encode(), b"\r\n", part.content, b"\r\n"]
        pieces.append(f"--{boundary}--\r\n".encode())
        return f"multipart/form-data; boundary={boundary}", b"".join(pieces)


def json_body(value: Json) -> bytes:
    """A JSON value, compact, non-ASCII characters as they are."""
    return to_json(value).encode()


def form_body(pairs: Iterable[tuple[str, str]]) -> bytes:
    """Names and values as a form writes them (WHATWG URL, application/x-www-form-urlencoded); a name may come again."""
    return "&".join(f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs).encode()


def texts(value: Json) -> Sequence[str]:
    """What a form or a query has for a value: one text a list item, none for null; an object as JSON."""
    if value is None:
        return ()
    if isinstance(value, list):
        return [text for item in cast("list[Json]", value) for text in _item_texts(item)]
    return (value if isinstance(value, str) else to_json(value),)


def _item_texts(item: Json) -> Sequence[str]:
    return (to_json(item),) if isinstance(item, list) else texts(item)


def _escaped(text: str) -> str:
    """A name between quotes (WHATWG HTML, multipart/form-data encoding)."""
    return text.replace("\r", "%0D").replace("\n", "%0A").replace('"', "%22")
