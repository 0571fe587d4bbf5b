"""What a review is held against: the second implementation in `oracle_review`, number by number."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction

from oracle_review import basics, books, bridging, efficiency, units
from review_cases import APRIL, COLUMNS, JULY, OCTOBER, USD, near, pusd, utc

import tenfold as tf
from tenfold.ledger import Window


def hold_composition(case):
    assert case.ledger.total_pusd == case.spend
    for name in COLUMNS:
        # a value whose requests are none of them billed has a line of zeros
        found = {row[name]: row for row in case.ledger.composition([name]).rows() if row["requests"]}
        mine = basics.by(case.rows, basics.column(name))
        assert set(found) == set(mine), name
        for value, sums in mine.items():
            row = found[value]
            assert (row["requests"], row["unpriced_requests"]) == (sums.requests, sums.unpriced), (name, value)
            if sums.requests > sums.unpriced:
                assert pusd(row["cost_usd"]) == sums.pusd, (name, value)
            for meter, (_, cost) in sums.meters.items():
                assert pusd(row[f"{meter}_usd"]) == cost, (name, value, meter)
    shares = case.ledger.composition([]).shares()
    for meter, (_, cost) in basics.total(case.rows).meters.items():
        assert near(shares[meter], Fraction(cost, case.spend)), meter


def hold_allocation(case):
    allocation = tf.allocate(case.ledger)
    mine = units.shares(case.rows, "team")
    rows = dict(zip((row["team"] for row in allocation.mix.rows()), allocation.rows(), strict=True))
    assert {team: pusd(row["total_usd"]) for team, row in rows.items()} == {
        team: cost for team, (cost, _) in mine.items()
    }
    assert allocation.unallocated_pusd == mine.get(None, (0, 0))[0]
    assert sum(pusd(row["total_usd"]) for row in rows.values()) == case.spend
    owned = case.ledger.composition(["team"]).owned_ratio()
    assert near(owned, 1 - mine.get(None, (0, Fraction(0)))[1])


def hold_bridge(case):
    found = tf.bridge(case.before, case.ledger)
    boundary = found.price_at
    assert utc(JULY) - boundary <= timedelta(milliseconds=1)
    mine = bridging.pvm(case.prices, case.old, case.rows, boundary)
    assert round(sum(mine.values())) == case.spend - basics.spend(case.old)
    bars = {bar.key: bar.pusd for bar in found.bars}
    apart = {"volume", "intensity", "mix", "new", "discontinued", *(k for k in mine if k != "price")}
    assert sum(bars.values()) == case.spend - basics.spend(case.old)
    for key in apart:
        assert abs(bars.pop(key, 0) - mine.get(key, 0)) < 2, (key, found.as_dict()["bars"], dict(mine))
    assert abs(sum(bars.values()) - mine["price"]) < 4, (bars, float(mine["price"]))


def hold_units(case):
    found = tf.unit_economics(case.ledger, ["team"]).as_dict()
    hold_some_units(found, case.rows, case.all)
    by_team = defaultdict(list)
    for row in case.rows:
        by_team[row["team"]].append(row)
    judged = any(row["outcome_ok"] is not None for row in case.rows)
    for group in found["groups"]["team"]:
        rows = by_team[group["value"]]
        if judged and all(row["outcome_ok"] is None for row in rows):
            continue
        assert pusd(group["spend_usd"] or "0") == basics.spend(rows)
        if not judged:
            hold_some_units(group, rows, case.all)


def hold_some_units(found, rows, whole):
    mine = {
        "outcome": units.outcome(rows, whole),
        "request": (basics.spend(rows), sum(row.is_priced for row in rows)),
        "session": units.distinct(rows, "session_id"),
        "user": units.distinct(rows, "user_id"),
    }
    for name, (cost, count) in mine.items():
        one = found["units"].get(name)
        if not count:
            assert one is None or not one["units"] or one["usd_per_unit"] is None, (name, one)
            continue
        assert (pusd(one["cost_usd"]), one["units"]) == (cost, count), (name, one, cost, count)
        assert near(Decimal(one["usd_per_unit"]), Fraction(cost, count * USD)), name
    for kind, price in basics.per_million(rows).items():
        shown = found["usd_per_million"].get(kind)
        assert near(None if shown is None else Decimal(shown), None if price is None else price / USD), kind


def hold_efficiency(case):
    whole = tf.efficiency(case.ledger, ["team"]).as_dict()
    by_team = defaultdict(list)
    for row in case.rows:
        by_team[row["team"]].append(row)
    hold_some_efficiency(whole, case.rows, case.all)
    for group in whole["groups"]["team"]:
        hold_caching(group, by_team[group["value"]])
    many, ratio, middle = efficiency.growth(case.rows)
    growth = whole["context_growth"]
    assert growth["sessions"] == many
    assert near(growth["last_first_ratio"], ratio)
    assert near(growth["median_ratio"], middle)
    turns = efficiency.by_turn(case.rows)
    for row in growth["turns"]:
        if row["turn"].isdigit():
            count, mean, over = turns[int(row["turn"]) - 1]
            assert row["requests"] == count
            assert near(row["mean_input_tokens"], mean)
            assert near(row["ratio"], over)


def hold_caching(found, rows):
    tokens, requests = efficiency.hit_ratios(rows)
    assert near(found["cache_hit_ratio"], tokens)
    assert near(found["cache_hit_requests_ratio"], requests)
    without, billed, premium, storage = efficiency.cache_return(rows)
    # the library prices once more only requests that used a cache; the others are the same on both sides
    if found["cache_saving_usd"] is not None:
        assert pusd(found["cache_saving_usd"]) == without - billed
        assert pusd(found["cache"]["premium_usd"]) == premium
        if premium + storage:
            assert near(found["cache_roi"], Fraction(without - billed, premium + storage))


def hold_some_efficiency(found, rows, whole):
    hold_caching(found, rows)
    without, billed, _, _ = efficiency.cache_return(rows)
    assert (pusd(found["cache"]["uncached_usd"]), pusd(found["cache"]["billed_usd"])) == (without, billed)
    for tier in ("batch", "flex"):
        cost, tokens = basics.tier_share(rows, tier)
        assert near(found[f"{tier}_ratio"], cost), tier
        assert near(found[f"{tier}_tokens_ratio"], tokens), tier
    mine = efficiency.waste(rows, whole)
    causes = {one["cause"]: one for one in found["waste"]}
    assert set(mine) <= set(causes)
    for cause, one in causes.items():
        count, cost = mine.get(cause, (0, 0))
        assert one["once_requests"] == count, (cause, one, mine)
        assert pusd(one["once_usd"] or "0") == cost, (cause, one, mine)
    wasted = sum(cost for cause, (_, cost) in mine.items() if cause != "duplicate")
    assert pusd(found["waste_usd"]) == wasted
    assert near(found["waste_ratio"], Fraction(wasted, basics.spend(rows)))
    assert near(found["reasoning_ratio"], efficiency.reasoning_share(rows))
    assert near(found["mean_input_tokens"], efficiency.mean_input(rows))


def hold_burn(case, file, through):
    first, last = JULY.date(), (OCTOBER - timedelta(days=1)).date()
    granted = books.budgets(file)
    document = tf.burn(case.ledger, file, through=through).as_dict()
    for line in (document["total"], *document["owners"]):
        owner = line["owner"]
        # the whole is all spend of the months that any owner has a budget for
        months = {month for name, month in granted if owner in ("*", name)}
        rows = [row for row in case.rows if f"{row['ts']:%Y-%m}" in months and owner in ("*", row["team"])]
        budget = books.burn(granted, owner, first, last)
        over, spent = books.burn(granted, owner, first, through), books.spent(rows, first, through)
        assert pusd(line["budget_usd"]) == budget
        # each day is a whole pUSD
        assert abs(pusd(line["elapsed_budget_usd"]) - over) <= 92 * 6
        assert pusd(line["spend_usd"]) == spent, (owner, line)
        assert near(line["burn_ratio"], Fraction(spent) / over), (owner, line)
        for alert in line["alerts"]:
            day = books.reached(rows, first, through, budget * Fraction(Decimal(str(alert["share"]))))
            assert alert["day"] == (day and day.isoformat()), (owner, alert, day)
        if line["all_days"] < 92 or len(granted) < 18:
            continue
        pace = Fraction(spent * 92, (through - first).days + 1)
        assert abs(pusd(line["projected_usd"]["mid"]) - pace) < 2, line


def hold_focus(case, file):
    export = tf.export_focus(case.ledger, file)
    rows = books.focus_rows(file)
    assert books.focus_faults(rows) == []
    mine = {place: pair for place, pair in books.logged_cells(case.rows).items() if pair[0]}
    assert books.focus_cells(rows) == mine
    assert sum(pusd(row["BilledCost"]) for row in rows) == case.spend
    assert export is not None


def hold_anomalies(case):
    ledger = case.ledger.within(Window(utc(APRIL), utc(OCTOBER), "UTC"))
    found = tf.anomalies(ledger)
    cost = basics.daily(case.all, lambda row: (row["team"], row["model"]))
    for row in found.daily.iter_rows(named=True):
        assert row["cost_pusd"] == cost[row["team"], row["model"]].get(row["day"], 0), row
    expected = defaultdict(int)
    for one in found.as_dict()["anomalies"]:
        owner = one["team"], one["model"]
        first, last = date.fromisoformat(one["first_day"]), date.fromisoformat(one["last_day"])
        spent = sum(value for day, value in cost[owner].items() if first <= day <= last)
        assert pusd(one["cost_usd"]) == spent, one
        assert pusd(one["impact_usd"]) == spent - pusd(one["expected_usd"]), one
        expected[one["kind"]] += 1
    more = sum(max(pusd(one["impact_usd"]), 0) for one in found.as_dict()["anomalies"])
    assert sum(one for _, _, one, _ in found.sums()) == more
    return expected


def hold_identities(case):
    """Every total of the quarter is the same number everywhere."""
    everywhere = {
        "total": case.ledger.total_pusd,
        "coverage": case.ledger.coverage.priced_pusd,
        "day": sum(pusd(row["cost_usd"] or "0") for row in case.ledger.composition(["day"]).rows()),
        "cube": sum(pusd(row["cost_usd"] or "0") for row in case.ledger.composition(["user_id"]).rows()),
        "meters": sum(c for _, c in basics.total(case.rows).meters.values()),
        "bridge": tf.bridge(case.before, case.ledger).after.pusd,
        "units": pusd(tf.unit_economics(case.ledger).as_dict()["spend_usd"]),
        "efficiency": pusd(tf.efficiency(case.ledger).as_dict()["spend_usd"]),
        "months": sum(pusd(one["spend_usd"]) for one in tf.efficiency(case.ledger).as_dict()["months"]),
        "costs": sum(row["contracted_pusd"] for row in case.ledger.costs().frame.iter_rows(named=True))
        if "contracted_pusd" in case.ledger.costs().frame.columns
        else case.spend,
    }
    assert set(everywhere.values()) == {case.spend}, everywhere
