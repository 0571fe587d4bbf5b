"""Unit costs: worked examples by hand, a slow second reading over random logs, and what is unknown stays unknown."""

from datetime import datetime, timedelta
from fractions import Fraction

import bills
import oracle_efficiency as slow
import pytest
from mixed_logs import mixed_rows
from oracle import load_book
from small_logs import PRICES, ledger, row

from tenfold.analysis.unit_economics import dollars_each, unit_economics

USD = 10**12
COST = Fraction("0.003")  # of a request of 1,000 in and 100 out


def each(one):
    return None if one is None or one.per_unit is None else one.per_unit / USD


def _of(team, **columns):
    return row(team=team, **columns)


# Logs of one team each; that one of them judges its outcomes makes `outcome_ok` the basis of all.
TEAMS = [
    _of("attempts", request_id="a", attempt=0, status="error"),  # failed and billed: no judgement needed
    _of("attempts", request_id="b", attempt=1, retry_of="a", status="success", outcome_ok=True),
    _of("attempts", request_id="c", status="success", outcome_ok=False),
    _of("attempts", request_id="d", status="success"),  # tried again: no outcome of its own
    _of("attempts", request_id="e", attempt=1, retry_of="d", status="success", outcome_ok=True),
    *(_of("open", outcome_ok=verdict) for verdict in (True, True, None, None)),
    _of("gateway", outcome_ok=True),
    _of("gateway", outcome_ok=True, gateway_cache_hit=True),
    _of("bad", outcome_ok=False),
    # an agent is judged at its end: the steps before were made for that
    *(_of("agent", session_id="agent", outcome_ok=verdict) for verdict in (None, None, True)),
    *(_of("trace", trace_id="trace", outcome_ok=verdict) for verdict in (None, False)),
    _of("ghosts", model="ghost", session_id="s", outcome_ok=True),
]


@pytest.fixture(scope="module")
def found():
    return unit_economics(ledger(TEAMS), "team")


@pytest.fixture
def teams(found):
    return dict(found.groups["team"])


def test_all_attempts_over_good_outcomes(found, teams):
    attempts = teams["attempts"]
    assert found.basis == "outcome_ok"
    assert (attempts.outcome.units, attempts.outcome.requests) == (2, 5)
    assert each(attempts.outcome) == 5 * COST / 2
    assert attempts.outcome_bounds == (5 * COST * USD / 2, 5 * COST * USD / 2)


def test_unknown_outcomes_are_left_out_and_named(found, teams):
    assert each(teams["open"].outcome) == COST
    assert teams["open"].outcome.requests_share == Fraction(1, 2)
    assert teams["open"].outcome_bounds == (COST * USD, 2 * COST * USD)
    # of all teams: 14 of 16 priced requests are known, 7 outcomes are good
    assert found.sentences()[0] == "$0.00600 per successful outcome, 7 successful outcomes, 87.5 % of spend"
    assert "the outcome of 12.5 % of requests is unknown and left out" in found.sentences()[1]


def test_the_steps_of_a_judged_session_or_trace_belong_to_its_outcome(teams):
    assert (teams["agent"].outcome.units, each(teams["agent"].outcome)) == (1, 3 * COST)
    assert (teams["trace"].outcome.units, teams["trace"].outcome.requests) == (0, 2)


def test_a_gateways_answer_is_an_outcome_at_no_cost(teams):
    assert (teams["gateway"].outcome.units, each(teams["gateway"].outcome)) == (2, COST / 2)
    assert (teams["gateway"].request.units, each(teams["gateway"].request)) == (1, COST)


def test_without_a_good_outcome_or_a_price_there_is_no_figure(found, teams):
    assert (teams["bad"].outcome.units, teams["bad"].outcome.per_unit) == (0, None)
    ghosts = teams["ghosts"]
    assert (ghosts.request.per_unit, ghosts.session, ghosts.outcome.per_unit) == (None, None, None)
    assert next(one for one in found.as_dict()["groups"]["team"] if one["value"] == "ghosts")["spend_usd"] is None


def test_the_stand_in_is_said():
    rows = [row(status="success"), row(status="error"), row(status=None)]
    found = unit_economics(ledger(rows))
    assert found.basis == "status"
    assert each(found.total.outcome) == 2 * COST  # both whose status is known, over the one that succeeded
    assert "stand-in" in found.sentences()[1]
    assert found.as_dict()["units"]["outcome"]["basis"] == "status"


def test_without_outcome_or_status_there_is_none():
    found = unit_economics(ledger([row()]))
    assert found.total.outcome is None
    assert found.not_measurable == {
        "outcome": "outcome_ok or status",
        "session": "session_id",
        "user": "user_id",
        "customer": "a tag such as customer",
    }


def test_by_session_user_customer_and_month():
    may, june = datetime(2026, 5, 31, 23), datetime(2026, 6, 1, 1)
    rows = [
        row(session_id="s", user_id="u", tags={"tenant": "x"}, ts=may),
        row(session_id="s", user_id="u", tags={"tenant": "y", "plan": "z"}, ts=june),
        row(session_id="t", user_id="v", ts=june),
        row(ts=june),
    ]
    found = unit_economics(ledger(rows), ("team", "model"))
    total = found.total
    assert (each(total.session), each(total.user), each(total.request)) == (3 * COST / 2, 3 * COST / 2, COST)
    assert (total.session.spend_share, total.session.requests_share) == (Fraction(3, 4), Fraction(3, 4))
    assert (found.customer_tag, total.customer.units, each(total.customer)) == ("tenant", 2, COST)
    assert total.customer.spend_share == Fraction(1, 2)
    # a session of both months is one in each
    assert [(month.month, one.session.units) for month, one in found.months] == [(5, 1), (6, 2)]
    assert [(name, one.request.units) for name, one in found.groups["model"]] == [("stacks", 4)]
    assert found.groups["team"][0][0] is None


def test_what_a_million_tokens_cost(tmp_path):
    """Of `bills`: 0.4 + 0.5 + 0.01 million uncached at 1, 0.4 read at 0.1, 0.2 written at 1.25, 0.35 out at 4."""
    total = unit_economics(bills.ledger_of(bills.FIVE, tmp_path)).total
    found = {one.kind: (one.tokens, one.per_million / USD) for one in total.tokens}
    assert found == {
        "blended": (1_860_000, Fraction("2.6") / Fraction("1.86")),
        "uncached": (910_000, 1),
        "read": (400_000, Fraction("0.1")),
        "write": (200_000, Fraction("1.25")),
        "output": (350_000, 4),
    }
    assert total.input_output_ratio == Fraction(1_510_000, 350_000)
    assert (total.sums["requests"], total.request.units) == (4, 3)  # one has no price


def test_the_change_needs_one_basis():
    good, bad, done = {"outcome_ok": True}, {"outcome_ok": False}, {"status": "success"}
    now, then, otherwise = (
        unit_economics(ledger([row(**one) for one in rows])) for rows in ([good, bad], [good], [done])
    )
    assert (now.change(then, "outcome"), now.change(then, "request")) == (1, 0)
    assert now.change(None, "request") is None
    assert now.change(otherwise, "outcome") is None


@pytest.mark.parametrize(
    ("pusd", "text"),
    [
        (Fraction(12_400_000_000_000), "$12.40"),
        (Fraction(3_160_000_000), "$0.00316"),
        (Fraction(1, 3), "<$0.000000001"),
    ],
)
def test_small_amounts_keep_three_figures(pusd, text):
    assert dollars_each(pusd) == text


@pytest.fixture(scope="module")
def plain_book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "prices.toml").write_text(PRICES)
    return load_book(folder)


@pytest.mark.parametrize("seed", [5, pytest.param(6, marks=pytest.mark.full)])
def test_the_slow_reading_says_the_same(plain_book, seed):
    rows = mixed_rows(seed)
    found = unit_economics(ledger(rows), "team")
    pusd, good, still_open = slow.outcomes(plain_book, rows)
    assert (found.total.outcome.pusd, found.total.outcome.units) == (pusd, good)
    assert found.total.sums["judged_open"] == still_open
    for unit, column in (("session", "session_id"), ("user", "user_id")):
        one = found.total.unit(unit)
        assert (one.pusd, one.units) == slow.per_distinct(plain_book, rows, column)
    for parts in (found.months, found.groups["team"]):
        for name in ("cost_pusd", "requests", "judged_units", "output_pusd", "session_requests"):
            assert sum(part.sums[name] for _, part in parts) == found.total.sums[name]


@pytest.mark.full
def test_the_order_of_rows_is_nothing():
    rows = mixed_rows(7)
    assert unit_economics(ledger(rows[::-1]), "team").as_dict() == unit_economics(ledger(rows), "team").as_dict()


def test_months_are_those_of_the_zone():
    late = row(ts=datetime(2026, 6, 30, 23, 30), session_id="s")
    rows = [late, row(ts=late["ts"] + timedelta(hours=2), session_id="s")]
    assert len(unit_economics(ledger(rows, zone="Europe/Berlin")).months) == 1
