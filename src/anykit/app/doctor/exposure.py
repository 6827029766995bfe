"""Secrets in plain text in files that git tracks, or that others can read. No value is ever shown."""

from __future__ import annotations

import math
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from anykit.capabilities import JsonObject
from anykit.runtime import Snapshot
from anykit.schema import compile_schema
from anykit.sources.documents import ENDINGS, Unreadable, read_document
from anykit.stores import has_reference

from .finding import Case, Finding

GIT_SECONDS: Final = 2.0
MAX_FILES: Final = 200
MAX_VALUES: Final = 20_000
MAX_TEXT: Final = 1024 * 1024

_KEY: Final = re.compile(
    r"(^|[_.\- ]|(?<=[a-z]))(token|secret|password|passwd|pwd|passphrase|api[_-]?key|apikey|access[_-]?key|private[_-]?key"
    r"|client[_-]?secret|credentials?|authorization|auth|bearer|cookie|dsn|license[_-]?key|x-api-key|signing[_-]?key"
    r"|encryption[_-]?key)s?$",
    re.IGNORECASE,
)
"""Keys that a secret stands under."""
_WHOLE_KEY: Final = re.compile(r"^(token|secret|password|passwd|pwd|authorization|cookie|bearer|key)$", re.IGNORECASE)
_KNOWN: Final = (
    ("an OpenAI or Anthropic key", re.compile(r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{20,}")),
    ("a GitHub token", re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})")),
    ("a GitLab token", re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}")),
    ("a Slack token", re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}")),
    ("an AWS key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a Google key", re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b")),
    ("a Google token", re.compile(r"\bya29\.[0-9A-Za-z_-]{20,}")),
    ("a Stripe key", re.compile(r"\b(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}")),
    ("a Hugging Face token", re.compile(r"\bhf_[A-Za-z0-9]{30,}")),
    ("a package registry's token", re.compile(r"\b(?:npm_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{40,})")),
    ("a SendGrid key", re.compile(r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}")),
    ("an xAI or Groq key", re.compile(r"\b(?:xai-|gsk_)[A-Za-z0-9]{30,}")),
    ("a JSON web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("a private key", re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----")),
    ("a password in a URL", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]*:(?!\$)[^\s/@${}*<>]{3,}@", re.IGNORECASE)),
    (
        "a secret in a URL",
        re.compile(
            r"[?&](?:api[_-]?key|access[_-]?token|token|secret|password|key|sig)=(?!\$)[^&\s${}*<>]{8,}", re.IGNORECASE
        ),
    ),
)
"""What is a secret wherever it stands."""
_ARGUMENT: Final = re.compile(
    r"^--?[\w-]*(?:token|secret|password|api-?key|access-?key|auth)(?P<value>=.*)?$", re.IGNORECASE
)
_PLACEHOLDER: Final = re.compile(
    r"^(<.*>|\[.*\]|\{.*\}|x+|\*+|\.+|-+|(your|my|insert|put|enter)\b.*|.*(changeme|change[_-]me|example|dummy"
    r"|placeholder|redacted|todo|goes[_-]?here|replace).*|none|null|true|false|yes|no|on|off|auto|oauth2?|basic|bearer"
    r"|\d{1,6}|test|fake|secret|password|token)$",
    re.IGNORECASE | re.DOTALL,
)
_RANDOM: Final = re.compile(r"[A-Za-z0-9+/_=.~-]{24,512}")


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in plain text, and what kind it seems to be."""

    file: Path
    key: str
    what: str


def exposure(case: Case) -> Iterator[Finding]:
    """Secrets that others can read, in the files of the configuration and in the data folder."""
    yield from _data(case)
    secrets = [secret for file in candidates(case) for secret in secrets_in(file, case.snapshot)]
    tracked = tracked_by_git({secret.file for secret in secrets})
    for secret in secrets:
        name = _shown(secret.file, case)
        if secret.file in tracked:
            yield Finding(
                "secret_in_git",
                "error",
                f"{name}: {secret.key}",
                f"holds {secret.what} in plain text, and git tracks the file",
                f"put {_reference(secret.key)} there and the value into the environment; then change it at whoever"
                " issued it, since git's history keeps it",
            )
        elif _mode(secret.file) & 0o044:
            yield Finding(
                "secret_readable",
                "warning",
                f"{name}: {secret.key}",
                f"holds {secret.what} in plain text, and others on this machine can read the file",
                f"chmod 600 {secret.file}, or put {_reference(secret.key)} there",
            )


def candidates(case: Case) -> list[Path]:
    """The files that hold the configuration: ours, clients' files that it names, dotenv files beside them."""
    config = case.config
    found: dict[Path, None] = {}
    if config.path is not None:
        found[config.path] = None
    for source in case.snapshot.sources.values():
        place = Path(source.location) if source.location and "\n" not in source.location else None
        if place is not None and place.suffix in ENDINGS:
            found[config.folder / place] = None
    for said in config.sources:
        target = said if isinstance(said, str) else said.target
        if target and "://" not in target and Path(target).suffix in ENDINGS:
            found[config.folder / Path(target).expanduser()] = None
        env_file = None if isinstance(said, str) else said.env_file
        if env_file and not has_reference(env_file):
            found[config.folder / Path(env_file).expanduser()] = None
    for folder in dict.fromkeys(file.parent for file in list(found)):
        found[folder / ".env"] = None
    return [file for file in list(found)[:MAX_FILES] if _is_regular(file)]


def secrets_in(file: Path, snapshot: Snapshot | None = None) -> list[Secret]:
    """The secrets that a file holds in plain text."""
    if file.suffix not in ENDINGS:
        return [Secret(file, key, what) for key, what in _in_dotenv(file)]
    try:
        data = read_document(file)
    except Unreadable:
        return []
    if "openapi" in data or "swagger" in data:
        return []
    declared = {} if snapshot is None else {name: one.spec.schema for name, one in snapshot.toolkits.items()}
    found = dict(_in_json(data))
    found |= {key: what for key, what in _declared(data, declared) if key not in found}
    return [Secret(file, key, what) for key, what in found.items()]


def _in_json(data: JsonObject) -> Iterator[tuple[str, str]]:
    stack: list[tuple[tuple[str, ...], Any]] = [((), data)]
    for _ in range(MAX_VALUES):
        if not stack:
            return
        path, value = stack.pop()
        if isinstance(value, dict):
            stack += [((*path, str(key)), item) for key, item in cast(JsonObject, value).items()]
        elif isinstance(value, list):
            items = cast("list[Any]", value)
            stack += [((*path, str(index)), item) for index, item in enumerate(items)]
            yield from _in_arguments(path, items)
        elif isinstance(value, str) and (what := kind_of(path, value)):
            yield ".".join(path), what


def _in_arguments(path: tuple[str, ...], items: list[Any]) -> Iterator[tuple[str, str]]:
    """`--token VALUE` and `--token=VALUE` of a command line."""
    for index, item in enumerate(items):
        found = _ARGUMENT.fullmatch(item) if isinstance(item, str) else None
        if found is None:
            continue
        after = items[index + 1] if index + 1 < len(items) else None
        value = found["value"][1:] if found["value"] else after
        if isinstance(value, str) and not value.startswith("-") and _is_value(value):
            at = index if found["value"] else index + 1
            yield ".".join((*path, str(at))), f"what {item.partition('=')[0]} takes"


def kind_of(path: tuple[str, ...], value: str) -> str:
    """What kind of secret a value seems to be, by its place and itself; nothing where it seems none."""
    if not value or len(value) > MAX_TEXT or value.startswith(("file:", "keyring:")):
        return ""
    # What stands beside a reference, and what it falls back to, is written in the file like any other text.
    text = _REFERENCE.sub(lambda found: found["default"] or "", value)
    for what, pattern in _KNOWN:
        if pattern.search(text):
            return what
    text = _SCHEME.sub("", text).strip()
    key = next((step for step in reversed(path) if not step.isdigit()), "")
    if text != _SCHEME.sub("", value).strip() or not _is_value(text) or _is_ordinary(key):
        return ""
    if _KEY.search(key) or _WHOLE_KEY.match(key):
        return f"what seems to be a secret ({key})"
    return "what looks like a random key" if _is_random(text) else ""


_REFERENCE: Final = re.compile(r"\$?\{[A-Za-z_][\w:./~-]*?(?::-(?P<default>[^{}]*))?\}|\$[A-Za-z_]\w*")
_SCHEME: Final = re.compile(r"^(bearer|basic|token)\s+", re.IGNORECASE)


_ORDINARY: Final = re.compile(
    r"(url|uri|endpoint|type|scopes?|method|file|path|dir|name|var|header|limit|max|min|count|budget|length|size|ttl|expiry"
    r"|id|kind|mode|description|title|pattern|algorithm|provider|server|flow|digest|hash|sha256|version|env|helper"
    r"|command|icon_svg)$",
    re.IGNORECASE,
)


def _is_ordinary(key: str) -> bool:
    return _ORDINARY.search(key) is not None or key.lower().startswith(("max", "min", "num", "use_", "is_", "has_"))


def _is_value(text: str) -> bool:
    text = text.strip()
    return len(text) >= 4 and not has_reference(text) and _PLACEHOLDER.match(text) is None


def _is_random(text: str) -> bool:
    """Whether it has more in it than words have: letters and digits mixed, and many of them."""
    if not _RANDOM.fullmatch(text) or ("/" in text.strip("/") and "." in text):
        return False
    kinds = sum((any(c.islower() for c in text), any(c.isupper() for c in text), any(c.isdigit() for c in text)))
    if re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", text, re.IGNORECASE):
        return False
    if re.fullmatch(r"[0-9a-fA-F]+", text):
        return len(text) in (32, 40, 48, 64, 96, 128) and any(c.isalpha() for c in text)
    counts = Counter(text)
    bits = -sum(n / len(text) * math.log2(n / len(text)) for n in counts.values())
    digits = sum(c.isdigit() for c in text)
    return kinds == 3 and bits >= 4.0 and digits >= 3 and not re.search(r"[a-z]{8,}", text)


def _declared(data: JsonObject, schemas: Mapping[str, JsonObject]) -> Iterator[tuple[str, str]]:
    """Fields that a toolkit's own schema calls secret, as far as they hold a value."""
    tables: Any = data.get("toolkits")
    if not isinstance(tables, dict):
        return
    for name, table in cast("dict[str, Any]", tables).items():
        config: Any = cast("dict[str, Any]", table).get("config") if isinstance(table, dict) else None
        schema = schemas.get(name)
        if schema is None or not isinstance(config, dict):
            continue
        secrets = compile_schema(schema).secrets
        for tokens, value in _leaves(cast(JsonObject, config)):
            if secrets.prefix(tokens) is not None and not has_reference(value) and _is_value(value):
                yield ".".join(("toolkits", name, "config", *map(str, tokens))), "a secret of that toolkit"


def _leaves(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, dict):
        for key, item in cast(JsonObject, value).items():
            yield from _leaves(item, (*where, key))
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[Any]", value)):
            yield from _leaves(item, (*where, index))
    elif isinstance(value, str):
        yield where, value


def _in_dotenv(file: Path) -> Iterator[tuple[str, str]]:
    try:
        with file.open("rb") as stream:
            lines = stream.read(MAX_TEXT).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines[:MAX_VALUES]:
        name, equals, value = line.removeprefix("export ").partition("=")
        value = value.strip().strip("\"'")
        if equals and (what := kind_of((name.strip(),), value)):
            yield name.strip(), what


def tracked_by_git(files: Iterable[Path]) -> set[Path]:
    """Those that git tracks. Raises `GitSilent` where it cannot be asked."""
    tracked: set[Path] = set()
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        real = file.resolve()
        by_folder.setdefault(real.parent, []).append(file)
    for folder, members in by_folder.items():
        if not any((place / ".git").exists() for place in (folder, *folder.parents)):
            continue
        names = {member.resolve().name: member for member in members}
        for name in _git(folder, sorted(names)):
            if name in names:
                tracked.add(names[name])
    return tracked


class GitSilent(Exception):
    """Git could not be asked; the text says why."""


def _git(folder: Path, names: list[str]) -> list[str]:
    # A repository may come from anywhere: nothing that its own settings name is run.
    command = ["git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "ls-files", "-z", "--", *names]
    keep = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            timeout=GIT_SECONDS,
            stdin=subprocess.DEVNULL,
            env={**keep, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            check=False,
        )
    except FileNotFoundError:
        raise GitSilent("git is not installed") from None
    except subprocess.TimeoutExpired:
        raise GitSilent(f"git did not answer within {GIT_SECONDS:g} s") from None
    except OSError as error:
        raise GitSilent(f"git cannot be run: {error.strerror}") from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise GitSilent(f"git says: {said[-1][:200] if said else f'exit code {done.returncode}'}")
    return [name for name in done.stdout.decode("utf-8", "surrogateescape").split("\0") if name]


# the data folder


def _data(case: Case) -> Iterator[Finding]:
    folder = case.data_dir
    if folder is None or not folder.is_dir():
        return
    if _mode(folder) & 0o077:
        inside = [name for name in ("anykit.sqlite3", "secret.key") if (folder / name).exists()]
        if inside and any(_mode(folder / name) & 0o077 for name in inside):
            yield Finding(
                "data_readable",
                "error",
                str(folder),
                f"others can read {' and '.join(inside)}",
                f"chmod 700 {folder} && chmod 600 {' '.join(str(folder / name) for name in inside)}",
            )
            return
    key = folder / "secret.key"
    if key.exists() and _mode(key) & 0o077:
        yield Finding("data_readable", "error", str(key), "others can read the key of the secrets", f"chmod 600 {key}")


def _mode(file: Path) -> int:
    try:
        return file.stat().st_mode & 0o777
    except OSError:
        return 0


def _is_regular(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False


def _reference(key: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", key.rpartition(".")[2] or key).strip("_").upper() or "SECRET"
    name = name if not name[0].isdigit() else "SECRET"
    return f"${{{name}}}"


def _shown(file: Path, case: Case) -> str:
    try:
        return str(file.resolve().relative_to(case.config.folder.resolve()))
    except ValueError:
        return str(file)
