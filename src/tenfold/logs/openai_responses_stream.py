"""Events of OpenAI Responses streams (``response.created``, ..., ``response.completed``), one a line or as saved SSE.

Some events bear the whole response so far; the last one that does is the request, and the usage is in the event that
ends a stream. A stream that broke off has its first events alone: no usage, and the status ``incomplete``.
"""

from __future__ import annotations

from tenfold.logs import envelope, openai_response, openai_tools, sql
from tenfold.logs.base import Detect, Reader, Text
from tenfold.logs.text import forms
from tenfold.store.database import quoted
from tenfold.usage.shapes import OPENAI_RESPONSES as SHAPE

# Events that bear the response.
_WHOLE = tuple(
    f"response.{state}" for state in ("created", "queued", "in_progress", "completed", "incomplete", "failed")
)
# A failure of the stream itself bears none: it ends the stream that was begun last.
_REQUESTS = """
WITH told AS (
  SELECT r.*, last_value({named_id} IGNORE NULLS) OVER (ORDER BY {line}) AS stream FROM {one} r
)
SELECT arg_max(response, {line}) FILTER (response IS NOT NULL) AS response,
  arg_min("_log", {line}) FILTER ("_log" IS NOT NULL) AS "_log",
  bool_or(coalesce(type = 'error', false)) AS has_failed,
  coalesce(max({line}) FILTER (response IS NOT NULL), max({line})) AS {line},
  bool_or({repaired}) AS {repaired}
FROM told
GROUP BY coalesce(stream, 'line ' || {line}) ORDER BY {line}
""".replace("{named_id}", sql.named("response.id"))
_FIELDS = openai_response.fields("r.response")

OPENAI_RESPONSES_STREAM = Reader(
    name="openai_responses_stream",
    kinds=("ndjson",),
    one_request="response.id",
    merges="the events of a stream are one request: the last one that bears the response",
    shape=SHAPE,
    usage="r.response.usage",
    leaves={
        "type": "VARCHAR",
        "sequence_number": "JSON",
        **openai_response.leaves("response."),
        **envelope.LEAVES,
    },
    fields=envelope.with_metadata(
        {
            **_FIELDS,
            "is_stream": "true",
            "status": f"CASE WHEN r.has_failed THEN 'error' ELSE {_FIELDS['status']} END",
            "is_billable": f"({_FIELDS['is_billable']}) AND NOT (r.has_failed AND r.response.usage IS NULL)",
        },
        "r.response",
    ),
    ts=f"coalesce({envelope.TS}, {openai_response.created('r.response')})",
    dedup_key=openai_response.dedup_key("r.response"),
    counts=openai_tools.counts("r.response"),
    detect=Detect(
        keys=(("type", "sequence_number"), ("type", "response.status")),
        values={"type": _WHOLE},
        records=(("type", "response"),),
    ),
    # What the answer is made of, piece by piece.
    beside=(f"r.response IS NULL AND r.type NOT IN ('error', {', '.join(map(quoted, _WHOLE))})",),
    reshape=_REQUESTS,
    text=Text(leaves=forms.output("response."), response=forms.output_said("r.response")),
)
