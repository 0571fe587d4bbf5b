"""BurstGPT: two months and more of one Azure OpenAI resource."""

from __future__ import annotations

from tenfold.logs import sql, traces
from tenfold.logs.base import Detect, Reader

_NO_ANSWER = 'TRY_CAST(r."Response tokens"::VARCHAR AS DOUBLE) = 0'
_ELAPSED = sql.text('r."Elapsed time"')
# One Azure OpenAI resource; its two models go by their products' names.
BURSTGPT = Reader(
    name="burstgpt",
    kinds=("csv",),
    shape=traces.shape("burstgpt", "Request tokens", "Response tokens", ("Total tokens",)),
    usage="r",
    leaves={
        "Timestamp": "JSON",
        "Session ID": "VARCHAR",
        "Elapsed time": "JSON",
        "Model": "VARCHAR",
        "Request tokens": "JSON",
        "Response tokens": "JSON",
        "Total tokens": "JSON",
        "Log Type": "VARCHAR",
    },
    fields={
        "session_id": 'r."Session ID"',
        "feature": 'r."Log Type"',
        "provider": "'azure'",
        "model": "CASE r.\"Model\" WHEN 'ChatGPT' THEN 'gpt-3.5-turbo' WHEN 'GPT-4' THEN 'gpt-4' ELSE r.\"Model\" END",
        "model_requested": 'r."Model"',
        "operation": "'chat'",
        "duration_ms": f"round(TRY_CAST({_ELAPSED} AS DOUBLE) * 1000, 3)",
        # No token of an answer is how the trace says that the call failed.
        "status": f"CASE WHEN {_NO_ANSWER} THEN 'error' ELSE 'success' END",
        "is_billable": f"NOT coalesce({_NO_ANSWER}, false)",
    },
    ts=sql.text('r."Timestamp"'),
    relative="s",
    dedup_key="NULL",
    detect=Detect(keys=(("Request tokens", "Response tokens", "Log Type"),)),
)
