"""One small process that ends our children's groups when we die without having ended them (SIGKILL included).

It lives in a session of its own, reads group ids from a pipe that only we hold open, and acts when that pipe closes. It
starts with the first child and ends with the last.
"""

from __future__ import annotations

import functools
import logging
import os
import subprocess
import sys
import threading

log = logging.getLogger(__name__)

TERM_SECONDS = 1.0
"""What a group has between SIGTERM and SIGKILL once we are gone."""

_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH")
"""What a Python built as a shared library may need to start; it reads nothing else."""

_PROGRAM = """
import os, signal, sys, time
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
    signal.signal(number, signal.SIG_IGN)
groups, held = set(), b""
while True:
    data = os.read(0, 65536)
    if not data:
        break
    *lines, held = (held + data).split(b"\\n")
    for line in lines:
        (groups.add if line[:1] == b"+" else groups.discard)(int(line[1:]))
def signal_all(number):
    for group in list(groups):
        try:
            os.killpg(group, number)
        except OSError:
            groups.discard(group)
signal_all(signal.SIGTERM)
deadline = time.monotonic() + float(sys.argv[2])
while groups and time.monotonic() < deadline:
    time.sleep(0.02)
    signal_all(0)
signal_all(signal.SIGKILL)
"""


class Watchdog:
    """Our end of it. Every method may be called from any thread and does not wait long (milliseconds)."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._groups: set[int] = set()
        self._expected = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: int | None = None

    def expect(self) -> None:
        """Be ready for a group that is about to start. `register` or `forget` must follow."""
        with self._lock:
            self._expected += 1
            if self._process is None:
                self._start()

    def register(self, group: int) -> None:
        """Take over a group that `expect` announced."""
        with self._lock:
            self._expected -= 1
            self._groups.add(group)
            self._tell(f"+{group}\n")

    def forget(self) -> None:
        """Take back an `expect`: nothing started."""
        with self._lock:
            self._expected -= 1
            self._stop_if_idle()

    def unregister(self, group: int) -> None:
        """Let go of a group that is gone."""
        with self._lock:
            if group in self._groups:
                self._groups.discard(group)
                self._tell(f"-{group}\n")
            self._stop_if_idle()

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        process = self._process
        return None if process is None else process.pid

    def _start(self) -> None:
        if not sys.executable:
            log.warning("no Python executable to run the watchdog with: children outlive a killed process")
            return
        read_end, write_end = os.pipe()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _PROGRAM, "anykit-watchdog", str(TERM_SECONDS)],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: value for name, value in os.environ.items() if name in _LOADER},
                start_new_session=True,
            )
        except OSError as error:
            os.close(write_end)
            log.warning("the watchdog does not start (%s): children outlive a killed process", error.strerror)
        else:
            self._pipe = write_end
        finally:
            os.close(read_end)

    def _tell(self, line: str) -> None:
        if self._process is None or self._write(line):
            return
        self._stop()  # it was killed: have another, and tell it all
        self._start()
        self._write("".join(f"+{group}\n" for group in self._groups))

    def _write(self, text: str) -> bool:
        if self._pipe is None:
            return False
        try:
            os.write(self._pipe, text.encode())
        except OSError:
            return False
        return True

    def _stop_if_idle(self) -> None:
        if not self._groups and not self._expected:
            self._stop()

    def _stop(self) -> None:
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        process, self._process = self._process, None
        if process is not None:
            try:
                process.wait(timeout=1.0)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def after_fork(self) -> None:
        """In a forked child: it is not ours, and our copy of the pipe must not keep it asleep."""
        self._lock = threading.Lock()
        self._groups.clear()
        self._expected = 0
        if self._pipe is not None:
            os.close(self._pipe)
            self._pipe = None
        if self._process is not None:
            self._process.returncode = 0  # not our child: nothing to wait for, no warning
            self._process = None


@functools.cache
def watchdog() -> Watchdog:
    """Give this process's watchdog."""
    ours = Watchdog()
    os.register_at_fork(after_in_child=ours.after_fork)
    return ours
