"""Runs the steps and prints how they went."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeVar

from anykit.cli.errors import CommandError, Exit
from anykit.cli.invocation import Invocation
from anykit.cli.terminal import Terminal

from .agents import A2A_STEPS, AgentStage, with_agents
from .bring import BRING_STEPS, BringStage, with_things
from .servers import MCP_STEPS, ServerStage, with_servers
from .stage import Stage, StepFailed, furnish, over_http, over_stdio
from .steps import STEPS, Step

STEP_SECONDS = 25.0
"""What one step may take."""


class Shown(Protocol):
    """What a stage says of itself."""

    @property
    def transport(self) -> str:
        """The section that it belongs to."""
        ...

    @property
    def title(self) -> str:
        """What is on it."""
        ...


StageT = TypeVar("StageT", bound=Shown)
Opening: TypeAlias = Callable[[Path], AbstractAsyncContextManager[StageT]]
TRANSPORTS: tuple[tuple[str, Opening[Stage]], ...] = (("stdio", over_stdio), ("http", over_http))
AGENTS: tuple[tuple[str, Opening[AgentStage]], ...] = (("a2a", with_agents),)
SERVERS: tuple[tuple[str, Opening[ServerStage]], ...] = (("mcp", with_servers),)
THINGS: tuple[tuple[str, Opening[BringStage]], ...] = (("bring", with_things),)


@dataclass(frozen=True, slots=True)
class Report:
    """How one step went."""

    transport: str
    step: str
    passed: bool
    detail: str
    seconds: float


def run(invocation: Invocation) -> int:
    """Start a real host twice, over stdio and over HTTP, and do the main job with it on real files in a temporary folder.

    Then call a real A2A agent, be called as one, and answer what it asks; and take in MCP servers, whose tools are called
    over every protocol; and add a little of everything that a person may have. Offline, without any key, in less than a
    minute. Exit code 0 only where every step passes.
    """
    terminal = invocation.terminal
    begun = time.monotonic()
    if not terminal.as_json:
        terminal.write("anykit demo: a real host in a process of its own, and an agent that uses it; offline, no keys")
    reports = invocation.run(_show(terminal))
    failed = [report for report in reports if not report.passed]
    if terminal.as_json:
        terminal.write_json([asdict(report) for report in reports])
    else:
        passed = f"{len(reports) - len(failed)} of {len(reports)} steps passed in {time.monotonic() - begun:.1f} s"
        terminal.write("")
        terminal.write_styled(passed, "red" if failed else "green")
    if failed:
        raise CommandError(f"{len(failed)} steps failed", code="demo_failed", exit=Exit.FAILED)
    return Exit.OK


async def _show(terminal: Terminal) -> list[Report]:
    reports: list[Report] = []

    def heading(text: str) -> None:
        _heading(terminal, text)

    for section in (
        demonstrate(STEPS, TRANSPORTS, heading=heading),
        demonstrate(A2A_STEPS, AGENTS, heading=heading),
        demonstrate(MCP_STEPS, SERVERS, heading=heading),
        demonstrate(BRING_STEPS, THINGS, heading=heading),
    ):
        async for report in section:
            reports.append(report)
            _print(terminal, report)
    return reports


def _print(terminal: Terminal, report: Report) -> None:
    if terminal.as_json:
        return
    mark = terminal.styled("pass", "green") if report.passed else terminal.styled("FAIL", "red")
    terminal.print_styled(f"  {mark}  {report.step}  {terminal.styled(f'{report.seconds:.2f} s', 'dim')}")
    if report.detail:
        terminal.print_styled(f"        {terminal.styled(_short(report.detail, terminal.width), 'dim')}")


def _heading(terminal: Terminal, text: str) -> None:
    if not terminal.as_json:
        terminal.print_styled(f"\n{terminal.styled(text, 'bold')}")


def _short(text: str, width: int) -> str:
    line = " ".join(text.split())
    room = max(40, width - 9)
    return line if len(line) <= room else f"{line[: room - 3]}..."


async def demonstrate(
    steps: Sequence[Step[StageT]], transports: Sequence[tuple[str, Opening[StageT]]], *, heading: Callable[[str], Any]
) -> AsyncIterator[Report]:
    """Do the steps over each transport; one that fails takes none of the others with it."""
    for name, opening in transports:
        with tempfile.TemporaryDirectory(prefix="anykit-demo-") as place:
            folder = furnish(Path(place))
            begun = time.monotonic()
            try:
                async with opening(folder) as stage:
                    heading(f"{name}: {stage.title}")
                    for step in steps:
                        yield await _report(stage, step)
            except Exception as error:
                yield Report(name, "the host starts and ends", False, _reason(error), time.monotonic() - begun)


async def _report(stage: StageT, step: Step[StageT]) -> Report:
    begun = time.monotonic()
    try:
        async with asyncio.timeout(STEP_SECONDS):
            detail = await step.act(stage)
        passed = True
    except Exception as error:
        passed, detail = False, _reason(error)
    return Report(stage.transport, step.title, passed, detail, round(time.monotonic() - begun, 3))


def _reason(error: Exception) -> str:
    if isinstance(error, StepFailed):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")
