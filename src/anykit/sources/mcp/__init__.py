"""MCP servers as providers, over stdio, streamable HTTP and HTTP+SSE, in both eras of the protocol.

Importing this costs nothing: the SDK is imported, in a thread, when the first server is started.
"""

from .clients import CLIENTS, Client, client_at
from .files import ServerFile, entries_of, is_server_file, read_server_file, read_servers
from .login import is_logged_in, login, logout
from .opening import Opened, of_file, open_file, open_mcp, open_servers, server_of
from .parts import Entry
from .placeholders import Misfit, Surroundings
from .providers import McpPrompts, McpResources, McpTool
from .servers import Era, McpServer, OAuth, Offers, Sampler, Transport, era_of
from .source import LeftOut, McpSource
from .vault import Vault

__all__ = [
    "CLIENTS",
    "Client",
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
    "ServerFile",
    "Surroundings",
    "Transport",
    "Vault",
    "client_at",
    "entries_of",
    "era_of",
    "is_logged_in",
    "is_server_file",
    "login",
    "logout",
    "of_file",
    "open_file",
    "open_mcp",
    "open_servers",
    "read_server_file",
    "read_servers",
    "server_of",
]
