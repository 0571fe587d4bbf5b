"""The dbt project over a night's files: it builds, its tests hold, its sums are tenfold's, a wrong figure is caught."""

import shutil
from datetime import UTC, datetime

import polars as pl
import pytest
from dbt_runner import Project
from examples_folder import EXAMPLES

import tenfold as tf

FOLDER = EXAMPLES / "dbt_project"


@pytest.fixture
def project(night):
    job, _ = night
    made = Project(FOLDER, {"LLM_COSTS_OUT": str(job.out)})
    made.run()
    return made


def test_its_tests_hold_and_its_sums_are_tenfolds(project, night):
    job, _ = night
    assert set(project.tests().values()) == {0}
    assert project.rows(f"SELECT count(*) FROM {project.source('tenfold', 'bills')}") == [(1,)]
    ledger = tf.attribute(tf.open_log(job.db))
    mix = ledger.composition(["day", "team", "model"]).frame.filter(pl.col("requests") > 0)
    own = {
        (row["day"], row["team"] or "unallocated", row["model"]): int(row["cost_pusd"]) for row in mix.rows(named=True)
    }
    assert own == {row[:3]: int(row[3]) for row in project.rows("SELECT day, team, model, cost_pusd FROM daily_cost")}
    usd = project.rows("SELECT sum(cost_usd) FROM daily_cost")[0][0]
    assert int(usd.scaleb(12)) == ledger.total_pusd
    priced = project.rows("SELECT sum(requests), sum(unpriced_requests) FROM coverage")[0]
    assert priced == (ledger.coverage.requests, ledger.coverage.unpriced_requests)
    tokens, successes = project.rows("SELECT sum(tokens), sum(successes) FROM unit_cost")[0]
    assert (tokens, successes) == (ledger.coverage.tokens, ledger.coverage.requests)
    freshest = project.freshest("tenfold", "loads")
    assert abs((datetime.now(UTC).replace(tzinfo=None) - freshest).total_seconds()) < 86_400


def broken(folder, night, column):
    job, _ = night
    shutil.copytree(job.out, folder / "out", symlinks=True)
    costs = pl.read_parquet(folder / "out" / "costs.parquet")
    # the last day has a bill of tenfold's own
    costs = costs.sort("day", descending=True).with_columns(column)
    costs.write_parquet(folder / "out" / "costs.parquet")
    made = Project(FOLDER, {"LLM_COSTS_OUT": str(folder / "out")})
    made.run()
    return {name for name, rows in made.tests().items() if rows}


@pytest.mark.full
def test_one_picodollar_or_one_request_off_is_caught(tmp_path, night):
    first = pl.int_range(pl.len()) == 0
    wrong = {
        "totals_equal_tenfold": pl.when(first).then(pl.col("cost_pusd") + 1).otherwise("cost_pusd"),
        "no_request_is_lost": pl.when(first).then(pl.col("requests") + 1).otherwise("requests"),
        "one_card": pl.when(first).then(pl.lit("x")).otherwise("card_version").alias("card_version"),
        "not_null stg_costs.card_version": pl.lit(None, pl.String).alias("card_version"),
    }
    for at, (test, column) in enumerate(wrong.items()):
        (tmp_path / str(at)).mkdir()
        assert broken(tmp_path / str(at), night, column) == {test}
