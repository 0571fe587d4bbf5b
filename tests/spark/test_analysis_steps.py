"""The analyses on both engines: what they say is the same."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from small_logs import ledger, row
from spark.rich import PRICES, rich_rows

import tenfold as tf
from tenfold.ledger import Ledger, Window
from tenfold.levers import batch_api


@pytest.fixture(scope="module")
def made():
    return ledger(rich_rows(2, 80), PRICES)


def on(twins, one):
    return Ledger(one.log.on(twins), one.book, one.window, one.price_at)


def test_efficiency(made, twins):
    assert tf.efficiency(on(twins, made), "team").as_dict() == tf.efficiency(made, "team").as_dict()


def test_unit_economics(made, twins):
    assert tf.unit_economics(on(twins, made), "feature").as_dict() == tf.unit_economics(made, "feature").as_dict()


def test_bridge(made, twins):
    edge = datetime(2026, 6, 20, 12, tzinfo=UTC)
    sides = [Window(None, edge), Window(edge, None)]
    own = tf.bridge(*(made.within(side) for side in sides), by=["team"])
    twin = on(twins, made)
    assert tf.bridge(*(twin.within(side) for side in sides), by=["team"]).as_dict() == own.as_dict()


def test_anomalies(made, twins):
    twin = on(twins, made)
    assert tf.anomalies(twin).as_dict() == tf.anomalies(made).as_dict()


def test_reconciliation(made, twins, tmp_path):
    file = tmp_path / "invoice.csv"
    file.write_text(
        "date,model,meter,amount_usd\n2026-06-02,stacks,uncached_input,0.01\n2026-06-02,stacks,output,0.02\n"
    )
    own, found = tf.reconcile(made, file), tf.reconcile(on(twins, made), file)
    assert found.as_dict() == own.as_dict()


def test_a_plan_held_against_what_came(twins):
    noon = datetime(2026, 6, 1, 12)
    days = [row(ts=noon + timedelta(days=n), feature=("tagging", "chat")[n % 2]) for n in range(12)]
    assume = {"batch_api": {"where": "feature = 'tagging'", "effort_days": 0}}
    plan = tf.plan(ledger(days), assume=assume, levers=(batch_api.LEVER,)).as_dict()
    later = ledger([{**one, "ts": one["ts"] + timedelta(days=40)} for one in days])
    assert tf.track(plan, on(twins, later)).as_dict() == tf.track(plan, later).as_dict()
