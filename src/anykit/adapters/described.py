"""What a provider's request says of a tool beside its schema."""

from __future__ import annotations

from dataclasses import dataclass

from anykit.tools import ToolSpec


@dataclass(frozen=True, slots=True)
class Described:
    """A tool by name and text."""

    name: str
    text: str
    """Its description; a tool without one is described by its title or name."""
    deferred: bool = False

    @classmethod
    def of(cls, spec: ToolSpec) -> Described:
        """From a tool's spec."""
        title = spec.title or (spec.annotations.title if spec.annotations is not None else None)
        return cls(spec.name, spec.description or title or spec.name.replace("_", " "), spec.deferred)
