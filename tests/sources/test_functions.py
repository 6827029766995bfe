"""Python as a source: objects, modules, files, and what goes wrong in them."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anykit.capabilities import (
    CapabilityContext,
    CapabilityProvider,
    ExecutionFailed,
    InvalidInput,
    Invocable,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    ResourceProvider,
    TextPart,
)
from anykit.sources import FunctionSource, LoadError, load_module, objects_of
from anykit.tools import ToolError, prompt, resource, tool

pytestmark = pytest.mark.anyio

CONTEXT = CapabilityContext()


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@resource("note://today")
def today() -> str:
    """Today's note."""
    return "buy milk"


@resource("note://{day}/{number}")
def note(day: str, number: int) -> str:
    """A note."""
    return f"{day} {number + 1}"


@prompt
def review(code: str) -> str:
    """Asks for a review."""
    return f"Review {code}"


class Bare:
    spec = InvocableSpec(name="bare", description="", input_schema={"type": "object"})

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text="bare")


class Shop:
    def sell(self, item: str) -> str:
        """Sells."""
        return f"sold {item}"


async def call(invocable: Invocable, **arguments: Any) -> Any:
    result = await invocable.invoke(InvocableRequest(input=arguments, call_id="1"), CONTEXT)
    assert isinstance(result, InvocableResult)
    return result.structured if result.has_structured else result.text


# objects


async def test_functions_tools_methods_and_bare_invocables_are_offered_in_order() -> None:
    def double(n: int) -> int:
        """Doubles."""
        return 2 * n

    source = FunctionSource([double, add, Shop().sell, Bare(), functools.partial(add.function, b=1)])
    names = [one.spec.name for one in source.invocables()]
    assert names[:4] == ["double", "add", "sell", "bare"]
    assert isinstance(source, CapabilityProvider)
    found = source.invocables()
    assert await call(found[0], n=4) == 8
    assert await call(found[1], a=1, b=2) == 3
    assert await call(found[2], item="tea") == "sold tea"
    assert await call(found[3]) == "bare"


async def test_resources_are_listed_apart_from_tools_and_read_by_calling() -> None:
    source = FunctionSource([today, note, add])
    [resources] = source.resources()
    assert isinstance(resources, ResourceProvider)
    assert [one.id for one in (await resources.list_resources()).items] == ["note://today"]
    contents = await resources.read_resource("note://today", CONTEXT)
    assert contents.parts == (TextPart(text="buy milk"),)
    contents = await resources.read_resource("note://mon%20day/41", CONTEXT)
    assert contents.parts == (TextPart(text="mon day 42"),)
    with pytest.raises(InvalidInput, match="no resource 'note://nothing'"):
        await resources.read_resource("note://nothing", CONTEXT)
    assert [one.spec.name for one in source.invocables()] == ["add"]


async def test_prompts_are_listed_and_filled_in() -> None:
    [prompts] = FunctionSource([review]).prompts()
    [listed] = (await prompts.list_prompts()).items
    assert (listed.id, [one.name for one in listed.arguments]) == ("review", ["code"])
    filled = await prompts.get_prompt("review", {"code": "x = 1"}, CONTEXT)
    assert filled.messages[0].content == (TextPart(text="Review x = 1"),)
    with pytest.raises(InvalidInput):
        await prompts.get_prompt("review", {}, CONTEXT)
    with pytest.raises(InvalidInput, match="no prompt 'nothing'"):
        await prompts.get_prompt("nothing", {}, CONTEXT)


async def test_a_prompts_argument_that_takes_no_text_takes_the_json_in_it() -> None:
    @prompt
    def plan(title: str, days: int, half: bool = False, stops: list[str] | None = None) -> str:
        return json.dumps([title, days, half, stops])

    [prompts] = FunctionSource([plan]).prompts()
    filled = await prompts.get_prompt("plan", {"title": "7", "days": "7", "half": "true", "stops": '["a"]'}, CONTEXT)
    assert filled.messages[0].content == (TextPart(text='["7", 7, true, ["a"]]'),)
    for wrong in ("seven", "7.5", "[7]", ""):
        with pytest.raises(InvalidInput) as refused:
            await prompts.get_prompt("plan", {"title": "7", "days": wrong}, CONTEXT)
        assert [fault["path"] for fault in refused.value.errors] == ["/days"]


async def test_what_a_resource_raises_becomes_an_error_of_the_layer(caplog: pytest.LogCaptureFixture) -> None:
    @resource("x://told")
    def told() -> str:
        raise ToolError("the shelf is empty")

    @resource("x://broken")
    def broken() -> str:
        raise KeyError("secret-key-in-the-text")

    [resources] = FunctionSource([told, broken]).resources()
    with pytest.raises(ExecutionFailed, match="the shelf is empty"):
        await resources.read_resource("x://told", CONTEXT)
    with pytest.raises(ExecutionFailed, match=r"failed unexpectedly \(error [0-9a-f]{12}\)") as caught:
        await resources.read_resource("x://broken", CONTEXT)
    assert "secret-key" not in str(caught.value)
    assert "secret-key" in caplog.text


async def test_other_providers_add_what_they_offer() -> None:
    inner = FunctionSource([today, review, Bare()])
    source = FunctionSource([add], [inner])
    assert [one.spec.name for one in source.invocables()] == ["add", "bare"]
    assert len(source.resources()) == len(source.prompts()) == 1
    assert source.state.status == "ready"
    await source.start()
    await source.close()


@pytest.mark.parametrize("thing", [7, Shop, None, "add"])
def test_what_offers_nothing_is_refused_by_name(thing: object) -> None:
    with pytest.raises(TypeError, match="is neither a function nor a tool"):
        FunctionSource([thing])


def test_an_empty_source_offers_nothing() -> None:
    source = FunctionSource()
    assert (source.invocables(), source.resources(), source.prompts()) == ((), (), ())


# modules and files

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


ALL = '''
from __future__ import annotations
import json
from pathlib import Path
import pydantic
from anykit.tools import Toolkit, prompt, resource, tool
from anykit.toolkits.filesystem import Filesystem
from helpers_of_all import shout

def plain(x: int) -> int:
    """Not a tool."""
    return x

@tool
def loud(text: str) -> str:
    """Shouts."""
    return shout(text)

also_loud = loud

@resource("all://one")
def one() -> str:
    """One."""
    return "1"

@prompt
def ask(what: str) -> str:
    """Asks."""
    return what

class Kit(Toolkit):
    """A kit."""
    class Config(pydantic.BaseModel):
        root: Path
    @tool
    def use(self) -> str:
        """Uses."""
        return str(self.config.root)

class _Bare:
    from anykit.capabilities import InvocableSpec
    spec = InvocableSpec(name="bare", description="", input_schema={"type": "object"})
    async def invoke(self, request, context):
        raise NotImplementedError

bare = _Bare()

class _Provider:
    def invocables(self): return []
    def resources(self): return []
    def prompts(self): return []

provider = _Provider()

class Explosive:
    def __getattr__(self, name):
        raise RuntimeError("do not touch")

explosive = Explosive()
'''


async def test_a_file_offers_what_stands_in_it(write: Write) -> None:
    write("helpers_of_all.py", "def shout(text): return text.upper()\n")
    path = write("my tools.py", ALL)
    before = list(sys.path)
    loaded = load_module(path)
    assert loaded.name == "my tools"
    assert loaded.location == str(path)
    assert [one.spec.name for one in loaded.tools] == ["loud", "bare"]
    assert [one.spec().name for one in loaded.toolkits] == ["kit"]
    assert [one.uri for one in loaded.resources] == ["all://one"]
    assert [one.name for one in loaded.prompts] == ["ask"]
    assert len(loaded.providers) == 1
    assert not loaded.is_empty
    assert len(loaded.members) == 4
    assert await call(loaded.tools[0], text="hi") == "HI"
    assert sys.path == before


def test_a_toolkit_counts_only_where_it_is_defined(write: Write) -> None:
    write("kits_defined_here.py", "from anykit.tools import Toolkit\nclass Mine(Toolkit):\n    'Mine.'\n")
    loaded = load_module(write("only_imports.py", "from kits_defined_here import Mine\n"))
    assert loaded.toolkits == ()
    assert loaded.is_empty


def test_an_instance_of_a_toolkit_offers_its_class(write: Write) -> None:
    write("kits_instanced.py", "from anykit.tools import Toolkit\nclass Yours(Toolkit):\n    'Yours.'\n")
    loaded = load_module(write("instances.py", "from kits_instanced import Yours\nyours = Yours()\n"))
    assert [one.__name__ for one in loaded.toolkits] == ["Yours"]


async def test_one_object_of_a_file_may_be_named(write: Write) -> None:
    write("helpers_of_all.py", "def shout(text): return text.upper()\n")
    path = write("named.py", ALL + "\nmany = [loud, plain]\n")
    assert [one.spec.name for one in load_module(f"{path}:plain").tools] == ["plain"]
    assert load_module(f"{path}:Kit").toolkits[0].__name__ == "Kit"
    assert [one.spec.name for one in load_module(path, "many").tools] == ["loud", "plain"]
    assert load_module(f"{path}:provider").providers
    with pytest.raises(LoadError, match=r"named\.py:nothing: there is no 'nothing'"):
        load_module(f"{path}:nothing")
    with pytest.raises(LoadError, match="is no tool, toolkit, resource, prompt or provider"):
        load_module(f"{path}:json.decoder")
    with pytest.raises(LoadError, match="class Path is no toolkit"):
        load_module(f"{path}:Path")


def test_files_of_one_name_in_two_folders_do_not_meet(write: Write) -> None:
    for folder, word in (("one", "first"), ("two", "second")):
        write(f"{folder}/common_helper.py", f"WORD = {word!r}\n")
        write(
            f"{folder}/tools.py",
            "from anykit.tools import tool\nimport common_helper\n"
            "@tool\ndef say() -> str:\n    'Says.'\n    return common_helper.WORD\n",
        )
    loaded = [load_module(write(f"{folder}/empty.py", "").parent / "tools.py") for folder in ("one", "two")]
    words = [one.tools[0]() for one in loaded]  # type: ignore[operator]
    assert words == ["first", "second"]
    functions: list[Any] = [one.tools[0] for one in loaded]
    assert functions[0].function.__module__ != functions[1].function.__module__
    assert functions[0].function.__module__.rpartition(".")[2] == "tools"


def test_a_file_loaded_again_is_read_again(write: Write) -> None:
    source = "from anykit.tools import tool\n@tool\ndef {}() -> None:\n    'Does.'\n"
    path = write("again.py", source.format("before"))
    assert [one.spec.name for one in load_module(path).tools] == ["before"]
    path.write_text(source.format("after_the_change"))
    assert [one.spec.name for one in load_module(path).tools] == ["after_the_change"]


def test_a_folder_that_is_a_package_is_a_module(write: Write) -> None:
    write("kit_package/words.py", "WORD = 'hello'\n")
    init = write(
        "kit_package/__init__.py",
        "from anykit.tools import tool\nfrom .words import WORD\n@tool\ndef say() -> str:\n    'Says.'\n    return WORD\n",
    )
    loaded = load_module(init.parent)
    assert loaded.name == "kit_package"
    assert loaded.tools[0]() == "hello"  # type: ignore[operator]
    with pytest.raises(LoadError, match=r"folder without __init__\.py"):
        load_module(write("bare_folder/x.py", "").parent)


def test_a_dotted_name_is_imported(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    init = write("dotted_pkg/__init__.py", "")
    write("dotted_pkg/inner.py", "from anykit.tools import tool\n@tool\ndef hi() -> None:\n    'Hi.'\n")
    monkeypatch.syspath_prepend(init.parent.parent)  # pyright: ignore[reportUnknownMemberType]
    loaded = load_module("dotted_pkg.inner")
    assert (loaded.name, [one.spec.name for one in loaded.tools]) == ("inner", ["hi"])
    assert load_module("dotted_pkg.inner:hi").tools == loaded.tools
    assert objects_of(sys.modules["dotted_pkg.inner"]).tools == loaded.tools


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\ndef broken(:\n", r"bad\.py:2: SyntaxError: "),
        ("\n\nimport no_such_module_anywhere\n", r"bad\.py:3: ModuleNotFoundError: No module named 'no_such_module_"),
        ("def f():\n    raise ValueError('two\\nlines')\nf()\n", r"bad\.py:3: ValueError: two lines"),
        ("import sys\nsys.exit(3)\n", r"bad\.py:2: SystemExit: 3"),
        (
            "from anykit.tools import tool\n@tool\ndef f(*args: int) -> None:\n    'F.'\n",
            r"bad\.py:2: SignatureError: .*args",
        ),
        ("raise KeyboardError\n", r"bad\.py:1: NameError"),
    ],
)
def test_what_goes_wrong_in_a_file_is_told_with_file_and_line(write: Write, text: str, message: str) -> None:
    before = {name for name in sys.modules if name.endswith(".bad")}
    with pytest.raises(LoadError, match=message) as caught:
        load_module(write("bad.py", text))
    assert "\n" not in str(caught.value)
    assert {name for name in sys.modules if name.endswith(".bad")} == before
    assert not [path for path in sys.path if "test_what_goes_wrong" in path]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("nowhere.py", r"nowhere\.py does not exist"),
        ("no_such_module_anywhere", "there is no module 'no_such_module_anywhere'"),
        ("no such thing", "neither a .py file nor the name of a module"),
        ("json.no_such_part", "there is no module 'json.no_such_part'"),
    ],
)
def test_what_is_not_there_is_told(target: str, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        load_module(target)
