"""Rows with their price, and sums of them: spend, composition, batch share, daily cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from oracle import Book, is_billed, price_request

KINDS = {
    "uncached_input": "uncached", "input_audio": "uncached", "input_image": "uncached", "input_video": "uncached",
    "cache_read": "read", "cache_read_audio": "read", "cache_read_image": "read", "cache_read_video": "read",
    "cache_write": "write", "cache_write_long": "write", "output": "output", "reasoning": "output",
}  # fmt: skip
MILLION = 1_000_000


@dataclass(frozen=True)
class Row:
    """One request: its columns, whether it is billed, its price (None: unknown), and per meter (units, pUSD)."""

    at: Mapping[str, Any]
    is_billed: bool
    status: str
    cost: int | None
    meters: Mapping[str, tuple[int, int]]
    entry: Any

    def __getitem__(self, column: str) -> Any:
        return self.at.get(column)

    @property
    def is_priced(self) -> bool:
        """Billed, with a price."""
        return self.is_billed and self.cost is not None

    @property
    def tokens(self) -> int:
        """Known tokens."""
        return (self["input_tokens"] or 0) + (self["output_tokens"] or 0)

    @property
    def tier(self) -> str:
        """Tier; none is the standard one."""
        return self["service_tier"] or "standard"

    @property
    def day(self) -> date:
        """UTC day of the start."""
        return self["ts"].date()


def price(book: Book, requests: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Price requests one after the other."""
    rows: list[Row] = []
    for request in requests:
        found = price_request(book, request)
        meters = {name: (units, int(pusd)) for name, (units, pusd) in found.meters.items()}
        cost = None if found.cost_pusd is None else int(found.cost_pusd)
        rows.append(Row(request, is_billed(request), found.status, cost, meters, found.entry))
    return rows


def within(rows: Iterable[Row], since: datetime, until: datetime) -> list[Row]:
    """Rows that start in [since, until), naive UTC."""
    return [row for row in rows if row["ts"] is not None and since <= row["ts"] < until]


def spend(rows: Iterable[Row]) -> int:
    """Cost of billed requests that have a price, in pUSD."""
    return sum(row.cost or 0 for row in rows if row.is_billed)


@dataclass
class Sums:
    """Sums over billed requests."""

    requests: int = 0
    unpriced: int = 0
    pusd: int = 0
    tokens: int = 0
    meters: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def total(rows: Iterable[Row]) -> Sums:
    """Sum billed requests; units only of what has a price."""
    found = Sums()
    for row in rows:
        if not row.is_billed:
            continue
        found.requests += 1
        found.unpriced += row.cost is None
        found.pusd += row.cost or 0
        found.tokens += row.tokens if row.is_priced else 0
        for name, (units, pusd) in row.meters.items():
            old = found.meters.get(name, (0, 0))
            found.meters[name] = (old[0] + units, old[1] + pusd)
    return found


def by(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, Sums]:
    """Sum by a key."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return {name: total(some) for name, some in groups.items() if any(row.is_billed for row in some)}


def column(name: str) -> Callable[[Row], Any]:
    """Key of a column; an unknown tier is the standard one."""
    return (lambda row: row.tier) if name == "service_tier" else (lambda row: row[name])


def tier_share(rows: Iterable[Row], tier: str) -> tuple[Fraction, Fraction]:
    """Share of spend and of priced tokens that a tier carries."""
    all_of, part = total(rows), total([row for row in rows if row.tier == tier])
    return Fraction(part.pusd, all_of.pusd), Fraction(part.tokens, all_of.tokens)


def daily(rows: Iterable[Row], key: Callable[[Row], Any]) -> dict[Any, dict[date, int]]:
    """Cost by key and UTC day."""
    found: dict[Any, dict[date, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row.is_priced:
            found[key(row)][row.day] += row.cost or 0
    return found


def per_million(rows: Iterable[Row]) -> dict[str, Fraction | None]:
    """Blended price of a million tokens, and by kind; in pUSD."""
    rows = [row for row in rows if row.is_priced]
    sums = total(rows)
    found: dict[str, Fraction | None] = {"blended": _of(sums.pusd, sums.tokens)}
    for kind in ("uncached", "read", "write", "output"):
        of_kind = [pair for name, pair in sums.meters.items() if KINDS.get(name) == kind]
        found[kind] = _of(sum(pusd for _, pusd in of_kind), sum(units for units, _ in of_kind))
    return found


def _of(pusd: int, tokens: int) -> Fraction | None:
    return Fraction(pusd * MILLION, tokens) if tokens else None
