"""What is behind a callable: its name, its docstring, where its annotations were written, whether it is awaited."""

from __future__ import annotations

import builtins
import functools
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType, MethodType
from typing import Any, cast

Function = Callable[..., Any]


def unwrapped(fn: Any) -> Any:
    """The function that runs: inside partials, bound and static methods; a callable object's `__call__`."""
    while True:
        if isinstance(fn, functools.partial):
            fn = cast("functools.partial[Any]", fn).func
        elif isinstance(fn, staticmethod | classmethod | MethodType):
            fn = cast(Any, fn).__func__
        elif not inspect.isroutine(fn) and not inspect.isclass(fn) and inspect.isroutine(_call_of(fn)):
            fn = _call_of(fn)
        else:
            return fn


def _call_of(value: Any) -> Any:
    return getattr(cast(Any, type(value)), "__call__", None)  # noqa: B004 - the method itself is wanted


def written(fn: Any) -> Any:
    """The function whose annotations are read: decorators with `functools.wraps` are looked through."""
    inner = unwrapped(fn)
    return unwrapped(inspect.unwrap(inner, stop=lambda f: hasattr(f, "__signature__")))


def is_async(fn: Any) -> bool:
    """Whether calling it gives something to await: also through partials, bound methods and an async `__call__`."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(unwrapped(fn))


def name_of(fn: Any) -> str:
    """A name for a callable, whatever it is: a lambda is `lambda`, an object has its class's."""
    inner = fn
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    name = getattr(inner, "__name__", None)
    if not isinstance(name, str) or not name:
        name = type(inner).__name__
    return re.sub(r"[^\w-]", "", name) or "function"


def label_of(fn: Any) -> str:
    """How messages name it."""
    inner = unwrapped(fn)
    name = getattr(inner, "__qualname__", None) or name_of(fn)
    return f"{name}()"


def docstrings_of(fn: Any) -> list[str]:
    """Its docstring, and behind it a callable object's class's; never the one of `functools.partial`."""
    inner = fn
    while isinstance(inner, functools.partial):
        inner = cast("functools.partial[Any]", inner).func
    if inspect.isroutine(inner) or inspect.isclass(inner) or isinstance(inner, staticmethod | classmethod):
        texts = [inspect.getdoc(cast(Any, inner))]
    else:
        kind = cast("type[Any]", type(inner))
        own = inspect.getdoc(_call_of(inner))
        texts = [None if own == type.__call__.__doc__ else own, None if _is_generated(kind) else inspect.getdoc(kind)]
    return [text for text in texts if text]


def _is_generated(kind: type[Any]) -> bool:
    """A dataclass without a docstring gets its signature as one."""
    return (kind.__doc__ or "").startswith(f"{kind.__name__}(")


def namespaces(fn: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The globals and the locals in which its annotations were written, as far as they can still be seen.

    Locals are those of the enclosing functions, while they run or where the function closes over them, and the class's.
    """
    function = written(fn)
    if inspect.isclass(function):
        maker = function.__init__ if isinstance(function.__init__, FunctionType) else function.__new__
        function = maker if isinstance(maker, FunctionType) else function
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    found: object = getattr(function, "__globals__", None)
    globals_ = cast("dict[str, Any]", found) if isinstance(found, dict) else dict(vars(module or builtins))
    return globals_, _locals(fn, function, globals_)


def _locals(fn: Any, function: Any, globals_: dict[str, Any]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    qualname = str(getattr(function, "__qualname__", ""))
    scopes = _enclosing(qualname)
    if scopes:
        for frame in reversed(_frames(globals_)):
            if frame.f_code.co_qualname in scopes:
                names.update(frame.f_locals)
    code = getattr(function, "__code__", None)
    cells = getattr(function, "__closure__", None) or ()
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            names[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    owner = _owner(fn)
    if owner is not None:
        for base in reversed(owner.__mro__):
            names.update({key: value for key, value in vars(base).items() if inspect.isclass(value)})
        names.setdefault(owner.__name__, owner)
    for parameter in getattr(function, "__type_params__", ()):
        names[parameter.__name__] = parameter
    return names


def visible_names(fn: Any) -> Mapping[str, Any]:
    """Every local name of running frames of its module, innermost last: where nothing else resolves an annotation."""
    globals_, _ = namespaces(fn)
    names: dict[str, Any] = {}
    for frame in reversed(_frames(globals_)):
        names.update(frame.f_locals)
    return names


def _enclosing(qualname: str) -> set[str]:
    """`a.<locals>.B.c` stands in `a.<locals>.B` and in `a`."""
    scopes: set[str] = set()
    while "." in qualname:
        qualname = qualname.rpartition(".")[0]
        scopes.add(qualname.removesuffix(".<locals>"))
    return scopes


def _frames(globals_: dict[str, Any]) -> list[FrameType]:
    """Running frames of the same module, innermost first; the module's own is left out."""
    frames: list[FrameType] = []
    frame: FrameType | None = inspect.currentframe()
    while frame is not None:
        if frame.f_globals is globals_ and frame.f_locals is not globals_:
            frames.append(frame)
        frame = frame.f_back
    return frames


def _owner(fn: Any) -> type[Any] | None:
    """The class of a bound method or a callable object."""
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn).func
    if isinstance(fn, MethodType):
        owner = fn.__self__
        return owner if isinstance(owner, type) else type(owner)
    if inspect.isclass(fn):
        return cast("type[Any]", fn)
    if inspect.isroutine(fn) or isinstance(fn, staticmethod | classmethod):
        return None
    return cast("type[Any]", type(fn))
