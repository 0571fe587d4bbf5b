"""The stream example: the same integers as the batch, unpriced and odd ones apart, a price book that comes late."""

import json
import subprocess
import sys
from collections import Counter

import polars as pl
import pytest
from examples_folder import EXAMPLES
from log_files import write
from small_stream import requests

import tenfold as tf

BRAND_NEW = """
provider = "openai"
[[price]]
model = "brand-new"
input = 1
output = 2
source = "test"
checked = 2026-10-01
"""


@pytest.fixture(scope="module")
def rows():
    return requests(2, 300)


def test_the_stream_is_the_batch(tmp_path, example, rows):
    stream = example("stream")
    totals = stream.Totals()
    *_, end = stream.follow(rows, stream.Book(), totals, every=100)
    ledger = tf.attribute(tf.load(write(tmp_path / "rows.jsonl", rows)))
    batch = ledger.composition(["team"]).frame.filter(pl.col("requests") > 0)
    assert dict(end.pusd) == {row["team"] or "unallocated": int(row["cost_pusd"]) for row in batch.rows(named=True)}
    counts = {
        row["team"] or "unallocated": row["requests"] - row["unpriced_requests"] for row in batch.rows(named=True)
    }
    assert dict(end.requests) == counts
    assert end.as_dict()["total_pusd"] == ledger.total_pusd > 0
    # what has no price is named by the same reasons, and is in no total
    by_status = Counter()
    for (_, why), count in end.unpriced.items():
        by_status[why.split(":")[0]] += count
    own = Counter()
    for row in ledger.coverage.unpriced:
        own[row["price_status"]] += row["requests"]
    assert by_status == own
    assert set(own) == {"unpriced_model", "usage_partial"}
    assert end.not_billed == ledger.coverage.not_billed_requests > 0
    assert end.broken == 0


def test_a_price_that_comes_late_applies_from_then_on(tmp_path, example):
    stream = example("stream")
    book = stream.Book(tmp_path, look_every_s=0)
    totals = stream.Totals()
    row = {**requests(1, 1)[0], "provider": "openai", "model": "brand-new", "input_tokens": 10, "cache_read_tokens": 0,
           "output_tokens": 1}  # fmt: skip
    stream.add(totals, row, book.current())
    assert not totals.pusd
    (tmp_path / "openai.toml").write_text(BRAND_NEW)
    stream.add(totals, row, book.current())
    assert totals.pusd.total() == 10 * 1_000_000 + 2_000_000
    # a file that is half written leaves the book as it was
    (tmp_path / "openai.toml").write_text('provider = "openai"\n[[price]]\nmodel = ')
    stream.add(totals, row, book.current())
    assert totals.pusd.total() == 2 * (10 * 1_000_000 + 2_000_000)
    assert totals.unpriced.total() == 1


def test_a_count_that_is_not_known_is_broken_and_not_cheap(example):
    stream = example("stream")
    totals = stream.Totals()
    book = stream.Book().current()
    for more in ({"inptu_tokens": 5}, {"input_tokens": -1}, {"input_tokens": "many"}, {"ts": "2026-10-01T12:00"}):
        stream.add(totals, {**requests(1, 1)[0], **more}, book)
    stream.add(totals, {"provider": "openai"}, book)
    assert (totals.broken, totals.pusd.total()) == (5, 0)


@pytest.mark.full
def test_from_standard_input(rows):
    lines = "".join(json.dumps(row) + "\n" for row in rows[:40]) + "no json\n\n[1]\n"
    done = subprocess.run(
        [sys.executable, EXAMPLES / "stream.py", "--every", "20"],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(documents) == 3
    assert documents[-1]["broken"] == 2
    assert documents[-1]["total_pusd"] == sum(team["pusd"] for team in documents[-1]["teams"].values()) > 0
    assert "42 requests in" in done.stderr
