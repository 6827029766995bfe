"""Folders of skills as a source: looked through when it starts, and again whenever something in them changes."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, TypeAlias

from anykit.capabilities import Invocable, PromptProvider, ResourceProvider, State

from . import files
from .errors import Finding, Unreadable
from .folders import Found, Place, look
from .library import KIND, Library
from .resources import SkillResources, located
from .skill import Skill, read_skill
from .strict import strict_faults
from .tool import SkillTool

log = logging.getLogger("anykit.skills")

POLL: Final = 1.0
"""Seconds between two looks at the folders; longer where a look takes long."""
CLOSING: Final = 2.0
"""Seconds that a look has to end."""
SHARE: Final = 20
"""Looking takes at most one part in so many of the time."""
LONGEST: Final = 30.0

Allowed: TypeAlias = Callable[[Path], bool]
"""Whether a skill's folder, found in a project, may be used."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which of the skills are offered, as globs over their names; `exclude` wins."""

    include: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()

    def takes(self, name: str) -> bool:
        """Whether it is one of them."""
        if any(fnmatchcase(name, pattern) for pattern in self.exclude):
            return False
        return any(fnmatchcase(name, pattern) for pattern in self.include)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What one look found."""

    skills: tuple[Skill, ...] = ()
    findings: tuple[Finding, ...] = ()
    known: Mapping[Path, tuple[object, Skill | Finding]] | None = None
    """What was read already, by its file, and what it depends on."""
    seconds: float = 0.0
    """Of CPU that it took."""


class SkillsSource:
    """A provider of the skills in some folders.

    Args:
        places: The folders; a path is one that somebody named.
        name: What the source is called.
        allowed: Asked for each skill that lies in a project and was only found there; None allows them.
        select: Which of them are offered.
        strict: Leave out what does not conform to the Agent Skills specification, as Agent Plugins demand.
        library: The skills of the whole host; None is one of its own.
        notes: What else is to be known of the source.
        poll: Seconds between two looks; None looks only when somebody asks.
    """

    def __init__(
        self,
        *places: Place | str | os.PathLike[str],
        name: str = KIND,
        allowed: Allowed | None = None,
        select: Selection | None = None,
        strict: bool = False,
        library: Library | None = None,
        notes: Sequence[Finding] = (),
        poll: float | None = POLL,
    ) -> None:
        self.name = name
        self._places = [place if isinstance(place, Place) else Place(Path(place)) for place in places]
        self._allowed = allowed
        self._select = select or Selection()
        self._strict = strict
        self._library = library or Library()
        self._notes = tuple(notes)
        self._poll = poll
        self._seen = _Seen()
        self._status: State = State("connecting")
        self._tool: SkillTool | None = None
        self._resources = SkillResources(self)
        self._callbacks: list[Callable[[], None]] = []
        self._watched: dict[str, list[Callable[[str], None]]] = {}
        self._looking: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<SkillsSource {self.name} {', '.join(str(place.path) for place in self._places)}>"

    # CapabilityProvider

    def invocables(self) -> Sequence[Invocable]:
        """The one tool, where there is a skill and no other source of the host offers it already."""
        if not self._library.leads(self):
            return ()
        if self._tool is None:
            self._tool = SkillTool(self._library, self.name)
        return (self._tool,)

    def resources(self) -> Sequence[ResourceProvider]:
        """Every file of its skills."""
        return (self._resources,)

    def prompts(self) -> Sequence[PromptProvider]:
        """None."""
        return ()

    # Connected

    @property
    def state(self) -> State:
        """`ready` once it has been looked through."""
        return self._status

    async def start(self) -> None:
        """Begin to look; the verdict comes through `subscribe`."""
        if self._watching is None and self._status.status == "connecting":
            self._library.join(self)
            self._watching = asyncio.get_running_loop().create_task(self._watch(), name=f"skills {self.name}")

    async def close(self) -> None:
        """Look no more."""
        running = [task for task in (self._watching, self._looking) if task is not None and not task.done()]
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=CLOSING)
        self._status = State("closed", since=time.time())
        self._library.leave(self)

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """See `Connected`."""
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

        return unsubscribe

    # for the library, and for people

    @property
    def library(self) -> Library:
        """All skills of the host."""
        return self._library

    def join(self, library: Library) -> None:
        """Become part of a host's skills; to be called before it starts."""
        self._library = library

    @property
    def places(self) -> Sequence[Place]:
        """Where it looks."""
        return self._places

    @property
    def notes(self) -> Sequence[Finding]:
        """What was known of it before it looked."""
        return self._notes

    @property
    def skills(self) -> Sequence[Skill]:
        """Its skills, those that count most first, shadowed ones among them."""
        return self._seen.skills

    @property
    def owned(self) -> Sequence[Skill]:
        """Its skills that count."""
        return self._library.owned_by(self)

    @property
    def findings(self) -> list[Finding]:
        """What is wrong with its skills, and which are not offered, with the reasons."""
        every = (*self._notes, *self._seen.findings, *self._library.shadowed(self))
        return list(dict.fromkeys(every))

    def reports(self) -> Sequence[tuple[str, str]]:
        """The same as (file, what)."""
        return [(one.where, one.message) for one in self.findings]

    def changed(self) -> None:
        """See `Shelf`."""
        self._tool = None
        for callback in list(self._callbacks):
            callback()

    # looking

    async def refresh(self) -> None:
        """Look whether anything changed; who asks while somebody looks waits for the next look."""
        if self._status.status == "closed":
            return
        before = self._looking
        if before is not None and not before.done():
            await asyncio.shield(before)
        if self._looking is before or self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look(), name=f"skills {self.name} look")
        await asyncio.shield(self._looking)

    def refresh_now(self) -> None:
        """The same, on the spot."""
        if self._status.status != "closed":
            self._take(self._through(self._seen))

    async def _look(self) -> None:
        before = self._seen
        now = await asyncio.to_thread(self._through, before)
        if self._seen is before:  # else somebody was quicker, and the next look will tell
            self._take(now)

    def _take(self, now: _Seen) -> None:
        before, self._seen = self._seen, now
        ready = self._status.status == "ready"
        if not ready:
            self._status = State("ready", since=time.time())
        if ready and before.skills == now.skills and before.findings == now.findings:
            return
        self._library.changed()
        for uri in list(self._watched):
            if _stamp(uri, before.skills) != _stamp(uri, now.skills):
                for callback in list(self._watched.get(uri, ())):
                    callback(uri)

    async def _watch(self) -> None:
        while True:
            try:
                await self.refresh()
            except Exception as error:
                log.exception("the skills of %s could not be looked through", self.name)
                if self._status.status != "ready":
                    self._status = State(
                        "failed", f"it could not be looked through: {type(error).__name__}", time.time()
                    )
                    self.changed()
            if self._poll is None:
                return
            await asyncio.sleep(min(max(self._poll, SHARE * self._seen.seconds), LONGEST))

    def watch(self, uri: str, callback: Callable[[str], None]) -> Callable[[], None]:
        """Call back when the file behind `uri` changes, comes or goes."""
        self._watched.setdefault(uri, []).append(callback)

        def undo() -> None:
            callbacks = self._watched.get(uri, [])
            if callback in callbacks:
                callbacks.remove(callback)
            if not callbacks:
                self._watched.pop(uri, None)

        return undo

    def _through(self, before: _Seen) -> _Seen:
        """One look; in a thread. What has not changed since `before` is not read again."""
        begun = time.thread_time()
        found, findings = look(self._places)
        known: dict[Path, tuple[object, Skill | Finding]] = {}
        skills: list[Skill] = []
        names: dict[str, Skill] = {}
        findings = list(findings)
        for one in found:
            read = self._read(one, before)
            known[one.folder / one.file] = read
            skill = read[1]
            if isinstance(skill, Finding):
                findings.append(skill)
                continue
            findings += skill.findings
            if not self._select.takes(skill.name):
                continue
            if (first := names.get(skill.name)) is not None:
                message = f"is shadowed by {first.location}, which has the same name"
                findings.append(Finding("warning", str(skill.location), message))
                continue
            names[skill.name] = skill
            skills.append(skill)
        return _Seen(tuple(skills), tuple(findings), known, time.thread_time() - begun)

    def _read(self, one: Found, before: _Seen) -> tuple[object, Skill | Finding]:
        """A skill, or why it is none; and what that depends on."""
        where = one.folder / one.file
        tree = files.tree_of(one.folder)
        trusted = one.place.scope != "project" or self._allowed is None or self._allowed(one.folder)
        stamp = (tree, trusted, one.place.scope)
        if before.known is not None and (read := before.known.get(where)) is not None and read[0] == stamp:
            return read
        if not trusted:
            fix = f"anykit trust {where}"
            return stamp, Finding(
                "error", str(where), f"was found in the project and nobody has agreed to it; if you do: {fix}"
            )
        try:
            skill = read_skill(one.folder, one.file, one.place.scope, tree)
        except Unreadable as error:
            at = str(where) if error.line is None else f"{where}:{error.line}"
            return stamp, Finding("error", at, error.message)
        if not self._strict:
            return stamp, skill
        return stamp, _conforming(skill)


def _conforming(skill: Skill) -> Skill | Finding:
    """A skill that is what the specification demands. A field that it does not know is reported, and no reason."""
    faults = strict_faults(skill.folder)
    fatal = [fault for fault in faults if not fault.startswith("unknown field")]
    where = str(skill.location)
    if fatal:
        return Finding("error", where, f"does not conform to the Agent Skills specification: {'; '.join(fatal)}")
    return replace(skill, findings=(*skill.findings, *(Finding("warning", where, fault) for fault in faults)))


def _stamp(uri: str, skills: Sequence[Skill]) -> object:
    found = located(uri, skills)
    if found is None:
        return None
    skill, path = found
    return next((one.stamp for one in skill.listed if one.path == path), None)
