"""The configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anykit.app import ConfigError, config_file_schema, find_config, parse_config, read_config
from anykit.schema import compile_schema

TOML = """
sources = ["./tools.py", {url = "http://127.0.0.1:9", name = "far", token = "${TOKEN}"}]
data_dir = "./data"

[toolkits.filesystem.config]
root_dir = "."

[bounds]
roots = ["."]

[[a2e.plugins]]
name = "notes"
type = "toolkits"
cls = "plugins.Notes"
metadata = {priority = 3, extra = "kept"}

[env.prod.toolkits.filesystem.config]
root_dir = "/srv"
"""


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_toml_json_and_yaml_say_the_same(tmp_path: Path) -> None:
    toml = read_config(write(tmp_path, "anykit.toml", TOML))
    data = toml.model_dump(mode="json", exclude_unset=True, exclude={"path"})
    data["sources"][1]["token"] = "${TOKEN}"
    as_json = read_config(write(tmp_path, "anykit.json", json.dumps(data)))
    as_yaml = read_config(write(tmp_path, "anykit.yaml", json.dumps(data)))
    for other in (as_json, as_yaml):
        assert other.model_copy(update={"path": None}) == toml.model_copy(update={"path": None})
    assert toml.folder == tmp_path
    assert toml.a2e.plugins[0].metadata.model_extra == {"extra": "kept"}


def test_an_environment_is_laid_over_key_by_key(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, "anykit.toml", TOML))
    assert config.for_environment(None).toolkits["filesystem"].config == {"root_dir": "."}
    assert config.for_environment("prod").toolkits["filesystem"].config == {"root_dir": "/srv"}
    with pytest.raises(ConfigError, match=r"no \[env.prd\]; did you mean prod"):
        config.for_environment("prd")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[serv]\nport = 1", "serv: unknown key; did you mean serve?"),
        ("[serve]\nprot = 1", "serve.prot: unknown key; did you mean port?"),
        ("[serve]\nport = 'x'", "serve.port: "),
        ("[toolkits.fs]\nconfg = {}", "toolkits.fs.confg: unknown key; did you mean config?"),
        ("sources = [{kindd = 'a2e'}]", "kindd: unknown key; did you mean kind?"),
        ("sources = 3", "sources: "),
        ("a = [", "anykit.toml: "),
        ("path = 'x'", "unknown key 'path'"),
    ],
)
def test_what_does_not_fit_names_the_file_the_field_and_the_fix(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(write(tmp_path, "anykit.toml", text))
    assert said in str(refused.value)
    assert "anykit.toml" in str(refused.value)


def test_a_secret_is_neither_in_an_error_nor_in_a_repr(tmp_path: Path) -> None:
    config = read_config(write(tmp_path, "anykit.toml", "[serve]\ntoken = 'hush-hush'"))
    assert "hush-hush" not in repr(config)
    with pytest.raises(ConfigError) as refused:
        read_config(write(tmp_path, "anykit.toml", "[serve]\ntoken = ['hush-hush']"))
    assert "hush-hush" not in str(refused.value)


def test_the_nearest_file_upwards_is_found(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    assert find_config(tmp_path / "a" / "b") in (None, find_config(tmp_path))
    write(tmp_path, "anykit.yaml", "{}")
    assert find_config(tmp_path / "a" / "b") == tmp_path / "anykit.yaml"
    write(tmp_path / "a", "anykit.toml", "")
    assert find_config(tmp_path / "a" / "b") == tmp_path / "a" / "anykit.toml"


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config(tmp_path / "none.toml")


def test_the_published_schema_accepts_what_is_read_and_refuses_what_is_not() -> None:
    validator = compile_schema(config_file_schema())
    good = {"sources": ["./x.py", {"url": "http://h"}], "toolkits": {"fs": {"config": {"a": 1}}}, "serve": {"port": 0}}
    assert validator.faults(good) == []
    assert parse_config(good).serve.port == 0
    assert validator.faults({"serve": {"prot": 1}})
    assert validator.faults({"path": "x"})
