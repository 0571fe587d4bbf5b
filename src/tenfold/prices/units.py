"""From a call's counts to disjoint units of the meters: the ledger's formula (ledger/metering.py) in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tenfold.money import divided
from tenfold.prices.meters import FALLS_UNDER, METER_NAMES, meters
from tenfold.usage import Tokens

_AT = {name: i for i, name in enumerate(METER_NAMES)}
# Per kind of media: its meter, and the count of its cached tokens.
_MEDIA = tuple((_AT[f"input_{kind}"], f"cache_read_{kind}_tokens") for kind in ("audio", "image", "video"))
_OUT = tuple(_AT[name] for name in ("reasoning", "output_audio", "output_image", "output_video"))
_UNCACHED, _REQUEST, _AUDIO_TIME = _AT["uncached_input"], _AT["request"], _AT["audio_time"]
# Per meter that is cut from a count: its field, and the meter whose units it is taken out of.
_FIELDS = tuple(
    (i, Tokens._fields.index(meter.column), _AT[meter.parents[0]] if meter.parents else None)
    for i, meter in enumerate(meters())
    if meter.column
)
_PARENTS = {i: parent for i, _, parent in _FIELDS if parent is not None}


def disjoint(
    tokens: Tokens, rates: Sequence[int | None], audio_min_ms: int = 0, audio_step_ms: int = 1
) -> dict[int, int]:
    """Split the counts of a call.

    Args:
        tokens: Inclusive counts; None is priced as part of its total.
        rates: The entry's rates for the card (``card_rates``).
        audio_min_ms: Least audio that is billed.
        audio_step_ms: Billed audio is rounded up to a multiple of this.

    Returns:
        Place of the meter in meter order to its units, where there are any; every unit is in one of them.
    """
    apart = _apart(tokens, rates)
    if _AUDIO_TIME in apart:
        apart[_AUDIO_TIME] = max(audio_min_ms, -(-apart[_AUDIO_TIME] // audio_step_ms) * audio_step_ms)
    units = dict(apart)
    for i, count in apart.items():
        if i in _PARENTS:
            units[_PARENTS[i]] = units.get(_PARENTS[i], 0) - count
    for meter, column in _MEDIA:
        shared: int = getattr(tokens, column) or 0
        if shared and rates[meter] != FALLS_UNDER:
            units[meter] = units.get(meter, 0) - shared
            units[_UNCACHED] = units.get(_UNCACHED, 0) + shared
    return {i: count for i, count in units.items() if count}


def without_rate(tokens: Tokens, rates: Sequence[int | None]) -> list[str]:
    """Name the meters that are counted, have no price, and fall under no other.

    Args:
        tokens: Inclusive counts.
        rates: The entry's rates for the card.

    Returns:
        Their names, in meter order.
    """
    counts = _apart(tokens, rates)
    writes = _AT["cache_write"]
    if writes in counts:
        counts[writes] -= counts.get(_AT["cache_write_long"], 0)
    return [METER_NAMES[i] for i, count in sorted(counts.items()) if count > 0 and rates[i] is None]


def puzzle(tokens: Tokens, rates: Sequence[int | None]) -> str:
    """Say why the counts of a call do not tell what is to be billed where.

    Args:
        tokens: Inclusive counts.
        rates: The entry's rates for the card.

    Returns:
        The reason; empty where they tell.
    """
    apart = _apart(tokens, rates)
    for meter, column in _MEDIA:
        unknown = tokens.cache_read_tokens and getattr(tokens, column) is None
        if apart.get(meter) and (tokens.cache_write_tokens or unknown):
            return "media tokens are priced apart and may overlap the cached ones"
    if any(apart.get(i) for i in (*(meter for meter, _ in _MEDIA), *_OUT)) and _overlaps(tokens):
        return "the parts of input or output exceed their total, and some are priced apart"
    return ""


def billed(units: Mapping[int, int], rates: Sequence[int | None]) -> dict[int, int]:
    """Multiply units by their rates.

    Args:
        units: As ``disjoint`` gives them.
        rates: The entry's rates; none is missing for a unit.

    Returns:
        Place of the meter to its cost in pUSD, rounded half-even for a meter by time.
    """
    known = meters()
    return {
        i: count * (rates[i] or 0) if known[i].divisor == 1 else divided(count * (rates[i] or 0), known[i].divisor)
        for i, count in units.items()
    }


def _apart(tokens: Tokens, rates: Sequence[int | None]) -> dict[int, int]:
    found: dict[int, int] = {}
    for i, field, _ in _FIELDS:
        count = tokens[field]
        if count and rates[i] != FALLS_UNDER:
            found[i] = int(count)  # pyright: ignore[reportArgumentType] -- a count by the table of fields
    if rates[_REQUEST] != FALLS_UNDER:
        found[_REQUEST] = 1
    return found


def _overlaps(tokens: Tokens) -> bool:
    parts_in = (
        tokens.cache_read_tokens, tokens.cache_write_tokens, tokens.input_audio_tokens,
        tokens.input_image_tokens, tokens.input_video_tokens,
    )  # fmt: skip
    parts_out = (
        tokens.output_audio_tokens, tokens.output_image_tokens, tokens.output_video_tokens, tokens.reasoning_tokens,
    )  # fmt: skip
    shared = (tokens.cache_read_audio_tokens, tokens.cache_read_image_tokens, tokens.cache_read_video_tokens)
    total_in, total_out = tokens.input_tokens or 0, tokens.output_tokens or 0
    held = sum(part or 0 for part in parts_in) - sum(part or 0 for part in shared)
    return held > total_in or sum(part or 0 for part in parts_out) > total_out
