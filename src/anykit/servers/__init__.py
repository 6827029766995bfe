"""Who may call: HTTP, and the host's half of each protocol. Tool to protocol's definition happens here."""

from .a2e import A2EApp, A2EHost, a2e_mount, serve_connection, serve_stdio
from .http import DEFAULT_PORT, Address, Mount, Server, new_event_loop
from .identity import NameGuard, Names, TokenGuard, TokenRequired, Tokens, Ways

__all__ = [
    "DEFAULT_PORT",
    "A2EApp",
    "A2EHost",
    "Address",
    "Mount",
    "NameGuard",
    "Names",
    "Server",
    "TokenGuard",
    "TokenRequired",
    "Tokens",
    "Ways",
    "a2e_mount",
    "new_event_loop",
    "serve_connection",
    "serve_stdio",
]
