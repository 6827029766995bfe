"""A tool whose arguments are arranged otherwise than its source has them; it still gets them as it knows them."""

from __future__ import annotations

import copy
import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    ExecutionFailed,
    Fault,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    Json,
    JsonObject,
    Suspension,
    Unavailable,
)
from anykit.schema import SchemaError, pointer
from anykit.tools import DISCRETION, LiftedTool, PermissionRequest, Tool, ToolError, check_arguments, hide

from .argument_schemas import NAME, ArgumentChange, argument_names, pattern_of, rearranged, required_names


class Rearranged(LiftedTool):
    """`tool`, with `changes` of its arguments by their names. They have to be good (`sound`).

    Raises `SchemaError` where its schema cannot be said so.
    """

    def __init__(self, tool: Tool, changes: Mapping[str, ArgumentChange]) -> None:
        schema = rearranged(tool.input_schema, changes)
        super().__init__(tool, tool.spec.model_copy(update={"input_schema": schema}))
        self._tool = tool
        self._back = {change.name: name for name, change in changes.items() if change.name and not change.gone}
        self._forth = {name: seen for seen, name in self._back.items()}
        self._gone = {name for name, change in changes.items() if change.gone}
        self._closed = (self._gone | set(self._forth)) - set(self._back)
        """Names by which callers cannot reach what is behind them."""
        self._defaults = {name: change.default for name, change in changes.items() if change.filled}
        self._fixed = {name: change.value for name, change in changes.items() if change.fixed}
        self._secrets = frozenset[str]().union(*(change.secrets for change in changes.values()))
        DISCRETION.keep(self._secrets, self)

    def _mapped(self, given: Mapping[str, Json]) -> JsonObject:
        """The arguments as the tool knows them. Raises `InvalidInput` for one that callers cannot give."""
        wrong = [name for name in given if name in self._closed]
        if wrong:
            faults: list[Fault] = [{"path": pointer((name,)), "message": "unexpected argument"} for name in wrong]
            raise InvalidInput("the arguments do not fit", faults)
        arguments: JsonObject = {self._back.get(name, name): value for name, value in given.items()}
        for name, value in self._defaults.items():
            arguments.setdefault(name, copy.deepcopy(value))
        for name, value in self._fixed.items():
            arguments[name] = copy.deepcopy(value)
        return arguments

    def _inside(self, request: InvocableRequest) -> InvocableRequest:
        return replace(request, input=self._mapped(request.input))

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """What the tool is about to touch, with all its arguments."""
        return self._tool.preflight(self._inside(request))

    def further_faults(self, arguments: object, faults: Sequence[Fault]) -> list[Fault]:
        """What the tool's types know, under the names that callers know."""
        if not isinstance(arguments, dict):
            return []
        try:
            inside = self._mapped(cast(JsonObject, arguments))
        except InvalidInput as error:
            told = {fault["path"] for fault in faults}
            return [fault for fault in error.errors if fault["path"] not in told]
        known: list[Fault] = [
            {"path": _with_first(fault["path"], self._back), "message": fault["message"]} for fault in faults
        ]
        return self._outside(self._tool.further_faults(inside, known))

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Hold the arguments against the tool's own schema, and run it."""
        return await self.invoke_on(None, request, context)

    async def invoke_on(
        self, instance: object, request: InvocableRequest, context: CapabilityContext
    ) -> InvocableResult | Suspension:
        """The same on `instance`."""
        inside = self._inside(request)
        if (refused := check_arguments(self._tool, inside.input)) is not None:
            faults = cast("list[Fault]", refused.detail.get("errors", []))
            raise InvalidInput("the arguments do not fit", self._outside(faults))
        try:
            return await self._tool.invoke_on(instance, inside, context)
        except InvalidInput as error:
            message = hide(error.message, self._secrets)
            raise InvalidInput(message, self._outside(error.errors), detail=self._hidden(error.detail)) from None
        except (CapabilityError, ToolError) as error:
            if not self._secrets:
                raise
            raise self._discreet(error) from None

    def _outside(self, faults: Sequence[Fault]) -> list[Fault]:
        """Faults under the names that callers know."""
        told: list[Fault] = []
        for fault in faults:
            message = hide(fault["message"], self._secrets)
            if _first(fault["path"]) in self._gone:
                told.append(
                    {"path": "", "message": f"an argument that the configuration gives does not fit: {message}"}
                )
            else:
                told.append({"path": _with_first(fault["path"], self._forth), "message": message})
        return told

    def _discreet(self, error: CapabilityError | ToolError) -> CapabilityError | ToolError:
        """The same error without what nobody is shown."""
        message = hide(error.message, self._secrets)
        if isinstance(error, ToolError):
            return ToolError(message, structured=self._hidden(error.structured))
        detail = self._hidden(error.detail)
        if isinstance(error, Unavailable):
            return Unavailable(message, sent=error.sent, detail=detail)
        if isinstance(error, ExecutionFailed):
            shown = None if error.result is None else error.result.model_dump_json()
            result = None if shown is None or hide(shown, self._secrets) != shown else error.result
            return ExecutionFailed(message, code=error.code, retryable=error.retryable, result=result, detail=detail)
        return CapabilityError(message, detail=detail)

    def _hidden(self, value: Any) -> Any:
        if isinstance(value, str):
            return hide(value, self._secrets)
        if isinstance(value, dict):
            return {key: self._hidden(item) for key, item in cast("dict[str, Any]", value).items()}
        if isinstance(value, list | tuple):
            return [self._hidden(item) for item in cast("Sequence[Any]", value)]
        return value


def _first(path: str) -> str:
    return path.split("/", 2)[1].replace("~1", "/").replace("~0", "~") if path.startswith("/") else ""


def _with_first(path: str, names: Mapping[str, str]) -> str:
    first = _first(path)
    if first not in names:
        return path
    rest = path.split("/", 2)[2:]
    return "/".join([pointer((names[first],)), *rest])


def sound(tool: Tool, changes: Mapping[str, ArgumentChange]) -> tuple[dict[str, ArgumentChange], list[tuple[str, str]]]:
    """The changes that can be made of a tool's arguments, and of the others the argument and why not."""
    known = argument_names(tool.input_schema)
    required = required_names(tool.input_schema)
    good: dict[str, ArgumentChange] = {}
    bad: list[tuple[str, str]] = []
    for name, change in changes.items():
        why = _fault(tool, name, change, known, required)
        if why:
            bad.append((name, why))
        else:
            good[name] = change
    # One that is void keeps its own name, which another may have wanted: look again until nothing changes.
    while clash := _clash(known, good):
        name, why = clash
        del good[name]
        bad.append((name, why))
    return good, bad


def _fault(tool: Tool, name: str, change: ArgumentChange, known: Sequence[str], required: set[str]) -> str:
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known[:20]) or 'none'}"
        return f"the tool has no argument of that name; {hint}"
    if change.gone and change.name:
        return "an argument that is hidden or fixed cannot be renamed"
    if change.hide and not change.fixed and not change.filled and name in required:
        return "it is required, so it can be hidden only with a `value`"
    if change.name:
        if not NAME.fullmatch(change.name):
            return f"{change.name[:80]!r} is no name for an argument: letters, digits, _ . - and at most 64 of them"
        if (pattern := pattern_of(tool.input_schema, change.name)) is not None:
            return f"the name {change.name!r} falls under the tool's own pattern {pattern!r}"
    for word, given, value in (("value", change.fixed, change.value), ("default", change.filled, change.default)):
        if given and (misfit := _misfit(tool, name, value)):
            return f"its {word} does not fit: {misfit}"
    return ""


def _misfit(tool: Tool, name: str, value: Json) -> str:
    try:
        faults = tool.validator.faults({name: value})
    except SchemaError as error:
        return str(error)
    return "; ".join(fault["message"] for fault in faults if _first(fault["path"]) == name)


def _clash(known: Sequence[str], good: Mapping[str, ArgumentChange]) -> tuple[str, str] | None:
    seen = Counter(
        change.name or name
        for name, change in ((name, good.get(name, ArgumentChange())) for name in known)
        if not change.gone
    )
    for name, change in good.items():
        if change.name and seen[change.name] > 1:
            return name, f"another argument is called {change.name!r}"
    return None
