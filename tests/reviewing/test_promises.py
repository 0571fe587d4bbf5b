"""Last quarter's plan in the review: which one is taken, what it promised and what came of it; and what levers save."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache

import pytest
from bills import utc
from quick import few
from small_logs import Shorten, ledger, row

import tenfold as tf
from tenfold.config import Settings
from tenfold.reviewing.document import Card, Lines, Prose, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.promises import how_to_record
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import levers

JUNE, JULY, AUGUST = datetime(2026, 6, 1, 12), datetime(2026, 7, 1, 12), datetime(2026, 8, 1, 12)
UUSD = 10**6
Q2, Q3 = quarter("2026Q2"), quarter("2026Q3")


def days(count, start, **columns):
    return [row(ts=start + timedelta(days=n), **columns) for n in range(count)]


# Twelve requests in June at 3,000 uUSD. In August 24, at 2,400 with 60 % of the output gone; chat is left alone.
ROWS = [
    *days(12, JUNE),
    *days(12, JUNE, feature="chat"),
    *days(12, AUGUST, output_tokens=40) * 2,
    *days(12, AUGUST, feature="chat"),
]


def new():
    return ledger(ROWS)


@cache
def document(where="feature = 'tagging'"):
    made = new().within(Q2.window)
    plan = tf.plan(made, levers=(Shorten("shorten", 50),)).as_dict()
    kept = [one for one in plan["plan"]["promised"] if where != "feature = 'tagging'" or one["feature"] == "tagging"]
    return {**plan, "plan": {**plan["plan"], "promised": kept}}


def moved(first, last, zone="UTC"):
    return {**document(), "window": {"first_day": first, "last_day": last, "days": 1, "zone": zone}}


def facts_of(made, plan=None, chosen=Q3, *, is_reconciled=None):
    class Known(Facts):
        @property
        def is_reconciled(self):
            return is_reconciled

    return Known(made, plan, chosen, Settings())


def texts(found, kind=Prose):
    blocks = [block for block in found.blocks if isinstance(block, kind)]
    return [block.text for block in blocks] if kind is Prose else [item for block in blocks for item in block.items]


def grid(found, name):
    (made,) = [one.grid for one in found.blocks if isinstance(one, Table) and one.grid.name == name]
    return made


def test_promised_and_realised():
    made = new()
    tf.record(document(), made.log, "the plan", at=utc(2026, 7, 3, 9))
    facts = facts_of(made)
    kept = facts.tracked.kept
    # half the output was promised, 500 of 3,000 each; 600 were saved
    promised, realised = 24 * 500 * UUSD, 24 * 600 * UUSD
    assert (kept.promised_pusd, kept.realised_pusd, kept.kept_ratio) == (promised, realised, Fraction(6, 5))
    found = levers.section(facts)
    (said,) = texts(found)
    assert said == (
        'Plan "the plan" (2026-04-01 to 2026-06-30 (UTC), recorded 2026-07-03 09:00 UTC) promised $0.01 for the '
        "requests of this quarter; $0.01 [$0.01 to $0.01] was realised, 120 % of the promise (modelled, unreconciled)."
    )
    table = grid(found, "table-tracked")
    assert [column.name for column in table.columns] == [
        "feature", "requests", "cost", "expected", "promised", "realised", "kept", "prices",
    ]  # fmt: skip
    line = (24, 24 * 2_400 * UUSD, 24 * 3_000 * UUSD, promised, realised, Fraction(6, 5), 0)
    assert table.rows == (("tagging", *line), ("total", *line))
    said = texts(found, Lines)
    assert said[0] == "Baseline: the same feature's cost a request before the plan"
    assert said[-1].startswith(
        "`tenfold levers --db FILE --from 2026-07-01 --to 2026-10-01 --assume FILE --record 2026Q3`"
    )
    assert [note.key for note in found.made] == ["made-tracked"]


def test_the_last_one_recorded_on_the_quarter_before_is_taken_and_the_others_are_named():
    made = new()
    windows = {
        "second": ("2026-04-01", "2026-06-30"),
        "first": ("2026-06-01", "2026-06-12"),
        "half a year": ("2026-01-01", "2026-06-30"),
        "winter": ("2026-01-01", "2026-03-31"),
        "reaches in": ("2026-06-01", "2026-07-01"),
        "this one": ("2026-07-01", "2026-09-30"),
        "later": ("2026-10-01", "2026-10-02"),
        "timeless": (None, None),
    }
    at = {"first": 1, "second": 3, "half a year": 2}
    for name, window in windows.items():
        tf.record(moved(*window), made.log, name, at=utc(2026, 7, at.get(name, 9)))
    found = facts_of(made).tracked
    assert found.plan.name == "second"
    reasons = {one.split('"')[1]: one.rpartition(": ")[2] for one in found.others}
    assert reasons == {
        "first": "recorded earlier",
        "half a year": "recorded earlier",
        "winter": "of a window before 2026Q2",
        "reaches in": "its window reaches into 2026Q3",
        "this one": "its window reaches into 2026Q3",
        "later": "of a later window",
        "timeless": "made on a log without times",
    }
    said = texts(levers.section(facts_of(made)), Lines)
    assert said[-1].startswith('This quarter\'s plan is recorded as "this one"')
    assert sum(line.startswith("Other recorded plan") for line in said) == 7


@pytest.mark.full
def test_nothing_recorded_on_the_quarter_before():
    made = new()
    skipped = levers.section(facts_of(made))
    assert isinstance(skipped, Skipped)
    assert "--from 2026-07-01 --to 2026-10-01 --assume FILE --record 2026Q3" in skipped.reason
    tf.record(moved("2026-01-01", "2026-03-31"), made.log, "winter")
    assert facts_of(made).tracked is None
    plan = tf.plan(made.within(Q3.window), levers=(Shorten("shorten", 50),)).as_dict()
    found = levers.section(facts_of(made, plan))
    assert "No plan was recorded on 2026Q2, so there is no promise to hold it to." in texts(found)


@pytest.mark.full
def test_a_plan_that_promises_nothing_says_so():
    made = new()
    empty = {**document(), "plan": {**document()["plan"], "promised": [], "levers": [], "roadmap": []}}
    tf.record(empty, made.log, "empty", at=utc(2026, 7, 1))
    found = facts_of(made).tracked
    assert (found.kept, found.why_not) == (None, "this plan has no lever: it promises nothing that could be tracked")
    assert "cannot be held against this quarter: this plan has no lever" in texts(levers.section(facts_of(made)))[0]


@pytest.mark.full
def test_what_is_odd_about_the_record_is_told():
    made = new()
    tf.record(moved("2026-06-01", "2026-06-30", "Asia/Tokyo"), made.log, "\u202e<b>late", at=utc(2026, 10, 1))
    found = facts_of(made).tracked
    assert found.notes == (
        "it was recorded after this quarter had ended: no promise that was made before its outcome",
        "its days are cut in Asia/Tokyo, those of this review in UTC",
    )
    assert "\u202e" not in "".join(texts(levers.section(facts_of(made))))


@pytest.mark.full
def test_a_fiscal_quarter_and_a_zone():
    chosen = quarter("2027Q2", "Europe/Berlin", fiscal_year_start=4)  # July to September 2026
    window = "--from 2026-07-01 --to 2026-10-01 --zone Europe/Berlin"
    assert how_to_record(chosen) == f"`tenfold levers --db FILE {window} --assume FILE --record 2027Q2`"
    made = new()
    tf.record(moved("2026-04-01", "2026-06-30", "Europe/Berlin"), made.log, "x", at=datetime(2026, 7, 1, tzinfo=UTC))
    assert facts_of(made, chosen=chosen).tracked.plan.name == "x"
    assert facts_of(made, chosen=chosen.following).tracked is None


@pytest.mark.parametrize(
    ("is_reconciled", "said", "mark"),
    few(
        1,
        [
            (None, "no invoice or cost report", True),
            (False, "1.0 % or more off", True),
            (True, None, False),
        ],
    ),
)
def test_savings_are_unreconciled_until_an_invoice_agrees(is_reconciled, said, mark):
    found = levers.section(facts_of(new(), _two(), is_reconciled=is_reconciled))
    prose = " ".join(texts(found))
    assert ("unreconciled" in prose) is mark
    assert said is None or said in prose
    assert ("unreconciled" in grid(found, "table-levers").caption) is mark
    assert ("unreconciled" in grid(found, "table-levers-together").caption) is mark


@cache
def _two():
    pair = (Shorten("one", 50), Shorten("two", 50, 7))
    return tf.plan(new().within(Q3.window), levers=pair).as_dict()


def test_what_overlapping_levers_save_together():
    """Output costs 24 x 400 and 12 x 1,000 uUSD: a half of it alone, three quarters together, three eighths each."""
    found = levers.section(facts_of(new(), _two()))
    table = grid(found, "table-levers-together")
    output = (24 * 400 + 12 * 1_000) * UUSD
    each = (output // 2, output // 4, output * 3 // 8, Fraction(1, 2))
    assert table.rows == (("one", *each), ("two", *each), ("together", None, None, output * 3 // 4, Fraction(1)))
    assert "save alone is $0.02; together they save $0.02: $0.01 of it is the same money twice." in " ".join(
        texts(found)
    )
    card = next(block for block in found.blocks if isinstance(block, Card))
    assert dict(card.pairs)["Risk"] == ("low", "service levels: unknown")
