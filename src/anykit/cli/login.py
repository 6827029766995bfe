"""`anykit login`: let an MCP server know who we are, and keep the token it gives."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from anykit.app import AppConfig
from anykit.app.config import SourceConfig
from anykit.app.opening import Opening, opened
from anykit.capabilities import CapabilityError, ExecutionFailed
from anykit.runtime import Source
from anykit.sources.mcp import McpServer, McpSource, is_logged_in, login, logout
from anykit.sources.mcp.login import LOGIN_SECONDS
from anykit.stores import RecordError, SecretError, SecretStore, SqliteRecords

from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .invocation import Invocation
from .local import configuration, data_folder, sources_of
from .place import did_you_mean
from .terminal import Terminal

_EXITS = {"expired": Exit.UNREACHABLE, "unsupported": Exit.USAGE, "unauthorized": Exit.CREDENTIALS}


def run(
    invocation: Invocation,
    server: Annotated[
        str,
        typer.Argument(
            metavar="SERVER|URL", help="An MCP server of the file by its name, or its URL.", show_default=False
        ),
    ],
    forget: Annotated[bool, typer.Option("--logout", help="Forget the token instead.")] = False,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the URL; open no browser here.")] = False,
) -> int:
    """Log in to an MCP server, in a browser, and keep its token for every later command and host.

    The URL to open is printed to stderr. Where the browser runs on another machine, paste the address that it ends at.
    The token is kept encrypted in the data folder. --timeout is how long a person has (300 s).
    """
    return invocation.run(_login(invocation, server, forget=forget, browser=not no_browser))


async def _login(invocation: Invocation, name: str, *, forget: bool, browser: bool) -> int:
    config = configuration(invocation)
    folder = data_folder(invocation, config)
    terminal = invocation.terminal
    records = SqliteRecords(folder / "anykit.sqlite3")
    try:
        vault = SecretStore(records, data_dir=folder)
        server = _server(invocation, config, name, vault)
        if forget:
            there = (folder / "anykit.sqlite3").exists() and await logout(server, vault)
            _say(terminal, server.name, "logged out of" if there else "nobody was logged in to", logged_in=False)
            return Exit.OK
        await login(
            server,
            vault,
            show=_Showing(terminal, browser=browser),
            paste=lambda: _pasted(terminal),
            timeout=invocation.flags.timeout or LOGIN_SECONDS,
        )
        _say(terminal, server.name, "logged in to", logged_in=await is_logged_in(server, vault))
    except ExecutionFailed as error:
        exit = _EXITS.get(error.code, Exit.FAILED)
        raise CommandError(error.message, code=error.code, exit=exit) from None
    except CapabilityError as error:
        raise of_capability(error) from None
    except (RecordError, SecretError) as error:
        raise CommandError(
            f"the token cannot be kept: {error}", code="not_kept", fixes=[("keep it elsewhere", "--data-dir DIR")]
        ) from None
    finally:
        await records.close()
    return Exit.OK


def _say(terminal: Terminal, name: str, did: str, *, logged_in: bool) -> None:
    if terminal.as_json:
        terminal.write_json({"server": name, "logged_in": logged_in})
    else:
        terminal.note(f"{did} {name}")


# which server


def _server(invocation: Invocation, config: AppConfig, name: str, vault: SecretStore) -> McpServer:
    """The server of that name, or at that URL. Nothing is started. Raises `CommandError`."""
    rest, named = sources_of(invocation, config, ())
    opening = Opening(
        folder=config.folder, connect_timeout=config.limits.connect, secrets=vault, env=invocation.terminal.env
    )
    found = _unique(opened([_as_mcp(source) for source in (*rest.sources, *named)], opening))
    source = found.get(name)
    if source is None and "://" in name:
        source = next((one for one in found.values() if _url_of(one) == name.rstrip("/")), None)
        source = source or opened([SourceConfig(url=name, kind="mcp")], opening)[0]
    if source is None:
        known = [each for each, one in found.items() if isinstance(one.provider, McpSource)]
        raise not_found(f"there is no MCP server {name!r}", *did_you_mean(name, known), ("look", "anykit list sources"))
    if source.failed is not None:
        raise usage(f"{name}: {source.failed}", ("check it", "anykit validate"), code="bad_source")
    if source.disabled is not None:
        raise usage(f"{name}: {source.disabled}")
    if not isinstance(source.provider, McpSource):
        raise usage(f"{name} is no MCP server, but {source.kind}; only those have a login")
    return source.provider.server


def _as_mcp(source: str | SourceConfig) -> str | SourceConfig:
    """A URL of which is not said what it is, taken for what could have a login."""
    said = SourceConfig(target=source) if isinstance(source, str) else source
    where = said.url or said.target or ""
    if said.kind is None and not said.command and where.lower().startswith(("http://", "https://")):
        return said.model_copy(update={"kind": "mcp", "url": where, "target": None, "name": said.name or _name(where)})
    return source


def _name(url: str) -> str:
    """What a workbench calls a source with that URL."""
    from anykit.app.opening import open_source  # noqa: PLC0415 - only for URLs of which nothing more is said

    return open_source(url, Opening(folder=Path.cwd())).name


def _unique(sources: Sequence[Source]) -> Mapping[str, Source]:
    """The sources by the names that a workbench gives them."""
    found: dict[str, Source] = {}
    for source in sources:
        name, number = source.name, 2
        while name in found:
            name, number = f"{source.name}_{number}", number + 1
        found[name] = source
    return found


def _url_of(source: Source) -> str:
    return source.provider.server.url.rstrip("/") if isinstance(source.provider, McpSource) else ""


# the person


class _Showing:
    """Shows a URL: prints it, and opens it where somebody sits in front of a browser."""

    def __init__(self, terminal: Terminal, *, browser: bool) -> None:
        self._terminal = terminal
        self._browser = browser and terminal.interactive and _has_display(terminal.env)

    async def __call__(self, url: str) -> None:
        """See `login`."""
        opened = self._browser and await asyncio.to_thread(_opened_in_browser, url)
        self._terminal.announce("a browser opens; if it does not, open this:" if opened else "open this in a browser:")
        self._terminal.announce(f"\n  {url}\n")
        self._terminal.announce("and if it ends at an address that cannot be reached, paste that address here.")


def _has_display(env: Mapping[str, str]) -> bool:
    if env.get("SSH_CONNECTION") and not env.get("DISPLAY"):
        return False
    return sys.platform in ("darwin", "win32") or any(
        env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )


def _opened_in_browser(url: str) -> bool:
    import webbrowser  # noqa: PLC0415 - only where somebody sits there

    try:
        return webbrowser.open(url)
    except (webbrowser.Error, OSError):
        return False


async def _pasted(terminal: Terminal) -> str:
    """The next line that somebody gives; nothing ever more at the end of input, since the browser may still come back."""
    line = await terminal.heard_line()
    if line is None:
        await asyncio.Event().wait()
    return line or ""
