"""What each format is, for people: told from the readers themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from tenfold.logs import READERS
from tenfold.logs.buckets import BUCKET_READERS
from tenfold.logs.mapped import COLUMNS
from tenfold.store import schema

if TYPE_CHECKING:
    from tenfold.logs.base import Reader
    from tenfold.logs.buckets import BucketReader

_CONTAINERS = {"ndjson": ("JSON lines", "JSON"), "csv": ("CSV",), "parquet": ("Parquet",)}
# What rows may carry beside counts -> the columns that say it.
_CARRIED = {
    "latency": ("duration_ms", "ttft_ms"),
    "cost": ("cost_logged_usd",),
    "owner": ("team", "feature", "project", "user_id", "api_key_id", "org"),
    "session": ("session_id", "trace_id"),
}
_LATER = "equal ids whose counts only grow are one request, the fullest line"
_NONE = "nothing: lines are kept, equal ones flagged dup_suspect"

# What is odd about a row, as `flags` says it. A count that is unknown is NULL and in no sum.
FLAGS = {
    "coerced": 'a count stood as "1,024" or 5.0 and was read',
    "bad_count": "a count is none (negative, a fraction, text): unknown",
    "unknown_meter": "the usage counts something that is billed and has no column",
    "unknown_usage_key": "the usage has a key that tenfold does not know",
    "cache_gt_input": "more cached than input tokens: both unknown",
    "media_gt_total": "more media tokens than the total: both unknown",
    "cache_write_long_gt_write": "more long-lived cache writes than writes: both unknown",
    "reasoning_gt_output": "more reasoning than output tokens: both unknown",
    "total_mismatch": "input and output do not add up to the reported total",
    "convention_by_total": "the reported total shows another way of counting than the format's; it was followed",
    "convention_unproven": "no total says whether input counts include cached tokens",
    "iterations_unverified": "steps by another model, whose tokens the message's counts may or may not hold",
    "rollup_differs": "an observation above reports other counts than those below it, which stand",
    "details_missing": "the split of the counts (cached, reasoning) is not there",
    "usage_missing": "a success without counts",
    "stream_without_usage": "a streamed success without counts",
    "usage_partial": "the stream ended before its last counts",
    "zero_usage": "a success with counts of zero",
    "not_billed": "failed, retrieved or otherwise free: in no sum",
    "byok": "your own key with the host of the model: billed by that host",
    "ts_missing": "no time",
    "bad_ts": "a time that cannot be read",
    "naive_ts": "a time without offset, read as UTC: --zone names another zone",
    "relative_ts": "a time since the start of the trace, counted from 1970",
    "bad_value": "a duration, cost or other value that cannot be read: unknown",
    "ttft_gt_duration": "the first token came after the end",
    "repaired": "the line held NULs, bad escapes or the like and was read without them",
    "not_tokenised": "text was not counted: extra [tokens] is not installed",
    "dup_suspect": "no id, and equal to another row: counted, perhaps twice",
}


class Format(TypedDict):
    """One format, as ``tenfold formats --json`` lists it.

    ``becomes`` is ``requests`` or ``usage_buckets``; ``convention`` says whether the input count includes cached tokens
    (``inclusive``) or leaves them out (``exclusive``); ``must_be_set`` are options of ``tenfold load``.
    """

    name: str
    containers: list[str]
    becomes: str
    convention: str
    one_request: str
    merges: str
    carries: list[str]
    must_be_set: list[str]


def formats() -> list[Format]:
    """List the formats that a load reads without a map.

    Returns:
        All of them, in the order in which they are tried.
    """
    return [*map(_of_requests, READERS), *map(_of_buckets, BUCKET_READERS)]


def columns_to_fill() -> list[dict[str, str]]:
    """List the columns of requests that a file bearing tenfold's names, a map or a stated value may fill.

    Returns:
        ``group``, ``name``, ``type``, ``unit`` (empty without one) and ``meaning``, in the order of the table.
    """
    return [
        {"group": one.group, "name": one.name, "type": one.type, "unit": one.unit, "meaning": one.meaning}
        for one in schema.REQUESTS
        if one.name in COLUMNS
    ]


def _of_requests(reader: Reader) -> Format:
    declared = "exclusive" if reader.shape.includes_cache is False else "inclusive"
    proved = " (checked by the reported total)" if reader.total or reader.shape.total else ""
    filled = {column for column, sql in reader.fields.items() if sql != "NULL"}
    carries = [what for what, columns in _CARRIED.items() if filled & set(columns)]
    return Format(
        name=reader.name,
        containers=[name for kind in reader.kinds for name in _CONTAINERS[kind]],
        becomes="requests",
        convention=reader.convention or declared + proved,
        one_request=reader.one_request or _NONE,
        merges=reader.merges or (_LATER if reader.one_request else "none"),
        carries=[*carries, *(["text"] if reader.text else [])],
        must_be_set=list(reader.unsaid),
    )


def _of_buckets(reader: BucketReader) -> Format:
    each = "equal rows of one file are charges of their own" if reader.repeats else "a row's dimensions and time"
    return Format(
        name=reader.name,
        containers=list(reader.containers),
        becomes="usage_buckets",
        convention="as reported",
        one_request=each,
        merges="a row that a later file says too replaces it",
        carries=[reader.holds],
        must_be_set=[],
    )
