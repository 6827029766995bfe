"""Agent Skills folders and Agent Plugins as sources: instructions that a model loads when it needs them, with their files."""

from .errors import Finding
from .files import digest_of_tree, files_of_skill
from .folders import Place, look, usual_places
from .library import KIND, TOOL, Library, Needed, needed
from .skill import Skill
from .source import Selection, SkillsSource
from .strict import strict_faults

__all__ = [
    "KIND",
    "TOOL",
    "Finding",
    "Library",
    "Needed",
    "Place",
    "Selection",
    "Skill",
    "SkillsSource",
    "digest_of_tree",
    "files_of_skill",
    "look",
    "needed",
    "strict_faults",
    "usual_places",
]
