"""`add`: what is named is looked at and written into the file, once, whole, without secrets."""

from __future__ import annotations

import json
import os
import socket
import stat
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anykit.cli.editing import Addition, add_to
from anykit.cli.errors import CommandError
from cli.agents import Asking, asking, in_a_thread
from cli.hosts import listening
from cli.running import anykit
from sources.a2a.agents import ScriptedAgent
from transports.peers import Request, http, peer

Agent = tuple[ScriptedAgent, Asking]


@pytest.fixture
def agent() -> Iterator[ScriptedAgent]:
    with asking() as (running, _):
        yield running


def data(folder: Path) -> dict[str, object]:
    return tomllib.loads((folder / "anykit.toml").read_text())


def nobody() -> str:
    with socket.socket() as place:
        place.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{place.getsockname()[1]}"


# agents


@pytest.mark.parametrize("path", ["", "/", "/.well-known/agent-card.json"])
def test_an_agent_is_added_by_its_base_or_its_cards_url(folder: Path, agent: ScriptedAgent, path: str) -> None:
    done = anykit("add", agent.url + path)
    assert done.code == 0, done.err
    assert data(folder) == {"agents": {"Calc_Agent": {"card": agent.url + path}}}
    assert "Calc_Agent" in done.out
    assert "anykit.toml" in done.out
    assert "Calc_Agent_add" in done.out
    listed = anykit("list", "tools", "--json").json
    assert [tool["name"] for tool in listed] == ["Calc_Agent_add"]
    assert {asked.method for asked in agent.asked} <= {"initialize", "GET /", "GET /a2e/health", "GET /health"} | {
        f"GET {agent.card_path}{tail}" for tail in ("/a2e/health", "/health", "/.well-known/agent-card.json")
    }


def test_what_was_added_is_told_as_json(folder: Path, agent: ScriptedAgent) -> None:
    done = anykit("add", agent.url, "--name", "calc", "--json")
    assert done.json == [
        {
            "target": agent.url,
            "kind": "a2a",
            "name": "calc",
            "added": True,
            "file": str(folder / "anykit.toml"),
            "tools": ["Calc_Agent_add"],
        }
    ]
    assert data(folder) == {"agents": {"calc": {"card": agent.url}}}


def test_nothing_is_added_twice(folder: Path, agent: ScriptedAgent) -> None:
    anykit("add", agent.url)
    before = (folder / "anykit.toml").read_bytes()
    for again in (agent.url, f"{agent.url}/", f"{agent.url}/.well-known/agent-card.json"):
        done = anykit("add", again)
        assert (done.code, done.out) == (0, "")
        assert "is in anykit.toml already, as Calc_Agent" in done.err
        assert anykit("add", again, "--json").json[0]["added"] is False
    assert anykit("add", agent.url, f"{agent.url}/").code == 0
    assert (folder / "anykit.toml").read_bytes() == before


def test_one_line_with_the_same_agent_twice_adds_it_once(folder: Path, agent: ScriptedAgent) -> None:
    done = anykit("add", agent.url, f"{agent.url}/.well-known/agent-card.json", "--json")
    assert [one["added"] for one in done.json] == [True, False]
    assert list(tomllib.loads((folder / "anykit.toml").read_text())["agents"]) == ["Calc_Agent"]


def test_another_agent_of_the_same_name_needs_a_name_of_its_own(folder: Path, agent: ScriptedAgent) -> None:
    anykit("add", agent.url)
    with asking() as (other, _):
        done = anykit("add", other.url)
        assert done.code == 2
        assert done.err.startswith("error[name_taken]")
        assert "--name" in done.err
        assert anykit("add", other.url, "--name", "second").code == 0
    assert list(tomllib.loads((folder / "anykit.toml").read_text())["agents"]) == ["Calc_Agent", "second"]


@pytest.mark.parametrize("kind", [(), ("--kind", "a2a")])
def test_an_agent_that_is_away_is_not_written_and_every_place_is_named(folder: Path, kind: tuple[str, ...]) -> None:
    url = nobody()
    done = anykit("add", url, *kind)
    assert (done.code, done.out) == (4, "")
    assert done.err.startswith("error[unavailable]")
    assert f"{url}/.well-known/agent-card.json" in done.err
    assert not (folder / "anykit.toml").exists()


def test_where_no_card_is_every_place_is_named(folder: Path) -> None:
    async def nothing(request: Request) -> bytes:
        return http(404, "text/plain", b"no")

    with in_a_thread(peer(nothing)) as server:
        for argv in (("add", server.url), ("add", server.url, "--kind", "a2a"), ("show", server.url)):
            done = anykit(*argv)
            assert (done.code, done.out) == (4, "")
            for path in ("/.well-known/agent-card.json", "/.well-known/agent.json", ""):
                assert f"{server.url}{path}" in done.err
    assert not (folder / "anykit.toml").exists()


def test_a_hung_server_costs_no_more_than_the_timeout(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hung:
        url = f"http://127.0.0.1:{hung.getsockname()[1]}"
        done = anykit("add", url, "--kind", "a2a", "--timeout", "0.3")
    assert done.code == 4
    assert f"{url}/.well-known/agent-card.json" in done.err
    assert not (folder / "anykit.toml").exists()


def test_all_targets_are_added_or_none(folder: Path, agent: ScriptedAgent) -> None:
    done = anykit("add", agent.url, nobody(), "--kind", "a2a")
    assert done.code == 4
    assert not (folder / "anykit.toml").exists()
    assert anykit("add", agent.url, "tools.py", "anykit:web").code == 0
    assert data(folder) == {"sources": ["tools.py", "anykit:web"], "agents": {"Calc_Agent": {"card": agent.url}}}


# secrets


@pytest.mark.parametrize(
    "argv",
    [
        ("http://me:s3cret@127.0.0.1:1/",),
        ("http://s3cret@127.0.0.1:1/",),
        ("http://127.0.0.1:1/?api_key=s3cret",),
        ("http://127.0.0.1:1/", "--header", "Authorization: Bearer s3cret"),
        ("http://127.0.0.1:1/", "--header", "X-Api-Key: s3cret"),
        ("http://127.0.0.1:1/", "--header", "Cookie: a=s3cret"),
        ("http://127.0.0.1:1/", "--credential", "key=s3cret"),
        ("http://127.0.0.1:1/", "--token", "s3cret"),
    ],
)
def test_a_secret_is_not_written_down_plainly(folder: Path, argv: tuple[str, ...]) -> None:
    done = anykit("add", *argv)
    assert done.code == 2
    assert done.err.startswith("error[plain_secret]")
    assert "${" in done.err
    assert "s3cret" not in done.err + done.out
    assert not (folder / "anykit.toml").exists()


def test_a_header_with_a_reference_is_sent_and_written_as_it_is(
    folder: Path, agent: ScriptedAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    argv = (
        "add",
        agent.url,
        "--kind",
        "a2a",
        "--header",
        "Authorization: Bearer ${CALC_TOKEN}",
        "--header",
        "X-Team: a",
    )
    done = anykit(*argv)
    assert done.code == 3
    assert "CALC_TOKEN" in done.err
    assert not (folder / "anykit.toml").exists()
    monkeypatch.setenv("CALC_TOKEN", "s3cret")
    done = anykit(*argv)
    assert done.code == 0, done.err
    headers = {"Authorization": "Bearer ${CALC_TOKEN}", "X-Team": "a"}
    assert data(folder) == {"agents": {"Calc_Agent": {"card": agent.url, "headers": headers}}}
    assert "s3cret" not in done.out + done.err


def test_a_card_that_not_everybody_may_see_asks_for_credentials(folder: Path) -> None:
    async def closed(request: Request) -> bytes:
        return http(401, "text/plain", b"who are you")

    with in_a_thread(peer(closed)) as server:
        done = anykit("add", server.url, "--kind", "a2a")
        assert done.code == 3
        assert "--header" in done.err
        assert anykit("show", server.url).code == 3


def test_what_the_card_asks_of_its_callers_is_said(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALC_KEY", "k")
    scheme = {"apiKeySecurityScheme": {"location": "header", "name": "X-Key"}}
    card: dict[str, Any] = {
        "securitySchemes": {"key": scheme},
        "securityRequirements": [{"schemes": {"key": {"list": []}}}],
    }
    with asking(**card) as (agent, _):
        assert "--credential" in anykit("add", agent.url).err
        (folder / "anykit.toml").unlink()
        done = anykit("add", agent.url, "--credential", "key=${CALC_KEY}")
        assert "--credential" not in done.err
        assert data(folder) == {"agents": {"Calc_Agent": {"card": agent.url, "credentials": {"key": "${CALC_KEY}"}}}}
        shown = anykit("show", agent.url, "--json").json
    assert shown["security"] == {"schemes": {"key": "API key in header X-Key"}, "required": [["key"]]}


# what else can be added


def test_python_files_modules_and_toolkits_are_added(folder: Path) -> None:
    done = anykit("add", "tools.py", "anykit:web", "tickets.py:Tickets", "--json")
    assert done.code == 0, done.err
    assert data(folder) == {"sources": ["tools.py", "anykit:web", "tickets.py:Tickets"]}
    assert [one["kind"] for one in done.json] == ["python", "toolkit", "python"]
    assert "add" in done.json[0]["tools"]
    assert done.json[1]["tools"] == ["fetch"]
    assert anykit("call", "add", "a=1", "b=2").out == "3\n"
    assert [one["added"] for one in anykit("add", "./tools.py", "anykit:web", "--json").json] == [False, False]


def test_a_path_is_written_from_where_the_file_lies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "anykit.toml").write_text("# mine\n")
    below = folder / "below"
    below.mkdir()
    (below / "more.py").write_text((folder / "tools.py").read_text())
    monkeypatch.chdir(below)
    assert anykit("add", "more.py").code == 0
    assert (folder / "anykit.toml").read_text().startswith("# mine\n")
    assert data(folder) == {"sources": ["below/more.py"]}
    assert not (below / "anykit.toml").exists()
    assert anykit("call", "add", "a=1", "b=2").out == "3\n"


def test_a_name_is_kept(folder: Path) -> None:
    assert anykit("add", "tools.py", "--name", "mine").code == 0
    assert data(folder) == {"sources": [{"target": "tools.py", "name": "mine"}]}
    assert [one["name"] for one in anykit("list", "sources", "--json").json] == ["mine"]


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("none.py",), 2, "there is no such file"),
        (("broken.py",), 2, "broken"),
        (("anykit:wbe",), 5, "anykit:web"),
        (("ftp://example.com/",), 2, "only http and https"),
        (("http://",), 2, "only http and https"),
        (("http://h:port/",), 2, "only http and https"),
        (("localhost:1234",), 2, "is this a URL?"),
        (("a.py", "b.py", "--name", "x"), 2, "--name is for one target"),
        (("tools.py", "--kind", "smoke"), 2, "smoke"),
        (("tools.py", "--kind", "a2a"), 2, "by its URL"),
        (("tools.py", "--header", "X: y"), 2, "for agents"),
        (("http://127.0.0.1:1", "--no-verify"), 2, "--kind"),
        (("http://127.0.0.1:1", "--header", "nothing"), 2, "--header"),
    ],
)
def test_what_cannot_be_added_is_refused_and_nothing_written(
    folder: Path, argv: tuple[str, ...], code: int, word: str
) -> None:
    (folder / "broken.py").write_text("def broken(:\n")
    done = anykit("add", *argv)
    assert (done.code, done.out) == (code, ""), done.err
    assert word in done.err
    assert "Traceback" not in done.err
    assert not (folder / "anykit.toml").exists()


def test_without_a_look_an_agent_is_written_as_it_is_named(folder: Path) -> None:
    done = anykit("add", "http://127.0.0.1:1/a", "--no-verify", "--kind", "agent", "--name", "far")
    assert done.code == 0, done.err
    assert data(folder) == {"agents": {"far": {"card": "http://127.0.0.1:1/a"}}}


@pytest.mark.timeout(30)
def test_a_host_is_added_as_the_a2e_host_that_it_is(folder: Path) -> None:
    with listening(folder, "tools.py") as host:
        done = anykit("add", host.url, "--json")
        assert done.code == 0, done.err
        assert done.json[0]["kind"] == "a2e"
        assert any(name.endswith("add") for name in done.json[0]["tools"])
        assert data(folder) == {"sources": [{"url": host.url, "kind": "a2e"}]}
        assert anykit("add", f"{host.url}/", "--json").json[0]["added"] is False
        card = anykit("add", f"{host.url}/.well-known/agent-card.json", "--json")
        assert (card.code, card.json[0]["kind"]) == (0, "a2a")


# files


def add(file: Path, *additions: Addition) -> str:
    add_to(file, additions)
    return file.read_text()


AGENT = Addition({"card": "https://a.example"}, "a")
OTHER = Addition({"card": "https://b.example", "headers": {"x": "${Y}"}}, "b.b")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "# first\nsources = [\n  'x.py', # why\n]\n\n# then\n[serve]\nport = 1 # one\n",
        "[[sources]]\ntarget = 'x.py' # why\n\n[serve]\nport = 1\n",
        "[agents.old]\ncard = 'https://o.example' # old\n\n[serve]\nport = 1\n",
        "[agents]\nold = { card = 'https://o.example' } # old\n[serve]\nport = 1\n",
        "agents.old.card = 'https://o.example' # old\nsources = []\n",
        "agents = { old = { card = 'https://o.example' } } # old\n",
        "[serve]\nport = 1\n\n[toolkits.web.config]\n# nothing\n",
        "sources = ['x.py'] # no line break at the end",
    ],
)
def test_what_stands_in_the_file_stays(tmp_path: Path, text: str) -> None:
    file = tmp_path / "anykit.toml"
    file.write_text(text)
    before = tomllib.loads(text)
    after = add(file, AGENT, OTHER, Addition("y.py"), Addition({"url": "https://h.example", "kind": "a2e"}))
    found = tomllib.loads(after)
    assert {**before.get("agents", {}), "a": AGENT.value, "b.b": OTHER.value} == found["agents"]
    added = found["sources"][len(before.get("sources", [])) :]
    assert added in (
        ["y.py", {"url": "https://h.example", "kind": "a2e"}],
        [{"target": "y.py"}, {"url": "https://h.example", "kind": "a2e"}],
    )
    assert found["sources"][: len(before.get("sources", []))] == before.get("sources", [])
    assert {key: value for key, value in found.items() if key not in ("agents", "sources")} == {
        key: value for key, value in before.items() if key not in ("agents", "sources")
    }
    for line in text.splitlines():
        if "#" in line:
            assert line.partition("#")[2] in after
    assert after.endswith("\n")
    assert not list(tmp_path.glob(".anykit*"))


def test_json_is_written_as_it_was_indented(tmp_path: Path) -> None:
    file = tmp_path / "anykit.json"
    file.write_text('{\n    "serve": {"port": 1},\n    "sources": ["x.py"]\n}\n')
    after = add(file, AGENT, Addition("y.py"))
    assert list(json.loads(after).items()) == [
        ("serve", {"port": 1}),
        ("sources", ["x.py", "y.py"]),
        ("agents", {"a": AGENT.value}),
    ]
    assert '\n    "serve"' in after


@pytest.mark.parametrize("name", ["anykit.yaml", "anykit.yml"])
def test_yaml_is_written_too_and_keeps_its_comments(folder: Path, name: str, agent: ScriptedAgent) -> None:
    (folder / name).write_text("sources: [tools.py] # mine\n")
    done = anykit("add", agent.url)
    assert done.code == 0, done.err
    assert (folder / name).read_text() == (
        f'sources: [tools.py] # mine\nagents:\n  Calc_Agent:\n    card: "{agent.url}"\n'
    )
    assert not (folder / "anykit.toml").exists()


def test_another_file_is_named_by_the_flag(folder: Path) -> None:
    assert anykit("add", "tools.py", "--config", "sub/other.json").code == 0
    assert json.loads((folder / "sub" / "other.json").read_text()) == {"sources": [str(folder / "tools.py")]}
    assert anykit("call", "add", "a=1", "b=2", "--config", "sub/other.json").out == "3\n"


@pytest.mark.parametrize("text", ["sources = [", "sorces = []\n", "sources = 5\n", "agents = 5\n"])
def test_a_file_that_is_wrong_already_is_not_made_worse(folder: Path, text: str) -> None:
    (folder / "anykit.toml").write_text(text)
    done = anykit("add", "tools.py")
    assert done.code == 2
    assert done.err.startswith("error[bad_config]")
    assert (folder / "anykit.toml").read_text() == text


def test_mode_and_link_of_the_file_are_kept(folder: Path) -> None:
    real = folder / "real.toml"
    real.write_text("# mine\n")
    real.chmod(0o600)
    (folder / "anykit.toml").symlink_to(real)
    assert anykit("add", "tools.py").code == 0
    assert (folder / "anykit.toml").is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert tomllib.loads(real.read_text()) == {"sources": ["tools.py"]}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_an_error(folder: Path) -> None:
    folder.chmod(0o500)
    try:
        done = anykit("add", "tools.py")
    finally:
        folder.chmod(0o700)
    assert done.code == 2
    assert "cannot be written" in done.err


def test_a_file_of_another_form_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"only \.toml, \.json and \.yaml"):
        add_to(tmp_path / "anykit.ini", [AGENT])
