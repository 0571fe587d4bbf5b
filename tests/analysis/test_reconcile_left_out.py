"""Reconciliation: rows that a reader refused, that are left out, or that say something else in a second file."""

from __future__ import annotations

import itertools
from datetime import datetime

import pytest
from planted_invoices import by_cause, prices
from small_logs import ledger, row

import tenfold as tf
from tenfold.analysis.reconcile.names import one_edit
from tenfold.errors import TenfoldError
from tenfold.logs import load

HEAD = "date,model,meter,amount\n"
JUNE_1 = "2026-06-01,large,output,10\n"


def call(day, model="large", output=1_000_000):
    return row(ts=datetime(2026, 6, day, 12), model=model, input_tokens=0, output_tokens=output)


@pytest.fixture(scope="module")
def log():
    """One call of $10 on each of three days."""
    return ledger([call(1), call(2), call(3)], prices("openai"))


def bill(folder, text, name="bill.csv"):
    file = folder / name
    file.write_bytes(text.encode())
    return file


def test_rows_that_the_reader_refused_are_listed_with_place_and_reason(log, tmp_path):
    """One day of three is billed as logged; the other two cannot be read, and 18 of those dollars are unknown."""
    text = HEAD + JUNE_1 + "2026-06-02,large,output,18.x994457\n2026-08-32,large,output,10\n"
    found = tf.reconcile(log, bill(tmp_path, text))
    assert found.invoiced_pusd == 10 * 10**12
    assert [(one.line, one.reason) for one in found.rejected] == [
        (3, "no amount: '18.x994457'; write 1234.56 or 1,234.56"),
        (4, "no date: '2026-08-32'; write 2026-07-01"),
    ]
    assert all(one.file.endswith("bill.csv") for one in found.rejected)
    document = found.as_dict()
    assert [one["line"] for one in document["rejected"]] == [3, 4]
    assert document["coverage"]["rejected_rows"] == 2
    assert f"2 rows of {tmp_path}/bill.csv were refused" in found.notes[0]
    assert "in no figure" in found.notes[0]


def test_a_file_of_refused_rows_alone_is_not_evaluable_and_says_so(log, tmp_path):
    found = tf.reconcile(log, bill(tmp_path, HEAD + "2026-06-02,large,output,18.x\n"))
    assert (found.verdict, len(found.rejected), len(found.notes)) == ("not_evaluable", 1, 1)


def test_refused_rows_of_loaded_reports_are_told_and_those_of_logs_are_not(tmp_path):
    db = tmp_path / "u.duckdb"
    calls = "request_id,ts,provider,model,input_tokens,output_tokens\n"
    rows = "".join(f"r{day},2026-06-0{day}T12:00:00Z,openai,gpt-4o-mini,0,1000000\n" for day in (1, 2))
    load(bill(tmp_path, calls + rows + "r3,never,openai,gpt-4o-mini,-5,x\n", "calls.csv"), db=db)
    load(bill(tmp_path, HEAD + "2026-06-01,gpt-4o-mini,output,0.60\n2026-06-02,gpt-4o-mini,output,?\n"), db=db)
    found = tf.reconcile(tf.attribute(tf.open_log(db)))
    assert [(one.file.rpartition("/")[2], one.line) for one in found.rejected] == [("bill.csv", 3)]
    assert f"1 row of {tmp_path}/bill.csv was refused" in found.notes[0]


def test_a_row_left_out_is_named_where_its_dollars_are_missing(log, tmp_path):
    """The bill has the model's second day in euros: its $10 are not in the report, and the words say why."""
    text = "date,model,amount,currency\n2026-06-01,large,10,USD\n2026-06-02,large,9,EUR\n2026-06-03,large,10,USD\n"
    found = tf.reconcile(log, bill(tmp_path, text))
    assert by_cause(found) == {"not_in_report": -10 * 10**12, "unexplained": 0}
    said = " ".join(found.causes[0].evidence)
    assert f"a row of large for 2026-06-02 was left out: in EUR, not in dollars ({tmp_path}/bill.csv:3)" in said
    assert "None" not in said
    assert "no row for 2026-06-02" not in said


def test_a_model_row_left_out_among_others_of_its_day(tmp_path):
    """Another model has rows on that day, so it is the model's row that is missing, by name, and no day is moved."""
    log = ledger([call(1), call(2), call(1, "small"), call(2, "small")], prices("openai"))
    text = "date,model,amount,currency\n2026-06-01,large,10,USD\n2026-06-02,large,9,EUR\n"
    text += "2026-06-01,small,0.4,USD\n2026-06-02,small,0.4,USD\n"
    found = tf.reconcile(log, bill(tmp_path, text))
    assert by_cause(found) == {"not_in_report": -10 * 10**12, "unexplained": 0}
    assert found.causes[0].evidence == (
        f"openai: a row of large for 2026-06-02 was left out: in EUR, not in dollars ({tmp_path}/bill.csv:3)",
    )


def test_a_model_one_letter_off_is_asked_about_and_no_day_is_blamed(log, tmp_path):
    text = "date,model,amount\n2026-06-01,large,10\n2026-06-02,larg3,10\n2026-06-03,large,10\n"
    found = tf.reconcile(log, bill(tmp_path, text))
    assert by_cause(found) == {"not_in_log": 10 * 10**12, "not_in_report": -10 * 10**12, "unexplained": 0}
    assert any('in the report and not in the log: larg3 (did you mean "large"?)' in note for note in found.notes)


@pytest.mark.parametrize(("written", "asked"), [("gpt-5.6-so1", True), ("gpt-5.7-sol", True), ("gpt-5.6-terra", False)])
def test_one_edit_is_asked_about_and_no_more(written, asked):
    assert (one_edit(written, ["gpt-5.6-sol", "gpt-4"]) == "gpt-5.6-sol") is asked


def test_one_edit_by_slow_search():
    """All words one edit away from a word, made one by one."""
    word, letters = "ab1", "ab1c"
    edits = {word[:n] + word[n + 1 :] for n in range(3)}
    edits |= {word[:n] + letter + word[n + more :] for n in range(4) for letter in letters for more in (0, 1)}
    words = {"".join(some) for size in range(6) for some in itertools.product(letters, repeat=size)}
    assert {other for other in words if one_edit(other, [word])} == edits - {word}


def test_the_same_row_with_another_amount_in_a_second_file_is_told(log, tmp_path):
    """Both are counted, as neither file says that it corrects the other; the reader learns of it."""
    first = bill(tmp_path, HEAD + JUNE_1 + "2026-06-02,large,output,10\n", "a.csv")
    second = bill(tmp_path, HEAD + "2026-06-02,large,output,9.5\n2026-06-03,large,output,10\n", "b.csv")
    found = tf.reconcile(log, [first, second])
    assert found.drift_pusd == 9_500_000_000_000
    assert any(f"{second}:2 has another amount than {first} for the same" in note for note in found.notes)


def test_requests_without_token_counts_are_told_in_plain_words(tmp_path):
    """Twenty calls a day of 1,000 tokens at $10 a million; one of each day lost its counts and is billed: $0.01."""
    rows = []
    for day in (1, 2, 3):
        rows += [call(day, output=1000) | {"is_stream": True} for _ in range(19)]
        rows.append(call(day) | {"output_tokens": None, "input_tokens": None, "is_stream": True})
    text = "date,model,amount\n" + "".join(f"2026-06-0{day},large,0.2\n" for day in (1, 2, 3))
    found = tf.reconcile(ledger(rows, prices("openai")), bill(tmp_path, text))
    (cause,) = found.causes
    assert (cause.name, cause.pusd) == ("usage_missing", 3 * 10**10)
    (said,) = cause.evidence
    assert said == (
        "openai: 3 requests have no token counts in the log (an interrupted stream, say); the report bills $0.03 more "
        "than the log on their days, about what so many requests of these models cost"
    )


@pytest.mark.parametrize("text", ["date,model,amount\r2026-06-01,large,10\r", "d\0a\0t\0e\0,\0x\0\r\0\n\0"])
def test_line_ends_of_old_macs_and_utf_16_are_refused_in_words(log, tmp_path, text):
    with pytest.raises(TenfoldError, match=r"bill\.csv"):
        tf.reconcile(log, bill(tmp_path, text))
