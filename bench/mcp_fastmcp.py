"""FastMCP's proxy before the same servers: `mcp_fastmcp.py FILE`, the file as clients write it."""

from __future__ import annotations

import json
import logging
import socket
import sys
from pathlib import Path

import uvicorn
from fastmcp.server import create_proxy

logging.disable(logging.WARNING)
app = create_proxy(json.loads(Path(sys.argv[1]).read_text())).http_app()
listener = socket.create_server(("127.0.0.1", 0))
print(f"fastmcp: listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=1)
uvicorn.Server(config).run(sockets=[listener])
