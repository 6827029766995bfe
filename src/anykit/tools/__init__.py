"""Tools, toolkits, and resources and prompts made from functions."""

from .discretion import DISCRETION, hide
from .errors import Busy, ToolError, UnsendableResult, being_cancelled
from .offers import FunctionPrompt, FunctionResource, contents_of, messages_of, prompt, resource
from .permissions import PermissionKind, PermissionRequest
from .results import OUTPUT_LIMIT, ToolResult, cut, describe_part, jsonable, result_of, text_of, to_json, tool_result
from .threads import Threads
from .tool import (
    CALL_TIMEOUT,
    BenchTool,
    FunctionTool,
    LiftedTool,
    Occupied,
    Tool,
    ToolSpec,
    attempt,
    check_arguments,
    lift,
    repeatable,
    timed_out,
    tool,
)
from .toolkit import Bounds, Toolkit, ToolkitSpec

__all__ = [
    "CALL_TIMEOUT",
    "DISCRETION",
    "OUTPUT_LIMIT",
    "BenchTool",
    "Bounds",
    "Busy",
    "FunctionPrompt",
    "FunctionResource",
    "FunctionTool",
    "LiftedTool",
    "Occupied",
    "PermissionKind",
    "PermissionRequest",
    "Threads",
    "Tool",
    "ToolError",
    "ToolResult",
    "ToolSpec",
    "Toolkit",
    "ToolkitSpec",
    "UnsendableResult",
    "attempt",
    "being_cancelled",
    "check_arguments",
    "contents_of",
    "cut",
    "describe_part",
    "hide",
    "jsonable",
    "lift",
    "messages_of",
    "prompt",
    "repeatable",
    "resource",
    "result_of",
    "text_of",
    "timed_out",
    "to_json",
    "tool",
    "tool_result",
]
