"""Two engines over one log: every step runs on DuckDB and on Spark, and what they give is compared.

``log.on(twins)`` gives a log whose sessions run on both; ``twins.everywhere(monkeypatch)`` does the same for code that
opens the store itself. Answers come from Spark, so that what reads them is tested with Spark's types and order.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import cache
from importlib import resources
from itertools import count
from pathlib import Path

import duckdb
import polars as pl

from tenfold.store import schema, steps
from tenfold.store.engines import duckdb as on_duckdb
from tenfold.store.engines.duckdb import DuckDBEngine

TOLERANCE = 1e-9
DUCKDB_ALONE = {
    "focus_rows": "writes the columns of a FOCUS file: JSON, zoned times and quoted names, in DuckDB's own words",
}
"""Steps that run on DuckDB alone, and why; so does what reads them."""
RAN: set[str] = set()
"""Steps whose result was compared, by file name without `.sql`: filled by every ``TwinEngine``."""

# Numbers that only tell rows apart: which row gets which is each engine's own.
_ANY = {"cell_id", "key_hash", "key_check"}
_NUMBERS = count()
_SCHEMAS = {}  # of the tables as Spark reads them: looking costs a job each time
_WORD = re.compile(r"\w+")


def java_version():
    """Read the major version of Java, or None where there is none."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    if java is None:
        return None
    said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', said.stderr + said.stdout)
    return int(found[1]) if found else None


def local_session():
    """Start Spark on two threads, set for many small steps: nothing is spent on what only large ones pay back."""
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[2]")
        .appName("tenfold tests")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "1g")
        # a short life: no time for the JVM's second compiler to pay, whose absence would leave little room for code
        .config(
            "spark.driver.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC -Xshare:auto",
        )
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.default.parallelism", "2")
        # a hundred rows a step: interpreted, as planned at first; `python -m benchmarks.spark` compares totals compiled
        .config("spark.sql.codegen.wholeStage", "false")
        .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.sql.constraintPropagation.enabled", "false")
        .config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


class Twins:
    """Lays both engines over a store: what ``Log.on`` takes.

    Args:
        session: Spark; every opened store gets a new session in it.
        folder: Where to lay the store as Parquet, once a store.
    """

    def __init__(self, session, folder):
        self.session = session
        self.folder = Path(folder)
        self._laid = {}

    @contextmanager
    def open(self, store):
        """Open a store on both engines."""
        folder = self.laid(store)
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone='UTC'")
            for table in sorted(folder.iterdir()):
                connection.execute(f"CREATE TABLE {table.stem} AS FROM read_parquet('{table}')")
            spark = spark_engine(self.session, folder)
            try:
                yield TwinEngine(connection, spark)
            finally:
                spark.close()

    def laid(self, store):
        """Lay a store as Parquet, one file a table: `requests` with `rid`, `prefix_blocks` long."""
        if id(store) not in self._laid:
            folder = self.folder / str(next(_NUMBERS))
            folder.mkdir(parents=True)
            lay(store, folder)
            self._laid[id(store)] = (folder, store)
        return self._laid[id(store)][0]

    def everywhere(self, monkeypatch):
        """Put both engines where DuckDB is opened: in every module that opens a store by ``reading``."""
        own = on_duckdb.reading
        for name, module in list(sys.modules.items()):
            if name.startswith("tenfold.") and getattr(module, "reading", None) is own:
                monkeypatch.setattr(module, "reading", self.open)


def lay(store, folder):
    """Write a store's tables as Parquet files, as a published folder has them, and texts too."""
    with store.reading() as connection:
        for table in schema.TABLES:
            source = table
            if table == "requests":
                source = (
                    f"(SELECT {store.row_id} AS rid, {', '.join(schema.names('requests'))} FROM requests ORDER BY rid)"
                )
            connection.execute(f"COPY {source} TO '{folder / table}.parquet' (FORMAT parquet)")
        blocks = (
            f"SELECT {store.row_id} AS rid, cast(unnest(range(1, len(prefix_hashes) + 1)) AS integer) AS block_no, "
            "unnest(prefix_hashes) AS hash FROM requests"
        )
        connection.execute(f"COPY ({blocks}) TO '{folder / 'prefix_blocks'}.parquet' (FORMAT parquet)")


def spark_engine(session, folder):
    """Open a folder of Parquet files, one a table, on a Spark session of its own."""
    from tenfold.store.engines.spark import SETTINGS, SparkEngine

    own = session.newSession()
    for name, value in SETTINGS.items():
        own.conf.set(name, value)
    for table in sorted(Path(folder).iterdir()):
        reader = own.read.schema(_SCHEMAS[table.stem]) if table.stem in _SCHEMAS else own.read
        frame = reader.parquet(str(table))
        _SCHEMAS[table.stem] = frame.schema
        frame.createOrReplaceTempView(table.stem)
    return SparkEngine(own)


class TwinEngine:
    """An engine that runs everything on DuckDB and on Spark and compares.

    Args:
        connection: DuckDB with the tables.
        spark: Spark's engine with the same tables.
    """

    row_id = "rid"
    name = "Spark"

    def __init__(self, connection, spark):
        self.connection = connection
        self.duck = DuckDBEngine(connection, "rid")
        self.spark = spark
        self.compared = 0
        self._steps = {}  # view to the step files that it is made of

    def register(self, name, frame):
        """Give both a small frame."""
        self.duck.register(name, frame)
        self.spark.register(name, frame)
        self._steps[name] = set()

    def step(self, name, sql, *, materialised=False):
        """Make a view on both; compare what is materialised."""
        made = self._steps[name] = self._made_of(sql)
        self.duck.step(name, sql, materialised=materialised)
        if made & DUCKDB_ALONE.keys():
            return
        self.spark.step(name, sql, materialised=materialised)
        if materialised:
            whole = f"select * from {name}"
            self._compare(name, self.duck.fetch(whole), self.spark.fetch(whole), made, in_order=False)

    def fetch(self, sql):
        """Read from both and compare, in order where the query has one."""
        made = self._made_of(sql)
        if made & DUCKDB_ALONE.keys():
            return self.duck.fetch(sql)
        here, there = self.duck.fetch(sql), self.spark.fetch(sql)
        self._compare(sql, here, there, made, in_order=is_ordered(sql))
        return there

    def _compare(self, what, here, there, made, *, in_order):
        same(here, there, in_order=in_order, what=what)
        self.compared += 1
        RAN.update(made)

    def _made_of(self, sql):
        made = {step for head, step in heads().items() if head in sql}
        for word in set(_WORD.findall(sql)) & set(self._steps):
            made |= self._steps[word]
        return made


@cache
def heads():
    """Map the first line of every step's file to its name: that is how its text is known where it runs."""
    files = (resources.files("tenfold.store") / "sql").iterdir()
    names = sorted(item.name.removesuffix(".sql") for item in files if item.name.endswith(".sql"))
    found = {steps.text(name).splitlines()[0]: name for name in names}
    assert len(found) == len(names), "two steps begin with the same line"
    return found


def is_ordered(sql):
    """Tell whether a query as a whole has an ORDER BY."""
    text = re.sub(r"--[^\n]*|'(?:[^']|'')*'", "", sql).lower()
    depth, at = 0, [0]
    for place, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            at.append(place)
    outer = "".join(text[place] for place in at)
    return re.search(r"\border\s+by\b", outer) is not None


def same(here, there, *, in_order=False, what=""):
    """Hold two frames against each other: as multisets of rows, exact but for floats (1e-9), in order if asked."""
    here, there = (frame.drop(_ANY & set(frame.columns)) for frame in (here, there))
    assert here.columns == there.columns, f"columns differ: {here.columns} {there.columns}\n{what}"
    kinds = {name: (_kind(here.schema[name]), _kind(there.schema[name])) for name in here.columns}
    apart = {name: kind for name, kind in kinds.items() if kind[0] != kind[1] and "null" not in kind}
    assert not apart, f"types differ (DuckDB, Spark): {apart}\n{what}"
    assert len(here) == len(there), f"DuckDB has {len(here)} rows, Spark {len(there)}\n{what}"
    one, other = _rows(here), _rows(there)
    if not in_order:
        one, other = sorted(one, key=_order), sorted(other, key=_order)
    for row, pair in enumerate(zip(one, other, strict=True)):
        for name, a, b in zip(here.columns, *pair, strict=True):
            assert _is_same(a, b), f"row {row}, {name}: DuckDB {a!r}, Spark {b!r}\n{pair[0]}\n{pair[1]}\n{what}"


def _kind(kind):
    """What a column is to those who read it: whole numbers of any width are one, decimals by their scale."""
    if kind.is_integer():
        return "decimal 0"
    if kind == pl.Decimal:
        return f"decimal {kind.scale}"
    if kind.is_float():
        return "float"
    if kind == pl.List:
        return "list"
    return str(kind).lower()


def _rows(frame):
    return [tuple(_plain(value) for value in row) for row in frame.iter_rows()]


def _plain(value):
    return repr(value) if isinstance(value, list | dict) else value


def _order(row):
    """Sort rows of mixed types: what is exact first, then floats, so that their last bits decide nothing."""
    exact = [(value is None, str(value)) for value in row if not isinstance(value, float)]
    return exact, [value for value in row if isinstance(value, float)]


def _is_same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b) or abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))  # noqa: PLR0124
    return a == b and isinstance(a, bool) == isinstance(b, bool)
