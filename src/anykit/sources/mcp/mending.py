"""What servers get wrong in their answers, put right before the SDK reads them: it refuses a whole list for one bad tool.

Each answer is rebuilt from the fields that we know. What cannot be used is left out alone; what was left out or changed
is told under `LEFT_OUT` in the answer's `_meta`, a key that no peer can set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from anykit.capabilities import Json, JsonObject
from anykit.schema import SchemaError, compile_schema
from anykit.sources.hostile import HIDDEN, Malformed, check_name, clean_schema, clean_text, hidden_inside

LEFT_OUT: Final = "anykit/left-out"
"""Pairs of what it was and why."""
STRUCTURED: Final = "anykit/structured"
"""A structured value that is no object, which MCP before 2026-07-28 does not know but servers send."""
NAMES: Final = "anykit/names"
"""The tools of an answer: the SDK leaves out, without a word, those whose `x-mcp-header` it does not understand."""
MAX_REPORTS: Final = 100
MAX_WORDS: Final = 200

Report: TypeAlias = tuple[str, str]
_Item: TypeAlias = Callable[[JsonObject, "_Answer"], JsonObject | None]


@dataclass(slots=True)
class _Answer:
    """What is being rebuilt: for which era, and what was left out so far."""

    modern: bool
    left_out: list[Report]

    def report(self, name: object, reason: str) -> None:
        if len(self.left_out) < MAX_REPORTS:
            self.left_out.append((str(name)[:MAX_WORDS], reason[:MAX_WORDS]))


def mend(method: str, result: JsonObject, *, modern: bool) -> JsonObject:
    """The answer to `method` as the SDK will take it."""
    mender = _MENDERS.get(method)
    if mender is None or (modern and result.get("resultType") == "input_required"):
        return result
    answer = _Answer(modern, [])
    mended = mender(result, answer)
    meta = {key: value for key, value in _object(result.get("_meta")).items() if not str(key).startswith("anykit/")}
    meta |= mended.pop("_meta", {})
    if answer.left_out:
        meta[LEFT_OUT] = answer.left_out
    if meta:
        mended["_meta"] = meta
    if modern:
        mended["resultType"] = "complete"
    return mended


def reports_of(meta: Mapping[str, Any] | None) -> list[Report]:
    """What was left out of an answer with that `_meta`."""
    return [(str(name), str(reason)) for name, reason in (meta or {}).get(LEFT_OUT, ())]


# lists


def _list(key: str, item: _Item) -> Callable[[JsonObject, _Answer], JsonObject]:
    def mender(result: JsonObject, answer: _Answer) -> JsonObject:
        listed = result.get(key)
        if not isinstance(listed, list):
            answer.report(key, f"the answer has no list of {key}")
            listed = []
        items: list[JsonObject] = []
        for index, each in enumerate(cast("list[Any]", listed)):
            if not isinstance(each, dict):
                answer.report(f"#{index}", f"no object but {_kind(each)}")
                continue
            mended = item(cast(JsonObject, each), answer)
            if mended is not None:
                items.append(mended)
        mended_list: JsonObject = {key: items}
        if isinstance(cursor := result.get("nextCursor"), str) and cursor:
            mended_list["nextCursor"] = cursor
        if key == "tools":
            mended_list["_meta"] = {NAMES: [item["name"] for item in items]}
        return _cacheable(result, mended_list, answer)

    return mender


def _cacheable(result: JsonObject, mended: JsonObject, answer: _Answer) -> JsonObject:
    if answer.modern:
        ttl = result.get("ttlMs")
        mended["ttlMs"] = ttl if isinstance(ttl, int) and not isinstance(ttl, bool) and ttl >= 0 else 0
        mended["cacheScope"] = "public" if result.get("cacheScope") == "public" else "private"
    return mended


def _tool(tool: JsonObject, answer: _Answer) -> JsonObject | None:
    name = tool.get("name")
    if not isinstance(name, str) or not name:
        answer.report(tool.get("title") or "a tool", "it has no name")
        return None
    try:
        check_name(name)
        schema = _schema(tool.get("inputSchema", {}))
    except Malformed as error:
        answer.report(name, str(error))
        return None
    mended = _named(tool, name)
    if hidden := hidden_inside({key: tool.get(key) for key in ("title", "description", "inputSchema")}):
        answer.report(name, f"{HIDDEN} ({', '.join(hidden[:3])}), which are taken out of what is for readers")
    mended["inputSchema"] = schema
    if tool.get("outputSchema") is not None:
        try:
            mended["outputSchema"] = _schema(tool["outputSchema"], what="output", objects=not answer.modern)
        except Malformed as error:
            answer.report(name, f"{error}, and is ignored")
    hints = _object(tool.get("annotations"))
    known: JsonObject = {
        hint: hints[hint]
        for hint in ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
        if isinstance(hints.get(hint), bool)
    }
    if isinstance(hints.get("title"), str):
        known["title"] = hints["title"]
    if known:
        mended["annotations"] = known
    return mended


def _schema(given: Json, *, what: str = "input", objects: bool = True) -> JsonObject:
    """A schema, made harmless, and known to be one. Raises `Malformed`."""
    if not isinstance(given, dict):
        raise Malformed(f"its {what} schema is no object but {_kind(given)}")
    # Servers write null for what they do not say.
    schema = {key: value for key, value in cast(JsonObject, given).items() if value is not None}
    if objects:
        schema = {"type": "object", **schema} if "type" not in schema else schema
        if schema["type"] != "object":
            raise Malformed(f"its {what} schema describes no object but {str(schema['type'])[:40]!r}")
    schema = clean_schema(schema)
    try:
        compile_schema(schema)
    except SchemaError as error:
        raise Malformed(f"its {what} schema cannot be used: {clean_text(str(error), 300)}") from None
    return schema


def _resource(resource: JsonObject, answer: _Answer) -> JsonObject | None:
    uri = resource.get("uri")
    if not isinstance(uri, str) or not uri:
        answer.report(resource.get("name") or "a resource", "it has no URI")
        return None
    name = resource.get("name")
    mended = _named(resource, name if isinstance(name, str) and name else uri)
    mended["uri"] = uri
    _keep(resource, mended, "mimeType")
    size = resource.get("size")
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        mended["size"] = size
    return mended


def _template(template: JsonObject, answer: _Answer) -> JsonObject | None:
    uri = template.get("uriTemplate")
    if not isinstance(uri, str) or not uri:
        answer.report(template.get("name") or "a template", "it has no URI template")
        return None
    name = template.get("name")
    mended = _named(template, name if isinstance(name, str) and name else uri)
    mended["uriTemplate"] = uri
    _keep(template, mended, "mimeType")
    return mended


def _prompt(prompt: JsonObject, answer: _Answer) -> JsonObject | None:
    name = prompt.get("name")
    if not isinstance(name, str) or not name:
        answer.report(prompt.get("title") or "a prompt", "it has no name")
        return None
    mended = _named(prompt, name)
    arguments: list[JsonObject] = []
    listed = prompt.get("arguments")
    for each in cast("list[Any]", listed) if isinstance(listed, list) else ():
        argument = _object(each)
        if not isinstance(argument.get("name"), str) or not argument["name"]:
            answer.report(name, "one of its arguments has no name and is left out")
            continue
        arguments.append(_named(argument, argument["name"]) | {"required": argument.get("required") is True})
    mended["arguments"] = arguments
    return mended


def _named(given: JsonObject, name: str) -> JsonObject:
    """What everything that is listed has."""
    mended: JsonObject = {"name": name}
    _keep(given, mended, "title", "description")
    if meta := _object(given.get("_meta")):
        mended["_meta"] = meta
    return mended


# contents


def _call(result: JsonObject, answer: _Answer) -> JsonObject:
    mended: JsonObject = {"content": _parts(result.get("content"), answer), "isError": result.get("isError") is True}
    if "structuredContent" in result:
        structured = result["structuredContent"]
        if answer.modern or isinstance(structured, dict):
            mended["structuredContent"] = structured
        elif structured is not None:
            mended["_meta"] = {STRUCTURED: structured}
    return mended


def _read(result: JsonObject, answer: _Answer) -> JsonObject:
    contents: list[JsonObject] = []
    listed = result.get("contents")
    for index, each in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else ()):
        content = _contents(_object(each))
        if content is None:
            answer.report(f"#{index}", "contents without a URI, or without text or blob")
        else:
            contents.append(content)
    return _cacheable(result, {"contents": contents}, answer)


def _prompted(result: JsonObject, answer: _Answer) -> JsonObject:
    messages: list[JsonObject] = []
    listed = result.get("messages")
    for index, each in enumerate(cast("list[Any]", listed) if isinstance(listed, list) else ()):
        message = _object(each)
        given = message.get("content")
        # A message has one part; servers send several nevertheless.
        parts = _parts(given if isinstance(given, list | str) else [given], answer)
        role = message.get("role")
        if role not in ("user", "assistant"):
            answer.report(f"#{index}", f"a message of the unknown role {str(role)[:40]!r} is read as the user's")
            role = "user"
        messages += [{"role": role, "content": part} for part in parts]
    mended: JsonObject = {"messages": messages}
    _keep(result, mended, "description")
    return mended


def _completed(result: JsonObject, answer: _Answer) -> JsonObject:
    completion = _object(result.get("completion"))
    values = completion.get("values")
    texts = [value for value in cast("list[Any]", values) if isinstance(value, str)] if isinstance(values, list) else []
    mended: JsonObject = {"values": texts[:100], "hasMore": completion.get("hasMore") is True or len(texts) > 100}
    return {"completion": mended}


def _discovered(result: JsonObject, answer: _Answer) -> JsonObject:
    return _cacheable(result, {key: value for key, value in result.items() if key != "_meta"}, answer)


def _parts(content: Json, answer: _Answer) -> list[JsonObject]:
    if isinstance(content, str):
        answer.report("content", "text that should have been a list of parts")
        return [{"type": "text", "text": content}]
    parts: list[JsonObject] = []
    for index, each in enumerate(cast("list[Any]", content) if isinstance(content, list) else ()):
        part = _part(_object(each))
        if part is None:
            kind = _object(each).get("type", _kind(each))
            answer.report(f"#{index}", f"a part of the kind {str(kind)[:40]!r} that cannot be read")
            part = {"type": "text", "text": f"[a part of the kind {str(kind)[:40]!r} is left out: it cannot be read]"}
        parts.append(part)
    return parts


def _part(part: JsonObject) -> JsonObject | None:
    mended: JsonObject | None
    match part.get("type"):
        case "text":
            text = part.get("text")
            mended = {"type": "text", "text": text if isinstance(text, str) else json.dumps(text, ensure_ascii=False)}
        case "image" | "audio" as kind if isinstance(part.get("data"), str):
            media = part.get("mimeType")
            fallback = "image/png" if kind == "image" else "audio/wav"
            mended = {
                "type": kind,
                "data": part["data"],
                "mimeType": media if isinstance(media, str) and media else fallback,
            }
        case "resource_link" if isinstance(part.get("uri"), str):
            name = part.get("name")
            mended = {
                "type": "resource_link",
                "uri": part["uri"],
                "name": name if isinstance(name, str) else part["uri"],
            }
            _keep(part, mended, "title", "description", "mimeType")
            size = part.get("size")
            if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
                mended["size"] = size
        case "resource" if (contents := _contents(_object(part.get("resource")))) is not None:
            mended = {"type": "resource", "resource": contents}
        case _:
            return None
    if meta := _object(part.get("_meta")):
        mended["_meta"] = meta
    if hints := _hints(_object(part.get("annotations"))):
        mended["annotations"] = hints
    return mended


def _hints(given: JsonObject) -> JsonObject:
    hints: JsonObject = {}
    audience = given.get("audience")
    if isinstance(audience, list):
        hints["audience"] = [who for who in cast("list[Any]", audience) if who in ("user", "assistant")]
    priority = given.get("priority")
    if isinstance(priority, int | float) and not isinstance(priority, bool) and 0 <= priority <= 1:
        hints["priority"] = priority
    _keep(given, hints, "lastModified")
    return hints


def _contents(given: JsonObject) -> JsonObject | None:
    if not isinstance(given.get("uri"), str):
        return None
    mended: JsonObject = {"uri": given["uri"]}
    _keep(given, mended, "mimeType")
    if isinstance(given.get("text"), str):
        mended["text"] = given["text"]
    elif isinstance(given.get("blob"), str):
        mended["blob"] = given["blob"]
    else:
        return None
    if meta := _object(given.get("_meta")):
        mended["_meta"] = meta
    return mended


def _keep(given: JsonObject, mended: JsonObject, *texts: str) -> None:
    """Take over fields that are texts."""
    for key in texts:
        if isinstance(value := given.get(key), str):
            mended[key] = value


def _object(value: Json) -> JsonObject:
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def _kind(value: Json) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


_MENDERS: Mapping[str, Callable[[JsonObject, _Answer], JsonObject]] = {
    "tools/list": _list("tools", _tool),
    "resources/list": _list("resources", _resource),
    "resources/templates/list": _list("resourceTemplates", _template),
    "prompts/list": _list("prompts", _prompt),
    "tools/call": _call,
    "resources/read": _read,
    "prompts/get": _prompted,
    "completion/complete": _completed,
    "server/discover": _discovered,
}
