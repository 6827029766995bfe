"""Runs in an environment with openai, anthropic and google-genai: reads exports as JSON lines, answers verdicts.

{"kind": "tools", "provider", "strict", "tools"}     -> {"faults": [...]}
{"kind": "call", "provider", "name", "arguments"}    -> {"call": what the SDK's own object dumps to}
"""

import copy
import json
import sys
from typing import Any

import anthropic
import openai
from anthropic.types import ToolParam, ToolUseBlock
from google.genai import types as genai
from openai.lib._pydantic import _ensure_strict_json_schema
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageFunctionToolCall
from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
from pydantic import TypeAdapter

SHAPES: dict[str, Any] = {
    "openai": ChatCompletionFunctionToolParam,
    "openai-responses": FunctionToolParam,
    "anthropic": ToolParam,
}


def of_typed_dicts(provider: str, tools: list[Any]) -> list[str]:
    faults = []
    for tool in tools:
        try:
            TypeAdapter(SHAPES[provider]).validate_python(tool, strict=True)
        except Exception as error:
            faults.append(f"{tool}: {error}")
        unknown = set(tool) - set(SHAPES[provider].__annotations__)
        if unknown:
            faults.append(f"{sorted(unknown)} is unknown to {provider}")
    return faults


def of_strict(provider: str, schema: dict[str, Any]) -> list[str]:
    """What the SDK's own strict conversion would still change."""
    if provider == "anthropic":
        made = anthropic.transform_schema(copy.deepcopy(schema))
    else:
        made = _ensure_strict_json_schema(copy.deepcopy(schema), path=(), root=schema)
    return [] if made == schema else [f"the SDK would change {schema} to {made}"]


def of_gemini(tools: list[Any]) -> list[str]:
    faults = []
    for tool in tools:
        try:
            read = genai.Tool.model_validate(tool)
            again = read.model_dump(mode="json", by_alias=True, exclude_unset=True)
        except Exception as error:
            faults.append(str(error))
            continue
        # Nothing is dropped on the way through the SDK's types; they spell types in capitals.
        if spelt(again) != spelt(tool):
            faults.append(f"read as {again}")
    return faults


def spelt(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: item.lower() if key == "type" and isinstance(item, str) else spelt(item) for key, item in value.items()
        }
    if isinstance(value, list):
        return [spelt(item) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def judged(asked: dict[str, Any]) -> list[str]:
    provider, tools = asked["provider"], asked["tools"]
    if provider == "gemini":
        return of_gemini(tools)
    faults = of_typed_dicts(provider, tools)
    if asked["strict"]:
        for tool in tools:
            inner = tool.get("function", tool)
            faults += of_strict(provider, inner.get("parameters") or inner["input_schema"])
    return faults


def called(asked: dict[str, Any]) -> Any:
    """The call as the provider's SDK would hand it out."""
    name, arguments = asked["name"], asked["arguments"]
    match asked["provider"]:
        case "openai":
            return ChatCompletionMessageFunctionToolCall.model_validate(
                {"id": "call_1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            ).model_dump(mode="json")
        case "openai-responses":
            return ResponseFunctionToolCall.model_validate(
                {"type": "function_call", "call_id": "c", "name": name, "arguments": json.dumps(arguments)}
            ).model_dump(mode="json")
        case "anthropic":
            return ToolUseBlock.model_validate(
                {"type": "tool_use", "id": "t", "name": name, "input": arguments}
            ).model_dump(mode="json")
        case _:
            return genai.Part.model_validate({"functionCall": {"name": name, "args": arguments}}).model_dump(
                mode="json"
            )


def main() -> None:
    versions = {"openai": openai.__version__, "anthropic": anthropic.__version__}
    print(json.dumps(versions), flush=True)  # noqa: T201 - a program
    for line in sys.stdin:
        asked = json.loads(line)
        answer = {"faults": judged(asked)} if asked["kind"] == "tools" else {"call": called(asked)}
        print(json.dumps(answer), flush=True)  # noqa: T201 - a program


main()
