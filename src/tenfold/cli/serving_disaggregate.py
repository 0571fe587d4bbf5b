"""``tenfold serving disaggregate``: whether separate pools for prefill and decode pay, and what stands in the way."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tenfold.cli.common import Json, Screen, plain_table, print_json
from tenfold.cli.serving_common import Gpu, Isl, Kv, Model, Osl, Weights, finite, replica, seconds
from tenfold.display import sentence
from tenfold.errors import AssumptionError
from tenfold.serving import calibration
from tenfold.serving.capacity import Load
from tenfold.serving.disaggregation import Condition, Sizes, Verdict, disaggregate
from tenfold.serving.memory import Deployment
from tenfold.serving.pools import Bounds, Split, Together
from tenfold.serving.transfer import Link

Gpus = Annotated[
    int, typer.Option("--gpus", metavar="N", min=1, max=10_000, help="GPUs to divide.", show_default=False)
]
LinkGbps = Annotated[
    float,
    typer.Option(
        "--link-gbps",
        metavar="L",
        callback=finite,
        help="Gb/s between a prefill worker and decode workers.",
        show_default=False,
    ),
]
TtftBound = Annotated[
    float,
    typer.Option(
        "--ttft-slo-ms", metavar="X", callback=finite, help="Bound of time to first token.", show_default=False
    ),
]
TpotBound = Annotated[
    float,
    typer.Option(
        "--tpot-slo-ms", metavar="X", callback=finite, help="Bound of time per output token.", show_default=False
    ),
]
TogetherTp = Annotated[int | None, typer.Option("--tp", metavar="N", min=1, help="GPUs of an undivided replica today.")]
PrefillTp = Annotated[
    int | None, typer.Option("--prefill-tp", metavar="N", min=1, help="GPUs of a prefill worker; default the best.")
]
DecodeTp = Annotated[
    int | None, typer.Option("--decode-tp", metavar="N", min=1, help="GPUs of a decode worker; default the best.")
]
Cached = Annotated[
    int, typer.Option("--cached", metavar="C", min=0, help="Tokens of a prompt that a prefix cache holds, of --isl.")
]
Efficiency = Annotated[
    float, typer.Option("--link-efficiency", metavar="R", min=0.01, max=1, help="Share of the link's rate reached.")
]
Latency = Annotated[
    float,
    typer.Option("--link-latency-ms", metavar="X", callback=finite, min=0, help="Time before a transfer's first byte."),
]
Layerwise = Annotated[
    bool, typer.Option("--layerwise", help="Each layer's KV cache is sent while the next layer is computed.")
]
Calibrate = Annotated[
    Path | None,
    typer.Option("--calibrate", metavar="FILE", help="Measurement of an undivided replica of --tp GPUs: see size."),
]


def disaggregate_command(
    model: Model, gpu: Gpu, isl: Isl, osl: Osl, gpus: Gpus, link_gbps: LinkGbps, ttft_slo_ms: TtftBound,
    tpot_slo_ms: TpotBound, weights: Weights = "bf16", kv: Kv = "bf16", tp: TogetherTp = None,
    prefill_tp: PrefillTp = None, decode_tp: DecodeTp = None, cached: Cached = 0, link_efficiency: Efficiency = 1.0,
    link_latency_ms: Latency = 0.0, layerwise: Layerwise = False, calibrate: Calibrate = None, json: Json = False,
) -> None:  # fmt: skip
    """Say whether separate pools for prefill and decode pay here, and which condition fails."""
    one = replica(model, gpu, tp or 1, weights, kv)
    if cached >= isl:
        raise AssumptionError(f"--cached {cached}: at least one token of a prompt of --isl {isl} is computed")
    if not 0 < link_gbps < 1e6:
        raise AssumptionError(f"--link-gbps {link_gbps:g}: write Gb/s above zero, such as 400")
    verdict = disaggregate(
        one,
        Load(isl - cached, cached, osl),
        Bounds(_bound(ttft_slo_ms, "--ttft-slo-ms"), _bound(tpot_slo_ms, "--tpot-slo-ms")),
        gpus,
        Link(link_gbps, link_latency_ms / 1e3, link_efficiency, layerwise),
        sizes=Sizes(tp, prefill_tp, decode_tp),
        scale=_scale(one, calibrate, tp, isl, osl),
    )
    if json:
        print_json(_as_dict(verdict, one, calibrate is not None))
    else:
        _show(verdict, one)


def _bound(milliseconds: float, option: str) -> float:
    return seconds(milliseconds, option) or 0.0


def _scale(one: Deployment, file: Path | None, tp: int | None, isl: int, osl: int) -> float:
    if file is None:
        return 1.0
    if tp is None:
        raise AssumptionError("--calibrate needs --tp: the GPUs of the replica that was measured")
    given = calibration.Given(input_tokens=isl, output_tokens=osl)
    return calibration.calibrate(one, calibration.read(file, given)).scale


def _as_dict(verdict: Verdict, one: Deployment, is_calibrated: bool) -> dict[str, Any]:
    together, split = verdict.together, verdict.split
    return {
        "model": one.model.name,
        "gpu": one.gpu.name,
        "gpus": verdict.gpus,
        "pays": verdict.pays,
        "gain": None if verdict.gain is None else round(verdict.gain, 4),
        "transfer_ms": round(verdict.transfer_s * 1e3, 3),
        "exposed_ms": round(verdict.exposed_s * 1e3, 3),
        "sustained_gbps": None if verdict.sustained_gbps is None else round(verdict.sustained_gbps, 2),
        "workers": None
        if split is None
        else {
            "prefill": split.prefill_workers,
            "prefill_tp": split.prefill_tp,
            "decode": split.decode_workers,
            "decode_tp": split.decode_tp,
        },
        "failing": [condition.as_dict() for condition in verdict.failing],
        "conditions": [condition.as_dict() for condition in verdict.conditions],
        "aggregated": None if together is None else _replicas(together),
        "today": None if verdict.today is None else _replicas(verdict.today),
        "disaggregated": None
        if split is None
        else {
            **_rates(split),
            "prefill_requests_per_s": round(split.prefill_per_s, 3),
            "decode_requests_per_s": round(split.decode_per_s, 3),
        },
        "advice": verdict.advice,
        "calibrated": is_calibrated,
        "notes": list(verdict.notes),
    }


def _replicas(way: Together) -> dict[str, float]:
    return {**_rates(way), "tp": way.tp, "replicas": way.replicas}


def _rates(way: Together | Split) -> dict[str, float]:
    return {
        "requests_per_s": round(way.requests_per_s, 3),
        "batch": round(way.batch, 2),
        "ttft_ms": round(way.ttft_s * 1e3, 3),
        "tpot_ms": round(way.tpot_s * 1e3, 4),
    }


def _show(verdict: Verdict, one: Deployment) -> None:
    screen = Screen()
    screen.line(
        f"{one.model.name}, {one.weights.name} weights, {one.kv.name} KV, on {verdict.gpus} x {one.gpu.name}: separate "
        f"prefill and decode {'pay' if verdict.pays else 'do not pay'} here",
        style="bold",
    )
    screen.line(sentence(verdict.advice))
    screen.line()
    table = plain_table(("condition", False), ("here", True), ("needed", True), ("", False))
    for condition in verdict.conditions:
        table.add_row(_LABELS[condition.name], _here(condition), _needed(condition), "" if condition.holds else "fails")
    screen.table(table)
    screen.line()
    transfer = f"{verdict.transfer_s * 1e3:,.1f} ms for the KV cache of a prompt"
    if verdict.exposed_s < verdict.transfer_s:
        transfer += f", of which a request waits for {verdict.exposed_s * 1e3:,.2f} ms"
    if verdict.sustained_gbps is not None:
        transfer += f"; a prefill worker that never pauses sends {verdict.sustained_gbps:,.0f} Gb/s"
    screen.said(
        [
            ("together", _said_together(verdict.together)),
            ("split", _said_split(verdict.split)),
            ("transfer", transfer),
            *(("fails", f"{_LABELS[condition.name]}: {condition.why}") for condition in verdict.failing),
            *(("note", note) for note in verdict.notes),
        ]
    )


_LABELS = {
    "gain": "gain",
    "input_per_output": "prompt tokens per answer token",
    "model": "parameters",
    "link": "link of a prefill worker",
    "gpus": "GPUs",
}


def _here(condition: Condition) -> str:
    if condition.measured is None:
        return "only split" if condition.holds else "none"
    return _unit(condition.name, condition.measured, 3 if condition.name == "gain" else 1)


def _needed(condition: Condition) -> str:
    least = _unit(condition.name, condition.threshold, 2 if condition.name == "gain" else 0)
    return f"above {least}" if condition.name == "gain" else f"{least}{' or experts' * (condition.name == 'model')}"


def _unit(name: str, value: float, decimals: int) -> str:
    text = f"{value:,.{decimals}f}".removesuffix(".0")
    return f"{text}{ {'gain': 'x', 'model': ' G', 'link': ' Gb/s'}.get(name, '') }"


def _said_together(way: Together | None) -> str:
    if way is None:
        return "no replica meets the service level"
    return f"{_workers(way.replicas, 'replica', way.tp)}, {way.batch:,.0f} requests at once in each: {_said_rates(way)}"


def _said_split(way: Split | None) -> str:
    if way is None:
        return "no split meets the service level"
    return (
        f"{_workers(way.prefill_workers, 'prefill worker', way.prefill_tp)} ({way.prefill_per_s:,.1f} requests/s) and "
        f"{_workers(way.decode_workers, 'decode worker', way.decode_tp)} ({way.decode_per_s:,.1f} requests/s), "
        f"{way.batch:,.0f} requests at once in each of these: {_said_rates(way)}"
    )


def _workers(number: int, noun: str, tp: int) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)} of {tp} GPU{'s' * (tp != 1)}"


def _said_rates(way: Together | Split) -> str:
    return f"{way.requests_per_s:,.1f} requests/s, TTFT {way.ttft_s * 1e3:,.0f} ms, TPOT {way.tpot_s * 1e3:,.1f} ms"
