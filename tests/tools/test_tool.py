"""`@tool`, and what a tool does by itself."""

from __future__ import annotations

import asyncio
import datetime as dt
import functools
import itertools
import logging
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from pydantic import SecretStr

from anykit.capabilities import (
    CapabilityContext,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Progress,
    Suspension,
    Unavailable,
)
from anykit.schema import SignatureError
from anykit.tools import FunctionTool, PermissionRequest, ToolError, Toolkit, lift, tool

pytestmark = pytest.mark.anyio


@tool
async def add(a: int, b: int = 3) -> int:
    """Adds two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


async def test_a_tool_is_an_invocable_with_a_spec() -> None:
    assert isinstance(add, Invocable)
    assert (add.name, add.description) == ("add", "Adds two numbers.")
    assert add.input_schema["properties"]["a"] == {"type": "integer", "description": "The first."}
    assert add.input_schema["required"] == ["a"]
    assert add.input_schema["additionalProperties"] is False
    assert add.output_schema == {"type": "integer"}


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError()])
@pytest.mark.parametrize("asynchronous", [True, False])
async def test_a_tool_that_quits_ends_its_call_alone(error: BaseException, asynchronous: bool) -> None:
    async def quit_later() -> int:
        raise error

    def quit_now() -> int:
        raise error

    function: Callable[..., Any] = quit_later if asynchronous else quit_now
    result = await tool(function).execute({})
    assert result.is_error
    assert "failed unexpectedly" in result.output


async def test_a_cancelled_caller_is_cancelled() -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> int:
        begun.set()
        await asyncio.Event().wait()
        return 1

    call = asyncio.ensure_future(wait.execute({}))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_it_runs_by_itself_and_stays_callable() -> None:
    result = await add.execute({"a": 2})
    assert (result.output, result.structured, result.is_error, result.status) == ("5", 5, False, "completed")
    assert await add(1, b=1) == 2


async def test_options_become_annotations_tags_and_flags() -> None:
    @tool(
        name="gone",
        title="Go",
        tags=["x"],
        read_only=True,
        destructive=False,
        idempotent=True,
        open_world=False,
        deferred=True,
    )
    def go() -> None:
        """Go."""

    hints = go.annotations
    assert (hints.title, hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (
        "Go",
        True,
        False,
        True,
        False,
    )
    assert (go.name, go.title, go.tags, go.deferred, go.kind) == ("gone", "Go", ("x",), True, "function")


async def test_a_tool_error_reaches_the_model_with_its_text() -> None:
    @tool
    def fail() -> None:
        raise ToolError("no more seats", structured={"left": 0})

    result = await fail.execute({})
    assert (result.is_error, result.output, result.structured) == (True, "no more seats", {"left": 0})
    assert result.code == "execution_failed"


async def test_any_other_exception_gives_an_id_and_the_log_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    @tool
    def fail() -> None:
        raise KeyError("the secret path")

    with caplog.at_level(logging.ERROR):
        result = await fail.execute({})
    assert result.code == "internal"
    assert "secret" not in result.output
    error_id = result.metadata["detail"]["error_id"]
    assert error_id in result.output
    assert error_id in caplog.text
    assert "the secret path" in caplog.text


async def test_b093_a_misspelled_argument_is_refused_and_named() -> None:
    """modelcontextprotocol/python-sdk#3067: misspelled arguments are dropped and the tool runs with its default."""
    ran: list[str] = []

    @tool
    def read(topic: str = "") -> str:
        ran.append(topic)
        return topic

    result = await read.execute({"path": "x"})
    assert result.is_error
    assert "path" in result.output
    assert "topic" in result.output
    assert ran == []
    assert read.input_schema["additionalProperties"] is False


async def test_all_faults_are_told_at_once_with_their_pointers() -> None:
    result = await add.execute({"a": "x", "b": None, "c": 1})
    paths = {fault["path"] for fault in result.metadata["detail"]["errors"]}
    assert {"/a", "/b"} <= paths
    assert result.code == "invalid_input"


async def test_what_cannot_be_sent_is_an_error_of_the_call() -> None:
    @tool
    def nan() -> float:
        return float("nan")

    result = await nan.execute({})
    assert (result.is_error, result.code) == (True, "invalid_output")


async def test_b038_a_result_that_breaks_its_output_schema_is_told() -> None:
    """IBM/mcp-context-forge#4204: an error result is not held against the schema, a wrong or missing one is told."""
    schema = {"type": "object", "properties": {"t": {"type": "number"}}, "required": ["t"]}

    class Peer:
        def __init__(self, answer: InvocableResult | ExecutionFailed) -> None:
            self.answer = answer

        @property
        def spec(self) -> InvocableSpec:
            return InvocableSpec(name="peer", description="", input_schema={"type": "object"}, output_schema=schema)

        async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
            if isinstance(self.answer, ExecutionFailed):
                raise self.answer
            return self.answer

    seats = ExecutionFailed("too many seats", result=InvocableResult(structured={"why": "seats"}))
    told = await lift(Peer(seats)).execute({})
    assert (told.is_error, told.output, told.structured) == (True, "too many seats", {"why": "seats"})
    for answer in (InvocableResult(structured={"t": "x"}), InvocableResult(text="ok")):
        told = await lift(Peer(answer)).execute({})
        assert told.is_error
        assert told.code == "invalid_output"
        assert "peer" in told.output


@pytest.mark.parametrize(
    ("raised", "code", "retryable"),
    [
        (Unavailable("down"), "unavailable", True),
        (Unavailable("lost", sent=True), "unknown", False),
        (InvalidInput("no", [{"path": "/x", "message": "is odd"}]), "invalid_input", False),
        (ExecutionFailed("no", code="quota", retryable=True), "quota", True),
    ],
)
async def test_a_capability_error_becomes_an_outcome(raised: Exception, code: str, retryable: bool) -> None:
    @tool
    async def fail() -> None:
        raise raised

    result = await fail.execute({})
    assert (result.code, result.metadata["retryable"]) == (code, retryable)


async def test_lost_but_idempotent_may_be_repeated() -> None:
    @tool(idempotent=True)
    async def lost() -> None:
        raise Unavailable("lost", sent=True)

    assert (await lost.execute({})).metadata["retryable"] is True


async def test_the_time_of_a_tool_is_bounded() -> None:
    @tool(timeout=0.05)
    async def slow() -> None:
        await asyncio.Event().wait()

    result = await slow.execute({})
    assert (result.code, result.is_error) == ("timeout", True)


async def test_a_context_parameter_is_injected_and_hidden() -> None:
    heard: list[Any] = []

    @tool
    async def watch(n: int, context: CapabilityContext) -> str | None:
        context.emit(Progress(n, 2))
        return context.session_id

    assert "context" not in watch.input_schema["properties"]
    context = CapabilityContext(session_id="s", emit=heard.append)
    assert (await watch.execute({"n": 1}, context)).output == "s"
    assert heard == [Progress(1, 2)]


async def test_methods_are_bound_to_their_object() -> None:
    class Counter:
        def __init__(self) -> None:
            self.n = 0

        @tool(name="bump")
        def up(self, by: int = 1) -> int:
            """Count."""
            self.n += by
            return self.n

    counter = Counter()
    assert counter.up(2) == 2
    assert (await counter.up.execute({"by": 3})).output == "5"
    assert "self" not in counter.up.input_schema["properties"]


async def test_b086_enums_arrive_as_members() -> None:
    """google/adk-python#398: enum parameters."""

    class C(Enum):
        RED = "red"
        BLUE = "blue"

    @tool
    def is_red(c: C, d: C = C.RED) -> bool:
        return c is C.RED and d is C.RED

    assert (await is_red.execute({"c": "red"})).structured is True
    wrong = await is_red.execute({"c": "RED"})
    assert wrong.is_error
    assert "blue" in wrong.output


async def test_b090_callables_of_every_kind_are_tools() -> None:
    """PrefectHQ/fastmcp#3269: partials, methods, callable objects, lambdas, wrapped functions."""

    async def scale(x: int, factor: int) -> int:
        return x * factor

    class Callable_:
        async def __call__(self, x: int) -> int:
            return x + 1

    class Holder:
        def method(self, x: int) -> int:
            return x + 2

        @staticmethod
        def static(x: int) -> int:
            return x + 3

        @classmethod
        def cls_method(cls, x: int) -> int:
            return x + 4

    def wrap(function: Callable[..., int]) -> Callable[..., int]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> int:
            return function(*args, **kwargs)

        return inner

    @wrap
    def wrapped(x: int) -> int:
        return x + 5

    double: Callable[[int], int] = lambda x: x * 2  # noqa: E731 - a lambda is what is tried

    made: list[tuple[FunctionTool[..., Any], int]] = [
        (tool(functools.partial(scale, factor=3)), 6),
        (tool(Callable_()), 3),
        (tool(Holder().method), 4),
        (tool(Holder.static), 5),
        (tool(Holder.cls_method), 6),
        (tool(wrapped), 7),
        (tool(name="twice")(double), 4),
    ]
    for one, expected in made:
        result = await one.execute({"x": 2})
        assert (one.name, result.structured) == (one.name, expected)
        assert "self" not in one.input_schema["properties"]


async def test_what_cannot_be_described_is_an_error_at_definition_time() -> None:
    with pytest.raises(SignatureError, match="rest"):

        @tool
        def star(*rest: int) -> None:
            pass


async def test_a_tool_is_not_made_of_a_tool() -> None:
    with pytest.raises(TypeError, match="already"):
        tool(add)


async def test_a_function_may_say_what_a_call_is_about_to_touch() -> None:
    class Files(Toolkit):
        @tool
        def remove(self, path: str) -> None: ...

        remove.touches(lambda arguments: [PermissionRequest("file_delete", arguments["path"])])

    request = InvocableRequest(input={"path": "/x"}, call_id="1")
    wanted = [PermissionRequest("file_delete", "/x")]
    assert Files.spec().tools["remove"].preflight(request) == wanted
    assert Files().remove.preflight(request) == wanted
    assert lift(Files.spec().tools["remove"], name="other").preflight(request) == wanted
    assert add.preflight(request) == ()


async def test_a_list_of_anything_may_hold_parts() -> None:
    @tool
    def mixed() -> list[Any]:
        return ["a", ImagePart(data=b"1")]

    result = await mixed.execute({})
    assert not result.is_error
    assert [part.kind for part in result.content] == ["text", "image"]


async def test_b070_integers_of_any_size_pass_exactly() -> None:
    """cline/cline#9589: 64-bit ids are rounded on the way."""

    @tool
    def same(n: int) -> int:
        return n

    for number in (9007199254740993, 123456789012345678901234567890):
        result = await same.execute({"n": number})
        assert (result.structured, result.output) == (number, str(number))
    whole = await same.execute({"n": 1.0})
    assert whole.structured == 1
    assert isinstance(whole.structured, int)
    assert (await same.execute({"n": True})).is_error
    assert (await same.execute({"n": float("inf")})).is_error


async def test_a_tool_error_of_a_task_group_reaches_the_model() -> None:
    @tool
    async def refuses() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(0))
            raise ToolError("no such room", structured={"room": 7})

    result = await refuses.execute({})

    assert result.is_error
    assert result.output == "no such room"
    assert result.structured == {"room": 7}


async def test_a_tool_error_carries_nothing_that_no_wire_takes() -> None:
    @tool
    def refuses(number: float) -> None:
        raise ToolError("half \ud83d, whole \ud83d\ude00", structured={"at": number})

    told = await refuses.execute({"number": 1.5})
    assert told.output == "half \ufffd, whole \U0001f600"
    assert told.structured == {"at": 1.5}

    @tool
    def counts() -> None:
        raise ToolError("it is too much", structured={"at": [float("inf")]})

    told = await counts.execute({})
    assert told.is_error
    assert told.structured is None
    assert told.output.startswith("it is too much")
    assert "/at/0" in told.output


async def test_every_fault_is_told_at_once_whoever_finds_it() -> None:
    @tool
    def book(day: dt.date, at: dt.time, seats: int, key: SecretStr) -> str:
        return "booked"

    result = await book.execute({"day": "x", "at": "y", "seats": "many", "key": 5, "extra": 1})

    assert {fault["path"] for fault in result.metadata["detail"]["errors"]} == {
        "/day",
        "/at",
        "/seats",
        "/key",
        "/extra",
    }


async def test_a_generator_runs_in_the_thread_of_its_tool() -> None:
    threads: list[threading.Thread] = []

    @tool
    def counts(to: int) -> Iterator[int]:
        for number in range(to):
            threads.append(threading.current_thread())
            yield number

    @tool
    async def counts_too(to: int) -> AsyncIterator[int]:
        for number in range(to):
            yield number

    assert (await counts.execute({"to": 3})).structured == [0, 1, 2]
    assert threading.current_thread() not in threads
    assert (await counts_too.execute({"to": 3})).structured == [0, 1, 2]


async def test_an_iterator_without_an_end_is_an_error() -> None:
    @tool
    def forever() -> Iterator[int]:
        return itertools.count()

    @tool
    async def forever_too() -> AsyncIterator[int]:
        while True:
            yield 1

    for endless in (forever, forever_too):
        result = await endless.execute({})
        assert result.code == "invalid_output"
        assert "more than 100000 items" in result.output


async def test_a_class_as_a_tool_promises_its_instances() -> None:
    @dataclass
    class Room:
        number: int
        beds: int = 2

    result = await tool(Room).execute({"number": 7})

    assert not result.is_error
    assert result.structured == {"number": 7, "beds": 2}


@pytest.mark.parametrize("arguments", [[], "", 0, False])
async def test_what_is_no_object_is_no_call_without_arguments(arguments: Any) -> None:
    @tool
    def nothing() -> str:
        return "ran"

    result = await nothing.execute(arguments)
    assert result.code == "invalid_input"
    assert "must be an object" in result.output


async def test_invoking_a_tool_as_an_invocable_raises_errors_of_the_layer_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool
    def divide(a: int, b: int) -> float:
        if a > 100:
            raise ToolError("too large", structured={"a": a})
        return a / b

    def invoked(**arguments: Any) -> Any:
        return divide.invoke(InvocableRequest(input=arguments, call_id="1"), CapabilityContext())

    assert (await invoked(a=6, b=3)).structured == 2.0
    with pytest.raises(InvalidInput) as invalid:
        await invoked(a="6")
    assert {fault["path"] for fault in invalid.value.errors} == {"/a", "/b"}
    with pytest.raises(ExecutionFailed, match="too large") as told:
        await invoked(a=101, b=1)
    assert told.value.result is not None
    assert told.value.result.structured == {"a": 101}
    with pytest.raises(ExecutionFailed, match="failed unexpectedly"):
        await invoked(a=1, b=0)
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("bound", [{"timeout": 0}, {"timeout": -1.0}, {"max_output": 0}, {"concurrency": 0}])
def test_a_bound_that_lets_nothing_run_is_refused_where_it_is_written(bound: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="of a tool is more than 0"):
        tool(**bound)
