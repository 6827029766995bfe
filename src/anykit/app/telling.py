"""Telling an MCP server, in a workbench that runs, what it has to be told; it is started anew with that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from anykit.capabilities import InvalidInput, Json, JsonObject
from anykit.runtime import Catalog, Configured, Source
from anykit.schema import compile_schema
from anykit.stores import UnresolvedReference, resolve

from .inputs import Asked, asked_by
from .lives import Lives
from .opening import Opening, opened_one
from .pieces import Piece
from .source_tables import SourceConfig


class Telling:
    """Used on the loop's thread only. `opening` is asked for with each source that is opened."""

    def __init__(
        self,
        catalog: Catalog,
        lives: Lives,
        *,
        pieces: Callable[[], Sequence[Piece]],
        opening: Callable[[], Opening],
    ) -> None:
        self._catalog = catalog
        self._lives = lives
        self._pieces = pieces
        self._opening = opening

    def asked(self, server: str) -> Asked | None:
        """What the server of that name in the catalogue has to be told; None where it asks for nothing."""
        found = self._found(server)
        return None if found is None else found[1]

    def _found(self, server: str) -> tuple[Piece, Asked, int] | None:
        opening = self._opening()
        for piece in self._pieces():
            if server not in piece.names or not isinstance(piece.said, str | Path | SourceConfig):
                continue
            index = piece.names.index(server)
            asked = asked_by([piece.said], opening.folder, opening.env).get(piece.sources[index].name)
            return None if asked is None else (piece, asked, index)
        return None

    def checked(self, asked: Asked, given: Json) -> JsonObject:
        """What is given, once it fits. Raises `InvalidInput` with every fault."""
        if faults := compile_schema(asked.schema).faults(given):
            raise InvalidInput("the configuration does not fit its schema", faults)
        return cast(JsonObject, given)

    def values(self, given: JsonObject) -> dict[str, str]:
        """What the texts mean that a server is told. Raises `InvalidInput` for a reference that leads nowhere."""
        opening = self._opening()
        try:
            return {id: resolve(str(one), opening.env, opening.folder, where=f"/{id}") for id, one in given.items()}
        except UnresolvedReference as error:
            raise InvalidInput("the configuration refers to what is not there", error.errors) from None

    async def again(self, server: str) -> Configured:
        """Open a server once more, with what it was told by now, in the place of the one that there is."""
        found = self._found(server)
        if found is None:
            return Configured("ok", "Server configured successfully")
        piece, _, index = found
        fresh = self._fresh(piece, index)
        piece.sources[index] = fresh
        offered = replace(fresh, name=server)
        async with contextlib.AsyncExitStack() as stack:
            self._lives.put([await self._lives.prepare(offered, stack)])
        await self._lives.connect(offered)
        return Configured("ok", "Server configured successfully")

    def _fresh(self, piece: Piece, index: int) -> Source:
        name = piece.sources[index].name
        return next(one for one in opened_one(piece.said, self._opening()) if one.name == name)
