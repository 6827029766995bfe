"""Clients that are not ours call our host: both official SDKs, both protocol versions, and toolnexus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from interop.conftest import HERE, TOKEN, made
from interop.environments import JS, LINT, SDK_0_3, TOOLNEXUS, Environment
from interop.matrix import CANNOT, judge

pytestmark = pytest.mark.timeout(400)  # the first run installs; later ones take seconds

Results = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Client:
    """A program that calls every scenario and prints what came."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    environment: Environment | None = None

    def run(self, url: str) -> Results:
        """Its results."""
        variables = dict(os.environ)
        command = [sys.executable]
        if self.environment is not None:
            folder = made(self.environment).folder
            command = [self.environment.python]
            if self.environment.node:
                command = ["node"]
                variables["A2A_JS"] = str(folder)
        program = str(HERE / "clients" / self.script)
        done = subprocess.run(
            [*command, program, url, TOKEN, *self.arguments], capture_output=True, text=True, timeout=60, env=variables
        )
        assert done.returncode == 0, done.stderr[-2000:]
        results: Results = json.loads(done.stdout.splitlines()[-1])
        return results


CLIENTS = [
    Client("sdk 1.3 JSONRPC 1.0", "sdk_1_3.py", ("JSONRPC", "1.0")),
    Client("sdk 1.3 HTTP+JSON 1.0", "sdk_1_3.py", ("HTTP+JSON", "1.0")),
    Client("sdk 1.3 JSONRPC 0.3", "sdk_1_3.py", ("JSONRPC", "0.3")),
    Client("sdk 1.3 HTTP+JSON 0.3", "sdk_1_3.py", ("HTTP+JSON", "0.3")),
    Client("sdk 0.3.26 JSONRPC", "sdk_0_3.py", ("JSONRPC",), SDK_0_3),
    Client("sdk 0.3.26 HTTP+JSON", "sdk_0_3.py", ("HTTP+JSON",), SDK_0_3),
    Client("js 1.3 JSONRPC 1.0", "js_sdk.mjs", ("JSONRPC", "1.0"), JS),
    Client("js 1.3 HTTP+JSON 1.0", "js_sdk.mjs", ("HTTP+JSON", "1.0"), JS),
    Client("js 1.3 JSONRPC 0.3", "js_sdk.mjs", ("JSONRPC", "0.3"), JS),
    Client("js 1.3 HTTP+JSON 0.3", "js_sdk.mjs", ("HTTP+JSON", "0.3"), JS),
    Client("toolnexus 0.21", "toolnexus_client.py", (), TOOLNEXUS),
]
_known: dict[str, Results] = {}


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name, scope="session")
def ran(request: pytest.FixtureRequest, our_url: str) -> tuple[Client, Results]:
    """A client and its results; it runs once."""
    client: Client = request.param
    if client.name not in _known:
        _known[client.name] = client.run(our_url)
    return client, _known[client.name]


def _ended(one: dict[str, Any], state: str, text: str) -> None:
    assert (one["state"], one["text"]) == (state, text), one


def instant(one: dict[str, Any]) -> None:
    _ended(one, "completed", '{"sum":5}')
    assert one.get("data", {"sum": 5}) == {"sum": 5}


def text(one: dict[str, Any]) -> None:
    _ended(one, "completed", "HELLO")


def slow(one: dict[str, Any]) -> None:
    _ended(one, "completed", "slow and done")


def slow_streamed(one: dict[str, Any]) -> None:
    slow(one)
    if "kinds" in one:
        kinds = [kind.lower().replace("_", "").replace("-", "") for kind in one["kinds"]]
        assert kinds == ["task", "statusupdate", "statusupdate", "artifactupdate", "statusupdate"]


def failed(one: dict[str, Any]) -> None:
    assert one["state"] == "failed", one
    assert "the printer is on fire" in one.get("said", one["text"])


def rejected(one: dict[str, Any]) -> None:
    assert one["state"] == "rejected", one
    assert "not configured" in one["said"]


def input_required(one: dict[str, Any]) -> None:
    assert (one["asked"]["state"], one["asked"]["said"]) == ("input-required", "What is the dog called?")
    assert one["asked"].get("finals", [True])[-1] is True
    _ended(one, "completed", "dog=Rex")
    assert one["id"] == one["asked"]["id"]


def auth_required(one: dict[str, Any]) -> None:
    assert (one["asked"]["state"], one["asked"]["said"]) == ("auth-required", "Pay 5?")
    _ended(one, "completed", "paid")


def chunks(one: dict[str, Any]) -> None:
    _ended(one, "completed", "one two three")
    if "kinds" in one:
        assert sum("artifact" in kind.lower() for kind in one["kinds"]) == 3


def files(one: dict[str, Any]) -> None:
    _ended(one, "completed", "a table")
    assert one["files"] == [["table.csv", "text/csv", "a,b\n"]]


def cancel(one: dict[str, Any]) -> None:
    assert one["state"] == "canceled", one
    assert one.get("after", one)["state"] == "canceled"


def unknown(one: dict[str, Any]) -> None:
    assert "error" in one, one
    assert any(word in one["error"] for word in ("TaskNotFound", "-32001", "404", "MethodNotFound")), one


def listed(one: dict[str, Any]) -> None:
    assert one["count"] == 3


SCENARIOS: dict[str, Callable[[dict[str, Any]], None]] = {
    "instant": instant,
    "text": text,
    "not_streamed": text,
    "slow": slow_streamed,
    "polling": slow,
    "failed": failed,
    "rejected": rejected,
    "input_required": input_required,
    "auth_required": auth_required,
    "chunks": chunks,
    "files": files,
    "cancel": cancel,
    "subscribe": slow,
    "unknown": unknown,
    "listed": listed,
}


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_cell_works(ran: tuple[Client, Results], scenario: str) -> None:
    client, results = ran

    def check() -> None:
        assert scenario in results, "the client has no such scenario"
        assert "broke" not in results[scenario], results[scenario]["broke"]
        SCENARIOS[scenario](results[scenario])

    judge(("client", client.name, scenario), check)


def test_every_client_sees_the_same_skills(ran: tuple[Client, Results]) -> None:
    skills = ["shout", "add", "slow", "chunks", "files", "fails", "sleep", "name_it", "approve_it"]
    assert ran[1]["card"] == {"name": "anykit", "skills": skills}


def test_toolnexus_is_told_what_is_asked_at_once(our_url: str) -> None:
    results = _known.get("toolnexus 0.21") or Client("toolnexus 0.21", "toolnexus_client.py", (), TOOLNEXUS).run(
        our_url
    )
    for scenario, question in (("input_required", "What is the dog called?"), ("auth_required", "Pay 5?")):
        assert results[scenario]["is_error"] is True
        assert question in results[scenario]["text"]
        assert "timed out" not in results[scenario]["text"]


def test_no_entry_of_the_file_names_a_cell_that_is_not_there() -> None:
    cells = {("client", client.name, scenario) for client in CLIENTS for scenario in SCENARIOS}
    assert {cell for cell in CANNOT if cell[0] == "client"} <= cells


def test_a2a_lint_is_clean(open_url: str) -> None:
    folder = made(LINT).folder
    program = str(folder / "bin" / "a2a-lint")
    done = subprocess.run(
        [program, open_url, "--live", "--strict", "--json"], capture_output=True, text=True, timeout=60
    )
    report = json.loads(done.stdout)
    worse = [finding for finding in report["findings"] if finding["level"] != "info"]
    assert (done.returncode, worse) == (0, [])
    assert report["summary"]["grade"] == "A"
    assert report["streamEvents"] > 0
