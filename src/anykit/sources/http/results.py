"""What a server answered, as the result of a tool: JSON as a value, text as text, the rest as parts, all of it bounded."""

from __future__ import annotations

import codecs
import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from typing import Any, Literal, TypeAlias, cast
from urllib.parse import unquote, urljoin

from pydantic_core import from_json

from anykit.capabilities import (
    AudioPart,
    BlobPart,
    ContentPart,
    ExecutionFailed,
    ImagePart,
    InvocableResult,
    Json,
)
from anykit.capabilities.outcomes import INVALID_OUTPUT
from anykit.tools import jsonable, result_of, to_json
from anykit.tools.errors import UnsendableResult
from anykit.transports import public_url
from anykit.transports.http_client import media_type

from .secrecy import Secrets

ResultKind: TypeAlias = Literal["auto", "text", "json", "status", "binary"]
"""`auto` goes by the content type; `status` is the status beside the text."""
EXCERPT = 1000
"""Characters of a failing answer that its error quotes."""
_NOTE = 200
"""Bytes that the line about what was cut may take."""

_JSON = re.compile(r"(application|text)/(.*\+)?json|application/json5?(-seq)?")
_TEXT = re.compile(
    r"text/.*|image/svg\+xml|multipart/.*|message/.*"
    r"|application/(.*[+/.-])?(json|xml|javascript|ecmascript|yaml|toml|sql|graphql|ndjson|jsonl|x-sh|x-www-form-urlencoded)"
)
_HTML = frozenset({"text/html", "application/xhtml+xml"})
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_NO_TEXT = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7", "mbcs", "oem"})
"""What Python calls an encoding and nobody's answer is written in."""
_SHOWN = ("content-type", "content-length", "last-modified", "etag", "location", "allow", "retry-after")
"""Headers that the answer to a HEAD or OPTIONS is asked for."""


@dataclass(frozen=True, slots=True)
class Received:
    """An answer with as much of its body as was kept."""

    method: str
    url: str = field(repr=False)
    """Where it came from in the end."""
    status: int
    headers: Mapping[str, str] = field(repr=False)
    """Names in lower case."""
    body: bytes = field(repr=False)
    whole: bool
    """False where the body had more than was kept."""
    secrets: Secrets = field(repr=False)

    @property
    def where(self) -> str:
        """The URL fit for an error."""
        return self.secrets.masked(public_url(self.url))

    @property
    def content_type(self) -> str:
        """The media type without parameters, in lower case."""
        return media_type(self.headers)

    @property
    def phrase(self) -> str:
        """The status in words: `404 Not Found`."""
        try:
            return f"{self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            return str(self.status)

    @property
    def size(self) -> int | None:
        """Bytes of the whole body, where known."""
        if self.whole:
            return len(self.body)
        length = self.headers.get("content-length", "")
        return int(length) if length.isdigit() and "content-encoding" not in self.headers else None

    def text(self) -> str:
        """The body as text, in the charset that it is written in, without credentials."""
        return self.secrets.masked(decoded(self.body, self.headers.get("content-type", "")))


def shaped(received: Received, kind: ResultKind = "auto") -> InvocableResult:
    """The result of a 2xx answer. Raises `ExecutionFailed` where it is not what was asked for, or too large for it."""
    if kind == "auto":
        return _auto(received)
    if kind == "status":
        return _with_status(received)
    if kind == "binary":
        return _parts(received)
    return _json(received) if kind == "json" else _text(received)


def failure(received: Received, *, retryable: bool) -> ExecutionFailed:
    """The failure that an answer with another status is: its status and a short excerpt, without credentials."""
    said = excerpt(received)
    location = received.headers.get("location", "") if 300 <= received.status < 400 else ""
    if location:
        target = received.secrets.masked(public_url(urljoin(received.url, location)))
        said = f"a redirect to {target} that is not followed"
    detail: dict[str, Any] = {"status": received.status, "content_type": received.content_type, "body": said}
    after = received.headers.get("retry-after")
    if after is not None:
        detail["retry_after"] = after[:100]
    text = f"{received.method} {received.where} answered {received.phrase}"
    return ExecutionFailed(
        f"{text}: {said}" if said else text,
        # Refused for being too many, it was not carried out (RFC 6585 4).
        retryable=retryable or received.status == HTTPStatus.TOO_MANY_REQUESTS,
        detail=detail,
    )


def excerpt(received: Received) -> str:
    """A short, readable text of what a server said: HTML without its markup, one line, no credentials."""
    kind = received.content_type
    if not received.body:
        return ""
    if kind and not _TEXT.fullmatch(kind):
        return f"{len(received.body)}{'' if received.whole else ' or more'} bytes of {kind[:100]}"
    # Masked before it is cut, so that no half of a secret is left.
    text = received.secrets.masked(decoded(received.body[: 64 * 1024], received.headers.get("content-type", "")))
    if kind in _HTML or re.match(r"\s{0,100}<(!doctype|html)\b", text, re.IGNORECASE):
        text = boiled(text[: 32 * 1024])
    text = "".join(c if c.isprintable() else " " for c in text[: 8 * EXCERPT])
    text = received.secrets.masked(re.sub(r" {2,}", " ", text).strip())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]}..."


def boiled(page: str) -> str:
    """The words of an HTML page. In time that grows with its length, however it is written."""
    page = re.sub(r"<(script|style|head(?!er)|svg|noscript)\b", "\x00<\\1", page, flags=re.IGNORECASE)
    title = re.search(r"<title[^<>]{0,200}>([^<]{0,300})", page, re.IGNORECASE)
    kept: list[str] = []
    for at, piece in enumerate(page.split("\x00")):
        if at == 0:
            kept.append(piece)
            continue
        name = re.match(r"<(\w+)", piece)
        end = piece.lower().find(f"</{name[1].lower()}", 1) if name else -1
        kept.append(piece[end:] if end >= 0 else "")
    text = re.sub(r"<[^<>]{0,2000}>", " ", "".join(kept))
    words = html.unescape(text).split()
    head = html.unescape(title[1]).split() if title else []
    if head and words[: len(head)] != head:
        words = [*head, "-", *words] if words else head
    return " ".join(words)


def decoded(data: bytes, content_type: str) -> str:
    """Bytes as text: by their first bytes, by the charset of their content type, else as UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.decode(encoding, "replace")
    named = re.search(r"""charset\s*=\s*["']?([a-zA-Z0-9_.:-]{1,40})""", content_type[:500], re.IGNORECASE)
    encoding = _known(named[1]) if named else None
    return data.decode(encoding or "utf-8", "replace")


def file_name(headers: Mapping[str, str]) -> str | None:
    """What a server calls a file (`content-disposition`), without any path; None where it says nothing."""
    said = headers.get("content-disposition", "")[:1000]
    if not said:
        return None
    message = Message()
    message["content-disposition"] = re.sub(r"[\x00-\x1f\x7f]", "", said)
    found = message.get_filename()
    name = "" if found is None else re.split(r"[\\/]", unquote(found))[-1]
    name = "".join(c for c in name if c.isprintable()).strip(" .")[:200]
    return name or None


def _auto(received: Received) -> InvocableResult:
    kind = received.content_type
    if received.whole and received.body and (kind == "application/json" or _JSON.fullmatch(kind)):
        try:
            return _json(received)
        except ExecutionFailed:
            return _text(received)  # it says JSON and is none: what it is can be read
    if received.method in ("HEAD", "OPTIONS") and not received.body:
        return result_of(_head(received))
    if not received.body and not _TEXT.fullmatch(kind):
        return InvocableResult(text="", metadata={"status": received.status})
    if kind.startswith(("image/", "audio/")) and not _TEXT.fullmatch(kind):
        return _parts(received)
    if _TEXT.fullmatch(kind) or (not kind and _is_text(received.body)):
        return _text(received)
    return _parts(received)


def _json(received: Received) -> InvocableResult:
    if not received.whole:
        raise _too_large(received, "JSON")
    try:
        value: Json = from_json(received.secrets.masked(_json_text(received)), allow_inf_nan=False)
        text = value if isinstance(value, str) else to_json(value)
        if "Infinity" in text:  # what a number such as 1e999 becomes
            jsonable(value)
    except (ValueError, UnsendableResult) as error:
        raise ExecutionFailed(
            f"{received.method} {received.where} did not answer with JSON ({received.secrets.masked(str(error))[:200]}):"
            f" {excerpt(received) or 'no body'}",
            code=INVALID_OUTPUT,
            detail={"status": received.status, "content_type": received.content_type},
        ) from None
    return InvocableResult(text=text, structured=value)


def _json_text(received: Received) -> str:
    """UTF-8, or what the content type or the first bytes say."""
    data = received.body
    said = received.headers.get("content-type", "")
    if "charset" in said and "utf-8" not in said.lower():
        return decoded(data, said)
    return data.decode("utf-8" if b"\x00" not in data[:4] else json.detect_encoding(data)).removeprefix("\ufeff")


def _text(received: Received) -> InvocableResult:
    text = received.text()
    if received.whole:
        return InvocableResult(text=text, structured=text)
    total = received.size
    limit = len(received.body) - _NOTE
    shown = text.encode()[:limit].decode(errors="ignore")
    of = f"{total} bytes" if total is not None else f"more than {len(received.body)} bytes"
    text = f"{shown}\n[cut: {len(shown.encode())} bytes of {of} shown]"
    truncated: Json = {"shown_bytes": len(shown.encode()), "total_bytes": total}
    return InvocableResult(text=text, structured=text, metadata={"truncated": truncated})


def _with_status(received: Received) -> InvocableResult:
    if not received.body and received.method in ("HEAD", "OPTIONS"):
        value = _head(received)
        return InvocableResult(text=to_json(value), structured=value)
    if received.content_type and not _TEXT.fullmatch(received.content_type) and received.body:
        text = f"[{len(received.body)}{'' if received.whole else ' or more'} bytes of {received.content_type[:100]}]"
    else:
        text = _text(received).text or ""
    value = {"status": received.status, "text": text}
    return InvocableResult(
        text=f"HTTP {received.phrase}\n{text}" if text else f"HTTP {received.phrase}", structured=value
    )


def _head(received: Received) -> dict[str, Json]:
    shown = {
        name: received.secrets.masked(received.headers[name][:1000]) for name in _SHOWN if name in received.headers
    }
    return {"status": received.status, "headers": cast("dict[str, Json]", shown)}


def _parts(received: Received) -> InvocableResult:
    if not received.whole:
        raise _too_large(received, received.content_type or "a file")
    kind = received.content_type or "application/octet-stream"
    part: ContentPart
    if kind.startswith("image/") and kind != "image/svg+xml":
        part = ImagePart(data=received.body, media_type=kind)
    elif kind.startswith("audio/"):
        part = AudioPart(data=received.body, media_type=kind)
    else:
        part = BlobPart(data=received.body, media_type=kind, name=file_name(received.headers))
    return InvocableResult(content=(part,), metadata={"status": received.status})


def _too_large(received: Received, what: str) -> ExecutionFailed:
    total = received.size
    size = f"{total} bytes" if total is not None else f"more than {len(received.body)} bytes"
    return ExecutionFailed(
        f"{received.method} {received.where} answered with {size} of {what}, and at most {len(received.body)} are taken;"
        " ask for less, or raise `max_bytes`",
        code="too_large",
        detail={"status": received.status, "content_type": received.content_type, "limit": len(received.body)},
    )


def _is_text(data: bytes) -> bool:
    if b"\x00" in data[:4096]:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _known(name: str) -> str | None:
    """Python's name of an encoding; None for one that is unknown or no encoding of text."""
    try:
        found = codecs.lookup(name).name
        b"aa".decode(found, "replace")  # raises for what turns bytes into bytes
    except (LookupError, ValueError):
        return None
    if found.replace("_", "-") in _NO_TEXT:
        return None
    return "cp1252" if found in ("iso8859-1", "ascii") else found  # as browsers read it (WHATWG Encoding)
