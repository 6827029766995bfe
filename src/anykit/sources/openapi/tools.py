"""Operations as tools."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Protocol

from anykit.capabilities import (
    Annotations,
    CapabilityContext,
    InvalidInput,
    InvocableRequest,
    InvocableResult,
    JsonObject,
)
from anykit.schema import SchemaError, Validator
from anykit.sources.http import Received
from anykit.sources.http.results import failure, shaped
from anykit.tools import PermissionRequest, Tool, ToolSpec

from .operations import Operation, Prepared

log = logging.getLogger("anykit.sources.openapi")

KIND = "openapi"
GRACE = 5.0
"""Seconds on top of a request's own time after which a call that does not end by itself is ended."""
MAX_FAULTS = 10
_SAFE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "QUERY"})
_IDEMPOTENT = frozenset({*_SAFE, "PUT", "DELETE"})


class Remote(Protocol):
    """Where a tool sends its requests through."""

    async def call(self, operation: Operation, prepared: Prepared, context: CapabilityContext) -> Received:
        """Send a request with what proves who asks. Raises `CapabilityError`."""
        ...

    def not_as_described(self, operation: Operation) -> None:
        """An answer did not keep what the document promises."""
        ...


class OpenApiTool(Tool):
    """One operation of a document."""

    def __init__(self, spec: ToolSpec, operation: Operation, remote: Remote) -> None:
        super().__init__(spec)
        self.operation = operation
        self._remote = remote

    @property
    def validator(self) -> Validator:
        """Of the arguments: null counts as nothing where nothing is needed. Raises `SchemaError`."""
        return self.operation.validator

    @property
    def output_validator(self) -> Validator | None:
        """None: an answer that does not keep the document's promise is reported, and not lost (see `invoke`)."""
        return None

    def without_promise(self) -> OpenApiTool:
        """The same without an output schema; itself where it has none."""
        if self._spec.output_schema is None:
            return self
        return OpenApiTool(self._spec.model_copy(update={"output_schema": None}), self.operation, self._remote)

    @property
    def is_checked(self) -> bool:
        """Yes: piece by piece, when the document was read. Compiling what 500 operations refer to takes seconds."""
        return True

    @property
    def may_ask(self) -> bool:
        """Never: a request has an answer."""
        return False

    def preflight(self, request: InvocableRequest) -> Sequence[PermissionRequest]:
        """It calls a server."""
        where = self.operation.address.url or "a server that is not named"
        detail: JsonObject = {"method": self.operation.method, "path": self.operation.path}
        return (PermissionRequest("network", where, detail),)

    async def invoke(self, request: InvocableRequest, context: CapabilityContext) -> InvocableResult:
        """Send the request. Raises `CapabilityError`: `ExecutionFailed` for any status but 2xx."""
        self._check(request.input)
        received = await self._remote.call(self.operation, self.operation.prepared(request.input), context)
        if not 200 <= received.status < 300:
            raise failure(received, retryable=self.operation.method in _IDEMPOTENT)
        return self._held_against(shaped(received), received.status)

    def _check(self, arguments: JsonObject) -> None:
        """For whoever calls it without a bench: nothing is sent with arguments that do not fit."""
        try:
            faults = [] if self.validator.is_valid(arguments) else self.validator.faults(arguments)
        except SchemaError as error:
            raise InvalidInput(f"{self.name} cannot be called: {error}") from None
        if faults:
            lines = "; ".join(f"{fault['path']}: {fault['message']}" for fault in faults)
            raise InvalidInput(f"invalid arguments for {self.name}: {lines}", faults)

    def _held_against(self, result: InvocableResult, status: int) -> InvocableResult:
        """The result with its status and, where it is not as the document promises, with what is not."""
        metadata: dict[str, Any] = {**result.metadata, "status": status}
        if self.operation.answers.output_schema is not None:
            if not result.has_structured:
                metadata["not_as_described"] = ["a JSON object is promised, and there is none"]
            elif faults := self.operation.answers.faults(result.structured):
                lines = [f"{fault['path'] or '/'}: {fault['message']}" for fault in faults[:MAX_FAULTS]]
                metadata["not_as_described"] = lines
            if "not_as_described" in metadata:
                self._remote.not_as_described(self.operation)
                log.warning(
                    "the answer to %s is not as its document describes it: %s",
                    self.name,
                    "; ".join(metadata["not_as_described"])[:500],
                )
        return result.model_copy(update={"metadata": metadata})


def spec_of(operation: Operation, *, timeout: float | None) -> ToolSpec:
    """What a model sees of an operation."""
    metadata: JsonObject = {"method": operation.method, "path": operation.path}
    if operation.deprecated:
        metadata["deprecated"] = True
    method = operation.method
    return ToolSpec(
        name=operation.name,
        description=operation.description,
        input_schema=operation.input_schema,
        output_schema=operation.answers.output_schema,
        metadata=metadata,
        annotations=Annotations(
            title=operation.title,
            read_only=method in _SAFE,
            destructive=True if method == "DELETE" else False if method in _SAFE else None,
            idempotent=True if method in _IDEMPOTENT else False if method == "POST" else None,
            open_world=True,
        ),
        title=operation.title,
        tags=operation.tags,
        kind=KIND,
        source=KIND,
        timeout=None if timeout is None else timeout + GRACE,
    )
