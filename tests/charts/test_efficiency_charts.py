"""Charts of efficiency: the right numbers reach Altair, a gap stays one, a ceiling is told from what is exact."""

from datetime import date

import polars as pl
import pytest

from tenfold import charts
from tenfold.errors import TenfoldError


def spec(chart):
    found = chart.to_dict()
    return found, next(iter(found["datasets"].values()))


def test_unit_cost_by_month_keeps_a_gap():
    frame = pl.DataFrame({"month": [date(2026, 8, 1), date(2026, 7, 1)], "pusd": [None, 2.5e12]})
    _, rows = spec(charts.unit_cost_trend(frame, "session"))
    assert rows == [{"month": "2026-07", "usd": 2.5}, {"month": "2026-08", "usd": None}]
    with pytest.raises(TenfoldError, match="nothing to draw"):
        charts.unit_cost_trend(frame.with_columns(pusd=None), "session")


def test_turns_keep_their_order():
    frame = pl.DataFrame({"turn": ["2", "11-20"], "tokens": [10.0, 5.0], "requests": [3, 1]})
    found, rows = spec(charts.context_growth(frame))
    assert found["encoding"]["x"]["sort"] == ["2", "11-20"]
    assert [row["tokens"] for row in rows] == [10, 5]


def test_only_a_ceiling_needs_a_legend():
    frame = pl.DataFrame(
        {"cause": ["asked again", "same question"], "pusd": [3 * 10**12, 10**11], "label": ["exact", "ceiling"]}
    )
    found, rows = spec(charts.waste_bars(frame))
    assert [(row["usd"], row["text"]) for row in rows] == [(3, "$3.00"), (0.1, "$0.10")]
    assert "legend" not in found["layer"][0]["encoding"]["color"]
    alone, _ = spec(charts.waste_bars(frame.head(1)))
    assert alone["layer"][0]["encoding"]["color"]["legend"] is None
