"""For the tests of people who build on anykit: fake peers, and contracts that any source or host must keep."""

from .contracts import SOURCE_CLAUSES, ContractBroken, SourceUnderTest, check_source
from .memory import MemoryInvocable, MemoryProvider
from .scripted import ScriptedHost, scripted_host
from .talks import TalkBroken, parse_talk, play, shipped_talks

__all__ = [
    "SOURCE_CLAUSES",
    "ContractBroken",
    "MemoryInvocable",
    "MemoryProvider",
    "ScriptedHost",
    "SourceUnderTest",
    "TalkBroken",
    "check_source",
    "parse_talk",
    "play",
    "scripted_host",
    "shipped_talks",
]
