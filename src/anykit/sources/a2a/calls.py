"""One call of a skill: ask, follow the task until it is over or waits, and say what came of it.

send ──> stream ──broken──> subscribe ──> poll ──> settled ──> result | Suspension | ExecutionFailed
     └─> answer ───────────────────────> poll ──┘
deadline or a cancelled caller at any point: the agent is asked to end the task
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import NoReturn, cast

from anykit.capabilities import (
    Answer,
    Artifact,
    CapabilityContext,
    ContentPart,
    Event,
    ExecutionFailed,
    InvocableRequest,
    InvocableResult,
    Json,
    JsonObject,
    MetadataMap,
    Resume,
    Status,
    StructuredPart,
    Suspension,
    TextPart,
    Unavailable,
)
from anykit.capabilities import outcomes as codes
from anykit.schema import SchemaError, compile_schema
from anykit.sources.hostile import Malformed, clean_schema, clean_text
from anykit.transports import AddressRefused, HttpClient, Oversized, SseDecoder
from anykit.wire.a2a import (
    FINAL,
    UNKNOWN,
    WAITING,
    Conversation,
    Misconduct,
    Outgoing,
    RefusalKind,
    Refused,
    Unreadable,
    Way,
    WireError,
    WireRequest,
    a_text,
    an_object,
    decode,
    other_way,
    partial_of,
    question_of,
    read_item,
    read_rest_error,
    read_rpc,
    reason_of,
    recalled,
    result_of,
)

from .agent import Agent
from .client import CANCEL_TIMEOUT, MAX_BODY, AgentClient, new_id, result_in

log = logging.getLogger("anykit.sources.a2a")

FIRST_POLL = 0.02
"""Seconds from the agent's answer to the first look at its task."""
POLL_GROWTH = 0.1
"""The pause between two looks is this part of the time waited so far, up to `poll_every`."""
POLL_TIMEOUT = 10.0
"""Seconds that one look may take."""
INTERNAL_FAULTS = 5
"""Internal errors in a row after which an agent is believed to be broken."""
SUBSCRIPTIONS = 3
"""How often a broken stream is taken up again before looking takes its place."""
LAST_LOOKS = 3
"""Tries to see the whole of a task that ended while its stream was broken."""
STREAM_SILENCE = 30.0
"""Seconds of silence after which a stream counts as broken."""
BAD_EVENTS = 20
"""Events of a stream that cannot be read, after which it counts as broken."""
MAX_DATA = 64 * 1024
"""Characters of JSON that are kept of what comes with a question."""
OLD_QUESTION = 5.0
"""Seconds after an answer for which a task that still shows the question is taken not to have looked at it yet."""
MARGIN = 0.05
"""Seconds before the caller's deadline at which the call ends by itself, so that it can say how far it got."""
ASIDE = 0.1
"""Seconds that a call whose time is up waits for the agent to hear of it; after that it is told in the background."""

_WAIT_WORDS = {"input": "needs an answer", "authorization": "needs an authorization"}
_CODES = {"failed": codes.EXECUTION_FAILED, "rejected": "rejected", "canceled": codes.CANCELLED}
_NOT_TWICE: frozenset[RefusalKind] = frozenset(
    {
        "method_not_found",
        "unsupported_operation",
        "no_route",
        "version_not_supported",
        "invalid_params",
        "push_not_supported",
    }
)
"""Refusals of a stream after which nothing can have begun."""


class RemoteCall:
    """One call of a skill of `agent`, which calls itself `name`."""

    def __init__(
        self, agent: Agent, name: str, skill: str, context: CapabilityContext, request: InvocableRequest
    ) -> None:
        self._name = name
        self._skill = skill
        self._poll_every = agent.poll_every
        self._context = context
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._deadline = self._began + agent.timeout
        if context.deadline is not None:
            left = max(context.deadline - self._began, 0.0)
            self._deadline = min(self._deadline, context.deadline - min(MARGIN, left / 10))
        self._message_id = new_id()
        self._talk = Conversation(message_id=self._message_id)
        self._polls = 0
        self._gaps = False
        self._streamed = False
        self._trouble = ""
        self._client: AgentClient | None = None
        self._http: HttpClient | None = None
        self._sending: asyncio.Task[Json] | None = None
        self._way: Way | None = None
        self._session = self._session_key()

    async def carry_out(self, give: Callable[[], Awaitable[AgentClient]]) -> InvocableResult | Suspension:
        """Do it, with the client that `give` gives once the agent is there. Raises `ExecutionFailed`."""
        limit = asyncio.timeout_at(self._deadline)
        try:
            async with limit:
                try:
                    client = self._client = await give()
                except Unavailable as error:
                    self._fail_for_loss(error)
                async with client.open() as self._http:
                    return await self._carry_out(client)
        except TimeoutError:
            if not limit.expired():
                raise
            await self._abandon(self._aside())
            self._fail_for_time()
        except asyncio.CancelledError:
            await self._abandon(CANCEL_TIMEOUT)
            raise

    async def _carry_out(self, client: AgentClient) -> InvocableResult | Suspension:
        try:
            resume = self._request.resume
            if resume is None:
                await self._deliver(self._outgoing())
            else:
                await self._go_on(resume)
            await self._follow()
        except Refused as refusal:
            if refusal.kind != "task_not_found":
                await self._abandon(self._aside())
            self._fail_for_refusal(refusal)
        except Unreadable as error:
            await self._abandon(self._aside())
            self._fail(client.mask(f"{client.name}: {error.message}"), code=codes.UNKNOWN)
        except Unavailable as error:
            self._fail_for_loss(error)
        if self._talk.context_id:
            client.remember_context(self._session, self._talk.context_id)
        return self._conclude()

    # what is said

    def _session_key(self) -> tuple[str | None, str] | None:
        session = self._context.session_id or self._request.session_id
        return None if session is None else (self._context.principal, session)

    def _outgoing(self) -> Outgoing:
        task = self._request.input.get("task")
        return Outgoing(
            self._message_id,
            (TextPart(text=task if isinstance(task, str) else ""),),
            context_id=self._of_client.context_of(self._session),
            metadata={"skillId": self._skill},
        )

    async def _go_on(self, resume: Resume) -> None:
        """Give the answer to the task that waits for it."""
        state = an_object(resume.state) or {}
        task, context, mark, was = (a_text(state, key) for key in ("task", "context", "asked", "state"))
        answer = resume.answer
        if not task or not isinstance(answer, Answer):
            raise ExecutionFailed("this question cannot be gone on with: it names no task", code="unknown_suspension")
        self._talk = Conversation(message_id=self._message_id, task_id=task, asked_before=mark)
        self._talk.context_id, self._talk.state = context, was
        client = self._of_client
        client.way = recalled(state.get("way"), client.card) or client.way
        if not answer.ok:
            await self._refuse(task)
        if was == "auth-required" and await self._moved_on(was, mark):
            return
        self._talk.say()
        said = Outgoing(
            self._message_id,
            _spoken(answer.data, structured=bool(state.get("structured"))),
            context_id=self._talk.context_id,
            task_id=task,
            metadata={"skillId": self._skill},
        )
        await self._deliver(said)

    async def _moved_on(self, was: str, mark: str) -> bool:
        """Whether the task goes on already, since a person has settled it elsewhere."""
        try:
            await self._look()
        except (Refused, Unreadable, Unavailable):
            return False
        state = self._talk.state
        if state in WAITING:
            return state != was or (bool(mark) and self._talk.question_mark != mark)
        return state != UNKNOWN

    async def _refuse(self, task: str) -> NoReturn:
        way, became = self._chosen_way(), "was canceled"
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT):
                request = way.cancel(task, new_id())
                item = read_item(await self._of_client.exchange(self._of_http, way, request, timeout=CANCEL_TIMEOUT))
                self._talk.take(item)
        except Refused as refusal:
            became = f"is left as it is ({self._of_client.mask(refusal.describe())})"
        except (Unreadable, Unavailable, TimeoutError):
            became = "may still wait"
        else:
            if self._talk.state not in FINAL:
                self._talk.state = "canceled"
        self._fail(f"the question was refused; A2A task {self._shown_task} {became}", code=codes.CANCELLED)

    # sending

    async def _deliver(self, message: Outgoing) -> None:
        """Ask; once more in another dialect where the card was wrong about the agent's."""
        client = self._of_client
        way = self._chosen_way()
        try:
            await self._send_surely(way, message)
            return
        except Refused as refusal:
            if self._talk.begun:
                raise
            if refusal.kind == "task_not_found" and message.context_id and not message.task_id:
                client.remember_context(self._session, "")
                await self._send(way, replace(message, context_id=""))
                return
            other = other_way(way, refusal, client.card)
            if other is None:
                raise
            first = refusal
        try:
            await self._send(other, message)
        except Refused as refusal:
            if self._talk.begun or other_way(other, refusal, client.card) is None:
                raise
            told = f"{way.dialect} ({first.describe()}) nor {other.dialect} ({refusal.describe()})"
            raise Refused(refusal.kind, f"{client.name} understands neither {told}") from None
        log.info("%s: its card is wrong, it speaks %s, not %s", client.name, other.dialect, way.dialect)

    async def _send_surely(self, way: Way, message: Outgoing) -> None:
        """Ask; once more where the first try certainly did not leave: a kept connection may just have been closed."""
        try:
            await self._send(way, message)
        except Unavailable as error:
            if error.sent or self._talk.begun or isinstance(error, AddressRefused):
                raise
            await self._send(way, message)

    def _chosen_way(self) -> Way:
        way = self._of_client.way
        assert way is not None
        self._way = way
        return way

    def _works(self, way: Way) -> None:
        """The agent took what was written this way."""
        self._way = self._of_client.way = way

    async def _send(self, way: Way, message: Outgoing) -> None:
        client = self._of_client
        if client.streams and client.card.streaming and way.streams:
            try:
                await self._listen(way, way.send(message, new_id(), stream=True))
                return
            except Refused as refusal:
                if self._talk.begun or refusal.kind not in _NOT_TWICE:
                    raise
                await self._send_plainly(way, message)
                client.streams = False
                return
        await self._send_plainly(way, message)

    async def _send_plainly(self, way: Way, message: Outgoing) -> None:
        client, http = self._of_client, self._of_http
        # In a task of its own, so that a caller who goes away while it is under way still learns which task to cancel.
        request = way.send(message, new_id())
        self._way = way
        self._sending = client.background(client.exchange(http, way, request, timeout=self._left() + 1.0))
        result = await asyncio.shield(self._sending)
        self._take(result)
        self._works(way.settled_on(result))

    # streams

    async def _listen(self, way: Way, request: WireRequest) -> None:
        """Read a stream until the task is settled or the stream ends. One that breaks once begun is not an error."""
        client = self._of_client
        try:
            async with client.stream(self._of_http, request, timeout=self._left() + 1.0) as stream:
                if stream.content_type != "text/event-stream":
                    self._take(result_in(way, await stream.read()))
                    self._works(way)
                    return
                stream.idle = STREAM_SILENCE
                self._streamed = True
                decoder, bad = SseDecoder(MAX_BODY), 0
                async with aclosing(stream.chunks()) as chunks:
                    async for chunk in chunks:
                        for event in decoder.feed(chunk):
                            if isinstance(event, Oversized):
                                raise Misconduct(f"an event of more than {MAX_BODY} bytes")
                            try:
                                payload = decode(event.data)
                            except Unreadable:
                                bad += 1
                                if bad > BAD_EVENTS:
                                    raise
                                continue
                            if event.event == "error" and not way.rpc:
                                raise read_rest_error(payload, 200)
                            self._take(read_rpc(payload) if way.rpc else _no_error(payload))
                            self._works(way)
                            if self._talk.settled:
                                return
        except Misconduct:
            raise
        except (Unavailable, Unreadable) as error:
            if not self._talk.begun:
                raise
            self._trouble = client.mask(error.message)
        except Refused as refusal:
            if not self._talk.begun:
                raise
            self._trouble = client.mask(refusal.describe())
        if not self._talk.begun:
            raise Unavailable(f"{client.name} ended its answer before it began", sent=True)
        self._gaps = True

    async def _take_up_again(self) -> None:
        """Ask to be told of the task again, after its stream ended too early."""
        way = self._chosen_way()
        verb = "GET"
        for attempt in range(SUBSCRIPTIONS):
            if attempt:
                await asyncio.sleep(0.1 * 2**attempt)
            self._talk.begun = False
            try:
                await self._listen(way, way.subscribe(self._talk.task_id, new_id(), http=verb))
            except Refused as refusal:
                if refusal.kind == "no_route" and verb == "GET" and not way.rpc:
                    verb = "POST"
                    continue
                return
            except Misconduct:
                raise
            except (Unavailable, Unreadable) as error:
                self._trouble = self._of_client.mask(error.message)
            finally:
                self._talk.begun = True
            if self._talk.settled:
                return

    # following

    async def _follow(self) -> None:
        talk = self._talk
        if not talk.settled:
            if not talk.task_id:
                raise Unreadable("it neither finished nor named the task that goes on")
            if self._gaps:
                await self._take_up_again()
            if not talk.settled:
                await self._poll()
                return
        if not talk.task_id or talk.reply is not None:
            return
        # What a broken stream left out, or one of mere states never had, is in the task.
        if (self._gaps and talk.state in FINAL) or (self._streamed and talk.is_bare):
            await self._look_for_the_rest()

    async def _look_for_the_rest(self) -> None:
        for attempt in range(LAST_LOOKS):
            try:
                await self._look()
            except Refused:
                return
            except (Unreadable, Unavailable):
                await asyncio.sleep(FIRST_POLL * 2**attempt)
            else:
                return

    async def _poll(self) -> None:
        """Look at the task until it is settled: quickly at first, every `poll_every` seconds in the end."""
        talk, begun, faults, broken = self._talk, self._loop.time(), 0, 0
        quick = self._gaps
        while not talk.settled:
            pause = min(max(FIRST_POLL, (self._loop.time() - begun) * POLL_GROWTH), self._poll_every)
            if faults:
                pause = min(max(pause, FIRST_POLL * 2**faults), max(self._poll_every, FIRST_POLL))
            await asyncio.sleep(0 if quick else pause)
            quick = False
            if self._loop.time() - begun > OLD_QUESTION:
                talk.believe()
            try:
                await self._look()
            except Refused as refusal:
                broken = broken + 1 if refusal.kind == "internal" else 0
                passing = refusal.kind in ("throttled", "unavailable", "internal") or (
                    refusal.kind == "other" and (refusal.status or 0) >= 500
                )
                if not passing or broken >= INTERNAL_FAULTS:
                    raise
                self._trouble = self._of_client.mask(refusal.describe())
            except (AddressRefused, Misconduct):
                raise
            except (Unreadable, Unavailable) as error:
                self._trouble = self._of_client.mask(error.message)
            else:
                faults = broken = 0
                continue
            faults = min(faults + 1, 10)

    async def _look(self) -> None:
        client, way = self._of_client, self._chosen_way()
        self._polls += 1
        request = way.get(self._talk.task_id, new_id())
        timeout = min(POLL_TIMEOUT, self._left() + 1.0)
        try:
            result = await client.exchange(self._of_http, way, request, timeout=timeout)
        except Refused as refusal:
            if refusal.kind == "no_route" and not way.rpc and refusal.status == 404:
                raise Refused("task_not_found", refusal.message, status=404) from None
            raise
        self._take(result)

    def _take(self, result: Json) -> None:
        for event in self._talk.take(read_item(result)):
            self._context.emit(_clean(event))

    # giving up

    async def _abandon(self, patience: float) -> None:
        """Ask the agent to end the task; wait at most `patience` seconds for it to hear of it."""
        if self._client is None or self._http is None or self._talk.settled or self._talk.reply is not None:
            return
        if not self._talk.task_id and (self._sending is None or self._sending.done()):
            return
        try:
            telling = self._client.background(self._cancel_remotely())
        except Unavailable:
            return
        await asyncio.wait({telling}, timeout=patience)

    async def _cancel_remotely(self) -> None:
        with contextlib.suppress(WireError, Unavailable, ExecutionFailed, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT):
                if not self._talk.task_id and self._sending is not None:
                    try:
                        self._talk.take(read_item(await self._sending))
                    finally:
                        self._sending.cancel()
                task = self._talk.task_id
                if not task or self._talk.settled or self._way is None:
                    return
                client = self._of_client
                async with client.open() as http:
                    await client.ask(http, self._way.cancel(task, new_id()), timeout=CANCEL_TIMEOUT)

    # what came of it

    def _conclude(self) -> InvocableResult | Suspension:
        talk = self._talk
        if talk.reply is not None or talk.state == "completed":
            return result_of(talk, self._metadata())
        if talk.state in FINAL:
            self._fail_for_state()
        return self._suspension()

    def _suspension(self) -> Suspension:
        talk, name = self._talk, self._of_client.name
        asked = question_of(talk)
        schema = _usable(asked.schema)
        prompt = clean_text(asked.prompt, 8000).strip() or f"{name} {_WAIT_WORDS[asked.kind]}, and does not say which"
        data: JsonObject = {**self._metadata(), "context_id": talk.context_id or None}
        if asked.data and len(json.dumps(asked.data)) <= MAX_DATA:
            data["data"] = list(asked.data)
        return Suspension(
            id=secrets.token_hex(8),
            kind=asked.kind,
            prompt=prompt,
            schema=schema,
            url=asked.url,
            data=data,
            state={
                "task": talk.task_id,
                "context": talk.context_id,
                "state": talk.state,
                "asked": talk.question_mark,
                "structured": schema is not None,
                "way": None if self._way is None else self._way.to_json(),
            },
        )

    def _metadata(self) -> MetadataMap:
        client = self._client
        return {
            "agent": self._name if client is None or client.found is None else client.name,
            "task_id": self._talk.task_id,
            "state": self._talk.state,
            "polls": self._polls,
            "ms": round((self._loop.time() - self._began) * 1000),
        }

    @property
    def _shown_task(self) -> str:
        return clean_text(self._talk.task_id, 64) or "without an id"

    def _fail_for_state(self) -> NoReturn:
        talk, client = self._talk, self._of_client
        reason = client.mask(reason_of(talk)).strip() or f"{client.name} gave no reason"
        message = f"A2A task {self._shown_task} {talk.state}: {reason}"
        partial = partial_of(talk)
        self._fail(message, code=_CODES[talk.state], partial=partial)

    def _fail_for_refusal(self, refusal: Refused) -> NoReturn:
        client = self._of_client
        said = client.mask(refusal.describe())
        detail: MetadataMap = {"kind": refusal.kind}
        if refusal.code is not None:
            detail["a2a_code"] = refusal.code
        if refusal.status is not None:
            detail["status"] = refusal.status
        name = client.name
        match refusal.kind:
            case "task_not_found" if self._talk.task_id:
                text = f"{name} no longer knows A2A task {self._shown_task} ({said})"
                self._fail(text, code="task_not_found", detail=detail)
            case "unauthorized":
                hint = f"; its card asks for {client.mask(client.missing)}" if client.missing else ""
                self._fail(f"{name} does not let us in: {said}{hint}", code="unauthorized", detail=detail)
            case "throttled":
                self._fail(f"{name} is busy: {said}", code=codes.BUSY, retryable=not self._talk.begun, detail=detail)
            case "unavailable":
                self._fail(
                    f"{name} is not available: {said}",
                    code=codes.UNAVAILABLE,
                    retryable=not self._talk.begun,
                    detail=detail,
                )
            case "method_not_found" | "version_not_supported" | "no_route":
                text = said if said.startswith(name) else f"{name} refuses: {said}"
                self._fail(text, code=codes.UNAVAILABLE, detail=detail)
            case _:
                self._fail(f"{name} refuses: {said}", code=codes.EXECUTION_FAILED, detail=detail)

    def _fail_for_loss(self, error: Unavailable) -> NoReturn:
        message = error.message if self._client is None else self._client.mask(error.message)
        message = message.replace("private_hosts may allow it", "allow_origins may allow it")
        if self._talk.begun or error.sent:
            code = codes.UNKNOWN
            self._fail(f"{message} (what became of it is not known)", code=code, detail=error.detail)
        refused = isinstance(error, AddressRefused)
        self._fail(message, code=codes.UNAVAILABLE, retryable=not refused, detail=error.detail)

    def _fail_for_time(self) -> NoReturn:
        seconds = round(self._loop.time() - self._began, 1)
        name = self._metadata()["agent"]
        talk = self._talk
        where = f"A2A task {self._shown_task}, last state {talk.state}" if talk.task_id else "it has not answered yet"
        trouble = f"; last trouble: {self._trouble}" if self._trouble else ""
        self._fail(
            f"{name} did not finish within {seconds:g} s ({where}){trouble}",
            code=codes.TIMEOUT,
            detail={"timeout": seconds, "task_id": talk.task_id, "state": talk.state},
            partial=partial_of(talk),
        )

    def _fail(
        self,
        message: str,
        *,
        code: str,
        retryable: bool = False,
        detail: MetadataMap | None = None,
        partial: tuple[ContentPart, ...] = (),
    ) -> NoReturn:
        metadata, content = self._metadata(), partial
        if partial:
            metadata["partial"] = True
            shown = "\n".join(part.text for part in partial if isinstance(part, TextPart))
            if shown:
                message = f"{message}\n[partial result, not an answer]\n{clean_text(shown, 20_000)}"
            content = (TextPart(text=message), *partial)
        result = InvocableResult(content=content, metadata=metadata)
        raise ExecutionFailed(message, code=code, retryable=retryable, result=result, detail=detail)

    def _aside(self) -> float:
        """Seconds that may still go by before the caller's own deadline ends the call."""
        if self._context.deadline is None:
            return ASIDE
        return max(min(ASIDE, self._context.deadline - self._loop.time() - 0.005), 0.0)

    def _left(self) -> float:
        return max(self._deadline - self._loop.time(), 0.0)

    @property
    def _of_client(self) -> AgentClient:
        assert self._client is not None
        return self._client

    @property
    def _of_http(self) -> HttpClient:
        assert self._http is not None
        return self._http


def _no_error(payload: Json) -> Json:
    """An event of an HTTP+JSON stream, unless it is an error. Raises `Refused`."""
    if isinstance(payload, dict):
        event = cast(JsonObject, payload)
        if event.get("error") is not None and len(event) == 1:
            raise read_rest_error(event, 200)
        return event
    return payload


def _spoken(data: Json, *, structured: bool) -> tuple[ContentPart, ...]:
    """An answer as parts of a message. Structured where a schema asked for it, else readable for who reads text only."""
    if data is None:
        return (TextPart(text="yes"),)
    if isinstance(data, str):
        return (TextPart(text=data),)
    if structured:
        return (StructuredPart(value=data),)
    if isinstance(data, dict):
        table = cast(JsonObject, data)
        if len(table) == 1 and isinstance(text := table.get("text"), str):
            return (TextPart(text=text),)
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return (
        (TextPart(text=text), StructuredPart(value=data)) if isinstance(data, dict | list) else (TextPart(text=text),)
    )


def _usable(schema: JsonObject | None) -> JsonObject | None:
    """A schema that answers can be held against; None where it is none."""
    if schema is None:
        return None
    try:
        cleaned = clean_schema(schema)
        compile_schema(cleaned)
    except (Malformed, SchemaError):
        return None
    return cleaned


def _clean(event: Event) -> Event:
    """What people are shown of it holds no hidden characters; a piece of a result stays as it is."""
    match event:
        case Status():
            return Status(clean_text(event.message, 2000))
        case Artifact():
            return replace(event, name=clean_text(event.name, 200))
        case _:
            return event
