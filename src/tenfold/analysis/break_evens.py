"""When prompt caching pays: the break-evens of writes, lifetimes, pings, compactions and rented caches, exactly.

Rates are in any one unit (pUSD a token, or multiples of the input price); tokens are whole. All results are fractions:
nothing is rounded before it is shown. None says that there is no break-even: the thing always pays, or never does, as
the function's own text says.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple, TypeAlias

Number: TypeAlias = int | Fraction


class Rates(NamedTuple):
    """Rates of input tokens, all in one unit.

    Args:
        uncached: A token that no cache has.
        read: A token read from a cache.
        write: A token written with the default lifetime.
        long_write: A token written with the longer lifetime; None where there is none.
    """

    uncached: Number
    read: Number
    write: Number
    long_write: Number | None = None


def reads_per_write(rates: Rates, *, long: bool = False) -> Fraction | None:
    """Give how often a written prefix must be read before writing it has paid: (w - 1) / (1 - r).

    Source: the provider's three rates alone; docs.anthropic.com, prompt caching, "Pricing" has them as multiples
    (one read pays a five-minute write, two pay an hour's).

    Args:
        rates: The rates.
        long: Of a write with the longer lifetime.

    Returns:
        Reads a write; the next whole number pays. None where reads are no cheaper: it never pays.
    """
    gain = Fraction(rates.uncached) - rates.read
    return (_write(rates, long=long) - rates.uncached) / gain if gain > 0 else None


def hit_share(rates: Rates, *, long: bool = False) -> Fraction | None:
    """Give the steady share of cacheable tokens that must be reads, the rest being written: (w - 1) / (w - r).

    Args:
        rates: The rates.
        long: With the longer lifetime.

    Returns:
        Share, 0..1 where writes cost more than uncached input. None where reads are no cheaper than writes.
    """
    write = _write(rates, long=long)
    return (write - rates.uncached) / (write - rates.read) if write > rates.read else None


def keep_alive_s(lifetime_s: int, rates: Rates) -> Fraction | None:
    """Give the pause up to which reading a prefix once a lifetime is cheaper than writing it again: lifetime x w / r.

    Each ping reads the prefix and starts its lifetime again, so a pause g takes g / lifetime pings at the read rate.

    Args:
        lifetime_s: The lifetime, in seconds.
        rates: The rates.

    Returns:
        Seconds. None where reads are free: it always pays.
    """
    return Fraction(lifetime_s) * rates.write / rates.read if rates.read else None


def longer_lifetime_gain(band_tokens: int, written_tokens: int, rates: Rates) -> Fraction:
    """Give what the longer lifetime saves: (w - r) x rewritten in the band - (w_long - w) x what is still written.

    Both terms count: the prefixes that would have been read at gaps between the two lifetimes, and the dearer price of
    every write that is left. With 1.25 and 2 the second is 0.75 of the input price.

    Args:
        band_tokens: Prefix tokens written again at gaps between the default and the longer lifetime.
        written_tokens: Tokens that are then written with the longer lifetime: all writes but those of the band.
        rates: The rates; ``long_write`` is there.

    Returns:
        Saving in the unit of the rates; it pays above 0.
    """
    dearer = _write(rates, long=True) - rates.write
    return (Fraction(rates.write) - rates.read) * band_tokens - dearer * written_tokens


def longer_lifetime_share(rates: Rates) -> Fraction | None:
    """Give the band's tokens for each token still written from which the longer lifetime pays.

    Args:
        rates: The rates; ``long_write`` is there.

    Returns:
        ``band_tokens / written_tokens`` at which the gain is 0. None where reads are no cheaper than writes.
    """
    gain = Fraction(rates.write) - rates.read
    return (_write(rates, long=True) - rates.write) / gain if gain > 0 else None


def compaction_calls(invalidated_tokens: int, removed_tokens: int, rates: Rates, *, rewrite: Number) -> Fraction | None:
    """Give the further calls from which shortening a cached history pays: (I / H) x (p - p_read) / p_read.

    A removed token would only have cost a read; the tokens behind the cut are sent once at the full (or write) price
    instead of a read.

    Args:
        invalidated_tokens: Tokens behind the first change, sent anew once.
        removed_tokens: Tokens that each further call no longer sends.
        rates: The rates.
        rewrite: What an invalidated token costs the first time: ``rates.uncached``, or ``rates.write``.

    Returns:
        Calls. None where nothing is removed, or reads are free: it never pays.
    """
    if not removed_tokens or not rates.read:
        return None
    return Fraction(invalidated_tokens, removed_tokens) * (Fraction(rewrite) - rates.read) / rates.read


def stored_reads_per_hour(storage_per_hour: Number, rates: Rates) -> Fraction | None:
    """Give the reads an hour from which a rented cache pays its storage: S / (p - p_read).

    Source: ai.google.dev, context caching (explicit caches are billed by token and hour of actual life).

    Args:
        storage_per_hour: What holding one token for an hour costs, in the unit of the rates.
        rates: The rates.

    Returns:
        Reads an hour, against sending the prefix uncached; writing it is beside this. None: it never pays.
    """
    gain = Fraction(rates.uncached) - rates.read
    return Fraction(storage_per_hour) / gain if gain > 0 else None


def _write(rates: Rates, *, long: bool) -> Fraction:
    if not long:
        return Fraction(rates.write)
    if rates.long_write is None:
        raise ValueError("these rates have no longer lifetime")
    return Fraction(rates.long_write)
