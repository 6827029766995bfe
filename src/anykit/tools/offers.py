"""Resources and prompts from functions and methods, as `@tool` makes tools."""

from __future__ import annotations

import functools
import json
import re
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any, Generic, ParamSpec, TypeVar, cast, overload

from anykit.capabilities import (
    BlobPart,
    CapabilityContext,
    ContentPart,
    InvalidInput,
    JsonObject,
    PromptArgument,
    PromptContents,
    PromptDescriptor,
    PromptMessage,
    ResourceContents,
    ResourceDescriptor,
    ResourceId,
    ResourceTemplate,
    TextPart,
)
from anykit.schema import FunctionSchema, compile_schema, describe

from .results import PARTS, jsonable, to_json
from .threads import SHARED
from .tool import Occupied, is_method

P = ParamSpec("P")
R = TypeVar("R")


class Offered(Generic[P, R]):
    """A function that stays callable and says what it offers."""

    def __init__(self, function: Callable[P, R], signature: FunctionSchema, *, method: bool) -> None:
        self.function = function
        self.signature = signature
        self.method = method
        self._validator = compile_schema(signature.input_schema)
        functools.update_wrapper(cast(Any, self), function, updated=())

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if instance is None or not self.method:
            return self
        return functools.partial(cast(Any, self.function), instance)

    def typed(self, name: str, value: Any) -> Any:
        """A URI and a prompt's argument carry text: a parameter that takes none takes the JSON in it.

        As the schema allows it only: where text fits, or the JSON does not, the text stays.
        """
        schema = self.signature.input_schema
        parameter = schema["properties"].get(name)
        if parameter is None or not isinstance(value, str):
            return value
        wanted = compile_schema({**parameter, "$defs": schema.get("$defs", {})})
        if wanted.is_valid(value):
            return value
        try:
            read = json.loads(value)
        except (ValueError, RecursionError):
            return value
        return read if wanted.is_valid(read) else value

    async def _run(self, instance: object, arguments: JsonObject, context: CapabilityContext) -> Any:
        if not self._validator.is_valid(arguments):
            raise InvalidInput(f"invalid arguments for {self.signature.name}", self._validator.faults(arguments))
        args, kwargs = self.signature.bind(arguments)
        if self.signature.context_parameter is not None:
            kwargs[self.signature.context_parameter] = context
        if self.method:
            args = [instance, *args]
        user = instance if isinstance(instance, Occupied) else None
        if user is not None:
            user.enter()
        if self.signature.is_async:
            try:
                return await cast(Any, self.function)(*args, **kwargs)
            finally:
                if user is not None:
                    user.leave()
        return await SHARED.run(
            functools.partial(cast(Any, self.function), *args, **kwargs),
            key=self.function,
            done=None if user is None else user.leave,
        )


_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class FunctionResource(Offered[P, R]):
    """A resource, or with `{name}` in its URI a family of them, read by calling a function."""

    def __init__(
        self,
        function: Callable[P, R],
        signature: FunctionSchema,
        *,
        method: bool,
        uri: str,
        name: str,
        title: str | None,
        description: str,
        media_type: str | None,
    ) -> None:
        super().__init__(function, signature, method=method)
        self.uri = uri
        self.name = name
        self.title = title
        self.description = description
        self.media_type = media_type
        names = _VARIABLE.findall(uri)
        parameters = set(signature.input_schema.get("properties", {}))
        if set(names) != parameters:
            raise TypeError(
                f"resource {uri!r}: the URI names {sorted(names) or 'no parameter'}, "
                f"the function takes {sorted(parameters) or 'none'}; they must be the same"
            )
        pattern = "".join(
            f"(?P<{piece}>[^/?#]+)" if index % 2 else re.escape(piece)
            for index, piece in enumerate(_VARIABLE.split(uri))
        )
        self._pattern = re.compile(pattern) if names else None

    @property
    def is_template(self) -> bool:
        """Whether the URI has parameters."""
        return self._pattern is not None

    def descriptor(self) -> ResourceDescriptor:
        """As one resource."""
        return ResourceDescriptor(
            id=self.uri,
            name=self.name,
            title=self.title,
            description=self.description or None,
            media_type=self.media_type,
        )

    def template(self) -> ResourceTemplate:
        """As a family."""
        return ResourceTemplate(
            uri_template=self.uri,
            name=self.name,
            title=self.title,
            description=self.description or None,
            media_type=self.media_type,
        )

    def match(self, id: ResourceId) -> JsonObject | None:
        """The parameters with which `id` is this resource, or None where it is another."""
        if self._pattern is None:
            return {} if id == self.uri else None
        found = self._pattern.fullmatch(id)
        if found is None:
            return None
        return {key: self.typed(key, urllib.parse.unquote(text)) for key, text in found.groupdict().items()}

    async def read(self, instance: object, id: ResourceId, context: CapabilityContext) -> ResourceContents:
        """Call the function for `id`. Raises `InvalidInput` where `id` is another resource."""
        arguments = self.match(id)
        if arguments is None:
            raise InvalidInput(f"no resource {id!r} here")
        value = await self._run(instance, arguments, context)
        return contents_of(id, value, self.media_type)


def contents_of(id: ResourceId, value: object, media_type: str | None) -> ResourceContents:
    """What a resource function returned, as contents: text, bytes, parts, or any JSON value."""
    if isinstance(value, ResourceContents):
        return value
    items = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    if items and all(isinstance(item, PARTS) for item in items):
        return ResourceContents(id=id, parts=tuple(cast("list[ContentPart]", items)))
    part: ContentPart
    if isinstance(value, str):
        part = TextPart(text=value, media_type=media_type or "text/plain")
    elif isinstance(value, bytes | bytearray):
        part = BlobPart(data=bytes(value), media_type=media_type or "application/octet-stream")
    else:
        part = TextPart(text=to_json(jsonable(cast(object, value))), media_type=media_type or "application/json")
    return ResourceContents(id=id, parts=(part,))


class FunctionPrompt(Offered[P, R]):
    """A prompt, filled in by calling a function."""

    def __init__(
        self,
        function: Callable[P, R],
        signature: FunctionSchema,
        *,
        method: bool,
        name: str,
        title: str | None,
        description: str,
    ) -> None:
        super().__init__(function, signature, method=method)
        self.name = name
        self.title = title
        self.description = description

    def descriptor(self) -> PromptDescriptor:
        """What it takes."""
        schema = self.signature.input_schema
        required = schema.get("required", [])
        return PromptDescriptor(
            id=self.name,
            title=self.title,
            description=self.description or None,
            arguments=tuple(
                PromptArgument(name=name, description=part.get("description"), required=name in required)
                for name, part in schema.get("properties", {}).items()
            ),
        )

    async def get(self, instance: object, args: JsonObject, context: CapabilityContext) -> PromptContents:
        """Call the function. Raises `InvalidInput` for wrong arguments."""
        given = {name: self.typed(name, value) for name, value in args.items()}
        return messages_of(await self._run(instance, given, context), self.description or None)


def messages_of(value: object, description: str | None) -> PromptContents:
    """What a prompt function returned, as messages: text is one from the user."""
    if isinstance(value, PromptContents):
        return value
    items = cast("list[object]", value) if isinstance(value, list | tuple) else [value]
    return PromptContents(messages=tuple(_message(item) for item in items), description=description)


def _message(item: object) -> PromptMessage:
    if isinstance(item, PromptMessage):
        return item
    if isinstance(item, PARTS):
        return PromptMessage(role="user", content=(item,))
    if isinstance(item, dict):
        fields = cast("dict[str, Any]", item)
        content = fields.get("content", "")
        parts = (TextPart(text=content),) if isinstance(content, str) else tuple(content)
        return PromptMessage(role=fields.get("role", "user"), content=parts)
    text = item if isinstance(item, str) else to_json(jsonable(item))
    return PromptMessage(role="user", content=(TextPart(text=text),))


def resource(
    uri: str,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
    media_type: str | None = None,
) -> Callable[[Callable[P, R]], FunctionResource[P, R]]:
    """Make a resource of a function or method: `uri` is its id; with `{parameter}` in it, a template of ids.

    The function returns text, bytes, content parts or a JSON value. Raises `TypeError` where URI and parameters differ.
    """

    def make(function: Callable[P, R]) -> FunctionResource[P, R]:
        method = is_method(function)
        signature = describe(function, name=name, description=description, method=method)
        return FunctionResource(
            function,
            signature,
            method=method,
            uri=uri,
            name=signature.name,
            title=title,
            description=signature.description,
            media_type=media_type,
        )

    return make


@overload
def prompt(function: Callable[P, R], /) -> FunctionPrompt[P, R]: ...


@overload
def prompt(
    *, name: str | None = None, title: str | None = None, description: str | None = None
) -> Callable[[Callable[P, R]], FunctionPrompt[P, R]]: ...


def prompt(
    fn: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    title: str | None = None,
    description: str | None = None,
) -> FunctionPrompt[P, R] | Callable[[Callable[P, R]], FunctionPrompt[P, R]]:
    """Make a prompt of a function or method that returns text, a message, or a list of them."""

    def make(function: Callable[P, R]) -> FunctionPrompt[P, R]:
        method = is_method(function)
        signature = describe(function, name=name, description=description, method=method)
        return FunctionPrompt(
            function,
            signature,
            method=method,
            name=signature.name,
            title=title,
            description=signature.description,
        )

    return make if fn is None else make(fn)


Offer = FunctionResource[..., Any] | FunctionPrompt[..., Any]
Offers = Sequence[Offer]
