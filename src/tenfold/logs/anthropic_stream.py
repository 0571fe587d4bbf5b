"""Anthropic stream events (message_start, message_delta, ...), one a line: a message is what lies between two starts.

The counts of a ``message_delta`` are cumulative: the last value of each field wins, and what a delta leaves out is the
start's. A stream that broke off before its first delta has no count of output: the start's is only a seed.
"""

from __future__ import annotations

from tenfold.logs import anthropic, envelope, sql
from tenfold.logs.base import Detect, Reader, Text, member, usage_sql
from tenfold.store.database import quoted
from tenfold.usage.shapes import ANTHROPIC as SHAPE

_PLAIN = (
    *("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"),
    *("cache_creation", "service_tier", "inference_geo", "speed", "iterations"),
)
_NESTED = {"output_tokens_details": "thinking_tokens", "server_tool_use": "web_search_requests"}
_BESIDE = ("message_stop", "ping", "content_block_start", "content_block_delta", "content_block_stop")

_LISTED = ", ".join(quoted(name) for name in _BESIDE)


def _last(value: str) -> str:
    return f"arg_max({value}, {{line}}) FILTER ({value} IS NOT NULL)"


def _counted(path: str) -> str:
    return _last(f"coalesce({member('usage', path)}, {member('message.usage', path)})")


_USAGE = ", ".join(
    [f"{name} := {_counted(name)}" for name in _PLAIN]
    + [f"{name} := struct_pack({leaf} := {_counted(f'{name}.{leaf}')})" for name, leaf in _NESTED.items()]
)
_HAS_USAGE = "(usage IS NOT NULL OR message.usage IS NOT NULL)"
_FOLDED = f"""
WITH numbered AS (
  SELECT r.*, count(*) FILTER (type = 'message_start') OVER (ORDER BY {{line}}) AS number FROM {{one}} r
)
SELECT coalesce(max({{line}}) FILTER ({_HAS_USAGE}), max({{line}})) AS {{line}},
  bool_or({{repaired}}) AS {{repaired}},
  arg_min(message.id, {{line}}) FILTER (message.id IS NOT NULL) AS id,
  arg_min(message.model, {{line}}) FILTER (message.model IS NOT NULL) AS model,
  {_last("coalesce(delta.stop_reason, message.stop_reason)")} AS stop_reason,
  arg_min("_log", {{line}}) FILTER ("_log" IS NOT NULL) AS "_log",
  bool_or(coalesce(type = 'error', false)) AS has_failed,
  bool_or(coalesce(type = 'message_delta' AND usage.output_tokens IS NOT NULL, false)) AS is_counted,
  CASE WHEN bool_or({_HAS_USAGE}) THEN struct_pack({_USAGE}) END AS usage
FROM numbered GROUP BY number
HAVING NOT bool_and(coalesce(type IN ({_LISTED}), false)) ORDER BY number
"""

# What the blocks say, to the row of their message.
_SAID = f"""
SELECT x.*, t.parts AS parts, t.request AS request FROM ({{reshaped}}) x JOIN (
  SELECT coalesce(max({{line}}) FILTER ({_HAS_USAGE}), max({{line}})) AS {{line}},
    arg_min("_log".request, {{line}}) FILTER ("_log".request IS NOT NULL) AS request,
    to_json(list(struct_pack(delta := delta, content_block := content_block) ORDER BY {{line}})
      FILTER (type IN ('content_block_start', 'content_block_delta'))) AS parts
  FROM (SELECT r.*, count(*) FILTER (type = 'message_start') OVER (ORDER BY {{line}}) AS number FROM {{one}} r)
  GROUP BY number
) t ON t.{{line}} = x.{{line}}
ORDER BY x.{{line}}
"""

ANTHROPIC_STREAM = Reader(
    name="anthropic_stream",
    kinds=("ndjson",),
    one_request="message.id",
    merges="counts are cumulative: the last of each stands, what no delta says is the start's",
    shape=SHAPE,
    usage="r.usage",
    leaves={
        "type": "VARCHAR",
        "message.id": "VARCHAR",
        "message.model": "VARCHAR",
        "message.stop_reason": "VARCHAR",
        "delta.stop_reason": "VARCHAR",
        "error.type": "VARCHAR",
        **anthropic.leaves("usage."),
        **anthropic.leaves("message.usage."),
        **envelope.LEAVES,
    },
    fields={
        **envelope.fields(),
        "request_id": sql.first("r.id", envelope.held("request_id")),
        "parent_id": anthropic.parent("r.usage", "r.id"),
        "provider": "'anthropic'",
        "model": "r.model",
        "region": anthropic.region("r.usage"),
        "service_tier": anthropic.tier("r.usage"),
        "operation": "'messages'",
        "is_stream": "true",
        "status": "CASE WHEN r.has_failed THEN 'error' WHEN NOT r.is_counted THEN 'incomplete' ELSE 'success' END",
        "finish_reason": "r.stop_reason",
        "http_status": envelope.held("http_status"),
        "is_billable": "r.usage IS NOT NULL",
    },
    ts=envelope.TS,
    dedup_key=f"'anthropic|' || {sql.key_part(sql.named('r.id'))}",
    counts={
        "output_tokens": f"CASE WHEN r.is_counted THEN {usage_sql(SHAPE, 'r.usage', SHAPE.counts['output_tokens'])} END"
    },
    detect=Detect(
        values={"type": ("message_start", "message_delta", *_BESIDE)},
        absent=("sessionId",),
        records=(("type", "error"),),
    ),
    flags={**anthropic.flags("r.usage"), "usage_partial": "r.usage IS NOT NULL AND NOT r.is_counted"},
    children=(anthropic.compactions("r.usage", "r.id"),),
    beside=(f"r.type IN ({_LISTED})",),
    reshape=_FOLDED,
    text=Text(
        leaves={
            "_log.request": "JSON",
            **dict.fromkeys(("delta.text", "delta.thinking", "delta.partial_json", "content_block"), "JSON"),
        },
        prompt="r.request",
        params="r.request",
        response="r.parts",
        reshape=_SAID,
        reads_beside=True,
    ),
)
