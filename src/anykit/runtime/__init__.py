"""What happens to a call: names, scopes, policy, the executor, the journal; and `Session`, the seam of the faces."""

from .callers import HOST, Caller, Scope
from .catalog import Catalog, Report, Snapshot, Source, ToolEntry, ToolkitEntry, may_come, state_of
from .executor import CallOptions, Executor
from .journal import Journal, Nowhere
from .naming import Candidate, Name, Names, clean
from .policy import AllowAll, Decision, Policy
from .scopes import Configured, Scopes, ToolkitEvent, UnknownToolkit, Vault
from .session import CatalogChanged, Change, Session, ToolkitView
from .suspensions import Suspensions, WaitFor

__all__ = [
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
    "Policy",
    "Report",
    "Scope",
    "Scopes",
    "Session",
    "Snapshot",
    "Source",
    "Suspensions",
    "ToolEntry",
    "ToolkitEntry",
    "ToolkitEvent",
    "ToolkitView",
    "UnknownToolkit",
    "Vault",
    "WaitFor",
    "clean",
    "may_come",
    "state_of",
]
