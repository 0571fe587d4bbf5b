"""What a unit of work costs (formats.md C1), and allocation shares (C2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

from oracle_review.basics import Row, by, column, spend

FAILED = ("error", "cancelled", "expired", "blocked", "timeout")


def distinct(rows: Iterable[Row], name: str) -> tuple[int, int]:
    """Cost of priced requests that name a unit, and how many units they name."""
    named = [row for row in rows if row.is_priced and row[name] is not None]
    return spend(named), len({row[name] for row in named})


def outcome(rows: Sequence[Row], log: Sequence[Row]) -> tuple[int, int]:
    """Cost of all attempts whose outcome is known, and good outcomes; what has no price is in neither.

    As stated: without `outcome_ok` anywhere, the status success stands in; a failed attempt and one that was tried
    again are known to be no good one; what else a session (or a trace) holds that was judged was for that one. Retries
    and judgements are looked for in the whole log, and a success that nobody bills counts only if a gateway's cache
    gave it.
    """
    again = {row["retry_of"] for row in log} - {None}
    if all(row["outcome_ok"] is None for row in log):
        known = [r for r in rows if r.cost is not None and (r["status"] is not None or r["request_id"] in again)]
        good = [row for row in known if row["status"] == "success"]
        return spend(known), sum(row.is_billed or row["gateway_cache_hit"] is True for row in good)
    judged = {_work(row) for row in log if row["outcome_ok"] is not None}
    known = [
        row
        for row in rows
        if row.cost is not None
        and (
            row["outcome_ok"] is not None
            or row["status"] in FAILED
            or (row["request_id"] is not None and row["request_id"] in again)
            or (_work(row) is not None and _work(row) in judged)
        )
    ]
    return spend(known), sum(row["outcome_ok"] is True for row in known)


def literal_outcome(rows: Sequence[Row]) -> tuple[int, int]:
    """C1 to the letter: all cost over good outcomes."""
    is_judged = any(row["outcome_ok"] is not None for row in rows)
    good = sum((row["outcome_ok"] if is_judged else row["status"] == "success") is True for row in rows)
    return spend(rows), good


def _work(row: Row) -> str | None:
    return row["session_id"] or row["trace_id"]


def shares(rows: Iterable[Row], name: str) -> dict[str | None, tuple[int, Fraction]]:
    """Cost and share by owner; what nobody owns is under None."""
    rows = list(rows)
    whole = spend(rows)
    return {owner: (sums.pusd, Fraction(sums.pusd, whole)) for owner, sums in by(rows, column(name)).items()}


def shared_out(cost: dict[str, int], shared: Iterable[str], weights: dict[str, int] | None = None) -> dict[str, int]:
    """What each other owner carries of the shared owners' cost, by largest remainder.

    In proportion to its own cost (usage) or to weights; one of nothing carries nothing.
    """
    pool = sum(cost.get(owner, 0) for owner in shared)
    carry = weights or {owner: pusd for owner, pusd in cost.items() if owner not in shared}
    whole = sum(carry.values())
    exact = {owner: Fraction(pool * weight, whole) for owner, weight in carry.items()}
    parts = {owner: int(part) for owner, part in exact.items()}
    left = pool - sum(parts.values())
    for owner in sorted(exact, key=lambda o: (parts[o] - exact[o], o))[:left]:
        parts[owner] += 1
    return parts
