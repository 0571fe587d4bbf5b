"""Requests as another model would answer them: tokens scaled or measured, caches kept or lost, second calls."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import polars as pl

from tenfold.levers.base import Bill
from tenfold.levers.repricing import listed
from tenfold.levers.tokens import INPUT_MEDIA, LONG, OUTPUT_MEDIA, WRITE, half_even, summed, text_read, text_uncached
from tenfold.store import steps
from tenfold.store.cells import CACHED_MEDIA

STEP = "lever_other_model"
CHANGED = (
    *("price_key", "input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *CACHED_MEDIA,
    *("output_tokens", "reasoning_tokens", "set_pusd"),
)
_KNOBS = ("target_key", "way", "keeps", "own_keeps", "input", "output", "set_pusd")
# Which calls a request's way makes: of the other model (0), of its own (1).
_CALLS = [("routed", 0), ("accepted", 0), ("escalated", 0), ("escalated", 1), ("forfeited", 1)]


class Retold(NamedTuple):
    """What is assumed of the other model's answers.

    Args:
        input_ratio: Its input tokens for one of the own model's.
        output_ratio: Its output tokens for one of the own model's.
        sessionless_keeps: Whether requests of no session keep their cached reads, where that follows the session.
        keeps_writes: Whether writes to the cache stay writes.
        has_candidate: Whether its answer is put into the prompt where the own model is asked again.
    """

    input_ratio: Fraction
    output_ratio: Fraction
    sessionless_keeps: bool = True
    keeps_writes: bool = True
    has_candidate: bool = False


def knobs(lever: str) -> tuple[str, ...]:
    """Name the columns that a lever must judge for every request that it changes.

    Args:
        lever: The lever's name.

    Returns:
        ``<lever>_target_key``, ``_way`` (routed, accepted, escalated: asked again, forfeited: only its cache is lost),
        ``_keeps`` and ``_own_keeps`` (cached reads stay at the other and the own model: 1 or 0; keeps 2: not known),
        ``_input``, ``_output`` and ``_set_pusd`` (measured tokens and cost at the other model; NULL where not).
    """
    return tuple(f"{lever}_{knob}" for knob in _KNOBS)


def aside(lever: str) -> str:
    """Write which requests a lever changes only because it moved the turn before: another lever may have them.

    Args:
        lever: The lever's name.

    Returns:
        SQL over its knobs.
    """
    return f"{lever}_way = 'forfeited'"


def retold(bill: Bill, lever: str, told: Retold, name: str) -> Bill:
    """Change the bill: each request as its way says.

    Args:
        bill: The versions to change, with the lever's knobs.
        lever: The lever's name.
        told: What is assumed.
        name: View to make.

    Returns:
        The bill after: one row a call.
    """
    engine = bill.session.engine
    settings = {
        "input_num": told.input_ratio.numerator,
        "input_den": told.input_ratio.denominator,
        "output_num": told.output_ratio.numerator,
        "output_den": told.output_ratio.denominator,
        "sessionless_keeps": int(told.sessionless_keeps),
        "keeps_writes": int(told.keeps_writes),
        "has_candidate": int(told.has_candidate),
    }
    engine.register(f"{name}_settings", pl.DataFrame([settings], schema=dict.fromkeys(settings, pl.Int64())))
    engine.register(
        f"{name}_calls", pl.DataFrame(_CALLS, schema={"way": pl.String(), "is_own": pl.Int64()}, orient="row")
    )
    held = bill.columns
    into, out = ("p.in_num", "p.in_den"), ("p.out_num", "p.out_den")
    rounded: dict[str, str] = {
        "read_scaled": half_even("p.text_read", *into),
        "write_scaled": half_even(WRITE, *into),
        "long_scaled": half_even(LONG, *into),
        "uncached_scaled": half_even("p.text_uncached", *into),
        "output_scaled": half_even("p.output_tokens - p.output_media", *out),
        "reasoning_scaled": half_even("coalesce(p.reasoning_tokens, 0)", *out),
    }
    kept = f"case when w.is_own = 1 then r.{lever}_own_keeps else r.reads_kept end"
    cached = [one for one in CACHED_MEDIA if one in held]
    steps.run(
        engine,
        STEP,
        name=name,
        lever=lever,
        requests=bill.requests,
        settings=f"{name}_settings",
        calls=f"{name}_calls",
        text_read=text_read(held),
        text_uncached=text_uncached(held),
        media=summed(INPUT_MEDIA, held),
        cached_media=summed(CACHED_MEDIA, held),
        output_media=summed(OUTPUT_MEDIA, held),
        columns=listed([one for one in held if one not in ("call_id", "cost_pusd")], "r", "  "),
        new_media="".join(f",\n  cast(r.{one} * {kept} as bigint) as new_{one}" for one in cached),
        materialised=False,
        **rounded,
    )
    return replace(bill, requests=name)
