"""The reading of a bill, against numbers worked by hand (see `bills.FIVE`)."""

import random
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from bills import FIVE, ledger_of, utc

from tenfold.analysis.composition import read


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    return read(ledger_of(FIVE, tmp_path_factory.mktemp("book")))


def usd(text):
    return int(Decimal(text) * 10**12)


def test_spend_and_counts(reading):
    assert reading.spend_pusd == usd("2.60")
    assert reading.requests == 4  # e is not billed
    assert reading.coverage.unpriced_requests == 1
    assert (reading.first, reading.last) == (utc(2026, 7, 10, 10), utc(2026, 7, 10, 10, 4))
    assert reading.period() == "2026-07-10 to 2026-07-11 (exclusive) UTC"


def test_meters_sum_to_the_spend(reading):
    assert reading.meters == {
        "uncached_input": usd("0.91"),
        "cache_read": usd("0.04"),
        "cache_write": usd("0.25"),
        "output": usd("1.40"),
    }
    assert sum(reading.meters.values()) == reading.spend_pusd


def test_bounds_are_what_the_lever_cannot_touch(reading):
    bounds = {bound.levers: bound.saves_at_most for bound in reading.bounds()}
    assert bounds["input-side"] == 1 - Fraction(140, 260)
    assert bounds["output-side"] == Fraction(140, 260)
    assert bounds["prompt-cache"] == Fraction(91 + 25, 260)
    assert bounds["batch"] == 1


def test_token_ratios_leave_out_what_is_unknown(reading):
    # in: 1,000k + 500k + 10k + 100k (priced or not), out: 100k + 250k
    assert reading.tokens.input_output_ratio == Fraction(1_610, 350)
    # only a and c tell: 400k of 1,010k; b and d do not: 600k of 1,610k
    assert reading.tokens.cache_hit_ratio == Fraction(400, 1_010)
    assert reading.tokens.cache_unknown_ratio == Fraction(600, 1_610)
    assert reading.tokens.cache_write_ratio == Fraction(200, 1_010)
    assert reading.tokens.reasoning_ratio == Fraction(25, 100)


def test_headline(reading):
    assert reading.sentences()[0] == (
        "input:output 4.6:1 · cache-hit share 40 % (unknown for 37 % of input) · output is 54 % of cost: "
        "no input-side lever can save more than 46 %"
    )


def test_an_output_share_of_60_percent_leaves_40_to_input_levers(tmp_path):
    # 40k in = 0.04, 15k out = 0.06
    found = read(ledger_of([{"ts": "2026-07-01", "input_tokens": 40_000, "output_tokens": 15_000}], tmp_path))
    assert "output is 60 % of cost: no input-side lever can save more than 40 %" in found.sentences()[0]
    assert found.as_dict()["output_share"] == 0.6


def test_dimensions_are_dearest_first_and_only_filled_ones(reading):
    assert [(item.value, item.cost_pusd, item.requests) for item in reading.dimensions["team"]] == [
        ("agents", usd("1.51"), 2),
        ("search", usd("1.09"), 1),
        (None, 0, 1),
    ]
    assert "environment" not in reading.dimensions
    assert [item.unpriced_requests for item in reading.dimensions["model"]] == [0, 1]


def test_retries(reading):
    assert (reading.retries, reading.retries_pusd) == (1, usd("0.01"))


def test_unmarked_retries_are_unknown_not_none(tmp_path):
    found = read(ledger_of([{"ts": "2026-07-01", "input_tokens": 1, "output_tokens": 1}], tmp_path))
    assert found.retries is None
    assert found.as_dict()["retries"] is None
    assert any("does not mark them" in line for line in found.sentences())


def test_tiers(tmp_path):
    rows = [
        {"ts": "2026-07-01", "input_tokens": 1_000_000, "output_tokens": 0},  # 1.00
        {"ts": "2026-07-01", "input_tokens": 500_000, "output_tokens": 0, "service_tier": "batch"},  # 0.25
    ]
    found = read(ledger_of(rows, tmp_path))
    assert found.tier_share("batch", "flex") == Fraction(1, 5)
    assert {bound.levers: bound.saves_at_most for bound in found.bounds()}["batch"] == Fraction(4, 5)


def test_nothing_priced_has_no_shares(tmp_path):
    found = read(ledger_of([{"ts": "2026-07-01", "model": "ghost", "input_tokens": 5, "output_tokens": 5}], tmp_path))
    assert found.bounds() == ()
    assert found.share("output") is None
    assert found.sentences()
    assert found.as_dict()["spend_usd"] == "0.00"


@pytest.mark.full
def test_a_window_in_a_zone_reads_the_same_money_as_in_utc(tmp_path):
    bounds = {"since": utc(2026, 7, 10), "until": utc(2026, 7, 11)}
    assert read(ledger_of(FIVE, tmp_path, zone="Asia/Kolkata", **bounds)).spend_pusd == usd("2.60")
    outside = {"since": utc(2026, 7, 10, 10, 0, 30), "until": utc(2026, 7, 10, 10, 1)}
    assert read(ledger_of(FIVE, tmp_path, **outside)).spend_pusd == usd("1.50")  # b alone: `since` in, `until` out


class TestConcurrency:
    def test_by_hand(self, reading):
        # a 10:00:00 to 10:01:00, b 10:00:30 to 10:01:00, c from 10:01:00 on for two minutes. d has no duration, e never
        # reached the provider. One bucket of 300 s: 60 + 30 + 120 = 210 s in flight. c does not overlap a and b.
        found = reading.concurrency
        assert (found.bucket_s, found.peak, found.average) == (300, 2, Fraction(210, 300))
        assert (found.requests, found.timed_requests) == (4, 3)
        assert found.peak_at == utc(2026, 7, 10, 10)
        assert "duration unknown for 25 % of requests, so at least this" in reading.sentences()[-1]

    def test_a_request_is_split_over_the_buckets_it_spans(self, tmp_path):
        rows = [
            {"ts": "2026-07-10T10:04:00", "duration_ms": 120_000},  # 60 s in each of two buckets
            {"ts": "2026-07-10T10:07:00", "duration_ms": 600_000},  # 180 s in the second; what follows has no bucket
        ]
        frame = read(ledger_of(rows, tmp_path)).concurrency.frame
        assert frame["average"].to_list() == [60 / 300, (60 + 180) / 300]
        assert frame["peak"].to_list() == [1, 1]

    def test_without_durations_it_says_so(self, tmp_path):
        found = read(ledger_of([{"ts": "2026-07-10", "input_tokens": 1, "output_tokens": 1}], tmp_path))
        assert found.concurrency.average is None
        assert "unknown" in found.sentences()[-1]
        assert read(ledger_of([{"ts": "2026-07-10"}], tmp_path), with_concurrency=False).concurrency is None

    def test_against_a_slow_sweep(self, tmp_path):
        draw = random.Random(4)
        evening = datetime(2026, 7, 10, 23, 50)
        spans = [(draw.randrange(1_800_000), draw.choice([0, 1, 999, 60_000, 400_000])) for _ in range(150)]
        rows = [{"ts": (evening + timedelta(milliseconds=at)).isoformat(), "duration_ms": ms} for at, ms in spans]
        frame = read(ledger_of(rows, tmp_path)).concurrency.frame
        assert len(frame) == 6
        for number, row in enumerate(frame.rows(named=True)):
            start, end = 300_000 * number, 300_000 * (number + 1)
            busy = sum(max(0, min(at + ms, end) - max(at, start)) for at, ms in spans)
            instants = [start, *(at for at, _ in spans if start <= at < end)]
            peak = max(sum(at <= now < at + ms for at, ms in spans) for now in instants)
            assert (row["peak"], row["average"]) == (peak, busy / 300_000)
            assert row["starts_at"] == evening + timedelta(milliseconds=start)

    def test_littles_law(self, tmp_path):
        # arrival rate x mean duration: 4 requests of 30 s in 300 s
        rows = [{"ts": f"2026-07-10T10:0{n}:00", "duration_ms": 30_000} for n in range(4)]
        assert read(ledger_of(rows, tmp_path)).concurrency.average == Fraction(4, 300) * 30

    def test_a_longer_log_has_larger_buckets(self, tmp_path):
        rows = [{"ts": day, "duration_ms": 3_600_000} for day in ("2026-07-01", "2026-07-05T00:30:00")]
        found = read(ledger_of(rows, tmp_path)).concurrency
        assert found.bucket_s == 3_600
        assert len(found.frame) == 4 * 24 + 1
        assert found.average == Fraction(60 + 30, 97 * 60)


def test_a_notebook_shows_one_line_and_the_sentences(tmp_path):
    found = read(ledger_of(FIVE, tmp_path))
    assert repr(found) == "<Reading $2.60, 4 requests, 75 % priced, 2026-07-10 to 2026-07-11 (exclusive) UTC>"
    html = found._repr_html_()
    assert html.count("<li>") == len(found.sentences())
