"""Whole plans against the oracle: each lever alone and both together, request by request."""

from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import as_billed_saving, batch_saving, bill, is_billed, price_request, read_book
from small_logs import book, ledger
from strategies import books_and_logs

import tenfold as tf
from tenfold.prices.words import canonical_tier

UNCACHED = {"cache_read_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}


def can_wait(request):
    is_standard = canonical_tier(request.get("service_tier")) == "standard"
    return is_standard and request.get("is_stream") is False and is_billed(request)


def changed(prices, request, change):
    """The request after a change, if it has a price before and after it."""
    if price_request(prices, request).status != "priced":
        return request
    after = {**request, **change}
    return request if price_request(prices, after).cost_pusd is None else after


def both(prices, request, factor):
    """Caching off, then the batch tier: prefix state before tier, whatever the plan's order."""
    if request.get("cache_read_tokens") or request.get("cache_write_tokens"):
        request = changed(prices, request, UNCACHED)
    if not can_wait(request):
        return request
    kept = (Decimal(request.get("cache_read_tokens") or 0) * factor).to_integral_value(ROUND_HALF_UP)
    return changed(prices, request, {"service_tier": "batch", "cache_read_tokens": int(kept)})


def hold_equal(drawn, factor):
    text, rows = drawn
    prices = read_book([text])
    naive = [{**row, "ts": row["ts"] and row["ts"].replace(tzinfo=None)} for row in rows]
    plan = tf.plan(
        ledger(naive, book(text)),
        assume={
            "batch_api": {"where": "true", "cache_hit_factor": Decimal(factor), "effort_days": 0},
            "prefix_cache": {"policy": "none", "effort_days": 0},
        },
    )
    spend = bill(prices, rows).total_pusd
    assert plan.spend_pusd == spend
    found = {one.name: one for one in plan.estimates}
    expected = {
        "batch_api": batch_saving(prices, rows, can_wait, Decimal(factor)),
        "prefix_cache": -as_billed_saving(prices, rows),
    }
    for name, one in found.items():
        if one.saving.mid is not None:
            assert one.saving.mid == expected[name]
            assert one.saving.mid <= one.addressed_pusd
    ok = [one for one in plan.estimates if one.status == "ok"]
    if len(ok) == 2:
        after = bill(prices, [both(prices, row, Decimal(factor)) for row in rows]).total_pusd
        assert plan.joint_all_pusd == spend - after
    assert sum(one.shapley_pusd for one in ok) == plan.joint_all_pusd
    assert sum(pusd for _, pusd in plan.roadmap) == plan.saving.mid
    assert (
        plan.saving.mid == max(0, plan.joint_all_pusd, *(one.alone_pusd for one in ok)) or plan.saving.low is not None
    )


@settings(max_examples=3, deadline=None)
@given(books_and_logs(max_size=40), st.sampled_from(("0.3", "1")))
def test_plan_equals_the_oracle(drawn, factor):
    hold_equal(drawn, factor)


@pytest.mark.full
@settings(max_examples=30, deadline=None)
@given(books_and_logs(max_size=40), st.sampled_from(("0.3", "1")))
def test_plan_equals_the_oracle_at_length(drawn, factor):
    hold_equal(drawn, factor)
