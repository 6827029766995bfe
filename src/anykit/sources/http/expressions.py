"""What an endpoint's texts say: literals with their references resolved, and `{placeholders}` that arguments fill.

References (`${VAR}`, `file:`, `keyring:`) are the operator's and are read once, when the endpoint is; what they hold is
never read for placeholders, and what a caller gives is never read for references.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast

from anykit.capabilities import Json
from anykit.stores import has_reference, resolve

from .templates import Template, body_text, template

_TOKEN = re.compile(
    r"(?P<reference>\$\$\{|\$\{[^{}]*\}|\{(?:env|file):[^{}]*\})"
    r"|\{\{(?P<plain>[A-Za-z_][A-Za-z0-9_.-]*)\}\}"
    r"|\{(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\}"
)


class Missing:
    """No value was given."""


MISSING: Final = Missing()


@dataclass
class Reader:
    """Reads texts of one endpoint, and remembers what its references held."""

    env: Mapping[str, str] | None = None
    folder: str | os.PathLike[str] = "."
    secrets: list[str] = field(default_factory=list[str], repr=False)

    def text(self, text: str, where: str, *, secret: bool = True, strict: bool = False) -> Template:
        """A text with placeholders; braces around what is no name are plain, and `{{name}}` is a plain `{name}`.

        With `strict` every other brace is a mistake. Raises `UnresolvedReference`, `TemplateError`.
        """
        if strict and re.search(r"[{}]", _TOKEN.sub("", text)):
            template(re.sub(r"\$\$?\{[^{}]*\}|\{(?:env|file):[^{}]*\}", "", text))  # says which
        pieces: list[str] = []
        literal = ""
        at = 0
        for token in _TOKEN.finditer(text):
            literal += text[at : token.start()]
            at = token.end()
            if token["name"] is not None:
                pieces += [literal, token["name"]]
                literal = ""
            else:
                literal += f"{{{token['plain']}}}" if token["plain"] is not None else token[0]
        pieces.append(literal + text[at:])
        return Template(
            tuple(self._resolved(piece, where, secret) if n % 2 == 0 else piece for n, piece in enumerate(pieces))
        )

    def plain(self, text: str, where: str, *, secret: bool = True) -> str:
        """A text in which nothing is an argument. Raises `UnresolvedReference`."""
        return self._resolved(text, where, secret)

    def value(self, value: Json, where: str) -> Expression:
        """A JSON value whose texts may have placeholders. Raises `UnresolvedReference`."""
        if isinstance(value, str):
            return self.text(value, where)
        if isinstance(value, dict):
            members = cast("dict[str, Json]", value)
            return {key: self.value(member, f"{where}/{key}") for key, member in members.items()}
        if isinstance(value, list):
            return [self.value(item, f"{where}/{at}") for at, item in enumerate(cast("list[Json]", value))]
        return value

    def _resolved(self, literal: str, where: str, secret: bool) -> str:
        if "{" not in literal and not has_reference(literal):
            return literal
        seen = _Seen(os.environ if self.env is None else self.env)
        whole = resolve(literal, seen, self.folder, where=where)
        if secret and has_reference(literal):
            self.secrets += seen.values_read or [whole]
            if literal.startswith(("file:", "keyring:")) or "{file:" in literal:
                self.secrets.append(whole)
        return whole


class _Seen(Mapping[str, str]):
    """An environment that remembers what was read from it."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.values_read: list[str] = []

    def __getitem__(self, key: str) -> str:
        value = self._env[key]
        self.values_read.append(value)
        return value

    def __iter__(self):
        return iter(self._env)

    def __len__(self) -> int:
        return len(self._env)


Expression: TypeAlias = "Template | dict[str, Expression] | list[Expression] | int | float | bool | None"
"""A JSON value with templates where its texts were."""


def names_in(expression: Expression) -> tuple[str, ...]:
    """Every placeholder, in order."""
    if isinstance(expression, Template):
        return expression.names
    if isinstance(expression, dict):
        return tuple(name for member in expression.values() for name in names_in(member))
    if isinstance(expression, list):
        return tuple(name for item in expression for name in names_in(item))
    return ()


def evaluated(expression: Expression, values: Mapping[str, Json]) -> Json | Missing:
    """The value with every placeholder filled; one alone keeps its argument's type.

    A text with an argument that was not given is `MISSING`, and a member or an item that is, is left out.
    """
    if isinstance(expression, Template):
        if (only := expression.only) is not None:
            return values.get(only, MISSING)
        if any(name not in values for name in expression.names):
            return MISSING
        return expression.filled(values, body_text)
    if isinstance(expression, dict):
        members = {key: evaluated(member, values) for key, member in expression.items()}
        return {key: member for key, member in members.items() if not isinstance(member, Missing)}
    if isinstance(expression, list):
        items = [evaluated(item, values) for item in expression]
        return [item for item in items if not isinstance(item, Missing)]
    return expression
