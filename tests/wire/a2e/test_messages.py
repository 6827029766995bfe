"""Every class of the wire against what the protocol says of it (`tests/vectors/a2e/messages.json`)."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from anykit.wire.a2e import MESSAGE_TYPES, TYPE_ALIASES, DecodeError, ToolCallRequest, ToolkitDefinition, decode, encode
from anykit.wire.a2e.messages import host_config, mcp, multi_agent, skills, subagents
from anykit.wire.a2e.messages.envelope import WireModel
from anykit.wire.a2e.messages.learn import LearnRefinementReviewResponse
from anykit.wire.a2e.messages.proc import ProcReadEvent

VECTORS: dict[str, Any] = json.loads((Path(__file__).parents[2] / "vectors/a2e/messages.json").read_text())
MESSAGES: dict[str, dict[str, Any]] = VECTORS["messages"]
MODELS: dict[str, dict[str, Any]] = VECTORS["models"]
ENUMS: dict[str, list[str]] = VECTORS["enums"]

MODULES = sorted({said["module"] for said in MESSAGES.values()})


def messages_of(module: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, said) for name, said in MESSAGES.items() if said["module"] == module]


def model_of(module: str, name: str) -> type[BaseModel]:
    found = getattr(import_module(f"anykit.wire.a2e.messages.{module}"), name)
    assert issubclass(found, BaseModel)
    return found


def required_of(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: field["sample"] for name, field in fields.items() if field["required"]}


def check_fields(model: BaseModel, fields: dict[str, Any]) -> None:
    assert list(type(model).model_fields) == list(fields), "the order of the keys on the wire"
    for name, field in fields.items():
        assert type(model).model_fields[name].is_required() is field["required"], name
        value = to_jsonable_python(getattr(model, name))
        if "default" in field:
            assert value == field["default"], name
            assert type(value) is type(field["default"]) or isinstance(value, float), name
        elif field.get("generated"):
            assert value, name


def test_there_are_136_message_types() -> None:
    assert len(MESSAGES) == 136
    assert set(MESSAGE_TYPES) == set(MESSAGES)


@pytest.mark.parametrize("module", MODULES)
def test_messages_have_the_fields_and_defaults_of_the_protocol(module: str) -> None:
    for name, said in messages_of(module):
        kind = MESSAGE_TYPES[name]
        assert (kind.capability, kind.sender) == (said["capability"], said["sender"]), name
        assert kind.model is model_of(module, said["class"]), name
        check_fields(kind.model.model_validate({"type": name, **required_of(said["fields"])}), said["fields"])


@pytest.mark.parametrize("module", MODULES)
def test_messages_are_read_from_what_is_required_and_written_in_full(module: str) -> None:
    for name, said in messages_of(module):
        fields = said["fields"]
        message = decode(json.dumps({"type": name, **required_of(fields), "x-unknown": {"deep": [1]}}).encode())
        line = encode(message)
        written = json.loads(line)
        assert list(written) == list(fields), name
        assert written["type"] == name
        assert line == json.dumps(written, separators=(",", ":")).encode(), name
        assert encode(decode(line)) == line, name


@pytest.mark.parametrize("module", MODULES)
def test_a_message_without_a_required_field_is_refused_by_its_name(module: str) -> None:
    for name, said in messages_of(module):
        required = required_of(said["fields"])
        for missing in required:
            rest = {field: value for field, value in required.items() if field != missing}
            with pytest.raises(DecodeError) as caught:
                decode(json.dumps({"type": name, "id": "i", **rest}).encode())
            assert (caught.value.code, caught.value.detail["field"]) == ("schema_violation", missing), name


def test_models_have_the_fields_and_defaults_of_the_protocol() -> None:
    for name, fields in MODELS.items():
        module, _, class_name = name.partition(".")
        if module != "host_config":
            check_fields(model_of(module, class_name).model_validate(required_of(fields)), fields)


def test_enums_have_the_values_of_the_protocol() -> None:
    for name, expected in ENUMS.items():
        module, _, class_name = name.partition(".")
        found = getattr(import_module(f"anykit.wire.a2e.messages.{module}"), class_name)
        assert issubclass(found, StrEnum), name
        values = [member.value for member in found]
        if name == "base.A2EErrorCode":
            assert values.pop() == "capability_missing"  # its documents use it and forgot to list it
        assert values == expected, name


def test_aliases_of_types_are_those_of_the_documents() -> None:
    assert VECTORS["type_aliases"] == TYPE_ALIASES


def test_a_schema_is_attribute_keyword_and_key() -> None:
    toolkit = ToolkitDefinition(name="t", tools=["a"], schema={"type": "object"})
    assert toolkit.schema == {"type": "object"}
    assert toolkit.model_dump()["schema"] == {"type": "object"}
    assert ToolkitDefinition(name="t", tools=[]).schema == {}


def test_defaults_are_not_shared() -> None:
    one, other = ToolkitDefinition(name="a", tools=[]), ToolkitDefinition(name="b", tools=[])
    one.schema["type"] = "object"
    one.tags.append("x")
    assert (other.schema, other.tags) == ({}, [])


def test_names_that_two_capabilities_share_stay_apart() -> None:
    assert subagents.SubagentStatus is not multi_agent.SubagentStatus
    assert skills.ErrorCode.UNKNOWN_SKILL == "unknown_skill"


def test_what_a_field_may_also_be_is_read_as_what_it_is() -> None:
    event = decode(b'{"type":"proc/read/event","data":"a line"}')
    assert isinstance(event, ProcReadEvent)
    assert event.data == {"text": "a line"}
    review = decode(b'{"type":"learn/refinement/review/resp","confidence_adjusted":true}')
    assert isinstance(review, LearnRefinementReviewResponse)
    assert (review.confidence_adjusted, type(review.confidence_adjusted)) == (1.0, float)
    for config in ({"temperature": 0}, None, False):
        llm = skills.LLMConfig.model_validate(
            {"provider_name": "p", "provider_credentials": {}, "provider_config": config}
        )
        assert llm.provider_config == config


def test_a_sampling_answer_has_its_own_type() -> None:
    assert mcp.MCPSamplingResponse().type == "mcp/sample/resp"


@pytest.mark.parametrize("name", ["env/close/resp", "env/space/resp", "env/render/resp", "env/plan/resp"])
def test_environment_replies_name_their_request(name: str) -> None:
    fields = {**required_of(MESSAGES[name]["fields"]), "req_id": "r"}
    written = json.loads(encode(decode(json.dumps({"type": name, **fields}).encode())))
    assert written["req_id"] == "r"


def test_an_environments_state_is_open() -> None:
    reply = {"type": "env/reset/resp", "obs": {"episode_id": "e", "step_num": 0, "state": {"board": [1, 2]}}}
    assert json.loads(encode(decode(json.dumps(reply).encode())))["obs"]["state"] == {"board": [1, 2]}


def test_what_may_be_secret_is_in_no_repr_and_no_error() -> None:
    for name, members in (
        ("handshake/req", ',"auth_token":"s3cret"'),
        ("toolkit/configure/req", ',"config":{"key":"s3cret"}'),
        ("tool/call/req", ',"arguments":{"key":"s3cret"}'),
        ("mcp/server/register/req", ',"config":{"env":{"key":"s3cret"}}'),
        ("proc/spawn/req", ',"env":{"key":"s3cret"}'),
    ):
        message = decode(('{"type":"' + name + '"' + members + "}").encode())
        assert "s3cret" in encode(message).decode()
        assert "s3cret" not in repr(message)
        assert "s3cret" not in str(message)
    with pytest.raises(ValueError, match="arguments") as caught:
        ToolCallRequest.model_validate({"arguments": "s3cret"})
    assert "s3cret" not in str(caught.value)


def test_the_configuration_of_a_host_is_read() -> None:
    config = host_config.A2EHostConfig.model_validate(
        {
            "server": {},
            "transport": {"type": "http", "config": {"base_url": "http://127.0.0.1:1"}},
            "plugins": [{"name": "fs", "type": "toolkits", "cls": "a.B", "metadata": {"priority": 3, "root": "/x"}}],
        }
    )
    assert (config.server.port, config.audit.rotate.backup_count, len(config.host_id)) == (8765, 5, 8)
    [plugin] = config.plugins
    assert plugin.metadata is not None
    assert (plugin.metadata.enabled, plugin.metadata.priority, plugin.metadata.model_extra) == (True, 3, {"root": "/x"})
    assert isinstance(config.transport.config, host_config.HTTPTransportConfig)


def test_importing_the_room_builds_no_message() -> None:
    program = (
        "import sys, anykit.wire.a2e as a2e\n"
        "assert not [m for m in sys.modules if m.startswith('anykit.wire.a2e.')], sys.modules\n"
        'a2e.decode(b\'{"type":"ping"}\')\n'
        "loaded = {m.rpartition('.')[2] for m in sys.modules if m.startswith('anykit.wire.a2e.messages.')}\n"
        "assert loaded == {'base', 'envelope', 'registry'}, loaded\n"
        "assert not a2e.Pong.__pydantic_complete__\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=10)


def test_every_class_is_one_of_ours() -> None:
    assert all(issubclass(kind.model, WireModel) for kind in MESSAGE_TYPES.values())
