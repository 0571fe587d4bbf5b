"""One usage object means the same counts to the single call (Python) and to a load (SQL)."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import few

from tenfold.errors import UsageError
from tenfold.logs import READERS, load, plans
from tenfold.logs.base import Detect, Reader, usage_leaves
from tenfold.store.schema import TOKEN_COLUMNS
from tenfold.usage import SHAPES, tokens_from
from tenfold.usage.shape import LISTED, steps

# A reader must declare its provider's convention; writes by lifetime beside the shape's own columns need a reader too.
PROVED = [shape for shape in SHAPES.values() if shape.includes_cache is not None and not shape.write_split]
IMPOSSIBLE = {
    *("bad_count", "cache_gt_input", "media_gt_total", "cache_write_long_gt_write", "reasoning_gt_output"),
}
# Small ones, so that sums meet totals and parts meet wholes; around what OpenAI caches at least (1,024).
COUNTS = st.sampled_from([0, 0, 1, 2, 3, 5, 10, 15, 1023, 1024, 2000])
ODD = st.sampled_from([5.0, 2.5, -1, "many", True, 10**9, None])


def test_every_readers_shape_is_proved_here():
    proved = {shape.name for shape in PROVED}
    assert {reader.shape.name for reader in READERS if reader.shape.name in SHAPES} <= proved


@st.composite
def usages(draw, shape):
    paths = [path for column in shape.counts.values() for path in column]
    usage = {}
    for path in (*paths, *shape.input_beside, *shape.output_beside, *shape.total, *shape.open_known):
        count = draw(ODD if draw(st.integers(1, 40)) == 1 else COUNTS)
        listed = LISTED.fullmatch(path)
        if draw(st.integers(1, 3)) == 1:
            continue
        if listed is not None:
            usage.setdefault(listed["list"], []).append({listed["key"]: listed["value"], listed["leaf"]: count})
            continue
        *above, leaf = steps(path)
        node = usage
        for step in above:
            node = node.setdefault(step, {})
        node[leaf] = count
    for name in shape.open_objects:
        if draw(st.integers(1, 6)) == 1:
            node = usage
            for step in name.split("."):
                node = node.setdefault(step, {})
            node["strange_tokens"] = draw(COUNTS)
    for name in shape.total:
        # Mostly a total that proves something: the declared reading, or the other one.
        if name in usage and draw(st.booleans()):
            parts = [usage.get(path) for path in paths]
            whole = [count for count in parts if type(count) is int]
            usage[name] = sum(whole[: draw(st.integers(0, len(whole)))])
    return usage


def reader_of(shape):
    return Reader(
        name="proved",
        kinds=("ndjson",),
        shape=shape,
        usage="r.u",
        leaves={"n": "VARCHAR", **usage_leaves(shape, "u.")},
        fields={"request_id": "r.n"},
        ts="NULL",
        dedup_key="r.n",
        detect=Detect(keys=(("n",),)),
    )


def loaded(shape, given_usages, monkeypatch):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "a.jsonl"
        file.write_text("".join(json.dumps({"n": str(n), "u": usage}) + "\n" for n, usage in enumerate(given_usages)))
        with monkeypatch.context() as patch:
            patch.setattr(plans, "READERS", (reader_of(shape),))
            log = load(file)
        assert log.summary["requests"] == len(given_usages), log.rejects["reason"].to_list()
        return log.requests.sort(log.requests["request_id"].cast(int)).to_dicts()


def compare(shape, usage, row):
    where = f"{shape.name} {usage} {row['flags']}"
    flags = set(row["flags"] or ())
    try:
        tokens = tokens_from(usage, shape=shape.name)
    except UsageError:
        tokens = None
    if tokens is None:
        assert flags & (IMPOSSIBLE | {"unknown_meter"}), where
        return
    assert not flags & IMPOSSIBLE, where
    assert ("unknown_meter" in flags) == bool(tokens.unknown_meters), where
    for name in TOKEN_COLUMNS:
        if name == "input_tokens" and tokens.unknown_meters:
            assert row[name] is None, where
        else:
            assert row[name] == getattr(tokens, name), f"{where}: {name}"


# One load holds many objects: a load costs far more than a row.
def check(shape, data, monkeypatch):
    found = [usage for usage in data.draw(st.lists(usages(shape), min_size=1, max_size=60)) if usage]
    for usage, row in zip(found, loaded(shape, found, monkeypatch), strict=True):
        compare(shape, usage, row)


@pytest.mark.parametrize("shape", few(3, PROVED), ids=lambda shape: shape.name)
@settings(max_examples=1, deadline=None)
@given(data=st.data())
def test_single_call_and_load_agree(shape, data):
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(shape, data, monkeypatch)


@pytest.mark.full
@pytest.mark.parametrize("shape", PROVED, ids=lambda shape: shape.name)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_single_call_and_load_agree_in_many_objects(shape, data):
    with pytest.MonkeyPatch.context() as monkeypatch:
        check(shape, data, monkeypatch)


def test_an_object_cut_down_to_its_cache_counts(monkeypatch):
    # 1,000 read and nothing uncached: 0 + 1,000. No count at all says nothing.
    found = [{"cache_read_input_tokens": 1000, "output_tokens": 3}, {"service_tier": "standard"}]
    anthropic = SHAPES["anthropic"]
    rows = loaded(anthropic, found, monkeypatch)
    assert [(row["input_tokens"], row["cache_read_tokens"]) for row in rows] == [(1000, 1000), (None, None)]
    assert [tokens_from(usage, shape="anthropic")[:2] for usage in found] == [(1000, 1000), (None, None)]


def test_all_open_objects_are_summed(monkeypatch):
    shape = SHAPES["anthropic"]._replace(name="two_open", open_objects=("cache_creation", "cache_more"))
    monkeypatch.setitem(SHAPES, "two_open", shape)
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "cache_creation": {"ephemeral_5m_input_tokens": 4},
        "cache_more": {"new_tokens": 7},
    }
    (row,) = loaded(shape, [usage], monkeypatch)
    assert tokens_from(usage, shape="two_open").cache_write_tokens == row["cache_write_tokens"] == 11
    assert "unknown_meter" in row["flags"]
