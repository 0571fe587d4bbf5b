"""One usage object to canonical token counts, in plain Python: what the single price call uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, cast

from tenfold.errors import UsageError, near
from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage.paths import count, first, get, has, objects, plain, shown, word
from tenfold.usage.shape import (
    ZERO,
    ZERO_BESIDE_CACHE,
    ZERO_BESIDE_PARTS,
    ZERO_BY_TOTAL,
    ZERO_WITHOUT_WRITES,
    UsageShape,
    parts_of,
)
from tenfold.usage.shapes import SHAPES, SPECIALISES

# inference_geo values that name no price region.
NO_REGION = frozenset({"global", "not_available", ""})
_EXAMPLE = 'Write for example {"input_tokens": 1000, "output_tokens": 200}, or pass a provider\'s own usage object'
_CACHE = ("cache_read_tokens", "cache_write_tokens")


class Tokens(NamedTuple):
    """Canonical counts of one request: totals include their subsets; None is unknown, 0 is none.

    ``tier_hint`` and ``region_hint`` are what the usage object itself said; ``unknown_meters`` are billable
    counts that no meter is known for; ``flags`` name what was odd (``total_mismatch``,
    ``convention_by_total``).
    """

    input_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_long_tokens: int | None = None
    input_audio_tokens: int | None = None
    input_image_tokens: int | None = None
    input_video_tokens: int | None = None
    cache_read_audio_tokens: int | None = None
    cache_read_image_tokens: int | None = None
    cache_read_video_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    output_audio_tokens: int | None = None
    output_image_tokens: int | None = None
    output_video_tokens: int | None = None
    web_searches: int | None = None
    web_searches_preview: int | None = None
    file_searches: int | None = None
    maps_searches: int | None = None
    code_sessions: int | None = None
    images: int | None = None
    pages: int | None = None
    characters: int | None = None
    input_audio_ms: int | None = None
    output_media_ms: int | None = None
    cache_storage_token_s: int | None = None
    tier_hint: str | None = None
    region_hint: str | None = None
    unknown_meters: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    shape: str = "tenfold"


def tokens_from(usage: Mapping[str, object], *, shape: str | None = None) -> Tokens:
    """Read a usage object: tenfold's own token names or a provider's, recognised by its keys.

    Args:
        usage: The object as the provider sent it.
        shape: Name of its shape, where the keys alone do not tell.

    Returns:
        Canonical counts; totals include their subsets.

    Raises:
        UsageError: The shape is unknown or ambiguous, or a count is impossible (negative, fractional, text, a
            truth value, a subset above its total); names the key.
    """
    # Billing pipelines hand over what they got: text, a list and None must not end in a stranger's error.
    if not isinstance(usage, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"usage {shown(usage)} is no mapping of token names to counts. {_EXAMPLE}")
    if not usage:
        raise UsageError(f"the usage is empty: it names no count. {_EXAMPLE}")
    kind = _shape(usage, shape)
    _refuse_iterations(usage)
    counts: dict[str, int | None] = {}
    for column, paths in kind.counts.items():
        counts[column] = first(usage, paths)
    meters, written = _unknown_meters(usage, kind)
    _fill_writes(usage, kind, counts, written)
    total = first(usage, kind.total)
    _fill_absent(usage, kind, counts, total)
    flags = _prove(usage, kind, counts, total)
    _fill_media(counts)
    _check_subsets(kind, counts)
    tier = word(usage, kind.tier)
    if word(usage, ("speed",)) == "fast":
        tier = "fast"
    region = word(usage, kind.region)
    return Tokens(
        **counts,
        tier_hint=tier,
        region_hint=None if region in NO_REGION else region,
        unknown_meters=meters,
        flags=flags,
        shape=kind.name,
    )


def _shape(usage: Mapping[str, object], name: str | None) -> UsageShape:
    if name is not None:
        if name not in SHAPES:
            raise UsageError(f'no usage shape "{name}".{near(name, SHAPES)} Known: {", ".join(SHAPES)}')
        return SHAPES[name]
    # Which keys an object has decides its shape, so the answer is kept by them.
    held = (cast("Mapping[object, object]", value) for value in usage.values() if isinstance(value, Mapping))
    seen = tuple(usage), tuple(map(tuple, held))
    kind = _SEEN.get(seen)
    if kind is None:
        kind = _recognised(usage)
        if len(_SEEN) < _MOST_SEEN:
            _SEEN[seen] = kind
    return kind


_SEEN: dict[tuple[tuple[object, ...], tuple[tuple[object, ...], ...]], UsageShape] = {}
_MOST_SEEN = 10_000


def _recognised(usage: Mapping[str, object]) -> UsageShape:
    fitting = [kind for kind in SHAPES.values() if any(all(has(usage, k) for k in mark) for mark in kind.marks)]
    weaker = {plain for kind in fitting for plain in SPECIALISES.get(kind.name, ())}
    # A key of tenfold's own beside a provider's marks is a second reading, not a plainer one.
    if any(has(usage, key) for key in TOKEN_COLUMNS if key not in {"input_tokens", "output_tokens"}):
        weaker.discard("tenfold")
    found = [kind for kind in fitting if kind.name not in weaker]
    keys = ", ".join(sorted(map(str, usage)))
    if not found:
        raise UsageError(f"no usage shape has these keys: {keys}. Use tenfold's names ({', '.join(TOKEN_COLUMNS)})")
    if len(found) > 1:
        names = " or ".join(kind.name for kind in found)
        raise UsageError(f"ambiguous usage: its keys ({keys}) fit {names}. Pass one provider's object as it came")
    if found[0].plain:
        for key in usage:
            if key not in TOKEN_COLUMNS:
                raise UsageError(f'unknown usage key "{key}".{near(key, TOKEN_COLUMNS)}')
    return found[0]


def _unknown_meters(usage: Mapping[str, object], kind: UsageShape) -> tuple[tuple[str, ...], int | None]:
    """List counts in open objects that no meter is known for, and sum what those objects hold."""
    known = {path for paths in kind.counts.values() for path in paths} | set(kind.open_known)
    unknown: list[str] = []
    summed: int | None = None
    for name in kind.open_objects:
        held = get(usage, name)
        if held is None:
            continue
        if not isinstance(held, Mapping):
            raise UsageError(f"usage key {name}: expected an object, found {held!r}")
        for key, value in cast("Mapping[str, object]", held).items():
            path = f"{name}.{key}"
            number = count(value, path) or 0
            summed = (summed or 0) + number
            if number and path not in known:
                unknown.append(path)
    return tuple(unknown), summed


def _fill_writes(
    usage: Mapping[str, object], kind: UsageShape, counts: dict[str, int | None], written: int | None
) -> None:
    """Let the writes by lifetime give all writes where nothing else does, and never be more than they."""
    whole = counts.get("cache_write_tokens")
    parts = [count for count in (first(usage, (path,)) for path in kind.write_split) if count is not None]
    if parts:
        written = sum(parts)
        whole = whole or None
    if whole is not None and written is not None and written > whole:
        key = kind.counts["cache_write_tokens"][0]
        raise UsageError(f"impossible usage: the writes by lifetime ({written}) are more than {key} {whole}")
    if whole is None:
        # What was written for long was written.
        counts["cache_write_tokens"] = written if written is not None else counts.get("cache_write_long_tokens") or None


def _fill_absent(
    usage: Mapping[str, object], kind: UsageShape, counts: dict[str, int | None], total: int | None
) -> None:
    if all(value is None for value in counts.values()):
        return
    inputs = counts.get("input_tokens")
    for column, rule in kind.absent.items():
        if counts.get(column) is not None:
            continue
        if rule == ZERO:
            known_zero = True
        elif rule == ZERO_WITHOUT_WRITES:
            known_zero = counts.get("cache_write_tokens") == 0
        elif rule == ZERO_BESIDE_CACHE:
            known_zero = any(counts.get(name) for name in _CACHE)
        elif rule == ZERO_BESIDE_PARTS:
            known_zero = any(counts.get(name) is not None for name in parts_of(kind.counts))
        elif rule == ZERO_BY_TOTAL:
            known_zero = total is not None and total == inputs
        else:
            below = column in _CACHE and inputs is not None and inputs < kind.zero_below
            known_zero = below or any(get(usage, path) is not None for path in rule.split("|"))
        if known_zero:
            counts[column] = 0


def _prove(
    usage: Mapping[str, object], kind: UsageShape, counts: dict[str, int | None], total: int | None
) -> tuple[str, ...]:
    """Make the totals inclusive: by the declared convention, unless the reported total proves another."""
    beside_in = first(usage, kind.input_beside) or 0
    beside_out = first(usage, kind.output_beside) or 0
    inputs, outputs = counts.get("input_tokens"), counts.get("output_tokens")
    if inputs is None or outputs is None:
        total = None
    cached = (counts.get("cache_read_tokens") or 0) + (counts.get("cache_write_tokens") or 0)
    reasoning = counts.get("reasoning_tokens") or 0
    base = (inputs or 0) + (outputs or 0) + beside_in
    # Readings of the same counts, the declared one first: (cache added to input, tokens added to output).
    declared_out = beside_out
    adds_cache = kind.includes_cache is False
    readings = [
        (adds_cache, declared_out),
        (not adds_cache, declared_out),
        (adds_cache, 0 if beside_out else reasoning),
    ]
    flags: tuple[str, ...] = ()
    chosen = readings[0]
    if total is not None and kind.total_proves:
        fits = [r for r in readings if base + (cached if r[0] else 0) + r[1] == total]
        if fits:
            chosen = fits[0]
            if chosen != readings[0] and kind.includes_cache is not None:
                flags = ("convention_by_total",)
        elif kind.includes_cache is None:
            raise UsageError(_unproven(kind, f"its total {total} fits neither"))
        else:
            flags = ("total_mismatch",)
    elif kind.includes_cache is None and cached:
        if inputs is None or cached <= inputs:
            raise UsageError(_unproven(kind, "no total proves which"))
        chosen = (True, declared_out)
    if inputs is not None:
        counts["input_tokens"] = inputs + beside_in + (cached if chosen[0] else 0)
    if outputs is not None:
        counts["output_tokens"] = outputs + chosen[1]
    return flags


def _refuse_iterations(usage: Mapping[str, object]) -> None:
    """Anthropic's iterations of other kinds than the answer itself are billed beside the top-level counts."""
    entries = usage.get("iterations")
    for entry in objects(entries, "iterations") if entries else ():
        if entry.get("type") not in (None, "message"):
            raise UsageError(
                f'ambiguous usage: its iterations hold a "{entry.get("type")}", which is billed beside the top-level '
                "counts. Price each iteration's own counts (a log of such responses is loaded with all of them)"
            )


def _fill_media(counts: dict[str, int | None]) -> None:
    """What was read from a cache was read, and is of its kind: an unknown whole is at least its known part."""
    cached = {kind: counts.get(f"cache_read_{kind}_tokens") or 0 for kind in ("audio", "image", "video")}
    if counts.get("cache_read_tokens") is None and any(cached.values()):
        counts["cache_read_tokens"] = sum(cached.values())
    for kind, tokens in cached.items():
        if tokens and counts.get(f"input_{kind}_tokens") is None:
            counts[f"input_{kind}_tokens"] = tokens


def _unproven(kind: UsageShape, why: str) -> str:
    return (
        f"ambiguous usage ({kind.name}): the input may or may not include the cached tokens, and {why}. "
        "Use tenfold's names: input_tokens (all), cache_read_tokens and cache_write_tokens as parts of it"
    )


SUBSETS = (
    ("input_tokens", ("cache_read_tokens", "cache_write_tokens")),
    ("input_tokens", ("input_audio_tokens", "input_image_tokens", "input_video_tokens")),
    ("cache_write_tokens", ("cache_write_long_tokens",)),
    ("output_tokens", ("reasoning_tokens", "output_audio_tokens", "output_image_tokens", "output_video_tokens")),
    ("cache_read_tokens", ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens")),
    ("input_audio_tokens", ("cache_read_audio_tokens",)),
    ("input_image_tokens", ("cache_read_image_tokens",)),
    ("input_video_tokens", ("cache_read_video_tokens",)),
)


def _check_subsets(kind: UsageShape, counts: dict[str, int | None]) -> None:
    for whole, parts in SUBSETS:
        limit = counts.get(whole)
        held = sum(counts.get(part) or 0 for part in parts)
        if limit is not None and held > limit:
            named = " + ".join(
                f"{plain(kind.counts[part][0])} {counts[part]}"
                for part in parts
                if counts.get(part) and part in kind.counts
            )
            above = f"{plain(kind.counts[whole][0])} {limit}"
            raise UsageError(f"impossible usage: {named} is more than {above}, of which it is a part")
