"""What the quick run leaves to the full one."""

from collections.abc import Iterable
from typing import Any

import pytest

_PARAMETERS = type(pytest.param())


def few(count: int, cases: Iterable[Any]) -> list[Any]:
    """Leave the first cases of a parametrisation to the quick run, and mark the others `full`."""
    return [case if at < count else _full(case) for at, case in enumerate(cases)]


def _full(case: Any) -> Any:
    if isinstance(case, _PARAMETERS):
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.full))
    values = case if type(case) is tuple else (case,)  # a named tuple is one value
    return pytest.param(*values, marks=pytest.mark.full)
