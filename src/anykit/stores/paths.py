"""Where data lives: one folder, private to its user, made when something is first written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "ANYKIT_DATA_DIR"


def data_dir(explicit: str | os.PathLike[str] | None = None, *, env: Mapping[str, str] | None = None) -> Path:
    """The folder for data: `explicit`, else `ANYKIT_DATA_DIR`, else the platform's folder for user data.

    Nothing is made here; `private_folder` does that before the first write. An empty string counts as not given.
    """
    environment = os.environ if env is None else env
    chosen = os.fspath(explicit) if explicit is not None else ""
    chosen = chosen or environment.get(VARIABLE, "")
    if not chosen:
        import platformdirs  # noqa: PLC0415 - asked for only where nobody named a folder

        chosen = platformdirs.user_data_dir("anykit", appauthor=False)
    return Path(os.path.abspath(os.path.expanduser(chosen)))


def private_folder(path: Path) -> Path:
    """Make `path` where it is missing, readable by its owner only (0700), and return it.

    A folder that exists keeps its mode. Raises `OSError`.
    """
    if not path.is_dir():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return path
