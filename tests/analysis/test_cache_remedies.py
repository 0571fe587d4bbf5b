"""What to do about each cause of a broken cache: one for every cause, the dearest first, named by what texts show."""

import polars as pl
import pytest

from tenfold.analysis import cache_breaks
from tenfold.analysis.cache_breaks import remedies
from tenfold.analysis.cache_breaks.result import CAUSES, UNCOSTED
from tenfold.analysis.cache_breaks.wording import WORDS

FRAME = ("feature", "cause", "place", "label", "turns", "tokens", "unpriced_turns", "cost_pusd")


def ranked(rows, texts=(), lifetimes=()):
    money = {"cost_pusd": pl.Decimal(38, 0), "saving_pusd": pl.Decimal(38, 0), "place": pl.String}
    seen = ("feature", "cause", "place", "why", "cost_pusd")
    frames = ((rows, FRAME), (texts, seen), (lifetimes, ("feature", "saving_pusd")))
    made = [pl.DataFrame(list(one), schema={name: money.get(name) for name in names}, orient="row")
            for one, names in frames]  # fmt: skip
    return remedies.ranked(*made)


def test_every_cause_place_and_word_has_its_sentence():
    costed = set(CAUSES) - UNCOSTED
    rows = [("f", cause, "head" if cause == "prefix_broken" else None, "replayed", 1, 9, 0, 5) for cause in costed]
    found = ranked(rows)
    assert {one.cause for one in found} == costed
    named = set(WORDS) - {"same", "unreadable"}
    for why in named:
        (one,) = ranked(
            [("f", "prefix_broken", "head", "replayed", 1, 9, 0, 5)], [("f", "prefix_broken", "head", why, 5)]
        )
        assert (one.why, one.text) == (why, f"beginning changed: {WORDS[why]}")
        found += (one,)
    assert all(one.text and one.to_do.endswith(".") for one in found)
    assert set(remedies.PARTS) == set(cache_breaks._NEEDS)


def test_order_and_sums():
    rows = [
        ("a", "gap", None, "replayed", 2, 10, 0, 5),
        ("a", "gap", None, "replayed", 3, 20, 1, 7),  # of another model
        ("b", "volatile_head", None, "ceiling", 1, 1, 0, 99),
        ("b", "missed", None, "replayed", 1, 1, 1, None),
        (None, "rewritten", None, "replayed", 1, 1, 0, 20),
        ("b", "first", None, "replayed", 1, 1, 0, None),
    ]
    found = [(one.feature, one.cause, one.turns, one.tokens, one.unpriced_turns, one.cost_pusd) for one in ranked(rows)]
    assert found == [
        (None, "rewritten", 1, 1, 0, 20),
        ("a", "gap", 5, 30, 1, 12),
        ("b", "missed", 1, 1, 1, None),
        ("b", "volatile_head", 1, 1, 0, 99),
    ]


def test_the_place_keeps_its_own_name():
    rows = [("f", "prefix_broken", place, "replayed", 1, 9, 0, cost) for place, cost in (("head", 5), ("elsewhere", 9))]
    texts = [
        ("f", "prefix_broken", "head", "timestamp", 4),
        ("f", "prefix_broken", "head", "same", 9),
        ("f", "prefix_broken", "head", "tools_reordered", 1),
    ]
    elsewhere, head = ranked(rows, texts)
    assert (elsewhere.text, elsewhere.why) == ("changed within the prompt", None)
    assert head.to_do == "Move the timestamp below the tools and the fixed text, into the latest message."


@pytest.mark.parametrize(
    ("saving", "says"), [(30_000_000_000, "saved $0.03"), (-1, "cost more than it saves"), (None, "no longer one")]
)
def test_pauses_by_what_the_longer_lifetime_would_save(saving, says):
    lifetimes = [] if saving is None else [("a", saving)]
    (one,) = ranked([("a", "gap", None, "replayed", 2, 10, 0, 5)], lifetimes=lifetimes)
    assert says in one.to_do
