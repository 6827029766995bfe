"""From the operator's list of plugins to classes. What cannot be loaded costs only itself, and is reported."""

from __future__ import annotations

import importlib
import inspect
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel

from anykit.wire.a2e import capability_name

from .plugins import A2EPlugin

log = logging.getLogger("anykit.a2e")


@dataclass(frozen=True, slots=True)
class PluginClass:
    """A plugin that this host runs, one instance a session."""

    name: str
    capability: str
    """The capability's name on the wire."""
    kind: type[Any]
    priority: int = 0
    exclusive: bool = False
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What every instance is given, less what belongs to its session."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What the handshake tells of it."""
        return {
            "name": self.name,
            "type": self.config.get("type", self.capability),
            "priority": self.priority,
            "exclusive": self.exclusive,
        }


@dataclass(frozen=True, slots=True)
class PluginProblem:
    """A plugin that does not run, and why."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"plugin {self.name} is left out: {self.reason}"


def load_plugins(entries: Iterable[object]) -> tuple[list[PluginClass], list[PluginProblem]]:
    """Import the plugins that are enabled, highest priority first; ties stay in the order of the list.

    An entry is a mapping or an object with `name`, `type`, `cls` (a dotted path, or the class) and `metadata`
    (`enabled`, `priority`, `exclusive`, and the plugin's own keys), or a plugin class alone.
    """
    found: list[PluginClass] = []
    problems: list[PluginProblem] = []
    for index, entry in enumerate(entries):
        name = f"#{index + 1}"
        try:
            fields = _fields(entry)
            name = str(fields.get("name") or name)
            if (loaded := _load(name, fields)) is not None:
                found.append(loaded)
        except Exception as error:
            reason = str(error) if isinstance(error, _Unusable) else f"{type(error).__name__}: {error}"
            problems.append(PluginProblem(name, reason))
            log.warning("%s", problems[-1])
    found.sort(key=lambda plugin: -plugin.priority)
    return found, problems


class _Unusable(Exception):
    """What is wrong with an entry."""


def _fields(entry: object) -> Mapping[str, Any]:
    if isinstance(entry, type):
        given = cast("type[Any]", entry)
        return {"name": getattr(given, "name", given.__name__), "cls": given}
    if isinstance(entry, Mapping):
        return cast("Mapping[str, Any]", entry)
    return {key: getattr(entry, key, None) for key in ("name", "type", "cls", "metadata")}


def _load(name: str, fields: Mapping[str, Any]) -> PluginClass | None:
    given: object = fields.get("metadata")
    metadata = dict(_mapping(given))
    if not metadata.get("enabled", True):
        return None
    kind = _class_of(fields.get("cls"))
    if inspect.isabstract(kind):
        missing = ", ".join(sorted(getattr(kind, "__abstractmethods__", ())))
        raise _Unusable(f"{kind.__name__} does not define {missing}")
    for method in ("supported_messages", "handle"):
        if not callable(getattr(kind, method, None)):
            raise _Unusable(f"{kind.__name__} is no plugin: it has no {method}()")
    kind_name = str(fields.get("type") or getattr(kind, "type", ""))
    capability = capability_name(kind_name)
    explicit = _explicit(given)
    priority = metadata.get("priority", 0) if "priority" in explicit else getattr(kind, "priority", 0)
    exclusive = metadata.get("exclusive", False) if "exclusive" in explicit else getattr(kind, "exclusive", False)
    if not isinstance(priority, int):
        raise _Unusable("priority is no integer")
    config = {**metadata, "enabled": True, "priority": priority, "exclusive": bool(exclusive)}
    config.update(name=name, type=kind_name)
    return PluginClass(name, capability, kind, priority, bool(exclusive), config)


def _mapping(given: object) -> Mapping[str, Any]:
    if isinstance(given, BaseModel):
        return given.model_dump()
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else {}


def _explicit(metadata: object) -> Iterable[str]:
    """The keys that the operator wrote."""
    return metadata.model_fields_set if isinstance(metadata, BaseModel) else _mapping(metadata)


def _class_of(given: object) -> type[Any]:
    if isinstance(given, type):
        return cast("type[Any]", given)
    if not isinstance(given, str) or not given:
        raise _Unusable("cls names no class")
    path = given.replace(":", ".")
    module, _, attribute = path.rpartition(".")
    if not module:
        raise _Unusable(f"cls {given!r} is no dotted path (package.module.Class)")
    found: object = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(found, type):
        raise _Unusable(f"module {module} has no class {attribute}")
    return cast("type[Any]", found)


def make_plugin(plugin: PluginClass, host: object, config: Mapping[str, Any]) -> tuple[Any, Sequence[object]]:
    """An instance, as `cls(host, config)` or as `cls()` and `setup(host, config)`; and what is left to await.

    Raises whatever the plugin raises.
    """
    own = dict(config)
    instance: Any = plugin.kind(host, own) if _takes_two(plugin.kind, host, own) else plugin.kind()
    left: list[object] = []
    if getattr(instance, "_set_up", False):
        left.append(getattr(instance, "_setting_up", None))
    else:
        setup = getattr(instance, "setup", None)
        if callable(setup):
            left.append(setup(host, own))
    if isinstance(instance, A2EPlugin):
        # A subclass may override `setup` and forget the base's.
        if instance.host_instance is None:
            instance.host_instance = host
        if not hasattr(instance, "config"):
            instance.config = own
    return instance, [one for one in left if inspect.isawaitable(one)]


def _takes_two(kind: type[Any], host: object, config: object) -> bool:
    try:
        inspect.signature(kind).bind(host, config)
    except TypeError:
        return False
    except ValueError:  # no signature to be had
        return True
    return True
