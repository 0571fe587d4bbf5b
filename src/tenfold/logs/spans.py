"""What span readers share: attribute names of OpenTelemetry GenAI and OpenInference, and which spans count.

Inference and embeddings spans are calls. Agents, workflows, chains and tools repeat what their children used, and so
does any span above another one with usage: two instrumentations of one call, or an agent that says no more.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import BESIDE
from tenfold.store.database import quoted
from tenfold.usage import attributes
from tenfold.usage.shape import parts_of
from tenfold.usage.shapes import OPENAI_CACHE_MINIMUM, TENFOLD

_TEXTS = {
    "total_tokens": attributes.TOTAL,
    "kind": ("openinference.span.kind",),
    "operation": ("gen_ai.operation.name",),
    "provider": ("gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system"),
    "model": ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name"),
    "model_requested": ("gen_ai.request.model",),
    "response_id": ("gen_ai.response.id", "gen_ai.request.id"),
    "finish_reason": ("gen_ai.response.finish_reasons", "llm.finish_reason"),
    "ttft_s": ("gen_ai.response.time_to_first_chunk", "gen_ai.latency.time_to_first_token"),
    "queue_s": ("gen_ai.latency.time_in_queue",),  # vLLM
    "is_stream": ("gen_ai.request.stream", "llm.is_streaming"),
    "service_tier": attributes.SERVICE_TIER,
    "session_id": ("gen_ai.conversation.id", "session.id"),
    "user_id": ("user.id", "enduser.id"),
    "error_type": ("error.type",),
    "cost": ("llm.cost.total", "gen_ai.usage.cost", "operation.cost"),
    "metadata": ("metadata",),
}
# Column -> attributes of a span.
NAMES: dict[str, tuple[str, ...]] = {**attributes.COUNTS, **_TEXTS}
# Column -> attributes of the resource (the process) that made it.
OF_RESOURCE = {
    "service": ("service.name",),
    "service_version": ("service.version",),
    "environment": ("deployment.environment.name", "deployment.environment"),
    "replica": ("service.instance.id",),
}
_CALLS = ("chat", "text_completion", "completion", "generate_content", "embeddings", "embedding", "rerank", "responses")
_ROLLUPS = ("invoke_agent", "create_agent", "invoke_workflow", "execute_tool", "plan")


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(quoted(word) for word in words)


_HAS_USAGE = "(input_tokens IS NOT NULL OR output_tokens IS NOT NULL)"
_IS_CALL = (
    f"coalesce(CASE WHEN lower(operation) IN ({_listed(_ROLLUPS)}) THEN false "
    f"WHEN lower(operation) IN ({_listed(_CALLS)}) THEN true "
    f"WHEN kind IS NOT NULL THEN upper(kind) IN ('LLM', 'EMBEDDING', 'RERANKER') ELSE {_HAS_USAGE} END, false)"
)
_SAID = " OR ".join(f"{name} IS NOT NULL" for name in parts_of(attributes.COUNTS))
_TOO_SMALL = (
    f"contains(lower(provider), 'openai') AND {sql.escaped(sql.count('input_tokens'))} < {OPENAI_CACHE_MINIMUM}"
)
_ZEROS = ", ".join(
    f"coalesce({name}, CASE WHEN ({_SAID}) OR ({_TOO_SMALL}) THEN '0' END) AS {name}"
    for name in ("cache_read_tokens", "cache_write_tokens")
)


def reshape(flat: str) -> str:
    """Write the reshaping of a file's spans: which are calls, which only repeat what is below them.

    Args:
        flat: CTEs, the last one `flat`: a row a span with `trace_id`, `span_id`, `parent_span_id` and ``NAMES``.

    Returns:
        SQL for ``Reader.reshape``.
    """
    return f"""
WITH RECURSIVE {flat}, told AS (
  SELECT *, {_IS_CALL} AS is_call FROM flat
), above AS (
  SELECT trace_id, parent_span_id AS span_id FROM told
  WHERE is_call AND {_HAS_USAGE} AND nullif(parent_span_id, '') <> span_id
  UNION
  SELECT a.trace_id, t.parent_span_id FROM above a JOIN told t USING (trace_id, span_id)
  WHERE nullif(t.parent_span_id, '') IS NOT NULL
)
SELECT t.* REPLACE ({_ZEROS}), CASE WHEN NOT is_call THEN 'ignored'
  WHEN EXISTS (SELECT 1 FROM above a WHERE a.trace_id = t.trace_id AND a.span_id = t.span_id) THEN 'merged'
  END AS {BESIDE}
FROM told t
ORDER BY t.{{line}}, t.started, t.span_id
"""


STARTED = "r.started"
COUNT_FIELDS = {name: f"r.{name}" if name in attributes.COUNTS else "NULL" for name in TENFOLD.counts}
_FAILED = "(r.error_type IS NOT NULL OR r.status_code IN ('2', 'STATUS_CODE_ERROR', 'ERROR'))"
_OPENED = "CASE WHEN json_valid(r.metadata) THEN r.metadata::JSON END"


def _milliseconds(seconds: str) -> str:
    return f"TRY_CAST({seconds} AS DOUBLE) * 1000"


def fields() -> dict[str, str]:
    """Give the requests columns of a span.

    Returns:
        Column -> SQL over ``r``.
    """
    return {
        "request_id": sql.first("r.response_id", "r.span_id"),
        "trace_id": "r.trace_id",
        "session_id": "r.session_id",
        "duration_ms": sql.milliseconds("r.started", "r.ended"),
        "ttft_ms": _milliseconds("r.ttft_s"),
        "queue_ms": _milliseconds("r.queue_s"),
        "team": f"{_OPENED}->>'$.team'",
        "feature": f"{_OPENED}->>'$.feature'",
        "environment": "r.environment",
        "user_id": "r.user_id",
        "client": "r.service || coalesce(' ' || r.service_version, '')",
        # vLLM's own spans name no provider, and no other program measures a request's time in its queue.
        "provider": "coalesce(r.provider, CASE WHEN r.queue_s IS NOT NULL THEN 'self-hosted' END)",
        "replica": "CASE WHEN r.queue_s IS NOT NULL THEN r.replica END",
        "model": "r.model",
        "model_requested": "r.model_requested",
        "service_tier": "r.service_tier",
        "operation": "coalesce(r.operation, CASE upper(r.kind) WHEN 'EMBEDDING' THEN 'embeddings' "
        "WHEN 'RERANKER' THEN 'rerank' ELSE 'chat' END)",
        "is_stream": "lower(r.is_stream)",
        "status": f"CASE WHEN coalesce({_FAILED}, false) THEN 'error' ELSE 'success' END",
        "finish_reason": "r.finish_reason",
        "is_billable": f"NOT (coalesce({_FAILED}, false) AND r.input_tokens IS NULL AND r.output_tokens IS NULL)",
        "cost_logged_usd": "r.cost",
    }


# A span is one call, whatever id the provider gave its answer: that is the request's id, not its key.
DEDUP_KEY = f"'otel|' || {sql.key_part(sql.named('r.trace_id'))} || '|' || {sql.key_part(sql.named('r.span_id'))}"
