"""HTTP endpoints as tools, and the exchange that every source of plain HTTP sends its requests through."""

from .bodies import Multipart, Part
from .exchange import Exchange, HttpRequest
from .results import Received, ResultKind
from .templates import Template, TemplateError, filled, template, url_template

__all__ = [
    "Exchange",
    "HttpRequest",
    "Multipart",
    "Part",
    "Received",
    "ResultKind",
    "Template",
    "TemplateError",
    "filled",
    "template",
    "url_template",
]
