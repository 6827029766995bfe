"""What a tool's author raises."""

from __future__ import annotations

import asyncio

from anykit.capabilities import Json


class ToolError(Exception):
    """The tool failed, and says why. The text reaches the model as it is; `structured` is JSON beside it."""

    def __init__(self, message: str, *, structured: Json = None) -> None:
        super().__init__(message)
        self.message = message
        self.structured = structured


class Busy(Exception):
    """Too many calls run or wait already; nothing was started."""


class UnsendableResult(ValueError):
    """A returned value that JSON cannot carry; the text names its place."""


def being_cancelled() -> bool:
    """Whether somebody cancels the task that runs: else a `CancelledError` is the doing of the code that it awaited."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
