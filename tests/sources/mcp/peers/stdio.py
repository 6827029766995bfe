"""A scripted MCP server over stdio: `stdio.py SCRIPT`, the script as JSON. Pure stdlib, so that it starts quickly.

Beside `script.Peer`'s keys: `banner` (text on stdout first), `stderr` (bytes of it first), `exit` (code, at once),
`hang` (says nothing, ever), `slow` (seconds before it answers), `deaf` (ignores SIGTERM and the end of stdin),
`grandchild` (writes the pid of one that is deaf to this file), `die_on` (a tool: runs and exits), `count` (a file that
gets a byte for each tools/call), `pids` (a file that gets its pid), `exit_on_unknown` (leaves at an unknown method).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from script import Peer

_DEAF = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)"


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def note(path: str, text: str) -> None:
    with open(path, "a") as file:
        file.write(text)


def prepared(script: dict[str, Any]) -> None:
    if "pids" in script:
        note(script["pids"], f"{os.getpid()}\n")
    if "stderr" in script:
        sys.stderr.write("e" * script["stderr"] + "\n")
        sys.stderr.flush()
    if "banner" in script:
        sys.stdout.write(script["banner"])
        sys.stdout.flush()
    if script.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "grandchild" in script:
        child = subprocess.Popen([sys.executable, "-c", _DEAF])
        note(script["grandchild"], f"{child.pid}\n")
    if "exit" in script:
        sys.stderr.write("cannot go on\n")
        sys.exit(script["exit"])
    if "slow" in script:
        time.sleep(script["slow"])
    while script.get("hang"):
        time.sleep(60)


def main() -> None:
    script: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
    prepared(script)
    peer: Any = Peer(script)
    for line in sys.stdin:
        message = json.loads(line)
        if script.get("exit_on_unknown") and message.get("method") == "server/discover":
            sys.exit(1)
        called = message.get("params", {}).get("name") if message.get("method") == "tools/call" else None
        if called is not None and "count" in script:
            note(script["count"], "x")
        if called is not None and called == script.get("die_on"):
            os._exit(3)
        for before in script.get("before", {}).get(called, []):
            say(before)
        answer = peer.handle(message, say)
        if answer is not None:
            say(answer)
    while script.get("deaf"):
        time.sleep(60)


main()
