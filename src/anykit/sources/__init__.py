"""Where capabilities come from: Python, remote A2E hosts. Each gives a `CapabilityProvider`; `combine` wraps one."""

from .argument_schemas import ArgumentChange
from .arguments import Rearranged, sound
from .combine import Filtered, Overridden, Prefixed, Renamed, Wrapped
from .connection import Backoff, Connection, Link
from .functions import (
    FunctionPrompts,
    FunctionResources,
    FunctionSource,
    Loaded,
    LoadError,
    load_module,
    objects_of,
)

__all__ = [
    "ArgumentChange",
    "Backoff",
    "Connection",
    "Filtered",
    "FunctionPrompts",
    "FunctionResources",
    "FunctionSource",
    "Link",
    "LoadError",
    "Loaded",
    "Overridden",
    "Prefixed",
    "Rearranged",
    "Renamed",
    "Wrapped",
    "load_module",
    "objects_of",
    "sound",
]
