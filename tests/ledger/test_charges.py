"""Charges as rows beside requests."""

from tenfold.ledger import Charge
from tenfold.ledger.charges import charge_rows

CHARGES = (
    Charge("pool 1", "idle", 5, "self-hosted", "a"),
    Charge("pool 2", "idle", 7, "self-hosted", "a"),
    Charge("pool 3", "idle", 11, "self-hosted", "b"),
)


def test_charges_are_summed_by_what_they_are_of():
    rows = [(values, one.pusd) for values, one in charge_rows(CHARGES, ("team", "model"))]
    assert rows == [(("(idle)", "a"), 12), (("(idle)", "b"), 11)]
    assert [(values, one.pusd) for values, one in charge_rows(CHARGES, ())] == [((), 23)]
    assert [values for values, _ in charge_rows(CHARGES, ("provider",))] == [("self-hosted",)]


def test_kinds_of_charges_stay_apart():
    mixed = (*CHARGES[:1], Charge("support", "fee", 3, "self-hosted", "a"))
    assert [(values, one.what, one.pusd) for values, one in charge_rows(mixed, ("model",))] == [
        (("a",), "idle", 5), (("a",), "fee", 3),
    ]  # fmt: skip
