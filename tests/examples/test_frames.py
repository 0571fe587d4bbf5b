"""Parquet in and out: the same rows and picodollars through Polars, Arrow's C stream and files; no floats."""

import subprocess
import sys
from decimal import Decimal

import duckdb
import polars as pl
import pytest
from examples_folder import EXAMPLES
from small_stream import requests

import tenfold as tf

MONEY = pl.Decimal(38, 0)


@pytest.fixture(scope="module")
def frame():
    return pl.DataFrame(requests(1, 60), infer_schema_length=None)


class Stream:
    """What speaks Arrow's C stream and nothing else."""

    def __init__(self, frame):
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema=None):
        return self.frame.__arrow_c_stream__(requested_schema)


@pytest.mark.full
def test_whatever_form_the_frame_has_the_price_is_the_same(tmp_path, example, frame):
    frames = example("frames")
    file = tmp_path / "requests.parquet"
    frame.write_parquet(file)
    found = frames.price_frame(frame)
    assert found.select(frame.columns).equals(frame)
    one_by_one = [
        0 if row["is_billable"] is False else tf.price(
            provider=row["provider"], model=row["model"], at=row["ts"], tier=row["service_tier"],
            usage=tf.Usage(row["input_tokens"], row["output_tokens"], row["cache_read_tokens"]),
        ).cost_pusd
        for row in frame.rows(named=True)
    ]  # fmt: skip
    assert found["cost_pusd"].to_list() == one_by_one
    for form in (frame.lazy(), pl.scan_parquet(file), Stream(frame), duckdb.sql(f"FROM '{file}'")):
        assert frames.price_frame(form).equals(found)


@pytest.mark.full
def test_an_arrow_table_goes_in_and_a_priced_frame_goes_out(frame):
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; tenfold does not need it")
    found = tf.price_many(arrow.table(frame))
    assert found["cost_pusd"].to_list() == tf.price_many(frame)["cost_pusd"].to_list()
    assert arrow.table(found).column("cost_pusd").to_pylist() == found["cost_pusd"].to_list()


@pytest.mark.full
def test_a_file_in_parts_is_the_file(tmp_path, example, frame):
    frames = example("frames")
    frame.write_parquet(tmp_path / "requests.parquet")
    sums = frames.price_parquet(tmp_path / "requests.parquet", tmp_path / "priced", rows=25)
    assert len(list((tmp_path / "priced").iterdir())) == 3
    assert pl.read_parquet(tmp_path / "priced" / "*.parquet").equals(tf.price_many(frame))
    assert sums["cost_pusd"].dtype == MONEY
    assert int(sums["cost_pusd"].sum()) == tf.price_many(frame)["cost_pusd"].sum()
    assert int(sums["requests"].sum()) == len(frame)


def test_the_ledger_out_and_back_is_the_ledger(tmp_path, example, night):
    frames = example("frames")
    job, _ = night
    whole = frames.write_ledger(job.db, tmp_path)
    sums = frames.read_ledger(tmp_path)
    mix = tf.attribute(tf.open_log(job.db)).composition(["team", "model"])
    own = {(row["team"], row["model"]): int(row["cost_pusd"]) for row in mix.frame.rows(named=True) if row["cost_pusd"]}
    assert own == {(team, model): int(pusd) for team, model, _, pusd in sums.rows()}
    assert int(sums["cost_pusd"].sum()) == mix.total_pusd == whole
    usd = sums.select(frames.to_usd(pl.col("cost_pusd"))).to_series()
    assert sum(usd) == Decimal(whole).scaleb(-12)
    daily = pl.read_parquet(tmp_path / "daily.parquet")
    assert sum(daily["cost_usd"].drop_nulls()) == Decimal(whole).scaleb(-12)
    ledger = pl.read_parquet(tmp_path / "ledger.parquet")
    money = [name for name in ledger.columns if name.endswith(("_pusd", "_units"))]
    assert money
    assert not any(ledger[name].dtype.is_float() for name in money)
    # the ledger's own rows, priced again as a frame, cost the same
    again = tf.price_many(ledger.drop("price_status", "cost_pusd"))
    assert again.select("price_status", "cost_pusd").equals(ledger.select("price_status", "cost_pusd"))


@pytest.mark.full
def test_pyarrow_reads_the_same_file(night):
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed; tenfold does not need it")
    job, _ = night
    costs = pl.read_parquet(job.out / "costs.parquet")
    table = parquet.read_table(job.out / "costs.parquet")
    assert str(table.schema.field("cost_pusd").type) == "decimal128(38, 0)"
    assert table.column("cost_pusd").to_pylist() == costs["cost_pusd"].to_list()
    assert pl.DataFrame(table).equals(costs)


@pytest.mark.full
def test_from_the_command_line(tmp_path, night):
    job, _ = night
    command = [sys.executable, EXAMPLES / "frames.py"]
    done = subprocess.run(
        [*command, "--db", job.db, "--out", tmp_path / "ledger"], capture_output=True, text=True, check=True
    )
    assert "cost_usd" in done.stdout
    refused = subprocess.run([*command, "--out", tmp_path], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
