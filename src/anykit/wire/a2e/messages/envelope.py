"""What every message of the wire shares: the envelope and the reading of numbers.

Unknown fields are dropped, so that newer peers can be read. Classes are built on first use. `id` and `ts` default as the
A2E documents say (uuid4 hex, the clock); the sessions of this room always pass both.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, TypeAlias, TypeVar
from uuid import uuid4

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError

A2E_VERSION = "1.0"


def new_id() -> str:
    """A message id as the protocol makes them: uuid4 as 32 hex digits."""
    return uuid4().hex


def now() -> float:
    """Unix seconds."""
    return time.time()


def _not_a_bool(value: Any) -> Any:
    if value is True or value is False:
        raise PydanticCustomError("number_type", "Input should be a number, not a boolean")
    return value


Int: TypeAlias = Annotated[int, BeforeValidator(_not_a_bool)]
"""An integer: `1.0` is one, `true` is not."""
Number: TypeAlias = Annotated[float, BeforeValidator(_not_a_bool)]
"""A number; a numeric string is read as one."""
T = TypeVar("T")


class _FirstFaultOnly:
    # pydantic's own `FailFast` cannot be hashed, and so not stand in a union.
    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if schema["type"] == "list":
            schema["fail_fast"] = True
        return schema


ListOf: TypeAlias = Annotated[list[T], _FirstFaultOnly()]
"""A list of which the first bad item is told, not each of a million."""


class WireModel(BaseModel):
    """The base of everything that crosses the wire."""

    model_config = ConfigDict(
        extra="ignore",
        defer_build=True,
        # An error text may be logged or sent, and a value may be a secret.
        hide_input_in_errors=True,
        # Keeps NaN visible in the output, where `encode` finds and refuses it; pydantic would write null.
        ser_json_inf_nan="constants",
    )


class Message(WireModel):
    """A message: it says its type. Only `SUBAGENT_*` messages have no more than that in common."""

    type: str


class A2EMessage(Message):
    """The envelope. Keys travel in the order `type`, `id`, `version`, `ts`, then the message's own."""

    type: str
    id: str = Field(default_factory=new_id)
    version: str = A2E_VERSION
    ts: Number = Field(default_factory=now)
