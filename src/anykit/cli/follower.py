"""What `anykit serve` does about a file that changes while it serves: apply it, or say why not."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path

from anykit.app import AppConfig, ConfigError, Workbench, read_config
from anykit.app.following import Followed
from anykit.app.trust import NotTrusted
from anykit.app.watching import Watch

from .invocation import Invocation
from .local import sources_of
from .trusting import lines_of, shown, trust_of

log = logging.getLogger("anykit.serve")


class Follower:
    """Follows the configuration's file, the files that it names, and with `python` the Python sources."""

    def __init__(
        self, invocation: Invocation, bench: Workbench, config: AppConfig, on_line: Sequence[str], *, python: bool
    ) -> None:
        self._invocation = invocation
        self._bench = bench
        self._file = config.path
        self._on_line = tuple(on_line)
        self._python = python
        self._named = invocation.flags.config is not None
        self._refused = False
        self._watch = Watch(self._files)

    def poke(self) -> None:
        """Read everything again now."""
        self._watch.poke()

    def _files(self) -> set[Path]:
        python = self._bench.following.files() if self._python else set[Path]()
        return {*self._of_configuration(), *([] if self._named else [trust_of(self._invocation).path]), *python}

    def _of_configuration(self) -> set[Path]:
        return set() if self._file is None else {self._file, *self._bench.documents}

    async def run(self) -> None:
        """Follow until cancelled. Nothing that goes wrong ends it."""
        async for changed in self._watch.changes():
            try:
                await self._follow(changed)
            except Exception:
                log.exception("a change could not be followed; what was there serves on")

    async def _follow(self, changed: frozenset[Path]) -> None:
        agreed = self._refused and trust_of(self._invocation).path in changed
        if self._file is not None and (not changed or agreed or changed & self._of_configuration()):
            await self._reload(self._file)
        if self._python and changed:
            for one in await self._bench.following.follow(changed):
                self._tell(one)

    async def _reload(self, file: Path) -> None:
        terminal, flags = self._invocation.terminal, self._invocation.flags
        try:
            config = read_config(file).for_environment(flags.env or terminal.env.get("ANYKIT_ENV"))
            if not self._named:
                trust_of(self._invocation).require(file)
            plain, named = sources_of(self._invocation, config, self._on_line)
            report = await self._bench.reload(plain, sources=named)
        except NotTrusted as error:
            self._refused = True
            asks = "; ".join(lines_of(error.standing.asks))
            terminal.warn(
                f"{shown(file)} is not applied, the one before serves on: it defines what is not trusted ({asks});"
                f" to apply it:  anykit trust {shlex.quote(shown(file))}"
            )
            return
        except ConfigError as error:
            self._refused = False
            terminal.warn(f"{shown(file)} is not applied, the one before serves on: {error}")
            return
        self._refused = False
        if report.problems:
            terminal.warn(f"reloaded {shown(file)}: {report.summary()}")
        elif report:
            terminal.note(f"reloaded {shown(file)}: {report.summary()}")

    def _tell(self, one: Followed) -> None:
        terminal = self._invocation.terminal
        if one.failed:
            terminal.warn(f"source {one.source} is not reloaded, what it was serves on: {one.failed}")
        elif one.problems:
            terminal.warn(f"reloaded source {one.source}; {'; '.join(one.problems)}")
        else:
            terminal.note(f"reloaded source {one.source}")
