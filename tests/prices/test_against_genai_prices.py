"""Random usages of every kind, priced by tenfold and by genai-prices: equal to the pUSD, or of a class with a name."""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest
from prices import usages
from prices.agreement import TODAY, differences, readings
from prices.usages import KEYS, Case, drawn, midnight

from tenfold.prices import price_book
from tenfold.prices.importing.compare import Compared, compare
from tenfold.prices.meters import METER_NAMES

PACKAGE = "genai-prices"
PRICING = Path(__file__).parents[2] / "pricing"


@cache
def listed() -> dict[tuple, list[Compared]]:
    """What is listed in differences.toml, by place."""
    found: dict[tuple, list[Compared]] = defaultdict(list)
    for one in compare(readings()[0].quotes, usages.book(), TODAY):
        if one.outcome == "differs" and any(known.covers(PACKAGE, one) for known in differences()):
            quote = one.quote
            found[quote.provider, quote.model, quote.tier, quote.region].append(one)
    return found


# Classes of differences, tried in this order. Each has a reason and a test that is stricter than its name.


def before_verification(case: Case) -> bool:
    starts = case.place.variant_starts()
    if not starts or case.at >= midnight(starts[0]):
        return False
    return case.usd == case.there(case.at, None)


def hours_alone(case: Case) -> bool:
    """Weekends have no peak, and the peak's price has changed: the package knows the hours of the last one only."""
    windows = [q for q in case.place.quotes if q.window]
    if not any(q.window.covers(case.at) for q in windows):
        return False
    if case.equal(case.there(case.at.replace(hour=12, minute=0), None)):
        return True
    return bool(case.place.edges) and case.at < case.place.edges[-1] + timedelta(days=1)


def start_of_day(case: Case) -> bool:
    """Within a day of a change, ours is the package's price of the other side of it."""
    near = [edge for edge in case.place.edges if abs(edge - case.at) <= timedelta(days=1)]
    sides = [edge - wide for edge in near for wide in (timedelta(0), timedelta(microseconds=1))]
    return any(case.equal(case.there(side, case.place.context)) for side in sides)


def history_here(case: Case) -> bool:
    """The package has one list for all time, the book several by date."""
    lists = {one.valid_from for one in case.price.basis.found.lists}
    return not case.place.edges and any(q.window for q in case.place.quotes) and len(lists) > 1


def priced_by_neither(case: Case) -> bool:
    """No price for the meter in either: the package bills such tokens as their parent and such calls at 0."""
    known = case.prices_there()
    return case.price.status == "unpriced_meter" and not any(KEYS[meter] in known for meter in named(case))


def not_priced_here(case: Case) -> bool:
    return case.price.status == "unpriced_meter" and bool(named(case))


def named(case: Case) -> list[str]:
    """The counted meters that the reason of an unpriced call names."""
    return [meter for meter in case.counted if meter in case.price.reason.rsplit(" for ", 1)[-1].split(", ")]


def band_here(case: Case) -> bool:
    """A context band that the package does not have: at the base band's rates both are equal."""
    basis = case.price.basis
    if basis.entry is None or basis.entry.above <= 0 or basis.entry.above in case.place.bands:
        return False
    base = basis.price_list.bands[0].rates
    at_base = sum(line.units * (base[METER_NAMES.index(name)] or 0) for name, line in case.price.meters.items())
    return at_base == case.usd * 10**12


def no_price_then(case: Case) -> bool:
    return case.price.status == "unpriced_model" and bool(case.price.basis.found.lists)


def ambiguous_here(case: Case) -> bool:
    return case.price.status == "ambiguous" and bool(case.price.reason)


def listed_value(case: Case) -> bool:
    """With the package's figure in place of ours, both are equal."""
    place, cost, found = case.place, Decimal(case.price.cost_pusd or 0), False
    total = case.ours["input_tokens"]
    for one in listed().get((place.provider, place.model, place.tier, place.region), []):
        line = case.price.meters.get(one.quote.meter)
        others = [q.above_input_tokens for q in place.quotes if q.meter == one.quote.meter]
        is_band = one.quote.above_input_tokens == max((a for a in others if total > a), default=0)
        if line is not None and is_band and one.quote.in_force(case.at):
            cost += line.units * (one.quote.pusd - (line.rate_pusd or 0))
            found = True
    return found and abs(cost - case.usd * 10**12) < 1


def finer_than_the_card(case: Case) -> bool:
    fine = case.price.cost_pusd is not None and any(q.pusd % 1 for q in case.place.quotes)
    units = case.ours["input_tokens"] + case.ours["output_tokens"]
    return fine and abs(case.price.cost_pusd - case.usd * 10**12) <= units


NOT_PRICED_THERE = "a meter without a price there: billed as its parent, or 0, silently"
CLASSES: dict[str, Callable[[Case], bool]] = {
    "tier before the package's day of verification: standard there, silently (B052)": before_verification,
    "no price here at that time (not sold any more, or not yet)": no_price_then,
    "the book says why it has no agreed price": ambiguous_here,
    "hours without weekdays or dates there (DeepSeek, B095)": hours_alone,
    "the vendor's hour of a change here, the UTC day there": start_of_day,
    "prices by date here, one list for all time there (deepseek-chat, deepseek-reasoner)": history_here,
    "a value listed in differences.toml, with its reason (o3 is B097)": listed_value,
    "a context band here that the package does not have (Sonnet 4 and 4.5 on Bedrock)": band_here,
    "a meter without a price in either: unpriced_meter here, billed as its parent or 0 there": priced_by_neither,
    "a meter with a price there only: unpriced_meter here": not_priced_here,
    "a price finer than 1 pUSD a unit there": finer_than_the_card,
}


def class_of(case: Case) -> str:
    if case.equal():
        return "equal"
    named = next((name for name, is_it in CLASSES.items() if is_it(case)), "")
    if named:
        return named
    less = case.reduced()
    if less is None:
        return ""
    rest = class_of(less)
    return NOT_PRICED_THERE if rest == "equal" else f"{NOT_PRICED_THERE}; and: {rest}" if rest else ""


def compared(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    rng = random.Random(seed)
    classes: Counter[str] = Counter()
    unknown: list[str] = []
    for _ in range(count):
        case = drawn(rng)
        case.run()
        name = class_of(case)
        classes[name] += 1
        if not name:
            place = case.place
            where = f"{place.provider} {place.model} {place.tier} {place.region} at {case.at.isoformat()}"
            unknown.append(f"{where}: {case.price.status} {case.price.cost_usd} here, {case.usd} there, {case.ours}")
    return classes, unknown


@pytest.mark.parametrize("count", [200, pytest.param(20_000, marks=pytest.mark.full)])
def test_every_inequality_has_a_name(count, capsys):
    classes, unknown = compared(count, seed=20261129)
    with capsys.disabled():
        if count > 200:
            sys.stdout.write("\n" + "\n".join(f"{n:>7,}  {name}" for name, n in classes.most_common()) + "\n")
    assert unknown == []
    assert classes["equal"] > 0.7 * count


def test_a_changed_price_has_no_name(tmp_path, monkeypatch):
    text = (PRICING / "anthropic.toml").read_text()
    (tmp_path / "anthropic.toml").write_text(text.replace("\ninput = 3\n", "\ninput = 3.00001\n"))
    changed = price_book(overlay=tmp_path)
    monkeypatch.setattr(usages, "book", lambda: changed)
    _, unknown = compared(1500, seed=1)
    assert unknown
    assert all("claude" in line for line in unknown)
