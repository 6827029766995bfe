"""`anykit serve` with MCP on both sides at once."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

import pytest

from cli.hosts import ended, listening

SHOP = Path(__file__).parents[2] / "docs_src" / "shop_server.py"


@pytest.mark.timeout(40)
def test_a_host_takes_an_mcp_server_in_while_its_own_mcp_face_is_loaded(tmp_path: Path) -> None:
    """The SDK imports itself in a circle: two threads that import it at the same time would both fail."""
    servers = {"mcpServers": {"shop": {"command": sys.executable, "args": [str(SHOP)]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(servers))
    with listening(tmp_path, "mcp.json") as host:
        call = ["call", "shop_stock", "item=tea", "--connect", host.url]
        code, out, said = ended(call, tmp_path)
        for _ in range(7):  # the server may still be on its way
            if code == 5:
                code, out, said = ended(call, tmp_path)
        assert code == 0, said
        assert json.loads(out) == {"item": "tea", "left": 12}
        code, rest = host.end(signal.SIGTERM)
    assert code == 0, rest
