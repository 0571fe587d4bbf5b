"""Tables: header cells with a scope, numbers to the right, names escaped, rows that sum to the total."""

from decimal import Decimal
from html.parser import HTMLParser

import polars as pl
import pytest

from tenfold import extras, tables
from tenfold.charts import theme
from tenfold.extras import MissingExtraError


def pusd(*amounts):
    return pl.Series([Decimal(str(amount)).scaleb(12) for amount in amounts], dtype=pl.Decimal(38, 0))


class Read(HTMLParser):
    """Cells of a table as (tag, attributes, text), row by row."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.tags, self._cell = [], [], None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("th", "td"):
            self._cell = [tag, dict(attrs), ""]
            self.rows[-1].append(self._cell)

    def handle_endtag(self, tag):
        if tag in ("th", "td"):
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell[2] += data

    def text(self):
        return [[cell[2].strip() for cell in row] for row in self.rows]


# agents 3 (1 in, 2 out), search 1 (all in), ghosts without a price
FRAME = pl.DataFrame(
    {
        "team": ["search", "agents", "<b>ghosts"],
        "uncached_input_pusd": pusd(1, 1, 0),
        "output_pusd": pusd(0, 2, 0),
        "cache_read_pusd": pusd(0, 0, 0),
        "cost_pusd": pusd(1, 3, 0),
        "requests": [1_000, 20, 5],
        "unpriced_requests": [0, 0, 5],
    }
)


@pytest.fixture(scope="module")
def html():
    return tables.to_html(tables.composition(FRAME, ["team"], name="by-team", caption="Cost & team"), is_styled=False)


def one_row(name):
    return tables.grid("t", "c", [tables.Column(name, name), tables.Column("n", "n", "count")], [["x", 1]])


class TestComposition:
    def test_rows(self, html):
        assert Read(html).text()[:5] == [
            ["team", "cost (USD)", "share of cost", "uncached in", "output", "requests", "not priced"],
            ["agents", "$3.00", "75.0 %", "33.3 %", "66.7 %", "20", "0"],
            ["search", "$1.00", "25.0 %", "100.0 %", "0.0 %", "1,000", "0"],
            ["<b>ghosts", "not priced", "–", "–", "–", "5", "5"],
            ["total", "$4.00", "100.0 %", "50.0 %", "50.0 %", "1,025", "5"],
        ]

    def test_names_are_escaped(self, html):
        assert "&lt;b&gt;ghosts" in html
        assert "b" not in {tag for tag, _ in Read(html).tags}

    def test_the_rest_is_one_row_and_still_sums(self):
        many = pl.concat([FRAME, FRAME.with_columns(team=pl.lit("z")), FRAME.with_columns(team=pl.lit("y"))])
        text = Read(tables.to_html(tables.composition(many, ["team"], name="t", caption="c", top=2))).text()
        assert text[3][:2] == ["7 others", "$6.00"]  # 12 in all, less twice 3
        assert text[4][:2] == ["total", "$12.00"]

    def test_a_bill_below_a_dollar_shows_its_digits(self):
        frame = FRAME.with_columns(pl.selectors.ends_with("_pusd") / 1_000_000).with_columns(
            pl.selectors.ends_with("_pusd").cast(pl.Decimal(38, 0))
        )
        assert (
            Read(tables.to_html(tables.composition(frame, ["team"], name="t", caption="c"))).text()[1][1] == "$0.000003"
        )


class TestAccessible:
    def test_headers_have_a_scope(self, html):
        rows = Read(html).rows
        assert {cell[1].get("scope") for cell in rows[0]} == {"col"}
        assert all(row[0][0] == "th" and row[0][1]["scope"] == "row" for row in rows[1:5])

    def test_caption_names_the_region(self, html):
        tags = Read(html).tags
        assert tags[0] == ("div", {"id": "by-team", "class": "table with-total", "role": "group",
                                   "aria-labelledby": "by-team-caption", "tabindex": "0"})  # fmt: skip
        assert '<caption id="by-team-caption">Cost &amp; team</caption>' in html

    def test_numbers_are_to_the_right_words_to_the_left(self, html):
        rows = Read(html).rows
        assert all("gt_right" in cell[1]["class"] for row in rows[:5] for cell in row[1:])
        assert all("gt_left" in row[0][1]["class"] for row in rows[:5])

    def test_ids_hold_no_space_and_appear_once(self):
        found = Read(tables.to_html(one_row("cost centre"))).tags
        ids = [attrs["id"] for _, attrs in found if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert not any(" " in one for one in ids)

    def test_the_style_comes_along_only_when_asked(self, html):
        assert "<style>" not in html
        assert "<style>" in tables.to_html(one_row("a"))


def test_unpriced():
    parts = {"provider": "openai", "model": None, "service_tier": "standard", "region": None}
    found = {"price_status": "usage_missing", "requests": 1_012, "tokens": 0, "reason": "the log line has no usage"}
    rows = [{**parts, **found}]
    assert Read(tables.to_html(tables.unpriced(rows, name="t", caption="c"))).text() == [
        ["model", "provider", "tier", "status", "requests", "known tokens", "why"],
        ["(none)", "openai", "standard", "no usage logged", "1,012", "0", "the log line has no usage"],
    ]


def lever(name, **changes):
    made = {
        "name": name, "number": 1, "label": "exact", "addressed_usd": "21050.4", "status": "ok", "effort_days": 2.0,
        "saving_usd": {"low": "1", "mid": "10525.5", "high": "11000"}, "risk": "low", "first_action": "send `x`",
    }  # fmt: skip
    return {**made, **changes}


def test_levers():
    unknown = lever("trim", saving_usd={"low": None, "mid": "-3.2", "high": None}, addressed_usd=None, effort_days=None)
    idle = lever("skip", status="no_assumption", saving_usd={"low": "0", "mid": "0", "high": "0"})
    rows = [lever("batch_api"), unknown, idle]
    text = Read(tables.to_html(tables.levers(rows, {"batch_api": "10310"}, name="t", caption="c"))).text()
    assert text[1] == ["batch_api", "exact", "$21,050", "$10,526", "$1", "$11,000", "$10,310", "2.0", "low", "send x"]
    assert text[2] == ["trim", "exact", "–", "-$3", "–", "–", "not in plan", "–", "low", "send x"]
    # without a figure there is its status, and no saving that reads as one
    assert text[3][:5] == ["skip", "no assumption", "$21,050", "–", "–"]


def test_without_the_extra_it_says_how_to_install(monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r'a table needs great_tables.*pip install "tenfold\[report\]"'):
        tables.to_html(one_row("a"))


def test_an_owner_called_unallocated_is_not_what_has_no_owner():
    names = pl.Series(["unallocated", None, "total", "3 others", "core"], dtype=pl.String)
    ones = {"cost_pusd": pusd(5, 4, 3, 2, 1), "output_pusd": pusd(5, 4, 3, 2, 1), "requests": [1] * 5}
    frame = pl.DataFrame({"team": names, **ones, "unpriced_requests": [0] * 5})
    grid = tables.composition(frame, ["team"], name="g", caption="g", top=3)
    assert [row[0] for row in grid.texts()] == ['"unallocated"', "unallocated", '"total"', "2 others", "total"]
    lumped, kept = theme.lumped(frame.select("team", "cost_pusd"), "team", ["cost_pusd"], 5)
    assert kept == ['"unallocated"', "unallocated", '"total"', '"3 others"', "core"]
    assert len(lumped) == 5
