"""References: read once, where they stand, and told by field and name where they lead nowhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from anykit.stores import UnresolvedReference, has_reference, resolve, resolve_all

ENV = {"TOK": "s3$1\\2", "EMPTY": "", "NEST": "${TOK}", "FILE": "file:/etc/passwd"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${TOK}", "s3$1\\2"),
        ("Bearer ${TOK}!", "Bearer s3$1\\2!"),
        ("${TOK}${TOK}", "s3$1\\2s3$1\\2"),
        ("http://h/${P:-x}", "http://h/x"),
        ("${P:-}", ""),
        ("${P:-a b:c/$d}", "a b:c/$d"),
        ("${TOK:-x}", "s3$1\\2"),
        ("${EMPTY}", ""),
        ("${EMPTY:-x}", "x"),
        ("$${TOK}", "${TOK}"),
        ("$$${TOK}", "$${TOK}"),
        ("$HOME $ $$ {TOK} %TOK%", "$HOME $ $$ {TOK} %TOK%"),
        ("${NEST}", "${TOK}"),
        ("${FILE}", "file:/etc/passwd"),
        ("${P:-file:x}", "file:x"),
        ("see file:x", "see file:x"),
        ("file:///etc/passwd", "file:///etc/passwd"),
        ("file://host/x", "file://host/x"),
        ("", ""),
        ("${env:TOK}", "s3$1\\2"),
        ("Bearer {env:TOK}", "Bearer s3$1\\2"),
        ("${env:P:-x}{env:P:-y}", "xy"),
        ("$${env:TOK}", "${env:TOK}"),
        ("{env} {env:} {file:} {other:TOK}", "{env} {env:} {file:} {other:TOK}"),
    ],
)
def test_a_text_is_read_once(text: str, expected: str) -> None:
    assert resolve(text, ENV) == expected


@pytest.mark.parametrize("text", ["${", "${}", "${1A}", "${TOK", "${A-b}", "${TOK:-${X}}", "x ${ y }", "${a.b}"])
def test_what_looks_like_a_reference_and_is_none_is_an_error(text: str) -> None:
    with pytest.raises(UnresolvedReference, match=r"\$\$\{") as refused:
        resolve(text, ENV, where="/headers/X")
    assert refused.value.errors[0]["path"] == "/headers/X"
    assert "s3$1" not in str(refused.value)


def test_an_unset_variable_is_named_with_its_field() -> None:
    with pytest.raises(UnresolvedReference, match="/url: the environment variable MISSING is not set"):
        resolve("${TOK} ${MISSING}", ENV, where="/url")


def test_b056_placeholders_are_expanded_once_everywhere_or_named() -> None:
    """mastra-ai/mastra#18240: placeholders are sent literally, work in some fields only, or an unset one is empty."""
    source: dict[str, Any] = {
        "url": "http://h/${P:-x}",
        "headers": {"Authorization": "Bearer ${TOK}", "X": "$HOME"},
        "args": ["--k=${TOK}"],
        "note": "$${TOK}",
        "timeout": 3,
    }
    kept = {**source, "headers": dict(source["headers"]), "args": list(source["args"])}
    assert resolve_all(source, {"TOK": "s3$1\\2"}) == {
        "url": "http://h/x",
        "headers": {"Authorization": "Bearer s3$1\\2", "X": "$HOME"},
        "args": ["--k=s3$1\\2"],
        "note": "${TOK}",
        "timeout": 3,
    }
    assert source == kept  # the configuration still holds the placeholders

    source["headers"]["X"] = "$HOME ${MISSING}"
    source["args"].append("${ALSO}")
    with pytest.raises(UnresolvedReference) as refused:
        resolve_all(source, {"TOK": "s3$1\\2"}, where="/sources/a")
    faults = {fault["path"]: fault["message"] for fault in refused.value.errors}
    assert set(faults) == {"/sources/a/headers/X", "/sources/a/args/1"}
    assert "MISSING" in faults["/sources/a/headers/X"]
    assert "s3$1" not in str(refused.value)


def test_a_field_is_named_by_a_json_pointer() -> None:
    with pytest.raises(UnresolvedReference) as refused:
        resolve_all({"a/b~c": ["${NO}"]}, {})
    assert refused.value.errors[0]["path"] == "/a~1b~0c/0"


def test_a_value_that_nests_without_end_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(UnresolvedReference, match="nested"):
        resolve_all(value, {})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"k1\n", "k1"),
        (b"k1\r\n", "k1"),
        (b"k1\n\n", "k1\n"),
        (b" k1 ", " k1 "),
        (b"", ""),
        (b"${TOK}\n", "${TOK}"),
        (b"file:other", "file:other"),
    ],
)
def test_a_file_gives_its_text_as_it_is(tmp_path: Path, data: bytes, expected: str) -> None:
    (tmp_path / "key").write_bytes(data)
    assert resolve("file:key", ENV, tmp_path) == expected
    assert resolve(f"file:{tmp_path}/key", ENV, "/") == expected
    assert resolve("file:${NAME}", {"NAME": "key"}, tmp_path) == expected


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge").write_bytes(b"x" * 65537)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, reason in {
        "missing": "No such file", "binary": "not UTF-8", "huge": "larger than", "folder": "directory", "a\0b": "not a file",
        "": "names no file",
    }.items():  # fmt: skip
        with pytest.raises(UnresolvedReference, match=reason):
            resolve(f"file:{name}", ENV, tmp_path, where="/x")
    assert resolve("file:pipe", ENV, tmp_path) == ""  # nobody writes; it does not hang


def test_a_keyring_entry_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.py").write_text(
        "def get_password(service, name):\n"
        "    if service == 'locked': raise OSError('the value hunter2 is locked')\n"
        "    return {'svc/a/b': 'k1'}.get(f'{service}/{name}')\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    assert resolve("keyring:svc/a/b", ENV) == "k1"
    with pytest.raises(UnresolvedReference, match="no entry 'c' of the service 'svc'"):
        resolve("keyring:svc/c", ENV)
    with pytest.raises(UnresolvedReference, match="does not answer") as refused:
        resolve("keyring:locked/c", ENV)
    assert "hunter2" not in str(refused.value)
    for text in ("keyring:", "keyring:svc", "keyring:svc/", "keyring:/a"):
        with pytest.raises(UnresolvedReference, match="SERVICE/NAME"):
            resolve(text, ENV)
    monkeypatch.delitem(sys.modules, "keyring")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("${A}", True), ("x${A:-b}", True), ("file:x", True), ("keyring:a/b", True), ("$${A}", False), ("file://x", False),
     ("$A", False), ("", False)],
)  # fmt: skip
def test_a_reference_can_be_told_from_a_value(text: str, expected: bool) -> None:
    assert has_reference(text) is expected


def test_a_file_may_stand_inside_a_text(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("k${TOK}\r\n")
    assert resolve("Bearer {file:key}/${file:key}", ENV, tmp_path) == "Bearer k${TOK}/k${TOK}"
    assert has_reference("a {file:key}")
    assert has_reference("{env:TOK}")
    with pytest.raises(UnresolvedReference, match="/url: the file 'gone' cannot be read"):
        resolve("{file:gone}", ENV, tmp_path, where="/url")
