"""Spark as the engine: over a folder that `tenfold publish` wrote, or over one's own partitioned Parquet."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import uuid4
from weakref import finalize

import polars as pl

from tenfold.display import counted
from tenfold.errors import StoreError
from tenfold.extras import need
from tenfold.ledger import own_parquet
from tenfold.logs.cube import cells_sql
from tenfold.logs.log import Log, Summary
from tenfold.prices import PriceBook, price_book
from tenfold.store import schema
from tenfold.store.database import Store
from tenfold.store.engines import PREFIX_BLOCKS, Engine
from tenfold.store.engines.spark import SETTINGS, SparkEngine, SparkSession, spark_errors
from tenfold.store.manifest import CURRENT, MANIFEST, TABLES
from tenfold.store.published import PublishedStore

if TYPE_CHECKING:
    import duckdb

# First version whose SQL holds all that the steps use.
_OLDEST = (4, 1)
_TYPES = {
    "VARCHAR": "string",
    "TIMESTAMP": "timestamp_ntz",
    "UBIGINT": "decimal(20,0)",
    "VARCHAR[]": "array<string>",
    "MAP(VARCHAR, VARCHAR)": "map<string,string>",
}
_POLARS = {"VARCHAR": pl.String(), "BIGINT": pl.Int64(), "INTEGER": pl.Int32(), "TIMESTAMP": pl.Datetime("us")}
_BLOCKS = {"block_no": "int", "hash": "string"}


class Spark:
    """Apache Spark as the engine of a log.

    Over a published folder: ``tf.attribute(tf.open_log(DIR), book, engine=tf.Spark(session))``; over your own Parquet:
    ``tf.attribute(tf.Spark(session).open_log(PATH), book)``. Each opening takes a new session of the one given, with
    the settings that exact answers need, so that yours keeps its own views and settings.

    Args:
        session: A running Spark session, 4.1 or newer (which takes Java 17).

    Raises:
        MissingExtraError: pyspark or pyarrow is not installed.
        StoreError: Spark is too old.
    """

    def __init__(self, session: SparkSession) -> None:
        need("pyspark", "pyarrow", what="The engine for many machines", extra="spark")
        numbers = re.findall(r"\d+", session.version)[:2]
        if tuple(int(number) for number in numbers) < _OLDEST:
            least = ".".join(str(part) for part in _OLDEST)
            raise StoreError(f"Spark {session.version} is too old: {least} or newer is needed, with Java 17")
        self.session = session

    @contextmanager
    def open(self, store: Store) -> Generator[Engine]:
        """Open a store for reading on Spark.

        Args:
            store: A published folder, or what ``open_log`` opened.

        Yields:
            The engine, with the store's tables in reach.

        Raises:
            StoreError: Spark cannot read such a store; says what to do.
        """
        if isinstance(store, PublishedStore):
            with store.snapshot() as snapshot:
                yield from self._opened(_Published(str(snapshot.folder)))
        elif isinstance(store, SparkStore):
            yield from self._opened(store)
        else:
            where = store.path or "a log in memory"
            raise StoreError(
                f"{where}: Spark cannot read DuckDB's file. Publish it (tenfold publish --db FILE --out DIR) "
                "and open the folder: tf.open_log(DIR)"
            )

    def _opened(self, store: SparkStore) -> Generator[Engine]:
        engine = SparkEngine(self._own())
        try:
            store.lay(engine)
            yield engine
        finally:
            engine.close()

    def _own(self) -> SparkSession:
        own: SparkSession = self.session.newSession()
        given: dict[str, str] = self.session.conf.getAll
        for name, value in {**given, **SETTINGS}.items():
            if name.startswith("spark.sql.") and own.conf.isModifiable(name) and own.conf.get(name, None) != value:
                own.conf.set(name, value)
        return own

    def open_log(self, path: str | Path, *, book: PriceBook | None = None) -> Log:
        """Open Parquet that only Spark reads: your own, or a published folder at a URL.

        Your own files bear the names of ``requests`` (README); what is missing is unknown, folders named
        ``column=value`` count as columns, others are left out. Every row is a request: nothing is taken for a repeat
        (``SparkLog.repeated_ids`` counts them).

        Args:
            path: A folder, file or pattern, on any file system that Spark reads; of a published folder at a URL, the
                snapshot.
            book: Prices whose context thresholds the daily sums are to keep apart; the shipped book by default.

        Returns:
            The log, on Spark.

        Raises:
            StoreError: There is no such path or no request, a column is of a wrong type, or counts are impossible:
                says which, how many and the way out.
        """
        place = str(path)
        session = self._own()
        for folder in (place, f"{place}/{CURRENT}"):
            if (version := _version_of(session, folder)) is not None:
                return self._open_published(folder, version)
        found = own_parquet.look(session, place)
        store = _Own(place, found, (book or price_book()).thresholds)
        store.keep_cube(session)
        return SparkLog(store, _summary(own_parquet.FORMAT, len(found.files), found.requests), engines=self)

    def _open_published(self, folder: str, version: int) -> Log:
        if version != schema.SCHEMA_VERSION:
            raise StoreError(
                f"{folder}: published by another version of tenfold (schema {version}, this is "
                f"{schema.SCHEMA_VERSION}). Publish anew: tenfold publish --db FILE --out DIR"
            )
        store = _Published(folder)
        with self.open(store) as engine:
            sums = engine.fetch(
                "select source_format, count(*) as files, sum(requests) as requests from loads "
                "group by source_format order by source_format"
            )
        made = _summary("", int(sums["files"].sum()), int(sums["requests"].sum() or 0))
        made["by_format"] = {name: int(requests or 0) for name, _, requests in sums.rows()}
        return Log(store, made, engines=self)


class SparkStore(Store):
    """Requests that only Spark reads.

    Args:
        place: Path or URL.
    """

    row_id = "rid"

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self.place = place

    def lay(self, engine: SparkEngine) -> None:
        """Make the store's tables views of a session.

        Args:
            engine: An engine with a session of its own.
        """
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Refuse: DuckDB has no way to these requests.

        Raises:
            StoreError: Always; names what does.
        """
        raise StoreError(
            f"{self.place}: read by Spark, and this runs on DuckDB alone. Open a part of it, or a published folder, on "
            "this machine: tf.load(FILES) or tf.open_log(DIR)"
        )
        yield  # pyright: ignore[reportUnreachable]

    @contextmanager
    def writing(self) -> Generator[duckdb.DuckDBPyConnection]:
        """Refuse: these files can only be read.

        Raises:
            StoreError: Always.
        """
        raise StoreError(
            f"{self.place}: opened on Spark, which only reads. Load logs with: tenfold load PATH... --db FILE"
        )
        yield  # pyright: ignore[reportUnreachable]


class _Published(SparkStore):
    """One snapshot of a published folder."""

    def lay(self, engine: SparkEngine) -> None:
        for name in ("requests", PREFIX_BLOCKS):
            columns = {"rid": "bigint", **(_BLOCKS if name == PREFIX_BLOCKS else _columns(name))}
            self._view(engine, name, columns, self.place + f"/{name}")
        for name in TABLES:
            self._view(engine, name, _columns(name), f"{self.place}/{name}.parquet")
        _lay_empty(engine, {"requests", *TABLES})

    def _view(self, engine: SparkEngine, name: str, columns: dict[str, str], where: str) -> None:
        listed = ", ".join(f"{column} {kind}" for column, kind in columns.items())
        # without the day, which is a folder and no column
        engine.view(name, engine.session.read.schema(listed).parquet(where).select(*columns))


class _Own(SparkStore):
    """A user's own Parquet, with what one look at it told."""

    def __init__(self, place: str, found: own_parquet.Found, thresholds: tuple[int, ...]) -> None:
        super().__init__(place)
        self.found = found
        self.thresholds = thresholds
        self._cube = ""

    def lay(self, engine: SparkEngine) -> None:
        own_parquet.lay(engine, self.place, self.found)
        if self._cube:
            engine.step("cube", f"select * from {self._cube}")
        meta = {"thresholds": ",".join(str(limit) for limit in sorted(self.thresholds))}
        engine.register("meta", pl.DataFrame({"name": list(meta), "value": list(meta.values())}))
        # all files together, whose own loads are numbered from 1 and hashed nowhere
        loaded = {
            "load_id": 0, "source_file": self.place, "sha256": self.found.hash, "settings": "{}",
            "source_format": own_parquet.FORMAT, "lines": self.found.requests, "requests": self.found.requests,
        }  # fmt: skip
        columns = {column.name: _POLARS[column.type] for column in schema.LOADS}
        engine.register("loads", pl.DataFrame([loaded], schema=columns))
        _lay_empty(engine, {"requests", "price_keys", "cube", "meta", "loads"})

    def keep_cube(self, session: SparkSession) -> None:
        """Sum the requests by day once, for all sessions to come, until nobody holds the store any more."""
        name = f"tenfold_cube_{uuid4().hex}"
        engine = SparkEngine(session)
        self.lay(engine)
        database = session.conf.get("spark.sql.globalTempDatabase", "global_temp")
        engine.step("cube", cells_sql("own_requests", self.thresholds), materialised=True)
        session.sql("select * from cube").createOrReplaceGlobalTempView(name)
        self._cube = f"{database}.{name}"
        engine.close()
        finalize(self, _drop, session, name).atexit = False


class SparkLog(Log):
    """Requests in your own Parquet, on Spark."""

    @property
    def repeated_ids(self) -> int:
        """How many rows bear the provider, id and attempt of another row: they are counted, and this moves every id."""
        with self.engine() as engine:
            return int(
                engine.fetch(
                    "select coalesce(sum(n - 1), 0) as repeated from (select count(*) as n from requests "
                    "where request_id is not null group by provider, request_id, attempt) as ids"
                ).item()
            )

    def __repr__(self) -> str:
        files, requests = counted(self.summary["files"], "file"), counted(self.summary["requests"], "request")
        return f"SparkLog({getattr(self.store, 'place', '')}: {requests} in {files}, repeats not looked for)"


def _summary(name: str, files: int, requests: int) -> Summary:
    return Summary(
        files=files, requests=requests, duplicates=0, merged=0, rejected=0, flagged=0, ignored=0, buckets=0,
        by_format={name: requests}, buckets_by_format={}, unread=[],
    )  # fmt: skip


def _version_of(session: SparkSession, folder: str) -> int | None:
    """Read which schema a published snapshot has; None where the folder is none."""
    try:
        found = session.read.option("multiLine", "true").json(f"{folder}/{MANIFEST}").select("schema_version").collect()
    except spark_errors():
        return None
    return int(found[0][0])


def _drop(session: SparkSession, name: str) -> None:
    """Drop a global view, if Spark still runs."""
    with suppress(*spark_errors(), OSError, AttributeError):
        session.catalog.dropGlobalTempView(name)


def _columns(table: str) -> dict[str, str]:
    return {column.name: _TYPES.get(column.type, column.type.lower()) for column in schema.TABLES[table]}


def _lay_empty(engine: SparkEngine, there: set[str]) -> None:
    """Make the tables of a store that are not there, empty."""
    for table in schema.TABLES.keys() - there:
        nulls = ", ".join(f"cast(null as {kind}) as {name}" for name, kind in _columns(table).items())
        engine.step(table, f"select {nulls} where false")
