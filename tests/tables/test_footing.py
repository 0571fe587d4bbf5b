"""Tables foot as displayed: to the cent, and shares to the displayed tenth of a percent."""

import re
from decimal import Decimal
from fractions import Fraction

from hypothesis import example, given, settings
from hypothesis import strategies as st

from tenfold.tables import Column, grid

CENT = 10**10
COLUMNS = [
    Column("name", "name"),
    Column("cost", "cost", "pusd", sums=True),
    Column("of", "of", "ratio", share_of="cost"),
]


def written(costs, total=None, texts=()):
    total = sum(costs) if total is None else total
    rows = [(str(at), cost, Fraction(cost, total) if total else None) for at, cost in enumerate(costs)]
    rows += [("none", text, None) for text in texts]
    return [
        row[1:]
        for row in grid(
            "g", "g", COLUMNS, [*rows, ("total", total, Fraction(1) if total else None)], has_total=True
        ).texts()
    ]


def figure(text):
    return Fraction(Decimal(re.sub(r"[$,% ]", "", text)))


@given(st.lists(st.integers(0, 500 * CENT) | st.integers(-20 * CENT, 20 * CENT), min_size=1, max_size=9))
@example([50_050_050_051, 50_050_050_051])
@settings(max_examples=60, deadline=None)
def test_costs_and_shares_sum_to_their_total_as_shown(costs):
    *rows, total = written([*costs, 10_000 * CENT], texts=["not priced"])
    shown = [figure(cost) for cost, _ in rows if cost != "not priced"]
    assert sum(shown) == figure(total[0])
    for cost, text in zip(costs, shown[:-1], strict=True):
        assert abs(text * CENT * 100 - cost) < CENT
        assert text >= 0 or cost < 0
    plain = [share for _, share in rows if share[0] not in "<>–"]
    tiny = [
        100 * Fraction(cost, sum(costs) + 10_000 * CENT)
        for cost, (_, share) in zip([*costs, 10_000 * CENT], rows, strict=False)
        if share[0] in "<>"
    ]
    # a row below what is shown either stands beside the sum, or was rounded away within it
    least, most = 100 - sum(one for one in tiny if one > 0), 100 - sum(one for one in tiny if one < 0)
    assert least - Fraction(1, 20) <= sum(map(figure, plain)) <= most + Fraction(1, 20)
    assert all(share not in ("0.0 %", "100.0 %") for cost, (_, share) in zip(costs, rows, strict=False) if cost > 0)


def test_the_cases_that_were_seen():
    # 61.644 + 0.004 + 7.214 is 68.862; each alone is 61.64, 0.00 and 7.21
    assert [cost for cost, _ in written([61_644 * CENT // 10, 4 * CENT // 10, 7_214 * CENT // 10])] == [
        "$61.65", "$0.00", "$7.21", "$68.86",
    ]  # fmt: skip
    # nine of 11.11 % would sum to 99.9
    shares = [share for _, share in written([CENT * 1000] * 9)]
    assert shares == ["11.2 %", *["11.1 %"] * 8, "100.0 %"]
    # a trace of a row keeps its words, and the others sum to the rest
    assert [share for _, share in written([200 * CENT, 100 * CENT, CENT // 100])] == [
        "66.7 %",
        "33.3 %",
        "<0.1 %",
        "100.0 %",
    ]


def test_what_does_not_sum_is_left_as_it_is():
    assert [cost for cost, _ in written([CENT * 3 // 2, CENT * 120], total=200 * CENT)] == ["$0.02", "$1.20", "$2.00"]
    rows = [("a", 15 * CENT // 10), ("b", 15 * CENT // 10 + 100 * CENT), ("all", 103 * CENT)]
    assert [row[1] for row in grid("g", "g", COLUMNS[:2], rows).texts()] == ["$0.02", "$1.02", "$1.03"]
