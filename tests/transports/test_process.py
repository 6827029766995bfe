"""Children: their lines, their environment, and that nothing of them is left. Every one is a real process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from anykit.capabilities import Unavailable
from anykit.transports import INHERITED, Command, Oversized, ProcessTransport, TransportClosed, inherited, spawn
from anykit.transports.watchdog import watchdog

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(30)]

ECHO = "import sys\nfor line in sys.stdin.buffer:\n    sys.stdout.buffer.write(line)\n    sys.stdout.buffer.flush()\n"


def python(program: str, *arguments: str, env: dict[str, str] | None = None) -> Command:
    return Command((sys.executable, "-S", "-c", program, *arguments), env=env or {})


def alive(pid: int) -> bool:
    """Whether a process runs: not gone and not a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def open_fds() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> list[int]:
    """Our children, zombies too."""
    ours = os.getpid()
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and int((entry / "stat").read_text().rpartition(")")[2].split()[1]) == ours:
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


async def until(condition: Callable[[], bool], seconds: float = 5.0) -> bool:
    """Whether `condition` comes true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        await asyncio.sleep(0.01)
    return True


async def receive(transport: ProcessTransport) -> bytes | Oversized:
    async with asyncio.timeout(10):
        return await transport.receive()


async def test_lines_go_there_and_back() -> None:
    child = await spawn(python(ECHO))
    try:
        for line in (b"one", '{"t":"\u2028"}'.encode(), b"\xff\xfe"):
            await child.send(line)
            assert await receive(child) == line
        assert child.secure
        assert child.returncode is None
    finally:
        await child.close()
    assert child.returncode == 0


async def test_b030_noise_on_stdout_is_lines_like_others_and_blank_ones_are_dropped() -> None:
    """UKGovernmentBEIS/inspect_ai#3290: a banner, a blank line, a number; the reply still arrives."""
    noise = ["Server started...", "", "42", "[db] connected", '{"jsonrpc":"2.0","id":1,"result":{}}']
    child = await spawn(python("import sys\nprint(sys.argv[1])", "\n".join(noise)))
    try:
        assert [await receive(child) for _ in range(4)] == [line.encode() for line in noise if line]
        assert child.blank == 1
    finally:
        await child.close()


async def test_b040_large_lines_arrive_whole_and_one_too_large_is_reported() -> None:
    """QwenLM/qwen-code#9298: asyncio's readline breaks at 64 KiB."""
    program = """
import os, sys
def write(data):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
for size in (200_000, 5_000_000):
    write(b"x" * size + b"\\n")
write(b"y" * 9_000_000)
sys.stdin.buffer.readline()
character = "\\u00e9".encode()
write(b"y\\n" + character[:1])
write(character[1:] + b"\\n")
"""
    child = await spawn(python(program))
    try:
        assert await receive(child) == b"x" * 200_000
        assert await receive(child) == b"x" * 5_000_000
        assert isinstance(await receive(child), Oversized)
        await child.send(b"go on")
        assert await receive(child) == "\u00e9".encode()
    finally:
        await child.close()


async def test_a_child_that_is_not_read_is_not_read_without_bound() -> None:
    program = "import sys\nfor n in range(60_000):\n    print(f'{n:060d}')\n"
    child = await spawn(python(program))
    try:
        for number in range(60_000):
            assert await receive(child) == b"%060d" % number
            if number == 10:
                await asyncio.sleep(0.2)
        with pytest.raises(TransportClosed, match="exited with code 0"):
            await receive(child)
    finally:
        await child.close()


async def test_a_child_that_does_not_read_makes_the_sender_wait_not_the_loop() -> None:
    child = await spawn(python("import time\ntime.sleep(60)"))
    try:

        async def flood() -> None:
            while True:
                await child.send(b"x" * 100_000)

        flooding = asyncio.create_task(flood())
        started = time.monotonic()
        await asyncio.sleep(0.2)
        assert time.monotonic() - started < 2
        assert not flooding.done()
        await child.close()
        with pytest.raises(TransportClosed):
            await flooding
    finally:
        await child.close()


async def test_the_end_says_the_exit_code_and_the_last_word_without_declared_values() -> None:
    program = "import os, sys\nsys.stderr.write('starting\\nno such key: ' + os.environ['KEY'] + '\\n')\nsys.exit(3)"
    child = await spawn(python(program, env={"KEY": "sk-very-secret"}))
    with pytest.raises(TransportClosed) as caught:
        await receive(child)
    assert "exited with code 3: no such key: ***" in caught.value.reason
    assert caught.value.detail == {"exit_code": 3}
    assert await child.wait() == 3
    assert child.stderr == "starting\nno such key: ***\n"
    with pytest.raises(TransportClosed) as caught:
        await child.send(b"hello")
    assert caught.value.sent is False


async def test_the_end_says_the_signal() -> None:
    child = await spawn(python("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"))
    with pytest.raises(TransportClosed, match="ended by signal SIGKILL"):
        await receive(child)
    await child.close()


async def test_what_a_child_said_before_it_exited_is_received() -> None:
    child = await spawn(python("print('one')\nprint('two', end='')"))
    await child.wait()
    assert [await receive(child), await receive(child)] == [b"one", b"two"]
    with pytest.raises(TransportClosed):
        await receive(child)


async def test_stderr_is_drained_and_only_its_end_is_kept() -> None:
    program = "import sys\nsys.stderr.write('e' * 3_000_000 + 'END')\nsys.stderr.flush()\nprint('done', flush=True)\nsys.stdin.read()"
    child = await spawn(python(program))
    try:
        assert await receive(child) == b"done"
        assert await until(lambda: child.stderr.endswith("END"))
        assert len(child.stderr) <= 64 * 1024
    finally:
        await child.close()


async def test_closing_wakes_a_waiting_receiver_at_once() -> None:
    child = await spawn(
        python("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(60)")
    )
    assert await receive(child) == b"up"
    waiting = asyncio.create_task(child.receive())
    await asyncio.sleep(0)
    closing = asyncio.create_task(child.close())
    async with asyncio.timeout(0.5):
        with pytest.raises(TransportClosed, match="was closed"):
            await waiting
    await closing
    assert child.returncode == -signal.SIGKILL


# -- B028: nothing is left


LAUNCHER = """
import os, subprocess, sys
program = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(120)"
grandchild = subprocess.Popen([sys.executable, "-S", "-c", program], stdout=subprocess.PIPE)
grandchild.stdout.readline()
print(grandchild.pid, flush=True)
"""


@pytest.mark.parametrize(
    "leader",
    [
        pytest.param("sys.stdin.read()", id="ends at EOF"),
        pytest.param("grandchild.wait()", id="waits for its server"),
        pytest.param("import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(120)", id="ignores TERM"),
        pytest.param("", id="exits first"),
    ],
)
async def test_b028_no_descendant_is_alive_after_close(leader: str) -> None:
    """modelcontextprotocol/typescript-sdk#2023: close() kills the launcher and leaves the server."""
    before = set(children())
    child = await spawn(python(LAUNCHER + leader))
    line = await receive(child)
    assert isinstance(line, bytes)
    grandchild = int(line)
    assert alive(grandchild)
    if not leader:
        assert await until(lambda: child.returncode == 0)
    async with asyncio.timeout(6):
        await child.close()
    assert await until(lambda: not alive(grandchild), 1)
    assert not alive(child.pid)
    assert set(children()) == before


async def test_b028_a_leader_that_exits_takes_its_group_along_though_nobody_closes() -> None:
    """anthropics/claude-code#76306: orphans stay when the command ends by itself."""
    child = await spawn(python(LAUNCHER))
    line = await receive(child)
    assert isinstance(line, bytes)
    async with asyncio.timeout(6):
        assert await child.wait() == 0
    assert await until(lambda: not alive(int(line)), 1)


async def test_b028_failed_connects_leave_no_process_and_no_descriptor() -> None:
    """metatool-ai/metamcp#162 and #239: a server that never answers is abandoned at each retry."""
    mute = python("import sys\nfor line in sys.stdin: pass")
    warm = await spawn(mute)
    await warm.close()
    processes, descriptors = set(children()), open_fds()
    for _ in range(5):
        child = await spawn(mute)
        await child.send(b"initialize")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(child.receive(), 0.05)
        await child.close()
    assert set(children()) == processes
    assert open_fds() == descriptors


async def test_b028_a_start_that_is_cancelled_leaves_nothing() -> None:
    """metatool-ai/metamcp#239: the connect deadline strikes while the child is being started."""
    processes = set(children())
    for turns in range(4):
        starting = asyncio.create_task(spawn(python("import time\ntime.sleep(120)")))
        for _ in range(turns):
            await asyncio.sleep(0)
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
    assert await until(lambda: watchdog().pid is None and set(children()) == processes)


async def test_a_close_that_is_cancelled_goes_on() -> None:
    child = await spawn(python("import time\ntime.sleep(120)"))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await child.close()
    assert await until(lambda: not alive(child.pid))
    await child.close()


async def test_many_children_at_once_start_and_end() -> None:
    descriptors = open_fds()
    running = await asyncio.gather(*(spawn(python(ECHO)) for _ in range(12)))
    await asyncio.gather(*(child.send(b"hi") for child in running))
    assert await asyncio.gather(*(receive(child) for child in running)) == [b"hi"] * 12
    await asyncio.gather(*(child.close() for child in running))
    assert open_fds() <= descriptors + 1


def test_a_loop_that_ends_takes_its_children_along() -> None:
    async def main() -> int:
        child = await spawn(python("import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(120)"))
        return child.pid

    pid = asyncio.run(main())
    assert not alive(pid)


ON_UVLOOP = """
import sys, uvloop
from anykit.transports import Command, TransportClosed, spawn
async def main():
    child = await spawn(Command((sys.executable, "-S", "-c", sys.argv[1])))
    await child.send(b"x" * 600_000)
    assert await child.receive() == b"x" * 600_000
    await child.close()
    assert child.returncode == 0
    child = await spawn(Command((sys.executable, "-S", "-c", "import sys; sys.exit(7)")))
    try:
        await child.receive()
    except TransportClosed as closed:
        print(closed.detail["exit_code"])
    await child.close()
uvloop.run(main())
"""


async def test_it_works_on_uvloop() -> None:
    assert await output(Command((sys.executable, "-X", "dev", "-c", ON_UVLOOP, ECHO))) == ["7"]


# -- we die


VICTIM = """
import asyncio, sys
from anykit.transports import Command, spawn
async def main():
    child = await spawn(Command((sys.executable, "-S", "-c", sys.argv[1])))
    line = await child.receive()
    print(line.decode(), flush=True)
    await asyncio.sleep(120)
asyncio.run(main())
"""
STUBBORN = """
import os, signal, subprocess, sys, time
for number in (1, 2, 15):
    signal.signal(number, signal.SIG_IGN)
grandchild = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(120)"])
print(os.getpid(), grandchild.pid, flush=True)
time.sleep(120)
"""


async def test_children_end_when_we_are_killed() -> None:
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VICTIM, STUBBORN, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert victim.stdout is not None
    async with asyncio.timeout(10):
        pids = [int(pid) for pid in (await victim.stdout.readline()).split()]
    assert len(pids) == 2
    assert all(alive(pid) for pid in pids)
    victim.kill()
    await victim.wait()
    assert await until(lambda: not any(alive(pid) for pid in pids), 5)


async def test_a_forked_copy_of_us_does_not_keep_the_children_alive_when_we_are_killed() -> None:
    forking = VICTIM.replace(
        "    print(",
        "    import os, time\n    copy = os.fork()\n    if copy == 0: os.close(1); time.sleep(60); os._exit(0)\n    print(copy, ",
    )
    assert forking != VICTIM
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "ignore", "-c", forking, STUBBORN, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    assert victim.stdout is not None
    async with asyncio.timeout(10):
        copy, *pids = [int(pid) for pid in (await victim.stdout.readline()).split()]
    victim.kill()
    await victim.wait()
    try:
        assert await until(lambda: not any(alive(pid) for pid in pids), 5)
        assert alive(copy)
    finally:
        os.killpg(victim.pid, signal.SIGKILL)


async def test_a_killed_watchdog_is_replaced_and_told_everything() -> None:
    first = await spawn(python(ECHO))
    pid = watchdog().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert await until(lambda: not alive(pid))
    second = await spawn(python(ECHO))
    assert watchdog().pid not in (None, pid)
    await first.close()
    await second.close()
    assert watchdog().pid is None


async def test_the_watchdog_lives_only_while_children_do_and_holds_only_its_pipe() -> None:
    assert watchdog().pid is None
    child = await spawn(python(ECHO))
    pid = watchdog().pid
    assert pid is not None
    assert os.getsid(pid) == pid
    assert sorted(os.listdir(f"/proc/{pid}/fd")) == ["0", "1", "2"]
    await child.close()
    assert not alive(pid)
    assert watchdog().pid is None


# -- B061, B080: environment and command


async def output(command: Command) -> list[str]:
    child = await spawn(command)
    lines: list[str] = []
    try:
        while True:
            item = await receive(child)
            assert isinstance(item, bytes)
            lines.append(item.decode())
    except TransportClosed:
        return lines
    finally:
        await child.close()


async def test_b061_a_child_gets_the_basics_and_what_was_declared_and_no_key_of_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Temikus/denkeeper#219, griptape-ai/griptape-nodes-engine#4791: every secret, or not even PATH."""
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    name = Path(sys.executable).name
    program = "import os\nfor item in sorted(os.environ.items()): print('='.join(item))"
    lines = await output(Command((name, "-S", "-c", program), env={"MY": "1"}))
    seen = dict(line.split("=", 1) for line in lines)
    assert seen["MY"] == "1"
    assert seen["PATH"] == os.environ["PATH"]
    assert (seen["LANG"], seen["LC_TIME"]) == ("C.UTF-8", "C")
    assert "OPENAI_API_KEY" not in seen
    listed = await output(Command((name, "-S", "-c", program), inherit=(*INHERITED, "OPENAI_*")))
    assert "OPENAI_API_KEY=x" in listed


def test_b061_exported_shell_functions_are_not_inherited() -> None:
    """Temikus/denkeeper#219."""
    assert inherited(("*",), {"A": "() { :; }", "B": "1"}) == {"B": "1"}


async def test_b080_arguments_reach_the_child_as_they_are(tmp_path: Path) -> None:
    """kardolus/chatgpt-cli#176: no shell ever sees them."""
    arguments = ["a; touch marker.txt", "$(touch marker.txt)", "`id`", "--name=x y", "", "*", "é\u2028"]
    program = "import sys\nfor argument in sys.argv[1:]: print(ascii(argument))"
    command = Command((sys.executable, "-S", "-c", program, *arguments), cwd=tmp_path)
    assert await output(command) == [ascii(argument) for argument in arguments]
    assert os.listdir(tmp_path) == []


async def test_b080_a_command_with_spaces_is_one_program_that_is_not_found(tmp_path: Path) -> None:
    """langflow-ai/langflow#13900."""
    descriptors = open_fds()
    with pytest.raises(Unavailable, match=r"command not found: 'python3 srv.py; touch marker'.*no shell") as caught:
        await spawn(Command(("python3 srv.py; touch marker",), cwd=tmp_path))
    assert caught.value.sent is False
    assert os.listdir(tmp_path) == []
    assert open_fds() == descriptors


async def test_what_cannot_start_says_why(tmp_path: Path) -> None:
    not_executable = tmp_path / "data"
    not_executable.write_text("x")
    bad_interpreter = tmp_path / "script"
    bad_interpreter.write_text("#!/no/such/interpreter\n")
    bad_interpreter.chmod(0o755)
    no_interpreter = tmp_path / "plain"
    no_interpreter.write_text("echo hello\n")
    no_interpreter.chmod(0o755)
    cases: Sequence[tuple[Command, str]] = [
        (Command(("no-such-program-xyz",)), "command not found: 'no-such-program-xyz'"),
        (Command((str(not_executable),)), "not executable"),
        (Command((str(bad_interpreter),)), "interpreter"),
        (Command((str(no_interpreter),)), "not a program"),
        (Command((sys.executable,), cwd=tmp_path / "nowhere"), "working folder .* does not exist"),
    ]
    for command, why in cases:
        with pytest.raises(Unavailable, match=why):
            await spawn(command)
    assert watchdog().pid is None


@pytest.mark.parametrize(
    ("argv", "env"),
    [((), {}), (("",), {}), (("a\0b",), {}), (("a", "\ud800"), {}), (("a",), {"K=": "v"}), (("a",), {"K": "v\0"})],
)
def test_a_command_that_no_system_could_start_is_refused_where_it_is_made(
    argv: tuple[str, ...], env: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"command|variable"):
        Command(argv, env=env)


def test_a_command_never_shows_its_arguments_or_values() -> None:
    assert "hunter2" not in repr(Command(("x", "--password=hunter2"), env={"PASSWORD": "hunter2"}))


async def test_one_task_receives_at_a_time() -> None:
    child = await spawn(python(ECHO))
    try:
        first: asyncio.Task[bytes | Oversized] = asyncio.create_task(child.receive())
        await asyncio.sleep(0)
        second: Awaitable[bytes | Oversized] = child.receive()
        with pytest.raises(RuntimeError, match="receiving already"):
            await second
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await child.send(b"still fine")
        assert await receive(child) == b"still fine"
    finally:
        await child.close()
