"""Nothing falls back in silence: what is mistyped, unknown, retired, aliased, free, or right at an edge."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from log_files import write
from quick import few

import tenfold as tf
from tenfold.errors import ColumnError, UsageError

AT = "2026-10-01"
USE = tf.Usage(input_tokens=1000, output_tokens=100)


def price(provider, model, at=AT, usage=USE, **more):
    return tf.price(provider=provider, model=model, at=at, usage=usage, **more)


MISTYPED = [
    pytest.param("openai", "gpt-5", {"tier": "fleks"}, '"flex"', id="B053 tier"),
    pytest.param("openai", "gpt-5", {"tier": "bacth"}, '"batch"', id="B052 tier"),
    pytest.param("openai", "gpt-5.4", {"region": "uss"}, '"us"', id="region"),
    pytest.param(
        "bedrock", "anthropic.claude-haiku-4-5-20251001-v1:0", {"region": "globall"}, '"global"', id="region at Bedrock"
    ),
    pytest.param("anthropic", "claude-sonet-4-5", {}, '"claude-sonnet-4-5"', id="model"),
    pytest.param("openai", "gpt5", {}, '"gpt-5"', id="model without its hyphen"),
    pytest.param("opnai", "gpt-5", {}, '"openai"', id="provider"),
]


@pytest.mark.parametrize(("provider", "model", "more", "near"), few(2, MISTYPED))
def test_what_is_mistyped_has_no_price_and_names_the_near_match(tmp_path, provider, model, more, near):
    found = price(provider, model, **more)
    assert (found.status, found.cost_usd, found.entry) == ("unpriced_model", None, None)
    assert f"Did you mean {near}?" in found.reason
    # the same through a log
    row = {
        "provider": provider,
        "model": model,
        "ts": f"{AT}T00:00:00Z",
        "request_id": "a",
        "input_tokens": 1000,
        "output_tokens": 100,
    }
    row |= {"service_tier": more.get("tier"), "region": more.get("region")}
    coverage = tf.attribute(tf.load(write(tmp_path / "log.jsonl", [row]))).coverage
    assert coverage.is_unpriced
    (missing,) = coverage.unpriced
    assert (missing["price_status"], missing["requests"], missing["tokens"]) == ("unpriced_model", 1, 1100)
    assert f"Did you mean {near}?" in missing["reason"]


def test_b053_a_count_under_a_mistyped_name_is_refused():
    with pytest.raises(UsageError, match="input_tokens"):
        price("openai", "gpt-5", usage={"input_token": 1000, "output_tokens": 100})


def framed(**more):
    call = {
        "provider": "openai",
        "model": "gpt-5",
        "ts": datetime(2026, 10, 20, tzinfo=UTC),
        "input_tokens": 1_000_000,
        "output_tokens": 1_000_000,
    }
    return tf.price_many(pl.DataFrame([{**call, **more}]))["cost_pusd"].to_list()


def test_b053_a_tier_of_a_frame_is_read_in_any_case():
    assert framed(service_tier="Flex") == [5_625_000_000_000]
    assert framed(service_tier="flexx") == [None]


def test_b053_a_tier_under_another_name_is_refused_or_read():
    try:
        found = framed(tier="flex")
    except (UsageError, ColumnError):
        return
    assert found == [5_625_000_000_000]


def test_every_status_without_a_cost_says_why(tmp_path):
    (tmp_path / "own.toml").write_text(
        'provider = "p"\n[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nsource = "s"\nchecked = 2026-11-29\n'
        '[[price]]\nmodel = "two"\nambiguous = "two lists disagree"\nsource = "s"\nchecked = 2026-11-29\n'
    )
    book = tf.price_book(tmp_path)
    read = tf.Usage(input_tokens=10, cache_read_tokens=5, cache_write_tokens=0, output_tokens=1)
    rows = [
        ("m", USE, "priced"), ("gone", USE, "unpriced_model"), ("m", read, "unpriced_meter"), ("two", USE, "ambiguous"),
        ("m", tf.Usage(input_tokens=10), "usage_partial"), ("m", tf.Usage(web_searches=0), "usage_missing"),
    ]  # fmt: skip
    for model, usage, status in rows:
        found = price("p", model, usage=usage, book=book)
        assert found.status == status
        assert (found.cost_usd is None) == bool(found.reason) == (status != "priced")


def test_a_tier_that_is_not_sold_for_a_model_is_not_the_standard_one():
    found = price("openai", "gpt-4.1-nano", tier="scale")
    assert (found.status, found.cost_usd) == ("unpriced_model", None)
    assert '"scale"' in found.reason


@pytest.mark.parametrize(
    ("provider", "model"),
    [
        pytest.param("anthropic", "claude-nonexist-9", id="B064 looks like Claude"),
        pytest.param("fireworks_ai", "fireworks_ai/claude-nonexist", id="B074 at a host of many models"),
        pytest.param("openrouter", "anthropic/claude-nonexist-9", id="B074 at a router"),
        pytest.param("openai", "gpt-4.1-large", id="B067 begins like a known one"),
        pytest.param("openai", "my-gpt-4o-mini", id="B068 holds a known one"),
    ],
)
def test_an_id_that_looks_known_has_no_price(provider, model):
    found = price(provider, model)
    assert (found.status, found.cost_usd, found.how_matched) == ("unpriced_model", None, "none")
    assert model in found.reason


@pytest.mark.parametrize(
    ("provider", "model", "entry", "how"),
    [
        pytest.param("openai", "gpt-5.4-mini-2026-03-05", "gpt-5.4-mini", "dated_id", id="B070 date not in the book"),
        pytest.param("openai", "gpt-4.1-2025-04-14", "gpt-4.1", "alias", id="B067 date in the book"),
        pytest.param("openai", "o4-mini-2025-04-16", "o4-mini", "alias", id="B047 dated"),
        pytest.param("openai", "gpt-4o-mini", "gpt-4o-mini", "exact", id="B068 exact"),
    ],
)
def test_how_a_price_was_found_is_said(provider, model, entry, how):
    found = price(provider, model)
    assert (found.status, found.entry.model, found.how_matched) == ("priced", entry, how)


@pytest.mark.parametrize("model", ["x:free", "meta-llama/llama-3.3-70b-instruct:free"])
def test_b071_free_models_are_known_to_be_free(model):
    found = price("openrouter", model)
    assert (found.status, found.cost_usd, found.reason) == ("known_zero", Decimal(0), "")
    frame = pl.DataFrame(
        {
            "provider": ["openrouter"],
            "model": [model],
            "ts": [datetime(2026, 10, 1, tzinfo=UTC)],
            "input_tokens": [1000],
            "output_tokens": [100],
        }
    )
    assert tf.price_many(frame).select("price_status", "cost_pusd").row(0) == ("known_zero", 0)


def test_deepseek_on_a_sunday_at_an_hour_that_is_peak_on_weekdays():
    # Sunday 2026-11-29; 30 November is a Monday
    def cost(at):
        return price("deepseek", "deepseek-v4-pro", at, tf.Usage(input_tokens=1_000_000, output_tokens=0)).cost_usd

    assert cost("2026-11-29T02:00:00Z") == cost("2026-11-28T08:30:00Z") == Decimal("0.66")
    assert cost("2026-11-27T08:30:00Z") == cost("2026-11-30T02:00:00Z") == Decimal("1.32")
    # the hours are UTC, whatever the clock of the caller says: still Sunday in Los Angeles, Monday in UTC
    assert cost("2026-11-29T18:00:00-08:00") == Decimal("1.32")


def test_a_batch_call_before_any_package_had_batch_prices():
    usage = tf.Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    found = price("openai", "gpt-5", "2025-09-01", usage, tier="batch")
    assert (found.status, found.cost_usd, found.entry.tier) == ("priced", Decimal("5.625"), "batch")
    assert price("openai", "gpt-5", "2025-09-01", usage).cost_usd == Decimal("11.25")


@pytest.mark.parametrize(
    ("provider", "model", "usage", "before", "after", "costs"),
    few(1, [
        pytest.param(
            "openai", "gpt-5.6-sol", tf.Usage(input_tokens=100_000, output_tokens=100_000),
            "2026-08-20T23:59:59.999999Z", "2026-08-21T00:00:00Z", ("3.5", "2.4"), id="B092",
        ),
        pytest.param(
            "google", "gemini-4-argon", tf.Usage(input_tokens=1_000_000, output_tokens=1_000_000),
            "2026-11-30T23:59:59.999999Z", "2026-12-01T00:00:00Z", ("12", "24"), id="B094",
        ),
        pytest.param(
            "anthropic", "claude-opus-4-6", tf.Usage(input_tokens=250_000, output_tokens=1000),
            "2026-03-12T23:59:59.999999Z", "2026-03-13T00:00:00Z", ("2.5375", "1.275"), id="B041",
        ),
    ]),
)  # fmt: skip
def test_both_sides_of_midnight_on_the_day_a_price_changed(tmp_path, provider, model, usage, before, after, costs):
    for at, right in zip((before, after), costs, strict=True):
        assert price(provider, model, at, usage).cost_usd == Decimal(right)
    # in one log, where a day's requests are summed before they are priced
    rows = [{"provider": provider, "model": model, "ts": at, "request_id": at, **usage} for at in (before, after)]
    ledger = tf.attribute(tf.load(write(tmp_path / "log.jsonl", rows)))
    assert [Decimal(row["cost_usd"]) for row in ledger.composition(["day"]).rows()] == [
        Decimal(right) for right in costs
    ]


def test_exactly_at_the_edge_of_a_band(tmp_path):
    counts = {272_000: "1.36", 272_001: "2.72001"}  # x 5, then all of it x 10
    rows = []
    for count, right in counts.items():
        assert price("openai", "gpt-5.5", usage=tf.Usage(input_tokens=count, output_tokens=0)).cost_usd == Decimal(
            right
        )
        # cached tokens count towards the edge as any others: $0.50, then $1
        cached = tf.Usage(input_tokens=count, cache_read_tokens=200_000, cache_write_tokens=0, output_tokens=0)
        by_hand = {272_000: "0.46", 272_001: "0.92001"}[count]  # 72,000 x 5 + 200,000 x 0.5; 72,001 x 10 + 200,000 x 1
        assert price("openai", "gpt-5.5", usage=cached).cost_usd == Decimal(by_hand)
        rows.append(
            {
                "provider": "openai",
                "model": "gpt-5.5",
                "ts": f"{AT}T12:00:00Z",
                "request_id": str(count),
                "input_tokens": count,
                "output_tokens": 0,
            }
        )
    ledger = tf.attribute(tf.load(write(tmp_path / "log.jsonl", rows)))
    assert ledger.total_pusd == int(sum(map(Decimal, counts.values())) * 10**12)
