"""Words that invoices and reports have for meters, tiers and units, and the ones tenfold stores them under."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

# What a text is of: the first that fits. Signs between words count as spaces.
_METERS = tuple(
    (re.compile(pattern), meter)
    for pattern, meter in (
        (r"\bcach\w*\b.*\bstorage\b|\bstorage\b", "cache_storage"),
        (r"\bcach\w*\b.*\b(write|creation)\w*.*\b(1 ?h|12 ?h|(one|1|12) hours?|long|extended)\b", "cache_write_long"),
        (r"\b(1 ?h|12 ?h|long|extended)\b.*\bcach\w*\b.*\b(write|creation)", "cache_write_long"),
        (r"\bcach\w*\b.*\b(write|writes|creation)|\b(write|writes)\b.*\bcache", "cache_write"),
        (r"(?<!non )(?<!not )\bcached\b|\bcach\w*\b.*\b(read|reads|hit|hits)\b", "cache_read"),
        (r"\b(reasoning|thinking)\b", "reasoning"),
        (r"\baudio\b.*\b(input|prompt)|\b(input|prompt)\b.*\baudio\b", "input_audio"),
        (r"\baudio\b.*\b(output|completion)|\b(output|completion)\b.*\baudio\b", "output_audio"),
        (r"\bimage\b.*\b(input|prompt)|\b(input|prompt)\b.*\bimage\b", "input_image"),
        (r"\bimage\b.*\b(output|completion)|\b(output|completion)\b.*\bimage\b", "output_image"),
        (r"\b(input|prompt)\b", "uncached_input"),
        (r"\b(output|completion|completions)\b", "output"),
        (r"\bweb search", "web_search"),
        (r"\bfile search", "file_search"),
    )
)
_TIERS = re.compile(r"\b(batch|flex|priority|fast)\b")
_UNIT = re.compile(r"((?P<number>\d+(\.\d+)?)\s*)?(?P<size>[KMB]?)[\s_]*tokens?", re.IGNORECASE)
_SIZES = {"": 1, "K": 1_000, "M": 1_000_000, "B": 1_000_000_000}


class Unit(NamedTuple):
    """A unit of quantities.

    Args:
        name: Such as ``tokens``.
        factor: How many of it one of the source's own is.
    """

    name: str
    factor: Decimal


def plain(text: str) -> str:
    """Write a text in lower case, with single spaces between its words.

    Args:
        text: Any text.

    Returns:
        The words.
    """
    return " ".join(re.sub(r"[^a-z0-9.]+", " ", text.lower()).split())


def meter_of(text: str) -> str | None:
    """Read which meter a text is about.

    Args:
        text: A meter's name, a line item or a description.

    Returns:
        tenfold's word; None where the text names none.
    """
    said = plain(text)
    return next((meter for pattern, meter in _METERS if pattern.search(said)), None)


def tier_of(text: str) -> str | None:
    """Read which service tier a text is about.

    Args:
        text: A line item or a description.

    Returns:
        The tier; None where the text names none.
    """
    found = _TIERS.search(plain(text))
    return found[1] if found else None


def tokens_unit(text: str) -> Unit | None:
    """Read a unit of tokens: ``Tokens``, ``1K tokens``, ``1000_tokens``, ``1000000 Tokens``.

    Args:
        text: The unit.

    Returns:
        The unit; None where it is of something else.
    """
    found = _UNIT.fullmatch(text.strip().replace(",", ""))
    if found is None:
        return None
    return Unit("tokens", Decimal(found["number"] or 1) * _SIZES[found["size"].upper()])
