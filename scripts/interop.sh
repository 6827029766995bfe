#!/bin/sh
# Make the environments of the interop peers ahead of the tests, which otherwise make them on first use.
set -eu
cd "$(dirname "$0")/.."
exec .venv/bin/python tests/interop/environments.py
