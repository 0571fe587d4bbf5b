"""A user's own partitioned Parquet as the table `requests` on Spark: checked, cast, and in tenfold's words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from tenfold.errors import StoreError, near
from tenfold.logs import sql
from tenfold.prices.words import canonical_provider, canonical_tier
from tenfold.store import schema
from tenfold.store.cells import CACHED_MEDIA, MEDIA
from tenfold.store.engines import PREFIX_BLOCKS
from tenfold.store.engines.spark import SparkEngine, SparkSession, said, spark_errors

# Files that bear tenfold's names, as the loader calls them.
FORMAT = "tenfold"
_MADE = {"source_format", "source_file", "source_line", "flags"} | {
    column.name for column in schema.REQUESTS if column.group == "internal"
}
_TAKEN = {column.name: column for column in schema.REQUESTS if column.name not in _MADE}
_NEEDED = ("input_tokens", "output_tokens", "ts")
_KEYS = ("provider", "model", "service_tier", "region")
_WORDS = {"status": sql.STATUS_WORDS, "finish_reason": sql.FINISH_WORDS}
_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FRACTIONS = ("float", "double", "decimal")
# Which types of a file a column may have: the beginnings of Spark's names for them.
_ALLOWED = {
    "VARCHAR": ("string", "varchar", "char", *_INTEGERS),
    "BIGINT": (*_INTEGERS, *_FRACTIONS),
    "INTEGER": (*_INTEGERS, *_FRACTIONS),
    "DOUBLE": (*_INTEGERS, *_FRACTIONS),
    "DECIMAL(38,12)": (*_INTEGERS, *_FRACTIONS),
    "BOOLEAN": ("boolean",),
    "TIMESTAMP": ("timestamp",),
    "VARCHAR[]": tuple(f"array<{kind}" for kind in ("string", *_INTEGERS)),
    "MAP(VARCHAR, VARCHAR)": ("map<string,",),
}
_CASTS = {
    "VARCHAR": "string",
    "TIMESTAMP": "timestamp_ntz",
    "VARCHAR[]": "array<string>",
    "MAP(VARCHAR, VARCHAR)": "map<string,string>",
    "INTEGER": "int",
}
_LARGEST = {"BIGINT": 2**63 - 1, "INTEGER": 2**31 - 1}
# More kinds of (provider, model, tier, region) than any log has: one of those columns holds something else.
_MOST_KINDS = 100_000
# Rows of a file, at most: a file's number stands above them in rid.
_ROWS_OF_A_FILE = 2**40


class Found(NamedTuple):
    """What one look at the files told.

    Args:
        columns: Spark's schema of them all.
        types: Column of ``requests`` to its type in the files.
        files: Their URLs, in order: a request is known by its file's place here and its row there.
        kinds: What the files say of provider, model, tier, region (``said_...``), with price key and tenfold's words.
        requests: Rows.
        hash: Hash of the files' names, sizes and times.
    """

    columns: Any
    types: Mapping[str, str]
    files: tuple[str, ...]
    kinds: pl.DataFrame
    requests: int
    hash: str


def look(session: SparkSession, place: str) -> Found:
    """Check files before anything is asked of them: two passes, over few columns each.

    Args:
        session: A session of tenfold's own.
        place: Folder, file or pattern.

    Returns:
        What was found.

    Raises:
        StoreError: No such path, no request, columns missing or of a wrong type, or impossible counts.
    """
    frame = _read(session, place)
    types = _types(place, frame.schema)
    engine = SparkEngine(session)
    engine.view("own_raw", frame)
    tests = _tests(types)
    try:
        found = engine.fetch(
            f"select {', '.join(f'{_said(name, types)} as said_{name}' for name in _KEYS)}, count(*) as requests"
            + "".join(f", sum(case when {test} then 1 else 0 end) as t{n}" for n, test in enumerate(tests.values()))
            + f" from own_raw group by all limit {_MOST_KINDS + 1}"
        )
    finally:
        engine.close()
    if found.is_empty():
        raise StoreError(f"{place}: no request in it")
    if len(found) > _MOST_KINDS:
        raise StoreError(
            f"{place}: more than {_MOST_KINDS:,} kinds of {', '.join(_KEYS)}: does one of these columns hold ids?"
        )
    _refuse_impossible(place, {what: int(found[f"t{n}"].sum()) for n, what in enumerate(tests)})
    files = tuple(sorted(frame.inputFiles()))
    return Found(
        frame.schema,
        types,
        files,
        _kinds(found.select(f"said_{name}" for name in _KEYS)),
        int(found["requests"].sum()),
        _hash(session, place),
    )


def _hash(session: SparkSession, place: str) -> str:
    """Hash names, sizes and times of the files."""
    listed = session.read.format("binaryFile").load(place).select("path", "length", "modificationTime")
    return hashlib.sha256("\n".join(sorted(str(tuple(row)) for row in listed.collect())).encode()).hexdigest()


def lay(engine: SparkEngine, place: str, found: Found) -> None:
    """Make the tables of a store from the files, as views.

    Args:
        engine: An engine with a session of its own.
        place: Folder, file or pattern.
        found: What a look told.

    Raises:
        StoreError: The files are others by now.
    """
    frame = _read(engine.session, place, found.columns)
    if tuple(sorted(frame.inputFiles())) != found.files or _hash(engine.session, place) != found.hash:
        raise StoreError(f"{place}: files came, went or changed since this log was opened. Open it again")
    engine.view(
        "own_raw",
        frame.selectExpr("*", "_metadata.file_path as own_file", "_metadata.row_index as own_row"),
    )
    engine.register("own_kinds", found.kinds)
    numbers = (
        pl.DataFrame({"path": [_as_column(file) for file in found.files]})
        .with_row_index("number")
        .cast({"number": pl.Int64})
    )
    engine.register("own_files", numbers)
    engine.register("price_keys", found.kinds.unique("price_key").select("price_key", *_KEYS).sort("price_key"))
    columns = ",\n  ".join(f"{text} as {name}" for name, text in _columns(found.types).items())
    alike = " and ".join(f"{_said(name, found.types, 'r.')} = k.said_{name}" for name in _KEYS)
    # without rid and load_id, which take another join
    engine.step(
        "own_requests",
        f"select\n  {columns},\n  own_file, own_row\nfrom own_raw as r\nleft join own_kinds as k on {alike}",
    )
    # a file is a load: its number and the row there tell requests apart
    load = f"cast({_known('f.number', 'bigint')} + 1 as int) as load_id"
    names = ", ".join(load if name == "load_id" else f"r.{name}" for name in schema.names("requests"))
    rid = f"{_known('f.number', 'bigint')} * {_ROWS_OF_A_FILE} + r.own_row as rid"
    engine.step(
        "requests", f"select {rid}, {names} from own_requests as r left join own_files as f on r.own_file = f.path"
    )
    engine.step(
        PREFIX_BLOCKS,
        "select rid, cast(place + 1 as int) as block_no, hash from requests "
        "lateral view posexplode(prefix_hashes) as place, hash",
    )


def _as_column(url: str) -> str:
    """Write a file's URL as Spark's column of it does: ``file:/...``, where its list says ``file:///...``."""
    scheme, colon, rest = url.partition(":")
    return f"{scheme}:/{rest.removeprefix('///')}" if colon and rest.startswith("///") else url


def _known(number: str, kind: str) -> str:
    """Write a number that the look at the files gave; a row that it did not see is an error, not lost."""
    return f"coalesce({number}, cast(raise_error('tenfold: the files have changed. Open the log again') as {kind}))"


def _read(session: SparkSession, place: str, columns: object = None) -> Any:  # noqa: ANN401 -- a Spark frame
    reader = session.read.option("mergeSchema", "true") if columns is None else session.read.schema(columns)
    try:
        return reader.parquet(place)
    except spark_errors() as error:
        reason = " ".join(said(error).split())
        if "PATH_NOT_FOUND" in reason:
            raise StoreError(f"{place}: no such path. Name a folder of Parquet files, or a pattern") from error
        if "UNABLE_TO_INFER_SCHEMA" in reason:
            raise StoreError(f"{place}: no Parquet file in it") from error
        if "MERGE" in reason:
            raise StoreError(f"{place}: a column has one type in one file and another elsewhere: {reason}") from error
        raise StoreError(f"{place}: {reason}") from error


def _types(place: str, columns: Any) -> dict[str, str]:  # noqa: ANN401 -- a Spark schema
    """Tell which columns of ``requests`` the files have, and of which type; refuse what cannot be meant."""
    there = {field.name.lower(): field.dataType.simpleString() for field in columns.fields}
    for name in there:
        if name.endswith("_tokens") and name not in _TAKEN and name not in _MADE:
            raise StoreError(
                f'{place}: column "{name}" is none of tenfold\'s.{near(name, _TAKEN)} Rename it: a count that is left '
                "out would misprice every request"
            )
    types = {name: kind for name, kind in there.items() if name in _TAKEN}
    if sum(name in types for name in _NEEDED) < 2:
        absent = [name for name in _NEEDED if name not in types]
        close = "".join(near(name, there) for name in absent)
        raise StoreError(
            f"{place}: no column {' or '.join(absent)}.{close} Found: {', '.join(there)}. Columns bear the names of "
            "`requests` (README): rename them, or load the files with a map: tenfold load PATH --map FILE"
        )
    wrong = [
        f"{name} is {kind}, not {_TAKEN[name].type}"
        for name, kind in types.items()
        if not kind.startswith(_ALLOWED[_TAKEN[name].type])
    ]
    if wrong:
        raise StoreError(f"{place}: {'; '.join(wrong)}. Cast in the pipeline that writes the files")
    return types


def _said(name: str, types: Mapping[str, str], of: str = "") -> str:
    return f"coalesce(cast({of}{name} as string), '')" if name in types else "''"


def _is_fraction(kind: str) -> bool:
    return kind.startswith(_FRACTIONS)


def _tests(types: Mapping[str, str]) -> dict[str, str]:
    """Write what a count cannot be: in words, and as SQL over the files' own columns."""
    tests: dict[str, str] = {}
    for name, kind in types.items():
        if _TAKEN[name].type in _LARGEST:
            tests[f"{name} below zero"] = f"{name} < 0"
            if _is_fraction(kind):
                tests[f"{name} not a whole number"] = f"{name} is not null and not {_is_whole(name)}"
    there = {name for name in types if name in schema.TOKEN_COLUMNS}
    for parts, whole in _subsets():
        held = [part for part in parts if part in there]
        if held and whole in there:
            said = " + ".join(held)
            # as decimals, so that what is too large for a count is told and not an overflow
            added = " + ".join(f"coalesce({_double(part, types)}, 0)" for part in held)
            tests[f"{said} above {whole}"] = f"{added} > {_double(whole, types)}"
    return tests


def _double(name: str, types: Mapping[str, str]) -> str:
    return name if _is_fraction(types[name]) else f"cast({name} as decimal(19, 0))"


def _subsets() -> Iterable[tuple[tuple[str, ...], str]]:
    """List what is part of what: the parts of one line together are at most the whole."""
    yield ("cache_read_tokens", "cache_write_tokens"), "input_tokens"
    yield ("cache_write_long_tokens",), "cache_write_tokens"
    yield tuple(f"input_{kind}_tokens" for kind in MEDIA), "input_tokens"
    yield CACHED_MEDIA, "cache_read_tokens"
    for kind, cached in zip(MEDIA, CACHED_MEDIA, strict=True):
        yield (cached,), f"input_{kind}_tokens"
    yield ("reasoning_tokens", *(f"output_{kind}_tokens" for kind in MEDIA)), "output_tokens"


def _refuse_impossible(place: str, counted: Mapping[str, int]) -> None:
    found = [f"{what} ({rows:,} {'row' if rows == 1 else 'rows'})" for what, rows in counted.items() if rows]
    if found:
        raise StoreError(
            f"{place}: counts that cannot be: {'; '.join(found)}. Mend them where the files are written, or load the "
            "files, which sets such counts apart by line: tenfold load PATH --db FILE"
        )


def _kinds(said: pl.DataFrame) -> pl.DataFrame:
    """Number the kinds of requests as a load does: in order of tenfold's own words."""
    rows = [
        (*row, canonical_provider(row[0]), row[1], canonical_tier(row[2]), row[3])
        for row in said.select(f"said_{name}" for name in _KEYS).rows()
    ]
    numbers = {key: number for number, key in enumerate(sorted({row[4:] for row in rows}), 1)}
    names = [*(f"said_{name}" for name in _KEYS), *_KEYS]
    made = [(*row, numbers[row[4:]]) for row in sorted(rows)]
    return pl.DataFrame(made, schema={**dict.fromkeys(names, pl.String), "price_key": pl.Int32}, orient="row")


def _is_whole(name: str) -> str:
    """Write whether a fractional type holds a whole number that a count can be; false for infinity and NaN."""
    return f"(abs({name}) < {2**53} and {name} = floor({name}))"


def _columns(types: Mapping[str, str]) -> dict[str, str]:
    """Write the columns of ``requests`` over the raw rows ``r`` and their kinds ``k``."""
    made: dict[str, str] = {}
    for column in schema.REQUESTS:
        name, kind = column.name, types.get(column.name)
        wanted = _CASTS.get(column.type, column.type.lower())
        made[name] = f"cast(null as {wanted})" if kind is None else _given(column, kind, wanted)
    any_count = " or ".join(f"r.{name} is not null" for name in types if name in schema.TOKEN_COLUMNS) or "false"
    said_source = f"{made['token_source']}, " if "token_source" in types else ""
    odd = " or ".join(f"{_is_odd(name)}" for name in types if _TAKEN[name].type == "DOUBLE") or "false"
    said_tier = _said("service_tier", types, "r.")
    return made | {
        "provider": "nullif(k.provider, '')",
        "service_tier": f"case when trim({said_tier}) <> '' then k.service_tier end",
        "token_source": f"coalesce({said_source}case when {any_count} then 'reported' end)",
        "source_format": f"'{FORMAT}'",
        "source_file": "r.own_file",
        "source_line": "r.own_row + 1",
        "flags": f"case when {odd} then array('bad_value') end",
        "id_hash": "cast(null as decimal(20, 0))",
        "price_key": _known("k.price_key", "int"),
        "team_logged": made["team"],
        "feature_logged": made["feature"],
    }


def _given(column: schema.Column, kind: str, wanted: str) -> str:
    name = f"r.{column.name}"
    by_type: dict[str, Callable[[], str]] = {
        "VARCHAR": lambda: f"nullif(cast({name} as string), '')",
        # infinity, NaN and what is below zero are no values, as for the loader
        "DOUBLE": lambda: f"case when not {_is_odd(column.name)} then cast({name} as double) end",
        "DECIMAL(38,12)": lambda: f"try_cast({name} as decimal(38, 12))",
    }
    if column.name in _WORDS:
        return sql.words(f"cast({name} as string)", _WORDS[column.name])
    if column.type in _LARGEST and _is_fraction(kind):
        return f"case when {_is_whole(name)} then cast({name} as {wanted}) end"
    return by_type.get(column.type, lambda: f"cast({name} as {wanted})")()


def _is_odd(name: str) -> str:
    return f"(r.{name} is not null and not (r.{name} >= 0 and r.{name} < cast('infinity' as double)))"
