"""MCP servers as providers, over stdio, streamable HTTP and HTTP+SSE, in both eras of the protocol.

Importing this costs nothing: the SDK is imported, in a thread, when the first server is started.
"""

from .servers import Era, McpServer, OAuth, Offers, Sampler, Transport, era_of
from .source import LeftOut, McpPrompts, McpResources, McpSource, McpTool
from .vault import Vault

__all__ = [
    "Era",
    "LeftOut",
    "McpPrompts",
    "McpResources",
    "McpServer",
    "McpSource",
    "McpTool",
    "OAuth",
    "Offers",
    "Sampler",
    "Transport",
    "Vault",
    "era_of",
]
