"""What is written about foreign code that broke: its traceback, without the secrets that it was configured with."""

from __future__ import annotations

import logging
import threading
import traceback
import weakref
from collections import Counter
from collections.abc import Iterable
from typing import Final

SHORTEST: Final = 4
"""Shorter secrets are part of ordinary words: to hide them would hide everything."""
HIDDEN: Final = "[secret]"


class Discretion:
    """The secrets in use, each for as long as whatever was configured with it lives."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._secrets: Counter[str] = Counter()

    def keep(self, secrets: Iterable[str], owner: object) -> None:
        """Hide `secrets` until `owner` is gone."""
        kept = [secret for secret in secrets if len(secret) >= SHORTEST]
        if not kept:
            return
        with self._lock:
            self._secrets.update(kept)
        weakref.finalize(owner, self._forget, kept).atexit = False

    def _forget(self, secrets: list[str]) -> None:
        with self._lock:
            self._secrets.subtract(secrets)
            self._secrets += Counter()

    def hide(self, text: str) -> str:
        """`text` without any of them."""
        with self._lock:
            secrets = sorted(self._secrets, key=len, reverse=True)
        return hide(text, secrets)

    def exception(self, log: logging.Logger, message: str, *args: object) -> None:
        """Log the exception that is being handled, with its traceback."""
        if not log.isEnabledFor(logging.ERROR):
            return
        record = log.makeRecord(log.name, logging.ERROR, __file__, 0, self.hide(message % args), (), None)
        # Where `logging` keeps a traceback that is text already: whoever shows none still shows none.
        record.exc_text = self.hide(traceback.format_exc().rstrip())
        log.handle(record)


def hide(text: str, secrets: Iterable[str]) -> str:
    """`text` without `secrets`, those that are long enough to be told from other words."""
    for secret in secrets:
        if len(secret) >= SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


DISCRETION: Final = Discretion()
"""The process's own: a secret of one session is none in another's log line either."""
