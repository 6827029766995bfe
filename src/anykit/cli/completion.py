"""`anykit completion`: a script for the shell, which asks this module for proposals at each Tab."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import Exit, usage
from .fields import Form
from .flags import GLOBAL, SWITCHES, TAKES_VALUE, Flags
from .invocation import Invocation
from .list import NOUNS, first_line
from .place import Place, did_you_mean, opened
from .terminal import Terminal

BASH = """\
# anykit completion for bash:  source <(anykit completion bash)
_anykit() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        [[ -n $line ]] && COMPREPLY+=("${line%%$'\\t'*}")
    done < <("${COMP_WORDS[0]}" completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
    [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -F _anykit anykit
"""

ZSH = """\
#compdef anykit
# anykit completion for zsh:  source <(anykit completion zsh)
_anykit() {
    local line
    local -a proposals
    for line in "${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && proposals+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}")
    done
    if (( $#proposals )); then
        _describe -V anykit proposals
    else
        _files
    fi
}
compdef _anykit anykit
"""

FISH = """\
# anykit completion for fish:  anykit completion fish | source
function __anykit_proposals
    set -l before (commandline -opc)
    $before[1] completion words -- $before[2..-1] (commandline -ct) 2>/dev/null
end
complete -c anykit -a '(__anykit_proposals)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
WAIT = 1.0
"""Seconds that somebody who pressed Tab waits for sources."""

Proposal = tuple[str, str]
"""A word, and what it means."""
Question = Callable[[Place], Awaitable[list[Proposal]]]


def run(
    invocation: Invocation,
    shell: Annotated[str, typer.Argument(metavar="bash|zsh|fish", help="The shell.", show_default=False)],
    words: Annotated[list[str] | None, typer.Argument(hidden=True)] = None,
) -> int:
    """Print a completion script: verbs, flags, and the names of toolkits, tools and their arguments.

    bash: source <(anykit completion bash). zsh: the same with zsh. fish: anykit completion fish | source.
    """
    if shell == "words":  # a script asks, with the words behind `anykit` as far as they are typed
        for word, help in proposals(words or [], invocation.terminal):
            invocation.terminal.write(f"{word}\t{first_line(help)}")
        return Exit.OK
    script = SCRIPTS.get(shell)
    if script is None:
        raise usage(f"there is no script for {shell!r}, only for {', '.join(SCRIPTS)}", *did_you_mean(shell, SCRIPTS))
    invocation.terminal.write(script)
    return Exit.OK


def proposals(words: Sequence[str], terminal: Terminal) -> list[Proposal]:
    """What the last of `words` may become. Never raises: somebody is typing."""
    from .program import split  # noqa: PLC0415 - the verbs' table, which names this module

    *before, typed = words or [""]
    before_verb, rest = split(before)
    if before and _takes_value(before[-1]) and not typed.startswith("-"):
        found = list(_values_of(before[-1], rest, terminal, before))
    elif not rest:
        found = _global_flags() if typed.startswith("-") else _verbs()
    elif typed.startswith("-"):
        found = [*_flags_of(rest[0])]
    else:
        found = _positional(rest[0], _bare(rest[1:]), flags_of([*before_verb, *rest[1:]]), terminal)
    return [(word, help) for word, help in found if word.startswith(typed)]


def _verbs() -> list[Proposal]:
    from .program import VERBS  # noqa: PLC0415 - as above

    return [(verb.name, verb.help) for verb in VERBS]


def _global_flags() -> list[Proposal]:
    flags = [(flag.names[0], flag.help) for flag in GLOBAL]
    return [*flags, ("--version", "The version."), ("--help", "Help.")]


def _parameters(verb: str) -> list[Any]:
    from .program import VERBS, command_of  # noqa: PLC0415 - as above

    known = next((each for each in VERBS if each.name == verb), None)
    return [] if known is None else list(command_of(known).params)


def _flags_of(verb: str) -> Iterator[Proposal]:
    for parameter in _parameters(verb):
        options = [name for name in parameter.opts if name.startswith("--")]
        if options:
            yield options[0], first_line(getattr(parameter, "help", ""))


def _takes_value(word: str) -> bool:
    own = {"--secret", "--input-json", "--kind", "--stdio", "--host", "--port", "--tls-cert", "--tls-key", "-o"}
    own |= {
        "--scope",
        "--url",
        "--name",
        "--trusted-proxy",
        "--allow-host",
        "--allow-origin",
        "--output",
        "--format",
        "--tools",
    }
    return word in TAKES_VALUE | own


def _values_of(flag: str, rest: Sequence[str], terminal: Terminal, before: Sequence[str]) -> Iterable[Proposal]:
    match flag:
        case "--color":
            return [(word, "") for word in ("auto", "always", "never")]
        case "--format":
            words = ("openai", "openai-responses", "anthropic", "gemini", "mcp", "a2e")
            return [(word, "") for word in words]
        case "--tools":
            return _asked(flags_of([*before, *rest]), terminal, _tools)
        case "--scope":
            return [("user", ""), ("project", "")]
        case "--stdio":
            return [("a2e", ""), ("mcp", "")]
        case "--kind":
            return [(word, "") for word in ("toolkit", "tool", "prompt", "resource", "source")]
        case "--secret" if len(_bare(rest[1:])) > 0:
            names = _positional("configure", _bare(rest[1:]), flags_of(before), terminal)
            return [(word.rstrip("="), help) for word, help in names]
        case _:
            return []


def _bare(words: Sequence[str]) -> list[str]:
    """The words that are neither flags nor their values."""
    found: list[str] = []
    skip = False
    for word in words:
        if skip or word == "--":
            skip = False
        elif word.startswith("-"):
            skip = _takes_value(word)
        else:
            found.append(word)
    return found


def flags_of(words: Sequence[str]) -> Flags:
    """The flags among words that are not finished yet, as far as they matter for what may follow."""
    values: dict[str, Any] = {}
    sources: list[str] = []
    fields = {name: flag.field for flag in GLOBAL for name in flag.names}
    pairs = zip(words, [*words, ""][1:], strict=True)
    for word, following in pairs:
        name, equals, value = word.partition("=")
        if name not in TAKES_VALUE or name in SWITCHES:
            continue
        value = value if equals else following
        if fields[name] == "sources":
            sources.append(value)
        elif fields[name] in ("config", "connect", "env", "data_dir", "token"):
            values[fields[name]] = value
    return Flags(**values, sources=tuple(sources), quiet=True, no_input=True, timeout=WAIT)


def _positional(verb: str, given: Sequence[str], flags: Flags, terminal: Terminal) -> list[Proposal]:
    match verb, len(given):
        case "list", 0:
            return [(noun, f"List {noun}") for noun in NOUNS]
        case "install", _:
            return _clients(given)
        case "discover", _:
            return _discovered(terminal, given)
        case "remove" | "enable" | "disable", _:
            return _entries(verb, given, flags, terminal)
        case "completion", 0:
            return [(shell, "") for shell in SCRIPTS]
        case "show", 0:
            return _asked(flags, terminal, _everything)
        case "call", 0:
            return _asked(flags, terminal, _tools)
        case "configure", 0:
            return _asked(flags, terminal, _toolkits)
        case "read", 0:
            return _asked(flags, terminal, _resources)
        case "prompt", 0:
            return _asked(flags, terminal, _prompts)
        case "login", 0:
            return _asked(flags, terminal, _servers)
        case "prompt", _:
            return _asked(flags, terminal, _prompt_arguments(given[0], given[1:]))
        case "call" | "configure", _:
            return _asked(flags, terminal, _fields(verb, given[0], given[1:]))
        case _:
            return []


def _entries(verb: str, given: Sequence[str], flags: Flags, terminal: Terminal) -> list[Proposal]:
    """What stands in the file, as far as the verb has something to do about it."""
    from .switching import file_to_edit  # noqa: PLC0415 - only who edits pays for it

    with contextlib.suppress(Exception):
        entries = file_to_edit(Invocation(flags, terminal.quietly(flags))).entries
        wanted = [
            entry
            for entry in entries
            if (
                not entry.file and entry.kind != "toolkit" if verb == "remove" else entry.enabled == (verb == "disable")
            )
        ]
        return [(entry.name, entry.kind) for entry in wanted if entry.name not in given]
    return []


def _clients(given: Sequence[str]) -> list[Proposal]:
    from anykit.app.installation import CLIENTS  # noqa: PLC0415 - only who installs pays for it

    return [(client.id, client.title) for client in CLIENTS.values() if client.id not in given]


def _discovered(terminal: Terminal, given: Sequence[str]) -> list[Proposal]:
    """Servers of other clients."""
    from anykit.app.discovery import Home, discover  # noqa: PLC0415 - as above

    with contextlib.suppress(Exception):
        found = discover(Path.cwd(), Home(Path(terminal.env.get("HOME") or Path.home()), terminal.env))
        return [(one.name, one.about) for one in found.servers if one.name not in given]
    return []


def _asked(flags: Flags, terminal: Terminal, question: Question) -> list[Proposal]:
    """Ask a place, and give nothing where that goes wrong."""
    invocation = Invocation(flags, terminal.quietly(flags))

    async def ask() -> list[Proposal]:
        async with opened(invocation) as place:
            return await question(place)

    with contextlib.suppress(Exception):
        return invocation.run(ask())
    return []


async def _tools(place: Place) -> list[Proposal]:
    return [(row.name, first_line(row.description)) for row in await place.tools()]


async def _toolkits(place: Place) -> list[Proposal]:
    return [(row.name, first_line(row.description)) for row in await place.toolkits()]


async def _resources(place: Place) -> list[Proposal]:
    return [(row.uri, row.name) for row in await place.resources() if not row.is_template]


async def _prompts(place: Place) -> list[Proposal]:
    return [(row.name, first_line(row.description)) for row in await place.prompts()]


async def _servers(place: Place) -> list[Proposal]:
    return [(row.name, row.location) for row in await place.sources() if row.kind == "mcp"]


def _prompt_arguments(name: str, given: Sequence[str]) -> Question:
    taken = {word.partition("=")[0].rstrip(":") for word in given}

    async def ask(place: Place) -> list[Proposal]:
        row = next((row for row in await place.prompts() if row.name == name), None)
        arguments = () if row is None else row.arguments
        return [
            (f"{one['name']}=", first_line(one.get("description"))) for one in arguments if one["name"] not in taken
        ]

    return ask


async def _everything(place: Place) -> list[Proposal]:
    found = [*await _toolkits(place), *await _tools(place)]
    found += [(row.name, first_line(row.description)) for row in await place.prompts()]
    found += [(row.uri, row.name) for row in await place.resources()]
    found += [(row.name, row.kind) for row in await place.sources()]
    return list(dict(found).items())


def _fields(verb: str, name: str, given: Sequence[str]) -> Question:
    taken = {word.partition("=")[0].rstrip(":") for word in given}

    async def ask(place: Place) -> list[Proposal]:
        if verb == "call":
            schema = next((row.input_schema for row in await place.tools() if row.name == name), None)
        else:
            schema = next((row.schema for row in await place.toolkits() if row.name == name), None)
        fields = [] if schema is None else Form(schema).fields
        return [
            (f"{field.name}=", first_line(field.description) or field.kind)
            for field in fields
            if field.name not in taken
        ]

    return ask
