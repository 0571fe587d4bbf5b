"""Incidents with planted causes: each shows in the rows, and nothing else does."""

from __future__ import annotations

from datetime import timedelta

import polars as pl
import pytest
from incident_rows import answered, by_prompt, hit, made, ratios, same, tpot
from quick import few

from tenfold._shipped.data import incidents
from tenfold._shipped.data.incidents import ALL, COMPONENTS, incident
from tenfold.latency.kinds import KINDS
from tenfold.logs import load


def small(name):
    return made(name, 1, 2500)


@pytest.mark.full
def test_equal_seeds_give_equal_incidents(tmp_path):
    first, second, other = incident("S8", 3, 600), incident("S8", 3, 600), incident("S8", 4, 600)
    assert first.before.equals(second.before)
    assert first.after.equals(second.after)
    assert (first.events, first.hosts, first.truth) == (second.events, second.hosts, second.truth)
    assert not first.before.equals(other.before)
    assert not first.before["ttft_ms"].equals(first.after["ttft_ms"])
    files = first.write(tmp_path)
    assert pl.read_parquet(files["after"]).equals(first.after)
    assert pl.read_csv(files["events"]).columns == ["ts", "kind", "what", "where"]
    assert pl.read_csv(files["hosts"]).height == len(first.hosts)
    assert load(files["after"]).requests.height == first.after.height


@pytest.mark.parametrize("name", few(1, ["S1", "S7", "S8"]))
def test_rows_hold_together(name):
    one = small(name)
    for frame in (one.before, one.after):
        good = answered(frame)
        assert good.select(
            ((pl.col("queue_ms") <= pl.col("ttft_ms")) & (pl.col("ttft_ms") <= pl.col("duration_ms"))).all()
        ).item()
        assert good.select((pl.col("cache_read_tokens") < pl.col("input_tokens")).all()).item()
        assert frame["ts"].is_sorted()
        assert frame["request_id"].is_unique().all()
        assert frame["kv_usage_ratio"].is_between(0, 1).all()
        assert frame["running"].max() <= 32
    assert one.before["ts"].max() < one.after["ts"].min()
    assert one.after["ts"].min() - one.before["ts"].max() < timedelta(seconds=5)


def test_s1_one_client_reads_the_same_few_tokens_however_long_its_prompts():
    one = small("S1")
    old, new = (frame.filter(pl.col("client").str.starts_with("codepilot")) for frame in (one.before, one.after))
    assert old["client"].unique().to_list() == ["codepilot/2.4.1"]
    assert new["client"].unique().to_list() == ["codepilot/2.5.0"]
    assert hit(old) > 0.8
    assert hit(new) < 0.15
    assert new["cache_read_tokens"].max() == 640  # ten blocks, the break
    assert (new["cache_read_tokens"] == 640).mean() > 0.9
    others = [frame.filter(~pl.col("client").str.starts_with("codepilot")) for frame in (one.before, one.after)]
    assert abs(hit(others[0]) - hit(others[1])) < 0.06
    assert same(one.before["input_tokens"], one.after["input_tokens"])
    assert [event["where"] for event in one.events] == ["codepilot/2.5.0"]
    assert ratios(one)["ttft"] > 2


@pytest.mark.full
def test_s2_first_tokens_later_answers_sooner():
    one = small("S2")
    assert ratios(one)["ttft"] > 1.8
    assert one.after["duration_ms"].median() < 0.95 * one.before["duration_ms"].median()
    assert set(one.after["deployment"]) == {"vllm-0.7.0"}
    assert [(event["kind"], event["ts"] <= one.after["ts"].min()) for event in one.events] == [("deploy", True)]


def test_s3_others_wait_behind_huge_prompts():
    one = small("S3")
    huge = one.after.filter(pl.col("input_tokens") == 200_000)
    assert huge["ts"].diff().drop_nulls().to_list() == [timedelta(minutes=5)] * (huge.height - 1)
    assert one.before["input_tokens"].max() <= 20_000
    first = huge.row(0, named=True)
    behind = answered(one.after).filter(
        (pl.col("replica") == first["replica"]) & (pl.col("input_tokens") < 20_000),
        pl.col("ts").is_between(first["ts"], first["ts"] + timedelta(milliseconds=first["ttft_ms"])),
    )
    assert behind["ttft_ms"].median() > 5000
    assert answered(one.after)["ttft_ms"].median() < 1.1 * one.before["ttft_ms"].median()


@pytest.mark.full
def test_s5_answers_of_one_feature():
    one = small("S5")
    for name in ("agent", "chat", "search", "extract"):
        before, after = (frame.filter(pl.col("feature") == name)["output_tokens"] for frame in (one.before, one.after))
        if name == "extract":
            assert after.median() / before.median() == pytest.approx(11, rel=0.2)
        else:
            assert same(before, after)
    assert tpot(one.after)["tpot"].median() < 1.15 * tpot(one.before)["tpot"].median()


@pytest.mark.full
def test_s6_one_host_decodes_at_half_speed():
    one = small("S6")
    medians = [
        dict(tpot(frame).group_by("replica").agg(pl.median("tpot")).iter_rows()) for frame in (one.before, one.after)
    ]
    found = {name: medians[1][name] / medians[0][name] for name in medians[0]}
    assert found.pop("gpu-2") == pytest.approx(2, abs=0.25)
    assert all(value == pytest.approx(1, abs=0.2) for value in found.values())
    cpu = pl.DataFrame(one.hosts).filter((pl.col("metric") == "cpu_ratio") & (pl.col("replica") == "gpu-2"))
    late = pl.col("ts") >= one.after["ts"].min()
    assert cpu.filter(late)["value"].min() > 2 * cpu.filter(~late)["value"].max()


def test_s7_the_same_prompt_again_every_twelve_seconds():
    one = small("S7")
    assert (one.before["attempt"] == 0).all()
    attempts = by_prompt(one.after)
    again = attempts.filter(pl.col("attempt").list.len() > 1)
    for row in again.iter_rows(named=True):
        assert row["attempt"] == list(range(len(row["attempt"])))
        assert len(set(row["input_tokens"])) == len(set(row["session_id"])) == 1
        assert set(row["status"]) == {"timeout"}
        gaps = [(later - earlier).total_seconds() for earlier, later in zip(row["ts"], row["ts"][1:], strict=False)]
        assert gaps == pytest.approx([12.0] * len(gaps), abs=2e-6)
    assert one.after.height / (one.after["attempt"] == 0).sum() > 1.5
    assert again["attempt"].list.max().max() == 3
    # as many fail at first in either window; only what follows from it has changed
    failed = [(frame.filter(pl.col("attempt") == 0)["status"] == "timeout").mean() for frame in (one.before, one.after)]
    assert failed[0] == pytest.approx(failed[1], abs=0.04)


def test_s8_a_lost_replica_queues_the_others_and_clients_retry():
    one = small("S8")
    start, end = one.after["ts"].min(), one.after["ts"].max()
    last = one.after.filter(pl.col("replica") == "gpu-1")["ts"].max()
    assert (last - start) / (end - start) == pytest.approx(0.15, abs=0.02)
    assert not any(row["replica"] == "gpu-1" and row["ts"] > last + timedelta(minutes=1) for row in one.hosts)
    assert one.events == []
    late = one.after.filter(pl.col("ts") > last)
    assert late["waiting"].mean() > 10 * one.before["waiting"].mean()
    given_up = one.after.filter(pl.col("status") == "timeout")
    assert given_up["ts"].min() > last
    assert (given_up["duration_ms"] == 5000).all()
    assert (one.after["status"] == "error").sum() > 0
    for row in by_prompt(one.after).filter(pl.col("attempt").list.len() > 1).iter_rows(named=True):
        assert row["attempt"] == list(range(len(row["attempt"])))
        assert "success" not in row["status"][:-1]


def test_s9_nothing_has_changed():
    one = small("S9")
    for name in ("ttft_ms", "duration_ms", "queue_ms", "input_tokens", "output_tokens", "cache_read_tokens"):
        assert same(one.before[name], one.after[name]), name
    for name in ("client", "team", "feature", "replica", "deployment", "model_revision", "status"):
        shares = [dict(frame[name].value_counts(normalize=True).iter_rows()) for frame in (one.before, one.after)]
        assert shares[0] == pytest.approx(shares[1], abs=0.06), name
    assert (one.events, one.truth.verdict, one.truth.first) == ([], "no_change", frozenset())


def test_s10_another_revision():
    one = small("S10")
    assert set(one.before["model_revision"]) & set(one.after["model_revision"]) == set()
    assert one.truth.verdict == "refused"


@pytest.mark.full
def test_s11_two_causes_and_their_shares():
    one = small("S11")
    assert one.truth.first == {2, 3}
    for name in COMPONENTS:  # Shapley values add up
        assert sum(shares.get(name, 0.0) for shares in one.truth.shares.values()) == pytest.approx(1)
    assert one.truth.shares[3]["ttft"] > 0.9
    assert one.truth.shares[2]["output"] == pytest.approx(1)


@pytest.mark.full
def test_s12_every_tenant_is_unchanged():
    one = small("S12")
    for team in one.before["team"].unique():
        pair = [frame.filter(pl.col("team") == team) for frame in (one.before, one.after)]
        for name in ("input_tokens", "output_tokens"):
            assert same(pair[0][name], pair[1][name]), (team, name)
    assert (one.after["team"] == "fornax").mean() > 8 * (one.before["team"] == "fornax").mean()
    assert one.after["output_tokens"].mean() > 1.15 * one.before["output_tokens"].mean()


def test_every_report_has_an_incident_and_a_truth():
    assert set(ALL) == {f"S{number}" for number in range(1, 13)} | {f"I{number:02d}" for number in range(1, 52)}
    for name, scenario in ALL.items():
        steps = {step for knob in scenario.knobs for step in [knob.step] if scenario.verdict == "explained"}
        assert bool(steps) == (scenario.verdict == "explained"), name
        for knob in scenario.knobs if steps else ():
            assert {KINDS[kind].step for kind in knob.kinds} == {knob.step}, name
            assert set(knob.moves) <= set(COMPONENTS), name
        assert set(scenario.consequences.values()) <= steps
    assert {name for name in ALL if ALL[name].verdict != "explained"} == {"S9", "S10", "I11", "I35", "I44", "I45"}


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in ALL if ALL[name].verdict == "explained"])
def test_a_knob_moves_what_it_is_said_to_move(name):
    scenario = ALL[name]
    every = tuple(range(len(scenario.knobs)))
    span_s = 6000 / scenario.base.pattern.per_s
    moved = {component for knob in scenario.knobs for component in knob.moves}
    # equal random numbers with the knobs and without
    with_it, without = (incidents._tails(incidents._served(scenario, chosen, 5, span_s)) for chosen in (every, ()))
    for component, ratio in zip(COMPONENTS, with_it / without, strict=True):
        assert (abs(ratio - 1) > 0.09) == (component in moved) or 0.85 < ratio < 1.15, (component, ratio)


@pytest.mark.full
@pytest.mark.parametrize("name", ["S1", "S2", "S3", "S4", "S6", "S7", "S8"])
def test_the_tail_moves_clearly_at_full_size(name):
    component = "tpot" if name == "S6" else "ttft"
    for seed in range(3):
        one = incident(name, seed)
        assert ratios(one)[component] > 1.5
        assert 18_000 < one.before.height < 22_000
