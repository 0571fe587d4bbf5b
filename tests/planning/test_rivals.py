"""Levers that want the same requests: who gets which feature."""

from tenfold.planning.rivals import Side, settled

FIRST, SECOND = Side("first", 0, False, 0), Side("second", 0, False, 0)


def test_each_feature_to_the_one_that_saves_more_of_it_and_ties_to_the_first():
    claims = {"a": (5, 3), "b": (2, 4), None: (1, 1)}
    assert settled(claims, FIRST, SECOND) == {"a": "second", "b": "first", None: "second"}


def test_fixed_charges_can_turn_it():
    # by feature 5 + 4 - 3 = 6; all to the first 5 + 2 = 7; all to the second 3 + 4 - 3 = 4
    claims = {"a": (5, 3), "b": (2, 4)}
    assert settled(claims, FIRST, Side("second", 0, False, 3)) == {"a": "second", "b": "second"}
    # a lever that has other traffic pays them anyway: 9 - 3, 7 - 3, 7 - 3
    assert settled(claims, FIRST, Side("second", 0, True, 3)) == {"a": "second", "b": "first"}


def test_all_to_one_that_pays_for_itself_only_whole():
    # by feature 5 + 8 - 4 - 6 = 3; all to the first 5 + 7 - 4 = 8; all to the second 4 + 8 - 6 = 6
    claims = {"a": (5, 4), "b": (7, 8)}
    assert set(settled(claims, Side("first", 0, False, 4), Side("second", 0, False, 6)).values()) == {"second"}
