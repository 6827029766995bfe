"""The error codes of the wire, and the one way to read a peer's.

Ours are lower case. Peers write them in upper case, leave out the prefix of the `mcp` codes, or call an unknown type a
`parse_error`; `normal_code` reads all of that as the code that was meant.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

ERROR_CODES: Final[Mapping[str, str | None]] = MappingProxyType(
    {
        "parse_error": None,
        "runtime_error": None,
        "invalid_message": None,
        "version_mismatch": None,
        "unauthorized": None,
        "schema_violation": None,
        "timeout": None,
        "out_of_memory": None,
        "sandbox_crash": None,
        "capability_missing": None,
        "unknown_tool": "tools",
        "tool_denied": "tools",
        "tool_error": "tools",
        "mcp_server_not_found": "mcp",
        "mcp_server_unavailable": "mcp",
        "mcp_tool_not_found": "mcp",
        "mcp_resource_not_found": "mcp",
        "mcp_prompt_not_found": "mcp",
        "mcp_transport_error": "mcp",
        "mcp_protocol_error": "mcp",
        "mcp_sampling_refused": "mcp",
        "mcp_capability_missing": "mcp",
        "unknown_skill": "skill",
        "skill_error": "skill",
        "chain_cycle": "chains",
        "chain_node_error": "chains",
        "memory_full": "memory",
        "memory_not_found": "memory",
        "unknown_proc": "proc",
        "proc_dead": "proc",
        "proc_limit": "proc",
        "unknown_action": "env",
        "reset_denied": "env",
    }
)
"""Every code, and the capability that brings it; None for the base protocol."""


def normal_code(code: str, message: str = "") -> str:
    """The code that a peer means by `code`, with the error's `message` to tell an unknown type from bad JSON.

    A code that is in no table is kept, in lower case.
    """
    lower = code.strip().lower().removeprefix("error/")
    if lower == "unknown_type" or (lower == "parse_error" and message.startswith("Unknown type")):
        return "invalid_message"
    if lower not in ERROR_CODES and f"mcp_{lower}" in ERROR_CODES:
        return f"mcp_{lower}"
    return lower
