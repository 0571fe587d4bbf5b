"""Charts of the tail of latency: figures and messages by hand, bars that foot, lines in their place."""

import itertools
import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from tenfold import charts
from tenfold.charts import latency, latency_time
from tenfold.errors import TenfoldError

START = datetime(2026, 9, 8, tzinfo=UTC)


def layers(chart):
    """The rows of each layer that has some, panel by panel."""
    found = chart.to_dict()
    panels = [inner for outer in found.get("vconcat", [found]) for inner in outer.get("hconcat", [outer])]
    return [
        found["datasets"][layer.get("data", panel.get("data"))["name"]]
        for panel in panels
        for layer in panel.get("layer", [])
    ]


def title(chart):
    return " ".join(chart.title)


def written(chart):
    """Texts of the key, without drawing it."""
    return [row["text"] for rows in layers(chart) for row in rows if {"number", "text"} <= row.keys()][:9]


def texts(chart):
    return re.findall(r">([^<>]+)</text>", charts.to_svg(chart, "t", "d", name="x"))


QUANTILES = pl.DataFrame(
    [("ttft", 0.5, 200.0, 240.0), ("ttft", 0.9, 500.0, 900.0), ("ttft", 0.99, 840.0, 1910.0),
     ("tpot", 0.5, 22.0, 22.0), ("tpot", 0.99, 31.0, 32.0), ("output", 0.5, 0.0, 3.0)],
    schema=["component", "quantile", "before", "after"], orient="row",
)  # fmt: skip


class TestQuantileShift:
    def test_the_message_is_the_component_that_moved_most(self):
        # 1910 / 840 = 2.27, 240 / 200 = 1.2
        chart = charts.quantile_shift(QUANTILES.filter(component="ttft"))
        assert title(chart) == "p99 TTFT went from 0.84 to 1.91 s (2.3x), its median 1.2x"
        assert latency._shift_title(QUANTILES, 0.9) == "p90 TTFT went from 500 to 900 ms (1.8x), its median 1.2x"
        assert latency._shift_title(QUANTILES, 0.999) == "Quantiles after against quantiles before"

    @pytest.mark.full
    def test_what_is_zero_has_no_place_on_a_logarithmic_axis(self):
        chart = charts.quantile_shift(QUANTILES, title="t")
        assert len(chart.hconcat) == 2
        found = texts(chart)
        assert {"p50", "p90", "p99"} <= set(found)
        assert "TTFT after, s" in found
        assert "TPOT after, ms" in found
        assert not [text for text in found if "output" in text]

    def test_axes_of_a_panel_are_alike_so_that_the_diagonal_is_no_change(self):
        panel = charts.quantile_shift(QUANTILES.filter(component="ttft"), title="t").to_dict()
        x, y = (panel["layer"][1]["encoding"][axis]["scale"] for axis in "xy")
        assert x == y
        assert x["domain"] == pytest.approx([0.2 / 1.35, 1.91 * 1.35])

    @pytest.mark.parametrize(
        ("ends", "ticks"),
        [((0.05, 6.0), [0.1, 0.3, 1, 3]), ((50, 4000), [100, 300, 1000, 3000]), ((20, 45), None), ((21, 22), None)],
    )
    def test_three_to_five_round_ticks(self, ends, ticks):
        found = latency._ticks(*ends)
        assert 2 <= len(found) <= 5
        assert all(ends[0] <= tick <= ends[1] for tick in found)
        if ticks:
            assert found == pytest.approx(ticks)


STEPS = pl.DataFrame(
    [("ttft", "before", "start", 0.0, 840.0), ("ttft", "cache", "cause", 840.0, 1760.0),
     ("ttft", "version", "cause", 1760.0, 1700.0), ("ttft", "unexplained", "unexplained", 1700.0, 1910.0),
     ("ttft", "after", "end", 0.0, 1910.0),
     ("tpot", "before", "start", 0.0, 31.0), ("tpot", "unexplained", "unexplained", 31.0, 25.0),
     ("tpot", "after", "end", 0.0, 25.0)],
    schema=["component", "label", "kind", "from", "to"], orient="row",
)  # fmt: skip


class TestTailWaterfall:
    def test_every_bar_begins_where_the_one_before_ends(self):
        links, bars, labels = layers(charts.tail_waterfall(STEPS))[:3]
        assert bars == labels
        for one, other in itertools.pairwise(bars[:-1]):
            assert other["from"] == pytest.approx(one["to"])
        assert bars[-2]["to"] == pytest.approx(bars[-1]["to"])
        assert [link["at"] for link in links] == pytest.approx([0.84, 1.76, 1.7, 1.91])

    def test_parts_are_named_by_what_they_do(self):
        bars = layers(charts.tail_waterfall(STEPS))[1]
        assert [(bar["part"], bar["text"]) for bar in bars] == [
            ("before", "0.84 s"),
            ("adds", "+0.92"),
            ("takes off", "−0.06"),
            ("unexplained", "+0.21"),
            ("after", "1.91 s"),
        ]

    def test_the_message_is_the_largest_part(self):
        assert title(charts.tail_waterfall(STEPS)) == "p99 TTFT rose by 1.07 s, 86 % of it: cache"
        fell = charts.tail_waterfall(STEPS.filter(component="tpot"), quantile="p95")
        assert title(fell) == "p95 TPOT fell by 6.0 ms, 100 % of it: unexplained"

    def test_long_names_are_cut_at_a_word(self):
        long = STEPS.with_columns(label=pl.when(label="cache").then(pl.lit("a cause " * 20)).otherwise("label"))
        assert all(len(bar["label"]) <= 56 for bar in layers(charts.tail_waterfall(long))[1])


def line(*values, run="after", start=START, quantile="p99", component="ttft"):
    return [(start + timedelta(hours=n), component, quantile, value, run) for n, value in enumerate(values)]


def frame(*rows):
    schema = {"at": pl.Datetime("us", "UTC"), "component": pl.String, "quantile": pl.String, "value": pl.Float64,
              "run": pl.String}  # fmt: skip
    return pl.DataFrame([one for row in rows for one in row], schema=schema, orient="row")


def marks(*rows):
    schema = {"at": pl.Datetime("us", "UTC"), "until": pl.Datetime("us", "UTC"), "label": pl.String, "kind": pl.String}
    return pl.DataFrame(rows, schema=schema, orient="row")


def hours(number):
    return START + timedelta(hours=number)


TAIL = frame(line(800.0, 900.0, 850.0, run="before", start=hours(-3)), line(820.0, 1900.0, 1950.0))
WINDOWS = ((hours(-3), START, "before", "window"), (START, hours(3), "after", "window"))


class TestTailTimeline:
    def test_the_message_is_what_began_and_what_was_done_before(self):
        onset = (hours(1), None, "cache broke", "onset")
        deploy = (hours(0.9), None, "deploy: 5512", "event")
        assert title(charts.tail_timeline(TAIL, marks(*WINDOWS, onset, deploy))) == (
            "Cache broke, from 08 Sep 01:00 UTC, 6 min after deploy: 5512"
        )
        alone = "Cache broke, from 08 Sep 01:00 UTC"
        for when, said in ((2, alone), (-40, alone), (-2.9, f"{alone}, 4 h after deploy")):
            assert latency_time._title(TAIL, marks(onset, (hours(when), None, "deploy", "event")).sort("at")) == said
        assert latency_time._title(TAIL, marks()) == "TTFT over time, UTC"

    @pytest.mark.full
    def test_lines_are_numbered_in_order_of_time_and_near_ones_share_a_place(self):
        things = [
            (hours(2), None, "restart", "event"),
            (hours(1), None, "cache broke", "onset"),
            (hours(0.98), None, "deploy", "event"),
        ]
        found = texts(charts.tail_timeline(TAIL, marks(*WINDOWS, *things)))
        assert "1,2" in found
        assert [text for text in found if text in ("deploy", "cache broke", "restart")] == [
            "deploy",
            "cache broke",
            "restart",
        ]
        assert {"before", "after", "TTFT, s", "p99"} <= set(found)

    def test_of_many_events_those_near_the_onset_are_named(self):
        many = [(hours(n / 20 - 2), None, f"event {n}", "event") for n in range(90)]
        found = written(charts.tail_timeline(TAIL, marks(*WINDOWS, *many, (hours(0), None, "it began", "onset"))))
        named = [int(text.split()[1]) for text in found if text.startswith("event ")]
        assert named == [37, 38, 39, 40, 41, 42, 43]
        assert "it began" in found
        assert "and 83 more events, dashed" in found

    def test_whatever_began_is_in_the_key(self):
        crowd = [(START, None, f"event {n}", "event") for n in range(20)]
        kept, more = latency_time._numbered(
            marks(*crowd, (hours(1), None, "it began", "onset"), (START, None, "x", "onset"))
        )
        assert {"it began", "x"} <= set(kept["label"])
        assert (len(kept), more) == (8, 14)

    @pytest.mark.full
    def test_windows_that_are_far_apart_have_an_axis_each(self):
        far = frame(line(800.0, 900.0, 850.0, run="before", start=hours(-171)), line(820.0, 1900.0, 1950.0))
        windows = ((hours(-171), hours(-168), "before", "window"), WINDOWS[1])
        between = (hours(-20), None, "deploy", "event")
        chart = charts.tail_timeline(far, marks(*windows, between))
        _key, pieces = chart.to_dict()["vconcat"]
        assert len(pieces["hconcat"]) == 2
        assert sum(piece["width"] for piece in pieces["hconcat"]) <= 640
        assert "deploy (not in the windows)" in written(chart)
        assert len(charts.tail_timeline(TAIL, marks(*WINDOWS)).to_dict()["vconcat"]) == 1

    def test_values_are_seconds_where_they_are_long(self):
        drawn = next(
            rows for rows in layers(charts.tail_timeline(TAIL, marks(*WINDOWS))) if rows and "value" in rows[0]
        )
        assert [row["value"] for row in drawn] == pytest.approx([0.8, 0.9, 0.85, 0.82, 1.9, 1.95])


@pytest.mark.parametrize(
    "draw",
    [
        charts.quantile_shift,
        charts.tail_waterfall,
        lambda rows: charts.tail_timeline(rows, marks(*WINDOWS)),
    ],
)
def test_frames_that_cannot_be_drawn_are_named(draw):
    whole = {charts.quantile_shift: QUANTILES, charts.tail_waterfall: STEPS}.get(draw, TAIL)
    with pytest.raises(TenfoldError, match="chart needs column .*; the frame has"):
        draw(whole.select(whole.columns[:2]))
    with pytest.raises(TenfoldError, match="nothing to draw"):
        draw(whole.head(0))


def test_colours_of_the_waterfall_differ_for_colour_blind_readers_too():
    okabe_ito = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"}
    assert {colour for name, colour in latency._PARTS.items() if name != "unexplained"} <= okabe_ito
