"""Efficiency: what caching returned, which discounts were taken, what was wasted, how the context grew."""

from __future__ import annotations

import polars as pl

from tenfold import charts, tables
from tenfold.analysis.efficiency import Change, Efficiency, Kpis
from tenfold.display import name_of, number, percent, sentence
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Section, Skipped, Table
from tenfold.reviewing.facts import OF_REQUESTS, Facts
from tenfold.tables import Cell, Column

_TITLE = "Efficiency"
_MOST = 20


def section(facts: Facts) -> Section | Skipped:
    """Write the section on efficiency.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced.
    """
    if not facts.reading.spend_pusd:
        return Skipped(_TITLE, "nothing in this quarter costs anything; see coverage")
    found, before = facts.efficiency, facts.efficiency_before
    said = [*([OF_REQUESTS] if facts.ledger.charges else []), *map(sentence, found.sentences())]
    blocks: list[Block] = [Lines(tuple(said), "made-kpis"), Table(_shares(found, before), "made-kpis")]
    made = [_KPIS]
    if found.total.cache is not None:
        blocks += [Heading("What caching returned"), Table(_cache(found, before), "made-cache-return")]
        made.append(_CACHE)
    if found.total.waste:
        blocks += [Heading("Waste"), *_waste(found, before)]
        made.append(_WASTE)
    if found.growth is not None:
        blocks += [Heading("Growth of the context"), *_growth(found)]
        made.append(_GROWTH)
    if len(found.months) > 1:
        blocks += [Heading("By month"), Table(_monthly(found), "made-kpis")]
    for name, values in found.groups.items():
        if len(values) > 1:
            blocks += [Heading(f"By {name}"), Table(_by(found, name), "made-kpis")]
    return Section("efficiency", _TITLE, tuple(blocks), tuple(made))


_KPIS = Made(
    "made-kpis",
    "Efficiency",
    "Sums over billed requests; shares of spend are over what has a price. A share is over the requests (or tokens) of "
    "which the log tells; where a column is empty throughout, the indicator is named as not measurable.",
    "efficiency_sums",
)
_CACHE = Made(
    "made-cache-return",
    "What caching returned",
    "Requests that read, wrote or held a prompt cache are priced once more with the same input uncached, by the same "
    "price list, tier and context band. Saved is the difference of the whole input side; the return is saved over what "
    "was laid out: what writes cost beyond uncached input, and storage.",
    "efficiency_uncached",
)
_WASTE = Made(
    "made-waste",
    "Waste",
    "Each request has one cause, the first that holds: it failed and was billed; it asks again (but for a retry of a "
    "billed failure, which is counted already); it was cut off at its limit; it asks what was answered before (equal "
    "prompt and parameters of one model within an organisation and project, after the first whole answer). The last is "
    "a ceiling and in no total.",
    "efficiency_sums",
)
_GROWTH = Made(
    "made-growth",
    "Growth of the context",
    "Turns are the billed requests of a session in the order of their starts, from the first in the quarter. The ratio "
    "holds a turn's input against the first input of the same sessions, so that long sessions do not look like growth.",
    "efficiency_turns",
)


def _shares(found: Efficiency, before: Efficiency | None) -> tables.Grid:
    columns = (
        Column("indicator", "indicator"),
        Column("now", "this quarter", "ratio"),
        Column("before", "quarter before", "ratio"),
        Column("change", "change (points)", "number", 1),
    )
    rows: list[list[Cell]] = [
        [sentence(one.measure.title), one.now, one.before, None if one.difference is None else 100 * one.difference]
        for one in found.against(before)
        if one.measure.kind == "ratio" and one.now is not None and (one.now or one.before or not _is_tier(one))
    ]
    if found.discount.ratio is not None:
        old = None if before is None else before.discount.ratio
        change = None if old is None else 100 * (found.discount.ratio - old)
        rows.append(["Effective discount off the list", found.discount.ratio, old, change])
    return tables.grid("table-kpis", "Efficiency: shares", columns, rows)


def _is_tier(one: Change) -> bool:
    """Whether it is the share of a tier, which needs no row where it was never used."""
    return one.measure.name.startswith(("batch", "flex"))


def _cache(found: Efficiency, before: Efficiency | None) -> tables.Grid:
    columns = (
        Column("month", "month"),
        Column("uncached", "input without caching (USD)", "pusd"),
        Column("billed", "as billed (USD)", "pusd"),
        Column("saving", "saved (USD)", "pusd"),
        Column("premium", "writes' premium (USD)", "pusd"),
        Column("storage", "storage (USD)", "pusd"),
        Column("roi", "saved per $ of both", "number"),
    )
    slices = [(f"{month:%Y-%m}", kpis) for month, kpis in found.months] if len(found.months) > 1 else []
    slices.append(("this quarter", found.total))
    if before is not None:
        slices.append(("quarter before", before.total))
    rows = [_cache_row(name, kpis) for name, kpis in slices]
    return tables.grid("table-cache-return", "The same input with and without caching", columns, rows)


def _cache_row(name: str, kpis: Kpis) -> list[Cell]:
    cache = kpis.cache
    if cache is None:
        return [name, *[None] * 6]
    money = (cache.uncached_pusd, cache.billed_pusd, cache.saving_pusd, cache.premium_pusd, cache.storage_pusd)
    return [name, *money, cache.roi]


def _waste(found: Efficiency, before: Efficiency | None) -> list[Block]:
    columns = (
        Column("cause", "first cause"),
        Column("label", "label"),
        Column("requests", "requests", "count"),
        Column("cost", "cost (USD)", "pusd"),
        Column("share", "share of spend", "ratio"),
        Column("before", "quarter before", "ratio"),
        Column("marked", "all that bear the mark", "count"),
        Column("marked_cost", "their cost (USD)", "pusd"),
    )
    rows: list[list[Cell]] = []
    for one in found.total.waste:
        old = None if before is None else before.total.waste_of(one.cause.name)
        rows.append([
            sentence(one.cause.title), one.cause.label, one.once_requests, _cost(one.once_pusd), one.once_share,
            None if old is None else old.once_share, one.requests, _cost(one.pusd),
        ])  # fmt: skip
    exact = [one for one in found.total.waste if one.cause.label == "exact"]
    if exact:
        rows.append([
            "total, ceilings left out", "exact", sum(one.once_requests for one in exact),
            _cost(found.total.waste_pusd), found.total.waste_share,
            None if before is None else before.total.waste_share, None, None,
        ])  # fmt: skip
    unpriced = found.total.waste_unpriced
    note = f"{unpriced:,} of the requests have no price and are in no amount." if unpriced else ""
    grid = tables.grid("table-waste", "Waste by first cause", columns, rows, note=note)
    drawn = [one for one in found.total.waste if one.once_pusd]
    if not drawn:
        return [Table(grid, "made-waste")]
    frame = pl.DataFrame(
        [(one.cause.title, one.once_pusd, one.cause.label) for one in drawn],
        schema={"cause": pl.String, "pusd": pl.Int128, "label": pl.String},
        orient="row",
    )
    top = max(drawn, key=lambda one: one.once_pusd or 0)
    said = f"Largest: {top.cause.title}, {shown(top.once_pusd or 0)} ({percent(top.once_share, 1)} of spend)."
    if found.total.waste_pusd is not None:
        said += f" Together {shown(found.total.waste_pusd)}, ceilings left out."
    picture = Picture(charts.waste_bars(frame), "chart-waste", "Waste by first cause", said, "made-waste")
    return [picture, Table(grid, "made-waste")]


def _cost(pusd: int | None) -> Cell:
    return "not priced" if pusd is None else pusd


def _growth(found: Efficiency) -> list[Block]:
    growth = found.growth
    if growth is None:
        return []
    columns = (
        Column("turn", "turn"),
        Column("requests", "requests", "count"),
        Column("tokens", "input tokens per request", "number", 0),
        Column("ratio", "over their sessions' first turn", "number", 2),
    )
    rows = [(one.name, one.requests, one.mean_tokens, one.ratio) for one in growth.turns]
    table = Table(tables.grid("table-growth", "Input by turn of the session", columns, rows), "made-growth")
    if len(growth.turns) < 2:
        return [table]
    frame = pl.DataFrame(
        [(one.name, float(one.mean_tokens), one.requests) for one in growth.turns],
        schema={"turn": pl.String, "tokens": pl.Float64, "requests": pl.Int64},
        orient="row",
    )
    first, last = growth.turns[0], growth.turns[-1]
    said = (
        f"A request has {number(first.mean_tokens, 0)} input tokens at turn {first.name} and "
        f"{number(last.mean_tokens, 0)} at turn {last.name}."
    )
    if growth.median is not None:
        said += f" The middle session ends with {number(growth.median, 2)} times its first input."
    picture = Picture(charts.context_growth(frame), "chart-growth", "Input tokens by turn", said, "made-growth")
    return [picture, table]


def _monthly(found: Efficiency) -> tables.Grid:
    rows = [(f"{month:%Y-%m}", *_indicators(kpis)) for month, kpis in found.months]
    columns = (Column("month", "month"), *_INDICATORS)
    return tables.grid("table-kpis-monthly", "Efficiency by month", columns, rows)


def _by(found: Efficiency, name: str) -> tables.Grid:
    values = found.groups[name]
    rows = [(name_of(name, value), *_indicators(kpis)) for value, kpis in values[:_MOST]]
    more = len(values) - len(rows)
    note = f"{more:,} more {name}s cost less and are not shown." if more else ""
    return tables.grid(
        f"table-kpis-{name}", f"Efficiency by {name}", (Column(name, name), *_INDICATORS), rows, note=note
    )


_INDICATORS = (
    Column("spend", "spend (USD)", "pusd"),
    Column("hit", "input read from cache", "ratio"),
    Column("saving", "saved by caching (USD)", "pusd"),
    Column("batch", "batch, of spend", "ratio"),
    Column("waste", "waste (USD)", "pusd"),
    Column("waste_share", "waste, of spend", "ratio"),
    Column("input", "input tokens per request", "number", 0),
)


def _indicators(kpis: Kpis) -> tuple[Cell, ...]:
    return (
        "not priced" if kpis.is_blank else kpis.spend_pusd,
        kpis.cache_hit_ratio,
        None if kpis.cache is None else kpis.cache.saving_pusd,
        kpis.tier_share("batch"),
        kpis.waste_pusd,
        kpis.waste_share,
        kpis.mean_input_tokens,
    )
