"""Streamable HTTP of MCP 2026-07-28: each request stands alone. Imports the SDK."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import anyio
from mcp.server.connection import Connection
from mcp.server.runner import serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    InboundModernRoute,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp.shared.jsonrpc_dispatcher import progress_token_from_params
from mcp.shared.message import MessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types import HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY, ProgressToken, RequestId
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from anykit.capabilities import JsonObject

from .face import Face
from .jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Incoming, Refused, encode, error_message
from .replies import Reply
from .view import View

log = logging.getLogger("anykit.mcp")

Headers = Sequence[tuple[str, str]]
VERSION: Final = "mcp-protocol-version"
_PARAM: Final = "mcp-param-"


def is_modern(incoming: Incoming, version: str | None) -> bool:
    """Whether a message is of this era: by its header, or without one by the envelope in its params."""
    if version is not None:
        return version not in HANDSHAKE_PROTOCOL_VERSIONS
    meta: object = (incoming.params or {}).get("_meta")
    return incoming.method != "initialize" and isinstance(meta, Mapping) and PROTOCOL_VERSION_META_KEY in meta


def status_of(code: int) -> int:
    """The HTTP status that goes with an error."""
    return ERROR_CODE_HTTP_STATUS.get(code, 200)


def check_notification(version: str | None) -> None:
    """There are none that mean anything here; one of a version that is not served is told so. Raises `Refused`."""
    if (rejection := unsupported_protocol_version_rejection(version or "")) is not None:
        raise Refused(rejection.code, rejection.message, None, rejection.data)


def route(incoming: Incoming, headers: Headers) -> InboundModernRoute:
    """Check a request's envelope against itself and its headers. Raises `Refused`."""
    if (twice := find_duplicated_routing_header(headers)) is not None:
        raise Refused(HEADER_MISMATCH, f"{twice} header appears more than once", incoming.id)
    verdict = classify_inbound_request(incoming.message, headers=dict(headers))
    if isinstance(verdict, InboundLadderRejection):
        raise Refused(verdict.code, verdict.message, incoming.id, verdict.data)
    return verdict


def check_arguments(incoming: Incoming, headers: Headers, view: View) -> None:
    """Hold the `Mcp-Param-*` headers of a call against its arguments. Raises `Refused`."""
    params = incoming.params or {}
    name: object = params.get("name")
    arguments: object = params.get("arguments") or {}
    if incoming.method != "tools/call" or not isinstance(name, str) or not isinstance(arguments, Mapping):
        return
    if not arguments and not any(header.startswith(_PARAM) for header, _ in headers):
        return
    tool = view.session.get(name)
    if tool is None:
        return
    names = [header for header, _ in headers if header.startswith(_PARAM)]
    if len(names) != len(set(names)):
        raise Refused(HEADER_MISMATCH, "an Mcp-Param header appears more than once", incoming.id)
    given = cast("Mapping[str, Any]", arguments)
    rejection = validate_mcp_param_headers(tool.input_schema, given, dict(headers))
    if rejection is not None:
        raise Refused(rejection.code, rejection.message, incoming.id, rejection.data)


class Exchange:
    """One request being answered. The SDK's `DispatchContext`.

    Args:
        reply: Where its news go.
        request_id: Its id.
        token: What its progress is told by; None tells none.
        headers: Of the request.
    """

    def __init__(
        self, reply: Reply, request_id: RequestId, token: ProgressToken | None, headers: Mapping[str, str]
    ) -> None:
        self._reply = reply
        self._token = token
        self.transport = TransportContext(kind="streamable-http", can_send_request=False, headers=headers)
        self.request_id: RequestId | None = request_id
        self.message_metadata: MessageMetadata = None
        self.cancel_requested = anyio.Event()
        self.can_send_request = False

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """There are no requests to clients in this era."""
        raise NoBackChannelError(method)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Tell the client something on the request's own stream."""
        message: JsonObject = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        self._reply.say(encode(message))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the client how far it is."""
        if self._token is None:
            return
        params: JsonObject = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)


async def answer(
    face: Face, view: View, incoming: Incoming, verdict: InboundModernRoute, headers: Headers, reply: Reply
) -> None:
    """Answer one request into `reply`. Cancelling it cancels what it does."""
    assert incoming.id is not None
    exchange = Exchange(reply, incoming.id, progress_token_from_params(incoming.params), dict(headers))
    connection = Connection.from_envelope(verdict.protocol_version, verdict.client_info, verdict.client_capabilities)
    try:
        result = await serve_one(
            face.server, exchange, incoming.method, incoming.params, connection=connection, lifespan_state=view
        )
    except MCPError as error:
        said = error.error
        reply.finish(encode(error_message(incoming.id, said.code, said.message, said.data)), status_of(said.code))
    except ValidationError:
        body = error_message(incoming.id, INVALID_PARAMS, "Invalid request parameters")
        reply.finish(encode(body), status_of(INVALID_PARAMS))
    except asyncio.CancelledError:
        reply.finish(None)
        raise
    except Exception:
        log.exception("%s could not be answered", incoming.method)
        reply.finish(encode(error_message(incoming.id, INTERNAL_ERROR, "Internal error")))
    else:
        reply.finish(encode({"jsonrpc": "2.0", "id": incoming.id, "result": result}))
