"""References that lead nowhere: variables that are not set, files that are not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from pydantic import SecretStr

from anykit.app.config import SourceConfig
from anykit.capabilities import JsonObject
from anykit.stores import UnresolvedReference, resolve_all

from .finding import Case, Finding

_NAME = re.compile(r"variable ([A-Za-z_][A-Za-z0-9_]*) is not set")


def variables(case: Case) -> Iterator[Finding]:
    """Each reference of the file that cannot be resolved, with its key."""
    config = case.config
    lines = _lines(case)
    for pointer, value in written(case):
        try:
            # A keyring may ask its user something; whoever needs the entry is told when the source opens.
            resolve_all(_without_keyring(value), case.env, config.folder, where=pointer)
        except UnresolvedReference as error:
            for fault in error.errors:
                yield _finding(case, fault["path"] or pointer, fault["message"], lines)


def written(case: Case) -> Iterator[tuple[str, Any]]:
    """The parts of the file that may hold references, by JSON pointer, as they are written."""
    config = case.config
    for index, source in enumerate(config.sources):
        if isinstance(source, str):
            yield f"/sources/{index}", source
        elif source.enabled:
            given = as_written(source)
            yield f"/sources/{index}", {key: value for key, value in given.items() if key not in _NO_REFERENCES}
    for id, block in config.agents.items():
        if block.get("enabled") is not False and block.get("disabled") is not True:
            yield f"/agents/{id}", block
    for name, toolkit in config.toolkits.items():
        if toolkit.enabled and toolkit.config:
            yield f"/toolkits/{name}/config", toolkit.config
    if config.serve.token is not None:
        yield "/serve/token", config.serve.token.get_secret_value()


_NO_REFERENCES = frozenset({"name", "kind", "description", "allow", "deny", "tags", "inputs"})


def as_written(source: SourceConfig) -> JsonObject:
    """A source's table as plain JSON, secrets in it."""
    return {key: _plain(value) for key, value in source.model_dump(exclude_unset=True, by_alias=True).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in cast(JsonObject, value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value


def _without_keyring(value: Any) -> Any:
    if isinstance(value, str):
        return "" if value.startswith("keyring:") or "${input:" in value else value
    if isinstance(value, dict):
        return {key: _without_keyring(item) for key, item in cast(JsonObject, value).items()}
    if isinstance(value, list):
        return [_without_keyring(item) for item in cast("list[Any]", value)]
    return value


def _finding(case: Case, pointer: str, message: str, lines: list[str]) -> Finding:
    key = pointer.strip("/").replace("/", ".").replace("~1", "/").replace("~0", "~")
    found = _NAME.search(message)
    if found is None:
        return Finding(
            "reference_broken", "error", case.at(key), message, "correct the reference, or make what it names"
        )
    name = found[1]
    line = next((at for at, text in enumerate(lines, start=1) if _mentions(text, name)), None)
    where = case.at(key) if line is None else f"{case.where}:{line}: {key}"
    return Finding(
        "variable_unset",
        "error",
        where,
        f"the environment variable {name} is not set",
        f"export {name}=..., or give it a default: ${{{name}:-...}}",
    )


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"\{{(?:env:)?{re.escape(name)}\b", text) is not None


def _lines(case: Case) -> list[str]:
    if case.config.path is None:
        return []
    try:
        return case.config.path.read_text("utf-8-sig")[: 4 * 1024 * 1024].splitlines()
    except (OSError, UnicodeDecodeError):
        return []
