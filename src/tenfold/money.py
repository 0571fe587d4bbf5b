"""Money as integer picodollars (pUSD, 1e-12 USD): exact inside, rounded only at the edge.

Any price in USD per million tokens with at most six decimals is an exact integer of pUSD per token.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import (
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from fractions import Fraction
from math import floor

PUSD_PER_USD = 10**12
# Whatever the caller's own decimal settings are, money is computed in these: exact, or an error.
WIDE = Context(prec=80, rounding=ROUND_HALF_EVEN)
EXACT = Context(prec=80, rounding=ROUND_HALF_EVEN, traps=[Inexact, InvalidOperation, DivisionByZero, Overflow])
# A rate or an amount beyond this would not fit into the ledger's 64 bits.
MOST_PUSD = 2**62


def rate_pusd(usd: Decimal, per: int) -> int:
    """Convert a listed price to integer pUSD per unit.

    Args:
        usd: Price in USD for ``per`` units.
        per: Units the price is quoted for (1,000,000 for token meters, 1,000 for searches).

    Returns:
        pUSD per single unit.

    Raises:
        ValueError: The price is negative, not finite, or finer than 1 pUSD per unit.
    """
    if not usd.is_finite() or usd < 0:
        raise ValueError(f"a price must be a finite number of at least 0, not {usd}")
    with localcontext(WIDE):
        exact = usd * PUSD_PER_USD / per
        if exact != exact.to_integral_value():
            raise ValueError(
                f"{usd} USD per {per:,} units is finer than 1e-12 USD a unit; at most 6 decimals per million"
            )
        if exact > MOST_PUSD:
            raise ValueError(f"{usd} USD per {per:,} units is more than any price can be")
        return int(exact)


def scaled(amount: int, factor: Decimal) -> int:
    """Multiply a rate by a factor, rounded half-even: discounts and conversions.

    Args:
        amount: pUSD per unit.
        factor: At least 0.

    Returns:
        The nearest whole rate.

    Raises:
        ValueError: A rate above 0 would become 0, which would read as free, or more than any price can be.
    """
    made = int(WIDE.to_integral_value(WIDE.multiply(Decimal(amount), factor)))
    if (amount and factor and not made) or made > MOST_PUSD:
        raise ValueError(f"a rate of {amount} pUSD times {factor} is no whole rate of at least 1 pUSD and at most 2^62")
    return made


def to_usd(pusd: int) -> Decimal:
    """Convert pUSD to USD exactly.

    Args:
        pusd: Amount in pUSD.

    Returns:
        The same amount in USD, all twelve decimals kept.
    """
    return Decimal(pusd).scaleb(-12, WIDE)


def usd_text(pusd: int | None) -> str | None:
    """Write an amount as a plain decimal string in USD: exact, no exponent, no trailing zeros beyond cents.

    Args:
        pusd: Amount in pUSD, or None where unknown.

    Returns:
        Text such as ``"77.43306"`` or ``"0.00"``; None stays None.
    """
    if pusd is None:
        return None
    sign = "-" if pusd < 0 else ""
    whole, part = divmod(abs(pusd), PUSD_PER_USD)
    decimals = f"{part:012d}".rstrip("0").ljust(2, "0")
    return f"{sign}{whole}.{decimals}"


def read_usd(text: str) -> int:
    """Read an amount as ``usd_text`` wrote it.

    Args:
        text: Amount in USD, such as ``"77.43306"``.

    Returns:
        The amount in pUSD; digits beyond the twelfth decimal are dropped.
    """
    return int(Decimal(text).scaleb(12, WIDE))


def shown(pusd: int, decimals: int = 2) -> str:
    """Write an amount for people: dollar sign, thousands separators, rounded half even.

    Args:
        pusd: Amount in pUSD.
        decimals: Decimals to show.

    Returns:
        Text such as ``"$1,234.57"``.
    """
    rounded = to_usd(pusd).quantize(Decimal(1).scaleb(-decimals), context=WIDE)
    return f"{'-' if rounded < 0 else ''}${abs(rounded):,}"


def shown_parts(parts: Sequence[int], decimals: int = 2) -> list[str]:
    """Write the parts of an amount for people, so that they sum to it as shown.

    Args:
        parts: Amounts in pUSD.
        decimals: Decimals to show.

    Returns:
        One text a part, as ``shown`` writes them.
    """
    unit = PUSD_PER_USD // 10**decimals
    units = footed([Fraction(part, unit) for part in parts], round(Fraction(sum(parts), unit)))
    return [shown(one * unit, decimals) for one in units]


def to_float_usd(pusd: int) -> float:
    """Leave exact money for a chart or a picture: the only place where money becomes a float.

    Args:
        pusd: Amount in pUSD.

    Returns:
        USD as a float.
    """
    return pusd / PUSD_PER_USD


def divided(numerator: int, denominator: int) -> int:
    """Divide whole numbers, rounded half-even: the one rounding of amounts.

    Args:
        numerator: An amount times a quantity.
        denominator: Above zero.

    Returns:
        The nearest whole number; the even one of two that are as near.
    """
    whole, rest = divmod(numerator, denominator)
    return whole + (2 * rest > denominator or (2 * rest == denominator and whole % 2 == 1))


def footed(parts: Sequence[Fraction], total: int) -> list[int]:
    """Round parts to whole numbers that sum to a whole total (largest remainder).

    Args:
        parts: Exact parts of either sign; they sum to the total, but for a fraction of one where it was rounded.
        total: What they are to sum to.

    Returns:
        One whole number a part, at most one off it or, where the total was rounded down, two; earlier ones win ties.

    Raises:
        ValueError: The parts are further off the total than rounding can be.
    """
    whole = [floor(part) for part in parts]
    left = total - sum(whole)
    if not -len(parts) <= left <= len(parts):
        raise ValueError(f"parts that sum to {float(sum(parts)):.3f} cannot be rounded to {total}")
    order = sorted(range(len(parts)), key=lambda place: (whole[place] - parts[place], place))
    # below zero where the total is a difference of two rounded amounts
    for place in order[:left] if left > 0 else order[left:] if left < 0 else ():
        whole[place] += 1 if left > 0 else -1
    return whole


def share_out(total: int, weights: Sequence[int]) -> list[int]:
    """Split an amount by weights so that the parts sum to it exactly (largest remainder).

    Args:
        total: Amount in pUSD.
        weights: Non-negative integer weights, at least one above zero.

    Returns:
        One part per weight, summing to ``total``; earlier weights win ties.

    Raises:
        ValueError: No weight is above zero.
    """
    base = sum(weights)
    if base <= 0 or min(weights) < 0:
        raise ValueError("shares need non-negative weights of which at least one is above zero")
    parts = [total * weight // base for weight in weights]
    order = sorted(range(len(weights)), key=lambda i: (-(total * weights[i] % base), i))
    for i in order[: total - sum(parts)]:
        parts[i] += 1
    return parts
