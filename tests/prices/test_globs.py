"""Patterns of ids: anchored, and two that could match the same id are found."""

from itertools import product

import pytest

from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.globs import could_both_match, matches


def test_anchored_at_both_ends():
    assert matches("gpt-5-*", "gpt-5-2025-08-07")
    assert not matches("gpt-5-*", "my-gpt-5-2025-08-07")
    assert not matches("gpt-5", "gpt-5-mini")
    assert matches("*:free", "meta/llama:free")
    assert not matches("a.c", "abc")  # a dot is a dot


def test_overlap_is_exact_on_all_short_texts():
    alphabet = "ab"
    texts = ["".join(letters) for length in range(6) for letters in product(alphabet, repeat=length)]
    patterns = ["".join(letters) for length in range(1, 4) for letters in product("ab*", repeat=length)]
    for left, right in product(patterns, repeat=2):
        witness = any(matches(left, text) and matches(right, text) for text in texts)
        assert could_both_match(left, right) == witness, (left, right)


def entry(model, pattern):
    return (
        f'[[price]]\nmodel = "{model}"\npatterns = ["{pattern}"]\ninput = 1\noutput = 2\nsource = "t"\n'
        "checked = 2026-11-29\n"
    )


def test_two_models_must_not_share_an_id(tmp_path):
    file = tmp_path / "acme.toml"
    file.write_text('provider = "acme"\n' + entry("a", "x-*") + entry("b", "*-mini"))
    with pytest.raises(PriceFileError) as raised:
        price_book(tmp_path)
    assert 'pattern "*-mini" and "x-*" of a can match the same id; make one of them narrower' in str(raised.value)
    file.write_text('provider = "acme"\n' + entry("a", "x-*") + entry("b", "y-*-mini"))
    book = price_book(tmp_path)
    assert (book.match("acme", "X-7").model, book.match("acme", "X-7").how) == ("a", "pattern")
    assert book.match("acme", "acme/y-2-mini").model == "b"
    assert book.match("acme", "y-2").how == "none"


def test_an_exact_id_goes_before_a_pattern(tmp_path):
    other = '[[price]]\nmodel = "x-special"\ninput = 5\noutput = 5\nsource = "t"\nchecked = 2026-11-29\n'
    (tmp_path / "acme.toml").write_text('provider = "acme"\n' + entry("a", "x-*") + other)
    book = price_book(tmp_path)
    assert (book.match("acme", "x-special").model, book.match("acme", "x-special").how) == ("x-special", "exact")
    assert book.match("acme", "x-special-2026-01-01").how == "dated_id"
