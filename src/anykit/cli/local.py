"""Verbs that act on a workbench of their own: the sources of the line, else of the file, else the built-in toolkits."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path

from anykit.app import (
    AppConfig,
    ConfigError,
    SourceUnavailable,
    Workbench,
    default_sources,
    find_config,
    read_config,
)
from anykit.capabilities import (
    Connected,
    Event,
    InvalidInput,
    Json,
    JsonObject,
    PromptContents,
    ResourceContents,
)
from anykit.runtime import HOST, CallOptions, Configured
from anykit.stores import RecordError, SecretError, UnresolvedReference, resolve_all
from anykit.stores import data_dir as default_data_dir
from anykit.tools import ToolResult, tool_result

from .errors import CommandError, Exit, usage
from .invocation import Invocation
from .place import (
    AgentFacts,
    PromptRow,
    ResourceRow,
    ServerFacts,
    SkillRow,
    SourceRow,
    ToolkitRow,
    ToolRow,
    here,
    hints_of,
)
from .trusting import may_use

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
LEAST_WAIT = 0.25
"""Seconds that a source has for a list, also where no time is left."""


def configuration(invocation: Invocation, on_line: Sequence[str] = ()) -> AppConfig:
    """The file that the flags mean, with the environment chosen. Raises `CommandError`.

    One that was found, not named, is used only where somebody has agreed to it. Where the sources of the line replace
    its own, it is done without.
    """
    flags, env = invocation.flags, invocation.terminal.env
    try:
        path = here(flags.config) if flags.config else find_config()
        config = AppConfig() if path is None else read_config(path)
        if path is not None and not flags.config:
            needed = not (on_line or flags.sources or flags.connect)
            if not may_use(invocation, path, needed=needed):
                return AppConfig()
        return config.for_environment(flags.env or env.get("ANYKIT_ENV"))
    except ConfigError as error:
        raise usage(str(error), ("check it", "anykit validate"), code="bad_config") from None


def sources_of(invocation: Invocation, config: AppConfig, on_line: tuple[str, ...]) -> tuple[AppConfig, list[str]]:
    """The configuration without what the line replaces, and the sources of the line as paths from anywhere."""
    named = [*on_line, *invocation.flags.sources]
    if named:
        return config.model_copy(update={"sources": [], "agents": {}}), [_from_here(source) for source in named]
    return config, [] if config.sources or config.agents else default_sources()


def _from_here(source: str) -> str:
    """A path of the line means the working directory, wherever the file lies."""
    if _URL.match(source) or source.startswith("anykit:"):
        return source
    path, colon, member = source, "", ""
    found = re.fullmatch(r"(.+\.py):([A-Za-z_][\w.]*)", source)
    if found:
        path, colon, member = found[1], ":", found[2]
    if path.endswith(".py") or "/" in path or Path(path).expanduser().exists():
        return f"{here(path)}{colon}{member}"
    return source


def data_folder(invocation: Invocation, config: AppConfig) -> Path:
    """Where this invocation's records and secrets lie."""
    if invocation.flags.data_dir:
        return here(invocation.flags.data_dir)
    if config.data_dir:
        return config.folder / Path(config.data_dir).expanduser()
    return default_data_dir(env=invocation.terminal.env)


def token_of(invocation: Invocation) -> str | None:
    """The token of the flags or the environment."""
    return invocation.flags.token or invocation.terminal.env.get("ANYKIT_TOKEN") or None


def problems_of(bench: Workbench, *, replaced: bool) -> dict[str, str]:
    """What of the configuration could not be applied, by toolkit; "*" is all of it.

    Where sources of the line have `replaced` those of the file, it may well speak of toolkits that nobody offers now.
    """
    known = bench.catalog.snapshot.toolkits
    return {
        name: problem if name == "*" else f"toolkit {name} is not configured as it was told to be: {problem}"
        for name, problem in bench.problems.items()
        if name == "*" or name in known or not replaced
    }


def known_view(bench: Workbench, view: str | None) -> str | None:
    """`view`, once it is known that the configuration has one of that name. Raises `CommandError`."""
    known = bench.catalog.views
    if view is None or view in known:
        return view
    hint = bench.catalog.snapshot.suggest(view, known)
    said = f"known: {', '.join(known)}" if known else "the configuration has none; write one as [views.NAME]"
    raise usage(f"there is no view {view!r}{hint or f'; {said}'}", code="unknown_view")


async def entered(stack: AsyncExitStack, bench: Workbench) -> None:
    """Start a workbench, to be stopped with `stack`. Raises `CommandError` where a required source is missing."""
    try:
        await stack.enter_async_context(bench)
    except SourceUnavailable as error:
        raise CommandError(error.message, code="source_unavailable", exit=Exit.UNREACHABLE) from None


@contextmanager
def importable(config: AppConfig) -> Generator[None]:
    """Let modules beside the file, and in the working directory, be named; what is installed comes first."""
    added = [folder for folder in dict.fromkeys((str(config.folder), str(Path.cwd()))) if folder not in sys.path]
    sys.path.extend(added)
    try:
        yield
    finally:
        for folder in added:
            with suppress(ValueError):
                sys.path.remove(folder)


class LocalPlace:
    """See `Place`."""

    def __init__(
        self, bench: Workbench, on_line: Sequence[str] = (), *, wait: float = 10.0, view: str | None = None
    ) -> None:
        self.bench = bench
        self._until = asyncio.get_running_loop().time() + wait
        self._on_line = on_line
        self._session = bench.session(face="command", view=view)

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        invocation: Invocation,
        *,
        sources: tuple[str, ...] = (),
        wanted: str | None = None,
        configuring: bool = False,
        view: str | None = None,
        finding: Callable[[LocalPlace], Awaitable[bool]] | None = None,
    ) -> AsyncGenerator[LocalPlace]:
        """Open the sources and wait for their verdicts. Raises `CommandError`; what else is wrong is a warning.

        Nothing more is waited for once `wanted`, a tool or toolkit, is there, or once `finding` has found it.
        """
        config, named = sources_of(invocation, configuration(invocation, sources), sources)
        terminal = invocation.terminal
        bench = Workbench(*named, config=config, data_dir=data_folder(invocation, config), settle=0.0)
        with importable(config):
            async with AsyncExitStack() as stack:
                seen = known_view(bench, view)
                place = cls(bench, (*sources, *invocation.flags.sources), wait=invocation.wait, view=seen)
                with terminal.waiting("opening the sources ..."):
                    await entered(stack, bench)
                    found = await place._known(wanted, finding, invocation.wait)
                place._say_what_is_wrong(invocation, wanted if configuring else None, found=found)
                yield place
                for source, why in sorted(place.missing.items()):
                    terminal.warn(why if "within" not in why else f"source {source} did not say in time what it has")

    async def _known(
        self, wanted: str | None, finding: Callable[[LocalPlace], Awaitable[bool]] | None, timeout: float
    ) -> bool:
        """Wait until every source has a verdict, or what is wanted is there; at most `timeout` seconds. Whether it is."""

        async def found() -> bool:
            return (wanted is not None and _knows(self.bench, wanted)) or (finding is not None and await finding(self))

        settling = asyncio.ensure_future(self.bench.settled(timeout))
        changed = asyncio.Event()
        unsubscribe = self.bench.catalog.subscribe(lambda snapshot: changed.set())
        try:
            while True:
                changed.clear()
                over = settling.done()
                if await found():
                    return True
                if over:
                    return False
                hearing = asyncio.ensure_future(changed.wait())
                await asyncio.wait((settling, hearing), return_when=asyncio.FIRST_COMPLETED)
                hearing.cancel()
        finally:
            unsubscribe()
            settling.cancel()
            await asyncio.gather(settling, return_exceptions=True)

    def _say_what_is_wrong(self, invocation: Invocation, configuring: str | None, *, found: bool) -> None:
        for source in self.bench.sources():
            if source.state.status == "failed" or (source.state.status == "connecting" and not found):
                why = source.state.reason or "no answer yet"
                invocation.terminal.warn(f"source {source.name} is not available: {why}")
        for toolkit, problem in problems_of(self.bench, replaced=bool(self._on_line)).items():
            if toolkit != configuring:
                invocation.terminal.warn(problem)

    # what there is

    async def tools(self) -> list[ToolRow]:
        """See `Place`."""
        rows: list[ToolRow] = []
        states = {source.name: source for source in await self.sources()}
        for entry in self._session.everything():
            name = entry.tool.name
            refused = self.bench.executor.refusal(self._session.caller, entry)
            source = states.get(entry.source)
            reason = refused.message if refused is not None else None
            if reason is None and source is not None and source.state != "ready":
                reason = f"source {source.name} is {source.state}" + (f": {source.reason}" if source.reason else "")
            spec = entry.tool.spec
            rows.append(
                ToolRow(
                    name=name,
                    original=entry.original,
                    source=entry.source,
                    toolkit=spec.toolkit,
                    available=reason is None,
                    reason=reason,
                    input_schema=spec.input_schema,
                    annotations=hints_of(spec.annotations),
                    title=spec.title,
                    description=spec.description,
                    output_schema=spec.output_schema,
                    tags=spec.tags,
                    renamed=entry.renamed,
                )
            )
        return rows

    async def toolkits(self) -> list[ToolkitRow]:
        """See `Place`."""
        return [
            ToolkitRow(
                name=view.name,
                alias=view.alias,
                description=view.description,
                category=view.category,
                tags=view.tags,
                icon_svg=view.icon_svg,
                schema=view.schema,
                tools=view.tools,
                configured=view.configured,
                version=view.version,
                source=view.source,
                disabled=view.disabled,
                problem=self.bench.problems.get(view.name),
            )
            for view in self._session.toolkits()
        ]

    async def resources(self) -> list[ResourceRow]:
        """See `Place`."""
        self._be_patient()
        single = [
            ResourceRow(one.id, one.name, one.title, one.description, one.media_type, one.size)
            for one in await self._session.resources()
        ]
        families = [
            ResourceRow(one.uri_template, one.name, one.title, one.description, one.media_type, is_template=True)
            for one in await self._session.templates()
        ]
        return [*single, *families]

    async def prompts(self) -> list[PromptRow]:
        """See `Place`."""
        self._be_patient()
        return [
            PromptRow(one.id, one.title, one.description, tuple(part.model_dump() for part in one.arguments))
            for one in await self._session.prompts()
        ]

    async def skills(self) -> list[SkillRow]:
        """See `Place`."""
        library = self.bench.skills
        await library.refresh()
        return [
            SkillRow(
                name=skill.name,
                description=skill.description,
                source=library.source_of(skill.name),
                location=str(skill.location),
                scope=skill.scope,
                files=tuple(one.shown for one in skill.listed),
                toolkits=skill.toolkits,
                reports=tuple(map(str, skill.findings)),
            )
            for skill in library.skills.values()
        ]

    async def sources(self) -> list[SourceRow]:
        """See `Place`."""
        known = self.bench.catalog.snapshot.sources
        seen = self._session.snapshot
        return [
            SourceRow(
                name=view.name,
                kind=view.kind,
                state=view.state.status,
                reason=view.state.reason or None,
                since=view.state.since,
                retry_at=view.state.retry_at,
                location=view.location,
                connects=isinstance(known[view.name].provider, Connected),
                tools=view.tools,
                toolkits=view.toolkits,
                reports=view.reports,
                agent=_agent_of(known[view.name].provider) if view.kind == "a2a" else None,
                server=_server_of(known[view.name].provider) if view.kind == "mcp" else None,
            )
            for view in self.bench.sources()
            if view.name in seen.sources
        ]

    @property
    def missing(self) -> dict[str, str]:
        """Sources that did not list what they have, with why."""
        return self._session.missing

    def _be_patient(self) -> None:
        """Let every source have the time for its lists that is left."""
        self._session.patience = max(LEAST_WAIT, self._until - asyncio.get_running_loop().time())

    # what is done

    async def read(self, uri: str) -> ResourceContents:
        """A resource's contents. Raises `CapabilityError`; `InvalidInput` where nobody has it."""
        self._be_patient()
        return await self._session.read(uri)

    async def prompt(self, name: str, arguments: JsonObject) -> PromptContents:
        """A prompt, filled in. Raises `CapabilityError`; `InvalidInput` where nobody has it, or for wrong arguments."""
        self._be_patient()
        return await self._session.prompt(name, arguments)

    async def call(
        self, name: str, arguments: JsonObject, *, timeout: float | None, listen: Callable[[Event], None]
    ) -> ToolResult:
        """See `Place`."""
        return await self._session.call(name, arguments, CallOptions(timeout=timeout, emit=listen))

    async def answer(
        self, id: str, *, ok: bool, data: Json, timeout: float | None, listen: Callable[[Event], None]
    ) -> ToolResult:
        """Answer a question and go on with its call; a failure is a result."""
        options = CallOptions(timeout=timeout, emit=listen)
        return tool_result(await self._session.answer(id, ok=ok, data=data, options=options))

    def held_back(self, name: str) -> str:
        """See `Place`."""
        return self.bench.catalog.snapshot.denied.get(name, "")

    def outlives(self, id: str) -> bool:
        """See `Place`."""
        return self.bench.suspended.parked(id, self._session.caller) is None

    async def stored(self, toolkit: str) -> JsonObject:
        """See `Place`."""
        if not (self.bench.data_dir / "anykit.sqlite3").exists():
            return {}
        return (await self.bench.configurations.load()).get(toolkit, {})

    def said(self, toolkit: str) -> JsonObject:
        """See `Place`."""
        table = self.bench.config.toolkits.get(toolkit)
        return {} if table is None or table.config is None else table.config

    async def configure(self, toolkit: ToolkitRow, config: JsonObject) -> Configured:
        """See `Place`. What is kept holds the references, what is applied holds what they mean."""
        resolved = resolved_config({**config, **self.said(toolkit.name)}, None, self.bench.config.folder)
        answer = await self._session.configure(toolkit.name, resolved, keep=False)
        await keep(self.bench, toolkit, config)
        return answer

    async def unconfigure(self, toolkit: str) -> bool:
        """See `Place`."""
        kept = bool(await self.stored(toolkit))
        if kept:
            await self.bench.configurations.forget(HOST, toolkit)
        return await self._session.unconfigure(toolkit) or kept


def _agent_of(provider: object) -> AgentFacts | None:
    """What is known of an agent, once its card was read."""
    from anykit.sources.a2a import A2ASource  # noqa: PLC0415 - only those who use agents pay for A2A

    from .cards import facts_of_source  # noqa: PLC0415 - as above

    return facts_of_source(provider) if isinstance(provider, A2ASource) else None


def _server_of(provider: object) -> ServerFacts | None:
    """What is known of an MCP server."""
    from anykit.sources.mcp import McpSource  # noqa: PLC0415 - only those who use MCP pay for it

    from .servers import facts_of_server  # noqa: PLC0415 - as above

    return facts_of_server(provider) if isinstance(provider, McpSource) else None


def _knows(bench: Workbench, name: str) -> bool:
    snapshot = bench.catalog.snapshot
    return name in snapshot.tools or name in snapshot.toolkits


async def keep(bench: Workbench, toolkit: ToolkitRow, config: JsonObject) -> None:
    """Store a configuration for every later workbench of this project. Raises `CommandError`."""
    try:
        await bench.configurations.save(HOST, toolkit.name, toolkit.schema, config)
    except (RecordError, SecretError) as error:
        raise CommandError(
            f"the configuration works, but cannot be kept: {error}",
            code="not_kept",
            fixes=[("keep it elsewhere", "--data-dir DIR")],
        ) from None


def resolved_config(config: Json, env: Mapping[str, str] | None, folder: str | os.PathLike[str]) -> JsonObject:
    """What a configuration's references mean. Raises `InvalidInput` for one that leads nowhere."""
    try:
        return resolve_all(config, env, folder)
    except UnresolvedReference as error:
        raise InvalidInput("the configuration refers to what is not there", error.errors) from None
