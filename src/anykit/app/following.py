"""Edits of Python sources, followed: the edited module is run again, and what it offered before serves until that works."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from anykit.runtime import Catalog, Source
from anykit.sources import FunctionSource
from anykit.sources.reimporting import forget_modules, imports_of, restore_modules, touched_by

from .lives import Lives
from .opening import Opening, opened_one
from .pieces import Piece

IMPORT_TIMEOUT = 60.0
"""Seconds that a module may take to be run again."""


@dataclass(frozen=True, slots=True)
class Followed:
    """What became of one source whose module was edited."""

    source: str
    failed: str = ""
    """Why the edited module cannot be used, with file and line; what it offered before serves on."""
    problems: tuple[str, ...] = ()
    """What of its toolkits' configurations does not do any more."""


class Following:
    """Follows the Python sources among `pieces`."""

    def __init__(
        self,
        catalog: Catalog,
        lives: Lives,
        *,
        pieces: Callable[[], Iterable[Piece]],
        opening: Callable[[], Opening],
        offered: Callable[[Source], Source],
    ) -> None:
        self._catalog = catalog
        self._lives = lives
        self._pieces = pieces
        self._opening = opening
        self._offered = offered
        self._graphs: dict[Path, Mapping[Path, frozenset[Path]]] = {}
        self._lock = asyncio.Lock()

    def files(self) -> set[Path]:
        """What is to be watched."""
        return {file for piece in self._pieces() for file in self._graph(piece)}

    def _graph(self, piece: Piece) -> Mapping[Path, frozenset[Path]]:
        file = self._file(piece)
        if file is None:
            return {}
        known = self._graphs.get(file)
        if known is None:
            known = self._graphs[file] = imports_of(file)
        return known

    def _file(self, piece: Piece) -> Path | None:
        """The Python file of a piece; None where it has none, or one that was installed."""
        target = piece.target
        if not target or len(piece.sources) != 1:
            return None
        path = target.rpartition(":")[0] if ".py:" in target else target
        if path.endswith(".py"):
            return (self._opening().folder / Path(path).expanduser()).absolute()
        if piece.sources[0].kind != "python":
            return None
        module = sys.modules.get(target.partition(":")[0])
        origin = getattr(module, "__file__", None)
        if not isinstance(origin, str) or "site-packages" in Path(origin).parts:
            return None
        return Path(origin)

    async def follow(self, changed: frozenset[Path]) -> list[Followed]:
        """Run again what imports a changed file, and let it take the place of what it was."""
        async with self._lock:
            return await self._follow(changed)

    async def _follow(self, changed: frozenset[Path]) -> list[Followed]:
        touched: dict[int, tuple[Piece, frozenset[Path]]] = {}
        for piece in self._pieces():
            files = touched_by(changed, self._graph(piece))
            if files and piece.names and piece.sources[0].disabled is None:
                touched[id(piece)] = (piece, files)
        if not touched:
            return []
        # Once for all of them: two sources that share a module go on sharing it.
        forgotten = forget_modules({file for _, files in touched.values() for file in files})
        found: list[Followed] = []
        try:
            for piece, _ in touched.values():
                file = self._file(piece)
                found.append(await self._again(piece))
                if file is not None:
                    self._look_again(file, failed=bool(found[-1].failed))
        finally:
            restore_modules(forgotten)
        return found

    def _look_again(self, file: Path, *, failed: bool) -> None:
        """What it imports may be other files now. Of a broken one the last that was known is watched too."""
        graph = dict(imports_of(file))
        if failed:
            graph = {**self._graphs.get(file, {}), **graph}
            graph[file] = graph[file] | self._graphs.get(file, {}).get(file, frozenset())
        self._graphs[file] = graph

    async def _again(self, piece: Piece) -> Followed:
        name = piece.names[0]
        current = self._catalog.snapshot.sources[name]
        fresh = await self._opened(piece)
        if fresh.failed is not None:
            if isinstance(current.provider, FunctionSource) and current.failed is None:
                current.provider.stale = f"the edited version is not used: {fresh.failed}"
                self._catalog.rebuild(name)
            else:
                self._catalog.replace(replace(current, failed=fresh.failed, since=None))
            return Followed(name, fresh.failed)
        piece.sources[0] = fresh
        async with contextlib.AsyncExitStack() as stack:
            exchange = await self._lives.prepare(replace(self._offered(fresh), name=name), stack)
            self._lives.put([exchange])
        await self._lives.connect(exchange.source)
        return Followed(name, problems=exchange.problems)

    async def _opened(self, piece: Piece) -> Source:
        """Run the module in a thread of its own: one that hangs costs only itself."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Source] = loop.create_future()
        opening = self._opening()

        def tell(source: Source) -> None:
            if not done.done():
                done.set_result(source)

        def run() -> None:
            try:
                said = piece.said
                [source] = opened_one(said, opening)
            except BaseException as error:  # a module may raise anything at all
                source = Source(piece.names[0], "python", failed=f"{piece.target}: {type(error).__name__}: {error}")
            with contextlib.suppress(RuntimeError):  # the loop may be over
                loop.call_soon_threadsafe(tell, source)

        threading.Thread(target=run, name=f"import {piece.target}", daemon=True).start()
        try:
            async with asyncio.timeout(IMPORT_TIMEOUT):
                return await done
        except TimeoutError:
            failed = f"{piece.target}: it was not loaded within {IMPORT_TIMEOUT:g} s"
            return Source(piece.names[0], "python", failed=failed)
