"""Lists of resources and prompts from many providers at once: one that is silent holds nobody up."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from anykit.capabilities import (
    CapabilityContext,
    CapabilityError,
    InvalidInput,
    JsonObject,
    Page,
    PromptContents,
    ResourceContents,
    ResourceDescriptor,
    ResourceProvider,
    ResourceTemplate,
    Unavailable,
)
from anykit.tools import Toolkit

from .snapshot import ToolkitEntry

Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)
Asked = TypeVar("Asked")

log = logging.getLogger("anykit.session")

LISTED: Final = 10_000
"""More resources or prompts than that from one provider are not listed."""
LIST_TIMEOUT: Final = 10.0
"""Seconds that each provider has for a list; all are asked at once."""
READ_TIMEOUT: Final = 30.0
"""Seconds that reading, filling in or completing may take."""


@dataclass(frozen=True, slots=True)
class Provided(Generic[Item_co]):
    """A provider of resources or prompts, and whose it is."""

    provider: Item_co
    source: str
    owner: str
    """What stands before names that are taken: the toolkit, or the source."""
    toolkit: str | None = None
    prefix: str = ""


class ListPage(Protocol[Item]):
    """One page of a list."""

    async def __call__(self, cursor: str | None = None) -> Page[Item]: ...


async def all_pages(list_page: ListPage[Item]) -> Sequence[Item]:
    """Every page of a list, bounded in number; a list that turns in a circle ends. Raises what the provider raises."""
    items: list[Item] = []
    seen: set[str] = set()
    cursor: str | None = None
    while len(items) < LISTED:
        page = await list_page(cursor)
        items += page.items
        cursor = page.next_cursor
        if cursor is None or cursor in seen:
            break
        seen.add(cursor)
    return items[:LISTED]


class Lists:
    """Asks providers for their lists.

    Args:
        patience: Seconds that each has.
    """

    def __init__(self, patience: float = LIST_TIMEOUT) -> None:
        self.patience = patience
        self.missing: dict[tuple[str, str], str] = {}
        """By source and what was asked for: why there is no list of it."""

    async def of(
        self,
        providers: Sequence[Provided[Asked]],
        what: str,
        list_of: Callable[[Asked], ListPage[Item]],
    ) -> AsyncGenerator[tuple[Provided[Asked], Sequence[Item]]]:
        """Each provider's list, in the order of the providers; all are asked at once. Those that fail give none."""
        tasks: list[asyncio.Future[Sequence[Item]]] = [
            asyncio.ensure_future(all_pages(list_of(one.provider))) for one in providers
        ]
        deadline = asyncio.get_running_loop().time() + self.patience
        try:
            for one, task in zip(providers, tasks, strict=True):
                left = deadline - asyncio.get_running_loop().time()
                # Not awaited with a timeout: who does not let itself be cancelled would hold the others up.
                await asyncio.wait([task], timeout=max(left, 0.0))
                items = self._taken(one.source, what, task)
                if items is not None:
                    yield one, items
        finally:
            for task in tasks:
                if not task.done():
                    task.cancel()
                task.add_done_callback(_forget)

    def _taken(self, source: str, what: str, task: asyncio.Future[Sequence[Item]]) -> Sequence[Item] | None:
        key = (source, what)
        if not task.done():
            self.missing[key] = f"{source} did not list its {what} within {self.patience:g} s"
        elif task.cancelled():
            self.missing[key] = f"{source} did not list its {what}"
        elif (error := task.exception()) is not None:
            why = error.message if isinstance(error, CapabilityError) else type(error).__name__
            self.missing[key] = f"{source} could not list its {what}: {why}"
        else:
            self.missing.pop(key, None)
            return task.result()
        log.warning("a list is left out: %s", self.missing[key])
        return None


def _forget(task: asyncio.Future[Any]) -> None:
    """What a late list raises is nobody's business any more."""
    if not task.cancelled():
        task.exception()


async def read_from(provider: ResourceProvider, id: str, context: CapabilityContext) -> ResourceContents:
    """Read a resource, bounded in time. Raises `CapabilityError`."""
    try:
        async with asyncio.timeout(READ_TIMEOUT):
            return await provider.read_resource(id, context)
    except TimeoutError:
        raise Unavailable(f"{id} could not be read within {READ_TIMEOUT:g} s") from None


def matches(template: str, uri: str) -> bool:
    """Whether `uri` may be of the RFC 6570 `template` (simple and reserved expansion)."""
    pattern = ""
    for index, piece in enumerate(re.split(r"\{([^{}]*)\}", template)):
        if not index % 2:
            pattern += re.escape(piece)
        elif piece[:1] in "+#":
            pattern += ".+"
        elif piece[:1] in "./;?&":
            pattern += ".*"
        else:
            pattern += "[^/?#]+"
    return re.fullmatch(pattern, uri) is not None


class GetPrompt(Protocol):
    """Fills a prompt in, by its provider's own name."""

    async def __call__(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents: ...


class ToolkitResources:
    """A configured toolkit's resources."""

    def __init__(self, entry: ToolkitEntry, instance: Toolkit) -> None:
        self._resources = entry.spec.resources
        self._instance = instance

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`."""
        return Page([one.descriptor() for one in self._resources.values() if not one.is_template])

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`."""
        return Page([one.template() for one in self._resources.values() if one.is_template])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`."""
        for one in self._resources.values():
            if one.match(id) is not None:
                return await one.read(self._instance, id, context)
        raise InvalidInput(f"no resource {id!r}")


class ToolkitPrompts:
    """A configured toolkit's prompts."""

    def __init__(self, entry: ToolkitEntry, instance: Toolkit) -> None:
        self._prompts = entry.spec.prompts
        self._instance = instance

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """See `PromptProvider`."""
        return await self._prompts[id].get(self._instance, args, context)
