"""What the shape of a usage object is: its paths, its convention, and what an absent count means in it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# What an absent count means, beside "unknown" (the default). An object without any count says nothing at all.
ZERO = "zero"  # the provider leaves zeros out
ZERO_WITHOUT_WRITES = "zero_without_writes"  # nothing written, so nothing written for long
ZERO_BESIDE_CACHE = "zero_beside_cache"  # an object cut down to its cache counts has nothing uncached
ZERO_BY_TOTAL = "zero_by_total"  # the reported total is the input alone (embeddings)
ZERO_BESIDE_PARTS = "zero_beside_parts"  # another part of a total is said
NAMED_RULES = frozenset({ZERO, ZERO_WITHOUT_WRITES, ZERO_BESIDE_CACHE, ZERO_BY_TOTAL, ZERO_BESIDE_PARTS})
WHOLES = frozenset({"input_tokens", "output_tokens"})
# Any other rule is the path of a details object (or several, between bars): where one stands, an absent key is 0.

# A dot between names; one within a name is written with a backslash, as in the keys of a span's attributes.
_DOT = re.compile(r"(?<!\\)\.")
# A path that sums a list's entries of one kind.
LISTED = re.compile(r"(?P<list>\w+)\[(?P<key>\w+)=(?P<value>\w+)\]\.(?P<leaf>\w+)")


def steps(path: str) -> list[str]:
    r"""Split a dotted path; ``\.`` is a dot within a name.

    Args:
        path: The path.

    Returns:
        Its names.
    """
    return [step.replace("\\.", ".") for step in _DOT.split(path)]


def parts_of(counts: Iterable[str]) -> tuple[str, ...]:
    """List a shape's counts that are parts of a total.

    Args:
        counts: Its token columns.

    Returns:
        The parts.
    """
    return tuple(name for name in counts if name not in WHOLES)


class UsageShape(NamedTuple):
    """How one provider reports usage.

    Args:
        name: What ``shape=`` calls it.
        counts: Canonical token column -> paths that hold it, first one present wins.
        marks: Sets of keys; an object that has all keys of one set is of this shape.
        total: Paths of the reported total.
        input_beside: Input counts that lie outside the input key and are always added to it.
        output_beside: Output counts that lie outside the output key, unless the total proves otherwise.
        includes_cache: The input key counts cached and written tokens too; None: not declared, the total
            must prove it.
        total_proves: The reported total follows the same convention as the bill.
        absent: Canonical column -> what an absent count means.
        zero_below: Total input below which absent cache counts are 0.
        open_objects: Objects in which every key is a meter: an unknown one there must not be dropped.
        open_known: Paths in them of the default lifetime, which need no column of their own.
        write_split: Paths of the writes by lifetime, which together are all writes where the count of all is absent
            or 0 (no log reader's shape has any).
        tier: Paths of the service tier.
        region: Paths of the region that the price depends on.
        plain: The column names are the keys, and any other key is a mistake.
    """

    name: str
    counts: Mapping[str, tuple[str, ...]]
    marks: tuple[frozenset[str], ...]
    total: tuple[str, ...] = ()
    input_beside: tuple[str, ...] = ()
    output_beside: tuple[str, ...] = ()
    includes_cache: bool | None = True
    total_proves: bool = True
    absent: Mapping[str, str] = {}
    zero_below: int = 0
    open_objects: tuple[str, ...] = ()
    open_known: tuple[str, ...] = ()
    write_split: tuple[str, ...] = ()
    tier: tuple[str, ...] = ()
    region: tuple[str, ...] = ()
    plain: bool = False
