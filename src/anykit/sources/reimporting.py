"""Modules of one's own that are loaded again once they were edited: which those are, and how to forget them first."""

from __future__ import annotations

import ast
import contextlib
import importlib.util
import linecache
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

MAX_FILES = 2_000
"""Of the files that one file imports from its folder, as many are followed."""


def imports_of(file: Path) -> Mapping[Path, frozenset[Path]]:
    """A file and the modules of its own folder that it imports, directly or through each other: each with what it imports.

    Nothing is run: the text is read. A file that cannot be parsed imports nothing.
    """
    root = file.parent
    graph: dict[Path, frozenset[Path]] = {}
    waiting = [file]
    while waiting and len(graph) < MAX_FILES:
        one = waiting.pop()
        if one not in graph:
            graph[one] = frozenset(_imported(one, root))
            waiting += graph[one]
    return graph


def _imported(file: Path, root: Path) -> set[Path]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return set()
    found: set[Path] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                found |= _modules(root, alias.name.split("."))
        elif isinstance(node, ast.ImportFrom):
            base = root
            if node.level:
                base = file.parent
                for _ in range(node.level - 1):
                    base = base.parent
                if not base.is_relative_to(root):
                    continue
            parts = node.module.split(".") if node.module else []
            for alias in node.names:
                found |= _modules(base, [*parts, alias.name])
            found |= _modules(base, parts)
    return found - {file}


def _modules(base: Path, parts: list[str]) -> set[Path]:
    """The files that an import of `parts` runs, as far as they lie in `base`."""
    found: set[Path] = set()
    here = base
    for part in parts:
        module, package = here / f"{part}.py", here / part / "__init__.py"
        if package.is_file():
            found.add(package)
        elif module.is_file():
            found.add(module)
            break
        elif not (here / part).is_dir():
            break
        here = here / part
    return found


def touched_by(changed: Iterable[Path], graph: Mapping[Path, frozenset[Path]]) -> frozenset[Path]:
    """The changed files of a graph, and those that import them, directly or through each other."""
    touched = set(changed) & graph.keys()
    while True:
        more = {file for file, imports in graph.items() if file not in touched and imports & touched}
        if not more:
            return frozenset(touched)
        touched |= more


def forget_modules(files: Iterable[Path]) -> dict[str, ModuleType]:
    """Let the modules of these files be run again at their next import; gives those that there were.

    Compiled files are removed: they are told from the text by whole seconds and the size, which an edit may both keep.
    """
    real = {os.path.realpath(file) for file in files}
    forgotten: dict[str, ModuleType] = {}
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if isinstance(origin, str) and name != "__main__" and os.path.realpath(origin) in real:
            forgotten[name] = sys.modules.pop(name)
    for file in files:
        with contextlib.suppress(OSError, NotImplementedError):
            Path(importlib.util.cache_from_source(str(file))).unlink()
        linecache.checkcache(str(file))
    importlib.invalidate_caches()
    return forgotten


def restore_modules(forgotten: Mapping[str, ModuleType]) -> None:
    """Bring those back that were not imported again: what serves on may still need them."""
    for name, module in forgotten.items():
        sys.modules.setdefault(name, module)
