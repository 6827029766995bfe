"""A toolkit: a named bundle of tools with a configuration schema and a life.

unconfigured ── configure ──> configured ── close ──> closed
                                  │  ^
                                  └──┘ configure again: the new one is set up beside the old, then they swap
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from pydantic import BaseModel

from anykit.capabilities import JsonObject
from anykit.schema import config_schema

from .errors import UnsendableResult
from .offers import FunctionPrompt, FunctionResource
from .results import jsonable, sendable
from .tool import FunctionTool, Occupied


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a caller's configuration must stay inside; the operator sets it, no caller can widen it."""

    roots: tuple[Path, ...] = ()
    """Folders; a file root must lie in one of them."""
    database_urls: tuple[str, ...] = ()
    """Database URLs that may be named; none by default."""
    private_hosts: tuple[str, ...] = ()
    """Hosts, `host:port`s and networks on private addresses that may be reached; none by default."""


@dataclass(frozen=True, slots=True)
class ToolkitSpec:
    """What is known of a toolkit before anyone configures it."""

    name: str
    alias: str
    description: str
    category: str
    tags: tuple[str, ...]
    icon_svg: str | None
    version: str
    schema: JsonObject
    """JSON Schema of its configuration."""
    tools: Mapping[str, FunctionTool[..., Any]] = field(default_factory=dict[str, FunctionTool[..., Any]])
    resources: Mapping[str, FunctionResource[..., Any]] = field(default_factory=dict[str, FunctionResource[..., Any]])
    prompts: Mapping[str, FunctionPrompt[..., Any]] = field(default_factory=dict[str, FunctionPrompt[..., Any]])


# No docstring: it would become the description in every such toolkit's schema.
class NoConfig(BaseModel):
    pass


def _unheard(kind: str, data: JsonObject) -> None:
    """Before it is set up, and after it is closed, nobody listens."""


class Toolkit(Occupied):
    """Subclass it: class attributes name it, `Config` is its configuration, `@tool` methods read `self.config`.

    One instance serves one scope: a session, a principal, or the host. Write `__init__` without parameters, or not at
    all; what costs something belongs into `setup`.
    """

    name: ClassVar[str]
    alias: ClassVar[str] = ""
    description: ClassVar[str] = ""
    category: ClassVar[str] = ""
    tags: ClassVar[tuple[str, ...] | list[str]] = ()
    icon_svg: ClassVar[str | None] = None
    version: ClassVar[str] = "1.0.0"
    Config: ClassVar[type[BaseModel]] = NoConfig

    config: Any
    """The validated `Config`, set before `setup`."""
    bounds: Bounds | None = None
    """What the configuration must stay inside; None where the operator wrote it."""

    _spec: ClassVar[ToolkitSpec]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "name" not in cls.__dict__ and not hasattr(cls, "name"):
            cls.name = cls.__name__.lower()
        if not cls.description:
            cls.description = inspect.cleandoc(cls.__doc__ or "").partition("\n\n")[0] if cls.__doc__ else ""
        cls._spec = _spec_of(cls)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        made = super().__new__(cls)
        # Set here, so that a subclass may define __init__ without calling ours.
        made._lock = threading.Lock()
        made._running = 0
        made._when_idle = None
        made._emit = _unheard
        made.disabled = {}
        return made

    _lock: threading.Lock
    _running: int
    _when_idle: Callable[[], None] | None
    _emit: Callable[[str, JsonObject], None]
    disabled: dict[str, str]
    """Tools that `setup` switched off, each with its reason."""

    @classmethod
    def spec(cls) -> ToolkitSpec:
        """Its definition."""
        return cls._spec

    async def setup(self, config: Any) -> None:
        """Prepare what the tools need; `config` is `self.config`. Raise to refuse the configuration.

        What it raises reaches the caller if it is a `ToolError`; anything else is logged and told by an id.
        """

    async def close(self) -> None:
        """Give back what `setup` took; no call runs any more."""

    def disable(self, tool_name: str, reason: str) -> None:
        """Switch one tool off while the others work. All off is an error, some is `partial`."""
        if tool_name not in self._spec.tools:
            known = ", ".join(self._spec.tools)
            raise ValueError(f"toolkit {self._spec.name} has no tool {tool_name!r}; it has {known}")
        self.disabled[tool_name] = reason

    def emit(self, kind: str, data: JsonObject) -> None:
        """Tell everyone in whose scope this toolkit is configured. From any thread.

        Raises `UnsendableResult` where `data` is no JSON object.
        """
        plain = jsonable(data)
        if not isinstance(plain, dict):
            raise UnsendableResult("what a toolkit tells is an object")
        self._emit(sendable(kind), cast(JsonObject, plain))

    def attach(self, emit: Callable[[str, JsonObject], None] | None) -> None:
        """Where `emit` goes; the host's business."""
        self._emit = emit or _unheard

    def enter(self) -> None:
        """A call begins."""
        with self._lock:
            self._running += 1

    def leave(self) -> None:
        """A call has really ended, in whatever thread."""
        with self._lock:
            self._running -= 1
            told = self._when_idle if self._running == 0 else None
        if told is not None:
            told()

    def when_idle(self, callback: Callable[[], None]) -> None:
        """Call back, in whatever thread, once no call runs: now, or when the last one ends."""
        with self._lock:
            self._when_idle = callback
            idle = self._running == 0
        if idle:
            callback()


_LIFE = frozenset(name for name in vars(Toolkit) if not name.startswith("__"))
"""What a toolkit itself has: a tool of that name would stand in its way."""


def _inside(cls: type[Toolkit], name: str, value: staticmethod[..., Any] | classmethod[Any, ..., Any]) -> object:
    """The tool in `@staticmethod @tool`. Raises `TypeError` for a class method, which no configuration reaches."""
    inner = cast(object, value.__func__)
    if isinstance(value, classmethod) and isinstance(inner, FunctionTool | FunctionResource | FunctionPrompt):
        raise TypeError(f"toolkit {cls.name}: {name!r} is a class method; a tool is a method of the instance")
    return inner


def _spec_of(cls: type[Toolkit]) -> ToolkitSpec:
    if not (inspect.isclass(cls.Config) and issubclass(cast(type[Any], cls.Config), BaseModel)):
        raise TypeError(f"toolkit {cls.name}: Config must be a pydantic model, a class that derives from BaseModel")
    tools: dict[str, FunctionTool[..., Any]] = {}
    resources: dict[str, FunctionResource[..., Any]] = {}
    prompts: dict[str, FunctionPrompt[..., Any]] = {}
    seen: set[str] = set()
    for base in reversed(cls.__mro__):
        for attribute in vars(base):
            if attribute in seen:
                continue
            seen.add(attribute)
            value = inspect.getattr_static(cls, attribute, None)
            if isinstance(value, staticmethod | classmethod):
                value = _inside(cls, attribute, cast("staticmethod[..., Any] | classmethod[Any, ..., Any]", value))
            if isinstance(value, FunctionTool):
                found = cast(FunctionTool[..., Any], value)
                if attribute in _LIFE:
                    raise TypeError(
                        f"toolkit {cls.name}: a tool cannot be the method {attribute!r}, which is part of a toolkit's "
                        f"life; call the method otherwise and the tool @tool(name={attribute!r})"
                    )
                if found.name in tools:
                    raise TypeError(f"toolkit {cls.name} has two tools named {found.name!r}")
                tools[found.name] = found.of_toolkit(cls.name)
            elif isinstance(value, FunctionResource):
                resource = cast(FunctionResource[..., Any], value)
                resources[resource.uri] = resource
            elif isinstance(value, FunctionPrompt):
                prompt = cast(FunctionPrompt[..., Any], value)
                prompts[prompt.name] = prompt
    return ToolkitSpec(
        name=cls.name,
        alias=cls.alias,
        description=cls.description,
        category=cls.category,
        tags=tuple(cls.tags),
        icon_svg=cls.icon_svg,
        version=cls.version,
        schema=config_schema(cls.Config),
        tools=tools,
        resources=resources,
        prompts=prompts,
    )
