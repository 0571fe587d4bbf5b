"""Qwen-Bailian's traces: lengths, offsets in s, turns of chats and the chain of 16-token prefix blocks."""

from __future__ import annotations

from tenfold.logs import sql, traces
from tenfold.logs.base import Detect, Reader

# A chat_id is one turn, its parent the turn before: a session is what goes back to the same first turn.
_SESSIONS = """
WITH RECURSIVE turns AS (
  SELECT DISTINCT chat_id, CASE WHEN parent_chat_id NOT IN ('-1', '', chat_id) THEN parent_chat_id END AS parent
  FROM {one} r WHERE chat_id IS NOT NULL
),
walk AS (
  SELECT chat_id, coalesce(parent, chat_id) AS session FROM turns
  WHERE parent IS NULL OR parent NOT IN (SELECT chat_id FROM turns)
  UNION SELECT t.chat_id, w.session FROM turns t JOIN walk w ON t.parent = w.chat_id
),
found AS (SELECT chat_id, min(session) AS session FROM walk GROUP BY chat_id)
SELECT r.*, coalesce(f.session, r.chat_id) AS session FROM {one} r LEFT JOIN found f USING (chat_id) ORDER BY {line}
"""
QWEN_BAILIAN = Reader(
    name="qwen_bailian_trace",
    kinds=("ndjson",),
    one_request="chat_id, timestamp and lengths",
    unsaid=("--set provider=NAME", "--set model=NAME"),
    shape=traces.shape("qwen_bailian_trace", "input_length", "output_length"),
    usage="r",
    leaves={**traces.LENGTHS, "chat_id": "VARCHAR", "parent_chat_id": "VARCHAR", "type": "VARCHAR"},
    fields={
        "request_id": "r.chat_id",
        "session_id": "r.session",
        "feature": "r.type",
        "operation": "'chat'",
        "status": "'success'",
        "prefix_hashes": "r.hash_ids::VARCHAR",
        "prefix_block_tokens": "CASE WHEN r.hash_ids IS NOT NULL THEN '16' END",
    },
    ts=sql.text("r.timestamp"),
    relative="s",
    # Each trace numbers its chats anew.
    dedup_key=f"'qwen_bailian|' || {sql.key_part('r.chat_id')} || '|' || concat_ws(',', {sql.text('r.timestamp')}, "
    f"{sql.text('r.input_length')}, {sql.text('r.output_length')})",
    detect=Detect(
        keys=(("chat_id", "timestamp", "input_length", "output_length"),),
        records=(("chat_id", "input_length"),),
    ),
    reshape=_SESSIONS,
)
