"""`configure`: what is typed, asked and kept, and that no secret shows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import subprocess
import sys
import termios
import tomllib
from pathlib import Path

import pytest

from cli.running import Done, anykit


def configure(*argv: str, stdin: str = "", terminal: bool = False, env: dict[str, str] | None = None) -> Done:
    return anykit("configure", *argv, "-s", "tickets.py", stdin=stdin, terminal=terminal, env=env)


def whoami() -> Done:
    return anykit("call", "whoami", "-s", "tickets.py")


def test_what_is_configured_is_kept_for_later_commands(folder: Path) -> None:
    done = configure("tickets", "url=http://t", "limit=7", "labels=a", "labels=b", "--secret", "api_key", stdin="k1\n")
    assert (done.code, done.out) == (0, "")
    assert "tickets: Toolkit configured successfully" in done.err
    assert whoami().out == "http://t k1 7 ['a', 'b'] False\n"
    [toolkit] = [item for item in anykit("list", "toolkits", "tickets.py", "--json").json if item["name"] == "tickets"]
    assert toolkit["configured"] is True


def test_what_is_typed_later_goes_over_what_was_kept(folder: Path) -> None:
    configure("tickets", "url=http://t", "limit=7", "--secret", "api_key", stdin="k1\n")
    assert configure("tickets", "limit=8").code == 0
    assert whoami().out == "http://t k1 8 [] False\n"
    assert configure("tickets", "--secret", "api_key", stdin="k2\n").code == 0
    assert whoami().out == "http://t k2 8 [] False\n"


def test_json_says_how_it_went(folder: Path) -> None:
    done = configure("plain", "--json")
    assert done.code == 0
    assert done.json == {"toolkit": "plain", "status": "ok", "message": "Toolkit configured successfully"}
    assert anykit("call", "ping", "-s", "tickets.py").out == "pong\n"


def test_what_is_missing_is_said_with_the_lines_that_set_it(folder: Path) -> None:
    done = configure("tickets", "url=http://t", "--no-input")
    assert done.code == 3
    assert done.err.splitlines() == [
        "error[config_missing]: toolkit 'tickets' needs 'api_key' (secret)",
        "  set it:  anykit configure tickets --secret api_key      or   export TICKETS_API_KEY=...",
    ]
    both = configure("tickets")
    assert both.code == 3
    assert "needs 'url', 'api_key' (secret)" in both.err
    assert "export TICKETS_URL=... TICKETS_API_KEY=..." in both.err
    empty = configure("tickets", "url=http://t", "--secret", "api_key", stdin="")
    assert empty.code == 3
    assert "error[config_missing]" in empty.err


def test_what_the_error_says_to_export_is_taken(folder: Path) -> None:
    done = configure("tickets", "--no-input", env={"TICKETS_URL": "http://e", "TICKETS_API_KEY": "from-env"})
    assert done.code == 0
    assert "api_key is taken from TICKETS_API_KEY" in done.err
    assert "from-env" not in done.err
    assert whoami().out == "http://e from-env 5 [] False\n"


def test_from_env_takes_every_field_that_is_set(folder: Path) -> None:
    variables = {"TICKETS_URL": "http://e", "TICKETS_API_KEY": "k", "TICKETS_LIMIT": "9", "TICKETS_VERBOSE": "true"}
    assert configure("tickets", "--from-env", env=variables).code == 0
    assert whoami().out == "http://e k 9 [] True\n"


def test_a_secret_comes_from_the_environment_before_stdin_and_in_order_from_stdin(folder: Path) -> None:
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="typed\n", env={"TICKETS_API_KEY": "exported"})
    assert " exported " in whoami().out
    configure("tickets", "--secret", "api_key=-", stdin="typed\n", env={"TICKETS_API_KEY": "exported"})
    assert " typed " in whoami().out
    configure("tickets", "--secret", "api_key", "--secret", "limits.proxy_key", stdin="one\ntwo\n")
    assert " one " in whoami().out


def test_a_value_that_looks_like_a_reference_is_taken_as_it_is_where_nobody_wrote_it(folder: Path) -> None:
    done = configure("tickets", "url=http://t", "--secret", "api_key", stdin="pa${HOME}ss\n")
    assert done.code == 0
    assert " pa${HOME}ss " in whoami().out
    refused = configure("tickets", "--secret", "api_key", stdin="file:/etc/hostname\n")
    assert refused.code == 2
    assert "reads like a reference" in refused.err
    assert "/etc/hostname" not in refused.err


def test_a_secret_on_the_line_works_and_is_warned_of(folder: Path) -> None:
    for argv in (("api_key=k1",), ("--secret", "api_key=k2")):
        done = configure("tickets", "url=http://t", *argv)
        assert done.code == 0
        assert "warning: api_key is " in done.err
        assert "better: --secret api_key" in done.err
        assert argv[-1].partition("=")[2] not in done.err
    assert " k2 " in whoami().out


def test_a_reference_is_kept_as_a_reference(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KEY_OF_MINE", "first")
    done = configure("tickets", "url=http://t", "api_key=${KEY_OF_MINE}")
    assert (done.code, "warning" in done.err) == (0, False)
    assert " first " in whoami().out
    monkeypatch.setenv("KEY_OF_MINE", "second")
    assert " second " in whoami().out
    monkeypatch.delenv("KEY_OF_MINE")
    gone = whoami()
    assert gone.code == 3
    assert "KEY_OF_MINE is not set" in gone.err


def test_b056_a_variable_that_is_not_set_is_named_and_changes_nothing(folder: Path) -> None:
    """mastra-ai/mastra#18240: a placeholder that could not be expanded was sent as it stood."""
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    done = configure("tickets", "api_key=${NO_SUCH_VARIABLE}")
    assert done.code == 2
    assert "error[invalid_config]: " in done.err
    assert "/api_key: the environment variable NO_SUCH_VARIABLE is not set" in done.err
    assert " k1 " in whoami().out


def test_b058_a_mask_never_becomes_the_secret(folder: Path) -> None:
    """pydantic/pydantic-core#851: a masked secret was saved, and used as if it were the secret."""
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    for mask in ('api_key:={"set":true}', "api_key=********", "api_key="):
        assert configure("tickets", mask, "limit=6").code == 0
        assert " k1 " in whoami().out
    configure("tickets", "--unset")
    refused = configure("tickets", "url=http://t", "api_key=********")
    assert refused.code == 3


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (("tickets", "url=http://t", "api_key=k", "limit=x"), 2, "/limit: must be an integer"),
        (("tickets", "url=x", "api_key=k", "limit=0"), 2, "/url: "),
        (("tickets", "limt=3"), 2, "did you mean:  limit"),
        (("tickets", "limits.row=3"), 2, "did you mean:  limits.rows"),
        (("tickets", "--secret", "apikey"), 2, "did you mean:  api_key"),
        (("tickets", "url"), 2, "is no argument"),
        (("tickets", "limit:=x"), 2, "limit:= wants JSON"),
        (("ticket",), 5, "did you mean:  tickets"),
        (("tickets", "--template", "--unset"), 2, "stand alone"),
        (("tickets", "--unset", "limit=3"), 2, "stand alone"),
        (("tickets", "url=http://down", "api_key=k"), 2, "the ticket system is down"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_kept(
    folder: Path, argv: tuple[str, ...], code: int, message: str
) -> None:
    done = configure(*argv)
    assert done.code == code
    assert message in done.err
    assert whoami().code == 3


def test_all_that_is_wrong_is_said_at_once_and_no_secret_is_shown(folder: Path) -> None:
    done = configure("tickets", "url=x", 'api_key:=["s3cr3t"]', "limit=0")
    assert done.code == 2
    for pointer in ("/url: ", "/api_key: ", "/limit: "):
        assert pointer in done.err
    assert "s3cr3t" not in done.err


def test_a_refused_configuration_leaves_the_old_one(folder: Path) -> None:
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    assert configure("tickets", "url=http://down").code == 2
    assert whoami().out == "http://t k1 5 [] False\n"


def test_an_old_configuration_that_no_longer_works_does_not_stand_in_the_way(folder: Path) -> None:
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    source = (folder / "tickets.py").read_text()
    (folder / "tickets.py").write_text(source.replace("ge=1", "ge=100"))
    assert "warning: toolkit tickets is not configured as it was told to be" in whoami().err
    done = configure("tickets", "limit=200")
    assert (done.code, "warning" in done.err) == (0, False)


def test_a_toolkit_that_works_in_part_says_which(folder: Path) -> None:
    done = configure("tickets", "url=http://half", "api_key=k")
    assert done.code == 0
    assert "warning: tickets: " in done.err
    assert "close_ticket (only reading is allowed there)" in done.err


def test_a_configuration_is_taken_away(folder: Path) -> None:
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    assert "no longer configured" in configure("tickets", "--unset").err
    assert whoami().code == 3
    assert "was not configured" in configure("tickets", "--unset").err


def test_a_template_is_toml_that_can_be_filled_in(folder: Path) -> None:
    done = configure("tickets", "--template")
    assert (done.code, done.err) == (0, "")
    table = tomllib.loads(done.out)["toolkits"]["tickets"]["config"]
    assert table == {"url": "", "api_key": "${TICKETS_API_KEY}"}
    assert "# Where it is (string, required)" in done.out
    assert "# limit = 5" in done.out
    assert "# limits.rows = 10" in done.out
    filled = done.out.replace('url = ""', 'url = "http://f"').replace("# limit = 5", "limit = 6")
    filled = filled.replace("# limits.rows = 10", "limits.rows = 3")
    (folder / "anykit.toml").write_text(f'sources = ["tickets.py"]\n{filled}')
    assert anykit("call", "whoami", env={}).code == 3
    os.environ["TICKETS_API_KEY"] = "k9"
    try:
        assert anykit("call", "whoami").out == "http://f k9 6 [] False\n"
    finally:
        del os.environ["TICKETS_API_KEY"]


def test_secrets_lie_encrypted(folder: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = configure("tickets", "url=http://t", "--secret", "api_key", "--data-dir", str(data), stdin="s3cr3t-value\n")
    assert done.code == 0
    files = [path for path in data.rglob("*") if path.is_file()]
    assert files
    assert not any(b"s3cr3t-value" in path.read_bytes() for path in files)
    assert all(path.stat().st_mode & 0o077 == 0 for path in files)
    elsewhere = anykit("call", "whoami", "-s", "tickets.py")
    assert elsewhere.code == 3
    assert "s3cr3t-value" in anykit("call", "whoami", "-s", "tickets.py", "--data-dir", str(data)).out


def test_two_projects_do_not_share_a_configuration(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    configure("tickets", "url=http://t", "--secret", "api_key", stdin="k1\n")
    other = folder / "other"
    other.mkdir()
    (other / "tickets.py").write_text((folder / "tickets.py").read_text())
    monkeypatch.chdir(other)
    assert whoami().code == 3


def test_on_a_terminal_each_field_is_asked_for(folder: Path) -> None:
    answers = ["http://t", "s3cr3t", "7", "", "yes", "", ""]
    done = configure("tickets", stdin="\n".join(answers) + "\n", terminal=True)
    assert done.code == 0
    assert "url (string, required): " in done.err
    assert "api_key (string, secret, required): " in done.err
    assert "limit (integer) [5]: " in done.err
    assert "Where it is" in done.err
    assert whoami().out == "http://t s3cr3t 7 [] True\n"


def test_a_wrong_answer_is_asked_for_again(folder: Path) -> None:
    done = configure("tickets", stdin="x\nhttp://t\nkey\nmany\n0\n6\n\n\n\n\n", terminal=True)
    assert done.code == 0
    assert done.err.count("url (string, required): ") == 2
    assert done.err.count("limit (integer) [5]: ") == 3
    assert whoami().out == "http://t key 6 [] False\n"


def test_after_three_wrong_answers_it_gives_up(folder: Path) -> None:
    done = configure("tickets", stdin="x\nx\nx\nhttp://t\n", terminal=True)
    assert done.code == 2
    assert whoami().code == 3


def test_with_something_on_the_line_only_what_is_missing_is_asked_for(folder: Path) -> None:
    done = configure("tickets", "url=http://t", "limit=2", stdin="key\n", terminal=True)
    assert done.code == 0
    assert "limit (" not in done.err
    assert whoami().out == "http://t key 2 [] False\n"


def test_an_empty_answer_keeps_what_there_is(folder: Path) -> None:
    configure("tickets", "url=http://t", "limit=7", "--secret", "api_key", stdin="k1\n")
    done = configure("tickets", stdin="\n\n8\n\n\n\n\n", terminal=True)
    assert done.code == 0
    assert "url (string, required) [http://t]: " in done.err
    assert "api_key (string, secret, required) [kept]: " in done.err
    assert "k1" not in done.err
    assert whoami().out == "http://t k1 8 [] False\n"


def test_no_input_never_asks(folder: Path) -> None:
    done = configure("tickets", "--no-input", stdin="http://t\nkey\n", terminal=True)
    assert done.code == 3
    assert "url (" not in done.err


def test_the_end_of_the_input_while_asking_is_an_error(folder: Path) -> None:
    done = configure("tickets", stdin="http://t\n", terminal=True)
    assert done.code == 2
    assert "the input ended before all was answered" in done.err


def become_the_terminals_process() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def on_a_real_terminal(prompt: bytes, keys: bytes) -> tuple[int, str]:
    """Run `configure tickets` on a pseudo terminal: wait for the prompt, then type. Gives exit code and what was shown."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "anykit", "configure", "tickets", "url=http://t", "-s", "tickets.py"],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
        preexec_fn=become_the_terminals_process,  # so that its keys become signals
    )
    os.close(slave)
    shown = b""
    try:
        while prompt not in shown:
            shown += os.read(master, 4096)
        os.write(master, keys)
        with contextlib.suppress(OSError):  # EIO: the other end is closed
            while data := os.read(master, 4096):
                shown += data
        return process.wait(10), shown.decode()
    finally:
        os.close(master)
        process.kill()
        process.wait(5)


@pytest.mark.timeout(30)
def test_a_secret_is_not_shown_while_it_is_typed(folder: Path) -> None:
    code, shown = on_a_real_terminal(b"secret, required): ", b"s3cr3t-typed\n")
    assert code == 0
    assert "s3cr3t-typed" not in shown
    assert " s3cr3t-typed " in whoami().out


@pytest.mark.timeout(30)
def test_ctrl_c_at_a_question_ends_it_at_once(folder: Path) -> None:
    code, shown = on_a_real_terminal(b"secret, required): ", b"\x03")
    assert code == 130
    assert "Traceback" not in shown
    assert whoami().code == 3


def test_what_the_file_says_is_not_asked_for_and_goes_over_what_is_kept(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tickets.py"]\n[toolkits.tickets.config]\nurl = "http://file"\nlimit = 2\n'
    )
    assert anykit("configure", "tickets", "--secret", "api_key", stdin="k1\n").code == 0
    assert anykit("call", "whoami").out == "http://file k1 2 [] False\n"
    done = anykit("configure", "tickets", "limit=9", "verbose=true")
    assert done.code == 0
    assert "warning: limit is set in the file too, and the file wins" in done.err
    assert anykit("call", "whoami").out == "http://file k1 2 [] True\n"
    (folder / "anykit.toml").write_text('sources = ["tickets.py"]\n[toolkits.tickets.config]\nurl = "http://file"\n')
    assert anykit("call", "whoami").out == "http://file k1 9 [] True\n"
