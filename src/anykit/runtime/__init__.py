"""What happens to a call: names, scopes, policy, the executor, the journal; and `Session`, the seam of the faces."""

from .callers import HOST, Caller, Scope
from .catalog import FINDER, Catalog, Shaped, Shaping
from .executor import CallOptions, Executor
from .journal import Journal, Nowhere
from .naming import CLEANED, Candidate, Name, Names, clean
from .policy import AllowAll, Decision, Policy
from .scopes import Configured, Scopes, ToolkitEvent, UnknownToolkit, Vault
from .session import CatalogChanged, Change, Session, ToolkitView
from .snapshot import Report, Snapshot, Source, ToolEntry, ToolkitEntry, may_come, state_of
from .suspensions import Suspensions, WaitFor
from .views import Patterns, View

__all__ = [
    "CLEANED",
    "FINDER",
    "HOST",
    "AllowAll",
    "CallOptions",
    "Caller",
    "Candidate",
    "Catalog",
    "CatalogChanged",
    "Change",
    "Configured",
    "Decision",
    "Executor",
    "Journal",
    "Name",
    "Names",
    "Nowhere",
    "Patterns",
    "Policy",
    "Report",
    "Scope",
    "Scopes",
    "Session",
    "Shaped",
    "Shaping",
    "Snapshot",
    "Source",
    "Suspensions",
    "ToolEntry",
    "ToolkitEntry",
    "ToolkitEvent",
    "ToolkitView",
    "UnknownToolkit",
    "Vault",
    "View",
    "WaitFor",
    "clean",
    "may_come",
    "state_of",
]
