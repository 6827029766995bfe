"""Where data lives."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from anykit.stores import data_dir, private_folder


def test_the_named_folder_comes_first_then_the_variable_then_the_platform(tmp_path: Path) -> None:
    env = {"ANYKIT_DATA_DIR": str(tmp_path / "env")}
    assert data_dir(tmp_path / "mine", env=env) == tmp_path / "mine"
    assert data_dir(str(tmp_path / "mine"), env=env) == tmp_path / "mine"
    assert data_dir(env=env) == tmp_path / "env"
    assert data_dir("", env=env) == tmp_path / "env"
    assert data_dir(env={}).name == "anykit"
    assert data_dir(env={"ANYKIT_DATA_DIR": ""}).is_absolute()
    assert not (tmp_path / "env").exists()


def test_a_folder_is_absolute_and_a_tilde_is_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_dir("here") == tmp_path / "here"
    assert data_dir("~/there") == tmp_path / "home" / "there"


def test_a_new_folder_is_private_and_an_old_one_keeps_its_mode(tmp_path: Path) -> None:
    assert stat.S_IMODE(private_folder(tmp_path / "a" / "b").stat().st_mode) == 0o700
    (tmp_path / "old").mkdir(mode=0o755)
    assert stat.S_IMODE(private_folder(tmp_path / "old").stat().st_mode) == 0o755
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        private_folder(tmp_path / "file")
