"""Markdown: read by a parser of its own, every name is text again and nothing else."""

import re

import documents
import pytest
from documents import HOSTILE, SCRIPT
from markdown_it import MarkdownIt

from tenfold.display import shortened, visible
from tenfold.reviewing.document import Document, Lines, Prose, Section, Text
from tenfold.reviewing.rendering import markdown


@pytest.fixture(scope="module")
def text():
    return markdown.render(documents.hostile())


@pytest.fixture(scope="module")
def tokens(text):
    return MarkdownIt("commonmark").enable("table").parse(text)


def cells(tokens):
    """Text of table cells, after all marks are read; a break is a new line, comments are nothing."""
    found = []
    for at, token in enumerate(tokens):
        if token.type == "td_open":
            parts = tokens[at + 1].children
            assert {part.type for part in parts} <= {
                "text",
                "html_inline",
                "strong_open",
                "strong_close",
                "text_special",
            }
            assert {part.content for part in parts if part.type == "html_inline"} <= {"<br>", "<!-- -->"}
            found.append(
                "".join(
                    "\n" if part.content == "<br>" else "" if part.type == "html_inline" else part.content
                    for part in parts
                )
            )
    return found


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_name_in_a_table_is_read_as_it_is(tokens, name):
    plain = re.sub(r"[^\S\n]+", " ", shortened(visible(name))) or "(empty)"
    assert plain in cells(tokens)


def test_tables_keep_their_columns(tokens):
    rows, cell = [], 0
    for token in tokens:
        cell += token.type == "td_open"
        if token.type == "tr_close":
            rows.append(cell)
            cell = 0
    # heads have none; tiles have 3 cells a row, the table of spend 7, the small one 2
    assert sorted(set(rows)) == [0, 2, 3, 7]


def test_no_html_but_ours(tokens):
    blocks = [token.content for token in tokens if token.type == "html_block"]
    assert blocks
    assert [one for one in blocks if not re.fullmatch(r"<details><summary>[\w]+</summary>\n|</details>\n", one)] == []
    inline = {child.content for token in tokens for child in token.children or () if child.type == "html_inline"}
    anchors = {f'<a id="{key}">' for key in ("summary", "composition", "levers", "appendix", "left-out")}
    assert inline == {"<br>", "<!-- -->", "</a>", *anchors}


def test_no_link_and_no_image_but_to_sections(tokens):
    links = [child for token in tokens for child in token.children or () if child.type in {"link_open", "image"}]
    assert {child.attrs["href"] for child in links} == {
        f"#{key}" for key in ("summary", "composition", "levers", "appendix", "left-out")
    }


def test_addresses_and_people_are_not_linked_by_github(text):
    outside = re.sub(r"`[^`]*`|```.*?```", "", text, flags=re.DOTALL)
    assert not re.search(r"https?://|www\.|@\w", outside)


def test_every_note_is_a_footnote_that_is_used(text):
    defined = re.findall(r"^\[\^([\w-]+)\]: ", text, re.MULTILINE)
    used = re.findall(r"\[\^([\w-]+)\](?!:)", text)
    assert defined == ["made-spend", "made-days"]
    assert set(used) == set(defined)


def test_a_chart_is_its_text_in_a_quotation(text):
    assert "> **Spend per day.** Stacked columns, $140 to $190 a day;" in text


@pytest.mark.parametrize("start", ["# a", "- a", "+ a", "1. a", "23) a", "> a", "=== a", "* a", "    a", "--- a"])
def test_a_line_begins_nothing(start):
    made = markdown.render(Document("t", "s", (Section("k", "T", (Prose(start), Lines((start,)))),)))
    parsed = MarkdownIt("commonmark").parse(made)
    texts = ["".join(child.content for child in token.children) for token in parsed if token.type == "inline"]
    assert texts[-2:] == [start.strip()] * 2
    assert {token.tag for token in parsed} == {"h1", "h2", "p", "ul", "li", ""}


def test_a_fence_in_a_text_does_not_end_it():
    made = markdown.render(Document("t", "s", (Section("k", "T", (Text("a_b", f"x\n````\n{SCRIPT}"),)),)))
    (fence,) = [token for token in MarkdownIt("commonmark").parse(made) if token.type == "fence"]
    assert fence.content == f"x\n````\n{SCRIPT}\n"
    assert "<summary>a_b</summary>" in made


def test_the_same_again(text):
    assert markdown.render(documents.hostile()) == text
