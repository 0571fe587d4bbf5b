"""One projection for every reader: raw text to checked, inclusive, canonical columns, as SQL.

Nothing is clamped: an impossible count becomes NULL and the row says so in `flags`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs import sql
from tenfold.logs.base import Children, Reader, member, usage_sql
from tenfold.prices.words import PROVIDER_ALIASES, TIER_WORDS
from tenfold.store import schema
from tenfold.store.database import quoted
from tenfold.usage.normalise import most
from tenfold.usage.shape import NAMED_RULES, ZERO, ZERO_BESIDE_CACHE, ZERO_BY_TOTAL, ZERO_WITHOUT_WRITES, UsageShape

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LINE = "_tenfold_line"
REPAIRED = "_tenfold_repaired"
LOAD = "_tenfold_load"
# Writes as the lifetimes give them.
_PARTS = "coalesce(n_open_sum, CASE WHEN c_open_sum IS NULL THEN nullif(n_cache_write_long_tokens, 0) END)"
_INPUT_MEDIA = ("input_audio_tokens", "input_image_tokens", "input_video_tokens")
_CACHED_MEDIA = ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens")
_INPUT_SIDE = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *(*_INPUT_MEDIA, *_CACHED_MEDIA),
)
_OUTPUT_MEDIA = ("output_audio_tokens", "output_image_tokens", "output_video_tokens")
# Calls and other counts beside the tokens take the output with them: the row is then priced as usage_partial.
_OUTPUT_SIDE = tuple(name for name in schema.TOKEN_COLUMNS if name not in _INPUT_SIDE)
_EXTRAS = ("total", "beside_input", "beside_output", "open_sum")
_OWN = {"ts", "flags", "source_format", "source_file", "source_line", "dedup_key", "id_hash", "price_key", "load_id"}


def insert_sql(
    reader: Reader,
    *,
    zone: str | None,
    constants: Mapping[str, str],
    child: Children | None = None,
) -> str:
    """Write the statement that turns rows of `raw` into rows of `batch`; `sources` says which file each is from.

    Args:
        reader: The format.
        zone: Zone that naive times mean; None: the reader's, else UTC and a flag.
        constants: Column -> value that overrides the source's.
        child: Take these further rows of each record instead of the record itself.

    Returns:
        SQL text.
    """
    fields = {**reader.fields, **(child.fields if child else {})}
    fields.update({name: quoted(value) for name, value in constants.items() if name != "ts"})
    shape = reader.shape
    naive_zone = zone or reader.zone
    key = f"({reader.dedup_key}) || {child.suffix}" if child else reader.dedup_key
    columns = schema.names("requests")
    own = {
        "ts": "ts",
        "flags": _flags(reader, naive=naive_zone is None),
        "source_format": quoted(reader.name),
        "source_file": "source_file",
        "source_line": "source_line",
        "dedup_key": "dedup_key",
        "id_hash": "md5_number_lower(dedup_key)",
        "price_key": "NULL",
        "load_id": "load_id",
    }
    token_names = set(schema.TOKEN_COLUMNS)
    select = ",\n  ".join(
        f"{own[name] if name in own else _token(name) if name in token_names else _field(name)} AS {name}"
        for name in columns
    )
    time = sql.offset("ts_text", reader.relative) if reader.relative else sql.time("ts_text", naive_zone or "UTC")
    return (
        f"INSERT INTO batch\nWITH projected AS (\n{_projected(reader, fields, key, child)}\n),\n"
        f"counted AS (\n{_counted(time)}\n),\n"
        f"filled AS (\n{_filled(shape)}\n),\n"
        f"proven AS (\n{_proven(shape)}\n),\n"
        f"total AS (\n{_totals(shape)}\n),\n"
        f"whole AS (\n{_whole()}\n),\n"
        f"checked AS (\n{_checked()}\n)\n"
        f"SELECT\n  {select}\nFROM checked"
    )


def _projected(reader: Reader, fields: Mapping[str, str], key: str, child: Children | None) -> str:
    shape, root = reader.shape, child.usage if child else reader.usage
    parts = [
        f'coalesce(r."{LINE}", r.rowid + s.line_of_row_0) AS source_line',
        "s.source_file AS source_file",
        "s.load_id AS load_id",
        f'coalesce(r."{REPAIRED}", false) AS repaired',
        f"nullif({reader.ts}, '') AS ts_text",
        f"({key})::VARCHAR AS dedup_key",
    ]
    told = [c.name for c in schema.REQUESTS if c.name not in _OWN and c.name not in schema.TOKEN_COLUMNS]
    parts += [f"{fields.get(name, 'NULL')} AS f_{name}" for name in told]
    for name in schema.TOKEN_COLUMNS:
        raw = (not child and reader.counts.get(name)) or usage_sql(shape, root, shape.counts.get(name, ()))
        parts.append(f"{raw} AS c_{name}")
    total = reader.total if reader.total and not child else usage_sql(shape, root, shape.total)
    parts += [
        f"{total if shape.total_proves else 'NULL'} AS c_total",
        f"{usage_sql(shape, root, shape.input_beside)} AS c_beside_input",
        f"{usage_sql(shape, root, shape.output_beside)} AS c_beside_output",
        f"{_unknown_meter(shape, root)} AS unknown_meter",
        f"{_open_sum(shape, root)} AS c_open_sum",
    ]
    parts += [
        f"{_any(f'{member(root, path)} IS NOT NULL' for path in rule.split('|'))} AS {_presence(rule)}"
        for rule in _details(shape)
    ]
    parts += [f"({condition}) AS x_{flag}" for flag, condition in reader.flags.items()]
    origin = "raw r"
    if child:
        unnested = f"unnest({child.each}) AS it, generate_subscripts({child.each}, 1) AS it_number"
        origin = f"(SELECT r.*, r.rowid AS rowid, {unnested} FROM raw r) r"
    return "  SELECT " + ",\n    ".join(parts) + f'\n  FROM {origin} JOIN sources s ON s.load_id = r."{LOAD}"'


def _details(shape: UsageShape) -> list[str]:
    return sorted({rule for rule in shape.absent.values() if rule not in NAMED_RULES})


def _presence(rule: str) -> str:
    return "has_" + rule.replace(".", "_").replace("|", "_or_")


def _unknown_meter(shape: UsageShape, root: str) -> str:
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
    return _any(tests) if tests else "false"


def _open_sum(shape: UsageShape, root: str) -> str:
    """Sum what open objects hold; text that is no count where one of their values is none."""
    if not shape.open_objects:
        return "NULL"
    held = [f"coalesce(map_entries({member(root, name)}), [])" for name in shape.open_objects]
    return sql.sum_of(f"list_concat({', '.join(held)})" if len(held) > 1 else held[0], "value", none="NULL")


def _counted(time: str) -> str:
    names = (*schema.TOKEN_COLUMNS, *_EXTRAS)
    parts = [f"{sql.count(f'c_{name}', _digits(name))} AS n_{name}" for name in names]
    written = _any(
        f"c_{name} IS NOT NULL AND NOT regexp_full_match(c_{name}, '{sql.plain(_digits(name))}')" for name in names
    )
    return f"  SELECT *, {', '.join(parts)}, {written} AS written_otherwise, {time} AS ts\n  FROM projected"


def _digits(name: str) -> int:
    """Digits that a count may have: tokens times seconds are large."""
    return len(str(most(name) - 1))


def _any(conditions: Iterable[str]) -> str:
    return f"({' OR '.join(f'coalesce({condition}, false)' for condition in conditions)})"


def _filled(shape: UsageShape) -> str:
    parts: list[str] = []
    writes = "n_cache_write_tokens"
    for name in schema.TOKEN_COLUMNS:
        rule = shape.absent.get(name)
        value = f"n_{name}"
        if name == "cache_write_tokens":
            # Writes by lifetime give all writes where nothing else does: what was written for long was written.
            value = f"coalesce({value}, CASE WHEN c_{name} IS NULL THEN {_PARTS} END)"
        if rule == ZERO:
            known_zero = "any_usage"
        elif rule == ZERO_WITHOUT_WRITES:
            known_zero = f"any_usage AND coalesce({writes}, CASE WHEN c_cache_write_tokens IS NULL THEN "
            no_split = f"c_open_sum IS NULL AND ({_zero_writes(shape)})"
            known_zero += f"coalesce({_PARTS}, CASE WHEN {no_split} THEN 0 END) END) = 0"
        elif rule == ZERO_BESIDE_CACHE:
            known_zero = f"n_cache_read_tokens > 0 OR coalesce({writes}, {_PARTS}) > 0"
        elif rule == ZERO_BY_TOTAL:
            known_zero = "n_total = n_input_tokens"
        elif rule:
            known_zero = _presence(rule)
            if name in {"cache_read_tokens", "cache_write_tokens"} and shape.zero_below:
                known_zero += f" OR n_input_tokens < {shape.zero_below}"
        else:
            parts.append(f"{value} AS {name}")
            continue
        unsaid = f"c_{name} IS NULL" + (" AND c_open_sum IS NULL" if name == "cache_write_tokens" else "")
        parts.append(f"coalesce({value}, CASE WHEN {unsaid} AND ({known_zero}) THEN 0 END) AS {name}")
    any_usage = " OR ".join(f"c_{name} IS NOT NULL" for name in (*schema.TOKEN_COLUMNS, "open_sum"))
    usage = f"SELECT *, ({any_usage}) AS any_usage FROM counted"
    return f"  SELECT *, {', '.join(parts)}\n  FROM ({usage})"


def _zero_writes(shape: UsageShape) -> str:
    rule = shape.absent.get("cache_write_tokens")
    if rule == ZERO:
        return "true"
    if rule is None:
        return "false"
    return f"{_presence(rule)} OR n_input_tokens < {shape.zero_below}"


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


def _whole() -> str:
    """Take an unknown whole for at least its known parts: what was read from a cache was read, and is of its kind."""
    cached = " + ".join(f"coalesce({name}, 0)" for name in _CACHED_MEDIA)
    kinds = ", ".join(
        f"coalesce({whole}, nullif({part}, 0)) AS {whole}"
        for whole, part in zip(_INPUT_MEDIA, _CACHED_MEDIA, strict=True)
    )
    reads = f"coalesce(cache_read_tokens, nullif({cached}, 0)) AS cache_read_tokens"
    return f"  SELECT * REPLACE ({reads}, {kinds})\n  FROM total"


def _checked() -> str:
    def held(names: tuple[str, ...]) -> str:
        return " + ".join(f"coalesce({name}, 0)" for name in names)

    def bad(names: tuple[str, ...]) -> str:
        return _any(f"c_{name} IS NOT NULL AND n_{name} IS NULL" for name in names)

    return (
        f"  SELECT *, coalesce({held(('cache_read_tokens', 'cache_write_tokens'))} > input_tokens, false) AS cache_gt, "
        f"coalesce({held(_INPUT_MEDIA)} > input_tokens, false) "
        f"OR coalesce({held(_CACHED_MEDIA)} > cache_read_tokens, false) "
        f"OR {_any(f'{part} > {whole}' for part, whole in zip(_CACHED_MEDIA, _INPUT_MEDIA, strict=True))} AS media_gt, "
        "coalesce(cache_write_long_tokens > cache_write_tokens OR n_open_sum > cache_write_tokens, false) AS long_gt, "
        "coalesce(reasoning_tokens > output_tokens, false) AS reasoning_gt, "
        f"coalesce({held(('reasoning_tokens', *_OUTPUT_MEDIA))} > output_tokens, false) "
        "AS out_media_gt, "
        f"{bad((*_INPUT_SIDE, 'beside_input', 'open_sum'))} AS bad_input, "
        f"{bad((*_OUTPUT_SIDE, 'beside_output'))} AS bad_output, "
        f"coalesce({_field('status')} = 'cancelled' AND n_output_tokens = 1, false) AS is_seed\n"
        "  FROM whole"
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


def _token(name: str) -> str:
    condition = _NULLED.get(name)
    return f"CASE WHEN {condition} THEN NULL ELSE {name} END" if condition else name


_TYPES = {column.name: column.type for column in schema.REQUESTS}
_WORDS = {
    "provider": PROVIDER_ALIASES,
    "service_tier": TIER_WORDS,
    "status": sql.STATUS_WORDS,
    "finish_reason": sql.FINISH_WORDS,
}


def _field(name: str) -> str:
    kind, raw = _TYPES[name], f"f_{name}"
    if name in _WORDS:
        return sql.words(raw, _WORDS[name])
    if name == "request_id":
        return sql.named(raw)
    if name == "token_source":
        return f"coalesce({raw}, CASE WHEN any_usage THEN 'reported' END)"
    if name.endswith("_ms"):
        return f"CASE WHEN TRY_CAST({raw} AS DOUBLE) >= 0 THEN TRY_CAST({raw} AS DOUBLE) END"
    by_type = {
        "VARCHAR": f"nullif({raw}::VARCHAR, '')",
        "VARCHAR[]": f"TRY(from_json({raw}::VARCHAR, '[\"VARCHAR\"]'))",
        "MAP(VARCHAR, VARCHAR)": f"TRY({raw}::VARCHAR::JSON::{kind})",
    }
    return by_type.get(kind, f"TRY_CAST({raw} AS {kind})")


def _flags(reader: Reader, *, naive: bool) -> str:
    typed = [name for name, kind in _TYPES.items() if kind in {"DOUBLE", "INTEGER", "BOOLEAN", "DECIMAL(38,12)"}]
    given = [name for name in typed if name in reader.fields]
    success = f"{_field('status')} = 'success'"
    blank = " AND ".join(f"c_{name} IS NULL AND {name} IS NULL" for name in ("input_tokens", "output_tokens"))
    conditions = {
        "coerced": "written_otherwise AND "
        + _any(
            f"n_{name} IS NOT NULL AND NOT regexp_full_match(c_{name}, '{sql.plain(_digits(name))}')"
            for name in (*schema.TOKEN_COLUMNS, "open_sum")
        ),
        "bad_count": "bad_input OR bad_output OR (c_total IS NOT NULL AND n_total IS NULL)",
        "unknown_meter": "unknown_meter",
        "cache_gt_input": "cache_gt",
        "media_gt_total": "media_gt OR (out_media_gt AND NOT reasoning_gt)",
        "cache_write_long_gt_write": "long_gt",
        "reasoning_gt_output": "reasoning_gt",
        "total_mismatch": "reading = 'mismatch' AND NOT cache_gt AND NOT reasoning_gt",
        "convention_by_total": "reading IN ('flipped', 'other_output')",
        "details_missing": _details_missing(reader.shape),
        "stream_without_usage": f"{success} AND {blank} AND coalesce({_field('is_stream')}, false)",
        "usage_missing": f"{success} AND {blank} AND NOT coalesce({_field('is_stream')}, false)",
        "usage_partial": "is_seed" + (" OR x_usage_partial" if "usage_partial" in reader.flags else ""),
        "zero_usage": f"{success} AND input_tokens = 0 AND output_tokens = 0",
        "not_billed": f"NOT {_field('is_billable')}",
        "ts_missing": "ts_text IS NULL",
        "bad_ts": "ts_text IS NOT NULL AND ts IS NULL",
        **({"relative_ts": "ts IS NOT NULL"} if reader.relative else {}),
        "naive_ts": sql.is_naive("ts_text") if naive else "false",
        "bad_value": _any(f"f_{name} IS NOT NULL AND {_field(name)} IS NULL" for name in given) if given else "false",
        "ttft_gt_duration": f"{_field('ttft_ms')} > {_field('duration_ms')}",
        "repaired": "repaired",
        **{flag: f"x_{flag}" for flag in reader.flags if flag != "usage_partial"},
    }
    listed = ", ".join(f"CASE WHEN {condition} THEN '{flag}' END" for flag, condition in conditions.items())
    return f"nullif(list_filter([{listed}], lambda x: x IS NOT NULL), [])"


def _details_missing(shape: UsageShape) -> str:
    rule = shape.absent.get("cache_read_tokens", ZERO)
    return "false" if rule == ZERO else f"any_usage AND NOT {_presence(rule)}"
