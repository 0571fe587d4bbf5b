"""Cells: requests of one day, model and owner summed, without ever pricing one by another's status."""

from datetime import UTC, datetime

import pytest
from quick import few
from stores import log_of

import tenfold as tf
from tenfold.errors import UsageError
from tenfold.ledger import attribute
from tenfold.prices import price_book
from tenfold.store import schema

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


def three_ways(rows, book):
    """The same from the cube, from the raw rows, and call by call (what is refused there has no price)."""
    ways = both_ways(attribute(log_of(rows), book))
    costs = []
    for row in (row for row in rows if row.get("is_billable") is not False):
        usage = {name: row.get(name) for name in schema.TOKEN_COLUMNS}
        try:
            one = tf.price(provider="acme", model="m", at=row["ts"], usage=tf.Usage(**usage), book=book)
            costs.append(one.cost_pusd)
        except UsageError:
            costs.append(None)
    return [*ways, (sum(cost or 0 for cost in costs), len(costs), costs.count(None))]


@pytest.mark.parametrize(
    "counts",
    few(
        2,
        [
            {"cache_read_tokens": 10},
            {"cache_write_tokens": 10},
            {"cache_write_tokens": 10, "cache_write_long_tokens": 10},
            {"input_audio_tokens": 10},
            {"output_audio_tokens": 10},
            {"output_image_tokens": 10},
            {"output_video_tokens": 10},
            {"web_searches": 1},
            {"images": 1},
            {"input_audio_ms": 1},
            {"cache_storage_token_s": 1},
        ],
    ),
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


@pytest.mark.parametrize("missing", few(1, [["input_tokens"], ["output_tokens"], ["input_tokens", "output_tokens"]]))
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


def test_what_is_priced_by_time_is_rounded_request_by_request(tmp_path):
    # half a pUSD a millisecond, a half to the even one: 1 -> 0, 3 -> 2, 5 -> 2, 7 -> 4, 8 -> 4
    rows = [{**PLAIN, "output_media_ms": ms} for ms in (1, 1, 3, 5, 7, 8, 0, None)]
    assert three_ways(rows, book_of(tmp_path, "output_hour = 0.0000018")) == [(8 * ALONE + 12, 8, 0)] * 3


@pytest.mark.parametrize(
    ("keys", "seconds"),
    few(
        2,
        [
            ("", (0.001, 10, 10.001, 16)),
            ("min_audio_s = 10", (10, 10, 10.001, 16)),
            ("round_audio_s = 6", (6, 12, 12, 18)),
            ("min_audio_s = 10\nround_audio_s = 6", (10, 12, 12, 18)),
            ("min_audio_s = 10\nround_audio_s = 15", (15, 15, 15, 30)),
        ],
    ),
)
def test_audio_by_time_is_billed_in_steps_and_from_a_least_on(tmp_path, keys, seconds):
    # 0.36 USD an hour is 100,000,000 pUSD a second
    rows = [{**PLAIN, "input_audio_ms": ms} for ms in (1, 10_000, 10_001, 16_000, 0, None)]
    heard = sum(int(1000 * one) for one in seconds) * 100_000
    book = book_of(tmp_path, f"audio_hour = 0.36\n{keys}")
    assert three_ways(rows, book) == [(6 * ALONE + heard, 6, 0)] * 3


def test_a_request_fee_is_paid_once_by_every_billed_request(tmp_path):
    rows = [PLAIN, PLAIN, {**PLAIN, "input_tokens": 0, "output_tokens": 0}, {**PLAIN, "is_billable": False}]
    assert three_ways(rows, book_of(tmp_path, "request = 5")) == [(2 * ALONE + 3 * 5 * 10**9, 3, 0)] * 3


CACHED = {"cache_read_tokens": 500, "input_image_tokens": 300, "cache_read_image_tokens": 200}


@pytest.mark.parametrize(
    ("rates", "more"),
    few(
        1,
        [
            # reads 500 at 0.1; images not apart, apart (100 uncached at 5), at input's rate; with a cached rate, 0.3
            ("", -500 * 900_000),
            ("input_image = 5", -500 * 900_000 + 100 * 4_000_000),
            ('input_image = "1x"', -500 * 900_000),
            ("cache_read_image = 0.3", -500 * 900_000 + 200 * 200_000),
            ("input_image = 5\ncache_read_image = 0.3", -500 * 900_000 + 100 * 4_000_000 + 200 * 200_000),
            ('input_image = "1x"\ncache_read_image = 0.3', -500 * 900_000 + 200 * 200_000),
        ],
    ),
)
def test_cached_media_are_cut_from_reads_and_from_their_kind_once(tmp_path, rates, more):
    rows = [{**PLAIN, **CACHED}, PLAIN]
    assert three_ways(rows, book_of(tmp_path, f"cache_read = 0.1\n{rates}")) == [(2 * ALONE + more, 2, 0)] * 3


@pytest.mark.parametrize(
    ("counts", "is_known"),
    few(
        2,
        [
            ({}, True),
            ({"cache_read_image_tokens": 0}, True),
            ({"cache_read_image_tokens": None}, False),
            ({"cache_read_image_tokens": None, "cache_read_tokens": 0}, True),
            ({"cache_read_image_tokens": None, "cache_read_audio_tokens": 200}, False),
            ({"cache_write_tokens": 1}, False),
            ({"cache_write_tokens": 1, "input_image_tokens": 0, "cache_read_image_tokens": None}, True),
        ],
    ),
    ids=str,
)
def test_media_priced_apart_are_priced_where_their_cached_count_is_known(tmp_path, counts, is_known):
    rates = "cache_read = 1\ncache_write = 1\ninput_image = 5"
    rows = [{**PLAIN, **CACHED, **counts}, PLAIN]
    assert [way[2] for way in three_ways(rows, book_of(tmp_path, rates))] == [not is_known] * 3


@pytest.mark.parametrize(
    ("counts", "is_overlap"),
    few(
        2,
        [
            ({"reasoning_tokens": 60, "output_audio_tokens": 40}, False),
            ({"reasoning_tokens": 61, "output_audio_tokens": 40}, True),
            ({"reasoning_tokens": 61, "output_video_tokens": 40}, True),
            # 500 + 600 is more than 1000, and nothing is apart: then with 100 known to be in both; with reasoning apart
            ({"cache_read_tokens": 500, "input_image_tokens": 600}, False),
            ({"cache_read_tokens": 500, "input_image_tokens": 600, "reasoning_tokens": 1}, True),
            (
                {
                    "cache_read_tokens": 500,
                    "input_image_tokens": 600,
                    "cache_read_image_tokens": 100,
                    "reasoning_tokens": 1,
                },
                False,
            ),
            ({"cache_read_tokens": 500, "input_image_tokens": 600, "output_audio_tokens": 1}, True),
        ],
    ),
    ids=str,
)
def test_parts_beyond_their_total_have_no_price_where_one_is_priced_apart(tmp_path, counts, is_overlap):
    rates = "cache_read = 1\nreasoning = 3\noutput_audio = 9\noutput_video = 9"
    assert [way[2] for way in three_ways([{**PLAIN, **counts}, PLAIN], book_of(tmp_path, rates))] == [is_overlap] * 3


def test_audio_at_the_rate_of_all_input_is_input(tmp_path):
    rows = [{**PLAIN, "input_audio_tokens": 300, "cache_read_tokens": 500}, PLAIN]
    book = book_of(tmp_path, 'cache_read = 0.1\ninput_audio = "1x"')
    assert three_ways(rows, book) == [(2 * ALONE - 500 * 900_000, 2, 0)] * 3


def test_hours_of_one_day_have_their_own_prices(tmp_path):
    # Berlin is two hours ahead: 09:00-18:00 there is 07:00-16:00 UTC, on 2026-09-01 (a Tuesday)
    peak = "\n[[price]]\n" + PRICES.format(rates="").split("[[price]]\n")[1].replace("input = 1", "input = 3")
    (tmp_path / "acme.toml").write_text(
        PRICES.format(rates="") + peak + 'weekdays = ["tue"]\nhours = ["09:00-18:00"]\nzone = "Europe/Berlin"\n'
    )
    times = [(6, 59), (7, 0), (15, 59), (16, 0)]
    rows = [{**PLAIN, "ts": TS.replace(hour=hour, minute=minute)} for hour, minute in times]
    rows.append({**PLAIN, "ts": TS.replace(day=2)})
    assert three_ways(rows, price_book(tmp_path)) == [(5 * ALONE + 2 * 1000 * 2_000_000, 5, 0)] * 3
