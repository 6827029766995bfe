"""Lines over file descriptors: never blocking the loop, bounded, in order.

A descriptor that the loop can poll (pipe, socket, terminal) is polled; for what it cannot (a regular file, /dev/null) a
thread reads and writes.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
import threading
from collections import deque
from collections.abc import Sequence

from .base import Received, TransportClosed, check_line
from .lines import MAX_LINE, LineReader

CHUNK = 256 * 1024
"""Bytes of one read."""
HIGH_WATER = 1024 * 1024
"""Bytes held unread, or unwritten, before the other side has to wait."""


def pollable_copy(fd: int, flags: int) -> int | None:
    """Give a non-blocking descriptor of what `fd` is open on, or None where only a thread can wait for it.

    The blocking mode belongs to the open file, which a parent or a sibling may share, so pipes and terminals are opened
    anew where the system allows that. `flags` is `os.O_RDONLY` or `os.O_WRONLY`.
    """
    mode = os.fstat(fd).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISCHR(mode)):
        return None
    if not stat.S_ISSOCK(mode):
        with contextlib.suppress(OSError):
            return os.open(f"/proc/self/fd/{fd}", flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        if not stat.S_ISFIFO(mode):
            return None
    copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)
    os.set_blocking(copy, False)
    return copy


class LineInput:
    """The receiving half: owns `fd` and closes it at the end of the stream, or in `close`.

    Args:
        fd: Open for reading. Non-blocking where `polled`, else a thread of its own reads it.
        max_line: Bytes of a line; longer ones are skipped and reported.
        polled: Let the loop say when there is something to read.
    """

    def __init__(self, fd: int, *, max_line: int = MAX_LINE, polled: bool = True) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self.lines = LineReader(max_line)
        self.ended = asyncio.Event()
        """Set once nothing more is read."""
        self._items: deque[Received] = deque()
        self._held = 0
        self._waiter: asyncio.Future[None] | None = None
        self._over: str | None = None
        self._discarding = False
        self._hanging_up = False
        self._reading = True
        self._polled = polled
        self._go = threading.Event()
        if polled:
            try:
                self._loop.add_reader(fd, self._readable)
            except (OSError, ValueError):  # epoll refuses files and /dev/null (EPERM)
                self._polled = False
                os.set_blocking(fd, True)
        if not self._polled:
            self._go.set()
            threading.Thread(target=self._read_in_thread, name=f"anykit-read-{fd}", daemon=True).start()

    async def receive(self) -> Received:
        """Give the next line; raise `TransportClosed` at the end."""
        while not self._items:
            if self._over is not None:
                raise TransportClosed(self._over)
            if self._waiter is not None:
                raise RuntimeError("another task is receiving already")
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        item = self._items.popleft()
        if isinstance(item, bytes):
            self._held -= len(item)
        if not self._reading and self._held <= HIGH_WATER // 2:
            self._resume()
        return item

    def discard(self, reason: str = "closed") -> None:
        """End it for the receiver, but read on to nowhere: a writer who is told to end must not stall on us."""
        self._discarding = True
        self._items.clear()
        self._held = 0
        self._say_over(reason)
        self._resume()

    def hang_up(self) -> None:
        """End it where the stream holds nothing more now; what was sent can still be received."""
        self._hanging_up = True
        if self._reading and self._polled:
            self._read_out()

    def close(self, reason: str = "closed") -> None:
        """Stop reading and close the descriptor; what was not received is lost."""
        self._items.clear()
        self._finish(reason)

    def _readable(self) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except (BlockingIOError, InterruptedError):
            if self._hanging_up:
                self._got(b"")
            return
        except OSError:  # EIO: the terminal went away; ECONNRESET: the peer did
            data = b""
        self._got(data)

    def _read_out(self) -> None:
        if self._reading and not self.ended.is_set():
            self._readable()
            self._loop.call_soon(self._read_out)

    def _got(self, data: bytes) -> None:
        if self.ended.is_set():
            return
        if not data:
            if not self._discarding:
                self._items.extend(self.lines.finish())
            self._finish("end of stream")
            return
        if self._discarding:
            return
        for item in self.lines.feed(data):
            self._items.append(item)
            if isinstance(item, bytes):
                self._held += len(item)
        if self._items:
            self._wake()
            if self._held > HIGH_WATER and self._reading:
                self._pause()

    def _pause(self) -> None:
        self._reading = False
        if self._polled:
            self._loop.remove_reader(self._fd)
        else:
            self._go.clear()

    def _resume(self) -> None:
        if self._reading or self.ended.is_set():
            return
        self._reading = True
        if self._polled:
            self._loop.add_reader(self._fd, self._readable)
            if self._hanging_up:
                self._loop.call_soon(self._read_out)
        else:
            self._go.set()

    def _finish(self, reason: str) -> None:
        self._say_over(reason)
        if self.ended.is_set():
            return
        self.ended.set()
        if self._polled:
            if self._reading:
                self._loop.remove_reader(self._fd)
            os.close(self._fd)
        self._reading = False
        self._go.set()  # the thread sees the end and closes the descriptor

    def _say_over(self, reason: str) -> None:
        if self._over is None:
            self._over = reason
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _read_in_thread(self) -> None:
        data = b"-"
        while data:
            self._go.wait()
            if self.ended.is_set():
                break
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._got, data)
            except RuntimeError:  # the loop is closed
                break
        os.close(self._fd)


class LineOutput:
    """The sending half: owns `fd`, closes it in `close`. Lines leave whole and in the order of the calls."""

    def __init__(self, fd: int, *, polled: bool = True) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._polled = polled
        self._buffer = bytearray()
        self._draining: asyncio.Future[None] | None = None
        self._over: str | None = None
        self._closed = False
        self._writing = False
        if polled:
            try:
                self._loop.add_writer(fd, _nothing)
                self._loop.remove_writer(fd)
            except (OSError, ValueError):
                self._polled = False
                os.set_blocking(fd, True)

    async def send(self, line: bytes) -> None:
        """Write one line; wait while more than `HIGH_WATER` bytes are unwritten. Raises `TransportClosed`."""
        await self.send_all((line,))

    async def send_all(self, lines: Sequence[bytes]) -> None:
        """Write lines at once, as `send` does each: one system call for all that fits."""
        for line in lines:
            check_line(line)
        if self._over is not None:
            raise TransportClosed(self._over)
        data = b"\n".join((*lines, b""))
        if self._buffer or not self._polled:
            self._buffer += data
        else:
            left = self._write(data)
            if not left:
                return
            self._buffer += left
        self._start_draining()
        while len(self._buffer) > HIGH_WATER:
            await self._until_drained()
            if self._over is not None:
                raise TransportClosed(self._over, sent=True)

    async def flush(self) -> None:
        """Wait until everything is written, or cannot be."""
        while self._draining is not None:
            await self._until_drained()

    def close(self, reason: str = "closed") -> None:
        """Close the descriptor; what is still unwritten is lost."""
        if self._closed:
            return
        self._closed = True
        self._end(reason)
        if not self._writing:  # else `_written` closes it
            os.close(self._fd)

    def _write(self, data: bytes | bytearray) -> bytes | bytearray:
        """Write what fits now and give the rest. Raises `TransportClosed`."""
        try:
            count = os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return data
        except OSError as error:
            self._end(_why(error))
            raise TransportClosed(_why(error)) from None
        return data[count:]

    def _start_draining(self) -> None:
        if self._draining is not None:
            return
        self._draining = self._loop.create_future()
        if self._polled:
            self._loop.add_writer(self._fd, self._writable)
        else:
            self._write_in_thread()

    async def _until_drained(self) -> None:
        if self._draining is not None:
            await asyncio.shield(self._draining)

    def _writable(self) -> None:
        try:
            count = os.write(self._fd, memoryview(self._buffer)[:CHUNK].tobytes())
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._end(_why(error))
            return
        del self._buffer[:count]
        if not self._buffer:
            self._loop.remove_writer(self._fd)
            self._drained()

    def _drained(self) -> None:
        draining, self._draining = self._draining, None
        if draining is not None and not draining.done():
            draining.set_result(None)

    def _end(self, reason: str) -> None:
        if self._over is None:
            self._over = reason
        if self._draining is not None and self._polled:
            self._loop.remove_writer(self._fd)
        self._buffer.clear()
        self._drained()

    def _write_in_thread(self) -> None:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._writing = True
        threading.Thread(target=self._write_all, args=(data,), name=f"anykit-write-{self._fd}", daemon=True).start()

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        reason: str | None = None
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            reason = _why(error)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._written, reason)

    def _written(self, reason: str | None) -> None:
        self._writing = False
        if self._closed:
            os.close(self._fd)
        elif reason is not None:
            self._end(reason)
        elif self._buffer:
            self._write_in_thread()
        else:
            self._drained()


def _nothing() -> None:
    """Stand in as a callback while the loop is asked whether it can poll a descriptor."""


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
