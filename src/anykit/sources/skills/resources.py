"""The files of skills as resources: listed in pages, read within their folder, told of when they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol, cast

from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    ExecutionFailed,
    InvalidInput,
    JsonObject,
    Page,
    ResourceContents,
    ResourceDescriptor,
    ResourceTemplate,
    TextPart,
)

from . import files
from .files import Listed
from .library import Library
from .skill import Skill
from .strict import NAMES

PAGE: Final = 500
TEMPLATE: Final = "skill://{name}/{+path}"
"""Every file of every skill, those that no list has room for as well."""
PREFIX: Final = "skill://"


class Home(Protocol):
    """The source that they belong to."""

    @property
    def library(self) -> Library:
        """All skills of the host."""
        ...

    @property
    def owned(self) -> Sequence[Skill]:
        """The source's skills that count."""
        ...

    async def refresh(self) -> None:
        """Look whether anything changed."""
        ...

    def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back when the file behind `uri` changes."""
        ...


class SkillResources:
    """See `ResourceProvider`; also `Templated`, `Subscribable` and `Completing`."""

    def __init__(self, home: Home) -> None:
        self._home = home

    async def list_resources(self, cursor: str | None = None) -> Page[ResourceDescriptor]:
        """See `ResourceProvider`."""
        if cursor is None:
            await self._home.refresh()
        every = [(skill, one) for skill in self._home.owned for one in skill.listed]
        start = int(cursor) if cursor is not None and cursor.isdecimal() and len(cursor) < 10 else 0
        page = [descriptor(skill, one) for skill, one in every[start : start + PAGE]]
        return Page(page, str(start + PAGE) if start + PAGE < len(every) else None)

    async def list_templates(self, cursor: str | None = None) -> Page[ResourceTemplate]:
        """See `Templated`."""
        described = "A file of a skill, by its path in the skill's directory."
        return Page([ResourceTemplate(uri_template=TEMPLATE, name="skill file", description=described)])

    async def read_resource(self, id: str, context: CapabilityContext) -> ResourceContents:
        """See `ResourceProvider`. What is outside a skill's folder, and what is not there, is refused alike."""
        await self._home.refresh()
        # Of any source: all of them have the same template, and the first one is asked.
        found = located(id, list(self._home.library.skills.values()))
        if found is None:
            raise InvalidInput(f"no skill at {id[:512]!r}")
        skill, path = found
        return await asyncio.to_thread(_read, skill, path, id)

    async def subscribe_resource(self, id: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """See `Subscribable`."""
        return self._home.watch(id, callback)

    async def complete(
        self, reference: str, argument: str, value: str, context: CapabilityContext
    ) -> tuple[Sequence[str], bool]:
        """See `Completing`: names of skills, and paths of the files of the one that was named."""
        if argument == "name":
            names = [files.quoted(name) for name in self._home.library.skills]
            return [name for name in names if name.startswith(value)], False
        given: object = context.metadata.get("arguments")
        name: object = cast(JsonObject, given).get("name") if isinstance(given, dict) else None
        skill = self._home.library.find(files.unquoted(name)) if isinstance(name, str) else None
        paths = [files.quoted(one.path) for one in skill.listed] if skill is not None else []
        return [path for path in paths if path.startswith(value)], False


def located(uri: str, skills: Sequence[Skill]) -> tuple[Skill, str] | None:
    """The skill and the path in it that a URI means; None where it is of none of these skills."""
    if not uri.startswith(PREFIX):
        return None
    name, slash, path = uri.removeprefix(PREFIX).partition("/")
    if not slash or "?" in uri or "#" in uri:
        return None
    wanted = files.unquoted(name)
    skill = next((one for one in skills if one.name == wanted), None)
    return None if skill is None else (skill, files.unquoted(path))


def descriptor(skill: Skill, one: Listed) -> ResourceDescriptor:
    """A file of a skill as it is listed."""
    is_main = one.path == NAMES[0]
    changed = datetime.fromtimestamp(one.stamp[0] / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    metadata: JsonObject = {"mcp": {"_meta": {"anykit/lastModified": changed}}}
    return ResourceDescriptor(
        id=skill.uri_of(one.path),
        name=skill.name if is_main else one.shown.rpartition("/")[2],
        description=skill.description if is_main else None,
        media_type=files.media_type(one.path),
        size=one.size,
        metadata=metadata,
    )


def _read(skill: Skill, path: str, uri: str) -> ResourceContents:
    try:
        data = skill.read(path)
    except files.NotThere:
        raise InvalidInput(f"skill {skill.name} has no file {files.printable(path)[:256]!r}") from None
    except files.TooLarge as error:
        raise ExecutionFailed(f"{files.printable(path)[:256]} of skill {skill.name} is {error}") from None
    kind = files.media_type(path)
    text = files.as_text(data)
    if text is not None:
        return ResourceContents(id=uri, parts=(TextPart(text=text, media_type=kind or "text/plain"),))
    return ResourceContents(id=uri, parts=(BlobPart(data=data, media_type=kind or "application/octet-stream"),))
