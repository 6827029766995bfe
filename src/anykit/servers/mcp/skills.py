"""Skills over MCP: the extension `io.modelcontextprotocol/skills` (SEP-2640). Imports the SDK.

Its files are resources like any others; what is here is what the extension adds: a listing with the digest of each file,
one skill by its URI, and the children of a folder. Only what conforms to the Agent Skills specification is a skill there.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, Protocol, runtime_checkable

import mcp_types as types
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError

from anykit.capabilities import JsonObject, ResourceDescriptor
from anykit.sources.skills import KIND, TOOL, Library, Skill
from anykit.sources.skills import files as skill_files
from anykit.sources.skills.resources import descriptor
from anykit.sources.skills.strict import NAMES

from . import content
from .bench import Busy
from .contexts import Context
from .jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND
from .pages import cursor_of, listed, page_of
from .view import View

EXTENSION: Final = "io.modelcontextprotocol/skills"
LIST: Final = "skills/list"
GET: Final = "skills/get"
DIRECTORY: Final = "resources/directory/read"
DIRECTORY_TYPE: Final = "inode/directory"
PAGE: Final = 100
"""Skills of one page: each of their files is read for its digest."""
DIGESTS: Final = 20_000
"""Digests that are remembered."""
SETTINGS: Final[JsonObject] = {"directoryRead": True}


@runtime_checkable
class Shelved(Protocol):
    """A workbench with skills."""

    @property
    def skills(self) -> Library:
        """All of them."""
        ...


class GetSkillParams(types.RequestParams):
    """Of `skills/get`."""

    uri: str


class ReadDirectoryParams(types.PaginatedRequestParams):
    """Of `resources/directory/read`."""

    uri: str


class Skills:
    """The handlers of the extension, for any number of callers of one bench."""

    def __init__(self, bench: object) -> None:
        self._library = bench.skills if isinstance(bench, Shelved) else None
        self._digests: OrderedDict[tuple[object, ...], str] = OrderedDict()

    @property
    def offered(self) -> bool:
        """Whether there may be skills here at all."""
        return self._library is not None and self._library.offered

    def extensions(self) -> dict[str, dict[str, Any]]:
        """What is declared of it."""
        return {EXTENSION: dict(SETTINGS)} if self.offered else {}

    def serve(self, server: Server[View]) -> None:
        """Register the handlers."""
        server.add_request_handler(LIST, types.PaginatedRequestParams, self.list)
        server.add_request_handler(GET, GetSkillParams, self.get)
        server.add_request_handler(DIRECTORY, ReadDirectoryParams, self.directory)

    async def list(self, context: Context, params: types.PaginatedRequestParams) -> JsonObject:
        """`skills/list`."""
        skills = await self._served(context)
        page, cursor = page_of(skills, cursor_of(params), _uri, PAGE)
        entries = await self._in_turn(context, page)
        return {**_CACHE, **listed("skills", entries, cursor)}

    async def get(self, context: Context, params: GetSkillParams) -> JsonObject:
        """`skills/get`."""
        skill = next((one for one in await self._served(context) if _uri(one) == params.uri), None)
        if skill is None:
            raise MCPError(INVALID_PARAMS, f"no skill is served at {params.uri[:512]}", {"uri": params.uri[:2048]})
        [entry] = await self._in_turn(context, [skill])
        return {**_CACHE, "resultType": "complete", "skill": entry}

    async def directory(self, context: Context, params: ReadDirectoryParams) -> JsonObject:
        """`resources/directory/read`, of folders of skills."""
        uri = params.uri
        skill = next(
            (one for one in await self._every(context) if uri == one.uri or uri.startswith(f"{one.uri}/")), None
        )
        children = None if skill is None else _children(skill, uri)
        if children is None:
            raise MCPError(INVALID_PARAMS, f"{uri[:512]} is no directory resource", {"uri": uri[:2048]})
        page, cursor = page_of(children, cursor_of(params), lambda one: one.id)
        return {**_CACHE, **listed("resources", [content.resource(one) for one in page], cursor)}

    # which there are

    async def _every(self, context: Context) -> Sequence[Skill]:
        """All skills that a caller sees: those who may not load any see none."""
        library = self._library
        if library is None or not library.offered:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", context.method)
        await library.refresh()
        session = context.lifespan_context.session
        if library.for_models:
            allowed = any(entry.original == TOOL and entry.tool.kind == KIND for entry in session.entries())
        else:
            allowed = session.caller.view is None  # there is no tool to tell by
        return list(library.skills.values()) if allowed else []

    async def _served(self, context: Context) -> Sequence[Skill]:
        return [skill for skill in await self._every(context) if not skill.misfit]

    # their files

    async def _in_turn(self, context: Context, skills: Sequence[Skill]) -> list[JsonObject]:
        """Their entries. Reading the files for their digests takes a turn."""
        try:
            async with context.lifespan_context.gate.turn():
                return await asyncio.to_thread(lambda: [self._entry(skill) for skill in skills])
        except Busy as error:
            raise MCPError(INTERNAL_ERROR, str(error), {"retryable": True}) from None

    def _entry(self, skill: Skill) -> JsonObject:
        return {"uri": _uri(skill), "frontmatter": skill.frontmatter, "resources": self._resources(skill)}

    def _resources(self, skill: Skill) -> Any:
        if skill.dynamic:
            return "dynamic"
        try:
            return [
                {"uri": skill.uri_of(one.path), "digest": self._digest(skill, one), "size": one.size}
                for one in skill.listed
            ]
        except (skill_files.NotThere, skill_files.TooLarge):
            return "dynamic"  # it is being changed; whoever asks again is told

    def _digest(self, skill: Skill, one: skill_files.Listed) -> str:
        key = (skill.folder, one.path, one.stamp)
        known = self._digests.get(key)
        if known is None:
            known, size = skill_files.digest(skill.folder, skill.file if one.path == NAMES[0] else one.path)
            if size != one.size:
                raise skill_files.NotThere(one.path)
            self._digests[key] = known
            while len(self._digests) > DIGESTS:
                self._digests.popitem(last=False)
        return known


_CACHE: Final[JsonObject] = {"ttlMs": 0, "cacheScope": "private"}


def _uri(skill: Skill) -> str:
    return skill.uri_of(NAMES[0])


def _children(skill: Skill, uri: str) -> list[ResourceDescriptor] | None:
    """The direct children of a folder of a skill; None where it is none."""
    folders = {skill.uri: "", **{skill.uri_of(path): path for path in skill.tree.folders}}
    beneath = folders.get(uri)
    if beneath is None:
        return None
    prefix = f"{beneath}/" if beneath else ""
    found = [
        ResourceDescriptor(id=skill.uri_of(path), name=skill_files.printable(name), media_type=DIRECTORY_TYPE)
        for path in skill.tree.folders
        if (name := _child(path, prefix))
    ]
    found += [descriptor(skill, one) for one in skill.listed if _child(one.path, prefix)]
    return sorted(found, key=lambda one: one.id)


def _child(path: str, prefix: str) -> str:
    """The name of what lies right in a folder; "" for what does not."""
    name = path[len(prefix) :] if path.startswith(prefix) else ""
    return "" if "/" in name else name
