"""Published and cross-checked figures of the public Mooncake traces, to the digits given.

The traces: FAST '25, "Mooncake", conversation and synthetic, blocks of 512 tokens, the last one not full. The figures
were made, and come out, with requests in the order of the file, also where their times are equal; entries readable at
once; a last block that is not full counting as one, hits being at most the input; minimums and increments on what is
read. OpenAI's newer rule is rounded down to 128 tokens there, though the provider has it exact: with exact hits the
three figures would be .3443, 14.81 and 30.99 (conversation) and .6511, 49.95 and 58.60 (synthetic).
"""

from __future__ import annotations

import csv
import json
import os
from fractions import Fraction
from functools import cache
from pathlib import Path

import duckdb
import polars as pl
import pytest
from quick import few

from tenfold.replay.lru import lru_hits
from tenfold.replay.prefix import prefix_reads
from tenfold.store.engines.duckdb import DuckDBEngine

pytestmark = pytest.mark.real_data

DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data")) / "mooncake"
TRACES = ("conversation", "synthetic")
BLOCK = 512
LIFETIMES = (30, 60, 300, 600, 1800, 3600)
TABLE_CAPACITIES = (10**4, 10**5, 10**6, 2 * 10**6, 4 * 10**6, 5 * 10**6, 8 * 10**6, 10**7, 5 * 10**7, 10**8)


@cache
def trace(name):
    file = DATA / f"{name}_trace.jsonl"
    if not file.is_file():
        pytest.skip("no real data: set TENFOLD_REAL_DATA")
    return [json.loads(line) for line in file.read_text().splitlines()]


def asked(name):
    return [(row["hash_ids"], row["input_length"]) for row in trace(name)]


@cache
def lru(name, capacity_tokens, **options):
    return lru_hits(asked(name), block_tokens=BLOCK, capacity_tokens=capacity_tokens, **options)


def digits(ratio):
    return f"{float(ratio):.4f}"


@cache
def read_runs():
    """(trace, lifetime in s) to the leading blocks that each request reads: one replay, traces as pools."""
    engine = DuckDBEngine(duckdb.connect())
    rows, number = [], 0
    for name in TRACES:
        for row in trace(name):
            rows.append((number, name, row["timestamp"] * 1000, [str(block) for block in row["hash_ids"]]))
            number += 1
    schema = {"rid": pl.Int64, "pool": pl.String, "ts": pl.Int64, "blocks": pl.List(pl.String)}
    frame = pl.DataFrame(rows, schema=schema, orient="row")
    # Times of the file are whole milliseconds: its order within one instant fits into less than half of one, and half a
    # millisecond more of lifetime leaves gaps as they are.
    frame = frame.with_columns(place=pl.int_range(pl.len()).over("pool", "ts"))
    assert frame["place"].max() < 499
    frame = frame.with_columns(ts=(pl.col("ts") + pl.col("place")).cast(pl.Datetime("us")))
    engine.register("trace", frame)
    blocks = frame.with_columns(block_no=pl.int_ranges(1, pl.col("blocks").list.len() + 1, dtype=pl.Int32))
    engine.register("prefix_blocks", blocks.explode("blocks", "block_no").select("rid", "block_no", hash="blocks"))
    engine.register("lifetimes", pl.DataFrame({"combo": LIFETIMES}, schema={"combo": pl.Int32}))
    engine.step(
        "requests",
        "select rid, combo, pool, ts, ts as readable_at, combo * cast(1000000 as bigint) + 499 as lifetime_us, "
        "rid as request, 0 as dropped, len(blocks) as reach_blocks from trace cross join lifetimes",
    )
    prefix_reads(engine, "requests", "found")
    found = engine.fetch("select pool, combo, read_blocks from trace join found using (rid) order by rid")
    return {which: list(part["read_blocks"]) for which, part in found.group_by("pool", "combo", maintain_order=True)}


def tokens_read(name, lifetime_s, minimum=0, increment=1):
    lengths = [row["input_length"] for row in trace(name)]
    for length, blocks in zip(lengths, read_runs()[name, lifetime_s], strict=True):
        read = min(blocks * BLOCK, length)
        read -= read % increment
        yield length, read if read >= minimum else 0


@pytest.mark.parametrize(
    ("name", "shares"),
    [
        ("conversation", {30: ".0597", 60: ".1054", 300: ".2934", 600: ".3501", 3600: ".3736"}),
        ("synthetic", {30: ".2194", 60: ".3276", 300: ".5951", 600: ".6455", 3600: ".6512"}),
    ],
)
def test_lifetimes(name, shares):
    total = sum(row["input_length"] for row in trace(name))
    for lifetime_s, share in shares.items():
        assert digits(sum(read for _, read in tokens_read(name, lifetime_s)) / total) == f"0{share}"


RULES = {
    "anthropic_5m": (300, 1.25, 0.1, 1024, 1),
    "anthropic_1h": (3600, 2, 0.1, 1024, 1),
    "opus_5_5": (300, 1.25, 0.05, 512, 1),
    "openai_300": (300, 1, 0.1, 1024, 128),
    "openai_3600": (3600, 1, 0.1, 1024, 128),
    "openai_1800": (1800, 1.25, 0.1, 1024, 128),
}


@pytest.mark.parametrize(
    ("name", "rule", "share", "net", "naive"),
    [
        ("conversation", "anthropic_5m", "0.2637", "5.54", "23.73"),
        ("conversation", "anthropic_1h", "0.3474", "-33.14", "31.26"),
        ("conversation", "opus_5_5", "0.2934", "10.21", "27.87"),
        ("conversation", "openai_300", "0.2636", "23.73", "23.73"),
        ("conversation", "openai_3600", "0.3473", "31.26", "31.26"),
        ("conversation", "openai_1800", "0.3442", "14.80", "30.98"),
        ("synthetic", "anthropic_5m", "0.5950", "43.50", "53.55"),
        ("synthetic", "anthropic_1h", "0.6511", "24.01", "58.60"),
        ("synthetic", "opus_5_5", "0.5951", "46.45", "56.54"),
        ("synthetic", "openai_300", "0.5948", "53.54", "53.54"),
        ("synthetic", "openai_3600", "0.6509", "58.58", "58.58"),
        ("synthetic", "openai_1800", "0.6509", "49.93", "58.58"),
    ],
)
def test_rules_of_providers(name, rule, share, net, naive):
    """Input spend only; prompts below the minimum are neither read nor written."""
    lifetime_s, write, read_rate, minimum, increment = RULES[rule]
    rows = list(tokens_read(name, lifetime_s, minimum, increment))
    total = sum(length for length, _ in rows)
    read = sum(found for _, found in rows)
    cost = sum(found * read_rate + (length - found) * write if length >= minimum else length for length, found in rows)
    assert digits(read / total) == share
    assert f"{100 * (1 - cost / total):.2f}" == net
    assert f"{100 * read / total * (1 - read_rate):.2f}" == naive


OURS = {
    "conversation": ".0425 .0427 .0543 .0865 .1783 .2111 .2663 .2908 .3707 .3736",
    "synthetic": ".0018 .0171 .1451 .2328 .3749 .4283 .5357 .5770 .6512 .6512",
}


@pytest.mark.parametrize("name", few(1, TRACES))
def test_capacities(name):
    found = [digits(lru(name, capacity).token_ratio) for capacity in TABLE_CAPACITIES]
    assert found == [f"0{share}" for share in OURS[name].split()]
    assert digits(lru(name, None).token_ratio) == found[-1]


def test_how_far_the_papers_figure_is():
    """Figure 9 of the paper: synthetic within 1.2 points; conversation 2.7 to 3.7 points above, but at the smallest.

    The gap is not explained. It lies within what blocks of 512 tokens can hide (511 / 12,035 tokens: 4.2 points).
    """
    with (DATA / "fig9_published.csv").open() as file:
        paper = {int(row["capacity_tokens"]): row for row in csv.DictReader(file)}
    assert tuple(paper) == TABLE_CAPACITIES
    gaps = {
        name: [100 * (float(paper[at][name]) - float(lru(name, at).token_ratio)) for at in TABLE_CAPACITIES]
        for name in TRACES
    }
    assert all(-0.6 < gap < 1.2 for gap in gaps["synthetic"])
    assert round(gaps["conversation"][0], 2) == 0.24
    assert all(2.65 < gap < 3.7 for gap in gaps["conversation"][1:])


def test_other_definitions_without_a_limit():
    expected = {"conversation": ("0.3664", "0.3843", "0.3734"), "synthetic": ("0.6396", "0.4232", "0.6504")}
    for name, (blocks, mean_of_ratios, full_blocks) in expected.items():
        found = lru(name, None)
        unique = len({block for ids, _ in asked(name) for block in ids})
        assert digits(found.block_ratio) == blocks
        assert found.hit_blocks == found.blocks - unique
        # the mean over requests is of blocks, not tokens; full blocks only: reads rounded down to a block
        runs = read_runs()[name, 3600]
        ratios = [run / len(ids) for (ids, _), run in zip(asked(name), runs, strict=True)]
        assert digits(sum(ratios) / len(ratios)) == mean_of_ratios
        rounded = sum(min(run, tokens // BLOCK) * BLOCK for (_, tokens), run in zip(asked(name), runs, strict=True))
        assert digits(rounded / found.tokens) == full_blocks


@pytest.mark.parametrize(
    ("name", "capacities", "shares"),
    few(
        1,
        [
            (
                "conversation",
                (439 * BLOCK, 3513 * BLOCK, 28_108 * BLOCK, 4 * 10**6, None),
                ".0454 .0766 .3364 .1806 .3981",
            ),
            (
                "synthetic",
                (445 * BLOCK, 3566 * BLOCK, 28_533 * BLOCK, 4 * 10**6, None),
                ".0583 .3206 .8339 .5367 .8627",
            ),
        ],
    ),
)
def test_the_second_half_of_the_requests(name, capacities, shares):
    """As kvcache-simulator 0.1.3 (4.5/7.7/33.6 and 5.8/32.1/83.4 %, at most 39.8 and 86.3 %) and llmtrafficlens."""
    half = len(trace(name)) // 2
    found = [digits(lru(name, capacity, counted_from=half).token_ratio) for capacity in capacities]
    assert found == [f"0{share}" for share in shares.split()]


@pytest.mark.parametrize(("name", "at_3m", "at_50m"), [("conversation", 37.1, 99.2), ("synthetic", 48.4, 100)])
def test_share_of_the_most_there_is(name, at_3m, at_50m):
    most = lru(name, None).token_ratio
    assert round(float(100 * lru(name, 3 * 10**6).token_ratio / most), 1) == at_3m
    assert round(float(100 * lru(name, 5 * 10**7).token_ratio / most), 1) == at_50m


@pytest.mark.parametrize("name", TRACES)
def test_a_tenth_of_the_blocks_is_near(name):
    """Here the sample's cache has room for 1,953 blocks; with room for 195 (a million tokens) it is 2.3 points off."""
    sampled = lru(name, 10**7, rate=Fraction(1, 10))
    assert abs(sampled.token_ratio - lru(name, 10**7).token_ratio) < 0.01
