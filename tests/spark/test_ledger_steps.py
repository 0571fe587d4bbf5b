"""Attribution on both engines: the same integers, whatever the names, prices, zones and windows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from small_logs import CUT, book, ledger
from spark.rich import HOSTILE, PRICES, rich_rows

from tenfold.analysis.composition import read
from tenfold.analysis.tagged import by_tag
from tenfold.ledger import Ledger, Window
from tenfold.ledger.repricing import reprice
from tenfold.ledger.span import span
from tenfold.store.database import quoted

BY = (
    [],
    ["team", "project"],
    ["day", "model", "service_tier", "region"],
    ["user_id", "is_stream", "week"],
)


@pytest.fixture(scope="module")
def made():
    return ledger(rich_rows(), PRICES)


def on(twins, one):
    """The same ledger on both engines."""
    return Ledger(one.log.on(twins), one.book, one.window, one.price_at)


def test_totals_by_everything(made, twins):
    with on(twins, made).session() as there, made.session() as here:
        for by in BY:
            assert there.totals(by).rows() == here.totals(by).rows()
        condition = f"team in ({', '.join(quoted(name) for name in HOSTILE)}) or input_tokens > 4000"
        assert there.totals(["team"], condition=condition).rows() == here.totals(["team"], condition=condition).rows()
        assert there.daily_tokens(["team"], "true").equals(here.daily_tokens(["team"], "true"))


def test_another_zone_window_and_instant(made, twins):
    window = Window(datetime(2026, 6, 3, 22, 15, tzinfo=UTC), datetime(2026, 7, 3, tzinfo=UTC), "America/New_York")
    cut = made.within(window)
    assert on(twins, cut).composition(["day"]).frame.equals(cut.composition(["day"]).frame)
    what_if = Ledger(made.log, made.book, made.window, datetime(2026, 8, 1, tzinfo=UTC))
    assert on(twins, what_if).total_pusd == what_if.total_pusd != made.total_pusd


def test_what_a_ledger_says_of_itself(made, twins):
    twin = on(twins, made)
    assert twin.coverage == made.coverage
    assert span(twin) == span(made)
    assert twin.costs(["model"]).as_dict() == made.costs(["model"]).as_dict()
    assert twin.explain("r3") == made.explain("r3")
    found, own = read(twin), read(made)
    assert found.as_dict() == own.as_dict()


def test_requests_themselves_and_their_tags(made, twins):
    twin = on(twins, made)
    with twin.session() as there:
        there.engine.fetch("select * from priced_requests")
    assert by_tag(twin, "customer").equals(by_tag(made, "customer"), null_equal=True)


def test_repricing(made, twins, monkeypatch):
    own = reprice(made.log, book(CUT), made.book)
    twins.everywhere(monkeypatch)
    found = reprice(made.log, book(CUT), made.book)
    assert found.as_dict() == own.as_dict()
