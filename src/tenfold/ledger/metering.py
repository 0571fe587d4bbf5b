"""The meters as SQL: what ``priced.sql`` and ``totals.sql`` put for their placeholders, for the meters in use.

The formula, for a meter m with count c(m) (pricing/meters.toml): its units apart are c(m), or 0 where its rate is
``FALLS_UNDER``; its units are those minus the units apart of the meters whose parent it is. Media that were read from a
cache are in two parents' counts, so what both take from the input is added back once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tenfold.prices.meters import CORE, Meter, meters
from tenfold.store.cells import MEDIA


def in_use(counts: Iterable[str], *, has_request_fee: bool) -> tuple[Meter, ...]:
    """Choose the meters that a log needs.

    Args:
        counts: Columns that are above zero somewhere.
        has_request_fee: Some price charges for the request itself.

    Returns:
        Those meters and the core ones, in meter order.
    """
    wanted = set(counts)
    return tuple(
        meter
        for meter in meters()
        if meter.name in CORE or meter.column in wanted or (not meter.column and has_request_fee)
    )


def needing_a_rate(used: Iterable[Meter]) -> list[Meter]:
    """Choose the meters of which a count without a rate leaves a request without a price.

    Args:
        used: Meters in use.

    Returns:
        All but the totals and the request itself.
    """
    return [meter for meter in used if meter.column and (meter.parents or meter.unit != "tokens")]


def pricing_words(used: Sequence[Meter]) -> dict[str, str]:
    """Write the placeholders of ``priced.sql``.

    Args:
        used: Meters in use.

    Returns:
        Placeholder to SQL.
    """
    names = {meter.name for meter in used}
    parts = [meter for meter in used if _is_apart(meter)]
    media = [kind for kind in MEDIA if f"input_{kind}" in names]
    shared = [kind for kind in media if f"cache_read_{kind}" in names]
    overlapping = [meter for meter in parts if meter.unit == "tokens" and not meter.name.startswith("cache")]
    return {
        "aparts": "".join(f"{_apart(meter)} as {meter.name}_apart,\n    " for meter in parts)
        + "".join(f"{_shared(kind)} as {kind}_shared,\n    " for kind in shared),
        "rates": "".join(f"m.rate_{meter.name},\n    " for meter in used),
        "missing": "\n        or ".join(["false", *(_missing(meter) for meter in needing_a_rate(used))]),
        "units": ",\n    ".join(f"{_units(meter, used, shared)} as {meter.name}_units" for meter in used),
        "puzzle": "\n          or ".join(["false", *(_puzzle(kind) for kind in media)]),
        "overlapping": " + ".join(["0", *(f"{meter.name}_apart" for meter in overlapping)]),
        "costs": ",\n  ".join(
            f"case when price_status = 'priced' then {_cost(meter)}\n    when is_priced then 0 end as {meter.name}_pusd"
            for meter in used
        ),
    }


def total_words(used: Sequence[Meter]) -> dict[str, str]:
    """Write the placeholders of ``totals.sql``.

    Args:
        used: Meters in use.

    Returns:
        Placeholder to SQL.
    """
    return {
        "unit_totals": ",\n  ".join(
            f"cast(coalesce(sum(case when is_billed then {meter.name}_units end), 0) as bigint) as {meter.name}_units"
            for meter in used
        ),
        "cost_totals": ",\n  ".join(
            f"coalesce(sum(cast({meter.name}_pusd as decimal(38, 0))), 0) as {meter.name}_pusd" for meter in used
        ),
    }


def _is_apart(meter: Meter) -> bool:
    """Whether its units before others are taken out need an expression of their own."""
    return bool(meter.parents or meter.falls_under or not meter.column or meter.name == "audio_time")


def _count(meter: Meter) -> str:
    if not meter.column:
        return "c.requests"
    count = f"coalesce(c.{meter.column}, 0)"
    if meter.name != "audio_time":
        return count
    # Billed seconds: rounded up to the entry's step, and at least its minimum.
    up = f"({count} + m.audio_step_ms - 1)"
    return f"case when {count} = 0 then 0 else greatest(m.audio_min_ms, {up} - {up} % m.audio_step_ms) end"


def _apart(meter: Meter) -> str:
    if not meter.falls_under and not meter.merges:
        return _count(meter)
    return f"case when m.rate_{meter.name} < 0 then 0 else {_count(meter)} end"


def _shared(kind: str) -> str:
    return f"case when m.rate_input_{kind} < 0 then 0 else coalesce(c.cache_read_{kind}_tokens, 0) end"


def _missing(meter: Meter) -> str:
    above = "coalesce(c.cache_write_long_tokens, 0)" if meter.name == "cache_write" else "0"
    return f"(m.rate_{meter.name} is null and c.{meter.column} > {above})"


def _units(meter: Meter, used: Sequence[Meter], shared: Sequence[str]) -> str:
    if meter.name in ("uncached_input", "output"):
        own = meter.column  # a total, which is known where a cell is priced
    else:
        own = f"{meter.name}_apart" if _is_apart(meter) else f"coalesce({meter.column}, 0)"
    less = [f"{part.name}_apart" for part in used if part.parents[:1] == (meter.name,)]
    less += [f"{kind}_shared" for kind in shared if meter.name == f"input_{kind}"]
    more = [f"{kind}_shared" for kind in shared] if meter.name == "uncached_input" else []
    return "".join([own, *(f" - {part}" for part in less), *(f" + {part}" for part in more)])


def _puzzle(kind: str) -> str:
    """Media priced apart that may overlap with cached tokens, with nothing that says by how many."""
    unknown = f"cache_read_tokens > 0 and cache_read_{kind}_tokens is null"
    return f"(input_{kind}_apart > 0 and (cache_write_tokens > 0 or ({unknown})))"


def _cost(meter: Meter) -> str:
    if meter.divisor == 1:
        return f"{meter.name}_units * coalesce(rate_{meter.name}, 0)"
    # decimals because rates by the hour are large
    exact = f"(cast({meter.name}_units as decimal(19, 0)) * cast(coalesce(rate_{meter.name}, 0) as decimal(19, 0)))"
    return half_even(exact, meter.divisor)


def half_even(exact: str, by: int) -> str:
    """Write a division as SQL, rounded half even, in steps that both engines compute alike.

    Args:
        exact: SQL of a ``decimal(38, 0)``, of either sign.
        by: The divisor, above 0.

    Returns:
        SQL of a bigint.
    """
    # Dividing gives a double on both, so what its quotient leaves is divided once more.
    first = f"cast(floor({exact} / {by}) as decimal(28, 0))"
    left = f"({exact} - {first} * {by})"
    whole = f"({first} + cast(floor({left} / {by}) as decimal(28, 0)))"
    rest = f"({exact} - {whole} * {by})"
    is_up = f"2 * {rest} > {by} or (2 * {rest} = {by} and {whole} % 2 <> 0)"
    return f"cast({whole} + case when {is_up} then 1 else 0 end as bigint)"
