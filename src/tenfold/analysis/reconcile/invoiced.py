"""What providers say: rows of reports and invoices, one source a provider and span, what has no place put aside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from tenfold.analysis.reconcile.names import Names, meter_name
from tenfold.money import PUSD_PER_USD
from tenfold.prices.meters import METER_NAMES
from tenfold.store.schema import BUCKET_TOKENS

# Sources of amounts: the first that covers a span is taken, amounts of two are never added.
COSTS = ("openai_org_costs", "anthropic_cost_report", "focus", "invoice_csv")
USAGE = ("openai_org_usage", "anthropic_usage_report")
# Parts of the reported totals; what is left of a total is its own meter.
_PARTS = {
    "cache_read": "cache_read_tokens",
    "cache_write_long": "cache_write_long_tokens",
    "web_search": "web_searches",
}
_BEYOND = "outside the window asked for"


class Line(NamedTuple):
    """One row of a report that has a place.

    Args:
        start: First instant, naive UTC.
        end: Instant after the last.
        source: Reader that read it.
        place: File and line.
        groups: Dimensions that the report is split by.
        provider: Who bills.
        model: The log's name of the model; None where the row is of all models.
        is_known: The log has that model.
        tier: Service tier, where the report says it.
        meter: Meter; None where the row is of all meters.
        project: Project, where the report says it.
        key: API key, where the report says it.
        units: Units of the meter; None where the report has no quantity.
        pusd: Amount billed, in pUSD; None in a usage report.
        written: The model as the report writes it.
        is_repeat: An earlier file has the same row with the same amount.
    """

    start: datetime
    end: datetime
    source: str
    place: str
    groups: str
    provider: str
    model: str | None
    is_known: bool
    tier: str | None
    meter: str | None
    project: str | None
    key: str | None
    units: int | None
    pusd: int | None
    written: str
    is_repeat: bool = False


class LeftOut(NamedTuple):
    """A row that would have a place if its amount were in dollars.

    Args:
        start: First instant, naive UTC.
        end: Instant after the last.
        place: File and line.
        provider: Who bills.
        model: The log's name of the model; None where the row is of all models.
        meter: Meter; None where the row is of all meters.
        reason: Why it is left out.
    """

    start: datetime
    end: datetime
    place: str
    provider: str
    model: str | None
    meter: str | None
    reason: str


class Dropped(NamedTuple):
    """Rows of one kind that were not held against the log.

    Args:
        reason: Why.
        provider: Who bills; None where the rows do not tell.
        rows: How many.
        pusd: Their amount where it is in dollars.
        amounts: Their amounts in other currencies.
        examples: The first of them: place and what they say.
    """

    reason: str
    provider: str | None
    rows: int
    pusd: int
    amounts: Mapping[str, Decimal]
    examples: tuple[str, ...]


class Invoiced(NamedTuple):
    """What reports and invoices say.

    Args:
        costs: Rows with amounts.
        usage: Rows of usage reports.
        dropped: What has no place.
        left_out: Those of it that are of usage of the log's, in another currency.
        notes: What a reader must know.
        rows: Rows with amounts billed that were read.
    """

    costs: tuple[Line, ...]
    usage: tuple[Line, ...]
    dropped: tuple[Dropped, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    rows: int


class _Drops:
    """Collects what is put aside."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str | None], list[tuple[int | None, str, Decimal, str]]] = defaultdict(list)
        self.left_out: list[LeftOut] = []

    def add(self, reason: str, provider: str | None, row: Mapping[str, Any]) -> None:
        pusd = None if row["amount_usd"] is None else to_pusd(row["amount_usd"])
        said = row["description"] or row["model"] or row["meter"] or ""
        place = f"{row['source_file']}:{row['source_line']} {said}".strip()
        self.held[reason, provider].append((pusd, row["currency"] or "", row["amount"] or Decimal(0), place))

    def line(self, reason: str, line: Line) -> None:
        self.held[reason, line.provider].append((line.pusd or 0, "USD", Decimal(0), f"{line.place} {line.written}"))

    def all(self) -> tuple[Dropped, ...]:
        made: list[Dropped] = []
        for (reason, provider), rows in sorted(self.held.items(), key=lambda item: (item[0][0], item[0][1] or "")):
            amounts: dict[str, Decimal] = {}
            for pusd, currency, amount, _ in rows:
                if pusd is None and currency:
                    amounts[currency] = amounts.get(currency, Decimal(0)) + amount
            total = sum(pusd or 0 for pusd, *_ in rows)
            made.append(Dropped(reason, provider, len(rows), total, amounts, tuple(row[3] for row in rows[:3])))
        return tuple(made)


def to_pusd(usd: Decimal) -> int:
    """Write an amount of the store, which has twelve decimals, as pUSD."""
    return int(usd * PUSD_PER_USD)


def read(buckets: pl.DataFrame, names: Names, since: datetime | None, until: datetime | None) -> Invoiced:
    """Place the rows of reports and invoices.

    Args:
        buckets: Rows of ``usage_buckets``.
        names: The log's names.
        since: First instant wanted, naive UTC, or None.
        until: Instant after the last, or None.

    Returns:
        What they say.
    """
    drops, notes = _Drops(), list[str]()
    costs: list[Line] = []
    usage: list[Line] = []
    rows = 0
    other: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    seen: dict[tuple[str, Decimal], str] = {}
    told: dict[str, str] = {}  # what an amount is for to the first file that says one
    differ: dict[tuple[str, str], list[int]] = defaultdict(list)
    order = buckets.filter(pl.col("source_format").is_in([*COSTS, *USAGE])).sort("load_id", "source_line")
    only_model_free = _free_of_models(order)
    for row in order.iter_rows(named=True):
        if row["source_format"] in USAGE:
            usage += _usage(row, names)
            continue
        kind = row["amount_kind"]
        if kind == "total":
            drops.add("total of other rows", names.provider(row["provider"], row["model"]), row)
            continue
        if row["amount_usd"] is not None and (row["category"] or "usage") == "usage":
            other[row["source_format"]][kind] += to_pusd(row["amount_usd"])
        if kind != "billed":
            continue
        rows += 1
        line = _cost(row, names, drops, only_model_free)
        if line is None:
            is_of_none = row["model"] and names.provider(row["provider"], row["model"]) is None
            if is_of_none and (asked := names.asked(None, row["model"])):
                notes.append(f"{row['source_file']}:{row['source_line']}: no log has {row['model']}{asked}")
            continue
        mark = (row["bucket_key"], row["amount"])
        is_new = mark not in seen
        first = seen.setdefault(mark, row["source_file"])
        other_file = told.setdefault(row["bucket_key"], row["source_file"])
        if is_new and other_file != row["source_file"]:
            differ[other_file, row["source_file"]].append(row["source_line"])
        costs.append(line._replace(is_repeat=first != row["source_file"]))
    for source, kinds in sorted(other.items()):
        if kinds.get("effective", kinds.get("billed")) != kinds.get("billed"):
            notes.append(
                f"{source}: effective cost of usage differs from what is billed for it (commitments, credits); "
                "an invoice is held against billed amounts, the other kinds are left out"
            )
    for (one, second), lines in differ.items():
        more = f" (and {len(lines) - 1:,} rows more)" if len(lines) > 1 else ""
        notes.append(
            f"{second}:{lines[0]} has another amount than {one} for the same{more}; both are counted, so leave out the "
            "file that no longer holds"
        )
    chosen = _chosen(costs, COSTS, drops, since, until)
    used = _chosen(usage, USAGE, None, since, until)
    return Invoiced(tuple(chosen), tuple(used), drops.all(), tuple(drops.left_out), tuple(notes), rows)


def _free_of_models(rows: pl.DataFrame) -> frozenset[tuple[str, str | None]]:
    """Find what a source has amounts of without ever naming a model: (format, meter)."""
    billed = rows.filter(pl.col("amount_kind") == "billed")
    free: set[tuple[str, str | None]] = set()
    for source, meter in billed.select("source_format", "meter").unique().rows():
        same = billed.filter((pl.col("source_format") == source) & pl.col("meter").eq_missing(meter))
        if same["model"].is_null().all():
            free.add((source, meter))
    sources = {source for source in billed["source_format"].unique() if source}
    for source in sources:
        meters = set(billed.filter(pl.col("source_format") == source)["meter"])
        # An amount of nothing in particular stands for the whole bill only where there is nothing else.
        if meters != {None}:
            free.discard((source, None))
    return frozenset(free)


def _cost(row: Mapping[str, Any], names: Names, drops: _Drops, free: frozenset[tuple[str, str | None]]) -> Line | None:
    provider = names.provider(row["provider"], row["model"])
    category = row["category"] or "usage"
    if row["amount_usd"] is None:
        reason = f"in {row['currency'] or 'no currency'}, not in dollars"
        drops.add(reason, provider, row)
        if provider is not None and category == "usage" and row["bucket_start"] and row["bucket_end"]:
            line = _line(row, names, provider, meter_name(row["meter"]), None, None)
            about = (line.start, line.end, line.place, provider, line.model, line.meter, reason)
            drops.left_out.append(LeftOut(*about))
    elif category != "usage":
        drops.add(category, provider, row)
    elif row["bucket_start"] is None or row["bucket_end"] is None or row["bucket_end"] <= row["bucket_start"]:
        drops.add("no period", provider, row)
    elif provider is None:
        drops.add("no provider, and the log does not tell it", provider, row)
    elif row["model"] is None and (row["source_format"], row["meter"]) not in free:
        drops.add("no model", provider, row)
    elif row["model"] is None and row["meter"] is not None and meter_name(row["meter"]) not in METER_NAMES:
        drops.add("no model, and no meter of the log", provider, row)
    else:
        return _line(row, names, provider, meter_name(row["meter"]), _units(row), to_pusd(row["amount_usd"]))
    return None


def _units(row: Mapping[str, Any]) -> int | None:
    if row["quantity"] is None or row["unit"] is None or row["quantity"] % 1:
        return None
    is_tokens = "token" in row["unit"]
    meter = meter_name(row["meter"])
    if is_tokens != (meter not in ("web_search", "file_search", "code_session", "image", "page", "character")):
        return None
    return int(row["quantity"]) if row["unit"] == "tokens" or not is_tokens else None


def _line(
    row: Mapping[str, Any], names: Names, provider: str, meter: str | None, units: int | None, pusd: int | None
) -> Line:
    model, is_known = names.model(provider, row["model"]) if row["model"] else (None, True)
    return Line(
        row["bucket_start"],
        row["bucket_end"],
        row["source_format"],
        f"{row['source_file']}:{row['source_line']}",
        row["grouped_by"] or "",
        provider,
        model,
        is_known,
        row["service_tier"],
        meter,
        row["project"],
        row["api_key_id"],
        units,
        pusd,
        row["model"] or row["description"] or "",
    )


def _usage(row: Mapping[str, Any], names: Names) -> list[Line]:
    """Cut the totals of a usage report into disjoint meters."""
    if row["model"] is None or row["bucket_start"] is None or all(row[name] is None for name in BUCKET_TOKENS):
        return []
    provider = names.provider(row["provider"], row["model"])
    if provider is None:
        return []
    units = {meter: row[column] for meter, column in _PARTS.items() if row[column] is not None}
    if row["cache_write_tokens"] is not None:
        units["cache_write"] = row["cache_write_tokens"] - units.get("cache_write_long", 0)
    if row["input_tokens"] is not None:
        cached = (row["cache_read_tokens"] or 0) + (row["cache_write_tokens"] or 0)
        units["uncached_input"] = row["input_tokens"] - cached
    if row["output_tokens"] is not None:
        units["output"] = row["output_tokens"]
    return [_line(row, names, provider, meter, count, None) for meter, count in units.items()]


def _width(line: Line) -> int:
    """Tell how wide a row's span is: 0 about a day, 1 hours, 2 more; two reports of one source may differ in it."""
    span = line.end - line.start
    return 2 if span > timedelta(hours=26) else 0 if span > timedelta(hours=2) else 1


def _chosen(
    lines: Iterable[Line],
    order: tuple[str, ...],
    drops: _Drops | None,
    since: datetime | None,
    until: datetime | None,
) -> list[Line]:
    """Take one source for each provider and span: the provider's own report first, the finer split of one source."""
    groups: dict[tuple[str, str, str, int], list[Line]] = defaultdict(list)
    for line in lines:
        if (since is not None and line.start < since) or (until is not None and line.end > until):
            if drops is not None:
                drops.line(_BEYOND, line)
            continue
        groups[line.provider, line.source, line.groups, _width(line)].append(line)

    def rank(key: tuple[str, str, str, int]) -> tuple[str, int, int, int]:
        dimensions = key[2].split(",")
        return key[0], order.index(key[1]), -len(dimensions), key[3]

    spans: dict[str, list[tuple[datetime, datetime, tuple[str, str, str, int]]]] = defaultdict(list)
    taken: list[Line] = []
    for key in sorted(groups, key=rank):
        held = groups[key]
        for line in held:
            rival = next((one for one in spans[line.provider] if line.start < one[1] and one[0] < line.end), None)
            if rival is None:
                taken.append(line)
            elif drops is not None:
                drops.line(f"its span is in {rival[2][1]} too, and amounts of two reports are not added", line)
        own = [line for line in taken if (line.provider, line.source, line.groups) == key[:3]]
        if own:
            spans[key[0]].append((min(line.start for line in own), max(line.end for line in own), key))
    return taken
