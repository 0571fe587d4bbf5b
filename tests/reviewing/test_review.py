"""The review page: one piece, nothing to load, every number linked to how it was made, every name escaped."""

import re
from html.parser import HTMLParser

import pytest
from bills import FIVE, ledger_of, utc
from quick import few

from tenfold import extras
from tenfold.config import Settings
from tenfold.errors import NotEvaluable
from tenfold.extras import MissingExtraError
from tenfold.ledger import attribute
from tenfold.planning import plan
from tenfold.reviewing import SECTIONS, lever_cards, review
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter as read_quarter
from tenfold.reviewing.sections import levers as ranked
from tenfold.reviewing.sections import summary

EVIL = '<script>alert("team")</script>'
# the five of July 10th (2.60), one from before the quarter (1.00), one with an evil name after the August price cut:
# 100k in 0.10, 100k out at 2 a million 0.20
ROWS = [
    *FIVE,
    {"ts": "2026-06-30T23:59:59.999999", "input_tokens": 1_000_000, "output_tokens": 0, "team": "early"},
    {"ts": "2026-08-02T12:00:00", "input_tokens": 100_000, "output_tokens": 100_000, "team": EVIL, "feature": EVIL},
]


def facts_of(ledger, plan, quarter):
    """Facts with the settings of no file."""
    return Facts(ledger, plan, quarter, Settings())


def saving(mid, high=None):
    return {"low": None, "mid": mid, "high": high}


def lever(name, **changes):
    made = {
        "name": name, "number": 3, "label": "exact", "addressed_usd": "2.1", "status": "ok", "reason": "",
        "saving_usd": {"low": "0.4", "mid": "0.5", "high": "0.6"}, "as_billed_usd": None, "effort_days": 1.0,
        "risk": "low", "first_action": f"first {name} `{EVIL}`", "verify": f"verify {name}", "undo": f"undo {name}",
        "conflicts": ["route"], "evidence": [{"name": "moved_usd", "value": "0.5", "unit": "USD", "step": "priced"}],
        "assumptions": [{"name": "tier", "value": "batch", "unit": "tier", "source": "stated", "conservative": False}],
    }  # fmt: skip
    return {**made, **changes}


PLAN = {
    "spend_usd": "2.90",
    "levers": [
        lever("batch_api"),
        lever("prefix_cache", as_billed_usd="-0.11", status="no_assumption", reason="none", saving_usd=saving("0.00")),
        lever("skip", label="ceiling", status="ok", reason="semantic", saving_usd=saving("0.07", "0.09")),
        lever("speculate", status="not_measurable", reason="no self-hosted requests", saving_usd=saving(None)),
    ],
    "plan": {
        "levers": ["batch_api"],
        "roadmap": [{"name": "batch_api", "marginal_usd": "0.50"}],
        "saving_usd": {"low": "0.40", "mid": "0.50", "high": "0.60"},
        "fold": 1.2083333,
        "bound_by": "output of search",
    },
}  # fmt: skip
VOID = {"meta", "link", "img", "br", "hr", "input", "col", "path", "line", "rect"}


class Page(HTMLParser):
    """Tags in order, and the text of each section."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.sections, self.headings, self._open, self._section, self._skip = [], {}, [], [], None, 0
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if tag == "section":
            self._section = attrs["id"]
            self.sections[self._section] = ""
        if tag in ("h1", "h2", "h3", "h4"):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag, f"</{tag}> closes something else"
        if tag == "section":
            self._section = None

    def handle_data(self, data):
        if self._section and "style" not in self._open:
            self.sections[self._section] += f" {data.strip()}".replace("\u00a0", " ")

    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return ledger_of(ROWS, tmp_path_factory.mktemp("book"))


@pytest.fixture(scope="module")
def made(ledger):
    return review(ledger, PLAN, quarter="2026Q3")


@pytest.fixture(scope="module")
def page(made):
    return Page(made.html)


class TestOnePiece:
    def test_loads_nothing(self, made, page):
        loading = {"script", "link", "img", "image", "iframe", "object", "embed", "audio", "video", "base"}
        assert not loading & {tag for tag, _ in page.tags}
        outside = [attrs for _, attrs in page.tags for name in ("src", "srcset", "xlink:href", "data") if name in attrs]
        assert outside == []
        assert not re.search(r"@import|url\((?!#)", made.html)

    def test_is_well_formed(self, made, page):
        assert made.html.startswith("<!DOCTYPE html>")
        assert page.sections
        assert page._open == []

    @pytest.mark.full
    def test_same_bytes_again(self, ledger, made):
        assert review(ledger, PLAN, quarter="2026Q3").html == made.html

    def test_saves(self, made, tmp_path):
        assert made.save(tmp_path / "r.html").read_bytes().decode() == made.html

    def test_prints_and_darkens(self, made):
        assert "@media print" in made.html
        assert "@page { size: A4" in made.html
        assert "prefers-color-scheme: dark" in made.html


class TestAccessible:
    def test_headings_go_down_one_level_at_a_time(self, page):
        assert page.headings[0] == 1
        steps = zip(page.headings, page.headings[1:], strict=False)
        assert [step for step in steps if step[1] > step[0] + 1] == []

    def test_skip_link_comes_first_and_leads_to_the_main_part(self, page):
        links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
        assert links[0] == "#main"
        assert ("main", "main") in {(tag, attrs.get("id")) for tag, attrs in page.tags}

    def test_pictures_have_a_text_alternative(self, page):
        pictures = [attrs for tag, attrs in page.tags if tag == "svg"]
        assert len(pictures) >= 5
        assert all(attrs["role"] == "img" for attrs in pictures)
        named = {name for attrs in pictures for name in attrs["aria-labelledby"].split()}
        assert named <= set(page.ids())

    def test_header_cells_have_a_scope(self, page):
        heads = [attrs for tag, attrs in page.tags if tag == "th"]
        assert heads
        assert all(attrs.get("scope") in ("col", "row", "colgroup") for attrs in heads)
        tables = sum(tag == "table" for tag, _ in page.tags)
        assert sum(tag == "caption" for tag, _ in page.tags) == tables

    def test_ids_appear_once_and_links_lead_somewhere(self, page):
        ids = page.ids()
        assert len(ids) == len(set(ids))
        links = {attrs["href"].removeprefix("#") for tag, attrs in page.tags if tag == "a"}
        assert links <= set(ids)


class TestNumbers:
    def test_the_quarter_and_nothing_else(self, page):
        # 2.60 of July and 0.30 of August; the dollar of June 30th is not in it
        assert "$2.90" in page.sections["summary"]
        assert "early" not in page.sections["composition"]

    def test_bound_is_in_the_summary(self, page):
        # output 1.40 + 0.20 of 2.90 is 55.2 %
        assert "output is 55 % of cost: no input-side lever can save more than 45 %" in page.sections["summary"]

    def test_unpriced_is_named(self, page):
        assert "ghost" in page.sections["coverage"]
        assert "80.00 % of 5 requests" in page.sections["coverage"]

    def test_price_change_of_the_quarter(self, page):
        assert "output $4.00 to $2.00" in page.sections["rates"]
        assert "2026-08-01 00:00 UTC" in page.sections["rates"]

    def test_every_figure_and_table_links_to_its_making(self, page):
        hows = [attrs["href"] for tag, attrs in page.tags if tag == "a" and attrs.get("class") == "how"]
        figures = sum(tag in ("figure", "table") for tag, _ in page.tags)
        assert len(hows) >= figures
        assert {"#made-total", "#made-reading", "#made-spend", "#made-in-flight", "#made-levers"} <= {
            attrs["href"] for tag, attrs in page.tags if tag == "a"
        }

    def test_appendix_names_versions_and_steps(self, page, ledger):
        text = page.sections["appendix"]
        assert ledger.book.version in text
        assert ledger.log.log_hash in text
        for step in ("totals", "token_mix", "concurrency"):
            assert f"step-{step}" in page.ids()
        assert "cache_write_pusd" in text  # the very SQL


def test_names_from_the_log_are_escaped(made, page):
    assert "<script" not in made.html
    assert EVIL in page.sections["composition"]  # as text
    assert EVIL in page.sections["levers"]


class TestLevers:
    def test_plan(self, page):
        text = page.sections["levers"]
        assert "saves $0.50 [$0.40 to $0.60] of $2.90 in this window: fold 1.21" in text
        assert "output of search" in text
        for word in ("first batch_api", "verify batch_api", "undo batch_api", "errs towards a larger saving"):
            assert word in text

    def test_ceilings_and_the_past_stand_apart(self, made, page):
        text = page.sections["levers"]
        ranked = made.html[made.html.index('id="table-levers"') :]
        ranked = ranked[: ranked.index("</table>")]
        assert "batch_api" in ranked
        assert not any(name in ranked for name in ("skip", "prefix_cache", "speculate"))
        assert "skip: at most $0.09" in text
        assert "prefix_cache lost $0.11" in text
        assert "no self-hosted requests" in text

    def test_waterfall_leads_from_spend_to_what_is_left(self, made):
        assert "A waterfall: from $2.90, less batch_api $0.50, to $2.40." in made.html

    def test_an_empty_plan_says_so(self, ledger):
        empty = {**PLAN["plan"], "levers": [], "roadmap": [], "saving_usd": {"low": "0", "mid": "0", "high": "0"}}
        why = {**empty, "why_none": "not measurable: batch_api", "bound_by": "short_log"}
        facts = facts_of(ledger, {**PLAN, "plan": why}, read_quarter("2026Q3"))
        for section in (ranked.section(facts), summary.section(facts)):
            assert "not measurable: batch_api; log too short" in words(section)
            assert "pays for its effort" not in words(section)
        assert "pull no lever" in words(ranked.section(facts))
        assert "batch_api saves $0.50 alone, not in plan" in words(summary.section(facts))

    def test_a_plan_of_another_window_is_told(self, ledger):
        told = "made on $3.90 of spend, not on this quarter's $2.90"
        foreign = facts_of(ledger, {**PLAN, "spend_usd": "3.9"}, read_quarter("2026Q3"))
        assert told in words(ranked.section(foreign))
        assert told in words(summary.section(foreign))
        # and none of its figures stands beside the quarter's spend
        assert "$0.50" not in words(summary.section(foreign))
        own = facts_of(ledger, PLAN, read_quarter("2026Q3"))
        assert "Not a plan of this" not in words(ranked.section(own))
        assert "$0.50" in words(summary.section(own))

    @pytest.mark.parametrize(
        ("change", "told"),
        few(
            1,
            [
                ({"card_version": "another"}, "other prices (another"),
                ({"log_hash": "another"}, "other log (another"),
                ({"window": {"first_day": "2026-06-30", "last_day": "2026-08-02"}}, "made on 2026-06-30 to 2026-08-02"),
                ({"window": {"first_day": "2026-07-01", "last_day": "2026-10-01"}}, "made on 2026-07-01 to 2026-10-01"),
                ({"spend_usd": None}, "not on this quarter's $2.90"),
            ],
        ),
    )
    def test_a_plan_of_other_prices_or_another_log_is_told(self, ledger, change, told):
        facts = facts_of(ledger, {**PLAN, **change}, read_quarter("2026Q3"))
        assert told in words(summary.section(facts))
        assert told in words(ranked.section(facts))
        assert "$0.50" not in words(summary.section(facts))

    def test_a_plan_within_the_quarter_is_its_own(self, ledger):
        own = {"window": {"first_day": "2026-07-01", "last_day": "2026-09-30"}}
        own |= {"card_version": ledger.book.version, "log_hash": ledger.log.log_hash}
        assert facts_of(ledger, {**PLAN, **own}, read_quarter("2026Q3")).differences == ()

    def test_what_to_do_first_is_told_of_levers_without_a_figure_too(self, made):
        others = made.html[made.html.index('id="table-other-levers"') :]
        assert "first prefix_cache" in others[: others.index("</table>")]

    def test_what_is_left_out_and_what_was_misspelt(self, ledger):
        batch = lever("batch_api", left_out=[{"text": "left out by the service levels: eval, 3 requests, $1.00"}])
        plan = {**PLAN, "levers": [batch], "notes": ['no request has feature "tagin"']}
        said = words(ranked.section(facts_of(ledger, plan, read_quarter("2026Q3"))))
        assert "left out by the service levels: eval, 3 requests, $1.00" in said
        assert 'no request has feature "tagin"' in said


def words(section):
    """The plain text of a section's blocks."""
    return str(section.blocks)


@pytest.fixture(scope="module")
def unplanned(tmp_path_factory):
    narrow = {"since": utc(2026, 7, 10), "until": utc(2026, 7, 11)}
    return review(ledger_of(ROWS, tmp_path_factory.mktemp("book"), **narrow), quarter="2026Q3", zone="Europe/Berlin")


def test_a_card_is_written_for_people():
    evidence = [
        {
            "name": "training_usd",
            "value": "51.111111111111",
            "unit": "USD: 92 of 90 days",
            "step": "lever_distill_window",
        },
        {"name": "list_overstates", "value": "1.2345678", "unit": "times: naive over true", "step": "priced"},
        {"name": "hit_share", "value": "0.217391", "unit": "share of tokens that must be reads", "step": "rates"},
        {"name": "score_routed", "value": "0.7500", "unit": "mean score", "step": "lever_route_pairs"},
        {"name": "break_even", "value": "405.300000001", "unit": "requests a month", "step": "F / (mean - hosting)"},
        {"name": "later_usd", "value": "0.0037", "unit": "USD", "step": "priced"},
        {"name": "best", "value": None, "unit": "reads", "step": "rates"},
    ]
    assumptions = [
        {"name": name, "value": value, "unit": "u", "source": "stated"}
        for name, value in (
            ("to", None),
            ("ratio", ["0.7", "1", "1.5"]),
            ("rates", {"input": "0.1"}),
            ("sticky", False),
        )
    ]
    route = lever("route", conflicts=["distill"], evidence=evidence, assumptions=assumptions)
    pairs = dict(lever_cards.card(route).pairs)
    assert pairs["Excludes"] == ("distill, request by request: on requests that both want, only one of them acts.",)
    assert pairs["Assumes"] == (
        "to: not stated (u; stated)",
        "ratio = [0.7, 1, 1.5] (u; stated)",
        "rates = { input = 0.1 } (u; stated)",
        "sticky = false (u; stated)",
    )
    assert pairs["Evidence"] == (
        "training: $51.11: 92 of 90 days (step lever_distill_window)",
        "list overstates: 1.23x: naive over true (step priced)",
        "hit share: 22 % (share of tokens that must be reads) (step rates)",
        "score routed: 0.7500 mean score (step lever_route_pairs)",
        "break even: 405.30 requests a month",
        "later: <$0.01 (step priced)",
        "best: unknown reads (step rates)",
    )


def test_without_a_plan_the_section_is_left_out_with_the_reason(unplanned):
    text = Page(unplanned.html).sections
    assert "levers" not in text
    assert "no plan was given" in text["left-out"]
    assert "Levers" in [one.title for one in unplanned.skipped]


def test_a_zone_moves_the_edge_and_the_ledgers_own_window_gives_way(unplanned):
    # in Berlin (UTC+2) the request of 23:59:59.999999 on June 30th UTC is one of July
    assert "$3.90" in Page(unplanned.html).sections["summary"]


def test_a_quarter_without_requests_is_refused_with_the_range_there_is(ledger):
    with pytest.raises(
        NotEvaluable, match=r"2025Q1, 2025-01-01 to 2025-03-31 .*runs from 2026-06-30 23:59 UTC to 2026-08-02 12:00 UTC"
    ):
        review(ledger, quarter="2025Q1")


def test_nothing_priced_leaves_sections_out(tmp_path):
    rows = [{"ts": "2026-07-01T00:00:00", "model": "ghost", "input_tokens": 1, "output_tokens": 1}]
    found = review(ledger_of(rows, tmp_path), quarter="2026Q3")
    titles = [one.title for one in found.skipped]
    assert {"Spend bridge", "Composition", "Rates and price changes", "Levers"} <= set(titles)
    assert "$0.00" in Page(found.html).sections["summary"]


def test_without_the_extra_it_says_how_to_install(ledger, monkeypatch):
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r'needs jinja2, altair, great_tables, vl_convert.*"tenfold\[report\]"'):
        review(ledger, quarter="2026Q3")


def test_sections_do_not_import_each_other():
    names = {maker.__module__.rsplit(".", 1)[1] for maker in SECTIONS}
    for maker in SECTIONS:
        own = maker.__module__.rsplit(".", 1)[1]
        held = {getattr(value, "__module__", "") or "" for value in maker.__globals__.values()}
        assert not {f"tenfold.reviewing.sections.{name}" for name in names - {own}} & held


@pytest.mark.full
def test_real_plans_of_two_windows(tmp_path):
    """The plan of one July day beside the quarter that has more: no figure of it in the summary."""
    made = ledger_of(ROWS, tmp_path)
    day = attribute(made.log, made.book, since=utc(2026, 7, 10), until=utc(2026, 7, 11))
    found = Page(review(made, plan(day), quarter="2026Q3").html).sections
    assert "of another bill" in found["summary"]
    assert "Not a plan of this quarter's bill" in found["levers"]
    quarter = attribute(made.log, made.book, since=utc(2026, 7, 1), until=utc(2026, 10, 1))
    found = Page(review(made, plan(quarter), quarter="2026Q3").html).sections
    assert "of another bill" not in found["summary"]
    # these rows do not say whether they were streamed: that is the reason, not the effort
    assert "not measurable" in found["summary"]
    assert "pays for its effort" not in found["summary"] + found["levers"]


def test_a_notebook_shows_a_line_and_a_frame(made):
    assert re.fullmatch(
        r"<Review LLM cost review 2026Q3: \d+ sections, without [\w ,]+; save\(path\) writes it>", repr(made)
    )
    tags = Page(made._repr_html_()).tags
    (frame,) = (attrs for tag, attrs in tags if tag == "iframe")
    assert frame["srcdoc"] == made.html
    # the page is an attribute, and none of its elements is the notebook's
    assert {tag for tag, _ in tags} == {"p", "iframe"}
