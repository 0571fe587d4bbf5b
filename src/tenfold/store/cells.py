"""Column lists of the cell steps, written from the schema: which counts are summed, and what a cell is uniform in."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tenfold.store.schema import TOKEN_COLUMNS

# Counts of media, whose cached share decides what is priced where.
MEDIA = ("audio", "image", "video")
CACHED_MEDIA = tuple(f"cache_read_{kind}_tokens" for kind in MEDIA)
# Totals are never parts, so a cell needs no bit for them.
PARTS = tuple(name for name in TOKEN_COLUMNS if name not in ("input_tokens", "output_tokens"))
_UNKNOWN, _CONTEXT = 8, 8 * 2 ** (2 + len(MEDIA))
_BITS = {name: 2**place for place, name in enumerate(PARTS)}


class Shape(NamedTuple):
    """What the requests of a cell are alike in, beside day, price key and context bucket. Each costs time.

    Args:
        counts: Counts that are summed.
        bits: Counts of which it matters whether they are above zero.
        unknown: Bits of ``unknown_mask`` that occur.
        has_unbilled: There are requests that are not billed.
        has_overlap: There are requests whose subsets together exceed their total.
        has_undated: There are requests without a time.
    """

    counts: tuple[str, ...] = TOKEN_COLUMNS
    bits: tuple[str, ...] = PARTS
    unknown: int = 4 * 2 ** len(MEDIA) - 1
    has_unbilled: bool = True
    has_overlap: bool = True
    has_undated: bool = True


# Fits every card and any requests.
FULL = Shape()


def counts(shape: Shape = FULL) -> str:
    """List the counts.

    Args:
        shape: The cells'.

    Returns:
        SQL text.
    """
    return ",\n  ".join(shape.counts)


def grouping_words(thresholds: Iterable[int], shape: Shape = FULL, *, from_cube: bool = False) -> dict[str, str]:
    """Write the column placeholders of ``cells_grouped.sql``.

    All that a cell is alike in is one number, ``kind``: to group by one column is cheaper than by six. From its lowest
    bit on it holds: not billed, overlap, no time, ``unknown_mask``, one bit a threshold, ``positive_mask``.

    Args:
        thresholds: Context thresholds, in tokens.
        shape: What the cells are to be.
        from_cube: They are summed from the cube's cells, which have the masks already.

    Returns:
        ``kind``, ``sums``, ``counts``, and ``context``, ``is_billed``, ``is_overlap``, ``is_dated``, ``unknown_mask``,
        ``positive_mask`` as SQL over ``kind``.
    """
    limits = sorted(set(thresholds), reverse=True)
    parts_from = _CONTEXT * 2 ** len(limits)
    bits = [_BITS[name] for name in shape.bits]
    kind = [
        *(["case when is_billed then 0 else 1 end"] if shape.has_unbilled else []),
        *(["case when is_overlap then 2 else 0 end"] if shape.has_overlap else []),
        *(["case when is_dated then 0 else 4 end"] if shape.has_undated else []),
    ]
    above = "".join(f" when context_tokens > {limit} then {_CONTEXT * 2**i}" for i, limit in enumerate(limits))
    kind += [f"case{above} else 0 end"] if limits else []
    if from_cube:
        kind += [f"(unknown_mask & {shape.unknown}) * {_UNKNOWN}"] if shape.unknown else []
        kind += [f"cast(positive_mask & {sum(bits)} as bigint) * {parts_from}"] if bits else []
    else:
        kind += _unknown(shape.unknown)
        kind += [f"case when {_is_above_zero(name)} then {_BITS[name] * parts_from} else 0 end" for name in shape.bits]
    within = "".join(f" when (kind & {_CONTEXT * 2**i}) <> 0 then {limit + 1}" for i, limit in enumerate(limits))
    return {
        "kind": "\n      + ".join(kind) or "0",
        "sums": ",\n    ".join(f"cast(sum({name}) as bigint) as {name}" for name in shape.counts),
        "counts": counts(shape),
        "context": f"cast(case{within} else 0 end as bigint)" if limits else "cast(0 as bigint)",
        "is_billed": "(kind & 1) = 0" if shape.has_unbilled else "true",
        "is_overlap": "(kind & 2) <> 0" if shape.has_overlap else "false",
        "is_dated": "(kind & 4) = 0" if shape.has_undated else "true",
        "unknown_mask": f"cast((kind & {shape.unknown * _UNKNOWN}) / {_UNKNOWN} as int)" if shape.unknown else "0",
        "positive_mask": f"cast((kind & {sum(bits) * parts_from}) / {parts_from} as int)" if bits else "0",
    }


def present(mask: int) -> frozenset[str]:
    """Read which counts occur.

    Args:
        mask: Bits of ``positive_mask``, of any number of cells together.

    Returns:
        The columns above zero somewhere.
    """
    return frozenset(name for name, bit in _BITS.items() if mask & bit)


def _unknown(bits: int) -> list[str]:
    tests = [
        "input_tokens is null",
        "output_tokens is null",
        *(f"input_{kind}_tokens > 0 and cache_read_{kind}_tokens is null" for kind in MEDIA),
    ]
    return [f"case when {test} then {_UNKNOWN * 2**i} else 0 end" for i, test in enumerate(tests) if bits & 2**i]


def _is_above_zero(name: str) -> str:
    if name == "cache_write_tokens":
        return "cache_write_tokens > coalesce(cache_write_long_tokens, 0)"
    return f"{name} > 0"
