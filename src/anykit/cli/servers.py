"""MCP servers as the command sees them: what one says of itself, and how one is named on a line."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from anykit.app.opening import is_openapi_file
from anykit.capabilities import JsonObject
from anykit.sources.hostile import clean_text
from anykit.sources.mcp import McpPrompts, McpResources, McpSource
from anykit.stores import has_reference

from .errors import usage
from .place import ServerFacts, here

STDERR_LINES = 20
"""Of what a server wrote last, as many are shown."""
LINE = 500
FILES = frozenset({".json", ".jsonc", ".toml", ".yaml", ".yml"})
"""Endings of the files that clients keep their servers in."""
_ASSIGNED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SECRET_FLAG = re.compile(r"--?[\w-]*(?:token|secret|password|passwd|api[-_]?key)", re.IGNORECASE)
_SECRET_NAME = re.compile(r"token|secret|passw|api_?key|credential", re.IGNORECASE)


def facts_of_server(source: McpSource) -> ServerFacts:
    """What is known of a server: as it is now, or as it was when it was last there."""
    detail = source.state.detail or {}
    link = source.link
    said: JsonObject = {} if link is None else link.capabilities.model_dump(by_alias=True, exclude_none=True)
    resources = [one for one in source.resources() if isinstance(one, McpResources)]
    prompts = [one for one in source.prompts() if isinstance(one, McpPrompts)]
    return ServerFacts(
        server=str(detail.get("server") or ""),
        protocol=str(detail.get("protocol") or ""),
        instructions=str(detail.get("instructions") or ""),
        capabilities=said,
        tools=len(source.invocables()),
        resources=sum(len(one.resources.known) for one in resources),
        templates=sum(len(one.templates.known) for one in resources),
        prompts=sum(len(one.prompts.known) for one in prompts),
        needs=str(detail.get("needs") or ""),
        noise=int(detail.get("noise") or 0),
        starts=source.starts,
        pid=source.pid,
        left_out=tuple(f"{one.kind} {one.name}: {one.reason}" for one in source.left_out),
        stderr=last_lines(source.stderr),
        log=tuple(clean_text(line, LINE) for line in source.log[-STDERR_LINES:]),
    )


def last_lines(text: str, count: int = STDERR_LINES) -> tuple[str, ...]:
    """The last lines of what a child wrote, fit to be shown."""
    return tuple(clean_text(line, LINE) for line in text.splitlines() if line.strip())[-count:]


# on the line


def is_file_of_servers(target: str) -> bool:
    """Whether a word of the line names a file that a client keeps its servers in, and no OpenAPI document."""
    return Path(target).suffix.lower() in FILES and here(target).is_file() and not is_openapi_file(here(target))


def looks_like_a_file_of_servers(target: str) -> bool:
    """Whether it does, but for the file that is not there."""
    is_one = Path(target).suffix.lower() in FILES and not any(letter.isspace() for letter in target)
    return is_one and not here(target).is_file()


def is_command(target: str) -> bool:
    """Whether a word of the line is a command line: several words, and no file that is called so."""
    return any(letter.isspace() for letter in target) and not here(target).exists()


def command_of(text: str, folder: Path) -> JsonObject:
    """A command line as it stands in the file in `folder`: `command`, `args`, `env`, and `cwd` where its paths need it.

    It is split as a shell splits it; nothing else of a shell is done. Raises `CommandError`.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise usage(f"{text!r} is no command line: {str(error)[:1].lower()}{str(error)[1:]}") from None
    env: dict[str, str] = {}
    while words and (found := _ASSIGNED.fullmatch(words[0])):
        env[found[1]] = found[2]
        words = words[1:]
    if not words:
        raise usage(f"{text!r} names no program")
    _check_secrets(words, env)
    program, *args = words
    entry: JsonObject = {"command": program}
    if args:
        entry["args"] = args
    if env:
        entry["env"] = env
    if any(_is_relative_path(word) for word in words):
        entry["cwd"] = Path(os.path.relpath(Path.cwd(), folder)).as_posix()
    return entry


def _is_relative_path(word: str) -> bool:
    try:
        return bool(word) and not Path(word).is_absolute() and ("/" in word or "." in word) and Path(word).exists()
    except (OSError, ValueError):
        return False


def _check_secrets(words: Sequence[str], env: dict[str, str]) -> None:
    """Raises `CommandError` for a secret that would be written down plainly."""
    for name, value in env.items():
        if _SECRET_NAME.search(name) and value and not has_reference(value):
            raise _plain(f"{name}=")
    for word, following in zip(words, [*words[1:], ""], strict=True):
        flag, equals, value = word.partition("=")
        if not _SECRET_FLAG.fullmatch(flag):
            continue
        value = value if equals else "" if following.startswith("-") else following
        if value and not has_reference(value):
            raise _plain(flag)


def _plain(what: str) -> Exception:
    return usage(
        f"{what} of the command looks like a secret, which would be written down plainly",
        ("put it in the environment", "and write '${VARIABLE}' in its place (in single quotes)"),
        code="plain_secret",
    )
