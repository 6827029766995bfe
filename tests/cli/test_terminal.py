"""What a person sees, and what a pipe gets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from anykit.cli.errors import CommandError
from anykit.cli.flags import Flags
from anykit.cli.terminal import Streams, Terminal
from cli.running import Stream


class Screen:
    """A terminal, or a pipe, and what was written to it."""

    def __init__(self, *, terminal: bool, env: Mapping[str, str] | None = None, stdin: str = "", **flags: Any) -> None:
        self.stdout = Stream(terminal=terminal)
        self.stderr = Stream(terminal=terminal)
        streams = Streams(Stream(stdin, terminal=terminal), self.stdout, self.stderr, env or {})
        self.terminal = Terminal(streams, Flags(**flags))

    @property
    def out(self) -> str:
        return self.stdout.getvalue()

    @property
    def err(self) -> str:
        return self.stderr.getvalue()


def test_a_table_in_a_pipe_is_tab_separated_and_has_no_heading() -> None:
    screen = Screen(terminal=False)
    screen.terminal.table(("name", "ok", "text"), [("a", True, "two\nlines\tand tab"), ("b", None, "")])
    screen.terminal.heading("Things")
    assert screen.out == "a\tyes\ttwo lines and tab\nb\t\t\n"


def test_a_table_on_a_terminal_is_aligned_under_its_columns() -> None:
    screen = Screen(terminal=True, color="never")
    screen.terminal.table(("name", "text"), [("a", "first"), ("longer", "second")])
    lines = [line.rstrip() for line in screen.out.splitlines()]
    assert lines == ["name    text", "a       first", "longer  second"]


def test_json_is_indented_for_people_and_one_line_for_programs() -> None:
    value = {"a": ["ü", 9007199254740993]}
    for terminal in (True, False):
        screen = Screen(terminal=terminal)
        screen.terminal.write_json(value)
        assert json.loads(screen.out) == value
        assert (len(screen.out.splitlines()) == 1) is not terminal


@pytest.mark.parametrize(
    ("terminal", "color", "env", "colored"),
    [
        (True, "auto", {}, True),
        (False, "auto", {}, False),
        (True, "auto", {"NO_COLOR": "1"}, False),
        (True, "auto", {"NO_COLOR": ""}, True),
        (True, "auto", {"TERM": "dumb"}, False),
        (False, "auto", {"FORCE_COLOR": "1"}, True),
        (False, "auto", {"FORCE_COLOR": "0"}, False),
        (False, "auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        (True, "never", {"FORCE_COLOR": "1"}, False),
        (False, "always", {"NO_COLOR": "1"}, True),
    ],
)
def test_colours_follow_the_flag_then_the_environment_then_the_terminal(
    terminal: bool, color: str, env: Mapping[str, str], colored: bool
) -> None:
    screen = Screen(terminal=terminal, color=color, env=env)
    screen.terminal.error(CommandError("no", code="x"))
    assert ("\x1b[" in screen.err) is colored


def test_an_error_is_a_line_and_below_it_what_to_do() -> None:
    screen = Screen(terminal=False)
    screen.terminal.error(CommandError("two\nlines", code="bad", fixes=[("do", "this"), ("or", "that")]))
    screen.terminal.error(CommandError("plain"))
    assert screen.err == "error[bad]: two\n  lines\n  do:  this\n  or:  that\nerror: plain\n"
    assert screen.out == ""


def test_quiet_silences_all_but_errors_and_what_programs_wait_for() -> None:
    screen = Screen(terminal=True, quiet=True, verbose=2, color="never")
    screen.terminal.note("a note")
    screen.terminal.warn("a warning")
    screen.terminal.detail("a detail")
    screen.terminal.progress("half")
    assert screen.err == ""
    screen.terminal.announce("listening")
    screen.terminal.error(CommandError("no"))
    assert screen.err == "listening\nerror: no\n"


def test_progress_is_shown_on_a_terminal_only_and_wiped_before_anything_else() -> None:
    pipe = Screen(terminal=False)
    pipe.terminal.progress("half")
    assert pipe.err == ""
    screen = Screen(terminal=True, color="never")
    screen.terminal.progress("half\nway")
    screen.terminal.note("done")
    assert screen.err == "\r\x1b[Khalf way\r\x1b[Kdone\n"


@pytest.mark.parametrize("text", ["\x1b[2J", "\x1b]0;title\x07", "a\rb", "\x9b31m", "\u202egpj.exe"])
def test_text_of_a_peer_cannot_steer_the_terminal(text: str) -> None:
    screen = Screen(terminal=True, color="never")
    screen.terminal.write(text)
    screen.terminal.note(text)
    screen.terminal.warn(text)
    screen.terminal.error(CommandError(text, fixes=[("look", text)]))
    screen.terminal.table(("c",), [(text,)])
    screen.terminal.write_title(text, "tool")
    shown = screen.out + screen.err
    assert not set(shown) & {"\x1b", "\x07", "\r", "\x9b", "\u202e"}


def test_in_a_pipe_a_result_is_what_it_is() -> None:
    screen = Screen(terminal=False)
    screen.terminal.write("\x1b[31mred")
    assert screen.out == "\x1b[31mred\n"


def test_a_question_goes_to_stderr_and_takes_one_line() -> None:
    screen = Screen(terminal=True, stdin="Ada\nrest\n")
    assert screen.terminal.ask("name: ") == "Ada"
    assert screen.terminal.ask_secret("key: ") == "rest"
    assert screen.err == "name: key: "
    assert screen.out == ""
    with pytest.raises(CommandError, match="the input ended"):
        screen.terminal.ask("more: ")


@pytest.mark.parametrize(
    ("terminal", "no_input", "interactive"),
    [(True, False, True), (True, True, False), (False, False, False)],
)
def test_somebody_can_be_asked_only_at_a_terminal(terminal: bool, no_input: bool, interactive: bool) -> None:
    assert Screen(terminal=terminal, no_input=no_input).terminal.interactive is interactive


def test_json_cannot_steer_the_terminal_and_stays_the_same_json() -> None:
    value = {"\x9b31m": ["\x1b[2J", "\x7f", "\u202e", "\u2028", "ok\nline"]}
    screen = Screen(terminal=True)
    screen.terminal.write_json(value)
    assert json.loads(screen.out) == value
    assert not set(screen.out) & {"\x1b", "\x7f", "\x9b", "\u202e"}
