"""What MCP servers may ask of a workbench."""

from __future__ import annotations

from pathlib import Path

from anykit.servers.a2e.mcp import AgentModels
from anykit.sources.mcp import Offers

from .config import OffersConfig


def offers_of(config: OffersConfig, folder: Path, models: AgentModels | None) -> Offers:
    """What the operator lets MCP servers ask for; `models` answer for the callers' models."""
    roots = None if config.roots is None else [(folder / Path(root).expanduser()).resolve() for root in config.roots]
    return Offers(sampler=None if models is None else models.sample, roots=roots)
