"""Transcripts as tests: what an agent says line by line, and what a host must answer.

    # a remark
    > {"type":"ping","id":"p1"}                                    said to the host as it is, JSON or not
    >hex ff fe                                                     the same, for bytes that are no text
    < {"type":"pong","id":"$_","version":"1.0","ts":"$_","req_id":"p1","uptime_seconds":"$_"}
    <~ {"type":"pong","req_id":"p1"}                               at least these members
    <? {"type":"pong","req_id":"p1"}                               the same; such lines beside each other come in any order

Behind `<` stand the same keys in the same order and the same values. Everywhere the string `$_` is any value, and `$name` any
value that is the same wherever the name comes again, also in what is said later.
"""

from __future__ import annotations

import asyncio
import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

from anykit.capabilities import Json, JsonObject
from anykit.transports import LineTransport, TransportClosed

ANSWER_SECONDS = 5.0
"""What the host may take for a line."""


class TalkBroken(AssertionError):
    """The host did not answer as the transcript says."""


@dataclass(frozen=True, slots=True)
class Said:
    """A line to the host."""

    number: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Expected:
    """Lines from the host, in any order where there are several."""

    number: int
    lines: tuple[Json, ...]
    whole: bool = True
    """Whether they have no more than these members."""
    ordered: bool = True


Talk: TypeAlias = Sequence[Said | Expected]


def parse_talk(text: str) -> Talk:
    """Read a transcript. Raises `ValueError` with the number of a line that is none of one."""
    steps: list[Said | Expected] = []
    for number, line in enumerate(text.splitlines(), 1):
        mark, _, rest = line.partition(" ")
        if not line.strip() or mark.startswith("#"):
            continue
        try:
            steps.append(_step(number, mark, rest))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if len(steps) > 1 and mark == "<?":
            before, last = steps[-2], steps[-1]
            if isinstance(before, Expected) and isinstance(last, Expected) and not before.ordered:
                steps[-2:] = [replace(before, lines=before.lines + last.lines)]
    return steps


def _step(number: int, mark: str, rest: str) -> Said | Expected:
    match mark:
        case ">":
            return Said(number, rest.encode())
        case ">hex":
            return Said(number, bytes.fromhex(rest))
        case "<":
            return Expected(number, (json.loads(rest),))
        case "<~" | "<?":
            return Expected(number, (json.loads(rest),), whole=False, ordered=mark == "<~")
        case _:
            raise ValueError(f"a line begins with >, >hex, <, <~, <? or #, not {mark[:20]!r}")


async def play(
    talk: Talk | str,
    transport: LineTransport,
    names: Mapping[str, Json] | None = None,
    *,
    patience: float = ANSWER_SECONDS,
) -> dict[str, Json]:
    """Say and hear a transcript on a connection; `patience` is in seconds a line.

    Gives the names that were bound. Raises `TalkBroken` where the host answers something else, or nothing.
    """
    bound: dict[str, Json] = dict(names or {})
    for step in parse_talk(talk) if isinstance(talk, str) else talk:
        if isinstance(step, Said):
            await _say(step, transport, bound)
            continue
        waiting = list(step.lines)
        while waiting:
            heard = await _hear(transport, step.number, waiting, patience)
            faults: list[str] = []
            for wanted in waiting:
                trial = dict(bound)
                if (fault := _Comparison(trial, whole=step.whole).compare(wanted, heard, "")) is None:
                    bound.update(trial)
                    waiting.remove(wanted)
                    break
                faults.append(fault)
            else:
                raise TalkBroken(f"line {step.number}: {'; or '.join(faults)}\n  heard: {json.dumps(heard)[:2000]}")
    return bound


def shipped_talks() -> dict[str, str]:
    """Transcripts that every A2E host must keep, by name. A host for them has no token and needs offer nothing."""
    folder = importlib.resources.files("anykit.testing") / "a2e_host"
    return {
        one.name.removesuffix(".talk"): one.read_text(encoding="utf-8")
        for one in sorted(folder.iterdir(), key=lambda found: found.name)
        if one.name.endswith(".talk")
    }


async def _say(step: Said, transport: LineTransport, bound: Mapping[str, Json]) -> None:
    line = step.line
    for name, value in bound.items():
        line = line.replace(f'"${name}"'.encode(), json.dumps(value).encode())
    await transport.send(line)


async def _hear(transport: LineTransport, number: int, wanted: Sequence[Json], patience: float) -> Json:
    try:
        async with asyncio.timeout(patience):
            heard = await transport.receive()
    except TimeoutError:
        raise TalkBroken(f"line {number}: the host said nothing, not {json.dumps(wanted[0])[:500]}") from None
    except TransportClosed as closed:
        raise TalkBroken(f"line {number}: the host went away ({closed.reason})") from None
    if not isinstance(heard, bytes):
        raise TalkBroken(f"line {number}: {heard}")
    try:
        return json.loads(heard, parse_constant=_no_constant)
    except ValueError as error:
        raise TalkBroken(f"line {number}: the host sent no JSON: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


class _Comparison:
    """Compares a line with what is wanted; names met for the first time are bound."""

    def __init__(self, bound: dict[str, Json], *, whole: bool) -> None:
        self._bound = bound
        self._whole = whole

    def compare(self, wanted: Any, heard: Any, path: str) -> str | None:
        """What is wrong, or None."""
        if isinstance(wanted, str) and wanted.startswith("$"):
            if wanted == "$_":
                return None
            before = self._bound.setdefault(wanted[1:], heard)
            return None if _same(before, heard) else f"{path or '/'} is not what {wanted} was before"
        if isinstance(wanted, dict) and isinstance(heard, dict):
            return self._objects(cast(JsonObject, wanted), cast(JsonObject, heard), path)
        if isinstance(wanted, list) and isinstance(heard, list):
            return self._lists(cast("list[Any]", wanted), cast("list[Any]", heard), path)
        if _same(wanted, heard):
            return None
        return f"{path or '/'} is {json.dumps(heard)[:200]}, not {json.dumps(wanted)[:200]}"

    def _objects(self, wanted: JsonObject, heard: JsonObject, path: str) -> str | None:
        if self._whole and list(heard) != list(wanted):
            return f"{path or '/'} has the keys {', '.join(heard)}, not {', '.join(wanted)}"
        for key, value in wanted.items():
            if key not in heard:
                return f"{path or '/'} has no {key}"
            if (fault := self.compare(value, heard[key], f"{path}/{key}")) is not None:
                return fault
        return None

    def _lists(self, wanted: list[Any], heard: list[Any], path: str) -> str | None:
        if len(wanted) != len(heard):
            return f"{path or '/'} has {len(heard)} items, not {len(wanted)}"
        faults = (self.compare(one, heard[n], f"{path}/{n}") for n, one in enumerate(wanted))
        return next((fault for fault in faults if fault is not None), None)


def _same(one: Json, other: Json) -> bool:
    return type(one) is type(other) and one == other
