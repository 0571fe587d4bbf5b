"""Shares of a joint saving: exact, summing, and the same whatever the order."""

from math import factorial

from hypothesis import given
from hypothesis import strategies as st

from tenfold.planning.attribution import largest_remainder, last_in, shapley, subsets


def game(**values):
    """A value per subset: letters joined in order, such as ab=36."""
    return lambda names: values["".join(sorted(names))] if names else 0


def test_two_levers_worked_by_hand():
    # BerriAI/litellm #38817 (B124): a router alone saves 60 of 100, caching 30; one after the other 100 -> 40 -> 28,
    # so 72 together and not 90. Average over both orders: router (60 + 42) / 2, caching (30 + 12) / 2.
    value = game(c=30, r=60, cr=72)
    assert last_in(["c", "r"], value) == {"c": 12, "r": 42}
    assert shapley(["c", "r"], value) == {"c": 21, "r": 51}


def test_thirds_are_shared_out_whole():
    # Any of three levers saves the same pUSD: a third each, so the largest remainder gives it to the first.
    assert shapley(["a", "b", "c"], lambda names: min(len(names), 1)) == {"a": 1, "b": 0, "c": 0}


def test_losses_are_shared_too():
    # -7 / 2 and -3 / 2: floors -4 and -2 leave one pUSD, which goes to the first of equal remainders.
    assert largest_remainder({"a": -7, "b": -3}, 2) == {"a": -3, "b": -2}


def test_no_lever():
    assert shapley([], lambda _: 0) == {}
    assert list(subsets([])) == [frozenset()]


@st.composite
def games(draw):
    names = ["a", "b", "c", "d"][: draw(st.integers(1, 4))]
    table = {one: draw(st.integers(-(10**18), 10**18)) for one in subsets(names) if one}
    return names, lambda one: table.get(one, 0)


@given(games())
def test_efficiency_and_order(drawn):
    names, value = drawn
    shares = shapley(names, value)
    assert sum(shares.values()) == value(frozenset(names))
    turned = shapley(names[::-1], value)
    assert all(abs(shares[name] - turned[name]) <= 1 for name in names)  # the spare pUSD may go elsewhere


@given(games())
def test_a_lever_that_changes_nothing_gets_nothing(drawn):
    names, value = drawn

    def with_idle(one):
        return value(one - {"idle"})

    shares = shapley([*names, "idle"], with_idle)
    assert shares["idle"] == 0
    assert last_in([*names, "idle"], with_idle)["idle"] == 0
    others = shapley(names, value)
    assert all(abs(shares[name] - others[name]) <= 1 for name in names)


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(-(10**30), 10**30), min_size=1), st.integers(1, 6))
def test_rounding_keeps_the_sum_and_the_neighbourhood(numerators, n):
    denominator = factorial(n)
    first = next(iter(numerators))
    numerators[first] -= sum(numerators.values()) % denominator  # the sum is whole
    made = largest_remainder(numerators, denominator)
    assert sum(made.values()) * denominator == sum(numerators.values())
    assert all(0 <= made[name] - numerators[name] // denominator <= 1 for name in numerators)
