"""OpenAI Batch API output and error files: one result a line, chat or responses body inside."""

from __future__ import annotations

from tenfold.logs import openai_tools, sql
from tenfold.logs.base import Detect, Reader, Text, usage_leaves
from tenfold.logs.text import forms
from tenfold.usage.shape import UsageShape
from tenfold.usage.shapes import OPENAI_CHAT, OPENAI_RESPONSES

# A batch holds answers of one endpoint or the other; the two usage objects share no key but the total and tier.
SHAPE = UsageShape(
    name="openai_batch",
    counts={
        name: OPENAI_CHAT.counts.get(name, ()) + OPENAI_RESPONSES.counts.get(name, ())
        for name in {**OPENAI_CHAT.counts, **OPENAI_RESPONSES.counts}
    },
    marks=(),
    total=OPENAI_CHAT.total,
    absent={
        name: "|".join(shape.absent[name] for shape in (OPENAI_CHAT, OPENAI_RESPONSES) if name in shape.absent)
        for name in OPENAI_CHAT.absent
    },
    zero_below=OPENAI_CHAT.zero_below,
    open_objects=OPENAI_RESPONSES.open_objects,
    open_known=OPENAI_RESPONSES.open_known,
    tier=OPENAI_CHAT.tier,
)
_BODY = "r.response.body"
_CODE = f"TRY_CAST({sql.text('r.response.status_code')} AS INTEGER)"
_FAILED = f"(r.response IS NULL OR r.error IS NOT NULL OR {_CODE} >= 400)"

OPENAI_BATCH = Reader(
    name="openai_batch",
    kinds=("ndjson",),
    one_request="id of the result",
    shape=SHAPE,
    usage=f"{_BODY}.usage",
    leaves={
        "id": "VARCHAR",
        "custom_id": "VARCHAR",
        "response.status_code": "JSON",
        "response.request_id": "VARCHAR",
        "response.body.id": "VARCHAR",
        "response.body.object": "VARCHAR",
        "response.body.created": "JSON",
        "response.body.created_at": "JSON",
        "response.body.status": "VARCHAR",
        "response.body.incomplete_details.reason": "VARCHAR",
        "response.body.model": "VARCHAR",
        "response.body.choices[].finish_reason": "VARCHAR",
        "response.body.metadata.team": "VARCHAR",
        "response.body.metadata.feature": "VARCHAR",
        "response.body.metadata.environment": "VARCHAR",
        "error.code": "VARCHAR",
        **openai_tools.leaves("response.body."),
        **usage_leaves(SHAPE, "response.body.usage."),
    },
    fields={
        "request_id": f"{_BODY}.id",
        "custom_id": "r.custom_id",
        "provider": "'openai'",
        "model": f"{_BODY}.model",
        # Nothing in a line says so; the file itself does.
        "service_tier": "'batch'",
        "operation": f"CASE WHEN {_BODY}.object = 'response' THEN 'responses' ELSE 'chat' END",
        "is_stream": "false",
        "team": f"{_BODY}.metadata.team",
        "feature": f"{_BODY}.metadata.feature",
        "environment": f"{_BODY}.metadata.environment",
        "status": "CASE WHEN r.error.code = 'batch_expired' THEN 'expired' WHEN r.error.code = 'batch_cancelled' "
        f"THEN 'cancelled' WHEN {_FAILED} THEN 'error' ELSE coalesce({_BODY}.status, 'success') END",
        "finish_reason": sql.first(f"{_BODY}.choices[1].finish_reason", f"{_BODY}.incomplete_details.reason"),
        "http_status": sql.text("r.response.status_code"),
        "is_billable": f"NOT {_FAILED} OR {_BODY}.usage IS NOT NULL",
    },
    ts=f"coalesce({sql.text(f'{_BODY}.created')}, {sql.text(f'{_BODY}.created_at')})",
    dedup_key=f"'openai_batch|' || {sql.key_part(sql.named('r.id'))}",
    counts=openai_tools.counts(_BODY),
    detect=Detect(
        keys=(("custom_id", "response", "error"), ("custom_id", "response.body")),
        records=(("custom_id", "response"), ("custom_id", "error")),
    ),
    text=Text(
        leaves={**forms.choices("response.body.choices"), **forms.output("response.body.")},
        response=f"coalesce({forms.choices_said(f'{_BODY}.choices')}, {forms.output_said(_BODY)})",
    ),
)
