"""Codex rollouts (``~/.codex/sessions/**/rollout-*.jsonl``) and the events of ``codex exec --json``.

Counts are cumulative in a thread, are written again without a new call, and a fork opens with a copy of its parent's:
a request is what the total grew by. The events of ``codex exec`` bear no times and a thread that is resumed goes on
from a total that its new file does not hold, so they are one row a thread, the largest total known: a later file of the
same thread replaces it.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader
from tenfold.usage.shapes import CODEX as SHAPE

_COUNTS = (
    *("input_tokens", "cached_input_tokens", "cache_write_input_tokens"),
    *("output_tokens", "reasoning_output_tokens", "total_tokens"),
)
_INFO = "payload.info"
_IS_COUNTED = "(r.type = 'event_msg' AND r.payload.type = 'token_count' AND r.payload.info IS NOT NULL)"
_IS_EVENT = f"({_IS_COUNTED} OR (r.type = 'turn.completed' AND r.usage IS NOT NULL))"
_HEADS = "('session_meta', 'thread.started')"
_ID = sql.named("coalesce(payload.id, payload.session_id, thread_id)")
# A copy is written in one go when a thread is forked; a real answer takes longer than this.
_COPY_MS = 1000


def _each(template: str, between: str = ", ") -> str:
    return between.join(template.replace("COUNT", name) for name in _COUNTS)


_NUMBERS = ", ".join(f"{sql.braced(sql.count(f't_{name}'))} AS n_{name}, l_{name}, t_{name}" for name in _COUNTS)
_USED = (
    "CASE WHEN prior IS NULL OR fell OR NOT has_total THEN CASE WHEN has_last THEN l_COUNT ELSE t_COUNT END "
    "WHEN n_COUNT IS NULL THEN t_COUNT ELSE (n_COUNT - coalesce(p_COUNT, 0))::VARCHAR END AS COUNT"
)
_WHOLE = sql.braced(sql.sum_of("list(struct_pack(value := COUNT))", "value", none="NULL"))
_REQUESTS = f"""
WITH lines AS (
  SELECT r.*, TRY_CAST({sql.text('r."timestamp"')} AS TIMESTAMP) AS moment,
    first_value({sql.text('r."timestamp"')}) OVER (ORDER BY {{line}}) AS begun
  FROM {{one}} r
),
heads AS (
  SELECT {{line}} AS head, {_ID} AS id, moment AS head_at,
    coalesce(payload.forked_from_id, payload.parent_thread_id,
      payload.source->>'$.subagent.thread_spawn.parent_thread_id') AS parent,
    lag({_ID}) OVER (ORDER BY {{line}}) AS id_before,
    lag({{line}}) OVER (ORDER BY {{line}}) AS head_before
  FROM lines WHERE type IN {_HEADS}
),
ancestors AS (
  SELECT head FROM heads h WHERE coalesce(head_before = head - 1 AND id_before <> id, false)
    OR EXISTS (SELECT 1 FROM heads e WHERE e.head < h.head AND e.parent = h.id AND h.id <> e.id)
),
own AS (
  SELECT *, parent IS NOT NULL OR head + 1 IN (SELECT head FROM ancestors) AS is_fork
  FROM heads ANTI JOIN ancestors USING (head)
),
threads AS (
  SELECT l.*, last_value(o.head IGNORE NULLS) OVER so_far AS thread_head
  FROM lines l LEFT JOIN own o ON o.head = l.{{line}} WINDOW so_far AS (ORDER BY l.{{line}})
),
carried AS (
  SELECT t.*, o.id AS thread, o.is_fork, o.head_at,
    last_value(coalesce({_INFO}.model, CASE WHEN type = 'turn_context' THEN payload.model END) IGNORE NULLS)
      OVER so_far AS model,
    last_value(CASE WHEN type = 'turn_context' THEN payload.service_tier END IGNORE NULLS) OVER so_far AS tier,
    last_value(CASE WHEN type IN {_HEADS} THEN payload.model_provider END IGNORE NULLS) OVER so_far AS provider,
    last_value(CASE WHEN type IN {_HEADS} THEN payload.cli_version END IGNORE NULLS) OVER so_far AS version,
    last_value(CASE WHEN type IN {_HEADS} OR type = 'turn_context' THEN payload.cwd END IGNORE NULLS)
      OVER so_far AS folder
  FROM threads t LEFT JOIN own o ON o.head = t.thread_head
  WINDOW so_far AS (PARTITION BY thread_head ORDER BY t.{{line}})
),
events AS (
  SELECT {{line}}, {{repaired}}, "timestamp", begun, moment, thread_head, thread, is_fork, head_at, model, tier,
    provider, version, folder, type = 'turn.completed' AS is_exec,
    {_INFO}.total_token_usage IS NOT NULL OR usage IS NOT NULL AS has_total,
    {_INFO}.last_token_usage IS NOT NULL AS has_last,
    {_each(f"coalesce({_INFO}.total_token_usage.COUNT, usage.COUNT)::VARCHAR AS t_COUNT")},
    {_each(f"{_INFO}.last_token_usage.COUNT::VARCHAR AS l_COUNT")}
  FROM carried r WHERE {_IS_EVENT}
),
counted AS (SELECT * EXCLUDE ({_each("l_COUNT, t_COUNT")}), {_NUMBERS} FROM events),
chained AS (
  SELECT *, {_each("lag(n_COUNT IGNORE NULLS) OVER by_line AS p_COUNT")},
    max(CASE WHEN has_total THEN {{line}} END)
      OVER (by_line ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS prior,
    date_diff('millisecond', coalesce(lag(moment) OVER by_line, head_at), moment) AS step_ms
  FROM counted WINDOW by_line AS (PARTITION BY thread_head ORDER BY {{line}})
),
judged AS (
  SELECT *, {_each("coalesce(n_COUNT < p_COUNT, false)", " OR ")} AS fell,
    prior IS NOT NULL AND has_total AND {_each("n_COUNT IS NOT DISTINCT FROM p_COUNT", " AND ")} AS is_repeat,
    coalesce(is_fork, false) AND bool_and(coalesce(moment < head_at OR step_ms <= {_COPY_MS}, false))
      OVER (PARTITION BY thread_head ORDER BY {{line}}) AS is_copy
  FROM chained
),
used AS (
  SELECT * EXCLUDE ({_each("l_COUNT, n_COUNT, p_COUNT")}), {_each(_USED)}
  FROM judged WHERE NOT is_repeat AND NOT is_copy
)
SELECT {{line}}, {{repaired}}, "timestamp", begun, thread, model, tier, provider, version, folder, is_exec,
  row_number() OVER (PARTITION BY thread_head ORDER BY {{line}}) AS number,
  CASE WHEN has_total THEN concat_ws(',', {_each("coalesce(t_COUNT, '')")}) ELSE 'at ' || "timestamp"::VARCHAR END
    AS told,
  struct_pack({_each("COUNT := COUNT")}) AS usage
FROM used WHERE NOT is_exec AND NOT coalesce(input_tokens = '0' AND output_tokens = '0', false)
UNION ALL
SELECT max({{line}}), bool_or({{repaired}}), any_value("timestamp"), any_value(begun), any_value(thread), last(model),
  last(tier), last(provider), last(version), last(folder), true, 1, 'thread',
  struct_pack({_each(f"COUNT := {_WHOLE}")})
FROM used WHERE is_exec AND NOT coalesce(input_tokens = '0' AND output_tokens = '0', false) GROUP BY thread_head
ORDER BY {{line}}
"""
_THREAD = "coalesce(r.thread, r.begun)"

CODEX = Reader(
    name="codex",
    kinds=("ndjson",),
    one_request="thread and its running total; of codex exec the thread",
    merges="totals are differenced; one that is written again, or copied into a fork, counts once",
    unsaid=("--set model=NAME (codex exec)",),
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "timestamp": "JSON",
        "type": "VARCHAR",
        "thread_id": "VARCHAR",
        "payload.type": "VARCHAR",
        "payload.id": "VARCHAR",
        "payload.session_id": "VARCHAR",
        "payload.forked_from_id": "VARCHAR",
        "payload.parent_thread_id": "VARCHAR",
        "payload.source": "JSON",
        "payload.model": "VARCHAR",
        "payload.model_provider": "VARCHAR",
        "payload.service_tier": "VARCHAR",
        "payload.cli_version": "VARCHAR",
        "payload.cwd": "VARCHAR",
        "payload.info.model": "VARCHAR",
        **{f"payload.info.last_token_usage.{name}": "JSON" for name in _COUNTS},
        **{f"payload.info.total_token_usage.{name}": "JSON" for name in _COUNTS},
        **{f"usage.{name}": "JSON" for name in _COUNTS},
    },
    fields={
        "request_id": f"{_THREAD} || '#' || r.number",
        "session_id": "r.thread",
        "project": "nullif(regexp_extract(r.folder, '[^/\\\\]+$'), '')",
        "client": "'codex' || coalesce('/' || r.version, '')",
        "provider": "coalesce(r.provider, 'openai')",
        "model": "r.model",
        "service_tier": "r.tier",
        "operation": "'responses'",
        "status": "'success'",
    },
    ts=sql.text('r."timestamp"'),
    dedup_key=f"CASE WHEN r.is_exec THEN 'codex_exec|' ELSE 'codex|' END || {sql.key_part(_THREAD)} || '|' || r.told",
    detect=Detect(
        keys=(("timestamp", "type", "payload"),),
        values={"type": ("session_meta", "turn_context", "thread.started", "turn.completed")},
        absent=("sessionId",),
    ),
    beside=(
        f"r.payload IS NOT NULL AND r.type NOT IN ('session_meta', 'turn_context') AND {_IS_COUNTED} IS NOT TRUE",
        "r.type = 'turn.completed' AND r.usage IS NULL",
        "r.type IN ('turn.started', 'turn.failed', 'item.started', 'item.updated', 'item.completed', 'error')",
    ),
    context="r.type IN ('session_meta', 'turn_context', 'thread.started')",
    reshape=_REQUESTS,
)
