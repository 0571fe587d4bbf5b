"""Self-hosted requests priced by their fleet: by hand, against a slow second reading, and by what must always hold."""

import math
import random
from dataclasses import replace

import pytest
from fleets import MODEL, START, at, busy_us, carried_pusd, fleet_file, ledger_of, on, pool, rates, request
from hypothesis import given, settings
from hypothesis import strategies as st

import tenfold as tf
from tenfold.errors import AssumptionError, NotEvaluable, PriceFileError, ServingError
from tenfold.ledger import Ledger, Window
from tenfold.serving.roofline import FITTED
from tenfold.serving.specs import gpu, model

HOUR = 3600
USD = 10**12


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A request of our own and one at an API."""
    api = {**request(0, 10), "provider": "openai", "model": "m1"}
    return on([request(0, 10, request_id="r"), api], tmp_path_factory.mktemp("plain"))


def gpu_seconds(uncached, cached, output, batch):
    """serving.md 3 with the fitted constants, for Llama-3.1-8B in bf16 on one H100: seconds a token."""
    spec, card = model(MODEL), gpu("h100-sxm")
    layers, queries = spec.layer_count, spec.q_heads * spec.head_dim
    rate = card.flops("bf16") * FITTED.compute_efficiency
    prefill = (2 * spec.params * uncached + 2 * layers * queries * uncached**2) / rate
    kv = 2 * layers * spec.kv_heads * spec.head_dim * 2 * (uncached + cached + output / 2)
    moved = (2 * spec.params + batch * kv) / (card.bandwidth * FITTED.memory_efficiency)
    step = max(moved, 2 * spec.params * batch / rate)
    step += FITTED.step_s + layers * (FITTED.layer_s + FITTED.sequence_s * batch)
    return prefill / uncached, 4 * layers * queries * uncached / rate, step / batch


def test_two_overlapping_requests_by_hand(tmp_path):
    # 0 to 900 s and 450 to 1,350 s on one replica at 2 USD: busy 1,350 of 3,600 s, 0.75 USD; 1,800 / 1,350 at once
    ledger = on([request(0, 900, 1000, 500, 100), request(450, 900, 3000, 1500, 300)], tmp_path)
    (one,) = ledger.hosted
    assert (one.label, one.busy_ratio, one.bill_pusd, one.hours) == ("measured", 0.375, 2 * USD, 1.0)
    assert (one.demand.busy_us, one.demand.in_flight_us, one.demand.peak) == (1350 * 10**6, 1800 * 10**6, 2)
    assert one.batch == pytest.approx(4 / 3)
    seconds = gpu_seconds(2000, 1000, 200, 4 / 3)
    assert one.gpu_s == pytest.approx(seconds, rel=1e-9)
    assert tuple(one.rates) == pytest.approx(rates(int(0.75 * USD), (4000, 2000, 400), seconds), abs=1)
    carried = 4000 * one.rates.input + 2000 * one.rates.cached + 400 * one.rates.output
    assert 0.75 * USD - 6400 < carried <= 0.75 * USD  # rounded down by less than 1 pUSD a token
    assert one.idle_pusd == 2 * USD - carried
    assert ledger.total_pusd == carried == carried_pusd(ledger)
    assert [charge.pusd for charge in ledger.charges] == [one.idle_pusd]


def test_hourly_profile_by_hand(tmp_path):
    # from 0:30 to 2:30: one that runs 0:45 to 1:15, two that start at 1:30
    requests = [request(0, 60), request(2700, 1800, output=7), request(5400, 60), request(5400, 120, output=5)]
    one = pool(to="2026-07-01T02:30:00Z")
    ledger = tf.on_fleet(ledger_of(requests, tmp_path, at(1800), at(9000)), fleet_file(tmp_path, one))
    hours = ledger.hosted[0].demand.hours
    assert [(hour.starts_at, hour.seconds) for hour in hours] == [
        (at(1800), 1800.0), (at(3600), 3600.0), (at(7200), 1800.0),
    ]  # fmt: skip
    assert [(hour.requests, hour.output_tokens, hour.peak) for hour in hours] == [(1, 7, 1), (2, 105, 2), (0, 0, 0)]
    assert [hour.in_flight for hour in hours] == pytest.approx([900 / 1800, (900 + 180) / 3600, 0.0])
    assert sum(hour.input_tokens for hour in hours) == ledger.hosted[0].demand.input_tokens == 3000


def test_replicas_are_told_apart_where_the_log_names_them(tmp_path):
    # both on replica a: one replica is busy for 150 s; without names, two replicas with one each for 50 s of it
    pair = [request(0, 100, replica="a"), request(50, 100, replica="a")]
    assert on(pair, tmp_path, replicas=2).hosted[0].demand.busy_us == 150 * 10**6
    nameless = [{**one, "replica": None} for one in pair]
    assert on(nameless, tmp_path, replicas=2).hosted[0].demand.busy_us == 200 * 10**6
    assert on([pair[0], nameless[1]], tmp_path, replicas=2).hosted[0].demand.busy_us == 200 * 10**6


def against_the_slow_reading(seed, folder):
    rng = random.Random(seed)
    names = rng.choice([(None,), ("a", "b"), ("a", "b", None)])
    requests = [
        request(
            rng.uniform(0, 3000), rng.choice([0, 1e-6, rng.uniform(0, 900)]), rng.randrange(1, 4000),
            rng.choice([0, rng.randrange(4000)]), rng.randrange(1, 900), replica=rng.choice(names),
        )
        for _ in range(rng.randrange(1, 25))
    ]  # fmt: skip
    requests += [{**request(10, 10), "provider": "openai", "model": "m1"}]
    until = rng.choice([HOUR, 1800.5])
    pools = (
        pool(replicas=2, usd=rng.choice([2, "2.95", "0.0000001"])),
        pool(replicas=1, usd=3, to="2026-07-01T00:15:00Z"),
    )
    ledger = on(requests, folder, *pools, hours=until / HOUR)
    own = [one for one in requests[:-1] if (one["ts"] - START).total_seconds() < until]
    for one, (since_s, until_s, replicas) in zip(ledger.hosted, ((0, 900, 3), (900, until, 2)), strict=True):
        inside = [each for each in own if since_s <= (each["ts"] - START).total_seconds() < until_s]
        assert one.demand.requests == len(inside)
        assert one.demand.output_tokens == sum(each["output_tokens"] for each in inside)
        assert one.demand.busy_us == busy_us(own, since_s, until_s, replicas)
    assert carried_pusd(ledger) + sum(charge.pusd for charge in ledger.charges) == ledger.bill_pusd
    assert all(charge.pusd >= 0 for charge in ledger.charges)
    backwards = on(requests[::-1], folder, *pools, hours=until / HOUR)
    assert [one.rates for one in backwards.hosted] == [one.rates for one in ledger.hosted]


def test_against_the_slow_reading(tmp_path):
    against_the_slow_reading(14, tmp_path)


@pytest.mark.full
@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**9))
def test_against_the_slow_reading_at_length(tmp_path_factory, seed):
    against_the_slow_reading(seed, tmp_path_factory.mktemp("fleet"))


@pytest.mark.full
def test_rates_scale_with_the_price(tmp_path):
    requests = [request(10 * number, 30, 900, 100, 50) for number in range(20)]
    (once,), (thrice,) = (on(requests, tmp_path, usd=usd).hosted for usd in (2, 6))
    for low, high in zip(once.rates, thrice.rates, strict=True):
        assert 3 * low <= high <= 3 * low + 2
    assert once.busy_ratio == thrice.busy_ratio


def test_pools_that_change_give_a_price_from_then_on(tmp_path):
    pools = (pool(usd=2, to="2026-07-01T00:30:00Z"), pool(usd=8, **{"from": "2026-07-01T00:30:00Z"}))
    # the same busy minute, at 2 and at 8 USD an hour
    ledger = on([request(0, 60, request_id="early"), request(1800, 60, request_id="late")], tmp_path, *pools)
    early, late = (int(float(ledger.explain(name)["cost_usd"]) * 1e9) for name in ("early", "late"))
    assert late == pytest.approx(4 * early, rel=1e-6)
    assert [one.idle_pusd > 0 for one in ledger.hosted] == [True, True]
    assert [charge.pusd for charge in ledger.charges] == [one.idle_pusd for one in ledger.hosted]


def test_a_request_that_goes_on_when_pools_change_is_busy_in_both(tmp_path):
    pools = (pool(to="2026-07-01T00:30:00Z"), pool(usd=8, **{"from": "2026-07-01T00:30:00Z"}))
    ledger = on([request(1790, 30), request(3000, 1)], tmp_path, *pools)
    assert [one.demand.busy_us for one in ledger.hosted] == [10 * 10**6, 21 * 10**6]


def test_the_window_is_the_logs_own_where_none_is_given(tmp_path):
    ledger = on([request(100, 50), request(200, 300), request(300, None)], tmp_path, hours=None)
    assert ledger.span == (at(100), at(500))
    assert ledger.bill_pusd == round(2 * USD * 400 / 3600)


def test_what_has_no_pool_stays_unpriced_and_is_named(tmp_path):
    gap = (pool(to="2026-07-01T00:10:00Z"), pool(**{"from": "2026-07-01T00:20:00Z"}))
    requests = [
        request(0, 1), request(900, 1), request(5, 1, model="our/other"),
        request(6, 1) | {"output_tokens": None}, request(7, 1, is_billable=False), request(8, 1) | {"ts": None},
    ]  # fmt: skip
    ledger = on(requests[:5], tmp_path, *gap)
    assert ledger.hosted[0].demand.requests == 1
    assert "1 request of our/other: no pool of the fleet runs it, so they have no price" in ledger.notes
    assert any(note.startswith("2 requests of the fleet's models without a price") for note in ledger.notes)
    assert any("no request in this window" in note for note in ledger.notes) is False
    assert ledger.coverage.unpriced_requests == 3
    undated = on(requests, tmp_path, *gap, hours=None)
    assert carried_pusd(undated) + undated.idle_pusd == undated.bill_pusd


@pytest.mark.full
def test_a_model_without_requests_is_all_idle(tmp_path):
    ledger = on([request(0, 10)], tmp_path, pool(), pool(model="Qwen/Qwen3-32B", usd=5))
    assert ledger.hosted[1].idle_pusd == ledger.hosted[1].bill_pusd == 5 * USD
    assert any(note.startswith(f'{ledger.fleet.place}, pool 2: no request of the log is of model "Qwen/Qwen3-32B"')
               for note in ledger.warnings)  # fmt: skip
    assert ledger.charges[1].model == "Qwen/Qwen3-32B"


def test_a_log_without_self_hosted_requests(tmp_path):
    api = [{**request(0, 1), "provider": "openai", "model": "m1"}]
    for hours in (1, None):
        with pytest.raises(NotEvaluable, match=r"providers: openai.*matches any.*--set provider=self-hosted"):
            on(api, tmp_path, hours=hours)


def test_busier_than_the_fleet_can_be_is_refused_with_the_ratio(tmp_path):
    pods = [request(0, 3600, replica=name) for name in "abc"]
    with pytest.raises(
        ServingError, match=r"3 replicas in the log were busy for 1.50 times the hours .* fleet's 2 have"
    ):
        on(pods, tmp_path, replicas=2)


def test_a_restart_of_a_full_replica_is_a_full_fleet_and_is_said(tmp_path):
    pods = [request(0, 2000, replica="a"), request(1900, 1700, replica="b")]
    (one,) = on(pods, tmp_path).hosted
    assert one.busy_ratio == 1.0
    assert (
        "2 replicas in the log were busy for 1.03 times the hours that the fleet's 1 have: taken for busy throughout"
        in (one.notes)
    )
    assert 0 <= one.idle_pusd < 5000


def test_arrivals_say_how_busy_where_no_duration_is_known(tmp_path):
    requests = [request(36 * number, None, 2000, 0, 200) for number in range(100)]
    (one,) = on(requests, tmp_path).hosted
    assert one.label == "modelled"
    assert "busy share modelled from arrivals: none of 100 requests have a duration" in one.notes
    # M/G/infinity, by bisection: N = rate x time in system at batch N / (1 - e^-N)
    low, high = 0.0, 50.0
    for _ in range(200):
        number = (low + high) / 2
        prefill, _, output = gpu_seconds(2000, 0, 200, number / -math.expm1(-number))
        batch = number / -math.expm1(-number)
        step = output * batch
        takes = 200 * (step + batch / 200 * prefill * 2000)
        low, high = (number, high) if takes * 100 / 3600 > number else (low, number)
    assert one.busy_ratio == pytest.approx(-math.expm1(-number), rel=0.03)
    assert one.batch == pytest.approx(batch, rel=0.03)


def test_more_arrivals_than_can_be_decoded_are_refused_with_the_ratio(tmp_path):
    requests = [request(number / 10, None, 8000, 0, 2000) for number in range(9000)]
    with pytest.raises(ServingError, match=r"by the roofline its tokens take \d+\.\d\d times what 1 replica can give"):
        on(requests, tmp_path, hours=0.25)


def test_a_batch_that_does_not_fit_is_waiting(tmp_path):
    requests = [request(0, 3600, 100, 0, 100) for _ in range(40)]
    (one,) = on(requests, tmp_path, pool(max_batch=16)).hosted
    assert one.batch == 16
    assert any(note.startswith("40.0 requests under way in a replica, of which 16.0 fit") for note in one.notes)


def test_traffic_that_the_gpus_cannot_have_served_is_said(tmp_path):
    (one,) = on([request(0, 1, 50_000, 0, 2000)], tmp_path).hosted
    assert one.modelled_ratio > 2
    assert any("times the GPU time in which replicas were busy" in note for note in one.notes)


def test_a_log_that_runs_as_the_roofline_says_has_a_ratio_of_one(tmp_path):
    # eight streams, each of which asks again as soon as it is answered: TTFT + 199 x TPOT, serving.md 3
    prefill, _, output = gpu_seconds(1000, 0, 200, 8)
    step, prompt = 8 * output, 1000 * prefill
    takes = step + prompt + 199 * (step + 8 / 200 * prompt)
    rounds = int(600 / takes)
    requests = [request(n * takes, takes, 1000, 0, 200) for n in range(rounds) for _ in range(8)]
    (one,) = on(requests, tmp_path).hosted
    assert one.batch == pytest.approx(8)
    assert one.modelled_ratio == pytest.approx(1, rel=0.02)
    assert one.notes == ()


@pytest.mark.full
def test_unlike_pools_are_averaged_by_cost_and_said(tmp_path):
    requests = [request(0, 1800)]
    ledger = on(requests, tmp_path, pool(usd=3), pool(gpu="l4", usd=1, weights="fp8"))
    (one,) = ledger.hosted
    apart = [on(requests, tmp_path, text).hosted[0].gpu_s for text in (pool(), pool(gpu="l4", weights="fp8"))]
    assert one.gpu_s.output == pytest.approx(0.75 * apart[0].output + 0.25 * apart[1].output, rel=1e-9)
    assert one.deployment.gpu.name == "h100-sxm"
    assert any("its pools differ" in note for note in one.notes)
    assert sum(charge.pusd for charge in ledger.charges) == one.idle_pusd
    assert ledger.charges[0].pusd == pytest.approx(3 * ledger.charges[1].pusd, abs=3)


@pytest.mark.full
def test_gpus_that_cost_nothing(tmp_path):
    ledger = on([request(0, 10)], tmp_path, usd=0)
    assert (ledger.bill_pusd, ledger.idle_pusd, ledger.total_pusd) == (0, 0, 0)
    assert ledger.coverage.unpriced_requests == 0


@pytest.mark.full
def test_silent_pools_are_assumed_to_be_in_bf16(tmp_path):
    text = pool().replace('weights = "bf16"\n', "").replace('kv = "bf16"\n', "")
    assert on([request(0, 10)], tmp_path, text).hosted[0].notes[0].startswith("weights and kv taken to be bf16")


def test_another_window_is_another_bill(tmp_path):
    ledger = on([request(0, 10), request(5000, 10)], tmp_path, hours=2)
    later = ledger.within(Window(at(3600), at(7200)))
    assert (later.bill_pusd, later.hosted[0].demand.requests) == (2 * USD, 1)
    assert tf.on_fleet(ledger, ledger.fleet).idle_pusd == ledger.idle_pusd  # laid on anew, not twice


def test_a_window_that_outlasts_the_log_is_said(tmp_path):
    notes = on([request(2 * 86400, 60)], tmp_path, hours=4 * 24).notes
    assert notes[-2:] == (
        "no self-hosted request before 2026-07-03 00:00 UTC: GPUs are idle until then",
        "no self-hosted request after 2026-07-03 00:01 UTC: GPUs are idle from then on",
    )


def test_the_card_is_named_by_book_and_fleet(plain):
    assert plain.book.version == f"{plain.base.book.version}+{plain.fleet.version}"
    entry = plain.explain("r")["entry"]
    assert "1 GPU x $2.00/h x 1 h, busy 0.3 % (measured)" in entry["source"]


def test_other_requests_keep_their_prices(plain):
    by = {row["provider"]: row["cost_usd"] for row in plain.composition("provider").rows()}
    assert by["openai"] == "0.0014"
    assert plain.charges_pusd == plain.idle_pusd
    assert plain.costs().total("contracted") == plain.total_pusd


def test_one_instant_for_all_prices_is_refused(plain):
    with pytest.raises(AssumptionError, match="leave out --price-at"):
        tf.on_fleet(Ledger(plain.log, plain.base.book, plain.window, START), plain.fleet)


def test_a_book_that_has_such_prices_already_is_refused(plain):
    with pytest.raises(PriceFileError, match='prices of provider "self-hosted" already'):
        tf.on_fleet(Ledger(plain.log, plain.book, plain.window), plain.fleet)


def test_a_fleet_made_in_python_is_checked_too(plain):
    with pytest.raises(ServingError, match=r"fleet, pool 1 .*GPU \"nope\""):
        tf.on_fleet(plain, tf.Fleet((replace(plain.fleet.pools[0], gpu="nope"),)))
