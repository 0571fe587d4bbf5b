"""Frames of the pictures: quantiles by numpy's own, a waterfall that foots, slices and marks in their place."""

import math

import diagnoses as made
import numpy as np
import polars as pl
import pytest
from latency.windows_made import made_pair

from tenfold.latency import pictures

SINCE, BORDER, UNTIL = (made.at(f"2026-09-08T{hour:02d}:00") for hour in (8, 12, 14))


@pytest.fixture(scope="module")
def pair():
    rng = np.random.default_rng(7)

    def side(since, until, count, factor):
        return {
            "ts_s": np.sort(rng.uniform(since, until, count)),
            "ttft_s": rng.lognormal(-1.5, 0.5, count) * factor,
            "output": np.ceil(rng.lognormal(5, 1, count)),
        }

    events = [(BORDER - 180, "deploy", "5512", "gpu-1"), (UNTIL + 9e6, "deploy", "later", ""), (SINCE, "", "", "")]
    return made_pair(
        side(SINCE, BORDER, 9000, 1.0),
        side(BORDER, UNTIL, 4000, 2.0),
        events=events,
        spans=((SINCE, BORDER), (BORDER, UNTIL)),
    )


def of(**changes):
    windows = (SINCE, BORDER, BORDER, UNTIL)
    return made.diagnosis(windows=windows, **changes)


def test_quantiles_of_both_windows(pair):
    frame = pictures.quantile_pairs(pair)
    assert frame["component"].unique(maintain_order=True).to_list() == ["ttft", "tpot", "output"]
    row = frame.filter(component="ttft", quantile=0.99).row(0, named=True)
    # the 99th of a hundred: 8,910 of 9,000 and 3,960 of 4,000 are at most as slow
    assert row["before"] == pytest.approx(np.sort(pair.before.ttft_s)[8909] * 1000)
    assert row["after"] == pytest.approx(np.sort(pair.after.ttft_s)[3959] * 1000)
    # 4,000 x 0.001 is fewer than five requests beyond p99.9
    assert frame.filter(component="ttft")["quantile"].max() == 0.99


def test_quantiles_of_what_is_not_logged_are_left_out():
    bare = made_pair({"ts_s": np.arange(40.0), "ttft_s": np.nan}, {"ts_s": np.arange(40.0)})
    assert "ttft" not in pictures.quantile_pairs(bare)["component"].to_list()


@pytest.mark.parametrize("one", [make() for make in made.ALL], ids=[make.__name__ for make in made.ALL])
def test_the_waterfall_foots(one):
    steps = pictures.waterfall(one)
    moved = {name for name, shift in one.shift.items() if name != "e2e" and shift.is_change} if one.causes else set()
    assert set(steps["component"]) == moved
    for (component,), rows in steps.group_by("component", maintain_order=True):
        scale = 1 if component == "output" else 1000
        before, after = (rows.filter(kind=kind)["to"][0] for kind in ("start", "end"))
        assert (before, after) == pytest.approx(
            tuple(getattr(one.shift[component], name) * scale for name in ("before", "after"))
        )
        parts = rows.filter(pl.col("kind").is_in(["cause", "unexplained"]))
        assert before + (parts["to"] - parts["from"]).sum() == pytest.approx(after)
        assert [before, *parts["to"]] == pytest.approx([*parts["from"], after])
        rest = rows.filter(kind="unexplained").row(0, named=True)
        assert (rest["to"] - rest["from"]) / (after - before) == pytest.approx(one.unexplained[component])
        assert rows["label"].n_unique() == len(rows)


def test_what_follows_is_in_the_step_of_its_cause():
    labels = pictures.waterfall(made.lost_host()).filter(kind="cause")
    assert (
        labels.rows_by_key("component", named=True)["ttft"][0]["label"]
        == "host lost (gpu-03), with queueing and retries"
    )
    assert labels.rows_by_key("component", named=True)["tpot"][0]["label"] == "host lost (gpu-03), with queueing"


def test_the_component_that_moved_most_comes_first():
    # output is five times what it was, TTFT 2.3 times
    assert pictures.waterfall(made.two_causes())["component"].unique(maintain_order=True).to_list() == [
        "output",
        "ttft",
    ]


def test_slices_hold_the_tail_of_their_requests(pair):
    frame, marks = pictures.timeline(pair, of())
    assert set(frame["component"]) == {"ttft"}  # what moved
    assert set(frame["quantile"]) == {"p50", "p99"}
    for window, since in ((pair.before, SINCE), (pair.after, BORDER)):
        rows = frame.filter(run=window.name, quantile="p99")
        middles = rows["at"].dt.epoch("ms").to_numpy() / 1000 - since
        length = 2 * middles[0]
        for middle, value in zip(middles[:-1], rows["value"], strict=False):  # the last slice may be cut short
            inside = np.abs(window.ts_s - since - middle) < length / 2
            assert inside.sum() >= 100
            assert value == pytest.approx(np.quantile(window.ttft_s[inside], 0.99) * 1000)
    assert len(frame) < 400
    found = marks.select(pl.col("at").dt.epoch("s"), "label", "kind").rows()
    assert found == [
        (SINCE, "before", "window"),
        (BORDER, "after", "window"),
        (SINCE, "event", "event"),
        (BORDER - 180, "deploy: 5512 (gpu-1)", "event"),
        (made.at("2026-09-08T14:05"), "prefix cache broke (agent/2.4.1)", "onset"),
    ]


def test_where_nothing_moved_time_shows_ttft_and_tpot(pair):
    calm = made.no_change()
    frame, _ = pictures.timeline(pair, of(shift=calm.shift, causes=(), quantile=0.95))
    assert set(frame["component"]) == {"ttft", "tpot"}
    assert set(frame["quantile"]) == {"p50", "p95"}


def test_a_log_without_times_has_no_timeline(pair):
    assert pictures.timeline(pair, made.diagnosis(windows=(math.nan,) * 4)) is None
