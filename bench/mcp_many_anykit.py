"""Many stdio servers through us: `mcp_many_anykit.py FILE`. Prints one JSON object: seconds until all good ones have answered.

The names of the hung ones begin so. They are reported within the connect limit, which is 3 s here.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from anykit import Workbench


async def main(servers: dict[str, Any], file: str) -> dict[str, float]:
    good = [name for name in servers if not name.startswith("hung")]
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        config = {"limits": {"connect": 3}}
        async with Workbench(file, config=config, data_dir=folder, settle=0) as bench:
            answers = await asyncio.gather(*(bench.call(f"{name}_add", {"a": 2, "b": 3}) for name in good))
            usable = time.perf_counter() - start
            assert all(answer.output == "5" for answer in answers), answers
            assert len(bench.tools()) == len(good)
            while any(source.state.status == "connecting" and not source.state.reason for source in bench.sources()):
                await asyncio.sleep(0.02)
                assert time.perf_counter() - start < 10, bench.sources()
            reported = time.perf_counter() - start
            away = {source.name for source in bench.sources() if source.state.status != "ready" and source.state.reason}
            assert away == set(servers) - set(good), bench.sources()
    return {"usable": usable, "reported": reported, "away": len(away)}


json.dump(asyncio.run(main(json.loads(Path(sys.argv[1]).read_text())["mcpServers"], sys.argv[1])), sys.stdout)
