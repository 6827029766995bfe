"""Push notifications: who is to be told of a task, and telling them. A webhook's URL is a peer's word.

It is screened when it is given and again, at the address really connected to, whenever it is called; redirects are not
followed. Telling never holds up the task: one sender a task, in order, bounded.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from a2a.compat.v0_3.conversions import to_compat_task
from a2a.server.context import ServerCallContext
from a2a.server.tasks import PushNotificationConfigStore, PushNotificationEvent, PushNotificationSender
from a2a.types import Task, TaskPushNotificationConfig, TaskState, TaskStatusUpdateEvent
from a2a.utils.errors import InvalidParamsError
from a2a.utils.proto_utils import to_stream_response
from google.protobuf import json_format

from anykit.capabilities import JsonObject, Unavailable
from anykit.stores import Record, RecordStore, SecretStore
from anykit.transports import AddressGuard, AddressRefused, HttpClient, public_url

from .tasks import TERMINAL, owner_of

log = logging.getLogger("anykit.a2a")

KIND: Final = "a2a-push"
SCOPE: Final = "a2a-push"
"""Where tokens and credentials of webhooks lie in the secret store."""
PER_TASK: Final = 10
"""Webhooks of one task."""
LIFETIME: Final = 7 * 24 * 3600.0
RESOLVE_TIMEOUT: Final = 5.0
SEND_TIMEOUT: Final = 10.0
WAITS: Final = (0.5, 2.0)
BACKLOG: Final = 256
"""Notifications of one task that may wait; beyond them only changes of its state are kept."""
CACHED: Final = 2000


class TasksOf(Protocol):
    """Gives the whole task that an event is of."""

    async def __call__(self, task_id: str, principal: str) -> Task | None: ...


class Webhooks(PushNotificationConfigStore):
    """Who is to be told, by task and principal.

    Args:
        records: Where the webhooks are kept.
        secrets: Where their tokens and credentials are kept; without it they live in memory only.
        now: The time, in Unix seconds.
    """

    def __init__(self, records: RecordStore, secrets: SecretStore | None, *, now: Callable[[], float]) -> None:
        self._records = records
        self._secrets = secrets
        self._now = now
        self._sealed: dict[str, str] = {}
        self._known: OrderedDict[str, list[tuple[str, str, TaskPushNotificationConfig]]] = OrderedDict()
        """By task: principal, version of the protocol, webhook."""

    async def set_info(
        self, task_id: str, notification_config: TaskPushNotificationConfig, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        """Keep a webhook; one of the same id is replaced."""
        principal = owner_of(context)
        kept = TaskPushNotificationConfig()
        kept.CopyFrom(notification_config)
        kept.task_id = task_id
        kept.id = kept.id or task_id
        if len(kept.id) > 128:
            raise InvalidParamsError(message="the id of a webhook has at most 128 characters")
        before = await self._all(task_id)
        mine = [one for one in before if one[0] == principal]
        if len(mine) >= PER_TASK and all(one[2].id != kept.id for one in mine):
            raise InvalidParamsError(message=f"a task has at most {PER_TASK} webhooks")
        version = "0.3" if "/" in str(context.state.get("method", "")) or context.state.get("v0_3") else "1.0"
        shown = TaskPushNotificationConfig()
        shown.CopyFrom(kept)
        shown.ClearField("token")
        shown.ClearField("authentication")
        key = f"{task_id}/{kept.id}"
        value: JsonObject = {"version": version, "config": json_format.MessageToDict(shown)}
        await self._records.put(KIND, key, value, principal=principal, expires_at=self._now() + LIFETIME)
        await self._seal(f"{principal}/{key}", kept)
        rest = [one for one in before if one[0] != principal or one[2].id != kept.id]
        self._remember(task_id, [*rest, (principal, version, kept)])
        answer = TaskPushNotificationConfig()
        answer.CopyFrom(kept)
        return answer

    async def get_info(self, task_id: str, context: ServerCallContext) -> list[TaskPushNotificationConfig]:
        """The principal's webhooks of a task."""
        principal = owner_of(context)
        return [config for owner, _, config in await self._all(task_id) if owner == principal]

    async def get_info_for_dispatch(self, task_id: str) -> list[TaskPushNotificationConfig]:
        """Every webhook of a task."""
        return [config for _, _, config in await self._all(task_id)]

    async def delete_info(self, task_id: str, context: ServerCallContext, config_id: str | None = None) -> None:
        """Forget one webhook, or all of the principal's."""
        principal = owner_of(context)
        kept: list[tuple[str, str, TaskPushNotificationConfig]] = []
        for one in await self._all(task_id):
            if one[0] != principal or config_id not in (None, one[2].id):
                kept.append(one)
                continue
            key = f"{task_id}/{one[2].id}"
            await self._records.delete(KIND, key, principal=principal)
            self._sealed.pop(f"{principal}/{key}", None)
            if self._secrets is not None:
                await self._secrets.delete(SCOPE, f"{principal}/{key}")
        self._remember(task_id, kept)

    async def of(self, task_id: str) -> list[tuple[str, str, TaskPushNotificationConfig]]:
        """Principal, version of the protocol and webhook, for each of a task."""
        return await self._all(task_id)

    async def _all(self, task_id: str) -> list[tuple[str, str, TaskPushNotificationConfig]]:
        known = self._known.get(task_id)
        if known is None:
            known = list[tuple[str, str, TaskPushNotificationConfig]]()
            for record in await self._stored(task_id):
                value: JsonObject = record.value
                config = json_format.ParseDict(
                    value["config"], TaskPushNotificationConfig(), ignore_unknown_fields=True
                )
                await self._unseal(f"{record.principal}/{record.key}", config)
                known.append((record.principal, str(value["version"]), config))
            self._remember(task_id, known)
        return known

    async def _stored(self, task_id: str) -> list[Record]:
        """A task's records: their keys begin with its id."""
        start = Record(KIND, f"{task_id}/", "", None, 0.0)
        found = await self._records.list(KIND, after=start, limit=4 * PER_TASK)
        return [record for record in found if record.key.startswith(f"{task_id}/")]

    def _remember(self, task_id: str, known: list[tuple[str, str, TaskPushNotificationConfig]]) -> None:
        self._known[task_id] = known
        self._known.move_to_end(task_id)
        while len(self._known) > CACHED:
            self._known.popitem(last=False)

    async def _seal(self, name: str, config: TaskPushNotificationConfig) -> None:
        hidden: JsonObject = {"token": config.token}
        if config.HasField("authentication"):
            hidden["authentication"] = {
                "scheme": config.authentication.scheme,
                "credentials": config.authentication.credentials,
            }
        if hidden == {"token": ""}:
            return
        text = json.dumps(hidden)
        if self._secrets is not None:
            await self._secrets.put(SCOPE, name, text)
        else:
            self._sealed[name] = text

    async def _unseal(self, name: str, config: TaskPushNotificationConfig) -> None:
        text = await self._secrets.get(SCOPE, name) if self._secrets is not None else self._sealed.get(name)
        if text is None:
            return
        hidden: dict[str, Any] = json.loads(text)
        config.token = hidden["token"]
        if "authentication" in hidden:
            config.authentication.scheme = hidden["authentication"]["scheme"]
            config.authentication.credentials = hidden["authentication"]["credentials"]


class Notifier(PushNotificationSender):
    """Tells the webhooks of a task what happens to it.

    Args:
        webhooks: Who is to be told.
        guard: Which addresses may be reached.
        task_of: Gives the whole task, for peers of 0.3.
        waits: Seconds before a notification that did not arrive is sent again, once for each.
    """

    def __init__(
        self, webhooks: Webhooks, *, guard: AddressGuard, task_of: TasksOf, waits: Sequence[float] = WAITS
    ) -> None:
        self._webhooks = webhooks
        self._guard = guard
        self._task_of = task_of
        self._waits = waits
        self._client = HttpClient(guard=guard, timeout=SEND_TIMEOUT, max_body=65_536)
        self._queues: dict[str, asyncio.Queue[PushNotificationEvent]] = {}
        self._senders: set[asyncio.Task[None]] = set()

    async def screen(self, url: str) -> bool:
        """Whether a webhook may be kept. Raises `InvalidParamsError` that says why not."""
        try:
            self._guard.check_url(url)
            parts = urlsplit(url)
            async with asyncio.timeout(RESOLVE_TIMEOUT):
                await self._guard.resolve(parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        except AddressRefused as refused:
            # Not which address a name leads to: that would be a way to read our name server.
            raise InvalidParamsError(message=f"the webhook URL is refused: {_reason(refused)}") from None
        except (OSError, UnicodeError, TimeoutError):
            raise InvalidParamsError(message="the webhook URL is refused: its host cannot be found") from None
        return True

    async def send_notification(self, task_id: str, event: PushNotificationEvent) -> None:
        """Let a task's webhooks know; returns at once."""
        if not await self._webhooks.of(task_id):
            return
        queue = self._queues.get(task_id)
        if queue is None:
            queue = self._queues[task_id] = asyncio.Queue()
            sender = asyncio.get_running_loop().create_task(self._send(task_id, queue), name="a2a webhooks")
            self._senders.add(sender)
            sender.add_done_callback(self._senders.discard)
        changes = isinstance(event, Task) or (
            isinstance(event, TaskStatusUpdateEvent) and event.status.state != TaskState.TASK_STATE_WORKING
        )
        if changes or queue.qsize() < BACKLOG:
            kept = type(event)()
            kept.CopyFrom(event)  # type: ignore[arg-type]
            queue.put_nowait(kept)

    async def close(self, timeout: float = 2.0) -> None:
        """Send what waits, for a moment; then stop."""
        if self._senders:
            await asyncio.wait(set(self._senders), timeout=timeout)
        for sender in list(self._senders):
            sender.cancel()
        if self._senders:
            await asyncio.wait(set(self._senders), timeout=timeout)
        await self._client.close()

    async def _send(self, task_id: str, queue: asyncio.Queue[PushNotificationEvent]) -> None:
        try:
            while not queue.empty():
                event = queue.get_nowait()
                targets = await self._webhooks.of(task_id)
                await asyncio.gather(*(self._tell(task_id, event, *target) for target in targets))
        except Exception:
            log.exception("the webhooks of a task could not be told")
        finally:
            if self._queues.get(task_id) is queue:
                del self._queues[task_id]

    async def _tell(
        self,
        task_id: str,
        event: PushNotificationEvent,
        principal: str,
        version: str,
        webhook: TaskPushNotificationConfig,
    ) -> None:
        body = await self._body(task_id, event, principal, version)
        if body is None:
            return
        headers = {"content-type": "application/json"}
        if webhook.token:
            headers["x-a2a-notification-token"] = webhook.token
        if webhook.HasField("authentication") and webhook.authentication.credentials:
            headers["authorization"] = f"{webhook.authentication.scheme} {webhook.authentication.credentials}"
        reason = ""
        for wait in (0.0, *self._waits):
            await asyncio.sleep(wait)
            try:
                answer = await self._client.request("POST", webhook.url, headers=headers, body=body, max_redirects=0)
            except AddressRefused as refused:
                reason = refused.message
                break
            except Unavailable as error:
                reason = error.message
                continue
            if answer.status < 300:
                return
            reason = f"HTTP {answer.status}"
            if answer.status < 500 and answer.status not in (408, 429):
                break
        log.warning("webhook %s was not told of a task: %s", public_url(webhook.url), reason)

    async def _body(self, task_id: str, event: PushNotificationEvent, principal: str, version: str) -> bytes | None:
        if version == "1.0":
            return json.dumps(json_format.MessageToDict(to_stream_response(event))).encode()
        # 0.3 tells the whole task, and its readers expect it when its state changes.
        if not isinstance(event, Task | TaskStatusUpdateEvent):
            return None
        task = await self._task_of(task_id, principal)
        if task is None:
            return None
        if (
            isinstance(event, TaskStatusUpdateEvent)
            and task.status.state in TERMINAL
            and event.status.state not in TERMINAL
        ):
            task.status.CopyFrom(event.status)
        return to_compat_task(task).model_dump_json(by_alias=True, exclude_none=True).encode()


def _reason(refused: AddressRefused) -> str:
    text = refused.message
    with suppress(ValueError):
        text = text[text.index(": ") + 2 :]
    return text.partition("; private_hosts")[0]
