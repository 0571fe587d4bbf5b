"""A student in place of today's model: its rates, its caches, charges that run whatever it answers, break-even."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import PRICES, facts, ledger, look, row, saved

import tenfold as tf
from tenfold.errors import AssumptionError, PriceFileError
from tenfold.ledger.session import DAYS_PER_MONTH
from tenfold.levers import LEVERS, route
from tenfold.levers.assume import assumptions
from tenfold.levers.distill import LEVER
from tenfold.levers.distill_charges import Charges
from tenfold.levers.repricing import own_bill
from tenfold.planning.portfolio import Portfolio
from tenfold.prices.compiling import with_price
from tenfold.slo import Slo

NOON = datetime(2026, 6, 1, 12)
UUSD = 10**6  # one millionth of a USD, in pUSD
STUDENT = {"input": "0.5", "output": "1"}
COUNTS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *("output_tokens", "reasoning_tokens"),
)


def found_in(rows, slo=None, **table):
    return look(LEVER, ledger(rows), {"distill": {"where": "true", "student": STUDENT, **table}}, slo)


def distilled(rows, scenario="mid", where="true", **table):
    """The counts after, in order of the rows."""
    assumed = assumptions({"distill": {"where": where, "student": STUDENT, **table}}, LEVERS).levers
    with ledger(rows).session() as session:
        bill = own_bill(session, (LEVER,), assumed, Slo())
        folio = Portfolio(bill, (LEVER,), assumed, {"distill": LEVER.judge(bill, assumed["distill"])})
        folio.value(frozenset({"distill"}), scenario)
        suffix = "" if scenario == "mid" else f"_{scenario}"
        sql = f"select {', '.join(COUNTS)} from lever_alone_distill{suffix} order by rid"
        return session.engine.fetch(sql).rows()


def planned(rows, **table):
    table = {"where": "true", "student": STUDENT, "effort_days": 0, **table}
    [one] = tf.plan(ledger(rows), assume={"distill": table}, levers=(LEVER,)).estimates
    return one


def days(count, **columns):
    return [row(ts=NOON + timedelta(days=n), **columns) for n in range(count)]


def test_the_students_rates_and_charges():
    # ten days: 1,000 x 2 + 100 x 10 = 3,000 now, 1,000 x 0.5 + 100 x 1 = 600 then. Nine days of hosting are 216 h; a
    # third of training and labels falls into the window (10 of 30 days): 7 + 5 labels at 3,000.
    rows = days(10, response_hash="yes")
    table = {"training_usd": 0.007, "labels": 5, "hosting_usd_per_hour": 0.00001, "retrain_days": 30}
    one = planned(rows, **table)
    exact = Fraction(10 * 2_400 * UUSD) - 216 * 10 * UUSD - Fraction((7_000 + 5 * 3_000) * UUSD * 10, 30)
    assert one.saving.mid == one.alone_pusd == round(exact) == 14_506_666_667
    assert (one.label, one.status, one.addressed_pusd) == ("modelled", "ok", 30_000 * UUSD)
    told = facts(one)
    assert [told[f"{name}_usd"] for name in ("gross_saving", "hosting", "training", "labels", "net_saving")] == [
        *("0.024", "0.00216", "0.002333333333", "0.005", "0.014506666667")
    ]
    # 22,000 uUSD x 30.4 / 30 days over (2,400 - 216) a request; 22,000 over 2,184 x 30.4 a month
    assert (told["break_even_requests_per_month"], told["payback_months"]) == ("10.2", "0.3")
    drift = [told[f"net_if_retrained_every_{months}_months_usd"] for months in (1, 3, 6)]
    assert drift == ["0.014603157895", "0.019427719298", "0.020633859649"]
    assert told["requests_per_month of tagging"] == "30"
    unit = next(fact["unit"] for fact in one.evidence if fact["name"] == "requests_per_month of tagging")
    assert "1 different answers in 10" in unit
    assert "Collect answers of today's model to `tagging`" in one.advice.first_action


@pytest.mark.full
def test_a_student_that_costs_more_than_it_saves_says_so():
    one = planned(days(10), training_usd=100)
    assert one.saving.mid == 24_000 * UUSD - round(Fraction(100 * 10**12 * 10, 90))
    assert one.status == "ok"
    assert "Do not train a student" in one.advice.first_action


@pytest.mark.full
def test_what_the_student_has_no_rate_for():
    # no cached rates: all input is uncached; media, searches and unpriced requests stay where they are
    cached = {"cache_read_tokens": 300, "cache_write_tokens": 300, "cache_write_long_tokens": 100}
    rows = [row(**cached), row(web_searches=1), row(model="unheard-of"), row(gateway_cache_hit=True)]
    assert distilled(rows)[0] == (1_000, 0, 0, 0, 100, None)
    found = found_in(rows)
    assert saved(found) == (400 * 2 + 60 + 500 + 400 + 1_000 - 600) * UUSD
    told = facts(found)
    assert (told["requests_in_where"], told["requests_moved"], told["unpriced"]) == (3, 1, 2)


@pytest.mark.full
def test_cached_rates_that_the_student_has():
    cached = {"cache_read_tokens": 300, "cache_write_tokens": 300, "cache_write_long_tokens": 100}

    def made(**rates):
        return distilled([row(**cached)], cache="keep", student={**STUDENT, **rates})[0][:4]

    assert made(cache_read="0.05") == (1_000, 300, 0, 0)
    assert made(cache_write=1) == (1_000, 0, 300, 0)  # long writes become default ones
    assert made(cache_write=1, cache_write_long=2) == (1_000, 0, 300, 100)
    assert made(cache_write_long=2) == (1_000, 0, 100, 100)
    read = {"student": {"input": Decimal("0.5"), "output": 1.0, "cache_read": "0.1x"}}
    assert distilled([row(**cached)], cache="lose", **read)[0][:4] == (1_000, 0, 0, 0)
    # 700 x 0.5 + 300 x 0.05 + 100
    assert saved(found_in([row(cache_read_tokens=300)], **read)) == (1_400 + 60 + 1_000 - 350 - 15 - 100) * UUSD


def test_tokens_take_their_ratios_rounded_half_to_even():
    # of 5, 7, 1, 3 in each class: half as many again is 7.5, 10.5, 1.5, 4.5: 8, 10, 2, 4; half is 2, 4, 0, 2
    parts = {5: (8, 2), 7: (10, 4), 1: (2, 0), 3: (4, 2)}
    rows = [
        row(input_tokens=2 * n, cache_read_tokens=n, cache_write_tokens=None, output_tokens=n, reasoning_tokens=n)
        for n in parts
    ]
    table = {"token_ratio": 1.5, "output_ratio": 0.5, "cache": "keep", "student": {**STUDENT, "cache_read": "0.1"}}
    expected = [(2 * more, more, None, None, less, less) for more, less in parts.values()]
    assert distilled(rows, **table) == expected


@pytest.mark.full
def test_a_range_is_told_by_its_ends():
    one = planned(days(12), token_ratio=[0.8, 1, 1.3], output_ratio=[1, 1, 1.3])
    # 3,000 - 650 - 130; 3,000 - 600; 3,000 - 400 - 100
    assert one.saving == tuple(12 * saved * UUSD for saved in (2_220, 2_400, 2_500))


SESSION = {"cache_read_tokens": 500, "session_id": "s"}


def test_a_cache_follows_its_session():
    def at(minutes, feature, **more):
        return row(ts=NOON + timedelta(minutes=minutes), feature=feature, **{**SESSION, **more})

    rows = [
        at(0, "in"),  # first turn: what it read is there
        at(1, "in"),  # after a turn at the student
        at(2, "out"),  # stays, after a turn at the student: forfeited, although no where names it
        at(3, "in"),  # after a turn at today's model
        at(3 + 24 * 60, "out"),  # a day later to the minute
        at(4 + 48 * 60, "out"),  # more than a day
        at(5, "in", session_id=None),  # no session: kept
        at(6, "out", session_id=None),
    ]
    table = {"where": "feature = 'in'", "student": {**STUDENT, "cache_read": "0.05"}}
    assert [made[1] for made in distilled(rows, **table)] == [500, 500, 0, 0, 0, 500]


@pytest.mark.full
def test_who_belongs_to_no_session_may_have_lost_its_cache():
    rows = [row(cache_read_tokens=500), row(feature="out", **SESSION, ts=NOON + timedelta(minutes=1)), row(**SESSION)]
    table = {"where": "feature = 'tagging'", "student": {**STUDENT, "cache_read": "0.05"}}
    assert [[made[1] for made in distilled(rows, end, **table)] for end in ("low", "mid", "high")] == [
        [0, 0, 500],
        [500, 0, 500],
        [500, 0, 500],
    ]
    assert facts(look(LEVER, ledger(rows), {"distill": table}))["forfeited"] == 1


@pytest.mark.full
@pytest.mark.parametrize(("cache", "reads"), [("keep", 500), ("lose", 0)])
def test_a_cache_that_is_kept_or_lost(cache, reads):
    table = {"cache": cache, "student": {**STUDENT, "cache_read": "0.05"}}
    assert [made[1] for made in distilled([row(**SESSION), row(cache_read_tokens=500)], **table)] == [reads] * 2


def scored(path, rows):
    lines = [f"{request},{feature},student,{score}" for request, feature, score in rows]
    path.write_text("\n".join(["request_id,feature,model,score", *lines]) + "\n", encoding="utf-8")
    return str(path)


def test_scores_decide_who_may_move(tmp_path):
    rows = [row(request_id=f"r{n}", feature="a" if n < 3 else "b") for n in range(5)]
    file = scored(tmp_path / "s.csv", [("r0", "", 0.9), ("r1", "", 0.4), ("", "a", 0.6), ("r3", "", 0.7)])
    slo = Slo(feature={"b": {"min_quality": 0.8}})
    found = found_in(rows, slo, evals=file, min_quality=0.6)
    # r0, and r2 by its feature; r1 is too low, r3 too low for b, r4 has no score
    told = facts(found)
    assert (told["requests_moved"], told["below_quality"], told["no_score"]) == (2, 2, 1)
    assert (found.label, found.status, saved(found)) == ("measured", "ok", 2 * 2_400 * UUSD)


@pytest.mark.full
def test_a_student_that_is_not_good_enough(tmp_path):
    file = scored(tmp_path / "s.csv", [("r0", "", 0.9)])
    assert found_in([row(request_id="r0")], evals=file, min_quality=0.95).status == "vetoed"
    assert found_in([row(request_id="r0")], Slo(min_quality=0.95), evals=file).status == "vetoed"


def test_nothing_is_assumed_by_default():
    made = ledger([row()])
    for table, said in (({"student": STUDENT}, "`where` of [distill]"), ({"where": "true"}, "student = {")):
        found = look(LEVER, made, {"distill": table})
        assert (found.status, found.applies, found.addressed_pusd) == ("no_assumption", False, None)
        assert said in found.reason
    nothing = look(LEVER, made, {"distill": {"where": "feature = 'taging'", "student": STUDENT}})
    assert nothing.status == "nothing_eligible"
    assert 'Did you mean "tagging"' in nothing.reason


@pytest.mark.parametrize(
    ("student", "said"),
    [
        ({"input": 1}, r"\[distill\]: student needs input and output"),
        ({"input": 1, "output": 2, "cache_raed": 1}, r'student has no key "cache_raed". Did you mean "cache_read"'),
        ({"input": 1, "output": -1}, "student output: a price must be a finite number of at least 0"),
        ({"input": "0.0000001", "output": 1}, "student input: .* finer than 1e-12 USD"),
        ({"input": "cheap", "output": 1}, "student input: "),
        ({"input": True, "output": 1}, "student input: "),
        (0.5, "student must be a table of rates"),
    ],
)
def test_rates_are_read_as_a_price_file_is(student, said):
    with pytest.raises(AssumptionError, match=said):
        assumptions({"distill": {"student": student}}, LEVERS)


def test_days_until_training_are_at_least_one():
    with pytest.raises(AssumptionError, match="retrain_days must be at least 1 day"):
        assumptions({"distill": {"retrain_days": 0}}, LEVERS)


def test_the_book_gets_the_student_for_the_plan_alone():
    made = ledger([row()])
    raw = {"provider": "distill", "price": [{"model": "student", "source": "t", "checked": NOON.date(), **STUDENT}]}
    more = with_price(made.book, "[distill] student", raw)
    assert more.version == made.book.version
    assert not more.is_own
    found = more.match("distill", "student").at(NOON.replace(tzinfo=UTC))
    assert found.bands[0].rates[0] == 500_000  # 0.5 USD a million
    tf.plan(made, assume={"distill": {"where": "true", "student": STUDENT}}, levers=(LEVER,))
    assert not made.book.match("distill", "student").lists
    with pytest.raises(PriceFileError, match=r'\[distill\] student: the price book has prices of provider "distill"'):
        with_price(more, "[distill] student", raw)
    own = with_price(tf.price_book(), "[distill] student", raw)
    assert own.match("openai", "gpt-5").lists


@pytest.mark.full
def test_a_duel_by_feature(tmp_path):
    file = tmp_path / "s.csv"
    file.write_text("feature,model,score\nin,half,1\nout,half,1\n", encoding="utf-8")
    prices = PRICES + '[[price]]\nmodel = "half"\ninput = 1\noutput = 5\nsource = "test"\nchecked = 2026-01-01\n'
    rows = [row(feature="in", output_tokens=0), row(feature="out", input_tokens=0, output_tokens=1_000)]
    assume = {
        "route": {"where": "true", "to_model": "half", "min_quality": 0, "evals": str(file), "output_ratio": 1},
        "distill": {"where": "true", "student": {"input": "0.5", "output": "9"}},
    }
    plan = tf.plan(ledger(rows, prices), assume=assume, levers=(route.LEVER, LEVER))
    found = {one.name: one for one in plan.estimates}
    assert (found["route"].alone_pusd, found["distill"].alone_pusd) == (6_000 * UUSD, 2_500 * UUSD)
    # `in` to the student (1,500 against 1,000), `out` to the other model (5,000 against 1,000)
    assert plan.joint_all_pusd == 6_500 * UUSD
    assert (found["route"].last_pusd, found["distill"].last_pusd) == (5_000 * UUSD, 1_500 * UUSD)


AMOUNTS = st.integers(0, 10**15)


@settings(max_examples=50, deadline=None)
@given(AMOUNTS, AMOUNTS, AMOUNTS, st.integers(1, 10**16), st.integers(1, 10**6), st.integers(1, 400), AMOUNTS)
def test_break_even_and_payback(hosting, training, labels, gross, requests, days, more):
    own = Charges(Fraction(24), days, Fraction(hosting, 24), Fraction(training), Fraction(labels), Fraction(90))
    least = own.break_even(gross, requests)
    if least is None:
        assert gross <= hosting  # no request pays its hosting: it never pays, and saves nothing
        assert own.payback_months(gross) is None
        assert gross - own.total <= 0
    else:
        # at N* requests a month, with hosting growing along, a window saves exactly what it costs
        scale = least * days / DAYS_PER_MONTH / requests
        assert (gross - own.hosting) * scale == own.in_window(own.once)
        dearer = own._replace(training=own.training + more)
        assert dearer.payback_months(gross) >= own.payback_months(gross)
        assert own.payback_months(gross + more) <= own.payback_months(gross)
    assert own.retrained_every(1) >= own.retrained_every(3) >= own.retrained_every(6)


@pytest.mark.full
@settings(max_examples=10, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9_999), st.integers(0, 5_000)), min_size=1, max_size=5), st.integers(0, 20))
def test_a_gross_saving_scales_with_the_log_and_charges_do_not(parts, training):
    rows = [row(input_tokens=tokens, output_tokens=output) for tokens, output in parts]
    expected = sum(1_500_000 * tokens + 9_000_000 * output for tokens, output in parts)
    due = round(Fraction(training * 10**12, 90))
    for times in (1, 3):
        found = found_in(rows * times, training_usd=training)
        assert saved(found) == times * expected
        assert 0 <= saved(found) <= found.addressed_pusd
        net = Decimal(facts(found)["net_saving_usd"]).scaleb(12)
        assert net == times * expected - due
