"""Counts from raw text to checked, inclusive token columns, as SQL; what a reader cannot give is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs import sql
from tenfold.logs.base import member, usage_sql
from tenfold.store import schema
from tenfold.store.database import quoted
from tenfold.usage.paths import most
from tenfold.usage.shape import (
    NAMED_RULES,
    ZERO,
    ZERO_BESIDE_CACHE,
    ZERO_BESIDE_PARTS,
    ZERO_BY_TOTAL,
    ZERO_WITHOUT_WRITES,
    parts_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold.logs.base import Children, Reader
    from tenfold.usage.shape import UsageShape

_UNKNOWN = "NULL"
_INPUT_MEDIA = ("input_audio_tokens", "input_image_tokens", "input_video_tokens")
_CACHED_MEDIA = ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens")
_INPUT_SIDE = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *(*_INPUT_MEDIA, *_CACHED_MEDIA),
)
_OUTPUT_MEDIA = ("output_audio_tokens", "output_image_tokens", "output_video_tokens")
# Calls and other counts beside the tokens take the output with them: the row is then priced as usage_partial.
_OUTPUT_SIDE = tuple(name for name in schema.TOKEN_COLUMNS if name not in _INPUT_SIDE)
_PAIRS = tuple(zip(_INPUT_MEDIA, _CACHED_MEDIA, strict=True))
_EXTRAS = ("total", "beside_input", "beside_output", "open_sum")


class Counts:
    """The counts that a reader can give at all; what it cannot is neither computed nor checked.

    Args:
        reader: The format.
        child: Its further rows, which have a usage object of their own.
        left: Leaves places that hold nothing out of a value.
    """

    def __init__(self, reader: Reader, child: Children | None, left: Callable[[str], str]) -> None:
        shape, root = reader.shape, child.usage if child else reader.usage
        self.shape = shape
        total = reader.total if reader.total and not child else usage_sql(shape, root, shape.total)
        written = {
            name: (not child and reader.counts.get(name)) or usage_sql(shape, root, shape.counts.get(name, ()))
            for name in schema.TOKEN_COLUMNS
        } | {
            "total": total if shape.total_proves else _UNKNOWN,
            "beside_input": usage_sql(shape, root, shape.input_beside),
            "beside_output": usage_sql(shape, root, shape.output_beside),
            "open_sum": _open_sum(shape, root),
        }
        kept = {name: left(text) for name, text in written.items()}
        self.raw = {name: text for name, text in kept.items() if text != _UNKNOWN}
        self.there = {name for name in schema.TOKEN_COLUMNS if name in self.raw or shape.absent.get(name)}
        if "cache_write_long_tokens" in self.there or "open_sum" in self.raw:
            self.there.add("cache_write_tokens")
        if self.there & set(_CACHED_MEDIA):
            self.there.add("cache_read_tokens")
            self.there |= {whole for whole, part in _PAIRS if part in self.there}

    def is_unsaid(self, name: str) -> str:
        """Write the condition that the log says nothing of a count.

        Args:
            name: The count.

        Returns:
            SQL condition.
        """
        return f"c_{name} IS NULL" if name in self.raw else "true"

    def given(self, *names: str) -> list[str]:
        """Keep those of some counts that the log may say.

        Args:
            *names: The counts.

        Returns:
            Their names.
        """
        return [name for name in names if name in self.raw]

    def total_of(self, names: Iterable[str]) -> str:
        """Add up what is known of some token columns.

        Args:
            names: The columns.

        Returns:
            SQL expression; 0 where none is known.
        """
        return " + ".join(f"coalesce({name}, 0)" for name in names if name in self.there) or "0"


def layers(counts: Counts, time: str, status: str) -> str:
    """Write the steps from raw text to checked counts, one common table expression each.

    Args:
        counts: What the reader can give.
        time: SQL of the start time.
        status: SQL of what became of the call.

    Returns:
        SQL text of `looked_at` (from `told`) to `checked`, which bear the columns of requests and the findings.
    """
    return (
        f"looked_at AS (\n{_looked_at(counts)}\n),\n"
        f"counted AS (\n{_counted(time, counts)}\n),\n"
        f"filled AS (\n{_filled(counts.shape, counts)}\n),\n"
        f"proven AS (\n{_proven(counts.shape)}\n),\n"
        f"total AS (\n{_totals(counts.shape)}\n),\n"
        f"whole AS (\n{_whole(counts)}\n),\n"
        f"checked AS (\n{_checked(counts, status)}\n)"
    )


def is_missing_details(counts: Counts) -> str:
    """Write the condition that the log says nothing of what was read from a cache, though it could.

    Args:
        counts: What the reader can give.

    Returns:
        SQL condition over `checked`.
    """
    rule = counts.shape.absent.get("cache_read_tokens", ZERO)
    if rule == ZERO:
        return "false"
    return f"any_usage AND NOT {_any_part(counts) if rule == ZERO_BESIDE_PARTS else presence(rule)}"


def _any_part(counts: Counts) -> str:
    """Tell whether an object says any part of a total."""
    return either(f"c_{name} IS NOT NULL" for name in counts.given(*parts_of(counts.shape.counts)))


def token(name: str, counts: Counts) -> str:
    """Write a token column from `checked`: NULL where it is impossible.

    Args:
        name: The column.
        counts: What the reader can give.

    Returns:
        SQL expression.
    """
    condition = _NULLED.get(name)
    value = f"CASE WHEN {condition} THEN NULL ELSE {name} END" if condition else name
    return value if name in counts.there else "NULL"


def is_coerced(counts: Counts) -> str:
    """Write the condition that a count was written otherwise than in digits, and read all the same.

    Args:
        counts: What the reader can give.

    Returns:
        SQL condition over `checked`.
    """
    return either(f"odd_{name} AND n_{name} IS NOT NULL" for name in counts.given(*schema.TOKEN_COLUMNS, "open_sum"))


def unknown_meter(shape: UsageShape, root: str) -> str:
    """Write the condition that an open object holds a count that no meter is known for.

    Args:
        shape: The shape.
        root: SQL of the usage object.

    Returns:
        SQL condition.
    """
    known = [path for paths in shape.counts.values() for path in paths]
    tests: list[str] = []
    for name in shape.open_objects:
        keys = [path[len(name) + 1 :] for path in (*known, *shape.open_known) if path.startswith(f"{name}.")]
        listed = ", ".join(quoted(key) for key in keys)
        entries = f"map_entries({member(root, name)})"
        strange = (
            f"e.key NOT IN ({listed}) AND e.value IS NOT NULL AND {sql.count('e.value::VARCHAR')} IS DISTINCT FROM 0"
        )
        tests.append(f"len(list_filter({entries}, lambda e: {strange})) > 0")
    return either(tests)


def details(shape: UsageShape) -> list[str]:
    """List the objects whose presence says that an absent count is 0.

    Args:
        shape: The shape.

    Returns:
        Rules, paths between bars.
    """
    return sorted({rule for rule in shape.absent.values() if rule not in NAMED_RULES})


def presence(rule: str) -> str:
    """Name the column of `projected` that says whether such an object is there.

    Args:
        rule: The rule.

    Returns:
        The column.
    """
    return "has_" + rule.replace(".", "_").replace("|", "_or_")


def either(conditions: Iterable[str]) -> str:
    """Write that one of some conditions holds.

    Args:
        conditions: SQL conditions; NULL counts as false.

    Returns:
        SQL condition, never NULL; false without any.
    """
    return f"({' OR '.join(f'coalesce({condition}, false)' for condition in conditions) or 'false'})"


def _open_sum(shape: UsageShape, root: str) -> str:
    """Sum what open objects hold; text that is no count where one of their values is none."""
    if not shape.open_objects:
        return _UNKNOWN
    held = [f"coalesce(map_entries({member(root, name)}), [])" for name in shape.open_objects]
    return sql.sum_of(f"list_concat({', '.join(held)})" if len(held) > 1 else held[0], "value", none="NULL")


def _looked_at(counts: Counts) -> str:
    odd = [f"{sql.is_odd(f'c_{name}', _digits(name))} AS odd_{name}" for name in counts.raw]
    return f"  SELECT {', '.join(('*', *odd))}\n  FROM told"


def _counted(time: str, counts: Counts) -> str:
    names = (*schema.TOKEN_COLUMNS, *_EXTRAS)
    read = {name: sql.count_unless_odd(f"c_{name}", f"odd_{name}", _digits(name)) for name in counts.raw}
    parts = [f"{read.get(name, 'NULL::BIGINT')} AS n_{name}" for name in names]
    return f"  SELECT *, {', '.join(parts)}, {time} AS ts\n  FROM looked_at"


def _digits(name: str) -> int:
    """Digits that a count may have: tokens times seconds are large."""
    return len(str(most(name) - 1))


def _filled(shape: UsageShape, counts: Counts) -> str:
    parts: list[str] = []
    writes = "n_cache_write_tokens"
    no_split = counts.is_unsaid("open_sum")
    # Writes as the lifetimes give them.
    by_lifetime = f"coalesce(n_open_sum, CASE WHEN {no_split} THEN nullif(n_cache_write_long_tokens, 0) END)"
    for name in schema.TOKEN_COLUMNS:
        if name not in counts.there:
            parts.append(f"NULL::BIGINT AS {name}")
            continue
        rule = shape.absent.get(name)
        value = f"n_{name}"
        if name == "cache_write_tokens":
            # Writes by lifetime give all writes where nothing else does: what was written for long was written.
            value = f"coalesce({value}, CASE WHEN {counts.is_unsaid(name)} THEN {by_lifetime} END)"
        if rule == ZERO:
            known_zero = "any_usage"
        elif rule == ZERO_WITHOUT_WRITES:
            known_zero = (
                f"any_usage AND coalesce({writes}, CASE WHEN {counts.is_unsaid('cache_write_tokens')} THEN "
                f"coalesce({by_lifetime}, CASE WHEN {no_split} AND ({_zero_writes(shape)}) THEN 0 END) END) = 0"
            )
        elif rule == ZERO_BESIDE_CACHE:
            known_zero = f"n_cache_read_tokens > 0 OR coalesce({writes}, {by_lifetime}) > 0"
        elif rule == ZERO_BESIDE_PARTS:
            known_zero = _any_part(counts)
        elif rule == ZERO_BY_TOTAL:
            known_zero = "n_total = n_input_tokens"
        elif rule:
            known_zero = presence(rule)
            if name in {"cache_read_tokens", "cache_write_tokens"} and shape.zero_below:
                known_zero += f" OR n_input_tokens < {shape.zero_below}"
        else:
            parts.append(f"{value} AS {name}")
            continue
        unsaid = counts.is_unsaid(name) + (f" AND {no_split}" if name == "cache_write_tokens" else "")
        parts.append(f"coalesce({value}, CASE WHEN {unsaid} AND ({known_zero}) THEN 0 END) AS {name}")
    any_usage = either(f"c_{name} IS NOT NULL" for name in counts.given(*schema.TOKEN_COLUMNS, "open_sum"))
    usage = f"SELECT *, {any_usage} AS any_usage FROM counted"
    return f"  SELECT *, {', '.join(parts)}\n  FROM ({usage})"


def _zero_writes(shape: UsageShape) -> str:
    rule = shape.absent.get("cache_write_tokens")
    if rule == ZERO:
        return "true"
    if rule is None:
        return "false"
    return f"{presence(rule)} OR n_input_tokens < {shape.zero_below}"


def _proven(shape: UsageShape) -> str:
    """Choose the reading that the reported total proves; the declared one where nothing does."""
    adds = "true" if shape.includes_cache is False else "false"
    beside_out = "coalesce(n_beside_output, 0)"
    other_out = "0" if shape.output_beside else "coalesce(reasoning_tokens, 0)"
    cached = "(coalesce(cache_read_tokens, 0) + coalesce(cache_write_tokens, 0))"
    base = "(input_tokens + output_tokens + coalesce(n_beside_input, 0))"
    declared = f"{base} + CASE WHEN {adds} THEN {cached} ELSE 0 END"
    flipped = f"{base} + CASE WHEN {adds} THEN 0 ELSE {cached} END"
    return (
        f"  SELECT *, {cached} AS cached, CASE WHEN n_total IS NULL OR {base} IS NULL THEN 'declared' "
        f"WHEN {declared} + {beside_out} = n_total THEN 'declared' "
        f"WHEN {flipped} + {beside_out} = n_total THEN 'flipped' "
        f"WHEN {declared} + {other_out} = n_total THEN 'other_output' ELSE 'mismatch' END AS reading\n  FROM filled"
    )


def _totals(shape: UsageShape) -> str:
    adds = shape.includes_cache is False
    added = f"CASE WHEN (reading = 'flipped') = {'false' if adds else 'true'} THEN cached ELSE 0 END"
    other_out = "0" if shape.output_beside else "coalesce(reasoning_tokens, 0)"
    out = f"CASE WHEN reading = 'other_output' THEN {other_out} ELSE coalesce(n_beside_output, 0) END"
    return (
        f"  SELECT * REPLACE (input_tokens + coalesce(n_beside_input, 0) + {added} AS input_tokens, "
        f"output_tokens + {out} AS output_tokens)\n  FROM proven"
    )


def _whole(counts: Counts) -> str:
    """Take an unknown whole for at least its known parts: what was read from a cache was read, and is of its kind."""
    pairs = [(whole, part) for whole, part in _PAIRS if part in counts.there]
    if not pairs:
        return "  SELECT *\n  FROM total"
    kinds = "".join(f", coalesce({whole}, nullif({part}, 0)) AS {whole}" for whole, part in pairs)
    reads = f"coalesce(cache_read_tokens, nullif({counts.total_of(_CACHED_MEDIA)}, 0)) AS cache_read_tokens"
    return f"  SELECT * REPLACE ({reads}{kinds})\n  FROM total"


def _checked(counts: Counts, status: str) -> str:
    def bad(*names: str) -> str:
        return either(f"odd_{name} AND n_{name} IS NULL" for name in counts.given(*names))

    media = (
        f"{counts.total_of(_INPUT_MEDIA)} > input_tokens",
        f"{counts.total_of(_CACHED_MEDIA)} > cache_read_tokens",
        *(f"{part} > {whole}" for whole, part in _PAIRS if part in counts.there),
    )
    tests = {
        "cache_gt": f"{counts.total_of(('cache_read_tokens', 'cache_write_tokens'))} > input_tokens",
        "media_gt": either(media) if counts.there & {*_INPUT_MEDIA, *_CACHED_MEDIA} else "false",
        "long_gt": either(("cache_write_long_tokens > cache_write_tokens", "n_open_sum > cache_write_tokens")),
        "reasoning_gt": "reasoning_tokens > output_tokens",
        "out_media_gt": f"{counts.total_of(('reasoning_tokens', *_OUTPUT_MEDIA))} > output_tokens",
        "bad_input": bad(*_INPUT_SIDE, "beside_input", "open_sum"),
        "bad_output": bad(*_OUTPUT_SIDE, "beside_output"),
        "bad_total": bad("total"),
        "is_seed": f"{status} = 'cancelled' AND n_output_tokens = 1",
    }
    return (
        f"  SELECT *, {', '.join(f'coalesce({test}, false) AS {name}' for name, test in tests.items())}\n  FROM whole"
    )


# A subset that is impossible takes its total with it: the row is then priced as usage_partial, never by halves.
_NULLED = {
    "input_tokens": "cache_gt OR media_gt OR long_gt OR bad_input OR unknown_meter",
    "cache_read_tokens": "cache_gt AND cache_read_tokens > 0",
    "cache_write_tokens": "(cache_gt AND cache_write_tokens > 0) OR long_gt",
    "cache_write_long_tokens": "(cache_gt AND cache_write_tokens > 0) OR long_gt "
    "OR (cache_write_tokens IS NULL AND cache_write_long_tokens > 0)",
    **dict.fromkeys((*_INPUT_MEDIA, *_CACHED_MEDIA), "media_gt"),
    # One token of a cancelled answer is what a stream starts with, not what was made.
    "output_tokens": "reasoning_gt OR out_media_gt OR bad_output OR is_seed",
    "reasoning_tokens": "is_seed OR reasoning_gt OR (out_media_gt AND reasoning_tokens > 0)",
    **dict.fromkeys(_OUTPUT_MEDIA, "out_media_gt"),
}
