"""`call`."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path

import pytest

from cli.running import anykit


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        (("add", "a=2", "b=3"), "5\n"),
        (("add", "a:=2"), "12\n"),
        (("add", "--input-json", '{"a": 1, "b": 2}'), "3\n"),
        (("add", "--input-json", '{"a": 1, "b": 2}', "b=5"), "6\n"),
        (("echo", "value=plain"), "plain\n"),
        (("echo",), "null\n"),
        (("echo", 'value:=""'), "\n"),
        (("echo", "value:=[]"), "[]\n"),
        (("echo", 'value:={"a":[1,2]}'), '{"a":[1,2]}\n'),
    ],
)
def test_a_call_prints_its_text(folder: Path, argv: tuple[str, ...], text: str) -> None:
    done = anykit("call", *argv, "-s", "tools.py")
    assert (done.code, done.out, done.err) == (0, text, "")


def test_arguments_follow_the_schema(folder: Path) -> None:
    words = ("name=7", "size=large", "at.city=Rome", "at.floor=2", "tags=a", "tags=b", "on=yes", "ratio=2")
    done = anykit("call", "describe", *words, "-s", "tools.py", "--json")
    assert done.json["structuredContent"] == {
        "name": "7",
        "size": "large",
        "at": {"city": "Rome", "floor": 2},
        "tags": ["a", "b"],
        "on": True,
        "ratio": 2.0,
    }


def test_arguments_come_from_stdin_or_a_file(folder: Path) -> None:
    (folder / "in.json").write_text('{"a": 4, "b": 4}')
    assert anykit("call", "add", "--input-json", "-", "-s", "tools.py", stdin='{"a": 4, "b": 5}').out == "9\n"
    assert anykit("call", "add", "--input-json", "@in.json", "-s", "tools.py").out == "8\n"


def test_json_is_the_result_as_mcp_spells_it(folder: Path) -> None:
    done = anykit("call", "echo", 'value:={"x":1}', "-s", "tools.py", "--json")
    assert done.json == {
        "content": [{"type": "text", "text": '{"x":1}'}],
        "structuredContent": {"x": 1},
        "isError": False,
    }
    failed = anykit("call", "fail", "-s", "tools.py", "--json")
    assert failed.code == 5
    assert failed.json["isError"] is True
    assert failed.json["content"] == [{"type": "text", "text": "the printer is out of paper"}]
    assert "structuredContent" not in failed.json
    assert "error[execution_failed]: the printer is out of paper" in failed.err


def test_null_and_nothing_structured_stay_apart(folder: Path) -> None:
    assert anykit("call", "echo", "-s", "tools.py", "--json").json["structuredContent"] is None
    assert "structuredContent" not in anykit("call", "parts", "-s", "tools.py", "--json").json


def test_parts_keep_their_order_and_types(folder: Path) -> None:
    text, image, blob = anykit("call", "parts", "-s", "tools.py", "--json").json["content"]
    assert text == {"type": "text", "text": "see"}
    assert image == {"type": "image", "data": base64.b64encode(b"png").decode(), "mimeType": "image/png"}
    assert blob["type"] == "resource"
    assert base64.b64decode(blob["resource"]["blob"]) == b"x"
    assert anykit("call", "parts", "-s", "tools.py").out.splitlines()[0] == "see"


def test_b070_large_integers_go_through_exactly(folder: Path) -> None:
    """cline/cline#9589: precision was lost where large integers were passed."""
    for number in ("9007199254740993", "123456789012345678901234567890"):
        assert anykit("call", "echo", f"value:={number}", "-s", "tools.py").out == f"{number}\n"
        done = anykit("call", "echo", "--input-json", f'{{"value": {number}}}', "-s", "tools.py", "--json")
        assert done.json["structuredContent"] == int(number)
    assert anykit("call", "echo", "value:=1e400", "-s", "tools.py").code == 2
    assert anykit("call", "add", "a:=true", "-s", "tools.py").code == 2
    assert anykit("call", "add", "a:=1.0", "-s", "tools.py").out == "11\n"


def test_b093_a_misspelt_argument_is_refused(folder: Path) -> None:
    """modelcontextprotocol/python-sdk#3067: unknown arguments were dropped without a word."""
    done = anykit("call", "add", "a=1", "bb=2", "-s", "tools.py")
    assert done.code == 2
    assert "error[invalid_input]: " in done.err
    assert "bb" in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("argv", "code", "word"),
    [
        (("add",), 2, "invalid_input"),
        (("add", "a=x"), 2, "invalid_input"),
        (("add", "a"), 2, "usage"),
        (("add", "a:=x"), 2, "usage"),
        (("fail",), 5, "execution_failed"),
        (("breaks",), 5, "internal"),
        (("ad", "a=1"), 5, "unknown_tool"),
        (("wait", "--timeout", "0.3"), 4, "timeout"),
        (("whoami",), 3, "not_configured"),
        (("ping",), 3, "not_configured"),
    ],
)
def test_the_exit_code_says_what_became_of_it(folder: Path, argv: tuple[str, ...], code: int, word: str) -> None:
    done = anykit("call", *argv, "-s", "tools.py", "-s", "tickets.py")
    assert done.code == code
    assert f"error[{word}]: " in done.err
    assert done.out == ""
    assert "Traceback" not in done.err


def test_an_unconfigured_toolkit_says_how_to_configure_it(folder: Path) -> None:
    done = anykit("call", "whoami", "-s", "tickets.py")
    assert "  configure it:  anykit configure tickets url=... --secret api_key\n" in done.err


def test_a_tool_that_is_switched_off_is_denied(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tickets.py"]\n[toolkits.tickets.config]\nurl = "http://half"\napi_key = "k"\n'
    )
    done = anykit("call", "close_ticket", "id=1")
    assert done.code == 7
    assert "only reading is allowed there" in done.err


def test_a_tool_behind_a_host_that_is_down_is_unreachable(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py", {name = "far", url = "http://127.0.0.1:9"}]\n')
    far = anykit("call", "far_search")
    assert far.code == 4
    assert "error[unavailable]: " in far.err
    assert "far" in far.err
    assert anykit("call", "near_search").code == 5
    assert anykit("call", "add", "a=1").code == 0


def test_a_broken_tool_shows_its_traceback_only_on_request(folder: Path) -> None:
    quiet = anykit("call", "breaks", "-s", "tools.py")
    assert "inner secret" not in quiet.err
    assert "  see why:  run it again with -v" in quiet.err
    assert "ValueError: inner secret" in anykit("call", "breaks", "-s", "tools.py", "-v").err


def test_what_a_call_says_goes_to_stderr(folder: Path) -> None:
    done = anykit("call", "talk", "-s", "tools.py")
    assert (done.out, done.err) == ("said\n", "halfway there\nwarning: it is hot\n")
    assert anykit("call", "talk", "-s", "tools.py", "-q").err == ""
    assert "a detail" in anykit("call", "talk", "-s", "tools.py", "-v").err
    assert "1/2 half" in anykit("call", "talk", "-s", "tools.py", terminal=True).err


def test_a_dry_run_checks_everything_and_calls_nothing(folder: Path) -> None:
    done = anykit("call", "add", "a=1", "--dry-run", "-s", "tools.py")
    assert done.code == 0
    assert done.json == {"name": "add", "arguments": {"a": 1, "b": 10}, "available": True, "reason": None}
    wrong = anykit("call", "add", "a=x", "--dry-run", "-s", "tools.py")
    assert (wrong.code, wrong.out) == (2, "")
    assert anykit("call", "fail", "--dry-run", "-s", "tools.py").code == 0
    refused = anykit("call", "whoami", "--dry-run", "-s", "tickets.py")
    assert refused.json["available"] is False


def test_a_call_leaves_one_line_in_the_journal_and_no_value(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    anykit("call", "echo", "value=s3cr3t", "-s", "tools.py", "--data-dir", str(data))
    anykit("call", "fail", "-s", "tools.py", "--data-dir", str(data))
    found = b"".join(path.read_bytes() for path in data.iterdir())
    assert b"echo" in found
    assert b"s3cr3t" not in found
    database = sqlite3.connect(data / "anykit.sqlite3")
    assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    database.close()


def test_a_required_source_that_is_down_stops_the_call(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py", {target = "nowhere.py", required = true}]\n')
    done = anykit("call", "add", "a=1")
    assert done.code == 4
    assert "error[source_unavailable]: required source nowhere" in done.err


def test_a_result_of_a_terminal_is_json_too(folder: Path) -> None:
    done = anykit("call", "add", "a=1", "-s", "tools.py", "--json", stdout_terminal=True)
    assert json.loads(done.out)["structuredContent"] == 11
