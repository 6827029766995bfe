"""Wrappers of a provider, each a provider again: other names, fewer tools, other words. They nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from anykit.capabilities import (
    CapabilityContext,
    CapabilityProvider,
    Connected,
    InvalidInput,
    Invocable,
    JsonObject,
    Page,
    PromptContents,
    PromptDescriptor,
    PromptProvider,
    ResourceProvider,
    State,
)
from anykit.tools import lift


class Wrapped:
    """A provider over another one. Subclasses say what becomes of its tools and prompts."""

    def __init__(self, inner: CapabilityProvider) -> None:
        self.inner = inner

    def invocables(self) -> Sequence[Invocable]:
        """The inner one's."""
        return self.inner.invocables()

    def resources(self) -> Sequence[ResourceProvider]:
        """The inner one's."""
        return self.inner.resources()

    def prompts(self) -> Sequence[PromptProvider]:
        """The inner one's."""
        return self.inner.prompts()

    # A provider without a connection is always ready.

    @property
    def state(self) -> State:
        """The inner one's."""
        return self.inner.state if isinstance(self.inner, Connected) else State("ready")

    async def start(self) -> None:
        """Start the inner one."""
        if isinstance(self.inner, Connected):
            await self.inner.start()

    async def close(self) -> None:
        """Close the inner one."""
        if isinstance(self.inner, Connected):
            await self.inner.close()

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Watch the inner one."""
        return self.inner.subscribe(callback) if isinstance(self.inner, Connected) else lambda: None


class Prefixed(Wrapped):
    """Tools and prompts are called `prefix` + their name; resources keep their URIs."""

    def __init__(self, inner: CapabilityProvider, prefix: str) -> None:
        super().__init__(inner)
        self.prefix = prefix

    def invocables(self) -> Sequence[Invocable]:
        """See `CapabilityProvider`."""
        return [lift(one, name=self.prefix + one.spec.name) for one in self.inner.invocables()]

    def prompts(self) -> Sequence[PromptProvider]:
        """See `CapabilityProvider`."""
        return [_PrefixedPrompts(one, self.prefix) for one in self.inner.prompts()]


class _PrefixedPrompts:
    def __init__(self, inner: PromptProvider, prefix: str) -> None:
        self._inner = inner
        self._prefix = prefix

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        page = await self._inner.list_prompts(cursor)
        renamed = [one.model_copy(update={"id": self._prefix + one.id}) for one in page.items]
        return Page(renamed, page.next_cursor)

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        if not id.startswith(self._prefix):
            raise InvalidInput(f"no prompt {id[:200]!r}")
        return await self._inner.get_prompt(id.removeprefix(self._prefix), args, context)


class Filtered(Wrapped):
    """Only tools whose name matches a pattern of `allow` and none of `deny` (shell patterns; deny wins)."""

    def __init__(self, inner: CapabilityProvider, *, allow: Iterable[str] = ("*",), deny: Iterable[str] = ()) -> None:
        super().__init__(inner)
        self.allow = tuple(allow)
        self.deny = tuple(deny)

    def invocables(self) -> Sequence[Invocable]:
        """See `CapabilityProvider`."""
        return [one for one in self.inner.invocables() if self._passes(one.spec.name)]

    @property
    def idle(self) -> tuple[str, ...]:
        """Patterns that match no tool: a silent rule is often a misspelt one."""
        names = [one.spec.name for one in self.inner.invocables()]
        return tuple(each for each in (*self.allow, *self.deny) if not any(fnmatchcase(name, each) for name in names))

    def _passes(self, name: str) -> bool:
        if any(fnmatchcase(name, pattern) for pattern in self.deny):
            return False
        return any(fnmatchcase(name, pattern) for pattern in self.allow)


class Renamed(Wrapped):
    """Tools by other names: `names` maps the old ones to the new ones.

    Raises `ValueError` where two would be called the same. A tool that comes later under a name given away is left out.
    """

    def __init__(self, inner: CapabilityProvider, names: Mapping[str, str]) -> None:
        super().__init__(inner)
        self.names = dict(names)
        if len(set(self.names.values())) < len(self.names):
            raise ValueError("two tools would get the same name")

    def invocables(self) -> Sequence[Invocable]:
        """See `CapabilityProvider`."""
        taken = set(self.names.values())
        found: list[Invocable] = []
        for one in self.inner.invocables():
            old = one.spec.name
            if old in self.names:
                found.append(lift(one, name=self.names[old]))
            elif old not in taken:
                found.append(one)
        return found


class Overridden(Wrapped):
    """Tools described in other words: by name, fields of the tool's spec (`description`, `title`, `tags`, ...).

    Raises `ValueError` for a field that changes what is called, its name or its schemas.
    """

    def __init__(self, inner: CapabilityProvider, changes: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(inner)
        self.changes = {name: dict(fields) for name, fields in changes.items()}
        for name, fields in self.changes.items():
            if wrong := sorted(fields.keys() - CHANGEABLE):
                raise ValueError(
                    f"{name}: {', '.join(wrong)} cannot be overridden; {', '.join(sorted(CHANGEABLE))} can"
                )

    def invocables(self) -> Sequence[Invocable]:
        """See `CapabilityProvider`."""
        inner = self.inner.invocables()
        return [lift(one, **self.changes[one.spec.name]) if one.spec.name in self.changes else one for one in inner]


CHANGEABLE = frozenset({"annotations", "deferred", "description", "max_output", "tags", "timeout", "title"})
"""Fields of a tool's spec that may be overridden."""
