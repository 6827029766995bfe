"""The base of the layer's models: immutable, open to unknown fields, built on first use."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """A value that crosses rooms. Unknown fields are dropped, so that newer peers can be read."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True, arbitrary_types_allowed=True)
