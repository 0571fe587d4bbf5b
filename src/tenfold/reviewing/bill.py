"""Composition: what the bill is made of, by meter and by the dimensions that the log fills."""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from tenfold import charts, tables
from tenfold.display import absent, percent, sentence
from tenfold.money import shown
from tenfold.reviewing.facts import OF_REQUESTS, Facts
from tenfold.reviewing.page import Block, Grid, Heading, Lines, Made, Picture, Section, Skipped
from tenfold.serving.hosted import HostedLedger

_TABLED = ("team", "model", "feature", "service_tier")


def section(facts: Facts) -> Section | Skipped:
    """Write the composition section.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced.
    """
    reading = facts.reading
    if not reading.spend_pusd and not facts.ledger.charges:
        return Skipped("Composition", "nothing in this quarter costs anything; see coverage")
    blocks: list[Block] = [_by_meter(facts)] if reading.spend_pusd else []
    said = [*([OF_REQUESTS] if facts.ledger.charges else []), *map(sentence, reading.sentences())]
    blocks.append(Lines(tuple(said), "made-reading"))
    made = [_METERS]
    if isinstance(facts.ledger, HostedLedger):
        blocks += [Heading("GPUs of your own"), Lines(tuple(map(sentence, _fleet(facts.ledger))), "made-fleet")]
        made.append(_FLEET)
    if facts.ledger.book.is_own:
        costs = facts.ledger.costs()
        blocks += [
            Heading("List, contracted and effective"),
            Lines(tuple(map(sentence, costs.sentences())), "made-costs"),
        ]
        made.append(_COSTS)
    for dimension in _TABLED:
        if dimension not in reading.dimensions or len(reading.dimensions[dimension]) < 2:
            continue
        blocks += [Heading(f"By {_words(dimension)}"), *_by(facts, dimension)]
        made.append(_made(facts, dimension))
    return Section("composition", "Composition", tuple(blocks), tuple(made))


_METERS = Made(
    "made-meters",
    "Cost by meter",
    "Tokens are cut into meters that do not overlap, so the parts sum to what requests cost to the picodollar.",
    "totals",
)


_FLEET = Made(
    "made-fleet",
    "GPUs of your own",
    "The fleet's bill is GPUs x price x hours. The share of the replicas' time in which a request was under way is "
    "carried by the self-hosted requests, by the GPU time of a computed, a cached and an output token; rates are "
    "rounded down to the picodollar a token, and the rest is idle: requests and idle time sum to the bill exactly. "
    "Where requests have no duration, the busy share is modelled from arrivals and the line says so.",
    "fleet_busy",
)


def _fleet(ledger: HostedLedger) -> list[str]:
    """Say what each model's pools cost, how busy they were, and what a token cost."""
    said: list[str] = []
    for one in ledger.hosted:
        idle = f"{shown(one.idle_pusd)} of it idle"
        sums = " + ".join(pool.sum_text(one.since, one.until) for pool in one.pools)
        busy = f"busy {percent(one.busy_ratio)} ({one.label})"
        line = f"pools of {one.model}: {sums} = {shown(one.bill_pusd)}, {idle}; {busy}"
        if one.demand.requests:
            rates = " / ".join(shown(rate * 10**6, 3) for rate in one.rates)
            line += f"; per million tokens computed / cached / output {rates}"
            line += f", and with idle time {shown(one.loaded_pusd or 0, 3)} of any kind"
        said.append(line)
    return [*said, *(f"pools of {one.model}: {note}" for one in ledger.hosted for note in one.notes), *ledger.notes]


_COSTS = Made(
    "made-costs",
    "List, contracted and effective cost",
    "List cost is by the provider's list, contracted cost (the spend of this review) by your own prices over it. "
    "Effective cost adds commitments: each UTC day's capacity over that day's requests it covers, by tokens; idle days "
    "and what was not spent are no request's.",
    "totals",
)


def _made(facts: Facts, dimension: str) -> Made:
    how = f"Exact cost of requests grouped by {dimension}; the rows sum to the spend{facts.left_out}. "
    how += f"{absent(dimension)} is what the "
    how += "log and the owner rules do not name." if dimension == "team" else "log does not name."
    return Made(f"made-by-{dimension}", f"Cost by {_words(dimension)}", how, "totals")


def _words(dimension: str) -> str:
    return dimension.replace("_", " ")


def _by_meter(facts: Facts) -> Picture:
    meters = facts.reading.meters
    frame = pl.DataFrame({"meter": list(meters), "cost_pusd": pl.Series(list(meters.values()), dtype=pl.Int128)})
    parts = ", ".join(
        f"{charts.METER_LABELS[name]} {percent(facts.reading.share(name))} ({shown(cost)})"
        for name, cost in meters.items()
    )
    title = f"Share of cost by meter{facts.left_out}"
    svg = charts.to_svg(charts.meter_shares(frame), title, f"One bar: {parts}.", name="chart-meters")
    return Picture(svg, f"{title}: {parts}.", "made-meters")


def _by(facts: Facts, dimension: str) -> list[Block]:
    mix = facts.composition(dimension)
    items = facts.reading.dimensions[dimension]
    top = ", ".join(
        f"{item.value or absent(dimension)} {percent(Fraction(item.cost_pusd, facts.reading.spend_pusd))}"
        for item in items[:3]
    )
    words = _words(dimension)
    caption = f"Cost by {words}{facts.left_out}"
    grid = tables.composition(mix.frame, [dimension], name=f"table-by-{dimension}", caption=caption, is_styled=False)
    if dimension == "service_tier":
        return [Grid(grid, f"made-by-{dimension}")]
    title = f"Cost by {words}, cut by meter{facts.left_out}"
    description = f"A bar for each {words}, stacked by meter. Largest: {top}. The table after it has every figure."
    svg = charts.to_svg(charts.composition(mix.frame, dimension), title, description, name=f"chart-by-{dimension}")
    return [Picture(svg, f"{title}. Largest: {top}.", f"made-by-{dimension}"), Grid(grid, f"made-by-{dimension}")]
