"""The bridge of random books and logs against a second implementation over single requests, to the picodollar."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction

import pytest
from bridges import assert_foots
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_book import read_book
from oracle_bridge import Period, pvm
from stores import log_of
from strategies import books_and_logs

from tenfold.analysis.bridge import METHODS, bridge
from tenfold.errors import NotEvaluable
from tenfold.ledger import Ledger, Window
from tenfold.prices import price_book
from tenfold.prices.words import canonical_tier


def group_of(by):
    own = {"service_tier": lambda row: canonical_tier(row.get("service_tier"))}
    return lambda row: tuple(own.get(name, lambda one, key=name: one.get(key) or None)(row) for name in by)


def check_random(drawn, by, cut, scale, method, tmp):
    text, rows = drawn
    rows = [row for row in rows if row["ts"] is not None]
    (tmp / "prices.toml").write_text(text)
    made = Ledger(log_of(rows), price_book(tmp), Window())
    at = cut - timedelta(microseconds=1)
    sides = Window(until=cut), Window(since=cut)
    try:
        found = bridge(*(made.within(side) for side in sides), by=by, scale=scale, method=method)
    except NotEvaluable:
        assert made.total_pusd == 0
        return
    assert_foots(found, *(made.within(side) for side in sides), scale)
    if method != "pvm":
        return
    oracle = read_book([text])
    halves = [row for row in rows if row["ts"] < cut], [row for row in rows if row["ts"] >= cut]
    old = Period(oracle, halves[0], at, group_of(by), scale)
    new = Period(oracle, halves[1], at, group_of(by))
    bars, mix = pvm(old, new, len(by))
    own = {bar.key: bar.pusd for bar in found.bars}
    for name in {*bars, *own}:
        assert abs(bars.get(name, 0) - own.get(name, 0)) < 2, name
    for exact, amount in zip(mix, found.mix_by.values(), strict=True):
        assert abs(exact - amount) < 3
    assert sum(found.before.unpriced.values()) == old.unpriced
    assert sum(found.after.unpriced.values()) == new.unpriced


CUTS = st.sampled_from([
    datetime(2026, 3, 13, tzinfo=UTC), datetime(2026, 8, 21, 12, 30, tzinfo=UTC), datetime(2026, 6, 7, 5, tzinfo=UTC),
])  # fmt: skip
GROUPS = st.sampled_from([("model", "service_tier"), (), ("team", "model"), ("feature",), ("region", "is_stream")])
SCALES = st.sampled_from([Fraction(1), Fraction(1, 28), Fraction(3, 2)])


@settings(max_examples=2, deadline=None)
@given(drawn=books_and_logs(max_size=25, min_size=4), by=GROUPS, cut=CUTS, scale=SCALES)
def test_random_logs_are_as_the_slow_reading_has_them(tmp_path_factory, drawn, by, cut, scale):
    check_random(drawn, by, cut, scale, "pvm", tmp_path_factory.mktemp("book"))


@pytest.mark.full
@settings(max_examples=60, deadline=None)
@given(
    drawn=books_and_logs(max_size=40, min_size=1), by=GROUPS, cut=CUTS, scale=SCALES, method=st.sampled_from([*METHODS])
)
def test_many_random_logs_are_as_the_slow_reading_has_them(tmp_path_factory, drawn, by, cut, scale, method):
    check_random(drawn, by, cut, scale, method, tmp_path_factory.mktemp("book"))
