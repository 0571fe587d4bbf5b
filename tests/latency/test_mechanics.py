"""The models of the window before, on times that were made with known weights."""

import numpy as np
import pytest

from tenfold.latency.mechanics import Decode, Prefill
from tenfold.latency.under_way import UnderWay

COUNT = 20_000


def test_a_prompt_takes_what_its_tokens_and_its_neighbours_take():
    random = np.random.default_rng(1)
    uncached, beside = random.lognormal(6.5, 1, COUNT).round(), random.integers(0, 20, COUNT).astype(float)
    exact = 0.01 + 4e-5 * uncached + 2e-4 * beside + 1e-6 * uncached * beside
    measured = exact * np.exp(0.03 * random.standard_normal(COUNT))
    measured[::50] *= 8  # what was stuck somewhere
    found = Prefill.fit(uncached, measured, beside)
    ratio = found.expected(uncached, beside) / exact
    assert np.quantile(ratio, [0.01, 0.99]) == pytest.approx([1, 1], abs=0.04)
    # beyond what was seen it goes on as the lines do
    assert found.expected(np.array([200_000.0]), np.array([10.0]))[0] == pytest.approx(0.012 + 8 + 2, rel=0.15)


def test_a_token_takes_a_step_and_a_step_what_is_in_it():
    random = np.random.default_rng(2)
    decoding, context = random.uniform(0, 30, COUNT), random.uniform(0, 100_000, COUNT)
    between = random.exponential(40, COUNT)
    exact = 0.007 + 2e-5 * decoding + 2e-8 * context + 3e-5 * between
    unknown = np.full(COUNT, np.nan)
    under = UnderWay(unknown, unknown, decoding, context, between, unknown)
    found = Decode.fit(exact * np.exp(0.03 * random.standard_normal(COUNT)), under)
    assert found.lines.weights[3] == pytest.approx(3e-5, rel=0.03)
    assert (found.lines.weights >= 0).all()
    assert np.allclose(found.expected(decoding, context, between) / exact, 1, atol=0.03)


def test_nothing_known_is_a_constant():
    none = np.full(3, np.nan)
    assert Prefill.fit(none, none, none).expected(np.array([5.0]), np.array([1.0]))[0] == 1.0
