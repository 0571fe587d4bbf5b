"""Times of the week at which a price holds, worked by hand and across clock changes."""

from datetime import UTC, datetime, timedelta

import pytest

from tenfold.errors import PriceFileError
from tenfold.prices.windows import overlap, window

PEAK = window(["mon", "tue", "wed", "thu", "fri"], ["01:00-04:00", "06:00-10:00"], "UTC")


def at(text):
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("instant", "inside"),
    [
        ("2026-11-30T00:59:59.999999", False),  # a Monday
        ("2026-11-30T01:00:00", True),
        ("2026-11-30T03:59:59.999999", True),
        ("2026-11-30T04:00:00", False),
        ("2026-11-30T06:00:00", True),
        ("2026-11-29T02:00:00", False),  # a Sunday
    ],
)
def test_half_open_hours_of_weekdays(instant, inside):
    assert PEAK.covers(at(instant)) is inside


def test_pieces_are_what_covers_says():
    since, until = at("2026-11-27T03:30:00"), at("2026-12-01T07:00:00")
    pieces = list(PEAK.pieces(since, until))
    assert pieces[0] == (since, at("2026-11-27T04:00:00"))
    assert pieces[-1] == (at("2026-12-01T06:00:00"), until)
    minute = since
    while minute < until:
        assert PEAK.covers(minute) == any(a <= minute < b for a, b in pieces)
        minute += timedelta(minutes=10)


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])  # Berlin's clock goes forward, and back
def test_a_local_window_on_the_days_of_a_clock_change(day):
    night = window([], ["00:00-06:00"], "Europe/Berlin")
    since = at(f"{day}T00:00:00") - timedelta(days=1)
    pieces = list(night.pieces(since, since + timedelta(days=3)))
    hours = [(b - a) / timedelta(hours=1) for a, b in pieces]
    assert (5 if day == "2026-03-29" else 7) in hours
    minute = since
    while minute < since + timedelta(days=3):
        assert night.covers(minute) == any(a <= minute < b for a, b in pieces), minute
        minute += timedelta(minutes=15)


@pytest.mark.parametrize("hours", ["01:30-02:30", "02:30-08:00", "02:15-02:45"])
@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"])
def test_an_edge_inside_the_hour_that_is_skipped_or_comes_twice(day, hours):
    berlin = window([], [hours], "Europe/Berlin")
    since = at(f"{day}T00:00:00") - timedelta(hours=6)
    pieces = list(berlin.pieces(since, since + timedelta(days=1)))
    minute = since
    while minute < since + timedelta(days=1):
        assert berlin.covers(minute) == any(a <= minute < b for a, b in pieces), minute
        minute += timedelta(minutes=1)


def test_whole_days_and_the_end_of_a_day():
    weekend = window(["sat", "sun"], [], "Asia/Shanghai")
    assert weekend.covers(at("2026-11-27T16:00:00"))  # Saturday 00:00 in Shanghai
    assert not weekend.covers(at("2026-11-29T16:00:00"))
    late = window([], ["22:00-24:00"], "UTC")
    assert [b - a for a, b in late.pieces(at("2026-11-27T00:00:00"), at("2026-11-28T00:00:00"))] == [timedelta(hours=2)]


def test_words():
    assert PEAK.text() == "mon-fri 01:00-04:00, 06:00-10:00 UTC"
    assert window([], [], "") is None
    assert overlap(PEAK, window(["fri"], ["09:00-11:00"], "UTC"))
    assert not overlap(PEAK, window(["fri"], ["10:00-11:00"], "UTC"))
    assert overlap(PEAK, window(["mon"], ["02:00-03:00"], "Europe/Berlin"))


@pytest.mark.parametrize(
    ("days", "hours", "zone", "says"),
    [
        (["monday"], [], "UTC", 'weekdays: "monday" is none of'),
        ([], ["1-4"], "UTC", 'hours: "1-4" is no range'),
        ([], ["01:00:30-02:00:30"], "UTC", "is no range"),
        ([], ["22:00-02:00"], "UTC", "two ranges"),
        ([], ["01:00-03:00", "02:00-04:00"], "UTC", "two ranges overlap"),
        ([], ["01:00-03:00"], "", "need a zone"),
        ([], [], "UTC", "says nothing"),
        ([], ["01:00-03:00"], "Mars/Base", 'no time zone "Mars/Base"'),
    ],
)
def test_bad_windows_are_named(days, hours, zone, says):
    with pytest.raises(ValueError, match="hours|weekdays|zone") as raised:
        window(days, hours, zone)
    assert says in str(raised.value)


def test_two_windows_that_meet_are_refused(tmp_path):
    from tenfold.prices import price_book

    entry = '[[price]]\nmodel = "m"\ninput = {}\noutput = 1\nhours = ["{}"]\nzone = "UTC"\n'
    entry += 'source = "t"\nchecked = 2026-11-29\n'
    text = 'provider = "acme"\n' + entry.format(1, "01:00-04:00") + entry.format(2, "03:00-05:00")
    (tmp_path / "acme.toml").write_text(text)
    with pytest.raises(PriceFileError, match="entries 1 and 2 of m .* both apply at some hours"):
        price_book(tmp_path)
