"""The days that a log covers: what is whole and what is not, by its own edges and by the window's."""

from datetime import date, datetime, timedelta

import bills
import pytest

from tenfold.ledger import Window
from tenfold.ledger.span import span

START = datetime(2026, 7, 1, 0, 20)


@pytest.fixture(scope="module")
def hourly(tmp_path_factory):
    # from 1 July 00:20 to 4 July 14:20, a request an hour
    made = [
        {
            "request_id": str(n),
            "ts": (START + n * timedelta(hours=1)).isoformat(),
            "input_tokens": 1,
            "output_tokens": 1,
        }
        for n in range(3 * 24 + 15)
    ]
    return bills.ledger_of(made, tmp_path_factory.mktemp("span"))


@pytest.mark.parametrize(
    ("window", "first", "last", "partial"),
    [
        (Window(), 1, 4, {4}),
        # the window cuts: days are whole where it opens and closes at midnight
        (Window(bills.utc(2026, 7, 2), bills.utc(2026, 7, 4)), 2, 3, set()),
        (Window(bills.utc(2026, 7, 2, 6), bills.utc(2026, 7, 3, 6)), 2, 3, {2, 3}),
        # wider than the log: its own edges count
        (Window(bills.utc(2026, 6, 1), bills.utc(2026, 9, 1)), 1, 4, {4}),
        # 00:20 in UTC is 02:20 in Berlin: within five usual waits of an hour; 14:20 is 16:20
        (Window(zone="Europe/Berlin"), 1, 4, {4}),
        (Window(zone="America/New_York"), 30, 4, {30, 4}),
    ],
)
def test_days_and_what_is_covered_in_part(hourly, window, first, last, partial):
    found = span(hourly.within(window))
    month = 6 if first == 30 else 7
    assert (found.first, found.last) == (date(2026, month, first), date(2026, 7, last))
    assert {day.day for day in found.partial} == partial
    assert not found.partial & set(found.whole())
    assert len(found.whole()) == (found.last - found.first).days + 1 - len(partial)


def test_no_day(hourly):
    assert span(hourly.within(Window(since=bills.utc(2027, 1, 1)))) is None
    assert span(hourly.within(Window(until=bills.utc(2026, 1, 1)))) is None
