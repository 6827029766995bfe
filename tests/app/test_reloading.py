"""A changed configuration on a workbench that runs: what is named as before is not touched."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.app import ConfigError
from anykit.capabilities import Invocable, PromptProvider, ResourceProvider, State
from anykit.runtime import CatalogChanged

pytestmark = pytest.mark.anyio

SHOP = Path(__file__).parents[2] / "docs_src" / "shop_server.py"
TOOLS = """
from anykit import tool

@tool
def {name}() -> str:
    \"\"\"Says its name.\"\"\"
    return "{name}"
"""
COUNTER = '''
import asyncio
from pydantic import BaseModel, SecretStr
from anykit import Toolkit, tool

closed: list[str] = []

class Counter(Toolkit):
    """Counts."""

    name = "counter"

    class Config(BaseModel):
        start: int
        key: SecretStr = SecretStr("")

    async def setup(self, config: Config) -> None:
        if config.start < 0:
            raise ValueError("below zero")

    async def close(self) -> None:
        closed.append(str(self.config.start))

    @tool
    def value(self) -> int:
        """The value."""
        return self.config.start

    @tool
    async def slow(self, seconds: float) -> int:
        """The value, late."""
        await asyncio.sleep(seconds)
        return self.config.start
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("one", "two", "three"):
        (tmp_path / f"{name}.py").write_text(TOOLS.format(name=name))
    (tmp_path / "counter.py").write_text(COUNTER)
    return tmp_path


def write(folder: Path, text: str) -> Path:
    file = folder / "anykit.toml"
    file.write_text(text)
    return file


async def turns() -> None:
    """Let what was just begun get as far as it waits."""
    for _ in range(20):
        await asyncio.sleep(0)


class Counted:
    """A provider that connects, to be counted."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.started = 0
        self.closed = 0

    state = State("ready")

    def invocables(self) -> Sequence[Invocable]:
        return ()

    def resources(self) -> Sequence[ResourceProvider]:
        return ()

    def prompts(self) -> Sequence[PromptProvider]:
        return ()

    async def start(self) -> None:
        self.started += 1

    async def close(self) -> None:
        self.closed += 1

    def subscribe(self, callback: Any) -> Any:
        return lambda: None


async def test_sources_are_added_removed_and_kept_in_one_change(folder: Path) -> None:
    file = write(folder, 'sources = ["one.py", "two.py"]\n')
    given = Counted("given")
    async with Workbench(given, config=file) as bench:
        kept = bench.catalog.snapshot.sources["one"].provider
        seen: list[list[str]] = []
        with_bench = bench.session().subscribe(
            lambda change: seen.append(list(change.snapshot.tools)) if isinstance(change, CatalogChanged) else None
        )
        write(folder, '# other words\nsources = [\n  "three.py",\n  "one.py",\n]\n')
        report = await bench.reload()
        with_bench()
        assert (report.added, report.removed, report.changed) == (("three",), ("two",), ())
        assert set(report.kept) == {"one", "given"}
        assert not report.problems
        assert bool(report)
        assert seen == [["three", "one"]]
        assert bench.catalog.snapshot.sources["one"].provider is kept
        assert (given.started, given.closed) == (1, 0)
        assert (await bench.call("three")).output == "three"
        assert (await bench.call("two")).is_error
        assert list(bench.catalog.snapshot.sources) == ["three", "one", "given"]
        again = await bench.reload()
        assert not again
        assert set(again.kept) == {"three", "one", "given"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("sources = [", "anykit.toml"),
        ('sorces = ["two.py"]', "did you mean sources"),
        ('sources = ["two.py"]\n[serve]\nport = "x"', "serve.port"),
        ('sources = ["two.py", {url = "http://h.example", token = "${NO_SUCH}"}]', r"sources\[1\].token: .*NO_SUCH"),
        (
            'sources = ["two.py"]\n[toolkits.counter.config]\nkey = "${NO_SUCH}"',
            r"toolkits.counter.config.key: .*NO_SUCH",
        ),
        ('sources = ["two.py"]\n[agents.a]\ncard = "http://${NO_SUCH}/c"', r"agents.a.card: .*NO_SUCH"),
        ('sources = ["two.py"]\n[serve]\ntoken = "${NO_SUCH}"', r"serve.token: .*NO_SUCH"),
    ],
)
async def test_a_bad_one_is_refused_whole(folder: Path, text: str, why: str) -> None:
    file = write(folder, 'sources = ["one.py"]\n')
    async with Workbench(config=file) as bench:
        before = bench.catalog.snapshot
        write(folder, text)
        with pytest.raises(ConfigError, match=why):
            await bench.reload()
        assert bench.catalog.snapshot is before
        assert bench.config.sources == ["one.py"]
        assert (await bench.call("one")).output == "one"


async def test_what_is_switched_off_may_refer_to_nothing(folder: Path) -> None:
    async with Workbench(config=write(folder, 'sources = ["one.py"]\n')) as bench:
        write(folder, 'sources = ["one.py", {url = "http://h.example", token = "${NO_SUCH}", enabled = false}]\n')
        report = await bench.reload()
        assert report.added == ("h_example",)
        assert {one.name: one.state.status for one in bench.sources()} == {"one": "ready", "h_example": "disabled"}


async def test_a_source_that_cannot_be_opened_costs_only_itself_and_is_tried_again(folder: Path) -> None:
    async with Workbench(config=write(folder, 'sources = ["one.py"]\n')) as bench:
        write(folder, 'sources = ["one.py", "late.py"]\n')
        report = await bench.reload()
        assert report.added == ("late",)
        assert "late.py does not exist" in report.problems[0]
        (folder / "late.py").write_text(TOOLS.format(name="late"))
        report = await bench.reload()
        assert (report.changed, report.kept, report.problems) == (("late",), ("one",), ())
        assert (await bench.call("late")).output == "late"


async def test_a_source_is_switched_off_and_on_under_its_name(folder: Path) -> None:
    async with Workbench(config=write(folder, 'sources = ["one.py", "two.py"]\n')) as bench:
        kept = bench.catalog.snapshot.sources["two"].provider
        write(folder, 'sources = [{target = "one.py", enabled = false}, "two.py"]\n')
        report = await bench.reload()
        assert (report.changed, report.kept) == (("one",), ("two",))
        assert [tool.name for tool in bench.tools()] == ["two"]
        write(folder, 'sources = ["one.py", "two.py"]\n')
        await bench.reload()
        assert [tool.name for tool in bench.tools()] == ["one", "two"]
        assert bench.catalog.snapshot.sources["two"].provider is kept


async def test_a_name_is_never_pointed_at_another_source(folder: Path) -> None:
    (folder / "other.py").write_text(TOOLS.format(name="one"))
    async with Workbench(config=write(folder, 'sources = ["one.py"]\n')) as bench:
        write(folder, 'sources = ["other.py"]\n')
        await bench.reload()
        assert [tool.name for tool in bench.tools()] == ["other_one"]
        write(folder, 'sources = ["other.py", "one.py"]\n')
        await bench.reload()
        assert {tool.name for tool in bench.tools()} == {"other_one", "one"}


async def test_toolkits_are_configured_in_place(folder: Path) -> None:
    start = 'sources = ["counter.py", "one.py"]\n[toolkits.counter.config]\nstart = '
    async with Workbench(config=write(folder, f"{start}1\n")) as bench:
        assert (await bench.call("value")).structured == 1
        late = asyncio.ensure_future(bench.call("slow", {"seconds": 0.3}))
        await turns()
        write(folder, f"{start}2\n")
        report = await bench.reload()
        assert (report.toolkits, report.changed) == (("counter",), ())
        assert (await bench.call("value")).structured == 2
        assert (await late).structured == 1
        assert not (await bench.reload()).toolkits
        write(folder, f"{start}-1\n")
        report = await bench.reload()
        assert "toolkit counter" in report.problems[0]
        assert (await bench.call("value")).structured == 2
        write(folder, 'sources = ["counter.py", "one.py"]\n')
        assert (await bench.reload()).toolkits == ("counter",)
        assert (await bench.call("value")).status == "denied"


async def test_b063_a_toolkit_that_is_switched_off_while_it_serves_is_refused(folder: Path) -> None:
    """ComposioHQ/composio#2455: what was listed before still ran once its toolkit was switched off."""
    on = 'sources = ["counter.py"]\n[toolkits.counter.config]\nstart = 1\n'
    async with Workbench(config=write(folder, on)) as bench:
        write(folder, 'sources = ["counter.py"]\n[toolkits.counter]\nenabled = false\n')
        report = await bench.reload()
        assert report.changed == ("counter",)
        refused = await bench.call("value")
        assert (refused.status, "switched off" in refused.output) == ("denied", True)
        write(folder, on)
        assert (await bench.reload()).toolkits == ("counter",)
        assert (await bench.call("value")).structured == 1


async def test_what_a_caller_configured_outlives_reloads_of_other_things(folder: Path) -> None:
    async with Workbench(config=write(folder, 'sources = ["counter.py"]\n')) as bench:
        caller = bench.session(principal="p", face="a2e", id="s1")
        await caller.configure("counter", {"start": 7})
        write(folder, 'sources = ["counter.py", "one.py"]\n')
        await bench.reload()
        assert (await caller.call("value")).structured == 7
        write(folder, 'sources = ["one.py"]\n')
        await bench.reload()
        assert (await caller.call("value")).is_error
        write(folder, 'sources = ["counter.py", "one.py"]\n')
        await bench.reload()
        assert (await caller.call("value")).status == "denied"
        caller.close()


async def test_calls_on_a_source_that_goes_are_answered_before_it_is_closed(folder: Path) -> None:
    (folder / "slow.py").write_text(
        "import asyncio\nfrom anykit import tool\n\nclass Life:\n    closed = False\n"
        "    def invocables(self): return ()\n    def resources(self): return ()\n    def prompts(self): return ()\n"
        "    state = __import__('anykit.capabilities', fromlist=['State']).State('ready')\n"
        "    async def start(self): pass\n    async def close(self): Life.closed = True\n"
        "    def subscribe(self, callback): return lambda: None\n\nlife = Life()\n\n"
        '@tool\nasync def wait(seconds: float) -> bool:\n    """Waits."""\n    await asyncio.sleep(seconds)\n'
        "    return Life.closed\n"
    )
    async with Workbench(config=write(folder, 'sources = ["slow.py", "one.py"]\n')) as bench:
        provider: Any = bench.catalog.snapshot.sources["slow"].provider
        late = asyncio.ensure_future(bench.call("wait", {"seconds": 0.3}))
        await turns()
        write(folder, 'sources = ["one.py"]\n')
        assert (await bench.reload()).removed == ("slow",)
        assert (await bench.call("wait", {"seconds": 0})).is_error
        assert (await late).structured is False
    assert provider.providers[0].closed


@pytest.mark.timeout(30)
async def test_a_server_of_a_clients_file_keeps_its_process_while_its_neighbours_come_and_go(folder: Path) -> None:
    def servers(**more: Any) -> None:
        shop = {"command": sys.executable, "args": [str(SHOP)]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"shop": shop, **more}}))

    servers(gone={"command": "nowhere-at-all"})
    async with Workbench(config=write(folder, 'sources = ["mcp.json"]\n'), settle=15.0) as bench:
        shop: Any = bench.catalog.snapshot.sources["shop"].provider
        pid = shop.pid
        assert pid
        assert (folder / "mcp.json") in bench.documents
        servers(new={"command": "nowhere-either"})
        report = await bench.reload()
        assert (report.added, report.removed, report.changed, report.kept) == (("new",), ("gone",), (), ("shop",))
        assert bench.catalog.snapshot.sources["shop"].provider is shop
        assert shop.pid == pid
        assert (await bench.call("shop_stock", {"item": "tea"})).structured == {"item": "tea", "left": 12}
        write(folder, 'sources = [{target = "mcp.json", disabled = ["new"]}]\n')
        report = await bench.reload()
        assert (report.changed, report.kept) == (("new",), ("shop",))
        assert shop.pid == pid


async def test_agents_are_followed_too(folder: Path) -> None:
    def agent(id: str, port: int) -> str:
        return f'[agents.{id}]\ncard = "http://127.0.0.1:{port}/card.json"\n'

    async with Workbench(config=write(folder, agent("a", 9) + agent("b", 9)), settle=0.0) as bench:
        kept = bench.catalog.snapshot.sources["a"].provider
        old = bench.catalog.snapshot.sources["b"].provider
        write(folder, agent("a", 9) + agent("b", 19) + agent("c", 9))
        report = await bench.reload()
        assert (report.added, report.changed, report.kept) == (("c",), ("b",), ("a",))
        assert bench.catalog.snapshot.sources["a"].provider is kept
        assert bench.catalog.snapshot.sources["b"].provider is not old
        write(folder, agent("a", 9) + "enabled = false\n")
        report = await bench.reload()
        assert (report.changed, report.removed) == (("a",), ("b", "c"))


async def test_what_takes_a_restart_is_told(folder: Path) -> None:
    async with Workbench(config=write(folder, "")) as bench:
        write(folder, '[serve]\nport = 1\n[limits]\nqueue = 3\n[bounds]\nprivate_hosts = ["10.0.0.1"]\n')
        report = await bench.reload()
        assert report.restart == ("serve", "limits")
        assert report.summary() == "[serve], [limits] takes a restart"
        assert not await bench.reload()


async def test_a_reference_that_means_something_else_now_is_a_change(folder: Path) -> None:
    (folder / "token").write_text("a")
    text = '[[sources]]\nurl = "http://127.0.0.1:9/mcp"\nkind = "mcp"\nname = "m"\ntoken = "file:token"\n'
    async with Workbench(config=write(folder, text), settle=0.0) as bench:
        assert not await bench.reload()
        (folder / "token").write_text("b")
        assert (await bench.reload()).changed == ("m",)


async def test_a_table_of_a_program_is_taken_as_well(folder: Path) -> None:
    async with Workbench(config={"sources": ["one.py"]}) as bench:
        report = await bench.reload({"sources": ["one.py", "two.py"]}, sources=["three.py"])
        assert (report.added, report.kept) == (("two", "three"), ("one",))
        assert (await bench.reload({}, sources=[])).removed == ("one", "two", "three")
        assert (await bench.reload(None)).kept == ()


async def test_reloads_at_once_do_not_meet(folder: Path) -> None:
    async with Workbench(config={"sources": ["one.py"]}) as bench:
        wanted: list[dict[str, Any]] = [
            {"sources": ["one.py", "two.py"]},
            {"sources": ["three.py"]},
            {"sources": ["one.py"]},
        ]
        await asyncio.gather(*(bench.reload(one) for one in wanted))
        assert list(bench.catalog.snapshot.sources) == ["one"]
        assert (await bench.call("one")).output == "one"
