"""What the operator says about toolkits: which are offered, and how they are configured for everyone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from anykit.capabilities import CapabilityError, JsonObject
from anykit.runtime import HOST, Catalog, Scopes, Session, Source
from anykit.stores import RecordError, SecretError, UnresolvedReference, resolve_all

from .config import AppConfig


class ToolkitSettings:
    """Applies them, at start and again when the file says otherwise. One that fails costs only itself.

    `stored` gives what earlier `configure` commands kept.
    """

    def __init__(
        self,
        catalog: Catalog,
        scopes: Scopes,
        *,
        session: Callable[[], Session],
        stored: Callable[[], Awaitable[dict[str, JsonObject]]],
    ) -> None:
        self._catalog = catalog
        self._scopes = scopes
        self._session = session
        self._stored = stored
        self._applied: dict[str, JsonObject] = {}
        self._blamed: set[str] = set()
        self.problems: dict[str, str] = {}
        """Toolkits that are not configured as they were told to be, with why; `*` is all of them."""

    def offered(self, source: Source, config: AppConfig) -> Source:
        """A source without the toolkits that are switched off."""
        off = {name for name, said in config.toolkits.items() if not said.enabled}
        if not off or not source.toolkits:
            return source
        kept = tuple(toolkit for toolkit in source.toolkits if toolkit.spec().name not in off)
        if kept == source.toolkits:
            return source
        for toolkit in source.toolkits:
            if toolkit not in kept:
                self._catalog.switched_off.update(dict.fromkeys(toolkit.spec().tools, toolkit.spec().name))
        if not kept and source.provider is None:
            return replace(source, disabled="its toolkit is switched off in the configuration")
        return replace(source, toolkits=kept)

    async def apply(self, config: AppConfig) -> tuple[str, ...]:
        """Configure what is to be configured, where that is not as it is already; gives which were touched."""
        for name in self._blamed:
            self.problems.pop(name, None)
        others = set(self.problems)
        try:
            return await self._apply(config)
        finally:
            self._blamed = set(self.problems) - others

    async def _apply(self, config: AppConfig) -> tuple[str, ...]:
        stored: dict[str, JsonObject] = {}
        try:
            stored = await self._stored()
        except (SecretError, RecordError) as error:
            self.problems["*"] = str(error)
        snapshot = self._catalog.snapshot
        wanted: dict[str, JsonObject] = {}
        for name in snapshot.toolkits:
            said = config.toolkits.get(name)
            if said is not None and said.config is not None:
                wanted[name] = {**stored.get(name, {}), **said.config}
            elif name in stored:
                wanted[name] = stored[name]
            elif said is not None and said.auto_configure:
                wanted[name] = {}
        for name, said in config.toolkits.items():
            if name not in snapshot.toolkits and said.enabled:
                hint = snapshot.suggest(name, snapshot.toolkits)
                self.problems[name] = f"[toolkits.{name}]: no source offers that toolkit{hint}"
        touched: list[str] = []
        for name in [name for name in self._applied if name not in wanted]:
            del self._applied[name]
            if await self._scopes.remove(HOST, name, forget=False):
                touched.append(name)
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(self._configured(name, value, config)) for name, value in wanted.items()}
        touched += [name for name, task in tasks.items() if task.result()]
        return tuple(touched)

    async def _configured(self, name: str, value: JsonObject, config: AppConfig) -> bool:
        session = self._session()
        try:
            resolved: JsonObject = resolve_all(value, None, config.folder, where=f"/toolkits/{name}/config")
            known = session.toolkit(name)
            if self._applied.get(name) == resolved and known is not None and known.configured:
                return False
            await session.configure(name, resolved, keep=False)
        except UnresolvedReference as error:
            self.problems[name] = str(error)
        except CapabilityError as error:
            faults = getattr(error, "errors", [])
            details = "; ".join(f"{fault['path'] or '/'}: {fault['message']}" for fault in faults)
            self.problems[name] = f"{error.message}{': ' if details else ''}{details}"
        else:
            self._applied[name] = resolved
            return True
        return False
