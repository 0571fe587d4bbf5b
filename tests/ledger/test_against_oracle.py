"""The ledger against the slow oracle: generated books and logs, over all meters, tiers, bands and dates."""

import tempfile
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import oracle
import pytest
import strategies
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from stores import log_of

import tenfold as tf
from tenfold.errors import ColumnError, UsageError
from tenfold.ledger import attribute
from tenfold.prices import price_book
from tenfold.prices.meters import METER_NAMES
from tenfold.store import schema

# A failing example is shown as drawn: shrinking a log and a book together takes minutes and helps little.
QUICK = settings(
    max_examples=3,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
FULL = settings(QUICK, max_examples=200)
# The text of a book is long; the failing example is wanted all the same.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


def books(text):
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "book.toml").write_text(text)
        return price_book(folder), oracle.load_book(Path(folder))


def hold_equal(text, rows, price_at=None):
    book, slow = books(text)
    ledger = attribute(log_of(rows, book.thresholds), book, price_at=price_at)
    right = oracle.bill(slow, rows, price_at)
    assert ledger.total_pusd == right.total_pusd
    frame = ledger.frame()
    meters = [meter for meter in METER_NAMES if f"{meter}_pusd" in frame.columns]  # those that the log could use
    by_id = {row["request_id"]: row for row in frame.rows(named=True)}
    for row in rows:
        single = oracle.price_request(slow, row, price_at)
        fast = by_id[row["request_id"]]
        assert fast["price_status"] == single.status, single.reason
        costs = [fast[f"{meter}_pusd"] for meter in meters]
        assert (None if None in costs else sum(costs)) == single.cost_pusd
        if single.status == "priced":
            found = {meter: (fast[f"{meter}_units"], fast[f"{meter}_pusd"]) for meter in meters}
            assert {meter: pair for meter, pair in found.items() if pair[0]} == single.meters
    coverage = ledger.coverage
    statuses = {status: count for status, count in right.by_status.items() if status not in ("priced", "known_zero")}
    assert sum(row["requests"] for row in coverage.unpriced) == sum(statuses.values())
    return ledger, slow


GROUPINGS = ((), ("team",), ("day", "model"), ("user_id",), ("provider", "service_tier", "region"), ("month",))


def designs(ledger, rows, by):
    """Every way to sum: the cube where it can answer, grouped raw rows, and single rows (in hold_equal)."""
    keys = [*by, "rows_seen", "requests", "unpriced_requests", "cost_pusd", *(f"{meter}_pusd" for meter in METER_NAMES)]
    with ledger.session() as session:
        mix = session.totals(by).select(keys)
        raw = session.totals(by, priced="priced_requests").select(keys)
    assert mix.rows() == raw.rows()
    assert sum(mix["cost_pusd"]) == ledger.total_pusd
    assert sum(mix["rows_seen"]) == len(rows)


@given(strategies.books_and_logs(min_size=40, max_size=80), st.sampled_from(GROUPINGS))
@QUICK
def test_ledger_equals_oracle(drawn, by):
    text, rows = drawn
    ledger, _ = hold_equal(text, rows)
    designs(ledger, rows, by)


def test_an_empty_log_costs_nothing():
    book = price_book()
    ledger = attribute(log_of([], book.thresholds), book)
    designs(ledger, [], ("team",))
    designs(ledger, [], ())
    assert (ledger.total_pusd, ledger.coverage.requests_ratio) == (0, None)


@pytest.mark.full
@given(strategies.books_and_logs(min_size=40, max_size=80), st.sampled_from(GROUPINGS))
@FULL
def test_ledger_equals_oracle_at_length(drawn, by):
    text, rows = drawn
    ledger, _ = hold_equal(text, rows)
    designs(ledger, rows, by)


@given(
    strategies.books_and_logs(min_size=20, max_size=40),
    st.datetimes(datetime(2025, 6, 1), datetime(2027, 6, 1), timezones=st.just(UTC)),
)
@settings(QUICK, max_examples=2)
def test_what_if_at_one_instant_equals_oracle(drawn, at):
    text, rows = drawn
    hold_equal(text, rows, price_at=at)


@given(strategies.books_and_logs(min_size=20, max_size=40))
@QUICK
def test_single_call_equals_oracle(drawn):
    text, rows = drawn
    book, slow = books(text)
    for row in rows:
        if row.get("ts") is None or not oracle.is_billed(row):
            continue
        usage = tf.Usage(**{name: row.get(name) for name in schema.TOKEN_COLUMNS})
        right = oracle.price_request(slow, row)
        try:
            found = tf.price(
                provider=row["provider"], model=row.get("model") or "", at=row["ts"], usage=usage,
                tier=row.get("service_tier"), region=row.get("region"), book=book,
            )  # fmt: skip
        except UsageError:
            assert right.status in ("usage_missing", "usage_partial")
            continue
        assert (found.status, found.cost_pusd) == (right.status, right.cost_pusd), (found.reason, right.reason)


ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe")


@given(strategies.books_and_logs(min_size=20, max_size=40), st.sampled_from(ZONES), st.data())
@settings(QUICK, max_examples=2)
def test_windows_and_zones_equal_oracle(drawn, zone, data):
    text, rows = drawn
    book, slow = books(text)
    edges = sorted({row["ts"] for row in rows if row["ts"]} | {datetime(2026, 9, 1, tzinfo=UTC)})
    offset = timezone(timedelta(minutes=data.draw(st.sampled_from((0, 15, 345, -210)))))
    bounds = [data.draw(st.sampled_from(edges)).astimezone(offset) + timedelta(minutes=m) for m in (0, 15)]
    since, until = min(bounds), max(bounds) + timedelta(days=data.draw(st.integers(0, 300)))
    kept = [row for row in rows if row["ts"] and since <= row["ts"] < until]
    ledger = attribute(log_of(rows, book.thresholds), book, since=since, until=until, zone=zone)
    right = oracle.group(slow, kept, ["day"], zone=ZoneInfo(zone))
    days = ledger.composition(["day"])
    assert days.total_pusd == oracle.bill(slow, kept).total_pusd == ledger.total_pusd
    assert {row["day"]: int(row["cost_pusd"]) for row in days.frame.rows(named=True)} == {
        day: int(bill.total_pusd) for (day,), bill in right.items()
    }


def test_an_offset_of_minutes_is_no_whole_day():
    # 06:00 at +05:45 is 00:15 UTC: the request of 00:10 is before the window, the cube's day would take it in
    ts = datetime(2026, 9, 1, 0, 10, tzinfo=UTC)
    row = {"provider": "openai", "model": "gpt-4.1", "ts": ts, "input_tokens": 1000, "output_tokens": 0}
    since = datetime(2026, 9, 1, 6, 0, tzinfo=timezone(timedelta(hours=5, minutes=45)))
    assert attribute(log_of([row]), since=since).total_pusd == 0
    assert attribute(log_of([row]), since=ts).total_pusd == 2_000_000_000


def test_a_naive_bound_is_refused():
    with pytest.raises(ColumnError, match="has no zone"):
        _ = attribute(log_of([]), since=datetime(2026, 9, 1)).total_pusd
