"""Tokens of a request by class as SQL, for levers that change how many there are: rounding, classes, media kept."""

from __future__ import annotations

from collections.abc import Collection

from tenfold.store.cells import CACHED_MEDIA, MEDIA

INPUT_MEDIA = tuple(f"input_{kind}_tokens" for kind in MEDIA)
OUTPUT_MEDIA = tuple(f"output_{kind}_tokens" for kind in MEDIA)
WRITE, LONG = "coalesce(p.cache_write_tokens, 0)", "coalesce(p.cache_write_long_tokens, 0)"


def half_even(count: str, numerator: str, denominator: str) -> str:
    """Write a count times a fraction, rounded half to even, as SQL.

    Args:
        count: SQL of a whole number.
        numerator: SQL of a whole number; below 0 too.
        denominator: SQL of a whole number above 0.

    Returns:
        SQL of a BIGINT.
    """
    product = f"(({count}) * {numerator})"
    # dividing gives a double on both engines, so only what divides evenly is divided
    rest = f"({product} % {denominator})"
    whole = f"cast(({product} - {rest}) / {denominator} as bigint)"
    is_off = f"2 * abs({rest}) > {denominator} or (2 * abs({rest}) = {denominator} and {whole} % 2 <> 0)"
    return f"({whole} + case when {is_off} then case when {product} < 0 then -1 else 1 end else 0 end)"


def summed(columns: Collection[str], held: Collection[str], alias: str = "p") -> str:
    """Write a sum of counts, of those that a bill bears.

    Args:
        columns: Counts.
        held: Columns of the bill; a count that is not among them is 0 everywhere.
        alias: Name of the bill in the query.

    Returns:
        SQL of a whole number; NULL counts as 0.
    """
    return " + ".join(["0", *(f"coalesce({alias}.{name}, 0)" for name in columns if name in held)])


def text_read(held: Collection[str]) -> str:
    """Write the cached tokens that are text: cached media stay what they are.

    Args:
        held: Columns of the bill.

    Returns:
        SQL of a whole number.
    """
    return f"(coalesce(p.cache_read_tokens, 0) - ({summed(CACHED_MEDIA, held)}))"


def text_uncached(held: Collection[str]) -> str:
    """Write the uncached tokens that are text: input less reads, writes and media; what is both is taken off once.

    Args:
        held: Columns of the bill.

    Returns:
        SQL of a whole number.
    """
    media, cached = summed(INPUT_MEDIA, held), summed(CACHED_MEDIA, held)
    return f"(p.input_tokens - coalesce(p.cache_read_tokens, 0) - {WRITE} - ({media}) + ({cached}))"
