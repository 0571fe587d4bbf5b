"""How output comes in: hours from the start of a stretch, and the busiest sixty minutes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.serving.profile import profile


def test_the_same_twenty_minutes_have_the_same_peak_wherever_they_lie():
    # 1,200 tokens a minute for twenty minutes, all of an hour's, beginning on the hour and ten minutes before it
    for first in (60, 50, 0):
        found = profile([(first + n, 1200, 0) for n in range(20)], 5 * 3600)
        assert found.peak == found.kept_peak == 20 * 1200 / 3600
    assert profile([(n, 1200, 0) for n in range(20)], 1200).peak == 20


def test_a_cut_hour_is_as_long_as_it_is_and_a_short_one_joins_the_one_before():
    minutes = [(0, 3600, 0), (60, 7200, 3600)]
    found = profile(minutes, 2 * 3600 - 1000)
    assert found.seconds == (3600.0, 2600.0)
    assert found.hourly == (1.0, 7200 / 2600)
    assert found.waiting == (0.0, 3600 / 2600)
    assert profile(minutes, 3600 + 1000).seconds == (4600.0,)
    assert profile([], 90.0) == ((90.0,), (0.0,), (0.0,), 0.0, 0.0)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.integers(0, 299), st.tuples(st.integers(0, 900), st.integers(0, 900)), max_size=40))
def test_nothing_is_lost_and_the_peak_is_the_slow_one(minutes):
    listed = [(minute, output + late, late) for minute, (output, late) in minutes.items()]
    found = profile(listed, 5 * 3600)
    spread = sum(rate * long for rate, long in zip(found.hourly, found.seconds, strict=True))
    assert spread == pytest.approx(sum(output for _, output, _ in listed))
    sums = [sum(output for minute, output, _ in listed if at <= minute < at + 60) for at in range(300)]
    assert found.peak == pytest.approx(max(sums) / 3600)
    assert found.peak >= max(found.hourly) - 1e-9
