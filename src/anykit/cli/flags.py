"""The flags that every verb takes, before its name or after."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["text", "number", "list", "switch", "count", "color"]


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `metavar` None: it takes no value."""

    field: str
    names: tuple[str, ...]
    kind: Kind
    help: str
    metavar: str | None = None


GLOBAL = (
    Flag("config", ("--config",), "text", "The file, instead of the nearest anykit.toml here or above.", "FILE"),
    Flag("sources", ("--source", "-s"), "list", "A file, module or URL to take tools from; may be repeated.", "SOURCE"),
    Flag("connect", ("--connect",), "text", "Act on a running A2E host: its URL, or the command that starts it.", "URL|COMMAND"),
    Flag("token", ("--token",), "text", "The host's token; better in ANYKIT_TOKEN.", "TOKEN"),
    Flag("env", ("--env",), "text", "Which [env.NAME] of the file holds; also ANYKIT_ENV.", "NAME"),
    Flag("data_dir", ("--data-dir",), "text", "Where records and secrets lie; also ANYKIT_DATA_DIR.", "DIR"),
    Flag("timeout", ("--timeout",), "number", "How long to wait for sources (10); of `call`, the call's deadline too.", "SECONDS"),
    Flag("json", ("--json",), "switch", "Data as JSON on stdout."),
    Flag("quiet", ("--quiet", "-q"), "switch", "Less on stderr."),
    Flag("verbose", ("--verbose", "-v"), "count", "More on stderr; twice for all there is."),
    Flag("color", ("--color",), "color", "Colours; NO_COLOR and FORCE_COLOR count too.", "auto|always|never"),
    Flag("no_input", ("--no-input",), "switch", "Never ask."),
)  # fmt: skip
"""One table for the parser, the help and the completion."""

TAKES_VALUE = {name for flag in GLOBAL if flag.metavar for name in flag.names}
SWITCHES = {name for flag in GLOBAL if not flag.metavar for name in flag.names}


@dataclass(frozen=True, slots=True)
class Flags:
    """What the flags of one invocation say."""

    config: str | None = None
    sources: tuple[str, ...] = ()
    connect: str | None = None
    token: str | None = None
    env: str | None = None
    data_dir: str | None = None
    timeout: float | None = None
    json: bool = False
    quiet: bool = False
    verbose: int = 0
    color: str = "auto"
    no_input: bool = False


def parameters() -> list[inspect.Parameter]:
    """The flags as parameters that typer reads."""
    return [
        inspect.Parameter(f"flag_{flag.field}", inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=option)
        for flag in GLOBAL
        for kind, option in [_typed(flag)]
    ]


def taken(values: dict[str, Any]) -> Flags:
    """Take the flags out of what typer parsed."""
    found = {flag.field: values.pop(f"flag_{flag.field}") for flag in GLOBAL}
    found["sources"] = tuple(found["sources"] or ())
    return Flags(**found)


def _typed(flag: Flag) -> tuple[Any, Any]:
    """The type of a flag's value, and typer's option for it."""
    import typer  # noqa: PLC0415 - the help of the whole command is printed without it

    kind, default = _KINDS[flag.kind]
    more: dict[str, Any] = {}
    if flag.kind == "count":
        more["count"] = True
    if flag.metavar and flag.kind != "color":
        more["metavar"] = flag.metavar
    return kind, typer.Option(default, *flag.names, help=flag.help, show_default=False, **more)


_KINDS: dict[Kind, tuple[Any, Any]] = {
    "text": (str | None, None),
    "number": (float | None, None),
    "list": (list[str] | None, None),
    "switch": (bool, False),
    "count": (int, 0),
    "color": (Literal["auto", "always", "never"], "auto"),
}
"""Type and default."""
