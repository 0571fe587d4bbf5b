"""The spend bridge's picture: where bars begin and end, and what tells up from down besides colour."""

from decimal import Decimal

import polars as pl
import pytest

from tenfold import charts
from tenfold.errors import TenfoldError


def drawn(*amounts):
    frame = pl.DataFrame({
        "step": ["before", *(f"bar {n}" for n in range(len(amounts) - 2)), "after"],
        "pusd": pl.Series([Decimal(one).scaleb(12) for one in amounts], dtype=pl.Decimal(38, 0)),
    })  # fmt: skip
    chart = charts.spend_bridge(frame).to_dict()
    return next(iter(chart["datasets"].values()))


def test_each_bar_begins_where_the_last_one_ended():
    rows = drawn(410, 410, -315, -90, 0, 415)
    assert [(row["from"], row["to"]) for row in rows] == [
        (0, 410), (410, 820), (820, 505), (505, 415), (415, 415), (0, 415),
    ]  # fmt: skip
    assert [row["label"] for row in rows] == [
        "$410.00", "▲ +$410.00", "▼ −$315.00", "▼ −$90.00", "$0.00", "$415.00",
    ]  # fmt: skip
    assert [row["next"] for row in rows] == [*(row["step"] for row in rows[1:]), None]
    kinds = [row["kind"].split(" ")[0] for row in rows]
    assert kinds == ["spend", "▲", "▼", "▼", "▼", "spend"]


def test_what_cannot_be_drawn():
    with pytest.raises(TenfoldError, match="needs column pusd"):
        charts.spend_bridge(pl.DataFrame({"step": ["a", "b"]}))
    with pytest.raises(TenfoldError, match="nothing to draw"):
        charts.spend_bridge(pl.DataFrame({"step": ["a"], "pusd": [1]}))
