"""The weighted quantile of every draw at once, held against one draw at a time, all rows sorted."""

import numpy as np
import pytest

from tenfold.latency.tails import Tail, draws_of


def slow(values, weights, quantile):
    """The least value that no more than 1 - quantile of the weight lies above."""
    pairs = sorted((value, weight) for value, weight in zip(values, weights, strict=True) if weight > 0)
    whole = sum(weight for _, weight in pairs)
    above = whole
    for value, weight in pairs:
        above -= weight
        if above <= (1 - quantile) * whole * (1 + 1e-12):
            return value
    raise AssertionError


@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_draw_is_the_quantile_of_its_slices(quantile, weighted):
    random = np.random.default_rng(3)
    values = random.lognormal(size=3000).round(2)  # with ties
    values[random.random(3000) < 0.05] = np.nan
    slices = random.integers(0, 40, 3000).astype(np.int32)
    weights = random.choice([0.0, 0.5, 3.0], 3000) if weighted else None
    drawn = draws_of(40, 30)
    found = Tail.of(values, slices, quantile, 40, weights).at(drawn)
    known = np.isfinite(values)
    for at in range(30):
        weight = drawn[at][slices[known]] * (1.0 if weights is None else weights[known])
        assert found[at] == slow(values[known], weight, quantile)


def test_draws_are_the_same_every_time_and_count_every_slice():
    drawn = draws_of(40, 50, stream=1)
    assert (drawn.sum(axis=1) == 40).all()
    assert (drawn == draws_of(40, 50, stream=1)).all()
    assert not (drawn == draws_of(40, 50, stream=0)).all()


def test_no_value_is_no_quantile():
    tail = Tail.of(np.full(5, np.nan), np.zeros(5, np.int32), 0.99, 40)
    assert np.isnan(tail.at()[0])


def test_a_tail_that_sits_in_one_slice_is_there_or_not():
    """Drawn without it, the tail is that of the others, however deep one has to look for it."""
    random = np.random.default_rng(8)
    slices = np.where(np.arange(4000) < 600, 7, random.integers(0, 40, 4000)).astype(np.int32)
    values = random.lognormal(0, 0.3, 4000) * np.where(slices == 7, 5.0, 1.0)
    drawn = draws_of(40, 60)
    found = Tail.of(values, slices, 0.99, 40).at(drawn)
    for at in range(60):
        assert found[at] == slow(values, drawn[at][slices], 0.99)
    assert found[drawn[:, 7] == 0].max() < 3 < found[drawn[:, 7] > 0].min()
