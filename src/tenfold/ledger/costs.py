"""List, contracted and effective cost, kept apart (FOCUS 1.2, ListCost, ContractedCost, EffectiveCost).

List cost is by the provider's list, contracted cost by your own prices over it; effective cost is contracted cost with
the flat costs of commitments shared out by tokens over the requests that they cover.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import polars as pl

from tenfold.ledger.session import Session, timestamp
from tenfold.money import divided, share_out, usd_text
from tenfold.prices.book import Commitment
from tenfold.prices.words import canonical_provider, canonical_tier

_HOUR_US = 3_600_000_000


@dataclass(frozen=True, slots=True)
class Committed:
    """One commitment over a window.

    Args:
        commitment: What was agreed.
        since: Start of the part that falls into the window.
        until: Its end.
        flat_pusd: Its cost over that part: capacity by the hour, or the shortfall of an amount to be spent.
        used_pusd: Contracted cost of the requests it covers.
        requests: How many those are.
        tokens: Their known tokens.
    """

    commitment: Commitment
    since: datetime
    until: datetime
    flat_pusd: int
    used_pusd: int
    requests: int
    tokens: int

    @property
    def unallocated_pusd(self) -> int:
        """Flat cost that no request can carry, because none is covered."""
        return 0 if self.tokens else self.flat_pusd

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold cost --json``.

        Returns:
            ``name``, ``from``, ``to``, ``flat_usd``, ``used_usd``, ``requests``, ``tokens``, ``unallocated_usd``,
            ``source``, ``note``.
        """
        is_both = self.commitment.pusd_per_hour is not None and self.used_pusd > 0
        return {
            "name": self.commitment.name,
            "from": self.since.isoformat(),
            "to": self.until.isoformat(),
            "flat_usd": usd_text(self.flat_pusd),
            "used_usd": usd_text(self.used_pusd),
            "requests": self.requests,
            "tokens": self.tokens,
            "unallocated_usd": usd_text(self.unallocated_pusd),
            "source": self.commitment.source,
            "note": "the requests it covers also cost by the token; give their tier zero rates if the capacity pays "
            "for them" if is_both else None,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Costs:
    """The three costs by dimensions.

    Args:
        by: The dimensions.
        frame: One row per group: dimensions, ``requests``, ``tokens``, ``list_pusd``, ``list_unpriced_requests``
            (they have no list price), ``contracted_pusd``, ``effective_pusd`` (costs are Decimal(38, 0)).
        commitments: What was shared out.
    """

    by: tuple[str, ...]
    frame: pl.DataFrame
    commitments: tuple[Committed, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold cost --json``.

        Returns:
            ``list_usd``, ``list_unpriced_requests``, ``contracted_usd``, ``effective_usd`` and ``commitments[]``.
        """
        kinds = ("list", "contracted", "effective")
        return {
            **{f"{kind}_usd": usd_text(self.total(kind)) for kind in kinds},
            "list_unpriced_requests": int(self.frame["list_unpriced_requests"].sum() or 0),
            "commitments": [one.as_dict() for one in self.commitments],
        }

    def rows(self) -> dict[tuple[Any, ...], dict[str, str | None]]:
        """Give the three costs of each group.

        Returns:
            The group's dimensions to ``list_cost_usd``, ``contracted_cost_usd`` and ``effective_cost_usd``.
        """
        return {
            tuple(row[name] for name in self.by): {
                f"{kind}_cost_usd": usd_text(int(row[f"{kind}_pusd"])) for kind in ("list", "contracted", "effective")
            }
            for row in self.frame.rows(named=True)
        }

    def total(self, kind: str) -> int:
        """Sum one of the costs.

        Args:
            kind: ``list``, ``contracted`` or ``effective``.

        Returns:
            pUSD; effective cost includes what no request could carry.
        """
        own = int(self.frame[f"{kind}_pusd"].sum() or 0)
        return own + (sum(one.unallocated_pusd for one in self.commitments) if kind == "effective" else 0)


def costs(session: Session, at_list: pl.DataFrame, by: Sequence[str] = ()) -> Costs:
    """Compute the three costs.

    Args:
        session: The log priced by the book with your own prices.
        at_list: Totals of the same log and window, priced by the list.
        by: Columns of ``requests`` or time grains.

    Returns:
        The costs; the groups of one kind sum to its total to the pUSD.
    """
    own = session.totals(by).select(*by, "requests", "tokens", pl.col("cost_pusd").alias("contracted_pusd"))
    listed = at_list.select(  # the same groups in the same order
        pl.col("cost_pusd").alias("list_pusd"), pl.col("unpriced_requests").alias("list_unpriced_requests")
    )
    shares = [0] * len(own)
    found: list[Committed] = []
    for commitment in session.book.commitments:
        committed, covered = _committed(session, commitment, by)
        if committed is None:
            continue
        found.append(committed)
        weights = covered if not by else own.join(covered, on=list(by), how="left", nulls_equal=True)
        tokens = [int(value or 0) for value in weights["covered_tokens"]]
        if committed.tokens:
            shares = [a + b for a, b in zip(shares, share_out(committed.flat_pusd, tokens), strict=True)]
    flat = pl.Series("flat", shares, dtype=pl.Int128).cast(pl.Decimal(38, 0))
    frame = own.hstack(listed).with_columns((pl.col("contracted_pusd") + flat).alias("effective_pusd"))
    return Costs(tuple(by), frame, tuple(found))


def _committed(session: Session, commitment: Commitment, by: Sequence[str]) -> tuple[Committed | None, pl.DataFrame]:
    span = _span(session)
    nothing = pl.DataFrame({**{name: [] for name in by}, "covered_tokens": []})
    if span is None:
        return None, nothing
    since, until = max(span[0], commitment.valid_from), min(span[1], commitment.valid_to)
    if since >= until:
        return None, nothing
    condition = (
        f"{_covered_keys(session, commitment)} and priced_at >= {timestamp(since)} and priced_at < {timestamp(until)}"
    )
    covered = session.totals(by, condition=condition)
    used, tokens = int(covered["cost_pusd"].sum() or 0), int(covered["tokens"].sum() or 0)
    micros = (until - since) // timedelta(microseconds=1)
    if commitment.pusd_per_hour is not None:
        flat = divided(commitment.pusd_per_hour * micros, _HOUR_US)
    else:
        whole = (commitment.valid_to - commitment.valid_from) // timedelta(microseconds=1)
        flat = max(divided((commitment.pusd or 0) * micros, whole) - used, 0)
    made = Committed(commitment, since, until, flat, used, int(covered["requests"].sum() or 0), tokens)
    return made, covered.select(*by, pl.col("tokens").alias("covered_tokens"))


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
    days = session.engine.fetch("select min(day) as first, max(day) as last from cube where day is not null")
    first: date | None = days["first"][0]
    last: date | None = days["last"][0]
    since = session.window.since or (first and datetime.combine(first, time(), UTC))
    until = session.window.until or (last and datetime.combine(last, time(), UTC) + timedelta(days=1))
    return None if since is None or until is None else (since, until)
