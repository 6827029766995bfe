"""Edits of a file in each of its forms: it reads as meant afterwards, and every other line stays."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anykit.cli.editing import edit_file
from anykit.cli.edits import Append, Drop, Edit, Put, Unfit, applied
from anykit.cli.errors import CommandError
from anykit.cli.flow_text import edited_json, without_comments
from anykit.cli.toml_text import edited_toml
from anykit.cli.yaml_text import edited_yaml

TOML = """\
# top
sources = [
    # the first
    "tools.py", # mine
    {target = "c.py", name = "c"}, # third
    # end
]
data_dir = "x" # here

# the toolkit
[toolkits.x] # trailing
enabled = true # yes

# agents
[agents.x]
card = "http://x"
# about y

[agents.y]
card = "http://y" # c
[agents.y.headers]
A = "["
# the end
"""
TABLES = """\
# head
[[sources]] # one
target = "tools.py" # t
# about two
[[sources]]
target = "c.py"
name = "c" # n
[sources.env]
A = '''
[not.a.heading]
'''

# agents
[agents]
x = {card = "http://x"} # xx
y.card = "http://y" # yy
# the end
"""
JSON = """\
{
  // top
  "sources": [
    // the first
    "tools.py", // mine
    {"target": "c.py", "name": "c"} /* third */
    // end
  ],
  "agents": {"x": {"card": "http://x"}, "y": {"card": "http://y"}}, // agents
  "data_dir": "x // no comment"
}
"""
YAML = """\
# top
sources:
  - tools.py   # mine
  # about c
  - target: c.py
    name: "c"   # n

# agents
agents:
  x: {card: http://x} # xx
  # about y
  y:
    card: |
      http://y
# the end
"""
FLOW = 'sources: [tools.py, {target: c.py, name: c}] # mine\nagents: {x: {card: "http://x"}, y: {card: "http://y"}}\n'

EDITS: list[Edit] = [
    Append(("sources",), "n.py"),
    Append(("sources",), {"url": "http://n", "headers": {"A b": "${N}"}}),
    Put(("agents", "z"), {"card": "http://z", "headers": {"A": "true"}}),
    Put(("agents", "x", "enabled"), False),
    Put(("agents", "y", "enabled"), False),
    Put(("toolkits", "w", "enabled"), False),
    Put(("sources", 1, "enabled"), False),
    Drop(("sources", 0)),
    Drop(("sources", 1)),
    Drop(("agents", "x")),
    Drop(("agents", "y")),
]
LOST: dict[int, set[str]] = {7: {"mine", "one", "t"}, 8: {"third", "n", "c", "about c"}, 9: {"xx"}, 10: {"yy", "c"}}
"""Comments that go with what is taken out: those on its own lines."""


def loaded(form: str, text: str) -> Any:
    if form == "toml":
        data = tomllib.loads(text)
        sources: Any = data.get("sources", [])
        return {**data, "sources": [{"target": one} if isinstance(one, str) else one for one in sources]}
    return json.loads(without_comments(text)) if form == "json" else yaml.safe_load(text) or {}


def meant(form: str, text: str, edit: Edit) -> Any:
    data = applied(loaded(form, text) if text else {}, [edit])
    sources: Any = data.get("sources", [])
    return (
        {**data, "sources": [{"target": one} if isinstance(one, str) else one for one in sources]}
        if form == "toml"
        else data
    )


WRITERS: dict[str, Callable[[str, Edit], str]] = {"toml": edited_toml, "json": edited_json, "yaml": edited_yaml}
COMMENTS = {"toml": "# ", "json": "// ", "yaml": "# "}


def comments(form: str, text: str) -> list[str]:
    mark = COMMENTS[form]
    return [line.partition(mark)[2].strip() for line in text.splitlines() if mark in line and "no comment" not in line]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("number", range(len(EDITS)))
@pytest.mark.parametrize(
    ("form", "text"), [("toml", TOML), ("toml", TABLES), ("json", JSON), ("yaml", YAML), ("yaml", FLOW)]
)
def test_an_edit_is_what_was_meant_and_leaves_the_rest_alone(form: str, text: str, number: int, newline: str) -> None:
    text, edit = text.replace("\n", newline), EDITS[number]
    after = WRITERS[form](text, edit)
    assert loaded(form, after) == meant(form, text, edit)
    kept = comments(form, after)
    assert [one for one in comments(form, text) if one not in kept and one not in LOST.get(number, set())] == []
    assert "\r\n" not in after if newline == "\n" else "\n" not in after.replace("\r\n", "")


@pytest.mark.parametrize("form", ["toml", "json", "yaml"])
@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_an_empty_file_is_begun(form: str, number: int) -> None:
    after = WRITERS[form]("", EDITS[number])
    assert loaded(form, after) == meant(form, "", EDITS[number])
    assert after.endswith("\n")


def test_a_string_source_becomes_a_table_where_it_stands() -> None:
    edit = Put(("sources", 0), {"target": "tools.py", "enabled": False})
    assert '    {target = "tools.py", enabled = false}, # mine\n' in edited_toml(TOML, edit)
    assert '    {"target": "tools.py", "enabled": false}, // mine\n' in edited_json(JSON, edit)
    assert '  - {target: "tools.py", enabled: false}   # mine\n' in edited_yaml(YAML, edit)


def test_what_is_not_there_is_not_edited() -> None:
    for writer, text in ((edited_toml, TOML), (edited_json, JSON), (edited_yaml, YAML)):
        with pytest.raises(Unfit):
            writer(text, Drop(("agents", "nobody")))
        with pytest.raises(Unfit):
            writer(text, Drop(("sources", 9)))


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab -#:[", min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5)
DATA = st.fixed_dictionaries(
    {
        "sources": st.lists(NAMES | st.fixed_dictionaries({"target": NAMES, "x": VALUES}), max_size=3),
        "agents": st.dictionaries(NAMES, st.fixed_dictionaries({"card": NAMES}), max_size=3),
    }
)


@settings(max_examples=120, deadline=None)
@given(data=DATA, indent=st.sampled_from([None, 1, 2, "\t"]), block=st.booleans(), draw=st.data())
def test_any_json_or_yaml_reads_as_meant_after_any_edit_or_is_refused(
    data: dict[str, Any], indent: int | str | None, block: bool, draw: st.DataObject
) -> None:
    edits: list[Edit] = [Append(("sources",), draw.draw(NAMES)), Put(("agents", draw.draw(NAMES)), {"card": "c"})]
    edits += [Drop(("sources", index)) for index in range(len(data["sources"]))]
    edits += [Put(("agents", id, "enabled"), False) for id in data["agents"]]
    edits += [Drop(("agents", id)) for id in data["agents"]]
    edit = draw.draw(st.sampled_from(edits))
    wanted = applied(data, [edit])
    assert json.loads(edited_json(json.dumps(data, indent=indent), edit)) == wanted
    text = yaml.safe_dump(data, default_flow_style=not block, sort_keys=False, allow_unicode=True)
    try:
        after = edited_yaml(text, edit)
    except Unfit:
        return
    assert yaml.safe_load(after) == wanted


# the file


def test_a_dry_run_changes_nothing_and_gives_the_diff(tmp_path: Path) -> None:
    file = tmp_path / "anykit.toml"
    file.write_text('sources = ["a.py"] # mine\n')
    change = edit_file(file, [Append(("sources",), "b.py")], dry=True)
    assert file.read_text() == 'sources = ["a.py"] # mine\n'
    assert change.diff().splitlines()[2:] == [
        "@@ -1 +1 @@",
        '-sources = ["a.py"] # mine',
        '+sources = ["a.py", "b.py"] # mine',
    ]


def test_what_somebody_else_wrote_meanwhile_is_not_lost(tmp_path: Path) -> None:
    file = tmp_path / "anykit.toml"
    file.write_text('sources = ["theirs.py"]\n')
    with pytest.raises(CommandError, match="changed by somebody else"):
        edit_file(file, [Drop(("sources", 0))], expected='sources = ["mine.py"]\n')
    assert file.read_text() == 'sources = ["theirs.py"]\n'


def test_a_byte_order_mark_stays(tmp_path: Path) -> None:
    file = tmp_path / "anykit.json"
    file.write_bytes(b'\xef\xbb\xbf{"sources": []}')
    edit_file(file, [Append(("sources",), "a.py")])
    assert file.read_bytes() == b'\xef\xbb\xbf{"sources": ["a.py"]}'


def test_an_edit_that_does_not_fit_the_schema_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "anykit.yaml"
    file.write_text("sources: []\n")
    with pytest.raises(CommandError, match="serve"):
        edit_file(file, [Put(("serve", "port"), "x")])
    assert file.read_text() == "sources: []\n"
    assert [one.name for one in tmp_path.iterdir()] == ["anykit.yaml"]
