"""Hosting otherwise: bills against the slow oracle on random sites, by hand, and what must hold for any of them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import oracle_serving as oracle
import pytest
from hosted_logs import as_draft, changed, replica
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tenfold.serving.capacity import Load, pace
from tenfold.serving.memory import deployment
from tenfold.serving.replanning import TPS, Hosting, Site, Tokens, gpu_seconds, rehosted, reserve, shared_out
from tenfold.serving.specs import KV, WEIGHTS, gpu
from tenfold.serving.speculation import Speculation

SOME = settings(max_examples=25, deadline=None)
PLACES = [
    ("llama-3.1-8b", "l4", 1), ("llama-3.1-8b", "h100-sxm", 1), ("llama-3.1-70b", "h100-sxm", 4),
    ("Qwen/Qwen2.5-7B", "a100-40", 2), ("mixtral-8x7b-v0.1", "h200-sxm", 2),
]  # fmt: skip


@st.composite
def sites(draw):
    """Sites whose busiest hour is near what they carry, so that replicas go and come."""
    one = deployment(*draw(st.sampled_from(PLACES)), draw(st.sampled_from(["bf16", "fp8"])))
    load = Load(*(float(draw(st.integers(*span))) for span in ((20, 4000), (0, 4000), (2, 800))))
    count, cap = draw(st.integers(1, 9)), draw(st.integers(1, 64))
    assume(one.concurrency(load.resident_tokens) >= 1)
    full = count * pace(one, load, min(cap, int(one.concurrency(load.resident_tokens)))).tokens_per_s
    hourly = [full * draw(st.floats(0, 1)) for _ in range(draw(st.integers(1, 8)))]
    hourly[0] = max(hourly[0], full / 50)
    waiting = [rate * draw(st.floats(0, 1)) for rate in hourly]
    requests = draw(st.integers(1, 10**6))
    return Site(
        one, count, Decimal(draw(st.integers(1, 2000))) / 100, Fraction(len(hourly)), cap, load,
        Tokens(*(int(requests * kind) for kind in load)), hourly, waiting, draw(st.floats(0, 1)),
        draw(st.none() | st.floats(0.004, 0.2)), draw(st.none() | st.floats(0.01, 1)),
        draw(st.sampled_from([1.0, 0.8, 1.3])),
        tuple(3600.0 - 400 * n for n in range(len(hourly))) if draw(st.booleans()) else (),
    )  # fmt: skip


@st.composite
def hostings(draw):
    """Any set of levers' changes."""
    made = {
        "weights": draw(st.none() | st.sampled_from(["fp8", "int4", "fp4"])),
        "kv": draw(st.none() | st.just("fp8")),
        "gpu": draw(st.none() | st.sampled_from(["h200-sxm", "l40s", "a100-80"])),
        "speculation": draw(st.none() | st.builds(Speculation, st.floats(0, 0.95), st.integers(1, 5), st.just(0.05))),
        "utilization": draw(st.none() | st.floats(0.2, 1)),
        "reserved": draw(st.none() | st.integers(0, 2500)),
        "spot": draw(st.none() | st.integers(0, 2500)),
    }
    prices = {key: None if made[key] is None else Decimal(made[key]) / 100 for key in ("reserved", "spot")}
    how = Hosting(
        WEIGHTS.get(made["weights"]), KV.get(made["kv"]), made["utilization"], draw(st.booleans()), 2,
        draw(st.none() | st.integers(1, 64)),
        made["gpu"] and gpu(made["gpu"]), made["gpu"] and Decimal("2.5"), prices["reserved"], prices["spot"], 0.1,
        made["speculation"], draw(st.sampled_from([0.75, 1.0, 1.33])),
    )  # fmt: skip
    return how, made


def plain(site):
    """A site as the oracle has it."""
    return oracle.Site(
        replica(site.deployment), site.replicas, site.usd_per_gpu_hour, site.hours, site.cap, tuple(site.load),
        tuple(site.tokens), site.hourly, site.waiting, site.busy_ratio, site.tpot_slo_s, site.scale,
        site.ttft_slo_s, tuple(site.seconds), site.peak, site.kept_peak,
    )  # fmt: skip


def from_oracle(site, how, made):
    faster = any(made[key] is not None for key in ("weights", "kv", "gpu", "speculation", "utilization"))
    tps = (
        sorted({*(n for n in TPS if not site.deployment.model.q_heads % n), site.deployment.tp})
        if made["weights"] or made["gpu"]
        else None
    )
    return oracle.bill(
        plain(site), changed(made["weights"], made["kv"], made["gpu"]), tps=tps, draft=as_draft(how.speculation),
        utilization=how.utilization, cap=how.cap, price=how.usd_per_gpu_hour, rework=how.spot_rework,
        reserved_price=how.reserved_usd_per_gpu_hour, spot_price=how.spot_usd_per_gpu_hour,
        pace=how.pace if faster else 1.0, follows=how.follows,
    )  # fmt: skip


def as_oracle(found):
    return None if found is None else oracle.Bill(
        found.deployment.tp, found.replicas, found.capacity.batch, found.capacity.bound, found.reserved,
        found.bill_pusd, tuple(found.rates), found.idle_pusd,
    )  # fmt: skip


def compare(site, how, made):
    found, expected = as_oracle(rehosted(site, how)), from_oracle(site, how, made)
    assert (found is None) == (expected is None)
    if found is None:
        return
    # amounts to the pUSD; a rate is a quotient of floats, and may be the next whole number
    assert found[:5] == expected[:5]
    assert found.pusd == pytest.approx(expected.pusd, abs=1, rel=1e-15)
    assert found.rates == pytest.approx(expected.rates, abs=1, rel=1e-9)
    assert found.pusd == found.idle + sum(rate * n for rate, n in zip(found.rates, site.tokens, strict=True))
    assert found.idle >= 0
    assert min(found.rates) >= 0
    busy = found.pusd - found.idle
    assert found.pusd * site.busy_ratio == 0 or 0 <= busy <= found.pusd


@SOME
@given(sites(), hostings())
def test_a_hosting_is_the_oracle_s(site, hosting):
    compare(site, *hosting)


@pytest.mark.full
@settings(max_examples=600, deadline=None)
@given(sites(), hostings())
def test_many_hostings_are_the_oracle_s(site, hosting):
    compare(site, *hosting)


@SOME
@given(sites())
def test_nothing_changed_is_today_s_bill(site):
    found = rehosted(site, Hosting())
    gpus = site.deployment.tp * site.replicas
    assert found.replicas == site.replicas
    assert found.bill_pusd == round(Fraction(site.usd_per_gpu_hour) * gpus * site.hours * 10**12)
    # what requests take of it is the busy share, but for what rounding rates down leaves: under 1 pUSD a token
    busy = found.bill_pusd * site.busy_ratio
    assert busy - sum(site.tokens) - 1e-6 * busy - 2 <= found.bill_pusd - found.idle_pusd <= busy * (1 + 1e-9)


@SOME
@given(sites(), hostings(), st.floats(0.3, 1))
def test_a_stricter_limit_never_lowers_the_bill_of_right_sized_replicas(site, hosting, stricter):
    how = hosting[0]._replace(utilization=0.6, spot_usd_per_gpu_hour=None)
    site = site._replace(tpot_slo_s=site.tpot_slo_s or 0.1)
    wide, narrow = rehosted(site, how), rehosted(site._replace(tpot_slo_s=site.tpot_slo_s * stricter), how)
    if wide is None:
        assert narrow is None
    elif narrow.capacity.bound != "missed":
        assert narrow.bill_pusd >= wide.bill_pusd


@SOME
@given(sites(), st.booleans())
def test_more_bits_never_cost_less(site, right_sized):
    for kind, names in (("weights", ("int8", "fp8", "bf16")), ("kv", ("int8", "bf16")), ("weights", ("int4", "bf16"))):
        schemes = WEIGHTS if kind == "weights" else KV
        share = 0.6 if right_sized else None
        found = [rehosted(site, Hosting(utilization=share, **{kind: schemes[name]})) for name in names]
        bills = [one.bill_pusd for one in found if one is not None and one.capacity.bound != "missed"]
        fewer_fit = [one is not None for one in found]
        assert fewer_fit == sorted(fewer_fit, reverse=True)
        if len(bills) == len(names):
            assert bills == sorted(bills)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.integers(0, 120), st.integers(1, 100))
def test_the_newsvendor_s_number_costs_least_of_all(needed, reserved, on_demand):
    found = reserve(needed, Fraction(reserved, on_demand))
    costs = oracle.reservation_costs(needed, reserved, on_demand)
    assert costs[found] == min(costs)
    # of those that cost the same, the fewest: a reservation binds
    assert found == costs.index(min(costs))


@pytest.mark.parametrize(
    ("needed", "ratio", "kept"),
    [
        ([1, 1, 1, 4], Fraction(0), 4), ([1, 1, 1, 4], Fraction(1, 4), 1), ([1, 1, 1, 4], Fraction(24, 100), 4),
        ([1, 1, 1, 4], Fraction(99, 100), 1), ([1, 1, 1, 4], Fraction(1), 0), ([0, 0, 3], Fraction(1, 3), 0),
        ([3] * 5, Fraction(9, 10), 3), ([3] * 5, Fraction(2), 0), ([], Fraction(1, 2), 0),
    ],
)  # fmt: skip
def test_reserved_replicas_by_hand(needed, ratio, kept):
    assert reserve(needed, ratio) == kept


def site_by_hand(**more):
    """Three replicas of 8B on an L4 at $0.80, eight hours, at most 4 at once: each gives `each` tokens/s."""
    one, load = deployment("llama-3.1-8b", "l4"), Load(1000.0, 0.0, 400.0)
    each = pace(one, load, 4).tokens_per_s
    hourly = [each * share for share in (0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 1.5, 2.5)]
    made = Site(one, 3, Decimal("0.8"), Fraction(8), 4, load, Tokens(10**6, 0, 4 * 10**5), hourly, [0.0] * 8, 0.25)
    return made._replace(**more), each


def test_right_sizing_and_reserving_by_hand():
    site, each = site_by_hand()
    assert rehosted(site, Hosting()).bill_pusd == 3 * 8 * 8 * 10**11  # $19.20
    # the busiest hour takes 2.5 replicas' whole capacity: 3, of which each at most 0.9; at least 2 are left
    assert rehosted(site, Hosting(utilization=0.9)).replicas == 3
    assert rehosted(site, Hosting(utilization=0.6)).replicas == 5  # 4.17: more than today, and dearer
    assert rehosted(site, Hosting(utilization=0.6)).bill_pusd == 5 * 8 * 8 * 10**11
    # at $0.50 reserved, two that every hour needs are reserved; the third, in one hour of eight, is not
    reserved = Hosting(utilization=0.9, reserved_usd_per_gpu_hour=Decimal("0.5"))
    kept = rehosted(site, reserved._replace(follows=True))
    assert (kept.replicas, kept.reserved, kept.on_demand_hours) == (3, 2, 1)
    assert kept.bill_pusd == 2 * 8 * 5 * 10**11 + 8 * 10**11
    # where they are not stopped by the hour, all three are needed all the time, and an offer that is too dear is none
    assert rehosted(site, reserved).reserved == 3
    assert rehosted(site, reserved._replace(reserved_usd_per_gpu_hour=Decimal(5))).bill_pusd == 3 * 8 * 8 * 10**11
    assert rehosted(site, Hosting(utilization=0.9, follows=True)).on_demand_hours == 2 * 8 + 1
    # without right-sizing all three are needed in every hour
    assert rehosted(site, Hosting(reserved_usd_per_gpu_hour=Decimal("0.5"))).bill_pusd == 3 * 8 * 5 * 10**11
    assert rehosted(site, Hosting(reserved_usd_per_gpu_hour=Decimal("0.9"))).bill_pusd == 3 * 8 * 8 * 10**11
    quiet, _ = site_by_hand(hourly=[each * 0.1] * 8)
    assert rehosted(quiet, Hosting(utilization=0.6)).replicas == 2
    assert rehosted(quiet._replace(replicas=1), Hosting(utilization=0.6)).replicas == 1
    free = rehosted(site._replace(usd_per_gpu_hour=Decimal(0)), Hosting(reserved_usd_per_gpu_hour=Decimal(1)))
    assert (free.bill_pusd, free.idle_pusd, free.rates) == (0, 0, (0, 0, 0))


def test_spot_by_hand():
    # in the two busy hours, all but 1.5 replicas' worth of tokens may wait: 1 + 1 of today's 3 are then enough
    site, each = site_by_hand()
    site = site._replace(waiting=[0.0] * 6 + [0.0, each])
    how = Hosting(spot_usd_per_gpu_hour=Decimal("0.3"), spot_rework=0.1)
    # today's 3 carry 2.5; 1.5 then is 3/5 of that: 1.8, so 2. The third is on spot for eight hours, a tenth twice
    found = rehosted(site, how)
    assert (found.replicas, found.on_demand_hours) == (3, 2 * 8)
    assert float(found.spot_hours) == pytest.approx(8.8)
    assert found.bill_pusd == pytest.approx(2 * 8 * 8 * 10**11 + 8.8 * 3 * 10**11, abs=10)
    # at today's price nothing is saved, and what is done twice costs more
    same = how._replace(spot_usd_per_gpu_hour=Decimal("0.8"))
    assert rehosted(site, same._replace(spot_rework=0.0)).bill_pusd == 3 * 8 * 8 * 10**11
    assert rehosted(site, same).bill_pusd > 3 * 8 * 8 * 10**11
    # right-sized, 1.5 / 0.6 stay of 2.5 / 0.6: 3 of 5
    assert rehosted(site, how._replace(utilization=0.6)).on_demand_hours == 3 * 8
    # nothing may wait: nothing changes
    assert rehosted(site._replace(waiting=[0.0] * 8), how).bill_pusd == 3 * 8 * 8 * 10**11


def test_today_s_number_of_gpus_stays_within_reach():
    # a replica of 16 GPUs, or of 3, may keep its width with other weights
    for tp in (16, 3):
        one = deployment("llama-3.1-70b", "l4", tp, "fp8") if tp == 16 else deployment("llama-3.1-70b", "h100-sxm", tp)
        load = Load(500.0, 0.0, 200.0)
        limit = pace(one, load, 1).tpot_s * 1.02
        site = Site(one, 2, Decimal(1), Fraction(1), 8, load, Tokens(500, 0, 200), [1.0], [0.0], 0.1, limit)
        found = rehosted(site, Hosting(weights=WEIGHTS["int4"], utilization=0.6))
        assert found.capacity.bound != "missed"
        assert found.bill_pusd <= 2 * tp * 10**12


def test_gpu_time_is_the_oracle_s():
    one = deployment("llama-3.1-70b", "h100-sxm", 4)
    for load in (Load(1000.0, 500.0, 200.0), Load(0.0, 500.0, 200.0)):
        for how in (None, Speculation(0.7, 4, 0.05)):
            expected = oracle.gpu_seconds(replica(one), load, 20, as_draft(how))
            assert gpu_seconds(one, load, 20, how) == pytest.approx(expected, rel=1e-9)


@SOME
@given(st.integers(0, 10**18), st.tuples(*[st.integers(0, 10**9)] * 3), st.tuples(*[st.floats(0, 1)] * 3))
def test_shares_are_whole_and_never_more_than_there_is(pusd, tokens, seconds):
    rates = shared_out(pusd, Tokens(*tokens), seconds)
    spent = sum(rate * count for rate, count in zip(rates, tokens, strict=True))
    assert 0 <= spent <= pusd
    if any(second * count for second, count in zip(seconds, tokens, strict=True)):
        assert pusd - spent < sum(tokens) or spent == 0


def test_speculation_costs_at_full_batches_and_saves_at_a_tight_limit():
    one, load = deployment("llama-3.1-8b", "h100-sxm"), Load(200.0, 0.0, 400.0)
    drafts = Speculation(0.7, 4, 0.05)
    site = Site(one, 8, Decimal(3), Fraction(1), 1024, load, Tokens(1, 0, 1), [1.0], [0.0], 0.1)
    assert rehosted(site, Hosting(speculation=drafts)).bill_pusd > rehosted(site, Hosting()).bill_pusd
    tight = site._replace(tpot_slo_s=pace(one, load, 4).tpot_s)
    assert rehosted(tight, Hosting(speculation=drafts)).bill_pusd < rehosted(tight, Hosting()).bill_pusd
