"""MCP, served: every era on one URL and over lines. Importing it imports no SDK."""

from .app import McpApp
from .authorization import AccessToken, ResourceServer, TokenVerifier
from .bench import Bench, Limits
from .lines import serve_mcp_lines
from .mounting import mcp_mount

__all__ = [
    "AccessToken",
    "Bench",
    "Limits",
    "McpApp",
    "ResourceServer",
    "TokenVerifier",
    "mcp_mount",
    "serve_mcp_lines",
]
