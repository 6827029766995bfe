#!/bin/sh
# Set up the environments and run the parts that are named, or all.
set -eu
cd "$(dirname "$0")/.."
scripts/venv.sh

# A peer in an environment of its own: the folder, the module that shows it is there, what to install.
peer() {
    "$1/bin/python" -c "import $2" 2>/dev/null && return
    rm -rf "$1"
    .venv/bin/python -m venv "$1"
    timeout 300 "$1/bin/python" -m pip install -qq --disable-pip-version-check "$3" ||
        echo "bench: $3 could not be installed; its figures are left out" >&2
}

peer .venvs/bench toolnexus 'toolnexus==0.21.*'
peer .venvs/fastmcp fastmcp 'fastmcp==4.2.*'
peer .venvs/hangar mcp_hangar 'mcp-hangar'
exec .venv/bin/python bench/main.py "$@"
