"""HTTP endpoints as tools, and the exchange that every source of plain HTTP sends its requests through."""

from .bodies import Multipart, Part
from .endpoint import Endpoint, endpoint
from .exchange import Exchange, HttpRequest, Limits
from .opening import open_source
from .options import EndpointOptions
from .results import Received, ResultKind
from .source import HttpSource, HttpTool, http_tool
from .templates import Template, TemplateError, filled, template, url_template

__all__ = [
    "Endpoint",
    "EndpointOptions",
    "Exchange",
    "HttpRequest",
    "HttpSource",
    "HttpTool",
    "Limits",
    "Multipart",
    "Part",
    "Received",
    "ResultKind",
    "Template",
    "TemplateError",
    "endpoint",
    "filled",
    "http_tool",
    "open_source",
    "template",
    "url_template",
]
