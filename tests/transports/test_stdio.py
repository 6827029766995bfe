"""A process that serves over its own stdin and stdout. Every one is a real process, its parent the test."""

from __future__ import annotations

import fcntl
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(30)

HOST = """
import asyncio, os, subprocess, sys
from anykit.transports import Oversized, TransportClosed, take_stdio

streams = take_stdio()
{early}

async def main():
    transport = streams.open()
    assert transport.secure
    while True:
        try:
            line = await transport.receive()
        except TransportClosed as closed:
            end = closed.reason
            break
        {each}
    await transport.close()
    streams.close()
    {late}

asyncio.run(main())
"""
ECHO = "await transport.send(repr(line).encode() if isinstance(line, Oversized) else line)"


def host(each: str = ECHO, *, early: str = "", late: str = "") -> list[str]:
    return [sys.executable, "-c", HOST.format(each=each, early=early, late=late)]


def run(argv: list[str], data: bytes, *, timeout: float = 15) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(argv, input=data, capture_output=True, timeout=timeout, check=False)


def test_lines_come_and_go_and_the_end_of_stdin_is_the_end() -> None:
    done = run(host(late="print(end, file=sys.stderr)"), b"one\ntwo\r\n\nthree")
    assert done.stdout == b"one\ntwo\nthree\n"
    assert done.returncode == 0
    assert done.stderr == b"end of stream\n"


def test_it_works_on_uvloop(tmp_path: Path) -> None:
    argv = [part.replace("asyncio.run(main())", "import uvloop; uvloop.run(main())") for part in host()]
    assert "uvloop.run" in argv[-1]
    assert run(argv, b"one\n" + b"x" * 600_000 + b"\n").stdout == b"one\n" + b"x" * 600_000 + b"\n"
    source = tmp_path / "in"
    source.write_bytes(b"from a file\n")
    with source.open("rb") as reading:
        done = subprocess.run(argv, stdin=reading, capture_output=True, timeout=15, check=False)
    assert done.stdout == b"from a file\n"


def test_b030_whatever_a_tool_prints_goes_to_stderr() -> None:
    """espressif/esp-idf#19087: print() corrupts the stream; so do os.write(1) and a child's output."""
    noise = (
        "print('hi'); os.write(1, b'raw\\n'); subprocess.run(['echo', 'child']); sys.__stdout__.write('dunder\\n'); "
        "os.system('echo shell; echo shell-error >&2'); sys.stderr.write('stderr\\n')"
    )
    done = run(host(f"{noise}; {ECHO}", early="print('at import \\ud800')"), b"{}\n[]\n")
    assert done.stdout == b"{}\n[]\n"
    assert done.returncode == 0
    for text in (b"hi\n", b"raw\n", b"child\n", b"dunder\n", b"shell\n", b"shell-error\n", b"stderr\n"):
        assert done.stderr.count(b"\n" + text) == 2
    assert b"at import \\ud800\n" in done.stderr


def test_a_tool_that_reads_stdin_gets_nothing_of_the_protocol() -> None:
    each = "print(repr(sys.stdin.read()), subprocess.run(['cat'], capture_output=True).stdout, os.read(0, 9)); " + ECHO
    done = run(host(each), b"one\ntwo\n")
    assert done.stdout == b"one\ntwo\n"
    assert done.stderr == b"'' b'' b''\n" * 2


def test_after_close_the_descriptors_are_what_they_were() -> None:
    done = run(host(late="print('to stdout'); os.write(1, b'raw\\n'); print('to stderr', file=sys.stderr)"), b"")
    assert done.stdout in (b"to stdout\nraw\n", b"raw\nto stdout\n")
    assert done.stderr == b"to stderr\n"


def test_a_parent_that_never_reads_stderr_does_not_stall_the_host() -> None:
    each = "print('x' * 3_000_000); subprocess.run(['head', '-c', '500000', '/dev/zero']); " + ECHO
    read_end, write_end = os.pipe()
    with subprocess.Popen(host(each), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end) as process:
        os.close(write_end)
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(3):
            process.stdin.write(b"ping\n")
            process.stdin.flush()
            assert process.stdout.readline() == b"ping\n"
        process.stdin.close()
        assert process.wait(timeout=10) == 0
    assert os.read(read_end, 1) == b"x"
    os.close(read_end)


def test_what_stderr_did_not_take_is_counted_and_said_once_it_reads_again() -> None:
    each = "print('x' * 3_000_000, flush=True); " + ECHO
    read_end, write_end = os.pipe()
    with subprocess.Popen(host(each), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=write_end) as process:
        os.close(write_end)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"ping\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ping\n"
        taken = b""
        while b"bytes of output dropped" not in taken:
            taken += os.read(read_end, 65536)
        assert len(taken) < 1_000_000
        process.stdin.close()
        assert process.wait(timeout=10) == 0
    os.close(read_end)


@pytest.mark.skipif(not hasattr(fcntl, "F_SETPIPE_SZ"), reason="only Linux makes a pipe larger")
def test_what_was_dropped_is_said_also_where_all_that_was_kept_is_taken_in_one_go() -> None:
    read_end, write_end = os.pipe()
    with subprocess.Popen(
        host("print('x' * 3_000_000, flush=True); " + ECHO),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=write_end,
    ) as process:
        os.close(write_end)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"ping\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"ping\n"
        fcntl.fcntl(read_end, fcntl.F_SETPIPE_SZ, 1024 * 1024)  # room for more than is ever kept
        taken = os.read(read_end, 1)
        while b"bytes of output dropped" not in taken:
            taken += os.read(read_end, 65536)
        process.stdin.close()
        assert process.wait(timeout=10) == 0
    os.close(read_end)


def test_a_parent_that_closed_stderr_does_not_end_the_host() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        host("print('nobody reads this', flush=True); " + ECHO),
        input=b"one\ntwo\n",
        stdout=subprocess.PIPE,
        stderr=write_end,
        timeout=15,
        check=False,
    )
    os.close(write_end)
    assert done.stdout == b"one\ntwo\n"
    assert done.returncode == 0


def test_a_parent_that_closed_stdout_ends_the_transport() -> None:
    each = """
        while True:
            try:
                await transport.send(b'x' * 70_000)
            except TransportClosed as closed:
                print(closed.reason, closed.sent, file=sys.stderr)
                break
"""
    with subprocess.Popen(host(each), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
        assert process.stdout.read(10) == b"x" * 10
        process.stdout.close()
        process.stdin.close()
        assert process.stderr.read().startswith(b"broken pipe")
        assert process.wait(timeout=10) == 0


def test_a_traceback_that_ends_the_process_reaches_stderr() -> None:
    done = run(host("raise RuntimeError('broke here')"), b"one\n")
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"RuntimeError: broke here" in done.stderr


def test_b041_bad_bytes_are_a_line_like_any_other() -> None:
    """modelcontextprotocol/python-sdk#2302: bytes that are not UTF-8 end the server."""
    assert run(host(), b"\xff\xfe garbage\n{}\n").stdout == b"\xff\xfe garbage\n{}\n"


def test_b040_large_lines_pass_both_ways_and_one_too_large_is_reported() -> None:
    """TokenRhythm/opensquilla#953."""
    large = [b"x" * 200_000, b"y" * 5_000_000]
    done = run(host(), b"\n".join([*large, b"z" * 9_000_000, b"after", b""]))
    first, second, report, after, rest = done.stdout.split(b"\n")
    assert [first, second] == large
    assert report.startswith(b"Oversized(")
    assert (after, rest) == (b"after", b"")


@pytest.mark.parametrize("stderr", [subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT])
def test_every_kind_of_stderr_works(stderr: int) -> None:
    # one pipe for both: then nothing may be printed, but the protocol must not break
    each = ECHO if stderr == subprocess.STDOUT else "print('noise', flush=True); " + ECHO
    done = subprocess.run(host(each), input=b"one\n", stdout=subprocess.PIPE, stderr=stderr, timeout=15, check=False)
    assert done.stdout == b"one\n"


def test_files_for_stdin_and_stdout_work(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"one\n" + b"x" * 600_000 + b"\ntwo\n")
    with source.open("rb") as reading, sink.open("wb") as writing:
        done = subprocess.run(host(), stdin=reading, stdout=writing, stderr=subprocess.PIPE, timeout=15, check=False)
    assert done.returncode == 0
    assert done.stderr == b""
    assert sink.read_bytes() == source.read_bytes()


def test_no_stdin_is_the_end_at_once() -> None:
    done = subprocess.run(host(), stdin=subprocess.DEVNULL, capture_output=True, timeout=15, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_descriptors_that_the_parent_left_closed_are_survived() -> None:
    argv = ["sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', *host("print('noise')")]
    assert subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=15, check=False).returncode == 0


def test_sockets_for_stdin_and_stdout_work() -> None:
    """Node starts its children with socket pairs, not pipes."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        fd = theirs.fileno()
        with subprocess.Popen(host(), stdin=fd, stdout=fd, stderr=fd) as process:
            theirs.close()
            ours.settimeout(10)
            ours.sendall(b"one\n" + b"x" * 400_000 + b"\n")
            got = b""
            while got.count(b"\n") < 2:
                got += ours.recv(65536)
            assert got == b"one\n" + b"x" * 400_000 + b"\n"
            ours.shutdown(socket.SHUT_WR)
            assert process.wait(timeout=10) == 0


def test_a_terminal_works_and_keeps_its_mode() -> None:
    parent, terminal = pty.openpty()
    try:
        with subprocess.Popen(host(), stdin=terminal, stdout=subprocess.PIPE, stderr=terminal) as process:
            os.write(parent, b"typed\n")
            assert process.stdout is not None
            assert process.stdout.readline() == b"typed\n"
            assert os.get_blocking(terminal)
            os.write(parent, b"\x04")  # Ctrl-D
            assert process.wait(timeout=10) == 0
    finally:
        os.close(parent)
        os.close(terminal)


def test_the_mode_of_a_shared_pipe_is_left_alone() -> None:
    read_end, write_end = os.pipe()
    with subprocess.Popen(host(), stdin=subprocess.PIPE, stdout=write_end, stderr=write_end) as process:
        assert process.stdin is not None
        process.stdin.write(b"one\n")
        process.stdin.flush()
        assert os.read(read_end, 100) == b"one\n"
        assert os.get_blocking(write_end)
        process.stdin.close()
        assert process.wait(timeout=10) == 0
    os.close(read_end)
    os.close(write_end)


def test_concurrent_senders_never_mix_their_lines() -> None:
    each = """
        await asyncio.gather(*(transport.send(bytes([65 + n]) * 200_000) for n in range(20)))
"""
    done = run(host(each), b"go\n")
    lines = done.stdout.split(b"\n")[:-1]
    assert len(lines) == 20
    assert all(line == line[:1] * 200_000 for line in lines)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize("busy", ["pass", "asyncio.get_running_loop().create_task(asyncio.sleep(60))"])
def test_b031_a_parent_that_goes_away_ends_the_host_and_its_children(busy: str) -> None:
    """hangwin/mcp-chrome#300, DeusData/codebase-memory-mcp#406: the server outlives its client."""
    program = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(120)"
    each = f"""
        from anykit.transports import Command, spawn
        child = await spawn(Command((sys.executable, "-S", "-c", {program!r})))
        assert await child.receive() == b"up"
        {busy}
        await transport.send(str(child.pid).encode())
"""
    argv = [
        part.replace("await transport.close()", "await child.close(); await transport.close()") for part in host(each)
    ]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"start\n")
        process.stdin.flush()
        pid = int(process.stdout.readline())
        assert not gone(pid)
        process.stdin.close()
        assert process.wait(timeout=8) == 0
        assert gone(pid)
        assert b"Traceback" not in process.stderr.read()
