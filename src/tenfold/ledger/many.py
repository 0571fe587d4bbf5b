"""Price a frame of calls at once: the ledger's own SQL over rows that never were a log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from tenfold.errors import ColumnError, UsageError, near
from tenfold.ledger.session import Session, Window
from tenfold.logs import cube
from tenfold.prices import PriceBook, price_book
from tenfold.prices.single import instant_of
from tenfold.prices.words import canonical_provider, canonical_tier
from tenfold.store import schema
from tenfold.store.database import Store, put_frame
from tenfold.store.engines.duckdb import DuckDBEngine
from tenfold.usage.normalise import SUBSETS
from tenfold.usage.paths import most

_PARTS = ("provider", "model", "service_tier", "region")
_NEEDED = ("provider", "model", "ts", "input_tokens", "output_tokens")
_READ = (*_PARTS, "ts", "is_billable", "gateway_cache_hit", *schema.TOKEN_COLUMNS)
_MADE = ("price_status", "cost_pusd", "how_matched", "price_file", "price_entry", "card_version")
# Other words for columns that decide the price: left unread they would price silently as something else.
_OTHER_WORDS = {
    "tier": "service_tier",
    "processing": "service_tier",
    "data_residency": "region",
    "inference_geo": "region",
}


def price_many(frame: Any, *, book: PriceBook | None = None, meters: bool = False) -> pl.DataFrame:  # noqa: ANN401
    """Price many calls: one row in, one row out, in the same order.

    Args:
        frame: Polars frame, lazy or not, or what Polars makes one of (whatever speaks Arrow's C stream, such as a
            pyarrow table, without pyarrow here; pandas; a dict of columns), with the requests table's names:
            ``provider``, ``model``, ``ts`` (aware instants, naive ones meaning UTC, dates, or ISO text with a zone),
            ``input_tokens``, ``output_tokens`` (inclusive totals), and any of ``service_tier``, ``region`` and the
            other counts. Other columns stay as they are.
        book: The price book; the shipped one by default.
        meters: Add ``<meter>_units`` and ``<meter>_pusd`` of the meters that occur.

    Returns:
        The frame with ``price_status``, ``cost_pusd`` (Int64; null where there is no price), ``how_matched``,
        ``price_file`` and ``price_entry`` (its number there), ``card_version``. The same statuses and integers as
        ``tf.price`` and the ledger.

    Raises:
        ColumnError: A needed column is absent, or one of ours is there already.
        UsageError: A count is negative, fractional, or more than the total it is part of; names row and column.
    """
    try:
        given = frame.collect() if isinstance(frame, pl.LazyFrame) else pl.DataFrame(frame)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise ColumnError(f"this is no frame of columns: {str(error).splitlines()[0]}") from error
    _check_columns(given.columns)
    own = _typed(given)
    _check_counts(own)
    own = _filled(own)
    used = book or price_book()
    store = Store()
    with store.writing() as connection:
        parts, keyed = _keyed(own)
        put_frame(connection, "given", keyed)
        connection.execute("INSERT INTO requests BY NAME FROM given")
        put_frame(connection, "given_keys", parts)
        connection.execute("INSERT INTO price_keys BY NAME FROM given_keys")
        cube.rebuild(connection, used.thresholds)
        session = Session(DuckDBEngine(connection), used, Window())
        names = [meter.name for meter in session.meters]
        extra = [f"{name}_{kind}" for name in names for kind in ("units", "pusd")] if meters else []
        wanted = "".join(f", cast({name} as bigint) as {name}" for name in extra)
        total = " + ".join(f"{name}_pusd" for name in names)
        found = session.engine.fetch(
            f"select source_line, price_key, entry_id, price_status, cast({total} as bigint) as cost_pusd{wanted} "
            "from priced_requests order by source_line"
        )
    made = found.with_columns(*_told(session, found), card_version=pl.lit(used.version))
    return given.hstack(made.select(*_MADE, *extra))


def _check_columns(columns: Sequence[str]) -> None:
    for name in _NEEDED:
        if name not in columns:
            raise ColumnError(f'no column "{name}" to price by.{near(name, columns)} Needed: {", ".join(_NEEDED)}')
    for name, right in _OTHER_WORDS.items():
        if name in columns and right not in columns:
            raise ColumnError(f'column "{name}" would not be read; the requests table calls it {right}')
    folded = {_folded(name): name for name in _READ}
    for name in columns:
        right = folded.get(_folded(name)) or folded.get(_folded(name) + "s") or folded.get(_folded(name) + "es")
        if name not in _READ and right is not None and right not in columns:
            raise ColumnError(f'column "{name}" would not be read; the requests table calls it {right}')
        if name in _MADE:
            raise ColumnError(f'the frame already has a column "{name}"; drop or rename it')
        if name.endswith("_tokens") and name not in schema.names("requests"):
            raise ColumnError(f'unknown count "{name}", which would not be priced.{near(name, schema.TOKEN_COLUMNS)}')


def _folded(name: str) -> str:
    return name.replace("_", "").replace("-", "").replace(" ", "").lower()


def _typed(given: pl.DataFrame) -> pl.DataFrame:
    kinds: dict[str, Any] = {
        "VARCHAR": pl.String, "BIGINT": pl.Int64, "BOOLEAN": pl.Boolean, "TIMESTAMP": pl.Datetime("us"),
    }  # fmt: skip
    types = {column.name: column.type for column in schema.REQUESTS}
    parts: list[pl.Expr] = [pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias("source_line")]
    for name in _READ:
        if name not in given.columns:
            parts.append(pl.lit(None, dtype=kinds[types[name]]).alias(name))
        elif name == "ts":
            parts.append(_instant(given["ts"]))
        elif name in schema.TOKEN_COLUMNS and given[name].dtype.is_float():
            whole = given[name].is_finite() & (given[name] == given[name].floor()) & (given[name].abs() < 2**62)
            broken = given[name].is_not_null() & ~whole
            if broken.any():
                raise UsageError(_at(given, broken, name, "is not a whole number"))
            parts.append(pl.col(name).cast(pl.Int64))
        elif name in schema.TOKEN_COLUMNS and not (given[name].dtype.is_integer() or given[name].dtype == pl.Null):
            raise UsageError(f'column "{name}" holds {given[name].dtype}, not counts')
        else:
            parts.append(pl.col(name).cast(kinds[types[name]]))
    try:
        return given.select(parts)
    except pl.exceptions.PolarsError as error:
        raise ColumnError(f"a column does not hold what its name says: {str(error).splitlines()[0]}") from error


def _instant(ts: pl.Series) -> pl.Expr:
    if ts.dtype == pl.String:
        try:
            instants = [None if text is None else instant_of(text) for text in ts]
        except UsageError as error:
            raise ColumnError(f'column "ts": {error}') from error
        return pl.lit(pl.Series("ts", instants, dtype=pl.Datetime("us", "UTC"))).dt.replace_time_zone(None)
    if not (ts.dtype == pl.Date or isinstance(ts.dtype, pl.Datetime)):
        raise ColumnError(f'column "ts" holds {ts.dtype}; give instants or dates')
    column = pl.col("ts")
    if isinstance(ts.dtype, pl.Datetime) and ts.dtype.time_zone is not None:
        column = column.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    return column.cast(pl.Datetime("us"))


def _filled(own: pl.DataFrame) -> pl.DataFrame:
    """Take an unknown whole for at least its known parts, as a single call and a load do."""
    parts = {
        "cache_write_tokens": ("cache_write_long_tokens",),
        "cache_read_tokens": ("cache_read_audio_tokens", "cache_read_image_tokens", "cache_read_video_tokens"),
        **{f"input_{kind}_tokens": (f"cache_read_{kind}_tokens",) for kind in ("audio", "image", "video")},
    }
    sums = {whole: pl.sum_horizontal(pl.col(part).fill_null(0) for part in held) for whole, held in parts.items()}
    return own.with_columns(
        pl.when(pl.col(whole).is_null() & (held > 0)).then(held).otherwise(pl.col(whole)).alias(whole)
        for whole, held in sums.items()
    )


def _check_counts(own: pl.DataFrame) -> None:
    for name in schema.TOKEN_COLUMNS:
        broken = (own[name] < 0) | (own[name] >= most(name))
        if broken.any():
            raise UsageError(_at(own, broken, name, f"is no possible count (0 to {most(name) - 1:,})"))
    for whole, parts in SUBSETS:
        held = own.select(pl.sum_horizontal(pl.col(part).fill_null(0) for part in parts)).to_series()
        broken = held > own[whole]
        if broken.any():
            raise UsageError(_at(own, broken, whole, f"is less than {' + '.join(parts)}, which are part of it"))


def _at(frame: pl.DataFrame, broken: pl.Series, name: str, why: str) -> str:
    rows = broken.fill_null(False).arg_true()
    more = f" ({len(rows):,} such rows)" if len(rows) > 1 else ""
    return f"impossible usage in row {rows[0]}: {name} = {frame[name][int(rows[0])]} {why}{more}"


def _keyed(own: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the (provider, model, tier, region) combinations, as a load does."""
    written = own.select(_PARTS).unique(maintain_order=True)
    canonical = written.with_columns(
        provider_=pl.col("provider").map_elements(canonical_provider, return_dtype=pl.String, skip_nulls=False),
        tier_=pl.col("service_tier").map_elements(canonical_tier, return_dtype=pl.String, skip_nulls=False),
        price_key=pl.int_range(1, pl.len() + 1, dtype=pl.Int32),
    )
    keyed = own.join(canonical, on=list(_PARTS), how="left", nulls_equal=True, maintain_order="left")
    parts = canonical.select(
        "price_key",
        provider=pl.col("provider_"),
        model=pl.col("model").fill_null(""),
        service_tier=pl.col("tier_"),
        region=pl.col("region").fill_null(""),
    )
    return parts, keyed.drop("provider_", "tier_")


def _told(session: Session, found: pl.DataFrame) -> list[pl.Series]:
    """Say of each row how its price was found and which entry it is."""
    entries, matches = session.card.entries, session.card.matches
    ids: list[int | None] = found["entry_id"].to_list()
    keys: list[int] = found["price_key"].to_list()
    used = [None if i is None else entries[i] for i in ids]
    how = [matches[key].how_priced(entry) for key, entry in zip(keys, used, strict=True)]
    return [
        pl.Series("how_matched", how, dtype=pl.String),
        pl.Series("price_file", [entry and entry.file for entry in used], dtype=pl.String),
        pl.Series("price_entry", [entry and entry.number for entry in used], dtype=pl.Int32),
    ]
