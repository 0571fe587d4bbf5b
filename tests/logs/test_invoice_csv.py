"""Plain CSV invoices: usual column names, amounts and dates as people write them, clear words about what is missing."""

from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from tenfold.errors import LogFormatError
from tenfold.logs import load
from tenfold.logs.buckets import bucket_reader
from tenfold.logs.buckets.base import Source
from tenfold.logs.buckets.invoice_csv import INVOICE_CSV
from tenfold.logs.buckets.words import meter_of, tier_of, tokens_unit

SAMPLES = Path(__file__).parents[1] / "samples"


def read(text, zone=None):
    """Rows, refusals and totals."""
    assert INVOICE_CSV.fits(text)
    found = list(INVOICE_CSV.read(Source(text, zone)))
    rows = [one.row for one in found if one.row is not None]
    return (
        [row for row in rows if row["amount_kind"] == "billed"],
        [(one.line, one.reason) for one in found if one.reason],
        sum(row["amount_kind"] == "total" for row in rows),
    )


def test_usual_columns_and_amounts():
    rows, refused, totals = read(
        "\ufeffDate,Model,Line Item,Amount (USD),Quantity,Unit\n"
        '2026-07-01,GPT-5,Input tokens,"$1,234.56","2,500",1K tokens\n'
        '07/13/2026,"gpt-5, cached input tokens",,($3.00),,\n'
        '"Jul 3, 2026",Claude Opus 5.5,Output - Batch,-5,,\n'
        '2026-07-31,GPT-5,Input,"1,23",,\n'
        "2026-07-31,GPT-5,Input,1\n"
        'Total,,,"1,236.56",,\n'
        ',,,"1,236.56",,\n'
    )
    assert [(row["model"], row["meter"], row["service_tier"], row["amount_usd"]) for row in rows] == [
        ("GPT-5", "uncached_input", None, Decimal("1234.56")),
        ("gpt-5", "cache_read", None, Decimal(-3)),
        ("Claude Opus 5.5", "output", "batch", Decimal(-5)),
    ]
    assert (rows[0]["quantity"], rows[0]["unit"]) == (2_500_000, "tokens")
    assert [row["bucket_start"].day for row in rows] == [1, 13, 3]
    assert refused == [
        (6, "4 cells where the header has 6"),
        (5, "no amount: '1,23'; write 1234.56 or 1,234.56"),
    ]
    assert totals == 2


def test_months_descriptions_and_currencies():
    rows, refused, _ = read(
        "Invoice Month;Description;Total Cost\n"
        "2026-07;Claude Opus 5.5 Usage - Input Tokens;€100.5\n"
        "Dec 2026;gpt-5, output_tokens;USD 7\n"
        "2026-07;Sales tax;3\n"
        "2026-13;gpt-5, output_tokens;3\n"
    )
    assert [(row["model"], row["meter"], row["currency"], row["amount_usd"], row["category"]) for row in rows] == [
        ("Claude Opus 5.5", "uncached_input", "EUR", None, "usage"),
        ("gpt-5", "output", "USD", Decimal(7), "usage"),
        ("Sales tax", None, "USD", Decimal(3), "tax"),
    ]
    assert (rows[1]["bucket_start"], rows[1]["bucket_end"]) == (datetime(2026, 12, 1), datetime(2027, 1, 1))
    assert refused[0][0] == 5


def test_days_are_of_the_zone_that_is_given():
    rows, _, _ = read("day,model,cost\n2026-07-01,a,1\n", "America/Los_Angeles")
    assert (rows[0]["bucket_start"], rows[0]["bucket_end"]) == (datetime(2026, 7, 1, 7), datetime(2026, 7, 2, 7))


def test_an_end_is_the_last_day():
    rows, refused, _ = read("start date,end date,model,cost\n2026-07-01,2026-07-15,a,1\n2026-07-09,2026-07-01,a,1\n")
    assert rows[0]["bucket_end"] == datetime(2026, 7, 16)
    assert "no period" in refused[0][1]


def test_an_order_of_dates_that_no_row_proves_is_an_error():
    with pytest.raises(LogFormatError, match="month first or day first"):
        read("date,model,cost\n07/01/2026,a,1\n")
    assert read("date,model,cost\n01/07/2026,a,1\n13/07/2026,a,1\n")[0][0]["bucket_start"] == datetime(2026, 7, 1)


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ("when,model,amount", "a date or month column"),
        ("date,model,price each", "an amount column"),
        ("date,amount", "a model, meter or description column"),
        ("date,model,amount,prompt_tokens", 'a column "prompt_tokens" is of single calls'),
    ],
)
def test_what_is_missing_is_named_with_the_header(tmp_path, header, said):
    file = tmp_path / "bill.csv"
    file.write_text(f"{header}\n2026-07-01,a,1,2\n")
    assert not INVOICE_CSV.fits(file.read_text())
    with pytest.raises(LogFormatError, match=said) as refused:
        load(file, format="invoice_csv")
    assert header in str(refused.value)


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.csv")), ids=lambda path: path.name)
def test_no_sample_of_another_format_is_taken(path):
    reader = bucket_reader(path, None)
    assert reader is not INVOICE_CSV


def test_words():
    said = {
        "Input tokens": "uncached_input", "prompt": "uncached_input", "uncached_input_tokens": "uncached_input",
        "non-cached input": "uncached_input", "Cached input tokens": "cache_read",
        "Cache Read Input Tokens": "cache_read",
        "cache hits": "cache_read", "Cache Write (5m)": "cache_write", "cache_creation_input_tokens": "cache_write",
        "Prompt caching write, 1h": "cache_write_long", "Context Cache Storage": "cache_storage",
        "completion": "output",
        "Output tokens": "output", "Audio input tokens": "input_audio", "Web search requests": "web_search",
        "Compute": None,
    }  # fmt: skip
    assert {text: meter_of(text) for text in said} == said
    assert (tier_of("gpt-5 batch, output"), tier_of("gpt-5")) == ("batch", None)
    factors = {"tokens": 1, "1K tokens": 1000, "1000_tokens": 1000, "1M Tokens": 10**6, "1000000 Tokens": 10**6}
    assert {text: tokens_unit(text).factor for text in factors} == factors
    assert tokens_unit("Requests") is None
