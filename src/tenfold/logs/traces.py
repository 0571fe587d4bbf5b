"""What published traces have in common: counts and arrivals of real traffic, mostly without ids, dates or models.

Where times are offsets from an unknown start, they stand as if it were 1970-01-01 00:00 (flag ``relative_ts``): order
and distance are true, the dates are not; price such a log at a date of its own. Provider and model come with ``--set``.
"""

from __future__ import annotations

from tenfold.usage.shape import UsageShape

# Mooncake's keys, which others took over.
LENGTHS = {"timestamp": "JSON", "input_length": "JSON", "output_length": "JSON", "hash_ids": "JSON"}


def shape(name: str, input_key: str, output_key: str, total: tuple[str, ...] = ()) -> UsageShape:
    """Make the convention of a trace: totals only.

    Args:
        name: The trace.
        input_key: Key of the input tokens.
        output_key: Key of the output tokens.
        total: Paths of the reported total.

    Returns:
        The shape.
    """
    counts = {"input_tokens": (input_key,), "output_tokens": (output_key,)}
    return UsageShape(name=name, counts=counts, marks=(), total=total)
