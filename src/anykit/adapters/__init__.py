"""The shapes that others want: tools and messages for model providers."""

from .exports import PROVIDERS, Exported, Exports, Provider, Remark, Strictness, StrictRefused
from .messages import FORMATS, Format, shaped_messages

__all__ = [
    "FORMATS",
    "PROVIDERS",
    "Exported",
    "Exports",
    "Format",
    "Provider",
    "Remark",
    "StrictRefused",
    "Strictness",
    "shaped_messages",
]
