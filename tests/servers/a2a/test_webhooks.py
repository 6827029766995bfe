"""Push notifications: what is told, to whom, how often, and which URLs are refused."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp.web
import pytest
from a2a.types import TaskPushNotificationConfig, TaskState, TaskStatus, TaskStatusUpdateEvent

from anykit.servers.a2a.webhooks import BACKLOG, PER_TASK, Notifier, Webhooks
from anykit.stores import MemoryRecords, SecretStore, SqliteRecords
from anykit.transports import PUBLIC_ONLY, AddressGuard
from servers.a2a.callers import by
from servers.a2a.hosts import V1, WAIT, Sleeper, add, message_of, name_it, old_message, served, state_of

pytestmark = pytest.mark.anyio

OPEN = AddressGuard(allow_private=True)
LATER = {"returnImmediately": True}


class Listener:
    """A webhook of a client."""

    def __init__(self) -> None:
        self.url = ""
        self.got: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.statuses: list[int] = []
        self.location = ""
        self.free = asyncio.Event()
        self.free.set()
        self._came = asyncio.Event()

    async def hook(self, request: aiohttp.web.Request) -> aiohttp.web.Response:
        self.got.append(({name.lower(): value for name, value in request.headers.items()}, await request.json()))
        self._came.set()
        await self.free.wait()
        status = self.statuses.pop(0) if self.statuses else 200
        headers = {"location": self.location} if self.location else {}
        return aiohttp.web.Response(status=status, headers=headers)

    async def until(self, word: str) -> None:
        """Wait until a notification holds a word."""
        async with asyncio.timeout(WAIT):
            while not any(word in json.dumps(body) for _, body in self.got):
                self._came.clear()
                await self._came.wait()


@contextlib.asynccontextmanager
async def listening() -> AsyncGenerator[Listener]:
    listener = Listener()
    app = aiohttp.web.Application()
    app.router.add_post("/hook", listener.hook)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    listener.url = f"http://{host}:{port}/hook"
    try:
        yield listener
    finally:
        await runner.cleanup()


async def test_a_webhook_is_told_the_states_and_the_result_with_its_token() -> None:
    async with listening() as listener, served(add, guard=OPEN) as host:
        config = {
            "url": listener.url,
            "token": "tok-1",
            "authentication": {"scheme": "Bearer", "credentials": "cred-1"},
        }
        params = {
            "message": message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}}),
            "configuration": {"taskPushNotificationConfig": config},
        }
        task = await host.task("SendMessage", params)
        await listener.until("TASK_STATE_COMPLETED")
        kinds = [next(iter(body)) for _, body in listener.got]
        assert kinds == ["task", "statusUpdate", "artifactUpdate", "statusUpdate"]
        for headers, _ in listener.got:
            assert headers["x-a2a-notification-token"] == "tok-1"
            assert headers["authorization"] == "Bearer cred-1"
            assert headers["content-type"] == "application/json"
        assert listener.got[-1][1]["statusUpdate"]["taskId"] == task["id"]


async def test_a_webhook_of_0_3_is_told_the_whole_task_when_its_state_changes() -> None:
    async with listening() as listener, served(add, guard=OPEN) as host:
        params = {
            "message": old_message({"tool": "add", "arguments": {"a": 1, "b": 2}}),
            "configuration": {"pushNotificationConfig": {"url": listener.url, "id": "h"}},
        }
        await host.task("message/send", params, headers={})
        await listener.until('"completed"')
        last = listener.got[-1][1]
        assert (last["kind"], last["status"]["state"]) == ("task", "completed")
        assert last["artifacts"][0]["parts"][0]["text"] == "3"
        assert all(body["kind"] == "task" for _, body in listener.got)


async def test_webhooks_are_made_listed_read_and_deleted() -> None:
    sleeper = Sleeper()
    async with listening() as listener, served(sleeper.tool, guard=OPEN) as host:
        task = await host.send({"data": {"tool": "sleep"}}, configuration=LATER)
        made = await host.rpc(
            "CreateTaskPushNotificationConfig", {"taskId": task["id"], "id": "one", "url": listener.url, "token": "t"}
        )
        assert (made["result"]["id"], made["result"]["url"]) == ("one", listener.url)
        listed = await host.rpc("ListTaskPushNotificationConfigs", {"taskId": task["id"]})
        assert [one["id"] for one in listed["result"]["configs"]] == ["one"]
        got = await host.rpc("GetTaskPushNotificationConfig", {"taskId": task["id"], "id": "one"})
        assert got["result"]["url"] == listener.url
        path = f"/a2a/tasks/{task['id']}/pushNotificationConfigs"
        status, _ = await host.post(path, {"url": listener.url, "id": "two"}, V1)
        assert status == 200
        await host.rpc("DeleteTaskPushNotificationConfig", {"taskId": task["id"], "id": "one"})
        async with host.http.get(host.url + path, headers=V1) as reply:
            assert [one["id"] for one in (await reply.json())["configs"]] == ["two"]
        sleeper.wake.set()
        await listener.until("TASK_STATE_COMPLETED")
        unknown = {"taskId": "nope", "url": listener.url}
        assert (await host.rpc("CreateTaskPushNotificationConfig", unknown))["error"]["code"] == -32001


async def test_a_task_has_so_many_webhooks() -> None:
    sleeper = Sleeper()
    async with served(sleeper.tool, guard=OPEN) as host:
        task = await host.send({"data": {"tool": "sleep"}}, configuration=LATER)
        config = {"taskId": task["id"], "url": "http://127.0.0.1:9/"}
        for number in range(PER_TASK):
            await host.rpc("CreateTaskPushNotificationConfig", {**config, "id": f"h{number}"})
        over = await host.rpc("CreateTaskPushNotificationConfig", {**config, "id": "more"})
        assert over["error"]["code"] == -32602
        again = await host.rpc("CreateTaskPushNotificationConfig", {**config, "id": "h0"})
        assert again["result"]["id"] == "h0"


def _status(state: Any) -> TaskStatusUpdateEvent:
    return TaskStatusUpdateEvent(task_id="t", context_id="c", status=TaskStatus(state=state))


@contextlib.asynccontextmanager
async def notifying(url: str, guard: AddressGuard) -> AsyncGenerator[Notifier]:
    """A notifier for the task `t` with one webhook, whatever its URL is."""

    async def no_task(task_id: str, principal: str) -> None:
        return None

    webhooks = Webhooks(MemoryRecords(), None, now=time.time)
    await webhooks.set_info("t", TaskPushNotificationConfig(url=url), by("ann"))
    notifier = Notifier(webhooks, guard=guard, task_of=no_task, waits=(0.01, 0.01))
    try:
        yield notifier
    finally:
        await notifier.close()


async def test_what_did_not_arrive_is_sent_again_and_in_order() -> None:
    async with listening() as listener, notifying(listener.url, OPEN) as notifier:
        listener.statuses = [503, 429]
        await notifier.send_notification("t", _status(TaskState.TASK_STATE_WORKING))
        await notifier.send_notification("t", _status(TaskState.TASK_STATE_COMPLETED))
        await listener.until("TASK_STATE_COMPLETED")
        states = [body["statusUpdate"]["status"]["state"] for _, body in listener.got]
        assert states == ["TASK_STATE_WORKING"] * 3 + ["TASK_STATE_COMPLETED"]


async def test_what_is_refused_for_good_is_not_sent_again() -> None:
    async with listening() as listener, notifying(listener.url, OPEN) as notifier:
        listener.statuses = [410]
        await notifier.send_notification("t", _status(TaskState.TASK_STATE_WORKING))
        await notifier.send_notification("t", _status(TaskState.TASK_STATE_COMPLETED))
        await listener.until("TASK_STATE_COMPLETED")
        assert len(listener.got) == 2


async def test_a_flood_of_reports_is_cut_and_the_end_is_told() -> None:
    async with listening() as listener, notifying(listener.url, OPEN) as notifier:
        for _ in range(BACKLOG * 3):
            await notifier.send_notification("t", _status(TaskState.TASK_STATE_WORKING))
        await notifier.send_notification("t", _status(TaskState.TASK_STATE_COMPLETED))
        await listener.until("TASK_STATE_COMPLETED")
        assert len(listener.got) <= BACKLOG + 2


async def test_a_webhook_that_hangs_holds_no_call_up() -> None:
    async with listening() as listener, served(add, guard=OPEN) as host:
        listener.free.clear()
        params = {
            "message": message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}}),
            "configuration": {"taskPushNotificationConfig": {"url": listener.url}},
        }
        async with asyncio.timeout(2):
            assert state_of(await host.task("SendMessage", params)) == "completed"
        listener.free.set()


async def test_a_question_is_told() -> None:
    async with listening() as listener, served(name_it, guard=OPEN) as host:
        params = {
            "message": message_of({"data": {"tool": "name_it", "arguments": {"thing": "dog"}}}),
            "configuration": {"taskPushNotificationConfig": {"url": listener.url}},
        }
        task = await host.task("SendMessage", params)
        await listener.until("TASK_STATE_INPUT_REQUIRED")
        await host.send("Rex", taskId=task["id"])
        await listener.until("TASK_STATE_COMPLETED")


async def test_webhooks_outlive_their_host_and_their_secrets_are_encrypted(tmp_path: Path) -> None:
    file = tmp_path / "records.sqlite3"
    sleeper = Sleeper()
    async with listening() as listener:
        records = SqliteRecords(file)
        secrets = SecretStore(records, data_dir=tmp_path)
        async with served(name_it, sleeper.tool, guard=OPEN, records=records, secrets=secrets) as host:
            task = await host.call("name_it", {"thing": "dog"})
            config = {
                "taskId": task["id"],
                "url": listener.url,
                "token": "plain-token-1",
                "authentication": {"scheme": "Bearer", "credentials": "plain-credential-1"},
            }
            await host.rpc("CreateTaskPushNotificationConfig", config)
        await records.close()
        assert b"plain-token-1" not in file.read_bytes()
        assert b"plain-credential-1" not in file.read_bytes()
        records = SqliteRecords(file)
        secrets = SecretStore(records, data_dir=tmp_path)
        async with served(name_it, guard=OPEN, records=records, secrets=secrets) as host:
            await host.rpc("SendMessage", {"message": message_of("Rex", taskId=task["id"])})
            await listener.until("TASK_STATE_FAILED")
            assert listener.got[-1][0]["x-a2a-notification-token"] == "plain-token-1"
            assert listener.got[-1][0]["authorization"] == "Bearer plain-credential-1"
        await records.close()


async def test_a_webhook_of_another_principal_is_neither_seen_nor_deleted() -> None:
    records = MemoryRecords()
    sleeper = Sleeper()
    async with (
        served(sleeper.tool, records=records, principal="ann", guard=OPEN) as ann,
        served(add, records=records, principal="bob", guard=OPEN) as bob,
    ):
        task = await ann.send({"data": {"tool": "sleep"}}, configuration=LATER)
        config = {"taskId": task["id"], "id": "h", "url": "http://127.0.0.1:9/"}
        await ann.rpc("CreateTaskPushNotificationConfig", config)
        for method in ("GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"):
            assert (await bob.rpc(method, {"taskId": task["id"], "id": "h"}))["error"]["code"] == -32001
        assert (await bob.rpc("CreateTaskPushNotificationConfig", config))["error"]["code"] == -32001


# B076


INSIDE = [
    "http://169.254.169.254/x",
    "http://127.0.0.1:{port}/hook",
    "http://[::ffff:127.0.0.1]:{port}/hook",
    "http://2130706433:{port}/hook",
    "http://localhost:{port}/hook",
    "file:///etc/passwd",
    "gopher://h/",
    "ftp://h/",
    "http://",
    "not a url",
    "http://user@127.0.0.1:{port}/hook",
    "http://no-such-host.invalid/",
]


async def test_b076_a_webhook_that_leads_inside_is_refused_and_told_why() -> None:
    """a2aproject/a2a-python#786: SSRF protection for push notification webhooks."""
    async with listening() as listener, served(add) as host:
        port = listener.url.rpartition(":")[2].partition("/")[0]
        task = await host.call("add", {"a": 1, "b": 2})
        for url in (pattern.replace("{port}", port) for pattern in INSIDE):
            call = message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}})
            params = {"message": call, "configuration": {"taskPushNotificationConfig": {"url": url}}}
            answer = await host.rpc("SendMessage", params)
            assert answer["error"]["code"] == -32602, url
            assert answer["error"]["message"].startswith("the webhook URL is refused: ")
            answer = await host.rpc("CreateTaskPushNotificationConfig", {"taskId": task["id"], "url": url})
            assert answer["error"]["code"] == -32602
        assert listener.got == []


async def test_b076_an_allowed_host_is_reached_and_no_redirect_of_it_is_followed() -> None:
    """a2aproject/a2a-python#786: configured private peers keep working; a redirect does not lead around the screen."""
    async with listening() as inside, listening() as listener:
        allowed = listener.url.removeprefix("http://").partition("/")[0]
        async with served(add, guard=AddressGuard(private_hosts=(allowed,))) as host:
            listener.statuses = [307] * 20
            listener.location = inside.url
            call = message_of({"data": {"tool": "add", "arguments": {"a": 1, "b": 2}}})
            params = {"message": call, "configuration": {"taskPushNotificationConfig": {"url": listener.url}}}
            await host.task("SendMessage", params)
            await listener.until("TASK_STATE_COMPLETED")
            assert inside.got == []


async def test_b076_an_address_is_checked_again_when_it_is_connected_to() -> None:
    """a2aproject/a2a-python#786: a name that led outside when it was given may lead inside later."""
    async with listening() as listener:
        url = listener.url.replace("127.0.0.1", "localhost")
        async with notifying(url, PUBLIC_ONLY) as notifier:
            await notifier.send_notification("t", _status(TaskState.TASK_STATE_COMPLETED))
        assert listener.got == []
        async with notifying(url, OPEN) as notifier:
            await notifier.send_notification("t", _status(TaskState.TASK_STATE_COMPLETED))
            await listener.until("TASK_STATE_COMPLETED")
