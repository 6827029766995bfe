"""The host side of stdio: the protocol gets private descriptors, everything else that is printed goes to stderr.

    fd 0  -> /dev/null                         a tool that reads stdin gets its end, not a protocol line
    fd 1 ┐
    fd 2 ┴-> pipe -> thread -> the real stderr  print(), os.write(1), children's echo: never in the protocol

The thread never waits for a parent that does not read stderr: what is not taken is dropped, and counted.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import fcntl
import io
import os
import select
import stat
import sys
import threading
from collections import deque
from collections.abc import Sequence

from .base import Received
from .lines import MAX_LINE
from .pipes import LineInput, LineOutput, pollable_copy

BACKLOG = 256 * 1024
"""Bytes of stderr kept for a parent that is slow to read it."""
PIECE = 512
"""Bytes of one write to a descriptor that could not be made non-blocking: POSIX's least PIPE_BUF."""
READS = 64
"""Reads of the pipe between two looks at anything else."""
LOW_FDS = 10
"""Copies are put at this number or above, out of the way of 0, 1 and 2."""


def take_stdio() -> ProtocolStreams:
    """Take fd 0 and 1 for the protocol, before anything is imported that may print. Needs no running loop.

    Call it once a process; `ProtocolStreams.close` gives them back.
    """
    return ProtocolStreams()


class ProtocolStreams:
    """What `take_stdio` took. `open` gives the transport, `close` restores fd 0, 1 and 2."""

    def __init__(self) -> None:
        _fill_gaps()
        _flush()
        self._saved = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOW_FDS) for fd in (0, 1, 2)]
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        read_end, write_end = os.pipe()
        self._pump = _Pump(_raise_fd(read_end), self._saved[2])
        os.dup2(write_end, 1)
        os.dup2(write_end, 2)
        os.close(write_end)
        self._pump.start()
        _make_prompt(sys.stdout)
        _make_prompt(sys.stderr)
        self._closed = False
        atexit.register(self.close)

    @property
    def dropped(self) -> int:
        """Bytes of stderr that nobody took."""
        return self._pump.dropped

    def open(self, *, max_line: int = MAX_LINE) -> StdioTransport:
        """Give the transport over the real stdin and stdout. Needs a running loop; once."""
        if self._closed:
            raise RuntimeError("the protocol streams are closed")
        return StdioTransport(self._saved[0], self._saved[1], max_line=max_line)

    def close(self) -> None:
        """Restore fd 0, 1 and 2, and hand on what was printed so far. Close the transport before."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        _flush()
        for fd, saved in enumerate(self._saved):
            os.dup2(saved, fd)
        self._pump.stop()
        for saved in self._saved:
            os.close(saved)


class StdioTransport:
    """Lines over a process's own stdin and stdout.

    Args:
        stdin: Descriptor to read; stays the caller's.
        stdout: Descriptor to write; stays the caller's.
        max_line: Bytes of a line.
    """

    secure = True

    def __init__(self, stdin: int, stdout: int, *, max_line: int = MAX_LINE) -> None:
        self._input = _input(stdin, max_line)
        self._output = _output(stdout)

    @property
    def blank(self) -> int:
        """Blank lines skipped so far."""
        return self._input.lines.blank

    async def send(self, line: bytes) -> None:
        """See `LineTransport`."""
        await self._output.send(line)

    async def send_all(self, lines: Sequence[bytes]) -> None:
        """`send` for each of them, with one system call for all that fits."""
        await self._output.send_all(lines)

    async def receive(self) -> Received:
        """See `LineTransport`."""
        return await self._input.receive()

    async def close(self) -> None:
        """See `LineTransport`. What was sent is given half a second to be taken."""
        self._input.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await self._output.flush()
        self._output.close()


def _input(fd: int, max_line: int) -> LineInput:
    copy = pollable_copy(fd, os.O_RDONLY)
    if copy is None:
        return LineInput(_raise_fd(os.dup(fd)), max_line=max_line, polled=False)
    return LineInput(copy, max_line=max_line)


def _output(fd: int) -> LineOutput:
    copy = pollable_copy(fd, os.O_WRONLY)
    if copy is None:
        return LineOutput(_raise_fd(os.dup(fd)), polled=False)
    return LineOutput(copy)


class _Pump(threading.Thread):
    """Carries what is printed to the real stderr."""

    def __init__(self, source: int, sink: int) -> None:
        super().__init__(name="anykit-stderr", daemon=True)
        self.dropped = 0
        self._source = source
        os.set_blocking(source, False)
        mode = os.fstat(sink).st_mode
        copy = None if stat.S_ISSOCK(mode) else pollable_copy(sink, os.O_WRONLY)
        self._nonblocking = copy is not None
        self._sink = _raise_fd(os.dup(sink)) if copy is None else _raise_fd(copy)
        self._always_ready = stat.S_ISREG(mode)
        self._backlog: deque[bytes] = deque()
        self._size = 0
        self._unreported = 0
        self._wake_read, self._wake_write = (_raise_fd(fd) for fd in os.pipe())

    def stop(self) -> None:
        """Hand on what is in the pipe now, as far as it is taken at once, and end."""
        os.close(self._wake_write)
        self.join(timeout=2.0)

    def run(self) -> None:
        stopping = False
        open_ended = True
        while open_ended and not stopping:
            poll = select.poll()
            poll.register(self._source, select.POLLIN)
            poll.register(self._wake_read, select.POLLIN)
            if self._backlog and not self._always_ready:
                poll.register(self._sink, select.POLLOUT)
            ready = dict(poll.poll())
            stopping = self._wake_read in ready
            open_ended = self._take()
            self._hand_on()
        self._hand_on()
        for fd in (self._source, self._sink, self._wake_read):
            os.close(fd)

    def _take(self) -> bool:
        """Read what there is, within bounds (a child may never stop printing). False at the end."""
        for _ in range(READS):
            try:
                data = os.read(self._source, 65536)
            except BlockingIOError:
                return True
            if not data:
                return False
            if self._size + len(data) > BACKLOG:
                self._hand_on()
            if self._size + len(data) > BACKLOG:
                self.dropped += len(data)
                self._unreported += len(data)
                continue
            self._keep(data)
        return True

    def _keep(self, data: bytes) -> None:
        self._backlog.append(data)
        self._size += len(data)

    def _hand_on(self) -> None:
        """Write as much as is taken without waiting."""
        while self._next() and self._takes():
            data = self._backlog[0]
            try:
                count = os.write(self._sink, data if self._nonblocking else data[:PIECE])
            except BlockingIOError:
                return
            except OSError:  # nobody will ever read it
                self.dropped += self._size
                self._backlog.clear()
                self._size = 0
                return
            self._size -= count
            if count == len(data):
                self._backlog.popleft()
            else:
                self._backlog[0] = data[count:]

    def _next(self) -> bool:
        """Whether anything is to be written; what was dropped is said as soon as there is room for it again.

        Asked before every write: a reader who empties the pipe while we fill it may take the whole backlog in one go, and
        nothing would wake us to say it afterwards.
        """
        if self._unreported and self._size < BACKLOG // 2:
            self._keep(f"\n[anykit: {self._unreported} bytes of output dropped: stderr was not read]\n".encode())
            self._unreported = 0
        return bool(self._backlog)

    def _takes(self) -> bool:
        if self._nonblocking or self._always_ready:
            return True
        poll = select.poll()
        poll.register(self._sink, select.POLLOUT)
        return bool(poll.poll(0))


def _fill_gaps() -> None:
    """Open /dev/null on a standard descriptor that the parent left closed, so that nothing else lands there."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is `fd`
            os.set_inheritable(opened, True)


def _raise_fd(fd: int) -> int:
    """Move `fd` to a number out of the way."""
    if fd >= LOW_FDS:
        os.set_inheritable(fd, False)
        return fd
    moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOW_FDS)
    os.close(fd)
    return moved


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()


def _make_prompt(stream: object) -> None:
    """Let what is printed leave at each line end, and never fail for a character."""
    if isinstance(stream, io.TextIOWrapper):
        with contextlib.suppress(OSError, ValueError):
            stream.reconfigure(line_buffering=True, errors="backslashreplace")
