"""Azure's LLM inference traces of 2023 and 2024 (Splitwise, DynamoLLM): times and counts, nothing else."""

from __future__ import annotations

from tenfold.logs import sql, traces
from tenfold.logs.base import Detect, Reader

AZURE_TRACE = Reader(
    name="azure_llm_trace",
    kinds=("csv",),
    unsaid=("--set provider=NAME", "--set model=NAME"),
    shape=traces.shape("azure_llm_trace", "ContextTokens", "GeneratedTokens"),
    usage="r",
    leaves={"TIMESTAMP": "JSON", "ContextTokens": "JSON", "GeneratedTokens": "JSON"},
    fields={"status": "'success'"},
    ts=sql.text('r."TIMESTAMP"'),
    dedup_key="NULL",
    detect=Detect(keys=(("TIMESTAMP", "ContextTokens", "GeneratedTokens"),)),
)
