#!/bin/sh
# Make the environments of the interop peers and of the agent frameworks ahead of the tests, which otherwise make them on
# first use.
set -eu
cd "$(dirname "$0")/.."
.venv/bin/python tests/interop/environments.py
exec .venv/bin/python tests/adapters/environment.py
