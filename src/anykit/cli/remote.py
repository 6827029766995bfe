"""Verbs that act on a running A2E host (`--connect`), in a session of their own.

A configuration belongs to the session that sent it, so what `configure` sent is kept here, under the host's address, and
brought about again at each connect.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from anykit.app.configurations import Configurations
from anykit.capabilities import (
    Artifact,
    CapabilityContext,
    Event,
    ExecutionFailed,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    JsonObject,
    Suspension,
    Unavailable,
)
from anykit.runtime import HOST, Configured
from anykit.sources.a2e import A2EClient, A2ERequestError
from anykit.sources.a2e.client import LIST_TIMEOUT
from anykit.sources.a2e.shaping import Artifacts, event_of, is_unnamed, layer_error, result_of, spec_of
from anykit.sources.hostile import Malformed, clean_text
from anykit.stores import RecordError, SecretError, SecretStore, SqliteRecords
from anykit.tools import Tool, ToolResult, ToolSpec
from anykit.wire.a2e import A2EEvent, ToolDefinition, ToolkitDefinition
from anykit.wire.a2e.messages.skills import SkillDiscoverRequest, SkillDiscoverResponse

from .errors import CommandError, Exit, usage
from .failures import of_capability
from .invocation import Invocation
from .local import configuration, data_folder, resolved_config, token_of
from .place import PromptRow, ResourceRow, SkillRow, SourceRow, ToolkitRow, ToolRow, hints_of

CHILD_VARIABLES = ("ANYKIT_DATA_DIR", "ANYKIT_ENV")
"""What the command behind --connect gets beside the few variables that every child inherits."""
SKILL = "skill"
"""The capability of skills."""
_URL = re.compile(r"https?://", re.IGNORECASE)


class RemotePlace:
    """See `Place`."""

    def __init__(self, client: A2EClient, kept: Kept) -> None:
        self._client = client
        self._kept = kept
        self._left_out: list[str] = []

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, invocation: Invocation, *, wanted: str | None = None, configuring: bool = False
    ) -> AsyncGenerator[RemotePlace]:
        """Connect, and configure what is kept for this host. Raises `CommandError`."""
        flags, terminal = invocation.flags, invocation.terminal
        target = flags.connect or ""
        config = configuration(invocation)
        async with AsyncExitStack() as stack:
            kept = Kept(data_folder(invocation, config), target)
            stack.push_async_callback(kept.close)
            ensure = await kept.load()
            if configuring and wanted is not None:
                ensure.pop(wanted, None)
            try:
                client = A2EClient(
                    target,
                    token=token_of(invocation) or "",
                    caps=("tools", "toolkits", SKILL),
                    ensure=_resolved(ensure, terminal.warn),
                    env={name: terminal.env[name] for name in CHILD_VARIABLES if name in terminal.env},
                    connect_timeout=invocation.wait,
                )
            except ValueError as error:
                raise usage(f"--connect {target}: {error}") from None
            try:
                with terminal.waiting(f"connecting to {client.name} ..."):
                    await stack.enter_async_context(client)
            except A2ERequestError as error:
                raise _refused(error, client.name) from None
            except Unavailable as error:
                raise of_capability(error) from None
            for name, reason in client.faults.items():
                terminal.warn(f"toolkit {name} is not configured as it was told to be: {reason}")
            try:
                yield cls(client, kept)
            except A2ERequestError as error:
                raise of_capability(layer_error(error)) from None

    # what there is

    async def tools(self) -> list[ToolRow]:
        """See `Place`."""
        rows: dict[str, ToolRow] = {}
        for definition in await self._client.tools.list(include_deferred=True):
            try:
                spec = spec_of(definition)
            except Malformed as error:
                self._left_out.append(f"{definition.name[:100]}: left out: {error}")
                continue
            rows[spec.name] = _tool_row(spec, definition, self._client.name)
        for toolkit in await self._toolkits():
            for name in toolkit.tools:
                if name not in rows and not toolkit.configured:
                    reason = f"toolkit {toolkit.name} is not configured, so {name} cannot run; configure it first"
                    rows[name] = ToolRow(name, name, self._client.name, toolkit.name, False, reason, {}, {})
        return list(rows.values())

    async def _toolkits(self) -> Sequence[ToolkitDefinition]:
        if "toolkits" not in self._client.accepted_caps:
            return ()
        return await self._client.toolkits.list()

    async def toolkits(self) -> list[ToolkitRow]:
        """See `Place`."""
        return [
            ToolkitRow(
                name=one.name,
                alias=one.alias,
                description=one.description,
                category=one.category,
                tags=tuple(one.tags),
                icon_svg=one.icon_svg,
                schema=one.schema,
                tools=tuple(one.tools),
                configured=one.configured,
                version=one.version or "",
                source=self._client.name,
                problem=self._client.faults.get(one.name),
            )
            for one in await self._toolkits()
        ]

    async def resources(self) -> list[ResourceRow]:
        """None: A2E has no resources."""
        return []

    async def prompts(self) -> list[PromptRow]:
        """None: A2E has no prompts."""
        return []

    async def skills(self) -> list[SkillRow]:
        """Those that the host tells of."""
        if SKILL not in self._client.accepted_caps:
            return []
        reply = await self._client.borrow(
            "the list of skills",
            lambda link: link.request(lambda session, now: session.request(SkillDiscoverRequest(), now)),
            LIST_TIMEOUT,
            repeatable=True,
        )
        found = reply.skills if isinstance(reply, SkillDiscoverResponse) else []
        return [
            SkillRow(
                name=clean_text(one.name, 256),
                description=clean_text(one.description),
                source=self._client.name,
                location=clean_text(one.file_path or "", 4096),
                scope=clean_text(one.source, 64),
                toolkits=tuple(clean_text(str(name), 128) for name in one.toolkits or ()),
            )
            for one in found[:10_000]
        ]

    async def sources(self) -> list[SourceRow]:
        """The host itself."""
        state = self._client.state
        return [
            SourceRow(
                name=self._client.name,
                kind="a2e",
                state=state.status,
                reason=state.reason or None,
                since=state.since,
                retry_at=state.retry_at,
                location=self._client.name,
                connects=True,
                reports=tuple(self._left_out),
            )
        ]

    # what is done

    async def call(
        self, name: str, arguments: JsonObject, *, timeout: float | None, listen: Callable[[Event], None]
    ) -> ToolResult:
        """See `Place`."""
        definitions = await self._client.tools.list(include_deferred=True)
        spec = next((spec_of(one) for one in definitions if one.name == name), None)
        if spec is None:
            # The host says better than we could why not: not configured, not there any more.
            spec = ToolSpec(name=name, description="", input_schema={"type": "object"})
        return await HostTool(spec, self._client, timeout).execute(arguments, CapabilityContext(emit=listen))

    def held_back(self, name: str) -> str:
        """See `Place`. A host says it when it is asked."""
        return ""

    def outlives(self, id: str) -> bool:
        """No: a question that a host asks belongs to this session."""
        return False

    async def stored(self, toolkit: str) -> JsonObject:
        """See `Place`."""
        return (await self._kept.load()).get(toolkit, {})

    def said(self, toolkit: str) -> JsonObject:
        """Nothing: the file is not about this host."""
        return {}

    async def configure(self, toolkit: ToolkitRow, config: JsonObject) -> Configured:
        """See `Place`."""
        resolved = resolved_config(config, None, Path.cwd())
        try:
            answer = await self._client.toolkits.configure(toolkit.name, resolved)
        except A2ERequestError as error:
            raise _not_configured(error) from None
        message = answer.message or ""
        if answer.status not in ("ok", "partial"):
            raise ExecutionFailed(message or "the host could not configure it", code="configuration_failed")
        await self._kept.save(toolkit, config)
        return Configured("partial" if answer.status == "partial" else "ok", message)

    async def unconfigure(self, toolkit: str) -> bool:
        """See `Place`. The host forgets it with the session; here it is no longer sent."""
        return await self._kept.forget(toolkit)


class HostTool(Tool):
    """A tool of the host, called in this session."""

    def __init__(self, spec: ToolSpec, client: A2EClient, timeout: float | None) -> None:
        super().__init__(spec)
        self._client = client
        self._timeout = timeout

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult | Suspension:
        """See `Tool`."""
        artifacts = Artifacts()

        def heard(said: A2EEvent) -> None:
            event = event_of(said)
            if isinstance(event, Artifact):
                artifacts.take(event)
                if is_unnamed(event.name):
                    return
            if event is not None:
                context.emit(event)

        try:
            wire = await self._client.tools.call(self.name, request.input, timeout=self._timeout, on_event=heard)
        except A2ERequestError as error:
            raise layer_error(error) from None
        result = result_of(wire)
        if isinstance(result, InvocableResult) and (parts := artifacts.parts()):
            return result.model_copy(update={"content": (*result.content, *parts)})
        return result


class Kept:
    """The configurations that are kept for one host. Nothing is written, nor a file made, before one is."""

    def __init__(self, folder: Path, target: str) -> None:
        self._folder = folder
        self._project = f"host:{address_of(target)}"
        self._records: SqliteRecords | None = None

    @property
    def _file(self) -> Path:
        return self._folder / "anykit.sqlite3"

    def _store(self) -> Configurations:
        self._records = self._records or SqliteRecords(self._file)
        secrets = SecretStore(self._records, data_dir=self._folder)
        return Configurations(self._records, secrets, project=self._project)

    async def load(self) -> dict[str, JsonObject]:
        """Every one, as it was written."""
        if not self._file.exists():
            return {}
        try:
            return await self._store().load()
        except (RecordError, SecretError) as error:
            raise CommandError(str(error), code="not_kept") from None

    async def save(self, toolkit: ToolkitRow, config: JsonObject) -> None:
        """Keep one, for each connect."""
        try:
            await self._store().save(HOST, toolkit.name, toolkit.schema, config)
        except (RecordError, SecretError) as error:
            raise CommandError(f"the configuration works, but cannot be kept: {error}", code="not_kept") from None

    async def forget(self, toolkit: str) -> bool:
        """Drop one; False where there was none."""
        if toolkit not in await self.load():
            return False
        await self._store().forget(HOST, toolkit)
        return True

    async def close(self) -> None:
        """Let go of the file."""
        if self._records is not None:
            await self._records.close()


def address_of(target: str) -> str:
    """What a host is known by: its URL without the path of the protocol, or its command line."""
    text = " ".join(target.split())
    if not _URL.match(text):
        return text
    scheme, _, rest = text.rstrip("/").removesuffix("/a2e").rstrip("/").partition("://")
    host, slash, path = rest.rpartition("@")[2].partition("/")
    return f"{scheme.lower()}://{host.lower()}{slash}{path}"


def _tool_row(spec: ToolSpec, definition: ToolDefinition, source: str) -> ToolRow:
    return ToolRow(
        name=spec.name,
        original=definition.name,
        source=source,
        toolkit=definition.toolkit or None,
        available=True,
        reason=None,
        input_schema=spec.input_schema,
        annotations=hints_of(spec.annotations),
        title=spec.title,
        description=spec.description,
        output_schema=spec.output_schema,
        tags=spec.tags,
    )


def _resolved(kept: dict[str, JsonObject], warn: Callable[[str], None]) -> dict[str, JsonObject]:
    """What is kept, its references read; one that leads nowhere costs its toolkit only."""
    found: dict[str, JsonObject] = {}
    for name, config in kept.items():
        try:
            found[name] = resolved_config(config, None, Path.cwd())
        except InvalidInput as error:
            reasons = "; ".join(f"{fault['path']}: {fault['message']}" for fault in error.errors)
            warn(f"toolkit {name} is not configured as it was told to be: {reasons}")
    return found


def _refused(error: A2ERequestError, host: str) -> CommandError:
    """The host answered, and does not want us."""
    if error.code == "auth_failed":
        return CommandError(
            f"{host} wants a token, and not this one",
            code="auth_failed",
            exit=Exit.CREDENTIALS,
            fixes=[("give it", "export ANYKIT_TOKEN=...   or   --token TOKEN")],
        )
    return CommandError(f"{host}: {error.message}", code=error.code, exit=Exit.UNREACHABLE)


def _not_configured(error: A2ERequestError) -> Exception:
    """Why a host did not take a configuration."""
    if error.detail.get("reason") == "insecure_transport":
        return CommandError(
            error.message,
            code="insecure_transport",
            exit=Exit.DENIED,
            fixes=[("use", "an https:// URL, or a host on this machine")],
        )
    faults = error.detail.get("errors")
    if isinstance(faults, list):
        return layer_error(A2ERequestError("schema_violation", error.message, error.detail))
    if "toolkit_name" in error.detail and "unknown toolkit" in error.message:
        return CommandError(error.message, code="unknown_toolkit", exit=Exit.FAILED)
    if error.code == "timeout":
        return CommandError(error.message, code="timeout", exit=Exit.UNREACHABLE)
    return CommandError(error.message, code="configuration_failed", exit=Exit.USAGE)
