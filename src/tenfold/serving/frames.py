"""Figures of self-hosted serving as small frames, in the shape that the charts take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import polars as pl

from tenfold.errors import ServingError
from tenfold.money import to_float_usd
from tenfold.serving.allocation import load_of
from tenfold.serving.breakeven import UTILIZATION, Outcome
from tenfold.serving.capacity import Capacity, capacity, replicas_needed, within
from tenfold.serving.hosted import Hosted
from tenfold.serving.memory import Deployment, default_caps
from tenfold.serving.roofline import Speed, speed
from tenfold.serving.sizing import largest

if TYPE_CHECKING:
    from tenfold.serving.simulator import Budgets


def fleet(hosted: Iterable[Hosted]) -> pl.DataFrame:
    """Say what each model on a fleet costs, and what of it waits.

    Args:
        hosted: Models on a fleet.

    Returns:
        Columns ``model``, ``gpus``, ``requests``, ``busy_ratio``, ``batch``, ``bill_usd``, ``idle_usd`` and, in USD per
        million tokens, ``input_usd``, ``cached_usd``, ``output_usd``; amounts rounded for display.
    """
    return pl.DataFrame(
        [
            {
                "model": one.model,
                "gpus": f"{one.gpus} {one.deployment.gpu.name}",
                "requests": one.demand.requests,
                "busy_ratio": one.busy_ratio,
                "batch": one.batch,
                "bill_usd": to_float_usd(one.bill_pusd),
                "idle_usd": to_float_usd(one.idle_pusd),
                **{f"{kind}_usd": to_float_usd(rate * 10**6) for kind, rate in one.rates._asdict().items()},
            }
            for one in hosted
        ]
    ).with_columns(pl.selectors.float().round(3))


def frontier(
    settings: Mapping[str, Deployment],
    input_tokens: float,
    output_tokens: float,
    *,
    tpot_slo_s: float | None = None,
    scale: float = 1.0,
) -> pl.DataFrame:
    """Walk each setting's batch from one request to the most that memory and the engine's cap hold.

    Args:
        settings: Replicas by the name to show.
        input_tokens: Tokens of a prompt that are computed.
        output_tokens: Tokens of an answer.
        tpot_slo_s: Limit on seconds an output token: the largest batch within it is among the rows.
        scale: Measured over predicted rate, of a calibration.

    Returns:
        Columns ``setting``, ``batch``, ``tokens_per_s_per_user`` (1 / TPOT), ``tokens_per_s_per_gpu``; batches are
        powers of two, the largest one within the limit, and the largest one. A setting that holds no request has none.
    """
    rows: list[tuple[str, int, float, float]] = []
    for name, one in settings.items():
        held = math.floor(one.concurrency(input_tokens + output_tokens / 2))
        most = min(held, default_caps(one.gpu).sequences)

        def at_batch(batch: int, one: Deployment = one) -> Speed:
            return speed(one, batch, input_tokens, output_tokens, scale=scale)

        kept = largest(most, lambda batch: within(at_batch(batch).tpot_s, tpot_slo_s))
        for batch in sorted({*(2**power for power in range(most.bit_length())), kept, most} - {0}):
            at = at_batch(batch)
            rows.append((name, batch, 1 / at.tpot_s, at.tokens_per_s_per_gpu))
    columns = {"setting": pl.String, "batch": pl.Int64, "tokens_per_s_per_user": pl.Float64}
    return pl.DataFrame(rows, schema={**columns, "tokens_per_s_per_gpu": pl.Float64}, orient="row")


def memory_split(settings: Mapping[str, Deployment], tokens: float) -> pl.DataFrame:
    """Say what a replica's memory is taken by.

    Args:
        settings: Replicas by the name to show.
        tokens: Mean tokens that a request has in memory.

    Returns:
        Columns ``setting``, ``weights_bytes``, ``overhead_bytes`` (the engine's, and what it leaves alone),
        ``kv_bytes`` (0 where the weights do not fit), ``memory_bytes``, ``requests`` (held at once, not rounded).
    """
    rows: list[dict[str, Any]] = []
    for name, one in settings.items():
        memory = one.tp * one.gpu.memory_bytes
        rows.append(
            {
                "setting": name,
                "weights_bytes": one.weight_bytes,
                "overhead_bytes": memory - one.weight_bytes - one.pool_bytes,
                "kv_bytes": max(one.pool_bytes, 0.0),
                "memory_bytes": memory,
                "requests": one.concurrency(tokens),
            }
        )
    return pl.DataFrame(rows)


def hourly_need(
    hosted: Iterable[Hosted],
    *,
    utilization: float = float(UTILIZATION),
    tpot_slo_s: float | None = None,
    scale: float = 1.0,
) -> pl.DataFrame:
    """Say how many replicas each hour's answers took, and how many were paid.

    Args:
        hosted: Models on a fleet; stretches of one model follow each other.
        utilization: Share of a replica's capacity to plan with; the rest carries bursts within the hour.
        tpot_slo_s: Limit on seconds an output token. Where one request alone misses it, batches of one are planned.
        scale: Measured over predicted rate, of a calibration.

    Returns:
        Columns ``model``, ``starts_at``, ``ends_at``, ``needed``, ``paid``; an hour without a request needs none.

    Raises:
        ServingError: Requests are larger than a replica's memory.

    Formula:
        ceil(output tokens a second / (a replica's rate x utilisation)). (serving.md 7)
    """
    rows: list[dict[str, Any]] = []
    for one in hosted:
        rate = _capacity(one, tpot_slo_s, scale).pace.tokens_per_s * scale if one.demand.requests else math.inf
        rows += [
            {
                "model": one.model,
                "starts_at": hour.starts_at,
                "ends_at": hour.starts_at + timedelta(seconds=hour.seconds),
                "needed": replicas_needed(hour.output_tokens / hour.seconds, rate, utilization, 0),
                "paid": one.replicas,
            }
            for hour in one.demand.hours
        ]
    return pl.DataFrame(rows)


def token_budgets(budgets: Budgets) -> pl.DataFrame:
    """Give a sweep over token budgets as a frame.

    Args:
        budgets: The sweep.

    Returns:
        A row a budget, with the keys of ``Budget.as_dict``: times in ms.
    """
    return pl.DataFrame([row.as_dict() for row in budgets.rows])


def break_even(outcomes: Sequence[Outcome]) -> pl.DataFrame:
    """Give the sensitivity of a break-even as a frame.

    Args:
        outcomes: What ``breakeven.sensitivity`` gave.

    Returns:
        Columns ``what``, ``value``, ``tokens_per_month``, ``is_reachable`` (the GPUs could serve that many at all).
    """
    return pl.DataFrame(
        [
            {
                "what": one.what,
                "value": one.value,
                "tokens_per_month": one.tokens_per_month,
                "is_reachable": one.utilisation_ratio <= 1,
            }
            for one in outcomes
        ]
    )


def _capacity(one: Hosted, tpot_slo_s: float | None, scale: float) -> Capacity:
    replica, pools = one.deployment, one.pools
    cap = max(pool.max_batch or default_caps(replica.gpu).sequences for pool in pools)
    limit = None if tpot_slo_s is None else tpot_slo_s * scale
    able = capacity(replica, load_of(one.demand), cap=cap, tpot_slo_s=limit)
    if able is None:
        raise ServingError(f"{one.model}: a request of this log does not fit on {replica.tp} x {replica.gpu.name}")
    return able
