"""From a document to operations: pure, whole, and so that one bad operation costs only itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import quote

from anykit.capabilities import InvalidInput, Json, JsonObject
from anykit.schema import SchemaError, Validator, check_form, compile_schema
from anykit.schema.documents import Node
from anykit.sources.hostile import MAX_TEXT, Malformed, check_name, clean_tags, clean_text
from anykit.sources.http import Multipart

from .bodies import Body, plan_body
from .dialect import Schemas
from .document import minor_of
from .naming import Wish, argument_names, operation_names
from .parameters import Parameter, plan_parameters
from .references import Misplaced, References
from .responses import Answers, plan_answers
from .security import Requirement, Scheme, requirements_of, schemes_of
from .selection import Selection, Subject
from .servers import Address, Servers

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
MAX_OPERATIONS = 10_000
MAX_REPORTS = 1_000
MAX_DESCRIPTION = 4_096

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}")
_SAFE = "!$&'()*+,-./:;=@_~%"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a document that is not used, or was mended."""

    place: str
    """What it is: `POST /pets`, or a JSON pointer."""
    reason: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request but for its server and what proves who asks."""

    path: str
    query: list[str]
    headers: list[tuple[str, str]]
    cookies: list[str]
    body: bytes | Multipart | None = None


@dataclass(frozen=True)
class Operation:
    """One operation of a document, ready to be called."""

    name: str
    method: str
    path: str
    place: str
    """Its JSON pointer."""
    title: str | None
    description: str
    tags: tuple[str, ...]
    deprecated: bool
    operation_id: str
    parameters: tuple[tuple[str, Parameter], ...]
    """(argument, parameter)"""
    body: Body | None
    body_arguments: tuple[tuple[str, str], ...]
    """(argument, member), or the one argument of a whole body with ""."""
    input_schema: JsonObject
    answers: Answers
    address: Address
    requirements: tuple[Requirement, ...]
    _lenient: list[Validator] = field(default_factory=list[Validator], init=False, repr=False, compare=False)

    @property
    def validator(self) -> Validator:
        """Of the arguments; null counts as nothing for what goes into a query, header or cookie and need not be there.

        Raises `SchemaError`.
        """
        if not self._lenient:
            omittable = [argument for argument, parameter in self.parameters if parameter.omittable]
            schema = self.input_schema
            if omittable:
                properties = dict(schema["properties"])
                for argument in omittable:
                    properties[argument] = {"anyOf": [properties[argument], {"type": "null"}]}
                schema = {**schema, "properties": properties}
            self._lenient.append(compile_schema(schema))
        return self._lenient[0]

    def prepared(self, arguments: JsonObject) -> Prepared:
        """The request for valid arguments. Raises `InvalidInput` for what no request can hold."""
        path, _, static = self.path.partition("#")[0].partition("?")
        inserted: dict[str, str] = {}
        made = Prepared("", [quote(static, safe=f"{_SAFE}?")] if static else [], [("accept", self.answers.accept)], [])
        for argument, parameter in self.parameters:
            if argument not in arguments:
                continue
            value: Json = arguments[argument]
            if parameter.place == "path":
                inserted[parameter.name] = parameter.in_path(value)
            elif value is None and not parameter.required:
                continue
            elif parameter.place in ("query", "querystring"):
                made.query.extend(parameter.in_query(value))
            elif parameter.place == "header":
                if value not in ([], {}):
                    made.headers.append((parameter.name, _one_line(parameter.in_header(value), argument)))
            else:
                made.cookies.extend(_no_end(pair, argument) for pair in parameter.in_cookies(value))
        return self._with_body(
            Prepared(self._filled(path, inserted), made.query, made.headers, made.cookies), arguments
        )

    def _filled(self, path: str, inserted: Mapping[str, str]) -> str:
        """The path, each value in its segment. Raises `InvalidInput` where one makes a segment of another meaning."""
        segments: list[str] = []
        for segment in path.split("/"):
            pieces = _PLACEHOLDER.split(segment)
            if len(pieces) == 1:
                segments.append(quote(segment, safe=_SAFE))
                continue
            text = "".join(inserted.get(one, "") if at % 2 else quote(one, safe=_SAFE) for at, one in enumerate(pieces))
            if text in ("", ".", ".."):
                argument = next((name for name, one in self.parameters if one.name == pieces[1]), pieces[1])
                what = f"{text!r}" if text else "an empty value"
                raise _refused(argument, f"{what} cannot be a segment of a path")
            segments.append(text)
        return "/".join(segments)

    def _with_body(self, made: Prepared, arguments: JsonObject) -> Prepared:
        body = self.body
        if body is None:
            return made
        if body.members is None:
            argument = self.body_arguments[0][0]
            if argument not in arguments:
                return made
            content_type, data = body.written(arguments[argument], argument)
        else:
            value = {member: arguments[argument] for argument, member in self.body_arguments if argument in arguments}
            if not value and not body.required:
                return made
            content_type, data = body.written(value, "")
        if content_type is not None:
            made.headers.append(("content-type", content_type))
        return Prepared(made.path, made.query, made.headers, made.cookies, data)


@dataclass(frozen=True)
class Reading:
    """What a document gives."""

    title: str
    version: str
    operations: tuple[Operation, ...]
    left_out: tuple[LeftOut, ...]
    schemes: Mapping[str, Scheme]


@dataclass(frozen=True, slots=True)
class _Found:
    """An operation as it stands in the document."""

    method: str
    path: str
    pointer: str
    entry: JsonObject
    base: str
    item: JsonObject
    item_base: str
    operation_id: str

    @property
    def label(self) -> str:
        return f"{self.method} {clean_text(self.path, 200)}"


def read_document(
    references: References, *, selection: Selection | None = None, servers: Servers | None = None
) -> Reading:
    """The operations of a document, in its order. Raises `DocumentError` where it is none as a whole."""
    document = references.root
    schemas = Schemas(references, minor_of(document))
    reader = _Reader(
        document, schemas, selection or Selection(), servers or Servers(), schemes_of(document, references)
    )
    return reader.read()


class _Reader:
    def __init__(
        self,
        document: JsonObject,
        schemas: Schemas,
        selection: Selection,
        servers: Servers,
        schemes: Mapping[str, Scheme],
    ) -> None:
        self._document = document
        self._schemas = schemas
        self._selection = selection
        self._servers = servers
        self._schemes = schemes
        self._required = requirements_of(document.get("security")) or ()
        self._left_out: list[LeftOut] = []

    def read(self) -> Reading:
        found = self._found()
        names = operation_names([(one.method, one.path, one.operation_id or None) for one in found])
        subjects = [self._subject(one, name) for one, name in zip(found, names, strict=True)]
        operations: list[Operation] = []
        for one, name, subject in zip(found, names, subjects, strict=True):
            if not self._selection.takes(subject):
                continue
            try:
                operations.append(self._operation(one, name))
            except (Misplaced, Malformed) as error:
                self._leave_out(one.label, f"left out: {error} (at {one.pointer})")
            except Exception as error:  # whatever a document does, it costs one operation
                self._leave_out(one.label, f"left out: it cannot be read, {type(error).__name__} (at {one.pointer})")
        for rule, meant in self._selection.unused(subjects):
            self._leave_out(f"rule {rule[:100]}", f"it matches no operation{meant}")
        for note in self._schemas.notes:
            self._leave_out("schemas", note)
        hooks = [key for key in ("webhooks",) if self._document.get(key)]
        callbacks = sum(1 for one in found if one.entry.get("callbacks"))
        if hooks or callbacks:
            what = " and ".join([*(["webhooks"] if hooks else []), *(["callbacks"] if callbacks else [])])
            self._leave_out(what, "they call others, and are not offered")
        info: Any = self._document.get("info")
        about = cast(JsonObject, info) if isinstance(info, dict) else {}
        return Reading(
            clean_text(str(about.get("title", "")), 200),
            clean_text(str(about.get("version", "")), 64),
            tuple(operations),
            tuple(self._left_out),
            self._schemes,
        )

    def _leave_out(self, place: str, reason: str) -> None:
        if len(self._left_out) < MAX_REPORTS:
            self._left_out.append(LeftOut(place, clean_text(reason, 500)))

    def _subject(self, one: _Found, name: str) -> Subject:
        tags: Any = one.entry.get("tags")
        listed = cast("list[Any]", tags) if isinstance(tags, list) else []
        return Subject(one.method, one.path, name, one.operation_id, tuple(t for t in listed if isinstance(t, str)))

    # finding them

    def _found(self) -> list[_Found]:
        paths: Any = self._document.get("paths", {})
        if not isinstance(paths, dict):
            self._leave_out("#/paths", "it is no object, so there is no operation")
            return []
        found: list[_Found] = []
        for path, value in cast(JsonObject, paths).items():
            if path.startswith("x-"):
                continue
            pointer = f"#/paths/{_token(path)}"
            try:
                if not path.startswith("/"):
                    raise Misplaced("a path begins with '/'")
                check_name(path.replace("\t", " "))
                item, base = self._item(value)
            except (Misplaced, Malformed) as error:
                self._leave_out(clean_text(path, 200), f"left out: {error} (at {pointer})")
                continue
            for method, entry, at in self._of_item(item, pointer):
                if len(found) >= MAX_OPERATIONS:
                    self._leave_out(pointer, f"more than {MAX_OPERATIONS} operations; the rest is left out")
                    return found
                if isinstance(entry, dict):
                    operation = cast(JsonObject, entry)
                    given = _operation_id(operation)
                    found.append(_Found(method, path, at, operation, base, item, base, given))
                else:
                    self._leave_out(f"{method} {clean_text(path, 200)}", f"left out: it is no object (at {at})")
        return found

    def _item(self, value: object) -> tuple[JsonObject, str]:
        """A path item; one may refer to another and have operations of its own beside that."""
        base = ""
        merged: JsonObject = {}
        for _ in range(16):
            if not isinstance(value, dict):
                raise Misplaced("a path item is an object")
            item = cast(JsonObject, value)
            merged = {**item, **merged}
            reference = item.get("$ref")
            if reference is None:
                return merged, base
            target = self._schemas.references.find(reference, base)
            if target.base != base and len(item) > 1:
                merged = {"$ref": reference}  # what stands in two documents is not mixed
            value, base = target.value, target.base
        raise Misplaced("path items lead in a circle")

    def _of_item(self, item: JsonObject, pointer: str) -> Iterator[tuple[str, object, str]]:
        for method, entry in item.items():
            if method in METHODS:
                yield method.upper(), entry, f"{pointer}/{method}"
        further: Any = item.get("additionalOperations")  # 3.2
        if isinstance(further, dict):
            for method, entry in cast(JsonObject, further).items():
                if _METHOD.fullmatch(method) and method.lower() not in METHODS:
                    yield method, entry, f"{pointer}/additionalOperations/{_token(method)}"
                else:
                    self._leave_out(pointer, f"left out: {clean_text(method, 40)!r} is no further method")

    # reading one

    def _operation(self, one: _Found, name: str) -> Operation:
        schemas, entry = self._schemas, one.entry
        requirements = requirements_of(entry.get("security"))
        if requirements is None:
            requirements = self._required
        levels = [(one.item.get("parameters"), one.item_base), (entry.get("parameters"), one.base)]
        parameters = self._in_path(one, plan_parameters(levels, schemas))
        parameters = [parameter for parameter in parameters if not self._is_secret(parameter, requirements)]
        body: Body | None = None
        if entry.get("requestBody") is not None:
            body, note = plan_body(entry["requestBody"], one.base, schemas)
            if note:
                self._leave_out(one.label, note)
        answers, note = plan_answers(entry.get("responses"), one.base, schemas)
        if note:
            self._leave_out(one.label, note)
        wishes = [Wish(parameter.place, parameter.name) for parameter in parameters]
        members = () if body is None or body.members is None else body.members
        whole = body is not None and body.members is None
        wishes += [Wish("body", member.name) for member in members]
        wishes += [Wish("body", "body", whole=True)] if whole else []
        names = argument_names(wishes)
        of_parameters, of_body = names[: len(parameters)], names[len(parameters) :]
        properties: dict[str, Node] = {}
        required: list[str] = []
        uses: set[str] = set()
        for argument, parameter in zip(of_parameters, parameters, strict=True):
            properties[argument] = parameter.schema
            required += [argument] if parameter.required else []
            uses |= parameter.uses
        for argument, member in zip(of_body, members, strict=False):
            properties[argument] = member.schema
            required += [argument] if member.required else []
            uses |= member.uses
        if body is not None and whole:
            properties[of_body[0]] = _described(body.schema, body.description)
            required += [of_body[0]] if body.required else []
            uses |= body.uses
        input_schema: JsonObject = {"type": "object", "properties": properties}
        if required:
            input_schema["required"] = required
        input_schema["additionalProperties"] = False
        try:
            check_form(input_schema)
        except SchemaError as error:
            raise Misplaced(str(error)) from None
        if definitions := schemas.definitions(uses, "request"):
            input_schema["$defs"] = definitions
        title, description = _words(entry, one)
        arguments = [(argument, member.name) for argument, member in zip(of_body, members, strict=False)]
        return Operation(
            name=name,
            method=one.method,
            path=one.path,
            place=one.pointer,
            title=title,
            description=description,
            tags=clean_tags([tag for tag in cast("list[Any]", entry.get("tags") or []) if isinstance(tag, str)]),
            deprecated=entry.get("deprecated") is True,
            operation_id=one.operation_id,
            parameters=tuple(zip(of_parameters, parameters, strict=True)),
            body=body,
            body_arguments=((of_body[0], ""),) if whole else tuple(arguments),
            input_schema=input_schema,
            answers=answers,
            address=self._servers.address(entry.get("servers"), one.item.get("servers"), self._document.get("servers")),
            requirements=requirements,
        )

    def _in_path(self, one: _Found, parameters: Sequence[Parameter]) -> list[Parameter]:
        """The parameters, those of the path being exactly what its template names."""
        named = list(dict.fromkeys(_PLACEHOLDER.findall(one.path)))
        kept: list[Parameter] = []
        for parameter in parameters:
            if parameter.place == "path" and parameter.name not in named:
                self._leave_out(one.label, f"the path has no {{{clean_text(parameter.name, 60)}}}, which is left out")
            else:
                kept.append(parameter)
        known = {parameter.name for parameter in kept if parameter.place == "path"}
        for name in named:
            if name not in known:
                check_name(name)
                self._leave_out(
                    one.label, f"{{{clean_text(name, 60)}}} of the path is not described; it is taken for text"
                )
                kept.append(plan_parameters([([_undescribed(name)], "")], self._schemas)[0])
        return kept

    def _is_secret(self, parameter: Parameter, requirements: Sequence[Requirement]) -> bool:
        """Whether a parameter is what a security scheme of the operation fills."""
        for requirement in requirements:
            for name in requirement:
                scheme = self._schemes.get(name)
                if scheme is None or scheme.kind != "apiKey" or scheme.place != parameter.place:
                    continue
                if scheme.parameter == parameter.name or (
                    scheme.place == "header" and scheme.parameter.lower() == parameter.name.lower()
                ):
                    return True
        return False


def _undescribed(name: str) -> JsonObject:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _operation_id(entry: JsonObject) -> str:
    """An operation's own name; "" where it has none that can be used."""
    given = entry.get("operationId")
    if not isinstance(given, str):
        return ""
    try:
        return check_name(given.strip())
    except Malformed:
        return ""


def _words(entry: JsonObject, one: _Found) -> tuple[str | None, str]:
    """A title and a description: what the operation says, else what its path says."""

    def text(holder: JsonObject, key: str, limit: int) -> str:
        value = holder.get(key)
        return clean_text(value.strip(), limit) if isinstance(value, str) else ""

    summary, description = text(entry, "summary", 300), text(entry, "description", MAX_DESCRIPTION)
    if not summary and not description:
        summary, description = text(one.item, "summary", 300), text(one.item, "description", MAX_DESCRIPTION)
    parts = [part for part in (summary, description) if part]
    if len(parts) == 2 and description.startswith(summary):
        parts = [description]
    whole = "\n\n".join(parts) or one.label
    if entry.get("deprecated") is True:
        whole = f"Deprecated. {whole}"
    return " ".join(summary.split())[:200] or None, clean_text(whole, MAX_DESCRIPTION)


def _described(schema: Node, description: str) -> Node:
    text = clean_text(description.strip(), MAX_TEXT)
    if isinstance(schema, bool):
        return {"description": text} if text and schema else schema
    return {**schema, "description": text} if text and "description" not in schema else schema


def _one_line(text: str, argument: str) -> str:
    if any((ord(c) < 32 and c != "\t") or ord(c) == 127 for c in text):
        raise _refused(argument, "a header cannot hold line breaks or other control characters")
    return text


def _no_end(pair: str, argument: str) -> str:
    if ";" in pair:
        raise _refused(argument, "a cookie cannot hold ';'")
    return _one_line(pair, argument)


def _refused(argument: str, why: str) -> InvalidInput:
    where = argument.replace("~", "~0").replace("/", "~1")
    return InvalidInput(f"{argument}: {why}", [{"path": f"/{where}", "message": why}])


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
