"""Lines of a text that a regular expression finds. Run as a program it does so for another process.

Python's `re` may take longer than the universe lasts for one line, and nothing can stop it inside a process. So every
pattern that could do so runs in a process of its own, which is killed when the time is up, and which ends itself by a
limit on CPU seconds should its parent be gone. This module imports nothing of ours, so that it starts in milliseconds.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from contextlib import suppress
from types import TracebackType
from typing import Any

SHOWN = 500
"""Characters of a line that a result shows."""


class TooSlow(Exception):
    """The time was up."""


def find(pattern: re.Pattern[str], text: str, limit: int) -> list[tuple[int, str]]:
    """Number (from 1) and text of at most `limit` lines in which the pattern is found."""
    found: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        match = pattern.search(line)
        if match is not None:
            found.append((number, _excerpt(line, match.start())))
            if len(found) >= limit:
                break
    return found


def is_harmless(pattern: str) -> bool:
    """Whether `re` surely needs no more than a step a character and pattern item: no group, no repetition."""
    plain = re.sub(r"\\.", "", pattern, flags=re.DOTALL)
    return not any(character in plain for character in "(*+?{")


def _excerpt(line: str, start: int) -> str:
    if len(line) <= SHOWN:
        return line
    begin = max(0, min(start - SHOWN // 4, len(line) - SHOWN))
    end = begin + SHOWN
    return f"{'...' if begin else ''}{line[begin:end]}{'...' if end < len(line) else ''}"


class Searcher:
    """Searches texts for a pattern, in this process or, where the pattern may be slow, in another. One thread uses it.

    Raises `OSError` where the other process cannot be started.
    """

    def __init__(self, pattern: re.Pattern[str], *, seconds: float) -> None:
        self._pattern = pattern
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        if is_harmless(pattern.pattern):
            return
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
        self._timer = threading.Timer(max(seconds, 0.0), self._process.kill)
        self._timer.daemon = True
        self._timer.start()
        header: dict[str, Any] = {"pattern": pattern.pattern, "seconds": int(seconds) + 2}
        self._send(json.dumps(header).encode() + b"\n")

    def search(self, data: bytes, limit: int) -> list[tuple[int, str]]:
        """At most `limit` lines of UTF-8 text. Raises `TooSlow`."""
        if self._process is None:
            return find(self._pattern, data.decode("utf-8", "replace"), limit)
        self._send(len(data).to_bytes(8, "big") + limit.to_bytes(8, "big"), data)
        assert self._process.stdout is not None
        answer = self._process.stdout.readline()
        if not answer.endswith(b"\n"):
            raise TooSlow
        return [(number, line) for number, line in json.loads(answer)]

    def _send(self, *pieces: bytes) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            for piece in pieces:
                self._process.stdin.write(piece)
            self._process.stdin.flush()
        except OSError:
            raise TooSlow from None

    def __enter__(self) -> Searcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is None or self._timer is None:
            return
        self._timer.cancel()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not sent yet has no reader any more
                    pipe.close()
        self._process.wait()
        self._timer.join()


def _serve() -> None:
    """Read a header, then texts; answer each with a line of JSON."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    header = json.loads(source.readline())
    with suppress(ImportError, ValueError, OSError):
        import resource  # noqa: PLC0415 - not on every platform

        resource.setrlimit(resource.RLIMIT_CPU, (header["seconds"], header["seconds"]))
    pattern = re.compile(header["pattern"])
    while len(sizes := source.read(16)) == 16:
        size, limit = int.from_bytes(sizes[:8], "big"), int.from_bytes(sizes[8:], "big")
        text = source.read(size).decode("utf-8", "replace")
        sink.write(json.dumps(find(pattern, text, limit)).encode() + b"\n")
        sink.flush()


if __name__ == "__main__":
    _serve()
