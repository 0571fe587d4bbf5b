"""Words and groupings for people."""

from tenfold.display import METER_GROUPS, nothing_priced, saved_or_lost, status_words
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
