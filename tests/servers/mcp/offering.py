"""A workbench put together by hand over providers in memory, which watch resources and complete arguments."""

from __future__ import annotations

from anykit.runtime import Source
from anykit.testing import MemoryProvider
from runtime_parts import Bench


class Offered(Bench):
    """Gives sessions over providers in memory."""

    def __init__(self, *providers: MemoryProvider) -> None:
        super().__init__(*(Source(f"memory{index}", "memory", one) for index, one in enumerate(providers)))
