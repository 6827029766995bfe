"""What holds for the repository as a whole."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:tmp|work|root|farm|home/[a-z]+|Users/[A-Za-z]+)/")
REGISTRIES = re.compile(
    r"pypi\.org|pythonhosted|registry\.npmjs|files\.python|--index-url|--extra-index-url|index-url *="
)


def tracked() -> list[Path]:
    """The files of the repository: git's list, or in an unpacked archive what is there beside caches."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode == 0 and listed.stdout:
        paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    else:
        skipped = {
            ".venv",
            ".venvs",
            "__pycache__",
            "site",
            "dist",
            ".ruff_cache",
            ".import_linter_cache",
            ".hypothesis",
        }
        paths = [path for path in ROOT.rglob("*") if path.is_file() and not skipped & set(path.relative_to(ROOT).parts)]
    return [path for path in paths if path.is_file() and path != Path(__file__)]


def lines_that_match(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    found: list[str] = []
    for path in paths:
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found += [f"{path.relative_to(ROOT)}: {line.strip()}" for line in text.splitlines() if pattern.search(line)]
    return found


def test_no_tracked_file_holds_a_registry_address() -> None:
    assert lines_that_match(REGISTRIES, tracked()) == []


def test_no_tracked_file_refers_to_what_lies_outside_of_the_repository() -> None:
    assert lines_that_match(re.compile(r"\.\./shared"), tracked()) == []


def test_no_program_or_page_holds_a_path_of_one_machine() -> None:
    # Wire examples name folders; tests use any. What people run or read as instructions must not.
    paths = [
        path for path in tracked() if path.suffix in (".sh", ".toml", ".md", ".yml", ".txt", "") or "src" in path.parts
    ]
    outside_tests = [path for path in paths if "tests" not in path.relative_to(ROOT).parts]
    assert lines_that_match(MACHINE_PATHS, outside_tests) == []


def test_constraints_are_exact_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    for pin in pins:
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin), pin
    assert not [pin for pin in pins if pin.startswith(("torch", "anykit"))]


def test_constraints_pin_every_dependency_that_pyproject_names() -> None:
    def canonical(requirement: str) -> str:
        name = re.match(r"[A-Za-z0-9._-]+", requirement)
        assert name is not None
        return re.sub(r"[-_.]+", "-", name[0]).lower()

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    named = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    pinned = {canonical(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if line[:1].isalnum()}
    assert {canonical(requirement) for requirement in named} - pinned == set()


def test_the_ci_runs_all_of_make_test() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    text = script.read_text()
    assert "set -euo pipefail" in text
    assert re.search(r"^(exec )?make test$", text, re.M)


def test_make_test_checks_style_types_rooms_and_behaviour() -> None:
    planned = subprocess.run(["make", "--dry-run", "test"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    order = ["ruff check", "ruff format --check", "pyright", "lint-imports", "pytest"]
    places = [planned.find(step) for step in order]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.timeout(60)
def test_the_wheel_holds_the_package_with_its_types_and_nothing_else(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "anykit/py.typed" in names
    assert {name.split("/")[0] for name in names} <= {"anykit", wheel.name.split("-py3")[0] + ".dist-info"}


def test_the_public_names_are_these() -> None:
    anykit = pytest.importorskip("anykit")
    assert sorted(getattr(anykit, "__all__", ())) == sorted(
        [
            "CapabilityContext",
            "Tool",
            "ToolError",
            "ToolResult",
            "ToolSpec",
            "Toolkit",
            "Workbench",
            "prompt",
            "resource",
            "tool",
        ]
    )
    for name in anykit.__all__:
        assert getattr(anykit, name) is not None
        assert name in dir(anykit)
    with pytest.raises(AttributeError):
        _ = anykit.nothing_of_this_name
