"""Column lists of the cell steps, written from the schema: which counts are summed, and what a cell is uniform in."""

from __future__ import annotations

from tenfold.store.schema import TOKEN_COLUMNS

# Counts of media, whose cached share decides what is priced where.
MEDIA = ("audio", "image", "video")
CACHED_MEDIA = tuple(f"cache_read_{kind}_tokens" for kind in MEDIA)
# Totals are never parts, so a cell needs no bit for them.
PARTS = tuple(name for name in TOKEN_COLUMNS if name not in ("input_tokens", "output_tokens"))


def counts() -> str:
    """List the counts.

    Returns:
        SQL text.
    """
    return ",\n  ".join(TOKEN_COLUMNS)


def sums() -> str:
    """Sum the counts.

    Returns:
        SQL text.
    """
    return ",\n  ".join(f"cast(sum({name}) as bigint) as {name}" for name in TOKEN_COLUMNS)


def grouping_words() -> dict[str, str]:
    """Write the column placeholders of ``cells_grouped.sql``.

    Returns:
        ``sums``, ``unknown_mask`` and ``positive_mask`` as SQL.
    """
    bits = [f"case when {_is_above_zero(name)} then {2**i} else 0 end" for i, name in enumerate(PARTS)]
    unknown = [
        "case when input_tokens is null then 1 else 0 end",
        "case when output_tokens is null then 2 else 0 end",
        *(
            f"case when input_{kind}_tokens > 0 and cache_read_{kind}_tokens is null then {4 * 2**i} else 0 end"
            for i, kind in enumerate(MEDIA)
        ),
    ]
    return {
        "sums": sums(),
        "unknown_mask": "\n    + ".join(unknown),
        "positive_mask": "\n    + ".join(bits),
    }


def present(mask: int) -> frozenset[str]:
    """Read which counts occur.

    Args:
        mask: Bits of ``positive_mask``, of any number of cells together.

    Returns:
        The columns above zero somewhere.
    """
    return frozenset(name for i, name in enumerate(PARTS) if mask & 2**i)


def _is_above_zero(name: str) -> str:
    if name == "cache_write_tokens":
        return "cache_write_tokens > coalesce(cache_write_long_tokens, 0)"
    return f"{name} > 0"
