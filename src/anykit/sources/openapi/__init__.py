"""OpenAPI documents: every operation a tool."""

from .document import DocumentError, is_document, read_text
from .opening import Opened, open_source
from .operations import LeftOut, Operation, Reading, read_document
from .references import References
from .source import OpenApiSource, Options
from .tools import OpenApiTool

__all__ = [
    "DocumentError",
    "LeftOut",
    "OpenApiSource",
    "OpenApiTool",
    "Opened",
    "Operation",
    "Options",
    "Reading",
    "References",
    "is_document",
    "open_source",
    "read_document",
    "read_text",
]
