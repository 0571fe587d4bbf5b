"""Composition: what the bill is made of, by meter and by the dimensions that the log fills."""

from __future__ import annotations

from fractions import Fraction

import polars as pl

from tenfold import charts, tables
from tenfold.display import absent, minute, name_of, percent, sentence
from tenfold.money import shown, shown_parts
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import OF_REQUESTS, Facts
from tenfold.serving.hosted import HostedLedger

# More buckets than this are summed to days before they are drawn.
_MOST_BUCKETS = 400
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
    for dimension in _TABLED:
        if dimension not in reading.dimensions or len(reading.dimensions[dimension]) < 2:
            continue
        blocks += [Heading(f"By {_words(dimension)}"), *_by(facts, dimension)]
        made.append(_made(facts, dimension))
    if reading.spend_pusd:
        blocks += [Heading(f"Spend per day{facts.left_out}"), _spend(facts)]
        made.append(_SPEND)
    blocks += [Heading("Requests in flight"), *_in_flight(facts)]
    return Section("composition", "Composition", tuple(blocks), (*made, _IN_FLIGHT))


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


_SPEND = Made("made-spend", "Spend per day", "Exact cost of requests by day of the review's zone and model.", "totals")
_IN_FLIGHT = Made(
    "made-in-flight",
    "Requests in flight",
    "A sweep over starts and ends (start plus duration), to the millisecond; an end and a start at the same instant "
    "do not overlap. The average of a bucket is its request-seconds over its length (Little's law). Gateway cache hits "
    "are left out.",
    "concurrency",
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
        f"{charts.METER_LABELS[name]} {percent(facts.reading.share(name))} ({cost})"
        for name, cost in zip(meters, shown_parts(list(meters.values())), strict=True)
    )
    title = f"Share of cost by meter{facts.left_out}"
    chart = charts.meter_shares(frame)
    return Picture(chart, "chart-meters", title, f"One bar: {parts}.", "made-meters", f"{title}: {parts}.")


def _by(facts: Facts, dimension: str) -> list[Block]:
    mix = facts.composition(dimension)
    items = facts.reading.dimensions[dimension]
    top = ", ".join(
        f"{name_of(dimension, item.value)} {percent(Fraction(item.cost_pusd, facts.reading.spend_pusd))}"
        for item in items[:3]
    )
    words = _words(dimension)
    caption = f"Cost by {words}{facts.left_out}"
    made = f"made-by-{dimension}"
    table = Table(tables.composition(mix.frame, [dimension], name=f"table-by-{dimension}", caption=caption), made)
    if dimension == "service_tier":
        return [table]
    title = f"Cost by {words}, cut by meter{facts.left_out}"
    description = f"A bar for each {words}, stacked by meter. Largest: {top}. The table after it has every figure."
    chart = charts.composition(mix.frame, dimension)
    caption = f"{title}. Largest: {top}."
    return [Picture(chart, f"chart-by-{dimension}", title, description, made, caption), table]


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
        text += " Dashed lines mark price changes, numbered as under Rates."
    chart = charts.spend_per_day(mix.frame.select("day", "model", "cost_pusd"), "model", changes=changes)
    return Picture(chart, "chart-spend", title, text, "made-spend", f"{title}, in {facts.zone}. {text}")


def _day(facts: Facts, number: int) -> str:
    return minute(facts.price_changes[number].at, facts.zone)[:10]


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
    caption = f"{sentence(said)}. One value for each {each}, {facts.zone}."
    return [Picture(charts.concurrency(local), "chart-in-flight", title, text, "made-in-flight", caption)]
