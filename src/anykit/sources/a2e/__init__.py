"""A2E hosts as an agent sees them: the client, and a host as a source of tools."""

from .client import A2EClient, Events
from .errors import A2ERequestError
from .link import A2ELink
from .source import A2ESource, A2ETool, LeftOut
from .targets import Target, opener

__all__ = [
    "A2EClient",
    "A2ELink",
    "A2ERequestError",
    "A2ESource",
    "A2ETool",
    "Events",
    "LeftOut",
    "Target",
    "opener",
]
