"""The same servers through the peer: `mcp_many_toolnexus.py FILE`. Prints one JSON object, as `mcp_many_anykit.py`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from toolnexus import create_toolkit


async def main(servers: dict[str, Any]) -> dict[str, float]:
    # its own files hold the whole command in one list
    config = {"mcpServers": {name: {"command": [one["command"], *one["args"]]} for name, one in servers.items()}}
    start = time.perf_counter()
    async with await create_toolkit(config, builtins=False) as toolkit:
        assert len(toolkit.tools()) == len(servers), toolkit.mcp_status()
        for tool in toolkit.tools():
            assert (await toolkit.execute(tool.name, {"a": 2, "b": 3})).output == "5"
        return {"usable": time.perf_counter() - start}


json.dump(asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())["mcpServers"])), sys.stdout)
