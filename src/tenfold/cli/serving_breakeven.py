"""``tenfold serving breakeven``: from how many tokens a month on GPUs of one's own are cheaper than an API."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

import typer

from tenfold import display, logs
from tenfold.cli.common import (
    Db,
    From,
    Json,
    Prices,
    PricesOnly,
    Screen,
    To,
    Zone,
    book_of,
    instant,
    plain_table,
    print_json,
    report_zone,
)
from tenfold.cli.serving_common import (
    Calibrate,
    Engine,
    Gpu,
    Kv,
    Model,
    Tp,
    TpotSloMs,
    UsdPerGpuHour,
    Weights,
    calibrated,
    finite,
    hourly_price,
    replica,
    seconds,
)
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import attribute
from tenfold.levers.where import check
from tenfold.money import usd_text
from tenfold.prices.words import canonical_provider
from tenfold.serving.api_mix import Mix, api_mix
from tenfold.serving.breakeven import (
    UTILIZATION,
    Grown,
    Outcome,
    Terms,
    assumptions,
    break_even,
    grown,
    impossible,
    sensitivity,
)
from tenfold.serving.gpu_prices import gpu_price

Where = Annotated[
    str | None,
    typer.Option(
        "--where", metavar="SQL", help="Traffic to compare, as a predicate; default: what is not self-hosted."
    ),
]
ApiModel = Annotated[
    str | None,
    typer.Option(
        "--api-model", metavar="P/M", help="API whose prices to take, PROVIDER/MODEL, for self-hosted traffic."
    ),
]
Ops = Annotated[
    str, typer.Option("--ops-usd-per-month", metavar="X", help="People and what else hosting takes in a month, USD.")
]
Utilisation = Annotated[
    float,
    typer.Option(
        "--utilisation", metavar="U", callback=finite, help="Share of a replica that the busiest hour may use."
    ),
]


def breakeven(
    db: Db, model: Model, gpu: Gpu, tp: Tp = 1, weights: Weights = "bf16", kv: Kv = "bf16",
    usd_per_gpu_hour: UsdPerGpuHour = None, where: Where = None, api_model: ApiModel = None,
    ops_usd_per_month: Ops = "0", utilisation: Utilisation = float(UTILIZATION), tpot_slo_ms: TpotSloMs = None,
    calibrate: Calibrate = None, engine: Engine = None,
    from_: From = None, to: To = None, zone: Zone = None, prices: Prices = None, prices_only: PricesOnly = False,
    json: Json = False,
) -> None:  # fmt: skip
    """Compare an API with GPUs of your own on the log's mix and peak: where the break-even lies, and how it moves."""
    if not 0 < utilisation <= 1:
        raise AssumptionError(f"--utilisation {utilisation:g}: write a share above 0 and at most 1")
    one, api, ops = replica(model, gpu, tp, weights, kv), _api(api_model), _ops(ops_usd_per_month)
    traffic = None if where is None else check(where, "--where")
    measured = calibrated(one, calibrate, engine)
    price, source = hourly_price(gpu, usd_per_gpu_hour)
    if price is None:
        raise AssumptionError(f"{source}: state it with --usd-per-gpu-hour")
    terms = Terms(
        one,
        price,
        ops,
        Decimal(str(utilisation)),
        tpot_slo_s=seconds(tpot_slo_ms, "--tpot-slo-ms"),
        scale=1.0 if measured is None else measured.scale,
        is_calibrated=measured is not None,
    )
    local = report_zone(zone)
    ledger = attribute(
        logs.open_log(db),
        book_of(prices, only=prices_only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    mix = api_mix(ledger, where=traffic, api=api)
    here, least, moved = break_even(mix, terms), grown(mix, terms), sensitivity(mix, terms, _listed(gpu))
    if json:
        print_json(document(mix, terms, here, least, moved, price_source=source))
    else:
        _show(Screen(), mix, terms, here, least, moved, source)


def _ops(text: str) -> Decimal:
    try:
        usd = Decimal(text)
    except InvalidOperation as error:
        raise AssumptionError(f'--ops-usd-per-month "{text}": write a number of USD') from error
    if not usd.is_finite() or usd < 0:
        raise AssumptionError(f"--ops-usd-per-month {text}: write USD of at least 0")
    return usd


def _api(text: str | None) -> tuple[str, str] | None:
    if text is None:
        return None
    provider, _, model = text.partition("/")
    if not provider or not model:
        raise AssumptionError(f'--api-model "{text}": write PROVIDER/MODEL, such as openai/gpt-4.1-mini')
    return canonical_provider(provider), model


def _listed(gpu: str) -> list[tuple[str, Decimal]]:
    """What the lists say, to show what hangs on it."""
    others: list[tuple[str, Decimal]] = []
    for commitment in ("on_demand", "reserved_1y", "spot"):
        try:
            found = gpu_price(gpu, commitment)
        except NotEvaluable:
            continue
        name = commitment.replace("_", " ")
        others += [(f"{name} ${usd:f}", usd) for usd in sorted({found.low, found.median, found.high})]
    return others


def document(
    mix: Mix, terms: Terms, here: Outcome, least: Grown | None, moved: Sequence[Outcome], *, price_source: str
) -> dict[str, Any]:
    """Give the break-even the keys that scripts rely on.

    Args:
        mix: The traffic and its price at the API.
        terms: What hosting costs.
        here: The break-even under the terms as stated.
        least: The least traffic for which hosting pays.
        moved: The break-even with one thing changed at a time.
        price_source: Where the GPU's price comes from.

    Returns:
        The document of ``tenfold serving breakeven --json``: ``tokens_per_month`` and ``utilisation_ratio`` are those
        of the break-even with the GPUs that the measured peak takes.
    """
    one, tokens = terms.deployment, mix.tokens_per_month
    ends = sorted(outcome.tokens_per_month for outcome in moved)
    kinds = {"input": mix.computed, "cached": mix.cached, "output": mix.output}
    return {
        "tokens_per_month": here.tokens_per_month,
        "tokens_per_month_range": {"low": ends[0], "high": ends[-1]} if ends else None,
        "utilisation_ratio": round(here.utilisation_ratio, 6),
        "gpus": here.gpus,
        "replicas": here.replicas,
        "batch": here.batch,
        "tpot_ms": round(here.tpot_s * 1e3, 4),
        "tpot_slo_ms": None if terms.tpot_slo_s is None else terms.tpot_slo_s * 1e3,
        "tokens_per_s_per_gpu": round(here.tokens_per_s / one.tp, 2),
        "measured": {
            "requests": mix.requests,
            "unpriced_requests": mix.unpriced_requests,
            "unpriced_tokens": mix.unpriced_tokens,
            "why_unpriced": mix.why_unpriced or None,
            "days": mix.days,
            "tokens_per_month": None if tokens is None else round(tokens),
            "utilisation_ratio": None if here.measured_ratio is None else round(here.measured_ratio, 6),
            "peak_output_tokens_per_s": round(mix.peak_tokens_per_s, 3),
            "peak_at": mix.peak_at.isoformat(),
            "api_usd_per_month": usd_text(here.api_pusd_per_month),
            "self_usd_per_month": usd_text(here.self_pusd_per_month),
            "pays": here.pays,
        },
        "grown": None if least is None else least._asdict(),
        "api": {
            "label": mix.label,
            "source": mix.source,
            "usd_per_million": usd_text(mix.pusd * 10**6 // mix.tokens),
            "cache_tokens_billed_as_input": mix.as_input_tokens,
            **{
                name: {"tokens": kind.tokens, "usd_per_million": usd_text(kind.pusd_per_million)}
                for name, kind in kinds.items()
            },
        },
        "model": one.model.name,
        "gpu": one.gpu.name,
        "tp": one.tp,
        "usd_per_gpu_hour": f"{terms.usd_per_gpu_hour:f}",
        "usd_per_gpu_hour_source": price_source,
        "sensitivity": [outcome.as_dict() for outcome in moved],
        "impossible": impossible(mix, terms, moved),
        "assumptions": assumptions(mix, terms, here),
    }


def _show(
    screen: Screen, mix: Mix, terms: Terms, here: Outcome, least: Grown | None, moved: Sequence[Outcome], source: str
) -> None:
    one = terms.deployment
    ends = [outcome.tokens_per_month for outcome in moved]
    screen.line(
        f"{here.gpus} x {one.gpu.name} pay from {_millions(here.tokens_per_month)} tokens a month on "
        f"({_millions(min(ends))} to {_millions(max(ends))} as one thing or another changes)",
        style="bold",
    )
    screen.line(_measured(mix, here))
    if mix.unpriced_requests:
        share = mix.unpriced_tokens / (mix.unpriced_tokens + mix.tokens)
        screen.line(
            f"left out: {display.counted(mix.unpriced_requests, 'request')} without a price, "
            f"{display.percent(share, 1)} of the tokens"
        )
    screen.line(
        f"API {mix.source}: ${display.number(float(mix.pusd) / mix.tokens / 1e6, 3)} per million tokens of this mix "
        f"({mix.label}); break-even at {display.percent(here.utilisation_ratio, 1)} of what the GPUs could serve"
        + ("" if here.utilisation_ratio <= 1 else ": never, with these GPUs")
    )
    if least is not None:
        text = (
            f"{display.number(least.times, 2)} times this traffic, {_millions(least.tokens_per_month)} tokens a month"
        )
        screen.line(f"growing in step: it pays from {text}, with {least.replicas} replicas")
    elif mix.tokens_per_month is not None:
        screen.line("growing in step: it never pays, however much there is")
    screen.line()
    table = plain_table(
        ("what", False), ("value", False), ("GPUs", True), ("ms a\ntoken", True), ("tokens\na month", True),
        ("of ca-\npacity", True), ("self\na month", True), ("API\na month", True), ("pays", False), wraps=("value",),
    )  # fmt: skip
    for row in moved:
        api = "" if row.api_pusd_per_month is None else display.small_dollars(row.api_pusd_per_month)
        table.add_row(
            row.what, row.value, str(row.gpus), f"{row.tpot_s * 1e3:,.0f}", _millions(row.tokens_per_month),
            display.percent(row.utilisation_ratio, 1), display.small_dollars(row.self_pusd_per_month), api,
            "" if row.pays is None else ("yes" if row.pays else "no"),
        )  # fmt: skip
    screen.table(table)
    if cannot := impossible(mix, terms, moved):
        screen.line(f"Cannot be kept by any number of such replicas: {', '.join(cannot)}")
    price = f"a GPU and hour costs ${terms.usd_per_gpu_hour:f}: {source}"
    for said in (*assumptions(mix, terms, here), price):
        screen.line(f"Assumed: {said}")


def _measured(mix: Mix, here: Outcome) -> str:
    if mix.tokens_per_month is None or here.api_pusd_per_month is None:
        return f"measured: {mix.tokens:,} tokens in {display.counted(mix.days, 'day')}, too few to project a month"
    pays = "cheaper" if here.pays else "dearer"
    return (
        f"measured: {_millions(round(mix.tokens_per_month))} tokens a month, for which the API bills "
        f"{display.small_dollars(here.api_pusd_per_month)} and the GPUs cost "
        f"{display.small_dollars(here.self_pusd_per_month)}: hosting is {pays}"
    )


def _millions(tokens: int) -> str:
    return f"{display.number(tokens / 1e6, 1)} M"
