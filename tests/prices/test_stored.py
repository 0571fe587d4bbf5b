"""The stored book is the book: remade when the TOML changes, never read when it is another's or damaged."""

import subprocess
import sys
import zipfile
from importlib import resources

import pytest

from tenfold.errors import PriceFileError
from tenfold.prices import price_book, stored
from tenfold.prices.compiling import compiled
from tenfold.prices.files import shipped, toml_files


@pytest.fixture(scope="module")
def fresh():
    return compiled(toml_files(shipped()))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "place", lambda: tmp_path / "book.json")
    return tmp_path / "book.json"


def test_what_comes_back_is_what_went_in(fresh, place):
    stored.save(fresh)
    assert place.is_file()
    found = stored.load(fresh.version)
    assert found.lists == fresh.lists
    assert list(found.lists) == list(fresh.lists)
    assert (found.ids, found.patterns, found.regions) == (fresh.ids, fresh.patterns, fresh.regions)
    assert [type(part) for part in found.lists["openai", "gpt-5", "standard", ""][0].bands[0]] == [
        type(part) for part in fresh.lists["openai", "gpt-5", "standard", ""][0].bands[0]
    ]


def test_another_version_or_a_damaged_file_is_not_read(fresh, place):
    assert stored.load(fresh.version) is None
    stored.save(fresh)
    assert stored.load("other") is None
    whole = place.read_bytes()
    place.write_bytes(whole[: len(whole) // 2])
    assert stored.load(fresh.version) is None
    place.write_bytes(b"3 1 1 " + whole)
    assert stored.load(fresh.version) is None


def test_a_folder_that_cannot_be_written_is_no_error(fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "place", lambda: tmp_path / "missing" / "book.json")
    stored.save(fresh)
    assert stored.load(fresh.version) is None


def test_the_pricing_path_takes_no_engine():
    code = (
        "import sys, datetime as d, tenfold as tf\n"
        "tf.price(provider='openai', model='gpt-5', at=d.datetime(2026, 10, 1, tzinfo=d.UTC), "
        "usage={'input_tokens': 1, 'output_tokens': 1})\n"
        "print([name for name in ('duckdb', 'polars', 'pydantic', 'numpy') if name in sys.modules])"
    )
    price_book()  # stores the book where it was not
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_wheel_is_a_book_too(tmp_path):
    wheel = tmp_path / "tenfold-9.9-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, content in toml_files(shipped()):
            archive.writestr(f"tenfold/_shipped/pricing/{name}", content)
    assert price_book(wheel).version == price_book().version
    assert price_book("shipped").version == price_book().version
    (tmp_path / "x.whl").write_bytes(b"")
    with pytest.raises(PriceFileError, match="no such folder"):
        price_book(tmp_path / "x.whl")


def test_every_shipped_entry_has_source_and_date():
    book = price_book()
    assert len({key[0] for key in book.lists}) >= 17
    for lists in book.lists.values():
        for one in lists:
            assert all(entry.source and entry.checked >= "2026-01-01" for entry in one.bands)
    assert (resources.files("tenfold._shipped") / "pricing" / "caching.toml").is_file()
