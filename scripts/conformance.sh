#!/bin/sh
# Run the MCP conformance suite against our server, in both eras. What may fail, and why: tests/conformance/expected-failures.yml.
# Results lie in .venvs/conformance/results.
set -eu
cd "$(dirname "$0")/.."

place=.venvs/conformance
suite=$place/suite/node_modules/@modelcontextprotocol/conformance/dist/index.js
results=$place/results
expected=tests/conformance/expected-failures.yml
[ -f "$suite" ] || { echo "the suite is not installed: make conformance-setup" >&2; exit 2; }
rm -rf "$results"
mkdir -p "$results"

.venv/bin/python tests/conformance/server.py 0 >"$results/url" 2>"$results/server.log" &
server=$!
trap 'kill $server 2>/dev/null || true; wait $server 2>/dev/null || true' EXIT INT TERM
for _ in $(seq 100); do
    [ -s "$results/url" ] && break
    kill -0 $server 2>/dev/null || { cat "$results/server.log" >&2; exit 1; }
    sleep 0.1
done
url=$(cat "$results/url")
[ -n "$url" ] || { echo "the server did not come up" >&2; exit 1; }

failed=0
for revision in 2026-07-28 2025-11-25; do
    log=$results/server-$revision.log
    if "$place/bin/node" "$suite" server --url "$url" --requirements $revision --expected-failures "$expected" \
        -o "$results/server-$revision" >"$log" 2>&1; then
        echo "server, $revision: $(grep '^Total:' "$log" | tail -n 1)"
    else
        failed=1
        sed -n '/^=== SUMMARY/,$p' "$log" >&2
        echo "server, $revision: failed; all of it is in $log" >&2
    fi
done
exit $failed
