"""Claude Code sessions (``~/.claude/projects/**/*.jsonl``): one line a content block, each with the usage so far.

One message is several lines whose output grows; a sidechain (a subagent) may replay its parent's messages, and a
resumed session copies them. The fullest line of a message is its request.
"""

from __future__ import annotations

from tenfold.logs import anthropic, sql
from tenfold.logs.base import Detect, Reader, Text, usage_sql
from tenfold.store.database import quoted
from tenfold.usage.shapes import ANTHROPIC as SHAPE

_USAGE = "r.message.usage"
# Lines without a session id that belong to one all the same.
_OTHER_LINES = ("summary", "file-history-snapshot", "queue-operation", "custom-title", "last-prompt")
_LISTED = ", ".join(quoted(name) for name in _OTHER_LINES)
_IS_OTHER = (
    f"{_USAGE} IS NULL AND r.usage IS NULL AND r.type <> 'assistant' AND "
    f'(r."sessionId" IS NOT NULL OR r."leafUuid" IS NOT NULL OR r.type IN ({_LISTED}))'
)
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_TEXTS = [sql.text(f"{_USAGE}.{name}") for name in _COUNTS]
_IS_ZERO = " AND ".join(f"coalesce({text}, '0') IN ('0', '0.0')" for text in _TEXTS)
_ANY = " OR ".join(f"{text} IS NOT NULL" for text in _TEXTS)
_SIZE = sql.braced(" + ".join(f"coalesce({sql.count(text)}, 0)" for text in _TEXTS))

# A message of the main chain under a second request id is another request; a line without one, and a sidechain's
# under an id of its own, is the message again.
_FOLDED = f"""
WITH lines AS (
  SELECT r.*, {sql.named("r.message.id")} AS id, {sql.named('r."requestId"')} AS request,
    coalesce({sql.text('r."isSidechain"')} = 'true', false) AS is_side, {_SIZE} AS size
  FROM {{one}} r
),
main AS (
  SELECT id, request, row_number() OVER (PARTITION BY id ORDER BY min({{line}})) AS number
  FROM lines WHERE id IS NOT NULL AND request IS NOT NULL AND NOT is_side GROUP BY id, request
),
grouped AS (
  SELECT l.*, coalesce(m.number, 1) AS number, CASE WHEN l.id IS NULL THEN l.{{line}} END AS alone
  FROM lines l LEFT JOIN main m ON m.id = l.id AND m.request = l.request
),
ranked AS (
  SELECT *, row_number() OVER (one_message ORDER BY size DESC, is_side, {{line}} DESC) AS rank,
    first_value("timestamp") OVER (one_message ORDER BY is_side, {{line}}) AS started,
    last_value(message.stop_reason IGNORE NULLS) OVER (one_message ORDER BY {{line}}
      ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS stop
  FROM grouped WINDOW one_message AS (PARTITION BY id, number, alone, message.model)
)
SELECT * FROM ranked WHERE rank = 1 ORDER BY {{line}}
"""
# A message's blocks stand on lines of their own; a replay says them again.
_SAID = """
SELECT x.*, t.parts AS parts FROM ({reshaped}) x LEFT JOIN (
  SELECT id, model, to_json(list(content ORDER BY line)) AS parts FROM (
    SELECT r.message.id AS id, r.message.model AS model, r.message.content AS content, min(r.{line}) AS line
    FROM {one} r WHERE r.message.content IS NOT NULL AND r.message.id IS NOT NULL GROUP BY ALL
  ) GROUP BY ALL
) t ON t.id = x.id AND t.model IS NOT DISTINCT FROM x.message.model
ORDER BY x.{line}
"""
_IS_OWN = "starts_with(r.id, 'msg_')"
_KEY = (
    f"CASE WHEN {_IS_OWN} THEN 'anthropic|' ELSE 'claude_code|' END || {sql.key_part('r.id')} || "
    f"CASE WHEN r.request IS NOT NULL AND (r.number > 1 OR NOT {_IS_OWN}) THEN '|' || {sql.key_part('r.request')} "
    "ELSE '' END"
)
# Written before the answer came: the stream's first count of output, never followed by another.
_IS_SEED = f"(r.stop IS NULL AND {_TEXTS[-1]} = '1')"

CLAUDE_CODE = Reader(
    name="claude_code",
    kinds=("ndjson",),
    one_request="message.id, and requestId where the id is not Anthropic's own",
    merges="the fullest line of a message stands, the main chain's before a sidechain's",
    shape=SHAPE,
    usage=_USAGE,
    leaves={
        "type": "VARCHAR",
        "sessionId": "VARCHAR",
        "leafUuid": "VARCHAR",
        "timestamp": "JSON",
        "cwd": "VARCHAR",
        "version": "VARCHAR",
        "isSidechain": "JSON",
        "requestId": "VARCHAR",
        "costUSD": "JSON",
        "usage.input_tokens": "JSON",
        "message.id": "VARCHAR",
        "message.model": "VARCHAR",
        "message.stop_reason": "VARCHAR",
        **anthropic.leaves("message.usage."),
    },
    fields={
        "request_id": "r.id",
        "parent_id": anthropic.parent(_USAGE, "r.id"),
        "session_id": 'r."sessionId"',
        # The folder's name, as Claude Code itself groups sessions; its path may name a person.
        "project": "nullif(regexp_extract(r.cwd, '[^/\\\\]+$'), '')",
        "client": "'claude-code' || coalesce('/' || r.version, '')",
        "provider": "CASE WHEN r.id LIKE 'msg\\_bdrk\\_%' ESCAPE '\\' OR r.message.model LIKE '%anthropic.claude%' "
        "THEN 'bedrock' WHEN r.id LIKE 'msg\\_vrtx\\_%' ESCAPE '\\' THEN 'vertex' "
        "WHEN starts_with(r.message.model, 'claude') THEN 'anthropic' END",
        "model": "r.message.model",
        "region": anthropic.region(_USAGE),
        "service_tier": anthropic.tier(_USAGE),
        "operation": "'messages'",
        "status": "'success'",
        "finish_reason": "r.stop",
        "cost_logged_usd": sql.text('r."costUSD"'),
    },
    ts=sql.text("r.started"),
    dedup_key=_KEY,
    counts={
        "output_tokens": f"CASE WHEN NOT {_IS_SEED} THEN {usage_sql(SHAPE, _USAGE, SHAPE.counts['output_tokens'])} END"
    },
    detect=Detect(
        keys=(
            ("sessionId", "message.usage"),
            ("requestId", "message.usage"),
            ("timestamp", "message.usage"),
            ("sessionId", "type"),
            ("type", "leafUuid"),
        ),
        values={"type": _OTHER_LINES},
        absent=("usage", "payload"),
    ),
    flags={**anthropic.flags(_USAGE), "usage_partial": _IS_SEED},
    children=(anthropic.compactions(_USAGE, "r.id"),),
    beside=(
        _IS_OTHER,
        # Written by the program itself: an error shown, a message interrupted.
        "r.message.model = '<synthetic>'",
        f"{_IS_ZERO} AND ({_ANY})",
    ),
    reshape=_FOLDED,
    text=Text(leaves={"message.content": "JSON"}, response="r.parts", reshape=_SAID),
)
