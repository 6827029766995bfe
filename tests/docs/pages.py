"""Reads the pages: fenced blocks, with files of `docs_src` put in where a page includes them."""

from __future__ import annotations

import functools
import importlib
import re
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>[a-z]*)(?P<options>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```$", re.M | re.S
)
TITLE = re.compile(r'title="([^"]+)"')
FLAG = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
INCLUDE = re.compile(r'^--8<-- "([^"]+)"$', re.M)


@dataclass(frozen=True)
class Block:
    """One fenced block. `line` is where its body starts in the page."""

    language: str
    title: str | None
    body: str
    line: int


def pages() -> list[Path]:
    """Every page that people read."""
    return [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order."""
    text = page.read_text()
    found: list[Block] = []
    for match in FENCE.finditer(text):
        indent = match["indent"]
        body = "".join(line.removeprefix(indent) for line in match["body"].splitlines(keepends=True))
        body = INCLUDE.sub(lambda include: (ROOT / include[1]).read_text().rstrip("\n"), body)
        title = TITLE.search(match["options"])
        found.append(Block(match["language"], title and title[1], body, text.count("\n", 0, match.start("body")) + 1))
    return found


def anykit_commands(block: Block) -> list[tuple[str, str]]:
    """The `anykit` commands of a shell block, each with the output that the page shows for it."""
    commands: list[tuple[str, str]] = []
    for line in block.body.splitlines():
        command = line.removeprefix("$ ") if block.language == "console" else line
        is_command = line.startswith("$ ") if block.language == "console" else True
        if is_command:
            commands.append((command.split("  #")[0].strip(), ""))
        elif commands:
            command, output = commands[-1]
            commands[-1] = (command, output + line + "\n")
    return [(command, output) for command, output in commands if re.search(r"\banykit ", command)]


@functools.cache
def flags_of(verb: str) -> frozenset[str]:
    """The flags that a verb's help names; its prose too, since that is about the same flags."""
    program = importlib.import_module("anykit.cli.program")
    printed = StringIO()
    assert program.run([verb, "--help"], stdout=printed, stderr=printed, env={"COLUMNS": "200"}) == 0
    return frozenset(FLAG.findall(printed.getvalue()))
