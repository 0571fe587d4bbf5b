"""Quarters as windows."""

from datetime import UTC

import pytest
from bills import utc

from tenfold.errors import AssumptionError
from tenfold.reviewing import quarter_bounds


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
