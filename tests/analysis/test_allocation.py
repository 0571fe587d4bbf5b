"""Allocation: hand-worked months, a slow second implementation, and totals that stay as they were to the pUSD."""

import random
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache

import pytest
from small_logs import ledger, row

import tenfold as tf
from tenfold.analysis.allocation import allocate
from tenfold.errors import AssumptionError
from tenfold.owners import Sharing

JUNE, JULY = datetime(2026, 6, 1, 12), datetime(2026, 7, 1, 12)
REQUEST = 3_000_000_000  # pUSD of row(): 1,000 input at 2 and 100 output at 10 USD a million


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def times(count, **columns):
    return [row(**columns) for _ in range(count)]


# June: platform 6, a 1, b 2, nobody 3. July: platform 1, a 4. a and b differ in tokens where it says so.
BASIC = [
    *times(6, team="platform", ts=JUNE),
    *times(1, team="a", ts=JUNE),
    *times(2, team="b", ts=JUNE),
    *times(3, ts=JUNE),
    *times(1, team="platform", ts=JULY),
    *times(4, team="a", ts=JULY),
]


@cache
def basic():
    return ledger(BASIC)


def shares(found):
    """Line to (direct, shared out, allocated, total), in requests' cost."""
    return {
        found_row[:-4] if len(found_row) > 5 else found_row[0]: tuple(
            None if part is None else Fraction(int(part), REQUEST) for part in found_row[-4:]
        )
        for found_row in found.frame.rows()
    }


def total(found):
    """What all lines carry in the end."""
    return sum(int(part) for part in found.frame["total_pusd"] if part is not None)


def test_by_usage_month_by_month():
    made = basic()
    found = allocate(made, shared=["platform"])
    # June's 6 by 1:2, July's 1 to a alone
    assert shares(found) == {
        "platform": (7, 7, 0, 0),
        "a": (5, 0, 3, 8),
        "b": (2, 0, 4, 6),
        None: (3, 0, 0, 3),
    }
    assert total(found) == made.total_pusd == found.mix.total_pusd
    assert (found.shared_pusd, found.unallocated_pusd, found.left) == (7 * REQUEST, 3 * REQUEST, ())
    assert "in proportion to their cost, month by month (UTC)" in found.sentences()[0]


def test_evenly_and_by_month():
    found = allocate(basic(), ["team", "month"], method="even", shared=["platform"])
    lines = {(team, month.month): part for (team, month), part in shares(found).items()}
    assert lines == {
        ("platform", 6): (6, 6, 0, 0),
        ("a", 6): (1, 0, 3, 4),
        ("b", 6): (2, 0, 3, 5),
        (None, 6): (3, 0, 0, 3),
        ("platform", 7): (1, 1, 0, 0),
        ("a", 7): (4, 0, 1, 5),
    }


def test_by_fixed_weights_a_team_without_a_request_has_a_line():
    how = Sharing(method="fixed", weights={"a": Decimal("0.25"), "b": Decimal("0.75")})
    found = allocate(basic(), ["team", "month"], sharing=how, shared=["platform"])
    lines = {(team, month.month): part for (team, month), part in shares(found).items()}
    assert lines["a", 6] == (1, 0, Fraction(3, 2), Fraction(5, 2))
    assert lines["b", 6] == (2, 0, Fraction(9, 2), Fraction(13, 2))
    assert lines["b", 7] == (0, 0, Fraction(3, 4), Fraction(3, 4))
    assert total(found) == 17 * REQUEST
    line = next(one for one in found.mix.rows() if one["team"] == "b" and one["month"] == "2026-07")
    assert (line["requests"], line["cost_usd"]) == (0, "0.00")


def test_unallocated_cost_is_shared_out_where_asked_for():
    found = allocate(basic(), sharing=Sharing(include_unallocated=True), shared=["platform"])
    assert shares(found) == {"platform": (7, 7, 0, 0), "a": (5, 0, 4, 9), "b": (2, 0, 6, 8), None: (3, 3, 0, 0)}
    assert "what nobody owns" in found.sentences()[0]


def test_the_basis_decides():
    rows = [
        *times(1, team="s"),
        row(team="a", input_tokens=9_000, output_tokens=0, cache_read_tokens=9_000),  # cheap tokens
        *times(2, team="b", input_tokens=450, output_tokens=50),
    ]
    pool = REQUEST
    by_basis = {
        basis: {
            line["team"]: int(line["allocated_pusd"])
            for line in allocate(ledger(rows), sharing=Sharing(basis=basis), shared=["s"]).frame.rows(named=True)
        }
        for basis in ("cost", "tokens", "requests")
    }
    # cost: a 9,000 * 0.2 = 1.8e9, b 2 * (450 * 2 + 50 * 10) = 2.8e9; tokens 9,000 : 1,000; requests 1 : 2
    assert by_basis["cost"] == {"s": 0, "a": round(pool * 1.8 / 4.6), "b": pool - round(pool * 1.8 / 4.6)}
    assert by_basis["tokens"] == {"s": 0, "a": pool * 9 // 10, "b": pool // 10}
    assert by_basis["requests"] == {"s": 0, "a": pool // 3, "b": 2 * pool // 3}


def test_months_are_cut_in_the_report_zone():
    late = datetime(2026, 6, 30, 23)  # July in Berlin, where b alone is
    rows = [row(team="s", ts=late), row(team="a", ts=JUNE), row(team="b", ts=JULY)]
    found = allocate(ledger(rows, zone="Europe/Berlin"), shared=["s"])
    assert shares(found) == {"s": (1, 1, 0, 0), "a": (1, 0, 0, 1), "b": (1, 0, 1, 2)}
    assert shares(allocate(ledger(rows), shared=["s"]))["a"] == (1, 0, 1, 2)


class TestWhatCannotBeAllocated:
    def test_nobody_is_left_to_carry_it(self):
        found = allocate(ledger(times(2, team="s") + times(1)), shared=["s"])
        assert shares(found) == {"s": (2, 0, 0, 2), None: (1, 0, 0, 1)}
        assert [(month.month, pusd) for month, pusd, _ in found.left] == [(6, 2 * REQUEST)]
        assert "is not allocated: no other team has a request in it" in found.sentences()[1]

    def test_the_basis_is_zero(self):
        rows = [row(team="s"), row(team="a", input_tokens=0, output_tokens=0)]
        found = allocate(ledger(rows), shared=["s"])
        assert shares(found)["s"] == (1, 0, 0, 1)
        assert found.left[0][2] == "the other teams have no cost in it"
        assert shares(allocate(ledger(rows), method="even", shared=["s"]))["a"] == (0, 0, 1, 1)

    def test_what_has_no_price_is_in_no_part_and_named(self):
        rows = [row(team="s", model="unknown"), row(team="s"), row(team="a"), row(team="u", model="unknown")]
        found = allocate(ledger(rows), shared=["s"])
        assert shares(found) == {"s": (1, 1, 0, 0), "a": (1, 0, 1, 2), "u": (None, 0, 0, None)}
        assert found.unpriced == 1
        assert "1 request of it without a price: in no part" in found.sentences()
        by_requests = allocate(ledger(rows), sharing=Sharing(basis="requests"), shared=["s"])
        assert shares(by_requests)["u"] == (None, 0, Fraction(1, 2), Fraction(1, 2))

    def test_nothing_is_shared(self):
        found = allocate(basic())
        assert "nothing to allocate" in found.sentences()[0]
        assert total(found) == 17 * REQUEST

    def test_undated_requests_are_a_pool_of_their_own(self):
        made = ledger([row(team="s", ts=None), row(team="a")], price_at=datetime(2026, 6, 1, tzinfo=UTC))
        found = allocate(made, shared=["s"])
        assert [pool[:2] for pool in found.left] == [(None, REQUEST)]
        assert shares(found) == {"s": (1, 0, 0, 1), "a": (1, 0, 0, 1)}


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ({"a": 1, "x": 0}, 'weights: "x" is no team'),
        ({"aa": 1}, 'Did you mean "a"?|is no team'),
        ({"platform": 1}, '"platform" is shared itself'),
    ],
)
def test_weights_name_teams_that_can_carry(weights, says):
    how = Sharing(method="fixed", weights={team: Decimal(part) for team, part in weights.items()})
    with pytest.raises(AssumptionError, match=says):
        allocate(basic(), sharing=how, shared=["platform"])


@pytest.mark.parametrize("by", [["model"], ["team", "model"], ["team", "day"], []])
def test_what_is_cut_finer_is_refused(by):
    with pytest.raises(AssumptionError, match="group by team, alone or with month, quarter, year"):
        allocate(basic(), by, shared=["platform"])


def test_an_unknown_shared_team_is_refused():
    with pytest.raises(AssumptionError, match='"platfrm" is no team.*Did you mean "platform"'):
        allocate(basic(), shared=["platfrm"])


# --- a second, slow implementation: request by request, fractions, then the largest remainders ---


def slow(rows, costs, givers, weigh):
    """Give team to (shared out, allocated), summed over months; weigh(month's rows by team) -> weights."""
    out, into = {}, {}
    for month in {one["ts"].month for one in rows}:
        here = {}
        for one, cost in zip(rows, costs, strict=True):
            if one["ts"].month == month:
                here.setdefault(one.get("team"), []).append((one, cost))
        pool = sum(cost for team in givers for _, cost in here.get(team, []))
        weights = weigh({team: held for team, held in here.items() if team is not None and team not in givers})
        whole = sum(weights.values())
        if not pool or not whole:
            continue
        for team in givers:
            out[team] = out.get(team, 0) + sum(cost for _, cost in here.get(team, []))
        exact = {team: Fraction(pool * weight, whole) for team, weight in weights.items()}
        parts = {team: int(part) for team, part in exact.items()}
        for team in sorted(exact, key=lambda team: (-(exact[team] - parts[team]), team))[: pool - sum(parts.values())]:
            parts[team] += 1
        for team, part in parts.items():
            into[team] = into.get(team, 0) + part
    return out, into


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(1, 12))])
def test_drawn_bills_are_as_a_slow_reading_has_them(seed):
    draw = random.Random(seed)
    rows = [
        row(
            team=draw.choice(["a", "b", "c", "s", "t", None]),
            ts=datetime(2026, draw.choice([6, 7, 8]), draw.randint(1, 28), 1),
            input_tokens=draw.randint(0, 5_000),
            output_tokens=draw.randint(0, 700),
        )
        for _ in range(80)
    ]
    costs = [one["input_tokens"] * 2_000_000 + one["output_tokens"] * 10_000_000 for one in rows]
    made = ledger(rows)
    weighed = {
        ("usage", "cost"): lambda here: {team: sum(cost for _, cost in held) for team, held in here.items()},
        ("usage", "tokens"): lambda here: {
            team: sum(one["input_tokens"] + one["output_tokens"] for one, _ in held) for team, held in here.items()
        },
        ("usage", "requests"): lambda here: {team: len(held) for team, held in here.items()},
        ("even", "cost"): lambda here: dict.fromkeys(here, 1),
        ("fixed", "cost"): lambda _: {"a": 333, "b": 333, "c": 334},
    }
    parts = {"a": Decimal("0.333"), "b": Decimal("0.333"), "c": Decimal("0.334")}
    for (method, basis), weigh in weighed.items():
        how = Sharing(method=method, basis=basis, weights=parts if method == "fixed" else {})
        found = allocate(made, sharing=how, shared=["s", "t"])
        out, into = slow(rows, costs, ("s", "t"), weigh)
        lines = {line["team"]: line for line in found.frame.rows(named=True)}
        assert {team: int(line["shared_out_pusd"]) for team, line in lines.items() if line["shared_out_pusd"]} == out
        assert {team: int(line["allocated_pusd"]) for team, line in lines.items() if line["allocated_pusd"]} == into
        assert total(found) == sum(costs) == made.total_pusd
        assert min(min(line[-3:]) for line in found.frame.rows()) >= 0


def test_it_is_public():
    assert tf.allocate is allocate
