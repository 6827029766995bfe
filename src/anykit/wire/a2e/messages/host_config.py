"""What a host of the reference reads from its configuration file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import ConfigDict, Field, HttpUrl

from .envelope import Int, ListOf, Number, WireModel, new_id


def _host_id() -> str:
    return new_id()[:8]


class ServerConfig(WireModel):
    """Where the host listens."""

    host: str | None = "0.0.0.0"  # address to bind
    port: Int | None = 8765  # TCP port


class AuditRotateConfig(WireModel):
    """When the audit log rolls over."""

    max_bytes: Int = 10485760  # size that triggers rotation
    backup_count: Int = 5  # rotated files kept


class AuditConfig(WireModel):
    """The audit log."""

    enabled: bool = False  # switch it on
    path: str | None = None  # file to write
    rotate: AuditRotateConfig = Field(default_factory=lambda: AuditRotateConfig())  # rotation limits
    session_id_source: str = "uuid"  # host_id or uuid


class PluginMeta(WireModel):
    """What the host does with a plugin; further keys are the plugin's own."""

    model_config = ConfigDict(extra="allow")

    enabled: bool = True  # switch it on
    priority: Int = 0  # higher runs first
    exclusive: bool = False  # top handler answers alone


class PluginConfig(WireModel):
    """One plugin of the host."""

    name: str  # instance name, unique key
    type: str  # kind string
    cls: str  # dotted import path of class
    metadata: PluginMeta | None = Field(
        default_factory=lambda: PluginMeta()
    )  # enabled, priority, exclusive + plugin settings


class SnapshotStoreConfig(WireModel):
    """Where snapshots lie."""

    type: str = "file"  # kind string
    config: dict[str, Any] = Field(default_factory=dict[str, Any])  # settings of that kind


class HTTPTransportConfig(WireModel):
    """Over HTTP."""

    base_url: HttpUrl  # where the HTTP host listens
    send_path: str = "/send"  # POST path
    stream_path: str = "/stream"  # SSE path


class SubprocessTransportConfig(WireModel):
    """As a child process."""

    command: str | None = None  # host command line
    env: dict[str, Any] | None = None  # extra environment
    cwd: str | None = None  # working directory


class DirectTransportConfig(WireModel):
    """In the same process: nothing to say."""


class TransportConfig(WireModel):
    """How agents reach the host."""

    type: str  # kind string
    config: HTTPTransportConfig | DirectTransportConfig | SubprocessTransportConfig  # settings of that kind


class A2EHostConfig(WireModel):
    """The whole file."""

    host_id: str = Field(default_factory=_host_id)  # identity of this host
    server: ServerConfig  # bind address and port
    auth_token: str | None = Field(default=None, repr=False)  # shared secret
    transport: TransportConfig  # transport kind and settings
    audit: AuditConfig = Field(default_factory=lambda: AuditConfig())  # audit log settings
    plugins: ListOf[PluginConfig] = Field(default_factory=list[PluginConfig])  # list of PluginConfig
    snapshot_store: SnapshotStoreConfig | None = None  # where snapshots go
    snapshot_mode: str = "hybrid"  # host, plugin or hybrid
    audit_log_path: Path | None = None  # second audit path
    global_limits: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form limits


class AuditEntry(WireModel):
    """One line of the audit log."""

    ts: Number  # time, Unix seconds
    session_id: str  # audit session id
    req_id: str
    correlation_id: str  # same as req_id
    success: bool  # no error reply
    duration_ms: Int  # handling time
    error_code: str | None = None  # code of the error
    input_bytes: Int = 0  # request size
    output_bytes: Int = 0  # reply size
