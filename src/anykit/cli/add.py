"""`anykit add`: what is named is looked at, and written into the file; nothing is written where something is wrong."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated
from urllib.parse import parse_qsl, urlsplit

import typer

from anykit.app import AppConfig, ConfigError, SourceView, Workbench, builtin_toolkits, find_config, read_config
from anykit.app.config import NAMES, SourceConfig
from anykit.app.opening import kind_at
from anykit.app.probing import beneath, kind_of
from anykit.capabilities import Connected, JsonObject, Unavailable
from anykit.runtime import clean
from anykit.stores import MemoryRecords, has_reference
from anykit.transports import public_url

from .editing import Addition, add_to, check_form
from .errors import CommandError, Exit, not_found, usage
from .invocation import Invocation
from .local import data_folder, entered, importable
from .place import did_you_mean, here
from .terminal import Terminal
from .trusting import shown, trust_of

AGENT = "a2a"
SERVER = "mcp"
AGENT_WORDS = ("a2a", "agent")
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_SECRET = re.compile(r"auth|token|secret|passw|api[-_]?key|^key$|cookie|credential|signature|^sig$", re.IGNORECASE)
"""Names of headers and of query parameters whose values are secrets."""


@dataclass(frozen=True, slots=True)
class Options:
    """What the flags say of everything that is added."""

    name: str
    kind: str
    headers: Mapping[str, str]
    credentials: Mapping[str, str]
    token: str
    verify: bool


@dataclass(frozen=True, slots=True)
class Added:
    """One target: what it is, what it is called, what it brings."""

    target: str
    kind: str
    name: str
    tools: tuple[str, ...] = ()
    about: str = ""
    addition: Addition | None = None
    """None: it is in the file already."""
    card_url: str = ""
    warnings: tuple[str, ...] = ()

    def to_json(self, file: Path) -> JsonObject:
        """As it is printed."""
        return {
            "target": public_url(self.target) if _URL.match(self.target) else self.target,
            "kind": self.kind,
            "name": self.name,
            "added": self.addition is not None,
            "file": str(file),
            "tools": list(self.tools),
        }


def run(
    invocation: Invocation,
    targets: Annotated[
        list[str],
        typer.Argument(
            metavar="TARGET...",
            help="An MCP server by its URL or as 'COMMAND ARGS', all those of a client's file (mcp.json), an A2A agent by"
            " its base URL or its card's URL, a host by its URL, a Python file or module, an OpenAPI document (file or URL),"
            " a folder of skills, or anykit:NAME, a toolkit that comes along.",
            show_default=False,
        ),
    ],
    name: Annotated[
        str | None, typer.Option("--name", metavar="ID", help="What it is called in the file.", show_default=False)
    ] = None,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="K",
            help="What it is, where it should not be asked: mcp, a2a, a2e, ...",
            show_default=False,
        ),
    ] = None,
    headers: Annotated[
        list[str] | None,
        typer.Option(
            "--header",
            metavar="'NAME: VALUE'",
            help="Of an agent or MCP server: a header for its own origin; a secret as ${VARIABLE}. May be repeated.",
            show_default=False,
        ),
    ] = None,
    credentials: Annotated[
        list[str] | None,
        typer.Option(
            "--credential",
            metavar="SCHEME=${VAR}",
            help="Of an agent: the secret for a security scheme of its card. May be repeated.",
            show_default=False,
        ),
    ] = None,
    no_verify: Annotated[
        bool, typer.Option("--no-verify", help="Write it down without looking at it; a URL then needs --kind.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")] = False,
) -> int:
    """Add an MCP server, an agent, a host, a toolkit or a file of tools to the file.

    The file is --config, else the nearest anykit.toml, else a new one here. A URL is asked what it is, a command is
    started, an agent's card is read, a Python file is imported; no tool is called. Secrets are written as references:
    ${VARIABLE}.
    """
    if invocation.flags.sources:
        raise usage("name what to add as it is, without --source", ("write", "anykit add TARGET"))
    if name is not None and len(targets) > 1:
        raise usage("--name is for one target")
    if name is not None and not name.strip():
        raise usage("--name is empty")
    options = Options(
        name=name or "",
        kind=AGENT if kind in AGENT_WORDS else kind or "",
        headers=_headers(headers or ()),
        credentials=_credentials(credentials or ()),
        token=_reference("--token", invocation.flags.token or ""),
        verify=not no_verify,
    )
    return invocation.run(_add(invocation, list(dict.fromkeys(targets)), options, dry=dry_run))


async def _add(invocation: Invocation, targets: Sequence[str], options: Options, *, dry: bool) -> int:
    file, config = _file(invocation)
    check_form(file)
    looking = _Looking(invocation, config, file, options)
    found: list[Added] = []
    for target in targets:
        found.append(await looking.at(target, found))
    additions = [one.addition for one in found if one.addition is not None]
    trust, named = trust_of(invocation), invocation.flags.config is not None
    change = add_to(file, additions, trust=trust, whole=named, dry=dry) if additions else None
    if dry:
        _print_diff(invocation.terminal, found, file, "" if change is None else change.diff())
        return Exit.OK
    _print(invocation.terminal, found, file)
    if change is not None and not named:
        _warn_of_the_rest(invocation, file)
    return Exit.OK


def _warn_of_the_rest(invocation: Invocation, file: Path) -> None:
    """What was in the file before is not trusted because something was added to it."""
    with suppress(ConfigError):
        standing = trust_of(invocation).check(file)
        if not standing.is_trusted:
            invocation.terminal.warn(
                f"what else {shown(file)} defines is not trusted, so nothing of it is started; to trust it: "
                f" anykit trust {shlex.quote(shown(file))}"
            )


def _print_diff(terminal: Terminal, found: Sequence[Added], file: Path, diff: str) -> None:
    if terminal.as_json:
        terminal.write_json({"file": str(file), "diff": diff, "changes": [one.to_json(file) for one in found]})
        return
    for one in found:
        for warning in one.warnings:
            terminal.warn(warning)
        if one.addition is None:
            terminal.note(f"{one.target} is in {shown(file)} already, as {one.name}")
    if diff:
        terminal.write(diff)


def _file(invocation: Invocation) -> tuple[Path, AppConfig]:
    """The file to write, and what is in it."""
    flags = invocation.flags
    try:
        file = here(flags.config) if flags.config else find_config()
        if file is None:
            file = Path.cwd() / "anykit.toml"
        config = read_config(file) if file.exists() else AppConfig(path=file)
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None
    if str(file.absolute()) in config.sources and file.name not in NAMES:
        raise usage(
            f"{file}: the file of an MCP client is not written here",
            ("take its servers into a file of ours", f"anykit add {shlex.quote(str(file))}"),
            code="not_written",
        )
    return file, config


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a source turned out to be."""

    views: Sequence[SourceView]
    connects: bool
    """Whether the first lies behind a connection."""
    stderr: Sequence[str]
    """The last that the first wrote to stderr."""
    warnings: Sequence[str]


def _last_words(provider: object) -> Sequence[str]:
    if not hasattr(provider, "stderr"):
        return ()
    from anykit.sources.mcp import McpSource  # noqa: PLC0415 - only those who use MCP pay for it

    from .servers import last_lines  # noqa: PLC0415 - as above

    return last_lines(provider.stderr, 5) if isinstance(provider, McpSource) else ()


class _Looking:
    """Finds out what each target is."""

    def __init__(self, invocation: Invocation, config: AppConfig, file: Path, options: Options) -> None:
        self._invocation = invocation
        self._config = config
        self._file = file
        self._options = options

    async def at(self, target: str, earlier: Sequence[Added]) -> Added:
        """Look at one. Raises `CommandError`."""
        target = target.strip()
        if _URL.match(target):
            _check_url(target)
            found = await self._url(target, earlier)
        else:
            found = await self._local(target)
        if found.addition is None:
            return found
        for other in earlier:
            if other.addition == found.addition or (found.kind == AGENT == other.kind and other.name == found.name):
                return replace(found, addition=None, name=other.name)
        return found

    # URLs

    async def _url(self, url: str, earlier: Sequence[Added]) -> Added:
        kind = self._options.kind
        if (known := self._known_source(url)) is not None and kind != AGENT:
            return Added(url, kind or "source", known)
        if (known := self._known_agent(url, None)) is not None and kind in ("", AGENT):
            return Added(url, AGENT, known)
        if not self._options.verify:
            if not kind:
                raise usage(
                    "without a look it is not known what it is", ("say it", "--kind mcp, --kind a2a or --kind a2e")
                )
            return self._unseen_agent(url) if kind == AGENT else self._source(url, kind, ())
        with self._invocation.terminal.waiting(f"asking {public_url(url)} ..."):
            if kind == AGENT:
                return await self._agent(url, earlier)
            if not kind:
                kind = await self._kind(url)
            if kind == AGENT:
                return await self._agent(url, earlier)
            self._only_of_agents(kind)
            return await self._seen(self._source(url, kind, ()))

    async def _kind(self, url: str) -> str:
        from .cards import card_at, resolved  # noqa: PLC0415 - only those who add URLs pay for A2A

        known = resolved({"headers": dict(self._headers)}, str(self._file.parent)).get("headers", {})
        try:
            async with asyncio.timeout(self._invocation.wait):
                return await kind_of(url, dict(known))
        except TimeoutError:
            reason = f"no answer within {self._invocation.wait:g} s"
        except Unavailable as error:
            reason = error.message
        try:
            # Older agents have their card where `kind_of` does not look.
            await card_at(self._invocation, url, headers=self._headers, credentials={}, folder=str(self._file.parent))
        except Unavailable as error:
            raise _nothing_at(url, reason, error) from None
        return AGENT

    @property
    def _headers(self) -> Mapping[str, str]:
        token = self._options.token
        return {**({"Authorization": f"Bearer {token}"} if token else {}), **self._options.headers}

    async def _agent(self, url: str, earlier: Sequence[Added]) -> Added:
        from .cards import card_at, tool_names  # noqa: PLC0415 - as above

        options = self._options
        try:
            found, missing = await card_at(
                self._invocation,
                url,
                headers=self._headers,
                credentials=options.credentials,
                folder=str(self._file.parent),
            )
        except Unavailable as error:
            raise CommandError(error.message, code="unavailable", exit=Exit.UNREACHABLE) from None
        card = found.card
        names = tuple(tool_names(card))
        if (known := self._known_agent(url, found.url)) is not None:
            return Added(url, AGENT, known, names)
        for other in earlier:
            if other.kind == AGENT and other.card_url == (found.url or url):
                return replace(other, target=url, addition=None)
        id = options.name or clean(card.name)[:64]
        taken = {*self._config.agents, *(one.name for one in earlier if one.kind == AGENT and one.addition is not None)}
        if id in taken:
            raise usage(
                f"there is an agent {id!r} already, with another card",
                ("name it", f"anykit add {url} --name ID"),
                code="name_taken",
            )
        warnings = [f"{id}: {one.what} is left out: {one.reason}" for one in card.dropped]
        if missing:
            warnings.append(f"{id}: its card asks for {missing}; give it with --credential SCHEME='${{VARIABLE}}'")
        return Added(
            url,
            AGENT,
            id,
            names,
            about=" ".join(filter(None, (card.name, card.version))),
            addition=Addition(self._block(url), id),
            card_url=found.url or url,
            warnings=tuple(warnings),
        )

    def _unseen_agent(self, url: str) -> Added:
        id = self._options.name or clean(urlsplit(url).hostname or "agent")
        if id in self._config.agents:
            raise usage(
                f"there is an agent {id!r} already, with another card", ("name it", "--name ID"), code="name_taken"
            )
        return Added(url, AGENT, id, addition=Addition(self._block(url), id), card_url=url)

    def _block(self, url: str) -> JsonObject:
        block: JsonObject = {"card": url}
        if self._headers:
            block["headers"] = dict(self._headers)
        if self._options.credentials:
            block["credentials"] = dict(self._options.credentials)
        return block

    def _known_agent(self, url: str, found: str | None) -> str | None:
        """The agent of the file whose card it is."""
        from anykit.sources.a2a.discovery import places  # noqa: PLC0415 - as above

        wanted = {_same(url), *([_same(found)] if found else [])}
        for id, block in self._config.agents.items():
            card = block.get("card")
            if not isinstance(card, str):
                continue
            whole = {_same(card)}
            if found is not None or _is_base(card):
                whole |= {_same(place) for place in places(card.strip())}
            if wanted & whole:
                return id
        return None

    # sources

    def _known_source(self, target: str) -> str | None:
        """The source of the file that it is."""
        wanted = self._identity(target)
        for source in self._config.sources:
            said = SourceConfig(target=source) if isinstance(source, str) else source
            there = said.target or said.url
            if there and self._identity(there) == wanted:
                return said.name or there
        return None

    def _identity(self, target: str) -> str:
        if _URL.match(target):
            return _same(target)
        path, colon, member = _split(target)
        return f"{(self._file.parent / Path(path).expanduser()).resolve()}{colon}{member}" if _is_path(path) else target

    def _source(self, target: str, kind: str, tools: tuple[str, ...]) -> Added:
        options = self._options
        value: JsonObject | str = target
        if options.headers and kind == SERVER:
            value = {"url": target, "kind": kind, "headers": dict(options.headers)}
            if options.name:
                value["name"] = options.name
            if options.token:
                value["token"] = options.token
        elif options.name or options.token or options.kind or _URL.match(target):
            value = {"url" if _URL.match(target) else "target": target}
            if kind and (options.kind or _URL.match(target)):
                value["kind"] = kind
            if options.name:
                value["name"] = options.name
            if options.token:
                value["token"] = options.token
        return Added(target, kind, options.name or target, tools, addition=Addition(value))

    async def _local(self, target: str) -> Added:
        self._only_of_agents()
        if self._options.token:
            raise usage("--token is for what is reached by a URL")
        if not target:
            raise usage("an empty word names nothing")
        kind = self._options.kind
        from .servers import is_command, is_file_of_servers, looks_like_a_file_of_servers  # noqa: PLC0415 - as above

        told = kind_at(here(target)) if kind == "" and not is_command(target) else None
        if told is not None:
            return await self._document(target, told)
        if is_file_of_servers(target) and kind in ("", SERVER):
            return await self._servers(target)
        if is_command(target) or (kind == SERVER and not target.endswith(".py")):
            return await self._command(target, kind or SERVER)
        if looks_like_a_file_of_servers(target):
            raise usage(f"{target}: there is no such file", code="no_file")
        if kind == AGENT:
            raise usage(f"{target}: an agent is added by its URL", ("write", f"anykit add https://{target}"))
        if target.startswith("anykit:"):
            name, known = target.partition(":")[2], {*builtin_toolkits(), "skills"}
            if name not in known:
                fixes = did_you_mean(target, [f"anykit:{one}" for one in known])
                raise not_found(f"there is no toolkit {target}", *fixes, code="unknown_toolkit")
        elif re.fullmatch(r"(?:[\w-]+\.)+[A-Za-z]{2,}(?::\d+)?(?:/\S*)?|localhost(?::\d+)?(?:/\S*)?", target):
            written = here(_split(target)[0])
            if not written.exists() and not target.endswith(".py") and ("/" in target or ":" in target):
                raise usage(f"{target}: is this a URL?", ("write", f"anykit add https://{target}"))
        written = self._from_file(target)
        if (known := self._known_source(written)) is not None:
            return Added(target, kind or "source", known)
        ours = {"anykit:skills": "skills"}.get(target, "toolkit" if target.startswith("anykit:") else "python")
        found = self._source(written, kind or ours, ())
        return await self._seen(found) if self._options.verify else found

    async def _document(self, target: str, kind: str) -> Added:
        """An OpenAPI document, or a folder of skills or of a plugin."""
        written = self._from_file(target)
        if (known := self._known_source(written)) is not None:
            return Added(target, kind, known)
        found = self._source(written, kind, ())
        if not self._options.verify:
            return found
        if kind != "plugin":
            return await self._seen(found)
        assert found.addition is not None
        looked = await self._looked(found.addition.value)
        tools = tuple(tool for view in looked.views for tool in view.tools)
        names = ", ".join(view.name for view in looked.views)
        return replace(found, tools=tools, about=f"brings {names}", warnings=tuple(looked.warnings))

    def _from_file(self, target: str) -> str:
        """A path as it is written in the file: from its folder where it lies in there."""
        path, colon, member = _split(target)
        if not _is_path(path) and not (here(path).is_dir() and not path.startswith("anykit:")):
            return target
        place, folder = here(path), self._file.parent.absolute()
        if not place.exists():
            raise usage(f"{path}: there is no such file", code="no_file")
        if place.is_relative_to(folder):
            relative = place.relative_to(folder).as_posix()
            return f"{relative}{colon}{member}"
        return f"{place}{colon}{member}"

    async def _seen(self, found: Added) -> Added:
        """The same with its tools, once it was opened. Raises `CommandError` where that fails."""
        assert found.addition is not None
        looked = await self._looked(found.addition.value)
        view = looked.views[0]
        name = self._options.name or view.name
        detail = view.state.detail or {}
        about = " ".join(
            filter(None, (str(detail.get("server", "")), f"MCP {detail['protocol']}")) if "protocol" in detail else ()
        )
        if view.state.status != "ready":
            reason = view.state.reason or self._no_answer
            if detail.get("needs") == "login":
                # It is there, and lets nobody in before this is written down: that is how it gets its name.
                return replace(found, name=name, warnings=(reason,))
            shown = public_url(found.target) if _URL.match(found.target) else found.target
            words = [f"stderr: {line}" for line in looked.stderr if line not in reason]
            message = "\n".join([reason if shown in reason else f"{shown}: {reason}", *words])
            if detail.get("needs"):
                fixes = [("prove who asks", "--token '${VARIABLE}'   or   --header 'NAME: ${VARIABLE}'")]
                raise CommandError(message, code="unauthorized", exit=Exit.CREDENTIALS, fixes=fixes)
            if looked.connects:
                raise CommandError(message, code="unavailable", exit=Exit.UNREACHABLE)
            raise usage(message, code="bad_source")
        kind = view.kind if found.kind == "python" else found.kind  # a file may hold a document, a folder skills
        return replace(found, kind=kind, tools=view.tools, name=name, about=about, warnings=view.reports)

    async def _looked(self, said: JsonObject | str) -> _Looked:
        """What becomes of it in a workbench of its own, once it had its time."""
        from contextlib import AsyncExitStack  # noqa: PLC0415

        source = SourceConfig(target=said) if isinstance(said, str) else SourceConfig.model_validate(said)
        config = AppConfig(sources=[source], limits=self._config.limits).model_copy(update={"path": self._file})
        records = MemoryRecords()
        bench = Workbench(
            config=config, data_dir=data_folder(self._invocation, self._config), records=records, settle=0.0
        )
        with importable(config):
            async with AsyncExitStack() as stack:
                await entered(stack, bench)
                await bench.settled(self._invocation.wait)
                views = bench.sources()
                provider = bench.catalog.snapshot.sources[views[0].name].provider if views else None
                reports = tuple(f"{view.name}: {report}" for view in views for report in view.reports)
                return _Looked(views, isinstance(provider, Connected), _last_words(provider), reports)

    # MCP servers

    async def _command(self, text: str, kind: str) -> Added:
        """A server that is started by a command line."""
        from .servers import command_of  # noqa: PLC0415 - as above

        if kind not in (SERVER, "a2e"):
            raise usage(f"--kind {kind}: a command starts an MCP server, or with --kind a2e an A2E host")
        entry = {"kind": kind, **command_of(text, self._file.parent)}
        if self._options.name:
            entry["name"] = self._options.name
        if (known := self._known_command(entry)) is not None:
            return Added(text, kind, known)
        found = Added(text, kind, self._options.name or str(entry["command"]), addition=Addition(entry))
        if not self._options.verify:
            return found
        with self._invocation.terminal.waiting(f"starting {entry['command']} ..."):
            return await self._seen(found)

    def _known_command(self, entry: JsonObject) -> str | None:
        """The source of the file that is started so."""
        wanted = [entry["command"], *entry.get("args", ())]
        for source in self._config.sources:
            if isinstance(source, SourceConfig) and source.command:
                command = [source.command] if isinstance(source.command, str) else source.command
                if [*command, *source.args] == wanted and source.env == entry.get("env", {}):
                    return source.name or command[0]
        return None

    async def _servers(self, target: str) -> Added:
        """A client's file: each server in it will be a source. One that is away costs only itself."""
        from anykit.sources.mcp import Misfit, read_servers  # noqa: PLC0415 - only those who use MCP pay for it

        if self._options.name:
            raise usage("--name is for one server; a file's servers have names")
        try:
            entries = read_servers(here(target))
        except Misfit as error:
            raise usage(str(error), code="bad_source") from None
        written = self._from_file(target)
        if (known := self._known_source(written)) is not None:
            return Added(target, SERVER, known)
        found = Added(target, SERVER, written, addition=Addition(written))
        if not self._options.verify or not entries:
            return found
        with self._invocation.terminal.waiting(f"asking {len(entries)} servers ..."):
            looked = await self._looked(written)
        views, warnings = looked.views, list(looked.warnings)
        warnings += [
            f"{view.name} is not available now: {view.state.reason or self._no_answer}"
            for view in views
            if view.state.status not in ("ready", "disabled")
        ]
        ready = sum(view.state.status == "ready" for view in views)
        return replace(
            found,
            tools=tuple(tool for view in views for tool in view.tools),
            about=f"{ready} of {len(views)} servers ready",
            warnings=tuple(warnings),
        )

    @property
    def _no_answer(self) -> str:
        return f"no answer within {self._invocation.wait:g} s"

    def _only_of_agents(self, kind: str = "") -> None:
        if kind == SERVER and not self._options.credentials:
            return
        if self._options.headers or self._options.credentials:
            raise usage("--header and --credential are for agents", ("of a host", "--token '${VARIABLE}'"))


def _nothing_at(url: str, reason: str, error: Unavailable) -> CommandError:
    """Nothing known answers: every place that was asked."""
    from anykit.sources.a2a import CardError  # noqa: PLC0415 - as above
    from anykit.sources.a2a.discovery import places  # noqa: PLC0415 - as above

    tried = [one.url for one in error.tried] if isinstance(error, CardError) else []
    asked = [*tried, *places(url), beneath(url, "a2e/health"), beneath(url, "health")]
    lines = [reason, f"asked: {', '.join(dict.fromkeys(map(public_url, asked)))}"]
    return CommandError("\n".join(lines), code="unavailable", exit=Exit.UNREACHABLE)


def _check_url(url: str) -> None:
    """Raises `CommandError` for a URL that is none, or that holds a secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if parts.scheme.lower() not in ("http", "https") or not host:
        raise usage(f"{public_url(url)}: only http and https URLs can be added")
    if "@" in parts.netloc:
        raise usage(
            f"{public_url(url)}: a user or password in a URL would be written down for everyone to read",
            ("write", "--header 'Authorization: Basic ${VARIABLE}', and the URL without them"),
            code="plain_secret",
        )
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRET.search(name) and value and not has_reference(value):
            raise usage(
                f"{public_url(url)}: {name} in its query looks like a secret, which would be written down plainly",
                ("write", "--header 'NAME: ${VARIABLE}', or --credential SCHEME='${VARIABLE}'"),
                code="plain_secret",
            )


def _headers(given: Sequence[str]) -> dict[str, str]:
    from .cards import headers_of  # noqa: PLC0415 - as above

    headers = headers_of(given, None)
    for name, value in headers.items():
        if _SECRET.search(name):
            _reference(f"the header {name}", value)
    return headers


def _credentials(given: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in given:
        scheme, equals, value = word.partition("=")
        if not scheme or not equals or not value:
            raise usage("a --credential names no scheme", ("write", "--credential SCHEME='${VARIABLE}'"))
        found[scheme] = _reference(f"the credential {scheme}", value)
    return found


def _reference(what: str, value: str) -> str:
    """A secret as it may be written down. Raises `CommandError` for the secret itself."""
    if not value or has_reference(value):
        return value
    raise usage(
        f"{what} would be written down plainly",
        ("put it in the environment", "and write '${VARIABLE}' in its place (in single quotes)"),
        code="plain_secret",
    )


def _split(target: str) -> tuple[str, str, str]:
    found = re.fullmatch(r"(.+\.py):([A-Za-z_][\w.]*)", target)
    return (found[1], ":", found[2]) if found else (target, "", "")


def _is_path(path: str) -> bool:
    return not path.startswith("anykit:") and (
        path.endswith((".py", ".json", ".jsonc", ".toml", ".yaml", ".yml")) or "/" in path or path.startswith("~")
    )


def _is_base(card: str) -> bool:
    path = urlsplit(card).path.lower()
    return not path.endswith(".json") and "/.well-known/" not in path


def _same(url: str) -> str:
    """A URL so that equal ones are equal: without its fragment, the slash at its end, and a default port."""
    try:
        parts = urlsplit(url.strip())
        port = {("http", 80): "", ("https", 443): ""}.get((parts.scheme.lower(), parts.port or 0), parts.port or "")
    except ValueError:
        return url
    path = parts.path.rstrip("/").removesuffix("/a2e")
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}:{port}{path}{query}"


def _print(terminal: Terminal, found: Sequence[Added], file: Path) -> None:
    if terminal.as_json:
        terminal.write_json([one.to_json(file) for one in found])
        return
    shown = file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file
    for one in found:
        for warning in one.warnings:
            terminal.warn(warning)
        if one.addition is None:
            terminal.note(f"{one.target} is in {shown} already, as {one.name}")
            continue
        about = f" ({one.about})" if one.about else ""
        terminal.write(f"added {one.kind} {one.name}{about} to {shown}")
        if one.tools:
            terminal.table(("tool",), [(f"  {tool}",) for tool in one.tools])
        for hint in _next(one):
            terminal.note(hint)


def _next(one: Added) -> Sequence[str]:
    if one.kind == SERVER and not one.tools:
        return (f"look:  anykit show {one.name}",)
    return () if not one.tools else (f"look:  anykit show {one.tools[0]}",)
