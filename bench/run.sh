#!/bin/sh
# Set up both environments and run the parts that are named, or all.
set -eu
cd "$(dirname "$0")/.."
scripts/venv.sh
peers=.venvs/bench
if ! "$peers/bin/python" -c 'import toolnexus' 2>/dev/null; then
    rm -rf "$peers"
    .venv/bin/python -m venv "$peers"
    "$peers/bin/python" -m pip install -qq --disable-pip-version-check 'toolnexus==0.21.*' ||
        echo "bench: toolnexus 0.21 could not be installed; its rows are left out" >&2
fi
exec .venv/bin/python bench/main.py "$@"
