"""Rows of a FOCUS export, worked by hand: what a row is, what it holds, and what it leaves to the file beside."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import polars as pl
import pytest
from focus_rows import CALL, DAY, ENTRY, HOSTILE, SOLORA, column, rows_of

from tenfold.errors import AssumptionError
from tenfold.export import check_focus, export_focus
from tenfold.export.focus_names import SELLERS, SKUS
from tenfold.ledger import attribute
from tenfold.logs import load
from tenfold.prices.meters import METER_NAMES, meters
from tenfold.prices.words import PROVIDERS, canonical_provider


def prices_of(model, *lines):
    """Your own prices of a model."""
    body = "\n".join(lines)
    return {"openai.toml": f'provider = "openai"\n[[price]]\nmodel = "{model}"\n{body}\n{ENTRY}'}


def test_the_published_example_of_prompt_caching(exported):
    rows = exported([{**CALL, "org": "acct-1001", "team": "search", "web_searches": 3}])
    right = [
        ("Input Tokens", "500000.0", "0.5", "3.0", "1.5"),
        ("Cache Read Input Tokens", "8000000.0", "8.0", "0.3", "2.4"),
        ("Cache Write Input Tokens", "2000000.0", "2.0", "3.75", "7.5"),
        ("Output Tokens", "1500000.0", "1.5", "15.0", "22.5"),
        ("Web Search Requests", "3.0", "0.003", "10.0", "0.03"),
    ]
    assert column(rows, "SkuMeter", "ConsumedQuantity", "PricingQuantity", "ListUnitPrice", "ListCost") == right
    for name in ("ContractedCost", "EffectiveCost", "BilledCost"):
        assert column(rows, name) == [one[-1] for one in right]
    assert column(rows, "SkuPriceId") == [
        f"solora-{one}-ondemand" for one in ("input", "cache-read", "cache-write", "output", "web-search")
    ]
    assert column(rows, "PricingUnit", "ConsumedUnit")[-2:] == [
        ("1000000 Tokens", "Tokens"),
        ("1000 Requests", "Requests"),
    ]
    # a request is counted on one meter only, reasoning on the output that holds it
    assert column(rows, "x_RequestCount", "x_ReasoningTokens") == [
        ("1", "0"), ("0", "0"), ("0", "0"), ("0", "200000"), ("0", "0")
    ]  # fmt: skip
    one = rows[0]
    assert one["BillingAccountId"] == "acct-1001"
    assert (one["SubAccountId"], one["SubAccountType"], one["Tags"]) == ("search", "Team", '{"team":"search"}')
    assert (one["BillingPeriodStart"], one["BillingPeriodEnd"]) == ("2026-07-01T00:00:00Z", "2026-08-01T00:00:00Z")
    assert (one["ChargePeriodStart"], one["ChargePeriodEnd"]) == ("2026-07-01T00:00:00Z", "2026-07-02T00:00:00Z")
    assert json.loads(one["SkuPriceDetails"]) == {
        "x_ModelId": "solora", "x_ModelDeveloper": "OpenAI", "x_TokenDirection": "Input",
        "x_TokenCacheAction": "Uncached", "x_ServiceTier": "standard",
    }  # fmt: skip
    assert (one["x_CoveragePct"], one["x_CostSource"]) == ("100.0", "estimated")
    assert one["x_CardVersion"] == exported.ledger.book.version
    assert one["x_LogHash"] == exported.ledger.log.log_hash
    assert not exported.made.unpriced_requests
    assert column(rows, "ProviderName", "InvoiceIssuerName")[0] == ("OpenAI", "OpenAI")


@pytest.mark.full
def test_version_1_4_has_who_serves_and_who_sells_instead_of_providers(exported):
    (row, *_) = exported([CALL], version="1.4")
    assert not {"ProviderName", "PublisherName"} & row.keys()
    assert (row["ServiceProviderName"], row["HostProviderName"]) == ("OpenAI", "OpenAI")
    assert check_focus(exported.path).version == "1.4"


@pytest.mark.full
def test_tiers_regions_and_bands_have_prices_of_their_own(exported):
    prices = (
        SOLORA
        + f"""
[[price]]
model = "solora"
above_input_tokens = 200000
input = 6
cache_read = 0.6
output = 22.5
{ENTRY}[[price]]
model = "solora"
service_tier = "batch"
region = "eu"
input = 1.5
output = 7.5
{ENTRY}"""
    )
    small = {"provider": "openai", "model": "solora", "ts": DAY, "input_tokens": 200_000, "output_tokens": 10}
    batch = {**small, "service_tier": "batch", "region": "eu"}
    rows = exported([small, {**small, "input_tokens": 200_001}, batch], prices)
    inputs = [row for row in rows if row["x_Meter"] == "uncached_input"]
    assert sorted(column(inputs, "SkuPriceId", "x_ContextBand", "RegionId", "x_ServiceTier", "ListUnitPrice")) == [
        ("solora-input-batch-eu", "", "eu", "batch", "1.5"),
        ("solora-input-ondemand", "0-200000", "", "standard", "3.0"),
        ("solora-input-ondemand-above-200000", ">200000", "", "standard", "6.0"),
    ]
    assert {row["SkuId"] for row in inputs} == {"solora-input"}


@pytest.mark.full
def test_a_price_that_changes_within_a_day_or_an_hour_cuts_the_charge_period(exported):
    change = f'[[price]]\nmodel = "solora"\nvalid_from = 2026-07-01T10:30:00Z\ninput = 2\noutput = 10\n{ENTRY}'
    call = {"provider": "openai", "model": "solora", "input_tokens": 1_000_000, "output_tokens": 0}
    calls = [{**call, "ts": DAY + timedelta(minutes=at)} for at in (0, 29, 30, 90)]
    by_day = exported(calls, SOLORA + change)
    wanted = ("ChargePeriodStart", "ChargePeriodEnd", "ListUnitPrice", "ConsumedQuantity")
    assert column(by_day, *wanted) == [
        ("2026-07-01T00:00:00Z", "2026-07-01T10:30:00Z", "3.0", "2000000.0"),
        ("2026-07-01T10:30:00Z", "2026-07-02T00:00:00Z", "2.0", "2000000.0"),
    ]
    by_hour = exported(calls, SOLORA + change, grain="hour")
    assert column(by_hour, *wanted) == [
        ("2026-07-01T10:00:00Z", "2026-07-01T10:30:00Z", "3.0", "2000000.0"),
        ("2026-07-01T10:30:00Z", "2026-07-01T11:00:00Z", "2.0", "1000000.0"),
        ("2026-07-01T11:00:00Z", "2026-07-01T12:00:00Z", "2.0", "1000000.0"),
    ]


def test_what_has_no_price_is_in_the_file_beside_and_what_is_free_is_a_row_of_zero(exported):
    free = f'[[price]]\nmodel = "free"\ninput = 0\noutput = 0\n{ENTRY}'
    calls = [CALL, {**CALL, "model": "nix"}, {**CALL, "ts": None}, {**CALL, "output_tokens": None}]
    calls.append({"provider": "openai", "model": "free", "ts": DAY, "input_tokens": 7, "output_tokens": 0})
    # what is not billed, or a gateway's cache answered, is no charge
    calls += [{**CALL, "is_billable": False}, {**CALL, "gateway_cache_hit": True}]
    rows = exported(calls, SOLORA + free)
    assert column([row for row in rows if row["x_ModelId"] == "free"], "ConsumedQuantity", "BilledCost") == [
        ("7.0", "0.0")
    ]
    assert {row["x_ModelId"] for row in rows} == {"solora", "free"}
    assert {row["x_CoveragePct"] for row in rows} == {"50.0"}  # two of the day's four; one has no day
    assert sum(int(row["x_RequestCount"]) for row in rows) == exported.made.requests == 2
    beside = rows_of(exported.made.unpriced_path)
    assert exported.made.unpriced_path.name == "f.unpriced.csv"
    assert [(row["day"], row["model"], row["price_status"], row["requests"]) for row in beside] == [
        ("2026-07-01", "nix", "unpriced_model", "1"),
        ("2026-07-01", "solora", "usage_partial", "1"),
        ("", "solora", "ambiguous", "1"),
    ]
    assert all(row["reason"] for row in beside)
    assert exported.made.unpriced_requests == 3
    # once everything has a price, no list of an earlier export stays behind
    exported([CALL])
    assert not (exported.path.parent / "f.unpriced.csv").exists()


@pytest.mark.full
def test_a_part_that_only_the_list_prices_apart_is_a_row_with_both_prices(exported):
    prices = SOLORA.replace("output = 15", "output = 15\nreasoning = 20")
    own = prices_of("solora", "input = 2", "output = 9")
    call = {**CALL, "cache_write_tokens": 0, "cache_read_tokens": 0, "input_tokens": 1_000_000}
    rows = exported([call], prices, own)
    assert column(rows, "x_Meter", "ConsumedQuantity", "ListUnitPrice", "ContractedUnitPrice") == [
        ("uncached_input", "1000000.0", "3.0", "2.0"),
        ("output", "1300000.0", "15.0", "9.0"),
        ("reasoning", "200000.0", "20.0", "9.0"),
    ]
    assert column(rows, "x_ReasoningTokens") == ["0", "0", "200000"]
    costs = exported.ledger.costs()
    assert (exported.made.costs["ListCost"], exported.made.costs["ContractedCost"]) == (
        costs.total("list"),
        costs.total("contracted"),
    )


@pytest.mark.full
def test_the_other_way_round_too(exported):
    own = prices_of("solora", "input = 2", "output = 9", "reasoning = 1")
    call = {**CALL, "cache_write_tokens": 0, "cache_read_tokens": 0}
    rows = exported([call], SOLORA, own)
    assert column(rows, "x_Meter", "ListUnitPrice", "ContractedUnitPrice")[1:] == [
        ("output", "15.0", "9.0"),
        ("reasoning", "15.0", "1.0"),
    ]
    assert exported.made.costs["ListCost"] == exported.ledger.costs().total("list")


@pytest.mark.full
def test_a_model_without_a_list_price_says_so_and_reads_back_without_list_cost(exported):
    own = prices_of("ours", "input = 2", "output = 4")
    rows = exported([CALL, {**CALL, "model": "ours", "cache_read_tokens": 0, "cache_write_tokens": 0}], SOLORA, own)
    mine = [row for row in rows if row["x_ModelId"] == "ours"]
    assert {(row["x_ListPrice"], row["ListUnitPrice"] == row["ContractedUnitPrice"]) for row in mine} == {
        ("none", True)
    }
    assert exported.made.without_list_pusd == 27 * 10**12  # 10.5 x 2 + 1.5 x 4
    back = load(exported.path).buckets.filter(pl.col("amount_kind") == "list")
    assert back["amount_usd"].sum() == Decimal("33.9") == Decimal(exported.ledger.costs().total("list")).scaleb(-12)


@pytest.mark.full
@pytest.mark.parametrize("ending", ["csv.gz", "csv", "parquet"])
def test_the_same_ledger_gives_the_same_bytes(exported, tmp_path, ending):
    calls = [{**CALL, "team": name, "ts": DAY + timedelta(days=n % 40)} for n, name in enumerate(HOSTILE * 4)]
    exported(calls)
    files = [tmp_path / f"{n}.{ending}" for n in range(2)]
    for file in files:
        export_focus(exported.ledger, file)
    assert files[0].read_bytes() == files[1].read_bytes()
    assert not list(tmp_path.glob(".*part"))


def test_hostile_names_are_no_formulas_and_come_back_as_they_were(exported):
    calls = [{**CALL, "project": name, "org": name, "feature": name, "environment": name} for name in HOSTILE]
    # in a month of 30 days, which the checker holds the billing periods against
    calls = [{**call, "ts": DAY - timedelta(days=10)} for call in calls]
    rows = exported(calls)
    texts = {value for row in rows for name, value in row.items() if name not in ("BilledCost", "ListCost")}
    assert not [text for text in texts if text[:1] in tuple("=+-@\t\r\n＝") and text]
    back = load(exported.path).buckets
    for column_ in ("project", "org"):
        assert set(back[column_]) == set(HOSTILE)
    tags = {json.loads(row["Tags"])["feature"] for row in rows}
    assert tags == set(HOSTILE)


@pytest.mark.full
def test_a_zero_byte_does_not_end_a_text(exported):
    rows = exported([{**CALL, "project": "a\0b"}])
    assert {row["SubAccountId"] for row in rows} in ({"a␀b"}, {"ab"})


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"version": "1.3"}, "one of 1.2, 1.4"),
        ({"grain": "week"}, "one of day, hour"),
        ({"cost_source": "guess"}, "estimated, reconciled"),
        ({"name": "f.xlsx"}, "CSV or Parquet"),
        ({"name": "f.txt"}, "name it .csv"),
        ({"name": "no/f.csv"}, "no directory"),
    ],
)
def test_what_it_cannot_do_it_says_with_the_way_out(exported, options, why):
    with pytest.raises(AssumptionError, match=why):
        exported([CALL], **options)


@pytest.mark.full
def test_a_what_if_is_no_focus_file(exported, tmp_path):
    exported([CALL])
    what_if = attribute(exported.ledger.log, exported.ledger.book, price_at=DAY)
    with pytest.raises(AssumptionError, match="price_at"):
        export_focus(what_if, tmp_path / "g.csv")


@pytest.mark.full
def test_days_are_utc_days_whatever_the_zone(exported, tmp_path):
    exported([{**CALL, "ts": datetime(2026, 7, 31, 23, 30, tzinfo=UTC)}])
    local = attribute(exported.ledger.log, exported.ledger.book, zone="Europe/Berlin")
    export_focus(local, tmp_path / "g.csv")
    assert (tmp_path / "g.csv").read_bytes() == exported.path.read_bytes()


def test_the_words_cover_every_meter_and_provider_and_are_read_back():
    assert tuple(SKUS) == METER_NAMES
    assert len({sku.suffix for sku in SKUS.values()}) == len({sku.meter for sku in SKUS.values()}) == len(SKUS)
    assert set(SELLERS) == set(PROVIDERS)
    units = {"tokens": "Tokens", "token_s": "Token-Hours", "ms": "Hours", "images": "Images", "pages": "Pages"}
    for meter in meters():
        number = "" if meter.per == 1 else f"{meter.per} "
        sku = SKUS[meter.name]
        assert sku.pricing_unit == number + units.get(meter.unit, sku.pricing_unit.split()[-1])
    from tenfold.logs.buckets.focus import _PROVIDERS

    for name, seller in SELLERS.items():
        assert _PROVIDERS.get(seller.name.lower(), canonical_provider(seller.name)) == name, name
