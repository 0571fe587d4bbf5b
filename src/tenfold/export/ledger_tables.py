"""The ledger's own tables as files: compositions and the priced requests, as CSV, Parquet or a workbook."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from tenfold.errors import AssumptionError
from tenfold.export import workbook, writing
from tenfold.ledger import TIME_GRAINS, Composition, Ledger, Session, grain_text
from tenfold.ledger.charges import charge_rows
from tenfold.prices.meters import METER_NAMES, counted, meters
from tenfold.store import schema
from tenfold.store.engines.duckdb import reading

_USD = "cast(cast({0} as decimal(25, 0)) * cast('0.000000000001' as decimal(13, 12)) as decimal(38, 12))"
BY_DEFAULT = ("month", "provider", "model")


def export_table(ledger: Ledger, out: str | Path, *, by: Sequence[str] | None = None) -> int:
    """Write one composition of a ledger, or the ledger itself, to a file; the same ledger gives the same bytes.

    Args:
        ledger: The priced log.
        out: The file: ``.csv``, ``.csv.gz``, ``.parquet`` or ``.xlsx`` (its extra: ``tenfold[report]``). CSV and
            Parquet hold money exactly; in CSV, a text that a spreadsheet would take for a formula gets an apostrophe
            before it. In a workbook money is a number, with totals as formulas.
        by: Columns of ``requests`` or time grains; None for the ledger itself, one row a request with the units and
            cost (pUSD) of each meter.

    Returns:
        Rows written.

    Raises:
        ColumnError: A column to group by does not exist; names the near match.
        AssumptionError: The file's name says no format, or a sheet cannot hold so many rows, or single requests.
        MissingExtraError: A workbook was asked for and the library for it is not installed.
    """
    path = Path(out)
    if by is not None:
        return export_compositions(ledger, path, [by])
    if writing.kind_of(path) == "xlsx":
        raise AssumptionError(
            f"{path}: a workbook holds compositions. Name the requests' file .parquet, .csv or .csv.gz"
        )
    return _requests(ledger, path)


def export_compositions(ledger: Ledger, out: Path, breakdowns: Sequence[Sequence[str]]) -> int:
    """Write compositions: one to CSV or Parquet, any number to a workbook, a sheet each.

    Args:
        ledger: The priced log.
        out: The file.
        breakdowns: The columns of each to group by.

    Returns:
        Rows written.

    Raises:
        ColumnError: A column does not exist.
        AssumptionError: The file's name says no format, or several tables were to go into one CSV or Parquet file.
        MissingExtraError: A workbook was asked for and the library for it is not installed.
    """
    kind = writing.kind_of(out)
    if kind != "xlsx" and len(breakdowns) > 1:
        raise AssumptionError(f"{out}: one table a file: give --by once, or write a workbook (.xlsx)")
    tables = [(tuple(by), _composition(ledger, ledger.composition(by))) for by in breakdowns]
    if kind == "xlsx":
        workbook.write(out, tables, notes=_notes(ledger))
    else:
        frame = tables[0][1]
        with reading(ledger.log.store) as engine:
            engine.register("composition", frame.with_row_index("place"))
            columns = ", ".join(
                f"{_USD.format(name)} as {name.removesuffix('_pusd')}_usd" if name.endswith("_pusd") else f'"{name}"'
                for name in frame.columns
            )
            view = f"(select {columns}, place from composition)"
            writing.copy(engine.connection, view, out, order="place", drop="place")
    return sum(len(frame) for _, frame in tables)


def _composition(ledger: Ledger, mix: Composition) -> pl.DataFrame:
    """Order a composition for reading: the meters that occur, no cost where nothing has a price, charges at the end."""
    frame = mix.ordered()
    units = {meter.name: meter.unit for meter in meters()}
    used = [name for name in METER_NAMES if (frame[f"{name}_units"].fill_null(0) != 0).any()]
    is_priced = ~((pl.col("requests") > 0) & (pl.col("requests") == pl.col("unpriced_requests")))
    costs = [pl.when(is_priced).then(pl.col(name)).alias(name) for name in ("cost_pusd", *(f"{m}_pusd" for m in used))]
    counts = [pl.col(f"{name}_units").alias(f"{name}_{list(counted(units[name], 0))[-1]}") for name in used]
    named = [
        pl.col(name).map_elements(lambda value, name=name: grain_text(name, value), pl.String)
        if name in TIME_GRAINS and name not in ("day", "week")
        else pl.col(name)
        for name in mix.by
    ]
    made = frame.select(*named, "requests", "unpriced_requests", *costs, *counts)
    extra = [
        {**dict(zip(mix.by, values, strict=True)), "requests": 0, "unpriced_requests": 0, "cost_pusd": one.pusd}
        for values, one in charge_rows(ledger.charges, mix.by)
    ]
    if not extra:
        return made
    numbers = {name: made.schema[name] for name in ("requests", "unpriced_requests", "cost_pusd")}
    rows = pl.DataFrame(extra, schema={**dict.fromkeys(mix.by, pl.String()), **numbers})
    return pl.concat([made.with_columns(pl.col(name).cast(pl.String) for name in mix.by), rows], how="diagonal")


def _notes(ledger: Ledger) -> list[tuple[str, str]]:
    """List what every table names: the card, the log, the window and what has no price."""
    window, covered = ledger.window, ledger.coverage
    return [
        ("card version", ledger.book.version),
        ("log hash", ledger.log.log_hash),
        ("zone of days", window.zone),
        ("from", window.since.isoformat() if window.since else "the log's beginning"),
        ("to", window.until.isoformat() if window.until else "the log's end"),
        ("billed requests", f"{covered.requests:,}"),
        ("of them without a price", f"{covered.unpriced_requests:,}"),
    ]


def _requests(ledger: Ledger, out: Path) -> int:
    with reading(ledger.log.store) as engine:
        session = Session(engine, ledger.book, ledger.window, price_at=ledger.price_at)
        own = [column.name for column in schema.REQUESTS if column.group != "internal"]
        cost = " + ".join(f"{meter.name}_pusd" for meter in session.meters)
        made = [f"{meter.name}_{kind}" for meter in session.meters for kind in ("units", "pusd")]
        view = f"(select {', '.join([*own, 'price_status', *made])}, {cost} as cost_pusd, load_id from priced_requests)"
        writing.copy(engine.connection, view, out, order="load_id, source_line, request_id, ts", drop="load_id")
        return int(engine.connection.execute("select count(*) from priced_requests").fetchall()[0][0])
