"""A tool is an invocable with a face for models: annotations, tags, a toolkit, and what it is about to touch.

There is one hierarchy. `FunctionTool` runs a Python callable; `lift` gives any other invocable the same face.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

from anykit.capabilities import (
    Annotations,
    CapabilityContext,
    Completed,
    ExecutionFailed,
    Failed,
    Fault,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    JsonObject,
    Outcome,
    Suspended,
    Suspension,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import FunctionSchema, SchemaError, Validator, compile_schema, describe

from .discretion import DISCRETION
from .errors import Busy, ToolError, UnsendableResult, being_cancelled
from .permissions import PermissionRequest
from .results import OUTPUT_LIMIT, ToolResult, checked, collected, jsonable, result_of, sendable, tool_result
from .threads import PER_TOOL, SHARED

log = logging.getLogger("anykit.tools")

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

Touches: TypeAlias = Callable[[JsonObject], Sequence[PermissionRequest]]

CALL_TIMEOUT = 120.0
"""Seconds that a call may take where neither caller, tool nor peer says less."""


class ToolSpec(InvocableSpec):
    """What a model sees of a tool, and what its runner must know."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    kind: str = "function"
    """What it is made of: `function`, `toolkit`, or the kind of its source."""
    toolkit: str | None = None
    source: str = "python"
    """Where it comes from: the name of its source."""
    version: str = "1.0.0"
    deferred: bool = False
    """Left out of plain lists; found by searching."""
    timeout: float | None = None
    """Seconds; None is 120."""
    max_output: int = OUTPUT_LIMIT
    """Bytes of text that reach a model."""
    concurrency: int = PER_TOOL
    """Threads that a synchronous function may hold at a time."""


class Runner(Protocol):
    """How a tool of a workbench runs: through its executor."""

    async def __call__(self, name: str, arguments: JsonObject, context: CapabilityContext | None) -> ToolResult: ...


class Tool:
    """An invocable with a model-facing spec. Subclasses give `invoke`, and `preflight` where they touch anything."""

    def __init__(self, spec: ToolSpec) -> None:
        self._spec = spec
        self._arguments: Validator | None = None
        self._output: Validator | None = None

    @property
    def spec(self) -> ToolSpec:
        """All of the below as one value."""
        return self._spec

    @property
    def name(self) -> str:
        """What it is called by."""
        return self._spec.name

    @property
    def title(self) -> str | None:
        """A name for people."""
        return self._spec.title

    @property
    def description(self) -> str:
        """What it does, for a model."""
        return self._spec.description

    @property
    def input_schema(self) -> JsonObject:
        """JSON Schema of the arguments, an object."""
        return self._spec.input_schema

    @property
    def output_schema(self) -> JsonObject | None:
        """JSON Schema of the structured result, where there is a promise."""
        return self._spec.output_schema

    @property
    def annotations(self) -> Annotations:
        """Hints about its behaviour."""
        return self._spec.annotations or Annotations()

    @property
    def tags(self) -> tuple[str, ...]:
        """Labels for filters."""
        return self._spec.tags

    @property
    def kind(self) -> str:
        """What it is made of."""
        return self._spec.kind

    @property
    def toolkit(self) -> str | None:
        """The toolkit that it belongs to and that must be configured first."""
        return self._spec.toolkit

    @property
    def source(self) -> str:
        """The name of its source."""
        return self._spec.source

    @property
    def deferred(self) -> bool:
        """Whether plain lists leave it out."""
        return self._spec.deferred

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

    @property
    def uses_context(self) -> bool:
        """Whether a call of it looks at its context at all."""
        return True

    @property
    def may_ask(self) -> bool:
        """Whether a call of it may ask its caller something (`CapabilityContext.ask`)."""
        return True

    @property
    def is_checked(self) -> bool:
        """Whether its source has checked its schemas already, so that they are not compiled before the first call."""
        return False

    @property
    def validator(self) -> Validator:
        """Of the arguments; compiled once. Raises `SchemaError` where the schema is no schema."""
        if self._arguments is None:
            self._arguments = compile_schema(self._spec.input_schema)
        return self._arguments

    @property
    def output_validator(self) -> Validator | None:
        """Of the structured result; None without an output schema."""
        if self._output is None and self._spec.output_schema is not None:
            self._output = compile_schema(self._spec.output_schema)
        return self._output

    def further_faults(self, arguments: object, faults: Sequence[Fault]) -> list[Fault]:
        """What is wrong with the arguments beside the schema's `faults`, so that a caller learns of all at once."""
        return []

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """What this call is about to touch; asked before it runs, judged by the policy."""
        return ()

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Run it once; the arguments are valid. Raises `CapabilityError`, `ToolError` or `Busy`."""
        raise ExecutionFailed(f"{self.name} cannot run: its class gives no `invoke`")

    async def invoke_on(
        self, instance: object, request: InvocableRequest, context: CapabilityContext
    ) -> InvocableResult | Suspension:
        """The same on `instance`, where it is a method."""
        return await self.invoke(request, context)

    async def execute(self, arguments: JsonObject | None, context: CapabilityContext | None = None) -> ToolResult:
        """Validate and run; a failure of the tool is a result, never raised."""
        request = InvocableRequest(input={} if arguments is None else arguments, call_id=uuid.uuid4().hex)
        outcome = await self._outcome(request, context or CapabilityContext())
        return tool_result(outcome, limit=self._spec.max_output)

    async def _outcome(self, request: InvocableRequest, context: CapabilityContext) -> Outcome:
        if (refused := check_arguments(self, request.input)) is not None:
            return refused
        try:
            async with asyncio.timeout(self._spec.timeout or CALL_TIMEOUT):
                return await attempt(self, request, context)
        except TimeoutError:
            return timed_out(self, self._spec.timeout or CALL_TIMEOUT)


def check_arguments(tool: Tool, arguments: object) -> Failed | None:
    """None where `arguments` fit the tool's schema, else the failure with every fault."""
    try:
        validator = tool.validator
    except SchemaError as error:
        return Failed(codes.UNAVAILABLE, f"{tool.name} cannot be called: {error}")
    if validator.is_valid(arguments):
        return None
    faults = validator.faults(arguments)
    if not faults:
        return None
    return invalid_arguments(tool, [*faults, *tool.further_faults(arguments, faults)])


def invalid_arguments(tool: Tool, faults: Sequence[Any], message: str = "") -> Failed:
    """The failure that lists every fault of a call's arguments."""
    lines = "; ".join(f"{fault['path']}: {fault['message']}" if fault["path"] else fault["message"] for fault in faults)
    return Failed(
        codes.INVALID_INPUT,
        f"invalid arguments for {tool.name}: {lines or message}",
        detail={"errors": list(faults)},
    )


def timed_out(tool: Tool, seconds: float) -> Failed:
    """The failure of a call whose time was up; safe to repeat only where the tool is idempotent."""
    return Failed(
        codes.TIMEOUT,
        f"{tool.name} did not answer within {seconds:g} s",
        retryable=repeatable(tool),
        detail={"timeout": seconds},
    )


def repeatable(tool: Tool) -> bool:
    """Whether a second run does no harm."""
    hints = tool.spec.annotations
    return hints is not None and bool(hints.idempotent or hints.read_only)


async def attempt(
    tool: Tool, request: InvocableRequest, context: CapabilityContext, instance: object = None
) -> Outcome:
    """Invoke once and turn whatever comes back, or is raised, into an outcome. Cancellation passes.

    `instance` is the configured toolkit of a toolkit's tool. An unexpected exception gives a generic text with an id;
    the traceback goes to the log under that id.
    """
    try:
        returned = await tool.invoke_on(instance, request, context)
    except ToolError as error:
        return _told(tool, error)
    except InvalidInput as error:
        return invalid_arguments(tool, error.errors, error.message)
    except Busy as error:
        return Failed(codes.BUSY, f"{tool.name} was not started: {error}", retryable=True)
    except Unavailable as error:
        if error.sent and not repeatable(tool):
            return Failed(codes.UNKNOWN, f"{error.message} (whether {tool.name} ran is not known)", detail=error.detail)
        return Failed(codes.UNAVAILABLE, error.message, retryable=True, detail=error.detail)
    except ExecutionFailed as error:
        return Failed(error.code, error.message, error.retryable, error.detail, error.result)
    except UnsendableResult as error:
        return Failed(codes.INVALID_OUTPUT, f"{tool.name} returned what cannot be sent: {error}")
    except Exception as error:
        told = _only_told(error)
        return _broken(tool) if told is None else _told(tool, told)
    except SystemExit:
        return _broken(tool)  # it ends the call, not the process
    except asyncio.CancelledError:
        if being_cancelled():
            raise
        return _broken(tool)  # the tool's own doing
    if isinstance(returned, Suspension):
        return Suspended(returned)
    return _as_promised(tool, returned)


def _only_told(error: Exception) -> ToolError | None:
    """The one `ToolError` of a task group that failed with nothing else."""
    while isinstance(error, ExceptionGroup):
        inside = cast("ExceptionGroup[Exception]", error).exceptions
        if len(inside) != 1:
            return None
        error = inside[0]
    return error if isinstance(error, ToolError) else None


def _told(tool: Tool, error: ToolError) -> Failed:
    """The failure that a tool tells of; what JSON cannot carry is not sent."""
    message = sendable(error.message) or f"{tool.name} failed"
    result: InvocableResult | None = None
    if error.structured is not None:
        try:
            result = InvocableResult(structured=jsonable(error.structured))
        except UnsendableResult as unsendable:
            message = f"{message} [the data beside it cannot be sent: {unsendable}]"
    return Failed(codes.EXECUTION_FAILED, message, retryable=repeatable(tool), result=result)


def _broken(tool: Tool) -> Failed:
    error_id = uuid.uuid4().hex[:12]
    DISCRETION.exception(log, "tool %s broke (error %s)", tool.name, error_id)
    return Failed(codes.INTERNAL, f"{tool.name} failed unexpectedly (error {error_id})", detail={"error_id": error_id})


def _as_promised(tool: Tool, result: InvocableResult) -> Outcome:
    """The result, held against the tool's output schema."""
    if tool.spec.output_schema is None:
        return Completed(result)
    try:
        validator = tool.output_validator
    except SchemaError as error:
        log.warning("output schema of %s is ignored: %s", tool.name, error)
        return Completed(result)
    if validator is None or (result.has_structured and validator.is_valid(result.structured)):
        return Completed(result)
    if not result.has_structured:
        why = "it promises structured data and returned none"
    else:
        faults = validator.faults(result.structured)
        why = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
    return Failed(
        codes.INVALID_OUTPUT,
        f"the result of {tool.name} does not fit its output schema: {why}",
        result=result,
    )


class Occupied(ABC):
    """Something that calls hold while they run, so that it is not closed under them. Thread-safe."""

    @abstractmethod
    def enter(self) -> None:
        """A call begins."""

    @abstractmethod
    def leave(self) -> None:
        """A call has really ended."""


class FunctionTool(Tool, Generic[P, R]):
    """A Python callable as a tool. Calling it calls the function; on an instance it is bound like a method."""

    def __init__(
        self,
        function: Callable[P, R],
        spec: ToolSpec,
        signature: FunctionSchema,
        *,
        method: bool = False,
        instance: object = None,
    ) -> None:
        super().__init__(spec)
        self.function = function
        self.signature = signature
        self.method = method
        self._instance = instance
        self._touches: Touches | None = None
        functools.update_wrapper(cast(Any, self), function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function as if it were not a tool."""
        if self._instance is not None:
            return cast(Callable[..., R], self.function)(self._instance, *args, **kwargs)
        return self.function(*args, **kwargs)

    @overload
    def __get__(self, instance: None, owner: type) -> FunctionTool[P, R]: ...

    @overload
    def __get__(
        self: FunctionTool[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> FunctionTool[Q, R]: ...

    def __get__(self, instance: object, owner: type | None = None) -> FunctionTool[Any, Any]:
        if instance is None or not self.method:
            return self
        return self.bound(instance)

    def bound(self, instance: object) -> FunctionTool[Any, R]:
        """The same tool on `instance`."""
        twin: FunctionTool[Any, R] = FunctionTool(
            self.function, self._spec, self.signature, method=True, instance=instance
        )
        twin._arguments, twin._output, twin._touches = self.validator, self.output_validator, self._touches
        return twin

    def of_toolkit(self, toolkit: str) -> FunctionTool[P, R]:
        """The same tool as a member of `toolkit`."""
        spec = self._spec.model_copy(update={"toolkit": toolkit, "kind": "toolkit"})
        twin = FunctionTool(self.function, spec, self.signature, method=self.method)
        twin._touches = self._touches
        return twin

    def touches(self, asked: Touches) -> Touches:
        """Say what a call with given arguments is about to touch; usable as a decorator.

        The function takes the arguments as they came, valid, and gives permission requests.
        """
        self._touches = asked
        return asked

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """What `touches` says."""
        return () if self._touches is None else self._touches(request.input)

    def further_faults(self, arguments: object, faults: Sequence[Fault]) -> list[Fault]:
        """What only the types know, of the parameters that the schema finds nothing wrong with."""
        return self.signature.further_faults(arguments, faults)

    @property
    def uses_context(self) -> bool:
        """Only a function with a parameter for it does."""
        return self.signature.context_parameter is not None

    @property
    def may_ask(self) -> bool:
        """Only a function that takes the context, and runs on the loop, can."""
        return self.signature.context_parameter is not None and self.signature.is_async

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """Call the function with the request's input, which is checked first. Raises `CapabilityError`, nothing else."""
        if (refused := check_arguments(self, request.input)) is not None:
            raise InvalidInput(refused.message, (refused.detail or {}).get("errors", ()))
        outcome = await attempt(self, request, context)
        if isinstance(outcome, Completed):
            return outcome.result
        if isinstance(outcome, Failed):
            if outcome.code == codes.BUSY:
                raise Unavailable(outcome.message)
            if outcome.code == codes.INVALID_INPUT:
                raise InvalidInput(outcome.message, (outcome.detail or {}).get("errors", ()))
            raise ExecutionFailed(
                outcome.message,
                code=outcome.code,
                retryable=outcome.retryable,
                result=outcome.result,
                detail=outcome.detail,
            )
        raise ExecutionFailed(f"{self.name} did not end: a function asks through its context")

    async def invoke_on(
        self, instance: object, request: InvocableRequest, context: CapabilityContext
    ) -> InvocableResult:
        """Once, its arguments being valid; `instance` is for a toolkit's tool the caller's configured one."""
        instance = self._instance if instance is None else instance
        args, kwargs = self.signature.bind(request.input)
        if self.signature.context_parameter is not None:
            kwargs[self.signature.context_parameter] = context
        if self.method:
            if instance is None:
                raise ExecutionFailed(f"{self.name} belongs to {self._spec.toolkit or 'an object'} and needs it")
            args = [instance, *args]
        user = instance if isinstance(instance, Occupied) else None
        if self.signature.is_async:
            if user is None:
                return result_of(await cast(Any, self.function)(*args, **kwargs))
            user.enter()
            try:
                return result_of(await cast(Any, self.function)(*args, **kwargs))
            finally:
                user.leave()
        if user is not None:
            user.enter()
        value = await SHARED.run(
            functools.partial(self._in_thread, args, kwargs),
            key=self.function,
            limit=self._spec.concurrency,
            done=None if user is None else user.leave,
            on_the_spot=user is None and self.signature.context_parameter is None,
        )
        if isinstance(value, InvocableResult):
            return value
        if user is None:
            return result_of(await _arrived(value))
        user.enter()
        try:
            return result_of(await _arrived(value))
        finally:
            user.leave()

    def _in_thread(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Call the function and make its result, so that the loop waits for neither."""
        value: Any = cast(Any, self.function)(*args, **kwargs)
        if not inspect.isawaitable(cast(object, value)) and not isinstance(cast(object, value), AsyncIterator):
            value = result_of(value)
        return value


async def _arrived(value: Any) -> Any:
    """What a plain function around a coroutine function gives in the end, or an asynchronous generator."""
    return await collected(cast("AsyncIterator[object]", value)) if isinstance(value, AsyncIterator) else await value


class LiftedTool(Tool):
    """Any invocable with a tool's face."""

    def __init__(self, invocable: Invocable, spec: ToolSpec) -> None:
        super().__init__(spec)
        self.invocable = invocable

    @property
    def validator(self) -> Validator:
        """The wrapped tool's own, as long as both have one schema: it may take more than it says."""
        inside = self.invocable
        if isinstance(inside, Tool) and inside.spec.input_schema is self._spec.input_schema:
            return inside.validator
        return super().validator

    @property
    def output_validator(self) -> Validator | None:
        """The wrapped tool's own, as long as both have one schema: it may look after its results itself."""
        inside = self.invocable
        if isinstance(inside, Tool) and inside.spec.output_schema is self._spec.output_schema:
            return inside.output_validator
        return super().output_validator

    @property
    def uses_context(self) -> bool:
        """As the wrapped one."""
        return not isinstance(self.invocable, Tool) or self.invocable.uses_context

    @property
    def may_ask(self) -> bool:
        """As the wrapped one."""
        return not isinstance(self.invocable, Tool) or self.invocable.may_ask

    def further_faults(self, arguments: object, faults: Sequence[Fault]) -> list[Fault]:
        """The wrapped tool's own, where it is one."""
        return self.invocable.further_faults(arguments, faults) if isinstance(self.invocable, Tool) else []

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """The wrapped tool's own, where it is one."""
        return self.invocable.preflight(request) if isinstance(self.invocable, Tool) else ()

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """Invoke the wrapped one; its result is checked before it goes on."""
        returned = await self.invocable.invoke(request, context)
        return returned if isinstance(returned, Suspension) else checked(returned)

    async def invoke_on(
        self, instance: object, request: InvocableRequest, context: CapabilityContext
    ) -> InvocableResult | Suspension:
        """The same on `instance`, where the wrapped one is a method."""
        if isinstance(self.invocable, Tool):
            return await self.invocable.invoke_on(instance, request, context)
        return await self.invoke(request, context)


def lift(invocable: Invocable, **changes: Any) -> Tool:
    """`invocable` as a tool; `changes` are fields of its spec (a new name, its source).

    A tool without changes is itself.
    """
    if isinstance(invocable, Tool):
        spec = invocable.spec
        if not changes or all(getattr(spec, key) == value for key, value in changes.items()):
            return invocable
        return LiftedTool(invocable, spec.model_copy(update=changes))
    plain = invocable.spec
    annotations = plain.annotations
    fields: dict[str, Any] = {
        "name": plain.name,
        "description": plain.description,
        "input_schema": plain.input_schema,
        "metadata": plain.metadata,
        "annotations": annotations,
        "output_schema": plain.output_schema,
        "title": annotations.title if annotations else None,
        "tags": _tags_in(plain.metadata),
        "kind": "capability",
        **changes,
    }
    return LiftedTool(invocable, ToolSpec(**fields))


def _tags_in(metadata: JsonObject) -> tuple[str, ...]:
    """Tags that whoever made an invocable gave it, for it has no place of its own for them."""
    tags: Any = metadata.get("tags")
    return tuple(str(one) for one in cast("list[Any]", tags)) if isinstance(tags, list) else ()


class BenchTool(Tool):
    """A tool as a workbench hands it out: `execute` goes through the bench's executor."""

    def __init__(self, tool: Tool, runner: Runner) -> None:
        super().__init__(tool.spec)
        self._tool = tool
        self._runner = runner

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """What the tool itself says."""
        return self._tool.preflight(request)

    async def execute(self, arguments: JsonObject | None, context: CapabilityContext | None = None) -> ToolResult:
        """Find, validate, judge, run and record, as every call of the bench."""
        return await self._runner(self.name, {} if arguments is None else arguments, context)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """The same for those who hold it as an invocable. Raises `ExecutionFailed` where it is no success."""
        result = await self._runner(self.name, request.input, context)
        given = InvocableResult(content=result.content, structured=result.structured, metadata=result.metadata)
        if result.is_error:
            raise ExecutionFailed(result.output, code=result.code or codes.EXECUTION_FAILED, result=given)
        return given


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    deferred: bool = False,
    timeout: float | None = None,
    max_output: int = OUTPUT_LIMIT,
    concurrency: int = PER_TOOL,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    fn: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    tags: Sequence[str] = (),
    read_only: bool | None = None,
    destructive: bool | None = None,
    idempotent: bool | None = None,
    open_world: bool | None = None,
    deferred: bool = False,
    timeout: float | None = None,
    max_output: int = OUTPUT_LIMIT,
    concurrency: int = PER_TOOL,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a tool of a function or method, bare or with options.

    `timeout` is in seconds, `max_output` in bytes, `concurrency` in threads (synchronous functions only). The four hints
    are MCP's. Raises `SignatureError` at once where a parameter cannot be described, naming it, and `ValueError` for a
    bound that lets nothing run.
    """
    for bound, value in (("timeout", timeout), ("max_output", max_output), ("concurrency", concurrency)):
        if value is not None and not value > 0:
            raise ValueError(f"{bound} of a tool is more than 0, not {value!r}")

    def make(function: Callable[P, R]) -> FunctionTool[P, R]:
        if isinstance(function, FunctionTool):
            raise TypeError(f"{function.name} is a tool already")
        if isinstance(function, classmethod):
            name_of = cast("classmethod[Any, ..., Any]", function).__func__.__name__
            raise TypeError(f"{name_of} is a class method; make a tool of it on its class: tool(Class.{name_of})")
        method = is_method(function)
        signature = describe(function, name=name, description=description, method=method)
        hints = Annotations(
            title=title, read_only=read_only, destructive=destructive, idempotent=idempotent, open_world=open_world
        )
        spec = ToolSpec(
            name=signature.name,
            description=signature.description,
            input_schema=signature.input_schema,
            output_schema=_promise(signature.output_schema),
            annotations=hints,
            title=title,
            tags=(tags,) if isinstance(tags, str) else tuple(tags),
            deferred=deferred,
            timeout=timeout,
            max_output=max_output,
            concurrency=concurrency,
        )
        return FunctionTool(function, spec, signature, method=method)

    return make if fn is None else make(fn)


def _promise(schema: JsonObject | None) -> JsonObject | None:
    """An output schema, but none for `list[Any]`: such a list may hold content parts, which are no structured data."""
    if schema is not None and schema.get("type") == "array" and schema.get("items", True) in (True, {}):
        return None
    return schema


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a function stands in a class body: a dotted qualified name, and `self` first."""
    code = getattr(function, "__code__", None)
    if code is None or inspect.ismethod(function) or not code.co_argcount or code.co_varnames[0] != "self":
        return False
    return "." in function.__qualname__.rpartition("<locals>.")[2]
