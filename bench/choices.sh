#!/bin/sh
# The measurements that decisions lean on, in an environment of their own.
set -eu
cd "$(dirname "$0")/.."
scripts/venv.sh
env=.venvs/choices
if ! "$env/bin/python" -c 'import griffe, mcp, httpx, aiohttp' 2>/dev/null; then
    rm -rf "$env"
    .venv/bin/python -m venv "$env"
    "$env/bin/python" -m pip install -qq --disable-pip-version-check --constraint constraints.txt \
        pydantic jsonschema jsonschema_rs anyio starlette 'uvicorn[standard]' typer aiohttp 'sqlalchemy[asyncio]' aiosqlite \
        docstring_parser griffelib 'mcp>=2.3' httpx
fi
exec "$env/bin/python" bench/choices.py
