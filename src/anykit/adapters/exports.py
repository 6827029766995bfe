"""The `tools` field of a model provider's request, from the tools of a bench.

Schemas are converted once for each definition; every export is a copy of its own, which the caller may change.
"""

from __future__ import annotations

import fnmatch
import functools
import json
import logging
import marshal
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol, TypeAlias, cast, get_args

from anykit.capabilities import JsonObject
from anykit.schema import SchemaError
from anykit.schema.dialects import (
    ANTHROPIC,
    GEMINI,
    Conversion,
    Loss,
    NotStrict,
    Refusal,
    for_anthropic,
    for_anthropic_strict,
    for_gemini,
    for_openai,
    for_openai_strict,
    refused_names,
)
from anykit.tools import ToolSpec

from .anthropic import message_tool
from .described import Described
from .gemini import declaration, together
from .openai import chat_tool, responses_tool

log = logging.getLogger("anykit.adapters")

Provider: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini"]
PROVIDERS: Final[tuple[str, ...]] = get_args(Provider)
Strictness: TypeAlias = "bool | Literal['auto']"
"""True: all tools or none; "auto": those that can be."""
MOST_TOOLS: Final = {"openai": 128, "openai-responses": 128, "gemini": 128}
"""What a request may hold, where there is a limit."""
LONG_DESCRIPTION: Final = 1024
"""Characters beyond which older models of OpenAI, and gateways before it, refuse a tool."""
CONVERSIONS: Final = 4096
"""Converted schemas that are kept, for definitions that are made anew."""
_PLACES: Final = 4
"""Losses that one line names."""


class StrictRefused(ValueError):
    """Tools whose schemas a provider's strict subset cannot say; `.refusals` names tool, place, keyword and reason."""

    def __init__(self, provider: str, refusals: Sequence[tuple[str, Refusal]]) -> None:
        self.provider = provider
        self.refusals = tuple(refusals)
        lines = "\n".join(f"  {tool}: {refusal}" for tool, refusal in refusals)
        count = len({tool for tool, _ in refusals})
        super().__init__(
            f"{count} tool{'s' if count != 1 else ''} cannot be strict for {provider} without another meaning"
            f' (strict="auto" leaves such tools as they are):\n{lines}'
        )


@dataclass(frozen=True, slots=True)
class Remark:
    """Something about an export that its reader should know. `tool` is None where it is about all of it."""

    tool: str | None
    text: str

    def __str__(self) -> str:
        return self.text if self.tool is None else f"{self.tool}: {self.text}"


@dataclass(frozen=True, slots=True)
class Exported:
    """An export."""

    tools: list[JsonObject]
    """The value of the request's `tools` field."""
    losses: dict[str, tuple[Loss, ...]]
    """What the schemas do not say, by tool; it stands in their descriptions, and calls are held against the original."""
    remarks: tuple[Remark, ...]


class _Shape(Protocol):
    def __call__(self, tool: Described, schema: JsonObject, *, strict: bool) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class _Dialect:
    shape: _Shape
    plain: Callable[[JsonObject], Conversion]
    strict: Callable[[JsonObject], Conversion] | None = None


_DIALECTS: Final[dict[str, _Dialect]] = {
    "openai": _Dialect(chat_tool, for_openai, for_openai_strict),
    "openai-responses": _Dialect(responses_tool, for_openai, for_openai_strict),
    "anthropic": _Dialect(message_tool, for_anthropic, for_anthropic_strict),
    "gemini": _Dialect(declaration, for_gemini),
}


@dataclass(frozen=True, slots=True)
class _Made:
    """One tool, converted."""

    spec: ToolSpec
    packed: bytes | None
    """None where it cannot be sent at all."""
    losses: tuple[Loss, ...] = ()
    remarks: tuple[Remark, ...] = ()
    refusals: tuple[tuple[str, Refusal], ...] = ()


class Exports:
    """Exports of a bench's tools, with what was converted before."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, Strictness], dict[str, _Made]] = {}
        self._warned: set[str] = set()

    def export(
        self,
        specs: Iterable[ToolSpec],
        provider: Provider,
        *,
        strict: Strictness = False,
        tools: str | Iterable[str] | None = None,
    ) -> Exported:
        """The tools of `specs` for `provider`; `tools` are names or patterns (`crm_*`) of those that are wanted.

        Raises `StrictRefused` where `strict` is True and a schema stands in the way, `ValueError` for an unknown provider
        or one without a strict mode.
        """
        if provider not in _DIALECTS:
            raise ValueError(f"no provider {provider!r}; known: {', '.join(PROVIDERS)}")
        if strict and _DIALECTS[provider].strict is None:
            raise ValueError(f"{provider} has no strict mode for tools")
        known = self._made.setdefault((provider, strict), {})
        chosen = [spec for spec in specs if is_wanted(spec.name, tools)]
        shown: list[JsonObject] = []
        losses: dict[str, tuple[Loss, ...]] = {}
        remarks: list[Remark] = []
        refusals: list[tuple[str, Refusal]] = []
        for spec in chosen:
            made = known.get(spec.name)
            if made is None or made.spec is not spec:
                made = known[spec.name] = _converted(spec, provider, strict)
            if made.packed is not None:
                shown.append(marshal.loads(made.packed))
            if made.losses:
                losses[spec.name] = made.losses
            remarks += made.remarks
            refusals += made.refusals
        if len(known) > 2 * len(chosen) + 1000:
            self._made[provider, strict] = {spec.name: known[spec.name] for spec in chosen}
        if refusals:
            raise StrictRefused(provider, refusals)
        remarks += self._of_all(provider, len(shown))
        return Exported(together(shown) if provider == "gemini" else shown, losses, tuple(remarks))

    def _of_all(self, provider: str, count: int) -> list[Remark]:
        most = MOST_TOOLS.get(provider)
        if most is None or count <= most:
            return []
        text = f"{count} tools; {provider} takes {most} in one request: choose some by name or pattern"
        if provider not in self._warned:
            self._warned.add(provider)
            log.info(text)
        return [Remark(None, text)]


def is_wanted(name: str, wanted: str | Iterable[str] | None) -> bool:
    """Whether a tool is among those that are named, or fall under a pattern; all are where nothing is said."""
    if wanted is None:
        return True
    patterns = (wanted,) if isinstance(wanted, str) else wanted
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _converted(spec: ToolSpec, provider: Provider, strict: Strictness) -> _Made:
    dialect = _DIALECTS[provider]
    remarks: list[Remark] = []
    conversion: Conversion | None = None
    try:
        text = json.dumps(spec.input_schema, separators=(",", ":"))
        if strict and dialect.strict is not None:
            try:
                conversion = _conversion(text, dialect.strict)
            except NotStrict as error:
                if strict is True:
                    return _Made(spec, None, refusals=tuple((spec.name, one) for one in error.refusals))
                remarks.append(Remark(spec.name, f"not strict: {error}"))
        is_strict = conversion is not None
        conversion = conversion or _conversion(text, dialect.plain)
    except (SchemaError, ValueError, RecursionError) as error:
        return _Made(spec, None, remarks=(Remark(spec.name, f"left out: its schema cannot be used: {error}"),))
    tool = Described.of(spec)
    made = dialect.shape(tool, conversion.schema, strict=is_strict)
    remarks += _remarks(provider, tool, conversion)
    return _Made(spec, marshal.dumps(made), conversion.losses, tuple(remarks))


@functools.lru_cache(maxsize=CONVERSIONS)
def _conversion(text: str, convert: Callable[[JsonObject], Conversion]) -> Conversion:
    return convert(cast(JsonObject, json.loads(text)))


def _remarks(provider: Provider, tool: Described, conversion: Conversion) -> Iterable[Remark]:
    if conversion.losses:
        lines = [str(loss) for loss in conversion.losses]
        more = f" and {len(lines) - _PLACES} more" if len(lines) > _PLACES else ""
        yield Remark(tool.name, f"said in the description instead: {'; '.join(lines[:_PLACES])}{more}")
    for alias, name in conversion.aliases.items():
        yield Remark(tool.name, f"its parameter {name!r} is called {alias!r}, and that is put back when it is called")
    rule = {"anthropic": ANTHROPIC, "gemini": GEMINI}.get(provider)
    properties: Any = conversion.schema.get("properties")
    if rule is not None and isinstance(properties, dict):
        for name in refused_names(cast("dict[str, Any]", properties), rule):
            yield Remark(tool.name, f"{provider} may refuse a parameter called {name!r}")
    if provider.startswith("openai") and len(tool.text) > LONG_DESCRIPTION:
        yield Remark(
            tool.name,
            f"its description has {len(tool.text)} characters; older models and gateways take {LONG_DESCRIPTION}",
        )
