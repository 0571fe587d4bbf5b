"""Shared statistics held against closed forms, other implementations and simulation."""

import math

import numpy as np
import pytest
from latency.traffic_made import HOUR, both, served, traffic
from scipy import stats

from tenfold.latency.statistics import (
    Estimate,
    Standardised,
    around,
    change,
    dense,
    ks_distance,
    log_change,
    onset,
    ratio,
    spread,
    t_quantile,
    tail_mean,
)


def test_the_size_of_numbers_does_not_change_degrees_of_freedom():
    values, rows = np.random.default_rng(2).normal(size=100), np.arange(100, dtype=np.int32)
    for size in (1e-90, 1e70):
        assert spread(size * values, rows)[1] == pytest.approx(spread(values, rows)[1])
        small = Estimate(0.0, size, 10.0)
        assert change(small, small).high / size == pytest.approx(
            change(*[Estimate(0.0, 1.0, 10.0)] * 2).high * size**-0.5
        )


@pytest.mark.parametrize("freedom", [3, 5, 10, 39, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.01, 0.001])
def test_students_t(freedom, alpha):
    assert t_quantile(alpha, freedom) == pytest.approx(
        stats.t.ppf(1 - alpha / 2, freedom), rel=0.05 if alpha < 0.01 else 0.01
    )


def test_a_mean_without_clusters_has_the_textbook_error():
    values = np.random.default_rng(1).normal(3, 2, 500)
    found = ratio(values, np.ones(500), np.arange(500, dtype=np.int32))
    assert found.value == pytest.approx(values.mean())
    assert found.variance == pytest.approx(values.var(ddof=1) / 500)
    assert found.freedom > 300


def test_intervals_hold_what_they_say_where_requests_cluster():
    random = np.random.default_rng(2)
    codes = np.repeat(np.arange(40, dtype=np.int32), 25)
    missed = missed_tail = 0
    truth = stats.norm.expect(lambda x: x, lb=stats.norm.ppf(0.9), conditional=True) * math.sqrt(2)
    for _ in range(400):
        values = np.repeat(random.normal(0, 1, 40), 25) + random.normal(0, 1, 1000)
        interval = around(ratio(values, np.ones(1000), codes), 0.05)
        missed += not interval.low < 0 < interval.high
        interval = around(tail_mean(values, values, 0.9, codes), 0.05)
        missed_tail += not interval.low < truth < interval.high
    assert missed / 400 < 0.09
    assert missed_tail / 400 < 0.11


def test_differences_and_logs_by_hand():
    before, after = Estimate(2.0, 0.04, 1e6), Estimate(3.0, 0.09, 1e6)
    found = change(before, after, 0.05)
    assert (found.mid, found.high - found.mid) == (1.0, pytest.approx(1.96 * math.sqrt(0.13), rel=1e-3))
    found = log_change(before, after, 0.05)
    assert found.high - found.mid == pytest.approx(1.96 * math.sqrt(0.01 + 0.01), rel=1e-3)
    assert log_change(Estimate(0.0, 0.0, 9.0), after, floor=1.0).mid == pytest.approx(math.log(3))
    assert math.isnan(log_change(Estimate(0.0, 0.0, 9.0), after).mid)


def test_a_standard_takes_the_mix_out():
    cells = (np.repeat([0, 1], [80, 20]).astype(np.int32), np.repeat([0, 1, 2], [20, 60, 20]).astype(np.int32))
    tops = (np.where(cells[0] == 0, 0.9, 0.1), np.where(cells[1] == 0, 0.9, 0.1))
    slices = tuple((np.arange(100, dtype=np.int32) % 10,) for _ in range(2))
    found = Standardised.of((tops[0], np.ones(100), cells[0]), (tops[1], np.ones(100), cells[1]), slices)
    assert found.expected() == pytest.approx((20 * 0.9 + 60 * 0.1) / 80)
    assert found.change() == pytest.approx((0, 0, 0), abs=1e-12)
    # the cell that was not there before is left out
    assert found.common.sum() == 80
    assert found.excess.sum() == pytest.approx(0)
    worse = Standardised.of((tops[0], np.ones(100), cells[0]), (tops[1] - 0.05, np.ones(100), cells[1]), slices)
    assert worse.change().mid == pytest.approx(-0.05)
    assert math.isnan(worse.change(cells[1] == 2).mid)


def test_combinations_and_distance():
    codes = dense(np.array([-1, 0, 0, 1, -1]), np.array([0, 0, 1, 1, 0]))
    assert len(set(codes.tolist())) == 4
    assert codes[0] == codes[4]
    one, other = np.random.default_rng(3).normal(0, 1, (2, 300))
    assert ks_distance(one, other + 0.5) == pytest.approx(stats.ks_2samp(one, other + 0.5).statistic)


@pytest.mark.parametrize("began", [0.0, 0.3, 0.8])
def test_an_onset_is_dated(began):
    pair, _ = both(served(traffic(1, 0)), served(traffic(1, 1)))
    random = np.random.default_rng(4)
    ones = np.ones(pair.before.size), np.ones(pair.after.size)
    chance = np.where(pair.after.ts_s < HOUR * (1 + began), 0.1, 0.4)
    tops = (1.0 * (random.random(pair.before.size) < 0.1), 1.0 * (random.random(pair.after.size) < chance))
    assert onset(pair.windows, tops, ones) == pytest.approx(HOUR * (1 + began), abs=61)
    assert onset(pair.windows, (np.zeros(pair.before.size), np.zeros(pair.after.size)), ones) is None
