"""A page on which a person configures a toolkit for the caller who was sent there (elicitation, mode url).

What is typed there goes from the person's browser to this host, and never through the client or its model. An address
is good for one caller and one toolkit, for a while; who knows it may configure that, and nothing else.
"""

from __future__ import annotations

import asyncio
import html
import json
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast
from urllib.parse import parse_qs

from anykit.capabilities import CapabilityError, Fault, InvalidInput, Json, JsonObject
from anykit.runtime import Session, ToolkitView
from anykit.schema import secret_pointers
from anykit.schema.documents import Document
from anykit.servers.identity import Receive, Scope, Send, Ways

from .plain import resolved, without_null

PATH: Final = "/mcp/configure"
LIFETIME: Final = 900.0
"""Seconds that an address is good."""
ADDRESSES: Final = 1000
MAX_FORM: Final = 1024 * 1024
FORM_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request came in: what its sender may be sent back to."""

    base: str
    """The URL without a path."""
    secure: bool
    """Whether a secret may travel there."""


@dataclass(eq=False)
class Address:
    """Where one caller configures one toolkit."""

    id: str
    url: str
    toolkit: str
    session: Session
    until: float
    configured: asyncio.Event = field(default_factory=asyncio.Event)


class Desk:
    """Gives out addresses, and serves the page behind them."""

    def __init__(self, ways: Ways | None = None) -> None:
        self._ways = ways or Ways()
        self._addresses: dict[str, Address] = {}

    def address(self, session: Session, toolkit: str, place: Place | None) -> Address | None:
        """Where this caller configures a toolkit; None where there is no page, or no safe way to it."""
        view = session.toolkit(toolkit)
        if place is None or view is None or (not place.secure and secret_pointers(view.schema)):
            return None
        self._forget()
        for known in self._addresses.values():
            if known.toolkit == toolkit and known.session.caller.scope == session.caller.scope:
                return known
        if len(self._addresses) >= ADDRESSES:
            return None
        id = secrets.token_urlsafe(24)
        made = Address(id, f"{place.base}{PATH}/{id}", toolkit, session, time.monotonic() + LIFETIME)
        self._addresses[id] = made
        return made

    def find(self, id: str) -> Address | None:
        """The address of that id, while it is good."""
        self._forget()
        return self._addresses.get(id)

    def leave(self, session: Session) -> None:
        """A caller is gone: its addresses are good no more."""
        for id in [id for id, one in self._addresses.items() if one.session is session]:
            del self._addresses[id]

    def _forget(self) -> None:
        now = time.monotonic()
        for id in [id for id, one in self._addresses.items() if one.until < now]:
            del self._addresses[id]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The page."""
        address = self.find(scope["path"].rpartition("/")[2])
        view = None if address is None else address.session.toolkit(address.toolkit)
        if address is None or view is None:
            await _send(send, 404, _page("Not here", "<p>This address is not good any more. Ask for a new one.</p>"))
            return
        if secret_pointers(view.schema) and not self._ways.secure(scope):
            text = "<p>This toolkit takes a secret, which travels only over TLS or on this machine.</p>"
            await _send(send, 403, _page(view.alias, text))
            return
        if scope["method"] in ("GET", "HEAD"):
            await _send(send, 200, _form_page(view, {}, []), head=scope["method"] == "HEAD")
        elif scope["method"] == "POST":
            await self._configure(address, view, receive, send)
        else:
            await _send(send, 405, _page("Not here", "<p>GET or POST.</p>"), (b"allow", b"GET, POST"))

    async def _configure(self, address: Address, view: ToolkitView, receive: Receive, send: Send) -> None:
        try:
            fields = await _fields(receive)
        except (ValueError, TimeoutError):
            await _send(send, 413, _page("Too much", "<p>The form is too large, or came too slowly.</p>"))
            return
        config, faults = _config(view.schema, fields)
        status, message = "", ""
        if not faults:
            try:
                status, message = await address.session.configure(view.name, config)
            except InvalidInput as error:
                faults = error.errors or [Fault(path="", message=error.message)]
            except CapabilityError as error:
                faults = [Fault(path="", message=error.message)]
        if faults:
            await _send(send, 422, _form_page(view, fields, faults))
            return
        self._addresses.pop(address.id, None)
        address.configured.set()
        note = "" if status == "ok" else f"<p>{html.escape(message)}</p>"
        done = f"<p>{html.escape(view.alias)} is configured. You can close this page.</p>{note}"
        await _send(send, 200, _page("Configured", done))


async def _fields(receive: Receive) -> dict[str, str]:
    """The form's fields. Raises `ValueError` where it is too large, `TimeoutError` where it comes too slowly."""
    body = bytearray()
    async with asyncio.timeout(FORM_TIMEOUT):
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise ValueError("gone")
            body += message.get("body", b"")
            if len(body) > MAX_FORM:
                raise ValueError("too large")
            if not message.get("more_body", False):
                break
    parsed = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
    return {name: values[-1] for name, values in parsed.items()}


# the form


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: str
    """`secret`, `text`, `number`, `choice`, `lines` or `json`."""
    label: str
    help: str
    required: bool
    choices: tuple[Json, ...] = ()
    default: str = ""


def _fields_of(schema: JsonObject) -> list[_Field]:
    document = Document(schema)
    root = resolved(schema, document)
    hidden = {pointer.strip("/").partition("/")[0] for pointer in secret_pointers(schema)}
    needed: object = root.get("required")
    required = cast("list[Any]", needed) if isinstance(needed, list) else []
    properties: object = root.get("properties")
    if not isinstance(properties, dict):
        return []
    return [
        _field(
            name, cast(JsonObject, part) if isinstance(part, dict) else {}, document, name in required, name in hidden
        )
        for name, part in cast("dict[str, object]", properties).items()
    ]


def _field(name: str, schema: JsonObject, document: Document, required: bool, secret: bool) -> _Field:
    part = without_null(resolved(schema, document), document)
    kind: object = part.get("type")
    values: object = part.get("enum")
    choices: tuple[Json, ...] = tuple(cast("list[Any]", values)) if isinstance(values, list) else ()
    items: object = part.get("items")
    if kind == "boolean":
        choices = (True, False)
    if choices:
        shown = "choice"
    elif kind == "string":
        shown = "secret" if secret else "text"
    elif kind in ("integer", "number"):
        shown = "number"
    elif kind == "array" and not secret and isinstance(items, dict) and cast(JsonObject, items).get("type") == "string":
        shown = "lines"
    else:
        shown = "json"
    default: Json = part.get("default")
    text = "" if secret or default is None else _as_text(default, shown)
    label = part.get("title") if isinstance(part.get("title"), str) else name
    said: object = part.get("description")
    return _Field(name, shown, str(label), said if isinstance(said, str) else "", required, choices, text)


def _as_text(value: Json, kind: str) -> str:
    if kind == "lines" and isinstance(value, list):
        return "\n".join(str(one) for one in cast("list[Any]", value))
    return value if isinstance(value, str) and kind == "text" else json.dumps(value)


def _config(schema: JsonObject, fields: Mapping[str, str]) -> tuple[JsonObject, list[Fault]]:
    """What was typed as a configuration; an empty field is one that is not given."""
    config: JsonObject = {}
    faults: list[Fault] = []
    for one in _fields_of(schema):
        text = fields.get(one.name, "")
        if not text.strip():
            continue
        match one.kind:
            case "lines":
                config[one.name] = [line.strip() for line in text.splitlines() if line.strip()]
            case "text" | "secret":
                config[one.name] = text
            case _:
                try:
                    config[one.name] = json.loads(text)
                except (ValueError, RecursionError):
                    faults.append(
                        {"path": f"/{one.name}", "message": f"is no {'number' if one.kind == 'number' else 'JSON'}"}
                    )
    return config, faults


def _form_page(view: ToolkitView, given: Mapping[str, str], faults: list[Fault]) -> bytes:
    wrong = {fault["path"].strip("/").partition("/")[0]: fault["message"] for fault in faults}
    rows = "".join(_row(one, given, wrong) for one in _fields_of(view.schema))
    listed = "".join(f"<li>{html.escape(' '.join((fault['path'], fault['message'])).strip())}</li>" for fault in faults)
    summary = f'<div role="alert"><p>It could not be configured:</p><ul>{listed}</ul></div>' if faults else ""
    about = f"<p>{html.escape(view.description)}</p>" if view.description else ""
    form = f'<form method="post">{rows}<p><button type="submit">Configure</button></p></form>'
    return _page(f"Configure {view.alias}", about + summary + form)


def _row(one: _Field, given: Mapping[str, str], wrong: Mapping[str, str]) -> str:
    name = html.escape(one.name, quote=True)
    value = "" if one.kind == "secret" else given.get(one.name, one.default)
    described = f' aria-describedby="{name}-help"' if one.help or one.name in wrong else ""
    invalid = ' aria-invalid="true"' if one.name in wrong else ""
    attributes = f'id="{name}" name="{name}"{described}{invalid}{" required" if one.required else ""}'
    shown = html.escape(value, quote=True)
    match one.kind:
        case "secret":
            control = f'<input type="password" autocomplete="new-password" {attributes}>'
        case "choice":
            options = "".join(_option(choice, value) for choice in one.choices)
            control = f'<select {attributes}><option value=""></option>{options}</select>'
        case "lines" | "json":
            control = f'<textarea rows="4" {attributes}>{html.escape(value)}</textarea>'
        case _:
            control = f'<input type="text" value="{shown}" {attributes}>'
    notes = " ".join(part for part in (one.help, wrong.get(one.name, "")) if part)
    help = f'<br><small id="{name}-help">{html.escape(notes)}</small>' if notes else ""
    return f'<p><label for="{name}">{html.escape(one.label)}</label><br>{control}{help}</p>'


def _option(choice: Json, chosen: str) -> str:
    text = json.dumps(choice)
    selected = " selected" if text == chosen else ""
    shown = choice if isinstance(choice, str) else text
    return f'<option value="{html.escape(text, quote=True)}"{selected}>{html.escape(str(shown))}</option>'


def _page(title: str, body: str) -> bytes:
    said = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{said}</title>'
        f'<meta name="viewport" content="width=device-width"></head><body><main><h1>{said}</h1>{body}</main></body></html>'
    ).encode()


async def _send(send: Send, status: int, body: bytes, *extra: tuple[bytes, bytes], head: bool = False) -> None:
    headers = [
        (b"content-type", b"text/html; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (
            b"content-security-policy",
            b"default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
        ),
        *extra,
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})
