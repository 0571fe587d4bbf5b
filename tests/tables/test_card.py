"""What a notebook shows of each result: the answer, alike in form, escaped, and as text where no table can be made."""

import json
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

import tenfold as tf
from tenfold import extras, tables
from tenfold.analysis import composition
from tenfold.export import check_focus

DEMO = Path(__file__).parents[2] / "data" / "demo"
HOSTILE = "<script>alert(1)</script>\u202egnp|=1+1`x`"
NOON = datetime(2026, 8, 3, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """Every result of a small log whose team, feature and model have hostile names."""
    folder = tmp_path_factory.mktemp("cards")
    lines = [
        {
            "request_id": f"r{n}", "ts": (NOON + timedelta(days=n % 60)).isoformat(), "provider": "openai",
            "model": HOSTILE if n % 10 == 3 else "gpt-4.1", "team": HOSTILE, "feature": HOSTILE, "status": "success",
            "input_tokens": 1_000_000, "output_tokens": 10_000, "cache_read_tokens": 0, "is_stream": False,
        }
        for n in range(120)
    ]  # fmt: skip
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (folder / "budgets.csv").write_text("owner,month,usd\n*,2026-08,10\n", encoding="utf-8")
    log = tf.load(folder / "log.jsonl", db=folder / "usage.duckdb")
    ledger = tf.attribute(log, since=datetime(2026, 8, 1, tzinfo=UTC), until=datetime(2026, 11, 1, tzinfo=UTC))
    cut = datetime(2026, 9, 1, tzinfo=UTC)
    before, after = tf.attribute(log, until=cut), tf.attribute(log, since=cut)
    plan = tf.plan(before, assume={"batch_api": {"where": "true", "effort_days": 0}})
    tf.export_focus(ledger, folder / "focus.csv")
    return {
        "Log": log,
        "Ledger": ledger,
        "Composition": ledger.composition(["team", "model"]),
        "Reading": composition.read(ledger),
        "Bridge": tf.bridge(before, after, by=["team", "model"]),
        "Allocation": tf.allocate(ledger, shared=[HOSTILE]),
        "UnitEconomics": tf.unit_economics(ledger, by="team"),
        "Efficiency": tf.efficiency(ledger, by="team"),
        "Anomalies": tf.anomalies(ledger),
        "Forecast": tf.forecast(ledger),
        "Burn": tf.burn(ledger, folder / "budgets.csv"),
        "Reconciliation": tf.reconcile(ledger),
        "Plan": plan,
        "Estimate": next(one for one in plan.estimates if one.name == "batch_api"),
        "Recorded": tf.record(plan, log, HOSTILE),
        "Tracked": tf.track(plan.as_dict(), after),
        "CallPrice": tf.price(provider="openai", model="gpt-4.1", at=date(2026, 8, 1), usage=tf.Usage(1_000, 10)),
        "Checked": check_focus(folder / "focus.csv"),
        "Grid": tables.grid("g", HOSTILE, [tables.Column("a", "a")], [(HOSTILE,)]),
    }


SAYS = {
    "Log": "120 requests loaded into usage.duckdb",
    "Ledger": "$224.64 for requests",  # 108 x (1 Mtok at $2 + 10 ktok at $8)
    "Composition": "$224.64, 120 requests",
    "Reading": "$224.64, 120 requests, 90 % priced",
    "Bridge": "Spend rose by $8.32",  # 58 - 6 priced requests before September, 62 - 6 from then on, $2.08 each
    "Allocation": "Who carries the bill",
    "UnitEconomics": "$2.08 per successful request",
    "Efficiency": "Efficiency by team",
    "Anomalies": "Anomalies: ",
    "Forecast": "Expected spend, 80 % ranges",
    "Burn": "Budgets against spend",
    "Reconciliation": "Not evaluable: no report covers the window",
    "Plan": "Best feasible plan saves",
    "Estimate": "What it assumes",
    "Recorded": "Levers: batch_api",
    "Tracked": "Promised and realised",
    "CallPrice": "0.00208 USD",
    "Checked": "against FOCUS 1.2: nothing wrong",
    "Grid": "",
}


@pytest.mark.parametrize("name", SAYS)
def test_shows_the_answer_and_no_name_does_harm(shown, name):
    html = shown[name]._repr_html_()
    assert html.startswith('<div class="tenfold">')
    assert SAYS[name] in re.sub(r"<[^>]+>", "", html)
    assert "<script" not in html
    assert "\u202e" not in html


@pytest.mark.parametrize("name", SAYS)
def test_without_the_report_extra_it_is_text(shown, name, monkeypatch):
    whole = shown[name]._repr_html_()
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    html = shown[name]._repr_html_()
    assert "<table" not in html
    assert SAYS[name] in re.sub(r"<[^>]+>", "", html)
    assert ("<pre>" in html) == ("<table" in whole)
    assert "<script" not in html


@pytest.mark.full
def test_a_reconciliation_and_its_causes():
    log = tf.load([str(DEMO / name) for name in ("openai_responses.jsonl.gz", "openai_costs.json.gz")])
    html = tf.reconcile(tf.attribute(log))._repr_html_()
    assert "Billed less logged, by cause" in html
    assert "Unreconciled: " in html  # the chat log is not loaded


def test_text_where_no_table_can_be_made(monkeypatch):
    columns = [tables.Column("name", "name"), tables.Column("usd", "USD", "pusd")]
    grid = tables.grid("g", "Costs", columns, [("a & b", 2 * 10**12), ("c", None)], note="So it is.")
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    html = tables.card("It costs `a`", ["one", "`two`"], grid)
    assert html.endswith("<pre>Costs\nname     USD\na &amp; b  $2.00\nc          –\nSo it is.</pre></div>")
    assert "<strong>It costs <code>a</code></strong></p><ul><li>one</li><li><code>two</code></li></ul>" in html
