"""Tools over MCP: listed, called, and gone on with once a question is answered. Imports the SDK."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, Final, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError

from anykit.capabilities import Answer, Denied, Failed, JsonObject, Outcome, Suspended, Suspension
from anykit.capabilities import outcomes as codes
from anykit.runtime import CallOptions, Session

from . import content, toolkits
from .asking import ask, input_required, missing_capability, open_question, responses_of, waiting
from .bench import Busy
from .configuring import Desk
from .contexts import Context, abilities_of, is_modern, level_of, trace_of
from .definitions import Definitions
from .jsonrpc import INVALID_PARAMS
from .pages import cursor_of, listed, page_of
from .questions import Request, Unaskable, answer_of, askable, requests_of
from .running import Running
from .telling import Switch, Teller
from .view import spawn

log = logging.getLogger("anykit.mcp")

ROUNDS: Final = 10
"""How often one call may ask, and one question be asked again because its answer does not fit."""
CONFIGURING: Final = 60.0
"""Seconds that a call waits for its toolkit to be configured, before it is said again where."""
ABANDONED: Final = 0.5
"""Seconds that a call has to end whose question nobody will answer."""
SWITCHES: Final = 1000


class Calls:
    """The handlers of tools, for any number of callers.

    Args:
        desk: Where toolkits are configured; None where there is no page.
        running: Runs the calls.
    """

    def __init__(self, desk: Desk | None, running: Running) -> None:
        self._desk = desk
        self._running = running
        self._definitions = Definitions()
        self._switches: OrderedDict[str, Switch] = OrderedDict()

    async def list(self, context: Context, params: types.PaginatedRequestParams | None) -> JsonObject:
        """`tools/list`: what this caller can call now, but for what is deferred."""
        entries = [entry for entry in context.lifespan_context.session.entries() if not entry.tool.deferred]
        page, cursor = page_of(entries, cursor_of(params), lambda entry: entry.tool.name)
        return listed("tools", [self._definitions.of(entry).definition for entry in page], cursor)

    async def call(self, context: Context, params: types.CallToolRequestParams) -> JsonObject:
        """`tools/call`, in its turn; also the return of a client with an answer."""
        view = context.lifespan_context
        teller = Teller(context, level_of(context), params.name)
        try:
            async with view.gate.turn():
                answer = await self._running.through(
                    self._called(context, params, teller), f"mcp call {params.name[:64]}"
                )
            await teller.close()
        except Busy as error:
            return content.failure(str(error), codes.BUSY, retryable=True)
        finally:
            teller.drop()
        return {"resultType": "complete", **answer}

    async def _called(self, context: Context, params: types.CallToolRequestParams, teller: Teller) -> JsonObject:
        view = context.lifespan_context
        session = view.session
        switch = Switch(teller)
        options = CallOptions(metadata=trace_of(context), emit=switch)
        arguments = params.arguments or {}
        if is_modern(context) and params.request_state is not None:
            state = json.loads(params.request_state)
            if (id := state.get("suspension")) is not None:
                return await self._gone_on(context, params, id, switch, options)
            if (refused := await self._configured(context, params, state)) is not None:
                return refused
        outcome = await session.run(params.name, arguments, options)
        if isinstance(outcome, Denied) and outcome.reason == codes.NOT_CONFIGURED:
            return await self._configure(context, params, outcome, options)
        return await self._concluded(context, params.name, outcome, switch, options)

    async def _concluded(
        self, context: Context, name: str, outcome: Outcome, switch: Switch, options: CallOptions
    ) -> JsonObject:
        """Ask what is asked; what it came to in the end."""
        if isinstance(outcome, Suspended):
            if is_modern(context):
                return self._required(context, outcome.suspension, switch)
            outcome = await self._asked(context, outcome, options)
        if isinstance(outcome, Suspended):
            return open_question(outcome.suspension)
        if isinstance(outcome, Failed) and outcome.code == codes.UNKNOWN_TOOL:
            raise MCPError(INVALID_PARAMS, outcome.message)
        session = context.lifespan_context.session
        tool = session.get(name)
        if tool is None:
            return content.call_result(outcome, None)
        return content.call_result(outcome, self._definitions.find(session, tool), limit=tool.spec.max_output)

    # questions, 2026-07-28: the client comes again

    def _required(self, context: Context, suspension: Suspension, switch: Switch, note: str = "") -> JsonObject:
        asked = requests_of(suspension)
        if isinstance(asked, Unaskable):
            return open_question(suspension, asked.reason)
        possible = askable(asked, abilities_of(context))
        if not possible:
            if suspension.kind == "input":
                self._abandon(context.lifespan_context.session, suspension)
            raise missing_capability(suspension, asked)
        self._switches[suspension.id] = switch
        if len(self._switches) > SWITCHES:
            self._switches.popitem(last=False)
        return input_required(possible, {"suspension": suspension.id}, note)

    async def _gone_on(
        self, context: Context, params: types.CallToolRequestParams, id: str, switch: Switch, options: CallOptions
    ) -> JsonObject:
        """The client is back with an answer."""
        session = context.lifespan_context.session
        suspension = waiting(session, id)
        kept = self._switches.get(id, switch)
        kept.teller = switch.teller
        if suspension is not None:
            asked = requests_of(suspension)
            if isinstance(asked, Unaskable):
                return open_question(suspension, asked.reason)
            try:
                answer = answer_of(suspension, askable(asked, abilities_of(context)), responses_of(params))
            except ValueError as wrong:
                return self._required(context, suspension, kept, str(wrong))
            if answer is None:
                return self._required(context, suspension, kept)
        else:
            answer = Answer(False)  # answered elsewhere, or over: `answer` says so
        outcome = await session.answer(id, ok=answer.ok, data=answer.data, options=options)
        if isinstance(outcome, Failed) and (still := waiting(session, id)) is not None:
            return self._required(context, still, kept, outcome.message)
        self._switches.pop(id, None)
        return await self._concluded(context, params.name, outcome, kept, options)

    # questions, until 2025-11-25: the client is asked while the call waits

    async def _asked(self, context: Context, outcome: Suspended, options: CallOptions) -> Outcome:
        session = context.lifespan_context.session
        abilities = abilities_of(context)
        note = ""
        for _ in range(ROUNDS):
            suspension = outcome.suspension
            asked = requests_of(suspension)
            if isinstance(asked, Unaskable) or not (asked := askable(asked, abilities)):
                return outcome
            try:
                responses = {key: await ask(context, one, suspension, note) for key, one in asked.items()}
            except asyncio.CancelledError:
                self._abandon(session, suspension)
                raise
            except MCPError as error:
                log.info("a client did not answer a question: %s", error.error.message[:200])
                responses = {key: {"action": "cancel"} for key in asked}
            try:
                answer = answer_of(suspension, asked, responses) or Answer(False)
            except ValueError as wrong:
                note = str(wrong)
                continue
            told = await session.answer(suspension.id, ok=answer.ok, data=answer.data, options=options)
            if isinstance(told, Failed) and waiting(session, suspension.id) is not None:
                note = told.message
                continue
            if not isinstance(told, Suspended):
                return told
            outcome, note = told, ""
        self._abandon(session, outcome.suspension)
        return Failed(codes.EXECUTION_FAILED, f"it asked {ROUNDS} times without an end, or a fitting answer")

    def _abandon(self, session: Session, suspension: Suspension) -> None:
        """Nobody will answer: the call is told so, and ended."""

        async def refuse() -> None:
            try:
                async with asyncio.timeout(ABANDONED):
                    outcome = await session.answer(suspension.id, ok=False)
            except TimeoutError:
                return
            if isinstance(outcome, Suspended):  # it asks on and on: whoever waits for it takes it along
                waiting = spawn(session.answer(outcome.suspension.id, ok=False), "mcp abandon")
                await asyncio.sleep(0)
                waiting.cancel()

        self._switches.pop(suspension.id, None)
        spawn(refuse(), "mcp abandon")

    # toolkits that wait for a configuration

    async def _configure(
        self, context: Context, params: types.CallToolRequestParams, denied: Denied, options: CallOptions
    ) -> JsonObject:
        """Send the person to a page, where the client can open one; the call goes on once the toolkit is configured."""
        view = context.lifespan_context
        toolkit = str(denied.detail.get("toolkit", ""))
        address = None
        if self._desk is not None and abilities_of(context).url:
            address = self._desk.address(view.session, toolkit, view.place)
        if address is None:
            said = Denied(f"{denied.message}: {toolkits.how_to(toolkit)}", denied.reason, denied.detail)
            return content.call_result(said, None)
        url: JsonObject = {
            "mode": "url",
            "message": f"Toolkit {toolkit} is not configured yet. Open this page to configure it.",
            "url": address.url,
            "elicitationId": address.id,
        }
        request = Request("elicitation/create", url, "none")
        if is_modern(context):
            return input_required({"configure": request}, {"toolkit": toolkit, "address": address.id})
        response = await ask(context, request, None)
        if response.get("action") != "accept":
            return content.call_result(denied, None)
        try:
            async with asyncio.timeout(CONFIGURING):
                await address.configured.wait()
        except TimeoutError:
            said = Denied(f"{denied.message}; call it again once that is done", denied.reason, denied.detail)
            return content.call_result(said, None)
        await context.session.send_elicit_complete(address.id, context.request_id)
        outcome = await view.session.run(params.name, params.arguments or {}, options)
        return await self._concluded(context, params.name, outcome, cast(Switch, options.emit), options)

    async def _configured(
        self, context: Context, params: types.CallToolRequestParams, state: Mapping[str, Any]
    ) -> JsonObject | None:
        """The client is back from the page: None where the call can go on."""
        session = context.lifespan_context.session
        toolkit = str(state.get("toolkit"))
        view = session.toolkit(toolkit)
        if view is None or view.configured:
            return None
        response = responses_of(params).get("configure", {})
        if response.get("action") != "accept":
            return content.failure(f"toolkit {toolkit} was not configured", codes.NOT_CONFIGURED)
        address = None if self._desk is None else self._desk.find(str(state.get("address")))
        if address is not None:
            try:
                async with asyncio.timeout(CONFIGURING):
                    await address.configured.wait()
            except TimeoutError:
                pass  # it is said again where
        return None
