"""Resources that change, and arguments that are completed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from anykit.capabilities import (
    CapabilityContext,
    InvalidInput,
    JsonObject,
    Page,
    PromptContents,
    PromptDescriptor,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
)
from anykit.runtime import Source
from runtime_parts import Bench, Offers

pytestmark = pytest.mark.anyio


class Changing:
    """Resources whose changes are told, one of them of a family."""

    def __init__(self) -> None:
        self.listeners: dict[str, list[Callable[[str], None]]] = {}

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        return Page([ResourceDescriptor(id="x://a", name="a")])

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        return Page([ResourceTemplate(uri_template="y://{name}", name="y")])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        return ResourceContents(id=id, parts=())

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        self.listeners.setdefault(id, []).append(callback)
        return lambda: self.listeners[id].remove(callback)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        return [f"{reference} {argument} {value}1"], True


class Prompts:
    """Prompts whose arguments are completed."""

    async def list_prompts(self, cursor: str | None = None) -> Page[PromptDescriptor]:
        return Page([PromptDescriptor(id="greet")])

    async def get_prompt(self, id: str, args: JsonObject, context: CapabilityContext) -> PromptContents:
        return PromptContents(messages=())

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        return [f"{reference}:{argument}:{value}:{context.metadata['arguments']}"], False


async def test_a_change_is_told_until_the_watch_ends() -> None:
    changing = Changing()
    session = Bench(Source("s", "test", Offers(resources=[changing]))).session("1")
    heard: list[str] = []
    for uri in ("x://a", "y://b"):
        unwatch = await session.watch(uri, heard.append)
        for listener in changing.listeners[uri]:
            listener(uri)
        unwatch()
        assert changing.listeners[uri] == []
    assert heard == ["x://a", "y://b"]
    with pytest.raises(InvalidInput):
        await session.watch("z://c", heard.append)


async def test_arguments_of_templates_and_prompts_are_completed_under_the_names_shown() -> None:
    source = Source("s", "test", Offers(resources=[Changing()], prompts=[Prompts()]), prefixed=True)
    session = Bench(source).session("1")
    assert await session.complete("y://{name}", "name", "a") == (["y://{name} name a1"], True)
    assert [prompt.id for prompt in await session.prompts()] == ["s_greet"]
    proposals, more = await session.complete("s_greet", "who", "A", {"x": 1})
    assert (list(proposals), more) == (["greet:who:A:{'x': 1}"], False)
    with pytest.raises(InvalidInput):
        await session.complete("greet", "who", "A")
