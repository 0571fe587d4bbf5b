"""Tables from the store to files: CSV that no spreadsheet runs, and Parquet, both streamed by the engine."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import duckdb

from tenfold.display import FORMULA
from tenfold.errors import AssumptionError, StepError
from tenfold.files import in_place
from tenfold.store.database import quoted

# A zero byte ends a text for many a reader; it is shown as its picture.
_ZERO = "replace({0}, chr(0), chr(9216))"
_SAFE = f"case when regexp_matches({{0}}, {quoted('^' + FORMULA.pattern)}) then '''' || {{0}} else {{0}} end"
# Exact, without zeros that say nothing, and with a point, by which readers tell a decimal.
_DECIMAL = r"regexp_replace(cast({0} as varchar), '(\.\d+?)0+$', '\1')"
_TIME = "strftime({0}, '%Y-%m-%dT%H:%M:%S') || {1} || 'Z'"
_FRACTION = "case when microsecond({0}) % 1000000 = 0 then '' else strftime({0}, '.%f') end"


def kind_of(out: Path) -> str:
    """Tell by its name what a file is to be.

    Args:
        out: The file.

    Returns:
        ``csv``, ``csv.gz``, ``parquet`` or ``xlsx``.

    Raises:
        AssumptionError: It is something else.
    """
    name = out.name.lower()
    for ending in ("csv", "csv.gz", "parquet", "xlsx"):
        if name.endswith(f".{ending}"):
            return ending
    raise AssumptionError(f"{out}: name it .csv, .csv.gz, .parquet or .xlsx: that says what to write")


def copy(connection: duckdb.DuckDBPyConnection, select: str, out: Path, *, order: str = "", drop: str = "") -> None:
    """Write a query's rows to a CSV or Parquet file, in bounded memory; the same rows give the same bytes.

    Args:
        connection: The store.
        select: The rows: a view's name, or a SELECT in brackets.
        out: The file; its name says what it is.
        order: Columns to order by.
        drop: A column to leave out, such as one that only orders.

    Raises:
        AssumptionError: The name says neither, or there is no such folder.
        StepError: The engine refused it.
    """
    kind = kind_of(out)
    columns = connection.execute(f"DESCRIBE SELECT * FROM {select}").fetchall()
    kept = [(str(name), str(held)) for name, held, *_ in columns if name != drop]
    listed = ", ".join(_as_text(name, held) if kind != "parquet" else f'"{name}"' for name, held in kept)
    how = {"csv": "FORMAT csv, HEADER", "csv.gz": "FORMAT csv, HEADER, COMPRESSION gzip"}
    ordered = f" ORDER BY {order}" if order else ""
    with in_place(out) as part:
        options = how.get(kind, "FORMAT parquet, COMPRESSION zstd")
        sql = f"COPY (SELECT {listed} FROM {select}{ordered}) TO {quoted(str(part))} ({options})"
        try:
            connection.execute(sql)
        except duckdb.Error as error:
            raise StepError(f"export to {out}", sql, str(error).replace(str(part), str(out))) from error


def _as_text(name: str, held: str) -> str:
    """Write a column for CSV: texts harmless, decimals exact, times in UTC, maps and lists as JSON."""
    column = f'"{name}"'
    if held.startswith(("MAP", "STRUCT")) or held.endswith("[]"):
        text = f"cast(to_json({column}) as varchar)"
    elif held == "VARCHAR":
        zeroless = _ZERO.format(column)
        text = _SAFE.format(zeroless)
    elif held.startswith("DECIMAL") and not held.endswith(",0)"):
        text = _DECIMAL.format(column)
    elif held.startswith("TIMESTAMP"):
        text = _TIME.format(column, _FRACTION.format(column))
    else:
        return column
    return f"{text} AS {column}"


def listed(names: Iterable[str]) -> str:
    """Write column names for SQL.

    Args:
        names: The names.

    Returns:
        The names in double quotes, between commas.
    """
    return ", ".join(f'"{name}"' for name in names)
