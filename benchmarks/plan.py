"""The plan of six levers of an API bill, every set of them and intervals, beside one attribution pass over the same rows.

The attribution pass reads raw rows (by a column which the daily cube does not keep), so that both sides touch the same
requests. The log is synthetic: five features, of which every lever touches some and most share some.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import Measured, folder, in_child

if TYPE_CHECKING:
    import tenfold as tf

DATA = (
    "a quarter of five features (repeated questions, conversations, classification, extraction, agents), a third of requests "
    "in sessions with prefix hashes; evals of one small model; stated ranges for two levers, so that three scenarios are priced"
)
_REQUESTS = """
with drawn as (
  select
    i,
    cast(hash(i) % 1000 as bigint) as part,
    cast(hash(i + 1_000_000_007) % 1_000_000_000 as bigint) as noise,
    cast(hash(i + 2_000_000_011) % 1_000_000_000 as bigint) as more
  from range({rows}) as r(i)
),
featured as (
  select
    *,
    case when part < 200 then 'faq' when part < 400 then 'chat' when part < 650 then 'classify'
      when part < 930 then 'extract' else 'agent' end as feature,
    case when part between 200 and 399 then 6 when part >= 930 then 12 else 1 end as turns
  from drawn
),
seated as (
  select *, row_number() over (partition by feature order by i) - 1 as n,
    case when feature = 'chat' then greatest(1, {rows} // 400_000) else greatest(1, {rows} // 1_000_000) end as at_once
  from featured
),
turned as (
  select
    *,
    -- some conversations of a feature go on at once, one turn of each after the other, within five minutes
    (n // (at_once * turns)) * at_once + n % at_once as conversation,
    (n // at_once) % turns as turn
  from seated
)
select
  concat('r', i) as request_id,
  timestamp '2026-07-01' + to_microseconds(cast(i * (91.0 * 86400e6 / {rows}) as bigint)) as ts,
  'openai' as provider,
  case when feature = 'agent' then 'gpt-5' when feature = 'extract' then 'gpt-4.1' else 'gpt-5-mini' end as model,
  feature,
  concat('team-', part % 7) as team,
  concat('u', case when turns > 1 then cast(hash(conversation) % 20000 as bigint) else noise % 20000 end) as user_id,
  case when turns > 1 then concat(feature, conversation) end as session_id,
  feature in ('chat', 'agent') as is_stream,
  tokens.input as input_tokens,
  case when turns > 1 and turn > 0 then (base - step + 64) // 128 * 128 else 0 end as cache_read_tokens,
  0 as cache_write_tokens,
  50 + noise % 400 as output_tokens,
  'success' as status,
  case when noise % 50 = 0 then 'length' else 'stop' end as finish_reason,
  400.0 + noise % 4000 as duration_ms,
  150.0 + noise % 300 as ttft_ms,
  case when feature = 'faq' then concat('p', cast(sqrt(more % 100_000_000) as bigint)) else concat('q', i) end
    as prompt_hash,
  'd' as params_hash,
  concat('a', noise % 3) as response_hash,
  128 as prefix_block_tokens,
  case when turns > 1 then list_transform(range(1, tokens.input // 128 + 1),
    lambda k: case when k <= 6 then concat(feature, k) else concat(feature, conversation, '.', k) end) end
    as prefix_hashes
from (
  select *, case when feature = 'agent' then 500 else 250 end as step,
    case when feature = 'agent' then 2400 + 500 * turn else 900 + 250 * turn end as base
  from turned
) as t,
lateral (select base + noise % 128 as input) as tokens
"""
ASSUME: dict[str, Any] = {
    "skip": {"where": "feature in ('faq', 'classify')", "ttl_s": 86_400},
    "route": {
        "where": "feature in ('classify', 'extract')",
        "to_model": "gpt-5-nano",
        "min_quality": 0.9,
        "effort_days": 0,
    },
    "prefix_cache": {"where": "feature in ('chat', 'agent')", "policy": "history", "lifetime": "long"},
    "trim": {"where": "feature in ('extract', 'agent')", "input_remove_ratio": 0.2, "output_ratio": [0.8, 0.9, 1]},
    "distill": {
        "where": "feature = 'classify'",
        "student": {"input": "0.05", "output": "0.20"},
        "training_usd": 5,
        "hosting_usd_per_hour": 0.001,
        "effort_days": 0,
    },
    "batch_api": {"where": "feature in ('extract', 'classify')", "cache_hit_factor": [0.3, 0.65, 0.98]},
}


def ledger_of(db: Path) -> tf.Ledger:
    """Open a log that is to be planned."""
    import tenfold as tf

    return tf.attribute(tf.open_log(db))


def planned(db: str) -> dict[str, Any]:
    """Plan in a fresh process."""
    import tenfold as tf

    plan = tf.plan(ledger_of(Path(db)), assume=json.loads(Path(db).with_suffix(".json").read_text()))
    return {"levers": len(plan.levers), "saved": plan.joint_all_pusd / max(1, plan.spend_pusd)}


def attributed(db: str) -> dict[str, Any]:
    """Attribute in a fresh process, beyond what starting up takes."""
    from benchmarks.measuring import cpu

    ledger = ledger_of(Path(db))
    return {"pass_s": cpu(lambda: ledger.composition(by=["feature", "is_stream"]))}


def store(rows: int) -> Path:
    """Make the log, with its evals and assumptions beside it."""
    import duckdb

    import tenfold as tf

    db = folder() / f"plan-{rows}.duckdb"
    if db.exists():
        return db
    log, evals = db.with_suffix(".parquet"), db.with_suffix(".csv")
    evals.write_text("feature,model,score\nclassify,gpt-5-nano,0.95\nextract,gpt-5-nano,0.93\n")
    db.with_suffix(".json").write_text(json.dumps({**ASSUME, "route": {**ASSUME["route"], "evals": str(evals)}}))
    with duckdb.connect() as connection:
        connection.execute(f"copy ({_REQUESTS.format(rows=rows)}) to '{log}' (format parquet)")
    tf.load(log, db=db)
    log.unlink()
    return db


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests.

    Returns:
        CPU beside an attribution pass, with peak memory.
    """
    db = str(store(rows))
    found = in_child("benchmarks.plan:planned", db)
    least = in_child("benchmarks.plan:attributed", db)["pass_s"]
    note = f"{found['levers']} levers in the plan, {found['saved']:.0%} saved; three scenarios, two caches replayed"
    return [
        Measured("plan", "judging, replaying, re-pricing and ranking six levers / one attribution pass", found["cpu_s"] / least,
                 None, rows=rows, seconds=found["cpu_s"], peak_mb=found["peak_mb"], note=note)
    ]  # fmt: skip
