"""Where A2E stands on a port: at the root and under `/a2e`."""

from __future__ import annotations

from anykit.servers.http import Mount
from anykit.servers.identity import Ways

from .host import A2EHost
from .routes import ROUTES, A2EApp


def a2e_mount(host: A2EHost, *, ways: Ways | None = None) -> Mount:
    """The host as a mount. It is open: A2E's token travels in the handshake."""
    app = A2EApp(host, ways=ways)
    paths = [f"{prefix}{route}" for prefix in ("", "/a2e") for route in ROUTES]
    return Mount(app, paths=paths, open=True, end=app.end, shown=("", "/a2e"), protocol="A2E")
