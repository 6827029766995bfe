"""`login`: the URL is printed, the browser comes back or its address is pasted, and the token is there for every verb."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from cli.agents import in_a_thread
from cli.hosts import command
from cli.running import anykit, trusted
from sources.mcp.peers.script import Peer
from sources.mcp.test_oauth import Issuer, issuing
from sources.mcp.web import serving

WAIT = 8.0


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with in_a_thread(issuing()) as running:
        yield running


@pytest.fixture
def shop(folder: Path, issuer: Issuer) -> Path:
    """A file with the server in it."""
    (folder / "anykit.toml").write_text(
        f'data_dir = "data"\nsources = [{{ name = "shop", kind = "mcp", url = "{issuer.web.url}" }}, "tools.py"]\n'
    )
    return folder


@contextlib.contextmanager
def logging_in(folder: Path, *argv: str) -> Generator[tuple[subprocess.Popen[str], str]]:
    """`anykit login ARGV` in a process of its own, and the URL that it prints. It is killed where it takes too long."""
    trusted(folder)
    process = subprocess.Popen(
        command("login", *argv),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=dict(os.environ),
    )
    watchdog = threading.Timer(WAIT, process.kill)
    watchdog.start()
    try:
        assert process.stderr is not None
        said = ""
        while "http" not in said:
            said = process.stderr.readline()
            assert said, "it ended without a URL"
        yield process, said.strip()
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate(timeout=5)


def ended(process: subprocess.Popen[str], typed: str | None = None) -> tuple[int, str]:
    _, err = process.communicate(typed, timeout=WAIT)
    return process.returncode, err


def consent(issuer: Issuer, url: str, *, deny: bool = False) -> str:
    return asyncio.run(issuer.consent(url, deny=deny))


def test_the_browser_comes_back_and_every_verb_has_the_token(shop: Path, issuer: Issuer) -> None:
    assert "run: anykit login shop" in anykit("list", "tools").err
    assert anykit("show", "shop", "--json").json["server"]["needs"] == "login"
    with logging_in(shop, "shop") as (process, url):
        assert url.startswith(f"{issuer.base}/authorize?")
        with urllib.request.urlopen(consent(issuer, url), timeout=WAIT) as page:
            assert b"Logged in" in page.read()
        code, err = ended(process)
    assert (code, "logged in to shop" in err) == (0, True)
    assert "access-" not in err
    assert anykit("call", "shop_echo", "a=1").code == 0
    kept = b"".join(path.read_bytes() for path in (shop / "data").rglob("*") if path.is_file())
    assert b"access-" not in kept
    assert b"refresh-" not in kept


def test_without_a_browser_here_the_address_is_pasted(shop: Path, issuer: Issuer) -> None:
    with logging_in(shop, "shop", "--no-browser", "--json") as (process, url):
        assert process.stdin is not None
        process.stdin.write(f"\nnonsense\n{consent(issuer, url)}\n")
        process.stdin.flush()
        out, _ = process.communicate(timeout=WAIT)
    assert (process.returncode, out) == (0, '{"server": "shop", "logged_in": true}\n')
    assert anykit("call", "shop_echo").code == 0


def test_a_url_may_be_logged_in_to_and_the_token_is_the_same_servers(shop: Path, issuer: Issuer) -> None:
    with logging_in(shop, issuer.web.url) as (process, url):
        assert ended(process, f"{consent(issuer, url)}\n")[0] == 0
    assert anykit("call", "shop_echo").code == 0


def test_a_logout_forgets_the_token(shop: Path, issuer: Issuer) -> None:
    with logging_in(shop, "shop") as (process, url):
        assert ended(process, f"{consent(issuer, url)}\n")[0] == 0
    assert anykit("login", "shop", "--logout", "--json").json == {"server": "shop", "logged_in": False}
    assert anykit("show", "shop", "--json").json["server"]["needs"] == "login"
    assert "nobody was logged in" in anykit("login", "shop", "--logout").err


def test_a_refused_login_and_one_that_nobody_does_end_in_time(shop: Path, issuer: Issuer) -> None:
    with logging_in(shop, "shop") as (process, url):
        code, err = ended(process, f"{consent(issuer, url, deny=True)}\n")
    assert code == 3
    assert "access_denied" in err
    begun = time.monotonic()
    done = anykit("login", "shop", "--timeout", "0.5")
    assert time.monotonic() - begun < 5
    assert done.code == 4
    assert done.err.count("error[expired]") == 1
    assert anykit("show", "shop", "--json").json["server"]["needs"] == "login"


def test_what_has_no_login_says_so(folder: Path) -> None:
    with in_a_thread(serving(Peer())) as web:
        (folder / "anykit.toml").write_text(
            f'sources = ["tools.py", {{ name = "open", kind = "mcp", url = "{web.url}" }},'
            ' { name = "child", kind = "mcp", command = "x" }, "tickets.py"]\n'
        )
        done = anykit("login", "open")
        assert (done.code, "wants no login" in done.err) == (2, True)
        assert anykit("login", "child").code == 2
        assert "is no MCP server" in anykit("login", "tools").err
        unknown = anykit("login", "oben")
        assert (unknown.code, "did you mean:  open" in unknown.err) == (5, True)
        assert not (folder / "data").exists()
