"""Prometheus text of an inference server: counters as they stand, or what they grew by where samples bear times.

A counter that fell was started anew: its value then is the growth.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from tenfold.logs.buckets.base import BucketError, BucketReader, Found, Source, instant, number

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

LINE = re.compile(r"(?P<name>[A-Za-z_:][\w:]*)(\{(?P<labels>.*)\})?\s+(?P<value>\S+)(\s+(?P<time>-?\d+))?\s*")
LABEL = re.compile(r'\s*(?P<key>\w+)="(?P<text>(?:[^"\\]|\\.)*)"\s*,?')
_SERVERS = ("vllm:", "sglang:")
_STARTED = "process_start_time_seconds"
_UNITS = (
    ("prefix_cache_queries", "tokens"),
    ("prefix_cache_hits", "tokens"),
    ("tokens", "tokens"),
    ("seconds", "s"),
    ("_perc", "ratio"),
    ("bytes", "bytes"),
)
_GROWING = ("_total", "_sum", "_count", "_bucket")


class _Sample(NamedTuple):
    line: int
    value: Decimal
    at: datetime | None


def _read(source: Source) -> Iterator[Found]:
    series: dict[tuple[str, str], list[_Sample]] = {}
    started: datetime | None = None
    for number_, line in enumerate(source.text.split("\n"), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        try:
            found = _matched(stripped)
            if found["name"] == _STARTED:
                started = instant(int(number(found["value"], _STARTED) or 0), _STARTED)
            if not found["name"].startswith(_SERVERS):
                yield Found(number_, None)
                continue
            sample = _sample(number_, found)
            if sample is None:
                yield Found(number_, None)
                continue
            labels = {label["key"]: label["text"] for label in LABEL.finditer(found["labels"] or "")}
            series.setdefault((found["name"], json.dumps(labels, sort_keys=True)), []).append(sample)
        except (BucketError, ArithmeticError, ValueError) as error:
            yield Found(number_, None, str(error) or "no number")
    for (name, labels), samples in series.items():
        yield from _rows(name, labels, samples, started)


def _matched(line: str) -> re.Match[str]:
    found = LINE.fullmatch(line)
    if found is None:
        raise BucketError("no sample: a name, labels and a value were expected")
    return found


def _sample(line: int, found: re.Match[str]) -> _Sample | None:
    if found["value"].lower() in {"nan", "+inf", "-inf", "inf"}:
        return None
    value = number(found["value"], found["name"])
    at = instant(int(found["time"]) // 1000, "time") if found["time"] else None
    return None if value is None else _Sample(line, value, at)


def _rows(name: str, labels: str, samples: list[_Sample], started: datetime | None) -> Iterator[Found]:
    told: dict[str, str] = json.loads(labels)
    grows = name.endswith(_GROWING)
    about: dict[str, object] = {
        "provider": "self-hosted",
        "model": told.pop("model_name", None),
        "meter": name,
        "unit": next(
            (unit for part, unit in _UNITS if part in name and not name.endswith(("_count", "_bucket"))), None
        ),
        "tags": told,
    }
    timed = [sample for sample in samples if sample.at is not None]
    if grows and len(timed) > 1:
        timed.sort(key=lambda sample: (sample.at is not None and sample.at.timestamp(), sample.line))
        for before, after in pairwise(timed):
            growth = after.value - before.value if after.value >= before.value else after.value
            row = {**about, "bucket_start": before.at, "bucket_end": after.at, "quantity": growth}
            yield Found(after.line, {**row, "is_cumulative": False})
        return
    for sample in samples:
        row = {**about, "bucket_start": started if grows else sample.at, "bucket_end": sample.at}
        yield Found(sample.line, {**row, "quantity": sample.value, "is_cumulative": grows})


def _fits(head: str) -> bool:
    lines = [line for line in head.split("\n")[:400] if line.strip()]
    return bool(lines) and any(line.startswith(_SERVERS) and LINE.fullmatch(line.strip()) for line in lines)


PROMETHEUS = BucketReader(
    name="prometheus", fits=_fits, read=_read, holds="counters of a server, as they stood", containers=("text",)
)
