"""A child process as a transport: started without a shell, bounded, and ended with everything that it started.

    spawn ─> running ──close()──> EOF on stdin ─grace─> SIGTERM to the group ─grace─> SIGKILL to the group ─> gone
                └───leader exits─> last words ────────> SIGTERM to the group ─grace─> SIGKILL to the group ─> gone

One task owns each child from its start to its end; `close` asks it and waits. Should the loop end first it kills at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import logging
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from anykit.capabilities import Unavailable

from .base import Received, TransportClosed
from .lines import MAX_LINE
from .pipes import CHUNK, LineInput, LineOutput
from .watchdog import Watchdog, watchdog

log = logging.getLogger(__name__)

INHERITED = ("PATH", "HOME", "LOGNAME", "USER", "SHELL", "TERM", "LANG", "LC_*", "TMPDIR")
"""Variables that a child gets from us, as shell patterns; everything else is kept from it."""
EOF_SECONDS = 1.0
"""What a child has between the end of its stdin and SIGTERM."""
TERM_SECONDS = 1.0
"""What its group has between SIGTERM and SIGKILL."""
LAST_WORDS_SECONDS = 0.5
"""What is waited for the end of stdout once the child has exited, or for the exit once stdout has ended."""
STDERR_BYTES = 64 * 1024
"""How much of the end of stderr is kept."""
EXCERPT = 300
"""Characters of stderr that an error quotes."""


@dataclass(frozen=True, slots=True)
class Command:
    """What to start: a program and its arguments exactly as the child gets them. No shell ever sees them."""

    argv: tuple[str, ...] = field(repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    """Declared variables, beside the inherited ones; their values are cut out of what is quoted from stderr."""
    cwd: str | os.PathLike[str] | None = None
    inherit: tuple[str, ...] = INHERITED

    def __post_init__(self) -> None:
        if isinstance(self.argv, str) or not self.argv or not self.argv[0]:
            raise ValueError("a command needs a program: a list of strings, the program first")
        for text in (*self.argv, *self.env, *self.env.values()):
            _check_text(text)
        if any(not name or "=" in name for name in self.env):
            raise ValueError("a variable's name must not be empty or contain '='")

    @property
    def program(self) -> str:
        """The program's name, as written."""
        return self.argv[0]

    def environment(self) -> dict[str, str]:
        """Give the whole environment of the child."""
        return {**inherited(self.inherit), **self.env}


def _check_text(text: str) -> None:
    try:
        clean = b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        clean = False
    if not clean:
        raise ValueError("a command and its environment must not contain NUL or lone surrogates")


def inherited(patterns: Sequence[str] = INHERITED, source: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Give the variables of `source` that match one of `patterns`, exported shell functions left out."""
    return {
        name: value
        for name, value in source.items()
        if not value.startswith("()") and any(fnmatchcase(name, pattern) for pattern in patterns)
    }


async def spawn(
    command: Command,
    *,
    max_line: int = MAX_LINE,
    eof_seconds: float = EOF_SECONDS,
    term_seconds: float = TERM_SECONDS,
) -> ProcessTransport:
    """Start `command` and give the lines of its stdin and stdout.

    At most 2 x cores children are being started at a time; more wait. Raises `Unavailable` (nothing sent) where the
    program or its folder does not exist or cannot be run.
    """
    starting = _starters().submit(_start, command, watchdog())
    try:
        started = await asyncio.wrap_future(starting)
    except asyncio.CancelledError:
        starting.add_done_callback(_abandon)
        raise
    except OSError as error:
        raise Unavailable(_why_not_started(command, error)) from None
    return ProcessTransport(command, started, max_line=max_line, eof_seconds=eof_seconds, term_seconds=term_seconds)


class ProcessTransport:
    """The lines of a running child; made by `spawn`. It leads a process group (and session) of its own."""

    secure = True

    def __init__(
        self, command: Command, started: _Started, *, max_line: int, eof_seconds: float, term_seconds: float
    ) -> None:
        self.command = command
        self.pid = started.process.pid
        """The leader's process id, and its group's."""
        self._process = started.process
        self._eof_seconds = eof_seconds
        self._term_seconds = term_seconds
        self._output = LineOutput(started.stdin)
        self._input = LineInput(started.stdout, max_line=max_line)
        self._stderr = _Tail(started.stderr)
        self._exited = asyncio.Event()
        self._stopping = asyncio.Event()
        self._stop_watching = _on_exit(self._process, self._exited.set)
        self._life = asyncio.create_task(self._live(), name=f"anykit-child-{self.pid}")

    @property
    def returncode(self) -> int | None:
        """Exit code, minus the signal's number where one ended it, None while it runs."""
        return _exit_code(self._process)

    @property
    def stderr(self) -> str:
        """The end of what it wrote to stderr, the values of declared variables cut out."""
        text = self._stderr.text()
        for value in self.command.env.values():
            if len(value) >= 6:
                text = text.replace(value, "***")
        return text

    @property
    def blank(self) -> int:
        """Blank lines skipped so far."""
        return self._input.lines.blank

    async def send(self, line: bytes) -> None:
        """See `LineTransport`."""
        try:
            await self._output.send(line)
        except TransportClosed as closed:
            raise await self._over(sent=closed.sent) from None

    async def receive(self) -> Received:
        """See `LineTransport`."""
        try:
            return await self._input.receive()
        except TransportClosed:
            raise await self._over() from None

    async def wait(self) -> int | None:
        """Wait until it and its group are gone; give the exit code."""
        await asyncio.shield(self._life)
        return self.returncode

    async def close(self) -> None:
        """See `LineTransport`. Returns when nothing of the group is alive."""
        self._stopping.set()
        await asyncio.shield(self._life)
        self._input.close()

    async def _live(self) -> None:
        gone = False
        try:
            await _first(self._exited, self._stopping)
            if self._exited.is_set():
                await _within(LAST_WORDS_SECONDS, self._input.ended, self._stopping)
            else:
                await self._ask_to_end()
            await self._end_group()
            gone = True
        finally:
            if not gone:  # the loop ends: no time left for grace
                self._signal(signal.SIGKILL)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=1.0)
            self._stop_watching()
            self._stderr.close()
            self._output.close()
            if self._stopping.is_set():
                self._input.close()
            else:
                self._input.hang_up()
            if gone:
                await asyncio.get_running_loop().run_in_executor(_enders(), watchdog().unregister, self.pid)
            else:
                watchdog().unregister(self.pid)

    async def _ask_to_end(self) -> None:
        self._output.close()
        self._input.discard()
        await _within(self._eof_seconds, self._exited)
        if not self._exited.is_set():
            self._signal(signal.SIGTERM)
            await _within(self._term_seconds, self._exited)
        if not self._exited.is_set():
            self._signal(signal.SIGKILL)
            await self._exited.wait()

    async def _end_group(self) -> None:
        """End what the leader left behind. While the leader is not reaped its group's number cannot be another's."""
        self._signal(signal.SIGTERM)
        self._process.wait()  # it has exited: this only reaps it
        deadline = time.monotonic() + self._term_seconds
        pause = 0.005
        while await self._group_lives():
            if time.monotonic() > deadline:
                self._signal(signal.SIGKILL)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)

    async def _group_lives(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except OSError:
            return False
        return await asyncio.get_running_loop().run_in_executor(_enders(), _runs, self.pid)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):  # none is left (ESRCH); or only zombies, as macOS says it (EPERM)
            os.killpg(self.pid, number)

    async def _over(self, *, sent: bool = False) -> TransportClosed:
        """Give the error that says what became of it."""
        if not self._stopping.is_set():
            await _within(LAST_WORDS_SECONDS, self._exited, self._stopping)
        name = repr(self.command.program)
        if self._stopping.is_set():
            return TransportClosed(f"{name} was closed", sent=sent)
        self._stderr.read()
        words = self.stderr.strip().splitlines()
        last = f": {words[-1].strip()[-EXCERPT:]}" if words else ""
        code = self.returncode
        if code is None:
            return TransportClosed(f"{name} closed its output{last}", sent=sent)
        how = f"was ended by signal {_signal_name(-code)}" if code < 0 else f"exited with code {code}"
        return TransportClosed(f"{name} {how}{last}", sent=sent, detail={"exit_code": code})


@dataclass(frozen=True, slots=True)
class _Started:
    """A child and our ends of its pipes, non-blocking."""

    process: subprocess.Popen[bytes]
    stdin: int
    stdout: int
    stderr: int

    def kill(self) -> None:
        """End it at once; for a start that nobody waits for any more."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for fd in (self.stdin, self.stdout, self.stderr):
            os.close(fd)
        watchdog().unregister(self.process.pid)


class _Tail:
    """Reads a child's stderr as it comes and keeps the end of it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._open = True
        self._loop.add_reader(fd, self._readable)

    def text(self) -> str:
        """Give what is kept."""
        return b"".join(self._parts)[-STDERR_BYTES:].decode("utf-8", "replace")

    def read(self) -> None:
        """Take what is there now (bounded: somebody may never stop writing)."""
        for _ in range(16):
            if not self._open or not self._readable():
                break

    def close(self) -> None:
        """Take what is there and stop."""
        self.read()
        if self._open:
            self._open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _readable(self) -> bool:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError:
            data = b""
        if not data:
            self._open = False
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            return False
        self._parts.append(data)
        self._size += len(data)
        while self._size - len(self._parts[0]) >= STDERR_BYTES:
            self._size -= len(self._parts.popleft())
        return True


@functools.cache
def _enders() -> ThreadPoolExecutor:
    """Threads for the little that may block at a child's end."""
    return ThreadPoolExecutor(max_workers=2, thread_name_prefix="anykit-reap")


@functools.cache
def _starters() -> ThreadPoolExecutor:
    """The threads that start children; their number is how many may be starting at a time."""
    return ThreadPoolExecutor(max_workers=2 * (os.cpu_count() or 1), thread_name_prefix="anykit-spawn")


def _start(command: Command, guard: Watchdog) -> _Started:
    """Start the child (blocks until the program runs). Raises `OSError`."""
    fds: list[int] = []
    guard.expect()
    try:
        for _ in range(3):
            fds.extend(os.pipe())
        child_in, ours_in, ours_out, child_out, ours_err, child_err = fds
        process = subprocess.Popen(
            command.argv,
            stdin=child_in,
            stdout=child_out,
            stderr=child_err,
            env=command.environment(),
            cwd=command.cwd,
            start_new_session=True,
        )
    except BaseException:
        guard.forget()
        for fd in fds:
            os.close(fd)
        raise
    guard.register(process.pid)
    for fd in (child_in, child_out, child_err):
        os.close(fd)
    for fd in (ours_in, ours_out, ours_err):
        os.set_blocking(fd, False)
    return _Started(process, ours_in, ours_out, ours_err)


def _abandon(starting: Future[_Started]) -> None:
    """End a child whose starter was cancelled meanwhile. Runs in a thread: the loop may be gone."""
    if not starting.cancelled() and starting.exception() is None:
        starting.result().kill()


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    """Give the exit code without reaping the process, where the system can."""
    if process.returncode is not None:
        return process.returncode
    try:
        ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except (AttributeError, OSError):  # macOS before Python 3.13 has no waitid
        return process.poll()
    if ended is None:
        return None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _on_exit(process: subprocess.Popen[bytes], tell: Callable[[], None]) -> Callable[[], None]:
    """Call `tell` in the loop when the leader has exited. Gives what stops waiting."""
    loop = asyncio.get_running_loop()
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):
            return _poll_pidfd(loop, os.pidfd_open(process.pid), tell)

    def wait() -> None:
        process.wait()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell)

    threading.Thread(target=wait, name=f"anykit-wait-{process.pid}", daemon=True).start()
    return lambda: None


def _poll_pidfd(loop: asyncio.AbstractEventLoop, pidfd: int, tell: Callable[[], None]) -> Callable[[], None]:
    watching = True

    def stop() -> None:
        nonlocal watching
        if watching:
            watching = False
            loop.remove_reader(pidfd)
            os.close(pidfd)

    def exited() -> None:
        stop()
        tell()

    loop.add_reader(pidfd, exited)
    return stop


async def _first(*events: asyncio.Event) -> None:
    """Wait for one of `events`."""
    if any(event.is_set() for event in events):
        return
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _within(seconds: float, *events: asyncio.Event) -> None:
    """Wait for one of `events`, at most `seconds`."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await _first(*events)


def _runs(group: int) -> bool:
    """Whether a process of `group` is more than a zombie, which an init that does not reap would leave for ever."""
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return True
    for name in os.listdir(proc):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            # proc(5): pid (comm) state ppid pgrp ...; comm may contain anything
            state, _, pgrp = (proc / name / "stat").read_text(errors="replace").rpartition(")")[2].split()[:3]
            if int(pgrp) == group and state not in "ZX":
                return True
    return False


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _why_not_started(command: Command, error: OSError) -> str:
    name = repr(command.program)
    if command.cwd is not None and not Path(command.cwd).is_dir():
        return f"cannot start {name}: working folder {os.fspath(command.cwd)!r} does not exist"
    match error.errno:
        case errno.ENOENT | errno.ENOTDIR:
            hint = ""
            if any(character.isspace() for character in command.program):
                hint = " (it is taken as one program's name: no shell splits it; give the arguments apart)"
            if "/" in command.program and (Path(command.cwd or ".") / command.program).is_file():
                return f"cannot start {name}: the interpreter of its #! line does not exist"
            return f"command not found: {name}{hint}"
        case errno.EACCES:
            return f"cannot start {name}: not executable, or not allowed"
        case errno.ENOEXEC:
            return f"cannot start {name}: not a program (is the #! line missing?)"
        case _:
            return f"cannot start {name}: {(error.strerror or str(error)).lower()}"
