"""The page of a document made by hand: hostile names are text, nothing loads, numbers and notes lead to each other."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from itertools import pairwise

import documents
import pytest
from documents import DRAWN, HOSTILE, SCRIPT

from tenfold import charts
from tenfold.display import shortened, visible
from tenfold.errors import AssumptionError
from tenfold.reviewing.document import Document, Made, MadeList, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.rendering import html, write
from tenfold.tables import Column, grid

VOID = {"meta", "br", "line", "rect", "path"}


class Read(HTMLParser):
    """What a browser would make of a page: elements, attributes, the text of cells."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.cells, self.text, self._cell, self._open = [], [], "", None, []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag in {"td", "th"}:
            self._cell = ""

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self._open.pop() == tag
        if tag in {"td", "th"}:
            self.cells.append(self._cell)
            self._cell = None

    def handle_data(self, data):
        if self._open and self._open[-1] not in {"style", "script"}:
            self.text += data
        if self._cell is not None:
            self._cell += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def page():
    return html.render(documents.hostile())


@pytest.fixture(scope="module")
def read(page):
    return Read(page)


@pytest.fixture(scope="module")
def quiet():
    return Read(html.render(documents.hostile(pictures=False)))


@pytest.fixture(scope="module")
def live():
    picture = documents.hostile().sections[1].blocks[0]
    assert isinstance(picture, Picture)
    return html.render(Document("t", "s", (Section("a", "A", (picture,)),)), interactive=True), picture


class TestHostileNames:
    def test_no_element_that_a_name_brought(self, read):
        ours = {
            *("html", "head", "meta", "title", "style", "body", "a", "header", "h1", "h2", "h3", "h4", "p", "code"),
            *("nav", "ol", "li", "main", "section", "dl", "div", "dt", "dd", "span", "ul", "figure", "figcaption"),
            *("footer", "bdi", "details", "summary", "pre"),
            *("table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td"),
            *("svg", "desc", "g", "path", "text", "line", "rect", "tspan"),
        }  # fmt: skip
        assert {tag for tag, _ in read.elements} <= ours

    def test_no_handler_and_no_address(self, read):
        for tag, attrs in read.elements:
            assert [name for name in attrs if name.startswith("on") or name in {"src", "srcset", "action"}] == []
            assert tag != "a" or attrs["href"].startswith("#")

    @pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
    def test_every_name_is_read_as_it_is(self, quiet, name):
        assert (shortened(visible(name)) or "(empty)") in quiet.cells

    def test_nothing_hidden_is_left(self, page):
        assert visible(page.replace("\u200d", "")) == page.replace("\u200d", "")
        assert "⟨U+202E⟩" in page
        assert "⟨U+D800⟩" in page

    def test_what_is_written_from_the_right_is_set_apart(self):
        assert html.plain("עברית, עוד (12 %)") == "<bdi>עברית, עוד</bdi> (12\u00a0%)"

    def test_ids_are_unique_and_plain(self, read):
        ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert [one for one in ids if not re.fullmatch(r"[\w.:-]+", one)] == []

    def test_a_table_named_like_a_section_gets_an_id_of_its_own(self):
        tables = [Table(grid("spend", "c", [Column("a", "a"), Column("b", "b")], [("x", "y")]), "") for _ in range(2)]
        read = Read(html.render(Document("t", "s", (Section("spend", "t", tuple(tables)),))))
        assert [one["id"] for one in read.all("section")] == ["spend"]
        ids = [attrs["id"] for _, attrs in read.elements if "id" in attrs]
        assert len(ids) == len(set(ids))
        assert {"spend-2", "spend-3"} <= set(ids)

    def test_ids_of_hostile_keys(self):
        made = (Made(SCRIPT, "t", "h"),)
        table = Table(grid('x" onload="1', "c", [Column("a", "a"), Column("b", "b")], [("x", "y")]), SCRIPT)
        read = Read(html.render(Document("t", "s", (Section('k"><b>', "t", (table,), made),))))
        assert not read.all("b")
        ids = {attrs["id"] for _, attrs in read.elements if "id" in attrs}
        assert {attrs["href"][1:] for attrs in read.all("a")} <= ids
        assert not [attrs for _, attrs in read.elements if "onload" in attrs]
        assert {one for one in ids if not re.fullmatch(r"[\w.:-]+", one)} == set()


class TestSelfContained:
    def test_policy_allows_no_request(self, read):
        (policy,) = [one["content"] for one in read.all("meta") if one.get("http-equiv") == "Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert "script-src" not in policy
        assert not re.search(r"https?:|\*|unsafe-eval", policy)

    def test_style_asks_for_nothing(self, page):
        style = re.search(r"<style>(.*?)</style>", page, re.DOTALL)[1]
        assert "@import" not in style
        assert "url(" not in style

    def test_same_bytes_again(self):
        first, again = (html.render(documents.hostile(pictures=False)) for _ in range(2))
        assert first == again


@pytest.mark.full
class TestInteractive:
    def test_vega_is_embedded_once_and_is_the_only_script_allowed(self, live):
        made, _ = live
        scripts = re.findall(r'<script type="module">(.*?)</script>', made, re.DOTALL)
        assert len(scripts) == 1
        digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
        (policy,) = [
            one["content"] for one in Read(made).all("meta") if "content" in one and "script-src" in one["content"]
        ]
        assert policy.endswith(f"script-src 'sha256-{digest}'")
        assert made.count("<script") == 2

    def test_specification_is_the_charts_and_ends_nothing(self, live):
        made, picture = live
        (spec,) = re.findall(r'<script type="application/json">(.*?)</script>', made, re.DOTALL)
        assert not set("<>&") & set(spec)
        assert json.loads(spec) == charts.spec_of(picture.chart)
        assert SCRIPT in json.dumps(json.loads(spec))

    def test_svg_stays_for_print(self, live):
        assert 'class="chart" role="img"' in live[0]


class TestLinks:
    def test_numbers_lead_to_notes_and_notes_back(self, read):
        ids = {attrs["id"] for _, attrs in read.elements if "id" in attrs}
        links = [attrs["href"][1:] for attrs in read.all("a")]
        assert set(links) <= ids
        assert {"made-spend", "summary--made-spend", "composition--made-days", "step-totals"} <= set(links)

    def test_notes_are_written_where_no_section_lists_them(self):
        section = Section("a", "A", (Prose("12", "made-a"),), (Made("made-a", "Twelve", "Counted."),))
        made = html.render(Document("t", "s", (section,)))
        assert "Counted." in made
        assert 'id="made-a"' in made

    def test_a_number_without_a_note_has_no_link(self):
        section = Section("a", "A", (Prose("12", "gone"), MadeList()))
        assert 'href="#gone"' not in html.render(Document("t", "s", (section,)))

    def test_what_was_left_out_is_said_with_its_reason(self):
        made = html.render(Document("t", "s", (), (Skipped("Levers", "no plan: `tenfold levers --record`"),)))
        assert "Levers: no plan: <code>tenfold levers --record</code>." in made


class TestForPeople:
    def test_landmarks(self, read):
        assert [len(read.all(one)) for one in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]

    def test_tables_have_captions_and_scopes(self, read):
        assert len(read.all("caption")) == len(read.all("table")) == 2
        assert {one["scope"] for one in read.all("th")} == {"row", "col"}

    def test_pictures_are_one_image_each_with_a_text(self, read, page):
        drawn = read.all("svg")
        assert [one["role"] for one in drawn] == ["img"] * 3
        assert "role=" not in "".join(re.findall(r"<g\b[^>]*>", page))

    def test_cards_keep_the_order_of_headings(self, read):
        levels = [int(tag[1]) for tag, _ in read.elements if re.fullmatch(r"h\d", tag)]
        assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


class TestCharts:
    def test_a_control_character_never_reaches_what_draws(self):
        spec = charts.spec_of(charts.composition(documents.by_meter(("nul\x00", "turn\u202e", "no\uffff")), "team"))
        text = json.dumps(spec, ensure_ascii=False)
        assert "nul⟨U+0000⟩" in text
        assert "turn⟨U+202E⟩" in text
        assert "no⟨U+FFFF⟩" in text
        assert not {"\\u0000", "\u202e", "\uffff"} & set(re.findall(r"\\u0000|[\u202e\uffff]", text))

    def test_a_name_like_an_attribute_stays_a_name(self):
        frame = documents.by_meter(('a id="b" href="#c" role="d" "#767676"',))
        drawn = charts.to_svg(charts.composition(frame, "team"), "t", "d", name="p")
        assert 'a id="b"' in drawn.replace("&quot;", '"')
        assert len(DRAWN) == len(HOSTILE) - 1


def test_a_form_that_is_not_known_says_which_are(tmp_path):
    with pytest.raises(AssumptionError, match=r"\.html, \.md, \.xlsx, \.pdf"):
        write(documents.document(pictures=False), tmp_path / "r.docx")


def test_only_a_page_is_interactive(tmp_path):
    with pytest.raises(AssumptionError, match="only a page"):
        write(documents.document(pictures=False), tmp_path / "r.pdf", interactive=True)
