"""Break-evens of prompt caching against published and hand-worked numbers (levers.md 4.2 and 5; cases 13, 23-26)."""

from fractions import Fraction

import pytest

from tenfold.analysis.break_evens import (
    Rates,
    compaction_calls,
    hit_share,
    keep_alive_s,
    longer_lifetime_gain,
    longer_lifetime_share,
    reads_per_write,
    stored_reads_per_hour,
)

FIVE_MINUTES = 300


def multiples(read):
    return Rates(Fraction(1), Fraction(read), Fraction("1.25"), Fraction(2))


def shown(value, decimals):
    return f"{float(value):.{decimals}f}"


@pytest.mark.parametrize(
    ("read", "short", "long", "minutes"),
    [("0.1", "21.7", "52.6", 62.5), ("0.05", "20.8", "51.3", 125), ("0.025", "20.4", "50.6", 250)],
)
def test_the_published_hit_shares_and_keep_alives(read, short, long, minutes):
    rates = multiples(read)
    assert shown(100 * hit_share(rates), 1) == short
    assert shown(100 * hit_share(rates, long=True), 1) == long
    assert keep_alive_s(FIVE_MINUTES, rates) == minutes * 60


def test_reads_that_pay_one_write():
    rates = multiples("0.1")
    assert shown(reads_per_write(rates), 2) == "0.28"
    assert shown(reads_per_write(rates, long=True), 2) == "1.11"
    # The twelve reads of case 23 are how many pings cost as much as one write.
    uncached, cached = 3, 2 + 2 * Fraction("0.1")
    assert cached < uncached
    assert keep_alive_s(FIVE_MINUTES, rates) / FIVE_MINUTES == Fraction("12.5")


def test_the_break_even_is_where_both_cost_the_same():
    rates = multiples("0.1")
    for long, write in ((False, rates.write), (True, rates.long_write)):
        reads = reads_per_write(rates, long=long)
        assert write + reads * rates.read == (1 + reads) * rates.uncached
        share = hit_share(rates, long=long)
        assert share * rates.read + (1 - share) * write == rates.uncached


def test_the_longer_lifetime_needs_both_terms():
    rates = multiples("0.1")
    # live experiment of 2026-07-28: three writes of 16,429 tokens, two of them in the band, at $3 a million
    gain = longer_lifetime_gain(2 * 16_429, 16_429, rates) * 3
    assert shown(gain / 10**6, 6) == "0.076395"
    share = longer_lifetime_share(rates)
    assert longer_lifetime_gain(share.numerator, share.denominator, rates) == 0
    assert share == Fraction(75, 115)


def test_case_13_the_first_estimate_double_counted():
    """Few gaps with large prefixes: by count the band is nothing, by tokens the longer lifetime pays.

    The case gives counts and the prefix of the band's gaps; the thousand tokens that a short gap adds are assumed.
    """
    rates = multiples("0.1")
    gaps = {"short": (14_104, 1_000), "band": (195, 467_000)}
    by_count = Fraction(195, 195 + 14_104)
    assert shown(100 * by_count, 2) == "1.36"
    rewritten = gaps["band"][0] * gaps["band"][1]
    written = gaps["short"][0] * gaps["short"][1]
    assert longer_lifetime_gain(rewritten, written, rates) > 0


@pytest.mark.parametrize(("removed", "calls"), [(5 * 4_036, "61.3"), (5 * 8_379, "29.5")])
def test_case_25_five_compactions_resend_137519_tokens(removed, calls):
    rates = multiples("0.1")
    assert shown(compaction_calls(137_519, removed, rates, rewrite=rates.uncached), 1) == calls


def test_case_26_a_compaction_that_rewrites_at_the_write_price():
    rates = multiples("0.1")
    # nine tenths of a compaction's own request are an avoidable miss
    assert 1 - Fraction(rates.read) / rates.uncached == Fraction(9, 10)
    read, written = (compaction_calls(50_000, 50_000, rates, rewrite=p) for p in (rates.uncached, rates.write))
    assert (read, written) == (9, Fraction("11.5"))
    # worked out: after as many calls both ways cost the same
    assert written * 50_000 * rates.read == 50_000 * (rates.write - rates.read)


@pytest.mark.parametrize(("price", "storage", "reads"), [("1.25", "4.50", "4.0"), ("0.30", "1.00", "3.7")])
def test_rented_caches(price, storage, reads):
    rates = Rates(Fraction(price), Fraction(price) / 10, Fraction(price))
    assert shown(stored_reads_per_hour(Fraction(storage), rates), 1) == reads


def test_no_break_even():
    flat = Rates(1, 1, 1, 2)
    assert reads_per_write(flat) is None
    assert hit_share(flat) is None
    assert stored_reads_per_hour(1, flat) is None
    assert longer_lifetime_share(flat) is None
    free = Rates(1, 0, 1)
    assert keep_alive_s(FIVE_MINUTES, free) is None
    assert compaction_calls(1, 1, free, rewrite=1) is None
    assert compaction_calls(1, 0, flat, rewrite=1) is None
    with pytest.raises(ValueError, match="longer lifetime"):
        hit_share(free, long=True)
