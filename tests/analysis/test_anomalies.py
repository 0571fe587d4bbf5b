"""Anomalies: planted days are found and told apart, noise raises few alarms, what follows from scaling and shifting."""

import math
import random
from datetime import date, timedelta
from statistics import median

import bills
import polars as pl
import pytest

from tenfold.analysis.anomalies import anomalies
from tenfold.analysis.anomalies.judging import Judge
from tenfold.errors import AssumptionError, NotEvaluable
from tenfold.money import PUSD_PER_USD

WEEKDAYS = (1.1, 1.15, 1.1, 1.05, 1.0, 0.4, 0.35)
DAYS = 92


def series(seed, noise=0.08, level=1000, growth=0.0):
    """Costs and requests a day with weekdays, noise and Poisson-like counts."""
    rng = random.Random(seed)
    counts = [level * math.exp(growth * day) * WEEKDAYS[day % 7] * math.exp(rng.gauss(0, noise)) for day in range(DAYS)]
    requests = [max(round(rng.gauss(one, math.sqrt(one))), 0) for one in counts]
    return [one * 0.01 * math.exp(rng.gauss(0, noise / 2)) for one in requests], requests


def changed(costs, days, factor):
    return [cost * (factor if day in days else 1) for day, cost in enumerate(costs)]


def kinds(costs, requests, **given):
    return [(one.kind, one.first, one.last) for one in Judge(costs, requests, k=4.0, **given).found]


def test_a_day_is_held_against_the_median_by_hand():
    # four weeks of 100, the days after ten more or ten less in turn: median 100, deviations 10 at most
    costs = [100.0 + 10 * (-1) ** day for day in range(28)] + [100.0]
    judge = Judge(costs, [1e6] * 29, k=4.0)
    band = judge.bands[28]
    # every weekday holds two of 90 and two of 110: log medians, MAD and mean deviation all are log(110/90) / 2
    off = math.log(110 / 90) / 2
    noise = 1.4826 * off * math.sqrt(28 / 21 * (1 + 1 / 4))
    assert band.expected == pytest.approx(math.sqrt(90 * 110), rel=1e-6)
    assert math.log(band.high / band.expected) == pytest.approx(4 * (1 + 17 / (8 * 21)) * noise, rel=1e-6)
    assert judge.found == []


@pytest.mark.parametrize("seed", [0, 1, 3])
def test_planted_days_are_found_and_told_apart(seed):
    costs, requests = series(seed, noise=0.05)
    assert kinds(changed(costs, {60}, 3), requests) == [("spike", 60, 60)]
    # a Saturday: small against a weekday, large against a Saturday
    assert kinds(changed(costs, {61}, 3), requests) == [("spike", 61, 61)]
    assert kinds(changed(costs, {60, 61, 62}, 3), requests) == [("spike", 60, 62)]
    assert kinds(changed(costs, {60}, 0.2), requests) == [("drop", 60, 60)]
    assert kinds(changed(costs, range(50, DAYS), 2.5), requests) == [("level_up", 50, DAYS - 1)]
    assert kinds(changed(costs, range(50, DAYS), 0.4), requests) == [("level_down", 50, DAYS - 1)]


def test_a_step_that_goes_back_is_one_anomaly_with_its_own_days():
    costs, requests = series(4, noise=0.05)
    (found,) = Judge(changed(costs, range(40, 65), 3), requests, k=4.0).found
    assert (found.kind, found.first, found.last, found.is_open) == ("level_up", 40, 64, False)
    # expected of its days is what they would have cost
    assert sum(found.expected) == pytest.approx(sum(costs[40:65]), rel=0.1)


def test_a_second_step_is_told_apart_from_the_first():
    costs, requests = series(5, noise=0.05)
    twice = changed(changed(costs, range(40, DAYS), 3), range(65, DAYS), 3)
    found = Judge(twice, requests, k=4.0).found
    assert [(one.kind, one.first, one.last) for one in found] == [("level_up", 40, 64), ("level_up", 65, DAYS - 1)]
    assert sum(found[1].expected) == pytest.approx(3 * sum(costs[65:]), rel=0.15)


def test_silence_and_what_begins():
    costs, requests = series(6, noise=0.05)
    quiet = [0.0 if day >= 80 else cost for day, cost in enumerate(costs)]
    stopped = [0 if day >= 80 else count for day, count in enumerate(requests)]
    judge = Judge(quiet, stopped, k=4.0)
    # twelve days until the end, never silent before: it has ended, told once with what its last weeks cost
    (ended,) = judge.found
    assert (ended.kind, ended.first, ended.last, ended.is_open) == ("ended", 80, 91, True)
    assert sum(ended.expected[:7]) == pytest.approx(sum(costs[52:80]) / 4)
    short = [0 if day >= 86 else count for day, count in enumerate(requests)]
    assert kinds([cost * bool(n) for cost, n in zip(costs, short, strict=True)], short) == [("silence", 86, 91)]
    late = [0.0] * 30 + costs[30:]
    begun = [0] * 30 + requests[30:]
    assert kinds(late, begun) == [("new", 30, DAYS - 1)]
    # one day without a request in between, or a dear one, is told beside it and ends nothing
    begun[70], late[70], late[80] = 0, 0.0, 4 * late[80]
    assert kinds(late, begun) == [("new", 30, DAYS - 1), ("silence", 70, 70), ("spike", 80, 80)]
    # one that begins and ends
    gone = [0 if day >= 75 else count for day, count in enumerate(begun)]
    gone_costs = [cost if n else 0.0 for cost, n in zip(late, gone, strict=True)]
    assert kinds(gone_costs, gone) == [("new", 30, 74), ("silence", 70, 70), ("ended", 75, DAYS - 1)]
    # what is there from the first two weeks on is not new
    assert kinds([0.0] * 7 + costs[7:], [0] * 7 + requests[7:]) == []


def test_short_zero_and_constant_series():
    assert kinds([], []) == []
    assert kinds([0.0] * 40, [0] * 40) == []
    assert kinds([5.0] * 40, [50] * 40) == []
    # MAD 0: no noise at all is not believed, a tenth more is no anomaly, twice as much is one
    assert kinds([5.0] * 35 + [5.5], [10_000] * 36) == []
    assert kinds([5.0] * 35 + [10.0], [10_000] * 36) == [("spike", 35, 35)]
    # fourteen days are the least
    assert kinds([5.0] * 13 + [500.0], [10_000] * 14) == []
    assert kinds([5.0] * 14 + [500.0], [10_000] * 15) == [("spike", 14, 14)]
    # weekends without a request are no silence; a series on few days stands out far above its dearest
    week = [5.0] * 5 + [0.0] * 2
    assert kinds(week * 8, [1000 * bool(cost) for cost in week * 8]) == []
    seldom = [1.0 if day % 9 == 0 else 0.0 for day in range(70)]
    assert kinds([*seldom, 40.0], [*map(round, seldom), 1])[-1][0] == "spike"
    assert kinds([*seldom, 2.0], [*map(round, seldom), 1]) == []


def test_a_day_that_is_covered_in_part_is_never_too_cheap():
    costs, requests = series(7, noise=0.05)
    cut = changed(costs, {DAYS - 1}, 0.1)
    assert kinds(cut, requests) == [("drop", DAYS - 1, DAYS - 1)]
    assert kinds(cut, requests, partial=frozenset({DAYS - 1})) == []
    assert kinds(changed(costs, {DAYS - 1}, 4), requests, partial=frozenset({DAYS - 1})) == [
        ("spike", DAYS - 1, DAYS - 1)
    ]


def alarms(count, **given):
    return sum(len(Judge(*series(seed, **given), k=4.0).found) for seed in range(count)) / (count * (DAYS - 14))


def test_noise_raises_few_alarms():
    assert alarms(20) < 0.003


@pytest.mark.full
@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"noise": 0.05}, 0.001),
        ({"noise": 0.15}, 0.0015),
        ({"noise": 0.3}, 0.0015),
        ({"noise": 0.05, "growth": 0.01}, 0.001),
        ({"noise": 0.1, "level": 10}, 0.004),
        ({"noise": 0.1, "level": 1}, 0.001),
    ],
)
def test_false_alarms_are_bounded_a_day(given, most):
    assert alarms(300, **given) < most


@pytest.mark.full
def test_planted_spikes_and_steps_are_found():
    spikes = steps = 0
    for seed in range(200):
        costs, requests = series(seed)
        spikes += any(one.first == 60 for one in Judge(changed(costs, {60}, 2.2), requests, k=4.0).found)
        found = Judge(changed(costs, range(50, DAYS), 2), requests, k=4.0).found
        steps += any(one.kind == "level_up" and abs(one.first - 50) <= 1 for one in found)
    assert spikes > 190
    assert steps > 180


@pytest.mark.parametrize("seed", range(2))
def test_scaling_and_shifting_by_weeks(seed):
    costs, requests = series(seed)
    costs = changed(changed(costs, {60}, 3), range(75, DAYS), 2.5)
    base = Judge(costs, requests, k=4.0).found
    scaled = Judge([1e9 * cost for cost in costs], requests, k=4.0).found
    assert [one[:3] for one in base] == [one[:3] for one in scaled]
    assert [median(one.expected) for one in scaled] == pytest.approx([1e9 * median(one.expected) for one in base])
    # days before the series begins, by whole weeks (fewer than make it new)
    later = Judge([0.0] * 7 + costs, [0] * 7 + requests, k=4.0).found
    assert [(one.kind, one.first - 7, one.last - 7) for one in later] == [one[:3] for one in base]


# Ledgers: m1 costs 1 USD per million input tokens
def request(day, team, usd, model="m1", hour=12):
    return {
        "request_id": f"{day}{team}{hour}{usd}", "ts": f"{day}T{hour:02d}:00:00", "team": team, "model": model,
        "input_tokens": round(usd * 1_000_000), "output_tokens": 0,
    }  # fmt: skip


def days(first, count):
    return [date.fromisoformat(first) + timedelta(days=n) for n in range(count)]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    made = [request(day, "a", 1, hour=hour) for day in days("2026-06-01", 60) for hour in range(6, 18)]
    made += [request(day, None, 2, hour=hour) for day in days("2026-06-01", 60) for hour in (8, 9)]
    # 200 USD on 10 July, and a team that begins on 20 July
    made += [request("2026-07-10", "a", 200)]
    made += [request(day, "late", 3) for day in days("2026-07-20", 11)]
    folder = tmp_path_factory.mktemp("anomalies")
    return made, folder, bills.ledger_of(made, folder)


def test_a_ledger_worked_by_hand(planted):
    _, _, ledger = planted
    found = anomalies(ledger)
    assert [(one.owner, one.kind) for one in found.found] == [(("a", "m1"), "spike"), (("late", "m1"), "new")]
    spike, new = found.found
    # twelve a day at 1 USD are usual
    assert (spike.first, spike.last, spike.cost) == (date(2026, 7, 10), date(2026, 7, 10), 212 * PUSD_PER_USD)
    assert spike.impact == pytest.approx(200 * PUSD_PER_USD, rel=1e-6)
    assert spike.baseline == (date(2026, 6, 12), date(2026, 7, 9))
    assert (new.first, new.last, new.is_open, new.impact) == (
        date(2026, 7, 20), date(2026, 7, 30), True, 33 * PUSD_PER_USD,
    )  # fmt: skip
    # what is unlike is not added
    assert found.sums() == [("new", 1, 33 * PUSD_PER_USD, 0), ("spike, drop or silent day", 1, spike.impact, 0)]
    assert found.summed() == "1 new: $33.00 more; 1 spike, drop or silent day: $200.00 more"
    band = found.band(("a", "m1"))
    assert len(band) == 60
    assert band.filter(pl.col("cost_pusd") > pl.col("high_pusd"))["day"].to_list() == [date(2026, 7, 10)]
    assert "a · m1: spike on 2026-07-10, $200.00 more than expected" in found.sentences()[0]


def test_what_is_asked_for(planted):
    _, _, ledger = planted
    late = anomalies(ledger, since=date(2026, 7, 15), least_pusd=100 * PUSD_PER_USD)
    assert (late.found, late.small) == ((), 1)
    assert late.judged == (date(2026, 7, 15), date(2026, 7, 30))
    assert any("1 more below $100.00" in note for note in late.notes)
    assert [one.owner for one in anomalies(ledger, by="model").found] == [("m1",)]
    with pytest.raises(AssumptionError, match="scaled MADs"):
        anomalies(ledger, k=0)


@pytest.mark.full
def test_order_of_rows_is_nothing(planted):
    made, folder, ledger = planted
    again = bills.ledger_of(random.Random(3).sample(made, len(made)), folder)
    assert anomalies(again).as_dict() == anomalies(ledger).as_dict()


def test_a_short_log_is_refused_with_the_reason(tmp_path):
    ledger = bills.ledger_of([request(day, "a", 1) for day in days("2026-06-01", 14)], tmp_path)
    with pytest.raises(NotEvaluable, match="at least 14 days before it and this log has 14 days"):
        anomalies(ledger)
