"""Public savings figures that were wrong, with their right values."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

from small_logs import Shorten, facts, ledger, look, row

import tenfold as tf
from tenfold.levers.prefix_cache import LEVER
from tenfold.money import PUSD_PER_USD, to_usd

NOON = datetime(2026, 10, 1, 12)


def test_b124_levers_together_are_valued_one_after_the_other():
    # ten days at $10; one lever alone saves 60 %, the other 30 %: 100 -> 40 -> 28
    rows = [row(ts=NOON + timedelta(days=n), input_tokens=0, output_tokens=1_000_000) for n in range(10)]
    plan = tf.plan(ledger(rows), levers=(Shorten("router", 60, 6), Shorten("caching", 30, 7)))
    assert plan.spend_pusd == 100 * PUSD_PER_USD
    assert {one.name: one.alone_pusd for one in plan.estimates} == {
        "router": 60 * PUSD_PER_USD,
        "caching": 30 * PUSD_PER_USD,
    }
    assert plan.joint_all_pusd == plan.saving.mid == 72 * PUSD_PER_USD
    assert plan.roadmap == (("router", 60 * PUSD_PER_USD), ("caching", 12 * PUSD_PER_USD))


def test_b128_what_a_cache_saves_is_measured_net_of_its_writes():
    # $400 of input and $600 of output without a cache: 60 % of the input cacheable, four fifths of that read
    part = {
        "input_tokens": 800_000,
        "cache_read_tokens": 384_000,
        "cache_write_tokens": 96_000,
        "output_tokens": 240_000,
    }
    rows = [row(provider="anthropic", model="claude-opus-4-5", ts=NOON, **part) for _ in range(100)]
    made = ledger(rows, tf.price_book())
    found = look(LEVER, made)
    assert to_usd(found.as_billed_pusd) == Decimal("160.80")  # 400 x 0.6 x (0.8 x 0.9 - 0.2 x 0.25), not 432
    assert Decimal(facts(found)["cost_uncached_usd"]) == Decimal(1000)
    assert to_usd(made.total_pusd) == Decimal("839.20")
