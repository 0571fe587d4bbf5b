"""Reconciliation: what has a place and what has not, causes that hang on one side only, names and periods."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from planted_invoices import by_cause, prices, write_csv
from small_logs import ledger, row

import tenfold as tf
from tenfold.analysis.reconcile.names import Names, told_in
from tenfold.analysis.reconcile.periods import periods_of
from tenfold.analysis.reconcile.splitting import quantum
from tenfold.errors import LogFormatError
from tenfold.logs import load
from tenfold.prices import price_book

SAMPLES = Path(__file__).parents[1] / "samples"
DATA = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[3] / "shared" / "data"))


def simple(rows, **options):
    return ledger(rows, prices("openai"), **options)


def call(day, model="large", output=1_000_000, **more):
    return row(ts=datetime(2026, 6, day, 12), model=model, input_tokens=0, output_tokens=output, **more)


def bill(tmp_path, *rows, name="bill.csv"):
    made = [
        {"date": day, "model": model, "meter": meter, "amount": amount, **more}
        for day, model, meter, amount, more in rows
    ]
    keys = {key: "" for one in made for key in one}
    return write_csv(tmp_path / name, [keys | one for one in made])


def test_days_models_and_meters_of_one_side_only(tmp_path):
    log = simple([call(1), call(2), call(3), call(3, model="small")])
    file = bill(
        tmp_path,
        ("2026-06-01", "Large", "output", "10", {}),
        ("2026-06-03", "Large", "output", "10", {}),
        ("2026-06-03", "Large", "web search", "0.5", {}),
        ("2026-06-03", "Huge", "output", "7", {}),
        ("2026-06-04", "Large", "output", "3", {}),
    )
    found = tf.reconcile(log, file)
    assert by_cause(found) == {
        "not_in_log": 10_500_000_000_000,  # 7 + 0.5 + 3
        "not_in_report": -10_400_000_000_000,  # day 2, and `small`
        "unexplained": 0,
    }
    evidence = {cause.name: " ".join(cause.evidence) for cause in found.causes}
    assert "no request in 2026-06-04" in evidence["not_in_log"]
    assert "no request of huge" in evidence["not_in_log"]
    assert "nothing of large web_search" in evidence["not_in_log"]
    assert "no row for 2026-06-02" in evidence["not_in_report"]
    assert "no row of small" in evidence["not_in_report"]
    assert any("Huge" in note for note in found.notes)


@pytest.mark.full
def test_a_model_without_a_price_is_unpriced_not_free(tmp_path):
    log = simple([call(1), call(1, model="mystery", output=500)])
    file = bill(
        tmp_path,
        ("2026-06-01", "large", "output", "10", {"quantity": "1000000", "unit": "tokens"}),
        ("2026-06-01", "mystery", "output", "4.5", {"quantity": "500", "unit": "tokens"}),
    )
    assert by_cause(tf.reconcile(log, file)) == {"unpriced": 4_500_000_000_000, "unexplained": 0}


@pytest.mark.full
def test_a_model_under_another_name_is_known_by_its_quantities(tmp_path):
    """A deployment of the log is a model of the report: equal tokens on four days of five, one lost."""
    log = simple([call(day, model="our-deployment", output=1000 * day) for day in range(1, 6)])
    amounts = [
        (f"2026-06-0{day}", "ft:x", "output", str(day), {"quantity": str(1000 * day), "unit": "tokens"})
        for day in range(1, 5)
    ]
    last = ("2026-06-05", "ft:x", "output", "6", {"quantity": "6000", "unit": "tokens"})
    found = tf.reconcile(log, bill(tmp_path, *amounts, last))
    assert any("ft:x in the report is our-deployment of the log, as 4 of 5" in note for note in found.notes)
    assert by_cause(found) == {"unpriced": 15_000_000_000_000, "unexplained": 1_000_000_000_000}


@pytest.mark.full
def test_a_row_in_two_files_is_a_duplicate(tmp_path):
    log = simple([call(1), call(2)])
    first = bill(tmp_path, ("2026-06-01", "large", "output", "10", {}), name="a.csv")
    again = [("2026-06-01", "large", "output", "10", {}), ("2026-06-02", "large", "output", "10", {})]
    found = tf.reconcile(log, [first, bill(tmp_path, *again, name="b.csv")])
    assert by_cause(found) == {"duplicates": 10_000_000_000_000, "unexplained": 0}
    assert "b.csv:2" in found.causes[0].evidence[0]


@pytest.mark.full
def test_projects_that_the_log_does_not_have(tmp_path):
    file = bill(
        tmp_path,
        ("2026-06-01", "large", "output", "10", {"project": "web"}),
        ("2026-06-01", "large", "output", "2", {"project": "lab"}),
    )
    found = tf.reconcile(simple([call(1, project="web")]), file)
    assert by_cause(found) == {"not_in_log": 2_000_000_000_000, "unexplained": 0}
    assert "project lab" in found.causes[0].evidence[0]
    # A log without projects: the amounts tell, if without one project's rows they agree.
    found = tf.reconcile(simple([call(1)]), file)
    assert by_cause(found) == {"not_in_log": 2_000_000_000_000, "unexplained": 0}


def test_what_has_no_place_is_named_and_not_counted(tmp_path):
    file = bill(
        tmp_path,
        ("2026-06-01", "large", "output", "10", {}),
        ("2026-06-01", "large", "output", "8", {"currency": "EUR"}),
        ("2026-06-01", "", "Sales tax", "1.9", {}),
        ("2026-06-01", "", "Promotional credit", "-5", {}),
        ("2026-07-15", "large", "output", "3", {}),
    )
    log = simple([call(1)], since=datetime(2026, 6, 1, tzinfo=UTC), until=datetime(2026, 7, 1, tzinfo=UTC))
    found = tf.reconcile(log, file)
    assert found.verdict == "reconciled"
    assert {(one.reason, one.rows, one.pusd) for one in found.dropped} == {
        ("in EUR, not in dollars", 1, 0),
        ("tax", 1, 1_900_000_000_000),
        ("credit", 1, -5_000_000_000_000),
        ("outside the window asked for", 1, 3_000_000_000_000),
    }
    assert next(one.amounts for one in found.dropped if one.amounts) == {"EUR": Decimal(8)}


@pytest.mark.full
def test_a_monthly_invoice_is_held_against_the_month(tmp_path):
    file = tmp_path / "invoice.csv"
    file.write_text('Month,Description,Amount\nJune 2026,Large - output tokens,"$1,020.00"\nTotal,,"$1,020.00"\n')
    found = tf.reconcile(simple([call(day, output=50_000_000) for day in (1, 30)] + [call(1, output=2_000_000)]), file)
    (cell,) = found.cells
    assert (cell.period, cell.meter, cell.drift_pusd, found.verdict) == ("2026-06", "output", 0, "reconciled")


@pytest.mark.full
def test_a_day_that_the_report_itself_cuts_elsewhere(tmp_path):
    night = call(2, output=100_000) | {"ts": datetime(2026, 6, 2, 3)}
    calls = [{**one, "provider": "anthropic"} for one in (call(1), night, call(2), call(3))]
    log = ledger(calls, prices("anthropic"))
    rows = [(1, 0, 10), (2, 7, 10), (3, 0, 10)]
    data = [
        {
            "starting_at": f"2026-06-0{day}T{hour:02}:00:00Z",
            "ending_at": f"2026-06-0{day + 1}T{hour:02}:00:00Z",
            "results": [{"currency": "USD", "amount": str(usd * 100), "cost_type": "tokens", "model": "large",
                         "token_type": "output_tokens", "description": ""}],
        }
        for day, hour, usd in rows
    ]  # fmt: skip
    file = tmp_path / "report.json"
    file.write_text(json.dumps({"data": data}))
    found = tf.reconcile(log, file)
    assert by_cause(found) == {"day_boundaries": -1_000_000_000_000, "unexplained": 0}
    assert "2026-06-02 runs from 2026-06-02 07:00" in found.causes[0].evidence[0]


@pytest.mark.full
def test_tokens_alone_are_worth_the_logs_own_rates(tmp_path):
    result = {
        "object": "organization.usage.completions.result",
        "model": "large",
        "input_tokens": 0,
        "output_tokens": 1_500_000,
    }
    at = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())
    file = tmp_path / "usage.json"
    file.write_text(
        json.dumps({"object": "page", "data": [{"start_time": at, "end_time": at + 86_400, "results": [result]}]})
    )
    found = tf.reconcile(simple([call(1)]), file)
    document = found.as_dict()
    cell = next(one for one in document["by_meter"] if one["meter"] == "output")
    assert (cell["invoiced_usd"], cell["drift_usd"], cell["invoiced_tokens"]) == (None, "5.00", 1_500_000)
    assert any("no amounts" in note for note in found.notes)


@pytest.mark.full
def test_loaded_reports_are_used_and_files_do_not_touch_the_database(tmp_path):
    db = tmp_path / "u.duckdb"
    file = bill(tmp_path, ("2026-06-01", "gpt-4o-mini", "output", "0.6", {"provider": "openai"}))
    rows = tmp_path / "rows.csv"
    rows.write_text(
        "request_id,ts,provider,model,input_tokens,output_tokens\na,2026-06-01T12:00:00Z,openai,gpt-4o-mini,0,1000000\n"
    )
    log = load(rows, db=db)
    before = tf.attribute(log)
    assert tf.reconcile(before).verdict == "not_evaluable"
    assert tf.reconcile(before, file).verdict == "reconciled"
    assert log.buckets.is_empty()
    load(file, db=db)
    assert tf.reconcile(tf.attribute(log)).verdict == "reconciled"
    with pytest.raises(LogFormatError, match="holds requests .tenfold., not only reports"):
        tf.reconcile(before, rows)


@pytest.mark.full
def test_amounts_of_two_reports_are_not_added(tmp_path):
    files = [bill(tmp_path, ("2026-06-01", "large", "output", "10", {}))]
    page = {
        "object": "organization.costs.result",
        "amount": {"value": 10, "currency": "usd"},
        "line_item": "large, output_tokens",
    }
    at = int(datetime(2026, 6, 1, tzinfo=UTC).timestamp())
    other = tmp_path / "costs.json"
    other.write_text(
        json.dumps({"object": "page", "data": [{"start_time": at, "end_time": at + 86_400, "results": [page]}]})
    )
    found = tf.reconcile(simple([call(1)]), [*files, other])
    assert (found.verdict, found.sources[0].name) == ("reconciled", "openai_org_costs")
    assert "amounts of two reports are not added" in found.dropped[0].reason


@pytest.mark.full
def test_the_samples_have_a_place():
    log = simple([call(1)])
    files = [SAMPLES / name for name in ("openai_org_costs.json", "anthropic_cost_report.json", "focus_1_2_llm.csv")]
    found = tf.reconcile(log, files)
    billed = {cell.provider: cell.invoiced_pusd for cell in found.cells if cell.provider != "example ai"}
    assert billed == {"openai": 60_000_000_000, "anthropic": 1_237_891_200_000}
    assert sum(cell.invoiced_pusd for cell in found.cells if cell.provider == "example ai") == 33_900_000_000_000
    assert [(one.reason, one.pusd) for one in found.dropped] == [("no model", 1_200_000_000_000)]
    assert {cause.name for cause in found.causes} == {"not_in_log"}


@pytest.mark.full
@pytest.mark.real_data
@pytest.mark.skipif(not (DATA / "focus_spec").is_dir(), reason="the public FOCUS files are not here")
def test_the_public_focus_files_have_a_place():
    files = sorted((DATA / "focus_spec").glob("*.csv"))
    found = tf.reconcile(simple([call(1)]), files)
    assert found.rows > 10
    assert found.unexplained_pusd == 0


@pytest.mark.full
def test_a_quarter_of_another_zone_is_compared_by_the_providers_days(tmp_path):
    place = ZoneInfo("Europe/Berlin")
    bounds = {"since": datetime(2026, 6, 1, tzinfo=place), "until": datetime(2026, 6, 3, tzinfo=place)}
    log = simple([call(1), call(2) | {"ts": datetime(2026, 6, 2, 23)}], **bounds, zone="Europe/Berlin")
    file = bill(tmp_path, *((f"2026-06-0{day}", "large", "output", "10", {}) for day in (1, 2)))
    found = tf.reconcile(log, file)
    assert (found.verdict, len(found.cells), found.covered_ratio) == ("reconciled", 2, 1)
    assert any("by days of UTC" in note for note in found.notes)


def test_periods_of_days_months_and_odd_days():
    def at(day, hour=0):
        return datetime(2026, 6, day, hour)

    days, are_days = periods_of([(at(1), at(2)), (at(3), at(4))])
    assert [(one.name, one.is_reported) for one in days] == [
        ("2026-06-01", True),
        ("2026-06-02", False),
        ("2026-06-03", True),
    ]
    assert are_days
    # Days that all begin at 07:00 are the report's own; a single one is odd.
    whole, _ = periods_of([(at(1, 7), at(2, 7)), (at(2, 7), at(3, 7))])
    assert [one.start.hour for one in whole] == [7, 7]
    assert not any(one.is_odd for one in whole)
    odd, _ = periods_of([(at(1), at(2)), (at(2, 7), at(3, 7)), (at(3), at(4))])
    assert [one.is_odd for one in odd] == [False, True, False]
    months, are_days = periods_of([(at(1), datetime(2026, 7, 1)), (datetime(2026, 7, 1), datetime(2026, 8, 1))])
    assert ([one.name for one in months], are_days) == (["2026-06", "2026-07"], False)
    assert periods_of([]) == ((), True)


def test_names_of_models_and_meters():
    names = Names(
        price_book(),
        {"anthropic": {"claude-opus-5-5": "claude-opus-5-5"}, "openai": {"gpt-4o-mini-2024-07-18": "gpt-4o-mini"}},
    )
    for said in ("Claude Opus 5.5", "claude-opus-5-5", "Claude Opus 5.5 Usage", "claude_opus_5_5"):
        assert names.model("anthropic", said) == ("claude-opus-5-5", True)
    for said in ("GPT-4o mini", "gpt-4o-mini-2024-07-18", "openai/gpt-4o-mini"):
        assert names.model("openai", said) == ("gpt-4o-mini", True)
    assert names.model("openai", "gpt-4o") == ("gpt-4o", False)
    assert names.model("openai", "OpenAI API usage") == (None, False)
    assert names.provider("OpenAI, LLC", None) == "openai"
    assert names.provider(None, "Claude Opus 5.5") == "anthropic"
    assert told_in("cache_read", {"uncached_input", "output"}) == "uncached_input"
    assert told_in("cache_write_long", {"cache_write"}) == "cache_write"
    assert told_in("output", {None}) is None


def test_the_last_digit_of_a_report():
    assert quantum([1_230_000, 40_000], 10**10) == 10_000
    assert quantum([7, 10], 10**10) == 1
    assert quantum([0], 1000) == 1000
