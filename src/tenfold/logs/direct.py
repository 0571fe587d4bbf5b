"""The short way: a clean slice is read, checked and projected in one pass, without a table between.

Whatever it cannot take (a bad line, a line of another kind, one that stands for several requests, text) ends the
statement, nothing of the slice stays, and the longer way reads it from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb

from tenfold.logs import batch
from tenfold.logs.base import TEXT
from tenfold.logs.normalise import DETOUR, Direct, insertion
from tenfold.logs.raw import SURPRISE, raw_parquet, raw_rows, raw_tree
from tenfold.logs.text.fields import TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold.logs.raw import Job

# A smaller slice is staged with others of its kind, so that one projection serves many.
LEAST_BYTES = 1 << 22


class LongerWayError(Exception):
    """The slice has to be read the longer way.

    Args:
        is_kind: A line's kind asks for it, so that the file's other slices will need it, too; otherwise a line is
            broken.
    """

    def __init__(self, *, is_kind: bool) -> None:
        super().__init__()
        self.is_kind = is_kind


def can_take(job: Job) -> bool:
    """Tell whether a slice may be read directly at all.

    Args:
        job: The slice.

    Returns:
        Whether it is worth trying.
    """
    is_one_to_one = not job.reader.reshape or bool(job.reader.reshape_if)
    return is_one_to_one and job.part.size >= LEAST_BYTES and (job.held.kind == "parquet" or job.is_plain)


def expected(job: Job) -> Job:
    """Expect what a file's first lines show: a key that none of them has is not looked into.

    Args:
        job: A slice.

    Returns:
        It, with what is taken to be absent.
    """
    if job.held.kind != "ndjson":
        return job
    return job._replace(absent=frozenset(raw_tree(job.reader)) - frozenset(job.held.columns))


def read(
    connection: duckdb.DuckDBPyConnection,
    job: Job,
    *,
    source_file: str,
    load_id: int,
    zone: str | None,
    constants: Mapping[str, str],
) -> int:
    """Read a slice into `batch`.

    Args:
        connection: Where `batch` is.
        job: The slice.
        source_file: The file's public name.
        load_id: Row of `loads`.
        zone: Zone that naive times mean.
        constants: Column -> value that overrides the source's.

    Returns:
        Rows added.

    Raises:
        LongerWayError: The slice has to be read the longer way; nothing was added.
    """
    connection.execute("BEGIN")
    try:
        rows = raw_parquet(connection, job) if job.held.kind == "parquet" else raw_rows(job)
        if job.reader.text:
            rows = f"SELECT *, NULL::{TYPE} AS {TEXT} FROM ({rows})"
        direct = Direct(f"({rows})", source_file, load_id, _detour(job), _absent(job))
        filled = insertion(job.reader, zone=zone, constants=constants, direct=direct)
        batch.widen(connection, filled.columns)
        added = int(connection.execute(filled.sql).fetchall()[0][0])
        _check_all(job, added)
        if not job.is_numbered:  # rows are in the file's order, and so are their numbers in the table
            fresh = f"load_id = {load_id} AND source_line IS NULL"
            first = f"{1 + job.head_lines + job.part.shift} - (SELECT min(rowid) FROM batch WHERE {fresh})"
            connection.execute(f"UPDATE batch SET source_line = rowid + {first} WHERE {fresh}")
        connection.execute("COMMIT")
    except (duckdb.Error, UnicodeDecodeError) as error:
        connection.execute("ROLLBACK")
        raise LongerWayError(is_kind=DETOUR in str(error)) from error
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    return added


def _absent(job: Job) -> frozenset[str]:
    """List the reader's columns that the slice does not have, in lower case as tables may spell them."""
    names = {name.lower() for name in (job.absent if job.held.kind == "ndjson" else raw_tree(job.reader))}
    return frozenset(names - (set() if job.held.kind == "ndjson" else {name.lower() for name in job.held.columns}))


def _check_all(job: Job, added: int) -> None:
    """See that no line was passed over, as the engine does with blank ones: numbers would be wrong."""
    if job.held.kind != "parquet" and added != job.part.lines - job.head_lines:
        raise LongerWayError(is_kind=False)


def _detour(job: Job) -> str:
    """Write the condition that a line needs the longer way."""
    reader = job.reader
    conditions = [
        f"NOT ({reader.detect.is_record_sql(table=job.held.kind != 'ndjson')})",
        *reader.beside,
        *([reader.reshape_if] if reader.reshape_if else []),
        *(f"len({child.each}) > 0" for child in reader.children),
    ]
    if reader.text:
        conditions += [f"({reader.text.prompt}) IS NOT NULL", f"({reader.text.response}) IS NOT NULL"]
    if job.absent:
        conditions.append(f"r.{SURPRISE}")
    return " OR ".join(f"coalesce({condition}, false)" for condition in conditions)
