"""OTLP/JSON: what OpenTelemetry's file exporter writes, an export request a line, with GenAI or OpenInference names."""

from __future__ import annotations

from tenfold.logs import spans, sql
from tenfold.logs.base import Detect, Reader, Text
from tenfold.logs.text import attributes
from tenfold.store.database import quoted
from tenfold.usage.shapes import TENFOLD

_VALUES = {
    "stringValue": "VARCHAR",
    "intValue": "JSON",  # an int64, so text
    "doubleValue": "JSON",
    "boolValue": "JSON",
    "arrayValue.values[].stringValue": "VARCHAR",
}
_SPAN = "resourceSpans[].scopeSpans[].spans[]"
_VALUE = (
    'coalesce(a.value."stringValue", trim(a.value."intValue"::VARCHAR, \'"\'), a.value."doubleValue"::VARCHAR, '
    'a.value."boolValue"::VARCHAR, a.value."arrayValue"."values"[1]."stringValue")'
)


def _attributes(prefix: str) -> dict[str, str]:
    return {f"{prefix}.attributes[].key": "VARCHAR"} | {
        f"{prefix}.attributes[].value.{name}": kind for name, kind in _VALUES.items()
    }


def _known(attributes: str, names: dict[str, tuple[str, ...]]) -> str:
    keys = ", ".join(quoted(key) for found in names.values() for key in found)
    kept = f"list_filter({attributes}, lambda a: a.key IN ({keys}))"
    return f"list_transform({kept}, lambda a: {{{{'key': a.key, 'text': {_VALUE}}}}})"


def _read(known: str, names: dict[str, tuple[str, ...]]) -> str:
    parts: list[str] = []
    for column, keys in names.items():
        texts = (f"list_filter({known}, lambda a: a.key = {quoted(key)})[1].text" for key in keys)
        parts.append(f"nullif(coalesce({', '.join(texts)}), '') AS {column}")
    return ", ".join(parts)


_IS_TEXT = " OR ".join(
    [f"a.key IN ({', '.join(map(quoted, attributes.NAMES))})"]
    + [f"starts_with(a.key, {quoted(prefix)})" for prefix in attributes.PREFIXES]
)
_TOLD = (
    f", list_transform(list_filter(span.attributes, lambda a: {_IS_TEXT}), "
    f"lambda a: {{{{'key': a.key, 'text': {_VALUE}}}}}) AS messages"
)


def _flat(told: str) -> str:
    return f"""resources AS (
  SELECT {{line}}, {{repaired}}, unnest("resourceSpans") AS held FROM {{one}}
), scopes AS (
  SELECT {{line}}, {{repaired}}, {_known("held.resource.attributes", spans.OF_RESOURCE)} AS told_by,
    unnest(held."scopeSpans") AS scope FROM resources
), opened AS (
  SELECT {{line}}, {{repaired}}, told_by, unnest(scope.spans) AS span FROM scopes
), read AS (
  SELECT {{line}}, {{repaired}}, told_by, span."traceId" AS trace_id, span."spanId" AS span_id,
    span."parentSpanId" AS parent_span_id, {sql.text('span."startTimeUnixNano"')} AS started,
    {sql.text('span."endTimeUnixNano"')} AS ended, {sql.text("span.status.code")} AS status_code,
    {_known("span.attributes", spans.NAMES)} AS known{told}
  FROM opened WHERE span IS NOT NULL
), flat AS (
  SELECT * EXCLUDE (known, told_by), {_read("known", spans.NAMES)}, {_read("told_by", spans.OF_RESOURCE)} FROM read
)"""


# Settings alone are no text.
_SAID = " AND ".join(f"NOT starts_with(a.key, {quoted(prefix)})" for prefix in attributes.SETTINGS)
_MESSAGES = (
    f"CASE WHEN len(list_filter(r.messages, lambda a: {_SAID})) > 0 "
    "THEN json_object('attributes', r.messages)::VARCHAR END"
)

OTLP = Reader(
    name="otlp",
    kinds=("ndjson",),
    one_request="traceId and spanId",
    merges="spans above others with usage are left out",
    shape=TENFOLD,
    usage="r",
    leaves={
        **_attributes("resourceSpans[].resource"),
        **dict.fromkeys((f"{_SPAN}.{name}" for name in ("traceId", "spanId", "parentSpanId")), "VARCHAR"),
        **dict.fromkeys((f"{_SPAN}.{name}" for name in ("startTimeUnixNano", "endTimeUnixNano")), "JSON"),
        f"{_SPAN}.status.code": "JSON",
        **_attributes(_SPAN),
    },
    fields=spans.fields(),
    ts=spans.STARTED,
    dedup_key=spans.DEDUP_KEY,
    counts=spans.COUNT_FIELDS,
    total="r.total_tokens",
    detect=Detect(keys=(("resourceSpans",),)),
    reshape=spans.reshape(_flat("")),
    # Attributes are read anyway; those that hold messages go on.
    text=Text(
        leaves={},
        prompt=_MESSAGES,
        params=_MESSAGES,
        response=_MESSAGES,
        reshape=spans.reshape(_flat(_TOLD)),
    ),
)
