"""Where MCP stands on a port."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anykit.servers.http import Mount
from anykit.servers.identity import Tokens, Ways

from .app import PATH, McpApp
from .authorization import WELL_KNOWN, ResourceServer
from .bench import Bench, Limits
from .configuring import PATH as CONFIGURE


def mcp_mount(
    bench: Bench,
    *,
    token: str | Tokens,
    authorization: ResourceServer | None = None,
    limits: Limits | None = None,
    ways: Ways | None = None,
    instructions: str | None = None,
    state_keys: Callable[[], Sequence[bytes]] | None = None,
    principal: str = "local",
) -> Mount:
    """A workbench at `/mcp`, for clients of every era (see `McpApp`). It asks for `token` by itself.

    The SDK is imported once the server listens; requests that come before wait for it.
    """
    app = McpApp(
        bench,
        token=token,
        authorization=authorization,
        limits=limits,
        ways=ways,
        instructions=instructions,
        state_keys=state_keys,
        principal=principal,
    )
    return Mount(
        app,
        paths=(PATH, f"{PATH}/"),
        prefixes=(CONFIGURE, WELL_KNOWN),
        open=True,
        begin=app.begin,
        end=app.end,
        shown=(PATH,),
        protocol="MCP",
    )
