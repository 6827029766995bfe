"""From what a person names (a function, a file, a module, a URL) to a source.

A source that cannot be opened is still a source: it is listed as failed, with the reason, and costs only itself.
"""

from __future__ import annotations

import importlib.metadata
import inspect
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

from pydantic import SecretStr

from anykit.capabilities import CapabilityProvider, Invocable, JsonObject
from anykit.runtime import Source, clean
from anykit.schema import SignatureError
from anykit.sources import FunctionSource, Loaded, LoadError, load_module, objects_of
from anykit.sources.skills import KIND as SKILLS
from anykit.sources.skills import Library, SkillsSource
from anykit.stores import SecretStore, UnresolvedReference, resolve, resolve_all
from anykit.tools import FunctionPrompt, FunctionResource, FunctionTool, Tool, Toolkit, tool

from .config import ConfigError, SourceConfig, source_config
from .inputs import inputs_for

Named: TypeAlias = object
"""What may be given as a source: a function, tool, resource, prompt, toolkit, provider, module, path, URL or table."""

_URL = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Opening:
    """What opening needs to know of its surroundings."""

    folder: Path
    """Where relative paths start."""
    env: Mapping[str, str] | None = None
    connect_timeout: float = 15.0
    """Seconds."""
    private_hosts: tuple[str, ...] = ()
    """What may be reached on behalf of peers, although it is not public."""
    offers: Any = None
    """What MCP servers may ask for; only questions, if nothing is given."""
    secrets: SecretStore | None = None
    """Where tokens of servers are kept; with the process, if nowhere else."""
    told: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"], repr=False)
    """What MCP servers were told (`inputs`), by server and id."""
    library: Library | None = None
    """The skills of the host."""
    allowed: Callable[[Path], bool] | None = None
    """Judges the folder of a skill that was found in a project; None allows all."""
    data_dir: Path | None = None
    """Where plugins may keep data; the platform's folder, if not given."""
    openers: Mapping[str, Callable[[SourceConfig, Opening], Source]] = field(
        default_factory=dict[str, "Callable[[SourceConfig, Opening], Source]"]
    )
    """Kinds of sources by name, found at the entry points `anykit.sources`."""


def opened(things: Sequence[Named], opening: Opening) -> list[Source]:
    """The sources of `things`, in order; functions of one module are one source."""
    return [source for _, made in opened_by(things, opening) for source in made]


def opened_by(things: Sequence[Named], opening: Opening) -> list[tuple[Named, list[Source]]]:
    """The same, each with what it was made of; of functions that is their list."""
    parts: list[tuple[Named, list[Source] | _Group]] = []
    by_module: dict[str, _Group] = {}
    for thing in things:
        module = _module_of(thing)
        if module is None:
            parts.append((thing, opened_one(thing, opening)))
            continue
        name = _name_of(thing)
        group = by_module.get(module)
        if group is None or name in group.names:  # two of one name: both are kept, in sources of their own
            group = by_module[module] = _Group(module)
            parts.append((group.members, group))
        group.names.add(name)
        group.members.append(thing)
    return [(said, [made.source()] if isinstance(made, _Group) else made) for said, made in parts]


def opened_one(thing: Named, opening: Opening) -> list[Source]:
    """The sources of one thing: of a client's file each of its servers."""
    several = open_file(thing, opening) or open_plugin(thing, opening)
    if isinstance(thing, SourceConfig):
        several = [_off(one) if one.name in thing.disabled else one for one in several]
    return several or [open_source(thing, opening)]


def names_of(said: str | SourceConfig, opening: Opening) -> list[str]:
    """What the sources of an entry of the file are called; nothing is imported or started to tell that."""
    config = said if isinstance(said, SourceConfig) else SourceConfig(target=said)
    if config.enabled and _is_python(config, opening):
        return [config.name or _module_name(config.target or "")]
    return [one.name for one in opened_one(said, opening)]


def _is_python(config: SourceConfig, opening: Opening) -> bool:
    kind = config.kind or config.own_kind
    if kind is None and not config.command and not config.url:
        try:
            kind = _kind_of(config.target or "", opening)
        except ConfigError:
            return False
    return kind == "python"


def _module_name(target: str) -> str:
    path, _, _ = _split(target)
    return Path(path).stem if path.endswith(".py") else target.partition(":")[0].rpartition(".")[2]


class _Group:
    """Functions of one module that were given one by one."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.names: set[str] = set()
        self.members: list[Any] = []

    def source(self) -> Source:
        return Source(self.module, "functions", FunctionSource(self.members))


def _module_of(thing: Named) -> str | None:
    """The module of something that stands for itself: a function, a tool, a resource, a prompt."""
    if isinstance(thing, FunctionTool | FunctionResource | FunctionPrompt):
        return str(cast(Any, thing).function.__module__).rpartition(".")[2]
    if isinstance(thing, type | types.ModuleType | str | Path | Mapping | Toolkit | CapabilityProvider | SourceConfig):
        return None
    if isinstance(thing, Tool):
        return None if hasattr(thing, "as_source") else thing.source
    if isinstance(thing, Invocable):
        return type(thing).__module__.rpartition(".")[2]
    if callable(thing):
        return str(getattr(thing, "__module__", None) or type(thing).__module__).rpartition(".")[2]
    return None


def _name_of(thing: Any) -> str:
    if isinstance(thing, Invocable):
        return thing.spec.name
    return str(getattr(thing, "name", None) or getattr(thing, "__name__", None) or id(thing))


def open_source(thing: Named, opening: Opening) -> Source:
    """One source. Never raises for what a person may get wrong: the source says why it failed."""
    if isinstance(thing, Source):
        return thing
    if isinstance(thing, type) and issubclass(thing, Toolkit):
        return Source(thing.spec().name, "toolkit", toolkits=(thing,), location=thing.__module__)
    if isinstance(thing, Toolkit):
        return open_source(type(thing), opening)
    if isinstance(thing, types.ModuleType):
        return _of_module(thing.__name__.rpartition(".")[2], objects_of(thing), thing.__name__)
    if isinstance(thing, SourceConfig):
        return _of_config(thing, opening)
    if isinstance(thing, Mapping):
        return _of_config(source_config(cast("Mapping[str, Any]", thing)), opening)
    as_source: Any = getattr(thing, "as_source", None) if isinstance(thing, Tool) else None
    if as_source is not None:
        return _made(as_source())  # it has connections of its own, which live with the workbench
    if isinstance(thing, SkillsSource):
        if opening.library is not None:
            thing.join(opening.library)
        return Source(thing.name, SKILLS, thing)
    if isinstance(thing, CapabilityProvider):
        name = getattr(thing, "name", None)
        return Source(name if isinstance(name, str) and name else type(thing).__name__.lower(), "provider", thing)
    if isinstance(thing, str | Path):
        return _of_config(SourceConfig(target=str(thing)), opening)
    raise TypeError(
        f"{thing!r} is no source; give a function, a tool, a toolkit, a provider, a module, a path or a URL"
    )


def _of_config(config: SourceConfig, opening: Opening) -> Source:
    where = config.target or config.url or (config.command if isinstance(config.command, str) else "") or "source"
    name = config.name or (_module_name(where) if _is_python(config, opening) else _stem(where))
    if not config.enabled:
        # It keeps the name that it has while it is on.
        on = names_of(config.model_copy(update={"enabled": True}), opening)
        name = on[0] if len(on) == 1 else name
        return Source(name, config.kind or "unknown", disabled="switched off in the configuration", location=where)
    try:
        expanded = expand(config, opening)
        source = _find_kind(expanded, opening)
    except (ConfigError, LoadError, SignatureError, UnresolvedReference) as error:
        return Source(name, config.kind or "unknown", failed=str(error), required=config.required, location=where)
    return replace(
        source,
        name=config.name or source.name,
        required=config.required,
        location=source.location or where,
        allow=tuple(config.allow),
        deny=tuple(config.deny),
        tags=tuple(config.tags),
    )


def expand(config: SourceConfig, opening: Opening) -> SourceConfig:
    """`config` with the references in what may hold any replaced, once. Raises `UnresolvedReference`."""
    filled: dict[str, Any] = {}
    inputs = inputs_for(config, opening.told)
    for key in config.references:
        value = getattr(config, key)
        if isinstance(value, SecretStr):
            filled[key] = resolve(value.get_secret_value(), opening.env, opening.folder, where=f"/{key}", inputs=inputs)
        elif value:
            filled[key] = resolve_all(value, opening.env, opening.folder, where=f"/{key}", inputs=inputs)
    return type(config).model_validate({**config.model_dump(exclude_unset=True), **filled})


def _find_kind(config: SourceConfig, opening: Opening) -> Source:
    kind = config.kind or config.own_kind
    if kind is None:
        kind = "a2e" if config.command else _kind_of(config.url or config.target or "", opening)
    if kind == "url":
        return _of_url(config, opening)
    if kind == "mcp":
        from anykit.sources.mcp import open_mcp  # noqa: PLC0415 - only those who use MCP pay for it

        return _made(open_mcp(config, opening, vault=opening.secrets, offers=opening.offers))
    if kind == "python":
        return _of_python(config.target or "", opening)
    if kind == "builtin":
        return _of_entry_point((config.target or "").partition(":")[2])
    opener = opening.openers.get(kind)
    if opener is None:
        known = ", ".join(sorted({"python", *opening.openers}))
        raise ConfigError(f"there is no source kind {kind!r}; known: {known}")
    found: Any = opener(config, opening)
    return found if isinstance(found, Source) else _made(found)


def _of_url(config: SourceConfig, opening: Opening) -> Source:
    """A URL of which nothing more is known: it is asked what it is once the workbench starts."""
    from .probing import Undecided  # noqa: PLC0415 - brings the transports, which most workbenches do without

    url = str(config.url or config.target)

    def decide(kind: str) -> Source:
        return _find_kind(config.model_copy(update={"kind": kind, "url": url}), opening)

    headers = {} if config.token is None else {"authorization": f"Bearer {config.token.get_secret_value()}"}
    provider = Undecided(url, headers=headers, decide=decide, timeout=opening.connect_timeout)
    return Source(config.name or _stem(url), "unknown", provider, location=url)


def open_file(thing: Named, opening: Opening) -> list[Source]:
    """The servers of an MCP client's file (`mcp.json` and its kin), each a source; nothing where it is no such file."""
    target = thing.target if isinstance(thing, SourceConfig) and thing.kind is None and thing.enabled else thing
    if not isinstance(target, str | Path) or Path(target).suffix not in _FILES or _URL.match(str(target)):
        return []
    file = opening.folder / Path(target).expanduser()
    if not file.is_file() or is_openapi_file(file):
        return []
    from anykit.sources.mcp import Misfit, open_file  # noqa: PLC0415 - as above

    try:
        return [_made(one) for one in open_file(file, opening, vault=opening.secrets, offers=opening.offers)]
    except Misfit as error:
        return [Source(clean(file.stem), "mcp", failed=str(error), location=str(file))]


def open_plugin(thing: Named, opening: Opening) -> list[Source]:
    """The sources of an Agent Plugins folder: its skills, and each of its servers; nothing where it is no such folder."""
    config = thing if isinstance(thing, SourceConfig) else None
    target = config.target if config is not None and config.enabled and config.kind in (None, "plugin") else thing
    if not isinstance(target, str | Path) or _URL.match(str(target)) or not _exists(str(target), opening):
        return []
    from anykit.sources.skills.opening import kind_of, open_plugin  # noqa: PLC0415 - only for folders

    folder = opening.folder / Path(target).expanduser()
    if not folder.is_dir() or kind_of(folder) != "plugin":
        return []
    name = config.name or "" if config is not None else ""
    return [_made(one) for one in open_plugin(folder, opening, name=name)]


def _off(source: Source) -> Source:
    return replace(source, provider=None, failed=None, disabled="switched off in the configuration")


_FILES = frozenset({".json", ".jsonc", ".toml", ".yaml", ".yml"})


def _made(opened: Any) -> Source:
    """What a kind's own room opened, as the catalogue takes it."""
    return Source(
        **{field.name: getattr(opened, field.name) for field in fields(Source) if hasattr(opened, field.name)}
    )


def agent_source(agent: Any, opening: Opening) -> Source:
    """An A2A agent as a source."""
    from anykit.sources.a2a import A2ASource  # noqa: PLC0415 - only those who use agents pay for A2A

    provider = A2ASource(agent, connect_timeout=opening.connect_timeout)
    return Source(provider.name, "a2a", provider, location=agent.where)


def agents_of(blocks: Mapping[str, JsonObject], opening: Opening) -> list[Source]:
    """The sources of an `agents` block; one that is wrong is listed as failed."""
    if not blocks:
        return []
    from anykit.sources.a2a import configured_agent, is_enabled  # noqa: PLC0415 - as above

    sources: list[Source] = []
    for id, block in blocks.items():
        if not is_enabled(block):
            sources.append(Source(id, "a2a", disabled="switched off in the configuration"))
            continue
        try:
            made = configured_agent(id, block, env=opening.env, base_dir=opening.folder)
        except ValueError as error:
            sources.append(Source(id, "a2a", failed=str(error)))
            continue
        sources.append(replace(agent_source(made, opening), name=id))
    return sources


def _kind_of(target: str, opening: Opening) -> str:
    if not target:
        raise ConfigError("a source needs a `target`, a `url` or a `command`")
    if target == "anykit:skills":
        return SKILLS
    if target.startswith("anykit:"):
        return "builtin"
    if _URL.match(target):
        return "url"
    path, _, _ = _split(target)
    if path.endswith(".py"):
        return "python"
    if (
        "/" not in target
        and re.fullmatch(r"[A-Za-z_][\w.]*(:[A-Za-z_][\w.]*)?", target)
        and not _exists(target, opening)
        and Path(target).suffix not in _FILES
    ):
        return "python"
    if not _exists(target, opening):
        raise ConfigError(f"{target}: there is no such file")
    if _is_skills(opening.folder / Path(target).expanduser()):
        return SKILLS
    if Path(target).suffix in (*_FILES, "") and is_openapi_file(opening.folder / Path(target).expanduser()):
        return "openapi"
    raise ConfigError(
        f"{target}: what kind of source this is cannot be told; known are Python files and modules (x.py, package.module),"
        " OpenAPI documents, folders of skills (x/SKILL.md), A2E hosts (http://...) and built-in toolkits"
        " (anykit:filesystem, anykit:database, anykit:web)"
    )


def kind_at(path: Path) -> str | None:
    """What a file or folder is that holds no Python: `openapi`, `skills` or `plugin`; None for anything else."""
    if path.is_dir():
        from anykit.sources.skills.opening import kind_of  # noqa: PLC0415 - only for folders

        return kind_of(path)
    if _is_skills(path):
        return SKILLS
    return "openapi" if path.suffix in (*_FILES, "") and path.is_file() and is_openapi_file(path) else None


def _is_skills(path: Path) -> bool:
    """Whether it is a skill, or a folder of skills."""
    if not path.is_dir():
        return path.name in ("SKILL.md", "skill.md")
    from anykit.sources.skills.opening import kind_of  # noqa: PLC0415 - only for folders

    return kind_of(path) == SKILLS


def is_openapi_file(file: Path) -> bool:
    """Whether a file holds an OpenAPI document, or a Swagger one, which its room refuses with a hint."""
    try:
        with file.open("rb") as stream:
            start = stream.read(_OPENAPI_WITHIN)
    except OSError:
        return False
    if b"openapi" not in start and b"swagger" not in start:
        return False
    from anykit.sources.openapi import DocumentError, is_document, read_text  # noqa: PLC0415 - only for such files

    try:
        return is_document(read_text(file))
    except DocumentError:
        return False


_OPENAPI_WITHIN = 32 * 1024 * 1024
"""Bytes of a file that are looked through for the word."""


def _exists(target: str, opening: Opening) -> bool:
    try:
        return (opening.folder / Path(target).expanduser()).exists()
    except (OSError, ValueError):
        return False


def _split(target: str) -> tuple[str, str, str]:
    """`file.py:name` as (file, ":", name)."""
    found = re.fullmatch(r"(.+\.py):([A-Za-z_]\w*)", target)
    return (found[1], ":", found[2]) if found else (target, "", "")


def _of_python(target: str, opening: Opening) -> Source:
    path, _, member = _split(target)
    if path.endswith(".py"):
        file = opening.folder / Path(path).expanduser()
        return _of_module(file.stem, load_module(file, member or None), str(file))
    module, _, member = target.partition(":")
    return _of_module(module.rpartition(".")[2], load_module(module, member or None), module)


def _of_module(name: str, loaded: Loaded, location: str) -> Source:
    if loaded.is_empty:
        raise ConfigError(
            f"{location}: nothing to offer: no @tool function, @resource, @prompt, Toolkit class or provider in it"
        )
    return Source(
        name,
        "python",
        FunctionSource(loaded.members, loaded.providers),
        toolkits=tuple(loaded.toolkits),
        location=location,
    )


def _of_entry_point(name: str) -> Source:
    found = builtin_toolkits()
    if name not in found:
        raise ConfigError(f"there is no toolkit anykit:{name}; known: {', '.join(f'anykit:{one}' for one in found)}")
    try:
        toolkit = found[name].load()
    except Exception as error:
        raise ConfigError(f"toolkit anykit:{name} cannot be loaded: {type(error).__name__}: {error}") from error
    if not (inspect.isclass(toolkit) and issubclass(toolkit, Toolkit)):
        raise ConfigError(f"the entry point {name} of anykit.toolkits is no Toolkit class")
    return Source(toolkit.spec().name, "toolkit", toolkits=(toolkit,), location=f"anykit:{name}")


def builtin_toolkits() -> dict[str, importlib.metadata.EntryPoint]:
    """Toolkits that installed packages offer (entry-point group `anykit.toolkits`), ours first."""
    found = importlib.metadata.entry_points(group="anykit.toolkits")
    ours = [point for point in found if point.value.startswith("anykit.")]
    others = [point for point in found if point not in ours]
    return {point.name: point for point in (*others, *ours)}


def source_openers() -> dict[str, Callable[[SourceConfig, Opening], Source]]:
    """Kinds of sources that installed packages bring (entry-point group `anykit.sources`), loaded on first use."""

    def lazily(point: importlib.metadata.EntryPoint) -> Callable[[SourceConfig, Opening], Source]:
        def open_it(config: SourceConfig, opening: Opening) -> Source:
            opener = cast("Callable[[SourceConfig, Opening], Source]", point.load())
            return opener(config, opening)

        return open_it

    return {point.name: lazily(point) for point in importlib.metadata.entry_points(group="anykit.sources")}


def _stem(target: str) -> str:
    if _URL.match(target):
        host = re.sub(r"^https?://(?:[^@/]*@)?", "", target).partition("/")[0]
        return clean(host)
    path, _, _ = _split(target)
    if path.startswith("anykit:"):
        return path.partition(":")[2]
    return clean(Path(path).stem or "source")


def as_tool(thing: Any) -> Tool:
    """A function or any invocable as a tool, for `register`."""
    if isinstance(thing, Tool):
        return thing
    if callable(thing) and not isinstance(thing, Invocable):
        return tool(thing)
    raise TypeError(f"{thing!r} is no tool; give a function or a tool")
