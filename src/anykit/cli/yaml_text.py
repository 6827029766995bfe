"""YAML texts, edited where they stand: every other line, quote and comment stays as it is."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from .edits import Append, Drop, Edit, Put, Step, Unfit
from .flow_text import Item, Node, Style, descend, edited_flow, find

_PLAIN = re.compile(r"[A-Za-z_./][\w./ -]*(?<! )")
_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
"""Plain words that mean something else."""


def edited_yaml(text: str, edit: Edit) -> str:
    """A YAML text, edited. Raises `Unfit`, `ValueError`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    root = _read(text)
    if root is None or (root.kind == "scalar" and not text[root.start : root.end].strip()):
        if isinstance(edit, Drop):
            raise Unfit("it is empty")
        value: Any = [edit.value] if isinstance(edit, Append) else edit.value
        for step in reversed(edit.path):
            value = {step: value}
        return _with_break(text, newline) + newline.join(_block(value, "")) + newline
    style = Style("  ", newline, _scalar)
    if root.flow:
        return edited_flow(text, root, edit, style)
    match edit:
        case Put(path, value):
            node, left = descend(root, path)
            if not left:
                return _put(text, root, edit, style)
            for step in reversed(left[1:]):
                value = {step: value}
            place = path[: len(path) - len(left)]
            if node.kind == "scalar" and text[node.start : node.end].strip() in ("", "~", "null"):
                return _put(text, root, Put(place, {left[0]: value}), style)
            if node.flow:
                return edited_flow(text, root, Put((*place, left[0]), value), style)
            return _added(text, node, left[0], value, newline)
        case Append(path, value):
            node, left = descend(root, path)
            if left or (node.kind == "scalar" and text[node.start : node.end].strip() in ("", "~", "null")):
                return edited_yaml(text, Put(path, [value]))
            if node.flow:
                return edited_flow(text, root, edit, style)
            return _added(text, node, None, value, newline)
        case Drop(path):
            node, left = descend(root, path[:-1])
            found = None if left else find(node, path[-1])
            if found is None:
                raise Unfit(f"it has no `{path[-1]}`")
            if node.flow:
                return edited_flow(text, root, edit, style)
            if len(node.items) == 1 and len(path) > 1:
                nothing: Any = [] if node.kind == "list" else {}
                return _put(text, root, Put(path[:-1], nothing), style)
            return _dropped(text, node, found[0])


def _read(text: str) -> Node | None:
    import yaml  # noqa: PLC0415 - 30 ms, only for those who write YAML

    loader: Any = yaml.SafeLoader(text)
    try:
        node: Any = loader.get_single_node()
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None
    finally:
        loader.dispose()
    # Marks count from behind a byte order mark.
    return None if node is None else _tree(node, text)


def _tree(node: Any, text: str) -> Node:
    import yaml  # noqa: PLC0415 - as above

    start, end = node.start_mark.index, node.end_mark.index
    flow = bool(getattr(node, "flow_style", True)) or isinstance(node, yaml.ScalarNode)
    if isinstance(node, yaml.MappingNode):
        pairs = cast("list[tuple[Any, Any]]", node.value)
        items = [Item(str(key.value), key.start_mark.index, _tree(value, text)) for key, value in pairs]
        return Node("map", start, end if flow else _end(items, end), items, flow)
    if isinstance(node, yaml.SequenceNode):
        values = cast("list[Any]", node.value)
        items = [Item(None, value.start_mark.index, _tree(value, text)) for value in values]
        return Node("list", start, end if flow else _end(items, end), items, flow)
    return Node("scalar", start, start + len(text[start:end].rstrip()))


def _end(items: list[Item], otherwise: int) -> int:
    """Where the last word of a block stands; the parser's own end lies behind the comments that follow."""
    return items[-1].node.end if items else otherwise


def _put(text: str, root: Node, edit: Put, style: Style) -> str:
    """Another value in place of the one that is there."""
    node, _ = descend(root, edit.path)
    if node.flow:
        lead = " " if node.start == node.end and text[node.start - 1 : node.start] not in (" ", "\n") else ""
        return text[: node.start] + lead + style.one_line(edit.value) + text[node.end :]
    # A block begins on a line of its own, behind its key.
    start = len(text[: node.start].rstrip())
    if text[start - 1 : start] != ":":
        raise Unfit("of the way in which it is written")
    return f"{text[:start]} {style.one_line(edit.value)}{text[node.end :]}"


def _added(text: str, node: Node, key: Step | None, value: Any, newline: str) -> str:
    """A line, or several, behind the last of a block."""
    if node.kind != ("list" if key is None else "map"):
        raise Unfit("of the way in which it is written")
    first = node.items[0].start
    if key is None:
        dash = text.rfind("-", 0, first)
        indent = text[text.rfind("\n", 0, dash) + 1 : dash]
        if indent.strip():
            raise Unfit("of the way in which it is written")
        lines = _block([value], indent)
    else:
        indent = " " * (first - (text.rfind("\n", 0, first) + 1))
        lines = _block({key: value}, indent)
    place = _line_end(text, node.end)
    head = _with_break(text[:place], newline)
    return head + newline.join(lines) + newline + text[place:]


def _dropped(text: str, node: Node, index: int) -> str:
    """Without the lines of an item; comments above it stay."""
    item = node.items[index]
    start = text.rfind("\n", 0, item.start) + 1
    lead = text[start : item.start]
    if lead.strip() not in ("", "-") or (node.kind == "map" and lead.strip()):
        raise Unfit("of the way in which it is written")
    end = _line_end(text, item.node.end)
    return text[:start] + text[end:]


def _line_end(text: str, place: int) -> int:
    """Behind the break of the line."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def _with_break(text: str, newline: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}{newline}"


def _block(value: Any, indent: str) -> list[str]:
    """A value in block style."""
    if isinstance(value, dict) and value:
        lines: list[str] = []
        for name, item in cast("dict[str, Any]", value).items():
            if isinstance(item, dict | list) and item:
                lines += [f"{indent}{_scalar(name)}:", *_block(item, f"{indent}  ")]
            else:
                lines.append(f"{indent}{_scalar(name)}: {_scalar(item)}")
        return lines
    if isinstance(value, list) and value:
        lines = []
        for item in cast("list[Any]", value):
            inner = _block(item, f"{indent}  ") if isinstance(item, dict | list) and item else [_scalar(item)]
            lines += [f"{indent}- {inner[0].lstrip()}", *inner[1:]]
        return lines
    return [f"{indent}{_scalar(value)}"]


def _scalar(value: Any) -> str:
    """A key or a value in its shortest form that means the same in every YAML."""
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS and not value.startswith("."):
        return value
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
