"""Batch and caching together: what each provider's prices do to cached reads, what expires, and when batch loses."""

import os
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import polars as pl
import pytest
from small_logs import PRICES, facts, ledger, look, row, saved

import tenfold as tf
from tenfold.ledger.metering import half_even
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions
from tenfold.levers.batch_api import LEVER
from tenfold.levers.repricing import own_bill
from tenfold.money import divided
from tenfold.planning.portfolio import Portfolio

UUSD = 10**6
DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))


def by_feature(made, table):
    """What the lever saves by feature, in pUSD; None where it moves nothing there."""
    assumed = assumptions({"batch_api": {"where": "true", **table}}, LEVERS).levers
    with made.session() as session:
        bill = own_bill(session, (LEVER,), assumed, tf.Slo())
        portfolio = Portfolio(bill, (LEVER,), assumed, {"batch_api": LEVER.judge(bill, assumed["batch_api"])})
        rows = portfolio.tally("batch_api").frame.rows(named=True)
    return {one["feature"]: int(one["now_pusd"] - one["then_pusd"]) if one["fate"] == "moved" else None for one in rows}


# Standard rates in USD per million (input, cached read, output), and what the batch tier multiplies each by; None where
# the book has no cached batch price, so that requests with cached reads stay where they are.
STACKS, KEEPS = ("0.5", "0.5", "0.5"), ("0.5", "1", "0.5")
MATRIX = {
    ("anthropic", "claude-sonnet-4-5", None): (("3", "0.3", "15"), STACKS),
    ("vertex", "claude-sonnet-4-5", "global"): (("3", "0.3", "15"), STACKS),
    ("openai", "gpt-5", None): (("1.25", "0.125", "10"), STACKS),
    ("azure", "gpt-5", None): (("1.25", "0.125", "10"), STACKS),
    ("openai", "gpt-5.4", None): (("2.5", "0.25", "15"), ("0.5", "0.52", "0.5")),  # 0.13, rounded up by the vendor
    ("openai", "gpt-4o", None): (("2.5", "1.25", "10"), KEEPS),
    ("openai", "gpt-4.1", None): (("2", "0.5", "8"), KEEPS),
    ("azure", "gpt-4.1", None): (("2", "0.5", "8"), None),
    ("google", "gemini-2.5-flash", None): (("0.3", "0.03", "2.5"), KEEPS),
    ("vertex", "gemini-2.5-flash", None): (("0.3", "0.03", "2.5"), KEEPS),
    ("groq", "openai/gpt-oss-120b", None): (("0.15", "0.075", "0.6"), KEEPS),
    ("bedrock", "amazon.nova-pro-v1:0", "us-east-1"): (("0.8", "0.2", "3.2"), None),
    ("xai", "grok-4.3", None): (("1.25", "0.2", "2.5"), ("0.8", "0.8", "0.8")),
}
TOKENS = (10_000, 10_000, 1_000)  # uncached, cached, output: below every context band


def matrix_log(at=datetime(2026, 11, 1, 12)):
    return ledger(
        [
            row(
                provider=provider, model=model, region=region, feature=f"{provider} {model}", ts=at,
                input_tokens=20_000, cache_read_tokens=10_000, output_tokens=1_000,
            )
            for provider, model, region in MATRIX
        ],
        tf.price_book(),
    )  # fmt: skip


def test_case_29_the_stack_matrix():
    found = by_feature(matrix_log(), {})
    for (provider, model, _), (rates, factors) in MATRIX.items():
        expected = None
        if factors is not None:
            saving = [n * Decimal(r) * (1 - Decimal(f)) for n, r, f in zip(TOKENS, rates, factors, strict=True)]
            expected = int(sum(saving) * UUSD)
        assert found[f"{provider} {model}"] == expected, (provider, model)


def test_case_29_lost_reads_are_uncached_input_at_the_batch_rate():
    found = by_feature(matrix_log(), {"cache_hit_factor": 0})
    for (provider, model, _), (rates, factors) in MATRIX.items():
        inputs, read, output = (Decimal(rate) for rate in rates)
        half = Decimal((factors or STACKS)[0])
        saving = 10_000 * (inputs + read) + 1_000 * output - half * (20_000 * inputs + 1_000 * output)
        assert found[f"{provider} {model}"] == int(saving * UUSD), (provider, model)


@pytest.mark.full
def test_case_31_gemini_saves_nothing_on_cached_tokens():
    common = {"provider": "vertex", "model": "gemini-2.5-flash", "input_tokens": 50_000, "output_tokens": 0}
    rows = [row(**common, feature="cached", cache_read_tokens=50_000), row(**common, feature="fresh")]
    found = by_feature(ledger(rows, tf.price_book()), {})
    assert found == {"cached": 0, "fresh": 50_000 * 150_000}


def test_case_35_a_ceiling_says_that_it_is_one():
    found = look(LEVER, ledger([row()]))
    assert (found.label, found.status) == ("ceiling", "no_assumption")
    assert "this is the most there is, if all could" in found.reason


# One model at 1 / 0.1 / 5 online; in batch half of it, with no cached price: every read is lost.
LOSES = """
provider = "openai"
[[price]]
model = "loses"
input = 1
cache_read = 0.1
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "loses"
service_tier = "batch"
input = 0.5
output = 2.5
source = "test"
checked = 2026-01-01
"""
INPUT = 10_000_000


def around(output, share):
    """Requests with a little fewer and a little more cached reads than a share of the input."""
    common = {"model": "loses", "input_tokens": INPUT, "output_tokens": output}
    reads = share * INPUT
    return [
        row(**common, feature=f"{output} less", cache_read_tokens=int(reads * Fraction(999, 1_000))),
        row(**common, feature=f"{output} more", cache_read_tokens=int(reads * Fraction(1_001, 1_000))),
    ]


def break_even(ratio):
    """Share of cached input above which online is cheaper than a batch without cache: 0.5 (R + 5) / (0.9 R)."""
    return Fraction(1, 2) * (ratio + 5) / (Fraction(9, 10) * ratio)


def test_the_hit_share_above_which_a_batch_without_cache_loses():
    code, agents = Fraction("73.5"), Fraction(35)
    assert [f"{100 * float(one):.1f}" for one in (Fraction(5, 9), break_even(code), break_even(agents))] == [
        "55.6",
        "59.3",
        "63.5",
    ]
    rows = around(0, Fraction(5, 9))
    for ratio in (code, agents):
        rows += around(int(INPUT / ratio), break_even(ratio))
    conversation = Fraction("5.47")  # never: its break-even is above 1
    assert break_even(conversation) > 1
    rows.append(
        row(
            model="loses",
            input_tokens=INPUT,
            cache_read_tokens=INPUT,
            output_tokens=int(INPUT / conversation),
            feature="x",
        )
    )
    found = by_feature(ledger(rows, LOSES), {"cache_hit_factor": 0})
    assert found.pop("x") > 0
    assert {name: pusd > 0 for name, pusd in found.items()} == {name: name.endswith("less") for name in found}


@pytest.mark.real_data
def test_the_break_evens_of_the_published_traces():
    ratios = {}
    for kind in ("code", "conv"):
        file = DATA / "azure" / f"AzureLLMInferenceTrace_{kind}.csv"
        if not file.is_file():
            pytest.skip("no real data: set TENFOLD_REAL_DATA")
        frame = pl.read_csv(file)
        ratios[kind] = Fraction(frame["ContextTokens"].sum(), frame["GeneratedTokens"].sum())
    assert abs(ratios["code"] - Fraction("73.45")) < Fraction("0.05")
    assert f"{float(100 * break_even(ratios['code'])):.1f}" == "59.3"
    assert break_even(ratios["conv"]) > 1


def test_what_expires_is_paid_as_it_is_now():
    # 3,000 -> 1,500; three in a hundred are sent again: 1,500 + 0.03 x 1,500
    expiry = {"batch_api": {"where": "true", "expiry_ratio": Decimal("0.03")}}
    found = look(LEVER, ledger([row()]), expiry)
    assert (saved(found), found.label) == (1_455 * UUSD, "modelled")
    # all of them: nothing is saved, nothing is lost, also where the batch costs more than online
    every = {"batch_api": {"where": "true", "expiry_ratio": 1, "cache_hit_factor": 0}}
    assert saved(look(LEVER, ledger([row(), row(cache_read_tokens=1_000)]), every)) == 0


def test_the_low_scenario_loses_most_reads_and_expires_most():
    # 500 x 2 + 500 x 0.2 + 1,000 = 2,100 now; in batch 1,500, 1,275 or 1,050 by how many reads stay
    days = [row(ts=datetime(2026, 6, day, 12), cache_read_tokens=500) for day in range(1, 13)]
    halves = [0, Decimal("0.5"), 1]
    table = {"where": "true", "cache_hit_factor": halves, "expiry_ratio": [0, Decimal("0.1"), Decimal("0.5")]}
    saving = tf.plan(ledger(days), assume={"batch_api": table}, levers=(LEVER,)).estimates[0].saving
    assert saving == (12 * 300 * UUSD, 12 * 825 * UUSD * 9 // 10, 12 * 1_050 * UUSD)


def test_division_is_half_even_on_both_sides_of_zero():
    amounts = [*range(-5, 6), -15, 15, -25, 25, 10**18 + 5, -(10**18) - 5, 10**30 + 15, 3 * 10**24 + 5]
    for by in (1, 10, 1_000_000):
        sql = ", ".join(half_even(f"cast({one} as decimal(38, 0))", by) for one in amounts if abs(one) // by < 2**62)
        expected = tuple(divided(one, by) for one in amounts if abs(one) // by < 2**62)
        assert duckdb.sql(f"select {sql}").fetchall() == [expected]


@pytest.mark.full
def test_the_rule_of_thumb_names_what_it_leaves_out():
    assert LEVER.rule_of_thumb.startswith("2x: ")
    # twice is right for one request of the matrix that has no cached read, and wrong for the same with reads
    plain = {"provider": "openai", "model": "plain", "output_tokens": 0}
    rows = [row(**plain, feature="fresh"), row(**plain, feature="cached", cache_read_tokens=1_000)]
    assert by_feature(ledger(rows, PRICES), {}) == {"fresh": 1_000 * UUSD, "cached": 0}
    assert facts(look(LEVER, ledger(rows, PRICES), {"batch_api": {"where": "true"}}))["requests_moved"] == 2
