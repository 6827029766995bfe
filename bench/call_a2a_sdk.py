"""The same agents through the official client: `call_a2a_sdk.py BASE`. Prints one JSON object, as `call_a2a_anykit.py speed`."""

from __future__ import annotations

import asyncio
import json
import sys

from a2a.client import ClientConfig, create_client
from a2a.helpers import get_message_text, new_text_message
from a2a.types import Role, SendMessageRequest
from call_a2a_anykit import speed


async def main(base: str) -> dict[str, float]:
    names = ["message", "task", "stream"]
    clients = {
        name: await create_client(f"{base}/{name}", client_config=ClientConfig(streaming=name == "stream"))
        for name in names
    }

    async def ask(name: str, text: str) -> str:
        said = ""
        request = SendMessageRequest(message=new_text_message(text, role=Role.ROLE_USER))
        async for event in clients[name].send_message(request):
            if event.HasField("message"):
                said = get_message_text(event.message)
            elif event.HasField("task") and event.task.status.HasField("message"):
                said = get_message_text(event.task.status.message)
            elif event.HasField("status_update") and event.status_update.status.HasField("message"):
                said = get_message_text(event.status_update.status.message)
        return said

    try:
        return await speed(ask, names, ["stream"])  # it does not look: it waits for the answer, as long as that takes
    finally:
        for client in clients.values():
            await client.close()


json.dump(asyncio.run(main(sys.argv[1])), sys.stdout)
