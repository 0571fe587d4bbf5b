"""Capacity by the hour: what it would have cost on this log, as evidence beside the lever and never in its saving."""

import random
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from small_logs import facts, ledger, look, row

from tenfold.errors import AssumptionError
from tenfold.levers.batch_api import LEVER
from tenfold.levers.provisioned import Minute, Units, cheapest, cost_of

NOON = datetime(2026, 6, 1, 12)
UUSD = 10**6


def told(usd_per_hour, rows=None, **more):
    # 1,000 in and 100 out are 1,400 input tokens where one of output counts as four; $0.003 each
    if rows is None:
        rows = [row(), row(ts=NOON + timedelta(seconds=59)), row(is_stream=True), row(ts=NOON + timedelta(minutes=5))]
    given = {"usd_per_hour": Decimal(usd_per_hour), "tokens_per_minute": 1_400, **more}
    return facts(look(LEVER, ledger(rows), {"batch_api": {"where": "true", "provisioned": given}}))


def test_the_cheapest_number_of_units():
    # one minute of 4,200, one of 1,400; a day of a unit is $0.0024: 2,400 + 6,000 with one, 4,800 + 3,000, 7,200
    found = told("0.0001")
    assert (found["provisioned_units"], found["provisioned_usd"], found["provisioned_spill_usd"]) == (
        3,
        "0.0072",
        "0.00",
    )
    assert (found["pay_as_you_go_usd"], found["provisioned_saving_usd"]) == ("0.012", "0.0048")
    assert found["provisioned_utilisation"] == f"{5_600 / (3 * 1_400 * 60 * 24):.4f}"
    # a unit's full hour is 84,000 tokens, by the token $0.18: it pays from 0.0001 / 0.18 of that
    assert found["provisioned_break_even"] == f"{0.0001 / 0.18:.4f}"
    # at half as much again the spill is cheaper than more units: 3,600 + 6,000 against 10,200 and 10,800
    found = told("0.00015")
    assert (found["provisioned_units"], found["provisioned_spill_usd"]) == (1, "0.006")
    assert found["provisioned_saving_usd"] == "0.0024"
    assert told("0.00015", min_units=2)["provisioned_saving_usd"] == "0.0018"


def test_it_may_cost_more_and_is_never_in_the_saving():
    found = told("1")
    assert (found["provisioned_units"], found["provisioned_saving_usd"]) == (1, "-23.994")  # 24 + 0.006 - 0.012
    assert found["cost_moved_usd"] == "0.0045"  # three of the four in batch: as without it
    none = told("1", [row(service_tier="batch"), row(model="unheard-of")])
    assert none["provisioned_units"] is None


@pytest.mark.full
def test_weights_and_days():
    rows = [row(cache_read_tokens=500), row(ts=NOON + timedelta(days=9))]
    found = told("0.0001", rows, output_weight=0, cached_weight=0, min_units=1)
    # 500 and 1,000 tokens of a unit's 1,400; ten days are 240 hours
    assert (found["provisioned_units"], found["provisioned_usd"]) == (1, "0.024")
    assert found["provisioned_utilisation"] == f"{1_500 / (1_400 * 60 * 240):.4f}"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"usd_per_hour": 1}, "needs tokens_per_minute"),
        ({"usd_per_hour": 1, "tokens_per_minute": 0}, "tokens_per_minute must be above 0"),
        ({"usd_per_hour": 1, "tokens_per_minut": 1}, 'has no key "tokens_per_minut". Did you mean "tokens_per_minute"'),
    ],
)
def test_what_is_asked_for(given, message):
    with pytest.raises(AssumptionError) as raised:
        look(LEVER, ledger([row()]), {"batch_api": {"provisioned": given}})
    assert message in str(raised.value)


def test_halving_finds_what_trying_all_finds():
    rng = random.Random(8)
    for _ in range(60):
        minutes = [Minute(rng.randint(1, 90) * 10**6, rng.randint(0, 10**9)) for _ in range(rng.randint(1, 12))]
        units = Units(rng.randint(0, 10**7), rng.randint(1, 30), rng.randint(1, 4), rng.randint(1, 48))
        tried = [cost_of(minutes, units, number).cost_pusd for number in range(units.least, units.least + 95)]
        # rounding to whole pUSD, minute by minute, may make two neighbours differ by as much
        assert cheapest(minutes, units).cost_pusd - min(tried) <= len(minutes)


def test_all_the_spill_is_the_whole_bill():
    minutes = [Minute(10**6, 7), Minute(3 * 10**6, 11)]
    none = cost_of(minutes, Units(5, 10, 1, 24), 0)
    assert (none.cost_pusd, none.served) == (18, 0)
    enough = cost_of(minutes, Units(5, 3, 1, 24), 1)
    assert (enough.cost_pusd, enough.served) == (5 * 24, Fraction(4, 3 * 60 * 24))
