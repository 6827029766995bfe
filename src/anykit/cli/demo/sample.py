"""A slow tool for the demonstration: it leaves a note where it was cancelled."""

from __future__ import annotations

import asyncio
from pathlib import Path

from anykit import CapabilityContext, tool
from anykit.capabilities import Progress

NOTE = "cancelled.txt"
"""In the folder where the host was started."""


@tool(open_world=False)
async def count_slowly(upto: int, context: CapabilityContext) -> int:
    """Counts one a second."""
    for done in range(upto):
        context.emit(Progress(done, upto))
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            Path(NOTE).write_text(f"cancelled at {done} of {upto}\n")  # noqa: ASYNC240 - one line, on the way out
            raise
    return upto


@tool(read_only=True)
def count_words(text: str) -> dict[str, int]:
    """Counts the words of a text."""
    return {"words": len(text.split()), "letters": sum(letter.isalpha() for letter in text)}
