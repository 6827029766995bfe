"""References stay inside their schema: nothing is ever fetched or opened."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from anykit.capabilities import JsonObject
from anykit.schema import SchemaError, compile_schema, merge_masked, redact, secret_pointers


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port that notices whoever connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def outside(port: int, file: Path) -> list[JsonObject]:
    base = f"http://127.0.0.1:{port}"
    return [
        {"$ref": f"{base}/s.json"},
        {"$ref": f"{base}/s.json#/A"},
        {"$ref": file.as_uri()},
        {"$ref": str(file)},
        {"$ref": "other.json#/A"},
        {"$id": f"{base}/base", "properties": {"a": {"$ref": "x"}}},
        {"$id": file.as_uri(), "properties": {"a": {"$ref": "other"}}},
        {"properties": {"a": {"anyOf": [{"type": "null"}, {"$ref": f"{base}/deep"}]}}},
        {"$defs": {"A": {"$id": f"{base}/a/", "items": {"$ref": "b"}}}, "$ref": "#/$defs/A"},
        {"$dynamicRef": f"{base}/dynamic"},
        {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": f"{base}/old"},
        {"$ref": "#/nowhere"},
        {"$ref": "#nowhere"},
        {"$ref": "ftp://127.0.0.1/x"},
        {"$ref": "urn:x:y"},
    ]


def test_b075_references_to_urls_and_files_are_refused_and_never_followed(
    listener: socket.socket, tmp_path: Path
) -> None:
    """PrefectHQ/prefect#22252: a remote `$ref` was fetched while validating."""
    file = tmp_path / "schema.json"
    file.write_text('{"type": "string"}')
    for schema in outside(listener.getsockname()[1], file):
        with pytest.raises(SchemaError, match="unresolvable reference"):
            compile_schema(schema)
        secret_pointers(schema)
        redact(schema, {"a": 1})
        merge_masked(schema, {"a": 1}, {"a": 2})
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_reference_in_literal_data_or_a_property_called_ref_is_none() -> None:
    schema: JsonObject = {
        "properties": {"$ref": {"type": "string"}, "x": {"const": {"$ref": "http://127.0.0.1:9/"}}},
        "default": {"$ref": "file:///etc/hostname"},
        "required": ["$ref"],
    }
    validator = compile_schema(schema)
    assert validator.is_valid({"$ref": "a", "x": {"$ref": "http://127.0.0.1:9/"}})
    assert [fault["path"] for fault in validator.faults({"$ref": 1})] == ["/$ref"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "integer"}}},
        {"properties": {"a": {"$ref": "#/properties/b"}, "b": {"type": "integer"}}},
        {"properties": {"a": {"$ref": "#/definitions/X~1y"}}, "definitions": {"X/y": {"type": "integer"}}},
        {"properties": {"a": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": {"type": "integer"}}},
        {"properties": {"a": {"$ref": "#here"}}, "$defs": {"A": {"$anchor": "here", "type": "integer"}}},
        {
            "$id": "http://127.0.0.1:9/base",
            "properties": {"a": {"$ref": "#/$defs/A"}},
            "$defs": {"A": {"type": "integer"}},
        },
        {
            "$id": "http://127.0.0.1:9/base",
            "properties": {"a": {"$ref": "other"}},
            "$defs": {"A": {"$id": "other", "type": "integer"}},
        },
        {
            "$id": "http://127.0.0.1:9/base",
            "properties": {"a": {"$ref": "http://127.0.0.1:9/base#/$defs/A"}},
            "$defs": {"A": {"type": "integer"}},
        },
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#old"}},
            "definitions": {"A": {"$id": "#old", "type": "integer"}},
        },
    ],
)
def test_references_inside_the_schema_work(schema: dict[str, Any]) -> None:
    validator = compile_schema(schema)
    assert validator.is_valid({"a": 1})
    assert [fault["path"] for fault in validator.faults({"a": "x"})] == ["/a"]
    # What validation follows, the search for secrets and defaults must follow too.
    target = _integer(schema)
    target["writeOnly"] = True
    assert "/a" in secret_pointers(schema)
    target["default"] = 7
    assert compile_schema(schema).with_defaults({})["a"] == 7


def _integer(node: Any) -> dict[str, Any]:
    """The one subschema that says integer."""
    if isinstance(node, dict):
        fields: dict[str, Any] = node  # pyright: ignore[reportUnknownVariableType]
        if fields.get("type") == "integer":
            return fields
        for child in fields.values():
            if found := _integer(child):
                return found
    return {}
