"""The server that the conformance suite asks for, made of what people make theirs of: `python server.py PORT`.

Names, texts and schemas are the suite's.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from anykit import ToolError, Workbench, prompt, resource, tool
from anykit.capabilities import (
    Answer,
    AudioPart,
    BlobPart,
    CapabilityContext,
    EmbeddedResource,
    ImagePart,
    InvocableRequest,
    InvocableResult,
    InvocableSpec,
    Log,
    Progress,
    PromptContents,
    PromptMessage,
    Question,
    Suspension,
    TextPart,
)
from anykit.servers.http import Address, Server
from anykit.servers.mcp import mcp_mount

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")
NAME_FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


# tools


@tool
async def test_simple_text() -> TextPart:
    """Gives a text."""
    return TextPart(text="This is a simple text response for testing.")


@tool
async def test_image_content() -> ImagePart:
    """Gives a picture."""
    return ImagePart(data=PNG, media_type="image/png")


@tool
async def test_audio_content() -> AudioPart:
    """Gives a sound."""
    return AudioPart(data=WAV, media_type="audio/wav")


@tool
async def test_embedded_resource() -> EmbeddedResource:
    """Gives a resource along."""
    return EmbeddedResource(
        uri="test://embedded-resource", media_type="text/plain", text="This is an embedded resource content."
    )


@tool
async def test_multiple_content_types() -> list[Any]:
    """Gives one of each."""
    return [
        TextPart(text="Multiple content types test:"),
        ImagePart(data=PNG, media_type="image/png"),
        EmbeddedResource(
            uri="test://mixed-content-resource", media_type="application/json", text='{"test":"data","value":123}'
        ),
    ]


@tool
async def test_tool_with_logging(context: CapabilityContext) -> str:
    """Tells what it does."""
    context.emit(Log("info", "Tool execution started"))
    await asyncio.sleep(0.05)
    context.emit(Log("info", "Tool processing data"))
    await asyncio.sleep(0.05)
    context.emit(Log("info", "Tool execution completed"))
    return "Tool with logging executed"


@tool
async def test_logging_tool(context: CapabilityContext) -> str:
    """Tells what it does, to whoever wants to know."""
    context.emit(Log("info", "Something happened"))
    return "Logged"


@tool
async def test_error_handling() -> None:
    """Fails."""
    raise ToolError("This tool intentionally returns an error for testing")


@tool
async def test_tool_with_progress(context: CapabilityContext) -> str:
    """Tells how far it is."""
    for done in (0, 50, 100):
        context.emit(Progress(done, 100))
        await asyncio.sleep(0.05)
    return "Tool with progress executed"


@tool
async def test_elicitation(message: str, context: CapabilityContext) -> str:
    """Asks for a name and an address."""
    form = {
        "type": "object",
        "properties": {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        "required": ["username", "email"],
    }
    return f"User response: {_said(await context.ask(Question('input', message, form)))}"


@tool
async def test_elicitation_sep1034_defaults(context: CapabilityContext) -> str:
    """Asks with defaults of every type."""
    form = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
            "verified": {"type": "boolean", "default": True},
        },
    }
    answer = await context.ask(Question("input", "Please review and update the form fields with defaults", form))
    return f"Elicitation completed: {_said(answer)}"


@tool
async def test_elicitation_sep1330_enums(context: CapabilityContext) -> str:
    """Asks for one or many of several."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"},
    ]
    form = {
        "type": "object",
        "properties": {
            "untitledSingle": {"type": "string", "enum": options},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        },
    }
    return f"Elicitation completed: {_said(await context.ask(Question('input', 'Please choose', form)))}"


@tool
async def test_streaming_elicitation(context: CapabilityContext) -> str:
    """Tells how far it is, then asks."""
    context.emit(Progress(1, 2))
    return _said(await context.ask(Question("input", "What is your name?", NAME_FORM)))


def _said(answer: Answer) -> str:
    return f"action={'accept' if answer.ok else 'decline'}, content={answer.data}"


# questions that a provider asks in MCP's own words


Requests = Mapping[str, Mapping[str, Any]]


def elicit(message: str, form: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An elicitation."""
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": dict(form or NAME_FORM)}}


def sample(text: str, tokens: int = 100) -> dict[str, Any]:
    """A sampling."""
    messages = [{"role": "user", "content": {"type": "text", "text": text}}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: dict[str, Any] = {"method": "roots/list", "params": {}}


@dataclass(frozen=True)
class Asking:
    """A tool that asks, in one round or several, and tells what it was told."""

    name: str
    rounds: tuple[Requests, ...]
    told: Callable[[Mapping[str, Any]], str] = str
    schema: Mapping[str, Any] | None = None

    @property
    def spec(self) -> InvocableSpec:
        schema = dict(self.schema or {"type": "object", "properties": {}})
        return InvocableSpec(name=self.name, description="Asks in MCP's own words", input_schema=schema)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        done = 0 if request.resume is None else request.resume.state["round"] + 1
        if done < len(self.rounds):
            asked = {key: dict(one) for key, one in self.rounds[done].items()}
            if "prompt" in request.input:
                asked = {key: sample(request.input["prompt"]) for key in asked}
            return Suspension(
                id="", kind="input", prompt="It asks", data={"inputRequests": asked}, state={"round": done}
            )
        assert request.resume is not None
        return InvocableResult(text=self.told(request.resume.answer.data["inputResponses"]))


def model_said(responses: Mapping[str, Any]) -> str:
    """What a model answered."""
    return f"LLM response: {next(iter(responses.values()))['content']['text']}"


CONFIRM: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
COLOR: dict[str, Any] = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}

ASKING = [
    Asking(
        "test_sampling",
        ({"answer": sample("")},),
        model_said,
        {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]},
    ),
    Asking(
        "test_input_required_result_elicitation",
        ({"user_name": elicit("What is your name?")},),
        lambda told: f"Hello, {told['user_name'].get('content', {}).get('name')}!",
    ),
    Asking(
        "test_input_required_result_sampling",
        ({"capital_question": sample("What is the capital of France?")},),
        model_said,
    ),
    Asking("test_input_required_result_list_roots", ({"client_roots": ROOTS},)),
    Asking(
        "test_input_required_result_request_state",
        ({"confirm": elicit("Please confirm", CONFIRM)},),
        lambda told: "state-ok",
    ),
    Asking("test_input_required_result_tampered_state", ({"confirm": elicit("Please confirm", CONFIRM)},)),
    Asking(
        "test_input_required_result_multiple_inputs",
        (
            {
                "user_name": elicit("What is your name?"),
                "greeting": sample("Generate a greeting", 50),
                "client_roots": ROOTS,
            },
        ),
    ),
    Asking(
        "test_input_required_result_multi_round",
        (
            {"step1": elicit("Step 1: What is your name?")},
            {"step2": elicit("Step 2: What is your favorite color?", COLOR)},
        ),
    ),
    Asking(
        "test_input_required_result_capabilities",
        ({"user_name": elicit("What is your name?"), "greeting": sample("Generate a greeting")},),
    ),
    Asking("test_missing_capability", ({"capital_question": sample("What is the capital of France?")},)),
]


@dataclass(frozen=True)
class Fixed:
    """A tool with a schema of its own that says nothing much."""

    name: str
    schema: Mapping[str, Any]

    @property
    def spec(self) -> InvocableSpec:
        return InvocableSpec(name=self.name, description="Has a schema of its own", input_schema=dict(self.schema))

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        return InvocableResult(text="ok")


FIXED = [
    Fixed(
        "json_schema_2020_12_tool",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "$defs": {
                "address": {
                    "$anchor": "addressDef",
                    "type": "object",
                    "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
                }
            },
            "properties": {
                "name": {"type": "string"},
                "address": {"$ref": "#/$defs/address"},
                "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                "phone": {"type": "string"},
                "email": {"type": "string"},
            },
            "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
            "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
            "then": {"required": ["phone"]},
            "else": {"required": ["email"]},
            "additionalProperties": False,
        },
    ),
    Fixed(
        "test_headers",
        {
            "type": "object",
            "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
            "required": ["region"],
        },
    ),
]


# resources


@resource("test://static-text", media_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", media_type="image/png")
def static_binary() -> BlobPart:
    """A picture."""
    return BlobPart(data=PNG, media_type="image/png")


@resource("test://watched-resource", media_type="text/plain")
def watched() -> str:
    """A text that may change."""
    return "watched"


@resource("test://template/{id}/data", media_type="application/json")
def template(id: str) -> dict[str, Any]:
    """One of many."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# prompts


@prompt
def test_simple_prompt() -> str:
    """Says something."""
    return "This is a simple prompt for testing."


@prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """Says what it is given.

    Args:
        arg1: First test argument
        arg2: Second test argument
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> PromptContents:
    """Gives a resource along.

    Args:
        resourceUri: URI of the resource to embed
    """
    part = EmbeddedResource(uri=resourceUri, media_type="text/plain", text="Embedded resource content for testing.")
    text = TextPart(text="Please process the embedded resource above.")
    return PromptContents(messages=(PromptMessage(role="user", content=(part, text)),))


@prompt
def test_prompt_with_image() -> PromptContents:
    """Gives a picture along."""
    text = TextPart(text="Please analyze the image above.")
    part = ImagePart(data=PNG, media_type="image/png")
    return PromptContents(messages=(PromptMessage(role="user", content=(part, text)),))


TOOLS = [
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_tool_with_logging,
    test_logging_tool,
    test_error_handling,
    test_tool_with_progress,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
    test_streaming_elicitation,
]
RESOURCES = [static_text, static_binary, watched, template]
PROMPTS = [
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
]


def changing(bench: Workbench) -> list[Any]:
    """Tools that change what there is."""
    numbers = iter(range(1, 1000))

    async def appeared() -> str:
        """Was not there before."""
        return "here"

    @tool
    async def test_trigger_tool_change() -> str:
        """Adds a tool."""
        bench.register(tool(name=f"appeared_{next(numbers)}")(appeared))
        return "changed"

    @tool
    async def test_trigger_prompt_change() -> str:
        """Adds a prompt."""

        async def asked() -> str:
            """Was not there before."""
            return "here"

        await bench.add(prompt(name=f"appeared_{next(numbers)}")(asked))
        return "changed"

    return [test_trigger_tool_change, test_trigger_prompt_change]


async def main(port: int) -> None:
    async with Workbench(*TOOLS, *ASKING, *FIXED, *RESOURCES, *PROMPTS) as bench:
        bench.register(*changing(bench))

        def listens(address: Address) -> None:
            print(f"{address.url}/mcp", flush=True)  # noqa: T201 - whoever started it waits for this line

        await Server([mcp_mount(bench, token="")], port=port, listening=listens).serve()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
