"""One endpoint, read once: its schema, its hints, and how its requests are made of arguments."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote

from anykit.capabilities import Annotations, InvalidInput, Json, JsonObject
from anykit.schema import SchemaError, compile_schema
from anykit.tools import ToolSpec
from anykit.transports import public_url

from .bodies import Multipart, texts
from .exchange import IDEMPOTENT, Headers, HttpRequest, Limits
from .expressions import Expression, Missing, Reader, evaluated, names_in
from .options import EndpointOptions
from .payloads import Payload, payload
from .results import ResultKind
from .secrecy import Secrets, credentials, is_telling
from .templates import Template, TemplateError, UrlTemplate, header_value, percent_encoded, url_template

KIND = "http"
_METHOD = re.compile(r"[A-Za-z]{1,32}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NOT_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"})
_TYPES = frozenset({"string", "integer", "number", "boolean", "array", "object"})
_READ = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_WITHOUT_BODY = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "DELETE"})
_RESULTS = frozenset({"auto", "text", "json", "status", "binary"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """What a tool of one endpoint needs to make and send its requests."""

    spec: ToolSpec
    method: str
    url: UrlTemplate = field(repr=False)
    query: tuple[tuple[str, Expression], ...] = field(repr=False)
    """Names as they are sent, and values."""
    headers: tuple[tuple[str, Template], ...] = field(repr=False)
    body: Payload | None
    leftover_in_query: bool
    placed: frozenset[str]
    """Arguments that have a place; the others are left over, for the body or the query."""
    defaults: JsonObject
    result: ResultKind
    idempotent: bool
    limits: Limits | None
    secrets: tuple[str, ...] = field(repr=False)
    fixed_headers: Headers | None = field(repr=False)
    """The headers, where no argument is in them."""

    def request(self, arguments: Mapping[str, Json]) -> HttpRequest:
        """The request of a call. Raises `InvalidInput` for a value that its place cannot take."""
        values = {**self.defaults, **arguments} if self.defaults else arguments
        url = self.url.filled(values)
        rest: Mapping[str, Json] = {}
        if self.leftover_in_query or (self.body is not None and self.body.of_the_rest):
            rest = {name: value for name, value in values.items() if name not in self.placed}
        if self.query or (self.leftover_in_query and rest):
            url = self._with_query(url, values, rest)
        headers = self.fixed_headers if self.fixed_headers is not None else self._headers(values)
        body: bytes | Multipart | None = None
        if self.body is not None:
            made = self.body.made(values, rest)
            if isinstance(made, tuple):
                kind, body = made
                if not any(name == "content-type" for name, _ in headers):
                    headers = (*headers, ("content-type", kind))
            else:
                body = made
        return HttpRequest(self.method, url, headers, body, self.idempotent, self.secrets)

    def _with_query(self, url: str, values: Mapping[str, Json], rest: Mapping[str, Json]) -> str:
        pairs: list[str] = []
        name = ""
        try:
            for name, expression in self.query:
                value = evaluated(expression, values)
                if isinstance(value, str):
                    pairs.append(f"{name}={percent_encoded(value)}")
                elif not isinstance(value, Missing):
                    pairs += [f"{name}={percent_encoded(text)}" for text in texts(value)]
            if self.leftover_in_query:
                for name, value in rest.items():
                    pairs += [f"{percent_encoded(name)}={percent_encoded(text)}" for text in texts(value)]
        except UnicodeEncodeError:
            raise InvalidInput(f"{name!a}: it is no text: it has a lone surrogate") from None
        return f"{url}{'&' if '?' in url else '?'}{'&'.join(pairs)}" if pairs else url

    def _headers(self, values: Mapping[str, Json]) -> Headers:
        return tuple(
            (name, text.filled(values, header_value))
            for name, text in self.headers
            if all(values.get(each) is not None for each in text.names)
        )


def shown_url(url: UrlTemplate, secrets: Sequence[str]) -> str:
    """A URL with its placeholders, fit to be shown."""
    path = "".join(f"{{{piece}}}" if at % 2 else piece for at, piece in enumerate(url.path.pieces))
    return Secrets(secrets).masked(public_url(url.head + path))


def endpoint(
    options: EndpointOptions,
    *,
    env: Mapping[str, str] | None = None,
    folder: str | os.PathLike[str] = ".",
    source: str = "",
) -> Endpoint:
    """Read what an operator says. Raises `TemplateError` or `UnresolvedReference` with what is wrong and the fix."""
    reader = Reader(env, folder)
    method = options.method.upper()
    if not _METHOD.fullmatch(method) or method == "CONNECT":
        raise TemplateError(f"method: {options.method[:32]!r} is none that can be sent")
    result = "status" if cast(str, options.result) == "status+text" else options.result
    if result not in _RESULTS:
        raise TemplateError(f"result: {str(result)[:32]!r} is none of {', '.join(sorted(_RESULTS))}")
    url = _url(options.url, reader)
    headers = _headers(options, reader)
    query = tuple((name, reader.value(value, f"/query/{name}")) for name, value in options.query.items())
    body = payload(options.body, reader)
    needed = dict.fromkeys(url.path.names)
    placed = dict.fromkeys(
        (
            *url.names,
            *(name for _, value in query for name in names_in(value)),
            *(name for _, text in headers for name in text.names),
            *(body.names if body is not None else ()),
        )
    )
    schema, defaults = _schema(options, list(placed), set(url.names), set(needed))
    leftover = [name for name in _properties(schema) if name not in placed]
    open_ended = options.input_schema is not None and schema.get("additionalProperties", True) is not False
    if body is None and (leftover or open_ended) and method not in _WITHOUT_BODY:
        body = Payload("json")
    to_query = bool(leftover or open_ended) and (body is None or not body.of_the_rest)
    fixed: list[tuple[str, str]] = [(name, text.pieces[0]) for name, text in headers if not text.names]
    secrets = tuple(
        dict.fromkeys(
            (
                *reader.secrets,
                *credentials(fixed),
                *(
                    value.pieces[0]
                    for name, value in query
                    if is_telling(name) and isinstance(value, Template) and not value.names
                ),
            )
        )
    )
    idempotent = method in IDEMPOTENT if options.idempotent is None else options.idempotent
    read_only = method in _READ if options.read_only is None else options.read_only
    destructive = method == "DELETE" if options.destructive is None else options.destructive
    spec = ToolSpec(
        name=options.name,
        description=options.description or f"{method} {shown_url(url, secrets)}",
        input_schema=schema,
        metadata={"method": method},
        annotations=Annotations(
            title=options.title,
            read_only=read_only,
            destructive=False if read_only else destructive,
            idempotent=idempotent or read_only,
            open_world=True,
        ),
        output_schema=options.output_schema,
        title=options.title,
        tags=tuple(options.tags),
        kind=KIND,
        source=source or options.name,
        timeout=options.timeout,
    )
    limits = Limits(options.timeout, options.retries, None if options.allow_redirects else 0, options.max_bytes)
    return Endpoint(
        spec=spec,
        method=method,
        url=url,
        query=tuple((percent_encoded(name), value) for name, value in query),
        headers=headers,
        body=body,
        leftover_in_query=to_query,
        placed=frozenset(placed),
        defaults=defaults,
        result=result,
        idempotent=idempotent,
        limits=None if limits == Limits() else limits,
        secrets=secrets,
        fixed_headers=tuple(fixed) if len(fixed) == len(headers) else None,
    )


def _url(text: str, reader: Reader) -> UrlTemplate:
    """The URL with its references resolved; what they hold is no template."""
    read = reader.text(text, "/url", secret=False, strict=True)
    known = Reader(reader.env, reader.folder)
    known.text(text, "/url")
    # In path and query a reference may be a key (https://api.example/bot${TOKEN}/send); an address is none.
    head = re.match(r"[^:/?#]*://[^/?#]*", read.pieces[0])
    reader.secrets += [one for one in known.secrets if "://" not in one and (head is None or one not in head[0])]
    if (user := re.search(r"//[^/?#]*?:([^/?#]*)@", read.pieces[0])) is not None:
        reader.secrets += [user[1], unquote(user[1])]
    return url_template(
        "".join(
            f"{{{piece}}}" if at % 2 else piece.replace("{", "%7B").replace("}", "%7D")
            for at, piece in enumerate(read.pieces)
        )
    )


def _headers(options: EndpointOptions, reader: Reader) -> tuple[tuple[str, Template], ...]:
    headers: dict[str, Template] = {}
    for name, value in options.headers.items():
        if not _HEADER.fullmatch(name):
            raise TemplateError(f"headers: {name[:64]!r} is no name of a header")
        if name.lower() in _NOT_OURS:
            raise TemplateError(f"headers: {name!r} is set by the connection itself; leave it out")
        text = reader.text(value, f"/headers/{name}")
        for piece in text.pieces[::2]:
            if re.search(r"[\x00-\x08\x0a-\x1f\x7f]", piece):
                raise TemplateError(f"headers: {name!r} holds a line break or another control character")
        headers[name.lower()] = text
    credential: str | None = None
    if options.bearer is not None:
        credential = f"Bearer {reader.plain(options.bearer, '/auth/bearer')}"
    elif options.basic is not None:
        pair = reader.plain(options.basic, "/auth/basic")
        if ":" not in pair:
            raise TemplateError("auth: basic is user:password")
        reader.secrets.append(pair.partition(":")[2])
        credential = f"Basic {base64.b64encode(pair.encode()).decode()}"
    if credential is not None:
        if re.search(r"[\x00-\x1f\x7f]", credential):
            raise TemplateError("auth: the credential holds a line break or another control character")
        headers.setdefault("authorization", Template((credential,)))
    return tuple(headers.items())


def _schema(
    options: EndpointOptions, placed: Sequence[str], in_url: set[str], in_path: set[str]
) -> tuple[JsonObject, JsonObject]:
    """The schema of the arguments, and the defaults of those that may be left out."""
    if options.input_schema is not None:
        if options.parameters:
            raise TemplateError("write either parameters or input_schema, not both")
        schema: JsonObject = options.input_schema
        if schema.get("type", "object") != "object":
            raise TemplateError("input_schema: its root must describe an object")
        schema = {"type": "object", **schema}
        known = _properties(schema)
        for name in placed:
            if name not in known and schema.get("additionalProperties", True) is False:
                raise TemplateError(f"{{{name}}} is used, but input_schema has no property {name!r}")
        required: Sequence[str] = [str(name) for name in cast("list[Json]", schema.get("required") or [])]
        missing = [name for name in placed if name in in_path and name not in required]
        if missing:
            schema = {**schema, "required": [*required, *missing]}
        if any(name not in known for name in placed):
            schema = {**schema, "properties": {**known, **{n: {"type": "string"} for n in placed if n not in known}}}
    else:
        properties: JsonObject = {}
        needed: list[Json] = []
        for name in dict.fromkeys((*placed, *options.parameters)):
            described, is_needed = _parameter(name, options.parameters.get(name, {"type": "string"}))
            if name in in_path and not is_needed and "default" not in described:
                raise TemplateError(f"parameters: {name!r} is a part of the path and cannot be left out")
            if name in in_url and name not in in_path and not is_needed and "default" not in described:
                raise TemplateError(
                    f"parameters: {name!r} stands in the url and cannot be left out; move it to the table query"
                )
            properties[name] = described
            if is_needed:
                needed.append(name)
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        if needed:
            schema["required"] = needed
    try:
        compile_schema(schema)
        if options.output_schema is not None:
            compile_schema(options.output_schema)
    except SchemaError as error:
        raise TemplateError(f"the schema cannot be used: {error}") from None
    defaults: JsonObject = {
        name: cast("dict[str, Json]", member)["default"]
        for name, member in _properties(schema).items()
        if isinstance(member, dict) and "default" in member
    }
    return schema, defaults


def _parameter(name: str, said: Json) -> tuple[JsonObject, bool]:
    """The schema of one argument, and whether it must be given."""
    if isinstance(said, str):
        if said in _TYPES:
            return {"type": said}, True
        return {"type": "string", "description": said}, True
    if not isinstance(said, dict):
        raise TemplateError(f"parameters: {name!r} is a JSON Schema or a type, such as integer")
    described: dict[str, Json] = dict(cast("dict[str, Json]", said))
    needed = described.get("required")
    if isinstance(needed, bool):  # a list is JSON Schema's own, for an object's members
        del described["required"]
        return described, needed
    return described, "default" not in described


def _properties(schema: Mapping[str, Any]) -> JsonObject:
    properties: Any = schema.get("properties")
    return cast(JsonObject, properties) if isinstance(properties, dict) else {}
