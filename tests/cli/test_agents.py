"""Agents on the command: shown before and after they are added, called, answered."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.agents import WAIT, Asking, asking, in_a_thread
from cli.hosts import command
from cli.running import anykit, trusted
from sources.a2a.agents import ScriptedAgent
from sources.a2a.sdk_agent import sdk_agent

Agent = tuple[ScriptedAgent, Asking]


@pytest.fixture
def agent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    """In the file of the working directory, with a data folder beside it."""
    monkeypatch.setenv("ANYKIT_DATA_DIR", str(folder / "data"))
    with asking() as (running, handler):
        (folder / "anykit.toml").write_text(f'[agents.calc]\ncard = "{running.url}"\n')
        yield running, handler


def asked() -> str:
    """Make a call that asks; the question's id."""
    done = anykit("call", "Calc_Agent_add", "task=a table")
    assert (done.code, done.out) == (8, "")
    found = re.search(r"answer it:  anykit answer (\w+)", done.err)
    assert found is not None, done.err
    return found[1]


SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city"],
}


# show


@pytest.mark.parametrize("path", ["", "/.well-known/agent-card.json"])
def test_a_card_is_shown_before_it_is_added_and_nothing_is_called(folder: Path, path: str) -> None:
    with asking(provider={"organization": "Sums Ltd", "url": "https://s.example"}) as (agent, _):
        done = anykit("show", agent.url + path)
        whole = anykit("show", agent.url + path, "--json").json
        assert agent.asked == []
    assert done.code == 0, done.err
    for word in (
        "Calc Agent",
        "Calculates.",
        "1.0.0",
        "1.0 JSONRPC",
        "Calc_Agent_add",
        "Adds two numbers",
        "none is required",
    ):
        assert word in done.out
    assert f"add it:  anykit add {agent.url}{path}" in done.out
    assert whole["type"] == "agent"
    assert (whole["name"], whole["version"], whole["dialect"], whole["protocol"]) == (
        "Calc Agent",
        "1.0.0",
        "1.0 JSONRPC",
        "1.0",
    )
    assert whole["url"] == agent.card_url
    assert whole["provider"] == "Sums Ltd"
    assert [(one["id"], one["tool"]) for one in whole["skills"]] == [("add", "Calc_Agent_add")]
    assert whole["interfaces"] == [{"url": f"{agent.url}/rpc", "binding": "JSONRPC", "version": "1.0"}]
    assert sorted(one.name for one in folder.iterdir()) == ["tickets.py", "tools.py"]


def test_a_hostile_card_cannot_steer_the_terminal(folder: Path) -> None:
    with asking(description="nice\x1b[2Jtext\u202e") as (agent, _):
        done = anykit("show", agent.url, stdout_terminal=True)
    assert done.code == 0
    assert "\x1b[2J" not in done.out
    assert "\u202e" not in done.out


def test_a_configured_agent_is_shown_with_its_card_and_dialect(agent: Agent) -> None:
    for name in ("calc", "Calc Agent"):
        done = anykit("show", name)
        assert done.code == 0, done.err
        for word in ("calc", "ready", "Calc Agent", "1.0.0", "1.0 JSONRPC", "Calc_Agent_add"):
            assert word in done.out
    whole = anykit("show", "calc", "--kind", "agent", "--json").json
    assert (whole["type"], whole["kind"], whole["state"]) == ("source", "a2a", "ready")
    assert whole["agent"]["dialect"] == "1.0 JSONRPC"
    assert [one["id"] for one in whole["agent"]["skills"]] == ["add"]
    assert anykit("show", "Calc_Agent_add", "--kind", "agent").code == 5


def test_a_configured_agent_that_is_away_is_shown_with_the_reason(folder: Path) -> None:
    (folder / "anykit.toml").write_text('[agents.far]\ncard = "http://127.0.0.1:1"\n')
    done = anykit("show", "far", "--json")
    assert done.json["state"] == "failed"
    assert "agent-card.json" in done.json["reason"]
    assert "agent" not in done.json


# call


def test_a_skill_is_called(agent: Agent) -> None:
    done = anykit("call", "Calc_Agent_add", "task=now")
    assert (done.code, done.out, done.err) == (0, "at once\n", "")


def test_agents_of_the_file_stand_in_for_the_toolkits_that_come_along(agent: Agent) -> None:
    assert [one["name"] for one in anykit("list", "sources", "--json").json] == ["calc"]
    assert [one["name"] for one in anykit("list", "sources", "tools.py", "--json").json] == ["tools"]


@pytest.mark.parametrize("streaming", [True, False])
def test_progress_is_told_on_stderr(folder: Path, streaming: bool) -> None:
    with in_a_thread(sdk_agent("1.0 JSONRPC", streaming=streaming)) as (url, _):
        (folder / "anykit.toml").write_text(f'[agents.sdk]\ncard = "{url}"\n')
        done = anykit("call", "SDK_Agent_obey", "task=slow")
        assert (done.code, done.out, done.err) == (0, "slow\n", "thinking\n")
        assert "thinking" in anykit("call", "SDK_Agent_obey", "task=slow", terminal=True).err
        failed = anykit("call", "SDK_Agent_obey", "task=fail")
        assert (failed.code, failed.out) == (5, "")
        assert "no quota" in failed.err


def test_ctrl_c_cancels_the_remote_task(folder: Path) -> None:
    with in_a_thread(sdk_agent("1.0 JSONRPC", streaming=True)) as (url, obedient):
        (folder / "anykit.toml").write_text(f'[agents.sdk]\ncard = "{url}"\n')
        trusted(folder, {"ANYKIT_DATA_DIR": str(folder / "data")})
        process = subprocess.Popen(
            command("call", "SDK_Agent_obey", "task=hang"),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "ANYKIT_DATA_DIR": str(folder / "data")},
        )
        killing = threading.Timer(8, process.kill)
        killing.start()
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == "thinking\n"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=WAIT)
        finally:
            killing.cancel()
            process.kill()
        assert (process.returncode, out) == (130, "")
        assert "interrupted" in err
        assert len(obedient.canceled) == 1


def test_a_call_that_asks_says_what_and_how_to_answer(agent: Agent) -> None:
    done = anykit("call", "Calc_Agent_add", "task=a table")
    assert (done.code, done.out) == (8, "")
    first, second = done.err.splitlines()
    assert first == "error[suspended]: Which city?"
    assert re.fullmatch(r"  answer it:  anykit answer \w+ TEXT", second)
    whole = anykit("call", "Calc_Agent_add", "task=a table", "--json")
    assert whole.code == 8
    assert whole.json["isError"] is True


def test_the_way_to_answer_is_made_from_the_schema_and_leads_to_the_same_place(agent: Agent, folder: Path) -> None:
    running, handler = agent
    handler.parts = [{"text": "Where to?"}, {"data": SCHEMA}]
    done = anykit("call", "Calc_Agent_add", "task=x", "--config", "anykit.toml", "--data-dir", "other place")
    assert done.code == 8
    line = done.err.splitlines()[-1]
    assert re.search(r"anykit answer \w+ city=\.\.\. --config anykit\.toml --data-dir 'other place'$", line)
    assert running.asked


def test_what_asked_inside_this_process_cannot_be_answered_by_another(folder: Path) -> None:
    (folder / "asks.py").write_text(
        "from anykit import CapabilityContext, tool\n"
        "from anykit.capabilities import Question\n\n\n"
        "@tool\nasync def book(context: CapabilityContext) -> str:\n"
        '    """Asks."""\n'
        '    await context.ask(Question("input", "Which day?"))\n'
        '    return "booked"\n'
    )
    done = anykit("call", "book", "-s", "asks.py", "--data-dir", "data")
    assert (done.code, done.out) == (8, "")
    assert "Which day?" in done.err
    assert "anykit answer" not in done.err


# answer


def test_where_nothing_waits_nothing_is_listed_and_nothing_made(folder: Path) -> None:
    done = anykit("answer", "--data-dir", "data")
    assert (done.code, done.out, done.err) == (0, "", "nothing waits for an answer\n")
    assert anykit("answer", "--json", "--data-dir", "data").json == []
    assert not (folder / "data").exists()


def test_what_waits_is_listed(agent: Agent) -> None:
    id = asked()
    [row] = anykit("answer").rows
    assert row[:3] == [id, "input", "Calc_Agent_add"]
    assert row[4] == "Which city?"
    [whole] = anykit("answer", "--json").json
    assert (whole["id"], whole["kind"], whole["prompt"], whole["tool"]) == (
        id,
        "input",
        "Which city?",
        "Calc_Agent_add",
    )
    assert whole["expires_at"] > 0
    assert "state" not in whole


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("Lisbon",), "Lisbon"),
        (("Lisbon", "or", "Porto"), "Lisbon or Porto"),
        (("the answer is x=5",), "the answer is x=5"),
        (("--text", "city=Lisbon"), "city=Lisbon"),
        (("text=Lisbon",), "Lisbon"),
        (("--input-json", '"Lisbon"'), "Lisbon"),
    ],
)
def test_a_text_answers_and_the_same_task_goes_on(agent: Agent, argv: tuple[str, ...], said: str) -> None:
    _, handler = agent
    done = anykit("answer", asked(), *argv)
    assert (done.code, done.out) == (0, "done with 1\n"), done.err
    assert handler.answers == [[{"text": said}]]
    assert anykit("answer", "--json").json == []


def test_another_process_answers(agent: Agent, folder: Path) -> None:
    id = asked()
    done = subprocess.run(
        command("answer", id, "Lisbon"), cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=9
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "done with 1\n", "")


@pytest.mark.parametrize(
    ("argv", "data"),
    [
        (("city=Lisbon", "people=2"), {"city": "Lisbon", "people": 2}),
        (("city=Lisbon", "people:=2"), {"city": "Lisbon", "people": 2}),
        (("Lisbon",), {"city": "Lisbon"}),
        (("--input-json", '{"city": "Lisbon"}'), {"city": "Lisbon"}),
        (("people=3", "--input-json", '{"city": "Lisbon"}'), {"city": "Lisbon", "people": 3}),
    ],
)
def test_fields_answer_a_question_with_a_schema(agent: Agent, argv: tuple[str, ...], data: dict[str, object]) -> None:
    _, handler = agent
    handler.parts = [{"text": "Where to?"}, {"data": SCHEMA}]
    done = anykit("answer", asked(), *argv)
    assert (done.code, done.out) == (0, "done with 1\n"), done.err
    assert [part["data"] for part in handler.answers[0]] == [data]


@pytest.mark.parametrize(
    ("argv", "word"),
    [
        (("people=many", "city=x"), "/people"),
        (("people=2",), "city"),
        ((), "it asks: Where to?"),
        (("--input-json", "{"), "not JSON"),
        (("x", "--refuse"), "one answer"),
        (("x", "--text", "y"), "one answer"),
    ],
)
def test_an_answer_that_does_not_fit_leaves_the_question_open(agent: Agent, argv: tuple[str, ...], word: str) -> None:
    _, handler = agent
    handler.parts = [{"text": "Where to?"}, {"data": SCHEMA}]
    id = asked()
    done = anykit("answer", id, *argv)
    assert (done.code, done.out) == (2, ""), done.err
    assert word in done.err
    assert handler.answers == []
    assert [one["id"] for one in anykit("answer", "--json").json] == [id]
    assert anykit("answer", id, "Lisbon").code == 0


def test_one_that_asks_again_waits_again(agent: Agent) -> None:
    _, handler = agent
    first = asked()
    handler.asks_again = True
    done = anykit("answer", first, "Lisbon")
    assert (done.code, done.out) == (8, "")
    found = re.search(r"anykit answer (\w+) TEXT", done.err)
    assert found is not None
    assert found[1] != first
    assert anykit("answer", found[1], "Porto").out == "done with 2\n"


def test_a_question_is_answered_once(agent: Agent) -> None:
    id = asked()
    assert anykit("answer", id, "Lisbon").code == 0
    done = anykit("answer", id, "Porto")
    assert (done.code, done.out) == (5, "")
    assert done.err.startswith("error[unknown_suspension]")


def test_a_question_nearly_named_is_proposed(agent: Agent) -> None:
    id = asked()
    done = anykit("answer", id[:-1], "Lisbon")
    assert done.code == 5
    assert f"did you mean:  {id}" in done.err


def test_a_refusal_cancels_the_remote_task(agent: Agent) -> None:
    _, handler = agent
    done = anykit("answer", asked(), "--refuse")
    assert (done.code, done.out) == (0, "")
    assert "refused" in done.err
    assert handler.canceled == ["t1"]
    assert handler.answers == []
    assert anykit("answer", "--json").json == []


def test_an_authorization_is_gone_on_with_without_words(agent: Agent) -> None:
    _, handler = agent
    handler.state = "TASK_STATE_AUTH_REQUIRED"
    handler.parts = [{"text": "Log in at https://id.example/x"}]
    done = anykit("call", "Calc_Agent_add", "task=x")
    assert done.code == 8
    assert "https://id.example/x" in done.err
    found = re.search(r"anykit answer (\w+)$", done.err.strip())
    assert found is not None
    [row] = anykit("answer", "--json").json
    assert (row["kind"], row["url"]) == ("authorization", "https://id.example/x")
    assert anykit("answer", found[1]).code == 0


def test_whoever_sits_there_is_asked(agent: Agent) -> None:
    _, handler = agent
    done = anykit("answer", asked(), terminal=True, stdin="Lisbon\n")
    assert done.code == 0
    assert "Which city?" in done.err
    assert handler.answers == [[{"text": "Lisbon"}]]
    handler.parts = [{"text": "Where to?"}, {"data": SCHEMA}]
    done = anykit("answer", asked(), terminal=True, stdin="Porto\n\n")
    assert done.code == 0, done.err
    assert handler.answers[1][0]["data"] == {"city": "Porto"}


def test_where_the_agent_is_not_there_the_question_stays_open(agent: Agent, folder: Path) -> None:
    id = asked()
    text = (folder / "anykit.toml").read_text()
    (folder / "anykit.toml").write_text('[agents.calc]\ncard = "http://127.0.0.1:1"\n')
    done = anykit("answer", id, "Lisbon")
    assert (done.code, done.out) == (4, "")
    assert "stays open" in done.err
    (folder / "anykit.toml").write_text(text)
    assert anykit("answer", id, "Lisbon").code == 0


@pytest.mark.parametrize("argv", [("--refuse",), ("--text", "x"), ("--input-json", "{}")])
def test_an_answer_without_a_question_is_a_usage_error(folder: Path, argv: tuple[str, ...]) -> None:
    done = anykit("answer", *argv)
    assert done.code == 2
    assert "which question" in done.err


def test_an_answer_is_printed_as_a_call_is(agent: Agent) -> None:
    done = anykit("answer", asked(), "Lisbon", "--json")
    assert done.code == 0
    assert done.json == {"content": [{"type": "text", "text": "done with 1"}], "isError": False}
