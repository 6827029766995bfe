"""The words of the layer: names are strings, JSON is JSON."""

from __future__ import annotations

from typing import Any, TypeAlias

CapabilityName: TypeAlias = str
ResourceId: TypeAlias = str
"""A resource is addressed by its URI."""
PromptId: TypeAlias = str
SessionId: TypeAlias = str
TurnId: TypeAlias = str

Json: TypeAlias = Any
"""A value that JSON can carry: None, bool, int, float, str, list of Json, dict of str to Json."""
JsonObject: TypeAlias = dict[str, Any]
MetadataMap: TypeAlias = dict[str, Any]
