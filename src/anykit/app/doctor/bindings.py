"""Bindings, bounds and tokens that leave a door open."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from anykit.app.config import SourceConfig
from anykit.stores import UnresolvedReference, has_reference, resolve
from anykit.transports.guard import is_loopback

from .finding import Case, Finding
from .variables import as_written

SHORT = 16
"""Characters below which a token can be guessed."""


def bindings(case: Case) -> Iterator[Finding]:
    """What the file says of listening, of bounds, and of addresses that secrets go to."""
    yield from _serving(case)
    yield from _bounds(case)
    yield from _addresses(case)


def _serving(case: Case) -> Iterator[Finding]:
    serve = case.config.serve
    token = case.env.get("ANYKIT_TOKEN", "") if serve.token is None else serve.token.get_secret_value()
    if not is_loopback(serve.host):
        if not token:
            yield Finding(
                "open_without_token",
                "error",
                case.at("serve", "host"),
                f"listens on {serve.host}, which others reach, and asks for no token",
                'token = "${ANYKIT_TOKEN}" under [serve], or host = "127.0.0.1"',
            )
        if not serve.tls_cert and not serve.trusted_proxies:
            yield Finding(
                "open_without_tls",
                "warning",
                case.at("serve", "host"),
                f"listens on {serve.host} without TLS: tokens and results can be read on the way",
                "tls_cert and tls_key under [serve], or a proxy with TLS before it, named in trusted_proxies",
            )
    if serve.token is not None and token and not has_reference(token):
        yield Finding(
            "token_in_file",
            "warning",
            case.at("serve", "token"),
            "the token stands in the file itself",
            'token = "${ANYKIT_TOKEN}", and the variable holds it',
        )
    value = _resolved(case, token)
    if value is not None and 0 < len(value) < SHORT:
        yield Finding(
            "token_weak",
            "warning",
            case.at("serve", "token"),
            f"the token has fewer than {SHORT} characters and can be guessed",
            "make one: python -c 'import secrets; print(secrets.token_urlsafe(32))'",
        )
    for key, values, what in (
        ("allow_origins", serve.allow_origins, "a page of any site may call from a browser"),
        ("allow_hosts", serve.allow_hosts, "any name may lead here, so a page can rebind its own to this host"),
        ("trusted_proxies", serve.trusted_proxies, "anybody may say that a request came over TLS"),
    ):
        if any(value.strip() in _ANY for value in values):
            yield Finding(
                "open_to_any",
                "error" if key == "allow_origins" else "warning",
                case.at("serve", key),
                f"{key} has {', '.join(value for value in values if value.strip() in _ANY)}: {what}",
                f"name the {key.removeprefix('allow_').removeprefix('trusted_')} that are meant",
            )
    if serve.tls_key is not None:
        file = case.config.folder / Path(serve.tls_key).expanduser()
        if file.is_file() and file.stat().st_mode & 0o077:
            yield Finding(
                "key_readable",
                "error",
                case.at("serve", "tls_key"),
                f"{file} can be read by others",
                f"chmod 600 {file}",
            )


_ANY = frozenset({"*", "0.0.0.0/0", "::/0", "null"})


def _bounds(case: Case) -> Iterator[Finding]:
    config = case.config
    wide = _wide_places(case)
    for index, root in enumerate(config.bounds.roots or []):
        place = (config.folder / Path(root).expanduser()).resolve()
        if (what := wide.get(place)) is not None:
            yield Finding(
                "bounds_wide",
                "warning",
                case.at("bounds", "roots", index),
                f"{root} is {what}: callers may have every file in it",
                "name the folders that are meant",
            )
    for key, values in (("database_urls", config.bounds.database_urls), ("private_hosts", config.bounds.private_hosts)):
        for index, value in enumerate(values):
            if _is_everything(value):
                yield Finding(
                    "bounds_wide",
                    "warning",
                    case.at("bounds", key, index),
                    f"{value} bounds nothing: callers reach every host of the network",
                    "name the hosts that are meant",
                )
    filesystem = config.toolkits.get("filesystem")
    root = None if filesystem is None or filesystem.config is None else filesystem.config.get("root")
    if isinstance(root, str) and (what := wide.get((config.folder / Path(root).expanduser()).resolve())) is not None:
        yield Finding(
            "bounds_wide",
            "warning",
            case.at("toolkits", "filesystem", "config", "root"),
            f"{root} is {what}: the tools reach every file in it",
            "name the folder that is meant",
        )


def _wide_places(case: Case) -> dict[Path, str]:
    home = case.home.resolve()
    return {home.parent: "all home folders", home: "the whole home folder", Path("/"): "the whole file system"}


def _is_everything(value: str) -> bool:
    if value.strip() in ("*", "*:*"):
        return True
    try:
        return ipaddress.ip_network(value.strip(), strict=False).prefixlen == 0
    except ValueError:
        return False


def _addresses(case: Case) -> Iterator[Finding]:
    """Secrets that would travel without TLS to a host that is not this one."""
    for index, source in enumerate(case.config.sources):
        if isinstance(source, str) or not source.enabled:
            continue
        url = source.url or (source.target if source.target and "://" in source.target else None)
        if url and _is_plain(url) and _has_secret(source):
            yield _unsafe(case.at("sources", index), url)
    for id, block in case.config.agents.items():
        card, headers = block.get("card"), block.get("headers")
        if isinstance(card, str) and _is_plain(card) and headers:
            yield _unsafe(case.at("agents", id), card)


def _unsafe(where: str, url: str) -> Finding:
    host = urlsplit(url).hostname or "it"
    return Finding(
        "secret_without_tls",
        "warning",
        where,
        f"a secret is sent to {host} over plain HTTP, where it can be read on the way",
        "https:// in place of http://",
    )


def _has_secret(source: SourceConfig) -> bool:
    given = as_written(source)
    return any(given.get(key) for key in ("token", "headers", "auth", "headers_helper"))


def _is_plain(url: str) -> bool:
    try:
        parts = urlsplit(url.strip())
        return parts.scheme.lower() == "http" and not is_loopback(parts.hostname or "")
    except ValueError:
        return False


def _resolved(case: Case, text: str) -> str | None:
    if text.startswith("keyring:"):
        return None
    try:
        return resolve(text, case.env, case.config.folder)
    except UnresolvedReference:
        return None
