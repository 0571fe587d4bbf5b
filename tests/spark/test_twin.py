"""The helper that compares engines fails where they differ."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import polars as pl
import pytest
from small_logs import ledger, row
from spark.twin import is_ordered, same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [1, 3]),
        ([1, 2], [1, 2, 2]),
        ([1, None], [1, 0]),
        ([1.0, 2.0], [1.0, 2.0 + 1e-6]),
        ([Decimal(10**30)], [Decimal(10**30 + 1)]),
        (["a", None], ["a", ""]),
        ([True], [1]),
        ([datetime(2026, 1, 1)], [datetime(2026, 1, 1, 0, 0, 0, 1)]),
    ],
)
def test_differences_are_found(one, other):
    with pytest.raises(AssertionError):
        same(pl.DataFrame({"v": one}), pl.DataFrame({"v": other}))


def test_order_counts_only_where_asked():
    one, other = pl.DataFrame({"v": [1, 2]}), pl.DataFrame({"v": [2, 1]})
    same(one, other)
    with pytest.raises(AssertionError):
        same(one, other, in_order=True)


def test_knows_an_order_of_the_whole():
    assert is_ordered("select a from t order by a")
    assert not is_ordered("select row_number() over (order by a) as n from t -- order by a")
    assert not is_ordered("select a from (select a from t order by a limit 1)")


def test_both_engines_over_one_log(twins):
    made = ledger([row(), row(model="plain", team="o'neill"), row(ts=None)])
    twin = ledger([row(), row(model="plain", team="o'neill"), row(ts=None)])
    twin = type(made)(made.log.on(twins), made.book, made.window)
    assert twin.composition(by=["team"]).frame.equals(made.composition(by=["team"]).frame)
