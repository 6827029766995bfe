"""The workbench puts the parts together and owns their lives: sources, catalogue, scopes, executor, records."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from anykit.adapters import Exported, Exports, Provider, Strictness, shaped_messages
from anykit.adapters.tool_calls import Intake, call_of, read_arguments
from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    Connected,
    Json,
    JsonObject,
    PromptContents,
    PromptDescriptor,
    PromptMessage,
    ResourceContents,
    ResourceDescriptor,
    State,
    Suspension,
    TextPart,
)
from anykit.runtime import (
    HOST,
    Caller,
    CallOptions,
    Catalog,
    Change,
    Configured,
    Executor,
    Journal,
    Scopes,
    Session,
    Source,
    Suspensions,
    ToolkitView,
    WaitFor,
    state_of,
)
from anykit.schema import SchemaError
from anykit.sources import FunctionSource
from anykit.sources.skills import Library
from anykit.stores import (
    RecordError,
    RecordStore,
    SecretError,
    SecretStore,
    SqliteRecords,
)
from anykit.stores import (
    data_dir as default_data_dir,
)
from anykit.tools import OUTPUT_LIMIT, Bounds, Tool, ToolResult, tool_result

from .config import AppConfig, parse_config, read_config
from .configurations import Configurations
from .following import Following
from .inputs import Told
from .lives import Lives
from .opening import Named, Opening, agent_source, as_tool, builtin_toolkits, opened, source_openers
from .reloading import Reloading, ReloadReport
from .shaping import arrange, check, view_for
from .skill_trust import SkillTrust
from .telling import Telling
from .toolkit_settings import ToolkitSettings
from .trust import Trust

log = logging.getLogger("anykit.workbench")

REGISTERED = "registered"
"""The source that `register` puts tools into."""


class SourceUnavailable(CapabilityError):
    """A source marked as required did not come up."""


@dataclass(frozen=True, slots=True)
class SourceView:
    """A source as the operator sees it."""

    name: str
    kind: str
    state: State
    location: str
    tools: tuple[str, ...]
    toolkits: tuple[str, ...]
    reports: tuple[str, ...]
    """What was left out or renamed, and why."""


class Workbench:
    """One toolbox. Give it functions, tools, toolkits, providers, paths and URLs; use it as a context manager.

    `agents` are A2A agents (`anykit.a2a.agent`); one that is away costs only itself.
    `config` is a file, an `AppConfig` or the same as a dict; None reads no file. `data_dir` is where records and
    secrets lie, by default the platform's folder. `settle` is how many seconds entering waits for sources that connect;
    those still without a verdict go on. `wait_for` answers questions of tools on the spot; without it a call that asks
    comes back with the question (`answer`).
    """

    def __init__(
        self,
        *sources: Named,
        agents: Sequence[Any] = (),
        extra_tools: Sequence[Named] = (),
        config: AppConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        data_dir: str | os.PathLike[str] | None = None,
        settle: float = 1.0,
        environment: str | None = None,
        wait_for: WaitFor | None = None,
        records: RecordStore | None = None,
        project: str | None = None,
    ) -> None:
        self._environment = environment
        self.config = _config_of(config).for_environment(environment)
        self._given = (*sources, *extra_tools)
        self._agents = tuple(agents)
        self._settle = settle
        self._explicit_data = data_dir is not None or self.config.data_dir is not None or bool(project)
        folder = data_dir if data_dir is not None else self._data_dir_of_file()
        self.data_dir = default_data_dir(folder)
        self._own_records = records is None
        self.records: RecordStore = records or SqliteRecords(self.data_dir / "anykit.sqlite3")
        self.secrets = SecretStore(self.records, data_dir=self.data_dir)
        self.configurations = Configurations(
            self.records, self.secrets, project=project or _project_of(self.config.path)
        )
        self.told = Told(self.records, self.secrets, project=project or _project_of(self.config.path))
        self._values_told: Mapping[str, Mapping[str, str]] = {}
        self.catalog = Catalog()
        arrange(self.catalog, self.config)
        self.served: str | None = None
        """The view that every face serves, whatever the configuration says of it."""
        self.scopes = Scopes(bounds=self._bounds(), vault=self.configurations if self._explicit_data else None)
        self.suspended = Suspensions(self.records, self.secrets)
        self.executor = Executor(
            self.catalog, self.scopes, Journal(self.records), suspensions=self.suspended, wait_for=wait_for
        )
        self._mine = self.session()
        self.skills = Library(self._toolkits_for)
        """The skills of all sources."""
        # What a person agreed to lies in a folder of that person's, never in one that a file names.
        named = data_dir is not None and Path(data_dir) != self._data_dir_of_file()
        self._trust_dir = default_data_dir(data_dir if named else None)
        self.models = _models_of(self.config)
        """Asks the models of A2E agents on behalf of MCP servers, where the configuration allows it."""
        self._settings = ToolkitSettings(
            self.catalog, self.scopes, session=lambda: self.session(face="config"), stored=self._stored
        )
        self._lives = Lives(
            self.catalog, self.scopes, self.executor.running, connect_timeout=self.config.limits.connect
        )
        self._sources = Reloading(self.catalog, self._lives, self._settings, opening=self._opening)
        self.following = Following(
            self.catalog,
            self._lives,
            pieces=lambda: self._sources.pieces,
            opening=lambda: self._opening(self.config),
            offered=lambda source: self._settings.offered(source, self.config),
        )
        """Follows edits of Python sources, where somebody tells it of them."""
        self._telling = Telling(
            self.catalog,
            self._lives,
            pieces=lambda: self._sources.pieces,
            opening=lambda: self._opening(self.config),
        )
        self._exports = Exports()
        self._intakes: dict[str, tuple[object, Intake]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def problems(self) -> dict[str, str]:
        """Toolkits that are not configured as they were told to be, with why; `*` is all of them."""
        return self._settings.problems

    # life

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise RuntimeError("a workbench is entered once; make a new one")
        self._loop = asyncio.get_running_loop()
        try:
            await self._start()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stop()

    async def _start(self) -> None:
        await self._load_told()
        more = [agent_source(agent, self._opening(self.config)) for agent in self._agents]
        added = self._sources.start(self.config, self._given, more)
        for source in added:
            await self._lives.connect(source)
        if self._explicit_data and await self._has_records():
            with contextlib.suppress(RecordError):
                await self.suspended.load()
        await self._settings.apply(self.config)
        await self.settled(self._settle)
        connect = self.config.limits.connect
        for source in added:
            if not source.required:
                continue
            await self._until(lambda name=source.name: self._state(name).status != "connecting", connect)
            state = self._state(source.name)
            if state.status != "ready":
                raise SourceUnavailable(f"required source {source.name} is not available: {state.reason}")

    def _state(self, name: str) -> State:
        return state_of(self.catalog.snapshot.sources[name])

    async def _stop(self) -> None:
        if self._lives.closed:
            return
        await self._lives.close()
        await self.suspended.close()
        await self.scopes.close(grace=2.0)
        if self._own_records:
            with contextlib.suppress(RecordError):
                await self.records.close()

    def _opening(self, config: AppConfig) -> Opening:
        return Opening(
            folder=config.folder,
            connect_timeout=config.limits.connect,
            private_hosts=tuple(self.config.bounds.private_hosts),
            offers=_offers_of(config, self.models),
            secrets=self.secrets,
            told=self._values_told,
            library=self.skills,
            allowed=SkillTrust(Trust(self._trust_dir)),
            data_dir=self.data_dir,
            openers=source_openers(),
        )

    async def _load_told(self) -> None:
        """What servers were told by earlier `configure` commands."""
        if self._explicit_data and await self._has_records():
            try:
                self._values_told = await self.told.values(None, self.config.folder)
            except (SecretError, RecordError) as error:
                self.problems["*"] = str(error)

    async def _stored(self) -> dict[str, JsonObject]:
        """What earlier `configure` commands kept."""
        return await self.configurations.load() if self._explicit_data and await self._has_records() else {}

    async def _has_records(self) -> bool:
        return not isinstance(self.records, SqliteRecords) or (self.data_dir / "anykit.sqlite3").exists()

    async def settled(self, timeout: float) -> bool:
        """Wait until every source has a verdict, at most `timeout` seconds; whether all have."""
        return await self._until(lambda: not self._connecting(), timeout)

    def _connecting(self) -> bool:
        return any(state_of(source).status == "connecting" for source in self.catalog.snapshot.sources.values())

    async def _until(self, reached: Any, timeout: float) -> bool:
        if reached():
            return True
        changed = asyncio.Event()
        unsubscribe = self.catalog.subscribe(lambda snapshot: changed.set())
        try:
            async with asyncio.timeout(timeout):
                while not reached():
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            return bool(reached())
        finally:
            unsubscribe()
        return True

    # what there is

    def tools(self) -> list[Tool]:
        """The tools that can be called now."""
        return self._mine.tools()

    def get(self, name: str) -> Tool | None:
        """One of them, or None."""
        return self._mine.get(name)

    def toolkits(self) -> list[ToolkitView]:
        """Every toolkit, with its schema and whether it is configured."""
        return self._mine.toolkits()

    def sources(self) -> list[SourceView]:
        """Every source, with how it is."""
        snapshot = self.catalog.snapshot
        return [
            SourceView(
                name=source.name,
                kind=source.kind,
                state=state_of(source),
                location=source.location,
                tools=tuple(name for name, entry in snapshot.tools.items() if entry.source == source.name),
                toolkits=tuple(name for name, entry in snapshot.toolkits.items() if entry.source == source.name),
                reports=tuple(
                    f"{report.name}: {report.reason}" for report in snapshot.reports if report.source == source.name
                ),
            )
            for source in snapshot.sources.values()
        ]

    async def resources(self) -> list[ResourceDescriptor]:
        """Every resource that can be listed."""
        return await self._mine.resources()

    async def read(self, uri: str) -> ResourceContents:
        """Read one. Raises `CapabilityError`."""
        return await self._mine.read(uri)

    async def prompts(self) -> list[PromptDescriptor]:
        """Every prompt."""
        return await self._mine.prompts()

    async def prompt(self, name: str, args: JsonObject | None = None) -> PromptContents:
        """Fill one in. Raises `CapabilityError`."""
        return await self._mine.prompt(name, args)

    async def context(
        self,
        *,
        resources: Sequence[str] = (),
        prompts: Sequence[str | tuple[str, JsonObject]] = (),
        format: Literal["openai", "anthropic", "gemini"] = "openai",
        limit: int = OUTPUT_LIMIT,
    ) -> list[JsonObject]:
        """Resources (by URI) and prompts (by name, or name and arguments) as messages for a model, without a tool call.

        In the given order, resources first, in the shape of `format` (`openai`, `anthropic`, `gemini`); at most `limit`
        bytes of content in all, and what was cut says so. Raises `CapabilityError` for what cannot be read or filled in.
        """
        messages: list[PromptMessage] = []
        for uri in resources:
            contents = await self.read(uri)
            messages.append(PromptMessage(role="user", content=(TextPart(text=f"{uri}:"), *contents.parts)))
        for wanted in prompts:
            name, args = (wanted, {}) if isinstance(wanted, str) else wanted
            messages += (await self.prompt(name, args)).messages
        return shaped_messages(messages, format, limit=limit)

    def skills_prompt(self) -> str:
        """The catalogue of skills for a system prompt, as it is on disk now; "" where there are none."""
        self.skills.refresh_now()
        return self.skills.prompt()

    def _toolkits_for(self, context: CapabilityContext) -> dict[str, bool]:
        """Every toolkit, and whether it is configured for whom a call is made."""
        caller = Caller(context.principal or "local", "skills", context.session_id)
        find = self.scopes.find
        return {name: find(caller, name) is not None for name in self.catalog.snapshot.toolkits}

    # calls

    async def call(
        self,
        name: str,
        arguments: Json = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        context: CapabilityContext | None = None,
    ) -> ToolResult:
        """Call a tool; whatever becomes of it is a `ToolResult`. `timeout` is in seconds."""
        return await self._mine.call(name, arguments, _options(timeout, idempotency_key, context))

    async def execute(
        self,
        name: str | object,
        arguments: Any = None,
        *,
        timeout: float | None = None,
        idempotency_key: str | None = None,
        context: CapabilityContext | None = None,
    ) -> ToolResult:
        """A model provider's tool call as it comes: a name, and arguments as an object or a string of JSON.

        Or the call itself, as the SDKs of OpenAI, Anthropic and Google give it (an object or a dict). None for a parameter
        that may be left out and takes no null is taken as not given; parameters that an export had to call otherwise are
        called by their own names again. Raises `TypeError` for what is no tool call.
        """
        if not isinstance(name, str):
            name, arguments = call_of(name)
        given = read_arguments(arguments)
        if (intake := self._intake(name)) is not None:
            given = intake.take(given)
        return await self._mine.execute(name, given, _options(timeout, idempotency_key, context))

    def _intake(self, name: str) -> Intake | None:
        """What a tool's schema says of a provider's arguments; made once for a definition."""
        entry = self.catalog.snapshot.tools.get(name)
        if entry is None:
            return None
        spec = entry.tool.spec
        known = self._intakes.get(name)
        if known is None or known[0] is not spec:
            try:
                known = (spec, Intake(spec.input_schema, entry.tool.validator))
            except SchemaError:
                return None
            self._intakes[name] = known
        return known[1]

    # tools for model providers

    def to_openai(
        self, *, strict: Strictness = False, tools: str | Iterable[str] | None = None, view: str | None = None
    ) -> list[JsonObject]:
        """The tools for OpenAI's chat completions: `[{"type": "function", "function": {...}}]`.

        `strict=True` is for tools whose schemas its strict subset can say: raises `StrictRefused`, which names every tool,
        place and keyword in the way; `strict="auto"` makes those strict that can be. `tools` are names or patterns
        (`crm_*`) of those that are wanted, else all that are listed; `view` is the part of everything to take them from. The list is yours to change.
        """
        return self.exported("openai", strict=strict, tools=tools, view=view).tools

    def to_openai_responses(
        self, *, strict: Strictness = False, tools: str | Iterable[str] | None = None, view: str | None = None
    ) -> list[JsonObject]:
        """The same for OpenAI's responses: `[{"type": "function", "name": ...}]`."""
        return self.exported("openai-responses", strict=strict, tools=tools, view=view).tools

    def to_anthropic(
        self, *, strict: Strictness = False, tools: str | Iterable[str] | None = None, view: str | None = None
    ) -> list[JsonObject]:
        """The same for Anthropic's messages: `[{"name", "description", "input_schema"}]`."""
        return self.exported("anthropic", strict=strict, tools=tools, view=view).tools

    def to_gemini(self, *, tools: str | Iterable[str] | None = None, view: str | None = None) -> list[JsonObject]:
        """The same for Gemini: `[{"functionDeclarations": [...]}]`, as its REST API and `google-genai` take it."""
        return self.exported("gemini", tools=tools, view=view).tools

    def exported(
        self,
        provider: Provider,
        *,
        strict: Strictness = False,
        tools: str | Iterable[str] | None = None,
        view: str | None = None,
    ) -> Exported:
        """The same for any of them, with what their schemas could not say (`losses`) and what to know (`remarks`)."""
        session = self._mine if view is None else self.session(view=view)
        specs = [entry.tool.spec for entry in session.entries()]
        if tools is None and provider != "anthropic":  # which alone can be told that a tool is to be found
            specs = [spec for spec in specs if not spec.deferred]
        return self._exports.export(specs, provider, strict=strict, tools=tools)

    def suspensions(self) -> list[Suspension]:
        """The questions that wait for an answer."""
        return self._mine.suspensions()

    async def answer(self, id: str, *, ok: bool = True, data: Json = None) -> ToolResult:
        """Answer one and go on with its call; `ok` False refuses."""
        return tool_result(await self._mine.answer(id, ok=ok, data=data))

    async def configure(self, toolkit: str, config: Json) -> Configured:
        """Configure a toolkit for everyone, or tell an MCP server what its `inputs` ask for; returns (status, message).

        Raises `InvalidInput` with `.errors` ([{path, message}]), or `ExecutionFailed`; the old one serves on then.
        """
        asked = None if toolkit in self.catalog.snapshot.toolkits else self._telling.asked(toolkit)
        if asked is None:
            return await self._mine.configure(toolkit, config)
        given = self._telling.checked(asked, config)
        values = self._telling.values(given)
        if self._explicit_data:
            await self.told.save(asked.server, asked.schema, given)
        self._values_told = {**self._values_told, asked.server: values}
        return await self._telling.again(toolkit)

    async def unconfigure(self, toolkit: str) -> bool:
        """Take the configuration for everyone away; False where there was none."""
        return await self._mine.unconfigure(toolkit)

    # changes

    def register(self, *tools: Named) -> None:
        """Add tools at run time. Raises `ValueError` where a name is taken already."""
        made = [as_tool(thing) for thing in tools]
        snapshot = self.catalog.snapshot
        known = snapshot.sources.get(REGISTERED)
        members = list(known.provider.members) if known and isinstance(known.provider, FunctionSource) else []
        for one in made:
            if one.name in snapshot.tools or any(getattr(m, "name", None) == one.name for m in members):
                raise ValueError(f"there is a tool named {one.name!r} already; give this one another name")
            members.append(one)
        source = Source(REGISTERED, "functions", FunctionSource(members))
        if known is None:
            self.catalog.add(source)
        else:
            self.catalog.replace(source)

    def unregister(self, name: str) -> bool:
        """Take a registered tool out; False where there is none of that name."""
        known = self.catalog.snapshot.sources.get(REGISTERED)
        if known is None or not isinstance(known.provider, FunctionSource):
            return False
        kept = [one for one in known.provider.members if getattr(one, "name", None) != name]
        if len(kept) == len(known.provider.members):
            return False
        self.catalog.replace(replace(known, provider=FunctionSource(kept)))
        return True

    async def add(self, source: Named) -> SourceView:
        """Add a source at run time; it is listed at once and usable once it is ready."""
        views = [await self._add(made) for made in opened([source], self._opening(self.config))]
        return views[0]

    async def add_agent(self, agent: Any) -> SourceView:
        """Add an A2A agent (`anykit.a2a.agent`) at run time; one that is away costs only itself."""
        return await self._add(agent_source(agent, self._opening(self.config)))

    async def _add(self, made: Source) -> SourceView:
        [added] = self.catalog.add(self._settings.offered(made, self.config))
        await self._lives.connect(added)
        return next(view for view in self.sources() if view.name == added.name)

    async def remove(self, name: str) -> None:
        """Take a source out and close it. Raises `KeyError` where there is none of that name."""
        toolkits = [entry.name for entry in self.catalog.snapshot.toolkits.values() if entry.source == name]
        source = self.catalog.remove(name)
        for toolkit in toolkits:
            await self.scopes.remove(HOST, toolkit, "Toolkit was removed")
            self.scopes.withdraw(toolkit, "Toolkit was removed")
        if isinstance(source.provider, Connected):
            await source.provider.close()

    async def reload(
        self,
        config: AppConfig | Mapping[str, Any] | str | os.PathLike[str] | None = None,
        *,
        sources: Sequence[Named] | None = None,
    ) -> ReloadReport:
        """Apply a changed configuration, source by source: what is named as before is not touched.

        `config` is what the workbench takes; None reads its file again. `sources` are those named beside the
        configuration, the same as before if not given. Raises `ConfigError` for one that cannot be parsed, does not fit or
        leaves a variable unset; everything is as it was then.
        """
        before = self.config
        said = before.path if config is None else config
        fresh = (before if said is None else _config_of(said)).for_environment(self._environment)

        check(self.catalog, fresh)
        await self._load_told()

        def rest() -> None:
            self.config = fresh
            arrange(self.catalog, fresh)
            self.scopes.rebound(self._bounds())

        return await self._sources.reload(fresh, before=before, given=sources, more=rest)

    @property
    def documents(self) -> set[Path]:
        """Files beside the configuration that were read with it: a client's `mcp.json`, an OpenAPI document."""
        return {file for piece in self._sources.pieces for file in piece.documents}

    def changes(self) -> AsyncIterator[Change]:
        """Each change of the catalogue and each toolkit's event, as they come."""
        return self._mine.changes()

    # seams

    def session(
        self, *, principal: str = "local", face: str = "python", id: str | None = None, view: str | None = None
    ) -> Session:
        """One caller's verbs; every face works through one.

        `view` is the part of everything that it is served; by default what the configuration says of the principal's token
        and of the face. Raises `ValueError` for a view that there is none of.
        """
        if view is None:
            view = view_for(self.config, principal, face, served=self.served)
        elif view not in self.catalog.views:
            hint = self.catalog.snapshot.suggest(view, self.catalog.views)
            raise ValueError(f"there is no view {view!r}{hint}")
        caller = Caller(principal, face, id, view)
        return Session(caller, catalog=self.catalog, scopes=self.scopes, executor=self.executor)

    def view(self, name: str) -> Session:
        """A part of everything, by the name that the configuration gives it. Raises `ValueError` where there is none."""
        return self.session(view=name)

    def unavailable(self) -> list[str]:
        """What is not there now, a line for each source: since when, why, when it is tried again."""
        return self._mine.unavailable()

    def asgi(self, *, token: str | None = None) -> Callable[..., Awaitable[None]]:
        """The faces as one ASGI application, for another server; the bench stays yours to enter and leave."""
        from .serving import server  # noqa: PLC0415 - 0.06 s that a workbench in process need not pay

        return server(self, token=token).app

    async def serve(self, host: str | None = None, port: int | None = None, *, token: str | None = None) -> None:
        """Listen until a signal, or until cancelled. Not given, address and token are as the configuration says.

        Raises `TokenRequired` beyond loopback without a token, `OSError` where the address cannot be bound.
        """
        from .serving import server  # noqa: PLC0415 - the same

        await server(self, host=host, port=port, token=token).serve()

    def _bounds(self) -> Bounds:
        said = self.config.bounds
        folder = self.config.folder
        roots = [str(Path.cwd())] if said.roots is None else said.roots
        return Bounds(
            roots=tuple((folder / Path(root).expanduser()).resolve() for root in roots),
            database_urls=tuple(said.database_urls),
            private_hosts=tuple(said.private_hosts),
        )

    def _data_dir_of_file(self) -> Path | None:
        if self.config.data_dir is None:
            return None
        return self.config.folder / Path(self.config.data_dir).expanduser()


def default_sources() -> list[str]:
    """What is offered where nobody says what: the built-in toolkits."""
    return [f"anykit:{name}" for name, point in builtin_toolkits().items() if point.value.startswith("anykit.")]


def _config_of(config: AppConfig | Mapping[str, Any] | str | os.PathLike[str] | None) -> AppConfig:
    if config is None:
        return AppConfig()
    if isinstance(config, AppConfig):
        return config
    if isinstance(config, Mapping):
        return parse_config(config)
    return read_config(config)


def _models_of(config: AppConfig) -> Any:
    if not config.offers.sampling:
        return None
    from anykit.servers.a2e.mcp import AgentModels  # noqa: PLC0415 - a face, that few workbenches in process need

    return AgentModels()


def _offers_of(config: AppConfig, models: Any) -> Any:
    if models is None and config.offers.roots is None:
        return None
    from .offering import offers_of  # noqa: PLC0415 - the same

    return offers_of(config.offers, config.folder, models)


def _project_of(path: Path | None) -> str:
    """What keeps two projects of one person apart: where the file lies, or the folder worked in."""
    place = Path.cwd() if path is None else path
    return f"project:{hashlib.sha256(str(place.resolve()).encode()).hexdigest()[:16]}"


def _options(timeout: float | None, idempotency_key: str | None, context: CapabilityContext | None) -> CallOptions:
    if context is None:
        if timeout is None and idempotency_key is None:
            return _PLAIN
        return CallOptions(timeout=timeout, idempotency_key=idempotency_key)
    return CallOptions(
        timeout=timeout,
        idempotency_key=idempotency_key,
        session_id=context.session_id,
        turn_id=context.turn_id,
        metadata=context.metadata,
        emit=context.emit,
    )


_PLAIN = CallOptions()
