"""What a request must not give away again: the credentials in its headers, query and body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST = 6
"""Characters from which on a value is looked for; a shorter one would be found everywhere."""

_TELLING = re.compile(
    r"auth|cookie|token|secret|passw|passphrase|credential|session|signature|api[_-]?key|access[_-]?key|\bkey\b|[_-]key",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:basic|bearer|digest|token|apikey|negotiate|dpop|hawk|aws4-hmac-sha256)\s+", re.IGNORECASE)


def is_telling(name: str) -> bool:
    """Whether a header or a parameter of this name holds a credential."""
    return _TELLING.search(name) is not None


def credentials(pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The credentials among headers or parameters, by their names; without the scheme that stands before one."""
    return tuple(_SCHEME.sub("", value, count=1) for name, value in pairs if is_telling(name))


class Secrets:
    """Values that no error and no result may quote, in every spelling that a peer could echo them in."""

    __slots__ = ("_plain", "_spelt")

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._plain = {value for value in values if len(value) >= LEAST}
        spelt = {form for value in self._plain for form in _spellings(value)}
        self._spelt = tuple(sorted(spelt, key=len, reverse=True))

    def __bool__(self) -> bool:
        return bool(self._spelt)

    def __repr__(self) -> str:
        return f"<Secrets {len(self._plain)}>"

    def with_more(self, values: Iterable[str]) -> Secrets:
        """These and more."""
        more = {value for value in values if len(value) >= LEAST} - self._plain
        return Secrets(self._plain | more) if more else self

    def masked(self, text: str) -> str:
        """The text with every secret replaced by `***`."""
        for form in self._spelt:
            if form in text:
                text = text.replace(form, MASK)
        return text

    def are_in(self, text: str) -> bool:
        """Whether the text holds one."""
        return any(form in text for form in self._spelt)


def _spellings(value: str) -> set[str]:
    forms = {value, quote(value, safe=""), quote(value), quote_plus(value)}
    for escaped in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        forms |= {escaped[1:-1], escaped[1:-1].replace("/", "\\/")}
    return forms
