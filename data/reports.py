"""What the providers say Larkspur owes for 2026Q3: `python -m data.reports`, with tenfold installed, writes them.

The amounts are tenfold's own, of the requests as they truly were: the streams whose usage was lost and the counts that
were spoilt in the logs are in them, and a fine-tuned model and a laboratory's key that the logs or the price book do
not know.
"""

import argparse
import gzip
import json
import tempfile
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import tenfold as tf

from . import earlier
from .company import UNPRICED_MODEL
from .record import DAYS, START, Request
from .traffic import make_requests
from .writers import csv_row

OPENAI, ANTHROPIC = "openai_costs.json.gz", "anthropic_costs.json.gz"
_LINES = {
    "uncached_input": "input_tokens",
    "cache_read": "cached_input_tokens",
    "cache_write": "input_cache_write_tokens",
    "output": "output_tokens",
}
_TOKENS = {
    "uncached_input": "uncached_input_tokens",
    "cache_read": "cache_read_input_tokens",
    "cache_write": "cache_creation.ephemeral_5m_input_tokens",
    "cache_write_long": "cache_creation.ephemeral_1h_input_tokens",
    "output": "output_tokens",
}
_FINE_TUNED = ("ft:gpt-4o-mini-2024-07-18:larkspur::7", Decimal("0.30"), Decimal("1.20"))
"""As OpenAI names it, and its price per million tokens, input and output."""
_LAB = ("gpt-4.1-mini", "proj_lab", Decimal("0.40"), 1_100_000)
"""A key that no log has: model, project, price per million tokens, input tokens each Tuesday."""

_Row = tuple[date, str, str, str, int, Decimal]
"""Day, model, tier, meter, units, USD."""


def write_reports(out: Path, *, seed: int = 7, scale: float = 1.0) -> None:
    """Write the two cost reports.

    Args:
        out: Directory to write into.
        seed: That of the logs.
        scale: That of the logs.
    """
    requests = [one for one in make_requests(seed, scale) if _is_billed(one)]
    rows = list(_priced(requests))
    _write(out / OPENAI, _pages(_openai(rows, requests)))
    _write(out / ANTHROPIC, _pages(_anthropic(rows)))


def _is_billed(request: Request) -> bool:
    return request.status != "error" and not request.gateway_cache_hit and request.output_tokens > 0


def _priced(requests: list[Request]) -> Iterable[_Row]:
    """Price the requests as they truly were, by UTC day, model, tier and meter."""
    for number, request in enumerate(requests, 1):
        request.request_id = f"t{number}"
        request.flag = None
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "true.csv"
        log.write_text("\n".join([csv_row(earlier.COLUMNS), *map(earlier.line, requests)]) + "\n")
        ledger = tf.attribute(tf.load([str(log)], db=f"{folder}/true.duckdb"))
        for row in ledger.composition(["day", "provider", "model", "service_tier"]).rows():
            for meter in (name.removesuffix("_usd") for name in row if name.endswith("_usd") and name != "cost_usd"):
                usd, units = row[f"{meter}_usd"], row[f"{meter}_tokens"] or row.get(f"{meter}_calls")
                if usd is not None and units:
                    day = date.fromisoformat(row["day"])
                    yield day, f"{row['provider']}/{row['model']}", row["service_tier"], meter, units, Decimal(usd)


def _openai(rows: list[_Row], requests: list[Request]) -> dict[date, list[dict[str, object]]]:
    """Write costs in dollars, a line for each model and kind of token; tiers are not kept apart in them."""
    sums: dict[tuple[date, str, str], tuple[int, Decimal]] = {}

    def add(day: date, item: str, project: str, units: int, usd: Decimal) -> None:
        known = sums.get((day, item, project), (0, Decimal(0)))
        sums[day, item, project] = (known[0] + units, known[1] + usd)

    for day, model, _, meter, units, usd in rows:
        if model.startswith("openai/"):
            add(day, f"{model.removeprefix('openai/')}, {_LINES[meter]}", "proj_larkspur", units, usd)
    name, in_price, out_price = _FINE_TUNED
    for request in requests:
        if request.model == UNPRICED_MODEL:
            for line, units, price in (
                ("input_tokens", request.input_tokens, in_price),
                ("output_tokens", request.output_tokens, out_price),
            ):
                add(request.start.date(), f"{name}, {line}", "proj_larkspur", units, units * price / 1_000_000)
    model, project, price, units = _LAB
    for day in (START.date() + timedelta(days=number) for number in range(DAYS)):
        if day.weekday() == 1:
            add(day, f"{model}, input_tokens", project, units, units * price / 1_000_000)
    days: dict[date, list[dict[str, object]]] = {}
    for (day, item, project), (units, usd) in sorted(sums.items()):
        days.setdefault(day, []).append(
            {
                "object": "organization.costs.result",
                "amount": {"value": float(usd), "currency": "usd"},
                "line_item": item,
                "project_id": project,
                "quantity": units / 1_000,
                "quantity_unit": "1000_tokens",
            }
        )
    return days


def _anthropic(rows: list[_Row]) -> dict[date, list[dict[str, object]]]:
    """Write costs in cents, as text."""
    days: dict[date, list[dict[str, object]]] = {}
    for day, model, tier, meter, _, usd in sorted(rows, key=str):
        if not model.startswith("anthropic/"):
            continue
        name = model.removeprefix("anthropic/")
        tokens = {"cost_type": "tokens", "token_type": _TOKENS.get(meter), "model": name, "service_tier": tier}
        kind = tokens if meter in _TOKENS else {"cost_type": "web_search"}
        days.setdefault(day, []).append(
            {"currency": "USD", "amount": f"{(usd * 100).normalize():f}", "workspace_id": None, **kind}
        )
    return days


def _pages(days: dict[date, list[dict[str, object]]]) -> dict[str, object]:
    buckets: list[dict[str, object]] = []
    for day, results in sorted(days.items()):
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        end = start + timedelta(days=1)
        if "object" in results[0]:
            times = {"object": "bucket", "start_time": int(start.timestamp()), "end_time": int(end.timestamp())}
        else:
            times = {"starting_at": f"{start:%Y-%m-%dT%H:%M:%SZ}", "ending_at": f"{end:%Y-%m-%dT%H:%M:%SZ}"}
        buckets.append({**times, "results": results})
    return {"data": buckets, "has_more": False, "next_page": None}


def _write(path: Path, page: dict[str, object]) -> None:
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=9, fileobj=raw, mtime=0) as packed:
        packed.write(json.dumps(page, separators=(", ", ": ")).encode())


def _main() -> None:
    parser = argparse.ArgumentParser(description="Write the providers' cost reports of the demo.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "demo", help="directory")
    write_reports(parser.parse_args().out)


if __name__ == "__main__":
    _main()
