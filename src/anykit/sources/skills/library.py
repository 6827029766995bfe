"""The skills of one host, from however many sources: which of two of one name counts, and what models are told of them."""

from __future__ import annotations

import html
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol, TypeAlias

from anykit.capabilities import CapabilityContext
from anykit.sources.hostile import clean_text

from .errors import Finding
from .skill import Scope, Skill
from .strict import MAX_DESCRIPTION

log = logging.getLogger("anykit.skills")

TOOL: Final = "skill"
"""What the one tool is called."""
KIND: Final = "skills"
"""The kind of its sources."""

ToolkitState: TypeAlias = Literal["configured", "not configured", "absent"]
_ORDER: Final[Mapping[Scope, int]] = {"given": 0, "project": 1, "user": 2, "system": 3}
"""What was named counts more than what was found, a project's more than a user's."""


class Shelf(Protocol):
    """A source's part of the library."""

    @property
    def name(self) -> str:
        """What the source is called."""
        ...

    @property
    def skills(self) -> Sequence[Skill]:
        """Its skills, those that count most first."""
        ...

    @property
    def findings(self) -> Sequence[Finding]:
        """What is wrong with them, and which are not offered."""
        ...

    async def refresh(self) -> None:
        """Look whether anything changed."""
        ...

    def refresh_now(self) -> None:
        """The same, on the spot."""
        ...

    def changed(self) -> None:
        """What is offered may be another thing now."""
        ...


@dataclass(frozen=True, slots=True)
class Needed:
    """A toolkit that a skill wants, and how it is."""

    name: str
    state: ToolkitState
    hint: str = ""
    """What to do about it."""


class Library:
    """Used on the loop's thread only.

    Args:
        toolkits: Tells of every toolkit that there is whether it is configured for a caller; None where nobody knows.
    """

    def __init__(self, toolkits: Callable[[CapabilityContext], Mapping[str, bool]] | None = None) -> None:
        self._toolkits = toolkits
        self._shelves: list[Shelf] = []
        self._skills: dict[str, Skill] | None = None
        self._owners: dict[str, Shelf] = {}
        self._shadowed: list[tuple[Shelf, Finding]] = []

    @property
    def offered(self) -> bool:
        """Whether there is a source of skills at all."""
        return bool(self._shelves)

    def join(self, shelf: Shelf) -> None:
        """Take a source in."""
        if shelf not in self._shelves:
            self._shelves.append(shelf)
            self.changed()

    def leave(self, shelf: Shelf) -> None:
        """Take it out."""
        if shelf in self._shelves:
            self._shelves.remove(shelf)
            self.changed()

    def changed(self) -> None:
        """A source has other skills now: what all of them offer is decided anew."""
        self._skills = None
        for shelf in list(self._shelves):
            shelf.changed()

    async def refresh(self) -> None:
        """Look whether anything changed on disk."""
        for shelf in list(self._shelves):
            await shelf.refresh()

    def refresh_now(self) -> None:
        """The same, on the spot."""
        for shelf in list(self._shelves):
            shelf.refresh_now()

    # what there is

    @property
    def skills(self) -> Mapping[str, Skill]:
        """The skills that count, by name."""
        if self._skills is None:
            self._skills = self._decided()
        return self._skills

    def _decided(self) -> dict[str, Skill]:
        every = [(_ORDER[skill.scope], shelf, skill) for shelf in self._shelves for skill in shelf.skills]
        counting: dict[str, Skill] = {}
        self._owners = {}
        self._shadowed = []
        for _, shelf, skill in sorted(every, key=lambda one: one[0]):
            known = counting.setdefault(skill.name, skill)
            if known is skill:
                self._owners[skill.name] = shelf
            elif known.folder != skill.folder:
                message = f"is shadowed by {known.location}, which has the same name"
                self._shadowed.append((shelf, Finding("warning", str(skill.location), message)))
        # In the order in which they were given, not in that in which they count.
        return {skill.name: skill for _, _, skill in every if counting[skill.name] is skill}

    def owned_by(self, shelf: Shelf) -> list[Skill]:
        """Those of one source that count."""
        return [skill for name, skill in self.skills.items() if self._owners[name] is shelf]

    def shadowed(self, shelf: Shelf) -> list[Finding]:
        """Those of one source that do not."""
        _ = self.skills
        return [finding for owner, finding in self._shadowed if owner is shelf]

    @property
    def for_models(self) -> Mapping[str, Skill]:
        """Those that a model may start by itself."""
        return {name: skill for name, skill in self.skills.items() if not skill.hidden}

    def leads(self, shelf: Shelf) -> bool:
        """Whether the tool is this source's to offer: it is the first, so that a source that is quicker changes no name."""
        return bool(self.for_models) and shelf is self._shelves[0]

    def source_of(self, name: str) -> str:
        """What the source of one is called."""
        return self._owners[name].name if name in self.skills else ""

    def find(self, name: str) -> Skill | None:
        """One that counts; None where there is none of that name."""
        return self.skills.get(name)

    def suggest(self, name: str) -> str:
        """Why one is not offered, else `; did you mean ...?`, else which there are."""
        for finding in (one for shelf in self._shelves for one in shelf.findings if one.level == "error"):
            if name and os.path.basename(os.path.dirname(finding.where)) == name:
                return f": {finding}"
        import difflib  # noqa: PLC0415 - only for whoever mistyped

        known = list(self.for_models)
        folded = {one.casefold(): one for one in reversed(known)}
        close = [folded[one] for one in difflib.get_close_matches(name.casefold()[:128], folded, n=3, cutoff=0.6)]
        if close:
            return f"; did you mean {' or '.join(close)}?"
        return f"; there are {', '.join(known[:20])}{' and more' if len(known) > 20 else ''}" if known else ""

    # toolkits

    def needed(self, skill: Skill, context: CapabilityContext) -> list[Needed]:
        """The toolkits that a skill wants, as they are for a caller, and what to do about those that are not there."""
        if not skill.toolkits or self._toolkits is None:
            return []
        return needed(skill.toolkits, self._toolkits(context))

    # what models are told

    def prompt(self) -> str:
        """The catalogue, as it stands in a system prompt; "" where there are no skills.

        The form is that of the Agent Skills reference (`agentskills to-prompt`).
        """
        skills = self.for_models.values()
        if not skills:
            return ""
        lines = ["<available_skills>"]
        for skill in skills:
            lines += [
                *("<skill>", "<name>", html.escape(skill.name), "</name>"),
                *("<description>", html.escape(clean_text(skill.description, MAX_DESCRIPTION)), "</description>"),
                *("<location>", html.escape(_path(skill), quote=False), "</location>", "</skill>"),
            ]
        return "\n".join([*lines, "</available_skills>"])


def _path(skill: Skill) -> str:
    return clean_text(str(skill.location).encode("utf-8", "replace").decode(), 4096)


def needed(names: Sequence[str], known: Mapping[str, bool]) -> list[Needed]:
    """Toolkits by name, as they are, and what to do about those that are not there."""
    import difflib  # noqa: PLC0415 - only for skills that want toolkits

    found: list[Needed] = []
    for name in names:
        if known.get(name):
            found.append(Needed(name, "configured"))
        elif name in known:
            hint = (
                f"configure it: anykit configure {name}; over A2E, toolkit/configure/req with toolkit_name {name};"
                f" its schema is the resource anykit://toolkits/{name} over MCP"
            )
            found.append(Needed(name, "not configured", hint))
        else:
            close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
            meant = f"did you mean {close[0]}? Else " if close else ""
            found.append(
                Needed(
                    name, "absent", f"{meant}add a source that offers it (anykit add), then: anykit configure {name}"
                )
            )
    return found
