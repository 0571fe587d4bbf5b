"""Quarters as windows: calendar and fiscal ones, in any zone."""

from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from zoneinfo import ZoneInfo, available_timezones

import duckdb
import pytest
from bills import utc

from tenfold.errors import AssumptionError
from tenfold.reviewing import quarter_bounds
from tenfold.reviewing.quarter import Quarter, quarter


@pytest.mark.parametrize(
    ("text", "since", "until"),
    [
        ("2026Q1", utc(2026, 1, 1), utc(2026, 4, 1)),
        ("2026Q3", utc(2026, 7, 1), utc(2026, 10, 1)),
        ("2026-q4", utc(2026, 10, 1), utc(2027, 1, 1)),
    ],
)
def test_bounds(text, since, until):
    assert quarter_bounds(text, "UTC") == (since, until)


def test_a_zone_moves_both_ends_by_its_own_offset():
    # New York: EST (UTC-5) on January 1st, EDT (UTC-4) on April 1st
    found = [bound.astimezone(UTC) for bound in quarter_bounds("2026Q1", "America/New_York")]
    assert found == [utc(2026, 1, 1, 5), utc(2026, 4, 1, 4)]


@pytest.mark.parametrize("text", ["2026Q5", "2026Q0", "Q3 2026", "2026-07", "", "2026Q33"])
def test_bad_text_shows_an_example(text):
    with pytest.raises(AssumptionError, match="such as 2026Q3"):
        quarter_bounds(text)


def test_unknown_zone_names_the_nearest():
    with pytest.raises(AssumptionError, match="Europe/Berlin"):
        quarter_bounds("2026Q3", "Europe/Berln")


# Fiscal years of well-known organisations: UK government from April, US government from October, Australia from July.
@pytest.mark.parametrize(
    ("start", "text", "first", "last"),
    [
        (4, "2026Q1", date(2025, 4, 1), date(2025, 6, 30)),
        (4, "2026Q3", date(2025, 10, 1), date(2025, 12, 31)),
        (4, "2026Q4", date(2026, 1, 1), date(2026, 3, 31)),
        (10, "2026Q1", date(2025, 10, 1), date(2025, 12, 31)),
        (10, "2026Q2", date(2026, 1, 1), date(2026, 3, 31)),
        (7, "2024Q3", date(2024, 1, 1), date(2024, 3, 31)),
        (2, "2026Q4", date(2025, 11, 1), date(2026, 1, 31)),
        (12, "2024Q1", date(2023, 12, 1), date(2024, 2, 29)),
        (1, "2026Q4", date(2026, 10, 1), date(2026, 12, 31)),
    ],
)
def test_a_fiscal_year_bears_the_calendar_year_it_ends_in(start, text, first, last):
    found = quarter(text, fiscal_year_start=start)
    assert (found.first_day, found.last_day) == (first, last)
    assert found.name == text
    assert found.title == (text if start == 1 else f"FY{text[:4]} {text[4:]}")


@pytest.mark.parametrize("start", range(1, 13))
def test_quarters_follow_each_other_and_years_have_four(start):
    one = quarter("2020Q1", "Europe/Berlin", fiscal_year_start=start)
    assert one.last_day.year - (start > 1) <= one.first_day.year <= 2020
    names = []
    for _ in range(30):
        assert one.following.previous == one
        assert one.bounds[1] == one.following.bounds[0]
        names.append(one.name)
        one = one.following
    assert names[:5] == ["2020Q1", "2020Q2", "2020Q3", "2020Q4", "2021Q1"]
    # the last day of the fourth quarter is in the year that names it
    ends = [quarter(f"{year}Q4", fiscal_year_start=start).last_day for year in range(2020, 2027)]
    assert [end.year for end in ends] == list(range(2020, 2027))
    assert {(end + timedelta(days=1)).month for end in ends} == {start}


def _bounds_in_every_zone(year):
    for zone in sorted(available_timezones()):
        for start in (1, 2, 3):  # every month begins a quarter of one of them
            for number in (1, 2, 3, 4):
                yield Quarter(year, number, zone, start)


@pytest.mark.parametrize("year", [2026, pytest.param(2011, marks=pytest.mark.full)])
def test_every_zone_begins_on_the_first_instant_of_its_day(year):
    """The microsecond before is the day before, also where midnight is skipped or comes twice."""
    for one in _bounds_in_every_zone(year):
        since, local = one.bounds[0].astimezone(UTC), ZoneInfo(one.zone)
        assert since.astimezone(local).date() == one.first_day, one
        assert (since - timedelta(microseconds=1)).astimezone(local).date() < one.first_day, one


# Clocks skip midnight on 1 October 2023 in Asunción (UTC-4 before it), and show it twice on 1 November 2026 in Havana
# (UTC-4 the first time).
@pytest.mark.parametrize(
    ("one", "instant"),
    [
        (Quarter(2023, 4, "America/Asuncion"), utc(2023, 10, 1, 4)),
        (Quarter(2027, 4, "America/Havana", 2), utc(2026, 11, 1, 4)),
    ],
)
def test_a_midnight_that_is_skipped_or_comes_twice(one, instant):
    assert one.bounds[0].astimezone(UTC) == instant


def test_days_are_those_that_duckdb_cuts():
    """DuckDB's own day of the first and of the last instant."""
    for zone in ("Asia/Tokyo", "America/New_York", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu", "America/Havana"):
        one = Quarter(2026, 2, zone, 4)
        since, until = (bound.astimezone(UTC).replace(tzinfo=None) for bound in one.bounds)
        sql = f"select cast(timezone('{zone}', timezone('UTC', cast(? as timestamp))) as date)"
        days = [duckdb.execute(sql, [at]).fetchall()[0][0] for at in (since, until - timedelta(microseconds=1))]
        assert days == [one.first_day, one.last_day], zone


def test_elapsed_is_a_share_of_time_not_of_clock_faces():
    # Berlin, January to March 2026: 90 days less the hour that 29 March loses
    one = Quarter(2026, 1, "Europe/Berlin")
    hours = 90 * 24 - 1
    since = utc(2025, 12, 31, 23)
    assert one.elapsed(since) == 0
    assert one.elapsed(since + timedelta(hours=hours)) == 1
    assert one.elapsed(datetime(2026, 3, 31, tzinfo=ZoneInfo("Europe/Berlin"))) == Fraction(hours - 24, hours)
    assert (one.elapsed(utc(2020, 1, 1)), one.elapsed(utc(2030, 1, 1))) == (0, 1)
