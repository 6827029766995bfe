"""What a `$ref` means: a place in the document, or in another one that the operator allows. Nothing is fetched here.

A reference that leads out of the document is an error unless `allow_refs` lists where it leads; the documents that it
does list are gathered before anything is read (`gathering`), each once and no more than `MAX_DOCUMENTS`.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, cast
from urllib.parse import unquote, urldefrag, urljoin

from anykit.capabilities import Json, JsonObject
from anykit.transports import public_url

from .document import DocumentError

MAX_DOCUMENTS = 64
"""Documents that one may refer to."""
MAX_HOPS = 32
"""References that lead to references."""

_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Misplaced(ValueError):
    """A part of a document that cannot be used; the text says why. Costs the operation that needs it, no other."""


@dataclass(frozen=True, slots=True)
class Found:
    """What stands at the end of a reference."""

    value: Json
    base: str
    """The location of the document that it stands in; "" is the root document's."""
    pointer: str
    """Its JSON pointer there."""


@dataclass
class References:
    """A document with those that it may refer to. `location` is its URL or its file as a URL; "" where it has none."""

    root: JsonObject
    location: str = ""
    allowed: tuple[str, ...] = ()
    others: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """By absolute URL without fragment."""
    faults: Mapping[str, str] = field(default_factory=dict[str, str])
    """Why one that is allowed could not be read, by URL."""
    _anchors: dict[str, dict[str, Found]] = field(default_factory=dict[str, dict[str, Found]], init=False)

    def find(self, reference: object, base: str = "") -> Found:
        """What `reference`, standing in the document `base`, leads to; a chain of references is followed to its end.

        Raises `Misplaced`.
        """
        seen: set[tuple[str, str]] = set()
        while True:
            found = self._once(reference, base)
            target = cast(JsonObject, found.value) if isinstance(found.value, dict) else {}
            inner: object = target.get("$ref")
            if not isinstance(inner, str) or len(target) > 1:
                return found
            if (found.base, found.pointer) in seen or len(seen) >= MAX_HOPS:
                raise Misplaced(f"{_shown(reference)} leads in a circle")
            seen.add((found.base, found.pointer))
            reference, base = inner, found.base

    def object_at(self, value: object, base: str, what: str) -> tuple[JsonObject, str]:
        """An object that may be given as a reference to one, and the document that it stands in. Raises `Misplaced`."""
        for _ in range(MAX_HOPS):
            if not isinstance(value, dict):
                raise Misplaced(f"{what} is no object")
            reference: object = cast(JsonObject, value).get("$ref")
            if not isinstance(reference, str):
                return cast(JsonObject, value), base
            found = self.find(reference, base)
            value, base = found.value, found.base
        raise Misplaced(f"{what} leads in a circle")

    def _once(self, reference: object, base: str) -> Found:
        if not isinstance(reference, str):
            raise Misplaced("a $ref that is no text")
        place, fragment = self._split(reference, base)
        document = self._document(place, reference)
        pointer = unquote(fragment)
        if not pointer or pointer == "/":
            return Found(document, place, "")
        if not pointer.startswith("/"):
            return self._anchor(document, place, pointer, reference)
        value: Json = document
        for token in pointer[1:].split("/"):
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(value, dict) and token in value:
                value = cast(JsonObject, value)[token]
            elif isinstance(value, list) and token.isdecimal() and int(token) < len(cast("list[Any]", value)):
                value = cast("list[Any]", value)[int(token)]
            else:
                raise Misplaced(f"{_shown(reference)} leads nowhere: there is no {token[:64]!r}")
        return Found(value, place, pointer)

    def _split(self, reference: str, base: str) -> tuple[str, str]:
        """The document that a reference names ("" is the root) and its fragment."""
        path, fragment = urldefrag(reference)
        if not path:
            return base, fragment
        return self.absolute(path, base), fragment

    def absolute(self, path: str, base: str) -> str:
        """A reference's document as the key of `others`; "" where it is the root document itself. Raises `Misplaced`."""
        if path == self._self:
            return ""
        try:
            place = urljoin(base or self._self or self.location, path)
        except ValueError:
            raise Misplaced(f"{_shown(path)} is no reference") from None
        return "" if place in (self.location, self._self) else place

    @property
    def _self(self) -> str:
        """What the document says that its own URL is (3.2)."""
        given = self.root.get("$self")
        return urljoin(self.location, given) if isinstance(given, str) else ""

    def allows(self, place: str, path: str) -> bool:
        """Whether the operator lists a document: by its URL, as it is written, or by a glob of either."""
        return any(
            fnmatchcase(place, pattern)
            or fnmatchcase(path, pattern)
            or fnmatchcase(path.removeprefix("./"), pattern.removeprefix("./"))
            or (pattern.endswith("/") and place.startswith(pattern))
            for pattern in self.allowed
        )

    def _document(self, place: str, reference: str) -> JsonObject:
        if not place:
            return self.root
        document = self.others.get(place)
        if document is not None:
            return document
        if place in self.faults:
            raise Misplaced(f"{_shown(reference)} cannot be read: {self.faults[place]}")
        raise Misplaced(
            f"{_shown(reference)} leads out of the document and is not followed; list it in `allow_refs`, or bundle the "
            "document into one file"
        )

    def _anchor(self, document: JsonObject, place: str, name: str, reference: str) -> Found:
        known = self._anchors.get(place)
        if known is None:
            known = self._anchors[place] = {
                anchor: Found(value, place, pointer) for anchor, value, pointer in _anchors_of(document)
            }
        if name not in known:
            raise Misplaced(f"{_shown(reference)} leads nowhere")
        return known[name]


def _anchors_of(document: JsonObject) -> Iterator[tuple[str, JsonObject, str]]:
    stack: list[tuple[Any, str]] = [(document, "")]
    seen: set[int] = set()
    while stack:
        value, pointer = stack.pop()
        if not isinstance(value, dict | list) or id(cast(object, value)) in seen:
            continue
        seen.add(id(cast(object, value)))
        if isinstance(value, dict):
            node = cast(JsonObject, value)
            for keyword in ("$anchor", "$dynamicAnchor"):
                if isinstance(node.get(keyword), str):
                    yield node[keyword], node, pointer
            stack += [(child, f"{pointer}/{_token(name)}") for name, child in node.items()]
        else:
            stack += [(child, f"{pointer}/{index}") for index, child in enumerate(cast("list[Any]", value))]


Gathering = Generator[str, "JsonObject | DocumentError", References]
"""Asks for documents by their URL; is sent each, or why it cannot be read; gives everything in the end."""


def gathering(root: JsonObject, location: str, allowed: Sequence[str]) -> Gathering:
    """The document with all that it refers to and `allowed` lists, theirs followed too. Reads nothing itself."""
    others: dict[str, JsonObject] = {}
    faults: dict[str, str] = {}
    references = References(root, location, tuple(allowed), others, faults)
    waiting: list[tuple[JsonObject, str]] = [(root, "")] if allowed else []
    while waiting:
        document, base = waiting.pop()
        for path in _outside(document):
            try:
                place = references.absolute(path, base)
            except Misplaced:
                continue
            if not place or place in others or place in faults or not references.allows(place, path):
                continue
            if len(others) + len(faults) >= MAX_DOCUMENTS:
                faults[place] = f"more than {MAX_DOCUMENTS} documents are referred to"
                continue
            read = yield place
            if isinstance(read, DocumentError):
                faults[place] = str(read)
            else:
                others[place] = read
                waiting.append((read, place))
    return references


def _outside(document: JsonObject) -> list[str]:
    """The documents that a document's references name, in order, each once."""
    found: dict[str, None] = {}
    stack: list[Any] = [document]
    seen: set[int] = set()
    while stack:
        value = stack.pop()
        if not isinstance(value, dict | list) or id(cast(object, value)) in seen:
            continue
        seen.add(id(cast(object, value)))
        if isinstance(value, dict):
            node = cast(JsonObject, value)
            reference = node.get("$ref")
            if isinstance(reference, str) and (path := urldefrag(reference).url):
                found[path] = None
            stack += reversed(list(node.values()))
        else:
            stack += reversed(cast("list[Any]", value))
    return list(found)


def _shown(reference: object) -> str:
    text = str(reference)
    path, mark, fragment = text.partition("#")
    if _ABSOLUTE.match(path):
        path = public_url(path) if path.lower().startswith("http") else path
    return repr(f"{path}{mark}{fragment}"[:200])


def _token(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
