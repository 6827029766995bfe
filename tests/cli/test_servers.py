"""MCP servers on the command line: `add`, `show`, `list`, `read`, `prompt`; a hung one costs only the time that was given."""

from __future__ import annotations

import base64
import json
import shlex
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anykit.cli.terminal import Streams, Terminal
from cli.agents import in_a_thread
from cli.hosts import ended
from cli.running import Stream, anykit
from sources.mcp.at_hand import STDIO
from sources.mcp.peers.script import Peer
from sources.mcp.web import Web, serving

PNG = b"\x89PNG\x00\xff"
SCRIPT: dict[str, Any] = {
    "resources": [{"uri": "notes://one", "name": "one", "mimeType": "text/plain"}],
    "templates": [{"uriTemplate": "notes://by/{day}", "name": "by day"}],
    "prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}, {"name": "tone"}]}],
}


class Shop(Peer):
    """Says who it is, has a picture and a talk."""

    def answer(self, method: str, params: dict[str, Any], out: Any) -> dict[str, Any] | None:
        match method, params.get("uri") or params.get("name"):
            case "resources/read", "notes://by/picture":
                blob = base64.b64encode(PNG).decode()
                return {"contents": [{"uri": params["uri"], "mimeType": "image/png", "blob": blob}]}
            case "prompts/get", "talk":
                texts = [("user", "hello"), ("assistant", "hi")]
                return {"messages": [{"role": role, "content": {"type": "text", "text": said}} for role, said in texts]}
            case _:
                return super().answer(method, params, out)


def argv(script: dict[str, Any] | None = None) -> list[str]:
    return [sys.executable, str(STDIO), json.dumps({**SCRIPT, **(script or {})})]


def line(script: dict[str, Any] | None = None) -> str:
    """A command line as somebody types it."""
    return shlex.join(argv(script))


def data(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "anykit.toml").read_text())


def client_file(folder: Path, **servers: dict[str, Any] | str) -> Path:
    """An `mcp.json` with servers by name: scripts, or URLs."""
    entries = {
        name: {"url": said} if isinstance(said, str) else {"command": argv(said)[0], "args": argv(said)[1:]}
        for name, said in servers.items()
    }
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return file


@pytest.fixture
def shop() -> Iterator[Web]:
    script = {**SCRIPT, "prompts": [*SCRIPT["prompts"], {"name": "talk"}]}
    with in_a_thread(serving(Shop(script))) as web:
        yield web


# add


def test_a_command_is_split_as_a_shell_splits_it_and_written_as_command_and_args(folder: Path) -> None:
    done = anykit("add", line(), "--json")
    assert done.code == 0, done.err
    assert data(folder) == {"sources": [{"kind": "mcp", "command": sys.executable, "args": argv()[1:]}]}
    assert done.json[0]["kind"] == "mcp"
    assert done.json[0]["tools"] == ["stdio_echo"]
    assert json.loads(anykit("call", "stdio_echo", "a=1").out) == {"a": "1"}


def test_b080_no_shell_sees_a_command(folder: Path) -> None:
    """kardolus/chatgpt-cli#176: characters that mean something to a shell are arguments like any other."""
    odd = ["a; touch marker.txt", "$(touch marker.txt)", "`id`", "--name=x y"]
    done = anykit("add", f"{line()} {shlex.join(odd)}")
    assert done.code == 0, done.err
    assert data(folder)["sources"][0]["args"][2:] == odd
    assert not (folder / "marker.txt").exists()


def test_a_command_is_not_added_twice(folder: Path) -> None:
    assert anykit("add", line(), "--name", "one").code == 0
    before = (folder / "anykit.toml").read_text()
    done = anykit("add", line(), "--json")
    assert (done.json[0]["added"], done.json[0]["name"]) == (False, "one")
    assert (folder / "anykit.toml").read_text() == before


def test_words_before_the_program_are_its_environment_and_a_path_keeps_its_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "anykit.toml").write_text("# mine\n")
    below = folder / "below"
    below.mkdir()
    (below / "serve.py").write_text(
        f"import runpy, sys\nsys.argv = ['x', '{{}}']\nrunpy.run_path({str(STDIO)!r}, run_name='__main__')\n"
    )
    monkeypatch.chdir(below)
    done = anykit("add", f"MODE=quick {sys.executable} serve.py", "--name", "here")
    assert done.code == 0, done.err
    assert data(folder) == {
        "sources": [
            {
                "kind": "mcp",
                "command": sys.executable,
                "args": ["serve.py"],
                "env": {"MODE": "quick"},
                "cwd": "below",
                "name": "here",
            }
        ]
    }
    monkeypatch.chdir(folder)
    assert anykit("call", "here_echo").code == 0


@pytest.mark.parametrize(
    "text",
    [
        "API_TOKEN=s3cret npx server",
        "npx server --api-key s3cret",
        "npx server --token=s3cret",
        "npx server -password s3cret",
    ],
)
def test_a_secret_of_a_command_is_not_written_down(folder: Path, text: str) -> None:
    done = anykit("add", text)
    assert done.code == 2
    assert done.err.startswith("error[plain_secret]")
    assert "s3cret" not in done.err
    assert not (folder / "anykit.toml").exists()


def test_a_reference_in_a_command_is_written_as_it_is(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEER_TOKEN", "s3cret")
    done = anykit("add", f"TOKEN='${{PEER_TOKEN}}' {line()} --max-tokens 5 --token '${{PEER_TOKEN}}'")
    assert done.code == 0, done.err
    source = data(folder)["sources"][0]
    assert source["env"] == {"TOKEN": "${PEER_TOKEN}"}
    assert source["args"][-4:] == ["--max-tokens", "5", "--token", "${PEER_TOKEN}"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("/no/such/program at all", 4),
        ('npx "server', 2),
        ("A=1 B=2", 2),
        (f"{sys.executable} -c 'import sys; sys.exit(\"out of paper\")'", 4),
    ],
)
def test_a_command_that_does_not_work_is_not_written(folder: Path, text: str, code: int) -> None:
    done = anykit("add", text)
    assert done.code == code
    assert done.out == ""
    assert not (folder / "anykit.toml").exists()
    if "paper" in text:
        assert "out of paper" in done.err


def test_a_hung_command_is_given_up_after_the_timeout_and_may_be_written_unseen(folder: Path) -> None:
    begun = time.monotonic()
    done = anykit("add", line({"hang": True}), "--timeout", "0.5")
    assert time.monotonic() - begun < 6
    assert done.code == 4
    assert not (folder / "anykit.toml").exists()
    assert anykit("add", line({"hang": True}), "--no-verify").code == 0
    assert data(folder)["sources"][0]["kind"] == "mcp"


def test_a_url_is_asked_and_its_headers_are_kept(folder: Path, shop: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM_KEY", "s3cret")
    done = anykit("add", shop.url, "--name", "shop", "--header", "X-Api-Key: ${TEAM_KEY}", "--json")
    assert done.code == 0, done.err
    assert data(folder) == {
        "sources": [{"url": shop.url, "kind": "mcp", "headers": {"X-Api-Key": "${TEAM_KEY}"}, "name": "shop"}]
    }
    assert done.json[0]["tools"] == ["shop_echo"]
    assert "s3cret" in {request.headers.get("x-api-key") for request in shop.requests}


def test_a_file_of_a_client_is_added_as_it_is_and_a_hung_server_costs_only_itself(folder: Path, shop: Web) -> None:
    client_file(folder, good={}, shop=shop.url, hung={"hang": True})
    done = anykit("add", "./mcp.json", "--timeout", "4")
    assert done.code == 0, done.err
    assert data(folder) == {"sources": ["mcp.json"]}
    assert "2 of 3 servers ready" in done.out
    assert {"good_echo", "shop_echo"} <= {row[0].strip() for row in done.rows}
    assert "warning: hung is not available now" in done.err
    assert anykit("add", "mcp.json", "--json").json[0]["added"] is False


def test_several_are_added_at_once_or_none(folder: Path, shop: Web) -> None:
    client_file(folder, good={})
    assert anykit("add", "mcp.json", shop.url, line(), "tools.py", "/no/such/program x").code == 4
    assert not (folder / "anykit.toml").exists()
    done = anykit("add", "mcp.json", shop.url, line(), "tools.py", "--json")
    assert [one["kind"] for one in done.json] == ["mcp", "mcp", "mcp", "python"]
    assert len(data(folder)["sources"]) == 4


@pytest.mark.parametrize("text", ["{", "[]", '{"theme": "dark"}'])
def test_a_file_without_servers_is_not_added(folder: Path, text: str) -> None:
    (folder / "mcp.json").write_text(text)
    done = anykit("add", "mcp.json")
    assert (done.code, done.out) == (2, "")
    assert "mcp.json" in done.err
    assert not (folder / "anykit.toml").exists()
    assert anykit("add", "nowhere.json").code == 2


def test_the_file_of_a_client_is_not_written_to(folder: Path) -> None:
    before = client_file(folder, good={}).read_text()
    done = anykit("add", "tools.py", "--config", "mcp.json")
    assert done.code == 2
    assert "is not written here" in done.err
    assert (folder / "mcp.json").read_text() == before


def test_a_server_that_wants_credentials_says_so_and_one_that_wants_a_login_is_added(folder: Path) -> None:
    metadata = ""

    async def closed(request: Any, reply: Any) -> bool:
        await reply.send(401, www_authenticate=f"Bearer {metadata}")
        return True

    with in_a_thread(serving(Peer(), before=closed)) as web:
        done = anykit("add", web.url)
        assert done.code == 3
        assert "--token" in done.err
        assert not (folder / "anykit.toml").exists()
        metadata = f'resource_metadata="{web.url}/metadata"'
        done = anykit("add", web.url, "--name", "shop")
        assert done.code == 0
        assert "anykit login shop" in done.err
        assert data(folder)["sources"] == [{"url": web.url, "kind": "mcp", "name": "shop"}]
        shown = anykit("show", "shop", "--json").json
        assert (shown["state"], shown["server"]["needs"]) == ("failed", "login")


# list and show


def test_resources_templates_and_prompts_of_servers_are_listed(folder: Path, shop: Web) -> None:
    file = client_file(folder, a={}, shop=shop.url)
    for how in (("mcp.json",), ("--config", str(file))):
        found = anykit("list", *how, "--json").json
        assert {row["name"] for row in found if row["type"] == "tool"} == {"a_echo", "shop_echo"}
        assert {(row["uri"], row["template"]) for row in found if row["type"] == "resource"} >= {
            ("notes://one", False),
            ("notes://by/{day}", True),
        }
        assert {row["name"] for row in found if row["type"] == "prompt"} == {"a_greet", "shop_greet", "shop_talk"}


def test_a_server_is_shown_with_all_that_is_known_of_it(folder: Path) -> None:
    client_file(folder, good={"stderr": 12})
    done = anykit("show", "good", "-s", "mcp.json")
    assert done.code == 0
    assert ["state", "ready"] in done.rows
    assert ["protocol", "2026-07-28"] in done.rows
    for what in ("tools", "resources", "templates", "prompts"):
        assert [what, "1"] in done.rows
    assert ["eeeeeeeeeeee"] in done.rows
    assert "tools (listChanged)" in done.out
    server = anykit("show", "good", "-s", "mcp.json", "--json").json["server"]
    assert server["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert (server["protocol"], server["tools"], server["stderr"]) == ("2026-07-28", 1, ["e" * 12])


def test_a_server_that_failed_is_shown_with_its_reason_its_retry_and_its_last_words(folder: Path) -> None:
    client_file(folder, broken={"exit": 3})
    done = anykit("show", "broken", "-s", "mcp.json", "--json")
    assert done.code == 0
    assert done.json["state"] == "failed"
    assert "exited with code 3" in done.json["reason"]
    assert done.json["retry_at"] > time.time() - 60
    assert done.json["server"]["stderr"] == ["cannot go on"]
    text = anykit("show", "broken", "-s", "mcp.json")
    assert "cannot go on" in text.out
    assert any(row[0] == "tries again" for row in text.rows)


@pytest.mark.parametrize(
    "verb", [("list", "mcp.json"), ("show", "hung", "-s", "mcp.json"), ("show", "shop_echo", "-s", "mcp.json")]
)
def test_a_hung_server_is_waited_for_no_longer_than_asked_and_the_rest_is_printed(
    folder: Path, shop: Web, verb: tuple[str, ...]
) -> None:
    client_file(folder, hung={"hang": True}, shop=shop.url)
    begun = time.monotonic()
    done = anykit(*verb, "--timeout", "3")
    assert time.monotonic() - begun < 7
    assert done.code == 0, done.err
    assert "source hung is not available: no answer yet" in done.err
    assert "shop" in done.out or "hung" in done.out


class Mute(Peer):
    """Connects, and never says what resources and prompts it has."""

    def answer(self, method: str, params: dict[str, Any], out: Any) -> dict[str, Any] | None:
        return None if method in ("resources/list", "prompts/list") else super().answer(method, params, out)


def test_a_server_that_hangs_at_its_lists_keeps_nobody_elses_from_being_shown(folder: Path, shop: Web) -> None:
    with in_a_thread(serving(Mute(SCRIPT))) as mute:
        client_file(folder, mute=mute.url, shop=shop.url)
        begun = time.monotonic()
        done = anykit("list", "mcp.json", "--timeout", "3", "--json")
        assert done.code == 0
        assert {row["name"] for row in done.json if row["type"] == "tool"} == {"mute_echo", "shop_echo"}
        assert {row["uri"] for row in done.json if row["type"] == "resource"} == {"notes://one", "notes://by/{day}"}
        assert "source mute did not say in time what it has" in done.err
        assert anykit("read", "notes://one", "-s", "mcp.json", "--timeout", "3").out == "at notes://one\n"
        assert time.monotonic() - begun < 9


# read


def test_the_text_of_a_resource_goes_to_stdout(folder: Path, shop: Web) -> None:
    anykit("add", shop.url, "tools.py")
    assert anykit("read", "notes://one").out == "at notes://one\n"
    assert anykit("read", "notes://by/monday").out == "at notes://by/monday\n"
    assert anykit("read", "notes://today").out == "tea\n"
    assert anykit("read", "notes://one", "--json").json == {
        "contents": [{"uri": "notes://one", "mimeType": "text/plain", "text": "at notes://one"}]
    }


def test_what_is_no_text_goes_into_a_file_and_never_to_a_terminal(folder: Path, shop: Web) -> None:
    anykit("add", shop.url)
    uri = "notes://by/picture"
    refused = anykit("read", uri, stdout_terminal=True)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.startswith("error[binary]")
    assert f"anykit read {uri} -o FILE" in refused.err
    done = anykit("read", uri, "-o", "picture.png")
    assert (done.code, done.out) == (0, "")
    assert (folder / "picture.png").read_bytes() == PNG
    assert anykit("read", uri, "--json").json == {
        "contents": [{"uri": uri, "mimeType": "image/png", "blob": base64.b64encode(PNG).decode()}]
    }
    assert anykit("read", "notes://one", "-o", "one.txt").code == 0
    assert (folder / "one.txt").read_bytes() == b"at notes://one"
    assert anykit("read", uri, "-o", "nowhere/picture.png").code == 2


def test_bytes_are_written_into_a_pipe_as_they_are(tmp_path: Path) -> None:
    with (tmp_path / "out").open("w") as stdout:
        terminal = Terminal(Streams(Stream(), stdout, Stream(), {}))
        assert terminal.write_bytes(PNG)
    assert (tmp_path / "out").read_bytes() == PNG


def test_a_resource_that_there_is_not_is_answered_with_the_nearest(folder: Path, shop: Web) -> None:
    anykit("add", shop.url)
    done = anykit("read", "notes://ome")
    assert done.code == 5
    assert done.err.startswith("error[unknown_resource]")
    assert "did you mean:  notes://one" in done.err
    client_file(folder, broken={"exit": 3})
    assert anykit("read", "notes://one", "-s", "mcp.json").code == 4


def test_nothing_is_waited_for_once_a_source_has_what_is_read(folder: Path, shop: Web) -> None:
    client_file(folder, hung={"hang": True}, shop=shop.url)
    begun = time.monotonic()
    done = anykit("read", "notes://one", "-s", "mcp.json", "--timeout", "60")
    assert (done.code, done.out) == (0, "at notes://one\n")
    assert anykit("prompt", "shop_greet", "who=Ann", "-s", "mcp.json", "--timeout", "60").code == 0
    assert time.monotonic() - begun < 9


# prompt


def test_a_prompt_is_printed_as_its_text_or_as_messages(folder: Path, shop: Web) -> None:
    anykit("add", shop.url, "tools.py", "--json")
    client_file(folder, shop=shop.url)
    assert anykit("prompt", "shop_greet", "who=Ann B", "-s", "mcp.json").out == 'greet {"who": "Ann B"}\n'
    assert anykit("prompt", "shop_talk", "-s", "mcp.json").out == "user:\nhello\n\nassistant:\nhi\n"
    assert anykit("prompt", "shop_talk", "-s", "mcp.json", "--json").json == {
        "messages": [
            {"role": "user", "content": {"type": "text", "text": "hello"}},
            {"role": "assistant", "content": {"type": "text", "text": "hi"}},
        ]
    }
    assert anykit("prompt", "greet", "name=Ann", "-s", "tools.py").out == "hi Ann\n"
    given = anykit("prompt", "greet", "--input-json", '{"name": "Bo"}', "word=hey", "-s", "tools.py")
    assert given.out == "hey Bo\n"


def test_wrong_arguments_of_a_prompt_are_named_all_at_once(folder: Path) -> None:
    done = anykit("prompt", "greet", "nam=Ann", "-s", "tools.py")
    assert done.code == 2
    assert done.err.startswith("error[invalid_input]")
    assert "/name: is required" in done.err
    assert "/nam: there is no such argument" in done.err
    assert anykit("prompt", "greet", "Ann", "-s", "tools.py").code == 2
    unknown = anykit("prompt", "gret", "-s", "tools.py")
    assert unknown.code == 5
    assert "did you mean:  greet" in unknown.err


def test_read_and_prompt_act_here_and_not_on_a_running_host() -> None:
    for verb in (("read", "a://1"), ("prompt", "greet"), ("login", "shop")):
        assert anykit(*verb, "--connect", "http://127.0.0.1:1").code == 2


def test_a_command_that_ends_leaves_no_child_behind(folder: Path) -> None:
    pids = folder / "pids"
    client_file(folder, good={"pids": str(pids)})
    code, out, err = ended(("list", "tools", "mcp.json"), folder)
    assert (code, "good_echo" in out) == (0, True), err
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists()
