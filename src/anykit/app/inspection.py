"""A workbench that is only looked at: its sources are opened and asked what they have; nothing is set up or called."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from anykit.runtime import Snapshot, state_of

from .config import AppConfig, LockConfig, SourceConfig, ToolkitConfig
from .opening import Named
from .workbench import Workbench


@dataclass(slots=True)
class Inspection:
    """The bench, and how it came up."""

    bench: Workbench
    waited: float = 0.0
    """Seconds that its sources were waited for."""
    took: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds from the start to the verdict of each source that has one."""

    def ready(self) -> list[str]:
        """The sources of which is known what they offer."""
        return [
            name for name, source in self.bench.catalog.snapshot.sources.items() if state_of(source).status == "ready"
        ]


def harmless(config: AppConfig) -> AppConfig:
    """A configuration with which nothing is set up, enforced or required."""
    sources = [
        one.model_copy(update={"required": False}) if isinstance(one, SourceConfig) else one for one in config.sources
    ]
    toolkits = {name: ToolkitConfig(enabled=False) for name, said in config.toolkits.items() if not said.enabled}
    return config.model_copy(update={"sources": sources, "toolkits": toolkits, "lock": LockConfig()})


@asynccontextmanager
async def inspected(
    config: AppConfig, given: Sequence[Named] = (), *, data_dir: Path | None = None, wait: float = 10.0
) -> AsyncGenerator[Inspection]:
    """Open the sources of `config` and `given`, and wait for their verdicts, at most `wait` seconds."""
    bench = Workbench(*given, config=harmless(config), data_dir=data_dir, settle=0.0)
    inspection = Inspection(bench)
    begun = time.monotonic()

    def look(snapshot: Snapshot) -> None:
        for name, source in snapshot.sources.items():
            if name not in inspection.took and state_of(source).status != "connecting":
                inspection.took[name] = time.monotonic() - begun

    unsubscribe = bench.catalog.subscribe(look)
    try:
        async with bench:
            await bench.settled(max(0.0, wait - (time.monotonic() - begun)))
            look(bench.catalog.snapshot)
            inspection.waited = time.monotonic() - begun
            yield inspection
    finally:
        unsubscribe()
