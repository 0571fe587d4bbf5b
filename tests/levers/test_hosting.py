"""The levers of self-hosted serving: when they have a figure, when not and why, and what they say beside it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, timedelta
from decimal import Decimal

import pytest
from hosted_logs import BY_NAME, HOSTING, LLAMA, QWEN, START, hosted, pool, portfolio, rows, site
from small_logs import ledger, row

import tenfold as tf
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.levers import Look, procure
from tenfold.levers.sites import factor
from tenfold.serving.gpu_terms import Terms, offer
from tenfold.serving.memory import deployment
from tenfold.serving.replanning import Hosting
from tenfold.serving.roofline import interval
from tenfold.serving.specs import KV, WEIGHTS, gpu

ASSUME = {
    "quantize": {"weights": "fp8"},
    "continuous_batching": {},
    "procure": {"commitment": "reserved_1y", "reserved_usd_per_hour": 0.45},
    "speculate": {"acceptance": 0.7},
}
LOG = rows((2, 3, 4), seconds=900)
NONE = dict.fromkeys(HOSTING)


@pytest.fixture(scope="module")
def small():
    """A model on its fleet."""
    return hosted(LOG, pool(), hours=3)


def verdicts(made, assume, slo=None, names=HOSTING):
    """What levers answer where they have no figure, status and reason; None where they have one."""
    with portfolio(made, assume, slo, names=names) as (_, _, found):
        return {name: (one.status, one.reason) if isinstance(one, Look) else None for name, one in found.items()}


def verdict(made, name, table, slo=None):
    return verdicts(made, {name: table}, slo, (name,))[name]


def test_without_a_fleet_or_a_table_there_is_no_figure(small):
    assert set(verdicts(ledger([row()]), ASSUME).values()) == {("not_measurable", "no self-hosted requests")}
    for status, reason in verdicts(ledger(LOG), ASSUME).values():
        assert status == "not_measurable"
        assert "--fleet" in reason
    for name, (status, reason) in verdicts(small, {}).items():
        assert status == "no_assumption"
        assert f"[{name}]" in reason
    assert verdicts(small, ASSUME) == NONE


@pytest.mark.full
def test_a_replica_serves_all_of_a_model_s_requests_or_none(small):
    for where, said in (("feature = 'chat'", "names 5 of 9 requests"), ("feature = 'nobody'", "")):
        found = verdicts(small, {name: {**table, "where": where} for name, table in ASSUME.items()})
        for status, reason in found.values():
            assert status == "nothing_eligible"
            assert said in reason
            assert not said or "all of them or none" in reason


@pytest.mark.full
def test_what_has_as_few_bits_already_stays(small):
    made = hosted(LOG, pool(weights="fp8"), hours=3)
    status, reason = verdict(made, "quantize", {"weights": "int8"})
    assert status == "nothing_eligible"
    assert "weights are fp8" in reason
    assert verdict(made, "quantize", {"weights": "keep", "kv": "fp8"}) is None
    with pytest.raises(AssumptionError, match="changes nothing"):
        verdict(small, "quantize", {"weights": "keep"})


@pytest.mark.full
def test_two_kinds_of_pools_at_once_cannot_be_told_apart():
    made = hosted(LOG, pool(replicas=2), pool(gpu="a10g", replicas=2), hours=3)
    for status, reason in verdicts(made, ASSUME).values():
        assert status == "not_measurable"
        assert "2 kinds of pools" in reason
    # pools that are alike are one
    assert verdict(hosted(LOG, pool(replicas=2), pool(replicas=3), hours=3), "procure", ASSUME["procure"]) is None


def test_speculation_without_a_measured_acceptance_is_refused(small):
    status, reason = verdict(small, "speculate", {"draft_tokens": 3})
    assert status == "not_measurable"
    assert "acceptance_length" in reason
    assert "spec_accept_length" in reason
    assert verdict(small, "speculate", {"acceptance_length": 2.2}) is None
    with pytest.raises(AssumptionError, match="4 drafted tokens yield 1 to 5"):
        verdict(small, "speculate", {"acceptance_length": 5.5})


@pytest.mark.full
def test_a_length_is_the_acceptance_that_gives_it(small):
    with_both = []
    for table in ({"acceptance": 0.5, "draft_tokens": 2}, {"acceptance_length": 1.75, "draft_tokens": 2}):
        with portfolio(small, {"speculate": table}, names=("speculate",)) as (found, _, _):
            with_both.append(found.value(frozenset({"speculate"})))
    assert with_both[0] == with_both[1]


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("procure", {"gpu": "h500"}, "procure.*h500"),
        ("procure", {}, "names nothing to buy"),
        ("procure", {"gpu": "l40s", "reserved_usd_per_hour": 1}, 'nothing that is bought; add commitment = "reserved'),
        ("procure", {"commitment": "on_demand", "reserved_usd_per_hour": 1}, "reserved_usd_per_hour"),
        ("procure", {"gpu": "l40s", "spot_usd_per_hour": 1}, "spot_usd_per_hour.*add spot_where"),
        ("continuous_batching", {"utilization": 0}, "above 0"),
        ("continuous_batching", {"max_batch": 0}, "above 0|at least 1"),
        ("quantize", {"weights": "fp6"}, "fp6"),
        ("speculate", {"acceptance": 1.2}, "acceptance"),
    ],
)
def test_what_cannot_be_is_refused(small, name, table, said):
    with pytest.raises(AssumptionError, match=said):
        verdict(small, name, table)


def test_a_price_that_no_list_has_is_asked_for(small, monkeypatch):
    def none(*_):
        raise NotEvaluable("no reserved_3y price of l4")

    monkeypatch.setattr(procure, "offer", none)
    status, reason = verdict(small, "procure", {"commitment": "reserved_3y"})
    assert status == "nothing_eligible"
    assert "no reserved_3y price of l4; or state reserved_usd_per_hour" in reason
    assert verdict(small, "procure", {"commitment": "reserved_3y", "reserved_usd_per_hour": 0.4}) is None


def test_a_model_that_does_not_fit_is_no_option():
    made = hosted(
        rows((2, 2), "deepseek-ai/DeepSeek-V3", seconds=900),
        pool("deepseek-ai/DeepSeek-V3", "b200", 1, "5.5", tp=8, weights="fp8"), hours=2,
    )  # fmt: skip
    status, reason = verdict(made, "procure", {"gpu": "l4", "usd_per_hour": 0.8})
    assert status == "nothing_eligible"
    assert "does not fit on 8" in reason


def test_a_service_level_vetoes_what_cannot_keep_it():
    made = hosted(rows((2, 3)), pool(gpu="h100-sxm", usd="2.95"), hours=2)
    table = {"gpu": "l4", "usd_per_hour": 0.8}
    # one request at a time takes 62 ms an output token on an L4, and 10 on eight; 7 on an H100
    assert verdict(made, "procure", table, tf.Slo(tpot_p95_ms=20)) is None
    status, reason = verdict(made, "procure", table, tf.Slo(tpot_p95_ms=8))
    assert status == "vetoed"
    assert "above the service level" in reason
    # a limit that today's replicas miss too, or that nothing can keep, is missed all the same
    for slo in (tf.Slo(tpot_p95_ms=5), tf.Slo(tpot_p95_ms=0), tf.Slo(ttft_p95_ms=0)):
        status, reason = verdict(made, "procure", table, slo)
        assert status == "vetoed"
        assert "as it is today" in reason


def test_limits_of_the_features_that_are_served_count(small):
    limits = []
    for slo in (
        tf.Slo(tpot_p95_ms=90),
        tf.Slo(tpot_p95_ms=90, feature={"chat": {"tpot_p95_ms": 70}}),
        tf.Slo(tpot_p95_ms=90, feature={"elsewhere": {"tpot_p95_ms": 1}}),
        tf.Slo(feature={"night": {"tpot_p95_ms": float("inf")}}),
    ):
        with portfolio(small, {}, slo, names=("procure",)) as (_, sites, _):
            limits.append(sites.places[0].site.tpot_slo_s)
    assert limits == [0.09, 0.07, 0.09, None]


def test_scores_below_the_least_quality_keep_the_model_as_it_is(small, tmp_path):
    file = tmp_path / "evals.jsonl"
    scores = [{"model": "quantized", "request_id": f"{LLAMA}1-{n}", "score": s} for n, s in enumerate((0.8, 0.9))]
    scores += [{"model": LLAMA, "request_id": f"{LLAMA}1-0", "score": 0.95}]
    file.write_text("".join(json.dumps(one) + "\n" for one in scores))
    table = {"weights": "fp8", "quality_evals": str(file)}
    status, reason = verdict(small, "quantize", table, tf.Slo(min_quality=0.86))
    assert status == "nothing_eligible"
    assert "0.85" in reason
    assert "min_quality 0.86" in reason
    with portfolio(small, {"quantize": table}, tf.Slo(min_quality=0.85), names=("quantize",)) as (found, _, _):
        look = BY_NAME["quantize"].look(found.bill, found.assumed["quantize"], found.tally("quantize"))
    quality = next(one["value"] for one in look.evidence if one["name"].startswith("quality["))
    assert quality == "mean score 0.85 over 2 evals, 0.95 as it is now"


@pytest.mark.full
def test_a_plan_on_a_fleet():
    """Addressed and saved are of the fleet's bill, requests and idle time; the plan sums to the whole."""
    log, one = rows((3, 10, 25, 45, 40, 20, 8, 2), seconds=250), pool(replicas=8)
    made = hosted(log, one, hours=8)
    plan = tf.plan(made, assume=ASSUME)
    doc = plan.as_dict()
    by_name = {lever["name"]: lever for lever in doc["levers"]}
    assert doc["spend_usd"] == "51.20"
    assert {by_name[name]["status"] for name in HOSTING} == {"ok"}
    assert {by_name[name]["label"] for name in HOSTING} == {"modelled"}
    assert {by_name[name]["addressed_usd"] for name in HOSTING} == {"51.20"}
    assert sum(Decimal(by_name[name]["shapley_usd"]) for name in HOSTING) == Decimal(doc["joint_all_usd"])
    roadmap = sum(Decimal(step["marginal_usd"]) for step in doc["plan"]["roadmap"])
    assert roadmap == Decimal(doc["plan"]["saving_usd"]["mid"]) == Decimal(doc["joint_all_usd"])
    assert all("--fleet" not in by_name[name]["first_action"] for name in HOSTING)
    facts = {fact["name"].partition("[")[0]: fact["value"] for fact in by_name["procure"]["evidence"]}
    assert (facts["bill_now_usd"], facts["reserved_replicas"], facts["reserve_above"]) == ("51.20", 8, "0.56")
    assert facts["bill_then_usd"] == "28.80"
    facts = {fact["name"].partition("[")[0]: fact for fact in by_name["continuous_batching"]["evidence"]}
    busiest = max(site(log, one, hours=8, busy=0).hourly)
    assert facts["busiest_hour_tokens_per_s"]["value"] == f"{busiest:.1f}"
    # batches of 2 wait for the longer of two answers: mean over expected maximum, of all pairs of this log
    answers = [each["output_tokens"] for each in log]
    longer = sum(max(a, b) for a in answers for b in answers) / len(answers) ** 2
    assert facts["static_batching_waste"]["value"] == f"{1 - sum(answers) / len(answers) / longer:.2f}"


@pytest.mark.full
def test_a_week_has_intervals_and_a_projection():
    counts = (3, 10, 25, 20, 8, 2) + (0,) * 18
    made = hosted(rows(counts * 12, seconds=250), pool(replicas=8), hours=24 * 12)
    plan = tf.plan(made, assume={**ASSUME, "trim": {"where": "true", "output_ratio": [0.4, 0.5, 0.6]}})
    for found in plan.estimates:
        if found.status == "ok":
            saving = found.saving
            assert saving.low <= saving.mid <= saving.high, found.name
    assert plan.as_dict()["plan"]["saving_usd"]["low"] is not None


@pytest.mark.full
def test_another_gpu_or_terms_take_listed_prices(small):
    with portfolio(small, {"procure": {"gpu": "l40s"}}, names=("procure",)) as (_, sites, _):
        how = sites.changes["procure"][0](sites.places[0], "mid")
        dear, cheap = (sites.changes["procure"][0](sites.places[0], end).usd_per_gpu_hour for end in ("low", "high"))
    lists = offer(Decimal("0.80"), Terms("l4", "on_demand"), Terms("l40s", "on_demand"))
    assert (cheap, how.usd_per_gpu_hour, dear) == lists[:3]
    assert how.reserved_usd_per_gpu_hour is None
    # what is reserved today is no price on demand: the lists' one is what a busy hour would cost
    paid = hosted(LOG, pool(gpu="h100-sxm", usd="1.9", commitment="reserved_1y"), hours=3)
    for commitment, price in (("on_demand", None), ("reserved_1y", 1.9)):
        table = {"commitment": commitment, **({"reserved_usd_per_hour": price} if price else {})}
        with portfolio(paid, {"procure": table}, names=("procure",)) as (found, sites, _):
            how = sites.changes["procure"][0](sites.places[0], "mid")
            saves = found.value(frozenset({"procure"}))
        lists = offer(Decimal("1.9"), Terms("h100-sxm", "reserved_1y"), Terms("h100-sxm", "on_demand"))
        assert how.usd_per_gpu_hour == lists.mid > Decimal("1.9")
        assert (saves < 0) if commitment == "on_demand" else (saves == 0)


def test_the_interval_is_that_of_what_the_log_measured():
    log = rows((40, 40), seconds=1600)
    with portfolio(hosted(log, pool(replicas=8), hours=2), {}, names=("procure",)) as (_, sites, _):
        place = sites.places[0]
    assert place.is_calibrated

    def ends(how, place=place):
        return factor(place, how, "low"), factor(place, how, "mid"), factor(place, how, "high")

    def stated(*of):
        low, high = interval(*of)
        return low, 1.0, high

    assert ends(Hosting(weights=WEIGHTS["fp8"])) == ends(Hosting()) == stated(True)
    assert ends(Hosting(gpu=gpu("l40s"), weights=WEIGHTS["fp8"])) == stated(False) != stated(True)
    assert ends(Hosting(), place._replace(is_calibrated=False)) == stated(False)
    experts = deployment("mixtral-8x7b-v0.1", "h100-sxm", 2)
    mixed = place._replace(hosted=replace(place.hosted, deployment=experts))
    assert ends(Hosting(), mixed) == stated(True, True)
    assert ends(Hosting(kv=KV["fp8"]), mixed) == stated(False, True) != stated(False)


@pytest.mark.full
def test_unpriced_and_other_requests_stay_as_they_are():
    """A model without a pool, a request without usage and an API's requests cost what they cost."""
    log = [*LOG, *rows((1,), QWEN, seconds=60), row(ts=START), {**LOG[0], "output_tokens": None, "request_id": "x"}]
    made = hosted(log, pool(), hours=3)
    with portfolio(made, ASSUME, names=("quantize",)) as (found, _, _):
        fates = found.tally("quantize").frame
        assert found.value(frozenset({"quantize"})) < made.bill_pusd
        assert found.spend_pusd == made.bill_pusd + 1000 * 2_000_000 + 100 * 10_000_000
    assert fates.filter(fate="moved")["requests"].sum() == len(LOG)
    assert fates.filter(fate="unpriced")["requests"].sum() == 1


def test_requests_at_the_edges_of_a_stretch_are_priced_in_theirs():
    turn = START.replace(tzinfo=UTC) + timedelta(hours=1)
    log = [{**each, "duration_ms": None} for each in rows((2, 2))]  # the third starts as the pools change
    assert log[2]["ts"].replace(tzinfo=UTC) == turn
    made = hosted(log, pool(replicas=2, until=turn), pool(replicas=3, since=turn), hours=2)
    with portfolio(made, ASSUME, names=("procure",)) as (found, sites, _):
        tokens = [site(log[n : n + 2], pool(), hours=2, busy=0).tokens for n in (0, 2)]
        idle = [sites.rehosted(n, frozenset({"procure"}), "mid") for n in range(2)]
        left = sum(
            rate * count for n, then in enumerate(idle) for rate, count in zip(then.rates, tokens[n], strict=True)
        )
        assert made.bill_pusd - found.value(frozenset({"procure"})) == left + sum(then.idle_pusd for then in idle)
        assert found.value(frozenset({"procure"})) == made.bill_pusd - (2 + 3) * 45 * 10**10


def test_what_may_wait_counts_in_the_stretch_in_which_it_starts():
    turn = START.replace(tzinfo=UTC) + timedelta(minutes=90)
    made = hosted(LOG, pool(until=turn), pool(replicas=2, since=turn), hours=3)
    table = {"spot_where": "feature = 'night'", "spot_usd_per_hour": 0.3}
    with portfolio(made, {"procure": table}, names=("procure",)) as (_, sites, _):
        by_place = [(place.site.hourly, place.site.waiting) for place in sites.places]
        lengths = [place.site.seconds for place in sites.places]
    assert lengths == [(3600.0, 1800.0)] * 2  # hours are counted from the start of a stretch
    whole = site(LOG, pool(), hours=3, busy=0, late="night")
    late = sum(
        rate * long / 3600 for (_, rates), longs in zip(by_place, lengths, strict=True)
        for rate, long in zip(rates, longs, strict=True)
    )  # fmt: skip
    assert late == pytest.approx(sum(whole.waiting))
    assert all(late <= all_of for place in by_place for all_of, late in zip(*place, strict=True))


@pytest.mark.full
def test_tiers_and_regions_of_a_log_do_not_change_what_gpus_cost():
    log = rows([2, 2, 2])
    for number, one in enumerate(log):
        one["region"], one["service_tier"] = ("eu-1", "", None)[number % 3], ("priority", None, "gold")[number % 3]
    made, plain = hosted(log, pool(), hours=3), hosted(rows([2, 2, 2]), pool(), hours=3)
    assert made.coverage.unpriced_requests == 0
    assert (made.total_pusd, made.charges_pusd) == (plain.total_pusd, plain.charges_pusd)
    with portfolio(made, {"procure": ASSUME["procure"]}, names=("procure",)) as (ours, _, _):
        found = ours.value(frozenset({"procure"}))
    with portfolio(plain, {"procure": ASSUME["procure"]}, names=("procure",)) as (theirs, _, _):
        assert found == theirs.value(frozenset({"procure"})) > 0


@pytest.mark.full
def test_an_offer_that_is_too_dear_changes_nothing_and_autoscaling_is_asked_for_by_name():
    log = rows([2, 30, 2, 2])
    made = hosted(log, pool(replicas=20), hours=4)
    share = {"utilization": 0.1}
    dear = {"commitment": "reserved_1y", "reserved_usd_per_hour": 5}
    right = frozenset({"continuous_batching"})

    def saved(table, names):
        assume = {"continuous_batching": table, "procure": dear}
        with portfolio(made, assume, names=("continuous_batching", "procure")) as (found, _, verdicts):
            assert "continuous_batching" in found.names, verdicts
            return found.value(names)

    fixed, by_hour = saved(share, right), saved({**share, "autoscale": True}, right)
    assert saved(share, right | {"procure"}) == fixed
    assert by_hour > fixed > 0


@pytest.mark.full
def test_what_needs_no_other_numbers_is_said_beside_the_saving():
    # an 8B model spread over four H100s is dear by that alone
    made = hosted(rows([3, 3, 3]), pool(gpu="h100-sxm", tp=4, replicas=2, usd="2"), hours=3)
    doc = tf.plan(made, assume={"quantize": {"weights": "fp8"}}).as_dict()
    (one,) = [lever for lever in doc["levers"] if lever["name"] == "quantize"]
    facts = {fact["name"].partition("[")[0]: fact for fact in one["evidence"]}
    now, same, then = (Decimal(facts[f"bill_{name}_usd"]["value"]) for name in ("now", "same_numbers", "then"))
    assert now == 48
    assert then <= same < now
    assert "needs no other numbers" in facts["bill_same_numbers_usd"]["unit"]
