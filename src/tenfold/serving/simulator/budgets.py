"""Which token budget a step should have: what each does to stalls of short requests and to the wait of long prompts."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple, Unpack

import numpy as np

from tenfold.errors import ServingError
from tenfold.serving.memory import Deployment
from tenfold.serving.simulator.arrivals import Arrivals
from tenfold.serving.simulator.layout import Floats
from tenfold.serving.simulator.result import milliseconds
from tenfold.serving.simulator.simulating import Options, simulate

USUAL = (512, 1024, 2048, 4096, 8192, 16_384)
# Requests up to this quantile of prompt lengths are short, from that on long.
SHORT, LONG = 0.5, 0.9
# Budgets whose goodput differs by less serve equally many.
_ALIKE = 0.001


class Budget(NamedTuple):
    """What a budget does; times in seconds.

    Args:
        budget: Tokens a step.
        itl_short_p99_s: Time between tokens of requests with short prompts, 99th percentile.
        itl_short_max_s: Its maximum: the longest stall.
        ttft_short_p95_s: Time to first token of requests with short prompts, 95th percentile.
        ttft_long_p95_s: Of those with long prompts.
        ttft_p95_s: Of all.
        tpot_p95_s: Time per output token, 95th percentile over all requests with two tokens or more.
        goodput_ratio: Requests that keep both bounds; None without bounds.
        tokens_per_s: Output tokens a second.
        preemptions: Requests that had to start again.
        keeps: Whether both percentiles are within the bounds; None without bounds.
    """

    budget: int
    itl_short_p99_s: float
    itl_short_max_s: float
    ttft_short_p95_s: float
    ttft_long_p95_s: float
    ttft_p95_s: float
    tpot_p95_s: float
    goodput_ratio: float | None
    tokens_per_s: float
    preemptions: int
    keeps: bool | None

    def as_dict(self) -> dict[str, Any]:
        """Give plain values for JSON: times in ms, NaN as None.

        Returns:
            The fields, with ``_ms`` for ``_s``.
        """
        return {
            (f"{name.removesuffix('_s')}_ms" if _is_time(name) else name): (
                milliseconds(value) if _is_time(name) else value
            )
            for name, value in self._asdict().items()
        }


class Budgets(NamedTuple):
    """A sweep over token budgets.

    Args:
        rows: By budget, ascending.
        recommended: The budget to take; None where none is better than the others by what was asked.
        why: One sentence.
        short_tokens: Prompts up to this length count as short.
        long_tokens: Prompts from this length on count as long.
    """

    rows: tuple[Budget, ...]
    recommended: int | None
    why: str
    short_tokens: int
    long_tokens: int


def token_budgets(
    one: Deployment,
    arrivals: Arrivals,
    budgets: Iterable[int] = USUAL,
    *,
    max_num_seqs: int,
    ttft_slo_s: float | None = None,
    tpot_slo_s: float | None = None,
    **more: Unpack[Options],
) -> Budgets:
    """Simulate the same requests with several token budgets.

    A smaller budget cuts prompts finer: decodes wait less for them, so the stalls of short requests shrink, and long
    prompts wait longer. Taken is, of the budgets whose 95th percentiles keep the bounds, the one by which most requests
    keep them; of equals the one with the smallest stalls.

    Args:
        one: A replica.
        arrivals: The requests.
        budgets: Budgets to try; those below ``max_num_seqs`` are tried with as many sequences as they have tokens.
        max_num_seqs: Requests under way on a replica at most.
        ttft_slo_s: Bound of the time to the first token.
        tpot_slo_s: Bound of the time an output token.
        more: What else ``simulate`` takes.

    Returns:
        A row a budget, and the recommendation.

    Raises:
        ServingError: There is no budget to try, or a simulation is impossible.
    """
    tried = sorted(set(budgets))
    if not tried or tried[0] < 1:
        raise ServingError(f"budgets {tried}: at least one positive number is needed")
    lengths = arrivals.input_tokens
    short, long = (int(np.quantile(lengths, at, method="nearest")) for at in (SHORT, LONG))
    rows: list[Budget] = []
    for budget in tried:
        out = simulate(
            one,
            arrivals,
            budget=budget,
            max_num_seqs=min(max_num_seqs, budget),
            groups=(lengths <= short).astype(np.int64),
            **more,
        )
        ttft_s, prompts = out.ttft_s, out.requests["input"]
        tpot_s = out.tpot_s[~np.isnan(out.tpot_s)]
        ttft_p95_s = float(np.quantile(ttft_s, 0.95))
        tpot_p95_s = float(np.quantile(tpot_s, 0.95)) if tpot_s.size else math.nan
        bounds = [(ttft_p95_s, ttft_slo_s), (tpot_p95_s, tpot_slo_s)]
        set_bounds = [(value, bound) for value, bound in bounds if bound is not None]
        rows.append(
            Budget(
                budget=budget,
                itl_short_p99_s=out.itl_s(0.99, 1),
                itl_short_max_s=out.itl_s(1.0, 1),
                ttft_short_p95_s=_quantile(ttft_s[prompts <= short]),
                ttft_long_p95_s=_quantile(ttft_s[prompts >= long]),
                ttft_p95_s=ttft_p95_s,
                tpot_p95_s=tpot_p95_s,
                goodput_ratio=out.goodput_ratio(ttft_slo_s, tpot_slo_s),
                tokens_per_s=out.tokens_per_s,
                preemptions=int(out.tally["preempted"][0]),
                keeps=not any(value > bound for value, bound in set_bounds) if set_bounds else None,
            )
        )
    recommended, why = _choose(rows)
    return Budgets(tuple(rows), recommended, why, short, long)


def _is_time(name: str) -> bool:
    return name.endswith("_s") and name != "tokens_per_s"


def _quantile(seconds: Floats) -> float:
    return float(np.quantile(seconds, 0.95)) if seconds.size else math.nan


def _choose(rows: list[Budget]) -> tuple[int | None, str]:
    if rows[0].keeps is None:
        return None, "no service level is given, so none is better: a smaller budget stalls less, a larger waits less"
    most = max(row.goodput_ratio or 0.0 for row in rows)
    keeping = [row for row in rows if row.keeps]
    if not keeping:
        nearest = next(row for row in rows if row.goodput_ratio == most)
        return None, (
            f"no budget keeps the service levels at the 95th percentile; at best {most:.1%} of requests keep them, "
            f"with {nearest.budget}: add replicas, or a faster GPU"
        )
    best = max(row.goodput_ratio or 0.0 for row in keeping)
    alike = [row for row in keeping if (row.goodput_ratio or 0.0) >= best - _ALIKE]
    chosen = min(alike, key=lambda row: (_known(row.itl_short_max_s), row.budget))
    return chosen.budget, (
        f"of {len(keeping)} that keep the service levels at the 95th percentile, it lets the most requests keep them "
        f"({best:.1%}) with the shortest stalls"
    )


def _known(seconds: float) -> float:
    return 0.0 if math.isnan(seconds) else seconds
