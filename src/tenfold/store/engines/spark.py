"""The engine for many machines: one Spark session. Takes the extra ``tenfold[spark]`` and Java 17."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol

import polars as pl

from tenfold.errors import StepError

# Types that Spark does not have, as the ones that hold the same values.
_HELD: dict[Any, pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.Null: pl.Int32(),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
}
SETTINGS = {
    # times are naive UTC, an overflow is an error, and a folder named id=007 is text
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
}
"""What a session must be set to, so that steps mean there what they mean on DuckDB."""
# Frames up to this size go to every executor whole, so that a join with one moves no requests.
_BROADCAST_BYTES = 64_000_000


class SparkFrame(Protocol):
    """What is used of a Spark data frame."""

    def createOrReplaceTempView(self, name: str) -> None: ...  # noqa: D102, N802 -- Spark's own name

    def toArrow(self) -> Any: ...  # noqa: ANN401, D102, N802

    def hint(self, name: str) -> Any: ...  # noqa: ANN401, D102

    def checkpoint(self) -> Any: ...  # noqa: ANN401, D102

    def localCheckpoint(self) -> Any: ...  # noqa: ANN401, D102, N802


class SparkSession(Protocol):
    """What is used of a Spark session: pyspark need not be installed for tenfold to be type-checked."""

    @property
    def version(self) -> Any: ...  # noqa: ANN401, D102

    @property
    def conf(self) -> Any: ...  # noqa: ANN401, D102

    @property
    def read(self) -> Any: ...  # noqa: ANN401, D102

    @property
    def catalog(self) -> Any: ...  # noqa: ANN401, D102

    def newSession(self) -> Any: ...  # noqa: ANN401, D102, N802

    def createDataFrame(self, data: Any) -> Any: ...  # noqa: ANN401, D102, N802

    def sql(self, sqlQuery: str) -> Any: ...  # noqa: ANN401, D102, N803


class SparkEngine:
    """Run steps as temporary views of a Spark session.

    A materialised step is kept on the executors, or in the session's checkpoint directory where one is set
    (``spark.checkpoint.dir``), which outlives an executor. Spark frees either when nothing refers to it any more.

    Args:
        session: A session of its own, with ``SETTINGS``: views live in it.
        row_id: SQL that numbers the rows of `requests`.
    """

    name = "Spark"

    def __init__(self, session: SparkSession, row_id: str = "rid") -> None:
        self.session = session
        self.row_id = row_id
        self.keeps_files = session.conf.get("spark.checkpoint.dir", None) is not None
        self._views: set[str] = set()

    def register(self, name: str, frame: pl.DataFrame) -> None:
        """Make a small frame readable under a name.

        Args:
            name: View name for SQL.
            frame: Its rows; they travel from the driver.
        """
        held = [
            pl.col(column).cast(kind) for column, was in frame.schema.items() if (kind := _HELD.get(was.base_type()))
        ]
        there: SparkFrame = self.session.createDataFrame(frame.with_columns(held).to_arrow())
        self.view(name, there.hint("broadcast") if frame.estimated_size() <= _BROADCAST_BYTES else there)

    def step(self, name: str, sql: str, *, materialised: bool = False) -> None:
        """Give a query a name that later steps can read.

        Args:
            name: View name for SQL.
            sql: One SELECT.
            materialised: Compute it now and keep the result.

        Raises:
            StepError: Spark refused it; carries the text.
        """
        try:
            if materialised:
                frame: SparkFrame = self.session.sql(_written(sql))
                self.view(name, frame.checkpoint() if self.keeps_files else frame.localCheckpoint())
            else:
                # as SQL, so that it reads what its names mean when it is used, as on DuckDB
                self.session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS\n{_written(sql)}")
                self._views.add(name)
        except spark_errors() as error:
            raise StepError(name, sql, said(error)) from error

    def fetch(self, sql: str) -> pl.DataFrame:
        """Run a query and read its result on the driver.

        Args:
            sql: One SELECT.

        Returns:
            The frame; money as Decimal(38, 0).

        Raises:
            StepError: Spark refused it; carries the text.
        """
        try:
            found = pl.from_arrow(self.session.sql(_written(sql)).toArrow())
        except spark_errors() as error:
            raise StepError("fetch", sql, said(error)) from error
        return found if isinstance(found, pl.DataFrame) else found.to_frame()

    def close(self) -> None:
        """Drop the views, and with them what holds materialised steps."""
        for name in self._views:
            self.session.catalog.dropTempView(name)
        self._views.clear()

    def view(self, name: str, frame: SparkFrame) -> None:
        """Give a data frame of the session a name.

        Args:
            name: View name for SQL.
            frame: The frame.
        """
        frame.createOrReplaceTempView(name)
        self._views.add(name)


def _written(sql: str) -> str:
    """Write what a text holds as Spark reads it: a backslash is itself in SQL, and an escape in Spark's literals."""
    return sql.replace("\\", "\\\\")


def spark_errors() -> tuple[type[Exception], ...]:
    """Name what Spark raises.

    Returns:
        pyspark's base error, and what Java raises that pyspark does not know.
    """
    return import_module("pyspark.errors").PySparkException, import_module("py4j.protocol").Py4JError


def said(error: Exception) -> str:
    """Read an error of Spark's.

    Args:
        error: The error.

    Returns:
        Its message, without the Java call that it came by.
    """
    java: Any = getattr(error, "java_exception", None)
    return str(error if java is None else java.getMessage()).strip()
