"""The checker: every rule broken by hand is found at its row and column, and what is right is left alone."""

from __future__ import annotations

import csv
from datetime import datetime
from pathlib import Path

import polars as pl
import pytest
from real_data import real

from tenfold.errors import LogFormatError
from tenfold.export import check_focus
from tenfold.export.focus_spec import BY_NAME, COLUMNS, VERSIONS, columns_of
from tenfold.logs import load

SAMPLE = Path(__file__).parents[1] / "samples" / "focus_1_2_llm.csv"


def sample_rows():
    with SAMPLE.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def written(folder, rows, name="f.csv"):
    file = folder / name
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file


def broken(folder, **changes):
    """Break the third row of the sample."""
    rows = sample_rows()
    rows[2] |= changes
    return {(one.row, one.column) for one in check_focus(written(folder, rows)).findings}


def test_the_sample_is_clean_and_its_version_is_told():
    found = check_focus(SAMPLE)
    assert (found.is_clean, found.version, found.rows) == (True, "1.2", 4)


PURCHASE = {
    "ChargeCategory": "Purchase", "ChargeFrequency": "One-Time", "ConsumedQuantity": "", "ConsumedUnit": "",
}  # fmt: skip
# What is wrong in the row, and the columns at which that shows.
WRONG = {
    "no number": ({"BilledCost": "1,5"}, "BilledCost"),
    "plus sign": ({"EffectiveCost": "+1.5"}, "EffectiveCost"),
    "unit in a number": ({"ConsumedQuantity": "5 tokens"}, "ConsumedQuantity"),
    "nan": ({"BilledCost": "NaN"}, "BilledCost"),
    "price below zero": ({"ListUnitPrice": "-1", "ListCost": "-8"}, "ListUnitPrice"),
    "no currency": ({"BillingCurrency": "usd"}, "BillingCurrency"),
    "null that must not be": ({"ServiceName": ""}, "ServiceName"),
    "blanks for a text": ({"ServiceName": "  "}, "ServiceName"),
    "value list": ({"ChargeCategory": "Use"}, "ChargeCategory ConsumedQuantity"),
    "class": ({"ChargeClass": "Refund"}, "ChargeClass"),
    "category of service": ({"ServiceCategory": "AI"}, "ServiceCategory"),
    "subcategory": ({"ServiceSubcategory": "LLM"}, "ServiceSubcategory"),
    "frequency": ({"ChargeFrequency": "Daily"}, "ChargeFrequency"),
    "pricing": ({"PricingCategory": "On-Demand"}, "PricingCategory"),
    "bought by use": ({**PURCHASE, "ChargeFrequency": "Usage-Based"}, "ChargeFrequency"),
    "consumed by a purchase": ({**PURCHASE, "ConsumedQuantity": "1", "ConsumedUnit": "Tokens"}, "ConsumedQuantity"),
    "usage without a quantity": ({"ConsumedQuantity": "", "ConsumedUnit": ""}, "ConsumedQuantity"),
    "unit without a quantity": ({"PricingQuantity": ""}, "PricingQuantity PricingUnit"),
    "name without an account": ({"SubAccountId": ""}, "SubAccountName SubAccountType"),
    "account without a name": ({"SubAccountName": ""}, "SubAccountName"),
    "commitment without a status": (
        {"CommitmentDiscountId": "c"},
        "CommitmentDiscountCategory CommitmentDiscountQuantity CommitmentDiscountStatus CommitmentDiscountType",
    ),
    "status without a commitment": ({"CommitmentDiscountStatus": "Used"}, "CommitmentDiscountStatus"),
    "status": (
        {"CommitmentDiscountId": "c", "CommitmentDiscountStatus": "Active"},
        "CommitmentDiscountCategory CommitmentDiscountQuantity CommitmentDiscountStatus CommitmentDiscountType",
    ),
    "no SKU price": ({"SkuPriceId": "", "SkuPriceDetails": ""}, "SkuPriceId"),
    "tags that are no object": ({"Tags": '["a"]'}, "Tags"),
    "tags within tags": ({"Tags": '{"a": {"b": "c"}}'}, "Tags"),
    "a tag twice": ({"Tags": '{"a": "1", "a": "2"}'}, "Tags"),
    "keys of SKU price details": ({"SkuPriceDetails": '{"TokenDirection": "Input"}'}, "SkuPriceDetails"),
    "list product": ({"ListCost": "2.41"}, "ListCost"),
    "contracted product": ({"ContractedUnitPrice": "0.29"}, "ContractedCost"),
    "product off by a little": ({"ListCost": "2.40000001"}, "ListCost"),
    "time without zone": ({"ChargePeriodStart": "2026-07-01T00:00:00"}, "ChargePeriodStart"),
    "time without seconds": ({"ChargePeriodStart": "2026-07-01T00:00Z"}, "ChargePeriodStart"),
    "time with an offset": ({"ChargePeriodStart": "2026-07-01T00:00:00+00:00"}, "ChargePeriodStart"),
    "day that does not exist": ({"ChargePeriodStart": "2026-07-32T00:00:00Z"}, "ChargePeriodStart"),
    "billing by the day": (
        {"BillingPeriodStart": "2026-07-01T00:00:00Z", "BillingPeriodEnd": "2026-07-02T00:00:00Z"},
        "BillingPeriodEnd",
    ),
    "billing from within a month": (
        {"BillingPeriodStart": "2026-07-02T00:00:00Z"},
        "BillingPeriodStart ChargePeriodEnd ChargePeriodStart",
    ),
    "inclusive end": ({"ChargePeriodEnd": "2026-07-01T00:00:00Z"}, "ChargePeriodEnd"),
    "charge beyond its month": ({"ChargePeriodEnd": "2026-08-01T00:00:01Z"}, "ChargePeriodEnd"),
    "charge before its month": ({"ChargePeriodStart": "2026-06-30T00:00:00Z"}, "ChargePeriodStart"),
    "another meter of the SKU": ({"SkuId": "example-large-1-input", "SkuPriceId": "x"}, "SkuMeter"),
    "another SKU of the price": ({"SkuPriceId": "example-large-1-input-ondemand"}, "SkuId"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_in_its_row(tmp_path, name):
    changes, columns = WRONG[name]
    assert broken(tmp_path, **changes) == {(3, column) for column in columns.split()}


RIGHT = {
    "e-notation": {"ListCost": "2.4E0", "BilledCost": "4.5E-7"},
    "a correction needs no product": {"ChargeClass": "Correction", "ListCost": "-1", "ConsumedQuantity": ""},
    "purchase of a year": {**PURCHASE, "ChargePeriodEnd": "2027-07-01T00:00:00Z"},
    "many digits": {"ListUnitPrice": "0.3000000000000001", "ListCost": "2.4000000000000008"},
    "whole month": {"ChargePeriodEnd": "2026-08-01T00:00:00Z"},
    "unused": {"CommitmentDiscountId": "c", "CommitmentDiscountStatus": "Unused", "CommitmentDiscountCategory": "Spend",
               "CommitmentDiscountType": "t", "CommitmentDiscountQuantity": "1", "CommitmentDiscountUnit": "USD",
               "ConsumedQuantity": "", "ConsumedUnit": ""},
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(tmp_path, name):
    found = broken(tmp_path, **RIGHT[name])
    # without a quantity there must be no unit, which is the one thing left wrong in a correction
    assert found <= ({(3, "ConsumedUnit")} if name.startswith("a correction") else set())


@pytest.mark.parametrize("version", VERSIONS)
def test_a_missing_column_is_found_for_every_version_that_has_it(tmp_path, version):
    base = sample_rows()
    names = {column.name for column in columns_of(version)}
    extra = {"ServiceProviderName": "Example AI", "HostProviderName": "Example AI"}
    rows = [
        {**{n: v for n, v in row.items() if n in names}, **{n: v for n, v in extra.items() if n in names}}
        for row in base
    ]
    assert check_focus(written(tmp_path, rows), version).is_clean
    for column in columns_of(version):
        if column.presence != "must" or column.name == "BilledCost":
            continue
        cut = [{name: value for name, value in row.items() if name != column.name} for row in rows]
        found = check_focus(written(tmp_path, cut), version).findings
        assert (0, column.name) in {(one.row, one.column) for one in found}


def test_columns_of_other_versions_and_of_ones_own(tmp_path):
    rows = [{**row, "Team": "a", "x_Team": "b", "HostProviderName": "c"} for row in sample_rows()]
    found = {(one.column, one.rule) for one in check_focus(written(tmp_path, rows), "1.2").findings}
    assert found == {
        ("Team", "a column of your own begins with x_"),
        ("HostProviderName", "is not a column of 1.2"),
    }
    # price columns come together, and so do those of consumption
    for name, group in (("SkuId", "SkuMeter"), ("ConsumedUnit", "ConsumedQuantity")):
        cut = [{n: v for n, v in row.items() if n != name} for row in sample_rows()]
        assert name in {one.column for one in check_focus(written(tmp_path, cut), "1.2").findings}, group


def test_the_table_is_in_order_and_decides_by_columns_it_has():
    assert [column.name for column in COLUMNS] == sorted(BY_NAME, key=str.lower) or len(BY_NAME) == len(COLUMNS)
    assert all(column.beside in BY_NAME for column in COLUMNS if column.nullable in ("beside", "only_beside"))
    assert [len(columns_of(version)) for version in VERSIONS] == [43, 50, 57, 65, 65]


def test_parquet_is_checked_alike_and_findings_are_counted(tmp_path):
    rows = sample_rows() * 60
    frame = pl.DataFrame(rows).with_columns(
        BilledCost=pl.lit("1,5"),
        ListCost=pl.col("ListCost").cast(pl.Decimal(38, 12)),
        ChargePeriodStart=pl.lit(datetime(2026, 7, 1)).dt.replace_time_zone("UTC"),
        InvoiceId=pl.lit(None, pl.String),
    )
    frame.write_parquet(tmp_path / "f.parquet")
    found = check_focus(tmp_path / "f.parquet")
    assert dict(found.counts) == {("BilledCost", "must be a number without sign, commas or units (1234.5, 1E-7)"): 240}
    assert (found.rows, len(found.findings)) == (240, 100)


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"a,b\n1,2\n", "has no column BilledCost"), (b"BilledCost\n\xff\xfe\n", "UTF-8"), (b"", "has no column")],
)
def test_what_is_no_focus_file_is_refused(tmp_path, content, why):
    (tmp_path / "f.csv").write_bytes(content)
    with pytest.raises(LogFormatError, match=why):
        check_focus(tmp_path / "f.csv")


def test_a_row_of_another_length_is_a_finding(tmp_path):
    (tmp_path / "f.csv").write_text(SAMPLE.read_text(encoding="utf-8").rstrip("\n") + "\n1,2\n", encoding="utf-8")
    assert {(one.row, one.value) for one in check_focus(tmp_path / "f.csv").findings} == {(5, "2")}


@pytest.mark.real_data
def test_official_examples_load_and_their_odd_cells_are_named():
    folder = real("focus_spec")
    files = sorted(folder.glob("*.csv"))
    assert len(files) == 6
    for file in files:
        log = load(file)
        rows = len(file.read_text(encoding="utf-8-sig").strip().splitlines()) - 1
        assert (log.summary["rejected"], log.summary["buckets"]) == (0, 4 * rows), file.name
        found = check_focus(file)
        columns = {column for column, _ in found.counts}
        if file.name.startswith("v1.2"):  # 4/1/25 is no date of the standard, and trailing blanks no number
            assert {"BillingPeriodStart", "ChargePeriodEnd"} <= columns
        else:  # drafts of 1.5: their keys are not defined before
            assert (
                {"SkuPriceDetails"} <= columns <= {"SkuPriceDetails", "CredentialId", "PrincipalId", "RequesterDetails"}
            )
    blanks = check_focus(folder / "v1.2_virtual_currency_pricing_model_b1.csv")
    assert ("EffectiveCost", "must be a number without sign, commas or units (1234.5, 1E-7)") in blanks.counts
