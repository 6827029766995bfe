"""A runtime put together by hand: what the tests of this room share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anykit.capabilities import Invocable, PromptProvider, ResourceProvider
from anykit.runtime import Caller, Catalog, Executor, Journal, Policy, Scopes, Session, Source, Vault
from anykit.tools import Bounds, Toolkit


class Lines:
    """A journal's lines, in memory."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def append(self, log: str, rows: Sequence[dict[str, Any]]) -> None:
        self.rows += rows


class Offers:
    """A provider of what it is given."""

    def __init__(
        self,
        *invocables: Invocable,
        resources: Sequence[ResourceProvider] = (),
        prompts: Sequence[PromptProvider] = (),
    ) -> None:
        self._invocables = invocables
        self._resources = resources
        self._prompts = prompts

    def invocables(self) -> Sequence[Invocable]:
        return self._invocables

    def resources(self) -> Sequence[ResourceProvider]:
        return self._resources

    def prompts(self) -> Sequence[PromptProvider]:
        return self._prompts


class Bench:
    """Catalogue, scopes, journal and executor."""

    def __init__(
        self,
        *sources: Source,
        policy: Policy | None = None,
        bounds: Bounds | None = None,
        vault: Vault | None = None,
    ) -> None:
        self.lines = Lines()
        self.catalog = Catalog()
        self.scopes = Scopes(bounds=bounds or Bounds(), vault=vault)
        self.executor = Executor(self.catalog, self.scopes, Journal(self.lines), policy=policy)
        self.catalog.add(*sources)

    def session(
        self, id: str | None = None, *, principal: str = "p", face: str = "a2e", view: str | None = None
    ) -> Session:
        caller = Caller(principal, face, id, view)
        return Session(caller, catalog=self.catalog, scopes=self.scopes, executor=self.executor)

    def operator(self) -> Session:
        return self.session(principal="local", face="python")


def functions(*invocables: Invocable, name: str = "python", prefixed: bool = False) -> Source:
    return Source(name, "functions", Offers(*invocables), prefixed=prefixed)


def toolkit(*classes: type[Toolkit], name: str = "kit") -> Source:
    return Source(name, "toolkit", toolkits=classes)
