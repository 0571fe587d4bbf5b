"""How much of a log is priced, in requests, tokens and (estimated) money, and what is not, by name."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tenfold.ledger.session import Session


@dataclass(frozen=True, slots=True)
class Coverage:
    """The priced share of the billable requests.

    Args:
        requests: Billable requests that no gateway cache answered.
        unpriced_requests: Those of them without a price.
        tokens: Their known tokens.
        priced_tokens: Tokens of priced requests.
        not_billed_requests: Requests beside them that are not billed (failed, retrieved, gateway cache).
        split_unknown_requests: Requests whose cached share is unknown, priced as if nothing had been cached.
        priced_pusd: What the priced ones cost.
        unpriced: One row per (provider, model, tier, region, status) without a price, with the reason.
    """

    requests: int
    unpriced_requests: int
    tokens: int
    priced_tokens: int
    not_billed_requests: int
    split_unknown_requests: int
    priced_pusd: int
    unpriced: tuple[dict[str, Any], ...]

    @property
    def is_unpriced(self) -> bool:
        """Nothing of what is billable has a price, so there is no total."""
        return self.requests > 0 and self.unpriced_requests == self.requests

    @property
    def requests_ratio(self) -> float | None:
        """Priced requests over billable ones; None where there are none."""
        return None if not self.requests else float(Fraction(self.requests - self.unpriced_requests, self.requests))

    @property
    def tokens_ratio(self) -> float | None:
        """Priced tokens over known tokens; None where there are none."""
        return None if not self.tokens else float(Fraction(self.priced_tokens, self.tokens))

    @property
    def money_ratio(self) -> float | None:
        """Priced money over itself and the unpriced tokens at the log's own average price: modelled, not billed."""
        if not self.priced_tokens or not self.priced_pusd:
            return None
        missing = Fraction(self.priced_pusd, self.priced_tokens) * (self.tokens - self.priced_tokens)
        return float(self.priced_pusd / (self.priced_pusd + missing))

    def as_dict(self) -> dict[str, Any]:
        """Give the coverage the keys that scripts rely on.

        Returns:
            ``requests_ratio``, ``tokens_ratio``, ``money_ratio`` (modelled), counts and ``unpriced[]``.
        """
        return {
            "requests_ratio": self.requests_ratio,
            "tokens_ratio": self.tokens_ratio,
            "money_ratio": self.money_ratio,
            "requests": self.requests,
            "unpriced_requests": self.unpriced_requests,
            "not_billed_requests": self.not_billed_requests,
            "split_unknown_requests": self.split_unknown_requests,
            "split_unknown_ratio": self.split_unknown_requests / self.requests if self.requests else None,
            "unpriced": list(self.unpriced),
        }


_UNPRICED = """
select price_key, price_status,
  cast(sum(requests) as bigint) as requests,
  cast(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) as bigint) as tokens
from priced_grouped
where is_billed and not is_priced
group by all
order by requests desc, price_key, price_status
"""
_REASONS = {
    "usage_missing": "the log line has no usage",
    "usage_partial": "the log line has only part of its usage, or an impossible count",
    "unpriced_meter": "a counted meter has no price in the entry that applies",
}


def coverage(session: Session) -> Coverage:
    """Measure coverage.

    Args:
        session: A priced look at a store.

    Returns:
        The coverage of the session's window.
    """
    total = session.totals(keep=True).row(0, named=True)  # leaves the priced cells that _UNPRICED reads
    rows = session.engine.fetch(_UNPRICED).rows(named=True)
    parts = {row[0]: row for row in session.keys}
    return Coverage(
        requests=total["requests"],
        unpriced_requests=total["unpriced_requests"],
        tokens=total["tokens"],
        priced_tokens=total["priced_tokens"],
        not_billed_requests=total["rows_seen"] - total["requests"],
        split_unknown_requests=total["split_unknown"],
        priced_pusd=int(total["cost_pusd"]),
        unpriced=tuple(
            {
                "provider": parts[row["price_key"]][1] or None,
                "model": parts[row["price_key"]][2] or None,
                "service_tier": parts[row["price_key"]][3],
                "region": parts[row["price_key"]][4] or None,
                "price_status": row["price_status"],
                "requests": row["requests"],
                "tokens": row["tokens"],
                "reason": _reason(session, row["price_key"], row["price_status"]),
            }
            for row in rows
        ),
    )


def _reason(session: Session, price_key: int, status: str) -> str:
    if status in _REASONS:
        return _REASONS[status]
    found = session.card.matches[price_key]
    if status == "ambiguous":
        cells = [band.ambiguous for one in found.lists for band in one.bands if band.ambiguous]
        return "; ".join(dict.fromkeys(cells)) or "the request has no time, or cached and media tokens may overlap"
    return found.reason or f"{found.model} has no price on that date"
