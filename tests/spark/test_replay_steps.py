"""Replays on Spark: against their slow second reading, and every step against DuckDB."""

from __future__ import annotations

import random

import pytest
from replay import frames, slow_replays
from spark.twin import spark_engine

from tenfold.replay.exact import exact_hits, key_words
from tenfold.replay.prefix import prefix_reads, session_reads


@pytest.fixture(scope="module")
def engine(spark, tmp_path_factory):
    return spark_engine(spark, tmp_path_factory.mktemp("nothing"))


def drawn(seed, count):
    """Requests on a grid on which gaps meet lifetimes, with every column that a replay reads."""
    draw = random.Random(f"replays {seed}")
    for rid in range(count):
        prompt = "".join(draw.choice("ab") for _ in range(draw.randrange(7)))
        ts = draw.choice([*range(20), None])
        delay = draw.choice([0, 1, 4, None])
        later = None if ts is None or delay is None else ts + delay
        yield {
            # row numbers as a published log has them
            "rid": 20_000 * 2**32 + rid,
            "combo": draw.randrange(2),
            "pool": draw.choice(["p", "p", "q", None]),
            "ts": ts,
            "readable_at": later,
            "stored_at": later,
            "lifetime_us": draw.choice([2, 4]),
            "blocks": [prompt[: length + 1] for length in range(len(prompt))] or draw.choice([None, []]),
            "cache_key": draw.choice(["k", "k", "l", None]),
            "session_id": draw.choice(["s", "s", "t", None]),
            "input_tokens": draw.randrange(6),
            "reaches_tokens": draw.choice([None, 0, 3]),
        }


@pytest.mark.parametrize("seed", [1, 2])
def test_replays_as_the_slow_ones_have_them(engine, seed):
    rows = list(drawn(seed, 40))
    given, blocks = frames.with_blocks(rows)
    engine.register("given", given)
    engine.register("all_blocks", blocks)
    prefix_reads(engine, "given", "found", blocks="all_blocks")
    found = engine.fetch("select combo, rid, read_blocks from found")
    assert {(combo, rid): read for combo, rid, read in found.rows()} == slow_replays.prefix(rows)
    session_reads(engine, "given", "turns")
    found = engine.fetch("select combo, rid, read_tokens from turns")
    assert {(combo, rid): read for combo, rid, read in found.rows()} == slow_replays.sessions(rows)
    words = ", ".join(f"{sql} as {name}" for name, sql in key_words(["cache_key"]).items())
    engine.step("keyed", f"select rid, {words}, ts, stored_at from given where cache_key is not null")
    for options in ({}, {"capacity": 1}, {"singleflight": True}):
        exact_hits(engine, "keyed", "hits", ttl_us=3, **options)
        hits = engine.fetch("select rid, filler_rid from hits")
        assert dict(hits.rows()) == slow_replays.exact(rows, 3, **options), options
