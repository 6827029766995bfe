"""A client's file as it is read, in the words of the vectors in `tests/vectors/clients`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from anykit.sources.mcp import Entry, Surroundings, read_server_file


def reading_of(case: Path, file: str, env: Mapping[str, str], *, project: Path | None = None) -> dict[str, Any]:
    """What is read from `file` in the folder of a case; its folder is written as `CASE`."""
    place = case / file
    around = Surroundings(
        place.parent, env=env, home=case / "home", project=project or Path("/work/project"), connect_timeout=15.0
    )
    found = read_server_file(place, around)
    shown: dict[str, Any] = {
        "kind": found.kind,
        "reports": list(found.reports),
        "servers": {entry.name: shown_of(entry) for entry in found.entries},
    }
    return _relative(shown, str(case))


def shown_of(entry: Entry) -> dict[str, Any]:
    """One server: only what is not as it is where nothing is said."""
    shown: dict[str, Any] = {}
    server = entry.server
    if server is not None and server.command is not None:
        shown |= {"transport": "stdio", "command": server.command.argv[0], "args": list(server.command.argv[1:])}
        shown |= {"env": dict(server.command.env), "cwd": str(server.command.cwd) if server.command.cwd else None}
    elif server is not None:
        shown |= {"transport": server.transport, "url": server.url, "headers": dict(server.headers)}
        shown |= {"headers_helper": server.headers_helper, "token": server.token, "login": server.login}
        if server.oauth is not None:
            shown["oauth"] = [server.oauth.client_id, server.oauth.client_secret, server.oauth.scope]
            shown["oauth"] += [server.oauth.redirect_port]
    if server is not None:
        shown |= {"connect_timeout": server.connect_timeout, "call_timeout": server.call_timeout, "era": server.era}
        shown |= {"allow": list(server.allow), "deny": list(server.deny)}
        if server.transforms is not None:
            shown["transforms"] = {name: said.name or name for name, said in server.transforms.tools.items()}
    shown |= {"fault": entry.fault, "disabled": entry.disabled, "required": entry.required}
    shown |= {"description": entry.description, "reports": list(entry.reports), "inputs": entry.inputs}
    shown |= {"approvals": [list(one) for one in entry.approvals], "scope": entry.scope}
    usual: dict[str, Any] = {
        "env": {},
        "headers": {},
        "login": True,
        "connect_timeout": 15.0,
        "allow": ["*"],
        "era": "auto",
    }
    return {key: value for key, value in shown.items() if value not in (None, "", [], False, usual.get(key))}


def _relative(value: Any, folder: str) -> Any:
    if isinstance(value, str):
        return value.replace(folder, "CASE")
    if isinstance(value, dict):
        return {key: _relative(one, folder) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_relative(one, folder) for one in cast("list[Any]", value)]
    return value
