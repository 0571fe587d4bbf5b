"""Mooncake's traces: lengths, offsets in ms and the chain of 512-token prefix blocks."""

from __future__ import annotations

from tenfold.logs import sql, traces
from tenfold.logs.base import Detect, Reader

MOONCAKE = Reader(
    name="mooncake_trace",
    kinds=("ndjson",),
    unsaid=("--set provider=NAME", "--set model=NAME"),
    shape=traces.shape("mooncake_trace", "input_length", "output_length"),
    usage="r",
    leaves=traces.LENGTHS,
    fields={
        "operation": "'chat'",
        "status": "'success'",
        "prefix_hashes": "r.hash_ids::VARCHAR",
        "prefix_block_tokens": "CASE WHEN r.hash_ids IS NOT NULL THEN '512' END",
    },
    ts=sql.text("r.timestamp"),
    relative="ms",
    dedup_key="NULL",
    detect=Detect(
        keys=(("timestamp", "input_length", "output_length"),),
        absent=("chat_id",),
        records=(("input_length", "output_length"),),
    ),
)
