"""OpenInference spans, a span a line or a row, as Phoenix and OpenTelemetry's SDKs write them.

Attributes are flat, nested, or columns of their own; OpenTelemetry's GenAI names are read beside OpenInference's.
"""

from __future__ import annotations

from tenfold.logs import spans, sql
from tenfold.logs.base import Detect, Reader, Text, identifier, member
from tenfold.usage.shapes import TENFOLD


def _flat(key: str) -> str:
    return key.replace(".", "\\.")


_KEYS = tuple(key for keys in spans.NAMES.values() for key in keys)
# Nested attributes are OpenInference's own: a GenAI name may be a value and an object at once.
_NESTED = tuple(key for key in _KEYS if key.startswith(("llm.", "openinference.", "session.", "user.")))
_RESOURCE = tuple(key for keys in spans.OF_RESOURCE.values() for key in keys)


def _kind(key: str) -> str:
    return "JSON" if key.startswith(("gen_ai.usage.", "llm.token_count.", "llm.cost.", "llm.usage.")) else "VARCHAR"


def _leaves() -> dict[str, str]:
    found: dict[str, str] = {}
    for key in _KEYS:
        found[f"attributes.{_flat(key)}"] = _kind(key)
        found[_flat(f"attributes.{key}")] = _kind(key)
        if key in _NESTED:
            found[f"attributes.{key}"] = _kind(key)
    found.update({f"resource.attributes.{_flat(key)}": "VARCHAR" for key in _RESOURCE})
    return found


def _places(key: str) -> list[str]:
    held = [f"attributes.{identifier(key)}", identifier(f"attributes.{key}")]
    if not key.startswith("gen_ai."):
        held.append(member("attributes", key))
    return held


def _value(key: str) -> str:
    held = _places(key) if key in _NESTED else _places(key)[:2]
    return ", ".join(sql.text(value) if _kind(key) == "JSON" else f"{value}::VARCHAR" for value in held)


_READ = ", ".join(
    f"nullif(coalesce({', '.join(map(_value, keys))}), '') AS {column}" for column, keys in spans.NAMES.items()
)
_OF_RESOURCE = ", ".join(
    f"coalesce({', '.join(f'resource.attributes.{identifier(key)}' for key in keys)}) AS {column}"
    for column, keys in spans.OF_RESOURCE.items()
)
# Text column -> attributes that hold it.
_MESSAGES = {
    "asked": ("llm.input_messages", "gen_ai.input.messages", "input.value"),
    "said": ("llm.output_messages", "gen_ai.output.messages", "output.value"),
    "settings": ("llm.invocation_parameters",),
}
_TOLD = "".join(
    f", coalesce({', '.join(f'{value}::VARCHAR' for key in keys for value in _places(key))}) AS {column}"
    for column, keys in _MESSAGES.items()
)


def _flat_sql(told: str) -> str:
    return f"""flat AS (
  SELECT {{line}}, {{repaired}}, {sql.first("context.trace_id", '"context.trace_id"')} AS trace_id,
    {sql.first("context.span_id", '"context.span_id"')} AS span_id, parent_id AS parent_span_id,
    {sql.text("start_time")} AS started, {sql.text("end_time")} AS ended,
    upper({sql.first("status_code", "status.status_code")}) AS status_code,
    {_READ}, {_OF_RESOURCE}{told}
  FROM {{one}}
)"""


OPENINFERENCE = Reader(
    name="openinference",
    kinds=("ndjson", "csv", "parquet"),
    one_request="context.trace_id and context.span_id",
    merges="spans above others with usage are left out",
    shape=TENFOLD,
    usage="r",
    leaves={
        **dict.fromkeys(("context.trace_id", "context.span_id", "status.status_code"), "VARCHAR"),
        **dict.fromkeys(("context\\.trace_id", "context\\.span_id", "parent_id", "status_code"), "VARCHAR"),
        **dict.fromkeys(("start_time", "end_time"), "JSON"),
        **_leaves(),
    },
    unpacked=("context", "status", "attributes", "resource"),
    fields=spans.fields(),
    ts=spans.STARTED,
    dedup_key=spans.DEDUP_KEY,
    counts=spans.COUNT_FIELDS,
    total="r.total_tokens",
    zone="UTC",
    detect=Detect(
        keys=(
            ("context.span_id", "attributes.openinference\\.span\\.kind"),
            ("context.span_id", "attributes.openinference.span.kind"),
            ("context.span_id", "attributes.llm\\.token_count\\.prompt"),
            ("context.span_id", "attributes.gen_ai\\.operation\\.name"),
            ("context.span_id", "attributes.gen_ai\\.system"),
            ("context\\.span_id", "start_time"),
        ),
        records=(("context.span_id",),),
    ),
    reshape=spans.reshape(_flat_sql("")),
    text=Text(
        leaves={
            path: "JSON"
            for keys in _MESSAGES.values()
            for key in keys
            for path in (
                f"attributes.{_flat(key)}",
                _flat(f"attributes.{key}"),
                *(() if key.startswith("gen_ai.") else (f"attributes.{key}",)),
            )
        },
        prompt="r.asked",
        params="r.settings",
        response="r.said",
        reshape=spans.reshape(_flat_sql(_TOLD)),
    ),
)
