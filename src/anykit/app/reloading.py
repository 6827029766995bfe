"""A changed configuration, applied to a workbench that runs: source by source, and those that are as they were not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from anykit.runtime import Catalog, Source

from .config import AppConfig, ConfigError
from .lives import Exchange, Lives
from .opening import Named, Opening
from .pieces import Piece, Rank, Wanted, is_same, of_named, pieces_of, unset_variables, wanted_of
from .toolkit_settings import ToolkitSettings

RESTARTS = ("serve", "limits", "a2e", "offers", "data_dir")
"""Tables that hold for as long as the process does."""


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """What a changed configuration did. Names are those of sources in the catalogue."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Replaced under their name, switched on or off."""
    kept: tuple[str, ...] = ()
    """Not touched: their connections and tools are what they were."""
    problems: tuple[str, ...] = ()
    """What could not be done, and cost only itself."""
    toolkits: tuple[str, ...] = ()
    """Toolkits that were configured anew, or are not configured any more."""
    restart: tuple[str, ...] = ()
    """Tables that changed and take a restart."""

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.problems or self.toolkits or self.restart)

    def summary(self) -> str:
        """One line of it."""
        parts = [
            f"{word} {', '.join(names)}"
            for word, names in (
                ("added", self.added),
                ("removed", self.removed),
                ("changed", self.changed),
                ("toolkits", self.toolkits),
            )
            if names
        ]
        if self.restart:
            parts.append(f"{', '.join(f'[{name}]' for name in self.restart)} takes a restart")
        return "; ".join([*parts, *self.problems]) or "nothing changed"


@dataclass(slots=True)
class _Plan:
    """What is to be done."""

    pieces: list[Piece] = field(default_factory=list[Piece])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    fresh: list[tuple[Piece, Source]] = field(default_factory=list["tuple[Piece, Source]"])
    removed: list[str] = field(default_factory=list[str])
    kept: list[str] = field(default_factory=list[str])


class Reloading:
    """Holds what was named so far. `opening` gives the surroundings for a configuration."""

    def __init__(
        self,
        catalog: Catalog,
        lives: Lives,
        settings: ToolkitSettings,
        *,
        opening: Callable[[AppConfig], Opening],
    ) -> None:
        self._catalog = catalog
        self._lives = lives
        self._settings = settings
        self._opening = opening
        self._lock = asyncio.Lock()
        self.pieces: list[Piece] = []

    def start(self, config: AppConfig, given: Sequence[Named], more: Sequence[Source] = ()) -> list[Source]:
        """Open everything and take it in, so that equal names are decided together."""
        opening = self._opening(config)
        wanted = wanted_of(config, opening)
        pieces = [one.opened(opening) for one in wanted if one.rank is Rank.SOURCE]
        pieces += pieces_of(given, opening)
        pieces += [one.opened(opening) for one in wanted if one.rank is Rank.AGENT]
        pieces += [Piece(None, "", Rank.OBJECT, [source]) for source in more]
        sources = [self._settings.offered(source, config) for piece in pieces for source in piece.sources]
        added = self._catalog.add(*sources)
        names = iter(added)
        for piece in pieces:
            piece.names = [next(names).name for _ in piece.sources]
        self.pieces = pieces
        return added

    async def reload(
        self, config: AppConfig, *, before: AppConfig, given: Sequence[Named] | None, more: Callable[[], None]
    ) -> ReloadReport:
        """Apply a configuration; `given` are the sources beside those of the file, None for the same as before.

        `more` is done in the same breath. Raises `ConfigError` where a variable is not set; nothing changed then.
        """
        unset = unset_variables(config)
        if unset:
            where = f"{config.path}: " if config.path else ""
            raise ConfigError("\n".join(f"{where}{one}" for one in unset))
        async with self._lock:
            return await self._reload(config, before, given, more)

    async def _reload(
        self, config: AppConfig, before: AppConfig, given: Sequence[Named] | None, more: Callable[[], None]
    ) -> ReloadReport:
        opening = self._opening(config)
        wanted = wanted_of(config, opening)
        if given is not None:
            wanted += [of_named(one, opening, Rank.GIVEN) for one in given]
        async with contextlib.AsyncExitStack() as stack:
            self._catalog.switched_off.clear()
            plan = await self._planned(config, wanted, opening, stack, keep_given=given is None)
            fresh = [self._settings.offered(source, config) for _, source in plan.fresh]
            problems = [problem for exchange in plan.exchanges for problem in exchange.problems]

            def named(added: list[Source]) -> None:
                for (piece, source), taken in zip(plan.fresh, added, strict=True):
                    piece.names[_place(piece, source)] = taken.name
                self.pieces = sorted(plan.pieces, key=lambda piece: piece.rank)
                self._catalog.put_in_order([name for piece in self.pieces for name in piece.names])
                more()

            added = self._lives.put(plan.exchanges, removed=plan.removed, added=fresh, then=named)
        touched = [*(one.source for one in plan.exchanges if one.connects), *added]
        for source in touched:
            await self._lives.connect(source)
        toolkits = await self._settings.apply(config)
        problems += [f"{source.name}: {source.failed}" for source in touched if source.failed is not None]
        problems += [
            problem if name == "*" else f"toolkit {name}: {problem}"
            for name, problem in self._settings.problems.items()
        ]
        return ReloadReport(
            added=tuple(source.name for source in added),
            removed=tuple(plan.removed),
            changed=tuple(exchange.source.name for exchange in plan.exchanges),
            kept=tuple(plan.kept),
            problems=tuple(problems),
            toolkits=toolkits,
            restart=tuple(name for name in RESTARTS if getattr(config, name) != getattr(before, name)),
        )

    async def _planned(
        self,
        config: AppConfig,
        wanted: Sequence[Wanted],
        opening: Opening,
        stack: contextlib.AsyncExitStack,
        *,
        keep_given: bool,
    ) -> _Plan:
        untouched = {Rank.OBJECT, *([Rank.GIVEN] if keep_given else [])}
        plan = _Plan([piece for piece in self.pieces if piece.rank in untouched])
        old = [piece for piece in self.pieces if piece.rank not in untouched]
        known: list[Piece | None] = []
        for one in wanted:
            same = next((piece for piece in old if (piece.key, piece.rank) == (one.key, one.rank)), None)
            if same is not None and same.failed:
                same = None  # it may well be there now
            if same is not None:
                old.remove(same)
            known.append(same)
        # What is left of the old ones, by the name that each had before the catalogue numbered it.
        left = [(name, source) for piece in old for name, source in zip(piece.names, piece.sources, strict=True)]
        for one, piece in zip(wanted, known, strict=True):
            if piece is None:
                piece = one.opened(opening)
                piece.names = ["" for _ in piece.sources]
                await self._replaced(plan, piece, left, config, stack)
            plan.pieces.append(piece)
        for piece in plan.pieces:
            if piece in known or piece.rank in untouched:
                for name, source in zip(piece.names, piece.sources, strict=True):
                    await self._refit(plan, name, source, config, stack)
        plan.removed = [name for name, _ in left if name in self._catalog.snapshot.sources]
        return plan

    async def _replaced(
        self,
        plan: _Plan,
        piece: Piece,
        left: list[tuple[str, Source]],
        config: AppConfig,
        stack: contextlib.AsyncExitStack,
    ) -> None:
        """A piece that is named otherwise than before, or for the first time. What is used of `left` is taken out."""
        for index, source in enumerate(piece.sources):
            old = next(
                (pair for pair in left if pair[1].name == source.name and pair[0] in self._catalog.snapshot.sources),
                None,
            )
            if old is None:
                plan.fresh.append((piece, source))
                continue
            left.remove(old)
            piece.names[index] = old[0]
            if is_same(old[1], source) or (source.failed is not None and source.failed == old[1].failed):
                piece.sources[index] = old[1]
                plan.kept.append(old[0])
                continue
            offered = replace(self._settings.offered(source, config), name=old[0])
            plan.exchanges.append(await self._lives.prepare(offered, stack))

    async def _refit(
        self, plan: _Plan, name: str, source: Source, config: AppConfig, stack: contextlib.AsyncExitStack
    ) -> None:
        """A source that is named as before: only which of its toolkits are offered may have changed."""
        current = self._catalog.snapshot.sources.get(name)
        if current is None:
            return
        if not source.toolkits:
            plan.kept.append(name)
            return
        # What it offers came of how it was opened last.
        offered = self._settings.offered(source, config)
        if (offered.toolkits, offered.disabled) == (current.toolkits, current.disabled):
            plan.kept.append(name)
            return
        shown = replace(current, toolkits=offered.toolkits, disabled=offered.disabled)
        plan.exchanges.append(await self._lives.prepare(shown, stack))


def _place(piece: Piece, source: Source) -> int:
    return next(index for index, one in enumerate(piece.sources) if one is source)
