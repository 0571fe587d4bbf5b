"""Charts of self-hosted serving: figures by hand, messages that follow from them, pictures that can be drawn."""

import re
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from tenfold import charts
from tenfold.charts import serving, serving_choices
from tenfold.errors import TenfoldError

START = datetime(2026, 11, 2, tzinfo=UTC)


def layers(chart):
    """The rows of each layer that has some, by the columns that the layer draws."""
    found = chart.to_dict()
    panels = found.get("vconcat", [found])
    return [
        found["datasets"][layer.get("data", panel.get("data"))["name"]] for panel in panels for layer in panel["layer"]
    ]


def title(chart):
    return " ".join(chart.to_dict()["title"])


def texts(chart):
    return re.findall(r">([^<>]+)</text>", charts.to_svg(chart, "t", "d", name="x"))


WALK = pl.DataFrame(
    [("bf16", 1, 20.0, 18.0), ("bf16", 8, 13.0, 90.0), ("fp8", 1, 40.0, 38.0), ("fp8", 16, 20.0, 300.0),
     ("fp8", 32, 12.0, 380.0)],
    schema=["setting", "batch", "tokens_per_s_per_user", "tokens_per_s_per_gpu"], orient="row",
)  # fmt: skip


class TestFrontier:
    def test_the_message_is_the_best_within_the_limit(self):
        # 80 ms a token are 12.5 tokens/s: fp8 misses it with 32 requests
        assert title(charts.frontier(WALK, tpot_slo_ms=80)) == (
            "Most within 80 ms a token: fp8, 300 tokens/s per GPU, 16 at once"
        )
        assert title(charts.frontier(WALK)) == "Most: fp8, 380 tokens/s per GPU, 32 at once"
        assert title(charts.frontier(WALK, tpot_slo_ms=10)) == "No setting answers within 10 ms a token"
        assert title(charts.frontier(WALK, title="mine")) == "mine"

    def test_the_limit_is_where_it_belongs(self):
        shade, rule, name, *_ = layers(charts.frontier(WALK, tpot_slo_ms=80))
        assert shade == rule == name == [{"from": 0.0, "to": 12.5, "text": "over 80 ms a token"}]

    def test_each_setting_names_its_largest_batch_within_the_limit(self):
        found = [text for text in texts(charts.frontier(WALK, tpot_slo_ms=80, title="t")) if "at once" in text]
        assert sorted(found) == ["16 at once", "8 at once"]

    def test_batches_of_settings_that_are_near_stand_on_two_sides(self):
        near = WALK.with_columns(tokens_per_s_per_gpu=pl.when(setting="bf16").then(290.0).otherwise(300.0))
        right, left = layers(charts.frontier(near, tpot_slo_ms=80))[-2:]
        assert [[row["text"] for row in side] for side in (right, left)] == [["16 at once"], ["8 at once"]]


SPLIT = pl.DataFrame(
    {
        "setting": ["bf16", "fp8", "32B"],
        "weights_bytes": [16e9, 8e9, 64e9],
        "overhead_bytes": [3.9e9] * 3,
        "kv_bytes": [4.1e9, 12.1e9, 0.0],
        "memory_bytes": [24e9] * 3,
        "requests": [10.9, 1.9, 0.0],
    }
)


class TestMemorySplit:
    def test_parts_are_gigabytes_in_their_order(self):
        bars, beyond, labels = layers(charts.memory_split(SPLIT))
        first = sorted((row for row in bars if row["setting"] == "bf16"), key=lambda row: row["rank"])
        assert [row["part"] for row in first] == ["weights", "engine and headroom", "KV cache"]
        assert [row["gb"] for row in first] == pytest.approx([16.0, 3.9, 4.1])
        assert [row["text"] for row in labels] == ["10 requests", "1 request", "does not fit in 24 GB"]
        assert beyond == [{"setting": "32B", "gb": 24.0}]

    def test_the_message_is_what_fits(self):
        assert title(charts.memory_split(SPLIT)) == "bf16: 10 requests"
        assert title(charts.memory_split(SPLIT[1:])) == "fp8: 1 request"
        assert title(charts.memory_split(SPLIT.reverse())) == "bf16: 10 requests at once; 32B: does not fit in 24 GB"
        assert title(charts.memory_split(SPLIT[2:])) == "32B: does not fit in 24 GB"


def need(*hours, model="m"):
    """Hours of (length in minutes, needed, paid)."""
    starts = [START + timedelta(minutes=sum(hour[0] for hour in hours[:n])) for n in range(len(hours) + 1)]
    return pl.DataFrame(
        [(model, *starts[n : n + 2], needed, paid) for n, (_, needed, paid) in enumerate(hours)],
        schema=["model", "starts_at", "ends_at", "needed", "paid"], orient="row",
    )  # fmt: skip


class TestHourlyNeed:
    def test_bands_add_up_to_what_is_paid_or_needed(self):
        bands, paid = layers(charts.hourly_need(need((60, 1, 4), (60, 5, 4), (30, 0, 3))))
        found = {}
        for row in bands:
            found.setdefault(row["kind"], []).append((row["low"], row["high"]))
        # the last step is closed at its end
        assert found == {
            "needed": [(0, 1), (0, 4), (0, 0), (0, 0)],
            "paid and not needed": [(1, 4), (4, 4), (0, 3), (0, 3)],
            "needed and not there": [(4, 4), (4, 5), (3, 3), (3, 3)],
        }
        assert [(row["starts_at"][11:16], row["paid"]) for row in paid] == [
            *(("00:00", 4), ("01:00", 4), ("02:00", 3), ("02:30", 3))
        ]

    def test_the_message_weighs_hours_by_their_length(self):
        # of 60 x 4 + 30 x 2 replica minutes, 60 x 1 + 30 x 2 are spare: 120 of 300
        chart = charts.hourly_need(need((60, 3, 4), (30, 0, 2)))
        assert title(chart) == "40 % of the replica hours paid from 2 Nov to 2 Nov were not needed"
        assert "needed and not there" not in texts(chart)

    def test_hours_without_enough_are_named(self):
        chart = charts.hourly_need(need((60, 3, 4), (60, 6, 4), (60, 5, 4)))
        assert title(chart).endswith("not needed; in 2 hours more were needed than there are")
        assert "needed and not there" in texts(chart)

    def test_each_model_has_its_panel(self):
        both = pl.concat([need((60, 1, 2), model="a"), need((60, 1, 2), model="b")])
        found = texts(charts.hourly_need(both))
        assert "replicas of a" in found
        assert "replicas of b" in found
        assert "replicas" in texts(charts.hourly_need(both.drop("model").head(1)))


SWEEP = pl.DataFrame(
    {
        "budget": [2048, 512, 8192],
        "itl_short_p99_ms": [200.0, 100.0, 50.0],
        "itl_short_max_ms": [400.0, 150.0, 1500.0],
        "ttft_long_p95_ms": [2000.0, 4000.0, None],
    }
)


class TestTokenBudgets:
    def test_both_measures_of_stalls_and_the_wait(self):
        *marks, waits = layers(charts.token_budgets(SWEEP, recommended=512))[-4:]
        assert [(row["budget"], row["ms"]) for row in waits] == [(512, 4000.0), (2048, 2000.0)]  # NaN is not drawn
        assert marks[0] == [{"budget": 512, "text": "recommended"}]
        stalls = layers(charts.token_budgets(SWEEP))[0]
        assert [(row["kind"], row["budget"], row["ms"]) for row in stalls if row["budget"] == 8192] == [
            *(("longest", 8192, 1500.0), ("99th percentile", 8192, 50.0))
        ]

    def test_the_message_compares_the_ends(self):
        whole = SWEEP.with_columns(pl.col("ttft_long_p95_ms").fill_null(1200.0))
        assert title(charts.token_budgets(whole)) == (
            "512 to 8,192 tokens a step: short requests stall 10.0x, long ones wait 0.3x as long"
        )
        assert title(charts.token_budgets(SWEEP.drop("itl_short_max_ms"))) == (
            "512 to 8,192 tokens a step: short requests stall 0.5x as long"
        )


EVEN = pl.DataFrame(
    [("price", "$1", 50_000_000, True), ("price", "$9", 450_000_000, False), ("mix", "short", 100_000_000, True),
     ("ops", "none", 90_000_000, True), ("ops", "one", 180_000_000, True)],
    schema=["what", "value", "tokens_per_month", "is_reachable"], orient="row",
)  # fmt: skip


class TestBreakEven:
    def test_ranges_by_their_width(self):
        chart = charts.break_even(EVEN, stated=100e6)
        ranges = layers(chart)[0]
        assert [(row["what"], row["low"], row["high"], row["at_low"], row["at_high"]) for row in ranges] == [
            ("price", 50.0, 450.0, "$1", "$9"),
            ("ops", 90.0, 180.0, "none", "one"),
            ("mix", 100.0, 100.0, "short", "short"),
        ]
        assert {"$1", "$9", "none", "one", "no change", "more than these GPUs can serve"} <= set(texts(chart))

    def test_the_axis_is_logarithmic_where_needed(self):
        def scale(frame, **more):
            found = charts.break_even(frame, stated=100e6, **more).to_dict()["layer"][0]["encoding"]["x"]
            return found["scale"]["type"], "logarithmic" in found["title"]

        assert scale(EVEN) == ("log", True)
        assert scale(EVEN[2:]) == ("linear", False)
        assert scale(EVEN[2:], measured=1e6) == ("log", True)

    def test_the_message(self):
        assert title(charts.break_even(EVEN, stated=100e6, measured=7e6)) == (
            "GPUs pay from 100 M tokens a month on (50 to 450); this log has 7 M"
        )
        assert title(charts.break_even(EVEN, stated=450e6, pays=False)) == (
            "GPUs never pay as stated: 450 M tokens a month is beyond them"
        )
        assert "this log" not in texts(charts.break_even(EVEN, stated=100e6))


DRAWN = [
    (charts.frontier, WALK, {}),
    (charts.memory_split, SPLIT, {}),
    (charts.hourly_need, need((60, 1, 2)), {}),
    (charts.token_budgets, SWEEP, {}),
    (charts.break_even, EVEN, {"stated": 1e8}),
]


@pytest.mark.parametrize(("draw", "frame", "more"), DRAWN, ids=lambda one: getattr(one, "__name__", ""))
def test_frames_that_cannot_be_drawn_are_named(draw, frame, more):
    with pytest.raises(TenfoldError, match="chart needs column .*; the frame has"):
        draw(frame.select(frame.columns[:2]), **more)
    with pytest.raises(TenfoldError, match="nothing to draw"):
        draw(frame.head(0), **more)


def test_colours_of_one_chart_differ_for_colour_blind_readers_too():
    """Each pair differs in lightness, or is of Okabe and Ito's set."""
    okabe_ito = {"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"}

    def lightness(colour):
        return sum(int(colour[n : n + 2], 16) * part for n, part in ((1, 0.3), (3, 0.59), (5, 0.11)))

    for colours in (
        list(serving._PARTS.values()),
        list(serving._NEED.values()),
        list(serving_choices._STALL_COLOURS.values()),
        [colour for colour, _ in serving_choices._EVEN.values()],
    ):
        for n, one in enumerate(colours):
            for other in colours[:n]:
                assert {one, other} <= okabe_ito or abs(lightness(one) - lightness(other)) > 30, (one, other)
