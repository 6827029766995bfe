"""Memory: entries in tiers."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Int, ListOf, Number, WireModel, now


class MemoryErrorCode(StrEnum):
    MEMORY_FULL = "memory_full"
    MEMORY_NOT_FOUND = "memory_not_found"


class MemoryTier(StrEnum):
    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"


class MemoryEntry(WireModel):
    """One remembered thing."""

    key: dict[str, Any]  # composite key object
    content: Any  # stored JSON value
    tier: str  # working, episodic or semantic
    tags: ListOf[str] = Field(default_factory=list[str])  # labels used for filtering
    source: str = ""  # where it came from
    score: Number = 1.0  # importance weight
    ttl: Int = 0  # lifetime seconds; 0 keeps forever
    created_at: Number = Field(default_factory=now)  # creation time, Unix seconds
    updated_at: Number = Field(default_factory=now)  # last change time, Unix seconds


class MemoryInitRequest(A2EMessage):
    """`memory/init/req`, agent to host."""

    type: str = "memory/init/req"
    namespace: str = "default"  # logical store name
    scope: dict[str, Any] = Field(default_factory=dict[str, Any])  # string pairs narrowing the store
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class MemoryInitResponse(A2EMessage):
    """`memory/init/resp`, host to agent."""

    type: str = "memory/init/resp"
    req_id: str = ""
    memory_id: str  # handle for later calls
    namespace: str  # store name echoed
    success: bool = True  # did the operation succeed


class MemoryStoreRequest(A2EMessage):
    """`memory/store/req`, agent to host."""

    type: str = "memory/store/req"
    memory_id: str  # handle returned by memory/init
    entries: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MemoryEntry objects


class MemoryStoreResponse(A2EMessage):
    """`memory/store/resp`, host to agent."""

    type: str = "memory/store/resp"
    req_id: str = ""
    stored: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # keys that were written
    errors: ListOf[str] = Field(default_factory=list[str])  # one text per failed entry


class MemoryRetrieveRequest(A2EMessage):
    """`memory/retrieve/req`, agent to host."""

    type: str = "memory/retrieve/req"
    memory_id: str  # handle returned by memory/init
    keys: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # exact keys wanted
    query: str = ""  # similarity search text
    tags: ListOf[str] = Field(default_factory=list[str])  # labels used for filtering
    tier: str = ""  # one tier; empty means all
    limit: Int = 10  # maximum entries returned
    min_score: Number = 0.0  # lowest score accepted


class MemoryRetrieveResponse(A2EMessage):
    """`memory/retrieve/resp`, host to agent."""

    type: str = "memory/retrieve/resp"
    req_id: str = ""
    entries: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MemoryEntry objects
    total: Int = 0  # matches before the limit


class MemoryForgetRequest(A2EMessage):
    """`memory/forget/req`, agent to host."""

    type: str = "memory/forget/req"
    memory_id: str  # handle returned by memory/init
    keys: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # keys to delete
    tags: ListOf[str] = Field(default_factory=list[str])  # delete entries having these
    tier: str = "episodic"  # working, episodic or semantic


class MemoryForgetResponse(A2EMessage):
    """`memory/forget/resp`, host to agent."""

    type: str = "memory/forget/resp"
    req_id: str = ""
    deleted: Int = 0  # number removed
