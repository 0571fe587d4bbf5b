"""Metamorphic properties of the levers in the prices: M4, M7, M16, M18, M24, M25 (the others: test_properties.py)."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from planning.worth import SEEDS, drawn_worth, worth_of
from planted import Planted
from planted.base import CACHING, FLASH, MICRO, is_one_of, prices
from planted.drawn import LEVERS, drawn
from small_logs import ledger, look

from tenfold.levers import LEVERS as SHIPPED
from tenfold.levers import batch_api, prefix_cache
from tenfold.levers.assume import assumptions
from tenfold.levers.repricing import own_bill
from tenfold.planning.portfolio import Portfolio
from tenfold.prices import PriceBook, price_book
from tenfold.slo import Slo

MONEY = ("lookup_usd", "classifier_usd", "router_usd", "training_usd", "hosting_usd_per_hour", "cost_usd", "usd")
RATE = re.compile(r"^(input|cache_\w+|output) = (.+)$", re.MULTILINE)


def book_of(texts: dict[str, str], caching: str | None = None) -> PriceBook:
    with TemporaryDirectory() as folder:
        for name, text in texts.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        Path(folder, "caching.toml").write_text(caching or CACHING.read_text(encoding="utf-8"), encoding="utf-8")
        return price_book(folder)


def times(factor, text):
    """A price file with every rate so many times as high."""
    return RATE.sub(lambda found: f"{found[1]} = {Decimal(found[2]) * factor:f}", text)


def dearer(value, factor, key=""):
    """A lever's table with every amount of money so many times as high."""
    if isinstance(value, dict):
        inside = "rate" if key == "student" else ""
        return {name: dearer(one, factor, inside or name) for name, one in value.items()}
    if isinstance(value, list):
        return [dearer(one, factor, key) if isinstance(one, dict) else one for one in value]
    return str(Decimal(value) * factor) if key == "rate" else value * factor if key in MONEY else value


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m4_prices_twice_as_high_save_twice(seed, size, levers):
    log, found = drawn(seed, size, levers), drawn_worth(seed, size, levers)
    book = book_of({name: times(2, text) for name, text in prices().items()})
    double = worth_of(replace(log, assume={name: dearer(one, 2) for name, one in log.assume.items()}), book)
    assert double.spend == 2 * found.spend
    assert double.alone == {name: 2 * pusd for name, pusd in found.alone.items()}
    for names, pusd in found.sets.items():
        # fixed charges of a window that is no whole retraining are rounded once
        assert abs(double.sets[names] - 2 * pusd) <= ("distill" in names), names


@pytest.mark.full
def test_m18_another_currency_changes_nothing():
    log = drawn(3, 40, ("skip", "batch_api"))
    rate = '[[rate]]\ncurrency = "CNY"\nusd = 0.125\nvalid_from = 2026-01-01\nsource = "test"\n'
    texts = {name: f'currency = "CNY"\n{times(8, text)}' for name, text in prices().items()}
    assert worth_of(log, book_of({**texts, "currencies.toml": rate})) == worth_of(log)


# One model for each rate or rule that differs: (what, value), and what its rates are then. Input costs 2, output 10.
READS, WRITES, MINIMUMS, BATCHES = (
    ("0.025", "0.1", "0.5", "0.9"),
    ("1", "1.25", "2", "3"),
    (512, 1_024, 2_048, 4_096),
    "3579",
)


@cache
def varied_book() -> PriceBook:
    lines, rules = [], []
    for model, read, write, minimum, batch in variants():
        rates = {"input": Decimal(2), "output": Decimal(10), "cache_read": 2 * Decimal(read)}
        if write:
            rates["cache_write"] = 2 * Decimal(write)
        for tier, factor in (("", Decimal(1)), ('service_tier = "batch"\n', Decimal(batch) / 10)):
            text = "".join(f"{name} = {rate * factor:f}\n" for name, rate in rates.items())
            lines.append(f'[[price]]\nmodel = "{model}"\n{tier}{text}source = "test"\nchecked = 2026-01-01\n')
        rules.append(
            f'[[rule]]\nprovider = "anthropic"\nmodels = ["{model}"]\ncontrol = "both"\nmin_tokens = {minimum}\n'
            'lifetime_s = 300\nsource = "test"\nchecked = 2026-01-01\n'
        )
    return book_of({"prices.toml": 'provider = "anthropic"\n' + "".join(lines)}, "".join(rules))


def variants():
    yield from ((f"read-{one}", one, "1.25", 1_024, "5") for one in READS)
    yield from ((f"write-{one}", "0.1", one, 1_024, "5") for one in WRITES)
    # without a fee for writes: with one, a higher minimum also forbids what never pays
    yield from ((f"minimum-{one}", "0.1", "", one, "5") for one in MINIMUMS)
    yield from ((f"batch-{one}", "0.1", "1.25", 1_024, one) for one in BATCHES)


def saved_by_model(lever, rows, table):
    """What a lever saves by model, in pUSD, of rows that run on every model alike."""
    assumed = assumptions({lever.name: {"where": "true", **table}}, SHIPPED).levers
    every = [{**row, "provider": "anthropic", "model": model} for model, *_ in variants() for row in rows]
    with ledger(every, varied_book()).session() as session:
        bill = own_bill(session, (lever,), assumed, Slo())
        portfolio = Portfolio(bill, (lever,), assumed, {lever.name: lever.judge(bill, assumed[lever.name])})
        saved = defaultdict(int)
        for one in portfolio.tally(lever.name).frame.filter(fate="moved").rows(named=True):
            saved[one["model"]] += int(one["now_pusd"] - one["then_pusd"])
    return [
        [saved[f"{what}-{one}"] for one in values]
        for what, values in (("read", READS), ("write", WRITES), ("minimum", MINIMUMS), ("batch", BATCHES))
    ]


def turns(seed, size):
    rng, at, rows = random.Random(f"turns {seed}"), datetime(2026, 6, 1), []
    for number in range(size):
        at += timedelta(seconds=rng.choice((1, 30, 299, 301)))
        tokens, name = rng.randint(300, 6_000), rng.choice("xy")
        rows.append(
            {
                "request_id": f"r{number}",
                "ts": at,
                "input_tokens": tokens,
                "output_tokens": rng.randint(0, 900),
                "cache_read_tokens": 0,
                "prefix_hashes": [f"{name}{place}" for place in range(tokens // 128)] or None,
                "prefix_block_tokens": 128,
                "ttft_ms": 500.0,
                "is_stream": False,
            }
        )
    return rows


def falls(values):
    return all(more >= less for more, less in pairwise(values)) and values[0] > values[-1]


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.full) for n in range(1, 8))])
def test_m7_dearer_reads_writes_and_batches_and_higher_minimums_save_less(seed):
    rows = turns(seed, 14)
    reads, writes, minimums, _ = saved_by_model(prefix_cache.LEVER, rows, {"policy": "history"})
    assert falls(reads)
    assert falls(writes)
    assert falls(minimums)
    *_, batches = saved_by_model(batch_api.LEVER, rows, {})
    assert falls(batches)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_m16_where_discounts_do_not_stack_cached_tokens_save_nothing(seed):
    rng, log = random.Random(f"stack {seed}"), Planted()
    for number in range(20):
        tokens = rng.randint(1, 9_000)
        log.add(
            FLASH, datetime(2026, 6, 1, number), tokens, rng.randint(0, 500), cache_read_tokens=rng.randint(0, tokens)
        )
    log.assume["batch_api"] = {"where": "true", "cache_hit_factor": 1}
    uncached = sum(row["input_tokens"] - row["cache_read_tokens"] for row in log.rows)
    output = sum(row["output_tokens"] for row in log.rows)
    assert worth_of(log).alone == {"batch_api": uncached * 150_000 + output * 1_250_000}


# M24: Claude Sonnet 5 was announced to go from 2 to 3 USD a million on 2026-09-01 (reads 0.1, writes 1.25, output 5
# times that); here it does.
CHANGE = datetime(2026, 9, 1)
SONNET_5, HAIKU_5 = ("anthropic", "claude-sonnet-5"), ("anthropic", "haiku")
RATES_5 = "input = {0}\ncache_read = {1}\ncache_write = {2}\noutput = {3}\n"
BEFORE, AFTER = ("2", "0.2", "2.5", "10"), ("3", "0.3", "3.75", "15")
HALVES = (("1", "0.1", "1.25", "5"), ("1.5", "0.15", "1.875", "7.5"))


def change_book() -> PriceBook:
    text = 'provider = "anthropic"\n'
    for tier, rates in (("", (BEFORE, AFTER)), ('service_tier = "batch"\n', HALVES)):
        for bound, one in zip(("valid_to = 2026-09-01", "valid_from = 2026-09-01"), rates, strict=True):
            text += f'[[price]]\nmodel = "claude-sonnet-5"\n{tier}{bound}\n{RATES_5.format(*one)}'
            text += 'source = "test"\nchecked = 2026-01-01\n'
    text += '[[price]]\nmodel = "haiku"\ninput = 1\noutput = 5\nsource = "test"\nchecked = 2026-01-01\n'
    rule = '[[rule]]\nprovider = "anthropic"\ncontrol = "both"\nmin_tokens = 1024\nlifetime_s = 300\n'
    return book_of({"anthropic.toml": text}, f'{rule}source = "test"\nchecked = 2026-01-01\n')


# What each lever saves of its own feature on each day, in uUSD: 2,048 in and 100 out cost 5,096, then 7,644.
ON_ITS_DAY = {
    "skip": (5_096, 7_644),  # a hit on each day; the answer is from the day before
    "route": (5_096 - 2_548, 7_644 - 2_548),  # haiku at 1 and 5
    "prefix_cache": (-2_048 * 0.5, 2_048 * 2.7),  # written at 2.5 instead of 2; read at 0.3 instead of 3
    "trim": (500, 750),  # half of the output
    "distill": (5_096 - 1_124, 7_644 - 1_124),  # a student at 0.5 and 1
    "batch_api": (2_548, 3_822),
}


def over_the_change() -> Planted:
    log = Planted()
    for model in (SONNET_5, ("anthropic", "mystery")):
        for lever in LEVERS:
            for seconds in (-9, -2, 9) if lever == "skip" else (-5, 5):
                log.add(
                    model,
                    CHANGE + timedelta(seconds=seconds),
                    2_048,
                    100,
                    feature=lever,
                    duration_ms=500.0,
                    ttft_ms=100.0,
                    prompt_hash="p" if lever == "skip" else f"p{len(log.rows)}",
                    params_hash="q",
                    prefix_hashes=[f"{lever}{place}" for place in range(16)],
                    prefix_block_tokens=128,
                )
    tables = {
        "route": {"to_provider": "anthropic", "to_model": "haiku", "output_ratio": 1, "min_quality": 1},
        "prefix_cache": {"policy": "history"},
        "trim": {"output_ratio": 0.5},
        "distill": {"student": {"input": "0.5", "output": "1"}},
    }
    tables["route"]["evals"] = [{"feature": "route", "model": "haiku", "score": 1}]
    log.assume = {lever: {"where": is_one_of("feature", lever), **tables.get(lever, {})} for lever in LEVERS}
    return log


@pytest.fixture(scope="module")
def over_the_change_worth():
    return worth_of(over_the_change(), change_book())


def test_m24_each_request_at_the_price_of_its_own_day(over_the_change_worth):
    found = over_the_change_worth
    days = {lever: [found.daily[lever].get(day) for day in ("2026-08-31", "2026-09-01")] for lever in found.daily}
    assert days == {lever: [round(one * MICRO) for one in usd] for lever, usd in ON_ITS_DAY.items()}
    assert found.spend == (7 * 5_096 + 6 * 7_644) * MICRO
    # nothing is shared, so sets add up
    for names, pusd in found.sets.items():
        assert pusd == sum(found.alone[name] for name in names)


def test_m25_without_a_price_counted_and_in_no_figure(over_the_change_worth):
    # a second of every request of M24 runs on a model without a price, and that test's figures are those without them
    found = over_the_change_worth
    assert found.unpriced == 13
    for lever, fates in found.facts.items():
        # a replay tries every request, as it fills the cache whatever it costs
        word = "no_price" if lever == "prefix_cache" else "unpriced"
        assert (fates.get(word), fates.get("moved")) == (2, 2), lever


@pytest.mark.full
@pytest.mark.parametrize("seed", range(6))
def test_m25_requests_without_a_price_may_as_well_not_be_there(seed):
    log = drawn(seed, 80, LEVERS)
    # but for what is billed by the request in `where` whatever it costs, and places in a cache
    for name, key in (("skip", "lookup_usd"), ("skip", "capacity"), ("route", "router_usd"), ("route", "verifier")):
        log.assume[name].pop(key, None)
    unpriced = {"provider": "elsewhere", "model": "unheard-of", "session_id": None, "retry_of": None}
    more = [{**row, **unpriced, "request_id": f"{row['request_id']} more"} for row in log.rows[::3]]
    found, other = worth_of(log), worth_of(replace(log, rows=[*log.rows, *more]))
    assert (other.spend, other.alone, other.sets) == (found.spend, found.alone, found.sets)
    billed = [row for row in more if row.get("is_billable") is not False and not row.get("gateway_cache_hit")]
    assert other.unpriced == found.unpriced + len(billed)


def test_m25_a_target_without_a_price_is_said_and_not_free():
    rows = over_the_change().rows[:4]
    with TemporaryDirectory() as folder:
        evals = Path(folder, "evals.csv")
        evals.write_text("feature,model,score\nskip,unheard-of,1\nroute,unheard-of,1\n", encoding="utf-8")
        table = {"where": "true", "to_model": "unheard-of", "evals": str(evals), "min_quality": 1}
        route = next(one for one in SHIPPED if one.name == "route")
        found = look(route, ledger(rows, change_book()), {"route": table})
    assert (found.status, found.applies) == ("not_measurable", False)
    assert "unheard-of" in found.reason


AUDIO = {"input_audio": 30, "cache_read_audio": 3, "output_audio": 60}


@pytest.mark.full
def test_audio_and_searches_are_worth_what_they_cost_to_every_lever():
    # the drawn logs have neither. At 2 / 0.2 / 10 and `AUDIO`, a search a cent; batch and the other model cost half.
    text = 'provider = "openai"\n'
    for model, tier, factor in (("a", "", 1), ("a", 'service_tier = "batch"\n', 0.5), ("b", "", 0.5)):
        rates = {"input": 2, "cache_read": 0.2, "output": 10, **AUDIO}
        text += f'[[price]]\nmodel = "{model}"\n{tier}web_search = 10\nsource = "test"\nchecked = 2026-01-01\n'
        text += "".join(f"{name} = {rate * factor}\n" for name, rate in rates.items())
    log = Planted()
    for lever in LEVERS:
        log.add(("openai", "a"), CHANGE, 1_000, 100, feature=lever, prompt_hash=lever, params_hash="x",
                cache_read_tokens=400, input_audio_tokens=300, cache_read_audio_tokens=100, output_audio_tokens=40,
                web_searches=2)  # fmt: skip
    log.rows.append({**log.rows[0], "request_id": "again", "ts": CHANGE + timedelta(seconds=60)})
    evals = [{"feature": "route", "model": "b", "score": 1}]
    tables = {
        "route": {"to_provider": "openai", "to_model": "b", "output_ratio": 1, "min_quality": 1, "evals": evals},
        "prefix_cache": {"policy": "none"},
        "trim": {"input_remove_ratio": 0.5, "output_ratio": 0.5},
        "distill": {"student": {"input": "0.5", "output": "1"}},
    }
    log.assume = {lever: {"where": is_one_of("feature", lever), **tables.get(lever, {})} for lever in LEVERS}
    found = worth_of(log, book_of({"openai.toml": text}))
    tokens = 400 * 2 + 300 * 0.2 + 200 * 30 + 100 * 3 + 60 * 10 + 40 * 60
    saved = {
        "skip": tokens + 20_000,
        "route": tokens / 2,  # searches cost the same
        "prefix_cache": -(300 * 1.8 + 100 * 27),
        "trim": 200 * 2 + 150 * 0.2 + 30 * 10,  # text only
        "batch_api": tokens / 2,
    }
    assert found.alone == {lever: round(one * MICRO) for lever, one in saved.items()}
    # the student has no price for audio: it can serve none of this
    assert "distill" not in found.names
