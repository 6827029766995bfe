"""mcp-hangar before one server: `mcp_hangar_host.py FOLDER COMMAND...`, where it may write, and how the server starts."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

with socket.create_server(("127.0.0.1", 0)) as listener:
    port = listener.getsockname()[1]
folder = Path(sys.argv[1])
file = folder / "hangar.yaml"
file.write_text(json.dumps({"mcp_servers": {"child": {"mode": "subprocess", "command": sys.argv[2:]}}}))
os.chdir(folder)
print(f"hangar: listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
command = ["serve", "--http", "--host", "127.0.0.1", "--port", str(port), "--log-level", "ERROR"]
program = str(Path(sys.executable).with_name("mcp-hangar"))
os.execv(program, [program, "--config", str(file), *command])
