"""The verdict of a reconciliation: nothing cancels that should not, and a rate is one that can be."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from planted_invoices import by_cause, prices
from small_logs import ledger, row

import tenfold as tf

MODELS = tuple("abcdefgh")


@pytest.fixture(scope="module")
def log():
    """Two days of $2 input and $10 output each."""
    day = {"model": "large", "input_tokens": 1_000_000, "output_tokens": 1_000_000}
    return ledger([row(ts=datetime(2026, 6, n, 12), **day) for n in (1, 2)], prices("openai"))


def held(log, folder, *rows, head="date,model,meter,amount"):
    file = folder / "bill.csv"
    file.write_text("\n".join((head, *rows)) + "\n")
    return tf.reconcile(log, file)


def test_more_of_one_meter_does_not_make_up_for_less_of_another(log, tmp_path):
    """Input is billed $1.20 short on each of two days, output as much over: net 0, gross 4.80 of 24."""
    rows = [
        f"2026-06-0{day},large,{meter},{usd}" for day in (1, 2) for meter, usd in (("input", 0.8), ("output", 11.2))
    ]
    found = held(log, tmp_path, *rows)
    assert (found.drift_pusd, found.gross_pusd, found.verdict) == (0, 4_800_000_000_000, "unreconciled")
    total = found.as_dict()["total"]
    assert (total["drift_ratio"], total["gross_ratio"], total["gross_usd"]) == (0.0, 0.2, "4.80")


def test_days_of_one_meter_may_cancel(log, tmp_path):
    """A tenth of the first day's output is billed on the second: the bill of the window is right."""
    rows = ["2026-06-01,large,input,2", "2026-06-02,large,input,2", "2026-06-01,large,output,9"]
    found = held(log, tmp_path, *rows, "2026-06-02,large,output,11")
    assert (found.drift_pusd, found.gross_pusd, found.verdict) == (0, 0, "reconciled")


def test_rounding_of_many_small_series_may_cancel(tmp_path):
    """Eight models at $0.404 and $0.396 a day, billed in cents: off by 0.004 each, by turns, and by nothing at all."""
    price = 'provider = "openai"\n' + "".join(
        f'[[price]]\nmodel = "{name}"\ninput = 1\noutput = 1\nsource = "test"\nchecked = 2026-01-01\n'
        for name in MODELS
    )
    calls = [
        row(ts=datetime(2026, 6, 1, 12), model=name, input_tokens=0, output_tokens=(404_000, 396_000)[n % 2])
        for n, name in enumerate(MODELS)
    ]
    found = held(ledger(calls, price), tmp_path, *(f"2026-06-01,{name},output,0.40" for name in MODELS))
    assert by_cause(found) == {"rounding": 0, "unexplained": 0}
    assert (found.gross_pusd, found.verdict) == (0, "reconciled")


@pytest.mark.parametrize(
    ("usd", "tokens", "rates"),
    [
        ("9", 1_000_000, -1),  # a discount
        ("100", 1_000_000, 90),  # ten times the log's
        ("101", 1_000_000, 0),
        ("-9", 1_000_000, 0),
        ("1234", 15, 0),
        ("45", 900_000, 40),  # 0.9 million at 50 is 45: at our 10 it were 9, and 1 is missing; 40 on the million
        ("-1", 900_000, 0),
    ],
)
def test_a_rate_is_above_nothing_and_at_most_ten_times_the_logs(log, tmp_path, usd, tokens, rates):
    rows = [f"2026-06-0{day},large,input,2,1000000,tokens" for day in (1, 2)]
    rows += [f"2026-06-01,large,output,{usd},{tokens},tokens", "2026-06-02,large,output,10,1000000,tokens"]
    found = held(log, tmp_path, *rows, head="date,model,meter,amount,quantity,unit")
    said = by_cause(found)
    assert said.get("rates", 0) == rates * 10**12
    assert sum(said.values()) == (int(usd) - 10) * 10**12
    for cause in found.causes:
        assert "the log's price is $10.0000" in cause.evidence[0]
        assert "$-" not in cause.evidence[0]


def test_a_multiple_of_amounts_alone_is_no_rate_above_ten(tmp_path):
    calls = [
        row(ts=datetime(2026, 6, n, 12), model="large", input_tokens=0, output_tokens=1_000_000) for n in range(1, 7)
    ]
    log = ledger(calls, prices("openai"))
    for usd, cause in ((50, "rates"), (500, "unexplained")):
        found = held(log, tmp_path, *(f"2026-06-0{n},large,output,{usd}.000001" for n in range(1, 7)))
        assert by_cause(found)[cause] == 6 * ((usd - 10) * 10**12 + 10**6)


def test_a_total_is_counted_and_named_and_not_billed(log, tmp_path):
    rows = [f"2026-06-0{day},large,{meter},{usd}" for day in (1, 2) for meter, usd in (("input", 2), ("output", 10))]
    found = held(log, tmp_path, *rows, "2026-06-30,Total,,24.00")
    (left,) = found.dropped
    assert (found.verdict, found.invoiced_pusd) == ("reconciled", 24 * 10**12)
    assert (left.reason, left.rows, left.pusd) == ("total of other rows", 1, 24 * 10**12)
    assert left.examples == (f"{tmp_path}/bill.csv:6 Total",)


def test_euros_are_not_counted_as_dollars(log, tmp_path):
    found = held(log, tmp_path, "2026-06-01,large,output,10", head="date,model,meter,Amount (€)")
    assert found.verdict == "not_evaluable"
    assert [one.reason for one in found.dropped] == ["in EUR, not in dollars"]


def test_a_window_keeps_the_total_named(tmp_path):
    since, until = datetime(2026, 6, 1, tzinfo=UTC), datetime(2026, 6, 3, tzinfo=UTC)
    day = ledger([row(ts=datetime(2026, 6, 1, 12), model="large", input_tokens=0, output_tokens=10**6)],
                 prices("openai"), since=since, until=until)  # fmt: skip
    found = held(day, tmp_path, "2026-06-01,large,output,10", "Total,,,10")
    assert (found.verdict, [one.reason for one in found.dropped]) == ("reconciled", ["total of other rows"])
