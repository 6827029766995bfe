"""Headers from a command: asked for before each connection, bounded, and never told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anykit import Workbench
from anykit.capabilities import Unavailable
from anykit.sources.mcp import helper

from .peers.script import Peer
from .web import serving

pytestmark = pytest.mark.anyio


async def test_what_a_helper_prints_goes_over_the_headers_of_the_file(tmp_path: Path) -> None:
    script = tmp_path / "headers.sh"
    script.write_text('printf \'{"authorization": "Bearer %s", "X-More": "1"}\' "$CLAUDE_CODE_MCP_SERVER_NAME"\n')
    async with serving(Peer({})) as web:
        server = {
            "type": "http",
            "url": web.url,
            "headers": {"Authorization": "old", "X-Kept": "yes"},
            "headersHelper": f"sh {script}",
        }
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"w": server}}))
        async with Workbench(tmp_path / ".mcp.json", data_dir=tmp_path, settle=5) as bench:
            assert [source.state.status for source in bench.sources()] == ["ready"]
        headers = web.requests[0].headers
        assert (headers["authorization"], headers["x-more"], headers["x-kept"]) == ("Bearer w", "1", "yes")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "ended with exit code 3"),
        ("echo s3cret", "printed no JSON object"),
        ("echo '[]'", "printed no JSON object"),
        ("head -c 70000 /dev/zero", "printed more than 65536 bytes"),
        ("""printf '{"a": "s3cret\\\\n"}'""", "printed a header that is none"),
        ("""echo '{"a b": "s3cret"}'""", "printed a header that is none"),
        ("""echo '{"a": 7}'""", "printed a header that is none"),
    ],
)
async def test_what_a_helper_does_wrong_is_said_without_what_it_printed(command: str, why: str) -> None:
    with pytest.raises(Unavailable, match=why) as caught:
        await helper.helped("n", command, "https://x/")
    assert "s3cret" not in str(caught.value)


async def test_a_helper_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "SECONDS", 0.2)
    with pytest.raises(Unavailable, match="did not end within"):
        await helper.helped("n", "sleep 60", "https://x/")
