#!/bin/sh
# Run the MCP conformance suite against our server and our client, in both eras. What may fail, and why: tests/conformance/expected-failures.yml.
# Results lie in .venvs/conformance/results.
set -eu
cd "$(dirname "$0")/.."

place=.venvs/conformance
suite=$place/suite/node_modules/@modelcontextprotocol/conformance/dist/index.js
requirements=$place/suite/node_modules/@modelcontextprotocol/conformance/requirements
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

.venv/bin/python tests/conformance/person.py "$results/person" >"$results/person.log" 2>&1 &
person=$!
trap 'kill $server $person 2>/dev/null || true; wait $server $person 2>/dev/null || true' EXIT INT TERM
for _ in $(seq 100); do
    [ -S "$results/person" ] && break
    kill -0 $person 2>/dev/null || { cat "$results/person.log" >&2; exit 1; }
    sleep 0.1
done
export ANYKIT_PERSON="$results/person"

# suite SIDE REVISION OPTION VALUE: one run, and one line about it.
suite() {
    log=$results/$1-$2.log
    if "$place/bin/node" "$suite" "$1" "$3" "$4" --requirements "$2" --expected-failures "$expected" \
        -o "$results/$1-$2" >"$log" 2>&1; then
        echo "$1, $2: $(passed "$1" "$2" "$log")"
    else
        failed=1
        sed -n '/^=== .*SUMMARY/,$p' "$log" >&2
        echo "$1, $2: failed; all of it is in $log" >&2
    fi
}

# passed SIDE REVISION LOG: of what the revision requires. The suite runs other scenarios beside them, which do not count.
passed() {
    awk -v side="$1:" '
        FNR == NR && /^[a-z_]+:/ { wanted = ($1 == side) }
        FNR == NR && wanted && $1 == "-" { required[$2] = 1 }
        FNR != NR && /^(✓|✗) / {
            name = $2
            sub(":$", "", name)
            if (name in required) { all++; good += ($1 == "✓"); checks += $3 }
        }
        END { printf "%d of %d scenarios, %d checks\n", good, all, checks }
    ' "$requirements/$2.yaml" "$3"
}

failed=0
for revision in 2026-07-28 2025-11-25; do
    suite server $revision --url "$url"
    suite client $revision --command ".venv/bin/python -I -S tests/conformance/client.py"
done
exit $failed
