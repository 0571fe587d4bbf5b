"""Results of `vllm bench serve` (and forks that leave `_ms` off and mean seconds): totals and one row a measure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from tenfold.logs import documents
from tenfold.logs.buckets.base import BucketError, BucketReader, Found, Source, count, decoded, number, text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MEASURE = re.compile(r"(mean|median|std|p[0-9.]+)_(ttft|tpot|itl|e2el)(?P<ms>_ms)?|(?P<rate>\w+_(throughput|goodput))")


def _read(source: Source) -> Iterator[Found]:
    for start, found, whole in documents.values(source.text):
        line = source.line(start)
        if not whole:
            yield Found(line, None, "not valid JSON: the result breaks off")
            continue
        try:
            rows = list(_rows(decoded(found), source.zone))
        except BucketError as error:
            yield Found(line, None, str(error), error.path)
        else:
            yield from (Found(line, row) for row in rows)


def _rows(result: Mapping[str, object], zone: str | None) -> Iterator[dict[str, object]]:
    end, seconds = _ended(result, zone), number(result.get("duration"), "duration")
    about: dict[str, object] = {
        # The date is when the result was written, after the last answer.
        "bucket_start": end - timedelta(seconds=float(seconds)) if end is not None and seconds is not None else None,
        "bucket_end": end,
        "provider": "self-hosted",
        "model": text(result.get("model_id")),
        "tags": {key: str(result[key]) for key in ("request_rate", "max_concurrency", "burstiness") if key in result},
    }
    yield {
        **about,
        "input_tokens": count(result, "total_input_tokens"),
        "output_tokens": count(result, "total_output_tokens"),
        "requests": count(result, "completed"),
        "quantity": seconds,
        "unit": "s",
        "meter": "duration",
    }
    for key, value in result.items():
        measure = _MEASURE.fullmatch(key)
        if measure is not None and value is not None:
            unit = "per_s" if measure["rate"] else "ms" if measure["ms"] else "s"
            yield {**about, "meter": key, "quantity": number(value, key), "unit": unit}


def _ended(result: Mapping[str, object], zone: str | None) -> datetime | None:
    said = result.get("date")
    if said is None:
        return None
    try:
        local = datetime.strptime(str(said), "%Y%m%d-%H%M%S").replace(tzinfo=ZoneInfo(zone) if zone else UTC)
    except ValueError as error:
        raise BucketError(f"no time: {said!r}", "date") from error
    return local.astimezone(UTC).replace(tzinfo=None)


def _fits(head: str) -> bool:
    return all(f'"{key}"' in head for key in ("total_input_tokens", "total_output_tokens", "request_throughput"))


VLLM_BENCH = BucketReader(
    name="vllm_bench", fits=_fits, read=_read, holds="totals and measures of a run", containers=("JSON", "JSON lines")
)
