"""Anthropic Message Batches results: one result a line. Only those that succeeded are billed, at the batch tier."""

from __future__ import annotations

from tenfold.logs import anthropic, envelope, sql
from tenfold.logs.base import Detect, Reader, Text
from tenfold.logs.text import forms
from tenfold.usage.shapes import ANTHROPIC as SHAPE

_MESSAGE = "r.result.message"
_USAGE = f"{_MESSAGE}.usage"

ANTHROPIC_BATCH = Reader(
    name="anthropic_batch",
    kinds=("ndjson",),
    one_request="id of the message",
    shape=SHAPE,
    usage=_USAGE,
    leaves={
        "custom_id": "VARCHAR",
        "result.type": "VARCHAR",
        "result.message.id": "VARCHAR",
        "result.message.model": "VARCHAR",
        "result.message.stop_reason": "VARCHAR",
        **anthropic.leaves("result.message.usage."),
        **envelope.LEAVES,
    },
    fields={
        **envelope.fields(),
        "request_id": f"{_MESSAGE}.id",
        "custom_id": "r.custom_id",
        "parent_id": anthropic.parent(_USAGE, f"{_MESSAGE}.id"),
        "provider": "'anthropic'",
        "model": f"{_MESSAGE}.model",
        "region": anthropic.region(_USAGE),
        # Also where the usage says nothing: the file itself does.
        "service_tier": "'batch'",
        "operation": "'messages'",
        "is_stream": "false",
        "status": "r.result.type",
        "finish_reason": f"{_MESSAGE}.stop_reason",
        "is_billable": f"r.result.type = 'succeeded' OR {_USAGE} IS NOT NULL",
    },
    ts=envelope.TS,
    # A result without a message has no id of its own: the caller's may be used again in the next batch.
    dedup_key=f"'anthropic|' || {sql.key_part(sql.named(f'{_MESSAGE}.id'))}",
    detect=Detect(keys=(("custom_id", "result.type"),), absent=("response",)),
    flags=anthropic.flags(_USAGE),
    children=(anthropic.compactions(_USAGE, f"{_MESSAGE}.id"),),
    text=Text(leaves={"result.message.content": "JSON"}, response=forms.filled(f"{_MESSAGE}.content")),
)
