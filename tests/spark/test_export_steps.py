"""Exports on both engines: what is written rests on the same charges."""

from __future__ import annotations

import pytest
from small_logs import ledger
from spark.rich import PRICES, rich_rows

from tenfold.export import export_focus
from tenfold.prices import price_book

CAPACITY = """
[[commitment]]
name = "PTU East"
provider = "openai"
usd_per_hour = 2
valid_from = 2026-06-03T12:00:00Z
valid_to = 2026-06-20
source = "t"
"""


@pytest.mark.parametrize(
    ("grain", "own"), [("day", CAPACITY), pytest.param("hour", "", marks=pytest.mark.full)], ids=["day", "hour"]
)
def test_focus(twins, tmp_path, monkeypatch, grain, own):
    for part, text in (("base", PRICES), ("own", own)):
        (tmp_path / part).mkdir()
        (tmp_path / part / ("contract.toml" if part == "own" else "p.toml")).write_text(text)
    made = ledger(rich_rows(5, 60), price_book(tmp_path / "base", overlay=tmp_path / "own" if own else None))
    here = export_focus(made, tmp_path / "here.csv", grain=grain)
    twins.everywhere(monkeypatch)
    there = export_focus(made, tmp_path / "there.csv", grain=grain)
    assert (tmp_path / "there.csv").read_bytes() == (tmp_path / "here.csv").read_bytes()
    assert there.costs == here.costs
    assert there.unpriced == here.unpriced
