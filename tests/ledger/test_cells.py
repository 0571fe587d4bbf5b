"""Cells: requests of one day, model and owner summed, without ever pricing one by another's status."""

from datetime import UTC, datetime

import pytest
from stores import log_of

from tenfold.ledger import attribute
from tenfold.prices import price_book

TS = datetime(2026, 9, 1, 12, tzinfo=UTC)
PRICES = """
provider = "acme"
[[price]]
model = "m"
input = 1
output = 2
{rates}
source = "test"
checked = 2026-11-29
"""
PLAIN = {"provider": "acme", "model": "m", "ts": TS, "team": "a", "input_tokens": 1000, "output_tokens": 100}
ALONE = 1000 * 1_000_000 + 100 * 2_000_000  # pUSD of the plain request


def book_of(tmp_path, rates=""):
    (tmp_path / "acme.toml").write_text(PRICES.format(rates=rates))
    return price_book(tmp_path)


def both_ways(ledger):
    """Cost, requests and unpriced requests of the one team, from the cube and from the raw rows."""
    with ledger.session() as session:
        frames = (session.totals(["team"]), session.totals(["team"], priced="priced_requests"))
    return [tuple(int(frame[name][0]) for name in ("cost_pusd", "requests", "unpriced_requests")) for frame in frames]


@pytest.mark.parametrize(
    "counts",
    [
        {"cache_read_tokens": 10},
        {"cache_write_tokens": 10},
        {"cache_write_tokens": 10, "cache_write_long_tokens": 10},
        {"input_audio_tokens": 10},
        {"output_audio_tokens": 10},
        {"output_image_tokens": 10},
        {"web_searches": 1},
    ],
    ids="+".join,
)
def test_one_request_without_a_price_takes_no_other_with_it(tmp_path, counts):
    none = dict.fromkeys(counts, 0)
    rows = [{**PLAIN, **counts}, {**PLAIN, **none}, PLAIN]
    ledger = attribute(log_of(rows), book_of(tmp_path))
    assert both_ways(ledger) == [(2 * ALONE, 3, 1)] * 2


def test_short_writes_are_told_from_long_ones(tmp_path):
    # Only long writes have a price: 100 of them at 3 instead of 1 per million add 200 pUSD a million, 2e8 in all.
    long = {**PLAIN, "cache_write_tokens": 100, "cache_write_long_tokens": 100}
    mixed = {**PLAIN, "cache_write_tokens": 100, "cache_write_long_tokens": 50}
    ledger = attribute(log_of([long, mixed, PLAIN]), book_of(tmp_path, "cache_write_long = 3"))
    assert both_ways(ledger) == [(2 * ALONE + 100 * 2_000_000, 3, 1)] * 2


@pytest.mark.parametrize("missing", [("input_tokens",), ("output_tokens",), ("input_tokens", "output_tokens")])
def test_an_unknown_total_takes_no_other_with_it(tmp_path, missing):
    rows = [
        {**PLAIN, **dict.fromkeys(missing)},
        PLAIN,
        {**PLAIN, "is_billable": False},
        {**PLAIN, "gateway_cache_hit": True},
    ]
    ledger = attribute(log_of(rows), book_of(tmp_path))
    assert both_ways(ledger) == [(ALONE, 2, 1)] * 2


def test_media_priced_apart_and_cached_in_one_request_only(tmp_path):
    rates = "cache_read = 0.1\ninput_audio = 5"
    cached, heard = {**PLAIN, "cache_read_tokens": 500}, {**PLAIN, "input_audio_tokens": 100, "cache_read_tokens": 0}
    both = {**PLAIN, "input_audio_tokens": 100, "cache_read_tokens": 500}
    ledger = attribute(log_of([cached, heard, both]), book_of(tmp_path, rates))
    # cached: 500 less 0.9 each; heard: 100 more 4 each; both: how much of the audio was cached is unknown
    right = (ALONE - 500 * 900_000) + (ALONE + 100 * 4_000_000)
    assert both_ways(ledger) == [(right, 3, 1)] * 2


def test_each_request_takes_the_band_of_its_own_input(tmp_path):
    (tmp_path / "b.toml").write_text(
        PRICES.format(rates="").replace('"acme"', '"bands"')
        + '[[price]]\nmodel = "m"\nabove_input_tokens = 999\ninput = 10\noutput = 20\n'
        + 'source = "test"\nchecked = 2026-11-29\n'
    )
    book = price_book(tmp_path)
    rows = [{**PLAIN, "provider": "bands", "input_tokens": tokens, "output_tokens": 0} for tokens in (999, 1000, 0)]
    ledger = attribute(log_of(rows, book.thresholds), book)
    assert both_ways(ledger) == [(999 * 1_000_000 + 1000 * 10_000_000, 3, 0)] * 2
