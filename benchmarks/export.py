"""The ledger as Parquet, beside a copy of the same request columns in the same order."""

from __future__ import annotations

import duckdb

import tenfold as tf
from benchmarks import data
from benchmarks.measuring import Measured, folder, in_child, side_by_side
from tenfold.export import export_table
from tenfold.export.writing import copy
from tenfold.store import schema

DATA = f"{data.DATA}; every column of the requests table but the store's own, with units and cost of six meters"


def measure(rows: int) -> list[Measured]:
    """Compare the export with a copy of the request columns.

    Args:
        rows: Requests.

    Returns:
        The lines of the table.
    """
    db, out = data.store(rows), folder() / "ledger.parquet"
    ledger = tf.attribute(tf.open_log(db), data.book())
    columns = ", ".join(column.name for column in schema.REQUESTS if column.group != "internal")

    def plain() -> None:
        with ledger.log.store.reading() as connection:
            view = f"(select {columns}, load_id from requests)"
            copy(connection, view, out, order="load_id, source_line, request_id, ts", drop="load_id")

    copied, exported = side_by_side(plain, lambda: export_table(ledger, out), times=2)
    total = duckdb.sql(f"select count(*), sum(cost_pusd) from '{out}'").fetchall()[0]
    if total != (rows, ledger.total_pusd):
        raise SystemExit(f"the exported ledger holds {total}, not {rows} requests and {ledger.total_pusd} pUSD")
    out.unlink()
    peak = in_child("benchmarks.export:alone", str(db), str(out))["peak_mb"]
    return [
        Measured("export/ledger", "the ledger as Parquet / a copy of the same request columns in the same order",
                 exported / copied, 1.35, rows=rows, seconds=exported, peak_mb=peak),
    ]  # fmt: skip


def alone(db: str, out: str) -> None:
    """Export in a process of its own."""
    export_table(tf.attribute(tf.open_log(db), data.book()), out)
