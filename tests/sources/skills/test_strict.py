"""Held against the specification, our verdict on each of the vectors is that of its reference tool."""

from __future__ import annotations

from pathlib import Path

import pytest

from anykit.sources.skills import strict_faults
from sources.skills.making import VECTORS, make_skill

VALID = sorted((VECTORS / "valid").iterdir())
INVALID = sorted((VECTORS / "invalid").iterdir())


@pytest.mark.parametrize("folder", VALID, ids=lambda folder: folder.name[:20])
def test_a_valid_skill_has_no_fault(folder: Path) -> None:
    assert strict_faults(folder) == []


@pytest.mark.parametrize("folder", INVALID, ids=lambda folder: folder.name[:20])
def test_an_invalid_one_has(folder: Path) -> None:
    assert strict_faults(folder)


@pytest.mark.parametrize(
    ("folder", "fault"),
    [
        ("no-file", "there is no SKILL.md"),
        ("no-name", "`name` is missing"),
        ("no-description", "`description` is missing"),
        ("plain-colon", "line 3: not YAML"),
        ("flow-list", "line 4: flow style"),
        ("twice", "line 4: the field 'description' is there twice"),
        ("unknown-field", "unknown field model"),
        ("not-utf8", "not UTF-8"),
        ("another-folder", "must be the name of its folder"),
    ],
)
def test_a_fault_says_what_and_where(folder: str, fault: str) -> None:
    assert fault in strict_faults(VECTORS / "invalid" / folder)[0]


def test_every_fault_is_told_at_once(tmp_path: Path) -> None:
    raw = b"---\nname: -A--b_\nfoo: bar\ncompatibility:\n  - x\n---\n"
    faults = strict_faults(make_skill(tmp_path, "other", raw=raw))
    assert len(faults) == 8


def test_what_is_no_folder_is_no_skill(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert strict_faults(tmp_path / "file") == ["it is no folder"]
    assert strict_faults(tmp_path / "nothing") == ["there is no such folder"]
