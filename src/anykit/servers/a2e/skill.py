"""A2E's `skill` capability: which skills there are, and one's instructions and files as data. No model runs here.

`skill/call` loads the skill, or reads one of its files (`arguments: {"file": ...}`), through the executor as a call of the one
tool: judged, timed and recorded like any other.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast, runtime_checkable

from anykit.capabilities import (
    AudioPart,
    Completed,
    EmbeddedResource,
    Event,
    Failed,
    ImagePart,
    InvocableResult,
    JsonObject,
    Suspended,
)
from anykit.capabilities import outcomes as codes
from anykit.runtime import CallOptions, Session, ToolEntry
from anykit.sources.hostile import clean_text
from anykit.sources.skills import KIND, TOOL, Library, Skill, needed
from anykit.sources.skills.skill import words_of
from anykit.tools import OUTPUT_LIMIT, tool_result
from anykit.wire.a2e import Message, Request
from anykit.wire.a2e.messages.skills import (
    SkillCallRequest,
    SkillCallResponse,
    SkillDefinition,
    SkillDiscoverRequest,
    SkillDiscoverResponse,
    SkillResult,
    SkillStatus,
)

from .outcomes import Refusal, refusal_of

CAPABILITY: Final = "skill"
NAME_SHOWN: Final = 128
_SOURCES: Final = {"given": "project", "project": "project", "user": "user", "system": "system"}


@runtime_checkable
class Shelved(Protocol):
    """A workbench with skills."""

    @property
    def skills(self) -> Library:
        """All of them."""
        ...


class SkillMessages:
    """Answers one session's `skill/*` messages. Used on the loop's thread only.

    Args:
        library: The skills.
        session: Gives the caller's verbs.
        tell: Takes what a running call says, with the id of its request.
        toolkits: Gives every toolkit of the session, with whether it is configured.
        clock: Gives Unix seconds.
    """

    def __init__(
        self,
        library: Library,
        *,
        session: Callable[[], Session],
        tell: Callable[[str, Event], None],
        toolkits: Callable[[], Any],
        clock: Callable[[], float],
    ) -> None:
        self._library = library
        self._session = session
        self._tell = tell
        self._toolkits = toolkits
        self._clock = clock

    @property
    def offered(self) -> bool:
        """Whether there may be skills here at all."""
        return self._library.offered

    async def answer(self, request: Request) -> Message:
        """The reply to one request. Raises `Refusal`."""
        message = request.message
        match message:
            case SkillDiscoverRequest():
                return await self._discover(message)
            case SkillCallRequest():
                return await self._call(request, message)
            case _:
                raise Refusal("invalid_message", f"{request.kind.name} is not served here", capability=CAPABILITY)

    def _tool(self) -> ToolEntry | None:
        """The tool that loads skills, where the caller may use it."""
        return next((one for one in self._session().entries() if one.original == TOOL and one.tool.kind == KIND), None)

    async def _discover(self, message: SkillDiscoverRequest) -> SkillDiscoverResponse:
        await self._library.refresh()
        skills = self._library.for_models.values() if self._tool() is not None else ()
        found = [definition_of(skill) for skill in skills]
        return SkillDiscoverResponse(skills=[one for one in found if _wanted(one, message)])

    async def _call(self, request: Request, message: SkillCallRequest) -> SkillCallResponse:
        begun = asyncio.get_running_loop().time()
        name = message.name
        await self._library.refresh()
        tool = self._tool()
        skill = self._library.for_models.get(name) if tool is not None else None
        if tool is None or skill is None:
            hint = self._library.suggest(name) if tool is not None else ""
            shown = name[:NAME_SHOWN]
            raise Refusal(
                "unknown_skill", f"unknown skill {shown!r}{hint}", detail={"name": shown}, capability=CAPABILITY
            )
        given: JsonObject = {"name": name}
        if "file" in message.arguments:
            given["file"] = message.arguments["file"]
        outcome = await self._session().run(
            tool.tool.name,
            given,
            CallOptions(
                timeout=request.timeout,
                call_id=request.req_id,
                metadata={"correlation_id": message.correlation_id} if message.correlation_id else {},
                emit=lambda event: self._tell(request.req_id, event),
            ),
        )
        if isinstance(outcome, Suspended):
            raise Refusal("skill_error", outcome.suspension.prompt, capability=CAPABILITY)
        if not isinstance(outcome, Completed):
            raise _refused(outcome, repeatable=True)
        shown = tool_result(outcome, limit=OUTPUT_LIMIT)
        data = await self._data(outcome.result)
        ms = int((asyncio.get_running_loop().time() - begun) * 1000)
        done = SkillResult(
            success=True, data=data, summary=shown.output, truncated="truncated" in shown.metadata, duration_ms=ms
        )
        return SkillCallResponse(name=name, data=done, created_at=self._clock())

    async def _data(self, result: InvocableResult) -> JsonObject:
        """What a call came to, as JSON; the toolkits as this session sees them, those of plugins among them."""
        data: JsonObject = dict(cast(JsonObject, result.metadata.get("skill") or {}))
        wanted = [str(one["name"]) for one in cast("list[JsonObject]", data.get("toolkits") or [])]
        if wanted:
            known: Mapping[str, bool] = await self._toolkits()
            data["toolkits"] = [
                {"name": one.name, "state": one.state, **({"configure": one.hint} if one.hint else {})}
                for one in needed(wanted, known)
            ]
        for part in result.content:
            if isinstance(part, ImagePart | AudioPart) or (
                isinstance(part, EmbeddedResource) and part.data is not None
            ):
                data["data"] = base64.b64encode(cast(bytes, part.data)).decode("ascii")
        return data


def _refused(outcome: Any, *, repeatable: bool) -> Refusal:
    refusal = refusal_of(outcome, repeatable=repeatable)
    code = refusal.code
    if code in ("tool_error", "unknown_tool"):
        code = "skill_error"
    if isinstance(outcome, Failed) and outcome.code == codes.INVALID_INPUT:
        code = "schema_violation"
    return Refusal(code, refusal.message, detail=refusal.detail, retryable=refusal.retryable, capability=CAPABILITY)


def definition_of(skill: Skill) -> SkillDefinition:
    """A skill as it is listed: what its frontmatter says in A2E's words. The instructions come with a call."""
    fields = skill.frontmatter
    metadata: JsonObject = cast(JsonObject, fields["metadata"]) if isinstance(fields.get("metadata"), dict) else {}

    def said(*names: str) -> str:
        for name in names:
            value: Any = fields.get(name, metadata.get(name))
            if isinstance(value, str) and value.strip():
                return clean_text(value, 1024).strip()
            if isinstance(value, int | float) and not isinstance(value, bool):
                return str(value)
        return ""

    def words(*names: str) -> list[str]:
        found: list[str] = []
        for name in names:
            found += words_of(fields.get(name, metadata.get(name)))
        return list(dict.fromkeys(found))[:64]

    file = {"type": "string", "description": "A file of the skill to read instead of its instructions."}
    return SkillDefinition(
        name=skill.name,
        version=said("version") or "1.0.0",
        description=skill.description,
        triggers=_phrases(fields.get("triggers", metadata.get("triggers"))),
        tools=words("allowed-tools", "tools") or None,
        toolkits=list(skill.toolkits) or None,
        status=SkillStatus.PUBLISHED,
        input_schema={"type": "object", "properties": {"file": file}},
        file_path=clean_text(str(skill.location).encode("utf-8", "replace").decode(), 4096),
        arguments=["file"],
        when_to_use=said("when_to_use", "when-to-use") or skill.description,
        argument_hint=said("argument-hint", "argument_hint"),
        source=_SOURCES[skill.scope],
        category=said("category") or None,
        tags=words("tags") or None,
        icon=said("icon") or None,
        metadata={key: value for key, value in metadata.items() if isinstance(value, str | int | float)} or None,
    )


def _phrases(said: Any) -> list[str]:
    """Phrases, in a list or parted by commas."""
    parts = said.split(",") if isinstance(said, str) else cast("list[Any]", said) if isinstance(said, list) else []
    texts = [clean_text(one, 256).strip() for one in parts[:64] if isinstance(one, str)]
    return [one for one in texts if one]


def _wanted(definition: SkillDefinition, message: SkillDiscoverRequest) -> bool:
    """Whether a request means a skill: it has any of the tags, and its category is one of those named."""
    categories = {one.strip().lower() for one in message.filter_categories}
    if categories and (definition.category or "").lower() not in categories:
        return False
    return not message.filter_tags or bool(set(message.filter_tags) & set(definition.tags or ()))
