"""Reports and invoices as their readers give them: loaded beside the log, or read from files into memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import polars as pl

from tenfold.analysis.reconcile.invoiced import COSTS, USAGE
from tenfold.display import counted
from tenfold.errors import LogFormatError
from tenfold.logs import load
from tenfold.store.database import Store, query


class Rejected(NamedTuple):
    """A row of a report or invoice that its reader refused: whose money it is and how much is unknown.

    Args:
        file: The file, as given.
        line: Line in it, from 1.
        reason: Why.
    """

    file: str
    line: int
    reason: str


class Rows(NamedTuple):
    """What readers made of reports and invoices.

    Args:
        buckets: Rows of ``usage_buckets``.
        rejected: Rows that were refused.
    """

    buckets: pl.DataFrame
    rejected: tuple[Rejected, ...]


def loaded(store: Store) -> Rows:
    """Give the reports and invoices that a store holds.

    Args:
        store: The store.

    Returns:
        Their rows, those refused included.
    """
    formats = ", ".join(f"'{name}'" for name in (*COSTS, *USAGE))
    with store.reading() as connection:
        refused = query(
            connection,
            "SELECT r.source_file, r.source_line, r.reason FROM rejects r JOIN loads l USING (load_id) "
            f"WHERE l.source_format IN ({formats}) ORDER BY load_id, r.source_line",
        )
        buckets = query(connection, f"FROM usage_buckets WHERE source_format IN ({formats})")
    return Rows(buckets, tuple(Rejected(*row) for row in refused.rows()))


def read(invoices: str | Path | Sequence[str | Path], zone: str | None, provider: str | None) -> Rows:
    """Read files into a store of their own, in memory: the log's database is not touched.

    Args:
        invoices: The files.
        zone: Zone that dates without a clock mean.
        provider: Who bills, for files that do not say.

    Returns:
        Their rows, those refused included.

    Raises:
        LogFormatError: A file is no report or invoice.
    """
    files = [invoices] if isinstance(invoices, (str, Path)) else list(invoices)
    made = load(files, zone=zone, set={"provider": provider} if provider else None, hashes=False)
    found = [name for name, requests in made.summary["by_format"].items() if requests]
    if found:
        raise LogFormatError(
            f"{', '.join(map(str, files))}: holds requests ({', '.join(found)}), not only reports and invoices. "
            "Load requests with: tenfold load"
        )
    return loaded(made.store)


def notes(rejected: Iterable[Rejected]) -> list[str]:
    """Say that rows were refused.

    Args:
        rejected: The rows.

    Returns:
        One sentence for each file.
    """
    return [
        f"{counted(count, 'row')} of {file} {'was' if count == 1 else 'were'} refused and "
        f"{'is' if count == 1 else 'are'} in no figure: what {'it bills' if count == 1 else 'they bill'} is unknown"
        for file, count in Counter(one.file for one in rejected).items()
    ]
