"""Requests without a time have no day, week, month, quarter or year: NULL in every grain, and none of them is lost."""

from datetime import UTC, date, datetime, timedelta

import pytest
from bills import BOOK
from hypothesis import example, given, settings
from hypothesis import strategies as st
from stores import log_of

from tenfold.analysis.allocation import allocate
from tenfold.analysis.anomalies import anomalies
from tenfold.analysis.forecast import forecast
from tenfold.ledger import TIME_GRAINS, Ledger, Window
from tenfold.owners.sharing import Sharing
from tenfold.prices import price_book

NOW = datetime(2026, 9, 1, tzinfo=UTC)
REQUEST = {"provider": "openai", "model": "m1", "team": "a", "input_tokens": 1000, "output_tokens": 10}


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "openai.toml").write_text(BOOK)
    return price_book(folder)


def ledger_of(rows, book, zone="UTC", price_at=None):
    return Ledger(log_of(rows), book, Window(zone=zone), price_at)


# the epoch itself is a day like others: a trace whose times are offsets stands on it
instants = st.none() | st.sampled_from(
    [datetime(1970, 1, 1, tzinfo=UTC), datetime(1970, 1, 1, 12, tzinfo=UTC), NOW, NOW - timedelta(minutes=1)]
)


@given(
    st.lists(st.tuples(instants, st.sampled_from(["a", "b", None])), min_size=1, max_size=8),
    st.sampled_from(["UTC", "America/Los_Angeles"]),
    st.sampled_from([None, NOW]),
)
@example([(None, "a"), (datetime(1970, 1, 1, tzinfo=UTC), "a")], "America/Los_Angeles", NOW)
@settings(max_examples=4, deadline=None)
def test_no_time_is_no_period_in_every_grain_from_cells_and_rows_alike(book, made, zone, price_at):
    ledger = ledger_of([{**REQUEST, "ts": ts, "team": team} for ts, team in made], book, zone, price_at)
    by = (*TIME_GRAINS, "team")
    with ledger.session() as session:
        whole = session.totals()
        frames = [session.totals(by), session.totals(by, priced="priced_requests"), session.totals(by, condition="1=1")]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    undated = frames[0].filter(frames[0]["day"].is_null())
    assert sum(undated["requests"]) == sum(1 for ts, _ in made if ts is None)
    assert all(undated[name].null_count() == len(undated) for name in TIME_GRAINS)
    assert all(frames[0][name].null_count() == len(undated) for name in TIME_GRAINS)
    for name in ("requests", "unpriced_requests", "cost_pusd"):
        assert sum(frames[0][name]) == whole[name][0]


def test_days_leave_out_what_has_no_time_and_say_so(book):
    rows = [{**REQUEST, "ts": NOW + timedelta(days=n // 4, hours=n % 4 * 6)} for n in range(4 * 40)]
    ledger = ledger_of([*rows, REQUEST, REQUEST], book)
    found = anomalies(ledger)
    assert found.found == ()
    assert found.judged[0] >= NOW.date()
    assert "2 requests without a time left out" in found.notes
    notes = forecast(ledger).notes
    assert "2 requests without a time left out" in notes
    assert not any("without a price" in note for note in notes)
    rows = ledger.composition("month").rows()
    assert [(row["month"], row["requests"]) for row in rows] == [("2026-09", 120), ("2026-10", 40), (None, 2)]


def test_what_has_no_time_is_allocated_among_itself(book):
    rows = [
        {**REQUEST, "team": "a", "ts": NOW},
        {**REQUEST, "team": "a"},
        {**REQUEST, "team": "b"},
        {**REQUEST, "team": "core"},
    ]
    ledger = ledger_of(rows, book, price_at=NOW)
    frame = allocate(ledger, ("team", "month"), sharing=Sharing(method="even"), shared=("core",)).frame
    totals = {(row["team"], row["month"]): int(row["total_pusd"]) for row in frame.rows(named=True)}
    one = ledger.total_pusd // 4
    assert totals == {
        ("a", date(2026, 9, 1)): one,
        ("a", None): one * 3 // 2,
        ("b", None): one * 3 // 2,
        ("core", None): 0,
    }
    alone = allocate(
        ledger_of(rows[3:], book, price_at=NOW), ("team",), sharing=Sharing(method="even"), shared=("core",)
    )
    assert any("of requests without a time is not allocated" in line for line in alone.sentences())
