"""Levers, plans and cache breaks on Spark: every step against DuckDB, and a whole plan against the oracle."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime, timedelta

import polars as pl
import pytest
from hosted_logs import hosted, pool
from hosted_logs import rows as hosted_rows
from planning.test_levers_oracle import BOOK, oracle_of
from planted import for_plan
from planted.drawn import LEVERS as DRAWN
from planted.drawn import drawn
from polars.testing import assert_frame_equal
from route_logs import PLAIN, asked
from route_logs import PRICES as ROUTED
from small_logs import ledger, look, row
from spark.rich import PRICES, rich_rows

import tenfold as tf
from tenfold.ledger import Ledger
from tenfold.levers import LEVERS
from tenfold.slo import Slo

BY_NAME = {lever.name: lever for lever in LEVERS}
NOON = datetime(2026, 6, 1, 12)


def on(twins, made):
    return Ledger(made.log.on(twins), made.book, made.window, made.price_at)


def looked(twins, name, made, assume, slo=None):
    """What a lever says of a log, the same on both engines."""
    found = look(BY_NAME[name], on(twins, made), {name: assume}, slo)
    assert found == look(BY_NAME[name], made, {name: assume}, slo)
    return found


def turns(*, hashes, read=0):
    """Conversations of several turns, some of which come too late; with prefix blocks or with sessions alone."""
    rows = []
    for session in range(4):
        for turn in range(4):
            tokens = 1_500 + 400 * turn
            blocks = [f"{'head' if place < 6 else session}-{place}" for place in range(tokens // 128)]
            rows.append(
                row(
                    request_id=f"{session}-{turn}", ts=NOON + timedelta(seconds=97 * session, minutes=4 * turn**2),
                    session_id=f"s{session}", feature="chat", model=("stacks", "plain")[session % 2],
                    input_tokens=tokens, cache_read_tokens=read and turn % 2 * 1_024, ttft_ms=250.5,
                    prefix_hashes=blocks if hashes else None, prefix_block_tokens=128 if hashes else None,
                )
            )  # fmt: skip
    return rows


@pytest.mark.parametrize(
    "levers",
    [("prefix_cache", "route", "distill"), pytest.param(DRAWN, marks=pytest.mark.full)],
    ids=["rivals", "all"],
)
def test_a_plan_as_the_oracle_has_it(twins, tmp_path, levers):
    log = drawn(2, 40, levers)
    told = for_plan(log, tmp_path)
    told |= {rival: {**told[rival], "effort_days": 0} for rival in {"route", "distill"} & set(told)}
    slo = None if log.slo is None else Slo(**log.slo)
    made = ledger(log.rows, BOOK())
    plan, own = (tf.plan(one, assume=told, slo=slo) for one in (on(twins, made), made))
    assert plan.as_dict() == own.as_dict()
    slow = oracle_of(log)
    assert plan.spend_pusd == slow.spend
    ok = [one.name for one in plan.estimates if one.status == "ok" and one.name in slow.assume]
    assert len(ok) > len(levers) / 3
    assert {one.name: one.alone_pusd for one in plan.estimates if one.name in ok} == {
        name: slow.alone(name) for name in ok
    }
    assert plan.joint_all_pusd == slow.value(ok)


@pytest.mark.parametrize("hashes", [True, False], ids=["blocks", "sessions"])
def test_prompt_caches(twins, hashes):
    found = looked(twins, "prefix_cache", ledger(turns(hashes=hashes)), {"where": "true", "policy": "history"})
    assert found.applies


@pytest.mark.parametrize(
    "more",
    [pytest.param({}, marks=pytest.mark.full), {"capacity": 1, "singleflight": True}],
    ids=["unbounded", "bounded"],
)
def test_exact_caches_and_samples(twins, tmp_path, more):
    sample = tmp_path / "sample.csv"
    sample.write_text("request_id,hit,wrong\nr0,1,0\nr1,1,1\nr2,0,\nelsewhere,1,0\n")
    answered = {"params_hash": "q", "status": "success", "finish_reason": "stop", "org": None}
    rows = [
        row(
            request_id=f"r{n}", ts=NOON + timedelta(seconds=7 * n), duration_ms=8_000.5 * (n % 3),
            prompt_hash=f"p{n % 3}", response_hash=f"a{n % 2}", **answered,
        )
        for n in range(12)
    ]  # fmt: skip
    assume = {
        "where": "feature = 'tagging'", "ttl_s": 60, "lookup_usd": 0.00001,
        "semantic": {"sample": str(sample), "wrong_usd": 0},
    }  # fmt: skip
    looked(twins, "skip", ledger(rows), {**assume, **more})


def test_batches_and_capacity(twins):
    rows = [row(ts=NOON + timedelta(minutes=n), session_id=f"s{n % 3}", is_stream=n == 4) for n in range(6)]
    bought = {"usd_per_hour": 1, "tokens_per_minute": 1_400}
    looked(twins, "batch_api", ledger(rows), {"where": "true", "cache_hit_factor": 0.5, "provisioned": bought})


@pytest.mark.parametrize(
    "more", [pytest.param({}, marks=pytest.mark.full), {"verifier": {"usd": 0.0001}}], ids=["plain", "verified"]
)
def test_routes_with_pairs(twins, tmp_path, more):
    evals = tmp_path / "evals.csv"
    lines = (f"r{n},{model},{score},900,90" for n in range(8) for model, score in (("small", n % 2), ("big", 0.5)))
    evals.write_text("\n".join(("request_id,model,score,input_tokens,output_tokens", *lines)))
    rows = [asked(n, session_id=f"s{n % 3}", cache_read_tokens=100 * n) for n in range(8)]
    looked(twins, "route", ledger(rows, ROUTED), {**PLAIN, "evals": str(evals), "router_usd": 0.00001, **more})


def test_hosting(twins):
    made, twin = (hosted(hosted_rows((2, 3, 4), seconds=900), pool(), hours=3) for _ in range(2))
    twin.log = twin.log.on(twins)
    assume = {"quantize": {"weights": "fp8"}, "continuous_batching": {}}
    assert tf.plan(twin, assume=assume).as_dict() == tf.plan(made, assume=assume).as_dict()


def test_trimmed_prompts(twins, tmp_path):
    evals = tmp_path / "evals.csv"
    evals.write_text("request_id,output_tokens\n" + "".join(f"{n}-{m},{60 + n}\n" for n in range(4) for m in range(4)))
    rows = [
        {**one, "finish_reason": ("stop", "length")[n % 5 == 0]} for n, one in enumerate(turns(hashes=True, read=1))
    ]
    table = {"where": "feature = 'chat'", "input_remove_ratio": 0.2, "output_ratio": 0.8, "evals": str(evals)}
    looked(twins, "trim", ledger(rows), table)


def test_cache_breaks(twins):
    made = ledger(rich_rows(4, 60) + turns(hashes=True, read=1), PRICES)
    found, own = tf.cache_breaks(on(twins, made)), tf.cache_breaks(made)
    for field in fields(own):
        one, other = getattr(found, field.name), getattr(own, field.name)
        if isinstance(other, pl.DataFrame):
            assert_frame_equal(one, other, check_dtypes=False)
        else:
            assert one == other, field.name
