"""MCP servers behind a host: registration, resources, prompts, sampling, roots."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from .envelope import A2EMessage, Int, ListOf, Number, WireModel, new_id


class MCPTransport(StrEnum):
    STDIO = "stdio"
    SSE = "sse"
    WS = "ws"


class MCPServerStatus(StrEnum):
    CONNECTING = "connecting"
    READY = "ready"
    ERROR = "error"
    DISCONNECTED = "disconnected"


class MCPErrorCode(StrEnum):
    MCP_SERVER_NOT_FOUND = "mcp_server_not_found"
    MCP_SERVER_UNAVAILABLE = "mcp_server_unavailable"
    MCP_TOOL_NOT_FOUND = "mcp_tool_not_found"
    MCP_RESOURCE_NOT_FOUND = "mcp_resource_not_found"
    MCP_PROMPT_NOT_FOUND = "mcp_prompt_not_found"
    MCP_TRANSPORT_ERROR = "mcp_transport_error"
    MCP_PROTOCOL_ERROR = "mcp_protocol_error"
    MCP_SAMPLING_REFUSED = "mcp_sampling_refused"
    MCP_CAPABILITY_MISSING = "mcp_capability_missing"


class MCPServerConfig(WireModel):
    """How to reach an MCP server."""

    server_id: str = Field(default_factory=new_id)  # chosen or generated server key
    name: str = ""  # display name
    transport: str = "stdio"  # stdio, sse or ws
    cmd: ListOf[str] = Field(default_factory=list[str])  # program and arguments to spawn
    cwd: str = ""  # working directory
    env: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # extra environment for the child
    url: str = ""  # endpoint for sse or ws
    headers: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # HTTP headers to send
    timeout: Int = 300  # seconds per JSON-RPC call
    auto_reconnect: bool = True  # reconnect after a drop
    tool_allow_list: ListOf[str] = Field(default_factory=list[str])  # permitted tools; empty permits all
    resource_allow_list: ListOf[str] = Field(default_factory=list[str])  # permitted resources; empty permits all


class MCPServerInfo(WireModel):
    """An MCP server as the host sees it."""

    server_id: str  # which registered MCP server
    name: str  # display name
    transport: str  # transport in use
    status: str = "disconnected"  # connecting, ready, error or disconnected
    mcp_version: str = ""  # negotiated MCP protocol version
    server_name: str = ""  # name the server reports
    server_version: str = ""  # version the server reports
    tools_count: Int = 0  # number of tools found
    resources_count: Int = 0  # number of resources found
    prompts_count: Int = 0  # number of prompts found
    last_ping_ms: Number = 0.0  # latest ping round trip
    error: str = ""  # latest failure text
    connected_at: Number = 0.0  # connect time, Unix seconds


class MCPResource(WireModel):
    """A resource as it is listed."""

    uri: str  # resource address
    name: str = ""  # display name
    description: str = ""  # human-readable explanation
    mime_type: str = ""  # media type of the content
    server_id: str = ""  # which registered MCP server
    annotations: dict[str, Any] = Field(default_factory=dict[str, Any])  # MCP annotations, passed through


class MCPResourceContent(WireModel):
    """A resource as it is read: text, or a base64 blob."""

    uri: str  # resource address
    mime_type: str = "text/plain"  # media type of the content
    text: str = ""  # text body
    blob: str = ""  # base64 body
    type: str = "text"  # text or blob


class MCPPrompt(WireModel):
    """A prompt as it is listed."""

    name: str  # prompt name
    description: str = ""  # human-readable explanation
    server_id: str = ""  # which registered MCP server
    arguments: ListOf[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]]
    )  # argument specs: name, description, required


class MCPPromptMessage(WireModel):
    """One message of a prompt."""

    role: str  # user or assistant
    content: dict[str, Any]  # MCP content block


class MCPRoot(WireModel):
    """A root of the agent."""

    uri: str  # root location, file URI
    name: str = ""  # display name


class MCPServerRegisterRequest(A2EMessage):
    """`mcp/server/register/req`, agent to host."""

    type: str = "mcp/server/register/req"
    config: dict[str, Any] = Field(default_factory=dict[str, Any], repr=False)  # an MCPServerConfig object


class MCPServerRegisterResponse(A2EMessage):
    """`mcp/server/register/resp`, host to agent."""

    type: str = "mcp/server/register/resp"
    req_id: str = ""
    ok: bool = False  # did the operation succeed
    server: dict[str, Any] = Field(default_factory=dict[str, Any])  # an MCPServerInfo object
    error: str = ""  # failure text, empty when fine


class MCPServerListRequest(A2EMessage):
    """`mcp/server/list/req`, agent to host."""

    type: str = "mcp/server/list/req"
    status_filter: str = ""  # only servers in this state


class MCPServerListResponse(A2EMessage):
    """`mcp/server/list/resp`, host to agent."""

    type: str = "mcp/server/list/resp"
    req_id: str = ""
    servers: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPServerInfo objects


class MCPServerUnregisterRequest(A2EMessage):
    """`mcp/server/unregister/req`, agent to host."""

    type: str = "mcp/server/unregister/req"
    server_id: str = ""  # which registered MCP server


class MCPServerUnregisterResponse(A2EMessage):
    """`mcp/server/unregister/resp`, host to agent."""

    type: str = "mcp/server/unregister/resp"
    req_id: str = ""
    ok: bool = False  # did the operation succeed
    server_id: str = ""  # which registered MCP server


class MCPServerPush(A2EMessage):
    """`mcp/server/push`, host to agent."""

    type: str = "mcp/server/push"
    server_id: str = ""  # which registered MCP server
    method: str = ""  # MCP notification method name
    params: dict[str, Any] = Field(default_factory=dict[str, Any])  # notification parameters


class MCPResourceListRequest(A2EMessage):
    """`mcp/resource/list/req`, agent to host."""

    type: str = "mcp/resource/list/req"
    server_id: str = ""  # which registered MCP server
    cursor: str = ""  # page token from an earlier reply


class MCPResourceListResponse(A2EMessage):
    """`mcp/resource/list/resp`, host to agent."""

    type: str = "mcp/resource/list/resp"
    req_id: str = ""
    resources: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPResource objects
    next_cursor: str = ""  # token for the following page


class MCPResourceReadRequest(A2EMessage):
    """`mcp/resource/read/req`, agent to host."""

    type: str = "mcp/resource/read/req"
    uri: str = ""  # resource address
    server_id: str = ""  # which registered MCP server


class MCPResourceReadResponse(A2EMessage):
    """`mcp/resource/read/resp`, host to agent."""

    type: str = "mcp/resource/read/resp"
    req_id: str = ""
    contents: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPResourceContent objects
    server_id: str = ""  # which registered MCP server
    error: str = ""  # failure text, empty when fine


class MCPResourceSubscribeRequest(A2EMessage):
    """`mcp/resource/subscribe/req`, agent to host."""

    type: str = "mcp/resource/subscribe/req"
    uri: str = ""  # resource address
    server_id: str = ""  # which registered MCP server


class MCPResourceSubscribeResponse(A2EMessage):
    """`mcp/resource/subscribe/resp`, host to agent."""

    type: str = "mcp/resource/subscribe/resp"
    req_id: str = ""
    ok: bool = False  # did the operation succeed
    error: str = ""  # failure text, empty when fine


class MCPPromptListRequest(A2EMessage):
    """`mcp/prompt/list/req`, agent to host."""

    type: str = "mcp/prompt/list/req"
    server_id: str = ""  # which registered MCP server
    cursor: str = ""  # page token from an earlier reply


class MCPPromptListResponse(A2EMessage):
    """`mcp/prompt/list/resp`, host to agent."""

    type: str = "mcp/prompt/list/resp"
    req_id: str = ""
    prompts: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPPrompt objects
    next_cursor: str = ""  # token for the following page


class MCPPromptGetRequest(A2EMessage):
    """`mcp/prompt/get/req`, agent to host."""

    type: str = "mcp/prompt/get/req"
    name: str = ""  # prompt to render
    arguments: dict[str, Any] = Field(default_factory=dict[str, Any])  # values for the template
    server_id: str = ""  # which registered MCP server


class MCPPromptGetResponse(A2EMessage):
    """`mcp/prompt/get/resp`, host to agent."""

    type: str = "mcp/prompt/get/resp"
    req_id: str = ""
    description: str = ""  # human-readable explanation
    messages: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPPromptMessage objects
    server_id: str = ""  # which registered MCP server
    error: str = ""  # failure text, empty when fine


class MCPSamplingRequest(A2EMessage):
    """`mcp/sample/req`, host to agent."""

    type: str = "mcp/sample/req"
    server_id: str = ""  # which registered MCP server
    mcp_request_id: str = ""  # JSON-RPC id inside that server
    messages: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # conversation to complete
    model_preferences: dict[str, Any] = Field(default_factory=dict[str, Any])  # model choice hints
    system_prompt: str = ""  # system prompt to use
    include_context: str = "none"  # none, thisServer or allServers
    temperature: Number = 1.0  # sampling temperature
    max_tokens: Int = 1024  # output token limit
    stop_sequences: ListOf[str] = Field(default_factory=list[str])  # strings that end generation
    metadata: dict[str, Any] = Field(default_factory=dict[str, Any])  # free-form extra key/value data


class MCPSamplingResponse(A2EMessage):
    """`mcp/sample/resp`, agent to host."""

    type: str = "mcp/sample/resp"
    req_id: str = ""
    server_id: str = ""  # which registered MCP server
    mcp_request_id: str = ""  # JSON-RPC id inside that server
    role: str = "assistant"  # role of the produced message
    content: dict[str, Any] = Field(default_factory=dict[str, Any])  # produced MCP content block
    model: str = ""  # model that answered
    stop_reason: str = ""  # endTurn, stopSequence or maxTokens
    error: str = ""  # set when the agent refuses


class MCPRootsListRequest(A2EMessage):
    """`mcp/root/list/req`, host to agent."""

    type: str = "mcp/root/list/req"
    server_id: str = ""  # which registered MCP server
    mcp_request_id: str = ""  # JSON-RPC id inside that server


class MCPRootsListResponse(A2EMessage):
    """`mcp/root/list/resp`, agent to host."""

    type: str = "mcp/root/list/resp"
    req_id: str = ""
    server_id: str = ""  # which registered MCP server
    mcp_request_id: str = ""  # JSON-RPC id inside that server
    roots: ListOf[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])  # list of MCPRoot objects
