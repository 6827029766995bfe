"""Child processes of the host."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from .base import A2EEvent
from .envelope import A2EMessage, Int, ListOf, Number, WireModel


class ProcState(StrEnum):
    RUNNING = "running"
    STOPPED = "stopped"
    CRASHED = "crashed"
    TIMEDOUT = "timedout"


class ProcMCPError(StrEnum):
    UNKNOWN_PROC = "unknown_proc"
    PROC_DEAD = "proc_dead"
    PROC_LIMIT = "proc_limit"


class ProcStatus(WireModel):
    """A child process as it is."""

    proc_id: str  # handle of the child process
    cmd: str  # command that was run
    state: str  # ProcState value
    pid: Int = 0  # operating-system process id
    exit_code: Int | None = None  # exit status once ended
    started_at: Number = 0.0  # start time, Unix seconds


class ProcSpawnRequest(A2EMessage):
    """`proc/spawn/req`, agent to host."""

    type: str = "proc/spawn/req"
    session_id: str = ""  # session handed out at handshake
    cmd: ListOf[str] = Field(default_factory=list[str])  # program and arguments
    cwd: str = ""  # working directory
    env: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # extra environment variables
    stdin_mode: str = "pipe"  # pipe or null
    timeout: Int = 0  # auto-kill seconds; 0 never


class ProcSpawnResponse(A2EMessage):
    """`proc/spawn/resp`, host to agent."""

    type: str = "proc/spawn/resp"
    req_id: str = ""
    proc_id: str = ""  # handle of the child process
    ok: bool = False  # did the operation succeed
    pid: Int = 0  # operating-system process id
    error: str = ""  # failure text, empty when fine


class ProcWriteRequest(A2EMessage):
    """`proc/write/req`, agent to host."""

    type: str = "proc/write/req"
    proc_id: str = ""  # handle of the child process
    data: str = ""  # text for the child's stdin
    eof: bool = False  # close stdin afterwards


class ProcWriteResponse(A2EMessage):
    """`proc/write/resp`, host to agent."""

    type: str = "proc/write/resp"
    req_id: str = ""
    proc_id: str = ""  # handle of the child process
    ok: bool = False  # did the operation succeed
    pid: Int = 0  # operating-system process id
    error: str = ""  # failure text, empty when fine


def _as_object(data: Any) -> Any:
    # The documents say a string, the code an object: both are read, the object is sent.
    return {"text": data} if isinstance(data, str) else data


class ProcReadEvent(A2EEvent):
    """`proc/read/event`, host to agent."""

    type: str = "proc/read/event"
    data: Annotated[dict[str, Any], BeforeValidator(_as_object)] = Field(default_factory=dict[str, Any])
    proc_id: str = ""  # handle of the child process
    stream_type: str = "stdout"  # stdout or stderr


class ProcKillRequest(A2EMessage):
    """`proc/kill/req`, agent to host."""

    type: str = "proc/kill/req"
    proc_id: str = ""  # handle of the child process
    signal: str = "SIGTERM"  # signal name to send


class ProcKillResponse(A2EMessage):
    """`proc/kill/resp`, host to agent."""

    type: str = "proc/kill/resp"
    req_id: str = ""
    ok: bool = False  # did the operation succeed
    state: str = ""  # state after the signal


class ProcStatusRequest(A2EMessage):
    """`proc/status/req`, agent to host."""

    type: str = "proc/status/req"
    proc_id: str = ""  # process; empty means all


class ProcStatusResponse(A2EMessage):
    """`proc/status/resp`, host to agent."""

    type: str = "proc/status/resp"
    req_id: str = ""
    proc_id: str  # handle of the child process
    status: str  # current process state
    error: str  # failure text, empty when fine
