"""``tf.Spark`` for users: their own partitioned Parquet, published folders, and clear errors."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from small_logs import CUT, book, ledger, row

import tenfold as tf
from tenfold.errors import StoreError
from tenfold.ledger import Window
from tenfold.store import schema


@pytest.fixture
def on(spark):
    return tf.Spark(spark)


def rows(count=40, **more):
    start = datetime(2026, 6, 4, 20)
    return [
        row(
            request_id=f"r{n}",
            ts=start + timedelta(minutes=17 * n) if n % 9 else None,
            team=["a", "o'neill", None, ""][n % 4],
            cache_read_tokens=[0, None, 100][n % 3],
            service_tier=[None, "default", "Batch"][n % 3],
            provider=["OpenAI", "openai", None][n % 3],
            session_id=f"s{n % 5}",
            **more,
        )
        for n in range(count)
    ]


def parquet(folder, frame, name="part 'one' {x}.parquet"):
    folder.mkdir(parents=True, exist_ok=True)
    frame.write_parquet(folder / name)
    return folder


def test_own_parquet_is_billed_as_a_load_bills_it(on, tmp_path):
    frame = pl.DataFrame(rows(), infer_schema_length=None)
    parts = frame.with_row_index("n").partition_by("team", include_key=True, maintain_order=True)
    own = tmp_path / "own"
    for place, part in enumerate(parts):
        team = part["team"][0]
        folder = {None: "__HIVE_DEFAULT_PARTITION__", "": "none", "o'neill": "o%27neill"}.get(team, team)
        parquet(own / f"team={folder}" / "x=007", part.drop("team", "n"), f"p{place}.parquet")
    load_of = frame.with_columns(pl.col("team").replace("", "none"))
    file = parquet(tmp_path / "flat", load_of, "all.parquet") / "all.parquet"
    loaded = tf.load(file, db=tmp_path / "usage.duckdb")
    prices = book(CUT)
    here, there = tf.attribute(loaded, prices), tf.attribute(on.open_log(own), prices)
    by = ["team", "provider", "service_tier", "day"]
    assert there.composition(by).frame.equals(here.composition(by).frame)
    assert there.coverage == here.coverage
    assert there.log.summary["requests"] == 40
    raw = ["session_id", "user_id"]
    assert there.composition(raw).frame.equals(here.composition(raw).frame)
    with there.session() as session:
        ids = session.engine.fetch("select rid, request_id, source_line from requests")
        assert ids["rid"].drop_nulls().n_unique() == 40
        again = session.engine.fetch("select rid, request_id, source_line from requests")
        assert again.sort("rid").equals(ids.sort("rid"))


def test_types_are_taken_as_they_are_meant(on, tmp_path):
    zone = timezone(timedelta(hours=2))
    at = datetime(2026, 6, 4, 23, 30, tzinfo=zone)
    zoned = pl.DataFrame(
        {
            "ts": pl.Series([at, at], dtype=pl.Datetime("us", "Europe/Berlin")),
            "provider": ["gcp.gemini", "OPENAI"],
            "model": ["m", "stacks"],
            "input_tokens": [1000.0, 1000.0],
            "output_tokens": pl.Series([100, 100], dtype=pl.Int32),
            "user_id": [7, 8],
            "duration_ms": [float("nan"), 5.0],
            "extra": [1, 2],
        }
    )
    own = parquet(tmp_path / "own", zoned)
    naive = zoned.with_columns(pl.col("ts").dt.convert_time_zone("UTC").dt.replace_time_zone(None)).drop("duration_ms")
    parquet(own, naive, "naive.parquet") if False else None
    log = on.open_log(own)
    made = tf.attribute(log, book())
    with made.session() as session:
        found = session.engine.fetch(
            "select ts, provider, user_id, duration_ms, flags, token_source from requests order by user_id"
        )
    assert found["ts"].to_list() == [datetime(2026, 6, 4, 21, 30)] * 2
    assert found["provider"].to_list() == ["google", "openai"]
    assert found["user_id"].to_list() == ["7", "8"]
    assert found["duration_ms"].to_list() == [None, 5.0]
    assert found["flags"].to_list() == [["bad_value"], None]
    assert found["token_source"].to_list() == ["reported"] * 2
    assert made.composition(["provider"]).frame["cost_pusd"].to_list() == [0, 3 * 10**9]
    naive_log = on.open_log(parquet(tmp_path / "naive", naive))
    assert tf.attribute(naive_log, book()).total_pusd == made.total_pusd
    assert naive_log.log_hash != log.log_hash


def test_rows_of_several_files_are_told_apart(on, tmp_path):
    """Conversations whose turns lie in two files, at the same places: cache breaks pair what a load pairs."""
    own = tmp_path / "own"
    for part in range(2):
        made = [
            row(
                request_id=f"{session}-{turn}",
                ts=datetime(2026, 6, 4, 20) + timedelta(minutes=[0, 2, 90, 91][turn], seconds=session),
                session_id=f"s{session}",
                model="stacks",
                input_tokens=3_000 + 500 * turn,
                cache_read_tokens=2_944 * (turn % 2),
            )
            for session in range(3)
            for turn in range(4)
            if (session + turn) % 2 == part
        ]
        parquet(own, pl.DataFrame(made, infer_schema_length=None), f"{part}.parquet")
    loaded = tf.load(sorted(own.iterdir()), db=tmp_path / "usage.duckdb")
    here, there = (tf.attribute(log, book(CUT)) for log in (loaded, on.open_log(own)))
    with there.session() as session, here.session() as other:
        places = "select request_id, load_id, source_line from requests order by request_id"
        found = session.engine.fetch(places)
        assert found.select("load_id", "source_line").n_unique() == 12
        assert found.rows() == other.engine.fetch(places).rows()
    found, told = tf.cache_breaks(there), tf.cache_breaks(here)
    assert told.frame["turns"].sum() > 2
    for name in ("frame", "gaps", "heads", "misses"):
        assert_frame_equal(getattr(found, name), getattr(told, name), check_dtypes=False)


def test_repeated_ids_are_counted_and_not_dropped(on, tmp_path):
    frame = pl.DataFrame([row(request_id=name) for name in ("a", "a", "b", None, None)], infer_schema_length=None)
    log = on.open_log(parquet(tmp_path / "own", frame))
    assert log.repeated_ids == 1
    assert "5 requests in 1 file" in repr(log)
    assert tf.attribute(log, book()).total_pusd == 5 * 3 * 10**9


GOOD = {"ts": [datetime(2026, 6, 1)] * 2, "input_tokens": [5, 5], "output_tokens": [1, 1]}


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"input_tokens": [-1, 5]}, "input_tokens below zero (1 row)"),
        ({"input_tokens": [1.5, 5.0]}, "input_tokens not a whole number (1 row)"),
        ({"input_tokens": [float("inf"), float("nan")]}, "input_tokens not a whole number (2 rows)"),
        (
            {"cache_read_tokens": [3, 3], "cache_write_tokens": [3, 0]},
            "cache_read_tokens + cache_write_tokens above inp",
        ),
        ({"reasoning_tokens": [2, 0]}, "reasoning_tokens above output_tokens (1 row)"),
        ({"ts": ["2026-06-01", "x"]}, "ts is string, not TIMESTAMP"),
        ({"model": [1.0, 2.0]}, "model is double, not VARCHAR"),
        ({"is_stream": [1, 0]}, "is_stream is bigint, not BOOLEAN"),
        (
            {"input_token": [1, 2], "input_tokens": None, "ts": None},
            'no column input_tokens or ts. Did you mean "input_token"',
        ),
        ({"cached_read_tokens": [1, 2]}, 'none of tenfold\'s. Did you mean "cache_read_tokens"'),
    ],
)
def test_what_cannot_be_billed_is_refused(on, tmp_path, columns, says):
    held = {name: values for name, values in {**GOOD, **columns}.items() if values is not None}
    with pytest.raises(StoreError) as found:
        on.open_log(parquet(tmp_path / "own", pl.DataFrame(held, strict=False)))
    assert says in str(found.value)
    assert str(tmp_path) in str(found.value)


def test_places_that_hold_nothing(on, tmp_path):
    (tmp_path / "empty").mkdir()
    for place, says in ((tmp_path / "absent", "no such path"), (tmp_path / "empty", "no Parquet file")):
        with pytest.raises(StoreError, match=says):
            on.open_log(place)
    with pytest.raises(StoreError, match="no request in it"):
        on.open_log(parquet(tmp_path / "none", pl.DataFrame(GOOD).clear()))
    two = parquet(tmp_path / "two", pl.DataFrame({**GOOD, "model": ["m", "m"]}), "a.parquet")
    parquet(two, pl.DataFrame({**GOOD, "model": [1.5, 2.5]}), "b.parquet")
    with pytest.raises(StoreError, match="has one type in one file"):
        on.open_log(two)


def test_duckdb_stores_and_what_only_duckdb_does_are_refused(on, tmp_path):
    made = ledger([row()])
    with pytest.raises(StoreError, match="tenfold publish"):
        assert tf.attribute(made.log, book(), engine=on).total_pusd
    log = on.open_log(parquet(tmp_path / "own", pl.DataFrame(GOOD)))
    with pytest.raises(StoreError, match="DuckDB alone"):
        assert len(log.requests)
    with pytest.raises(StoreError, match="DuckDB alone"):
        tf.export_focus(tf.attribute(log, book()), tmp_path / "f.csv")


@pytest.mark.parametrize("name", ["a.parquet", "b.parquet"])
def test_files_that_change_are_noticed(on, tmp_path, name):
    own = parquet(tmp_path / "own", pl.DataFrame(GOOD), "a.parquet")
    log = on.open_log(own)
    parquet(own, pl.concat([pl.DataFrame(GOOD)] * 2), name)
    with pytest.raises(StoreError, match="came, went or changed"):
        assert tf.attribute(log, book()).total_pusd


def test_the_users_session_keeps_its_settings_and_views(spark, on, tmp_path):
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.sql("select 1 as mine").createOrReplaceTempView("requests")
    try:
        assert tf.attribute(on.open_log(parquet(tmp_path / "own", pl.DataFrame(GOOD))), book()).total_pusd == 0
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert spark.sql("select * from requests").collect()[0][0] == 1
        assert [view.viewName for view in spark.sql("show views").collect()] == ["requests"]
    finally:
        spark.catalog.dropTempView("requests")
        spark.conf.unset("spark.sql.session.timeZone")


def test_published_folder(on, tmp_path):
    frame = pl.DataFrame(rows(60), infer_schema_length=None)
    frame.write_parquet(tmp_path / "a.parquet")
    loaded = tf.load(tmp_path / "a.parquet", db=tmp_path / "usage.duckdb")
    tf.publish(loaded, tmp_path / "out")
    here = tf.attribute(loaded, book(CUT))
    published = tf.open_log(tmp_path / "out")
    by = ["team", "day", "service_tier"]
    for there in (
        tf.attribute(published, book(CUT), engine=on),
        tf.attribute(on.open_log(tmp_path / "out"), book(CUT)),
    ):
        assert there.composition(by).frame.equals(here.composition(by).frame)
        assert there.log.log_hash == here.log.log_hash
        with there.session() as session, here.session() as own:
            engine = session.engine
            assert engine.fetch("select count(distinct rid) as n from requests").item() == 60
            for name in schema.TABLES:
                if name not in ("texts", "meta"):
                    found = engine.fetch(f"select count(*) as n from {name}").item()
                    assert found == own.engine.fetch(f"select count(*) as n from {name}").item(), name
    window = Window(datetime(2026, 6, 5, tzinfo=UTC), None)
    cut = tf.attribute(published, book(CUT), engine=on).within(window)
    assert cut.composition(["user_id"]).frame.equals(here.within(window).composition(["user_id"]).frame)


@pytest.mark.usefixtures("spark")
def test_old_spark_is_refused():
    class Old:
        version = "3.5.1"

    with pytest.raises(StoreError, match="too old: 4.1"):
        tf.Spark(Old())
