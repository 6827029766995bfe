"""A2A agents on loopback that answer while a command runs in the test's own thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from sources.a2a.agents import Asked, Error, Json, ScriptedAgent, card_1_0, scripted, task

T = TypeVar("T")
WAIT = 5.0


@contextlib.contextmanager
def in_a_thread(serving: AbstractAsyncContextManager[T]) -> Generator[T]:
    """Enter it on a loop of another thread, and leave it there."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, loop).result(WAIT)

    try:
        served = run(serving.__aenter__())
        try:
            yield served
        finally:
            run(serving.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(WAIT)
        loop.close()


class Asking:
    """Does a task at once, asks about others, and goes on with its answer."""

    def __init__(self) -> None:
        self.parts: Json = [{"text": "Which city?"}]
        self.state = "TASK_STATE_INPUT_REQUIRED"
        self.asks_again = False
        self.answers: list[Json] = []
        self.canceled: list[str] = []

    def question(self) -> Json:
        """A task that waits."""
        message = {"messageId": f"q{len(self.answers)}", "role": "ROLE_AGENT", "parts": self.parts}
        return task(id="t1", contextId="c1") | {"status": {"state": self.state, "message": message}}

    def done(self, text: str) -> Json:
        """A task that is over."""
        artifact = {"artifactId": "a", "parts": [{"text": text}]}
        return {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [artifact]}

    def __call__(self, asked: Asked) -> Json:
        match asked.method:
            case "SendMessage" if asked.message.get("taskId"):
                self.answers.append(asked.message["parts"])
                if self.asks_again:
                    self.asks_again = False
                    return {"task": self.question()}
                return {"task": self.done(f"done with {len(self.answers)}")}
            case "SendMessage":
                return {"task": self.done("at once") if asked.text == "now" else self.question()}
            case "GetTask":
                return self.done("done") if self.answers and not self.asks_again else self.question()
            case "CancelTask":
                self.canceled.append(asked.params["id"])
                return {"id": "t1", "contextId": "c1", "status": {"state": "TASK_STATE_CANCELED"}}
            case _:
                return Error(-32601)


@contextlib.contextmanager
def asking(**more: Json) -> Generator[tuple[ScriptedAgent, Asking]]:
    """An agent that asks, with a card of 1.0 in which `more` stands."""
    handler = Asking()

    def card() -> Json:
        return card_1_0(f"{agent.url}/rpc", **more)

    with in_a_thread(scripted(handler, card)) as agent:
        yield agent, handler
