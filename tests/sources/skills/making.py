"""Folders of skills, made for a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from anykit.sources.skills import SkillsSource

VECTORS = Path(__file__).parents[2] / "vectors" / "skills"
WAIT = 6.0
"""Seconds that a test waits for anything."""


def make_skill(
    place: Path,
    name: str,
    description: str = "Does what it is for.",
    *,
    body: str = "# Steps\n\n1. Begin.",
    more: str = "",
    files: Mapping[str, bytes] | None = None,
    raw: bytes | None = None,
) -> Path:
    """A skill's folder in `place`; `more` are further lines of its frontmatter, `raw` all of its file."""
    folder = place / name
    folder.mkdir(parents=True, exist_ok=True)
    text = f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{body}\n"
    (folder / "SKILL.md").write_bytes(text.encode() if raw is None else raw)
    for path, data in (files or {}).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


@asynccontextmanager
async def started(source: SkillsSource) -> AsyncGenerator[SkillsSource]:
    """A source that has been looked through."""
    await source.start()
    try:
        await source.refresh()
        yield source
    finally:
        await source.close()


def names(source: SkillsSource) -> list[str]:
    """What the skills of a source are called."""
    return [skill.name for skill in source.skills]


def said(source: SkillsSource) -> list[str]:
    """What there is to say of them: level, file without its place, message."""
    return [
        f"{one.level} {Path(one.where).parent.name}/{Path(one.where).name}: {one.message}" for one in source.findings
    ]


async def until(reached: Callable[[], Any]) -> None:
    """Wait for what nobody tells of."""
    async with asyncio.timeout(WAIT):
        while not reached():  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.01)
