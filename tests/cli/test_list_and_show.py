"""`list` and `show`."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.running import anykit

TOOL_KEYS = ["name", "original", "source", "toolkit", "available", "reason", "input_schema", "annotations"]
SOURCE_KEYS = ["name", "kind", "state", "reason", "since", "retry_at"]


def test_tools_as_json_are_an_array_of_what_a_script_needs(folder: Path) -> None:
    done = anykit("list", "tools", "tools.py", "--json")
    assert (done.code, done.err) == (0, "")
    assert [list(tool) for tool in done.json] == [TOOL_KEYS] * len(done.json)
    add = done.json[0]
    assert add["name"] == add["original"] == "add"
    assert (add["source"], add["toolkit"], add["available"], add["reason"]) == ("tools", None, True, None)
    assert add["annotations"]["read_only"] is True
    assert add["input_schema"]["required"] == ["a"]


def test_tools_of_a_toolkit_that_is_not_configured_are_listed_as_not_available(folder: Path) -> None:
    tools = {tool["name"]: tool for tool in anykit("list", "tools", "tickets.py", "--json").json}
    assert set(tools) == {"whoami", "close_ticket", "ping"}
    for name, toolkit in (("whoami", "tickets"), ("close_ticket", "tickets"), ("ping", "plain")):
        assert tools[name]["available"] is False
        assert f"toolkit {toolkit} is not configured" in tools[name]["reason"]
        assert tools[name]["toolkit"] == toolkit
    assert tools["close_ticket"]["input_schema"]["properties"]["id"]["type"] == "integer"


def test_sources_as_json_are_all_of_them_also_disabled_and_failed_ones(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tools.py", "nowhere.py", {target = "tickets.py", enabled = false}]\n'
    )
    done = anykit("list", "sources", "--json")
    assert done.code == 0
    assert [list(source) for source in done.json] == [SOURCE_KEYS] * 3
    assert [(source["name"], source["state"]) for source in done.json] == [
        ("tools", "ready"),
        ("nowhere", "failed"),
        ("tickets", "disabled"),
    ]
    assert done.json[0]["reason"] is None
    assert "does not exist" in done.json[1]["reason"]


def test_b020_a_source_that_is_down_costs_only_itself(folder: Path) -> None:
    """google/adk-python#5025: one unavailable server took everything down."""
    done = anykit("list", "tools", "nowhere.py", "http://127.0.0.1:9", "tools.py", "--json")
    assert done.code == 0
    assert "add" in [tool["name"] for tool in done.json]
    assert "warning: source nowhere is not available" in done.err
    assert "warning: source _127_0_0_1_9 is not available" in done.err


def test_where_no_source_is_available_the_exit_code_says_so(folder: Path) -> None:
    assert anykit("list", "nowhere.py").code == 2
    assert anykit("list", "http://127.0.0.1:9").code == 4
    assert anykit("list", "sources", "nowhere.py").code == 0


def test_a_source_that_never_answers_is_waited_for_no_longer_than_asked(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tools.py", {name = "hung", command = ["sleep", "60"]}]\n[limits]\nconnect = 30\n'
    )
    done = anykit("list", "tools", "--timeout", "0.2")
    assert done.code == 0
    assert "add" in done.out
    assert "warning: source hung is not available" in done.err
    quick = anykit("call", "add", "a=1")  # does not wait for a source that it does not need
    assert (quick.code, quick.out) == (0, "11\n")


def test_without_a_noun_all_of_it_is_listed(folder: Path) -> None:
    done = anykit("list", "tools.py", "tickets.py")
    assert done.code == 0
    kinds = [row[0] for row in done.rows]
    assert sorted(set(kinds)) == ["prompt", "resource", "source", "tool", "toolkit"]
    assert ["toolkit", "tickets", "no", "tickets", "2", "The ticket system."] in done.rows
    assert ["tool", "whoami", "no", "tickets", "tickets", "Whose key this is."] in done.rows
    assert ["prompt", "greet", "name, [word]", "Greets."] in done.rows


def test_without_a_noun_json_is_one_array_with_the_kind_of_each(folder: Path) -> None:
    found = anykit("list", "tools.py", "tickets.py", "--json").json
    assert {item["type"] for item in found} == {"toolkit", "tool", "resource", "prompt", "source"}
    toolkit = next(item for item in found if item["type"] == "toolkit" and item["name"] == "tickets")
    assert toolkit["schema"]["required"] == ["url", "api_key"]
    assert toolkit["tools"] == ["whoami", "close_ticket"]
    assert (toolkit["configured"], toolkit["alias"], toolkit["category"]) == (False, "tk", "work")


def test_on_a_terminal_each_kind_stands_under_its_heading(folder: Path) -> None:
    done = anykit("list", "tools.py", "tickets.py", stdout_terminal=True, env={"NO_COLOR": "1"})
    lines = [line.rstrip() for line in done.out.splitlines()]
    headings = [line for line in lines if line in ("Toolkits", "Tools", "Resources", "Prompts", "Sources")]
    assert headings == ["Toolkits", "Tools", "Resources", "Prompts", "Sources"]
    assert "\x1b" not in done.out


def test_resources_and_prompts_are_listed(folder: Path) -> None:
    resources = anykit("list", "resources", "tools.py", "--json").json
    assert [(item["uri"], item["template"]) for item in resources] == [
        ("notes://today", False),
        ("notes://{day}", True),
    ]
    [prompt] = anykit("list", "prompts", "tools.py", "--json").json
    assert prompt["name"] == "greet"
    assert [(item["name"], item["required"]) for item in prompt["arguments"]] == [("name", True), ("word", False)]


def test_a_noun_wins_over_a_source_of_that_name(folder: Path) -> None:
    (folder / "prompts.py").write_text("from anykit import prompt\n@prompt\ndef only(): 'x'\n")
    assert anykit("list", "prompts", "--json").json == []
    assert anykit("list", "prompts", "prompts").rows[0][0] == "only"
    assert anykit("list", "./prompts.py").rows[0][:2] == ["prompt", "only"]


def test_with_nothing_named_the_built_in_toolkits_are_listed(folder: Path) -> None:
    names = {item["name"] for item in anykit("list", "toolkits", "--json").json}
    assert {"filesystem", "database"} <= names


def test_nothing_of_a_kind_is_said_and_an_empty_array(folder: Path) -> None:
    done = anykit("list", "prompts", "tickets.py")
    assert (done.code, done.out, done.err) == (0, "", "there are no prompts\n")
    assert anykit("list", "prompts", "tickets.py", "--json").json == []


def test_sources_on_the_line_replace_those_of_the_file(folder: Path) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n')
    assert [source["name"] for source in anykit("list", "sources", "--json").json] == ["tools"]
    replaced = anykit("list", "sources", "-s", "tickets.py", "--json").json
    assert [source["name"] for source in replaced] == ["tickets"]


def test_what_the_file_says_of_toolkits_that_are_not_there_is_told_unless_the_line_replaced_its_sources(
    folder: Path,
) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n[toolkits.ticket.config]\nurl = "http://t"\n')
    assert "warning: toolkit ticket is not configured as it was told to be" in anykit("list").err
    assert anykit("list", "tickets.py").err == ""


def test_the_nearest_file_above_counts_and_paths_on_the_line_mean_here(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "anykit.toml").write_text('sources = ["tools.py"]\n')
    below = folder / "below"
    below.mkdir()
    (below / "mine.py").write_text("from anykit import tool\n@tool\ndef mine(): 'x'\n")
    monkeypatch.chdir(below)
    assert "add" in anykit("list", "tools").out
    assert [row[0] for row in anykit("list", "tools", "mine.py").rows] == ["mine"]
    assert [row[0] for row in anykit("list", "tools", "mine.py:mine").rows] == ["mine"]


def test_a_module_beside_the_file_may_be_named(folder: Path) -> None:
    (folder / "beside_the_file.py").write_text("from anykit import tool\n@tool\ndef near(): 'x'\n")
    assert [row[0] for row in anykit("list", "tools", "beside_the_file").rows] == ["near"]


def test_a_bad_file_is_a_usage_error_with_its_field(folder: Path) -> None:
    (folder / "anykit.toml").write_text("sorces = []\n")
    done = anykit("list")
    assert done.code == 2
    assert "error[bad_config]: " in done.err
    assert "sorces: unknown key; did you mean sources?" in done.err
    (folder / "anykit.toml").write_text("sources = [\n")
    assert anykit("list").code == 2
    assert anykit("list", "--config", "nowhere.toml").code == 2


def test_an_environment_is_chosen_by_flag_or_variable(folder: Path) -> None:
    (folder / "anykit.toml").write_text(
        'sources = ["tickets.py"]\n[env.staging.toolkits.tickets.config]\nurl = "http://s"\napi_key = "k"\n'
    )

    def configured(*argv: str, env: dict[str, str] | None = None) -> bool:
        found = anykit("list", "toolkits", "--json", *argv, env=env).json
        return next(item["configured"] for item in found if item["name"] == "tickets")

    assert not configured()
    assert configured("--env", "staging")
    assert configured(env={"ANYKIT_ENV": "staging"})
    done = anykit("list", "--env", "stagin")
    assert (done.code, "did you mean staging?" in done.err) == (2, True)


def test_a_toolkit_is_shown_with_its_schema_its_tools_and_how_to_configure_it(folder: Path) -> None:
    done = anykit("show", "tickets", "-s", "tickets.py")
    assert done.code == 0
    assert ["configured", "no"] in done.rows
    assert ["url", "string", "yes", "", "Where it is"] in done.rows
    assert ["api_key", "string, secret", "yes", "", "A key of yours"] in done.rows
    assert ["limit", "integer", "no", "5", ""] in done.rows
    assert ["limits.rows", "integer", "no", "10", "How many at once"] in done.rows
    assert ["close_ticket", "Closes a ticket."] in done.rows
    assert done.out.endswith("configure it:  anykit configure tickets url=... --secret api_key\n")
    assert "there is also a source tickets: anykit show tickets --kind source" in done.err


def test_a_tool_is_shown_with_its_arguments_and_how_to_call_it(folder: Path) -> None:
    done = anykit("show", "add", "-s", "tools.py")
    assert ["a", "integer", "yes", "", ""] in done.rows
    assert ["b", "integer", "no", "10", "The other one"] in done.rows
    assert ["hints", "read only"] in done.rows
    assert "The second one may be left out." in done.out
    assert done.out.endswith("call it:  anykit call add a:=1\n")


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        (("add",), "tool"),
        (("greet",), "prompt"),
        (("notes://today",), "resource"),
        (("tools",), "source"),
        (("tools", "--kind", "source"), "source"),
    ],
)
def test_anything_is_shown_as_json_with_its_kind(folder: Path, argv: tuple[str, ...], kind: str) -> None:
    done = anykit("show", *argv, "-s", "tools.py", "--json")
    assert done.code == 0
    assert done.json["type"] == kind
    assert anykit("show", *argv, "-s", "tools.py").code == 0


def test_what_there_is_not_is_answered_with_the_nearest(folder: Path) -> None:
    done = anykit("show", "adn", "-s", "tools.py")
    assert done.code == 5
    assert "error[not_found]: " in done.err
    assert "  did you mean:  add\n" in done.err
    assert anykit("show", "add", "--kind", "toolkit", "-s", "tools.py").code == 5
