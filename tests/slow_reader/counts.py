"""Counts to canonical tokens: what a count is, what totals include, what is impossible (design, sections 5 and 7)."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from slow_reader.records import Cell, first, get

CACHED = ("cache_read_tokens", "cache_write_tokens")
IN_MEDIA = ("input_audio_tokens", "input_image_tokens", "input_video_tokens")
CACHED_MEDIA = ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens")
OUT_MEDIA = ("output_audio_tokens", "output_image_tokens", "output_video_tokens")
CALLS = ("web_searches", "web_searches_preview", "file_searches", "maps_searches", "code_sessions")
OTHER = ("images", "pages", "characters", "input_audio_ms", "output_media_ms", "cache_storage_token_s")
IN_SIDE = ("input_tokens", *CACHED, "cache_write_long_tokens", *IN_MEDIA, *CACHED_MEDIA)
COLUMNS = (*IN_SIDE, "output_tokens", "reasoning_tokens", *OUT_MEDIA, *CALLS, *OTHER)

BAD = "no count"  # a value that stands where a count should, and is none
WRITTEN = re.compile(r"([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.0{0,2}|\.0{4,}|(\.[0-9]*)?[eE][+]?[0-9]+)?")


class Count(NamedTuple):
    """A count, whether it was written otherwise than in plain digits (None: in quotes, which a source may do)."""

    value: int | str | None
    otherwise: bool | None = False


NONE = Count(None)


def count(value: Any, limit: int = 10**9) -> Count:  # noqa: PLR0911 -- a type a line
    """Whole, at least 0 and of at most nine digits; anything else is none."""
    if value is None:
        return NONE
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return Count(BAD)
    if isinstance(value, int):
        return Count(value) if 0 <= value < limit else Count(BAD)
    if isinstance(value, float):
        fits = math.isfinite(value) and value.is_integer() and 0 <= value < limit and math.copysign(1, value) > 0
        return Count(int(value), True) if fits else Count(BAD)
    # a cell may hold quotes of its own
    held = re.sub('^"|"$', "", value) if isinstance(value, Cell) else value
    if re.fullmatch(f"[0-9]{{1,{len(str(limit - 1))}}}", held):
        return Count(int(held), False if isinstance(value, Cell) and held == value else None)
    if WRITTEN.fullmatch(held) is None:
        return Count(BAD)
    number = float(held.replace(",", ""))
    return Count(int(number), True) if math.isfinite(number) and number.is_integer() and number < limit else Count(BAD)


def summed(values: list[Any], *, none: int | None = None) -> Count:
    """The sum of some counts, none of which may be wrong."""
    counts = [count(value) for value in values if value is not None]
    if any(one.value == BAD for one in counts):
        return Count(BAD)
    if not counts:
        return Count(none)
    kinds, whole = {one.otherwise for one in counts}, sum(int(one.value or 0) for one in counts)
    otherwise = True if True in kinds else None if None in kinds else False
    return Count(whole, otherwise) if whole < 10**9 else Count(BAD)


@dataclass(frozen=True)
class Convention:
    """How a source counts.

    ``absent`` says of a column what no value means: "zero"; "no writes" (0 where nothing was written); "beside cache"
    (0 where something was cached); "by total" (0 where the total is the input); or the objects whose presence makes it
    0.
    """

    counts: Mapping[str, tuple[str, ...]]
    total: tuple[str, ...] = ()
    beside_in: tuple[str, ...] = ()
    beside_out: tuple[str, ...] = ()
    adds_cache: bool = False
    total_proves: bool = True
    absent: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    zero_below: int = 0
    meters: str = ""
    known_meters: tuple[str, ...] = ()


class Judged(NamedTuple):
    """Canonical counts of one request and what is odd about them."""

    counts: dict[str, int | None]
    flags: set[str]
    quoted: bool  # `coerced` may or may not stand: a count in quotes


def judged(
    convention: Convention,
    usage: Any,
    own: Mapping[str, Any] | None = None,
    total: Any = None,
    *,
    own_total: bool = False,
    cancelled: bool = False,
) -> Judged:
    """Bring one usage object to inclusive totals; ``own`` values stand instead of those of the convention's paths."""
    c: dict[str, Count] = {}
    for column in COLUMNS:
        raw = own[column] if own and column in own else first(usage, *convention.counts.get(column, ()))
        limit = 10**15 if column == "cache_storage_token_s" else 10**9
        c[column] = raw if isinstance(raw, Count) else count(raw, limit)
    whole = total if own_total else first(usage, *convention.total)
    c_total = whole if isinstance(whole, Count) else count(whole)
    if not convention.total_proves:
        c_total = NONE
    beside_in = count(first(usage, *convention.beside_in)) if convention.beside_in else NONE
    beside_out = count(first(usage, *convention.beside_out)) if convention.beside_out else NONE
    meters = get(usage, convention.meters) if convention.meters else None
    meters = meters if isinstance(meters, dict) else {}
    written = summed(list(meters.values()))
    known = {path.rpartition(".")[2] for path in (*convention.counts.get("cache_write_long_tokens", ()),)}
    known |= set(convention.known_meters)
    strange = any(key not in known and value is not None and count(value).value != 0 for key, value in meters.items())

    n = {column: one.value if isinstance(one.value, int) else None for column, one in c.items()}
    said = {column for column, one in c.items() if one.value is not None}
    any_usage = bool(said) or written.value is not None
    total_n = c_total.value if isinstance(c_total.value, int) else None
    _fill(convention, usage, n, said, written, any_usage, total_n)
    flags = set[str]()
    _prove(convention, n, total_n, _int(beside_in), _int(beside_out), flags)

    cached = sum(n[name] or 0 for name in CACHED_MEDIA)
    if n["cache_read_tokens"] is None and cached:
        n["cache_read_tokens"] = cached
    for whole_name, part in zip(IN_MEDIA, CACHED_MEDIA, strict=True):
        if n[whole_name] is None and n[part]:
            n[whole_name] = n[part]

    bad = {column for column, one in c.items() if one.value == BAD}
    bad_in = bool(bad & set(IN_SIDE)) or BAD in (beside_in.value, written.value)
    bad_out = bool(bad - set(IN_SIDE)) or beside_out.value == BAD
    if bad_in or bad_out or c_total.value == BAD:
        flags.add("bad_count")
    coerced = [one.otherwise for one in (*c.values(), written) if isinstance(one.value, int)]
    if True in coerced:
        flags.add("coerced")
    seed = cancelled and c["output_tokens"].value == 1
    _nulled(n, written, flags, bad_in=bad_in, bad_out=bad_out, strange=strange, seed=seed)
    return Judged(n, flags, None in coerced)


def _int(one: Count) -> int:
    return one.value if isinstance(one.value, int) else 0


def _fill(  # noqa: C901 -- one rule after the other
    convention: Convention,
    usage: Any,
    n: dict[str, int | None],
    said: set[str],
    written: Count,
    any_usage: bool,  # noqa: FBT001 -- one of the facts
    total: int | None,
) -> None:
    inputs, own_writes = n["input_tokens"], n["cache_write_tokens"]
    parts: int | None = None
    if "cache_write_tokens" not in said:
        if isinstance(written.value, int):
            parts = written.value
        elif written.value is None:
            parts = n["cache_write_long_tokens"] or None
    writes = own_writes if own_writes is not None else parts

    def present(rule: tuple[str, ...]) -> bool:
        return any(get(usage, path) is not None for path in rule)

    def small() -> bool:
        return inputs is not None and inputs < convention.zero_below

    def no_writes() -> bool:
        if writes is not None:
            return writes == 0
        rule = convention.absent.get("cache_write_tokens")
        if "cache_write_tokens" in said or written.value is not None or rule is None:
            return False
        return rule == "zero" or (isinstance(rule, tuple) and (present(rule) or small()))

    zeros: list[str] = []
    for column in COLUMNS:
        rule = convention.absent.get(column)
        if rule is None or column in said or (column == "cache_write_tokens" and written.value is not None):
            continue
        if isinstance(rule, tuple):
            zero = present(rule) or (column in CACHED and small())
        else:
            zero = {
                "zero": lambda: any_usage,
                "no writes": lambda: any_usage and no_writes(),
                "beside cache": lambda: (n["cache_read_tokens"] or 0) > 0 or (writes or 0) > 0,
                "by total": lambda: total is not None and total == inputs,
            }[rule]()
        if zero:
            zeros.append(column)
    n["cache_write_tokens"] = writes
    for column in zeros:
        n[column] = n[column] if n[column] is not None else 0


def _prove(
    convention: Convention,
    n: dict[str, int | None],
    total: int | None,
    beside_in: int,
    beside_out: int,
    flags: set[str],
) -> None:
    """By the declared convention, unless the reported total proves another."""
    cached = (n["cache_read_tokens"] or 0) + (n["cache_write_tokens"] or 0)
    adds, out = convention.adds_cache, beside_out
    if total is not None and n["input_tokens"] is not None and n["output_tokens"] is not None:
        base = n["input_tokens"] + n["output_tokens"] + beside_in
        other = 0 if convention.beside_out else n["reasoning_tokens"] or 0
        readings = [(adds, beside_out), (not adds, beside_out), (adds, other)]
        fits = [one for one in readings if base + (cached if one[0] else 0) + one[1] == total]
        if not fits:
            flags.add("total_mismatch")
        else:
            adds, out = fits[0]
            if fits[0] != readings[0]:
                flags.add("convention_by_total")
    if n["input_tokens"] is not None:
        n["input_tokens"] += beside_in + (cached if adds else 0)
    if n["output_tokens"] is not None:
        n["output_tokens"] += out


def _nulled(  # noqa: C901
    n: dict[str, int | None], written: Count, flags: set[str], *, bad_in: bool, bad_out: bool, strange: bool, seed: bool
) -> None:
    """A subset above its total makes both NULL, and what a total cannot be trusted for makes it NULL."""

    def held(names: tuple[str, ...]) -> int:
        return sum(n[name] or 0 for name in names)

    def above(part: int | None, whole: int | None) -> bool:
        return part is not None and whole is not None and part > whole

    cache = above(held(CACHED), n["input_tokens"])
    media = above(held(IN_MEDIA), n["input_tokens"]) or above(held(CACHED_MEDIA), n["cache_read_tokens"])
    media = media or any(above(n[part], n[whole]) for part, whole in zip(CACHED_MEDIA, IN_MEDIA, strict=True))
    long = above(n["cache_write_long_tokens"], n["cache_write_tokens"])
    long = long or (isinstance(written.value, int) and above(written.value, n["cache_write_tokens"]))
    reasoning = above(n["reasoning_tokens"], n["output_tokens"])
    out_media = above(held(("reasoning_tokens", *OUT_MEDIA)), n["output_tokens"])
    for name, found in (
        ("cache_gt_input", cache),
        ("cache_write_long_gt_write", long),
        ("reasoning_gt_output", reasoning),
        ("media_gt_total", media or (out_media and not reasoning)),
        ("unknown_meter", strange),
    ):
        if found:
            flags.add(name)
    if cache or reasoning:
        flags.discard("total_mismatch")
    gone = set[str]()
    if cache or media or long or bad_in or strange:
        gone.add("input_tokens")
    if cache:
        gone |= {name for name in CACHED if n[name]}
    if (cache and n["cache_write_tokens"]) or long:
        gone |= {"cache_write_tokens", "cache_write_long_tokens"}
    if n["cache_write_tokens"] is None and n["cache_write_long_tokens"]:
        gone.add("cache_write_long_tokens")
    if media:
        gone |= {*IN_MEDIA, *CACHED_MEDIA}
    if reasoning or out_media or bad_out or seed:
        gone.add("output_tokens")
    if seed or reasoning or (out_media and n["reasoning_tokens"]):
        gone.add("reasoning_tokens")
    if out_media:
        gone |= set(OUT_MEDIA)
    for name in gone:
        n[name] = None
