"""What sets of the self-hosted levers are worth: today's bill less the slow oracle's, to the pUSD."""

from __future__ import annotations

from datetime import UTC, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import factorial

import oracle_serving as oracle
import pytest
from hosted_logs import HOSTING, LLAMA, QWEN, START, changed, hosted, pool, portfolio, rows, site

import tenfold as tf
from tenfold.serving.roofline import interval

# the busiest hour asks for 3 of 8 replicas by the roofline; the log's own pace is half of it, or not known
COUNTS = (3, 10, 25, 45, 40, 20, 8, 2)
HOURS = len(COUNTS)
ASSUME = {
    "quantize": {"weights": "fp8", "kv": "fp8"},
    "continuous_batching": {"utilization": 0.8},
    "procure": {"commitment": "reserved_1y", "reserved_usd_per_hour": 0.45},
    "speculate": {"acceptance": [0.5, 0.6, 0.7], "draft_tokens": 3},
}
PACE, NEAR = ({"low": low, "mid": 1.0, "high": high} for low, high in (interval(False), interval(True)))
ACCEPTANCE = {"low": 0.5, "mid": 0.6, "high": 0.7}
TPS = (1, 2, 4, 8)
SETS = [frozenset(chosen) for size in range(5) for chosen in combinations(HOSTING, size)]


def expected(at, names, scenario="mid", pace=PACE, **more):
    """The oracle's bill of a site under a set of the levers above."""
    how = dict(more)
    if "continuous_batching" in names:
        how |= {"utilization": 0.8}
    if "procure" in names:
        how |= {"reserved_price": Decimal("0.45")}
    if "speculate" in names:
        how |= {"draft": oracle.Draft(ACCEPTANCE[scenario], 3, 0.05)}
    if names & {"quantize", "continuous_batching", "speculate"}:
        how |= {"pace": pace[scenario]}
    is_quantized = "quantize" in names
    change = changed("fp8", "fp8") if is_quantized else None
    return oracle.bill(at, change, tps=TPS if is_quantized else None, **how)


SECONDS = [pytest.param(1600.0, id="measured"), pytest.param(None, id="modelled", marks=pytest.mark.full)]


@pytest.fixture(scope="module", params=SECONDS)
def fleet(request):
    """A log, its ledger on the fleet, and the site as added up from the rows."""
    log = rows(COUNTS, seconds=request.param)
    # a model spelt in two ways is one, and tokens that were written to a cache were computed
    log = [{**each, "model": (LLAMA, LLAMA.upper())[number % 3 == 0]} for number, each in enumerate(log)]
    log = [{**each, "cache_write_tokens": each["input_tokens"] // 8} for each in log]
    one = pool(replicas=8)
    made = hosted(log, one, hours=HOURS)
    (only,) = made.hosted
    scale = 1.0
    if request.param:
        # the log's own pace over the modelled one, at its own batch
        plain = site(log, one, hours=HOURS, busy=only.busy_ratio)
        scale = plain.tokens[2] / only.demand.busy_s / oracle.pace(plain.replica, plain.load, only.batch)[0]
        assert scale < 0.9
    return log, made, site(log, one, hours=HOURS, busy=only.busy_ratio, scale=scale)


def test_every_set_is_today_s_bill_less_the_oracle_s(fleet):
    _, made, at = fleet
    (only,) = made.hosted
    # a pace that is measured at a quarter of what fits, or above, narrows the interval
    is_near = at.scale != 1 and 4 * only.batch >= at.replica.holds(sum(at.load[:2]) + at.load[2] / 2)
    pace = NEAR if is_near else PACE
    assert is_near == (at.scale != 1)
    found = set()
    with portfolio(made, ASSUME) as (made_of, _, _):
        assert set(made_of.names) == set(HOSTING)
        assert made_of.spend_pusd == only.bill_pusd == expected(at, frozenset()).pusd
        for names in SETS:
            values = [made_of.value(names, scenario) for scenario in ("low", "mid", "high")]
            bills = [expected(at, names, scenario, pace).pusd for scenario in ("low", "mid", "high")]
            assert values == [only.bill_pusd - bill for bill in bills], names
            assert values == sorted(values)
            found.add(values[1])
    assert len(found) >= 6  # the levers are told apart
    assert 0 < min(found - {0}) < max(found) < only.bill_pusd


def answered_before(log, ttl_s):
    """Requests whose answer is there: stored when a request like it ended, within the last `ttl_s`."""
    stored, hits = {}, []
    waiting = []
    for each in sorted(log, key=lambda one: one["ts"]):
        stored |= {key: ends for ends, key in sorted(one for one in waiting if one[0] <= each["ts"])}
        waiting = [one for one in waiting if one[0] > each["ts"]]
        key = each["model"], each["prompt_hash"]
        if key in stored and each["ts"] < stored[key] + timedelta(seconds=ttl_s):
            hits.append(each)
        else:
            waiting.append((each["ts"] + timedelta(milliseconds=each["duration_ms"]), key))
    return hits


def test_requests_left_are_priced_by_the_set_s_rates(fleet):
    log, made, at = fleet
    (only,) = made.hosted
    # half of the answers away; and the answers to prompts seen before, within the hour
    assume = {
        **ASSUME,
        "trim": {"where": "true", "output_ratio": 0.5},
        "skip": {"where": "true", "ttl_s": 3600, "scope": ["model"]},
    }
    with portfolio(made, assume, names=(*HOSTING, "trim", "skip")) as (made_of, sites, verdicts):
        assert {"trim", *HOSTING} <= set(made_of.names), verdicts
        for names in (frozenset(), frozenset({"quantize"}), frozenset({"procure", "continuous_batching"}), SETS[-1]):
            rates, idle = (only.rates, only.idle_pusd)
            if names:
                then = sites.rehosted(0, names, "mid")
                bill = expected(at, names)
                assert then.rates == pytest.approx(bill.rates, abs=1)
                assert then.idle_pusd == bill.pusd - sum(
                    rate * count for rate, count in zip(then.rates, at.tokens, strict=True)
                )
                rates, idle = then.rates, then.idle_pusd
            kept = [each["output_tokens"] for each in log]
            # half to even of each answer
            halves = sum(round(Fraction(tokens, 2)) for tokens in kept)
            left = rates[0] * at.tokens[0] + rates[1] * at.tokens[1] + rates[2] * halves + idle
            assert made_of.value(names | {"trim"}) == only.bill_pusd - left
            if log[0].get("duration_ms"):
                hits = answered_before(log, 3600)
                assert len(hits) > 20
                tokens = site(hits, pool(), hours=HOURS, busy=0).tokens
                saved = sum(rate * count for rate, count in zip(rates, tokens, strict=True))
                assert made_of.value(names | {"skip"}) == made_of.value(names) + saved


def shapley(value):
    """Shapley values by the formula over all sets."""
    shares = {}
    for name in HOSTING:
        others = [one for one in SETS if name not in one]
        shares[name] = sum(
            Fraction(factorial(len(one)) * factorial(3 - len(one)), 24) * (value(one | {name}) - value(one))
            for one in others
        )
    return shares


@pytest.mark.full
def test_a_plan_shows_each_lever_s_part_and_a_loss():
    # full batches and no limit: speculation costs, and says so
    log = rows((60, 60))
    one = pool("llama-2-7b", "h100-sxm", replicas=4, usd="2.95", max_batch=512)
    log = [
        {**each, "model": "llama-2-7b", "input_tokens": 150, "cache_read_tokens": 0, "output_tokens": 60}
        for each in log
    ]
    made = hosted(log, one, hours=3)
    at = site(log, one, hours=3, busy=made.hosted[0].busy_ratio)
    plan = tf.plan(made, assume=ASSUME)
    by_name = {lever.name: lever for lever in plan.estimates}
    now = made.bill_pusd
    alone = {name: by_name[name].saving.mid for name in HOSTING}
    # each of 512 at once costs a whole step more; with the measured pace on both sides the ratio stays
    assert alone["speculate"] == now - expected(at, frozenset({"speculate"})).pusd < 0
    assert plan.as_dict()["levers"]
    assert by_name["speculate"].advice.first_action.startswith("Leave")
    assert "speculate" not in plan.levers

    def value(names):
        return now - expected(at, names).pusd if names else 0

    parts = shapley(value)
    assert {name: by_name[name].shapley_pusd for name in HOSTING} == pytest.approx(parts, abs=1)
    assert sum(by_name[name].shapley_pusd for name in HOSTING) == value(frozenset(HOSTING))
    # the same replicas under a limit that keeps batches small: it saves
    tight = tf.Slo(tpot_p95_ms=1000 * oracle.pace(at.replica, at.load, 8)[1])
    with portfolio(made, ASSUME, tight, names=("speculate",)) as (made_of, _, _):
        limited = at._replace(slo_s=tight.tpot_p95_ms / 1000, scale=made_of.bill.sites.places[0].site.scale)
        saves = made_of.value(frozenset({"speculate"}))
        assert saves == now - expected(limited, frozenset({"speculate"})).pusd > 0


@pytest.mark.full
def test_two_models_on_two_pools_add_up():
    first, second = rows(COUNTS, seconds=250), rows(COUNTS[::-1], QWEN, seconds=120, seed=2)
    pools = pool(replicas=8), pool(QWEN, "a10g", replicas=5, usd="1.01")
    made = hosted([*first, *second], *pools, hours=HOURS)
    with portfolio(made, ASSUME) as (made_of, sites, _):
        sums = dict.fromkeys(SETS, 0)
        for number, (log, one) in enumerate(zip((first, second), pools, strict=True)):
            place = sites.places[number]
            at = site(log, one, hours=HOURS, busy=place.hosted.busy_ratio, scale=place.site.scale)
            for names in SETS:
                sums[names] += place.hosted.bill_pusd - expected(at, names).pusd
        assert {names: made_of.value(names) for names in SETS} == sums
        assert made_of.spend_pusd == made.bill_pusd


@pytest.mark.full
def test_only_the_model_that_where_names_is_changed():
    first, second = rows(COUNTS, seconds=250), rows(COUNTS[::-1], QWEN, seconds=120, seed=2)
    pools = pool(replicas=8), pool(QWEN, "a10g", replicas=5, usd="1.01")
    made = hosted([*first, *second], *pools, hours=HOURS)
    named = {
        "quantize": {**ASSUME["quantize"], "where": f"model = '{QWEN}'"},
        "continuous_batching": {"utilization": 0.8},
    }
    with portfolio(made, named, names=("quantize", "continuous_batching")) as (made_of, sites, _):
        assert list(sites.changes["quantize"]) == [1]
        places = sites.places
        sides = [
            site(log, one, hours=HOURS, busy=place.hosted.busy_ratio, scale=place.site.scale)
            for log, one, place in zip((first, second), pools, places, strict=True)
        ]
        both = frozenset({"quantize", "continuous_batching"})
        bills = expected(sides[0], frozenset({"continuous_batching"})).pusd + expected(sides[1], both).pusd
        assert made_of.value(both) == made.bill_pusd - bills
        assert (
            made_of.value(frozenset({"quantize"}))
            == places[1].hosted.bill_pusd - expected(sides[1], frozenset({"quantize"})).pusd
        )
        fates = made_of.tally("quantize").frame
        assert fates.filter(fate="moved")["requests"].sum() == len(second)
        assert fates.filter(fate="kept")["requests"].sum() == len(first)


def test_two_stretches_have_their_own_bills():
    # eight replicas for five hours, four from then on
    turn = START.replace(tzinfo=UTC) + timedelta(hours=5)
    log = rows(COUNTS, seconds=250)
    pools = pool(replicas=8, until=turn), pool(replicas=4, since=turn)
    made = hosted(log, *pools, hours=HOURS)
    early = [each for each in log if each["ts"].replace(tzinfo=UTC) < turn]
    late = [each for each in log if each not in early]
    with portfolio(made, ASSUME) as (made_of, sites, _):
        assert [place.hosted.replicas for place in sites.places] == [8, 4]
        sums = dict.fromkeys(SETS, 0)
        for number, (part, one, hours) in enumerate(((early, pools[0], (0, 5)), (late, pools[1], (5, 8)))):
            place = sites.places[number]
            at = site(part, one, hours=HOURS, busy=place.hosted.busy_ratio, scale=place.site.scale)
            cut = slice(*hours)
            at = at._replace(hours=Fraction(hours[1] - hours[0]), hourly=at.hourly[cut], waiting=at.waiting[cut])
            for names in SETS:
                sums[names] += place.hosted.bill_pusd - expected(at, names).pusd
        assert made_of.spend_pusd == 8 * (8 * 5 + 4 * 3) * 10**11
        assert {names: made_of.value(names) for names in SETS} == sums


@pytest.mark.parametrize("gpu", [None, pytest.param("l40s", marks=pytest.mark.full)])
def test_spot_for_what_may_wait_and_another_gpu(gpu):
    log, one = rows(COUNTS), pool(replicas=8)
    made = hosted(log, one, hours=HOURS)
    at = site(log, one, hours=HOURS, busy=made.hosted[0].busy_ratio, late="night")
    spot = {"spot_where": "feature = 'night'", "spot_usd_per_hour": 0.3, "spot_rework_ratio": [0.1, 0.2, 0.3]}
    table = {**spot, **({"gpu": gpu, "usd_per_hour": 1.55} if gpu else {})}
    assume = {"continuous_batching": {"utilization": 0.8}, "procure": table}
    how = {"spot_price": Decimal("0.3"), "utilization": 0.8, "price": Decimal("1.55") if gpu else None}
    with portfolio(made, assume, names=("continuous_batching", "procure")) as (made_of, _, _):
        for scenario, rework in (("low", 0.3), ("mid", 0.2), ("high", 0.1)):
            bill = oracle.bill(
                at, changed(gpu=gpu), tps=TPS if gpu else None, rework=rework, pace=PACE[scenario], **how
            )
            found = made_of.value(frozenset({"continuous_batching", "procure"}), scenario)
            assert found == pytest.approx(made.bill_pusd - bill.pusd, abs=1)
