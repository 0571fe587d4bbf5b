"""Plain CSV invoices of other countries: decimal signs are proven, euros are no dollars, totals are no charges."""

import random
from decimal import Decimal

import pytest

from tenfold.errors import LogFormatError
from tenfold.logs.buckets.base import Source
from tenfold.logs.buckets.invoice_csv import INVOICE_CSV

HEAD = "date,model,meter,amount"


def read(text):
    """Rows with their amounts, and reasons by line."""
    assert INVOICE_CSV.fits(text)
    found = list(INVOICE_CSV.read(Source(text)))
    return [one.row for one in found if one.row], {one.line: one.reason for one in found if one.reason}


def amounts_of(*cells, sign=","):
    """Read amounts alone, each quoted, in a file between commas or semicolons."""
    head = HEAD.replace(",", sign)
    text = "".join(f'2026-07-01{sign}m{n}{sign}input{sign}"{cell}"\n' for n, cell in enumerate(cells))
    rows, refused = read(f"{head}\n{text}")
    return [row["amount"] for row in rows], refused


@pytest.mark.parametrize(
    ("sign", "cells", "meant"),
    [
        (";", ["1,234", "12,34"], ["1.234", "12.34"]),  # two decimals prove the comma
        (",", ["1,234", "1,5"], ["1.234", "1.5"]),
        (";", ["1.234,5", "1.234"], ["1234.5", "1234"]),
        (";", ["1.234.567", "1,234"], ["1234567", "1.234"]),  # a dot that groups twice
        (",", ["1,234.56", "1,234"], ["1234.56", "1234"]),
        (";", ["1,234,567", "1.234"], ["1234567", "1.234"]),
        (",", ["0,123", "1,234"], ["0.123", "1.234"]),  # no thousands begin with 0
        (",", ["1234,567", "1,234"], ["1234.567", "1.234"]),
        (",", ["1,5E-3", "1,234"], ["0.0015", "1.234"]),
        (",", ["1 234,50", "1'234,50", "1\u00a0234,50"], ["1234.5"] * 3),
        (",", ["1.234"], ["1.234"]),  # between commas a dot is decimal unless something speaks against it
        (";", ["12", "7"], ["12", "7"]),
    ],
)
def test_the_decimal_sign_is_proven_by_the_columns_cells(sign, cells, meant):
    assert amounts_of(*cells, sign=sign) == ([Decimal(one) for one in meant], {})


@pytest.mark.parametrize(("sign", "cells"), [(",", ["1,234"]), (";", ["1,234", "17"]), (";", ["1.234"])])
def test_a_decimal_sign_that_nothing_proves_refuses_the_file(sign, cells):
    with pytest.raises(LogFormatError, match=r'amount: "1.234" in line 2 may be 1234 or 1\.234.*decimal dot'):
        amounts_of(*cells, sign=sign)


def test_cells_that_contradict_each_other_refuse_the_file_unless_one_has_both_signs():
    with pytest.raises(LogFormatError, match=r'"1,5" in line 2 and "1.5" in line 3 have different decimal signs'):
        amounts_of("1,5", "1.5")
    assert amounts_of("1.234,56", "1.5") == (
        [Decimal("1234.56")],
        {3: "no amount: '1.5'; write 1234,56 or 1.234,56"},
    )


def test_each_column_by_itself_and_by_the_others_where_it_proves_nothing():
    text = "date;model;meter;amount;quantity;unit\n2026-07-01;a;input;{};{};tokens\n"
    for amount, quantity, meant in [
        ("12,34", "1,5", ("12.34", "1.5")),
        ("12,34", "1.234", ("12.34", "1234")),
        ("12.34", "1,234", ("12.34", "1234")),
        ("12.34", "1,5", ("12.34", "1.5")),
    ]:
        (row,), _ = read(text.format(amount, quantity))
        assert (row["amount"], row["quantity"]) == tuple(Decimal(one) for one in meant)
    with pytest.raises(LogFormatError, match="quantity"):
        read(text.format("12", "1,234"))


def test_amounts_written_both_ways_are_the_same():
    """Random amounts, written by Python's own grouping and with its signs swapped."""
    luck = random.Random(1)
    values = [Decimal(luck.randrange(-(10**9), 10**9)) / 100 for _ in range(40)]
    usual = [f"{one:,.2f}" for one in values]
    swapped = [one.translate(str.maketrans(",.", ".,")) for one in usual]
    assert amounts_of(*usual)[0] == amounts_of(*swapped, sign=";")[0] == values


@pytest.mark.parametrize(
    "written", ["12.34-", "-12.34", "(12.34)", "\u221212.34", "$ (12.34)", "-$12.34", "12.34\u2212"]
)
def test_negative_amounts(written):
    assert amounts_of(written) == ([Decimal("-12.34")], {})


@pytest.mark.parametrize(
    "written", ["(12.34", "12.34)", "--12.34", "-(12.34)", "-12.34-", "12 34", "1,23.4", "12.34 x"]
)
def test_amounts_that_are_none(written):
    rows, refused = amounts_of(written, "1.5")
    assert (rows, list(refused)) == ([Decimal("1.5")], [2])


@pytest.mark.parametrize(
    ("name", "cell", "column", "code"),
    [
        ("Amount (€)", "1.50", "", "EUR"), ("Amount (£)", "1.50", "", "GBP"), ("amount", "€1.50", "", "EUR"),
        ("amount", "1.50 EUR", "", "EUR"), ("amount", "1.50 euros", "", "EUR"), ("Cost in EUR", "1.50", "", "EUR"),
        ("amount_eur", "1.50", "", "EUR"), ("amount", "US$1.50", "", "USD"), ("amount", "$1.50", "", "USD"),
        ("amount", "1.50", "$", "USD"), ("amount", "1.50", "US$", "USD"), ("amount", "1.50", "US Dollar", "USD"),
        ("amount", "1.50", "U.S. Dollars", "USD"), ("amount", "$1.50", "CAD", "CAD"), ("amount", "A$1.50", "", "AUD"),
        ("Amount ($)", "1.50", "Canadian dollars", "CAD"), ("Amount (₽)", "1.50", "", "₽"),
        ("amount", "1.5", "", "USD"), ("amount", "1.50", "credits", "CREDITS"), ("Amount (USD)", "$1.50", "usd", "USD"),
    ],
)  # fmt: skip
def test_currencies_by_sign_code_and_word(name, cell, column, code):
    (row,), refused = read(f"date,model,meter,{name},currency\n2026-07-01,a,input,{cell},{column}\n")
    assert (row["amount"], row["currency"], refused) == (Decimal("1.5"), code, {})
    assert row["amount_usd"] == (Decimal("1.5") if code == "USD" else None)


@pytest.mark.parametrize(
    ("name", "cell", "column"),
    [("amount", "€1.50", "USD"), ("amount", "$1.50", "EUR"), ("Amount (€)", "1.50", "USD"), ("Amount (€)", "$1", "")],
)
def test_currencies_that_contradict_each_other_refuse_the_row(name, cell, column):
    rows, refused = read(f"date,model,meter,{name},currency\n2026-07-01,a,input,{cell},{column}\n")
    assert not rows
    assert "contradictory currencies" in refused[2]


def test_words_in_names_do_not_make_a_tax_a_credit_or_a_tier():
    text = "2026-07-01,{},{},1\n"
    about = [
        ("credit-scorer", "input_tokens", "usage"), ("tax-bot", "input_tokens", "usage"),
        ("credit", "output_tokens", "usage"), ("tax-bot", "", "usage"), ("grok-fast", "input_tokens", "usage"),
        ("", "Sales tax", "tax"), ("a", "Promotional credit", "credit"), ("Sales tax", "", "tax"),
        ("a", "Refunds", "adjustment"),
    ]  # fmt: skip
    rows, _ = read(f"{HEAD}\n" + "".join(text.format(model, meter) for model, meter, _ in about))
    assert [row["category"] for row in rows] == [category for _, _, category in about]
    assert {row["service_tier"] for row in rows} == {None}


def kinds(*lines):
    rows, refused = read("\n".join((HEAD, *lines)))
    assert not refused
    return [row["amount_kind"] == "total" for row in rows]


def test_a_total_is_one_that_is_of_nothing_or_comes_to_the_rows_above():
    two = ("2026-07-01,a,input,1.50", "2026-07-01,b,input,2.50")
    assert kinds(*two, "2026-07-01,total,input,3.50") == [False, False, False]  # a model of that name
    assert kinds(*two, "2026-07-01,total,input,4.00") == [False, False, True]
    assert kinds(*two, "2026-07-31,Total,,7.00") == [False, False, True]
    assert kinds(*two, ",,Total,7.00") == [False, False, True]
    assert kinds(*two, "Grand total,,,7.00") == kinds(*two, ",,,7.00") == [False, False, True]
    # subtotals of models, then the whole; a meter that says all meters together is none
    below = ("2026-07-01,a,total,1.50", two[1], "2026-07-01,b,total,2.50", "Total,,,4.00")
    assert kinds(two[0], *below) == [False, True, False, True, True]
    assert read(f"{HEAD}\n2026-07-01,a,total,5\n2026-07-02,a,total,6\n")[0][0]["meter"] is None


def test_two_columns_of_one_name_must_be_equal():
    text = "date,model,meter,{},{}\n2026-07-01,a,input,1.50,{}\n"
    with pytest.raises(LogFormatError, match=r'columns 4 and 5 are both called "amount".*line 2 has "1.50" and "9.99"'):
        read(text.format("Amount", "amount", "9.99"))
    with pytest.raises(LogFormatError, match='both called "amount"'):
        read(text.format("Amount (USD)", "Amount (EUR)", "1.50"))
    assert read(text.format("Amount", "Amount", "1.50"))[0][0]["amount"] == Decimal("1.5")
