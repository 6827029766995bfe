#!/bin/sh
# Write constraints.txt anew: the newest versions that pyproject.toml allows, as one fresh environment got them.
set -eu
cd "$(dirname "$0")/.."
fresh=.venvs/pin
rm -rf "$fresh"
"${PYTHON:-python3.11}" -m venv "$fresh"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$fresh/bin/python" -m pip install --quiet --upgrade pip
"$fresh/bin/python" -m pip install --quiet --group dev --editable .
{
    echo "# The versions that 'make venv' installs. Written by 'make pin'; change pyproject.toml, not this file."
    "$fresh/bin/python" -m pip freeze --all --exclude-editable --exclude setuptools
} >constraints.txt
rm -rf "$fresh"
