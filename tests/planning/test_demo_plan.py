"""The plan on the shipped demo logs, whose generator knows which requests can wait."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

import tenfold as tf

DEMO = Path(__file__).parents[2] / "data" / "demo"
TRUTH = json.loads((DEMO / "truth.json").read_text(encoding="utf-8"))["batch_eligible"]


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    db = tmp_path_factory.mktemp("demo") / "usage.duckdb"
    tf.load(sorted(DEMO.glob("*.gz")), db=db)
    log = tf.load(DEMO / "gateway.csv", db=db, map=DEMO / "gateway.map.toml")
    return tf.attribute(log, since=datetime(2026, 7, 1, tzinfo=UTC), until=datetime(2026, 10, 1, tzinfo=UTC))


def facts(plan):
    batch = next(one for one in plan.estimates if one.name == "batch_api")
    return batch, {one["name"]: one["value"] for one in batch.evidence}


def test_requests_that_can_wait(ledger):
    plan = tf.plan(ledger, assume=DEMO / "assume.toml")
    batch, found = facts(plan)
    assert found["requests_moved"] == TRUTH["total"]["requests"]
    assert found["cache_read_tokens"] == TRUTH["total"]["cache_read_tokens"]
    assert plan.spend_pusd == ledger.total_pusd
    assert 0 < batch.saving.low < batch.saving.mid < batch.saving.high < batch.addressed_pusd
    # every batch price of these models is half of the standard one, except GPT-4o's cached reads, which have no batch
    # discount in the book: the saving is half of the addressed spend, or a little less
    assert 0.48 < batch.saving.mid / batch.addressed_pusd <= 0.5


@pytest.mark.full
def test_the_service_levels_veto_what_is_due_in_an_hour(ledger):
    batch, found = facts(tf.plan(ledger, assume=DEMO / "assume.toml", slo=DEMO / "slo.toml"))
    rows = TRUTH["by_model_and_feature"]
    vetoed = sum(row["requests"] for row in rows if row["feature"] in TRUTH["vetoed_by_slo"])
    (out,) = batch.as_dict()["left_out"]
    assert (out["feature"], out["requests"]) == ("invoice-extraction", vetoed)
    assert out["text"].startswith(f"left out by the service levels: invoice-extraction, {vetoed:,} requests, $")
    # some moved requests have cached reads, and nobody said that they stay cached
    assert batch.label == "modelled"
    assert (found["requests_moved"], found["vetoed"]) == (TRUTH["total"]["requests"] - vetoed, vetoed)


@pytest.mark.full
def test_caching_that_lost_money_is_named(ledger):
    plan = tf.plan(ledger)
    cache = next(one for one in plan.estimates if one.name == "prefix_cache")
    assert cache.as_billed_pusd > 0
    assert "`contract-qa`" in cache.advice.first_action
