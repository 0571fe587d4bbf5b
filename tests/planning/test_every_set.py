"""Every set's value by sums over subsets, against one look at every class for each set."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.planning.every_set import every_set, subsets_of


def test_sets_are_listed_by_their_bits():
    assert subsets_of(0) == [0]
    assert subsets_of(0b1010) == [0, 0b10, 0b1000, 0b1010]
    assert subsets_of(7) == list(range(8))


@st.composite
def classes(draw):
    levers = draw(st.integers(0, 5))
    parts = []
    for _ in range(draw(st.integers(0, 6))):
        among = draw(st.integers(0, 2**levers - 1))
        amounts = st.lists(
            st.integers(-(10**24), 10**24), min_size=len(subsets_of(among)), max_size=len(subsets_of(among))
        )
        parts.append((among, draw(amounts)))
    return levers, parts


@settings(max_examples=60, deadline=None)
@given(classes())
def test_as_looked_up_one_by_one(drawn):
    levers, parts = drawn
    wanted = [
        sum(amounts[subsets_of(among).index(chosen & among)] for among, amounts in parts) for chosen in range(2**levers)
    ]
    assert every_set(levers, parts) == wanted
