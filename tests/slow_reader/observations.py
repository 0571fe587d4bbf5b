"""Observations of Langfuse: maps of counts, disjoint or with parts, as the total proves for each side."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from slow_reader import conventions
from slow_reader.core import Format, Result, Row
from slow_reader.counts import COLUMNS, Count, count, judged, summed
from slow_reader.records import Lines, Record, any_set, filled, first, has, named, opened, text, told

_NAMES = {
    "input": {"input", "input_tokens", "prompt_tokens", "inputtokens", "prompttokens"},
    "output": {"output", "output_tokens", "completion_tokens", "outputtokens", "completiontokens"},
    "total": {"total", "total_tokens", "totaltokens"},
}
_PLAIN = set().union(*_NAMES.values())
_OLD = {
    "input": ("inputUsage", "promptTokens"),
    "output": ("outputUsage", "completionTokens"),
    "total": ("totalUsage", "totalTokens"),
}


def _column(key: str) -> list[str]:
    """The columns that a detail's key belongs to."""
    found: list[str] = []
    if re.match("input|prompt|cache", key):
        write = re.search("creation|cache_write|cachewrite|ephemeral", key) is not None
        if write:
            found.append("cache_write_tokens")
            found += ["cache_write_long_tokens"] if "1h" in key else []
        if "cache" in key and not re.search("creation|write", key):
            found.append("cache_read_tokens")
        found += [f"input_{kind}_tokens" for kind in ("audio", "image") if kind in key and "cache" not in key]
    elif re.match("output|completion", key):
        found += ["reasoning_tokens"] if re.search("reasoning|thinking|thought", key) else []
        found += [f"output_{kind}_tokens" for kind in ("audio", "image") if kind in key]
    return found


class Observation:
    """One generation, its map taken apart."""

    def __init__(self, line: int, value: Record) -> None:
        self.line, self.value = line, value
        self.id = text(value.get("id"))
        self.parent = told(value, ("parentObservationId", "parent_observation_id"))[0]
        self.is_call = (text(value.get("type")) or "").upper() in {"GENERATION", "EMBEDDING"}
        maps = {name: opened(value.get(name)) or _unread(value.get(name)) for name in ("usageDetails", "usage_details")}
        details = first(maps, "usageDetails", "usage_details")
        self.used: dict[str, Any] = details or {}
        sides: dict[str, list[Any]] = {"input": [], "output": []}
        columns: dict[str, list[Any]] = {}
        for key, held in self.used.items():
            name = key.lower()
            if name not in _PLAIN:
                side = (
                    "input"
                    if re.match("input|prompt|cache", name)
                    else "output"
                    if re.match("output|completion", name)
                    else None
                )
                if side:
                    sides[side].append(held)
                for column in _column(name):
                    columns.setdefault(column, []).append(held)
        self.own: dict[str, Any] = dict.fromkeys(COLUMNS)
        self.own |= {column: summed(held) for column, held in columns.items()}
        self.has_details = bool(sides["input"] or sides["output"])
        named_parts = any("_details." in key.lower() for key in self.used)
        plain = {name: self._plain(name) for name in _NAMES}
        detail = {side: summed(held) for side, held in sides.items()}
        self.total = plain["total"]
        i, o, more_in, more_out = (
            _number(one) for one in (plain["input"], plain["output"], detail["input"], detail["output"])
        )
        proven = None
        if plain["total"].value is not None:
            readings = ((i + more_in + o + more_out, (True, True)), (i + o, (False, False)))
            readings += ((i + more_in + o, (True, False)), (i + o + more_out, (False, True)))
            proven = next((adds for whole, adds in readings if whole == _number(plain["total"])), None)
        unproven = proven is None and self.has_details
        adds = proven or (not named_parts, not named_parts)
        for side, add in zip(("input", "output"), adds, strict=True):
            own = plain[side]
            if add and (own.value is not None or not unproven):
                own = _plus(own, detail[side])
            self.own[f"{side}_tokens"] = own
        inputs = self.own["input_tokens"].value
        model = text(first(value, "model", "provided_model_name")) or ""
        small = isinstance(inputs, int) and inputs < 1024 and re.match("gpt-|o[0-9]", model) is not None
        for name in ("cache_read_tokens", "cache_write_tokens"):
            if (self.own[name] is None or self.own[name].value is None) and (self.has_details or small):
                self.own[name] = 0

    def _plain(self, name: str) -> Count:
        held = next((held for key, held in self.used.items() if key.lower() in _NAMES[name]), None)
        old = [text(filled(self.value.get(key))) for names in _OLD.values() for key in names]
        if held is None and not self.used and any(one not in (None, "0") for one in old):
            held = next((one for key in _OLD[name] if (one := filled(self.value.get(key))) is not None), None)
        return count(held)

    @property
    def has_counts(self) -> bool:
        return any(isinstance(self.own[f"{side}_tokens"].value, int) for side in ("input", "output"))


def _number(one: Count) -> int:
    return one.value if isinstance(one.value, int) else 0


def _plus(one: Count, other: Count) -> Count:
    values = [part.value for part in (one, other) if part.value is not None]
    otherwise = True in (one.otherwise, other.otherwise)
    found = summed(values)
    return Count(found.value, otherwise or None if None in (one.otherwise, other.otherwise) else otherwise)


def _updated(value: Record) -> float:
    held = next(
        (one for key in ("updatedAt", "updated_at", "event_ts") if (one := value.get(key)) not in (None, "")), ""
    )
    try:
        moment = datetime.fromisoformat(text(held) or "")
    except ValueError:
        return -1.0
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _langfuse(kept: Lines, result: Result) -> list[Row]:
    latest: dict[Any, int] = {}
    seen = [Observation(line, value) for line, value in kept]
    for place, one in enumerate(seen):
        own = one.id or one.line
        if own not in latest or _updated(one.value) >= _updated(seen[latest[own]].value):
            latest[own] = place
    last = [one for place, one in enumerate(seen) if latest[one.id or one.line] == place]
    parents = {one.id: one.parent for one in last if one.id is not None}
    around, in_circles = set[str](), set[str]()
    for one in last:
        if one.is_call and one.has_counts and one.id is not None:
            above, place = set[str](), one.parent
            while place is not None and place not in above:
                above.add(place)
                place = parents.get(place)
            around |= above
            in_circles |= above & {one.id}
    rows: list[Row] = []
    for one in seen:
        if not one.is_call:
            result.ignored += 1
        elif one not in last or one.id in around - in_circles:
            result.folded += 1
        else:
            found = judged(conventions.PLAIN, {}, one.own, one.total, own_total=True)
            rows.append(Row(one.line, found, named(one.id), told(one.value, ("model", "provided_model_name"))))
    return rows


def _unread(value: Any) -> dict[str, bool] | None:
    """What stands for anything that should have been a map: the older counts do not take its place."""
    is_blank = value is None or (isinstance(value, str) and value.strip(" ") in {"", "null"})
    return {"unread": True} if not is_blank and opened(value) is None else None


def _has_map(value: Any) -> bool:
    return opened(value) is not None or _unread(value) is not None


_OBSERVED = (
    *("traceId", "parentObservationId", "startTime", "type"),
    *("trace_id", "parent_observation_id", "start_time"),
)
FORMATS = (
    Format(
        "langfuse",
        _langfuse,
        lambda v: (
            any_set(
                v,
                ("traceId", "parentObservationId", "startTime"),
                ("trace_id", "parent_observation_id", "start_time"),
                ("type", "startTime"),
                ("type", "start_time"),
            )
            or (has(v, "traceId", "type") and _has_map(v.get("usageDetails")))
            or (has(v, "trace_id", "type") and _has_map(v.get("usage_details")))
        ),
        cells=_OBSERVED,
        is_row=lambda v: _has_map(v.get("usageDetails")) or _has_map(v.get("usage_details")),
    ),
)
