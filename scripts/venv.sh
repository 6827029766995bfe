#!/bin/sh
# Make .venv with the project and its tools in it, at the versions of constraints.txt. Quick when nothing changed.
# With uv where it exists, else with python3 -m venv and pip. PYTHON=... names the interpreter.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.made
fits='import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))'

# Checksums, not dates: a fresh clone and a branch switch touch dates only. The folder is in, since scripts name it.
print_state() { pwd -P; cat pyproject.toml constraints.txt scripts/venv.sh | cksum; }

find_python() {
    for name in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$name" -c "$fits; import venv, ensurepip" 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    echo "anykit needs Python 3.11 to 3.14 with its venv module (on Debian: apt install python3-venv); PYTHON=... names one" >&2
    return 1
}

install_with_uv() {
    uv pip install --help 2>/dev/null | grep -q -- '--group' || return 1
    if ! usable; then
        if [ -n "${PYTHON:-}" ]; then python=$PYTHON; else python=$(find_python 2>/dev/null) || python=">=3.11,<3.15"; fi
        rm -rf "$venv"
        uv venv --quiet --seed --python "$python" "$venv" || return 1
    fi
    uv pip install --quiet --python "$venv/bin/python" --constraint constraints.txt --group dev &&
        uv pip install --quiet --python "$venv/bin/python" --constraint constraints.txt --no-build-isolation --editable .
}

install_with_pip() {
    if ! usable || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python)
        rm -rf "$venv"
        "$python" -m venv "$venv"
    fi
    # A person's own settings for pip (mirror, certificates) hold; what would print or install elsewhere does not.
    export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 PIP_USER=0 PIP_ROOT_USER_ACTION=ignore PIP_NO_WARN_SCRIPT_LOCATION=1
    pip="$venv/bin/python -m pip install -qq --constraint constraints.txt"
    $pip --upgrade pip # a group of pyproject.toml needs pip 25.1
    $pip --group dev
    $pip --no-build-isolation --editable . # the backend is in the group: one version, and no second download
}

usable() { "$venv/bin/python" -c "$fits" 2>/dev/null && [ "$(head -n 1 "$stamp" 2>/dev/null || pwd -P)" = "$(pwd -P)" ]; }

if [ -x "$venv/bin/anykit" ] && usable && [ "$(print_state)" = "$(cat "$stamp" 2>/dev/null)" ]; then
    exit 0
fi
echo "making $venv ..." >&2
if command -v uv >/dev/null 2>&1 && install_with_uv; then
    :
else
    install_with_pip
fi
# pip compiles what it installs, but not what it only points at; without this the first start of each command is slow.
"$venv/bin/python" -m compileall -q src
print_state >"$stamp"
