"""What is known of a remote agent before it is asked: where its card is, and how to talk to it."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from anykit.capabilities import JsonObject
from anykit.transports import public_url

TIMEOUT = 300.0
"""Seconds that a call may take, with everything that belongs to it."""
POLL_EVERY = 1.0
"""Seconds between two looks at a task, at most."""

Keys: TypeAlias = "str | Mapping[str, Any] | Sequence[Any]"
"""Public keys that sign cards: PEM text, a JWK, a JWK set, key ids with either, or a list of these."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A card as it was last served."""

    etag: str
    document: JsonObject
    last_modified: str = ""


@dataclass(frozen=True, slots=True, repr=False)
class Agent:
    """A remote agent. Nothing of it was looked at yet; see `agent`."""

    card: str | Mapping[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    timeout: float = TIMEOUT
    poll_every: float = POLL_EVERY
    allow_origins: tuple[str, ...] = ()
    id: str | None = None
    credentials: Mapping[str, Any] = field(default_factory=dict[str, Any])
    keys: Keys = ()
    env: Mapping[str, str] | None = None
    """Where references are looked up; the environment of the process where None."""
    base_dir: str = "."
    """Where relative `file:` references start."""
    remembered: dict[str, Remembered] = field(default_factory=dict[str, Remembered], init=False, compare=False)
    """Cards that may be asked for by their ETag, by URL."""

    def __repr__(self) -> str:
        return f"<Agent {self.where}>"

    @property
    def where(self) -> str:
        """The card's place, fit to be shown."""
        return public_url(self.card) if isinstance(self.card, str) else "a card that was given"

    @property
    def card_url(self) -> str | None:
        """The URL that was given for the card, if one was."""
        return self.card.strip() if isinstance(self.card, str) else None


def agent(
    card: str | Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    timeout: float = TIMEOUT,
    poll_every: float = POLL_EVERY,
    allow_origins: Sequence[str] = (),
    id: str | None = None,
    *,
    credentials: Mapping[str, Any] | None = None,
    keys: Keys = (),
) -> Agent:
    """Describe a remote agent; touches no network.

    Args:
        card: The URL of its card, the base URL that it is served under, or the card itself.
        headers: Sent to the card's origin, and to `allow_origins`. Values may hold `${VAR}`.
        timeout: Seconds that a call may take as a whole.
        poll_every: Seconds between two looks at a task; the first ones come quicker.
        allow_origins: Further origins (`https://host:port`) that may get headers and credentials, though the card does not
            lie there. Operators' words: they may be private addresses.
        id: What tells it from another agent with an equal card.
        credentials: Secrets by the name of the card's security scheme: a key or token; `user:password`; for OAuth2
            client credentials `{"client_id": ..., "client_secret": ..., "scopes": [...], "token_url": ...}`. Values may
            be references (`${VAR}`, `file:`, `keyring:`).
        keys: Public keys, one of which must have signed the card: PEM, JWK, JWK set, or key ids with either.

    Raises `ValueError` for a time that is none, or an origin that is none.
    """
    for name, value in (("timeout", timeout), ("poll_every", poll_every)):
        if not (isinstance(value, int | float) and math.isfinite(value) and value > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"{name} is {value!r}; give a number of seconds above 0")
    origins = (allow_origins,) if isinstance(allow_origins, str) else tuple(allow_origins)
    for given in origins:
        if "://" not in given:
            raise ValueError(f"allow_origins: {given!r} is no origin; write it like https://host:port")
    return Agent(
        card=card,
        headers=dict(headers or {}),
        timeout=float(timeout),
        poll_every=float(poll_every),
        allow_origins=origins,
        id=id,
        credentials=dict(credentials or {}),
        keys=keys,
    )


def is_enabled(block: Mapping[str, Any]) -> bool:
    """Whether an entry of an `agents` block is switched on: `disabled: true` wins over `enabled`."""
    return block.get("disabled") is not True and block.get("enabled") is not False


def configured_agent(
    id: str,
    block: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    base_dir: str | os.PathLike[str] = ".",
) -> Agent:
    """The agent of one entry of an `agents` block: `{"card", "headers", "timeout", "pollEvery"}`, times in milliseconds.

    References in its headers and secrets are resolved when it is first asked, so that one that leads nowhere costs only
    this agent. Raises `ValueError` naming the key.
    """
    card = block.get("card")
    if isinstance(card, Mapping):
        card = cast("Mapping[str, Any]", card)
    elif not isinstance(card, str) or not card.strip():
        raise ValueError(f"agents.{id}.card: give the URL of the agent's card, or its base URL")
    headers = _table(id, "headers", block.get("headers"))
    for name, value in headers.items():
        if not isinstance(value, str):
            raise ValueError(f"agents.{id}.headers.{name}: a text is needed")
    origins = block.get("allow_origins", block.get("allowOrigins")) or ()
    made = agent(
        card,
        headers,
        timeout=_seconds(id, "timeout", block.get("timeout"), TIMEOUT),
        poll_every=_seconds(id, "pollEvery", block.get("pollEvery", block.get("poll_every")), POLL_EVERY),
        allow_origins=origins,
        id=id,
        credentials=_table(id, "credentials", block.get("credentials")),
        keys=block.get("keys") or (),
    )
    return Agent(
        card=made.card,
        headers=made.headers,
        timeout=made.timeout,
        poll_every=made.poll_every,
        allow_origins=made.allow_origins,
        id=id,
        credentials=made.credentials,
        keys=made.keys,
        env=env,
        base_dir=os.fspath(base_dir),
    )


def _table(id: str, key: str, value: Any) -> JsonObject:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"agents.{id}.{key}: a table is needed")
    return dict(cast("Mapping[str, Any]", value))


def _seconds(id: str, key: str, value: Any, default: float) -> float:
    """Milliseconds, as such a block's users write them, in seconds."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
        raise ValueError(f"agents.{id}.{key}: a number of milliseconds above 0 is needed")
    return value / 1000
