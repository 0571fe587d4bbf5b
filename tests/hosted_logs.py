"""Self-hosted logs, fleets and sites for tests of the levers that change how models are hosted."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import oracle_serving as oracle
from hypothesis import strategies as st
from small_logs import ledger

import tenfold as tf
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions
from tenfold.levers.repricing import own_bill
from tenfold.levers.sites import Sites
from tenfold.planning.portfolio import Portfolio
from tenfold.serving import specs
from tenfold.serving.fleet import Fleet, Pool
from tenfold.serving.hosted import HostedLedger, on_fleet
from tenfold.serving.memory import Deployment, deployment
from tenfold.serving.speculation import Speculation

START = datetime(2026, 11, 2)
BY_NAME = {lever.name: lever for lever in LEVERS}
HOSTING = ("quantize", "continuous_batching", "procure", "speculate")
LLAMA = "meta-llama/Llama-3.1-8B"
QWEN = "Qwen/Qwen2.5-7B"


def rows(
    counts: Sequence[int],
    model: str = LLAMA,
    *,
    seconds: float | None = None,
    start: datetime = START,
    seed: int = 1,
    **more: Any,
) -> list[dict[str, Any]]:
    """Requests hour by hour, `counts` of them, at even distances; `seconds` is what each takes."""
    chance = random.Random(seed)
    made: list[dict[str, Any]] = []
    for hour, count in enumerate(counts):
        for number in range(count):
            new, output = chance.randrange(200, 2000), chance.randrange(4000, 12000)
            one = {
                "ts": start + timedelta(hours=hour, seconds=3600 * number / count),
                "provider": "self-hosted", "model": model, "request_id": f"{model}{seed}-{len(made)}",
                "input_tokens": new, "cache_read_tokens": new // 4, "output_tokens": output,
                "feature": ("chat", "night")[number % 2], "user_id": f"u{number}", "is_stream": False,
                "status": "success", "finish_reason": "stop", "prompt_hash": number % 3, "params_hash": 1,
            }  # fmt: skip
            if seconds is not None:
                one["duration_ms"] = 1000.0 * seconds
            made.append({**one, **more})
    return made


def pool(model: str = LLAMA, gpu: str = "l4", replicas: int = 4, usd: str = "0.80", **more: Any) -> Pool:
    return Pool(model, gpu, replicas, Decimal(usd), **{"max_batch": 4, **more})


def hosted(log: Sequence[Mapping[str, Any]], *pools: Pool, hours: int | None = None, **options: Any) -> HostedLedger:
    """A log on its fleet; `hours` states the window, from `START`, and when pools run that do not say."""
    if hours is not None:
        since = START.replace(tzinfo=UTC)
        until = since + timedelta(hours=hours)
        options |= {"since": since, "until": until}
        pools = tuple(replace(one, since=one.since or since, until=one.until or until) for one in pools)
    return on_fleet(ledger(log, **options), Fleet(pools))


@contextmanager
def portfolio(made: tf.Ledger, assume: Mapping[str, Any], slo: tf.Slo | None = None, names: Sequence[str] = HOSTING):
    """The portfolio of some levers, its verdicts and sites."""
    assumed = assumptions(assume, LEVERS).levers
    levers = [BY_NAME[name] for name in names]
    with made.session() as session:
        limits = slo or tf.Slo()
        sites = Sites(session, made.hosted, limits) if isinstance(made, HostedLedger) else None
        fixed = sum(charge.pusd for charge in made.charges)
        bill = own_bill(session, levers, assumed, limits, sites=sites, fixed_pusd=fixed)
        verdicts = {lever.name: lever.judge(bill, assumed[lever.name]) for lever in levers}
        yield Portfolio(bill, levers, assumed, verdicts), sites, verdicts


def replica(one: Deployment) -> oracle.Replica:
    """A deployment as the oracle has it: numbers only."""
    spec, gpu = one.model, one.gpu
    return oracle.Replica(
        spec.params, spec.active, tuple((group.count, group.window) for group in spec.layers), spec.hidden,
        spec.q_heads * spec.head_dim, spec.kv_heads, spec.kv_latent or 2 * spec.kv_heads * spec.head_dim,
        bool(spec.kv_latent), spec.experts, spec.experts_per_token, spec.expert_params,
        gpu.memory_gb * 1e9, gpu.bandwidth_gb_per_s * 1e9, {name: rate * 1e12 for name, rate in gpu.tflops.items()},
        gpu.link_gb_per_s * 1e9, one.tp, one.weights.bits, one.weights.compute, one.kv.bits,
    )  # fmt: skip


def changed(weights: str | None = None, kv: str | None = None, gpu: str | None = None):
    """What the oracle makes of a replica with other numbers, or on another GPU."""

    def change(one: oracle.Replica, tp: int) -> oracle.Replica:
        made = one._replace(tp=tp)
        if weights:
            made = made._replace(weight_bits=specs.WEIGHTS[weights].bits, compute=specs.WEIGHTS[weights].compute)
        if kv:
            made = made._replace(kv_bits=specs.KV[kv].bits)
        if gpu:
            card = specs.gpu(gpu)
            made = made._replace(
                memory=card.memory_bytes, bandwidth=card.bandwidth, link=card.link_gb_per_s * 1e9,
                flops={name: rate * 1e12 for name, rate in card.tflops.items()},
            )  # fmt: skip
        return made

    return change


def site(log: Sequence[Mapping[str, Any]], one: Pool, *, hours: int, busy: float, slo_ms: float | None = None,
         late: str | None = None, scale: float = 1.0) -> oracle.Site:  # fmt: skip
    """A site from the rows themselves: sums, means and hours added up one by one. Hours are whole, from `START`."""
    new = sum(each["input_tokens"] - each["cache_read_tokens"] for each in log)
    cached = sum(each["cache_read_tokens"] for each in log)
    output = sum(each["output_tokens"] for each in log)
    hourly, waiting = [0.0] * hours, [0.0] * hours
    for each in log:
        hour = (each["ts"] - START) // timedelta(hours=1)
        hourly[hour] += each["output_tokens"]
        waiting[hour] += each["output_tokens"] * (each["feature"] == late)
    starts = [each["ts"] for each in log]
    whole = timedelta(minutes=60)

    def busiest(rows: Sequence[Mapping[str, Any]]) -> float:
        # of sixty minutes from each minute on in which a request starts, one after the other
        begins = {at.replace(second=0, microsecond=0) for at in starts}
        sums = (sum(one["output_tokens"] for one in rows if at <= one["ts"] < at + whole) for at in begins)
        return max(sums, default=0) / 3600

    count = len(log)
    return oracle.Site(
        replica(one.deployment), one.replicas, one.usd_per_hour, oracle.Fraction(hours), one.max_batch,
        (new / count, cached / count, output / count), (new, cached, output),
        [tokens / 3600 for tokens in hourly], [tokens / 3600 for tokens in waiting], busy,
        None if slo_ms is None else slo_ms / 1000, scale,
        peak=busiest(log), kept_peak=busiest([each for each in log if each["feature"] != late]),
    )  # fmt: skip


PLACES = [
    ("llama-3.1-8b", "l4", 1), ("llama-3.1-8b", "h100-sxm", 1), ("llama-3.1-70b", "h100-sxm", 4),
    ("Qwen/Qwen2.5-7B", "a100-40", 1), ("gpt-oss-120b", "h100-sxm", 2), ("deepseek-ai/DeepSeek-V3", "h200-sxm", 8),
    ("mixtral-8x7b-v0.1", "a100-80", 4), ("llama-3.1-70b", "mi300x", 2),
]  # fmt: skip


@st.composite
def replicas(draw: st.DrawFn) -> Deployment:
    """Replicas of dense models and of mixtures of experts, in any numbers."""
    model, gpu, tp = draw(st.sampled_from(PLACES))
    weights = draw(st.sampled_from(["bf16", "fp8", "int8", "int4", "fp4"]))
    return deployment(model, gpu, tp * draw(st.sampled_from([1, 2])), weights, draw(st.sampled_from(["bf16", "fp8"])))


def as_draft(how: Speculation | None) -> oracle.Draft | None:
    return None if how is None else oracle.Draft(how.acceptance, how.tokens, how.draft_cost_ratio)
