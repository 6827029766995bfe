"""Python itself as a source: functions, tools, resources and prompts from objects, and from modules and files."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import importlib
import importlib.util
import logging
import os
import re
import sys
import threading
import traceback
import uuid
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, TypeGuard, cast

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    CapabilityProvider,
    Connected,
    ExecutionFailed,
    InvalidInput,
    Invocable,
    JsonObject,
    Page,
    PromptContents,
    PromptDescriptor,
    PromptProvider,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    State,
)
from anykit.tools import Busy, FunctionPrompt, FunctionResource, ToolError, Toolkit, UnsendableResult, tool

log = logging.getLogger("anykit.sources")

AnyResource: TypeAlias = FunctionResource[..., Any]
AnyPrompt: TypeAlias = FunctionPrompt[..., Any]


class FunctionSource:
    """A provider made of Python objects: functions, tools, resources, prompts, bare invocables; and other providers.

    Raises `TypeError` for any other object, and `SignatureError` where a function cannot be described.
    """

    def __init__(self, members: Sequence[object] = (), providers: Sequence[CapabilityProvider] = ()) -> None:
        self.members = members
        """What it was made of, as given."""
        self.providers = tuple(providers)
        """Providers whose offer is added to the members'."""
        self.stale = ""
        """Why something newer does not serve in its place; empty where nothing does."""
        self._invocables: list[Invocable] = []
        resources: list[AnyResource] = []
        prompts: list[AnyPrompt] = []
        for member in members:
            match _shape(member):
                case FunctionResource() as resource:
                    resources.append(resource)
                case FunctionPrompt() as prompt:
                    prompts.append(prompt)
                case invocable:
                    self._invocables.append(invocable)
        self._resources = (FunctionResources(resources),) if resources else ()
        self._prompts = (FunctionPrompts(prompts),) if prompts else ()

    def invocables(self) -> Sequence[Invocable]:
        """The functions and tools, in the order given."""
        return (*self._invocables, *(one for provider in self.providers for one in provider.invocables()))

    def resources(self) -> Sequence[ResourceProvider]:
        """One provider of all resources, where there are any."""
        return (*self._resources, *(one for provider in self.providers for one in provider.resources()))

    def prompts(self) -> Sequence[PromptProvider]:
        """One provider of all prompts, where there are any."""
        return (*self._prompts, *(one for provider in self.providers for one in provider.prompts()))

    # The life of the providers among them; functions are always there.

    @property
    def state(self) -> State:
        """The first state of a provider that is not ready, else ready."""
        states = (provider.state for provider in self.providers if isinstance(provider, Connected))
        return next((state for state in states if state.status != "ready"), State("ready", self.stale))

    async def start(self) -> None:
        """Start each provider that connects."""
        for provider in self.providers:
            if isinstance(provider, Connected):
                await provider.start()

    async def close(self) -> None:
        """Close each provider that connects."""
        connected = [provider for provider in self.providers if isinstance(provider, Connected)]
        await asyncio.gather(*(provider.close() for provider in connected), return_exceptions=True)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back when one of the providers changed."""
        undo = [provider.subscribe(callback) for provider in self.providers if isinstance(provider, Connected)]

        def unsubscribe() -> None:
            for one in undo:
                one()

        return unsubscribe


def _shape(member: object) -> Invocable | AnyResource | AnyPrompt:
    """What an object offers; a plain function becomes a tool."""
    if isinstance(member, FunctionResource | FunctionPrompt):
        return cast("AnyResource | AnyPrompt", member)
    if isinstance(member, type):
        raise TypeError(f"class {member.__name__} is neither a function nor a tool; a toolkit is a source of its own")
    if is_invocable(member):
        return member
    if callable(member):
        return tool(cast("Callable[..., Any]", member))
    raise TypeError(f"{type(member).__name__} is neither a function nor a tool, a resource or a prompt")


class FunctionResources:
    """Resources read by calling functions. What a function raises becomes one of the layer's errors."""

    def __init__(self, resources: Iterable[AnyResource]) -> None:
        self._fixed: dict[str, AnyResource] = {}
        self._families: list[AnyResource] = []
        for resource in resources:
            if resource.is_template:
                self._families.append(resource)
            elif resource.uri in self._fixed:
                raise TypeError(f"two resources have the URI {resource.uri!r}")
            else:
                self._fixed[resource.uri] = resource

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`."""
        return Page([resource.descriptor() for resource in self._fixed.values()])

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`."""
        return Page([family.template() for family in self._families])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`."""
        found = self._fixed.get(id) or next((one for one in self._families if one.match(id) is not None), None)
        if found is None:
            raise InvalidInput(f"no resource {id[:200]!r}")
        with _layered(f"resource {found.name}"):
            return await found.read(None, id, context)


class FunctionPrompts:
    """Prompts filled in by calling functions. What a function raises becomes one of the layer's errors."""

    def __init__(self, prompts: Iterable[AnyPrompt]) -> None:
        self._prompts: dict[str, AnyPrompt] = {}
        for prompt in prompts:
            if prompt.name in self._prompts:
                raise TypeError(f"two prompts are named {prompt.name!r}")
            self._prompts[prompt.name] = prompt

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        """See `PromptProvider`."""
        return Page([prompt.descriptor() for prompt in self._prompts.values()])

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """See `PromptProvider`."""
        found = self._prompts.get(id)
        if found is None:
            raise InvalidInput(f"no prompt {id[:200]!r}")
        with _layered(f"prompt {id}"):
            return await found.get(None, args, context)


@contextlib.contextmanager
def _layered(what: str) -> Generator[None]:
    """A `ToolError` reaches the caller with its text; anything unexpected by an id, under which the log has the rest."""
    try:
        yield
    except CapabilityError:
        raise
    except ToolError as error:
        raise ExecutionFailed(error.message) from None
    except Busy as error:
        raise ExecutionFailed(f"{what} was not read: {error}", code="busy", retryable=True) from None
    except UnsendableResult as error:
        raise ExecutionFailed(f"{what} gave what cannot be sent: {error}", code="invalid_output") from None
    except Exception:
        error_id = uuid.uuid4().hex[:12]
        log.exception("%s broke (error %s)", what, error_id)
        raise ExecutionFailed(f"{what} failed unexpectedly (error {error_id})", code="internal") from None


def is_invocable(item: object) -> TypeGuard[Invocable]:
    """Whether an object, not a class, is an `Invocable`."""
    return not isinstance(item, type) and isinstance(item, Invocable)


def is_provider(item: object) -> TypeGuard[CapabilityProvider]:
    """Whether an object, not a class, is a `CapabilityProvider`."""
    return not isinstance(item, type) and isinstance(item, CapabilityProvider)


class LoadError(Exception):
    """A module could not be loaded; the text says where and why, in one line."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a module offers, in the order of its definitions."""

    name: str
    """The file's stem or the last part of the module's name; what follows a colon where one was given."""
    location: str
    """The file."""
    tools: tuple[Invocable, ...] = ()
    toolkits: tuple[type[Toolkit], ...] = ()
    resources: tuple[AnyResource, ...] = ()
    prompts: tuple[AnyPrompt, ...] = ()
    providers: tuple[CapabilityProvider, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether it offers nothing."""
        return not (self.members or self.toolkits or self.providers)

    @property
    def members(self) -> tuple[object, ...]:
        """Tools, resources and prompts: what a `FunctionSource` is made of."""
        return (*self.tools, *self.resources, *self.prompts)


def load_module(target: str | os.PathLike[str], member: str | None = None) -> Loaded:
    """Run a module and look what it offers.

    `target` is a `.py` file, a folder that is a package, or a dotted name; `member`, or `:member` behind the target, picks
    one object (then a plain function counts too). A file runs under a name of its own, with its folder importable while it loads, so that
    files of the same name in two folders do not meet. From a module count: tools, resources, prompts, invocables and
    providers that stand in it, toolkits that are defined in it, and the classes of toolkit instances in it.

    Raises `LoadError` with file and line; whatever the module raises stays inside.
    """
    place, attribute = (os.fspath(target), member) if member else _split(os.fspath(target))
    path = Path(place)
    is_file = place.endswith(".py") or os.sep in place or path.is_dir()
    module = _run_file(path) if is_file else _import(place)
    location = str(getattr(module, "__file__", None) or place)
    name = path.stem if place.endswith(".py") else path.name if os.sep in place else place.rpartition(".")[2]
    if attribute:
        found = _pick(module, attribute, f"{place}:{attribute}")
        return _sorted_out(attribute.rpartition(".")[2], location, found)
    return _sorted_out(name, location, _offered(module))


def objects_of(module: ModuleType) -> Loaded:
    """What a module offers that is loaded already: see `load_module`."""
    return _sorted_out(module.__name__.rpartition(".")[2], str(module.__file__ or module.__name__), _offered(module))


_ATTRIBUTE = re.compile(r"(?P<place>.{2,}):(?P<attribute>[A-Za-z_][A-Za-z0-9_.]*)", re.DOTALL)


def _split(target: str) -> tuple[str, str]:
    found = _ATTRIBUTE.fullmatch(target)
    if found is None or Path(target).exists():
        return target, ""
    return found["place"], found["attribute"]


def _offered(module: ModuleType) -> Generator[object]:
    """What counts in a module: see `load_module`. One object under two names counts once."""
    seen: set[int] = set()
    for value in list(vars(module).values()):
        if id(value) in seen or isinstance(value, ModuleType):
            continue
        seen.add(id(value))
        if isinstance(value, type):
            if issubclass(value, Toolkit) and value is not Toolkit and value.__module__ == module.__name__:
                yield value
        elif isinstance(value, FunctionResource | FunctionPrompt | Toolkit):
            yield cast(object, value)
        elif _harmlessly(is_invocable, value) or _harmlessly(is_provider, value):
            yield value


def _harmlessly(question: Callable[[object], bool], value: object) -> bool:
    """Objects of a module may do anything when they are asked for an attribute."""
    try:
        return question(value)
    except Exception:
        return False


def _sorted_out(name: str, location: str, found: Iterable[object]) -> Loaded:
    tools: list[Invocable] = []
    toolkits: dict[type[Toolkit], None] = {}
    resources: list[AnyResource] = []
    prompts: list[AnyPrompt] = []
    providers: list[CapabilityProvider] = []
    for item in found:
        if isinstance(item, type):
            toolkits[cast("type[Toolkit]", item)] = None
        elif isinstance(item, Toolkit):
            toolkits[type(item)] = None
        elif isinstance(item, FunctionResource):
            resources.append(cast(AnyResource, item))
        elif isinstance(item, FunctionPrompt):
            prompts.append(cast(AnyPrompt, item))
        elif is_invocable(item):
            tools.append(item)
        elif is_provider(item):
            providers.append(item)
    return Loaded(name, location, tuple(tools), tuple(toolkits), tuple(resources), tuple(prompts), tuple(providers))


def _pick(module: ModuleType, attribute: str, asked: str) -> list[object]:
    value: object = module
    for step in attribute.split("."):
        try:
            value = getattr(value, step)
        except AttributeError:
            raise LoadError(f"{asked}: there is no {attribute!r}") from None
    items = list(cast("Iterable[object]", value)) if isinstance(value, list | tuple) else [value]
    return [_one(item, asked) for item in items]


def _one(item: object, asked: str) -> object:
    if isinstance(item, type):
        if issubclass(item, Toolkit) and item is not Toolkit:
            return item
        raise LoadError(f"{asked}: class {item.__name__} is no toolkit")
    if isinstance(item, FunctionResource | FunctionPrompt | Toolkit) or is_invocable(item) or is_provider(item):
        return cast(object, item)
    if callable(item):
        try:
            return tool(cast("Callable[..., Any]", item))
        except TypeError as error:
            raise LoadError(f"{asked}: {error}") from None
    raise LoadError(f"{asked}: a {type(item).__name__} is no tool, toolkit, resource, prompt or provider")


# running the code of a module

_LOADING = threading.RLock()
"""One at a time: `sys.path` is everyone's."""
_SIBLINGS: dict[str, set[str]] = {}
"""By folder: the modules that its files imported from it."""


def _run_file(path: Path) -> ModuleType:
    path = path.absolute()
    shown = os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    package = path / "__init__.py"
    if path.is_dir():
        if not package.is_file():
            raise LoadError(f"{shown} is a folder without __init__.py, so it is no module")
    elif not path.is_file():
        raise LoadError(f"{shown} does not exist")
    folder = str(path.parent)
    # The parent's name is the folder's own; with it, `from .other import x` works and the last part stays readable.
    parent = f"_anykit_{hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:12]}"
    name = f"{parent}.{re.sub(r'[^A-Za-z0-9_]', '_', path.stem)}"
    with _LOADING:
        sys.modules.setdefault(parent, _folder_module(parent, folder))
        spec = importlib.util.spec_from_file_location(
            name,
            package if path.is_dir() else path,
            submodule_search_locations=[str(path)] if path.is_dir() else None,
        )
        if spec is None or spec.loader is None:
            raise LoadError(f"{shown} is no Python file")
        module = importlib.util.module_from_spec(spec)
        previous = sys.modules.get(name)
        sys.modules[name] = module
        try:
            with _importable(folder):
                _guarded(functools.partial(spec.loader.exec_module, module), shown)
        except LoadError:
            if previous is None:
                del sys.modules[name]
            else:
                sys.modules[name] = previous
            raise
    return module


def _folder_module(name: str, folder: str) -> ModuleType:
    module = ModuleType(name)
    module.__path__ = [folder]
    return module


@contextlib.contextmanager
def _importable(folder: str) -> Generator[None]:
    """Put a folder on the path. A sibling of another folder's file that has the name of one of ours steps aside."""
    aside: dict[str, ModuleType] = {}
    for other, names in _SIBLINGS.items():
        if other != folder:
            for name in names:
                top = name.partition(".")[0]
                if name in sys.modules and _is_in(folder, top) and not _lies_in(sys.modules[name], folder):
                    aside[name] = sys.modules.pop(name)
    before = set(sys.modules)
    sys.path.insert(0, folder)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)
        ours = _SIBLINGS.setdefault(folder, set())
        for name in set(sys.modules) - before:
            if _lies_in(sys.modules[name], folder) and not name.startswith("_anykit_"):
                ours.add(name)
        sys.modules.update(aside)


def _lies_in(module: ModuleType, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and file.startswith(folder + os.sep)


def _is_in(folder: str, module: str) -> bool:
    return os.path.exists(os.path.join(folder, f"{module}.py")) or os.path.isdir(os.path.join(folder, module))


def _import(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise LoadError(f"{name!r} is neither a .py file nor the name of a module")
    with _LOADING:
        return _guarded(lambda: importlib.import_module(name), name)


def _guarded(run: Callable[[], ModuleType | None], shown: str) -> Any:
    """Run a module's code. Raises `LoadError` for anything it raises, `SystemExit` included."""
    try:
        return run()
    except KeyboardInterrupt:
        raise
    except SyntaxError as error:
        raise LoadError(f"{_place(error.filename, error.lineno, shown)}: SyntaxError: {error.msg}") from error
    except BaseException as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
        if isinstance(error, ModuleNotFoundError) and not frames:
            raise LoadError(f"{shown}: there is no module {error.name!r}") from error
        place = _place(frames[0].filename, frames[0].lineno, shown) if frames else shown
        text = " ".join(str(error).split())
        text = f"{place}: {type(error).__name__}{f': {text}' if text else ''}"
        if frames and frames[-1].filename != frames[0].filename:
            text += f" (raised at {frames[-1].filename}:{frames[-1].lineno})"
        raise LoadError(text) from error


def _is_machinery(file: str) -> bool:
    return file.startswith("<frozen") or file in (__file__, importlib.__file__)


def _place(file: str | None, line: int | None, shown: str) -> str:
    name = shown if file is None or os.path.basename(file) == os.path.basename(shown) else file
    return f"{name}:{line}" if line else name
