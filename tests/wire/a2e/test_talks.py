"""Conversations with a host, replayed from data (`tests/vectors/a2e/*.talk`; their README says what a step means)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from anykit.wire.a2e import MESSAGE_TYPES, HostEvent, HostLimits, HostSession, LineReader

FOLDER = Path(__file__).parents[2] / "vectors/a2e"
TALKS = sorted(path.stem for path in FOLDER.glob("*.talk"))


@dataclass
class Player:
    """Plays one talk. `chunk` is the number of bytes that arrive at once."""

    chunk: int
    now: float = 0.0
    ids: list[str] = field(default_factory=list[str])
    counter: Iterator[int] = field(default_factory=lambda: count(1))
    session: HostSession | None = None
    reader: LineReader = field(default_factory=LineReader)
    told: list[HostEvent] = field(default_factory=list[HostEvent])
    written: list[bytes] = field(default_factory=list[bytes])

    def new_id(self) -> str:
        return self.ids.pop(0) if self.ids else f"h{next(self.counter)}"

    @property
    def host(self) -> HostSession:
        assert self.session is not None, "a talk begins with `host`"
        return self.session

    def step(self, verb: str, rest: str) -> None:
        if verb == "=":
            self.check_told(rest)
        elif verb == "<":
            assert self.written, "nothing more was written"
            assert self.written.pop(0).decode() == rest
        elif verb == "<~":
            assert self.written, "nothing more was written"
            line = json.loads(self.written.pop(0))
            expected = json.loads(rest)
            assert {name: line.get(name) for name in expected} == expected
        else:
            self.check_all_was_said()
            self.act(verb, rest)
            self.written += self.host.take()

    def act(self, verb: str, rest: str) -> None:
        match verb:
            case "host":
                self.start(json.loads(rest))
            case "at":
                self.now = float(rest)
            case "ids":
                self.ids = rest.split()
            case ">":
                self.hear(rest.encode())
            case ">hex":
                self.hear(bytes.fromhex(rest))
            case "end":
                self.host.end(self.now)
            case "push":
                kind, _, data = rest.partition(" ")
                self.host.push(kind, json.loads(data), self.now)
            case "event":
                req_id, kind, data = rest.split(" ", 2)
                self.host.event(req_id, kind, json.loads(data), self.now)
            case "fail":
                req_id, _, said = rest.partition(" ")
                error = json.loads(said)
                self.told += self.host.fail(req_id, error.pop("code"), error.pop("message"), self.now, **error)
            case "reply":
                req_id, _, said = rest.partition(" ")
                fields = json.loads(said)
                message = MESSAGE_TYPES[fields["type"]].model.model_validate(fields)
                self.told += self.host.reply(req_id, message, self.now)
            case _:
                raise AssertionError(f"no such step: {verb}")

    def start(self, options: dict[str, Any]) -> None:
        self.counter = count(1)
        self.session = HostSession(
            session_id=options.get("session_id", "s"),
            capabilities=options["capabilities"],
            new_id=self.new_id,
            now=0.0,
            token=options.get("token"),
            limits=HostLimits(**options.get("limits", {})),
            lenient_caps=options.get("lenient_caps", False),
        )

    def hear(self, line: bytes) -> None:
        data = line + b"\n"
        for start in range(0, len(data), self.chunk):
            for whole in self.reader.feed(data[start : start + self.chunk]):
                self.told += self.host.receive(whole, self.now)

    def check_told(self, rest: str) -> None:
        assert self.told, f"nothing more was told, not {rest!r}"
        event = self.told.pop(0)
        name, *fields = re.findall(r'\w+=(?:"[^"]*"|\[[^\]]*\]|\S+)|\w+', rest)
        assert type(event).__name__ == name
        for said in fields:
            key, _, value = said.partition("=")
            assert json.loads(json.dumps(getattr(event, key))) == json.loads(value), key

    def check_all_was_said(self) -> None:
        assert not self.told
        assert not self.written


def steps(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line and not line.startswith("#"):
            verb, _, rest = line.partition(" ")
            yield number, verb, rest


@pytest.mark.parametrize("chunk", [1, 7, 65536])
@pytest.mark.parametrize("talk", TALKS)
def test_a_talk_goes_as_written(talk: str, chunk: int) -> None:
    player = Player(chunk)
    for number, verb, rest in steps((FOLDER / f"{talk}.talk").read_text(encoding="utf-8")):
        at(number, lambda verb=verb, rest=rest: player.step(verb, rest))
    player.check_all_was_said()


def at(number: int, act: Callable[[], None]) -> None:
    try:
        act()
    except AssertionError as error:
        error.add_note(f"in line {number}")
        raise


def test_the_examples_of_the_toolkits_capability_are_among_the_talks() -> None:
    lines = (FOLDER / "toolkits_capability.talk").read_text(encoding="utf-8").split("\n")
    types = [json.loads(line[2:])["type"] for line in lines if line[:2] in ("> ", "< ")]
    assert types[2:] == ["toolkit/list/req", "toolkit/list/resp", "toolkit/configure/req", "toolkit/configure/resp"]
