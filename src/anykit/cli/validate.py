"""`anykit validate`: what is wrong with the file and the sources, all of it, without calling anything."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from anykit.app import (
    AppConfig,
    ConfigError,
    Workbench,
    config_file_schema,
    find_config,
    read_config,
)
from anykit.app.config import SourceConfig
from anykit.app.opening import is_openapi_file
from anykit.app.pieces import unset_variables
from anykit.capabilities import JsonObject
from anykit.runtime import CLEANED
from anykit.schema import SchemaError, compile_schema
from anykit.sources.skills import SkillsSource, look, strict_faults
from anykit.stores import UnresolvedReference, resolve_all

from .errors import Exit, usage
from .invocation import Invocation
from .local import importable, sources_of
from .place import did_you_mean, here
from .trusting import may_use

FILE_TYPES = (".toml", ".json", ".jsonc", ".yaml", ".yml")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong. `level` is `error`, or `warning` for what works and may not be meant."""

    level: str
    where: str
    message: str

    def to_json(self) -> JsonObject:
        """As `--json` shows it."""
        return {"level": self.level, "where": self.where, "message": self.message}


def run(
    invocation: Invocation,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SOURCE|FILE",
            help="Sources instead of those of the file, or the file itself (.toml, .json, .yaml).",
            show_default=False,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON Schema of the file, and nothing else.")
    ] = False,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Hold skills against the Agent Skills specification to the letter, as `agentskills validate` does.",
        ),
    ] = False,
    no_start: Annotated[
        bool, typer.Option("--no-start", help="Only read the file: import nothing, start nothing, connect to nothing.")
    ] = False,
) -> int:
    """Check the configuration file and the sources; exit code 6 where something is wrong.

    Sources are opened, so that Python files are imported and hosts are asked what they have; no tool is called and no
    toolkit is set up. With --no-start not even that happens, which is how to look at a file that is not trusted.
    """
    terminal = invocation.terminal
    if schema:
        terminal.write_json(config_file_schema())
        return Exit.OK
    words = what or []
    files = [word for word in words if word.endswith(FILE_TYPES) and not is_openapi_file(here(word))]
    sources = tuple(word for word in words if word not in files)
    if len(files) > 1:
        raise usage(f"one file at a time, not {' and '.join(files)}")
    if files and invocation.flags.config:
        raise usage(f"{files[0]} and --config {invocation.flags.config}: one file at a time")
    path = here(files[0]) if files else here(invocation.flags.config) if invocation.flags.config else find_config()
    if path is not None and not files and not invocation.flags.config and not no_start:
        needed = not (sources or invocation.flags.sources)
        with contextlib.suppress(ConfigError):  # what is wrong with the file is a finding like another
            read_config(path)
            path = path if may_use(invocation, path, needed=needed) else None
    findings = list(
        dict.fromkeys(invocation.run(_findings(invocation, path, sources, start=not no_start, strict=strict)))
    )
    if terminal.as_json:
        terminal.write_json([finding.to_json() for finding in findings])
    else:
        if findings:
            terminal.table(("level", "where", "what"), [(one.level, one.where, one.message) for one in findings])
        checked = "the sources" if path is None else str(path)
        count = f"{len(findings)} finding{'s' if len(findings) != 1 else ''}" if findings else "nothing wrong"
        terminal.note(f"{checked}: {count}")
    return Exit.FINDINGS if findings else Exit.OK


async def _findings(
    invocation: Invocation, path: Path | None, sources: tuple[str, ...], *, start: bool, strict: bool
) -> list[Finding]:
    try:
        config = AppConfig() if path is None else read_config(path)
        config = config.for_environment(invocation.flags.env or invocation.terminal.env.get("ANYKIT_ENV"))
    except ConfigError as error:
        return [_of_line(line, path) for line in str(error).splitlines()]
    if not start:
        plain, named = sources_of(invocation, config, sources)
        files = _of_client_files([*plain.sources, *named], plain.folder, faults=True)
        return [*_of_serve(config), *_of_variables(config), *files]
    with importable(config):
        return [
            *_of_serve(config),
            *_of_plugins(config),
            *await _of_sources(invocation, config, sources, strict=strict),
        ]


def _of_variables(config: AppConfig) -> Iterator[Finding]:
    for line in unset_variables(config):
        where, _, message = line.partition(": ")
        if where != "serve.token":
            yield Finding("error", where, message)


def _of_client_files(sources: Sequence[str | SourceConfig], folder: Path, *, faults: bool = False) -> Iterator[Finding]:
    """What stays as it is in the files of MCP clients, or is otherwise than it may be meant; `faults` too, if wanted."""
    for source in sources:
        said = source if isinstance(source, SourceConfig) else SourceConfig(target=source)
        if not said.enabled or said.target is None or said.kind is not None or not said.target.endswith(FILE_TYPES):
            continue
        from anykit.sources.mcp import Misfit, read_server_file  # noqa: PLC0415 - only those who use MCP pay for it

        file = folder / Path(said.target).expanduser()
        try:
            read = read_server_file(file)
        except Misfit:
            continue  # said of the source, or it is a file of another kind
        for entry in read.entries:
            if entry.name in said.disabled or entry.disabled:
                continue
            for report in entry.reports:
                yield Finding("warning", entry.name, report.removeprefix(f"{entry.name}."))
            if faults and entry.fault:
                yield Finding("error", entry.name, entry.fault.removeprefix(f"{file}: "))


def _of_line(line: str, path: Path | None) -> Finding:
    """A line of a `ConfigError` says `FILE: FIELD: what`, or `FILE: what`."""
    rest = line.removeprefix(f"{path}: ") if path else line
    where, colon, message = rest.partition(": ")
    if colon and " " not in where:
        return Finding("error", where, message)
    return Finding("error", str(path or "config"), rest)


async def _of_sources(
    invocation: Invocation, config: AppConfig, on_line: tuple[str, ...], *, strict: bool
) -> list[Finding]:
    plain, named = sources_of(invocation, config, on_line)
    # Without what the file says of toolkits nothing is set up; what it says is held against the schemas below.
    # A required source that is down is a finding like another.
    sources = [
        one.model_copy(update={"required": False}) if isinstance(one, SourceConfig) else one for one in plain.sources
    ]
    bare = plain.model_copy(update={"toolkits": {}, "sources": sources})
    findings = list(_of_client_files([*plain.sources, *named], plain.folder))
    async with Workbench(*named, config=bare, settle=invocation.wait) as bench:
        for source in bench.sources():
            if source.state.status in ("failed", "connecting", "closed"):
                findings.append(Finding("error", source.name, source.state.reason or "no answer yet"))
            provider = bench.catalog.snapshot.sources[source.name].provider
            if isinstance(provider, SkillsSource):
                findings += _of_skills(provider, strict=strict)
            else:
                findings += [
                    Finding("warning", source.name, one) for one in source.reports if not one.endswith(CLEANED)
                ]
        snapshot = bench.catalog.snapshot
        findings += [Finding("error", fault.name, fault.reason) for fault in bench.catalog.faults]
        findings += [
            Finding("warning", report.name, report.reason)
            for report in snapshot.reports
            if report.source == "configuration" and report not in bench.catalog.faults
        ]
        findings += _of_toolkits(config, {name: entry.spec.schema for name, entry in snapshot.toolkits.items()})
        for name, entry in snapshot.tools.items():
            if entry.tool.spec.output_schema is not None:
                findings += _of_schema(entry.source, f"output schema of {name}", entry.tool.spec.output_schema)
        for entry in snapshot.toolkits.values():
            findings += _of_schema(entry.source, f"configuration schema of {entry.name}", entry.spec.schema)
    return findings


def _of_skills(source: SkillsSource, *, strict: bool) -> Iterator[Finding]:
    """What is wrong with skills; with `strict` exactly what the specification forbids, skill by skill."""
    if not strict:
        yield from (Finding(one.level, one.where, one.message) for one in source.findings)
        return
    yield from (Finding(one.level, one.where, one.message) for one in source.notes)
    found, missed = look(source.places)
    yield from (Finding(one.level, one.where, one.message) for one in missed)
    for one in found:
        yield from (Finding("error", str(one.folder), fault) for fault in strict_faults(one.folder))
    if not found:
        yield from (Finding("error", str(place.path), "there is no SKILL.md in it") for place in source.places)


def _of_schema(where: str, what: str, schema: JsonObject) -> Iterator[Finding]:
    try:
        compile_schema(schema)
    except SchemaError as error:
        yield Finding("error", where, f"{what}: {error}")


def _of_toolkits(config: AppConfig, schemas: Mapping[str, JsonObject]) -> Iterator[Finding]:
    for name, said in config.toolkits.items():
        if not said.enabled:
            continue
        where = f"toolkits.{name}"
        if name not in schemas:
            close = "".join(f"; did you mean {text}?" for _, text in did_you_mean(name, schemas))
            yield Finding("error", where, f"no source offers a toolkit {name}{close}")
            continue
        if said.config is None and not said.auto_configure:
            continue
        try:
            resolved = resolve_all(said.config or {}, None, config.folder)
        except UnresolvedReference as error:
            for fault in error.errors:
                yield Finding("error", _dotted(where, "config", fault["path"]), fault["message"])
            continue
        for fault in compile_schema(schemas[name]).faults(resolved):
            yield Finding("error", _dotted(where, "config", fault["path"]), fault["message"])


def _dotted(*parts: str) -> str:
    return ".".join(piece for part in parts for piece in part.split("/") if piece)


def _of_serve(config: AppConfig) -> Iterator[Finding]:
    serve = config.serve
    if serve.token is not None:
        try:
            resolve_all(serve.token.get_secret_value(), None, config.folder)
        except UnresolvedReference as error:
            yield Finding("error", "serve.token", error.errors[0]["message"])
    for key, value in (("tls_cert", serve.tls_cert), ("tls_key", serve.tls_key)):
        if value and not os.access(config.folder / Path(value).expanduser(), os.R_OK):
            yield Finding("error", f"serve.{key}", f"{value} cannot be read")
    if bool(serve.tls_cert) != bool(serve.tls_key):
        yield Finding("error", "serve", "tls_cert and tls_key belong together")
    for root in config.bounds.roots or []:
        if not (config.folder / Path(root).expanduser()).is_dir():
            yield Finding("warning", "bounds.roots", f"there is no folder {root}")


def _of_plugins(config: AppConfig) -> Iterator[Finding]:
    for plugin in config.a2e.plugins:
        module, _, name = plugin.cls.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), name)
        except Exception as error:
            yield Finding("error", f"a2e.plugins.{plugin.name}", f"{plugin.cls}: {type(error).__name__}: {error}")
            continue
        if not isinstance(found, type):
            yield Finding("error", f"a2e.plugins.{plugin.name}", f"{plugin.cls} is no class")
