"""Public cases about removed tokens and stacked savings (section C of the levers' cases, B124, B125 of the cost cases)."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from small_logs import facts, ledger, look, row

import tenfold as tf
from tenfold.levers import distill, trim
from tenfold.money import PUSD_PER_USD

NOON = datetime(2026, 10, 1, 12)
USD = PUSD_PER_USD


def prices(**rates):
    lines = "\n".join(f"{name} = {value}" for name, value in rates.items())
    return f'provider = "openai"\n[[price]]\nmodel = "case"\n{lines}\nsource = "test"\nchecked = 2026-01-01\n'


def trimmed(rows, book, **table):
    return facts(look(trim.LEVER, ledger(rows, book), {"trim": {"where": "true", **table}}))


def test_b125_a_removed_token_is_worth_what_its_class_was_billed_at():
    # 238 M tokens of which 87.8 % were read: list 4.339 a million, paid 1.592; 76.26 M of them are removed
    part = {"input_tokens": 1_000_000, "cache_read_tokens": 878_000, "output_tokens": 0}
    rows = [row(model="case", ts=NOON, **part) for _ in range(238)]
    found = trimmed(rows, prices(input=4.339, cache_read=1.2103, output=0), input_remove_ratio=Decimal("0.320418"))
    assert round(Decimal(found["removed_input_list_usd"]), 2) == Decimal("330.89")  # what was claimed
    assert round(Decimal(found["removed_input_usd"])) == 121
    assert found["list_overstates"] == "2.73"


def test_case_25_what_a_compaction_sends_anew():
    # one of five: 8,379 tokens go, 137,519 are billed at the miss rate once; at a tenth for reads that takes 148 calls
    tokens = 137_519 + 8_379
    rows = [row(model="case", ts=NOON, input_tokens=tokens, cache_read_tokens=tokens, output_tokens=0)]
    found = trimmed(
        rows, prices(input=3, cache_read=0.3, output=15), input_remove_ratio=Decimal("0.057431"), cut="head"
    )
    assert found["removed_reads_tokens"] == 8_379
    assert found["head_cut_rewrite_usd"] == "0.3713013"  # 137,519 x (3 - 0.3)
    assert float(found["head_cut_break_even_calls"]) == pytest.approx(137_519 / 8_379 * 9, abs=0.05)


@pytest.mark.full
def test_case_26_compressing_a_cached_prompt_can_raise_the_bill():
    # 5,000 of 50,000 go; writing the other 45,000 at 1.25 takes 103.5 calls to come back
    rows = [row(model="case", ts=NOON, input_tokens=50_000, cache_read_tokens=50_000, output_tokens=0)]
    book = prices(input=3, cache_read=0.3, cache_write=3.75, output=15)
    found = trimmed(rows, book, input_remove_ratio=0.1, cut="head")
    assert found["head_cut_break_even_calls"] == "103.5"  # 45,000 / 5,000 x (1.25 - 0.1) / 0.1


def test_case_28_removals_after_the_cache_expired_are_worth_a_write():
    # 96 turns read 50,000 tokens, 4 found the cache expired and wrote them: 4 % of requests, a third of the spend
    def turn(**columns):
        return row(model="case", ts=NOON, input_tokens=50_000, output_tokens=0, **columns)

    rows = [*(turn(cache_read_tokens=50_000) for _ in range(96)), *(turn(cache_write_tokens=50_000) for _ in range(4))]
    made = ledger(rows, prices(input=3, cache_read=0.3, cache_write=3.75, output=15))
    assert Fraction(4 * 50_000 * 3_750_000, made.total_pusd) == Fraction(15, 15 + Fraction(288, 10))  # 34 %
    found = facts(look(trim.LEVER, made, {"trim": {"where": "true", "input_remove_ratio": 0.1}}))
    reads, writes = Decimal(found["removed_reads_usd"]), Decimal(found["removed_writes_usd"])
    assert (reads, writes) == (Decimal("0.144"), Decimal("0.075"))
    # a write is worth 12.5 reads: valuing all at the read rate misses a third
    assert writes / 4 == Decimal("12.5") * reads / 96
    assert Decimal(found["removed_input_usd"]) == reads + writes


def test_b124_a_student_and_shorter_answers_are_valued_one_after_the_other():
    # ten days at $10: the student saves 60 % alone, shorter answers 30 %: 100 -> 40 -> 28, not 90 saved
    rows = [row(model="case", ts=NOON + timedelta(days=n), input_tokens=0, output_tokens=1_000_000) for n in range(10)]
    assume = {
        "distill": {"where": "true", "student": {"input": "0.4", "output": "4"}, "effort_days": 0},
        "trim": {"where": "true", "output_ratio": 0.7, "effort_days": 0},
    }
    plan = tf.plan(ledger(rows, prices(input=1, output=10)), assume=assume, levers=(trim.LEVER, distill.LEVER))
    assert {one.name: one.alone_pusd for one in plan.estimates} == {"distill": 60 * USD, "trim": 30 * USD}
    assert plan.joint_all_pusd == plan.saving.mid == 72 * USD
    assert plan.roadmap == (("distill", 60 * USD), ("trim", 12 * USD))
