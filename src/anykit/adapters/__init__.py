"""The shapes that others want: messages for model providers."""

from .messages import FORMATS, Format, shaped_messages

__all__ = ["FORMATS", "Format", "shaped_messages"]
