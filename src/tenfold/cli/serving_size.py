"""``tenfold serving size``: how many requests a replica holds, how fast it is, and what a token costs on it."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any

import typer

from tenfold.cli.common import Json, Screen, print_json
from tenfold.cli.serving_common import (
    Calibrate,
    Engine,
    Gpu,
    Isl,
    Kv,
    Model,
    Osl,
    Tp,
    TpotSloMs,
    TtftSloMs,
    UsdPerGpuHour,
    Weights,
    calibrated,
    hourly_price,
    replica,
    seconds,
)
from tenfold.display import counted
from tenfold.errors import ServingError
from tenfold.money import usd_text
from tenfold.serving import second_opinion, sizing
from tenfold.serving.calibration import Calibration
from tenfold.serving.second_opinion import Estimate
from tenfold.serving.sizing import Size, TokenCost

Concurrency = Annotated[
    int | None,
    typer.Option("--concurrency", metavar="B", min=1, help="Requests under way at once; default the most that go."),
]
Second = Annotated[
    bool, typer.Option("--second-opinion", help="Add the estimate of NVIDIA's aiconfigurator (extra aic).")
]

_BOUNDS = {
    "given": "as asked for",
    "memory": "all that memory holds",
    "cap": "the engine's default cap",
    "slo": "the most that the SLO leaves",
    "missed": "the SLO is missed even so",
    "none": "not servable",
}


def size(
    model: Model, gpu: Gpu, isl: Isl, osl: Osl, tp: Tp = 1, weights: Weights = "bf16", kv: Kv = "bf16",
    concurrency: Concurrency = None, tpot_slo_ms: TpotSloMs = None, ttft_slo_ms: TtftSloMs = None,
    calibrate: Calibrate = None, engine: Engine = None, usd_per_gpu_hour: UsdPerGpuHour = None,
    second: Second = False, json: Json = False,
) -> None:  # fmt: skip
    """Say whether a model fits on GPUs, how many requests at once, how fast, and what a million tokens cost."""
    one = replica(model, gpu, tp, weights, kv)
    measured = calibrated(one, calibrate, engine, concurrency=concurrency, isl=isl, osl=osl)
    price, whence = hourly_price(gpu, usd_per_gpu_hour)
    made = sizing.size(
        one,
        isl,
        osl,
        concurrency=concurrency,
        tpot_slo_s=seconds(tpot_slo_ms, "--tpot-slo-ms"),
        ttft_slo_s=seconds(ttft_slo_ms, "--ttft-slo-ms"),
        calibration=measured,
        usd_per_gpu_hour=price,
    )
    opinion: Estimate | None = None
    if second:
        made, opinion = _second_opinion(made)
    if json:
        print_json(_as_dict(made, price, whence, measured) | ({"second_opinion": _opinion(opinion)} if second else {}))
        return
    _show(made, price, whence, measured, opinion)


def _second_opinion(made: Size) -> tuple[Size, Estimate | None]:
    """The vendor's estimate at the same batch; where it cannot say, a note of why."""
    if not made.batch:
        return made, None
    load = second_opinion.Load(made.batch, made.input_tokens, made.output_tokens)
    try:
        return made, second_opinion.Aiconfigurator().estimate(made.deployment, load)
    except ServingError as error:
        return made._replace(notes=(*made.notes, f"no second opinion: {error}")), None


def _opinion(found: Estimate | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "label": found.label,
        "ttft_ms": round(found.ttft_s * 1e3, 3),
        "tpot_ms": round(found.tpot_s * 1e3, 4),
        "tokens_per_s_per_gpu": round(found.tokens_per_s_per_gpu, 2),
    }


def _as_dict(made: Size, price: Decimal | None, whence: str, measured: Calibration | None) -> dict[str, Any]:
    one, speed, rate = made.deployment, made.speed, made.tokens_per_s_per_gpu
    return {
        "model": one.model.name,
        "gpu": one.gpu.name,
        "tp": one.tp,
        "weights": one.weights.name,
        "kv": one.kv.name,
        "isl": made.input_tokens,
        "osl": made.output_tokens,
        "fits": made.fits,
        "unservable": made.unservable or None,
        "weight_bytes": round(one.weight_bytes),
        "kv_bytes_per_token": round(one.kv_bytes_per_token),
        "kv_pool_bytes": max(0, round(one.pool_bytes)),
        "kv_pool_blocks": one.pool_blocks,
        "concurrency": round(made.concurrency, 2),
        "concurrency_full_length": round(made.full_length, 2),
        "max_num_seqs": made.caps.sequences,
        "max_num_batched_tokens": made.caps.batched_tokens,
        "batch": made.batch,
        "batch_bound": made.bound,
        "ttft_ms": None if speed is None else round(speed.ttft_s * 1e3, 3),
        "tpot_ms": None if speed is None else round(speed.tpot_s * 1e3, 4),
        "step_bound": None if speed is None else speed.bound,
        "tokens_per_s_per_gpu": None
        if rate is None
        else {"low": round(rate.low, 2), "mid": round(rate.mid, 2), "high": round(rate.high, 2)},
        "usd_per_gpu_hour": None if price is None else f"{price:f}",
        "usd_per_gpu_hour_source": whence,
        "usd_per_million": None if made.cost is None else _per_million(made.cost.mid),
        "usd_per_million_low": None if made.cost is None else _per_million(made.cost.low),
        "usd_per_million_high": None if made.cost is None else _per_million(made.cost.high),
        "calibrated": made.calibrated,
        "measured_ttft_ms": None
        if measured is None
        else [
            {"concurrency": point.concurrency, "ttft_ms": round(point.ttft_s * 1e3, 3), "source": point.source}
            for point in measured.points
            if point.ttft_s is not None
        ],
        "notes": list(made.notes),
    }


def _per_million(cost: TokenCost) -> dict[str, str | None]:
    return {"input": usd_text(cost.input * 10**6), "output": usd_text(cost.output * 10**6)}


def _show(
    made: Size, price: Decimal | None, whence: str, measured: Calibration | None, opinion: Estimate | None
) -> None:
    one, screen = made.deployment, Screen()
    verdict = "fits" if made.fits else f"not servable: {made.unservable}"
    screen.line(
        f"{one.model.name}, {one.weights.name} weights, {one.kv.name} KV, on {one.tp} x {one.gpu.name}: {verdict}",
        style="bold",
    )
    rows: list[tuple[str, str]] = []
    if made.speed is not None and made.tokens_per_s_per_gpu is not None:
        low, mid, high = made.tokens_per_s_per_gpu
        held = "four of five measured points lie in such a range"
        rows += [
            ("batch", f"{counted(made.batch, 'request')} at once: {_BOUNDS[made.bound]}"),
            ("throughput", f"{mid:,.0f} output tokens/s and GPU ({low:,.0f} to {high:,.0f}: {held})"),
            ("TTFT", f"{made.speed.ttft_s * 1e3:,.0f} ms without queueing{_ttft(made, measured)}"),
            ("TPOT", f"{made.speed.tpot_s * 1e3:,.1f} ms; {made.speed.bound} limits a decoding step"),
        ]
    if opinion is not None:
        other = f"{opinion.tokens_per_s_per_gpu:,.0f} output tokens/s and GPU, TPOT {opinion.tpot_s * 1e3:,.1f} ms"
        rows.append((opinion.label, other))
    if made.cost is not None:
        spread = (
            f"{_usd(getattr(made.cost.mid, kind))} ({_usd(getattr(made.cost.low, kind))} to "
            f"{_usd(getattr(made.cost.high, kind))}) a million {kind} tokens"
            for kind in ("input", "output")
        )
        rows.append(("cost", f"{', '.join(spread)}, at full load"))
    if made.fits:
        rows.append(("price", whence if price is None else f"${price:f} a GPU and hour: {whence}"))
    pool_gb, kv_kib = max(0.0, one.pool_bytes) / 1e9, one.kv_bytes_per_token / 1024
    weights = f"{one.weight_bytes / 1e9:,.1f} GB weights of {one.tp * one.gpu.memory_gb:,g} GB"
    shape = f"{made.input_tokens:,} + {made.output_tokens:,} tokens, on average half answered"
    rows += [
        ("memory", f"{weights}; {pool_gb:,.1f} GB for KV at {kv_kib:,.0f} KiB a token"),
        ("holds", f"{made.concurrency:,.1f} requests of {shape}; {made.full_length:,.1f} of full length"),
        ("engine", f"default caps {made.caps.sequences:,} sequences, {made.caps.batched_tokens:,} tokens a step"),
        *(("note", note) for note in made.notes if not (made.unservable and made.unservable in note)),
    ]
    screen.said(rows)


def _ttft(made: Size, measured: Calibration | None) -> str:
    return "" if measured is None else f", modelled and not calibrated; {measured.ttft_text(made.batch)}"


def _usd(pusd: int) -> str:
    return f"${pusd * 10**6 / 10**12:,.3f}"
