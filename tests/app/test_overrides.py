"""What the operator says about single tools: `[tools.NAME]`, allow, deny, tags, and views by token and face."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anykit import ToolError, Workbench, tool
from anykit.app import ConfigError
from anykit.app.config import parse_config
from anykit.app.serving import tokens_of
from anykit.capabilities import CapabilityContext, Invocable, InvocableRequest, InvocableResult, InvocableSpec, Progress
from anykit.runtime import Source
from anykit.schema import compile_schema
from anykit.sources import ArgumentChange, Rearranged, sound
from anykit.tools import lift

pytestmark = pytest.mark.anyio

SECRET = "s3cret-value"


@tool(tags=["mail"])
async def send(to: str, body: str, token: str, retries: int = 3) -> str:
    """Sends."""
    if body == "boom":
        raise ToolError(f"{token} was refused")
    return json.dumps([to, body, token, retries])


@tool
async def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
async def drop(name: str) -> str:
    """Drops."""
    return name


class Echo:
    """An invocable of any schema that gives its arguments back."""

    def __init__(self, name: str, schema: dict[str, Any]) -> None:
        self.spec = InvocableSpec(name=name, description="", input_schema=schema)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        context.emit(Progress(1.0, 1.0, "half"))
        return InvocableResult(structured=dict(request.input))


def bench(config: dict[str, Any], *more: Any) -> Workbench:
    return Workbench(send, add, drop, *more, config=config)


def reports(workbench: Workbench) -> dict[str, str]:
    return {one.name: one.reason for one in workbench.catalog.snapshot.reports}


async def test_a_tool_is_called_and_described_as_the_operator_wants() -> None:
    said = {
        "name": "post",
        "title": "Post",
        "description": "Posts.",
        "tags": ["out"],
        "annotations": {"destructive": True},
        "timeout": 5,
        "max_output": 10,
    }
    async with bench({"tools": {"send": said}}) as workbench:
        assert [one.name for one in workbench.tools()] == ["post", "add", "drop"]
        post = workbench.get("post")
        assert post is not None
        assert (post.title, post.description, post.tags) == ("Post", "Posts.", ("mail", "out"))
        assert (post.annotations.destructive, post.spec.timeout, post.spec.max_output) == (True, 5, 10)
        unknown = await workbench.call("send", {})
        assert unknown.code == "unknown_tool"
        assert len((await workbench.call("post", {"to": "x" * 50, "body": "b", "token": "t"})).output) < 100


async def test_arguments_are_hidden_fixed_filled_renamed_and_described(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAIL_TOKEN", SECRET)
    said = {
        "arguments": {
            "token": {"value": "Bearer ${MAIL_TOKEN}"},
            "to": {"name": "recipient", "description": "Whom."},
            "body": {"default": "hello"},
            "retries": {"hide": True},
        }
    }
    async with bench({"tools": {"send": said}}) as workbench:
        shown = workbench.get("send")
        assert shown is not None
        schema = shown.input_schema
        assert schema["properties"]["recipient"]["description"] == "Whom."
        assert list(schema["properties"]) == ["recipient", "body"]
        assert schema["required"] == ["recipient"]
        assert schema["properties"]["body"]["default"] == "hello"
        sent = await workbench.call("send", {"recipient": "ada"})
        assert json.loads(sent.output) == ["ada", "hello", f"Bearer {SECRET}", 3]
        for wrong in ({"to": "ada"}, {"recipient": "ada", "token": "mine"}, {"recipient": "ada", "retries": 1}):
            assert (await workbench.call("send", wrong)).code == "invalid_input"
        assert "/recipient" in (await workbench.call("send", {"recipient": 1})).output
        failed = await workbench.call("send", {"recipient": "ada", "body": "boom"})
        assert failed.is_error
        assert SECRET not in failed.output
        assert "was refused" in failed.output
        assert SECRET not in json.dumps(schema)
        assert SECRET not in repr(shown)


async def test_what_is_void_costs_only_itself_and_says_how_to_mend_it() -> None:
    said = {
        "send": {
            "name": "add",
            "description": "Still said.",
            "arguments": {
                "tokn": {"hide": True},
                "token": {"hide": True},
                "retries": {"value": "three"},
                "to": {"name": "body"},
                "body": {"default": "x"},
            },
        },
        "dropp": {"enabled": False},
        "add": {"name": "two words"},
    }
    async with bench({"tools": said}) as workbench:
        found = reports(workbench)
        assert "did you mean token?" in found["tools.send.arguments.tokn"]
        assert "required" in found["tools.send.arguments.token"]
        assert "does not fit" in found["tools.send.arguments.retries"]
        assert "'body'" in found["tools.send.arguments.to"]
        assert found["tools.dropp"] == "there is no such tool; did you mean drop?"
        assert "no name for a tool" in found["tools.add.name"]
        assert "'add' is that of" in found["send"]
        shown = workbench.get("send")
        assert shown is not None
        assert shown.description == "Still said."
        assert list(shown.input_schema["properties"]) == ["to", "body", "token", "retries"]
        assert shown.input_schema["required"] == ["to", "token"]
        assert (await workbench.call("add", {"a": 1, "b": 2})).output == "3"


async def test_a_tool_whose_secret_cannot_be_had_is_switched_off() -> None:
    async with bench({"tools": {"send": {"arguments": {"token": {"value": "${NOT_SET_ANYWHERE}"}}}}}) as workbench:
        assert workbench.get("send") is None
        refused = await workbench.call("send", {"to": "a", "body": "b"})
        assert refused.code == "disabled"
        assert "NOT_SET_ANYWHERE" in refused.output


async def test_names_of_two_sources_that_collide_are_given_by_the_operator() -> None:
    one = Source("one", "test", Plain("lookup"), prefixed=False)
    two = Source("two", "test", Plain("lookup"), prefixed=False)
    said = {"one_lookup": {"name": "lookup"}, "two/lookup": {"name": "other"}}
    async with bench({"tools": said}, one, two) as workbench:
        names = {entry.tool.name: entry for entry in workbench.catalog.snapshot.tools.values()}
        assert (names["lookup"].source, names["other"].source) == ("one", "two")
        assert names["lookup"].renamed == "chosen in the configuration"


async def test_two_tools_change_names_with_each_other() -> None:
    async with bench({"tools": {"add": {"name": "drop"}, "drop": {"name": "add"}}}) as workbench:
        assert (await workbench.call("add", {"name": "x"})).output == "x"
        assert (await workbench.call("drop", {"a": 1, "b": 2})).output == "3"


class Plain:
    """A provider of tools that give their name."""

    def __init__(self, *names: str) -> None:
        self._tools = [Echo(name, {"type": "object"}) for name in names]

    def invocables(self) -> list[Invocable]:
        return list(self._tools)

    def resources(self) -> list[Any]:
        return []

    def prompts(self) -> list[Any]:
        return []


# who is offered at all


async def test_deny_wins_over_allow_and_what_is_denied_is_nowhere() -> None:
    config = {"allow": ["add", "drop", "send"], "deny": ["dr*", "tag:mail"], "tools": {"drop": {"name": "remove"}}}
    async with bench(config) as workbench:
        assert [one.name for one in workbench.tools()] == ["add"]
        for name in ("drop", "send"):
            refused = await workbench.call(name, {"name": "x"})
            assert (refused.is_error, refused.code) == (True, "disabled")
        assert (await workbench.call("dropp", {})).output == "unknown tool 'dropp'"
        assert (await workbench.call("remove", {})).is_error


async def test_rules_that_match_nothing_are_reported() -> None:
    config = {
        "deny": ["drp*"],
        "views": {"v": {"include": ["ad*", "tag:mial", "source:nowhere"], "exclude": ["zzz"]}},
    }
    async with bench(config) as workbench:
        said = [(one.name, one.reason) for one in workbench.catalog.snapshot.reports]
        assert said == [
            ("deny", "'drp*' matches nothing"),
            ("views.v.include", "'tag:mial' matches nothing"),
            ("views.v.include", "'source:nowhere' matches nothing"),
            ("views.v.exclude", "'zzz' matches nothing"),
        ]


async def test_a_source_has_its_own_rules_and_tags(tmp_path: Path) -> None:
    file = tmp_path / "shop.py"
    file.write_text(
        "from anykit import tool\n\n\n@tool\ndef buy(item: str) -> str:\n    '''Buys.'''\n    return item\n\n\n"
        "@tool\ndef sell(item: str) -> str:\n    '''Sells.'''\n    return item\n"
    )
    table = {"target": str(file), "deny": ["sel*", "nothing"], "tags": ["trade"]}
    async with Workbench(config={"sources": [table]}) as workbench:
        assert [(one.name, one.tags) for one in workbench.tools()] == [("buy", ("trade",))]
        assert (await workbench.call("sell", {"item": "x"})).code == "disabled"
        assert reports(workbench) == {"deny": "'nothing' matches none of its tools"}


async def test_a_reload_that_would_be_void_is_refused_whole() -> None:
    async with bench({"tools": {"add": {"name": "plus"}}}) as workbench:
        assert workbench.get("plus") is not None
        with pytest.raises(ConfigError, match="did you mean token"):
            await workbench.reload({"tools": {"send": {"arguments": {"tokn": {"hide": True}}}}})
        assert workbench.get("plus") is not None
        await workbench.reload({"tools": {"drop": {"enabled": False}}})
        assert [one.name for one in workbench.tools()] == ["send", "add"]
        with pytest.raises(ConfigError, match="callers know"):
            await workbench.reload({"tools": {"send": {"name": "plus"}}})


# schemas


def rearranged(schema: dict[str, Any], **changes: ArgumentChange) -> Rearranged:
    before = copy.deepcopy(schema)
    inner = lift(Echo("echo", schema))
    good, bad = sound(inner, changes)
    assert bad == []
    made = Rearranged(inner, good)
    assert schema == before
    compile_schema(made.input_schema)
    return made


async def test_a_fixed_argument_picks_the_branch_that_is_left() -> None:
    branches = [
        {"properties": {"kind": {"const": "card"}, "number": {"type": "string"}}, "required": ["kind", "number"]},
        {"properties": {"kind": {"const": "cash"}, "coins": {"type": "integer"}}, "required": ["kind", "coins"]},
    ]
    made = rearranged({"type": "object", "oneOf": branches}, kind=ArgumentChange(fixed=True, value="cash"))
    assert "number" not in json.dumps(made.input_schema)
    assert (await made.execute({"coins": 3})).structured == {"kind": "cash", "coins": 3}
    assert (await made.execute({"number": "4"})).is_error


async def test_a_schema_that_refers_to_itself_still_means_itself_below() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"label": {"type": "string"}, "child": {"$ref": "#/$defs/node"}},
                "required": ["label"],
                "additionalProperties": False,
            }
        },
    }
    made = rearranged(schema, label=ArgumentChange(name="text"))
    given_tree = {"text": "a", "child": {"label": "b", "child": {"label": "c"}}}
    assert (await made.execute(given_tree)).structured == {"label": "a", "child": given_tree["child"]}
    assert (await made.execute({"text": "a", "child": {"text": "b"}})).is_error
    root = {
        "type": "object",
        "properties": {"label": {"type": "string"}, "child": {"$ref": "#"}},
        "required": ["label"],
    }
    made = rearranged(root, label=ArgumentChange(fixed=True, value="top"))
    assert (await made.execute({"child": {"label": "b"}})).structured == {"label": "top", "child": {"label": "b"}}
    assert (await made.execute({"child": {}})).is_error


async def test_dependencies_follow_their_arguments() -> None:
    schema = {
        "type": "object",
        "properties": {"card": {"type": "string"}, "holder": {"type": "string"}, "zip": {"type": "string"}},
        "dependentRequired": {"card": ["holder", "zip"]},
        "additionalProperties": False,
    }
    renamed = rearranged(schema, holder=ArgumentChange(name="owner"))
    assert (await renamed.execute({"card": "1", "zip": "2"})).is_error
    assert (await renamed.execute({"card": "1", "zip": "2", "owner": "x"})).structured == {
        "card": "1",
        "zip": "2",
        "holder": "x",
    }
    fixed = rearranged(schema, card=ArgumentChange(fixed=True, value="1"))
    assert set(fixed.input_schema["required"]) == {"holder", "zip"}
    filled = rearranged(schema, holder=ArgumentChange(filled=True, default="me"))
    assert (await filled.execute({"card": "1", "zip": "2"})).structured["holder"] == "me"


async def test_no_caller_reaches_a_hidden_argument_where_any_may_be_given() -> None:
    schema = {"type": "object", "properties": {"role": {"type": "string"}}}
    made = rearranged(schema, role=ArgumentChange(fixed=True, value="guest"))
    assert (await made.execute({"role": "admin"})).is_error
    assert (await made.execute({"more": 1})).structured == {"role": "guest", "more": 1}


async def test_a_toolkits_method_and_a_callers_listener_still_work() -> None:
    async with bench({"tools": {"echo": {"arguments": {"a": {"name": "b"}}}}}, Echo("echo", SIMPLE)) as workbench:
        heard: list[Any] = []
        result = await workbench.call("echo", {"b": 1}, context=CapabilityContext(emit=heard.append))
        assert result.structured == {"a": 1}
        assert [one.message for one in heard] == ["half"]


SIMPLE = {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": False}

VALUES = st.one_of(st.integers(-2, 2), st.sampled_from(["", "x"]), st.booleans())
PARTS = st.sampled_from([{"type": "integer"}, {"type": "string"}, {"enum": [1, "x"]}, {"$ref": "#/$defs/any"}, True])
NAMES = ("a", "b", "c")


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Any]:
    def one() -> dict[str, Any]:
        names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
        node: dict[str, Any] = {"properties": {name: draw(PARTS) for name in names}}
        if draw(st.booleans()):
            node["required"] = draw(st.lists(st.sampled_from(names), unique=True))
        if draw(st.booleans()):
            node["dependentRequired"] = {names[0]: [names[-1]]}
        return node

    root: dict[str, Any] = {"type": "object", **one(), "$defs": {"any": {}}}
    for keyword in ("anyOf", "oneOf", "allOf"):
        if draw(st.booleans()):
            root[keyword] = [one() for _ in range(draw(st.integers(1, 2)))]
    if draw(st.booleans()):
        root["not"] = one()
    return root


@given(
    schemas(),
    st.dictionaries(st.sampled_from(NAMES), VALUES),
    st.sampled_from(["hide", "fix", "fill", "rename"]),
    st.sampled_from(NAMES),
)
def test_whatever_the_tool_takes_its_new_schema_takes_too(
    schema: dict[str, Any], arguments: dict[str, Any], what: str, name: str
) -> None:
    change = {
        "hide": ArgumentChange(hide=True),
        "fix": ArgumentChange(fixed=True, value=arguments.get(name, 1)),
        "fill": ArgumentChange(filled=True, default=arguments.get(name, 1)),
        "rename": ArgumentChange(name="z"),
    }[what]
    inner = lift(Echo("echo", schema))
    good, _ = sound(inner, {name: change})
    if not good:
        return
    made = Rearranged(inner, good)
    outside = {("z" if key == name and what == "rename" else key): value for key, value in arguments.items()}
    if what in ("hide", "fix"):
        outside.pop(name, None)
    inside = {key: value for key, value in arguments.items() if not (key == name and what == "hide")}
    if what in ("fix", "fill"):
        inside.setdefault(name, change.value if what == "fix" else change.default)
    if compile_schema(schema).is_valid(inside):
        assert compile_schema(made.input_schema).is_valid(outside)

    async def run() -> None:
        result = await made.execute(outside)
        assert result.is_error != compile_schema(schema).is_valid(inside)
        if not result.is_error:
            assert result.structured == inside

    asyncio.run(run())


# views by token and face


VIEWS = {
    "views": {"mail": {"tags": ["mail"]}, "sums": {"include": ["add"]}},
    "serve": {
        "token": "operator-token",
        "faces": {"mcp": "sums"},
        "tokens": [
            {"name": "support", "token": "${SUPPORT_TOKEN}", "view": "mail"},
            {"name": "bot", "token": "bot-token"},
        ],
    },
}


async def test_a_tokens_view_goes_before_the_faces_and_a_served_one() -> None:
    async with bench(VIEWS) as workbench:

        def seen(principal: str, face: str) -> list[str]:
            return [one.name for one in workbench.session(principal=principal, face=face).tools()]

        assert seen("support", "mcp") == seen("support", "a2a") == ["send"]
        assert seen("local", "mcp") == seen("bot", "mcp") == ["add"]
        assert seen("local", "a2e") == seen("local", "python") == ["send", "add", "drop"]
        workbench.served = "mail"
        assert seen("local", "a2e") == seen("bot", "mcp") == ["send"]
        assert seen("local", "python") == ["send", "add", "drop"]
        assert [one.name for one in workbench.view("sums").tools()] == ["add"]
        with pytest.raises(ValueError, match="did you mean sums"):
            workbench.session(view="sum")


def test_each_token_stands_for_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUPPORT_TOKEN", "support-token")
    tokens = tokens_of(parse_config(VIEWS))
    shown = [tokens.principal(one) for one in (b"operator-token", b"support-token", b"bot-token", b"", b"x", None)]
    assert shown == ["local", "support", "bot", None, None, None]
    assert tokens_of(parse_config({})).principal(None) == "local"
    monkeypatch.setenv("SUPPORT_TOKEN", "bot-token")
    with pytest.raises(ConfigError, match="another's too"):
        tokens_of(parse_config(VIEWS))
    monkeypatch.delenv("SUPPORT_TOKEN")
    with pytest.raises(ConfigError, match="SUPPORT_TOKEN"):
        tokens_of(parse_config(VIEWS))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (
            {"serve": {"faces": {"mcp": "sum"}}, "views": {"sums": {}}},
            "serve.faces.mcp: there is no view 'sum'; did you",
        ),
        ({"serve": {"tokens": [{"name": "local", "token": "x"}]}}, "serve.tokens.0.name: local is another's"),
        ({"tools": {"x": {"arguments": {"a": {"hidden": True}}}}}, "unknown key; did you mean hide?"),
        ({"views": {"v": {"includes": []}}}, "unknown key; did you mean include"),
    ],
)
def test_a_file_that_means_nothing_says_where_and_how_to_mend_it(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(wrong)
    assert says in str(raised.value)
