"""The one place where numba is named: functions of the simulator, compiled, with the types they were written with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast
from zlib import crc32

from numba import njit  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType, reportAttributeAccessIssue]

from tenfold.serving.memory import BLOCK_TOKENS

_Function = TypeVar("_Function", bound=Callable[..., Any])
_njit = cast("Callable[..., Callable[[Any], Any]]", njit)
# Nothing compiled here makes an array, so references need no counting; every call would count those of all arrays it is
# given, which took nine tenths of a step's time.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "_nrt": False}
_SOURCES = ("blocks", "core", "jit", "layout", "scheduling")


def inner(function: _Function) -> _Function:
    """Compile a function that compiled functions call.

    Args:
        function: The function: numbers, arrays and named tuples of them only.

    Returns:
        The same, compiled where it is called.
    """
    # Python never calls it: without the two wrappers for that it compiles in half the time
    return cast("_Function", _njit(**_OPTIONS, no_cpython_wrapper=True, no_cfunc_wrapper=True)(function))


def entry(function: _Function) -> _Function:
    """Compile a function that Python calls, and keep the machine code beside the package, or in the user's cache.

    Args:
        function: The function.

    Returns:
        The same; its first call compiles it and everything it calls.
    """
    # numba looks for changes in the file of this function only, so the name under which the machine code is kept stands
    # for all that is compiled into it
    sources = b"".join((Path(__file__).parent / f"{name}.py").read_bytes() for name in _SOURCES)
    function.__qualname__ += f"_{crc32(sources + bytes([BLOCK_TOKENS])):08x}"
    try:
        return cast("_Function", _njit(**_OPTIONS, cache=True)(function))
    except RuntimeError:  # nowhere to write: compiled anew by each process
        return cast("_Function", _njit(**_OPTIONS)(function))
