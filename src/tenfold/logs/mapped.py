"""Tables with their own column names, read through a map file, and files that already bear tenfold's names.

A map file::

    convention = "inclusive"      # or "exclusive": the input column leaves cached tokens out
    zone = "Europe/Berlin"        # of times without an offset

    [columns]                     # tenfold's column = the file's column, or dotted JSON path
    ts = "TIMESTAMP"
    input_tokens = "ContextTokens"
    total_tokens = "Total"        # optional: proves the convention

    prompt = "Question"           # optional, as `response` and `params`: text to hash, and to count where no count is

    [units]                       # optional: of duration_ms, ttft_ms and queue_ms, where the file's are no milliseconds
    duration_ms = "s"

    [constants]                   # the same for every row
    provider = "azure"

Rows without an id cannot be recognised: where an export has grown, or two overlap, rows that were loaded before are
counted again and flagged ``dup_suspect``. Name the columns that make a row one request, and such rows are known::

    dedup_key = ["ts", "user_id", "input_tokens", "output_tokens"]     # among [columns]; stands before it in the file
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tenfold import config
from tenfold.errors import AssumptionError, LogFormatError, near
from tenfold.logs import sql
from tenfold.logs.base import Detect, Reader, Text, member, steps
from tenfold.logs.constants import constant
from tenfold.logs.detect import shown
from tenfold.logs.text import forms
from tenfold.store import schema
from tenfold.store.database import quoted
from tenfold.usage.shape import UsageShape
from tenfold.usage.shapes import TENFOLD

if TYPE_CHECKING:
    from tenfold.logs.detect import Content

_INTERNAL = {"source_format", "source_file", "source_line", "flags"} | {
    column.name for column in schema.REQUESTS if column.group == "internal"
}
COLUMNS = tuple(column.name for column in schema.REQUESTS if column.name not in _INTERNAL)
_PLAIN = tuple(name for name in COLUMNS if name not in schema.TOKEN_COLUMNS and name != "ts")
_NESTED = {"tags", "prefix_hashes"}
_KEYS = ("name", "convention", "zone", "dedup_key", "columns", "units", "constants")
_TIMES = ("duration_ms", "ttft_ms", "queue_ms")
# Unit of a time in the file -> SQL that makes milliseconds of it.
_UNITS = {"s": "* 1000", "ms": "", "us": "/ 1000", "ns": "/ 1000000"}
_CONVENTIONS = ("inclusive", "exclusive")
_CACHE = ("cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens")
_TOTAL = "total_tokens"
# Columns of text that are counted and hashed, not stored.
_TEXTS = ("prompt", "params", "response")


def _key_sql(provider: str, request: str, attempt: str) -> str:
    number = f"TRY_CAST({attempt} AS INTEGER)"
    tried = f"CASE WHEN {number} > 0 THEN '#' || {number} ELSE '' END"
    return f"'rows|' || {_biller(provider)} || '|' || {sql.key_part(sql.named(request))} || {tried}"


def _biller(provider: str) -> str:
    return f"coalesce({sql.key_part(f'lower(trim({provider}))')}, '')"


def _leaf(name: str) -> str:
    return "JSON" if name in schema.TOKEN_COLUMNS or name in _NESTED or name == "ts" else "VARCHAR"


# A call that failed has no count, but it has an outcome or a model, and a time or an id.
RECORDS = (
    *((name,) for name in schema.TOKEN_COLUMNS),
    *((of, what) for of in ("ts", "request_id") for what in ("model", "model_requested", "status", "http_status")),
)


TENFOLD_ROWS = Reader(
    name="tenfold",
    kinds=("ndjson", "csv", "parquet"),
    one_request="provider, request_id and attempt",
    shape=TENFOLD,
    usage="r",
    leaves={name: _leaf(name) for name in COLUMNS},
    fields={name: f'r."{name}"' for name in _PLAIN},
    ts=sql.text("r.ts"),
    dedup_key=_key_sql("r.provider", "r.request_id", "r.attempt"),
    detect=Detect(
        keys=(("input_tokens", "output_tokens"), ("input_tokens", "ts"), ("output_tokens", "ts")),
        records=RECORDS,
        absent=("usage", "spend", "cache_read_input_tokens", "cache_creation_input_tokens", "prompt_tokens"),
    ),
    text=Text(
        leaves=dict.fromkeys(_TEXTS, "JSON"),
        prompt=forms.filled("r.prompt"),
        params=forms.filled("r.params"),
        response=forms.filled("r.response"),
    ),
)


def check_columns(file: Path, held: Content) -> None:
    """Refuse a count column that is almost one of tenfold's: leaving it out would misprice every row.

    Args:
        file: The file.
        held: Its content.

    Raises:
        LogFormatError: Names the column and the nearest known one.
    """
    for name in held.columns:
        # What one line among many says alone is a damaged key: its count is unknown there, and no reason to stop.
        is_damage = len(held.records) > 1 and sum(name in record for record in held.records) == 1
        if name.endswith("_tokens") and name not in (*COLUMNS, _TOTAL) and not is_damage:
            raise LogFormatError(
                f'{file}: column "{name}" is none of tenfold\'s.{near(name, COLUMNS)} '
                "Rename it, or say what it means with --map FILE"
            )


@dataclass(frozen=True, slots=True)
class MapFile:
    """A checked map.

    Args:
        where: The map file, for messages.
        text: Its content, canonical.
        columns: Column -> the file's column or path.
        units: Column of time -> its unit in the file, where that is not milliseconds.
        constants: Column -> value.
        convention: Whether the input column includes cached tokens.
        zone: Zone of naive times.
        dedup_key: Columns that make a row one request; None: request_id where mapped.
    """

    where: str
    text: str
    columns: Mapping[str, str]
    units: Mapping[str, str]
    constants: Mapping[str, str]
    convention: str
    zone: str | None
    dedup_key: tuple[str, ...] | None

    def reader(self, file: Path, held: Content) -> Reader:
        """Make the reader of a file.

        Args:
            file: The file.
            held: Its content.

        Returns:
            The reader.

        Raises:
            LogFormatError: A mapped column is not in the file; names the nearest.
        """
        flat = held.kind != "ndjson"
        paths = {name: source.replace(".", "\\.") if flat else source for name, source in self.columns.items()}
        there = {name.lower() for name in held.columns}
        for name, path in paths.items():
            first = steps(path)[0].removesuffix("[]")
            if first.lower() not in there and (flat or name in {*schema.TOKEN_COLUMNS, "ts"}):
                raise LogFormatError(
                    f'{file}: no column "{first}", which {self.where} maps to {name}.{near(first, held.columns)} '
                    f"Found: {shown(held)}"
                )
        shape = UsageShape(
            name="mapped",
            counts={name: (paths[name],) for name in schema.TOKEN_COLUMNS if name in paths},
            marks=(),
            total=(paths[_TOTAL],) if _TOTAL in paths else (),
            includes_cache=self.convention == "inclusive",
        )
        texts = {name: sql.text(member("r", path)) for name, path in paths.items()}
        raw = {name: f"({member('r', path)})::VARCHAR" for name, path in paths.items()}
        said = {name: forms.filled(raw.get(name, "NULL")) for name in _TEXTS}
        fields = {name: raw[name] if name in _NESTED else texts[name] for name in _PLAIN if name in paths}
        fields.update({name: _milliseconds(fields[name], unit) for name, unit in self.units.items()})
        fields.update({name: quoted(value) for name, value in self.constants.items()})
        return Reader(
            name="mapped",
            kinds=("ndjson", "csv", "parquet"),
            shape=shape,
            usage="r",
            leaves=dict.fromkeys(paths.values(), "JSON"),
            fields=fields,
            ts=texts.get("ts", "NULL"),
            dedup_key=self._key(texts, fields),
            detect=Detect(records=_mapped_records(paths)),
            zone=self.zone,
            # A row may be known by its text alone, so that it is read in any case.
            text=Text({}, said["prompt"], said["params"], said["response"]),
        )

    def _key(self, texts: Mapping[str, str], fields: Mapping[str, str]) -> str:
        provider = fields.get("provider", "NULL")
        if self.dedup_key is None:
            if "request_id" not in texts:
                return "NULL"
            return _key_sql(provider, texts["request_id"], fields.get("attempt", "NULL"))
        key = ", ".join(f"nullif({texts[name]}, '')" for name in self.dedup_key)
        whole = f"'columns|' || {_biller(provider)} || '|' || to_json([{key}])::VARCHAR"
        return f"CASE WHEN coalesce({key}) IS NOT NULL THEN {whole} END"


def _mapped_records(paths: Mapping[str, str]) -> tuple[tuple[str, ...], ...]:
    told = (*RECORDS, *(("ts", text) for text in ("prompt", "response")))
    sets = [tuple(paths[name] for name in keys) for keys in told if all(name in paths for name in keys)]
    return (*sets, (paths[_TOTAL],)) if _TOTAL in paths else tuple(sets)


def read_map(given: str | Path | Mapping[str, object]) -> MapFile:
    """Read and check a map.

    Args:
        given: The map file, or its content.

    Returns:
        The map.

    Raises:
        LogFormatError: It is missing, is not valid TOML, or says something unknown; names file, key and near match.
    """
    if isinstance(given, Mapping):
        where, content = "the map", dict(given)
    else:
        where = str(given)
        try:
            content = cast("dict[str, object]", tomllib.loads(Path(given).read_text(encoding="utf-8")))
        except OSError as error:
            raise LogFormatError(f"{where}: cannot read the map file: {error.strerror}") from error
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise LogFormatError(f"{where}: not valid TOML: {error}") from error
    for key in content:
        if key not in _KEYS:
            raise LogFormatError(f'{where}: unknown key "{key}".{near(key, _KEYS)} Known: {", ".join(_KEYS)}')
    columns = _table(where, content, "columns")
    constants = _table(where, content, "constants")
    for key in (*columns, *constants):
        if key not in (*COLUMNS, _TOTAL, *(_TEXTS if key in columns else ())):
            raise LogFormatError(f'{where}: unknown column "{key}".{near(key, COLUMNS)}')
    if not {"input_tokens", "output_tokens", "prompt", "response"} & columns.keys():
        raise LogFormatError(
            f"{where}: [columns] maps neither input_tokens nor output_tokens (nor text to count: prompt, response)"
        )
    counted = [name for name in (*schema.TOKEN_COLUMNS, _TOTAL, "ts") if name in constants]
    if counted:
        raise LogFormatError(
            f"{where}: [constants] {counted[0]}: counts and times come from the file; map it in [columns]"
        )
    constants = {name: constant(f"{where}: [constants]", name, value) for name, value in constants.items()}
    return MapFile(
        where,
        json.dumps(content, sort_keys=True, default=str),
        columns,
        _units(where, content, columns),
        constants,
        _convention(where, content, columns),
        _zone(where, content),
        _dedup(where, content, columns),
    )


def _table(where: str, content: Mapping[str, object], key: str) -> dict[str, str]:
    value = content.get(key, {})
    if not isinstance(value, Mapping):
        raise LogFormatError(f"{where}: [{key}] must be a table of column = value")
    found: dict[str, str] = {}
    for name, held in cast("Mapping[str, object]", value).items():
        if isinstance(held, bool):
            found[name] = str(held).lower()
        elif isinstance(held, (str, int, float)) and str(held):
            found[name] = str(held)
        else:
            raise LogFormatError(f"{where}: [{key}] {name}: expected text, found {held!r}")
    return found


def _convention(where: str, content: Mapping[str, object], columns: Mapping[str, str]) -> str:
    said = content.get("convention")
    if said is None:
        if "input_tokens" in columns and any(name in columns for name in _CACHE):
            raise LogFormatError(
                f'{where}: say whether {columns["input_tokens"]} counts cached tokens too: convention = "inclusive", '
                'or "exclusive" where it leaves them out (a wrong guess is a twofold error)'
            )
        return "inclusive"
    if said not in _CONVENTIONS:
        raise LogFormatError(f'{where}: convention = {said!r}: one of "inclusive", "exclusive"')
    return str(said)


def _units(where: str, content: Mapping[str, object], columns: Mapping[str, str]) -> dict[str, str]:
    units = _table(where, content, "units")
    for name, unit in units.items():
        if name not in _TIMES or name not in columns:
            known = [time for time in _TIMES if time in columns]
            raise LogFormatError(
                f'{where}: [units] "{name}" is no column of time that [columns] maps.{near(name, known)} '
                f"Units are for {', '.join(_TIMES)}"
            )
        if unit not in _UNITS:
            raise LogFormatError(f'{where}: [units] {name} = "{unit}": one of {", ".join(_UNITS)}')
    return units


def _milliseconds(said: str, unit: str) -> str:
    """Write a time in milliseconds as SQL text; what is no number stays as it was said, to be flagged."""
    return f"coalesce((TRY_CAST({said} AS DOUBLE) {_UNITS[unit]})::VARCHAR, {said})"


def _zone(where: str, content: Mapping[str, object]) -> str | None:
    name = content.get("zone")
    if name is None:
        return None
    try:
        config.zone(str(name), where=f"{where}: zone")
    except AssumptionError as error:
        raise LogFormatError(str(error)) from error
    return str(name)


def _dedup(where: str, content: Mapping[str, object], columns: Mapping[str, str]) -> tuple[str, ...] | None:
    given = content.get("dedup_key")
    if given is None:
        return None
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not names:
        raise LogFormatError(f"{where}: dedup_key must be a list of columns")
    found = tuple(str(name) for name in cast("list[object]", names))
    for name in found:
        if name not in columns:
            raise LogFormatError(
                f'{where}: dedup_key names "{name}", which [columns] does not map.{near(name, columns)}'
            )
    return found
