"""Our own sockets and children: lines over memory, stdio, processes and HTTP; the HTTP client and its address guard."""

from .base import LineTransport, Received, TransportClosed, received
from .lines import MAX_LINE, LineReader, Oversized
from .memory import MemoryTransport, memory_pair
from .process import INHERITED, Command, ProcessTransport, inherited, spawn
from .stdio import ProtocolStreams, StdioTransport, take_stdio

__all__ = [
    "INHERITED",
    "MAX_LINE",
    "Command",
    "LineReader",
    "LineTransport",
    "MemoryTransport",
    "Oversized",
    "ProcessTransport",
    "ProtocolStreams",
    "Received",
    "StdioTransport",
    "TransportClosed",
    "inherited",
    "memory_pair",
    "received",
    "spawn",
    "take_stdio",
]
