"""A simulator of serving engines, step by step: token budget, blocks of KV cache, preemption, prefixes, worker pools.

Its functions need numpy and numba, which the extra ``serving`` brings; they are asked for at the first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.extras import need

if TYPE_CHECKING:
    from tenfold.serving.simulator.arrivals import Arrivals, from_database, from_trace, repeated, steady, timed
    from tenfold.serving.simulator.budgets import Budgets, token_budgets
    from tenfold.serving.simulator.result import Simulation
    from tenfold.serving.simulator.simulating import Patience, Pools, simulate

_HOMES = {
    "Arrivals": "arrivals",
    "Budgets": "budgets",
    "Patience": "simulating",
    "Pools": "simulating",
    "Simulation": "result",
    "from_database": "arrivals",
    "from_trace": "arrivals",
    "repeated": "arrivals",
    "simulate": "simulating",
    "steady": "arrivals",
    "timed": "arrivals",
    "token_budgets": "budgets",
}

__all__ = [
    "Arrivals",
    "Budgets",
    "Patience",
    "Pools",
    "Simulation",
    "from_database",
    "from_trace",
    "repeated",
    "simulate",
    "steady",
    "timed",
    "token_budgets",
]


def __getattr__(name: str) -> object:
    """Load a public name at its first use.

    Args:
        name: The name.

    Returns:
        What it stands for.

    Raises:
        AttributeError: There is no such name.
        MissingExtraError: numpy or numba is not installed.
    """
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    need("numpy", "numba", what="The simulator", extra="serving")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
