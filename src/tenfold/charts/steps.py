"""From today's spend to the spend after the plan."""

from __future__ import annotations

from itertools import accumulate

import polars as pl

from tenfold.charts.theme import INK, WIDTH, AnyChart, altair, check, dressed, in_usd, usd_format

_COLOURS = {"spend": "#0072B2", "saving": "#009E73", "added cost": "#D55E00", "after": "#56B4E9"}


def waterfall(frame: pl.DataFrame, *, start: str = "spend", end: str = "after the plan") -> AnyChart:
    """Draw a waterfall with horizontal bars: the spend, what each step takes off it, what is left.

    Args:
        frame: Columns ``step`` and ``pusd``: first the spend, then each saving as a positive amount in order.
        start: Name of the first bar.
        end: Name of the last bar.

    Returns:
        The chart; USD over the window.

    Raises:
        TenfoldError: A column is missing.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("waterfall")
    check(frame, "waterfall", ["step", "pusd"])
    usd = in_usd(frame["pusd"])
    spend, savings = float(usd[0]), usd[1:].to_list()
    left = list(accumulate(savings, lambda rest, saving: rest - saving, initial=spend))
    kinds = ["saving" if saving >= 0 else "added cost" for saving in savings]
    rows = pl.DataFrame(
        {
            "step": [start, *frame["step"][1:].to_list(), end],
            "from": [0.0, *left[1:], 0.0],
            "to": [spend, *left[:-1], left[-1]],
            "label": [
                f"${spend:,.2f}",
                *(f"{'−' if saving >= 0 else '+'}${abs(saving):,.2f}" for saving in savings),
                f"${left[-1]:,.2f}",
            ],
            "kind": ["spend", *kinds, "after"],
        }
    ).with_columns(right=pl.max_horizontal("from", "to"))
    used = [kind for kind in _COLOURS if kind in set(rows["kind"])]
    y = alt.Y("step:N", sort=rows["step"].to_list(), title=None)
    base = alt.Chart(rows, width=WIDTH, height=alt.Step(32))
    bars = base.mark_bar().encode(
        y=y,
        x=alt.X(
            "from:Q", title="USD over the window", axis=alt.Axis(format=usd_format(spend), tickCount=6, grid=False)
        ),
        x2="to:Q",
        color=alt.Color("kind:N", scale=alt.Scale(domain=used, range=[_COLOURS[kind] for kind in used])),
    )
    texts = base.mark_text(align="left", dx=5, color=INK).encode(y=y, x="right:Q", text="label:N")
    return dressed(bars + texts)
