"""Small replicas of incidents that were reported: each shows in its rows as it was reported."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from incident_rows import answered, by_prompt, hit, made, ratios, same, tpot


def by(frame, column, value):
    """Medians, or means of what is no time, by label."""
    how = pl.col(value).median() if value.endswith("_ms") else pl.col(value).mean()
    return dict(frame.group_by(column).agg(how).iter_rows())


def codepilot(frame):
    return frame.filter(pl.col("client").str.starts_with("codepilot"))


def pinned_at(tokens):
    return lambda one: codepilot(one.after)["cache_read_tokens"].max() == tokens


def all_or_nothing(one):
    share = codepilot(one.after).select(pl.col("cache_read_tokens") / pl.col("input_tokens")).to_series()
    return 0.3 < (share < 0.01).mean() < 0.7 and (share.is_between(0.01, 0.3)).mean() < 0.05


def memory_runs_out(one):
    kv = [frame["kv_usage_ratio"].quantile(0.99) for frame in (one.before, one.after)]
    preempted = [frame["preemptions"].sum() for frame in (one.before, one.after)]
    return kv[0] < 0.8 and kv[1] > 0.93 and preempted[0] < 5 < preempted[1]


def creeps(one):
    third = [part["kv_usage_ratio"].mean() for part in thirds(one.after)]
    return memory_runs_out(one) and third[2] > 1.25 * third[0]


def thirds(frame):
    return [frame[at * frame.height // 3 : (at + 1) * frame.height // 3] for at in range(3)]


def huge(tokens, seconds):
    def shows(one):
        found = one.after.filter(pl.col("input_tokens") == tokens)["ts"]
        gaps = set(found.diff().drop_nulls().dt.total_seconds())
        return one.before.filter(pl.col("input_tokens") == tokens).is_empty() and gaps == {seconds}

    return shows


def deployed(kind="deploy"):
    def shows(one):
        changed = set(one.before["deployment"]).isdisjoint(one.after["deployment"])
        return changed and [event["kind"] for event in one.events] == [kind]

    return shows


def only_structured(one):
    late = [by(frame, "is_structured", "ttft_ms") for frame in (one.before, one.after)]
    return late[1][True] > 20 * late[0][True] and late[1][False] < 1.1 * late[0][False] and deployed()(one)


def decays(one):
    tail = [part["tpot"].quantile(0.99) for part in thirds(tpot(one.after))]
    return tail[0] > 1.5 * tail[2] and tpot(one.after)["tpot"].median() < 1.1 * tpot(one.before)["tpot"].median()


def first_ones(one):
    part = one.after.height // 20
    return one.after[:part]["ttft_ms"].median() > 20 * one.after[2 * part :]["ttft_ms"].median()


def outputs(factor, *, flat=1.15):
    def shows(one):
        of = [frame["output_tokens"].mean() for frame in (one.before, one.after)]
        slower = tpot(one.after)["tpot"].median() / tpot(one.before)["tpot"].median()
        return of[1] / of[0] == pytest.approx(factor, rel=0.1) and slower < flat

    return shows


def one_host(name, *, ttft, answers):
    def shows(one):
        sooner = [by(frame, "replica", "ttft_ms") for frame in (one.before, one.after)]
        faster = [by(tpot(frame), "replica", "tpot") for frame in (one.before, one.after)]
        found = {at: (sooner[1][at] / sooner[0][at], faster[1][at] / faster[0][at]) for at in sooner[0]}
        mine = found.pop(name)
        rest = max(max(pair) for pair in found.values())
        return ttft[0] < mine[0] < ttft[1] and answers[0] < mine[1] < answers[1] and rest < 1.25

    return shows


def tail_only(one):
    good = [answered(frame)["ttft_ms"] for frame in (one.before, one.after)]
    return good[1].quantile(0.99) > 2 * good[0].quantile(0.99) and good[1].median() < 1.15 * good[0].median()


def after_a_gap(one):
    ends = pl.col("ts") + pl.duration(microseconds=(pl.col("duration_ms") * 1000).cast(pl.Int64))
    gap = (pl.col("ts") - ends.cum_max().shift().over("replica")).dt.total_seconds(fractional=True)
    found = one.after.with_columns(idle=gap >= 10).drop_nulls("idle")
    late = by(found, "idle", "ttft_ms")
    return late[True] > 5 * late[False]


def heats_up(one):
    third = [part["tpot"].median() for part in thirds(tpot(one.after))]
    return third[2] > 1.2 * third[0] > 1.2 * 0.95 * tpot(one.before)["tpot"].median()


def longer_input(one):
    of = [by(frame, "feature", "input_tokens") for frame in (one.before, one.after)]
    factors = {name: of[1][name] / of[0][name] for name in of[0]}
    return factors.pop("search") > 1.6 and max(factors.values()) < 1.2


def errors_only(one):
    as_fast = same(answered(one.before)["ttft_ms"], answered(one.after)["ttft_ms"])
    return (one.after["status"] == "error").mean() > 0.1 and as_fast


def lattice(*seconds):
    """Starts of attempts at a prompt are as far apart as the client's limit and its pauses say."""

    def shows(one):
        attempts = by_prompt(one.after)["ts"].to_list()
        gaps = [np.diff([at.timestamp() for at in row]) for row in attempts if len(row) > 1]
        right = all(np.allclose(row, seconds[: row.size], atol=1e-4) for row in gaps)
        return right and one.after.height > 1.4 * one.before.height

    return shows


def overlapping(one):
    first = one.after.filter(pl.col("status") == "cancelled")
    return (first["duration_ms"] > 2500).mean() > 0.2 and lattice(2.5, 2.5, 2.5)(one)


SIGNATURES = {
    "I01": pinned_at(0), "I02": pinned_at(64), "I03": all_or_nothing, "I05": pinned_at(128),
    "I06": lambda one: 0.2 < hit(codepilot(one.after)) < 0.75 < hit(codepilot(one.before)),
    "I07": lambda one: hit(one.after) < hit(one.before) - 0.2 and one.after["replica"].n_unique() == 4,
    "I08": lambda one: ratios(one)["ttft"] < 0.5 and ratios(one)["tpot"] > 1.4,
    "I09": memory_runs_out, "I11": lambda one: max(ratios(one).values()) < 3, "I12": memory_runs_out, "I13": creeps,
    "I14": huge(250_000, 300), "I16": huge(52_900, 40), "I19": huge(30_000, 25), "I17": deployed("config"),
    "I18": lambda one: (one.after["replica"] == "gpu-0").mean() > 1.5 * (one.before["replica"] == "gpu-0").mean(),
    "I21": deployed(), "I22": deployed(), "I23": deployed(), "I24": deployed(), "I25": deployed(),
    "I26": only_structured, "I27": deployed("config"),
    "I28": lambda one: deployed()(one) and one.after["kv_usage_ratio"].mean() > 3 * one.before["kv_usage_ratio"].mean(),
    "I29": deployed(), "I30": decays, "I31": first_ones,
    "I33": longer_input,
    "I34": outputs(0.5), "I36": outputs(1.7),
    "I38": tail_only, "I39": after_a_gap, "I40": heats_up,
    "I41": one_host("gpu-3", ttft=(1.5, 3), answers=(1.7, 2.5)),
    "I42": one_host("gpu-0", ttft=(1.5, 3), answers=(0.9, 1.2)),
    "I44": errors_only,
    "I45": lambda one: 0.12 < (one.after["deployment"] == "vllm-0.6.1.post2-1m").mean() < 0.2,
    "I47": lattice(610, 610, 610), "I48": lattice(*[1.2] * 16), "I49": lattice(11, 12, 14, 18),
    "I50": lattice(900, 900, 900), "I51": overlapping,
}  # fmt: skip


@pytest.mark.parametrize("name", ["I03", "I26", "I41"])
def test_a_report_shows_as_it_was_reported(name):
    assert SIGNATURES[name](made(name, 2, 2500))


@pytest.mark.full
@pytest.mark.parametrize("name", SIGNATURES)
def test_every_report_shows_as_it_was_reported(name):
    for seed in (1, 2):
        assert SIGNATURES[name](made(name, seed, 6000)), seed
