"""Charts: the right numbers reach Altair, and the SVG needs nothing but itself."""

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from html.parser import HTMLParser

import polars as pl
import pytest

from tenfold import charts, extras
from tenfold.charts.theme import CATEGORY_COLOURS, PAPER
from tenfold.errors import TenfoldError
from tenfold.extras import MissingExtraError
from tenfold.prices.meters import METER_NAMES


def pusd(*amounts):
    return pl.Series([Decimal(str(amount)).scaleb(12) for amount in amounts], dtype=pl.Decimal(38, 0))


# a costs 3 (2 in, 1 out), NULL 1 (all in), b has no price, c to n cost 0.01 each
TEAMS = pl.DataFrame(
    {
        "team": ["a", None, "b", *"cdefghijklmn"],
        "uncached_input_pusd": pusd(2, 1, 0, *[0.01] * 12),
        "output_pusd": pusd(1, 0, 0, *[0] * 12),
        "cost_pusd": pusd(3, 1, 0, *[0.01] * 12),
        "requests": [2, 1, 4, *[1] * 12],
        "unpriced_requests": [0, 0, 4, *[0] * 12],
    }
)


def datasets(chart):
    """The rows of each layer's data, as Vega-Lite gets them."""
    found = chart.to_dict()
    layers = found.get("layer", found.get("vconcat", [found]))
    return [found["datasets"][layer.get("data", found.get("data"))["name"]] for layer in layers]


class TestComposition:
    def test_stacks_sum_to_the_bill(self):
        bars, totals = datasets(charts.composition(TEAMS, "team", top=20))
        assert sum(row["usd"] for row in bars) == pytest.approx(4.12)
        assert {(row["name"], row["meter"]): row["usd"] for row in bars}["a", "output"] == 1.0
        assert [(row["name"], row["label"]) for row in totals][:3] == [
            ("a", "$3.00"),
            ("unallocated", "$1.00"),
            ("b", "not priced"),
        ]

    def test_the_rest_becomes_one_bar(self):
        _, totals = datasets(charts.composition(TEAMS, "team", top=2))
        assert [(row["name"], round(row["usd"], 6)) for row in totals] == [
            *(("a", 3.0), ("unallocated", 1.0), ("other", 0.12)),
        ]

    def test_missing_column_is_named(self):
        with pytest.raises(TenfoldError, match="needs column squad, cost_pusd; the frame has team"):
            charts.composition(TEAMS.drop("cost_pusd"), "squad")

    def test_a_meter_has_one_colour_everywhere(self):
        def scale(chart):
            found = chart.to_dict()
            colour = found.get("layer", [found])[0]["encoding"]["color"]["scale"]
            return dict(zip(colour["domain"], colour["range"], strict=True))

        daily = pl.DataFrame(
            {"day": [date(2026, 7, 1)] * 2, "meter": ["uncached_input", "output"], "cost_pusd": pusd(1, 2)}
        )
        one, two, three = (
            scale(charts.composition(TEAMS, "team")),
            scale(charts.meter_shares(daily)),
            scale(charts.spend_per_day(daily, "meter")),
        )
        assert one == two == three
        assert set(charts.METER_COLOURS) == set(METER_NAMES)
        assert len(set(charts.METER_COLOURS.values())) == len(METER_NAMES)


def test_meter_shares_sum_to_one():
    (bars, labels) = datasets(
        charts.meter_shares(pl.DataFrame({"meter": ["output", "cache_read"], "cost_pusd": pusd(3, 1)}))
    )
    assert [(row["meter"], row["share"]) for row in bars] == [("cache read", 0.25), ("output", 0.75)]
    assert [row["middle"] for row in labels] == [0.125, 0.625]


def test_spend_per_day_marks_price_changes():
    frame = pl.DataFrame(
        {"day": [date(2026, 7, 1), date(2026, 7, 1), None], "model": ["m", None, "m"], "cost_pusd": pusd(1, 2, 9)}
    )
    changes = pl.DataFrame({"day": [date(2026, 7, 30)], "mark": ["1"]})
    bars, rules, _ = datasets(charts.spend_per_day(frame, "model", changes=changes))
    assert {row["name"]: row["usd"] for row in bars} == {"m": 1.0, "(none)": 2.0}  # what has no day is not drawn
    assert rules == [{"day": "2026-07-30", "mark": "1"}]
    assert len(datasets(charts.spend_per_day(frame, "model"))) == 1


def test_waterfall_goes_down_by_savings_and_up_by_costs():
    frame = pl.DataFrame({"step": ["spend", "batch_api", "speculate"], "pusd": pusd(100, 30, -5)})
    rows = datasets(charts.waterfall(frame))[0]
    assert [(row["step"], row["from"], row["to"], row["label"]) for row in rows] == [
        ("spend", 0, 100, "$100.00"),
        ("batch_api", 70, 100, "−$30.00"),
        ("speculate", 75, 70, "+$5.00"),
        ("after the plan", 0, 75, "$75.00"),
    ]


def test_more_rows_than_a_chart_can_hold_are_refused():
    hours = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=n) for n in range(5_001)]
    frame = pl.DataFrame({"starts_at": hours, "peak": [1] * 5_001, "average": [0.5] * 5_001})
    with pytest.raises(TenfoldError, match="at most 5,000 rows, not 5,001"):
        charts.concurrency(frame)
    assert charts.concurrency(frame.head(24))


def test_without_the_extra_it_says_how_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r'composition chart needs altair.*pip install "tenfold\[report\]"'):
        charts.composition(TEAMS, "team")
    with pytest.raises(MissingExtraError, match=r"vl_convert"):
        charts.to_svg(None, "t", "d")


class _Elements(HTMLParser):
    def __init__(self, html):
        super().__init__()
        self.found = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def svg():
    frame = TEAMS.with_columns(team=pl.col("team").replace({"a": "<script>alert(1)</script>"}))
    return charts.to_svg(charts.composition(frame, "team"), "Cost & more", "Bars <by> team", name="one")


class TestSvg:
    def test_has_a_text_alternative(self, svg):
        tag, attrs = _Elements(svg).found[0]
        assert (tag, attrs["role"], attrs["aria-labelledby"]) == ("svg", "img", "one-title one-desc")
        assert '<title id="one-title">Cost &amp; more</title><desc id="one-desc">Bars &lt;by&gt; team</desc>' in svg

    def test_names_are_text(self, svg):
        assert "script" not in {tag for tag, _ in _Elements(svg).found}
        assert "&lt;script&gt;" in svg

    def test_loads_nothing(self, svg):
        loading = [
            attrs for tag, attrs in _Elements(svg).found if {"href", "xlink:href", "src"} & set(attrs) or tag == "image"
        ]
        assert loading == []
        assert "@import" not in svg

    def test_text_takes_the_pages_colour(self, svg):
        assert "currentColor" in svg
        assert not re.search(f"{charts.INK}|{PAPER}|transparent", svg)

    def test_ids_are_its_own(self, svg):
        again = charts.to_svg(charts.composition(TEAMS, "team"), "t", "d", name="two")
        ids = [{attrs["id"] for _, attrs in _Elements(one).found if "id" in attrs} for one in (svg, again)]
        assert ids[0]
        assert not ids[0] & ids[1]

    def test_same_bytes_again(self, svg):
        frame = TEAMS.with_columns(team=pl.col("team").replace({"a": "<script>alert(1)</script>"}))
        assert charts.to_svg(charts.composition(frame, "team"), "Cost & more", "Bars <by> team", name="one") == svg


def test_colours_can_be_told_from_white_and_from_near_black():
    def luminance(colour):
        parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one, other):
        high, low = sorted((luminance(one), luminance(other)), reverse=True)
        return (high + 0.05) / (low + 0.05)

    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert min(contrast(charts.INK, "#ffffff"), contrast(charts.INK, "#14171b")) >= 3.9
    for colour in (*charts.METER_COLOURS.values(), *CATEGORY_COLOURS):
        assert contrast(colour, "#ffffff") >= 1.9, colour
        assert contrast(colour, "#14171b") >= 2.6, colour


class TestTimeAxis:
    def days(self, count):
        return pl.DataFrame(
            {
                "day": [date(2026, 11, 16) + timedelta(days=n) for n in range(count)],
                "model": ["m"] * count,
                "cost_pusd": pusd(*[1] * count),
            }
        )

    def buckets(self, count, each):
        starts = [datetime(2026, 11, 16) + each * n for n in range(count)]
        return pl.DataFrame({"starts_at": starts, "peak": [1] * count, "average": [0.5] * count})

    def labels(self, chart):
        texts = re.findall(r">([^<>]+)</text>", charts.to_svg(chart, "t", "d", name="x"))
        return [text for text in texts if re.match(r"\d\d [A-Z][a-z]{2}", text)]

    @pytest.mark.parametrize("count", [1, 2, 3, 9, 31, 92, 366])
    def test_no_day_is_written_twice(self, count):
        found = self.labels(charts.spend_per_day(self.days(count), "model"))
        assert found
        assert len(found) == len(set(found)) <= 13

    @pytest.mark.parametrize(
        ("count", "each"),
        [
            (1, timedelta(minutes=5)),
            (24, timedelta(minutes=5)),
            (24, timedelta(hours=1)),
            (47, timedelta(hours=1)),
            (200, timedelta(hours=1)),
        ],
    )
    def test_nor_any_instant(self, count, each):
        found = self.labels(charts.concurrency(self.buckets(count, each)))
        half = found[: len(found) // 2]  # two panels with the same axis
        assert half
        assert len(half) == len(set(half)) <= 13


def test_no_gridline_crosses_an_amount():
    for chart in (
        charts.composition(TEAMS, "team"),
        charts.waterfall(pl.DataFrame({"step": ["spend", "a"], "pusd": pusd(3, 1)})),
    ):
        svg = charts.to_svg(chart, "t", "d", name="x")
        assert "role-axis-grid" not in svg or not re.search(r'role-axis-grid"[^>]*><line', svg)
        assert all(
            layer["encoding"]["x"].get("axis", {}).get("grid", False) is False for layer in chart.to_dict()["layer"]
        )
