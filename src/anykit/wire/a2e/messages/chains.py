"""Chains: several tools and skills run as one graph."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .base import A2EEvent
from .envelope import A2EMessage, Int, ListOf, WireModel, new_id


class ChainErrorCode(StrEnum):
    CHAIN_CYCLE = "chain_cycle"
    CHAIN_NODE_ERROR = "chain_node_error"


class ChainNode(WireModel):
    """One node of a chain."""

    node_id: str  # key of the node
    kind: str  # tool, skill, proc, branch or map
    name: str = ""  # tool or skill to invoke
    input: dict[str, Any] = Field(default_factory=dict[str, Any])  # fixed input values
    input_map: dict[str, Any] = Field(default_factory=dict[str, Any])  # input name to context expression
    condition: str = ""  # boolean expression for a branch
    true_node: str = ""  # next node when true
    false_node: str = ""  # next node when false
    items_path: str = ""  # expression giving the list
    map_node: str = ""  # node run per item
    next_node: str = ""  # default following node
    on_error: str = "abort"  # abort, skip or a node id


class ChainRequest(A2EMessage):
    """`chain/req`, agent to host."""

    type: str = "chain/req"
    session_id: str = ""  # session handed out at handshake
    chain_id: str = Field(default_factory=new_id)  # caller or host chosen key
    nodes: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of ChainNode objects
    entry_node: str = ""  # where execution starts
    initial_input: dict[str, Any] = Field(default_factory=dict[str, Any])  # seed values for the context
    correlation_id: str = ""  # caller's tracing tag for a turn
    streaming: bool = True  # caller wants intermediate events
    timeout: Int = 300  # time limit in seconds


class ChainEvent(A2EEvent):
    """`chain/event`, host to agent."""

    type: str = "chain/event"
    node_id: str = ""  # node the event is about
    phase: str = "start"  # start, done, skip or error
    output: Any = None  # node output when done
    error: str = ""  # failure text, empty when fine


class ChainResponse(A2EMessage):
    """`chain/resp`, host to agent."""

    type: str = "chain/resp"
    req_id: str = ""
    chain_id: str = ""  # chain that ran
    success: bool = False  # did the operation succeed
    outputs: dict[str, Any] = Field(default_factory=dict[str, Any])  # output per node id
    final_output: Any = None  # output of the last node
    duration_ms: Int = 0  # elapsed milliseconds
    nodes_run: Int = 0  # how many nodes ran
    error: dict[str, Any] | None = None  # code and message when failed
