"""Rows of a FOCUS export that are no usage of a meter: commitments, what is idle of them, and charges of a fleet.

Capacity by the hour is bought (a purchase a day, nothing of it effective) and used (its cost is in the EffectiveCost of
the charges that it covers, by their tokens); a day on which it covers none is a row of its own, unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

import polars as pl

from tenfold.export.focus_lines import Lines, day_after
from tenfold.export.focus_names import seller
from tenfold.ledger import Ledger
from tenfold.ledger.costs import Committed
from tenfold.ledger.session import timestamp
from tenfold.money import divided, share_out, to_usd
from tenfold.prices.book import Commitment
from tenfold.prices.meters import meters
from tenfold.prices.words import canonical_provider, canonical_tier
from tenfold.store import steps
from tenfold.store.database import quoted

Row = dict[str, object]
_HOUR = timedelta(hours=1)
_MICROSECOND = timedelta(microseconds=1)
_SHARES = {"line": pl.Int64, "share_pusd": pl.Decimal(38, 0), "commitment": pl.String}


class Day(NamedTuple):
    """One UTC day of a capacity, as far as it is agreed and in the window.

    Args:
        since: Its start.
        until: Its end, exclusive.
        pusd: What it costs.
    """

    since: datetime
    until: datetime
    pusd: int


def commitments(ledger: Ledger) -> tuple[list[Committed], list[Committed]]:
    """Find the commitments of a ledger's window.

    Args:
        ledger: The ledger.

    Returns:
        Capacity by the hour, and amounts to be spent that have something due.
    """
    found = ledger.costs().commitments if ledger.book.commitments else ()
    capacity = [one for one in found if one.commitment.pusd_per_hour is not None]
    return capacity, [one for one in found if one.commitment.pusd_per_hour is None and one.flat_pusd]


def days(committed: Committed) -> list[Day]:
    """Cut a capacity into UTC days, as the ledger does.

    Args:
        committed: The capacity over the window.

    Returns:
        Its days; their costs sum to its own.
    """
    found: list[Day] = []
    start = committed.since
    while start < committed.until:
        end = min(day_after(start), committed.until)
        hours = (end - start) // _MICROSECOND
        cost = divided((committed.commitment.pusd_per_hour or 0) * hours, _HOUR // _MICROSECOND)
        found.append(Day(start, end, cost))
        start = end
    return found


def carry(lines: Lines, capacity: Sequence[Committed]) -> dict[int, set[date]]:
    """Share each day's capacity over the charges of tokens that it covers, by quantity; makes ``focus_shares``.

    Args:
        lines: The charges.
        capacity: The capacities.

    Returns:
        Place of a capacity to the days on which no charge carries it.
    """
    shares: dict[int, int] = {}
    names: dict[int, list[str]] = {}
    idle: dict[int, set[date]] = {}
    for place, one in enumerate(capacity):
        carriers = _carriers(lines, one)
        for day in days(one):
            rows = carriers.get(day.since.date(), [])
            if not rows:
                idle.setdefault(place, set()).add(day.since.date())
                continue
            parts = share_out(day.pusd, [quantity for _, quantity in rows])
            for (line, _), part in zip(rows, parts, strict=True):
                shares[line] = shares.get(line, 0) + part
                names.setdefault(line, []).append(one.commitment.name)
    rows = [(line, Decimal(shares[line]), " + ".join(names[line])) for line in sorted(shares)]
    lines.engine.register("focus_shares", pl.DataFrame(rows, schema=_SHARES, orient="row"))
    return idle


def _carriers(lines: Lines, one: Committed) -> dict[date, list[tuple[int, int]]]:
    keys = [str(key) for key, *_ in lines.session.keys if _covers(lines, one.commitment, key)]
    if not keys:
        return {}
    within = f"period_start >= {timestamp(one.since)} and period_start < {timestamp(one.until)}"
    tokens = ", ".join(quoted(meter.name) for meter in meters() if meter.unit == "tokens")
    condition = f"price_key in ({', '.join(keys)}) and {within}"
    found: dict[date, list[tuple[int, int]]] = {}
    for day, line, quantity in lines.engine.fetch(
        steps.filled("focus_carried", condition=condition, meters=tokens)
    ).rows():
        found.setdefault(day, []).append((line, quantity))
    return found


def _covers(lines: Lines, commitment: Commitment, key: int) -> bool:
    _, provider, model, tier, _ = next(row for row in lines.session.keys if row[0] == key)
    found = lines.session.card.matches[key].model or model.lower()
    return commitment.covers(canonical_provider(provider), found, canonical_tier(tier))


def capacity_rows(capacity: Sequence[Committed], idle: dict[int, set[date]]) -> Iterator[Row]:
    """Write capacities as purchases, and the days that nothing carries as unused.

    Args:
        capacity: The capacities.
        idle: As ``carry`` gives it.

    Yields:
        A purchase for each day, and an unused row for each that is idle.
    """
    for place, one in enumerate(capacity):
        price = to_usd(one.commitment.pusd_per_hour or 0)
        for day in days(one):
            hours = _rounded(Decimal((day.until - day.since) // _MICROSECOND) / Decimal(_HOUR // _MICROSECOND))
            about = _about(one.commitment, day.since, day.until, "Capacity")
            cost = to_usd(day.pusd)
            yield {
                **about,
                **_bought(price, hours, "Hours", listed=cost, billed=cost, effective=Decimal(0)),
                "ChargeFrequency": "Recurring",
                "ChargeDescription": f"{one.commitment.name}: committed capacity",
                "CommitmentDiscountQuantity": cost,
            }
            if day.since.date() in idle.get(place, set()):
                yield {
                    **about,
                    **_bought(Decimal(0), hours, "Hours", listed=Decimal(0), billed=Decimal(0), effective=cost),
                    "ChargeCategory": "Usage",
                    "ChargeFrequency": "Recurring",
                    "ChargeDescription": f"{one.commitment.name}: committed capacity that no priced request used",
                    "PricingCategory": "Committed",
                    "CommitmentDiscountQuantity": cost,
                    "CommitmentDiscountStatus": "Unused",
                }


def spent_rows(spent: Sequence[Committed]) -> Iterator[Row]:
    """Write what was not spent of an amount that was to be: due when its term ends.

    Args:
        spent: The commitments that have something due.

    Yields:
        One purchase each, on the last day of the term.
    """
    for one in spent:
        last = one.commitment.valid_to.astimezone(UTC) - _MICROSECOND
        start = datetime.combine(last.date(), time(), UTC)
        cost = to_usd(one.flat_pusd)
        yield {
            **_about(one.commitment, start, day_after(start), "Spend"),
            **_bought(cost, Decimal(1), "Charges", listed=cost, billed=cost, effective=cost),
            "ChargeFrequency": "One-Time",
            "ChargeDescription": f"{one.commitment.name}: committed spend that was not used",
            "CommitmentDiscountQuantity": cost,
        }


def _about(commitment: Commitment, start: datetime, end: datetime, kind: str) -> Row:
    name = commitment.name
    return {
        **_sold(commitment.provider, start, end),
        "ChargeCategory": "Purchase",
        "CommitmentDiscountCategory": "Spend",
        "CommitmentDiscountId": name,
        "CommitmentDiscountName": name,
        "CommitmentDiscountType": kind,
        "CommitmentDiscountUnit": "USD",
        "ResourceId": name,
        "ResourceType": "Commitment",
        "SkuId": name,
        "SkuMeter": "Committed " + kind,
        "SkuPriceId": f"{name}-committed",
        "x_Meter": "commitment",
    }


def charge_rows(ledger: Ledger) -> Iterator[Row]:
    """Write the charges that hang on no request, such as idle GPU time, by calendar month.

    Args:
        ledger: The ledger, in UTC.

    Yields:
        One row a charge and month; a charge's rows sum to it.
    """
    by_month = {month: pusd for month, pusd in ledger.charges_by_month().items() if pusd}
    if not ledger.charges_pusd or not by_month:
        return
    months, weights = list(by_month), [abs(pusd) for pusd in by_month.values()]
    for charge in ledger.charges:
        for month, part in zip(months, share_out(charge.pusd, weights), strict=True):
            start = datetime(month.year, month.month, 1, tzinfo=UTC)
            cost = to_usd(part)
            sku = f"{charge.name}-{charge.what}"
            yield {
                **_sold(charge.provider, start, _next_month(start)),
                # a price must not be below zero; a quantity may
                **_bought(
                    abs(cost), Decimal(-1 if part < 0 else 1), "Charges", listed=cost, billed=cost, effective=cost
                ),
                "ChargeCategory": "Usage",
                "ChargeFrequency": "Recurring",
                "ChargeDescription": f"{charge.name}: {charge.what} time",
                "ConsumedQuantity": Decimal(-1 if part < 0 else 1),
                "ConsumedUnit": "Charges",
                "ResourceId": charge.name,
                "ResourceType": "Pool",
                "SkuId": sku,
                "SkuMeter": f"{charge.what.capitalize()} Time",
                "SkuPriceId": f"{sku}-ondemand",
                "x_Meter": charge.what,
                "x_ModelId": charge.model or None,
            }


def _sold(provider: str, start: datetime, end: datetime) -> Row:
    who = seller(provider)
    first = datetime(start.year, start.month, 1, tzinfo=UTC)
    return {
        "BillingAccountType": "Organization",
        "BillingCurrency": "USD",
        "BillingPeriodStart": first,
        "BillingPeriodEnd": _next_month(first),
        "ChargePeriodStart": start,
        "ChargePeriodEnd": end,
        **dict.fromkeys(
            ("ProviderName", "PublisherName", "ServiceProviderName", "HostProviderName", "InvoiceIssuerName"), who.name
        ),
        "ServiceName": who.service,
        "ServiceCategory": "AI and Machine Learning",
        "ServiceSubcategory": "Generative AI",
        "PricingCategory": "Standard",
        "PricingCurrency": "USD",
        "x_Provider": provider,
        "x_ListPrice": "list",
    }


def _bought(
    price: Decimal, quantity: Decimal, unit: str, *, listed: Decimal, billed: Decimal, effective: Decimal
) -> dict[str, Any]:
    return {
        "ListUnitPrice": price,
        "ContractedUnitPrice": price,
        "PricingCurrencyListUnitPrice": price,
        "PricingCurrencyContractedUnitPrice": price,
        "PricingQuantity": quantity,
        "PricingUnit": unit,
        "ListCost": listed,
        "ContractedCost": listed,
        "BilledCost": billed,
        "EffectiveCost": effective,
        "PricingCurrencyEffectiveCost": effective,
    }


def _rounded(hours: Decimal) -> Decimal:
    return hours.quantize(Decimal("0.000000000001"))


def _next_month(first: datetime) -> datetime:
    return datetime(first.year + first.month // 12, first.month % 12 + 1, 1, tzinfo=UTC)
