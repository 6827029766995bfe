"""The host's half of A2E: sessions over lines and HTTP, plugins, and what is answered."""

from .connection import Carrier, Connection
from .host import A2EHost, Bench, Limits
from .lines import serve_connection, serve_stdio
from .loading import PluginClass, PluginProblem, load_plugins
from .mcp import AgentModels, Registrar
from .mounting import a2e_mount
from .plugins import A2EPlugin, ToolkitPlugin, ToolPlugin
from .routes import A2EApp

__all__ = [
    "A2EApp",
    "A2EHost",
    "A2EPlugin",
    "AgentModels",
    "Bench",
    "Carrier",
    "Connection",
    "Limits",
    "PluginClass",
    "PluginProblem",
    "Registrar",
    "ToolPlugin",
    "ToolkitPlugin",
    "a2e_mount",
    "load_plugins",
    "serve_connection",
    "serve_stdio",
]
