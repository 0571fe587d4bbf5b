"""A loaded log: the store with what the last load did."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, TypedDict

from tenfold import tables
from tenfold.display import counted
from tenfold.errors import StoreError
from tenfold.store import schema
from tenfold.store.database import Store, query
from tenfold.store.engines.duckdb import reading
from tenfold.store.published import store_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl

    from tenfold.store.engines import Engine, Engines


class Unread(TypedDict):
    """A file that was found and left out."""

    file: str
    why: str


class Summary(TypedDict):
    """What a load did, as ``tenfold load --json`` prints it: ``by_format`` counts requests."""

    files: int
    requests: int
    duplicates: int
    merged: int
    rejected: int
    flagged: int
    ignored: int
    buckets: int
    by_format: dict[str, int]
    buckets_by_format: dict[str, int]
    unread: list[Unread]


class Log:
    """Requests in a store, ready to be priced.

    Args:
        store: The store.
        summary: What this load did (see ``Summary``); of everything in the store where nothing was loaded.
        loads: First and last row of `loads` that this load wrote; None for everything.
        engines: What runs queries over the requests; None is DuckDB on this machine.
    """

    def __init__(
        self,
        store: Store,
        summary: Mapping[str, Any],
        loads: tuple[int, int] | None = None,
        engines: Engines | None = None,
    ) -> None:
        self.store = store
        self._engines = engines
        self.summary: dict[str, Any] = dict(summary)
        self._loads = loads

    def on(self, engines: Engines) -> Log:
        """Take another engine for the same requests.

        Args:
            engines: The engine, such as ``tf.Spark(session)``.

        Returns:
            The log, run there.
        """
        return Log(self.store, self.summary, self._loads, engines)

    @contextmanager
    def engine(self) -> Generator[Engine]:
        """Open the requests for reading on the log's engine.

        Yields:
            The engine, with the store's tables in reach.
        """
        with reading(self.store) if self._engines is None else self._engines.open(self.store) as engine:
            yield engine

    @contextmanager
    def steady(self) -> Generator[None]:
        """Let everything read within be of one state, so that figures of several reads fit together.

        A load into the database waits until the end; readers of a published folder keep nobody waiting.

        Yields:
            Nothing.

        Raises:
            StoreError: The store cannot be read.
        """
        with self.store.steady() if self._engines is None else nullcontext():
            yield

    @property
    def requests(self) -> pl.DataFrame:
        """All requests as one frame: a copy in memory, so for logs of up to some million rows."""
        with self.store.reading() as connection:
            return query(connection, f"SELECT {', '.join(schema.names('requests'))} FROM requests")

    @property
    def buckets(self) -> pl.DataFrame:
        """All usage buckets: reports, invoices and counters; never to be added to requests."""
        with self.store.reading() as connection:
            return query(connection, "FROM usage_buckets")

    @property
    def texts(self) -> pl.DataFrame:
        """Prompts and answers that were kept (``keep_text``): load, line, key, prompt, response."""
        with self.store.reading() as connection:
            return query(connection, "FROM texts ORDER BY load_id, source_line")

    @property
    def loads(self) -> pl.DataFrame:
        """All files that were loaded, one row each: when, what, as which format, and how many lines came to what."""
        with self.store.reading() as connection:
            return query(connection, "FROM loads ORDER BY load_id")

    @property
    def rejects(self) -> pl.DataFrame:
        """What this load refused: file, line, reason, path, excerpt."""
        with self.store.reading() as connection:
            return query(connection, f"FROM rejects WHERE {self._within()} ORDER BY load_id, source_line")

    @property
    def flags(self) -> dict[str, int]:
        """How many requests of this load bear which flag, most first."""
        with self.store.reading() as connection:
            rows = connection.execute(
                "SELECT flag, count(*) FROM (SELECT unnest(flags) AS flag FROM requests WHERE "
                f"{self._within()}) GROUP BY flag ORDER BY count(*) DESC, flag"
            ).fetchall()
        return dict(rows)

    @property
    def estimated(self) -> int:
        """How many requests of this load have counts that were estimated from their text."""
        with self.store.reading() as connection:
            rows = connection.execute(
                f"SELECT count(*) FROM requests WHERE token_source = 'estimated' AND {self._within()}"
            ).fetchall()
        return int(rows[0][0])

    def _within(self) -> str:
        return "true" if self._loads is None else f"load_id BETWEEN {self._loads[0]} AND {self._loads[1]}"

    @property
    def log_hash(self) -> str:
        """Hash of what was loaded: every file's content and the settings it was read with, and what was forgotten."""
        with self.engine() as engine:
            rows = engine.fetch("select sha256, settings from loads order by all nulls last").rows()
            rows += engine.fetch("select name, value from meta where name = 'forgotten'").rows()
        digest = hashlib.sha256()
        for sha256, settings in rows:
            digest.update(f"{sha256} {settings}\n".encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        where = self.store.path or "memory"
        did = ", ".join(f"{self.summary[name]:,} {name}" for name in ("requests", "duplicates", "merged", "rejected"))
        return f"Log({where}: {did})"

    def _repr_html_(self) -> str:
        """Show in a notebook what was loaded, by format, and what was not."""
        did = self.summary
        where = self.store.path.name if self.store.path else "memory"
        lines = [f"{counted(did[name], noun)}{what}" for name, noun, what in _SHOWN if did[name]]
        lines += [f"flagged {flag.replace('_', ' ')}: {count:,}" for flag, count in self.flags.items()]
        lines += [f"not read: {one['file']}: {one['why']}" for one in did["unread"]]
        formats = {**did["buckets_by_format"], **did["by_format"]}
        rows = [(name, did["by_format"].get(name), did["buckets_by_format"].get(name)) for name in sorted(formats)]
        columns = [tables.Column("format", "format"), tables.Column("requests", "requests", "count")]
        columns += [tables.Column("buckets", "rows of reports", "count")]
        table = [tables.grid("formats", "By format", columns, rows)] if rows else []
        return tables.card(f"{counted(did['requests'], 'request')} loaded into {where}", lines, *table)


_SHOWN = (
    ("files", "file", " read"),
    ("buckets", "row", " of reports and invoices, kept apart from requests"),
    ("duplicates", "line", " that repeated a request, counted once"),
    ("merged", "line", " merged into the request they belong to"),
    ("rejected", "line", " refused, each with its reason in `.rejects`"),
    ("ignored", "line", " that are no requests"),
)


def open_log(db: str | Path) -> Log:
    """Open what was loaded before.

    Args:
        db: The database file, or a published folder (``tf.publish``).

    Returns:
        The log; its summary counts everything in the store.

    Raises:
        StoreError: There is no such database, or it is not one of tenfold's.
    """
    store = store_of(db)
    with store.reading() as connection:
        rows = connection.execute(
            "SELECT source_format, count(*), sum(requests), sum(duplicates), sum(merged), sum(rejected), sum(flagged), "
            "sum(ignored), sum(buckets) FROM loads GROUP BY ALL ORDER BY ALL"
        ).fetchall()
    if not rows:
        raise StoreError(f"{db}: nothing has been loaded yet. Load logs with: tenfold load PATH... --db {db}")
    files, requests, duplicates, merged, rejected, flagged, ignored, buckets = (
        sum(int(row[i]) for row in rows) for i in range(1, 9)
    )
    summary = Summary(
        files=files,
        requests=requests,
        duplicates=duplicates,
        merged=merged,
        rejected=rejected,
        flagged=flagged,
        ignored=ignored,
        buckets=buckets,
        by_format={row[0]: int(row[2]) for row in rows},
        buckets_by_format={row[0]: int(row[8]) for row in rows if row[8]},
        unread=[],
    )
    return Log(store, summary)
