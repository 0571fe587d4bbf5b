"""One model's requests of two windows as a pair: only columns that both have, and latencies that can be true."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from tenfold.display import counted
from tenfold.latency import reading
from tenfold.latency.reading import Columns, Key, Named
from tenfold.latency.records import Floats, Labels, Mask, Pair, Window

# Columns that a window always has; where one of both lacks them they hold no number.
_ALWAYS = ("ttft_s", "e2e_s", "input", "output")


@dataclass(slots=True)
class _Found:
    """What becomes of columns.

    Args:
        fields: Field of ``Window`` to its values before and after.
        missing: Columns of the table that neither window fills.
        notes: What else a reader must know.
    """

    fields: dict[str, tuple[Any, Any]] = field(default_factory=dict[str, tuple[Any, Any]])
    missing: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])

    def add(self, name: str, column: str, both: tuple[Any, Any], filled: tuple[bool, bool]) -> None:
        """Take in a column where both windows fill it; else say that they do not."""
        if all(filled):
            self.fields[name] = both
        elif any(filled):
            self.notes.append(f"{column} is filled only in the window {'before' if filled[0] else 'after'}: not used")
        else:
            self.missing.append(column)


def paired(label: str, old: Columns, new: Columns, keys: tuple[Key, Key]) -> Pair:
    """Cut one model's requests out of both windows.

    Args:
        label: The model, for people.
        old: The window before.
        new: The window after.
        keys: Provider and model before and after: the same, unless no model is in both windows.

    Returns:
        The pair.
    """
    rows = slice(*old.models[keys[0]]), slice(*new.models[keys[1]])
    found = _Found()
    if np.isnan(old.ts_s).any() or np.isnan(new.ts_s).any():
        found.missing.append("ts")
    for name, (column, _) in reading.NUMBERS.items():
        both = old.numbers[name][rows[0]], new.numbers[name][rows[1]]
        found.add(name, column, both, (not np.isnan(both[0]).all(), not np.isnan(both[1]).all()))
    for name, column in reading.NAMES.items():
        both = _shared(old.names[name], rows[0], new.names[name], rows[1])
        found.add(name, column, both, _filled(both))
    structured = old.is_structured, new.is_structured
    cut = tuple(None if one is None else one[part] for one, part in zip(structured, rows, strict=True))
    found.add("is_structured", "is_structured", (cut[0], cut[1]), (cut[0] is not None, cut[1] is not None))
    _add_tenant(found, old, new, rows)
    if keys[0] != keys[1]:
        # another model is another revision: the preconditions refuse it as such
        told = tuple("/".join(part for part in key if part) for key in keys)
        codes = [np.full(cut.stop - cut.start, code, np.int32) for code, cut in enumerate(rows)]
        found.fields["revision"] = Labels(codes[0], told), Labels(codes[1], told)
    has = "ttft_s" in found.fields, "e2e_s" in found.fields
    for name in _ALWAYS:
        found.fields.setdefault(
            name, (np.full(old.ts_s[rows[0]].size, np.nan), np.full(new.ts_s[rows[1]].size, np.nan))
        )
    before = _window("before", old, rows[0], {name: values[0] for name, values in found.fields.items()}, has, found)
    after = _window("after", new, rows[1], {name: values[1] for name, values in found.fields.items()}, has, found)
    return Pair(label, before, after, missing=tuple(found.missing), notes=tuple(found.notes))


def _add_tenant(found: _Found, old: Columns, new: Columns, rows: tuple[slice, slice]) -> None:
    """Take the first column of who asked that both windows fill."""
    is_partly = False
    for name in reading.TENANTS:
        both = _shared(old.names[name], rows[0], new.names[name], rows[1])
        filled = _filled(both)
        is_partly = is_partly or any(filled)
        if all(filled):
            found.fields["tenant"] = both
            found.notes += [f"Tenants are told by {name}"] if name != "team" else []
            return
    if is_partly:
        found.notes.append(f"No column of who asked ({', '.join(reading.TENANTS)}) is filled in both windows")
    else:
        found.missing.append("team")


def _filled(both: tuple[Labels, Labels]) -> tuple[bool, bool]:
    return bool((both[0].codes >= 0).any()), bool((both[1].codes >= 0).any())


def _window(
    name: str, one: Columns, rows: slice, fields: dict[str, Any], has: tuple[bool, bool], found: _Found
) -> Window:
    latencies = _latencies(one.is_answered[rows], fields["ttft_s"], fields["e2e_s"], fields["output"], has=has)
    found.notes += [f"Window {name}: {note}" for note in latencies.notes]
    # failed requests kept a replica busy as well
    fields |= {"seen_first_s": fields["ttft_s"], "seen_end_s": fields["e2e_s"]}
    fields |= {"ttft_s": latencies.ttft_s, "e2e_s": latencies.e2e_s}
    asked = one.is_asked[rows]
    if not asked.all():
        fields["asked"] = asked
        fields |= {name: np.where(asked, fields[name], np.nan) for name in ("ttft_s", "e2e_s")}
    return Window(name=name, since_s=one.since_s, until_s=one.until_s, ts_s=one.ts_s[rows], ok=latencies.ok, **fields)


class _Latencies(NamedTuple):
    ok: Mask
    ttft_s: Floats
    e2e_s: Floats
    notes: tuple[str, ...]


def _latencies(answered: Mask, ttft: Floats, e2e: Floats, output: Floats, *, has: tuple[bool, bool]) -> _Latencies:
    """Keep the latencies that can be true, of requests that were answered."""
    impossible = answered & (ttft > e2e)
    # With a first token at the very end of several, the answer came in one piece: nothing is known of its first.
    whole = answered & (ttft == e2e) & (output > 1)
    ttft = np.where(answered & ~impossible & ~whole, ttft, np.nan)
    e2e = np.where(answered & ~impossible, e2e, np.nan)
    ok = answered.copy()
    if has[0]:
        ok &= ~np.isnan(ttft)
    if has[1]:
        ok &= ~np.isnan(e2e)
    unknown = int((answered & ~ok & ~impossible & ~whole).sum())
    counts = (
        (impossible, "whose first token came after the end: no latency used"),
        (whole, "answered in one piece (first token at the end): TTFT not known"),
    )
    notes = [f"{counted(int(mask.sum()), 'request')} {text}" for mask, text in counts if mask.any()]
    if unknown:
        notes.append(f"{counted(unknown, 'answered request')} without a latency: not used")
    return _Latencies(ok, ttft, e2e, tuple(notes))


def _shared(old: Named, old_rows: slice, new: Named, new_rows: slice) -> tuple[Labels, Labels]:
    """Number the names of both windows alike, those alone that occur in them."""
    parts = [_used(old, old_rows), _used(new, new_rows)]
    names = pl.concat([part.names for part in parts]).unique().sort()
    told = tuple(names.to_list())
    labels: list[Labels] = []
    for part in parts:
        places = np.append(reading.codes_in(part.names, names), np.int32(-1))
        labels.append(Labels(places[part.codes], told))
    return labels[0], labels[1]


def _used(column: Named, rows: slice) -> Named:
    """Cut a column, and drop the names that the cut lacks."""
    codes = column.codes[rows]
    occurs = np.zeros(column.names.len() + 1, dtype=np.bool_)
    occurs[codes] = True  # -1, none, is the last place
    occurs[-1] = False
    kept = np.flatnonzero(occurs)
    places = np.full(occurs.size, -1, dtype=np.int32)
    places[kept] = np.arange(kept.size, dtype=np.int32)
    return Named(places[codes], column.names.gather(kept))
