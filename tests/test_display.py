"""Words and groupings for people."""

import pytest

from tenfold.display import METER_GROUPS, name_of, nothing_priced, saved_or_lost, status_words, unit_of_ms
from tenfold.prices.meters import METER_NAMES


def test_every_meter_is_in_one_column():
    assert sorted(name for _, _, meters in METER_GROUPS for name in meters) == sorted(METER_NAMES)


def test_the_verb_fits_the_sign():
    assert saved_or_lost(1_204_000_000_000) == "saved $1.20"
    assert saved_or_lost(-70_450_000_000_000) == "lost $70.45"
    assert saved_or_lost(-1) == "lost <$0.01"
    assert saved_or_lost(0) == "saved nothing"


def test_no_cost_is_not_a_cost_of_zero():
    assert nothing_priced(3, 3)
    assert not nothing_priced(3, 2)
    assert not nothing_priced(0, 0)


def test_statuses_are_words():
    assert status_words("usage_missing") == "no usage logged"
    assert status_words("some_new_one") == "some new one"


@pytest.mark.parametrize(
    ("longest", "amount", "says"),
    [
        (1910.0, 840.0, "0.84 s"),
        (1910.0, 1910.0, "1.91 s"),
        (14_200.0, 310.0, "0.31 s"),
        (14_200.0, 14_200.0, "14.2 s"),
        (300_400.0, 300_400.0, "300 s"),
        (860.0, 840.4, "840 ms"),
        (32.0, 31.04, "31.0 ms"),
        (6.2, 5.1, "5.10 ms"),
        (32.0, 0.25, "0.25 ms"),
        (32.0, 0.0, "0.0 ms"),
    ],
)
def test_times_that_are_compared_share_a_unit(longest, amount, says):
    unit = unit_of_ms(longest)
    assert f"{unit.text(amount)} {unit.name}" == says


@pytest.mark.parametrize(
    ("dimension", "value", "text"),
    [
        ("team", None, "unallocated"),
        ("team", "unallocated", '"unallocated"'),
        ("team", "Unallocated ", '"Unallocated "'),
        ("team", '"unallocated"', '""unallocated""'),
        ("feature", None, "(none)"),
        ("feature", "(none)", '"(none)"'),
        ("model", "total", '"total"'),
        ("model", "3 others", '"3 others"'),
        ("model", "", "(empty)"),
        ("model", "(empty)", '"(empty)"'),
        ("month", None, "no time"),
        ("month", "2026-07", "2026-07"),
        ("team", "totals and others at large", "totals and others at large"),
    ],
)
def test_no_name_reads_like_what_has_none(dimension, value, text):
    assert name_of(dimension, value) == text
