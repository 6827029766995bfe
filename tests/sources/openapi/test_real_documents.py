"""Documents that packages ship (`scripts/openapi-documents.sh` fetches them): every operation is a tool, in no time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from anykit import Workbench
from anykit.schema import compile_schema
from anykit.sources.openapi import DocumentError, OpenApiSource

FOLDER = Path(__file__).parents[3] / ".venvs" / "openapi-documents"
AIRFLOW = "airflow/api_fastapi/core_api/openapi/v2-rest-api-generated.yaml"

needs_them = pytest.mark.skipif(not FOLDER.is_dir(), reason="scripts/openapi-documents.sh was not run")


@needs_them
@pytest.mark.parametrize(
    ("place", "operations"),
    [
        (AIRFLOW, 128),
        ("airflow/api_fastapi/core_api/openapi/_private_ui.yaml", 24),
        ("airflow/api_fastapi/auth/managers/simple/openapi/v2-simple-auth-manager-generated.yaml", 4),
        ("jupyterlab_server/rest-api.yml", 12),
    ],
)
def test_every_operation_of_a_shipped_document_is_a_tool(place: str, operations: int) -> None:
    source = OpenApiSource("shipped", FOLDER / place)
    assert len(source.invocables()) == operations
    assert source.left_out == ()
    for tool in source.invocables():
        compile_schema(tool.spec.input_schema)
        if tool.spec.output_schema is not None:
            compile_schema(tool.spec.output_schema)


@needs_them
def test_a_shipped_document_of_swagger_2_is_refused() -> None:
    with pytest.raises(DocumentError, match=r"Swagger 2\.0"):
        OpenApiSource("shipped", FOLDER / "jupyter_server/services/api/api.yaml")


def large(operations: int) -> dict[str, Any]:
    """A document of so many operations over schemas that refer to each other."""
    schemas: dict[str, Any] = {}
    for index in range(100):
        fields = {f"field{at}": {"type": "string", "description": f"Field {at} of a thing."} for at in range(12)}
        following = {"$ref": f"#/components/schemas/Thing{(index + 1) % 100}"}
        schemas[f"Thing{index}"] = {
            "type": "object",
            "required": ["id"],
            "properties": {"id": {"type": "integer", "readOnly": True}, "next": following, **fields},
        }
    paths: dict[str, Any] = {}
    for index in range(operations // 2):
        reference = {"$ref": f"#/components/schemas/Thing{index % 100}"}
        content = {"content": {"application/json": {"schema": reference}}}
        parameters = [{"name": f"q{at}", "in": "query", "schema": {"type": "string"}} for at in range(5)]
        answers = {"200": {"description": "", **content}}
        paths[f"/things{index}"] = {
            "get": {"operationId": f"list{index}", "parameters": parameters, "responses": answers},
            "post": {"operationId": f"make{index}", "requestBody": {"required": True, **content}, "responses": answers},
        }
    return {
        "openapi": "3.0.3",
        "info": {"title": "t", "version": "1"},
        "paths": paths,
        "components": {"schemas": schemas},
    }


@pytest.mark.anyio
async def test_five_hundred_operations_are_offered_within_a_second_of_work(tmp_path: Path) -> None:
    (tmp_path / "api.json").write_text(json.dumps(large(500)))
    start = time.process_time()
    async with Workbench(str(tmp_path / "api.json")) as bench:
        assert len(bench.tools()) == 500
        assert time.process_time() - start < 1.0
