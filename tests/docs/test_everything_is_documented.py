"""What people can type is on a page: every verb and flag, config key, public name, and error code."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from docs.pages import FLAG, ROOT, flags_of

REFERENCE = ROOT / "docs" / "reference"


def code_words(*names: str) -> set[str]:
    """Everything that stands as code in these pages of the reference, whole and in words."""
    words: set[str] = set()
    for name in names:
        text = (REFERENCE / name).read_text()
        spans = re.findall(r"`([^`\n]+)`", text) + re.findall(r"^```[a-z]*\n(.*?)^```", text, re.M | re.S)
        for span in spans:
            words.add(span)
            words.update(re.findall(r"-{0,2}[$\w][\w$-]*", span))
    return words


def config_keys(schema: Any) -> Iterator[str]:
    """The keys of every table in a JSON Schema of the file."""
    if isinstance(schema, dict):
        node = cast("dict[str, Any]", schema)
        if isinstance(node.get("properties"), dict):
            yield from node["properties"]
        for value in node.values():
            yield from config_keys(value)
    elif isinstance(schema, list):
        for value in cast("list[Any]", schema):
            yield from config_keys(value)


VERBS = (
    *("init", "add", "list", "show", "configure", "call", "read", "prompt", "login", "answer", "serve", "validate"),
    *("discover", "install"),
    *("doctor", "lock", "schema", "completion", "demo", "remove", "enable", "disable", "trust"),
)


def sections() -> dict[str, str]:
    """The command's page by heading."""
    _, *parts = (REFERENCE / "cli.md").read_text().split("\n## ")
    return {part.partition("\n")[0]: part for part in parts}


def test_every_verb_is_documented() -> None:
    program = importlib.import_module("anykit.cli.program")
    assert [
        verb.name for verb in program.VERBS if f"anykit {verb.name}" not in (REFERENCE / "cli.md").read_text()
    ] == []
    assert {verb.name for verb in program.VERBS} == set(VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_of_a_verb_is_documented_and_every_documented_flag_exists(verb: str) -> None:
    flags = flags_of(verb)
    assert "--json" in flags
    for_all = {*FLAG.findall(sections()["For every verb"]), *FLAG.findall(sections()["--connect"])}
    (own,) = [text for heading, text in sections().items() if verb in re.findall(r"[a-z]+", heading)]
    assert flags - for_all - set(FLAG.findall(own)) == set()
    named = {flag for line in own.splitlines() if line.startswith("|") for flag in FLAG.findall(line.split("|")[1])}
    assert named - flags == set()


def test_every_config_key_is_documented() -> None:
    app = importlib.import_module("anykit.app.config")
    keys = set(config_keys(app.config_file_schema()))
    assert {"sources", "data_dir", "roots", "cls"} <= keys
    assert keys - code_words("configuration.md") == set()


@pytest.mark.parametrize("toolkit", ["filesystem", "database", "web"])
def test_every_tool_parameter_and_field_of_the_three_toolkits_is_documented(toolkit: str) -> None:
    app = importlib.import_module("anykit.app")
    spec = app.builtin_toolkits()[toolkit].load().spec()
    words = code_words("../guides/the-three-toolkits.md")
    assert set(spec.schema["properties"]) - words == set()
    assert set(spec.tools) - words == set()
    for one in spec.tools.values():
        assert set(one.input_schema["properties"]) - words == set()


@pytest.mark.parametrize("module", ["anykit", "anykit.a2a", "anykit.a2e"])
def test_every_public_name_is_documented(module: str) -> None:
    names = set(importlib.import_module(module).__all__)
    assert names
    assert names - code_words("python.md") == set()


@pytest.mark.parametrize("name", ["Workbench", "ToolResult"])
def test_every_member_of_a_public_class_is_documented(name: str) -> None:
    members = {member for member in dir(getattr(importlib.import_module("anykit"), name)) if not member.startswith("_")}
    assert members
    assert members - code_words("python.md") == set()


def test_every_name_of_the_capability_layer_is_documented() -> None:
    names = set(importlib.import_module("anykit.capabilities").__all__)
    assert names - code_words("python.md", "errors.md") == set()


def test_every_variable_of_the_environment_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "src").rglob("*.py")]
    variables = {name for text in sources for name in re.findall(r"ANYKIT_[A-Z_]+", text)}
    assert variables
    assert variables - code_words("configuration.md") == set()


def test_every_failure_code_and_denial_is_documented() -> None:
    outcomes = importlib.import_module("anykit.capabilities.outcomes")
    codes = {value for name, value in vars(outcomes).items() if name.isupper() and isinstance(value, str)}
    assert {"unknown_tool", "timeout", "policy"} <= codes
    assert codes - code_words("errors.md") == set()


def test_every_code_of_the_protocol_is_documented() -> None:
    a2e = importlib.import_module("anykit.a2e")
    codes = {str(code.value) for code in a2e.A2EErrorCode}
    assert codes - code_words("errors.md") == set()
    capabilities = {str(capability.value) for capability in a2e.A2ECapability}
    assert capabilities - code_words("a2e.md") == set()


def test_a_key_that_no_page_names_is_noticed() -> None:
    assert "no_such_key" not in code_words("configuration.md", "cli.md")
    assert set(config_keys({"$defs": {"a": {"properties": {"b": {"properties": {"c": {}}}}}}})) == {"b", "c"}
