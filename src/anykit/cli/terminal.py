"""What a person sees and what a pipe gets: data on stdout, all else on stderr.

On a terminal tables are aligned and coloured; in a pipe they are lines of tab-separated fields, without a heading.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import io
import json
import os
import re
import shutil
import signal
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from .errors import CommandError, Exit
from .flags import Flags

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""What could move a terminal's cursor or turn its text around; a peer's text may hold any of it."""
_STYLES = {"bold": "1", "dim": "2", "red": "1;31", "green": "32", "yellow": "33", "cyan": "36"}
_STATES = {"ready": "green", "yes": "green", "failed": "red", "no": "yellow", "connecting": "yellow", "disabled": "dim"}
"""Words that have a colour in tables."""


MAX_LINE = 64 * 1024
"""Bytes of a line that is waited for."""


class OutputClosed(Exception):
    """Nobody reads stdout any more (`| head`)."""


@dataclass(frozen=True, slots=True)
class Streams:
    """stdin, stdout and stderr, and the environment."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    env: Mapping[str, str]

    @classmethod
    def of_process(cls) -> Streams:
        """Those of this process; a character that stdout cannot encode never breaks a verb."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        return cls(sys.stdin or io.StringIO(), sys.stdout or io.StringIO(), sys.stderr or io.StringIO(), os.environ)


class Terminal:
    """The two streams as one verb uses them."""

    def __init__(self, streams: Streams, flags: Flags = Flags()) -> None:  # noqa: B008 - frozen
        self._streams = streams
        self._quiet = flags.quiet
        self.verbose = 0 if flags.quiet else flags.verbose
        self.as_json = flags.json
        self.env = streams.env
        self.stdin_is_terminal = _is_terminal(streams.stdin)
        self.stdout_is_terminal = _is_terminal(streams.stdout)
        self.stderr_is_terminal = _is_terminal(streams.stderr)
        self.interactive = self.stdin_is_terminal and self.stderr_is_terminal and not flags.no_input
        """Whether somebody can be asked."""
        self._colored_out = _colored(flags.color, streams.env, self.stdout_is_terminal)
        self._colored_err = _colored(flags.color, streams.env, self.stderr_is_terminal)
        self._progress = False

    def quietly(self, flags: Flags) -> Terminal:
        """The same streams under other flags."""
        return Terminal(self._streams, flags)

    # data

    def write(self, text: str) -> None:
        """Text for stdout, with a line break at its end."""
        self._clear_progress()
        if self.stdout_is_terminal:
            text = cleaned(text)
        self._out(text if text.endswith("\n") else f"{text}\n")

    def write_json(self, value: Any) -> None:
        """A JSON value for stdout: indented for people, on one line for programs."""
        encoding = (getattr(self._streams.stdout, "encoding", None) or "utf-8").lower().replace("-", "")
        self._clear_progress()
        indent = 2 if self.stdout_is_terminal else None
        text = json.dumps(value, ensure_ascii=encoding != "utf8", indent=indent)
        # JSON has escapes of its own for what could steer a terminal; json.dumps leaves some of it as it is.
        self._out(_CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")

    def _out(self, text: str) -> None:
        try:
            self._streams.stdout.write(text)
        except BrokenPipeError:
            raise OutputClosed from None

    def heading(self, text: str) -> None:
        """A line above a table; only for people."""
        if self.stdout_is_terminal:
            self._out(f"{_styled(cleaned(text), 'bold', self._colored_out)}\n")

    def write_title(self, name: str, kind: str) -> None:
        """A name and what it names."""
        self._clear_progress()
        line = f"{_styled(cleaned(name), 'bold', self._colored_out)}  {_styled(kind, 'dim', self._colored_out)}"
        self._out(f"{line}\n")

    def write_styled(self, text: str, style: str) -> None:
        """A line of our own words, in a colour."""
        self.print_styled(_styled(text, style, self._colored_out))

    def write_marked(self, mark: str, style: str, text: str) -> None:
        """A line with a word of ours in a colour before text of anybody's."""
        self._clear_progress()
        self._out(f"{_styled(mark, style, self._colored_out)} {cleaned(text)}\n")

    def write_line(self, text: str, style: str = "") -> None:
        """A line of anybody's text, in a colour."""
        self._clear_progress()
        line = cleaned(text)
        self._out(f"{_styled(line, style, self._colored_out) if style else line}\n")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Rows under their columns."""
        self._clear_progress()
        cells = [[_cell(value) for value in row] for row in rows]
        if not self.stdout_is_terminal:
            for row in cells:
                self._out("\t".join(row) + "\n")
            return
        self._aligned(columns, cells)

    def _aligned(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        from rich.console import Console  # noqa: PLC0415 - 60 ms, only for people
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim", show_header=any(columns))
        for index, column in enumerate(columns):
            last = index == len(columns) - 1
            table.add_column(column, no_wrap=index == 0, overflow="fold", ratio=1 if last and index else None)
        for row in rows:
            table.add_row(*(Text(cell, style=_style_of(cell, index)) for index, cell in enumerate(row)))
        console = Console(
            file=self._streams.stdout,
            force_terminal=True,
            color_system="standard" if self._colored_out else None,
            no_color=not self._colored_out,
            width=self.width,
            highlight=False,
        )
        try:
            console.print(table)
        except BrokenPipeError:
            raise OutputClosed from None

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return max(40, shutil.get_terminal_size((100, 24)).columns)

    # words

    def note(self, text: str) -> None:
        """A line of what happens, for stderr."""
        if not self._quiet:
            self._say(cleaned(text))

    def announce(self, text: str) -> None:
        """A line of stderr that programs wait for: also with -q."""
        self._say(text)

    def detail(self, text: str) -> None:
        """The same, only with -v."""
        if self.verbose:
            self._say(_styled(cleaned(text), "dim", self._colored_err))

    def warn(self, text: str) -> None:
        """Something that is not as it should be, and does not stop anything."""
        if not self._quiet:
            self._say(f"{_styled('warning:', 'yellow', self._colored_err)} {_indented(cleaned(text))}")

    def error(self, error: CommandError) -> None:
        """Why it did not work, and what to do."""
        word = f"error[{error.code}]:" if error.code else "error:"
        self._say(f"{_styled(word, 'red', self._colored_err)} {_indented(cleaned(error.message))}")
        for label, text in error.fixes:
            self._say(f"  {_styled(label + ':', 'bold', self._colored_err)}  {cleaned(text)}")

    def progress(self, text: str) -> None:
        """What runs now, on a line that is overwritten; only on a terminal."""
        if self._quiet or not self.stderr_is_terminal:
            return
        line = cleaned(text).replace("\n", " ")[: self.width - 1]
        self._progress = True
        with contextlib.suppress(BrokenPipeError):
            self._streams.stderr.write(f"\r\x1b[K{line}")
            self._streams.stderr.flush()

    def styled(self, text: str, style: str) -> str:
        """Text for stdout in a colour, where it has colours."""
        return _styled(text, style, self._colored_out)

    def print_styled(self, text: str) -> None:
        """A line for stdout made of our own words, colours in it."""
        self._clear_progress()
        self._out(f"{text}\n")
        self.flush()

    def _say(self, text: str) -> None:
        self._clear_progress()
        # A reader of stderr that left takes nothing from the result.
        with contextlib.suppress(BrokenPipeError):
            self._streams.stderr.write(f"{text}\n")
            self._streams.stderr.flush()

    def _clear_progress(self) -> None:
        if self._progress:
            self._progress = False
            with contextlib.suppress(BrokenPipeError):
                self._streams.stderr.write("\r\x1b[K")
                self._streams.stderr.flush()

    @contextlib.contextmanager
    def waiting(self, text: str) -> Generator[None]:
        """Show what is waited for, as long as it lasts."""
        self.progress(text)
        try:
            yield
        finally:
            self._clear_progress()

    def flush(self) -> None:
        """Hand on what was written. Raises `OutputClosed`."""
        self._clear_progress()
        try:
            self._streams.stdout.flush()
        except BrokenPipeError:
            raise OutputClosed from None

    # questions

    def ask(self, question: str) -> str:
        """One line from whoever sits there. Raises `CommandError` at the end of input."""
        self._clear_progress()
        self._streams.stderr.write(question)
        self._streams.stderr.flush()
        with _interruptible():
            return self._line()

    def ask_secret(self, question: str) -> str:
        """The same, without showing what is typed."""
        self._clear_progress()
        if self._streams.stdin is sys.stdin:
            with _interruptible():
                return getpass.getpass(question, stream=self._streams.stderr)
        return self.ask(question)

    def _line(self) -> str:
        line = self._streams.stdin.readline()
        if not line:
            raise CommandError("the input ended before all was answered", code="no_input", exit=Exit.USAGE)
        return line.rstrip("\r\n")

    def read_line(self) -> str | None:
        """One line of a piped stdin; None at its end."""
        with _interruptible():
            line = self._streams.stdin.readline()
        return line.rstrip("\r\n") if line else None

    async def heard_line(self) -> str | None:
        """One line of stdin, while the loop goes on; None at its end. Giving up on it leaves nothing behind that reads."""
        stdin = self._streams.stdin
        try:
            descriptor = stdin.fileno()
            loop, readable = asyncio.get_running_loop(), asyncio.Event()
            loop.add_reader(descriptor, readable.set)
        except (OSError, ValueError, NotImplementedError):  # a file, or no stream of the system: it never blocks
            return stdin.readline() or None
        try:
            raw = b""
            while not raw.endswith(b"\n"):
                readable.clear()
                await readable.wait()
                piece = os.read(descriptor, 4096)
                if not piece:
                    break
                raw += piece
                if len(raw) > MAX_LINE:
                    break
            return raw.decode(errors="replace") or None
        finally:
            loop.remove_reader(descriptor)

    def write_bytes(self, data: bytes) -> bool:
        """Bytes for stdout as they are; False where it takes none: a terminal, or a stream of text alone."""
        buffer = getattr(self._streams.stdout, "buffer", None)
        if self.stdout_is_terminal or buffer is None:
            return False
        self.flush()
        try:
            buffer.write(data)
            buffer.flush()
        except BrokenPipeError:
            raise OutputClosed from None
        return True

    def read_all(self) -> str:
        """All of stdin."""
        return self._streams.stdin.read()


@contextlib.contextmanager
def _interruptible() -> Generator[None]:
    """Let Ctrl-C end a read that blocks the loop's thread; asyncio's own handler waits for the loop to turn."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def cleaned(text: str) -> str:
    """Text that cannot steer a terminal: controls are shown, line breaks and tabs stay."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return cleaned(" ".join(str(value).split()))


def _style_of(cell: str, index: int) -> str:
    if index == 0:
        return "bold"
    return _STATES.get(cell, "")


def _styled(text: str, style: str, colored: bool) -> str:
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colored else text


def _indented(text: str) -> str:
    return text.strip("\n").replace("\n", "\n  ")


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


def _colored(choice: str, env: Mapping[str, str], is_terminal: bool) -> bool:
    """A flag says more than the environment, NO_COLOR more than FORCE_COLOR (no-color.org, force-color.org)."""
    if choice != "auto":
        return choice == "always"
    if env.get("NO_COLOR"):
        return False
    forced = env.get("FORCE_COLOR", "")
    if forced:
        return forced not in ("0", "false")
    return is_terminal and env.get("TERM") != "dumb"
