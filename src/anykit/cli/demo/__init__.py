"""`anykit demo`: the main job on real files, over both transports, step by step."""

from .verb import run

__all__ = ["run"]
