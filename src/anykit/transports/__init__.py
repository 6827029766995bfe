"""Our own sockets and children: lines over memory, stdio, processes and HTTP; the HTTP client and its address guard."""

from .a2e_http import HttpSessionTransport
from .base import LineTransport, Received, TransportClosed, received
from .guard import OPEN, PUBLIC_ONLY, AddressGuard, AddressRefused, is_loopback
from .http_client import HttpAnswer, HttpClient, HttpStream, public_url
from .lines import MAX_LINE, LineReader, Oversized
from .memory import MemoryTransport, memory_pair
from .process import INHERITED, Command, ProcessTransport, inherited, spawn
from .sse import ServerEvent, SseDecoder, encode_comment, encode_event
from .stdio import ProtocolStreams, StdioTransport, take_stdio

__all__ = [
    "INHERITED",
    "MAX_LINE",
    "OPEN",
    "PUBLIC_ONLY",
    "AddressGuard",
    "AddressRefused",
    "Command",
    "HttpAnswer",
    "HttpClient",
    "HttpSessionTransport",
    "HttpStream",
    "LineReader",
    "LineTransport",
    "MemoryTransport",
    "Oversized",
    "ProcessTransport",
    "ProtocolStreams",
    "Received",
    "ServerEvent",
    "SseDecoder",
    "StdioTransport",
    "TransportClosed",
    "encode_comment",
    "encode_event",
    "inherited",
    "is_loopback",
    "memory_pair",
    "public_url",
    "received",
    "spawn",
    "take_stdio",
]
