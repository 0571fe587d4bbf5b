"""Lever 8: the batch API, for requests that nobody waits for."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal

from oracle import is_billed

from oracle_levers.core import DAY_US, STANDARD, Bill, Pricer, Request, Table, end_of, in_where, level, rhe, start_us

BATCH_S = 86_400


def apply(bill: Bill, pricer: Pricer, table: Table, scenario: str, requests: list[Request], slo: Table | None) -> Bill:
    """Requests that can wait take the tier's rates, with the cached reads that stay."""
    factor = end_of(table.get("cache_hit_factor", 1), scenario)
    expiry = end_of(table.get("expiry_ratio", 0), scenario, low_is_largest=True)
    made = Bill([], bill.fees, dict(bill.touched))
    for one in bill.versions:
        after = one
        if one.fixed is None and can_wait(one.request, table, requests, slo):
            read = one.request.get("cache_read_tokens")
            moved = {**one.request, "service_tier": table.get("tier", "batch")}
            if read is not None:  # "Reads lost to cache_hit_factor are priced as uncached input at the batch rate"
                exact = Decimal(read * factor.numerator) / Decimal(factor.denominator)
                moved["cache_read_tokens"] = int(exact.to_integral_value(ROUND_HALF_UP))
            moved_one = one.changed(moved)
            if pricer.may_become(one, [moved_one]):
                after = moved_one
                made.touch("batch_api", one.origin)
                # The rule: "cost' = batch + rhe(ratio x (before - batch)) as a fee"
                made.fees += rhe(expiry * (pricer.cost(one) - pricer.cost(after)))
        made.versions.append(after)
    return made


def can_wait(request: Request, table: Table, requests: list[Request], slo: Table | None) -> bool:
    """The rule: "standard tier, not streamed, no later request of the same session within 24 hours", and no
    deadline.
    """
    if not in_where(table, request) or str(request.get("service_tier") or "").lower() not in STANDARD:
        return False
    if request.get("is_stream") is not False or is_retry(request, requests):
        return False
    t = start_us(request)
    if request.get("session_id") is not None and t is not None:
        for other in requests:
            later = start_us(other) if other.get("session_id") == request["session_id"] else None
            if later is not None and t < later <= t + DAY_US:
                return False
    deadline, ttft = level(slo, request, "deadline_s"), level(slo, request, "ttft_p95_ms")
    is_read_along = ttft is not None and math.isfinite(ttft)
    delay = BATCH_S if table.get("tier", "batch") == "batch" else 0
    return not is_read_along and (deadline is None or deadline >= delay)


def is_retry(request: Request, requests: list[Request]) -> bool:
    """A retry of an attempt that was billed itself: the work is saved once."""
    again = request.get("retry_of")
    return again is not None and any(
        other.get("request_id") == again
        and is_billed(other)
        and (other.get("input_tokens") or 0) + (other.get("output_tokens") or 0) > 0
        for other in requests
    )
