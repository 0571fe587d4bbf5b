"""The p99 runbook: why latency doubled with no model change, from the logs, in seven steps.

Its functions need numpy, which the extra ``serving`` brings; it is asked for at the first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.extras import need

if TYPE_CHECKING:
    from tenfold.latency.answers import Diagnosis
    from tenfold.latency.comparing import Comparison, compare
    from tenfold.latency.diagnosis import Diagnoses, diagnose

_HOMES = {
    "Comparison": "comparing",
    "Diagnoses": "diagnosis",
    "Diagnosis": "answers",
    "compare": "comparing",
    "diagnose": "diagnosis",
}

__all__ = ["Comparison", "Diagnoses", "Diagnosis", "compare", "diagnose"]


def __getattr__(name: str) -> object:
    """Load a public name at its first use.

    Args:
        name: The name.

    Returns:
        What it stands for.

    Raises:
        AttributeError: There is no such name.
        MissingExtraError: numpy is not installed.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    need("numpy", what="The runbook", extra="serving")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
