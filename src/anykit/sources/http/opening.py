"""From the operator's table to a source. What a person got wrong is a source that says so, never an exception."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import urlsplit

from pydantic import SecretStr

from anykit.capabilities import Json
from anykit.stores import UnresolvedReference
from anykit.tools import Tool

from .endpoint import KIND, endpoint
from .exchange import Exchange
from .options import EndpointOptions
from .source import HttpSource, HttpTool, Opened
from .templates import TemplateError

_SHARED = ("timeout", "retries", "allow_redirects", "max_bytes", "idempotent", "result")
"""Options that an endpoint has from its source where it says nothing."""


class Opening(Protocol):
    """What opening needs to know of its surroundings."""

    @property
    def folder(self) -> Path:
        """Where relative paths of `file:` references start."""
        ...

    @property
    def env(self) -> Mapping[str, str] | None:
        """The environment; the process's own where None."""
        ...

    @property
    def connect_timeout(self) -> float:
        """Seconds."""
        ...

    @property
    def private_hosts(self) -> tuple[str, ...]:
        """What may be reached on behalf of peers, although it is not public."""
        ...


def open_source(config: Any, opening: Opening) -> Opened:
    """The entry point `http` of the group `anykit.sources`: from a table in the configuration to a source."""
    name = _source_name(config)
    where = _where(config)
    exchange = Exchange(connect_timeout=opening.connect_timeout, private_hosts=opening.private_hosts)
    tools: list[Tool] = []
    faults: list[str] = []
    for at, options in enumerate(_endpoints(config)):
        place = f"endpoint {options.name!r}" if options.name else f"endpoint {at + 1}"
        try:
            if not options.name:
                raise TemplateError("it needs a `name`, which its tool is called by")
            if not options.url:
                raise TemplateError("it needs a `url`")
            if options.name in {tool.name for tool in tools}:
                raise TemplateError("another endpoint of this source has the same name")
            tools.append(HttpTool(endpoint(options, env=opening.env, folder=opening.folder, source=name), exchange))
        except (TemplateError, UnresolvedReference) as error:
            faults.append(f"{place}: {error}")
        except ValueError as error:  # a spec that is none
            faults.append(f"{place}: {str(error).splitlines()[0]}")
    if not tools and not faults:
        faults.append("an HTTP source needs a `url`, or endpoints: [[sources.endpoints]] with name and url")
    if faults:
        return Opened(name, failed="; ".join(faults), location=where)
    return Opened(name, provider=HttpSource(name, tools, exchange), location=where)


def _endpoints(config: Any) -> list[EndpointOptions]:
    shared = _given(config)
    own: list[Any] = list(getattr(config, "endpoints", None) or ())
    if own:
        return [_options(_given(one), config, shared) for one in own]
    alone = {key: value for key, value in shared.items() if key not in ("endpoints", "base_url")}
    if not alone.get("url") and alone.get("target"):
        alone["url"] = alone["target"]
    if not alone.get("url") and "method" not in alone:
        return []
    return [_options({**alone, "name": _source_name(config)}, config, {})]


def _options(given: Mapping[str, Any], config: Any, shared: Mapping[str, Any]) -> EndpointOptions:
    known = {field.name for field in fields(EndpointOptions)}
    said: dict[str, Any] = {key: value for key, value in given.items() if key in known}
    for key in _SHARED:
        if said.get(key) is None and shared.get(key) is not None:
            said[key] = shared[key]
    for key in ("query", "headers"):
        said[key] = _laid_over(shared.get(key), said.get(key), fold=key == "headers")
    said["tags"] = tuple(dict.fromkeys((*(shared.get("tags") or ()), *(said.get("tags") or ()))))
    said["url"] = _joined(str(getattr(config, "base_url", None) or ""), str(said.get("url") or ""))
    auth: Any = getattr(config, "auth", None)
    said["bearer"] = _secret(getattr(auth, "bearer", None)) or _secret(getattr(config, "token", None))
    said["basic"] = _secret(getattr(auth, "basic", None))
    written: Any = {"name": "", **{key: value for key, value in said.items() if value is not None}}
    return EndpointOptions(**written)


def _given(table: Any) -> dict[str, Any]:
    """What was written in a table, by key, without looking into what it holds."""
    return {key: getattr(table, key) for key in cast("set[str]", table.model_fields_set)}


def _laid_over(base: Any, over: Any, *, fold: bool) -> dict[str, Json]:
    laid: dict[str, tuple[str, Json]] = {}
    for table in (base, over):
        for key, value in cast("dict[str, Json]", table or {}).items():
            laid[key.lower() if fold else key] = key, value
    return dict(laid.values())


def _joined(base: str, url: str) -> str:
    """An endpoint's URL behind the source's: a whole URL stays what it is."""
    if not base or "://" in url.partition("?")[0]:
        return url
    if not url or url.startswith("?"):
        return base + url
    return f"{base.rstrip('/')}/{url.lstrip('/')}"


def _secret(value: Any) -> str | None:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def _source_name(config: Any) -> str:
    name: Any = getattr(config, "name", None)
    return str(name) if name else _host(_where(config)) or KIND


def _where(config: Any) -> str:
    said: Any = getattr(config, "base_url", None) or getattr(config, "url", None) or getattr(config, "target", None)
    return re.sub(r"//[^/?#]*@", "//", str(said or "")).partition("?")[0]


def _host(url: str) -> str:
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in host)
