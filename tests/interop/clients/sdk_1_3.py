"""The official Python SDK 1.3 as a client: URL TOKEN BINDING VERSION; prints what each scenario gave as JSON."""

from __future__ import annotations

import asyncio
import json
import sys
import uuid
from typing import Any

import httpx
from a2a.client import ClientConfig, create_client
from a2a.client.card_resolver import A2ACardResolver
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
)
from google.protobuf import json_format, struct_pb2


def call(name: str, **arguments: Any) -> Part:
    return Part(data=json_format.ParseDict({"tool": name, "arguments": arguments}, struct_pb2.Value()))


def message(part: Part, **more: Any) -> Message:
    return Message(message_id=uuid.uuid4().hex, role=Role.ROLE_USER, parts=[part], **more)


def state_name(state: Any) -> str:
    return TaskState.Name(state).removeprefix("TASK_STATE_").lower().replace("_", "-")


def read(parts: Any, into: dict[str, Any]) -> None:
    for part in parts:
        match part.WhichOneof("content"):
            case "text":
                into["text"] += part.text
            case "data":
                into["data"] = json_format.MessageToDict(part.data)
            case "raw":
                into["files"].append([part.filename, part.media_type, part.raw.decode()])
            case _:
                pass


def shown(task: Any) -> dict[str, Any]:
    result: dict[str, Any] = {"state": state_name(task.status.state), "text": "", "data": None, "files": [], "said": ""}
    for artifact in task.artifacts:
        read(artifact.parts, result)
    said: dict[str, Any] = {"text": "", "data": None, "files": []}
    read(task.status.message.parts, said)
    result["said"] = said["text"]
    result["id"] = task.id
    return result


async def main(url: str, token: str, binding: str, version: str) -> None:
    http = httpx.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=10)
    card = await A2ACardResolver(http, url).get_agent_card()
    kept = [
        one
        for one in card.supported_interfaces
        if one.protocol_binding == binding and one.protocol_version.startswith(version)
    ]
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(kept)

    async def client(streaming: bool = True, polling: bool = False) -> Any:
        config = ClientConfig(
            streaming=streaming, polling=polling, httpx_client=http, supported_protocol_bindings=[binding]
        )
        return await create_client(card, config)

    streamed, plain, polled = await client(), await client(False), await client(False, True)

    async def run(part: Part, using: Any = None, **more: Any) -> dict[str, Any]:
        """Send a message, read all that comes, then the task as it is."""
        task_id, kinds, direct = "", [], None
        async for event in (using or streamed).send_message(SendMessageRequest(message=message(part, **more))):
            kind = event.WhichOneof("payload")
            kinds.append(kind)
            one = getattr(event, kind)
            task_id = one.id if kind == "task" else one.task_id or task_id
        task = await plain.get_task(GetTaskRequest(id=task_id))
        return {**shown(task), "kinds": kinds, "direct": direct}

    async def until(task_id: str) -> dict[str, Any]:
        while True:
            task = await plain.get_task(GetTaskRequest(id=task_id))
            if task.status.state not in (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING):
                return shown(task)
            await asyncio.sleep(0.02)

    async def start(part: Part) -> str:
        configuration = SendMessageConfiguration(return_immediately=True)
        async for event in polled.send_message(SendMessageRequest(message=message(part), configuration=configuration)):
            return event.task.id
        raise RuntimeError("nothing came")

    async def instant() -> Any:
        return await run(call("add", a=2, b=3))

    async def text() -> Any:
        return await run(Part(text="hello"))

    async def not_streamed() -> Any:
        return await run(Part(text="hello"), plain)

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
        answer = Part(data=json_format.ParseDict({"name": "Rex"}, struct_pb2.Value()))
        return {"asked": asked, **await run(answer, task_id=asked["id"])}

    async def auth_required() -> Any:
        asked = await run(call("approve_it"))
        return {"asked": asked, **await run(Part(text="yes"), task_id=asked["id"])}

    async def chunks() -> Any:
        return await run(call("chunks"))

    async def files() -> Any:
        return await run(call("files"))

    async def cancel() -> Any:
        task_id = await start(call("sleep"))
        cancelled = await plain.cancel_task(CancelTaskRequest(id=task_id))
        return {**shown(cancelled), "after": await until(task_id)}

    async def subscribe() -> Any:
        task_id = await start(call("slow"))
        async for event in streamed.subscribe(SubscribeToTaskRequest(id=task_id)):
            if event.WhichOneof("payload") == "status_update" and event.status_update.status.state == 3:
                break
        return await until(task_id)

    async def unknown() -> Any:
        try:
            await plain.get_task(GetTaskRequest(id="nope"))
        except Exception as error:
            return {"error": type(error).__name__}
        return {}

    async def listed() -> Any:
        found = await plain.list_tasks(ListTasksRequest(page_size=3))
        return {"count": len(found.tasks)}

    scenarios = [
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
    ]
    if version == "1.0":
        scenarios.append(listed)
    results: dict[str, Any] = {"card": {"name": card.name, "skills": [skill.id for skill in card.skills]}}
    for scenario in scenarios:
        try:
            async with asyncio.timeout(8):
                results[scenario.__name__] = await scenario()
        except Exception as error:
            results[scenario.__name__] = {"broke": f"{type(error).__name__}: {error}"}
    print(json.dumps(results))  # noqa: T201 - what the tests read
    await http.aclose()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:5]))
