"""The official Python SDK 0.3.26 as a client: URL TOKEN TRANSPORT; prints what each scenario gave as JSON."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
import uuid
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    DataPart,
    FilePart,
    Message,
    Part,
    Role,
    TaskIdParams,
    TaskQueryParams,
    TaskStatusUpdateEvent,
    TextPart,
    TransportProtocol,
)

OPEN = ("submitted", "working")


def call(name: str, **arguments: Any) -> Part:
    return Part(root=DataPart(data={"tool": name, "arguments": arguments}))


def message(part: Part, **more: Any) -> Message:
    return Message(message_id=uuid.uuid4().hex, role=Role.user, parts=[part], **more)


def read(parts: Any, into: dict[str, Any]) -> None:
    for part in parts:
        root = part.root
        if isinstance(root, TextPart):
            into["text"] += root.text
        elif isinstance(root, DataPart):
            into["data"] = root.data
        elif isinstance(root, FilePart):
            content = base64.b64decode(root.file.bytes).decode()
            into["files"].append([root.file.name, root.file.mime_type, content])


def shown(task: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"state": task.status.state.value, "text": "", "data": None, "files": [], "said": ""}
    for artifact in task.artifacts or []:
        read(artifact.parts, result)
    said: dict[str, Any] = {"text": "", "data": None, "files": []}
    if task.status.message is not None:
        read(task.status.message.parts, said)
    result["said"] = said["text"]
    result["id"] = task.id
    return result


async def main(url: str, token: str, transport: str) -> None:
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=10)
    card = await A2ACardResolver(http, url).get_agent_card()
    transports = [TransportProtocol(transport)]
    streamed, plain, polled = (
        ClientFactory(
            ClientConfig(
                streaming=streaming,
                polling=polling,
                httpx_client=http,
                supported_transports=transports,
                use_client_preference=True,
            )
        ).create(card)
        for streaming, polling in ((True, False), (False, False), (False, True))
    )

    async def run(part: Part, using: Any = None, **more: Any) -> dict[str, Any]:
        task_id, kinds, finals = "", [], []
        async for task, update in (using or streamed).send_message(message(part, **more)):
            kinds.append("task" if update is None else update.kind)
            if isinstance(update, TaskStatusUpdateEvent):
                finals.append(update.final)
            task_id = task.id
        task = await plain.get_task(TaskQueryParams(id=task_id))
        return {**shown(task), "kinds": kinds, "finals": finals}

    async def until(task_id: str) -> dict[str, Any]:
        while True:
            task = await plain.get_task(TaskQueryParams(id=task_id))
            if task.status.state.value not in OPEN:
                return shown(task)
            await asyncio.sleep(0.02)

    async def start(part: Part) -> str:
        async for task, _ in polled.send_message(message(part)):
            return task.id
        raise RuntimeError("nothing came")

    async def instant() -> Any:
        return await run(call("add", a=2, b=3))

    async def text() -> Any:
        return await run(Part(root=TextPart(text="hello")))

    async def not_streamed() -> Any:
        return await run(Part(root=TextPart(text="hello")), plain)

    async def slow() -> Any:
        return await run(call("slow"))

    async def polling() -> Any:
        return await until(await start(call("slow")))

    async def failed() -> Any:
        return await run(call("fails"))

    async def rejected() -> Any:
        return await run(call("open_vault"))

    async def input_required() -> Any:
        asked = await run(call("name_it"))
        return {"asked": asked, **await run(Part(root=DataPart(data={"name": "Rex"})), task_id=asked["id"])}

    async def auth_required() -> Any:
        asked = await run(call("approve_it"))
        return {"asked": asked, **await run(Part(root=TextPart(text="yes")), task_id=asked["id"])}

    async def chunks() -> Any:
        return await run(call("chunks"))

    async def files() -> Any:
        return await run(call("files"))

    async def cancel() -> Any:
        task_id = await start(call("sleep"))
        cancelled = await plain.cancel_task(TaskIdParams(id=task_id))
        return {**shown(cancelled), "after": await until(task_id)}

    async def subscribe() -> Any:
        task_id = await start(call("slow"))
        async for _ in streamed.resubscribe(TaskIdParams(id=task_id)):
            pass
        return await until(task_id)

    async def unknown() -> Any:
        try:
            await plain.get_task(TaskQueryParams(id="nope"))
        except Exception as error:
            return {"error": f"{type(error).__name__} {error}"}
        return {}

    results: dict[str, Any] = {"card": {"name": card.name, "skills": [skill.id for skill in card.skills]}}
    for scenario in (
        instant,
        text,
        not_streamed,
        slow,
        polling,
        failed,
        rejected,
        input_required,
        auth_required,
        chunks,
        files,
        cancel,
        subscribe,
        unknown,
    ):
        try:
            async with asyncio.timeout(8):
                results[scenario.__name__] = await scenario()
        except Exception as error:
            results[scenario.__name__] = {"broke": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))  # noqa: T201 - what the tests read
    await http.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
