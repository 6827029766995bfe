"""`anykit configure`: a toolkit's configuration, checked, applied and kept; its secrets never on the line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

import typer

from anykit.app import Workbench
from anykit.app.inputs import Asked, asked_by
from anykit.capabilities import CapabilityError, InvalidInput, Json, JsonObject
from anykit.runtime import UnknownToolkit
from anykit.schema import compile_schema, merge_masked
from anykit.stores import RecordError, SecretError, has_reference

from .arguments import Assignment, assignments, filled, path_of, unknown_field
from .errors import CommandError, Exit, not_found, usage
from .failures import of_capability
from .fields import Field, Form
from .invocation import Invocation
from .local import configuration, data_folder, resolved_config, sources_of
from .place import ToolkitRow, did_you_mean, opened, variable_of
from .template import template_of
from .terminal import Terminal

TRIES = 3
"""How often one field is asked for before that is given up."""


def run(
    invocation: Invocation,
    toolkit: Annotated[
        str,
        typer.Argument(
            metavar="TOOLKIT|SERVER",
            help="The toolkit's name, or that of an MCP server which has to be told something (`inputs`).",
            show_default=False,
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="k=v|k:=JSON",
            help="Fields. k=v is read as the schema says; k:=JSON is JSON; a.b=v reaches into an object; a name that comes"
            " again makes a list. A value may be a reference: ${VAR}, file:PATH, keyring:SERVICE/NAME.",
            show_default=False,
        ),
    ] = None,
    secret: Annotated[
        list[str] | None,
        typer.Option(
            "--secret",
            metavar="FIELD",
            help="Ask for this one without showing it; without a terminal it is TOOLKIT_FIELD of the environment, else a"
            " line of stdin.",
            show_default=False,
        ),
    ] = None,
    from_env: Annotated[
        bool, typer.Option("--from-env", help="Take each field that is set as TOOLKIT_FIELD in the environment.")
    ] = False,
    template: Annotated[
        bool, typer.Option("--template", help="Print a commented block for the file instead; nothing is changed.")
    ] = False,
    unset: Annotated[bool, typer.Option("--unset", help="Take the configuration away instead.")] = False,
) -> int:
    """Configure a toolkit, or tell an MCP server what it asks for, and keep that for later.

    What is typed goes over what was kept before. On a terminal it asks for what is missing, field by field. It holds for
    everyone whom a host with this data folder serves; with --connect, for this host, at each connect.
    """
    wish = Wish(assignments(values or []), tuple(secret or ()), from_env)
    if (template or unset) and (values or secret or from_env or (template and unset)):
        raise usage("--template and --unset stand alone")
    return invocation.run(_configure(invocation, toolkit, wish, template=template, unset=unset))


@dataclass(frozen=True, slots=True)
class Wish:
    """What the line says."""

    assignments: Sequence[Assignment]
    secrets: tuple[str, ...]
    from_env: bool

    @property
    def says_something(self) -> bool:
        """Whether there is anything to go by, so that only what is missing is asked for."""
        return bool(self.assignments or self.secrets or self.from_env)


async def _configure(invocation: Invocation, name: str, wish: Wish, *, template: bool, unset: bool) -> int:
    terminal = invocation.terminal
    if (asked := asked_of(invocation, name)) is not None:
        if template:
            raise usage("--template is for toolkits; what a server is told goes to the encrypted store")
        return _say_told(terminal, name, await tell(invocation, asked, wish, unset=unset), unset=unset)
    try:
        async with opened(invocation, wanted=name, configuring=True) as place:
            toolkits = await place.toolkits()
            row = next((one for one in toolkits if one.name == name), None)
            if row is None:
                raise not_found(
                    f"there is no toolkit {name!r}",
                    *did_you_mean(name, [one.name for one in toolkits]),
                    ("look", "anykit list toolkits"),
                    code="unknown_toolkit",
                )
            if template:
                terminal.write(template_of(row))
                return Exit.OK
            if unset:
                return _say_unset(terminal, name, await place.unconfigure(name))
            stored = await place.stored(name)
            config = Asking(terminal, row, wish, place.said(name)).configuration(stored)
            answer = await place.configure(row, config)
    except UnknownToolkit as error:
        raise not_found(error.message, code="unknown_toolkit") from None
    except InvalidInput as error:
        raise of_capability(error, code="invalid_config") from None
    except CapabilityError as error:
        raise _refused(error) from None
    if terminal.as_json:
        terminal.write_json({"toolkit": name, "status": answer.status, "message": answer.message})
    if answer.status == "partial":
        terminal.warn(f"{name}: {answer.message}")
    elif not terminal.as_json:
        terminal.note(f"{name}: {answer.message}")
    return Exit.OK


def asked_of(invocation: Invocation, name: str) -> Asked | None:
    """What an MCP server of that name has to be told; None where there is none, or where it asks for nothing."""
    if invocation.flags.connect:
        return None
    config, named = sources_of(invocation, configuration(invocation), ())
    return asked_by([*config.sources, *named], config.folder, invocation.terminal.env).get(name)


async def tell(invocation: Invocation, asked: Asked, wish: Wish, *, unset: bool) -> bool:
    """Ask for what a server has to be told, and keep it encrypted; False where there was nothing to take away.

    Nothing is started. Raises `CommandError`.
    """
    config = configuration(invocation)
    bench = Workbench(
        config=config.model_copy(update={"sources": [], "agents": {}}), data_dir=data_folder(invocation, config)
    )
    try:
        stored = (
            (await bench.told.stored()).get(asked.server, {}) if (bench.data_dir / "anykit.sqlite3").exists() else {}
        )
        if unset:
            return bool(stored) and await bench.told.forget(asked.server)
        row = ToolkitRow(
            name=asked.server,
            alias="",
            description="",
            category="",
            tags=(),
            icon_svg=None,
            schema=asked.schema,
            tools=(),
            configured=bool(stored),
            version="",
            source=asked.server,
        )
        given = Asking(invocation.terminal, row, wish, {}, "server").configuration(stored)
        faults = compile_schema(asked.schema).faults(resolved_config(given, invocation.terminal.env, config.folder))
        if faults:
            raise InvalidInput("the configuration does not fit its schema", faults)
        await bench.told.save(asked.server, asked.schema, given)
    except InvalidInput as error:
        raise of_capability(error, code="invalid_config") from None
    except (RecordError, SecretError) as error:
        raise CommandError(
            f"what {asked.server} was told cannot be kept: {error}",
            code="not_kept",
            fixes=[("keep it elsewhere", "--data-dir DIR")],
        ) from None
    finally:
        await bench.records.close()
    return True


def _say_told(terminal: Terminal, name: str, changed: bool, *, unset: bool) -> int:
    if unset:
        return _say_unset(terminal, name, changed, "server")
    if terminal.as_json:
        terminal.write_json({"server": name, "status": "ok", "message": "Server configured successfully"})
    else:
        terminal.note(f"{name}: configured; look:  anykit show {name}")
    return Exit.OK


def _refused(error: CapabilityError) -> CommandError:
    """A toolkit that could not be set up has a bad configuration."""
    said = of_capability(error)
    if said.exit == Exit.FAILED:
        said.exit = Exit.USAGE
    return said


def _say_unset(terminal: Terminal, name: str, was_set: bool, what: str = "toolkit") -> int:
    if terminal.as_json:
        terminal.write_json({what: name, "configured": False, "changed": was_set})
    else:
        terminal.note(f"{name}: no longer configured" if was_set else f"{name}: was not configured")
    return Exit.OK


@dataclass
class Asking:
    """Puts a configuration together from the line, the environment, stdin and whoever sits at the terminal."""

    terminal: Terminal
    row: ToolkitRow
    wish: Wish
    said: JsonObject
    """What the file says: nobody is asked for that, and nothing that is typed changes it."""
    what: str = "toolkit"
    """What is configured, in a word."""
    form: Form = field(init=False)

    def __post_init__(self) -> None:
        self.form = Form(self.row.schema)

    def configuration(self, stored: JsonObject) -> JsonObject:
        """The whole of it. Raises `CommandError` where something is missing that nobody can be asked for."""
        self._check_names()
        config = filled(self.form, self.wish.assignments, stored)
        if self.wish.from_env:
            for one in self.form.fields:
                self._from_environment(config, one)
        for typed in self.wish.secrets:
            self._take_secret(config, typed)
        # A mask that was typed or copied from a list never becomes the secret.
        config = merge_masked(self.row.schema, config, stored)
        if self.terminal.interactive and not self.wish.says_something:
            for one in self.form.fields:
                if one.path[0] not in self.said:
                    self._ask(config, one)
            return config
        missing = self._missing(config)
        for one in missing:
            self._from_environment(config, one)
        missing = self._missing(config)
        if missing and not self.terminal.interactive:
            raise self._too_little(missing)
        for one in missing:
            self._ask(config, one)
        return config

    def _check_names(self) -> None:
        what = f"{self.what} {self.row.name!r}"
        for one in self.wish.assignments:
            path = path_of(self.form, one.name)
            if not self.form.takes(path):
                raise unknown_field(self.form, one.name, what)
            if path[0] in self.said:
                self.terminal.warn(f"{path[0]} is set in the file too, and the file wins")
            if self.form.is_secret(path) and not has_reference(one.text) and one.text not in ("", "null"):
                self.terminal.warn(
                    f"{one.name} is a secret, and a command line is seen by others and kept in the shell's history;"
                    f" better: --secret {one.name}"
                )
        for typed in self.wish.secrets:
            name = typed.partition("=")[0]
            if not self.form.takes(path_of(self.form, name)):
                raise unknown_field(self.form, name, what)

    # secrets

    def _take_secret(self, config: JsonObject, typed: str) -> None:
        name, given, value = typed.partition("=")
        path = path_of(self.form, name)
        if given and value != "-":
            self.terminal.warn(f"{name} is on the command line, where others see it; better: --secret {name}")
            self._put(config, path, value)
            return
        variable = variable_of(self.row.name, *path)
        if not given and self.terminal.interactive:
            text = self.terminal.ask_secret(f"{name} (not shown): ")
        elif not given and (value := self.terminal.env.get(variable, "")):
            text = value
            self.terminal.note(f"{name} is taken from {variable}")
        elif self.terminal.stdin_is_terminal:
            text = None
        else:
            text = self.terminal.read_line()
        if not text:
            raise self._too_little([self.form.find(name) or Field(path, "string", True, True, "")])
        self._put(config, path, literal(text, name))

    def _from_environment(self, config: JsonObject, one: Field) -> None:
        variable = variable_of(self.row.name, *one.path)
        value = self.terminal.env.get(variable)
        if not value:
            return
        self._put(config, one.path, literal(self.form.value(one.path, value), one.name))
        self.terminal.note(f"{one.name} is taken from {variable}")

    def _put(self, config: JsonObject, path: tuple[str, ...], value: Json) -> None:
        config.update(laid_over(config, path, value))

    # what is missing

    def _missing(self, config: JsonObject) -> list[Field]:
        return [one for one in self.form.fields if one.required and not _has({**config, **self.said}, one.path)]

    def _too_little(self, missing: Sequence[Field]) -> CommandError:
        named = ", ".join(f"{one.name!r} (secret)" if one.secret else repr(one.name) for one in missing)
        words = [f"--secret {one.name}" if one.secret else one.placeholder for one in missing]
        variables = " ".join(f"{variable_of(self.row.name, *one.path)}=..." for one in missing)
        command = " ".join(["anykit configure", shlex.quote(self.row.name), *words])
        return CommandError(
            f"{self.what} {self.row.name!r} needs {named}",
            code="config_missing",
            exit=Exit.CREDENTIALS,
            fixes=[("set it", f"{command}      or   export {variables}")],
        )

    def _ask(self, config: JsonObject, one: Field) -> None:
        """Ask for one field until what comes fits it; nothing keeps what there is."""
        has = _has(config, one.path)
        about = [one.kind, *(["secret"] if one.secret else []), *(["required"] if one.required else [])]
        if one.description:
            self.terminal.note(f"{one.name}: {one.description}")
        kept = " [kept]" if has and one.secret else f" [{_shown(_at(config, one.path))}]" if has else _default(one)
        question = f"{one.name} ({', '.join(about)}){kept}: "
        for _ in range(TRIES):
            text = (self.terminal.ask_secret if one.secret else self.terminal.ask)(question).strip()
            if not text and (has or not one.required):
                return
            faults = self._faults(one, text)
            if not faults:
                value = self.form.value(one.path, text)
                self._put(config, one.path, value)
                return
            self.terminal.warn("; ".join(faults))
        raise usage(f"{one.name} was not answered with what it takes ({one.kind})", code="invalid_config")

    def _faults(self, one: Field, text: str) -> list[str]:
        """What is wrong with an answer, as far as the field alone can say."""
        if not text:
            return [f"{one.name} is required"]
        if has_reference(text):
            return []  # what it means is checked with the whole
        config: JsonObject = {}
        self._put(config, one.path, self.form.value(one.path, text))
        pointer = "".join(f"/{name}" for name in one.path)
        found = compile_schema(self.row.schema).faults(config)
        return [
            fault["message"] for fault in found if fault["path"] == pointer or fault["path"].startswith(f"{pointer}/")
        ]


def literal(value: Json, name: str) -> Json:
    """A value that is not to be read for references: it came from a variable or from stdin."""
    if not isinstance(value, str):
        return value
    escaped = value.replace("${", "$${")
    if has_reference(escaped):
        raise usage(f"the value of {name} reads like a reference; keep it in a file and write {name}=file:PATH")
    return escaped


def laid_over(config: Mapping[str, Any], path: tuple[str, ...], value: Json) -> JsonObject:
    """A copy of `config` with `value` at `path`."""
    first, *rest = path
    if rest:
        inner = config.get(first)
        value = laid_over(cast(JsonObject, inner) if isinstance(inner, dict) else {}, tuple(rest), value)
    return {**config, first: value}


def _has(config: Json, path: tuple[str, ...]) -> bool:
    return _at(config, path) is not None


def _at(config: Json, path: tuple[str, ...]) -> Json:
    for name in path:
        if not isinstance(config, dict) or name not in config:
            return None
        config = cast(JsonObject, config)[name]
    return config


def _default(one: Field) -> str:
    return f" [{_shown(one.default)}]" if one.has_default and one.default is not None and not one.secret else ""


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
