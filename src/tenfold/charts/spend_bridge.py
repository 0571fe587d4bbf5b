"""From the spend of one period over what moved it to the spend of the next."""

from __future__ import annotations

from itertools import accumulate

import polars as pl

from tenfold.charts.theme import INK, WIDTH, AnyChart, altair, check, dressed, in_usd, usd_format

SPEND, UP, DOWN = "spend", "▲ added to the bill (unfavourable)", "▼ taken off it (favourable)"
_COLOURS = {SPEND: "#0072B2", UP: "#D55E00", DOWN: "#009E73"}


def spend_bridge(frame: pl.DataFrame, *, decimals: int = 2) -> AnyChart:
    """Draw a waterfall with horizontal bars: the spend before, what each driver did, the spend after.

    Direction is told by sign and arrow as well as by colour; a thin line carries each level to the next bar.

    Args:
        frame: Columns ``step`` and ``pusd``: the spend before, each change (below 0 takes off), the spend after.
        decimals: Decimals of the amounts.

    Returns:
        The chart; USD over the periods.

    Raises:
        TenfoldError: A column is missing, or there is no spend before and after.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("spend bridge")
    check(frame, "spend bridge", ["step", "pusd"], least=2)
    usd = in_usd(frame["pusd"]).to_list()
    first, changes, last = usd[0], usd[1:-1], usd[-1]
    levels = list(accumulate(changes, initial=first))
    kinds = [SPEND, *(UP if change > 0 else DOWN for change in changes), SPEND]
    rows = pl.DataFrame(
        {
            "step": frame["step"],
            "from": [0.0, *levels[:-1], 0.0],
            "to": [first, *levels[1:], last],
            "next": [*frame["step"][1:].to_list(), None],
            "label": [
                _money(first, decimals),
                *(f"{'▲ +' if one > 0 else '▼ −' if one < 0 else ''}{_money(abs(one), decimals)}" for one in changes),
                _money(last, decimals),
            ],
            "kind": kinds,
        }
    ).with_columns(right=pl.max_horizontal("from", "to"))
    used = [kind for kind in _COLOURS if kind in kinds]
    y = alt.Y("step:N", sort=rows["step"].to_list(), title=None, axis=alt.Axis(labelLimit=220))
    base = alt.Chart(rows, width=WIDTH, height=alt.Step(34))
    # from zero, with room for the last label
    most = max(rows["right"].to_list())
    scale = alt.Scale(domain=[min(0.0, *levels), most * 1.18 or 1.0], nice=False)
    bars = base.mark_bar(height=20).encode(
        y=y,
        x=alt.X("from:Q", title="USD", scale=scale, axis=alt.Axis(format=usd_format(most), tickCount=6, grid=False)),
        x2="to:Q",
        color=alt.Color("kind:N", scale=alt.Scale(domain=used, range=[_COLOURS[kind] for kind in used])),
        tooltip=["step:N", "label:N"],
    )
    carried = (
        base.transform_filter("datum.next !== null")
        .mark_rule(color=INK, strokeDash=[2, 2])
        .encode(y=y, y2="next:N", x=alt.X("to:Q", scale=scale))
    )
    texts = base.mark_text(align="left", dx=6, color=INK).encode(y=y, x="right:Q", text="label:N")
    return dressed(carried + bars + texts)


def _money(usd: float, decimals: int) -> str:
    return f"${usd:,.{decimals}f}"
