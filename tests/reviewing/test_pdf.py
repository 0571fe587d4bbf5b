"""The PDF: valid PDF/UA-1 with hostile names as text, the same bytes on every machine, no glyph missing in silence."""

import json

import documents
import pytest
import typst
from documents import HOSTILE

from tenfold.reviewing.document import Document, Prose, Section
from tenfold.reviewing.rendering import pdf
from tenfold.reviewing.rendering.notes import prepared

ALL = """
#set document(title: "T")
#set text(lang: "en", font: ("Libertinus Serif", "DejaVu Sans Mono"))
#for c in json(bytes(sys.inputs.said)) [#c #strong[#c] #raw(c) ]
"""


def written(document):
    return pdf.Writer(prepared(document), pdf._glyphs()).data()


def texts(data):
    if isinstance(data, str):
        yield data
    elif isinstance(data, dict):
        for part in data.values():
            yield from texts(part)
    elif isinstance(data, list):
        for part in data:
            yield from texts(part)


def plain(text):
    return text.replace("\u200b", "").replace("\u2068", "").replace("\u2069", "")


@pytest.fixture(scope="module")
def file():
    return pdf.render(documents.hostile(pictures=False))


def test_is_a_tagged_file(file):
    assert file.startswith(b"%PDF-1.7")
    assert b"/StructTreeRoot" in file
    assert b"pdfuaid:part" in file


def test_names_no_time_and_no_machine(file):
    assert b"/CreationDate" not in file
    assert pdf.render(documents.hostile(pictures=False)) == file


def test_names_are_data_and_read_as_they_are():
    rows = written(documents.hostile(pictures=False))["sections"][1]["blocks"][0]["rows"]
    said = [plain(row[0]) for row in rows]
    assert said[:2] == list(HOSTILE[:2])
    assert "#{sys.inputs} $x$ #panic(1) \\u{41}" in said
    assert "abc⟨U+202E⟩gnp.exe" in said
    assert "two\nlines and a tab" in said


def test_long_words_can_break():
    rows = written(documents.hostile(pictures=False))["sections"][1]["blocks"][0]["rows"]
    longest = max((word for row in rows for word in row[0].replace("\u200b", " ").split()), key=len)
    assert len(longest) <= 24


def test_a_character_without_a_glyph_is_its_code_and_the_file_says_so():
    data = written(Document("t", "s", (Section("k", "中文", (Prose("🎉 ok"),)),)))
    assert plain(data["sections"][0]["title"]) == "⟨U+4E2D⟩⟨U+6587⟩"
    assert data["coded"]
    assert not written(Document("t", "s", (Section("k", "Žluťoučký ελληνικά Русский עברית", ()),)))["coded"]


def test_every_text_has_glyphs():
    glyphs = pdf._glyphs() | set("\n\u200b\u2068\u2069")
    for text in texts(written(documents.hostile(pictures=False))):
        assert set(text) <= glyphs


def test_characters_without_a_glyph_together_are_written_as_codes():
    # Hebrew points on Latin letters, Arabic marks on Greek ones: no one font has both
    odd = "\u03b1\u0652\u05b0\u10d0\u0301\u0e94\u0eb9"
    assert pdf.render(Document(odd, odd, (Section("k", odd, (Prose(odd),)),))).startswith(b"%PDF")


@pytest.mark.full
def test_glyphs_listed_are_glyphs_of_the_wheel():
    options = {"ignore_system_fonts": True, "format": "pdf", "pdf_standards": ["ua-1"], "timestamp": 0}
    said = sorted(one for one in pdf._glyphs() if not one.isspace())
    assert len(said) > 3_000
    assert typst.compile(ALL.encode(), sys_inputs={"said": json.dumps(said)}, **options)
    with pytest.raises(typst.TypstError):
        typst.compile(ALL.encode(), sys_inputs={"said": json.dumps(["中"])}, **options)


@pytest.mark.full
def test_charts_are_drawn_in_the_fonts_of_the_file():
    data = written(documents.hostile())
    drawn = [block["svg"] for section in data["sections"] for block in section["blocks"] if "svg" in block]
    assert len(drawn) == 3
    for svg in drawn:
        assert "currentColor" not in svg
        assert "var(" not in svg
        assert set(svg) <= pdf._glyphs() | {"\n", "\t"}
    assert len(pdf.render(documents.hostile())) > 50_000
