"""What a cause costs a day, worked by hand at the prices of the small book (the lead's own arithmetic, in USD)."""

from dataclasses import replace

import numpy as np
import pytest
from small_logs import book

from tenfold.latency.costing import cost_words
from tenfold.latency.records import Finding

from .windows_made import made_pair

DAY = 86_400.0


def half_a_day(**columns):
    """A thousand requests in half a day: 10,000 tokens in, 1,000 of them cached, 200 out."""
    rows = {"ts_s": np.linspace(0, DAY / 2, 1000, endpoint=False) + 1.79e9, "input": 10_000.0, "cached": 1_000.0}
    rows |= {"output": 200.0, **columns}
    pair = made_pair(
        rows,
        {**rows, "ts_s": rows["ts_s"] + DAY},
        spans=((1.79e9, 1.79e9 + DAY / 2), (1.79e9 + DAY, 1.79e9 + 1.5 * DAY)),
    )
    return replace(pair, billed=("openai", "plain"))


def finding(kind, **measures):
    return Finding(step=0, kind=kind, status="guilty", measures=measures)


def test_a_broken_cache_costs_the_difference_of_the_two_rates():
    """8,000 tokens x (2 - 0.2) USD a million x 2,000 requests a day = 28.80 USD."""
    words = cost_words(finding("cache_broken"), half_a_day(), np.full(1000, 1000.0), book())
    assert words == "$29 a day more, at the pace of the window after"


@pytest.mark.parametrize(
    ("kept", "words"),
    [(0.5, "$2 a day more, at the pace of the window after"), (2.0, "$4 a day less, at the pace of the window after")],
)
def test_longer_answers_cost_their_tokens(kept, words):
    """200 x (1 - 0.5) x 10 USD a million x 2,000 = 2.00 USD; from 400 to 200: 4.00 less."""
    one = finding("output_length", within_log_change=-np.log(kept))
    assert cost_words(one, half_a_day(), np.zeros(1000), book()) == words


def test_longer_prompts_cost_uncached_tokens():
    """5,000 of 10,000 are new, none of them cached: 5,000 x 2 USD a million x 2,000 = 20 USD."""
    one = finding("input_length", within_log_change=np.log(2))
    assert cost_words(one, half_a_day(), np.zeros(1000), book()) == "$20 a day more, at the pace of the window after"


def test_what_has_no_price_has_no_cost():
    pair = half_a_day()
    assert cost_words(finding("slow_host"), pair, np.zeros(1000), book()) is None
    assert cost_words(finding("cache_broken"), replace(pair, billed=("", "")), np.zeros(1000), book()) is None
    assert (
        cost_words(finding("cache_broken"), replace(pair, billed=("openai", "absent")), np.zeros(1000), book()) is None
    )
    assert cost_words(finding("cache_broken"), pair, np.full(1000, 9000.0), book()) is None
