"""Spark's engine by itself: types, names, errors, and nothing that stays behind."""

from __future__ import annotations

import gc
import time
from datetime import date, datetime
from decimal import Decimal

import polars as pl
import pytest
from spark.twin import same

from tenfold.errors import StepError
from tenfold.store.engines.spark import SETTINGS, SparkEngine


@pytest.fixture
def engine(spark):
    session = spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    made = SparkEngine(session)
    yield made
    made.close()


def test_every_type_comes_back_as_it_went(engine):
    given = pl.DataFrame(
        {
            "u8": pl.Series([255, None], dtype=pl.UInt8),
            "u16": pl.Series([65_535, None], dtype=pl.UInt16),
            "u32": pl.Series([2**32 - 1, None], dtype=pl.UInt32),
            "u64": pl.Series([2**64 - 1, None], dtype=pl.UInt64),
            "i128": pl.Series([10**37, None], dtype=pl.Int128),
            "day": [date(1900, 1, 1), None],
            "at": [datetime(2026, 3, 29, 2, 30, 0, 1), None],
            "money": pl.Series([Decimal(10**37), None], dtype=pl.Decimal(38, 0)),
            "name": ["o'neill \\ \" 猫", None],
            "none": [None, None],
            "list": [["a"], None],
            "is_so": [True, None],
            "real": [0.1, None],
        }
    )
    engine.register("given", given)
    same(
        given.with_columns(pl.col("none").cast(pl.Int32)),
        engine.fetch("select * from given order by u8 nulls last"),
        in_order=True,
    )
    engine.register("given", given.clear())
    assert engine.fetch("select * from given").is_empty()


def test_views_read_what_their_names_mean_when_used(engine):
    engine.register("base", pl.DataFrame({"a": [1]}))
    engine.step("view", "select a + 1 as b from base")
    engine.step("kept", "select * from view", materialised=True)
    engine.register("base", pl.DataFrame({"a": [10]}))
    assert engine.fetch("select (select b from view) as view, (select b from kept) as kept").row(0) == (11, 2)


def test_texts_are_taken_as_written(engine):
    assert engine.fetch("select 'a\\nb' as one, 'o''neill' as two").row(0) == ("a\\nb", "o'neill")


@pytest.mark.parametrize("sql", ["select nothing_here from range(1)", "select from where", "select 1 / 0 as x"])
def test_errors_carry_the_step_and_its_text(engine, sql):
    with pytest.raises(StepError) as found:
        engine.step("broken", sql, materialised=True)
    assert (found.value.step, found.value.sql) == ("broken", sql)
    with pytest.raises(StepError):
        engine.fetch(sql)


def test_sums_that_do_not_fit_are_errors(engine):
    engine.register("large", pl.DataFrame({"a": [2**62, 2**62]}))
    with pytest.raises(StepError, match="OVERFLOW"):
        engine.fetch("select sum(a) as a from large")
    assert engine.fetch("select sum(cast(a as decimal(38, 0))) as a from large").item() == 2**63


def test_what_was_kept_is_freed(spark, engine):
    java = spark.sparkContext._jsc.sc()
    before = java.getPersistentRDDs().size()
    for number in range(3):
        engine.step(f"kept{number}", f"select id + {number} as a from range(1000)", materialised=True)
        engine.step("again", "select * from range(10)", materialised=True)
    assert java.getPersistentRDDs().size() > before
    engine.close()
    assert not engine.session.catalog.listTables()
    deadline = time.monotonic() + 60
    while java.getPersistentRDDs().size() > before and time.monotonic() < deadline:
        gc.collect()
        spark.sparkContext._jvm.System.gc()
        time.sleep(0.2)
    assert java.getPersistentRDDs().size() <= before


def test_steps_are_kept_where_a_folder_is_set(spark, engine, tmp_path):
    spark.sparkContext.setCheckpointDir(str(tmp_path))
    engine.keeps_files = True  # as where the session began with spark.checkpoint.dir
    engine.step("kept", "select id as a from range(10)", materialised=True)
    assert engine.fetch("select sum(a) as a from kept").item() == 45
    assert list(tmp_path.rglob("part-*"))
