"""The tools that are called: served by `anykit serve bench/tools.py`, and called in process."""

import asyncio

from anykit import tool


@tool
async def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@tool
async def nap() -> str:
    """Takes five milliseconds."""
    await asyncio.sleep(0.005)
    return "awake"
