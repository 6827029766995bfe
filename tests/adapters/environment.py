"""Where the agent frameworks live: an environment of their own, made on first use, kept in `.venvs/frameworks`.

anykit is in it as a link to this checkout, with its extras. `python tests/adapters/environment.py` makes it ahead of the
tests.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
import tomllib
import venv
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from interop.environments import ROOT, Environment, alone, install

KEPT = ROOT / ".venvs" / "frameworks"
PINNED = (
    "langchain==1.5.0",
    "langchain-core==1.8.1",
    "langgraph==1.2.22",
    "pydantic-ai-slim==2.68.0",
    "openai-agents==0.24.0",
)
EXTRAS = ("langchain", "pydantic-ai", "openai-agents")


@dataclass(frozen=True)
class Frameworks(Environment):
    """The environment; what anykit itself needs decides, with the pins, whether it must be made anew."""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
        extras = [project["optional-dependencies"][extra] for extra in EXTRAS]
        state = repr((self.packages, sys.version_info[:2], project["dependencies"], extras, str(ROOT)))
        return KEPT / hashlib.sha256(state.encode()).hexdigest()[:8]

    def make(self) -> Path:
        """Make it unless it is there. Raises `Unreachable`, or `RuntimeError` where the packages cannot be installed."""
        KEPT.mkdir(parents=True, exist_ok=True)
        folder = self.folder
        made = folder / ".made"
        with alone(KEPT / "lock"):
            if not made.exists():
                for stale in KEPT.iterdir():
                    if stale.is_dir():
                        shutil.rmtree(stale, ignore_errors=True)
                venv.create(folder, with_pip=True)
                anykit = f"{ROOT}[{','.join(EXTRAS)}]"
                install([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                         *self.packages, "--editable", anykit])  # fmt: skip
                made.touch()
        return folder


FRAMEWORKS = Frameworks("frameworks", PINNED)


if __name__ == "__main__":
    print(f"{FRAMEWORKS.name}: {FRAMEWORKS.make()}")  # noqa: T201 - a command
