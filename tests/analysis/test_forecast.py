"""Forecasts: planted series, prices ahead, how wide ranges must be, what follows from scaling, shifting and order."""

import math
import random
import re
from dataclasses import astuple, replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from statistics import fmean

import bills
import pytest

from tenfold.analysis.forecast import forecast
from tenfold.analysis.forecast.learning import Accuracy, learn, width_of
from tenfold.analysis.forecast.owners import Own, by_share, compare, is_own_closer, own
from tenfold.analysis.forecast.prices import PricePath
from tenfold.analysis.forecast.smoothing import Pace, State, follow, logs, reach
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.ledger import Ledger, Window
from tenfold.money import PUSD_PER_USD

WEEKDAYS = (1.1, 1.15, 1.1, 1.05, 1.0, 0.4, 0.35)
KINDS = ("flat", "trend", "decline", "walk", "step", "noisy", "spikes", "waves")


def planted(kind, days, seed):
    """Requests and costs a day: a known process with weekdays, noise in both drivers, and what the kind says."""
    rng = random.Random(f"{kind}{seed}")
    level, each, wave = math.log(1000), math.log(0.01), 0.0
    requests, costs = [], []
    for day in range(days):
        level += {"trend": 0.01, "decline": -0.005, "walk": rng.gauss(0, 0.03)}.get(kind, 0)
        each += rng.gauss(0, 0.01) if kind == "walk" else 0
        level += math.log(1.5) if kind == "step" and day == 60 else 0
        wave = 0.9 * wave + rng.gauss(0, 0.05) if kind == "waves" else 0
        noise = rng.gauss(0, 0.25 if kind == "noisy" else 0.06)
        count = (
            math.exp(level + wave + noise) * WEEKDAYS[day % 7] * (4 if kind == "spikes" and rng.random() < 0.03 else 1)
        )
        requests.append(round(count))
        costs.append(requests[-1] * math.exp(each + rng.gauss(0, 0.04)))
    return requests, costs


def owner(counts):
    return own(counts, [float(count) for count in counts], 0.8)


def trial(kind, seed, past=92, ahead=28):
    """Whether the range held what came; the error, and that of repeating the last week."""
    requests, costs = planted(kind, past + ahead, seed)
    learned = learn(requests[:past], costs[:past], 0.8)
    mid, factor, actual = sum(learned.ahead(ahead)), learned.factor(0, ahead - 1), sum(costs[past:])
    naive = sum(costs[past - 7 : past]) * ahead / 7
    return mid / factor <= actual <= mid * factor, abs(mid / actual - 1), abs(naive / actual - 1)


def test_a_regular_series_goes_on_exactly():
    counts = [1000 * (2 if day % 7 < 5 else 1) for day in range(42)]
    learned = learn(counts, [2.0 * count for count in counts], 0.8)
    assert learned.ahead(14) == pytest.approx([2.0 * 1000 * (2 if day % 7 < 5 else 1) for day in range(14)], rel=1e-9)
    assert learned.factor(0, 13) < 1.01
    assert all(one.mape < 1e-9 and one.coverage == 1 for one in learned.accuracy)


def test_steady_growth_is_followed_and_fades():
    counts = [1000 * 1.01**day for day in range(92)]
    learned = learn(counts, counts, 0.8)
    # a month of 1 % a day is 35 %; growth fades by half a percent of itself a day
    grown = learned.ahead(30)[-1] / counts[-1]
    assert 1.28 < grown < 1.01**30
    assert learned.ahead(30, 0.0)[-1] == pytest.approx(learned.lift * counts[-1], rel=0.02)
    assert learned.ahead(30, 2.0)[-1] / counts[-1] > grown**1.8


def test_a_step_is_a_new_level_and_no_growth():
    counts = [1000 * (1 if day < 60 else 1.5) for day in range(92)]
    learned = learn(counts, counts, 0.8)
    assert sum(learned.ahead(28)) == pytest.approx(28 * 1500, rel=0.03)
    # the past's largest error was the step: no range goes further for that reason
    assert learned.factor(0, 27) <= 1.5 * 1.01


def test_what_a_step_did_to_growth_is_undone():
    stepped = logs([1000.0 if day < 40 else 1500.0 for day in range(43)])
    ends = follow(stepped, Pace(0.35, 0.15, 0.995, 0.1))[-1]
    assert ends.growth == pytest.approx(0, abs=1e-9)
    assert ends.level == pytest.approx(stepped[-1], rel=1e-3)


def test_a_single_spike_leaves_the_forecast_alone():
    requests, costs = planted("flat", 92, 1)
    calm = sum(learn(requests, costs, 0.8).ahead(28))
    requests[85], costs[85] = 6 * requests[85], 6 * costs[85]
    assert sum(learn(requests, costs, 0.8).ahead(28)) == pytest.approx(calm, rel=0.12)


def test_better_than_repeating_the_last_week_and_ranges_hold_what_comes():
    made = {kind: [trial(kind, seed) for seed in range(2)] for kind in ("trend", "noisy", "spikes", "walk")}
    everything = [one for kind in made.values() for one in kind]
    assert fmean(error for _, error, _ in everything) < 0.8 * fmean(naive for *_, naive in everything)
    assert fmean(held for held, *_ in everything) >= 0.75


@pytest.mark.full
@pytest.mark.parametrize("ahead", [28, 90])
def test_coverage_is_near_its_level_on_every_kind_of_series(ahead):
    made = {kind: [trial(kind, seed, ahead=ahead) for seed in range(60)] for kind in KINDS}
    held = {kind: fmean(one[0] for one in trials) for kind, trials in made.items()}
    # 80 % ranges, 60 trials: two standard errors are 0.10; what is never below the model errs to the wide side
    assert min(held.values()) >= 0.68, held
    assert 0.8 <= fmean(held.values()) <= 0.98, held
    errors = {kind: (fmean(one[1] for one in trials), fmean(one[2] for one in trials)) for kind, trials in made.items()}
    assert all(own < 1.25 * naive + 0.01 for own, naive in errors.values()), errors
    assert fmean(own for own, _ in errors.values()) < 0.75 * fmean(naive for _, naive in errors.values()), errors


def test_what_was_forecast_does_not_know_what_came():
    requests, costs = planted("walk", 80, 3)
    other = [[*both[:60], *(7 * one for one in both[60:])] for both in (requests, costs)]
    past, changed = learn(requests, costs, 0.8), learn(*other, 0.8)

    def known(learned):
        return [one for one in learned.errors if one.origin + one.days < 60]

    assert len(known(past)) > 40
    assert known(past) == known(changed)
    assert past.errors != changed.errors


def test_a_backtest_is_the_forecast_that_would_have_been_made():
    requests, costs = planted("trend", 92, 5)
    whole = learn(requests, costs, 0.8)
    for origin in (40, 63):
        then = learn(requests[: origin + 1], costs[: origin + 1], 0.8)
        error = next(one for one in whole.errors if (one.origin, one.days) == (origin, 28))
        actual = sum(costs[origin + 1 : origin + 29])
        assert math.exp(error.ratio) == pytest.approx(actual / sum(then.ahead(28)), rel=1e-9)
        assert error.naive == pytest.approx(math.log(actual / (4 * sum(costs[origin - 6 : origin + 1]))))
        # the range it is held against is the one of that day, too
        assert tuple(width_of(whole.errors, origin + 1, 0.8)) == pytest.approx(tuple(then.width), rel=1e-9)


def test_costs_scale_and_shift_and_permute():
    requests, costs = planted("walk", 63, 2)
    base = learn(requests, costs, 0.8)
    scaled = learn(requests, [1e12 * cost for cost in costs], 0.8)
    assert scaled.ahead(28) == pytest.approx([1e12 * one for one in base.ahead(28)], rel=1e-9)
    assert scaled.factor(0, 27) == pytest.approx(base.factor(0, 27), rel=1e-9)


def test_the_reach_of_a_surprise_is_that_of_the_recursion():
    pace = Pace(0.3, 0.2, 0.9, 0.1)
    state = State(pace, 5.0, 0.0, (0.0,) * 7, 0.1)
    # one surprise of 1 moves the level by 0.3 and the growth by 0.06: what the days after then are, added up
    moved = State(pace, 5.3, 0.06, (0.0,) * 7, 0.1)
    after = [b - a for a, b in zip(state.ahead(5), moved.ahead(5), strict=True)]
    assert reach(pace, 6) == pytest.approx([1 + sum(after[:n]) for n in range(6)])


# Ledgers: one request a day and team at noon, 1 USD per million input tokens, output 4 and from 1 August 2
def request(day, team, usd, *, output=False, model="m1"):
    tokens = {"input_tokens": 0, "output_tokens": round(usd * 250_000)} if output else {
        "input_tokens": round(usd * 1_000_000), "output_tokens": 0,
    }  # fmt: skip
    return {"request_id": f"{day}{team}", "ts": f"{day}T12:00:00", "team": team, "model": model, **tokens}


def days(first, count):
    return [date.fromisoformat(first) + timedelta(days=n) for n in range(count)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("forecast")


@pytest.fixture(scope="module")
def by_team(two_teams):
    return forecast(two_teams[1], by=["team"])


@pytest.fixture(scope="module")
def two_teams(folder):
    requests = [request(day, "a", 2) for day in days("2026-05-01", 56)]
    requests += [request(day, "b", 1 + day.day % 3) for day in days("2026-05-01", 56)]
    requests += [request(day, None, 2) for day in days("2026-06-20", 6)]
    return requests, bills.ledger_of(requests, folder)


def test_periods_hold_what_is_spent_and_what_is_expected(two_teams, by_team):
    (_, ledger), found = two_teams, by_team
    # the log ends on 25 June: five days of the quarter are left, and the next quarter
    assert (found.first, found.until) == (date(2026, 6, 26), date(2026, 9, 30))
    labels = [(one.label, one.days_ahead) for one in found.periods]
    assert labels == [("2026-06", 5), ("2026-07", 31), ("2026-08", 31), ("2026-09", 30), ("2026Q2", 5), ("2026Q3", 92)]
    quarter = found.period("2026Q2")
    assert quarter.spent == ledger.total_pusd
    assert quarter.total.mid == quarter.spent + found.period("2026-06").ahead.mid
    assert found.period("2026Q3").ahead.mid == sum(found.period(f"2026-0{n}").ahead.mid for n in (7, 8, 9))
    assert all(one.total.low <= one.total.mid <= one.total.high for one in found.periods)
    assert found.period("2026Q2").is_tested
    assert not found.period("2026Q3").is_tested
    # a 2, b 2 on average, and 2 a day that began six days ago
    assert found.period("2026-07").ahead.mid / 31 / PUSD_PER_USD == pytest.approx(6, rel=0.1)


def test_owners_sum_to_the_whole_to_the_pusd(by_team):
    found = by_team
    for place, one in enumerate(found.periods):
        assert sum(periods[place].ahead.mid for periods in found.owners.values()) == one.ahead.mid
        assert sum(periods[place].spent for periods in found.owners.values()) == one.spent
    # too short a past: a share, no range
    assert found.owners[(None,)][0].ahead.low is None
    assert any("unallocated" in note for note in found.notes)
    assert found.ahead(date(2026, 6, 30)).mid == found.period("2026Q2").ahead.mid
    assert found.ahead(date(2026, 6, 30), ("a",)).mid == found.owners[("a",)][0].ahead.mid


def test_the_middle_is_the_product_that_is_told(by_team):
    found = by_team
    one, period = found.arithmetic, found.periods[-1]
    text = one.text()
    # by hand from the line itself: five digits a factor
    told = re.findall(r"([\d,]+\.?\d*) (?=requests|each|for|days =)", text)
    requests, each, weekday, skew, prices, days, growth = (float(one.replace(",", "")) for one in told)
    stopped = requests * each * weekday * skew * prices * days
    scenarios = {scenario.name: scenario.ahead[one.label].mid for scenario in found.scenarios}
    assert days == period.days_ahead == one.days
    assert scenarios["growth_stopped"] == one.stopped == pytest.approx(stopped * PUSD_PER_USD, rel=3e-4)
    assert scenarios["as_is"] == one.mid == pytest.approx(stopped * growth * PUSD_PER_USD, rel=4e-4)
    assert text in found.sentences()


def test_prices_ahead_are_a_factor_of_their_own(folder):
    # output costs 4 until August and 2 from then on: 31 days of the quarter as they were, 61 at half
    made = [request(day, "a", 2, output=True) for day in days("2026-05-04", 42)]
    one = forecast(bills.ledger_of(made, folder)).arithmetic
    assert (one.label, one.days) == ("2026Q3", 92)
    assert one.prices == pytest.approx((31 + 61 / 2) / 92)


def test_the_split_that_was_closer_in_the_past_is_taken():
    """Two steady owners: both splits are right. One that grows: its own forecast is."""
    flat = owner([1000] * 120)
    assert sum(test.own + test.late for test in compare([flat, owner([500] * 120)])) == pytest.approx(0, abs=1e-6)
    growing = owner([round(100 * 1.02**day) for day in range(120)])
    found = compare([flat, growing])
    assert is_own_closer(found)
    # by hand: what shares of late made of the 28 days after day 60
    late = [sum(one.costs[33:61]) for one in (flat, growing)]
    came = [sum(one.costs[61:89]) for one in (flat, growing)]
    apart = sum(abs(a / sum(late) - b / sum(came)) for a, b in zip(late, came, strict=True))
    assert any(test.late == pytest.approx(apart, rel=1e-9) for test in found)
    # never tested: shares of late
    assert not is_own_closer([])


def test_the_range_of_a_share_is_as_wide_as_its_own_errors():
    flat, saw = owner([1000] * 120), owner([500 if day // 30 % 2 else 900 for day in range(120)])
    counts = [a + b for a, b in zip(flat.costs, saw.costs, strict=True)]
    whole = Own(counts, 0, learn(counts, counts, 0.8))
    learned = by_share(saw, whole, 0.8)
    error = next(one for one in learned.errors if (one.origin, one.days) == (70, 14))
    base = next(one for one in whole.learned.errors if (one.origin, one.days) == (70, 14))
    mid = sum(counts[71:85]) / math.exp(base.ratio) * sum(saw.costs[43:71]) / sum(counts[43:71])
    assert math.exp(error.ratio) == pytest.approx(sum(saw.costs[71:85]) / mid)


def test_a_model_that_loses_against_the_last_week_says_so(by_team):
    found = by_team
    lost = tuple(Accuracy(days, 40, 0.8, 0.3, 0.2) for days in (7, 14))
    (said,) = replace(found, accuracy=lost).weak()
    assert said == (
        "on this log's past, repeating the last week would have been as close or closer at every horizon tested: "
        "7 days ahead 20.0 % against 30.0 %, 14 days ahead 20.0 % against 30.0 %"
    )
    assert "at some horizons: 14 days" in replace(found, accuracy=(replace(lost[0], mape=0.1), lost[1])).weak()[0]
    assert replace(found, accuracy=(Accuracy(7, 40, 0.8, 0.1, 0.2),)).weak() == []


@pytest.mark.full
def test_scaling_shifting_and_order(two_teams, folder):
    requests, ledger = two_teams
    base = forecast(ledger, until=date(2026, 8, 15))
    again = []
    for one in random.Random(1).sample(requests, len(requests)):
        earlier = datetime.fromisoformat(one["ts"]) - timedelta(weeks=5)
        again.append({**one, "ts": earlier.isoformat(), "input_tokens": 3 * one["input_tokens"]})
    other = forecast(bills.ledger_of(again, folder), until=date(2026, 8, 15) - timedelta(weeks=5))
    mids, tripled = base.tracks[None].mids, other.tracks[None].mids
    assert tripled == pytest.approx([3 * mid for mid in mids], rel=1e-9)
    for one, same in zip(other.accuracy, base.accuracy, strict=True):
        assert astuple(one) == pytest.approx(astuple(same), rel=1e-9)


def test_an_announced_price_is_in_the_days_ahead(folder):
    # output costs 4 until August and 2 from then on: July's days are as they were, August's cost half
    requests = [request(day, "a", 2, output=True) for day in days("2026-05-04", 42)]
    found = forecast(bills.ledger_of(requests, folder), until=date(2026, 8, 31))
    july, august = found.period("2026-07").ahead.mid, found.period("2026-08").ahead.mid
    assert july == pytest.approx(31 * 2 * PUSD_PER_USD, rel=1e-6)
    assert august == pytest.approx(31 * 1 * PUSD_PER_USD, rel=1e-6)
    (change,) = found.changes
    assert (change.model, f"{change.at:%Y-%m-%d}", change.ratio) == ("m1", "2026-08-01", 0.5)
    assert any(line.startswith("price of m1") and ": -50.0 % from 2026-08-01 on" in line for line in found.sentences())


def test_a_price_cut_in_the_past_is_no_trend(folder):
    # the same tokens throughout; they cost 4 a day until August and 2 from then on
    requests = [request(day, "a", 4, output=True) for day in days("2026-06-29", 56)]
    found = forecast(bills.ledger_of(requests, folder), until=date(2026, 9, 30))
    assert found.period("2026-09").ahead.mid == pytest.approx(30 * 2 * PUSD_PER_USD, rel=1e-6)
    assert found.drivers.cost_growth_per_month == pytest.approx(0, abs=1e-9)
    assert all(one.mape < 1e-6 for one in found.accuracy)
    # what was spent is what was billed: 4 a day in July
    assert found.periods[-1].spent == (31 * 4 + 23 * 2) * PUSD_PER_USD


def test_factors_follow_the_traffic_that_changes():
    path = PricePath(None, (), {(("a",), ("p", "m")): 3.0, (("b",), ("p", "n")): 1.0},
                     ((bills.utc(2026, 8, 2), {(("a",), ("p", "m")): 0.5}),), bills.utc(2026, 1, 1).tzinfo)  # fmt: skip
    ahead = [date(2026, 8, 1), date(2026, 8, 2)]
    assert path.factors(ahead) == [1.0, (3 * 0.5 + 1) / 4]
    assert path.factors(ahead, ("a",)) == [1.0, 0.5]
    assert path.factors(ahead, ("b",)) == [1.0, 1.0]


@pytest.mark.full
def test_fiscal_quarters_bear_the_year_they_end_in_and_scenarios(two_teams):
    found = forecast(two_teams[1], fiscal_year_start=2, saving=(Fraction(1, 10), Fraction(1, 4), Fraction(1, 2)))
    assert [one.label for one in found.periods if one.kind == "quarter"] == ["2027Q2", "2027Q3"]
    assert found.until == date(2026, 10, 31)
    by_name = {one.name: one.ahead["2027Q3"] for one in found.scenarios}
    assert set(by_name) == {"as_is", "growth_stopped", "growth_doubled", "levers_done"}
    as_is, done = by_name["as_is"], by_name["levers_done"]
    assert as_is == found.period("2027Q3").ahead
    assert (done.mid, done.low, done.high) == (
        round(as_is.mid * Fraction(3, 4)), round(as_is.low * Fraction(1, 2)), round(as_is.high * Fraction(9, 10)),
    )  # fmt: skip


def refused(requests, folder, **window):
    ledger = bills.ledger_of(requests, folder)
    with pytest.raises(NotEvaluable) as error:
        forecast(ledger.within(Window(**window)) if window else ledger)
    return str(error.value)


def test_a_log_with_a_hole_is_refused_with_the_reason(folder):
    hole = [request(day, "a", 1) for day in [*days("2026-04-01", 40), *days("2026-06-01", 20)]]
    said = refused(hole, folder)
    assert "needs 28 whole days (each weekday four times) and this log has 20 after the hole" in said
    assert "that ends on 2026-06-01" in said


@pytest.mark.full
def test_a_short_log_and_one_without_a_price_are_refused(folder):
    short = [request(day, "a", 1) for day in days("2026-06-01", 27)]
    assert "this log has 27:" in refused(short, folder)
    nothing = [request(day, "a", 1, model="ghost") for day in days("2026-06-01", 40)]
    assert "nothing in the last 28 days has a price" in refused(nothing, folder)
    assert "this log has 0" in refused(short, folder, since=bills.utc(2027, 1, 1))


def test_arguments_out_of_range(two_teams):
    for said, given in (
        ("level 1", {"level": 1.0}),
        ("until 2026-06-25", {"until": date(2026, 6, 25)}),
        ("until 2030", {"until": date(2030, 1, 1)}),
        ("fiscal_year", {"fiscal_year_start": 13}),
    ):
        with pytest.raises(AssumptionError, match=said):
            forecast(two_teams[1], **given)


@pytest.mark.full
def test_days_are_those_of_the_zone(folder):
    # 23:30 UTC is the next day in Berlin
    requests = [{**request(day, "a", 1), "ts": f"{day}T23:30:00"} for day in days("2026-03-01", 40)]
    ledger = bills.ledger_of(requests, folder)
    berlin = forecast(Ledger(ledger.log, ledger.book, Window(zone="Europe/Berlin")))
    assert (forecast(ledger).history, berlin.history) == (
        (date(2026, 3, 1), date(2026, 4, 9)), (date(2026, 3, 2), date(2026, 4, 10)),
    )  # fmt: skip
    assert berlin.period("2026-05").ahead.mid == pytest.approx(31 * PUSD_PER_USD, rel=1e-6)
