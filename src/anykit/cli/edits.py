"""Edits of a configuration as data: what a file has to read as once it was edited, whatever its form."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from anykit.capabilities import JsonObject

Step: TypeAlias = str | int
Path: TypeAlias = tuple[Step, ...]
"""From the root: keys of objects, indices of lists."""


@dataclass(frozen=True, slots=True)
class Put:
    """Set what is at a path; its parent is made where it is missing."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Append:
    """Add an item to the list at a path, which is made where it is missing."""

    path: Path
    value: Any


@dataclass(frozen=True, slots=True)
class Drop:
    """Take out what is at a path."""

    path: Path


Edit: TypeAlias = Put | Append | Drop


class Unfit(Exception):
    """The file is written in a way that cannot be edited."""


def applied(data: JsonObject, edits: Sequence[Edit]) -> JsonObject:
    """A copy of the data, edited. Raises `Unfit`."""
    whole = copy.deepcopy(data)
    for edit in edits:
        match edit:
            case Put(path, value):
                _set(_parent(whole, path), path[-1], copy.deepcopy(value))
            case Append(path, value):
                parent = _parent(whole, path)
                if isinstance(parent, dict) and path[-1] not in parent:
                    parent[path[-1]] = []
                items = _at(parent, path[-1])
                if not isinstance(items, list):
                    raise Unfit(f"its `{path[-1]}` is no list")
                cast("list[Any]", items).append(copy.deepcopy(value))
            case Drop(path):
                parent = _parent(whole, path)
                _at(parent, path[-1])
                del parent[path[-1]]
    return whole


def _parent(whole: JsonObject, path: Path) -> Any:
    here: Any = whole
    for step in path[:-1]:
        if isinstance(here, dict) and cast(JsonObject, here).get(str(step)) is None and isinstance(step, str):
            here[step] = {}
        here = _at(here, step)
    if not isinstance(here, dict | list):
        raise Unfit(f"its `{path[-2]}` is no table" if len(path) > 1 else "it holds no object")
    return cast(Any, here)


def _at(parent: Any, step: Step) -> Any:
    try:
        return parent[step]
    except (KeyError, IndexError, TypeError):
        raise Unfit(f"it has no `{step}`") from None


def _set(parent: Any, step: Step, value: Any) -> None:
    whole = cast("dict[Step, Any]", parent)
    if isinstance(parent, list) and not (isinstance(step, int) and step < len(whole)):
        raise Unfit(f"it has no item {step}")
    whole[step] = value
