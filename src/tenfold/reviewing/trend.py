"""Over time: spend per day with the quarter's price changes, and how many requests run at once."""

from __future__ import annotations

import polars as pl

from tenfold import charts, tables
from tenfold.display import minute, sentence
from tenfold.money import shown
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.page import Block, Grid, Heading, Made, Picture, Prose, Section, Skipped

# More buckets than this are summed to days before they are drawn.
_MOST_BUCKETS = 400


def section(facts: Facts) -> Section | Skipped:
    """Write the section on time.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where nothing is priced.
    """
    if not facts.reading.spend_pusd:
        return Skipped("Over time", "nothing in this quarter costs anything; see coverage")
    blocks: list[Block] = [Heading(f"Spend per day{facts.left_out}"), _spend(facts)]
    made = [_SPEND]
    if facts.price_changes:
        blocks.append(_changes(facts))
        made.append(_CHANGES)
    else:
        blocks.append(Prose("The price book has no price change in this quarter for what was used in it."))
    blocks += [Heading("Requests in flight"), *_in_flight(facts)]
    made.append(_IN_FLIGHT)
    return Section("time", "Over time", tuple(blocks), tuple(made))


_SPEND = Made("made-spend", "Spend per day", "Exact cost of requests by day of the review's zone and model.", "totals")
_CHANGES = Made(
    "made-changes",
    "Price changes",
    "Read from the price book: entries that take over from another inside the quarter, for models and tiers used in "
    "it. Each request is priced by the entry in force at its start.",
)
_IN_FLIGHT = Made(
    "made-in-flight",
    "Requests in flight",
    "A sweep over starts and ends (start plus duration), to the millisecond; an end and a start at the same instant "
    "do not overlap. The average of a bucket is its request-seconds over its length (Little's law). Gateway cache hits "
    "are left out.",
    "concurrency",
)


def _spend(facts: Facts) -> Picture:
    mix = facts.composition("day", "model")
    daily = mix.frame.group_by("day").agg(pl.sum("cost_pusd")).sort("cost_pusd", "day", descending=[True, False])
    top_day, top_cost = daily["day"][0], int(daily["cost_pusd"][0])
    changes = pl.DataFrame(
        [(_day(facts, n), str(n + 1)) for n in range(len(facts.price_changes))],
        schema={"day": pl.String, "mark": pl.String},
        orient="row",
    )
    # two changes on one day share a line
    changes = changes.group_by("day", maintain_order=True).agg(pl.col("mark").str.join(", "))
    title = f"Spend per day by model{facts.left_out}"
    text = f"Stacked columns, one a day. The dearest day is {top_day} with {shown(top_cost)}."
    if len(changes):
        text += " Dashed lines mark price changes, numbered as in the table."
    chart = charts.spend_per_day(mix.frame.select("day", "model", "cost_pusd"), "model", changes=changes)
    svg = charts.to_svg(chart, title, text, name="chart-spend")
    return Picture(svg, f"{title}, in {facts.zone}. {text}", "made-spend")


def _day(facts: Facts, number: int) -> str:
    return minute(facts.price_changes[number].at, facts.zone)[:10]


def _changes(facts: Facts) -> Grid:
    rows = [
        (
            str(number),
            minute(change.at, facts.zone),
            change.model,
            change.tier + (f", {change.region}" if change.region else ""),
            "; ".join(f"{charts.METER_LABELS.get(meter, meter)} {old} to {new}" for meter, old, new in change.rates),
        )
        for number, change in enumerate(facts.price_changes, 1)
    ]
    columns = ("mark", "from", "model", "tier", "change")
    frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
    html = tables.table(
        frame,
        name="table-changes",
        caption="Price changes in the quarter",
        labels={"change": "USD per million tokens (per 1,000 calls)"},
        left=columns,
        is_styled=False,
    )
    return Grid(html, "made-changes")


def _in_flight(facts: Facts) -> list[Block]:
    found = facts.reading.concurrency
    said = next(line for line in reversed(facts.reading.sentences()) if line.startswith(("in flight", "concurrency")))
    if found is None or found.average is None:
        return [Prose(sentence(said), "made-in-flight")]
    local = found.frame.with_columns(
        pl.col("starts_at").dt.replace_time_zone("UTC").dt.convert_time_zone(facts.zone).dt.replace_time_zone(None)
    )
    each = "day" if len(local) > _MOST_BUCKETS else f"{found.bucket_s // 60} minutes"
    if each == "day":
        days = local.group_by(pl.col("starts_at").dt.truncate("1d"), maintain_order=True)
        local = days.agg(pl.max("peak"), pl.mean("average"))
    title = "Requests in flight"
    text = f"Two areas over time, one value for each {each}: the peak, and the average. {said}."
    svg = charts.to_svg(charts.concurrency(local), title, text, name="chart-in-flight")
    return [Picture(svg, f"{sentence(said)}. One value for each {each}, {facts.zone}.", "made-in-flight")]
