"""What the quick run leaves to the full one."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(count: int, cases: Iterable[Any]) -> list[Any]:
    """Leave the first cases of a parametrisation to the quick run, and mark the others `full`."""
    return [case if at < count else _full(case) for at, case in enumerate(cases)]


def _full(case: Any) -> Any:
    if hasattr(case, "marks"):
        return pytest.param(*case.values, id=case.id, marks=(*case.marks, pytest.mark.full))
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.full)
