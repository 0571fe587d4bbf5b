"""Langfuse observations: the UI's export (CSV, JSON, JSON lines, one trace's JSON) and the blob storage export.

Only generations and embeddings are calls: agents, chains and spans repeat what was used below them, and so does a
generation above another one (two instrumentations of one call), however many observations stand between. The usage map
is either disjoint (each detail taken out of its total) or has details as parts of their totals: the reported total
decides, for each side.
"""

from __future__ import annotations

from tenfold.logs import sql
from tenfold.logs.base import BESIDE, Detect, Reader, Text, identifier
from tenfold.logs.text import forms
from tenfold.usage.shapes import OPENAI_CACHE_MINIMUM, TENFOLD

_PLAIN = {
    "input": ("input", "input_tokens", "prompt_tokens", "inputtokens", "prompttokens"),
    "output": ("output", "output_tokens", "completion_tokens", "outputtokens", "completiontokens"),
    "total": ("total", "total_tokens", "totaltokens"),
}
_KEY = "lower(e.key)"
_BESIDE_PLAIN = f"{_KEY} NOT IN ({', '.join(repr(name) for names in _PLAIN.values() for name in names)})"
_INPUT = f"{_BESIDE_PLAIN} AND regexp_matches({_KEY}, '^(input|prompt|cache)')"
_OUTPUT = f"{_BESIDE_PLAIN} AND regexp_matches({_KEY}, '^(output|completion)')"
_WRITE = f"{_INPUT} AND regexp_matches({_KEY}, 'creation|cache_write|cachewrite|ephemeral')"
_READ = f"{_INPUT} AND regexp_matches({_KEY}, 'cache') AND NOT regexp_matches({_KEY}, 'creation|write')"
# Details by column; what is cached and of a medium is no detail that any instrumentation writes.
_DETAILS = {
    "cache_read_tokens": _READ,
    "cache_write_tokens": _WRITE,
    "cache_write_long_tokens": f"{_WRITE} AND regexp_matches({_KEY}, '1h')",
    "input_audio_tokens": f"{_INPUT} AND regexp_matches({_KEY}, 'audio') AND NOT regexp_matches({_KEY}, 'cache')",
    "input_image_tokens": f"{_INPUT} AND regexp_matches({_KEY}, 'image') AND NOT regexp_matches({_KEY}, 'cache')",
    "reasoning_tokens": f"{_OUTPUT} AND regexp_matches({_KEY}, 'reasoning|thinking|thought')",
    "output_audio_tokens": f"{_OUTPUT} AND regexp_matches({_KEY}, 'audio')",
    "output_image_tokens": f"{_OUTPUT} AND regexp_matches({_KEY}, 'image')",
}
_KNOWN_ZERO = ("cache_read_tokens", "cache_write_tokens")
# OpenAI caches no fewer tokens: an input below it has no cached part, whatever the map leaves out.
_TOO_SMALL = (
    f"c.n_input < {OPENAI_CACHE_MINIMUM} AND regexp_matches(coalesce(c.model, c.provided_model_name), '^(gpt-|o[0-9])')"
)


def _held(condition: str) -> str:
    return sql.escaped(sql.sum_of(f"list_filter(used, lambda e: {condition})", "value", none="NULL"))


def _plain(name: str, *legacy: str) -> str:
    """Take a side's own count; the older columns of one count a side where there is no map."""
    names = ", ".join(repr(key) for key in _PLAIN[name])
    own = f"list_filter(used, lambda e: {_KEY} IN ({names}))[1].value::VARCHAR"
    old = sql.first(*(sql.text(identifier(column)) for column in legacy))
    return sql.escaped(f"coalesce({own}, CASE WHEN len(used) = 0 AND legacy THEN {old} END)")


def _both(kind: str) -> str:
    """Add a side's details to its own count."""
    text = sql.sum_of(f"[{{'value': {kind}_plain}}, {{'value': {kind}_detail}}]", "value", none="NULL")
    return sql.escaped(f"({text})")


def _number(text: str) -> str:
    return sql.escaped(f"coalesce({sql.count(text)}, 0)")


_LEGACY = {
    "input": ("inputUsage", "promptTokens"),
    "output": ("outputUsage", "completionTokens"),
    "total": ("totalUsage", "totalTokens"),
}
_LEGACY_TEXTS = [sql.text(identifier(name)) for names in _LEGACY.values() for name in names]
_NO_ZERO = " OR ".join(f"{text} NOT IN ('0', '')" for text in _LEGACY_TEXTS)
_SUMS = ", ".join(f"{_held(condition)} AS {name}" for name, condition in _DETAILS.items())
_ZEROS = ", ".join(
    f"coalesce(c.{name}, CASE WHEN c.has_details OR {sql.escaped(_TOO_SMALL)} THEN '0' END) AS {name}"
    for name in _KNOWN_ZERO
)
_UPDATED = sql.escaped(
    sql.time(sql.first(sql.text('"updatedAt"'), sql.text("updated_at"), sql.text("event_ts"), "NULL"))
)
_PARENT = sql.first('"parentObservationId"', "parent_observation_id")
_ID = "coalesce(nullif(id, ''), {line}::VARCHAR)"
_IS_CALL = "upper(type) IN ('GENERATION', 'EMBEDDING')"
_RESHAPE = f"""
WITH RECURSIVE known AS (
  SELECT *, coalesce(map_entries("usageDetails"), map_entries(usage_details), []) AS used, {_PARENT} AS parent,
    coalesce({_NO_ZERO}, false) AS legacy, coalesce({_IS_CALL}, false) AS is_call,
    row_number() OVER (PARTITION BY {_ID} ORDER BY {_UPDATED} DESC NULLS LAST, {{line}} DESC) = 1 AS is_last
  FROM {{one}}
), taken AS (
  SELECT *, {_plain("input", *_LEGACY["input"])} AS input_plain, {_plain("output", *_LEGACY["output"])} AS output_plain,
    {_plain("total", *_LEGACY["total"])} AS total_tokens, {_held(_INPUT)} AS input_detail,
    {_held(_OUTPUT)} AS output_detail, {_SUMS},
    len(list_filter(used, lambda e: {_INPUT} OR {_OUTPUT})) > 0 AS has_details,
    len(list_filter(used, lambda e: regexp_matches({_KEY}, '_details\\.'))) > 0 AS named_parts,
    len(list_filter(used, lambda e: {_BESIDE_PLAIN} AND NOT ({_INPUT}) AND NOT ({_OUTPUT})
      AND e.value::VARCHAR NOT IN ('0', 'null'))) > 0 AS has_other
  FROM known
), summed AS (
  SELECT *, {_number("total_tokens")} AS t, {_number("input_plain")} AS i, {_number("input_detail")} AS i_details,
    {_number("output_plain")} AS o, {_number("output_detail")} AS o_details
  FROM taken
), told AS (
  SELECT *, CASE WHEN total_tokens IS NULL THEN NULL WHEN t = i + i_details + o + o_details THEN [true, true]
    WHEN t = i + o THEN [false, false] WHEN t = i + i_details + o THEN [true, false]
    WHEN t = i + o + o_details THEN [false, true] END AS proven
  FROM summed
), whole AS (
  SELECT * REPLACE (coalesce(proven, [NOT named_parts, NOT named_parts]) AS proven),
    proven IS NULL AND has_details AS unproven
  FROM told
), counted AS (
  SELECT *, CASE WHEN proven[1] AND (input_plain IS NOT NULL OR NOT unproven) THEN {_both("input")}
    ELSE input_plain END AS input_tokens,
    CASE WHEN proven[2] AND (output_plain IS NOT NULL OR NOT unproven) THEN {_both("output")}
    ELSE output_plain END AS output_tokens
  FROM whole
), sized AS (
  SELECT *, {sql.escaped(sql.count("input_tokens"))} AS n_input, {sql.escaped(sql.count("output_tokens"))} AS n_output
  FROM counted
), links AS (
  SELECT id, parent, n_input, n_output, is_call AND (n_input IS NOT NULL OR n_output IS NOT NULL) AS is_used
  FROM sized WHERE is_last AND id IS NOT NULL
), above AS (
  SELECT id AS call, parent AS place FROM links WHERE is_used AND parent IS NOT NULL
  UNION
  SELECT a.call, l.parent FROM above a JOIN links l ON l.id = a.place WHERE l.parent IS NOT NULL
), rollups AS (
  -- what stands above itself is no tree, and nothing in it repeats anything
  SELECT DISTINCT place AS id FROM above WHERE place NOT IN (SELECT call FROM above WHERE call = place)
), differing AS (
  SELECT o.id FROM links o JOIN above a ON a.place = o.id JOIN links l ON l.id = a.call
  WHERE l.id NOT IN (SELECT id FROM rollups) GROUP BY o.id, o.n_input, o.n_output
  HAVING coalesce(o.n_input <> sum(l.n_input) OR o.n_output <> sum(l.n_output), false)
)
SELECT c.* REPLACE ({_ZEROS}),
  c.id IN (SELECT a.call FROM above a JOIN differing d ON d.id = a.place) AS rollup_differs,
  CASE WHEN NOT is_call THEN 'ignored' WHEN NOT is_last OR c.id IN (FROM rollups) THEN 'merged' END AS {BESIDE}
FROM sized c
ORDER BY c.{{line}}
"""

_TYPE = "upper(r.type)"
_FAILED = "upper(r.level) = 'ERROR'"
_STARTED = sql.first(sql.text('r."startTime"'), sql.text("r.start_time"))
_ENDED = sql.first(sql.text('r."endTime"'), sql.text("r.end_time"))
_FIRST_TOKEN = sql.first(sql.text('r."completionStartTime"'), sql.text("r.completion_start_time"))
_ATTRIBUTES = "r.metadata.attributes"

LANGFUSE = Reader(
    name="langfuse",
    kinds=("ndjson", "csv", "parquet"),
    one_request="id of the observation",
    merges="the last version stands; observations above others with usage are left out",
    unsaid=("--set provider=NAME",),
    convention="disjoint or inclusive, by the reported total",
    shape=TENFOLD,
    usage="r",
    leaves={
        **dict.fromkeys(("id", "type", "level", "environment", "model", "provided_model_name", "version"), "VARCHAR"),
        **dict.fromkeys(("traceId", "trace_id", "projectId", "project_id", "sessionId", "session_id"), "VARCHAR"),
        **dict.fromkeys(("userId", "user_id", "parentObservationId", "parent_observation_id"), "VARCHAR"),
        **dict.fromkeys(("startTime", "endTime", "completionStartTime", "updatedAt"), "JSON"),
        **dict.fromkeys(("start_time", "end_time", "completion_start_time", "updated_at", "event_ts"), "JSON"),
        **dict.fromkeys(("inputUsage", "outputUsage", "totalUsage", "totalCost", "total_cost"), "JSON"),
        **dict.fromkeys(("promptTokens", "completionTokens", "totalTokens"), "JSON"),
        **dict.fromkeys(("usageDetails", "usage_details"), "MAP(VARCHAR, JSON)"),
        "costDetails.total": "JSON",
        "cost_details.total": "JSON",
        **dict.fromkeys(("trace.userId", "trace.sessionId", "trace.user_id", "trace.session_id"), "VARCHAR"),
        **dict.fromkeys(("metadata.team", "metadata.feature", "metadata.ls_provider"), "VARCHAR"),
        "metadata.attributes.gen_ai\\.provider\\.name": "VARCHAR",
        "metadata.attributes.gen_ai\\.system": "VARCHAR",
    },
    unpacked=("usageDetails", "usage_details", "costDetails", "cost_details", "trace", "metadata"),
    fields={
        "request_id": "r.id",
        "parent_id": "NULL",
        "trace_id": sql.first('r."traceId"', "r.trace_id"),
        "session_id": sql.first('r."sessionId"', "r.session_id", 'r.trace."sessionId"', "r.trace.session_id"),
        "project": sql.first('r."projectId"', "r.project_id"),
        "team": "r.metadata.team",
        "feature": "r.metadata.feature",
        "environment": "r.environment",
        "user_id": sql.first('r."userId"', "r.user_id", 'r.trace."userId"', "r.trace.user_id"),
        # Who bills is not a column of an observation; what instrumentation left in the metadata says it.
        "provider": sql.words(
            sql.first(
                f'{_ATTRIBUTES}."gen_ai.provider.name"', f'{_ATTRIBUTES}."gen_ai.system"', "r.metadata.ls_provider"
            ),
            {"google_vertexai": "vertex", "amazon_bedrock": "bedrock"},
        ),
        "model": sql.first("r.model", "r.provided_model_name"),
        "operation": f"CASE {_TYPE} WHEN 'EMBEDDING' THEN 'embeddings' ELSE 'chat' END",
        "duration_ms": sql.milliseconds(_STARTED, _ENDED),
        "ttft_ms": sql.milliseconds(_STARTED, _FIRST_TOKEN),
        "status": f"CASE WHEN {_FAILED} THEN 'error' ELSE 'success' END",
        "is_billable": f"NOT (coalesce({_FAILED}, false) AND r.input_tokens IS NULL AND r.output_tokens IS NULL)",
        "cost_logged_usd": sql.text(
            sql.first('r."totalCost"', "r.total_cost", 'r."costDetails".total', "r.cost_details.total")
        ),
    },
    ts=_STARTED,
    dedup_key=f"'langfuse|' || {sql.key_part(sql.named('r.id'))}",
    counts={name: f"r.{name}" for name in ("input_tokens", "output_tokens", *_DETAILS)}
    | dict.fromkeys(
        (name for name in TENFOLD.counts if name not in {"input_tokens", "output_tokens", *_DETAILS}), "NULL"
    ),
    total="r.total_tokens",
    flags={
        "rollup_differs": "r.rollup_differs",
        "convention_unproven": "r.unproven",
        "unknown_usage_key": "r.has_other",
    },
    zone="UTC",
    detect=Detect(
        keys=(
            ("traceId", "parentObservationId", "startTime"),
            ("traceId", "type", "usageDetails"),
            ("trace_id", "parent_observation_id", "start_time"),
            ("trace_id", "type", "usage_details"),
        ),
        records=(("type", "startTime"), ("type", "start_time")),
    ),
    reshape=_RESHAPE,
    text=Text(
        leaves=dict.fromkeys(("input", "output", "modelParameters", "model_parameters"), "JSON"),
        prompt=forms.filled("r.input"),
        params=forms.filled('r."modelParameters"', "r.model_parameters"),
        response=forms.filled("r.output"),
    ),
)
