"""`anykit.lock`: what tools and toolkits said of themselves when a person last agreed to it.

It lies beside the configuration file and is made to be read in a review: canonical order, whole definitions, a digest
each. What a source says of itself is pinned as it came, by the source's own names, before anything that the
configuration changes.

    {"version": 1, "sources": {SOURCE: {"tools": {NAME: {"digest", "definition"}}, "toolkits": {NAME: {...}}}}}
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from anykit.capabilities import InvocableSpec, JsonObject
from anykit.runtime import Shaped, Shaping, Source, ToolEntry, clean
from anykit.sources.hostile import is_unseen, visible
from anykit.tools import ToolkitSpec

NAME = "anykit.lock"
VERSION = 1
MAX_FILE = 64 * 1024 * 1024
"""Bytes of a lock file."""
MAX_TOOLS = 10_000
"""Tools of one source that are pinned."""

Kind: TypeAlias = Literal["added", "changed", "removed"]
Place: TypeAlias = tuple[str, str, str]
"""Source; toolkit, or "" for a source's own tools; tool, or "" for the toolkit itself."""


class LockError(Exception):
    """The lock file cannot be used; the text names it and the fix."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One definition and its digest."""

    definition: JsonObject
    digest: str

    @classmethod
    def of(cls, definition: JsonObject) -> Pin:
        """The pin of a definition, which is plain JSON afterwards."""
        text = canonical(definition)
        return cls(json.loads(text), f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}")


@dataclass(frozen=True, slots=True)
class Lock:
    """Pins by their place."""

    pins: Mapping[Place, Pin] = field(default_factory=dict[Place, Pin])

    @property
    def sources(self) -> frozenset[str]:
        """The sources that have pins."""
        return frozenset(source for source, _, _ in self.pins)

    def with_changes(self, changes: Iterable[Change]) -> Lock:
        """The lock after these changes were agreed to."""
        pins = dict(self.pins)
        for change in changes:
            if change.after is None:
                pins.pop(change.place, None)
            else:
                pins[change.place] = change.after
        return Lock(pins)


@dataclass(frozen=True, slots=True)
class Change:
    """A definition that is not what is pinned."""

    place: Place
    kind: Kind
    before: Pin | None
    after: Pin | None

    @property
    def name(self) -> str:
        """What it is called, for people: `source/tool`, `source/toolkit/tool`, or `source/toolkit` for its schema."""
        return "/".join(part for part in self.place if part)

    def is_named(self, name: str) -> bool:
        """Whether a person may mean it: its name, a tool's own name, its toolkit or its source."""
        source, toolkit, tool = self.place
        full = self.name
        return (
            name in (full, source, f"{source}/{toolkit}") or (bool(tool) and name == tool) or name == (toolkit or None)
        )

    def diff(self) -> list[str]:
        """A unified diff of the two, without line ends; invisible characters are written out."""
        old = [] if self.before is None else rendered(self.before.definition)
        new = [] if self.after is None else rendered(self.after.definition)
        names = (self.name if old else "/dev/null", self.name if new else "/dev/null")
        return list(difflib.unified_diff(old, new, *names, lineterm=""))

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        source, toolkit, tool = self.place
        return {
            "source": source,
            "toolkit": toolkit or None,
            "tool": tool or None,
            "change": self.kind,
            "before": None if self.before is None else self.before.digest,
            "after": None if self.after is None else self.after.digest,
            "diff": "\n".join(self.diff()),
        }


def canonical(value: object) -> str:
    """JSON text that is equal where the values are: sorted keys, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def rendered(definition: Mapping[str, Any]) -> list[str]:
    """A definition as lines to read and compare."""
    lines: list[str] = []
    for key in sorted(definition, key=lambda key: (_ORDER.get(key, len(_ORDER)), key)):
        value: Any = definition[key]
        if isinstance(value, str):
            first, *more = visible(value).split("\n")
            lines += [f"{key}: {first}", *(f"  {line}" for line in more)]
        else:
            text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)
            lines += visible(f"{key}: {text}").split("\n")
    return lines


_ORDER = {key: at for at, key in enumerate(("title", "description", "annotations", "input_schema", "output_schema"))}


# what there is now


def definition_of(spec: InvocableSpec) -> JsonObject:
    """What a tool says of itself, but its name."""
    hints = {} if spec.annotations is None else spec.annotations.model_dump(exclude_none=True)
    title = getattr(spec, "title", None) or hints.get("title")
    said: JsonObject = {
        "title": title,
        "description": spec.description,
        "annotations": {key: value for key, value in hints.items() if key != "title"} or None,
        "input_schema": spec.input_schema,
        "output_schema": spec.output_schema,
    }
    return {key: value for key, value in said.items() if value is not None}


def toolkit_definition(spec: ToolkitSpec) -> JsonObject:
    """What a toolkit says of itself, beside its tools."""
    said: JsonObject = {
        "description": spec.description,
        "category": spec.category,
        "alias": spec.alias,
        "config_schema": spec.schema,
        "tools": sorted(spec.tools),
    }
    return {key: value for key, value in said.items() if value}


def lock_of(sources: Iterable[Source]) -> Lock:
    """The definitions of all that these sources offer. A source that breaks when it is asked has none."""
    pins: dict[Place, Pin] = {}
    for source in sources:
        if source.disabled is not None:
            continue
        if source.provider is not None:
            with contextlib.suppress(Exception):
                for invocable in list(source.provider.invocables())[:MAX_TOOLS]:
                    spec = invocable.spec
                    pins.setdefault((source.name, "", spec.name), Pin.of(definition_of(spec)))
        for toolkit in source.toolkits:
            spec = toolkit.spec()
            pins[source.name, spec.name, ""] = Pin.of(toolkit_definition(spec))
            for name, tool in spec.tools.items():
                pins[source.name, spec.name, name] = Pin.of(definition_of(tool.spec))
    return Lock(pins)


def changes_between(pinned: Lock, now: Lock, *, known: Collection[str]) -> list[Change]:
    """What is not as it was, in order. `known` are the sources whose definitions are known now: one that is away
    has changed nothing.
    """
    changes: list[Change] = []
    for place in sorted({*pinned.pins, *now.pins}):
        before, after = pinned.pins.get(place), now.pins.get(place)
        if place[0] not in known or (before is not None and after is not None and before.digest == after.digest):
            continue
        kind: Kind = "added" if before is None else "removed" if after is None else "changed"
        changes.append(Change(place, kind, before, after))
    return changes


# the file


def lock_file(folder: Path) -> Path:
    """Where the lock of a configuration in `folder` lies."""
    return folder / NAME


def read_lock(file: Path) -> Lock | None:
    """What is pinned; None where there is no such file. Raises `LockError`."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as stream:
            raw = stream.read(MAX_FILE + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise LockError(f"{file}: cannot be read: {error.strerror or error}") from None
    if len(raw) > MAX_FILE:
        raise LockError(f"{file}: larger than {MAX_FILE} bytes")
    try:
        data: Any = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise LockError(f"{file}: {error}; {_ANEW}") from None
    version = cast("dict[str, Any]", data).get("version") if isinstance(data, dict) else None
    if version != VERSION:
        raise LockError(f"{file}: is of version {str(version)[:20]}, and this anykit knows {VERSION}; {_ANEW}")
    try:
        return Lock(dict(_pins(cast("dict[str, Any]", data)["sources"])))
    except (KeyError, TypeError, AttributeError):
        raise LockError(f"{file}: is not what anykit wrote; {_ANEW}") from None
    except _Edited as error:
        raise LockError(f"{file}: the digest of {error} does not fit its definition; {_ANEW}") from None


_ANEW = "take back the last change of it, or remove it and run `anykit lock`"


class _Edited(Exception):
    """Which pin was edited by hand, or merged wrongly."""


def _pins(sources: Mapping[str, Any]) -> Iterable[tuple[Place, Pin]]:
    for source, held in sources.items():
        for name, pin in held.get("tools", {}).items():
            yield _pin((source, "", name), pin)
        for toolkit, kept in held.get("toolkits", {}).items():
            yield _pin((source, toolkit, ""), kept)
            for name, pin in kept.get("tools", {}).items():
                yield _pin((source, toolkit, name), pin)


def _pin(place: Place, held: Mapping[str, Any]) -> tuple[Place, Pin]:
    pin = Pin.of(dict(held["definition"]))
    if pin.digest != held["digest"]:
        raise _Edited("/".join(part for part in place if part))
    return place, pin


def lock_text(lock: Lock) -> str:
    """The file's text; equal locks have equal ones."""
    sources: dict[str, Any] = {}
    for (source, toolkit, name), pin in sorted(lock.pins.items()):
        held = sources.setdefault(source, {})
        shown: JsonObject = {"digest": pin.digest, "definition": pin.definition}
        if not toolkit:
            held.setdefault("tools", {})[name] = shown
        elif not name:
            held.setdefault("toolkits", {}).setdefault(toolkit, {}).update(shown)
        else:
            held.setdefault("toolkits", {}).setdefault(toolkit, {}).setdefault("tools", {})[name] = shown
    text = json.dumps({"version": VERSION, "sources": sources}, indent=2, sort_keys=True, ensure_ascii=False)
    # What a reader would not see is written out; only in strings can it stand.
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1] if is_unseen(found[0]) else found[0], text) + "\n"


_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")


def write_lock(file: Path, lock: Lock) -> None:
    """Write it whole, or not at all. Raises `LockError`."""
    temporary: Path | None = None
    try:
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o644
        handle, name = tempfile.mkstemp(prefix=f".{NAME}.", dir=file.parent)
        temporary = Path(name)
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(lock_text(lock))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(mode)
        temporary.replace(file)
    except OSError as error:
        raise LockError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


# enforced


class Enforced:
    """What the operator says about tools (`Shaping`), and before it: nothing is offered that is not as it was pinned."""

    def __init__(self, inner: Shaping | None, folder: Path) -> None:
        self._inner = inner
        self._file = lock_file(folder)
        self._read: tuple[int, int, int] | None = None
        self._lock: Lock | None = None
        self._fault = ""
        self._pinned: dict[tuple[str, str], tuple[object, Pin]] = {}

    @property
    def defers(self) -> bool:
        """See `Shaping`."""
        return self._inner is not None and self._inner.defers

    def shaped(self, entries: Sequence[ToolEntry], sources: Mapping[str, Source]) -> Shaped:
        """See `Shaping`."""
        self._refresh()
        toolkits = self._changed_toolkits(sources)
        kept: list[ToolEntry] = []
        denied: dict[str, str] = {}
        for entry in entries:
            why = self._refusal(entry, sources, toolkits)
            if why:
                denied[entry.tool.name] = why
            else:
                kept.append(entry)
        if self._inner is None:
            return Shaped(kept, denied)
        shaped = self._inner.shaped(kept, sources)
        return replace(shaped, denied={**shaped.denied, **denied})

    def _refusal(
        self, entry: ToolEntry, sources: Mapping[str, Source], changed_toolkits: Mapping[tuple[str, str], str]
    ) -> str:
        if self._lock is None:
            return self._fault or "[lock] enforce is set and nothing is pinned yet; look and agree: anykit lock"
        toolkit = _toolkit_of(entry, sources)
        if why := changed_toolkits.get((entry.source, toolkit)):
            return why
        pinned = self._lock.pins.get((entry.source, toolkit, entry.original))
        spec = entry.tool.spec
        known = self._pinned.get(entry.key)
        if known is None or known[0] is not spec:
            known = self._pinned[entry.key] = (spec, Pin.of(definition_of(spec)))
        if pinned is not None and pinned.digest == known[1].digest:
            return ""
        name = "/".join(part for part in (entry.source, toolkit, entry.original) if part)
        if pinned is None:
            return f"it is not in {NAME}, and nobody has agreed to it; look and agree: anykit lock {name}"
        return f"it changed since somebody agreed to it ({NAME}); look and agree: anykit lock {name}"

    def _changed_toolkits(self, sources: Mapping[str, Source]) -> dict[tuple[str, str], str]:
        """Toolkits whose own definition is not the pinned one: what they are configured with may have changed."""
        if self._lock is None:
            return {}
        changed: dict[tuple[str, str], str] = {}
        for source in sources.values():
            for toolkit in source.toolkits:
                spec = toolkit.spec()
                pinned = self._lock.pins.get((source.name, spec.name, ""))
                if pinned is not None and pinned.digest != Pin.of(toolkit_definition(spec)).digest:
                    name = f"{source.name}/{spec.name}"
                    changed[source.name, spec.name] = (
                        f"its toolkit changed since somebody agreed to it ({NAME}); look and agree: anykit lock {name}"
                    )
        return changed

    def _refresh(self) -> None:
        """Read the file again where it changed. One that cannot be used pins nothing, so nothing is offered."""
        try:
            status = self._file.stat()
            read = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            read = (0, 0, 0)
        if read == self._read:
            return
        self._read, self._fault = read, ""
        try:
            self._lock = read_lock(self._file)
        except LockError as error:
            self._lock, self._fault = None, str(error)


def _toolkit_of(entry: ToolEntry, sources: Mapping[str, Source]) -> str:
    """The own name of the toolkit that a tool belongs to, which may be called otherwise here; "" for none."""
    offered = entry.tool.spec.toolkit
    source = sources.get(entry.source)
    if offered is None or source is None or entry.key[0] == entry.source:
        return ""
    names = [toolkit.spec().name for toolkit in source.toolkits]
    if offered in names or not names:
        return offered
    return names[0] if len(names) == 1 else next((name for name in names if offered.endswith(clean(name))), offered)
