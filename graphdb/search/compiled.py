"""Functions that Numba compiles, and whose machine code it keeps: in `__pycache__`, or where it may write.

Numba takes kept code for current as long as the file of the function has not changed. But the code of a
function contains what it calls and the constants it names, and these may come from other modules. So here
the code also depends on the files of all modules whose compiled functions a module imports, on theirs in
turn, and on the values of its globals. An update of the program can then never run code of before.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
    UserWideCacheLocator,
)
from numba.extending import is_jitted

__all__ = ["compiled"]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_stamps: dict[str, str] = {}  # of the modules, by their files


def compiled(**options: Any) -> Callable[[_Function], _Function]:
    """`numba.njit` with these options, and with the compiled code kept.

    What the function uses of other modules must be imported above it.
    """

    def decorate(function: _Function) -> _Function:
        dispatcher: Any = numba.njit(**options)(function)
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
        return cast(_Function, dispatcher)

    return decorate


def _stamp(module: dict[str, Any]) -> str:
    """Of a module, given by its globals: its source, and what its functions take from others."""
    file = module["__file__"]
    if file not in _stamps:
        digest = hashlib.sha256(Path(file).read_bytes())
        for name, value in sorted(module.items()):
            if not name.startswith("__"):
                digest.update(f"{name} {_content(file, value)}\n".encode())
        _stamps[file] = digest.hexdigest()
    return _stamps[file]


def _content(file: str, value: Any) -> str:
    """What a global adds: nothing if it is of the module's own source, or cannot go into compiled code."""
    if isinstance(value, bool | int | float | str | bytes):
        return repr(value)
    if isinstance(value, tuple):
        return ",".join(_content(file, member) for member in value)
    if isinstance(value, np.ndarray):
        return hashlib.sha256(value.tobytes()).hexdigest()
    if is_jitted(value) and value.py_func.__globals__["__file__"] != file:
        return _stamp(value.py_func.__globals__)
    return ""


class _Stamped:
    """Numba's locators say where code is kept and what it depends on; this changes the latter."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)  # type: ignore[call-arg]
        self._module = function.__globals__

    def get_source_stamp(self) -> str:
        return _stamp(self._module)


class _Chosen(_Stamped, UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR."""


class _Beside(_Stamped, InTreeCacheLocator):
    """`__pycache__`."""


class _OfUser(_Stamped, UserWideCacheLocator):
    """For a program that its user may not write to."""


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Chosen, _Beside, _OfUser]  # noqa: RUF012


class _Cache(FunctionCache):
    _impl_class = _CacheImpl
