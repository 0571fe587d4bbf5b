"""List, contracted and effective cost, kept apart (FOCUS 1.2, ListCost, ContractedCost, EffectiveCost).

List cost is by the provider's list, contracted cost by your own prices over it. Effective cost is contracted cost with
capacity that is paid by the hour shared out: each UTC day's cost over that day's requests that the capacity covers, by
tokens. What no request can carry (a day without one, the rest of an amount to be spent) is a line of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl

from tenfold.display import counted, nothing_priced, small_dollars
from tenfold.ledger.session import Session, Window, timestamp
from tenfold.money import divided, share_out, usd_text
from tenfold.prices.book import Commitment
from tenfold.prices.words import canonical_provider, canonical_tier

_HOUR_US = 3_600_000_000
_KINDS = ("list", "contracted", "effective")


@dataclass(frozen=True, slots=True)
class Committed:
    """One commitment over a window.

    Args:
        commitment: What was agreed.
        since: Start of the part that falls into the window.
        until: Its end.
        flat_pusd: Cost of the capacity over that part; for an amount to be spent whose term ends in the window, what
            was not spent over the whole term.
        allocated_pusd: What of it requests carry.
        used_pusd: Contracted cost of the requests it covers.
        requests: How many those are.
        tokens: Their known tokens.
    """

    commitment: Commitment
    since: datetime
    until: datetime
    flat_pusd: int
    allocated_pusd: int
    used_pusd: int
    requests: int
    tokens: int

    @property
    def unallocated_pusd(self) -> int:
        """What no request can carry: idle days of capacity, or a shortfall."""
        return self.flat_pusd - self.allocated_pusd

    @property
    def note(self) -> str:
        """What is odd about it; empty where nothing is."""
        if self.commitment.pusd_per_hour is not None and self.used_pusd > 0:
            return "its requests also cost by the token; give their tier zero rates if the capacity pays for them"
        if self.commitment.pusd_per_hour is None and self.until < self.commitment.valid_to:
            return f"its term ends {self.commitment.valid_to.date()}: nothing is due before"
        return "" if self.requests else "no request of the window is covered by it"

    def sentence(self) -> str:
        """Say it for people.

        Returns:
            Text such as ``PTU East, committed capacity: $744.00 over 1,200 requests, $24.00 of it on idle days``.
        """
        over = counted(self.requests, "request")
        if self.commitment.pusd_per_hour is None:
            whole, used = small_dollars(self.commitment.pusd or 0), small_dollars(self.used_pusd)
            text = f"committed spend: {used} of {whole} by {over}"
            text += f", {small_dollars(self.flat_pusd)} not spent over its term" if self.flat_pusd else ""
        else:
            text = f"committed capacity: {small_dollars(self.flat_pusd)} over {over}"
            text += f", {small_dollars(self.unallocated_pusd)} of it on idle days" if self.unallocated_pusd else ""
        return f"{self.commitment.name}, {text}" + (f"; {self.note}" if self.note else "")

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold cost --json``.

        Returns:
            ``name``, ``kind``, ``from``, ``to``, ``flat_usd``, ``allocated_usd``, ``unallocated_usd``, ``used_usd``,
            ``requests``, ``tokens``, ``source``, ``note``.
        """
        return {
            "name": self.commitment.name,
            "kind": "capacity" if self.commitment.pusd_per_hour is not None else "spend",
            "from": self.since.isoformat(),
            "to": self.until.isoformat(),
            "flat_usd": usd_text(self.flat_pusd),
            "allocated_usd": usd_text(self.allocated_pusd),
            "unallocated_usd": usd_text(self.unallocated_pusd),
            "used_usd": usd_text(self.used_pusd),
            "requests": self.requests,
            "tokens": self.tokens,
            "source": self.commitment.source,
            "note": self.note or None,
        }


@dataclass(frozen=True, slots=True)
class Costs:
    """The three costs by dimensions.

    Args:
        by: The dimensions.
        frame: One row per group: dimensions, ``requests``, ``tokens``, ``unpriced_requests``,
            ``list_unpriced_requests`` (without a list price), and ``list_pusd``, ``contracted_pusd``,
            ``effective_pusd`` (Decimal(38, 0); null where nothing in the group has such a price).
        commitments: What was shared out, and what is left of it.
    """

    by: tuple[str, ...]
    frame: pl.DataFrame
    commitments: tuple[Committed, ...]

    @property
    def list_unpriced_requests(self) -> int:
        """Requests without a list price: they are in no list cost."""
        return int(self.frame["list_unpriced_requests"].sum() or 0)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold cost --json``.

        Returns:
            ``list_usd``, ``list_unpriced_requests``, ``contracted_usd``, ``effective_usd`` and ``commitments[]``.
        """
        return {
            **{f"{kind}_usd": usd_text(self.total(kind)) for kind in _KINDS},
            "list_unpriced_requests": self.list_unpriced_requests,
            "commitments": [one.as_dict() for one in self.commitments],
        }

    def rows(self) -> dict[tuple[Any, ...], dict[str, str | None]]:
        """Give the three costs of each group.

        Returns:
            The group's dimensions to ``list_cost_usd``, ``contracted_cost_usd`` and ``effective_cost_usd``.
        """
        return {
            tuple(row[name] for name in self.by): {
                f"{kind}_cost_usd": usd_text(None if (pusd := row[f"{kind}_pusd"]) is None else int(pusd))
                for kind in _KINDS
            }
            for row in self.frame.rows(named=True)
        }

    def total(self, kind: str) -> int:
        """Sum one of the costs.

        Args:
            kind: ``list``, ``contracted`` or ``effective``.

        Returns:
            pUSD over what has such a price; effective cost includes what no request could carry.
        """
        own = int(self.frame[f"{kind}_pusd"].sum() or 0)
        return own + (sum(one.unallocated_pusd for one in self.commitments) if kind == "effective" else 0)

    def sentences(self) -> list[str]:
        """Say the three costs and every commitment for people.

        Returns:
            One sentence a line, the costs first.
        """
        said = " · ".join(f"{kind} {small_dollars(self.total(kind))}" for kind in _KINDS)
        left_out = self.list_unpriced_requests
        without = f" (list leaves out {counted(left_out, 'request')} without a list price)" if left_out else ""
        return [said + without, *(one.sentence() for one in self.commitments)]

    def __repr__(self) -> str:
        said = ", ".join(f"{kind} {usd_text(self.total(kind))} USD" for kind in _KINDS)
        return f"<Costs {said}>"


def costs(session: Session, at_list: pl.DataFrame, by: Sequence[str] = ()) -> Costs:
    """Compute the three costs.

    Args:
        session: The log priced by the book with your own prices.
        at_list: Totals of the same log and window, priced by the list.
        by: Columns of ``requests`` or time grains.

    Returns:
        The costs; the groups of one kind sum to its total to the pUSD.
    """
    own = session.totals(by)
    keys = [tuple(row) for row in own.select(by).rows()] if by else [()]
    shares = dict.fromkeys(keys, 0)
    found: list[Committed] = []
    # Amounts to be spent come last: they look at their whole term, with views of their own.
    for commitment in sorted(session.book.commitments, key=lambda one: one.pusd_per_hour is None):
        committed = _committed(session, commitment, by, shares)
        if committed is not None:
            found.append(committed)
    rows: list[tuple[Any, ...]] = []
    for key, mine, listed in zip(keys, own.rows(named=True), at_list.rows(named=True), strict=True):
        contracted = _priced(mine)
        effective = shares[key] if contracted is None and shares[key] else contracted
        rows.append((
            *key, mine["requests"], mine["tokens"], mine["unpriced_requests"], listed["unpriced_requests"],
            _priced(listed), contracted, None if effective is None else (contracted or 0) + shares[key],
        ))  # fmt: skip
    counts = ("requests", "tokens", "unpriced_requests", "list_unpriced_requests")
    kinds = {name: own.schema[name] for name in by} | dict.fromkeys(counts, pl.Int64)
    kinds |= {f"{kind}_pusd": pl.Int128 for kind in _KINDS}
    frame = pl.DataFrame(rows, schema=kinds, orient="row")
    return Costs(
        tuple(by), frame.with_columns(pl.col(f"{kind}_pusd").cast(pl.Decimal(38, 0)) for kind in _KINDS), tuple(found)
    )


def _priced(row: dict[str, Any]) -> int | None:
    return None if nothing_priced(row["requests"], row["unpriced_requests"]) else int(row["cost_pusd"])


def _committed(
    session: Session, commitment: Commitment, by: Sequence[str], shares: dict[tuple[Any, ...], int]
) -> Committed | None:
    """Find what a commitment costs in the window, and add to the shares of the groups what they carry of it."""
    span = _span(session)
    if span is None:
        return None
    since, until = max(span[0], commitment.valid_from), min(span[1], commitment.valid_to)
    if since >= until:
        return None
    within = f"priced_at >= {timestamp(since)} and priced_at < {timestamp(until)}"
    covered = session.totals(condition=f"{_covered_keys(session, commitment)} and {within}")
    used, tokens = int(covered["cost_pusd"].sum() or 0), int(covered["tokens"].sum() or 0)
    requests = int(covered["requests"].sum() or 0)
    if commitment.pusd_per_hour is None:
        flat = _shortfall(session, commitment) if since < commitment.valid_to <= span[1] else 0
        return Committed(commitment, since, until, flat, 0, used, requests, tokens)
    flat, allocated = _share_capacity(session, commitment, by, (since, until), shares)
    return Committed(commitment, since, until, flat, allocated, used, requests, tokens)


def _shortfall(session: Session, commitment: Commitment) -> int:
    """Take what was not spent over the whole term: due when it ends, so that days sum to their range."""
    term = Window(commitment.valid_from, commitment.valid_to)
    used = Session(session.engine, session.book, term).totals(condition=_covered_keys(session, commitment))
    return max((commitment.pusd or 0) - int(used["cost_pusd"].sum() or 0), 0)


def _share_capacity(
    session: Session,
    commitment: Commitment,
    by: Sequence[str],
    span: tuple[datetime, datetime],
    shares: dict[tuple[Any, ...], int],
) -> tuple[int, int]:
    """Share each UTC day's capacity over that day's covered requests; gives its cost and what they carry."""
    within = f"priced_at >= {timestamp(span[0])} and priced_at < {timestamp(span[1])}"
    daily = session.daily_tokens(by, f"{_covered_keys(session, commitment)} and {within}")
    covered: dict[date, list[tuple[tuple[Any, ...], int]]] = {}
    for *key, day, tokens in daily.rows():
        covered.setdefault(day, []).append((tuple(key), tokens))
    flat = allocated = 0
    day = span[0].astimezone(UTC).date()
    while (start := _midnight(day)) < span[1]:
        since, until = max(start, span[0]), min(start + timedelta(days=1), span[1])
        cost = divided((commitment.pusd_per_hour or 0) * _micros(since, until), _HOUR_US)
        flat += cost
        groups = covered.get(day)
        if groups:
            allocated += cost
            for (key, _), share in zip(groups, share_out(cost, [tokens for _, tokens in groups]), strict=True):
                shares[key] += share
        day += timedelta(days=1)
    return flat, allocated


def _micros(since: datetime, until: datetime) -> int:
    return (until - since) // timedelta(microseconds=1)


def _covered_keys(session: Session, commitment: Commitment) -> str:
    keys = [
        str(key)
        for key, provider, model, tier, _ in session.keys
        if commitment.covers(
            canonical_provider(provider), session.card.matches[key].model or model.lower(), canonical_tier(tier)
        )
    ]
    return f"price_key in ({', '.join(keys)})" if keys else "false"


def _span(session: Session) -> tuple[datetime, datetime] | None:
    """Take the window; an open end is the first or last UTC day that has requests."""
    days = sorted(session.days)
    since = session.window.since or (_midnight(days[0]) if days else None)
    until = session.window.until or (_midnight(days[-1]) + timedelta(days=1) if days else None)
    return None if since is None or until is None else (since, until)


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)
