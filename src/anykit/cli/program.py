"""From the line a person typed to a verb, and from its end to an exit code.

A verb's module is imported only when it is the one that was asked for.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import inspect
import logging
import os
import typing
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TextIO, cast

from anykit import __version__

from .errors import CommandError, Exit, usage
from .flags import GLOBAL, SWITCHES, TAKES_VALUE, Flag, taken
from .invocation import Invocation, LogLines
from .terminal import OutputClosed, Streams, Terminal

Run = Callable[..., int]


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb by its one line of help. Its module has a function of its name (`list_` for `list`)."""

    name: str
    help: str
    connects: bool = False
    """Whether --connect means something to it."""

    def function(self) -> Run:
        """Import it."""
        module = importlib.import_module(f"anykit.cli.{self.name}")
        return cast(Run, getattr(module, "run"))  # noqa: B009 - each verb's module has it


VERBS = (
    Verb("init", "Write a first anykit.toml and a tool"),
    Verb("add", "Add an MCP server, an agent, a host, a toolkit or a file of tools to the file"),
    Verb("remove", "Take sources or agents out of the file"),
    Verb("enable", "Switch sources, servers, agents or toolkits on"),
    Verb("disable", "Switch sources, servers, agents or toolkits off"),
    Verb("discover", "Find the MCP servers that other clients have, and take them over"),
    Verb("install", "Let Claude, Cursor, VS Code, Codex and others use this host"),
    Verb("list", "List toolkits, tools, resources, prompts and sources", connects=True),
    Verb("show", "Show one of them, with its schema", connects=True),
    Verb("configure", "Configure a toolkit", connects=True),
    Verb("call", "Call a tool", connects=True),
    Verb("read", "Read a resource"),
    Verb("prompt", "Fill a prompt in"),
    Verb("login", "Log in to an MCP server"),
    Verb("answer", "Answer a question that a call asked, and go on with it"),
    Verb("serve", "Offer the tools to agents"),
    Verb("schema", "Print the tools as a model provider's request has them"),
    Verb("validate", "Check the file and the sources"),
    Verb("doctor", "Say what is wrong, and how to mend it"),
    Verb("lock", "Pin what tools say of themselves, and see what changed"),
    Verb("trust", "Agree to what a project's file starts"),
    Verb("completion", "Print a completion script for a shell"),
    Verb("demo", "See the main job done on real files"),
)


def run(
    argv: Sequence[str],
    *,
    stdin: TextIO | None = None,
    stdout: TextIO | None = None,
    stderr: TextIO | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run one command line and return its exit code. Streams and environment are the process's where not given."""
    own = Streams.of_process()
    streams = Streams(
        own.stdin if stdin is None else stdin,
        own.stdout if stdout is None else stdout,
        own.stderr if stderr is None else stderr,
        own.env if env is None else env,
    )
    try:
        code = _guarded(list(argv), streams)
        streams.stdout.flush()
    except (OutputClosed, BrokenPipeError):
        _forget_stdout(streams.stdout)
        return Exit.OK
    return code


def _guarded(argv: list[str], streams: Streams) -> int:
    terminal = Terminal(streams)
    try:
        return _dispatch(argv, streams)
    except CommandError as error:
        terminal.error(error)
        return error.exit
    except KeyboardInterrupt:
        terminal.error(CommandError("interrupted"))
        return Exit.INTERRUPTED
    except OutputClosed:
        raise
    except Exception as error:
        if "-v" in argv or "-vv" in argv or "--verbose" in argv:
            raise
        text = f"unexpected: {type(error).__name__}: {error}"
        terminal.error(CommandError(text, code="internal", fixes=[("see where", "run it again with -v")]))
        return Exit.UNEXPECTED


def _dispatch(argv: list[str], streams: Streams) -> int:
    before, rest = split(argv)
    if "--version" in before or (rest[:1] != [] and "--version" in _options(rest)):
        streams.stdout.write(f"anykit {__version__}\n")
        return Exit.OK
    if "--help" in before or "-h" in before or not rest:
        _check_before(before)
        streams.stdout.write(overview())
        return Exit.OK
    name = rest[0]
    if name == "help":
        if rest[1:2]:
            return _dispatch([rest[1], "--help"], streams)
        streams.stdout.write(overview())
        return Exit.OK
    verb = verb_named(name)
    parsed = parse(verb, [*before, *rest[1:]], streams)
    if isinstance(parsed, int):
        return parsed
    flags, work = parsed
    terminal = Terminal(streams, flags)
    if flags.connect and not verb.connects:
        takers = ", ".join(each.name for each in VERBS if each.connects)
        raise usage(f"{verb.name} does not act on a running host; --connect is for {takers}")
    invocation = Invocation(flags, terminal)
    with _logging(terminal, tracebacks=verb.name == "serve" or terminal.verbose > 0):
        try:
            return work(invocation)
        except CommandError as error:
            terminal.error(error)
            return error.exit


def split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The flags before the verb, and the verb with what follows. Raises `CommandError` for an unknown flag."""
    before: list[str] = []
    index = 0
    while index < len(argv):
        word = argv[index]
        if word == "--":
            return before, list(argv[index + 1 :])
        if not word.startswith("-") or word == "-":
            return before, list(argv[index:])
        before.append(word)
        index += 1
        if _wants_value(word) and index < len(argv):
            before.append(argv[index])
            index += 1
    return before, []


def _wants_value(word: str) -> bool:
    """Whether the value of a flag is the next word. Short flags may stand together (`-qs FILE`)."""
    if word.startswith("--"):
        return word in TAKES_VALUE
    for place, letter in enumerate(word[1:], start=1):
        if f"-{letter}" in TAKES_VALUE:
            return place == len(word) - 1
    return False


def _check_before(before: Sequence[str]) -> None:
    known = TAKES_VALUE | SWITCHES | {"--help", "-h", "--version"}
    skip = False
    for word in before:
        if skip:
            skip = False
            continue
        name = word.partition("=")[0]
        if word.startswith("--") and name not in known:
            raise usage(f"there is no flag {name}{_close(name, known)}", ("help", "anykit --help"))
        skip = _wants_value(word)


def _options(words: Sequence[str]) -> list[str]:
    return list(words[: words.index("--")] if "--" in words else words)


def verb_named(name: str) -> Verb:
    """The verb of that name. Raises `CommandError` with a proposal."""
    for verb in VERBS:
        if verb.name == name:
            return verb
    names = [verb.name for verb in VERBS]
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    fixes = [("did you mean", f"anykit {close[0]}")] if close else []
    raise usage(f"there is no command {name!r}", *fixes, ("help", "anykit --help"), code="unknown_command")


def parse(verb: Verb, words: Sequence[str], streams: Streams) -> int | tuple[Any, Callable[[Invocation], int]]:
    """The flags and the bound work of a verb's line; an exit code where that is all (--help)."""
    command = command_of(verb)
    try:
        with contextlib.redirect_stdout(streams.stdout), contextlib.redirect_stderr(streams.stderr):
            return command.main(args=list(words), prog_name=f"anykit {verb.name}", standalone_mode=False)
    except Exception as error:
        raise _usage_of(error, verb) from error


def command_of(verb: Verb) -> Any:
    """What typer makes of a verb's function and the flags that every verb takes."""
    import typer  # noqa: PLC0415 - the help of the whole command is printed without it
    import typer.main  # noqa: PLC0415

    from .flags import parameters  # noqa: PLC0415

    function = verb.function()
    hints = typing.get_type_hints(function, include_extras=True)
    own = [
        parameter.replace(annotation=hints[name])
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "invocation"
    ]

    def bound(**values: Any) -> tuple[Any, Callable[[Invocation], int]]:
        return taken(values), partial(function, **values)

    every = [*own, *parameters()]
    setattr(bound, "__signature__", inspect.Signature([_by_keyword(one) for one in every]))  # noqa: B010 - typer reads it
    bound.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    bound.__doc__ = function.__doc__ and inspect.cleandoc(function.__doc__)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(name=verb.name, context_settings={"help_option_names": ["--help", "-h"], "max_content_width": 110})(
        bound
    )
    return typer.main.get_command(app)


def _by_keyword(parameter: inspect.Parameter) -> inspect.Parameter:
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)


def _usage_of(error: Exception, verb: Verb) -> Exception:
    """What typer found wrong, in our words; anything that it does not explain stays as it is."""
    explain = getattr(error, "format_message", None)
    if explain is None:
        return error
    message = str(explain()).removeprefix("Invalid value for ").partition(" (Possible options")[0].rstrip(".")
    possible: Sequence[str] = getattr(error, "possibilities", None) or ()
    fixes = [("did you mean", " or ".join(possible))] if possible else []
    return usage(f"{message[:1].lower()}{message[1:]}", *fixes, ("help", f"anykit {verb.name} --help"))


def _close(name: str, known: Any) -> str:
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""


def overview() -> str:
    """The help of the whole command."""
    width = max(len(verb.name) for verb in VERBS)
    lines = [
        "anykit: one toolbox for any agent",
        "",
        "usage: anykit VERB [...]",
        "",
        *(f"  {verb.name:<{width}}  {verb.help}" for verb in VERBS),
        "",
        "Each verb explains itself: anykit VERB --help. For every verb, before its name or after:",
        "",
    ]
    shown = [(_shown(flag), flag.help) for flag in GLOBAL]
    shown += [("--version", "The version."), ("--help, -h", "This help.")]
    width = max(len(names) for names, _ in shown)
    lines += [f"  {names:<{width}}  {help}" for names, help in shown]
    lines += [
        "",
        "Data goes to stdout, all else to stderr. Exit codes: 0 done, 1 unexpected, 2 usage or configuration,",
    ]
    lines += [
        "3 credentials needed, 4 unreachable or timed out, 5 failed or not found, 6 findings, 7 denied, 8 waiting."
    ]
    return "\n".join(lines) + "\n"


def _shown(flag: Flag) -> str:
    names = ", ".join(flag.names)
    return f"{names} {flag.metavar}" if flag.metavar else names


@contextlib.contextmanager
def _logging(terminal: Terminal, *, tracebacks: bool) -> Generator[None]:
    """Our log goes to stderr while a verb runs."""
    log = logging.getLogger("anykit")
    handler = LogLines(terminal, tracebacks=tracebacks)
    before, propagate = log.level, log.propagate
    log.setLevel(handler.level)
    log.propagate = False
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(before)
        log.propagate = propagate


def _forget_stdout(stdout: TextIO) -> None:
    """Nobody reads stdout any more (`| head`): what is left in its buffer must not fail when the process ends."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, stdout.fileno())
        os.close(null)
