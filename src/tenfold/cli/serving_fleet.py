"""``tenfold serving fleet``: what GPUs of one's own cost, how busy they were, and the rate card that follows."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import typer

from tenfold import display
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
    one_state,
    plain_table,
    print_json,
    report_zone,
)
from tenfold.ledger import Ledger, attribute
from tenfold.money import divided, shown, usd_text
from tenfold.serving import specs
from tenfold.serving.fleet import COMMITMENTS, SCHEME
from tenfold.serving.hosted import Hosted, HostedLedger, Hour, Pool, on_fleet

FleetFile = Annotated[
    Path | None,
    typer.Option(
        "--fleet",
        metavar="FILE",
        # a bracket before a name is markup to the help's printer, but for the backslash
        help="GPUs of your own (TOML, [\\[pool]] tables): prices self-hosted requests, and idle time as a line.",
    ),
]
_PER_MILLION = 10**6
_NAME = 34  # letters of a model in the table, which has 100 columns

TEMPLATE = f"""\
# GPUs of your own: one [[pool]] table for each set of equal replicas. Keys behind a # may be left out; what is written
# there is what they then are, or an example. Save it as fleet.toml, and see what it costs:
#   tenfold serving fleet --db usage.duckdb --fleet fleet.toml
[[pool]]
model = "meta-llama/Llama-3.1-8B"       # as the log calls it
gpu = "h100-sxm"                        # as in pricing/gpus.toml; a TOML file describes another
usd_per_hour = 2.95                     # of one GPU, for one hour; `tenfold serving prices h100-sxm` has lists
# tp = 1                                # GPUs that share one copy of the model
# replicas = 1                          # copies of the model
# commitment = "on_demand"              # {", ".join(COMMITMENTS)}
# weights = "{SCHEME}"                      # numbers of the weights as they run: {", ".join(specs.WEIGHTS)}
# kv = "{SCHEME}"                           # numbers of the KV cache: the same words
# spec = "meta-llama/Llama-3.1-8B"      # the model in pricing/models.toml, where the log has another name for it
# max_batch = 256                       # most requests at once a replica (max_num_seqs); default: not set
# from = 2026-07-01                     # first day (00:00 UTC) or instant that it runs; default: what the log covers
# to = 2026-10-01                       # day or instant that it ends, exclusive; default likewise
"""


def _template(asked: bool) -> None:
    if asked:
        sys.stdout.write(TEMPLATE)
        raise typer.Exit


Template = Annotated[
    bool,
    typer.Option(
        "--template", callback=_template, is_eager=True, help="Print a fleet file to fill in, with every key, and end."
    ),
]


def laid_on(ledger: Ledger, fleet: Path | None) -> Ledger:
    """Lay the fleet that the option names under a ledger.

    Args:
        ledger: The ledger.
        fleet: The fleet file, or None.

    Returns:
        The ledger with its self-hosted requests priced; as it was without a fleet.
    """
    if fleet is None:
        return ledger
    found = on_fleet(ledger, fleet)
    for warning in found.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    return found


def span_of(ledger: HostedLedger) -> dict[str, Any]:
    """Give the time that the fleet is billed for the keys that scripts rely on.

    Args:
        ledger: The ledger on its fleet.

    Returns:
        ``from`` and ``to`` of the bill, ``window{}`` (as asked; null where open) and ``covered{}``, the part of it that
        the log covers (null where none).
    """
    asked = ledger.window
    return {
        **_between(ledger.span),
        "window": _between((asked.since, asked.until)),
        "covered": None if ledger.period.covered is None else _between(ledger.period.covered),
    }


def _between(span: tuple[datetime | None, datetime | None]) -> dict[str, str | None]:
    return {name: one and one.isoformat() for name, one in zip(("from", "to"), span, strict=True)}


def fleet_line(ledger: HostedLedger) -> str:
    """Say in one line what the fleet cost, and how much of it waited.

    Args:
        ledger: The ledger.

    Returns:
        Text such as ``fleet $17,228.00, 2026-09-01 00:00 UTC to 2026-10-01 10:00 UTC: requests carry $9,003.12,
        $8,224.88 (47.7 %) is idle``.
    """
    since, until = (display.minute(one, ledger.window.zone) for one in ledger.span)
    carried = ledger.bill_pusd - ledger.idle_pusd
    share = f" ({display.percent(ledger.idle_pusd / ledger.bill_pusd, 1)})" if ledger.bill_pusd else ""
    said = f"fleet {display.small_dollars(ledger.bill_pusd)}, {since} to {until}: "
    said += f"requests carry {display.small_dollars(carried)}, "
    return f"{said}{display.small_dollars(ledger.idle_pusd)}{share} is idle"


def fleet(
    db: Db,
    fleet_file: Annotated[
        Path,
        typer.Option("--fleet", metavar="FILE", help="The fleet (TOML, [\\[pool]] tables).", show_default=False),
    ],
    from_: From = None,
    to: To = None,
    zone: Zone = None,
    prices: Prices = None,
    prices_only: PricesOnly = False,
    hours: Annotated[bool, typer.Option("--hours", help="With --json: each model's traffic hour by hour too.")] = False,
    json: Json = False,
    template: Template = False,  # noqa: ARG001 -- its callback answers
) -> None:
    """Price a fleet of your own GPUs: its bill, its idle time, and what a token costs on it."""
    local = report_zone(zone)
    ledger = attribute(
        one_state(db),
        book_of(prices, only=prices_only),
        since=instant(from_, local, "--from"),
        until=instant(to, local, "--to"),
        zone=local,
    )
    found = laid_on(ledger, fleet_file)
    assert isinstance(found, HostedLedger)
    if json:
        print_json(document(found, with_hours=hours))
    else:
        _show(Screen(), found)


def document(ledger: HostedLedger, *, with_hours: bool = False) -> dict[str, Any]:
    """Give the fleet the keys that scripts rely on.

    Args:
        ledger: The ledger on its fleet.
        with_hours: Whether to add ``models[].hourly[]``: traffic hour by hour.

    Returns:
        The document of ``tenfold serving fleet --json``. ``rates{}`` is USD per million tokens computed of the prompt
        (``input``), read from the KV cache (``cached``) and of the answer (``output``), null where there are none; at
        the top, with several models or stretches of time, the mean over tokens. Rates carry the busy time alone;
        ``loaded_usd_per_million`` is the whole bill, idle time included, over all tokens of whatever kind: at the top
        of the fleet, in ``models[]`` of a stretch, in ``pools[]`` of all its model's pools (no column parts them).
    """
    asked = {one.model.lower(): [*_of(ledger, one.model)] for one in ledger.hosted}
    return {
        "bill_usd": usd_text(ledger.bill_pusd),
        "idle_usd": usd_text(ledger.idle_pusd),
        "requests_usd": usd_text(ledger.bill_pusd - ledger.idle_pusd),
        "rates": _mean_rates(ledger.hosted),
        "rates_unit": "USD per million tokens, idle time left out; at the top the mean over tokens",
        "loaded_usd_per_million": _loaded(ledger.hosted),
        **span_of(ledger),
        "pools": [
            {
                "name": pool.name,
                "model": pool.model,
                "gpu": pool.gpu,
                "tp": pool.tp,
                "replicas": pool.replicas,
                "usd_per_gpu_hour": usd_text(pool.pusd_per_hour),
                "commitment": pool.commitment,
                "from": None if pool.since is None else pool.since.isoformat(),
                "to": None if pool.until is None else pool.until.isoformat(),
                "billed": _between(pool.billed(ledger.period) or (None, None)),
                "sum": _sum_text(ledger, pool),
                "bill_usd": usd_text(bill),
                "idle_usd": usd_text(charge.pusd),
                "loaded_usd_per_million": _loaded(asked.get(pool.model.lower(), [])),
            }
            for pool, bill, charge in zip(ledger.fleet.pools, ledger.pool_bills, ledger.charges, strict=True)
        ],
        "models": [_model(one, with_hours=with_hours) for one in ledger.hosted],
        "notes": list(ledger.notes),
        "card_version": ledger.book.version,
        "log_hash": ledger.log.log_hash,
    }


def _of(ledger: HostedLedger, model: str) -> Iterable[Hosted]:
    return (one for one in ledger.hosted if one.model.lower() == model.lower())


def _sum_text(ledger: HostedLedger, pool: Pool) -> str:
    span = pool.billed(ledger.period)
    return pool.sum_text(*span) if span else "no hours"


def _loaded(hosted: Iterable[Hosted]) -> str | None:
    """Give the whole bill over all tokens, in USD per million; null without tokens."""
    pusd = _loaded_pusd(hosted)
    return None if pusd is None else usd_text(pusd)


def _loaded_pusd(hosted: Iterable[Hosted]) -> int | None:
    listed = list(hosted)
    tokens = sum(one.demand.input_tokens + one.demand.output_tokens for one in listed)
    return divided(sum(one.bill_pusd for one in listed) * _PER_MILLION, tokens) if tokens else None


def _model(one: Hosted, *, with_hours: bool) -> dict[str, Any]:
    demand = one.demand
    return {
        "model": one.model,
        "from": one.since.isoformat(),
        "to": one.until.isoformat(),
        "hours": one.hours,
        "replicas": one.replicas,
        "gpus": one.gpus,
        "bill_usd": usd_text(one.bill_pusd),
        "idle_usd": usd_text(one.idle_pusd),
        "busy_ratio": one.busy_ratio,
        "label": one.label,
        "rates": dict(zip(one.rates._fields, (usd_text(rate * _PER_MILLION) for rate in one.rates), strict=True)),
        "loaded_usd_per_million": _loaded([one]),
        "requests": demand.requests,
        "tokens": {"input": demand.uncached_tokens, "cached": demand.cached_tokens, "output": demand.output_tokens},
        "batch": one.batch,
        "peak_in_flight": demand.peak,
        "gpu_seconds_per_million": {
            name: seconds * _PER_MILLION for name, seconds in zip(one.gpu_s._fields, one.gpu_s, strict=True)
        },
        "modelled_ratio": one.modelled_ratio,
        **({"hourly": [_hour(hour) for hour in demand.hours]} if with_hours else {}),
        "notes": list(one.notes),
    }


def _hour(hour: Hour) -> dict[str, Any]:
    return {**hour._asdict(), "starts_at": hour.starts_at.isoformat()}


def _mean_rates(hosted: Iterable[Hosted]) -> dict[str, str | None]:
    """Give the mean rate of each kind of token, in USD per million; null where there are none."""
    cost, tokens = [0, 0, 0], [0, 0, 0]
    for one in hosted:
        asked = (one.demand.uncached_tokens, one.demand.cached_tokens, one.demand.output_tokens)
        for kind, (rate, count) in enumerate(zip(one.rates, asked, strict=True)):
            cost[kind] += rate * count
            tokens[kind] += count
    return {
        name: usd_text(divided(pusd * _PER_MILLION, count)) if count else None
        for name, pusd, count in zip(("input", "cached", "output"), cost, tokens, strict=True)
    }


def _show(screen: Screen, ledger: HostedLedger) -> None:
    zone = ledger.window.zone
    screen.line(fleet_line(ledger), style="bold")
    loaded = _loaded_pusd(ledger.hosted)
    if loaded is not None:
        screen.line(f"{shown(loaded, 4)} per million tokens of any kind, idle time included")
    for pool, charge in zip(ledger.fleet.pools, ledger.charges, strict=True):
        each = _loaded_pusd(_of(ledger, pool.model))
        more = "" if each is None else f"; {shown(each, 4)} per million tokens of its model, idle time included"
        screen.line(f"{pool.name}: {_sum_text(ledger, pool)}, {display.small_dollars(charge.pusd)} of it idle{more}")
    screen.line()
    used = plain_table(("model", False), ("from", False), ("requests", True), ("batch", True), ("busy", True),
                       ("", False), ("bill", True), ("idle", True))  # fmt: skip
    rates = plain_table(("USD per million tokens", False), ("from", False), ("input", True), ("cached", True),
                        ("output", True), ("any, with idle", True))  # fmt: skip
    for one in ledger.hosted:
        # only what begins later needs its minute: the first line above has that of the bill
        since = one.since.astimezone(ZoneInfo(zone))
        head = (_short(one.model), f"{since:%Y-%m-%d}" if one.since == ledger.span[0] else f"{since:%m-%d %H:%M}")
        used.add_row(
            *head, f"{one.demand.requests:,}", display.number(one.batch, 1), display.percent(one.busy_ratio, 1),
            one.label, display.small_dollars(one.bill_pusd), display.small_dollars(one.idle_pusd),
        )  # fmt: skip
        rates.add_row(*head, *_rates(one), "" if one.loaded_pusd is None else shown(one.loaded_pusd, 4))
    screen.table(used)
    screen.line()
    screen.table(rates)
    own = (f"{one.model}: {note}" for one in ledger.hosted for note in one.notes)
    for note in dict.fromkeys([*ledger.notes[len(ledger.warnings) :], *own]):
        screen.line(f"Note: {note}")


def _short(model: str) -> str:
    """Cut a long name for the table; the pools above it have it whole."""
    return model if len(model) <= _NAME else f"{model[: _NAME - 1]}…"


def _rates(one: Hosted) -> list[str]:
    return [shown(rate * _PER_MILLION, 4) if one.demand.requests else "" for rate in one.rates]
