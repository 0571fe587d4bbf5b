"""``tenfold serving simulate``: what requests would meet on replicas of one's own, step by step."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tenfold.cli.common import Json, Screen, plain_table, print_json
from tenfold.cli.serving_common import (
    Calibrate,
    Engine,
    Gpu,
    Kv,
    Model,
    Tp,
    TpotSloMs,
    TtftSloMs,
    UsdPerGpuHour,
    Weights,
    calibrated,
    finite,
    hourly_price,
    replica,
    seconds,
)
from tenfold.display import counted, percent
from tenfold.errors import AssumptionError
from tenfold.serving import simulator
from tenfold.serving.calibration import Calibration
from tenfold.serving.memory import Deployment, default_caps
from tenfold.serving.sizing import unservable
from tenfold.slo import Slo

if TYPE_CHECKING:
    from tenfold.serving.simulator import Arrivals, Budgets, Pools, Simulation
    from tenfold.serving.simulator.simulating import Options

Trace = Annotated[
    Path | None, typer.Option("--trace", metavar="F", help="Requests to replay: a trace or log in any known format.")
]
Db = Annotated[Path | None, typer.Option("--db", metavar="FILE", help="Replay the requests of a database.")]
OnlyModel = Annotated[
    str | None, typer.Option("--only-model", metavar="M", help="With --db: only requests that this model served.")
]
Isl = Annotated[int | None, typer.Option("--isl", metavar="I", min=1, help="Tokens of a prompt, without a trace.")]
Osl = Annotated[int | None, typer.Option("--osl", metavar="O", min=1, help="Tokens of an answer, without a trace.")]
Requests = Annotated[
    int | None,
    typer.Option("--requests", metavar="N", min=1, help="How many; default the trace's, 1,000 without one."),
]
Rate = Annotated[
    float | None,
    typer.Option(
        "--rate", metavar="R", callback=finite, help="Requests a second at random times, in place of the trace's times."
    ),
]
Burstiness = Annotated[
    float,
    typer.Option(
        "--burstiness", metavar="V", callback=finite, help="With --rate: 1 is Poisson, more comes in bursts (variance)."
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", min=0, help="With --rate: of the random times.")]
Concurrency = Annotated[
    int | None,
    typer.Option("--concurrency", metavar="C", min=1, help="Keep C requests under way, in place of times."),
]
Budget = Annotated[
    int | None,
    typer.Option("--budget", metavar="T", min=1, help="Tokens a step (max_num_batched_tokens); default the engine's."),
]
PolicyName = Annotated[
    Literal["chunked", "prefill_first"],
    typer.Option("--policy", help="Decodes first and prompts in chunks, or whole prompts first."),
]
MaxNumSeqs = Annotated[
    int | None, typer.Option("--max-num-seqs", metavar="N", min=1, help="Requests under way on a replica at most.")
]
Replicas = Annotated[
    int, typer.Option("--replicas", metavar="N", min=1, max=10_000, help="Replicas, each with its own queue.")
]
RouterName = Annotated[
    Literal["round_robin", "least_loaded"], typer.Option("--router", help="How requests are spread over replicas.")
]
Prefill = Annotated[
    int, typer.Option("--prefill-workers", metavar="N", min=0, help="Replicas that only prefill; with the next two.")
]
Decode = Annotated[int, typer.Option("--decode-workers", metavar="N", min=0, help="Replicas that only decode.")]
LinkGbps = Annotated[
    float | None,
    typer.Option(
        "--link-gbps", metavar="L", callback=finite, help="Link of a prefill worker to the decode workers, Gb/s."
    ),
]
PoolTokens = Annotated[
    int | None,
    typer.Option(
        "--kv-pool-tokens", metavar="T", min=16, help="KV cache size as the engine logs it; default computed."
    ),
]
NoPrefixCache = Annotated[bool, typer.Option("--no-prefix-cache", help="Do not share leading blocks.")]
SloFile = Annotated[Path | None, typer.Option("--slo", metavar="FILE", help="Service levels (TOML).")]
Sweep = Annotated[
    bool, typer.Option("--sweep", help="Try token budgets: what each does to short requests and to long prompts.")
]


def simulate(
    model: Model, gpu: Gpu, tp: Tp = 1, weights: Weights = "bf16", kv: Kv = "bf16", trace: Trace = None, db: Db = None,
    only_model: OnlyModel = None, isl: Isl = None, osl: Osl = None, requests: Requests = None, rate: Rate = None,
    burstiness: Burstiness = 1.0, seed: Seed = 0, concurrency: Concurrency = None, budget: Budget = None,
    policy: PolicyName = "chunked", max_num_seqs: MaxNumSeqs = None, replicas: Replicas = 1,
    router: RouterName = "round_robin", prefill_workers: Prefill = 0, decode_workers: Decode = 0,
    link_gbps: LinkGbps = None, kv_pool_tokens: PoolTokens = None, no_prefix_cache: NoPrefixCache = False,
    calibrate: Calibrate = None, engine: Engine = None,
    slo: SloFile = None, ttft_slo_ms: TtftSloMs = None, tpot_slo_ms: TpotSloMs = None,
    usd_per_gpu_hour: UsdPerGpuHour = None, sweep: Sweep = False, json: Json = False,
) -> None:  # fmt: skip
    """Simulate an engine step by step: TTFT, time between tokens, queues, preemptions, KV use, goodput and dollars."""
    one = replica(model, gpu, tp, weights, kv)
    if reason := unservable(one):
        raise AssumptionError(f"{one.model.name} on {tp} x {one.gpu.name} is not servable: {reason}")
    measured = calibrated(one, calibrate, engine, concurrency=concurrency, isl=isl, osl=osl)
    arrivals = _arrivals(_source(trace, db, only_model, isl, osl), requests, rate, burstiness, seed, concurrency)
    caps = default_caps(one.gpu)
    tokens = budget or caps.batched_tokens
    most = max_num_seqs or min(caps.sequences, tokens)
    more: Options = {
        "policy": policy,
        "concurrency": concurrency or 0,
        "replicas": replicas,
        "router": router,
        "pools": _pools(prefill_workers, decode_workers, link_gbps),
        "kv_pool_tokens": kv_pool_tokens,
        "prefix_cache": not no_prefix_cache,
        "scale": 1.0 if measured is None else measured.scale,
    }
    bounds, notes = _bounds(slo, ttft_slo_ms, tpot_slo_ms)
    price = hourly_price(gpu, usd_per_gpu_hour)
    notes += _about(arrivals, one, measured)
    swept: Budgets | None = None
    if sweep:
        from tenfold.serving.simulator.budgets import USUAL

        swept = simulator.token_budgets(
            one, arrivals, {*USUAL, tokens}, max_num_seqs=most, ttft_slo_s=bounds[0], tpot_slo_s=bounds[1], **more
        )
        if not json:
            _tell_sweep(swept, notes)
            return
        tokens = budget or swept.recommended or tokens
        most = min(most, tokens)
    out = simulator.simulate(one, arrivals, budget=tokens, max_num_seqs=most, **more)
    notes += _judged(out, is_open=not concurrency)
    document = {
        "label": "modelled",
        "budget": tokens,
        "policy": policy,
        "max_num_seqs": most,
        **out.as_dict(ttft_slo_s=bounds[0], tpot_slo_s=bounds[1], usd_per_gpu_hour=price.usd),
        "usd_per_gpu_hour": None if price.usd is None else f"{price.usd:f}",
        "usd_per_gpu_hour_source": price.source,
        "notes": notes,
    }
    if json:
        print_json({**document, **({} if swept is None else _budgets(swept)), "series": out.series()})
        return
    _tell(out, document, bounds)


def _source(
    trace: Path | None, db: Path | None, only_model: str | None, isl: int | None, osl: int | None
) -> Arrivals | tuple[int, int]:
    given = [trace is not None, db is not None, isl is not None or osl is not None]
    if sum(given) != 1:
        raise AssumptionError("what to simulate: give one of --trace F, --db FILE, or --isl I with --osl O")
    if trace is not None:
        return simulator.from_trace(trace)
    if db is not None:
        return simulator.from_database(db, model=only_model)
    if isl is None or osl is None:
        raise AssumptionError("--isl and --osl go together")
    return isl, osl


def _arrivals(
    source: Arrivals | tuple[int, int],
    requests: int | None,
    rate: float | None,
    burstiness: float,
    seed: int,
    concurrency: int | None,
) -> Arrivals:
    if rate is not None and concurrency is not None:
        raise AssumptionError("--rate and --concurrency exclude each other")
    has_load = rate is not None or concurrency is not None
    if isinstance(source, simulator.Arrivals):
        if requests is not None and not has_load:
            raise AssumptionError("--requests changes the trace's times: give --rate or --concurrency with it")
        arrivals = source if requests is None else simulator.repeated(source, requests)
    else:
        if not has_load:
            raise AssumptionError("--isl and --osl need --rate R or --concurrency C")
        arrivals = simulator.steady(requests or 1000, *source)
    return arrivals if rate is None else simulator.timed(arrivals, rate, burstiness=burstiness, seed=seed)


def _pools(prefill: int, decode: int, link_gbps: float | None) -> Pools | None:
    given = (prefill > 0, decode > 0, link_gbps is not None)
    if not any(given):
        return None
    if not all(given) or link_gbps is None:
        raise AssumptionError("--prefill-workers, --decode-workers and --link-gbps go together")
    return simulator.Pools(prefill, decode, link_gbps * 1e9 / 8)


def _bounds(
    slo: Path | None, ttft_slo_ms: float | None, tpot_slo_ms: float | None
) -> tuple[tuple[float | None, float | None], list[str]]:
    """The options' bounds, else those of the file, in seconds."""
    notes: list[str] = []
    if slo is not None:
        levels = Slo.load(slo)
        if levels.feature:
            notes.append(f"{slo}: limits by feature are left out, since requests are simulated without features")
        ttft_slo_ms = levels.ttft_p95_ms if ttft_slo_ms is None else ttft_slo_ms
        tpot_slo_ms = levels.tpot_p95_ms if tpot_slo_ms is None else tpot_slo_ms
    return (seconds(ttft_slo_ms, "--ttft-slo-ms"), seconds(tpot_slo_ms, "--tpot-slo-ms")), notes


def _about(arrivals: Arrivals, one: Deployment, measured: Calibration | None) -> list[str]:
    notes = [f"left out: {reason}" + (f" ({count:,} requests)" if count else "") for reason, count in arrivals.left_out]
    if measured is None:
        notes.append("step times come from the roofline, uncalibrated: --calibrate takes a measurement of this replica")
    else:
        notes.append(f"calibrated by {measured.source}: measured over predicted rate {measured.scale:.2f}")
        notes.append(f"step times are scaled with the rate, TTFT is not calibrated by itself: {measured.ttft_text()}")
    if arrivals.block_tokens and any(group.window or group.kind == "linear" for group in one.model.layers):
        notes.append(
            "shared prefixes take memory in layers that look back to the start only; a model without such layers "
            "shares none"
        )
    return notes


def _judged(out: Simulation, *, is_open: bool) -> list[str]:
    notes: list[str] = []
    if out.refused:
        too_long = counted(out.refused, "request")
        notes.append(f"{too_long} longer than the whole KV pool: refused, and in no figure but goodput")
    if is_open and out.is_overloaded:
        notes.append("requests come faster than they are answered: waits grow for as long as the trace lasts")
    return notes


def _tell(out: Simulation, document: dict[str, Any], bounds: tuple[float | None, float | None]) -> None:
    screen = Screen()
    table = plain_table(("", False), ("p50", True), ("p95", True), ("p99", True), ("max", True))
    for name, key in (
        ("time to first token, ms", "ttft_ms"),
        ("of it in the queue, ms", "queue_ms"),
        ("time between tokens, ms", "itl_ms"),
        ("time per output token, ms", "tpot_ms"),
        ("whole answer, ms", "e2e_ms"),
    ):
        found = document[key]
        table.add_row(name, *(_plain(found.get(column)) for column in ("p50", "p95", "p99", "max")))
    screen.table(table)
    said = [
        ("requests", f"{out.requests.size:,} in {out.span_s:,.1f} s on {counted(out.gpus, 'GPU')}"),
        ("output", f"{out.tokens_per_s:,.0f} tokens/s, {out.tokens_per_s / out.gpus:,.0f} a GPU"),
        ("KV cache", f"{percent(out.kv_peak_ratio)} of the pool at most"),
        (
            "preemptions",
            (
                f"{document['preemptions']:,}, of {document['preempted_requests']:,} requests; "
                f"{percent(out.recompute_ratio, 1)} of all tokens computed again"
            ),
        ),
    ]
    if document["goodput_ratio"] is not None:
        asked = zip(("TTFT", "TPOT"), bounds, strict=True)
        limits = " and ".join(f"{name} {bound * 1000:g} ms" for name, bound in asked if bound is not None)
        said.insert(0, ("goodput", f"{percent(document['goodput_ratio'], 1)} of requests keep {limits}"))
    if document["usd"] is not None:
        cost = f"{Decimal(document['usd']):,.2f} USD, {document['usd_per_million_output']} USD a million output tokens"
        price = f"at ${document['usd_per_gpu_hour']} a GPU and hour: {document['usd_per_gpu_hour_source']}"
        said += [("cost", cost), ("price", price)]
    else:
        said.append(("price", document["usd_per_gpu_hour_source"]))
    screen.said([*said, *(("note", note) for note in document["notes"])])


def _budgets(swept: Budgets) -> dict[str, Any]:
    return {
        "recommended_budget": swept.recommended,
        "why": swept.why,
        "short_tokens": swept.short_tokens,
        "long_tokens": swept.long_tokens,
        "budgets": [row.as_dict() for row in swept.rows],
    }


def _tell_sweep(swept: Budgets, notes: list[str]) -> None:
    screen = Screen()
    table = plain_table(
        ("\nbudget", True), ("short:\nITL p99", True), ("\nmax", True), ("\nTTFT p95", True),
        ("long:\nTTFT p95", True), ("all:\nTTFT p95", True), ("\nTPOT p95", True), ("\ngoodput", True),
        ("\ntokens/s", True), ("pre-\nempted", True),
    )  # fmt: skip
    for row in swept.rows:
        shown = row.as_dict()
        table.add_row(
            f"{row.budget:,}",
            *(
                _plain(shown[f"{name}_ms"])
                for name in (
                    *("itl_short_p99", "itl_short_max", "ttft_short_p95", "ttft_long_p95", "ttft_p95"),
                    "tpot_p95",
                )
            ),
            "-" if row.goodput_ratio is None else percent(row.goodput_ratio, 1),
            f"{row.tokens_per_s:,.0f}",
            f"{row.preemptions:,}",
        )
    screen.table(table)
    choice = "none" if swept.recommended is None else f"{swept.recommended:,} tokens a step"
    screen.said(
        [
            ("recommended", f"{choice}: {swept.why}"),
            ("short, long", f"prompts up to {swept.short_tokens:,} and from {swept.long_tokens:,} tokens; times in ms"),
            *(("note", note) for note in notes),
        ]
    )


def _plain(milliseconds: float | None) -> str:
    return "-" if milliseconds is None else f"{milliseconds:,.1f}"
