"""Skills as others judge them: the Inspector verifies what we serve, `agentskills` what we call valid and what we tell models."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from anykit.sources.skills import Library, SkillsSource, strict_faults
from interop.conftest import made
from interop.environments import INSPECTOR, ROOT, SKILLS_REF
from sources.skills.making import VECTORS, make_skill

pytestmark = pytest.mark.timeout(400)  # the first run installs; later ones take seconds

UNREACHABLE = 75
"""With which the set-up leaves where no registry can be reached."""
SERVE = [sys.executable, "-m", "anykit", "serve"]
TRICKY = """\
license: MIT
compatibility: "1.0"
metadata:
  version: '1.0'
  number: 1.50
  yes: yes
  day: 2024-05-01
  octal: 0o17
  zero: 012
  exponent: 1e3
  nothing:
  tilde: ~
  7: seven
  list: [a, 1, {x: y}]
  folded: >-
    a
    b

    c
  literal: |
    a
     b
allowed-tools: Bash Read
own: "\\u00e9\\ud83d\\ude00"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Skills with what is easily got wrong, and some that do not conform."""
    place = tmp_path_factory.mktemp("skills")
    files = {"ref/a b#?.md": "é\r\n\ufeff".encode(), "x.png": b"\x89PNG\0\xff", "empty": b"", "run.sh": b"echo\n"}
    make_skill(place, "pdf", "'Reads: PDFs & <forms>.'", more=TRICKY, files=files)
    windows = "---\nname: windows\ndescription: d\n---\nbody\n".replace("\n", "\r\n")
    make_skill(place, "windows", raw=windows.encode())
    make_skill(place, "d" * 64, "d" * 1024)
    make_skill(place, "many", files={f"f{number:03}": b"%d" % number for number in range(100)})
    make_skill(place, "plain-colon", "Use when: asked.")
    make_skill(place, "Upper")
    make_skill(place, "marked", raw=b"\xef\xbb\xbf---\nname: marked\ndescription: d\n---\n")
    make_skill(place, "twice", raw=b"---\nname: twice\ndescription: a\ndescription: b\n---\n")
    return place


@pytest.fixture(scope="module")
def url(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    """A host that serves them."""
    command = [*SERVE, str(folder), "--port", "0", "--data-dir", str(tmp_path_factory.mktemp("data"))]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        listening = next(line for line in iter(process.stderr.readline, "") if "listening on" in line)
        yield f"{listening.split()[-1]}/mcp"
    finally:
        process.terminate()
        process.communicate(timeout=10)


def inspect(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the Inspector's command."""
    node = ROOT / ".venvs" / "conformance" / "bin" / "node"
    if not node.exists():
        done = subprocess.run(["scripts/conformance-setup.sh"], cwd=ROOT, capture_output=True, text=True, timeout=240)
        if done.returncode == UNREACHABLE:
            pytest.skip("INTEROP NOT PROVED: the Inspector needs a newer Node, and no registry has one")
        assert done.returncode == 0, done.stderr
    program = made(INSPECTOR).folder / "node_modules" / ".bin" / "mcp-inspector"
    return subprocess.run(
        [str(node), str(program), "--cli", *arguments], capture_output=True, text=True, timeout=100, env=os.environ
    )


VERIFY = ("--method", "skills/list", "--verify", "--require-digests")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_verifies_every_skill_and_file(era: str, url: str) -> None:
    done = inspect(url, "--transport", "http", "--protocol-era", era, *VERIFY)
    assert done.returncode == 0, done.stdout + done.stderr
    verified = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["name"] for one in verified} == {"pdf", "windows", "d" * 64, "many"}
    assert all(one["ok"] and one["conformance"] == [] and one["frontmatter"] == [] for one in verified)
    assert sum(len(one["files"]) for one in verified) == 5 + 1 + 1 + 101


def test_the_inspector_verifies_a_child(folder: Path, tmp_path: Path) -> None:
    done = inspect(*SERVE, str(folder), "--stdio", "mcp", "--data-dir", str(tmp_path), *VERIFY)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Verified 4 skills and 108 files" in done.stderr


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_reads_a_skill_and_its_folders(era: str, url: str) -> None:
    there = (url, "--transport", "http", "--protocol-era", era)
    got: Any = json.loads(inspect(*there, "--method", "skills/get", "--uri", "skill://pdf/SKILL.md").stdout)
    assert got["skill"]["frontmatter"]["metadata"]["number"] == 1.5
    read: Any = json.loads(inspect(*there, "--method", "resources/directory/read", "--uri", "skill://pdf").stdout)
    assert [one["name"] for one in read["resources"]] == ["pdf", "empty", "ref", "run.sh", "x.png"]
    assert inspect(*there, "--method", "skills/get", "--uri", "skill://Upper/SKILL.md").returncode != 0


# agentskills


def agentskills(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the reference tool."""
    program = made(SKILLS_REF).folder / "bin" / "agentskills"
    return subprocess.run([str(program), *arguments], capture_output=True, text=True, timeout=60)


def test_agentskills_agrees_on_every_vector() -> None:
    made(SKILLS_REF)
    code = (
        "import json, pathlib, sys\nfrom skills_ref.validator import validate\n"
        "def judged(path):\n    try:\n        return not validate(pathlib.Path(path))\n"
        "    except UnicodeDecodeError:\n        return False\n"
        "print(json.dumps([judged(path) for path in sys.argv[1:]]))"
    )
    folders = [one for kind in ("valid", "invalid") for one in sorted((VECTORS / kind).iterdir())]
    done = subprocess.run(
        [SKILLS_REF.python, "-c", code, *map(str, folders)], capture_output=True, text=True, timeout=60
    )
    theirs = dict(zip(folders, json.loads(done.stdout), strict=True))
    assert {folder: not strict_faults(folder) for folder in folders} == theirs
    assert [folder for folder, valid in theirs.items() if valid] == sorted((VECTORS / "valid").iterdir())


@pytest.mark.parametrize("name", ["valid/plain", "valid/lower-file", "invalid/plain-colon", "invalid/no-file"])
def test_agentskills_validate_and_ours_end_alike(name: str) -> None:
    folder = str(VECTORS / name)
    ours = subprocess.run(
        [sys.executable, "-m", "anykit", "validate", "--strict", folder], capture_output=True, text=True, timeout=60
    )
    assert (agentskills("validate", folder).returncode == 0) == (ours.returncode == 0)
    assert ours.returncode == (0 if name.startswith("valid/") else 6)


def test_agentskills_to_prompt_prints_what_we_do(tmp_path: Path) -> None:
    made_here = [
        make_skill(tmp_path, "mail"),
        make_skill(tmp_path, "pdf", "\"Reads <PDF>s & says 'so'.\""),
        make_skill(tmp_path, "text", ">-\n  Goes over\n  several lines."),
    ]
    library = Library()
    source = SkillsSource(tmp_path, library=library)
    library.join(source)
    source.refresh_now()
    assert f"{library.prompt()}\n" == agentskills("to-prompt", *map(str, made_here)).stdout
