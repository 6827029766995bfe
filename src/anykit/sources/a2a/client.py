"""One remote agent over HTTP: its card, the dialect that works with it, its session, and what proves who asks.

A client that belongs to bare tools closes its connections by itself once nobody has used it for a while, or when the
loop ends; one that belongs to a source is closed by it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from anykit.capabilities import Json, JsonObject, Unavailable
from anykit.sources.hostile import clean_text
from anykit.stores import UnresolvedReference
from anykit.transports import HttpAnswer, HttpClient, HttpStream
from anykit.wire.a2a import (
    Card,
    Dropped,
    Refused,
    Unreadable,
    Way,
    WireError,
    WireRequest,
    a_list,
    a_text,
    an_object,
    decode,
    read_rest_error,
    read_rpc,
    refused_by_status,
    ways,
)

from .agent import Agent
from .credentials import Credentials
from .discovery import Found, find_card, read_found
from .errors import CardError, Tried
from .origins import guard_for

log = logging.getLogger("anykit.sources.a2a")

MAX_BODY = 8 * 1024 * 1024
"""Bytes of one answer."""
IDLE = 2.0
"""Seconds after its last use at which the client of bare tools closes its connections."""
CANCEL_TIMEOUT = 2.0
"""Seconds that asking an agent to end a task may take."""
SESSIONS = 1000
"""Sessions whose conversation with the agent is remembered."""
MAX_REASON = 500


class _Live:
    """What belongs to one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, http: HttpClient) -> None:
        self.loop = loop
        self.http = http
        self.users = 0
        self.used = loop.time()
        self.background: set[asyncio.Task[Any]] = set()
        self.keeper: asyncio.Task[None] | None = None


class AgentClient:
    """Talks to one agent. With `lasting` it is used on one loop and has to be closed."""

    def __init__(self, agent: Agent, *, lasting: bool = False) -> None:
        self.agent = agent
        self.found: Found | None = None
        self.way: Way | None = None
        """How to ask; what worked last."""
        self.streams = True
        """False once the agent refused a stream that its card promises."""
        self.contexts: OrderedDict[tuple[str | None, str], str] = OrderedDict()
        """The conversation that each caller's session has with the agent."""
        self.extended_fault = ""
        """Why the extended card could not be had, where the card promises one."""
        self._lasting = lasting
        self._live: _Live | None = None
        self._credentials: Credentials | None = None
        self._closed = False

    @property
    def card(self) -> Card:
        """The card. Raises `Unavailable` before it was read."""
        if self.found is None:
            raise Unavailable(f"the card of {self.agent.where} was not read yet")
        return self.found.card

    @property
    def name(self) -> str:
        """What the agent calls itself, fit to be shown."""
        return clean_text(self.card.name, 100)

    @property
    def dropped(self) -> tuple[Dropped, ...]:
        """What of the card is not used."""
        return () if self.found is None else self.found.card.dropped

    # the card

    async def load(self) -> Found:
        """Read the card, or look whether it changed. Raises `CardError`; what was read before stays then."""
        try:
            self._proof()
        except UnresolvedReference as error:
            raise CardError(str(error), url=self.agent.where) from None
        async with self.open() as http:

            async def ask(request: WireRequest, timeout: float) -> HttpAnswer:
                return await self.ask(http, request, timeout=timeout)

            try:
                found = await find_card(self.agent, ask)
                self._proof().choose(found.card)
                found = await self._extended(http, found)
            except CardError as error:
                raise self._masked(error) from None
        if self.found is None or found.card != self.found.card:
            self.found = found
            self.way = ways(found.card)[0]
            self.streams = True
        else:
            self.found = found
        self._proof().choose(found.card)
        return found

    async def _extended(self, http: HttpClient, found: Found) -> Found:
        """The card that known callers see, where there is one and we are known; it failing costs nothing."""
        way = ways(found.card)[0]
        self.extended_fault = ""
        if not found.card.extended or not self._proof().present or not self._proof().trusts(way.interface.url):
            return found
        try:
            result = await self.exchange(http, way, way.extended_card(new_id()), timeout=10.0)
            if not isinstance(result, dict):
                raise Unreadable("the extended card is no object")
            return replace(read_found(self.agent, cast(JsonObject, result), found.url), max_age=found.max_age)
        except (Unavailable, WireError) as error:
            self.extended_fault = self.mask(error.message)
            log.info("%s: the extended card could not be had: %s", self.agent.where, self.extended_fault)
            return found

    def _masked(self, error: CardError) -> CardError:
        tried = [Tried(one.url, one.status, self.mask(one.reason)) for one in error.tried]
        return CardError(self.mask(error.message), url=error.url, status=error.status, tried=tried)

    # asking

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[HttpClient]:
        """Hold the session for a while."""
        live = self._of_this_loop()
        live.users += 1
        try:
            yield live.http
        finally:
            live.users -= 1
            live.used = live.loop.time()

    async def ask(self, http: HttpClient, request: WireRequest, *, timeout: float) -> HttpAnswer:
        """Send a request with what proves who asks; once more where a token ran out. Raises `Unavailable`."""
        proof = self._proof()
        ready = await proof.applied(request, http)
        answer = await http.request(ready.method, ready.url, headers=ready.headers, body=ready.body, timeout=timeout)
        if answer.status == 401 and proof.renew():
            ready = await proof.applied(request, http)
            answer = await http.request(
                ready.method, ready.url, headers=ready.headers, body=ready.body, timeout=timeout
            )
        return answer

    async def exchange(self, http: HttpClient, way: Way, request: WireRequest, *, timeout: float) -> Json:
        """Send a request and give the result in its answer. Raises `Refused`, `Unreadable`, `Unavailable`."""
        return result_in(way, await self.ask(http, request, timeout=timeout))

    @asynccontextmanager
    async def stream(self, http: HttpClient, request: WireRequest, *, timeout: float) -> AsyncGenerator[HttpStream]:
        """Send a request and give its answer while it comes. `timeout` is for its head. Raises `Unavailable`."""
        proof = self._proof()
        ready = await proof.applied(request, http)
        async with contextlib.AsyncExitStack() as stack:
            stream = await stack.enter_async_context(
                http.stream(ready.method, ready.url, headers=ready.headers, body=ready.body, timeout=timeout)
            )
            if stream.status == 401 and proof.renew():
                await stack.aclose()
                ready = await proof.applied(request, http)
                stream = await stack.enter_async_context(
                    http.stream(ready.method, ready.url, headers=ready.headers, body=ready.body, timeout=timeout)
                )
            yield stream

    def background(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Do something that outlives whoever asked for it."""
        try:
            live = self._of_this_loop()
        except Unavailable:
            work.close()
            raise
        task = live.loop.create_task(self._held(work), name="anykit-a2a")
        live.background.add(task)
        task.add_done_callback(live.background.discard)
        task.add_done_callback(_looked_at)
        return task

    async def _held(self, work: Coroutine[Any, Any, Any]) -> Any:
        async with self.open():
            return await work

    # conversations

    def context_of(self, key: tuple[str | None, str] | None) -> str:
        """The conversation that a session has with the agent; "" where there is none yet."""
        if key is None or key not in self.contexts:
            return ""
        self.contexts.move_to_end(key)
        return self.contexts[key]

    def remember_context(self, key: tuple[str | None, str] | None, context_id: str) -> None:
        """Go on in this conversation next time; "" forgets it."""
        if key is None:
            return
        if not context_id:
            self.contexts.pop(key, None)
            return
        self.contexts[key] = context_id
        self.contexts.move_to_end(key)
        if len(self.contexts) > SESSIONS:
            self.contexts.popitem(last=False)

    # what may be shown

    def mask(self, text: str) -> str:
        """A peer's words for an error or a log: bounded, clean, without our secrets."""
        text = clean_text(text, 4 * MAX_REASON)
        if self._credentials is not None:
            text = self._credentials.mask(text)
        return text

    @property
    def missing(self) -> str:
        """Which secrets the card asks for and nobody gave."""
        return "" if self._credentials is None else self._credentials.missing

    # life

    async def close(self) -> None:
        """Let what runs in the background end, within `CANCEL_TIMEOUT`, and close the connections."""
        self._closed = True
        live, self._live = self._live, None
        if live is None:
            return
        if live.keeper is not None:
            live.keeper.cancel()
        if live.background:
            await asyncio.wait(live.background, timeout=CANCEL_TIMEOUT)
        for task in list(live.background):
            task.cancel()
        await live.http.close()

    def _of_this_loop(self) -> _Live:
        loop = asyncio.get_running_loop()
        live = self._live
        if live is not None and live.loop is loop:
            return live
        if self._closed:
            raise Unavailable(f"{self.agent.where} is closed")
        try:
            http = HttpClient(guard=guard_for(self._given_urls()), max_body=MAX_BODY)
        except ValueError as error:
            raise CardError(f"{self.agent.where}: {error}", url=self.agent.where) from None
        live = self._live = _Live(loop, http)
        if not self._lasting:
            live.keeper = loop.create_task(self._keep(live), name="anykit-a2a-idle")
        return live

    async def _keep(self, live: _Live) -> None:
        """Close the connections once nobody uses them any more; the end of the loop cancels this."""
        try:
            while True:
                await asyncio.sleep(IDLE / 2)
                if not live.users and live.loop.time() - live.used >= IDLE:
                    break
        finally:
            if self._live is live:
                self._live = None
            await live.http.close()

    def _proof(self) -> Credentials:
        if self._credentials is None:
            self._credentials = Credentials(self.agent, self._own_urls())
        return self._credentials

    def _own_urls(self) -> list[str]:
        """Where the operator said the agent is."""
        if self.agent.card_url is not None:
            return [self.agent.card_url]
        document = self.agent.card
        assert not isinstance(document, str)
        interfaces = [
            an_object(item) or {}
            for key in ("supportedInterfaces", "additionalInterfaces")
            for item in a_list(document.get(key))
        ]
        return [url for given in (document, *interfaces) if (url := a_text(given, "url"))]

    def _given_urls(self) -> list[str]:
        tokens = [a_text(an_object(secret) or {}, "token_url") for secret in self.agent.credentials.values()]
        return [*self._own_urls(), *self.agent.allow_origins, *filter(None, tokens)]


def result_in(way: Way, answer: HttpAnswer) -> Json:
    """The result in an answer. Raises `Refused`, `Unreadable`."""
    try:
        payload = an_object(decode(answer.body))
    except WireError:
        payload = None
    if payload is not None and way.rpc and ("result" in payload or payload.get("error") is not None):
        return read_rpc(payload, answer.status)
    if payload is not None and not way.rpc:
        if 200 <= answer.status < 300:
            return payload
        raise read_rest_error(payload, answer.status)
    refused = refused_by_status(answer.status)
    if refused is not None:
        raise Refused(refused.kind, f"{answer.url}: {answer.describe()}", status=answer.status)
    raise Unreadable(f"{answer.url} did not answer with A2A: {answer.describe()}")


def new_id() -> str:
    """An id for a request or a message."""
    return str(uuid.uuid4())


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
