"""The one tool of all skills: the instructions of one by its name, and one of its files by its path; never all at once."""

from __future__ import annotations

import asyncio
import html
from collections.abc import Sequence
from typing import Any, Final

from anykit.capabilities import (
    Annotations,
    AudioPart,
    CapabilityContext,
    ContentPart,
    EmbeddedResource,
    ExecutionFailed,
    ImagePart,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    JsonObject,
    Log,
)
from anykit.sources.hostile import clean_text
from anykit.tools import OUTPUT_LIMIT, Tool, ToolSpec

from . import files
from .errors import Unreadable
from .library import KIND, TOOL, Library, Needed
from .skill import Skill
from .strict import NAMES

SHOWN_FILES: Final = 200
"""Files that are named with a skill's instructions; there may be more."""
MAX_CATALOGUE: Final = 12_000
"""Characters of the catalogue in the tool's description."""
MAX_ENUM: Final = 500
"""Names that the schema lists; of more the description tells."""
_LEAST: Final = 60
"""Characters of a description that are shown where there are many skills."""


class SkillTool(Tool):
    """Loads skills. `source` is the name of the source that offers it."""

    def __init__(self, library: Library, source: str) -> None:
        self._library = library
        skills = library.for_models
        super().__init__(
            ToolSpec(
                name=TOOL,
                title="Skill",
                description=_description(list(skills.values())),
                input_schema=_schema(list(skills)),
                annotations=Annotations(read_only=True, destructive=False, idempotent=True, open_world=False),
                kind=KIND,
                source=source,
                max_output=OUTPUT_LIMIT,
            )
        )

    @property
    def origin(self) -> str:
        """All skills of the host, whichever of their sources offers it."""
        return "anykit/skills"

    @property
    def may_ask(self) -> bool:
        """It asks nobody anything."""
        return False

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """See `Tool`. Raises `InvalidInput` for a skill or file that there is not, `ExecutionFailed` for one that broke."""
        library = self._library
        await library.refresh()
        name = str(request.input["name"])
        skill = library.for_models.get(name)
        if skill is None:
            raise InvalidInput(
                f"no skill {name[:128]!r}{(hint := library.suggest(name))}",
                [{"path": "/name", "message": f"there is no such skill{hint}"}],
            )
        path: Any = request.input.get("file")
        if path:
            return await asyncio.to_thread(one_file, skill, str(path))
        missing = library.needed(skill, context)
        for one in missing:
            if one.state != "configured":
                context.emit(Log("warning", f"the toolkit {one.name} is {one.state}: {one.hint}"))
        return await asyncio.to_thread(loaded, skill, missing)


def loaded(skill: Skill, toolkits: Sequence[Needed]) -> InvocableResult:
    """A skill's instructions, where it lies and what is in it; `metadata.skill` has the same as JSON. Reads its file."""
    try:
        instructions = skill.instructions().body
    except Unreadable as error:
        line = "" if error.line is None else f", line {error.line}"
        raise ExecutionFailed(
            f"skill {skill.name} cannot be read any more: {skill.file}{line}: {error.message}"
        ) from None
    folder = _shown(str(skill.folder))
    lines = [f'<skill_content name="{html.escape(skill.name)}">', instructions, ""]
    compatibility: Any = skill.frontmatter.get("compatibility")
    if isinstance(compatibility, str) and compatibility.strip():
        lines += [f"Compatibility: {clean_text(compatibility, 500).strip()}", ""]
    lines += [_told(one) for one in toolkits if one.state != "configured"]
    if lines[-1]:
        lines.append("")
    lines += [f"Skill directory: {folder}", "Relative paths in this skill are relative to the skill directory."]
    listed = skill.listed[1:]
    if listed:
        shown = listed[:SHOWN_FILES]
        lines += [f'Read one of its files by calling `{TOOL}` with its path as "file".', "", "<skill_resources>"]
        lines += [f"  <file>{html.escape(one.shown, quote=False)}</file>" for one in shown]
        lines.append("</skill_resources>")
        if len(listed) > len(shown):
            lines.append(f"({len(listed) - len(shown)} more files are not named here)")
    lines.append("</skill_content>")
    return InvocableResult(
        text="\n".join(lines), metadata={"skill": data_of(skill, instructions=instructions, toolkits=toolkits)}
    )


def _told(one: Needed) -> str:
    what = "is not offered here" if one.state == "absent" else "is not configured"
    return f"This skill needs the toolkit {one.name}, which {what}. To mend it, {one.hint}."


def data_of(skill: Skill, *, instructions: str, toolkits: Sequence[Needed]) -> JsonObject:
    """A skill as JSON: its instructions, folder, files and toolkits."""
    return {
        "name": skill.name,
        "description": skill.description,
        "instructions": instructions,
        "folder": _shown(str(skill.folder)),
        "uri": skill.uri_of(NAMES[0]),
        "files": [
            {
                "path": one.shown,
                "uri": skill.uri_of(one.path),
                "size": one.size,
                "media_type": files.media_type(one.path),
            }
            for one in skill.listed[:SHOWN_FILES]
        ],
        "more_files": max(0, len(skill.tree.files) - SHOWN_FILES),
        "toolkits": [_without_nothing(name=one.name, state=one.state, configure=one.hint) for one in toolkits],
    }


def _without_nothing(**fields: str) -> JsonObject:
    return {name: value for name, value in fields.items() if value}


def _shown(path: str) -> str:
    return clean_text(path.encode("utf-8", "replace").decode(), 4096)


def one_file(skill: Skill, path: str) -> InvocableResult:
    """One of a skill's files: text as text, a picture or sound as itself, anything else as a resource. Reads it."""
    path = path.removeprefix(f"{skill.folder}/").removeprefix("./")
    try:
        data = skill.read(path)
    except files.NotThere:
        close = files.nearest(path[:256], skill.tree)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        message = f"skill {skill.name} has no file {path[:256]!r}{hint}"
        raise InvalidInput(
            message, [{"path": "/file", "message": f"there is no such file in the skill{hint}"}]
        ) from None
    except files.TooLarge as error:
        raise ExecutionFailed(f"{path[:256]} of skill {skill.name} is {error}") from None
    kind = files.media_type(path)
    uri = skill.uri_of(path)
    told: JsonObject = {"name": skill.name, "file": files.printable(path), "uri": uri, "size": len(data)}
    text = files.as_text(data)
    if text is not None:
        told |= {"media_type": kind or "text/plain", "text": text}
        return InvocableResult(text=text, metadata={"skill": told})
    kind = kind or "application/octet-stream"
    if len(data) > OUTPUT_LIMIT:
        raise ExecutionFailed(
            f"{path[:256]} of skill {skill.name} is no text and has {len(data)} bytes, more than a result holds;"
            f" read the resource {uri}"
        )
    part: ContentPart
    if kind.startswith("image/"):
        part = ImagePart(data=data, media_type=kind)
    elif kind.startswith("audio/"):
        part = AudioPart(data=data, media_type=kind)
    else:
        part = EmbeddedResource(uri=uri, data=data, media_type=kind)
    told["media_type"] = kind
    described = f"{files.printable(path)} of skill {skill.name}: {kind}, {len(data)} bytes"
    return InvocableResult(text=described, content=(part,), metadata={"skill": told})


def _schema(names: Sequence[str]) -> JsonObject:
    name: JsonObject = {"type": "string", "description": "The skill to load."}
    if len(names) <= MAX_ENUM:
        name["enum"] = list(names)
    file = "Path of one of the skill's files, relative to its directory, to read that instead of the instructions."
    return {
        "type": "object",
        "properties": {"name": name, "file": {"type": "string", "description": file}},
        "required": ["name"],
        "additionalProperties": False,
    }


def _description(skills: Sequence[Skill]) -> str:
    """What it does, and which skills there are: the longer the list, the shorter each."""
    intro = (
        "Loads a skill: instructions for a kind of task, with files that belong to them. When a task matches a skill's"
        " description, load the skill before you begin."
    )
    room = MAX_CATALOGUE - len(intro) - 40
    each = max(_LEAST, min(1024, room // max(1, len(skills)) - 70))
    lines = [intro, "", "Skills:"]
    for index, skill in enumerate(skills):
        line = f"- {skill.name}: {' '.join(clean_text(skill.description, each).split())}"
        room -= len(line) + 1
        if room < 0:
            lines.append(f"- and {len(skills) - index} more: {', '.join(one.name for one in skills[index:])[:2000]}")
            break
        lines.append(line)
    return "\n".join(lines)
