"""`--connect`: list, show, configure and call on a running host."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from anykit.cli.remote import address_of
from cli.conftest import TICKETS, TOOLS
from cli.hosts import Host, command, listening
from cli.running import Done, anykit

pytestmark = pytest.mark.timeout(30)

TOKEN = "the-token-of-the-host"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    """One host for all; each command has a session of its own on it."""
    place = tmp_path_factory.mktemp("host")
    (place / "tools.py").write_text(TOOLS)
    (place / "tickets.py").write_text(TICKETS)
    env = {"ANYKIT_TOKEN": TOKEN, "ANYKIT_DATA_DIR": str(place / "data")}
    with listening(place, "tools.py", "tickets.py", env=env) as running:
        yield running


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def on(host: Host, *argv: str, stdin: str = "", env: dict[str, str] | None = None) -> Done:
    variables = {"ANYKIT_TOKEN": TOKEN} if env is None else env
    return anykit(*argv, "--connect", host.url, stdin=stdin, env=variables)


def test_tools_and_toolkits_of_the_host_are_listed(host: Host) -> None:
    tools = {tool["name"]: tool for tool in on(host, "list", "tools", "--json").json}
    assert tools["add"]["available"] is True
    assert tools["add"]["input_schema"]["required"] == ["a"]
    assert tools["whoami"]["available"] is False
    assert (tools["whoami"]["toolkit"], "not configured" in tools["whoami"]["reason"]) == ("tickets", True)
    toolkits = {toolkit["name"]: toolkit for toolkit in on(host, "list", "toolkits", "--json").json}
    assert set(toolkits) == {"tickets", "plain"}
    assert toolkits["tickets"]["schema"]["required"] == ["url", "api_key"]
    [source] = on(host, "list", "sources", "--json").json
    assert (source["kind"], source["state"]) == ("a2e", "ready")


def test_one_of_them_is_shown(host: Host) -> None:
    done = on(host, "show", "tickets")
    assert ["api_key", "string, secret", "yes", "", "A key of yours"] in done.rows
    assert on(host, "show", "add").out.endswith("call it:  anykit call add a:=1\n")
    assert on(host, "show", "nothing").code == 5


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("add",), 2, "invalid_input"),
        (("fail",), 5, "execution_failed"),
        (("breaks",), 5, "internal"),
        (("nothing",), 5, "unknown_tool"),
        (("wait", "--timeout", "2"), 4, "timeout"),
        (("whoami",), 3, "not_configured"),
    ],
)
def test_calls_end_as_they_would_here(host: Host, argv: tuple[str, ...], code: int, word: str) -> None:
    done = on(host, "call", *argv)
    assert (done.code, done.out) == (code, "")
    assert f"error[{word}]: " in done.err


def test_a_call_gives_its_text_or_its_whole_result(host: Host) -> None:
    assert on(host, "call", "add", "a=2", "b=3").out == "5\n"
    done = on(host, "call", "describe", "name=n", "at.city=Rome", "--json")
    assert done.json["structuredContent"]["at"] == {"city": "Rome", "floor": 0}
    assert on(host, "call", "echo", "value:=123456789012345678901234567890").out == "123456789012345678901234567890\n"
    assert "halfway there" in on(host, "call", "talk").err
    assert on(host, "call", "parts", "--json").json["content"][0]["type"] == "text"


def test_a_configuration_is_kept_for_this_host_and_sent_at_each_connect(host: Host, tmp_path: Path) -> None:
    data = tmp_path / "data"
    keep = ("--data-dir", str(data))
    done = on(host, "configure", "tickets", "url=http://t", "--secret", "api_key", *keep, stdin="s3cr3t-key\n")
    assert (done.code, done.out) == (0, "")
    assert on(host, "call", "whoami", *keep).out == "http://t s3cr3t-key 5 [] False\n"
    assert on(host, "configure", "tickets", "limit=6", *keep).code == 0
    assert on(host, "call", "whoami", *keep).out == "http://t s3cr3t-key 6 [] False\n"
    assert not any(b"s3cr3t-key" in path.read_bytes() for path in data.rglob("*") if path.is_file())
    assert on(host, "call", "whoami").code == 3  # another data folder is another person
    assert anykit("call", "whoami", "--connect", f"{host.url}/a2e/", *keep, env={"ANYKIT_TOKEN": TOKEN}).code == 0
    on(host, "configure", "tickets", "--unset", *keep)
    assert on(host, "call", "whoami", *keep).code == 3


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("tickets", "url=x", "api_key=k", "limit=0"), 2, "/limit: "),
        (("tickets", "url=http://down", "api_key=k"), 2, "the ticket system is down"),
        (("tickets", "url=http://t"), 3, "config_missing"),
        (("ticket",), 5, "did you mean:  tickets"),
        (("tickets", "limt=1"), 2, "did you mean:  limit"),
    ],
)
def test_a_wrong_configuration_is_refused_and_not_kept(
    host: Host, argv: tuple[str, ...], code: int, message: str
) -> None:
    done = on(host, "configure", *argv)
    assert done.code == code
    assert message in done.err
    assert on(host, "call", "whoami").code == 3


def test_a_template_of_the_hosts_toolkit_is_printed(host: Host) -> None:
    assert "[toolkits.tickets.config]" in on(host, "configure", "tickets", "--template").out


@pytest.mark.parametrize("env", [{}, {"ANYKIT_TOKEN": "another"}])
def test_without_the_right_token_the_host_lets_nobody_in(host: Host, env: dict[str, str]) -> None:
    done = on(host, "list", env=env)
    assert done.code == 3
    assert "error[auth_failed]: " in done.err
    assert "  give it:  export ANYKIT_TOKEN=...   or   --token TOKEN" in done.err
    assert on(host, "list", "--token", TOKEN, env={}).code == 0


@pytest.mark.parametrize(
    ("target", "code", "message"),
    [
        ("http://127.0.0.1:9", 4, "refused"),
        ("/nonexistent/program", 4, "not found"),
        ("false", 4, "exited"),
        ("ftp://127.0.0.1", 2, "http or https"),
        ("'unbalanced", 2, "cannot be split"),
    ],
)
def test_a_host_that_is_not_there_is_one_error(target: str, code: int, message: str) -> None:
    done = anykit("list", "--connect", target)
    assert done.code == code
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_host_that_never_answers_is_waited_for_no_longer_than_asked() -> None:
    done = anykit("list", "--connect", "sleep 60", "--timeout", "0.3")
    assert done.code == 4
    assert "0.3 s" in done.err


def test_the_target_may_be_a_command(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    target = shlex.join(command("serve", "tools.py", "--stdio", "a2e"))
    assert anykit("call", "add", "a=1", "--connect", target).out == "11\n"


def test_b080_no_shell_reads_the_command(tmp_path: Path) -> None:
    """kardolus/chatgpt-cli#176: shell characters in a command were executed."""
    for target in ("echo; touch marker", "echo $(touch marker)", "echo `touch marker`", "echo | touch marker"):
        assert anykit("list", "--connect", target, "--timeout", "3").code == 4
    assert not (tmp_path / "marker").exists()


def test_sources_and_connect_exclude_each_other(host: Host) -> None:
    assert on(host, "list", "tools", "tools.py").code == 2


@pytest.mark.parametrize(
    ("target", "address"),
    [
        ("http://Host:7777", "http://host:7777"),
        ("HTTP://host:7777/", "http://host:7777"),
        ("http://host:7777/a2e", "http://host:7777"),
        ("http://host/sub/a2e/", "http://host/sub"),
        ("http://user:pass@host/", "http://host"),
        ("anykit  serve  x.py", "anykit serve x.py"),
    ],
)
def test_a_host_is_known_by_its_address(target: str, address: str) -> None:
    assert address_of(target) == address
