"""Parquet in and out, with Polars and Arrow: every picodollar stays an integer on the way.

    python frames.py requests.parquet --out priced            your own file, as it is, with its prices beside
    python frames.py --db usage.duckdb --out ledger           a loaded log, request by request and by day

Polars is part of tenfold; pyarrow is not needed: what speaks Arrow's C stream (a pyarrow Table, a DuckDB relation, a
DataFusion or pandas frame) goes into `tf.price_many` as it is, and every Polars frame goes out the same way.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

import tenfold as tf


def price_frame(frame: Any) -> pl.DataFrame:  # noqa: ANN401 -- whatever has columns
    """Price a frame: Polars, lazy or not, an Arrow table, a relation.

    Args:
        frame: One row a request, with the columns ``provider, model, ts, input_tokens, output_tokens`` and what other
            columns of tenfold's `requests` it has (``tenfold formats --columns`` lists them).

    Returns:
        The same rows with ``price_status`` and ``cost_pusd`` (Int64, null where there is no price).
    """
    return tf.price_many(frame, meters=True)


def price_parquet(file: Path, out: Path, rows: int = 1_000_000) -> pl.DataFrame:
    """Price a Parquet file of any size, some rows at a time.

    Args:
        file: Your requests.
        out: Folder of Parquet files to write; all of them together are the file.
        rows: Rows to price at once (some 500 bytes of memory each).

    Returns:
        By status and provider: requests and their cost, as Decimal(38, 0) of picodollars.
    """
    out.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(parts(file, rows)):
        # the meters of one part may be others than those of the next, so only what all parts have is written
        tf.price_many(part).write_parquet(out / f"part-{number:05}.parquet")
    return (
        pl.scan_parquet(out / "part-*.parquet")
        .group_by("price_status", "provider")
        .agg(pl.len().alias("requests"), total(pl.col("cost_pusd")))
        .sort("price_status", "provider")
        .collect()
    )


def parts(file: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Read a Parquet file some rows at a time."""
    found = pl.scan_parquet(file)
    count = int(found.select(pl.len()).collect().item())
    for start in range(0, count, rows):
        yield found.slice(start, rows).collect()


def total(pusd: pl.Expr) -> pl.Expr:
    """Sum picodollars exactly: an Int64 holds nine million dollars, a Decimal(38, 0) any sum, a float none."""
    return pusd.cast(pl.Decimal(38, 0)).sum()


def write_ledger(db: Path, out: Path) -> int:
    """Write a log's ledger, request by request and by day, team and model.

    Args:
        db: A database of `tenfold load`, or a published folder.
        out: Folder for ``ledger.parquet`` (whole picodollars) and ``daily.parquet`` (decimal USD, exact).

    Returns:
        The total in picodollars.
    """
    out.mkdir(parents=True, exist_ok=True)
    log = tf.open_log(db)
    with log.steady():  # both files of one state of the log
        ledger = tf.attribute(log)
        tf.export_table(ledger, out / "ledger.parquet")
        tf.export_table(ledger, out / "daily.parquet", by=["day", "team", "model"])
        return ledger.total_pusd


def read_ledger(out: Path) -> pl.DataFrame:
    """Read the ledger back and sum it by team and model; the sums are those of the ledger, to the picodollar."""
    return (
        pl.scan_parquet(out / "ledger.parquet")
        .filter(pl.col("price_status").is_in(["priced", "known_zero"]))
        .filter(pl.col("is_billable").fill_null(True) & ~pl.col("gateway_cache_hit").fill_null(False))
        .group_by("team", "model")
        .agg(pl.len().alias("requests"), total(pl.col("cost_pusd")))
        .sort("cost_pusd", "team", "model", descending=[True, False, False], nulls_last=True)
        .collect()
    )


def to_usd(pusd: pl.Expr) -> pl.Expr:
    """Write picodollars as decimal USD for people, exactly: 12 decimals, no float on the way."""
    return (pusd.cast(pl.Decimal(38, 12)) * pl.lit("0.000000000001").cast(pl.Decimal(13, 12))).cast(pl.Decimal(38, 12))


def main() -> None:
    """Price a file, or write a ledger, and show the sums."""
    parser = argparse.ArgumentParser(description="Parquet in and out.")
    parser.add_argument("file", nargs="?", type=Path, help="a Parquet file of requests to price")
    parser.add_argument("--db", type=Path, help="a loaded log, whose ledger to write instead")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    given = parser.parse_args()
    if (given.file is None) == (given.db is None):
        parser.error("name a Parquet file, or --db")
    try:
        if given.db:
            write_ledger(given.db, given.out)
            sums = read_ledger(given.out)
        else:
            sums = price_parquet(given.file, given.out)
    except (tf.TenfoldError, pl.exceptions.PolarsError, OSError) as error:
        sys.exit(f"frames: {error}")
    with pl.Config(tbl_rows=50, tbl_hide_dataframe_shape=True):
        sys.stdout.write(f"{sums.with_columns(cost_usd=to_usd(pl.col('cost_pusd')))}\n")


if __name__ == "__main__":
    main()
