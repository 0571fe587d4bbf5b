"""The runbook's reading on both engines."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from small_logs import ledger
from spark.rich import PRICES, rich_rows

from tenfold.errors import NotEvaluable
from tenfold.latency.parts import Part
from tenfold.latency.proposing import around, find
from tenfold.latency.reading import read


@pytest.fixture(scope="module")
def made():
    return ledger(rich_rows(4, 60), PRICES)


def test_a_window(made, twins, monkeypatch):
    asked = "input_tokens > 10"
    own = read(Part(made.log), asked, "--before")
    twins.everywhere(monkeypatch)
    found = read(Part(made.log), asked, "--before")
    assert found.ts_s.tolist() == own.ts_s.tolist()
    assert found.models == own.models
    assert {name: (one.codes.tolist(), list(one.names)) for name, one in found.names.items()} == {
        name: (one.codes.tolist(), list(one.names)) for name, one in own.names.items()
    }


def test_windows_around_an_instant(made, twins, monkeypatch):
    at, length = datetime(2026, 6, 25, tzinfo=UTC), timedelta(days=20)
    own = around(made.log, at, length=length)
    twins.everywhere(monkeypatch)
    found = around(made.log, at, length=length)
    assert (found.requests, found.why) == (own.requests, own.why)
    assert sum(found.requests) > 0
    with pytest.raises(NotEvaluable, match="are missing"):
        find(made.log)
