"""MCP servers as providers, over stdio, streamable HTTP and HTTP+SSE, in both eras of the protocol.

Importing this costs nothing: the SDK is imported, in a thread, when the first server is started.
"""

from .files import Entry, Misfit, Surroundings, entries_of, is_server_file, read_servers
from .login import is_logged_in, login, logout
from .opening import Opened, open_file, open_mcp, open_servers, server_of
from .providers import McpPrompts, McpResources, McpTool
from .servers import Era, McpServer, OAuth, Offers, Sampler, Transport, era_of
from .source import LeftOut, McpSource
from .vault import Vault

__all__ = [
    "Entry",
    "Era",
    "LeftOut",
    "McpPrompts",
    "McpResources",
    "McpServer",
    "McpSource",
    "McpTool",
    "Misfit",
    "OAuth",
    "Offers",
    "Opened",
    "Sampler",
    "Surroundings",
    "Transport",
    "Vault",
    "entries_of",
    "era_of",
    "is_logged_in",
    "is_server_file",
    "login",
    "logout",
    "open_file",
    "open_mcp",
    "open_servers",
    "read_servers",
    "server_of",
]
