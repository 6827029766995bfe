"""What importing the room costs."""

from __future__ import annotations

import subprocess
import sys


def loaded(program: str) -> set[str]:
    """The modules that a fresh interpreter has after `program`."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}\nimport sys\nprint(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=9,
    )
    return set(done.stdout.split())


def test_docstrings_are_parsed_only_where_one_has_parameters() -> None:
    plain = 'from anykit.schema import describe\ndef f(a: int): "Does it."\ndescribe(f)'
    assert "docstring_parser" not in loaded(plain)
    assert "docstring_parser" in loaded(plain.replace("Does it.", "Does.\\n\\nArgs:\\n    a: which"))


def test_nothing_heavy_comes_with_it() -> None:
    heavy = {"asyncio", "anyio", "aiohttp", "sqlalchemy", "starlette", "uvicorn", "mcp", "typer", "rich", "yaml"}
    assert not loaded("import anykit.schema") & heavy
