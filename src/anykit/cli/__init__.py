"""The command: one module a verb, and the only place that prints.

program    argv -> verb, flags; errors -> exit codes
flags      what every verb takes
terminal   what a person sees, and what a pipe gets
place      where a verb acts: a workbench (local) or a running host (remote)
"""

from .program import main, run

__all__ = ["main", "run"]
