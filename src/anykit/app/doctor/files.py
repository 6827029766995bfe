"""Clients' files that the configuration names: what in them means nothing, or leads nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from anykit.sources.documents import ENDINGS, Unreadable, read_document

from .exposure import candidates
from .finding import Case, Finding

_NAME = re.compile(r"the environment variable ([A-Za-z_][A-Za-z0-9_]*) is not set")
_UNKNOWN = "keys that mean nothing here: "


def files(case: Case) -> Iterator[Finding]:
    """What there is to say of each client's file, by that client's own rules."""
    from anykit.sources.mcp import (  # noqa: PLC0415 - only those who use MCP pay for it
        Misfit,
        Surroundings,
        is_server_file,
        read_server_file,
    )

    for file in candidates(case):
        if file.suffix not in ENDINGS:
            continue
        try:
            if not is_server_file(read_document(file), file):
                continue
            read = read_server_file(file, Surroundings(file.parent, env=case.env, home=case.home))
        except (Unreadable, Misfit) as error:
            yield Finding("file_unreadable", "error", file.name, str(error), f"correct {file}")
            continue
        for report in read.reports:
            if report.startswith(_UNKNOWN):
                keys = report.removeprefix(_UNKNOWN)
                yield Finding("unknown_key", "note", file.name, f"keys that mean nothing here: {keys}", "take them out")
            else:
                yield Finding("file_partly_used", "warning", file.name, report, f"correct {file}")
        for entry in read.entries:
            for report in dict.fromkeys(entry.reports):
                yield _of_entry(file, report)
            named = _NAME.search(entry.fault or "")
            if named is not None:
                yield _unset(file, entry.name, named[1])


def _of_entry(file: Path, report: str) -> Finding:
    named = _NAME.search(report)
    if named is not None:
        return _unset(file, report.partition(":")[0], named[1])
    return Finding("file_partly_used", "warning", file.name, report, f"correct it in {file}")


def _unset(file: Path, key: str, name: str) -> Finding:
    return Finding(
        "variable_unset",
        "error",
        f"{file.name}: {key}",
        f"the environment variable {name} is not set",
        f"export {name}=..., or give it a default: ${{{name}:-...}}",
    )
