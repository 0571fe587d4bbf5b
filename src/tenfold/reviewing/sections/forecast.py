"""Budget and forecast: how fast budgets burn, what is going to be spent as ranges, and how the past was forecast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tenfold import charts
from tenfold.analysis.budgets import WHOLE, Burn, Line, sentences
from tenfold.analysis.forecast import Forecast, Period, Range, Scenario, change_text, owner_text, said_range
from tenfold.display import percent, sentence
from tenfold.money import shown
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Cell, Column, Grid, grid

_TITLE = "Forecast and budget"
_BURN, _FORECAST, _TESTED = "made-burn", "made-forecast", "made-forecast-tested"


def section(facts: Facts) -> Section | Skipped:
    """Write the section on what is going to be spent.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where the log is too short to forecast and there are no budgets.
    """
    found, spent = facts.forecast, facts.burn
    if isinstance(found, str) and spent is None:
        return Skipped(_TITLE, f"{found}; and no budgets are set: name a file (owner, month, usd) in `tenfold.toml`")
    blocks: list[Block] = []
    made: list[Made] = []
    if not isinstance(found, str):
        blocks += _ahead(facts, found, spent)
        made += [_made_forecast(found), _MADE_TESTED]
    else:
        blocks.append(Prose(f"There is no forecast: {found}."))
    if spent is None:
        blocks.append(
            Prose(
                "No budgets are set: name a file with the columns owner, month and usd as `budgets` in `tenfold.toml`."
            )
        )
    else:
        blocks += _burn(spent)
        made.append(_MADE_BURN)
    if not isinstance(found, str):
        blocks += _scenarios(facts, found)
        blocks += _accuracy(found)
    return Section("forecast", _TITLE, tuple(blocks), tuple(made))


_MADE_BURN = Made(
    _BURN,
    "Budget burn",
    "Spend over the budget of the days that are over; a month's budget is spread evenly over its days in whole "
    "picodollars, so that a part of a month counts by days. Projected: spend so far and the forecast of the days to "
    "come, or the pace so far where there is no forecast. A share of a budget counts as reached on the first day at "
    "whose end spend had reached it. The whole is the budget of `*`; without one, the owners' budgets together, "
    "against all spend of their months: spend without a budget counts as over.",
    "totals",
)
_MADE_TESTED = Made(
    _TESTED,
    "How the past was forecast",
    "At each day of the log's own past the days ahead were forecast by what was known by then, and held against what "
    "came. The interval is the one that would have been given that day. Beside it: the last seven days repeated.",
)


def _made_forecast(found: Forecast) -> Made:
    return Made(
        _FORECAST,
        "Forecast",
        f"Modelled from {found.history[0]} to {found.history[1]}: requests a day and cost per request are each "
        "followed by exponential smoothing on the log scale, with a weekday effect and growth that fades; how fast "
        "they follow is chosen by how well the past would have been forecast. Their product is repriced by the dated "
        f"price book, announced prices included. A range is to hold what comes in {percent(found.level)} of cases: it "
        "is as wide as the model says, wider where the errors of the past were larger (conformal). Price changes that "
        "nobody has announced are in no range. Owners' middles sum to the whole: it is shared out by their own "
        "forecasts or by their shares of the last four weeks, whichever misplaced less in the past, and an owner's "
        "range is as wide as the errors of that split. The plan's levers are in a scenario where the plan was made on "
        "this quarter's bill.",
        "totals",
    )


def _ahead(facts: Facts, found: Forecast, spent: Burn | None) -> list[Block]:
    lines = [sentence(line) for line in found.sentences() if not line.endswith("held what came")]
    if facts.expected is not None:
        lines.insert(0, _against(facts, facts.expected))
    frame = _months(facts, found, spent)
    over = [row for row in frame.rows(named=True) if row["budget_pusd"] is not None and _end(row) > row["budget_pusd"]]
    text = "; ".join(f"{one.label} {said_range(one.total)}" for one in found.periods if one.kind == "month")
    if spent is not None:
        text += f"; over budget: {', '.join(row['month'] for row in over) or 'no month'}"
    title = "Spend by month, and what is expected"
    owners = _owners(found)
    return [
        Lines(tuple(lines), _FORECAST),
        Picture(charts.forecast_months(frame), "forecast-months", title, f"{sentence(text)}.", _FORECAST),
        Table(_periods(found), _FORECAST),
        *([Table(owners, _FORECAST)] if owners.rows else []),
    ]


def _against(facts: Facts, expected: Range) -> str:
    spend = facts.reading.spend_pusd
    where = (
        "inside"
        if expected.low is None or expected.high is None or expected.low <= spend <= expected.high
        else "outside"
    )
    return (
        f"{facts.quarter.title} was expected to cost {said_range(expected)} when it began; its requests cost "
        f"{shown(spend)}, {where} that range."
    )


def _end(row: dict[str, Any]) -> int:
    return row["spent_pusd"] if row["mid_pusd"] is None else row["mid_pusd"]


def _months(facts: Facts, found: Forecast, spent: Burn | None) -> pl.DataFrame:
    """Months of the quarter and ahead, the whole: spent, its end as a range, the budget."""
    ahead = {one.label: one for one in found.periods if one.kind == "month"}
    months: dict[str, int] = {}
    for day, pusd in found.tracks[None].spent.items():
        if facts.quarter.bounds[0].date() <= day:
            months[f"{day:%Y-%m}"] = months.get(f"{day:%Y-%m}", 0) + pusd
    budgets: dict[str, int] = {}
    has_whole = spent is not None and any(line.owner == WHOLE for line in spent.months)
    for line in () if spent is None else spent.months:
        if not has_whole or line.owner == WHOLE:
            budgets[line.label] = budgets.get(line.label, 0) + line.budget
    rows: list[tuple[object, ...]] = []
    for month in sorted({*months, *ahead}):
        total = ahead[month].total if month in ahead else (None, None, None)
        rows.append((month, months.get(month, 0), *total, budgets.get(month)))
    money = ("spent_pusd", "low_pusd", "mid_pusd", "high_pusd", "budget_pusd")
    return pl.DataFrame(rows, schema={"month": pl.String, **dict.fromkeys(money, pl.Int128)}, orient="row")


_RANGE_COLUMNS = (
    Column("low", "low (USD)", "pusd"),
    Column("mid", "middle (USD)", "pusd"),
    Column("high", "high (USD)", "pusd"),
)


def _periods(found: Forecast) -> Grid:
    columns = (
        Column("period", "period"),
        Column("spent", "spent (USD)", "pusd"),
        *_RANGE_COLUMNS,
        Column("days", "days ahead", "count"),
        Column("tested", "horizon tested on the past"),
    )
    rows = [
        (one.label, one.spent, *one.total, one.days_ahead, "yes" if one.is_tested else "no") for one in found.periods
    ]
    caption = f"Expected spend, {percent(found.level)} ranges; what is spent is in them"
    return grid("forecast-periods", caption, columns, rows)


def _owners(found: Forecast) -> Grid:
    columns = (Column("owner", ", ".join(found.by) or "owner"), Column("period", "period"), *_RANGE_COLUMNS)
    last = _long(found.periods)
    rows: list[Sequence[Cell]] = []
    for owner, periods in found.owners.items():
        one = next(one for one in periods if one.label == last.label)
        rows.append((owner_text(found.by, owner), one.label, *_told(one.total)))
    title = f"Expected spend of {last.label} by {', '.join(found.by)}"
    return grid("forecast-owners", title, columns, rows, note=_WITHHELD if any(row[2] is None for row in rows) else "")


# From this ratio of its ends on, a range says no more than that nothing is known.
_WIDEST = 20
_WITHHELD = f"No range where its upper end would be more than {_WIDEST} times its lower one: the past is too irregular."


def _told(found: Range) -> Range:
    low, high = found.low, found.high
    is_told = low is not None and high is not None and high <= _WIDEST * low
    return found if is_told else Range(None, found.mid, None)


def _long(periods: Sequence[Period]) -> Period:
    """The last period that is more than a month."""
    return next(one for one in reversed(periods) if one.kind != "month")


def _burn(found: Burn) -> list[Block]:
    lines = tuple(sentences(found))
    shares = [one.share for one in found.lines[0].alerts] if found.lines else []
    columns = (
        Column("owner", "owner"),
        Column("budget", "budget (USD)", "pusd"),
        Column("elapsed", "budget of days that are over (USD)", "pusd"),
        Column("spend", "spend (USD)", "pusd"),
        Column("burn", "burn", "ratio"),
        Column("ends", "projected (USD)", "pusd"),
        Column("over", "over (+) or under (-) (USD)", "pusd"),
        *(Column(f"alert-{place}", f"{percent(share)} reached on", "date") for place, share in enumerate(shares)),
    )
    rows = [_burn_row(line, is_summed=found.is_summed) for line in found.lines]
    if found.ungranted:
        rows.append(("spend without a budget", None, None, found.ungranted, *[None] * (len(columns) - 4)))
    through = "no day of it is over yet" if found.through is None else f"through {found.through}"
    blocks: list[Block] = [Heading("Budget burn")]
    if rows:
        blocks.append(Table(grid("budget-burn", f"Budgets against spend, {through}", columns, rows), _BURN))
    else:
        blocks.append(Prose("The file of budgets has none for a month of this quarter.", _BURN))
    if lines:
        blocks.append(Lines(lines, _BURN))
    return blocks


def _burn_row(line: Line, *, is_summed: bool) -> Sequence[Cell]:
    ends = None if line.projected is None else line.projected.mid
    whole = "the whole, against the owners' budgets together" if is_summed else "the whole"
    owner = whole if line.owner == WHOLE else line.owner
    money = (line.budget, line.elapsed_budget, line.spend)
    return (owner, *money, line.burn_ratio, ends, line.overrun, *(one.day for one in line.alerts))


def _scenarios(facts: Facts, found: Forecast) -> list[Block]:
    last = _long(found.periods)
    columns = (Column("scenario", "scenario"), Column("what", "what is taken to happen"), *_RANGE_COLUMNS)
    rows = [(_name(one), one.what, *one.ahead[last.label]) for one in found.scenarios]
    caption = f"The {last.days_ahead} days ahead of {last.label} if things were otherwise"
    blocks: list[Block] = [Heading("Scenarios"), Table(grid("forecast-scenarios", caption, columns, rows), _FORECAST)]
    lines = [sentence(change_text(one)) for one in found.changes]
    if facts.plan is not None and all(one.name != "levers_done" for one in found.scenarios):
        why = "; ".join(facts.differences) or "it saves nothing, or has no estimate of it"
        lines.append(f"The plan's levers are in no scenario: {why}")
    if lines:
        blocks.append(Lines(tuple(lines), _FORECAST))
    return blocks


def _name(one: Scenario) -> str:
    return one.name.replace("_", " ")


def _accuracy(found: Forecast) -> list[Block]:
    columns = (
        Column("days", "days ahead", "count"),
        Column("forecasts", "forecasts made", "count"),
        Column("coverage", f"inside their {percent(found.level)} range", "ratio"),
        Column("mape", "mean error", "ratio"),
        Column("naive", "mean error of repeating the last week", "ratio"),
    )
    rows = [(one.days, one.origins, one.coverage, one.mape, one.naive_mape) for one in found.accuracy]
    note = "Forecasts of one table row overlap, so that they are fewer than they look."
    table = grid("forecast-accuracy", "How the log's own past was forecast", columns, rows, note=note)
    return [Heading("Accuracy"), Table(table, _TESTED)]
