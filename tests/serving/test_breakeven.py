"""API against GPUs of one's own: the arithmetic by hand, and the mix as the log has it."""

import math
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from fleets import START, ledger_of

from tenfold.errors import NotEvaluable
from tenfold.serving import roofline
from tenfold.serving.api_mix import Kind, Mix, api_mix
from tenfold.serving.breakeven import Terms, assumptions, break_even, grown, impossible, sensitivity
from tenfold.serving.memory import deployment
from tenfold.serving.sizing import size

USD = 10**12
ONE = deployment("llama-3.1-8b", "h100-sxm", 1, "fp8")
# 1,000 requests of 900 computed, 0 cached and 100 output tokens in ten days, at 1 and 4 USD per million: 1.30 USD
MIX = Mix(
    requests=1000, unpriced_requests=0, computed=Kind(900_000, 900_000 * 10**6), cached=Kind(0, 0),
    output=Kind(100_000, 100_000 * 4 * 10**6), other_pusd=0, peak_tokens_per_s=2.0, peak_at=START, days=10,
    label="measured", source="as billed",
)  # fmt: skip
TERMS = Terms(ONE, Decimal("2.50"))


def test_two_replicas_for_availability_by_hand():
    found = break_even(MIX, TERMS)
    assert (found.replicas, found.gpus) == (2, 2)
    # 2 GPUs x 2.50 x 729.6 h = 3,648 USD; the API bills 1.30 USD per million tokens of this mix
    assert found.self_pusd_per_month == 3648 * USD
    assert found.tokens_per_month == math.ceil(3648 / 1.30 * 10**6)
    rate = size(ONE, 900, 100).tokens_per_s_per_gpu.mid
    assert found.tokens_per_s == pytest.approx(rate, rel=0.02)  # without the first step's wait
    could = 2 * found.tokens_per_s * 10 * 729.6 * 3600  # ten tokens in all for each of the answer
    assert found.utilisation_ratio == pytest.approx(3648 / 1.30 * 10**6 / could)
    # u* = price x 1e6 / (3600 x tokens a second x USD per million): serving.md 9
    assert found.utilisation_ratio == pytest.approx(2.50 * 1e6 / (3600 * found.tokens_per_s * 10 * 1.30))
    assert found.api_pusd_per_month == round(1.30 * 3.04 * USD)
    assert found.measured_ratio == pytest.approx(3_040_000 / could)
    assert found.pays is False


def test_the_busiest_hour_sets_the_replicas():
    rate = break_even(MIX, TERMS).tokens_per_s
    for times, replicas in ((1.0, 2), (1.9, 4), (3.0, 5), (6.0, 10)):
        found = break_even(replace(MIX, peak_tokens_per_s=rate * times), TERMS)
        assert found.replicas == replicas == max(2, math.ceil(times / 0.6 - 1e-9))
    tp2 = replace(TERMS, deployment=deployment("llama-3.1-8b", "h100-sxm", 2, "fp8"))
    assert break_even(MIX, tp2).gpus == 4


def test_it_pays_where_the_traffic_is_more_than_the_break_even():
    found = break_even(MIX, TERMS)
    many = 3000
    busy = replace(
        MIX, requests=1000 * many, computed=Kind(900_000 * many, 900_000 * 10**6 * many),
        output=Kind(100_000 * many, 400_000 * 10**6 * many),
    )  # fmt: skip
    more = break_even(busy, TERMS)
    assert more.tokens_per_month == found.tokens_per_month
    assert more.pays is True
    assert busy.tokens_per_month > more.tokens_per_month


def test_ops_are_part_of_what_hosting_costs():
    found = break_even(MIX, replace(TERMS, ops_usd_per_month=Decimal(10_000)))
    assert found.self_pusd_per_month == 13_648 * USD
    assert found.tokens_per_month == math.ceil(13_648 / 1.30 * 10**6)


def test_nothing_is_projected_below_seven_days():
    short = break_even(replace(MIX, days=6), TERMS)
    assert (short.api_pusd_per_month, short.measured_ratio, short.pays) == (None, None, None)
    assert short.tokens_per_month == break_even(MIX, TERMS).tokens_per_month
    assert grown(replace(MIX, days=6), TERMS) is None
    assert break_even(replace(MIX, days=7), TERMS).pays is False


def test_growing_in_step_by_hand():
    # the peak is 10 times the mean: 2 replicas carry rate x 0.6 at it
    found, here = grown(MIX, TERMS), break_even(MIX, TERMS)
    each = 3_040_000 * here.tokens_per_s * 0.6 / 2.0
    assert (found.tokens_per_month, found.replicas) == (here.tokens_per_month, 2)
    assert here.tokens_per_month < 2 * each
    assert found.times == pytest.approx(here.tokens_per_month / 3_040_000)
    # ops of 6,000 USD a month take more than two replicas' worth of traffic
    dear = replace(TERMS, ops_usd_per_month=Decimal(600_000))
    least = grown(MIX, dear)
    need = [(n * 1824 + 600_000) / 1.30 * 10**6 <= n * each for n in range(2, 200)]
    assert least.replicas == 2 + need.index(True)
    assert least.replicas > 2


def test_growing_never_pays_where_the_api_is_cheaper_than_full_gpus():
    cheap = replace(MIX, computed=Kind(900_000, 900_000 * 10**3), output=Kind(100_000, 100_000 * 10**3))
    assert break_even(cheap, TERMS).utilisation_ratio > 1
    assert grown(cheap, TERMS) is None


def test_sensitivity_moves_one_thing_at_a_time():
    mix = replace(MIX, cached=Kind(300_000, 30_000 * 10**6), peak_tokens_per_s=20_000.0)
    rows = sensitivity(mix, TERMS, [("spot", Decimal("1.25"))])
    by = {(row.what, row.value): row for row in rows}
    here = break_even(mix, TERMS)
    assert by["throughput", "mid"][2:] == here[2:]
    low, high = by["throughput", "low"], by["throughput", "high"]
    assert low.gpus > here.gpus > high.gpus
    assert by["price", "spot"].self_pusd_per_month * 2 == here.self_pusd_per_month
    assert by["utilisation", "0.8"].gpus < by["utilisation", "0.4"].gpus
    uncached = by["mix", "nothing read from a cache"]
    assert uncached.tokens_per_s < here.tokens_per_s  # what was cached is computed, on both sides
    assert uncached.api_pusd_per_month > here.api_pusd_per_month
    assert by["ops", "20,000 USD a month"].self_pusd_per_month == here.self_pusd_per_month + 20_000 * USD
    assert {row.what for row in rows} == {"throughput", "TPOT limit", "price", "utilisation", "mix", "ops"}


def test_a_measurement_scales_the_rate():
    slow = break_even(MIX, replace(TERMS, scale=0.5, is_calibrated=True))
    assert slow.tokens_per_s == pytest.approx(break_even(MIX, TERMS).tokens_per_s / 2)
    rows = {row.value: row for row in sensitivity(MIX, replace(TERMS, is_calibrated=True)) if row.what == "throughput"}
    wide = {row.value: row for row in sensitivity(MIX, TERMS) if row.what == "throughput"}
    assert wide["low"].tokens_per_s < rows["low"].tokens_per_s


def test_a_limit_on_time_per_token_lowers_the_batch():
    tight = break_even(MIX, replace(TERMS, tpot_slo_s=0.010))
    free = break_even(MIX, TERMS)
    assert tight.batch < free.batch
    assert tight.tokens_per_s < free.tokens_per_s
    with pytest.raises(NotEvaluable, match="no number of replicas keeps it"):
        break_even(MIX, replace(TERMS, tpot_slo_s=0.0001))


@pytest.mark.parametrize(
    ("mix", "terms", "said"),
    [
        (replace(MIX, computed=Kind(9, 0), output=Kind(1, 0)), TERMS, "bills nothing"),
        (replace(MIX, output=Kind(0, 0)), TERMS, "no output tokens"),
        (MIX, replace(TERMS, deployment=deployment("llama-3.1-70b", "h100-sxm")), "does not fit on 1 x h100-sxm"),
    ],
)
def test_what_cannot_be_compared_says_why(mix, terms, said):
    with pytest.raises(NotEvaluable, match=said):
        break_even(mix, terms)


def api(hours, computed, cached, output, **more):
    return {
        "ts": START + timedelta(hours=hours), "provider": "openai", "model": "m1", "input_tokens": computed + cached,
        "cache_read_tokens": cached, "output_tokens": output, **more,
    }  # fmt: skip


REQUESTS = [
    api(0, 1000, 500, 200), api(0.5, 2000, 0, 700), api(30, 100, 100, 100), api(50, 5, 0, 5, model="unknown"),
    api(60, 3000, 1000, 400, provider="self-hosted", model="m-own"),
    api(61, 10, 0, 20, team="x"),
]  # fmt: skip


def test_the_mix_is_that_of_the_api_requests(tmp_path):
    found = api_mix(ledger_of(REQUESTS, tmp_path))
    assert (found.requests, found.unpriced_requests, found.days, found.label) == (4, 1, 3, "measured")
    # 1 USD per million computed, 0.1 cached, 4 output
    assert found.computed == Kind(3110, 3110 * 10**6)
    assert found.cached == Kind(600, 600 * 10**5)
    assert found.output == Kind(1020, 1020 * 4 * 10**6)
    assert (found.peak_tokens_per_s, found.peak_at) == (900 / 3600, START)
    assert found.tokens_per_month is None


def test_where_names_the_traffic(tmp_path):
    found = api_mix(ledger_of(REQUESTS, tmp_path), where="team = 'x'")
    assert (found.requests, found.output.tokens) == (1, 20)
    with pytest.raises(NotEvaluable, match="no request with a price and a time to compare: widen --where"):
        api_mix(ledger_of(REQUESTS, tmp_path), where="team = 'y'")


def test_hosted_traffic_at_an_apis_price(tmp_path):
    found = api_mix(ledger_of(REQUESTS, tmp_path), api=("openai", "m1"))
    assert (found.requests, found.label, found.source) == (1, "modelled", "openai/m1")
    assert found.computed == Kind(3000, 3000 * 10**6)
    assert found.cached == Kind(1000, 1000 * 10**5)
    assert found.output == Kind(400, 1600 * 10**6)
    with pytest.raises(NotEvaluable, match="no self-hosted request with a price"):
        api_mix(ledger_of(REQUESTS[:4], tmp_path), api=("openai", "m1"))
    with pytest.raises(NotEvaluable, match="no API request with a price"):
        api_mix(ledger_of(REQUESTS[4:5], tmp_path))


def test_days_are_those_of_the_window(tmp_path):
    found = api_mix(ledger_of(REQUESTS, tmp_path, START, START + timedelta(days=10)))
    assert found.days == 10
    assert found.tokens_per_month == Fraction((3110 + 600 + 1020) * 304, 100)


# an API without a cache, and one whose prices have ended
OTHERS = """
provider = "other"
[[price]]
model = "plain"
input = 2
output = 5
source = "by hand"
checked = 2026-11-29
[[price]]
model = "gone"
valid_to = 2026-01-01
input = 2
output = 5
source = "by hand"
checked = 2026-11-29
"""


@pytest.fixture
def hosted(tmp_path):
    """Two self-hosted requests, 4,000 and 500 tokens read from a cache, and prices of another provider."""
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "other.toml").write_text(OTHERS)
    own = {"provider": "self-hosted", "model": "m-own"}
    return ledger_of([api(0, 1000, 4000, 200, **own), api(1, 100, 500, 50, **own)], tmp_path)


def test_an_api_without_a_cache_bills_cached_tokens_as_input(hosted):
    found = api_mix(hosted, api=("other", "plain"))
    assert (found.requests, found.unpriced_requests, found.as_input_tokens) == (2, 0, 4500)
    assert found.computed == Kind(1100, 1100 * 2 * 10**6)
    assert found.cached == Kind(4500, 4500 * 2 * 10**6)
    assert found.output == Kind(250, 250 * 5 * 10**6)
    mix = replace(found, days=10)
    assert any("no rate for 4,500 tokens" in said for said in assumptions(mix, TERMS, break_even(mix, TERMS)))
    assert api_mix(hosted, api=("openai", "m1")).as_input_tokens == 0


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"where": "provider = 'self-hosted'"}, "2 requests self-hosted: name the API to compare with, --api-model"),
        ({"api": ("other", "plein")}, 'other has no price for model "plein". Did you mean "plain"'),
        ({"api": ("other", "gone")}, "gone has no price at .*: the last one ended 2026-01-01"),
    ],
)
def test_a_price_that_is_missing_is_named(hosted, asked, said):
    with pytest.raises(NotEvaluable, match=said):
        api_mix(hosted, **asked)


def test_what_has_no_price_is_counted_and_says_why(tmp_path):
    (tmp_path / "prices").mkdir()
    (tmp_path / "prices" / "other.toml").write_text(OTHERS)
    plain = {"provider": "other", "model": "plain"}
    rows = [api(0, 100, 0, 10, **plain), api(1, 100, 900, 20, **plain), api(2, 7, 0, 3, model="unknown")]
    found = api_mix(ledger_of(rows, tmp_path))
    assert (found.requests, found.unpriced_requests, found.unpriced_tokens) == (1, 2, 1020 + 10)
    assert found.why_unpriced == (
        "1 request with a kind of tokens that has no rate; "
        "1 request to models without a price: `tenfold cost` names them"
    )


def test_batch_and_time_per_token_are_assumed_and_a_limit_moves_the_answer():
    found = break_even(MIX, TERMS)
    step = roofline.speed(ONE, found.batch, 900, 100)
    assert found.tpot_s == pytest.approx(step.tpot_s)
    assert assumptions(MIX, TERMS, found)[0].startswith(
        f"{found.batch} requests at once a replica, {step.tpot_s * 1e3:,.0f} ms an output token: no limit on it is set"
    )
    limited = {row.value: row for row in sensitivity(MIX, TERMS) if row.what == "TPOT limit"}
    assert list(limited) == ["none", "80 ms a token", "40 ms a token", "20 ms a token"]
    assert limited["none"][2:] == found[2:]
    assert limited["20 ms a token"].tpot_s <= 0.020
    assert limited["20 ms a token"].tokens_per_s < found.tokens_per_s
    assert impossible(MIX, TERMS, sensitivity(MIX, TERMS)) == []
    slow = replace(TERMS, deployment=deployment("llama-3.1-8b", "l4", 1, "fp8"))  # 8 GB at 300 GB/s: 27 ms a token
    assert impossible(MIX, slow, sensitivity(MIX, slow)) == ["TPOT limit 20 ms a token"]
    # slower by half as measured: the time per token too
    half = break_even(MIX, replace(TERMS, scale=0.5))
    assert half.tpot_s == pytest.approx(2 * found.tpot_s)


def test_heads_that_do_not_divide_cannot_be_served():
    with pytest.raises(NotEvaluable, match="32 query heads do not divide among 3 GPUs"):
        break_even(MIX, replace(TERMS, deployment=ONE._replace(tp=3)))


def test_the_throughput_of_experts_is_less_certain():
    experts = replace(TERMS, deployment=deployment("gpt-oss-120b", "h100-sxm", 4))
    rows = {row.value: row for row in sensitivity(MIX, experts) if row.what == "throughput"}
    ends = sorted(row.tokens_per_s for row in rows.values())
    rate = break_even(MIX, experts).tokens_per_s
    assert [end / rate for end in (ends[0], ends[-1])] == pytest.approx(roofline.interval(calibrated=False, moe=True))
