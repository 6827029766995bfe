"""A peer's error codes and capability names, as they are meant."""

from __future__ import annotations

import json
from enum import StrEnum
from importlib import import_module
from pathlib import Path

import pytest

from anykit.wire.a2e import CAPABILITIES, ERROR_CODES, capability_alias, capability_name, normal_code

ENUMS: dict[str, list[str]] = json.loads((Path(__file__).parents[2] / "vectors/a2e/messages.json").read_text())["enums"]


@pytest.mark.parametrize(
    ("code", "message", "meant"),
    [
        ("runtime_error", "", "runtime_error"),
        ("RUNTIME_ERROR", "", "runtime_error"),
        ("Invalid_Message", "", "invalid_message"),
        ("parse_error", "Unknown type foo/bar/req", "invalid_message"),
        ("parse_error", "Expecting value", "parse_error"),
        ("error/unknown_type", "", "invalid_message"),
        ("server_not_found", "", "mcp_server_not_found"),
        ("MCP_SERVER_NOT_FOUND", "", "mcp_server_not_found"),
        ("capability_missing", "", "capability_missing"),
        ("mcp_capability_missing", "", "mcp_capability_missing"),
        ("Somebodys_Own", "", "somebodys_own"),
    ],
)
def test_a_code_is_read_as_it_is_meant(code: str, message: str, meant: str) -> None:
    assert normal_code(code, message) == meant


def test_every_code_of_the_protocol_is_in_the_table() -> None:
    for name in ENUMS:
        module, _, class_name = name.partition(".")
        if "Error" in class_name:
            codes: type[StrEnum] = getattr(import_module(f"anykit.wire.a2e.messages.{module}"), class_name)
            assert {code.value for code in codes} <= set(ERROR_CODES), name
    assert {capability for capability in ERROR_CODES.values() if capability} <= CAPABILITIES


@pytest.mark.parametrize(
    ("said", "meant"),
    [("tools", "tools"), ("Skills", "skill"), ("learn", "learning"), ("procs", "proc"), ("subagents", "multi_agent")],
)
def test_a_capability_has_one_name_on_the_wire(said: str, meant: str) -> None:
    assert capability_name(said) == meant


def test_a_name_that_is_no_capability_is_only_an_alias_of_itself() -> None:
    assert capability_alias("Bogus") == "bogus"
    with pytest.raises(ValueError, match="'Bogus'"):
        capability_name("Bogus")
