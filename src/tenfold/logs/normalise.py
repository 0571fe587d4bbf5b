"""One projection for every reader: raw text to checked, inclusive, canonical columns, as SQL.

Nothing is clamped: an impossible count becomes NULL and the row says so in `flags`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tenfold.logs import sql
from tenfold.logs.base import Children, Reader, member
from tenfold.logs.counting import (
    Counts,
    details,
    either,
    is_coerced,
    is_missing_details,
    layers,
    presence,
    token,
    unknown_meter,
)
from tenfold.logs.text.fields import content_fields, text_fields
from tenfold.prices.words import PROVIDER_ALIASES, TIER_WORDS
from tenfold.store import schema
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

LINE = "_tenfold_line"
REPAIRED = "_tenfold_repaired"
PART = "_tenfold_part"
# What the error says that ends a direct read at a line which that cannot take.
DETOUR = "tenfold: this line needs the longer way"
_OWN = {
    *("ts", "flags", "source_format", "source_file", "source_line", "dedup_key", "id_hash", "price_key", "load_id"),
    *("team_logged", "feature_logged"),
}


# Columns that are what a log tells, in other words.
_TOLD = tuple(c.name for c in schema.REQUESTS if c.name not in _OWN and c.name not in schema.TOKEN_COLUMNS)


_NULL = "NULL"
# A value of the raw row, and the first known one of several.
_PLACE = re.compile(r'r\.(?:"([^"]+)"|(\w+))(?:\."[^"]+"|\.\w+)*(?:::VARCHAR)?')
_PLACES = re.compile(rf"coalesce\((?:{_PLACE.pattern}(?:, )?)+\)|{_PLACE.pattern}")


class Insertion(NamedTuple):
    """What fills `batch`.

    Args:
        sql: The statement.
        columns: Columns of requests that it fills; `batch` must have them, the others are unknown.
    """

    sql: str
    columns: tuple[str, ...]


class Direct(NamedTuple):
    """Rows that are read and projected in one pass, without a table between.

    Args:
        rows: SQL of the raw rows: a parenthesised query.
        source_file: The file's public name.
        load_id: Row of `loads`.
        detour: SQL condition over ``r`` of a line that this way cannot take; one ends the statement with ``DETOUR``.
        absent: Columns of ``r`` that hold nothing: what is read from them alone need not be computed.
    """

    rows: str
    source_file: str
    load_id: int
    detour: str
    absent: frozenset[str] = frozenset()

    def left(self, value: str) -> str:
        """Leave what holds nothing out of a value that is read from one of several places.

        Args:
            value: SQL over ``r``.

        Returns:
            SQL; NULL where no place is left, itself where it is more than places.
        """
        if not self.absent or not _PLACES.fullmatch(value):
            return value
        held = [place[0] for place in _PLACE.finditer(value) if (place[1] or place[2]).lower() not in self.absent]
        return f"coalesce({', '.join(held)})" if held else _NULL


def insertion(
    reader: Reader,
    *,
    zone: str | None,
    constants: Mapping[str, str],
    child: Children | None = None,
    direct: Direct | None = None,
) -> Insertion:
    """Write the statement that turns raw rows into rows of `batch`.

    The rows are those of `raw`, where `sources` says which file each is from, or read directly, then without their
    line.

    Args:
        reader: The format.
        zone: Zone that naive times mean; None: the reader's, else UTC and a flag.
        constants: Column -> value that overrides the source's.
        child: Take these further rows of each record instead of the record itself.
        direct: Read these rows instead of `raw`.

    Returns:
        The statement, and the columns that it fills.
    """
    fields = {**reader.fields, **(child.fields if child else {})}
    derived = {} if child else text_fields(reader)
    if derived:
        fields.update(content_fields(fields, derived))
    fields.update({name: quoted(value) for name, value in constants.items() if name != "ts"})
    if direct:
        fields = {name: direct.left(value) for name, value in fields.items()}
    counts = Counts(reader, child, direct.left if direct else str)
    naive_zone = zone or reader.zone
    key = f"({reader.dedup_key}) || {child.suffix}" if child else reader.dedup_key
    given = {name: raw for name in _TOLD if (raw := fields.get(name, _NULL)) != _NULL}
    told = {name: f"t_{name}" if name in given else _NULL for name in _TOLD}
    flags = _flags(reader, counts, told, naive=naive_zone is None)
    own = {
        **told,
        "ts": "ts",
        "flags": _listed(flags),
        "source_format": quoted(reader.name),
        "source_file": "source_file",
        "source_line": "source_line",
        "dedup_key": "dedup_key",
        "id_hash": "md5_number_lower(dedup_key)",
        "price_key": _NULL,
        "load_id": "load_id",
        "team_logged": told["team"],
        "feature_logged": told["feature"],
        "token_source": _token_source(counts, told),
        **{name: _token(name, counts, told) for name in schema.TOKEN_COLUMNS},
    }
    columns = tuple(name for name in schema.names("requests") if own[name] != _NULL)
    select = ",\n  ".join(f"{own[name]} AS {name}" for name in columns)
    time = sql.offset("ts_text", reader.relative) if reader.relative else sql.time("ts_text", naive_zone or "UTC")
    read = ", ".join(f"{_field(name)} AS t_{name}" for name in given)
    found = ", ".join(f"coalesce({condition}, false) AS g_{flag}" for flag, condition in flags.items())
    ends = f"\nWHERE CASE WHEN detour THEN error({quoted(DETOUR)}) ELSE true END" if direct else ""
    projected = _projected(reader, given, key, child, derived, counts, direct)
    statement = (
        f"INSERT INTO batch ({', '.join(columns)})\nWITH projected AS (\n{projected}\n),\n"
        f"told AS (\n  SELECT *, {read}\n  FROM projected\n),\n"
        f"{layers(counts, time, told['status'])},\n"
        f"flagged AS (\n  SELECT *, {found}\n  FROM checked\n)\n"
        f"SELECT\n  {select}\nFROM flagged{ends}"
    )
    return Insertion(statement, columns)


def _projected(
    reader: Reader,
    given: Mapping[str, str],
    key: str,
    child: Children | None,
    derived: Mapping[str, str],
    counts: Counts,
    direct: Direct | None,
) -> str:
    shape, root = reader.shape, child.usage if child else reader.usage
    if direct:
        place = [
            f'r."{LINE}" AS source_line',
            f"{quoted(direct.source_file)} AS source_file",
            f"{direct.load_id} AS load_id",
        ]
        place.append(f"coalesce({direct.detour}, false) AS detour")
        origin = f"{direct.rows} r"
    else:
        place = [f'coalesce(r."{LINE}", r.rowid + s.line_of_row_0) AS source_line', "s.source_file", "s.load_id"]
        origin = f'raw r JOIN sources s ON s.part = r."{PART}"'
    if child:
        unnested = f"unnest({child.each}) AS it, generate_subscripts({child.each}, 1) AS it_number"
        origin = f'(SELECT r.*, r.rowid AS rowid, {unnested} FROM raw r) r JOIN sources s ON s.part = r."{PART}"'
    parts = [
        *place,
        f'coalesce(r."{REPAIRED}", false) AS repaired',
        f"nullif({reader.ts}, '') AS ts_text",
        f"({key})::VARCHAR AS dedup_key",
    ]
    parts += [f"{raw} AS f_{name}" for name, raw in given.items()]
    parts += [f"{raw} AS c_{name}" for name, raw in counts.raw.items()]
    parts.append(f"{unknown_meter(shape, root)} AS unknown_meter")
    parts += [
        f"{either(f'{member(root, path)} IS NOT NULL' for path in rule.split('|'))} AS {presence(rule)}"
        for rule in details(shape)
    ]
    parts += [f"{derived.get(name, 'NULL')} AS e_{name}" for name in (*_ESTIMATED, "not_tokenised")]
    parts += [f"({condition}) AS x_{flag}" for flag, condition in reader.flags.items()]
    return "  SELECT " + ",\n    ".join(parts) + f"\n  FROM {origin}"


# Counts of text stand only where the source gives no count at all, for a call that may be billed.
_ESTIMATED = ("input_tokens", "output_tokens")


def _is_estimated(counts: Counts, told: Mapping[str, str]) -> str:
    return f"NOT any_usage AND {counts.is_unsaid('total')} AND {told['is_billable']} IS DISTINCT FROM false"


def _token(name: str, counts: Counts, told: Mapping[str, str]) -> str:
    value = token(name, counts)
    return f"CASE WHEN {_is_estimated(counts, told)} THEN e_{name} ELSE {value} END" if name in _ESTIMATED else value


def _token_source(counts: Counts, told: Mapping[str, str]) -> str:
    is_known = f"{_is_estimated(counts, told)} AND coalesce(e_input_tokens, e_output_tokens) IS NOT NULL"
    return f"coalesce({told['token_source']}, CASE WHEN any_usage THEN 'reported' WHEN {is_known} THEN 'estimated' END)"


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
    if kind == "DOUBLE":
        # Infinity and NaN, which compare as more than any number, are no values
        number = f"TRY_CAST({raw} AS DOUBLE)"
        return f"CASE WHEN {number} >= 0 AND {number} < 'infinity' THEN {number} END"
    by_type = {
        "VARCHAR": f"nullif({raw}::VARCHAR, '')",
        "VARCHAR[]": f"TRY(from_json({raw}::VARCHAR, '[\"VARCHAR\"]'))",
        "MAP(VARCHAR, VARCHAR)": f"TRY({raw}::VARCHAR::JSON::{kind})",
    }
    return by_type.get(kind, f"TRY_CAST({raw} AS {kind})")


def _flags(reader: Reader, counts: Counts, told: Mapping[str, str], *, naive: bool) -> dict[str, str]:
    """Give each flag's condition over `checked`."""
    typed = [name for name, kind in _TYPES.items() if kind in {"DOUBLE", "INTEGER", "BOOLEAN", "DECIMAL(38,12)"}]
    success = f"{told['status']} = 'success'"
    blank = " AND ".join(f"{counts.is_unsaid(name)} AND {name} IS NULL" for name in _ESTIMATED)
    is_stream = f"coalesce({told['is_stream']}, false)"
    return {
        "coerced": is_coerced(counts),
        "bad_count": "bad_input OR bad_output OR bad_total",
        "unknown_meter": "unknown_meter",
        "cache_gt_input": "cache_gt",
        "media_gt_total": "media_gt OR (out_media_gt AND NOT reasoning_gt)",
        "cache_write_long_gt_write": "long_gt",
        "reasoning_gt_output": "reasoning_gt",
        "total_mismatch": "reading = 'mismatch' AND NOT cache_gt AND NOT reasoning_gt",
        "convention_by_total": "reading IN ('flipped', 'other_output')",
        "details_missing": is_missing_details(counts),
        "stream_without_usage": f"{success} AND {blank} AND {is_stream}",
        "usage_missing": f"{success} AND {blank} AND NOT {is_stream}",
        "usage_partial": "is_seed" + (" OR x_usage_partial" if "usage_partial" in reader.flags else ""),
        "zero_usage": f"{success} AND input_tokens = 0 AND output_tokens = 0",
        "not_billed": f"NOT {told['is_billable']}",
        "ts_missing": "ts_text IS NULL",
        "bad_ts": "ts_text IS NOT NULL AND ts IS NULL",
        **({"relative_ts": "ts IS NOT NULL"} if reader.relative else {}),
        **({"naive_ts": sql.is_naive("ts_text")} if naive else {}),
        "bad_value": either(
            f"f_{name} IS NOT NULL AND t_{name} IS NULL" for name in typed if told.get(name, _NULL) != _NULL
        ),
        "ttft_gt_duration": f"{told['ttft_ms']} > {told['duration_ms']}",
        "repaired": "repaired",
        "not_tokenised": "e_not_tokenised",
        **{flag: f"x_{flag}" for flag in reader.flags if flag != "usage_partial"},
    }


def _listed(flags: Collection[str]) -> str:
    """Write the list of a row's flags; few rows have any, so that it is made for those alone."""
    listed = ", ".join(f"CASE WHEN g_{flag} THEN '{flag}' END" for flag in flags)
    has_any = " OR ".join(f"g_{flag}" for flag in flags)
    return f"CASE WHEN {has_any} THEN list_filter([{listed}], lambda x: x IS NOT NULL) END"
