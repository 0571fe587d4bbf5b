"""The section on scope, coverage and reconciliation: what was billed beside what was logged, and why they differ."""

import pytest

import tenfold as tf
from tenfold.config import Settings
from tenfold.logs import load
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import scope

ROWS = "request_id,ts,provider,model,input_tokens,output_tokens\n" + "".join(
    f"r{month}{day},2026-{month:02}-{day:02}T12:00:00Z,openai,gpt-4o-mini,0,1000000\n"
    for month in (7, 8)
    for day in (1, 2)
)
BILL = "date,provider,model,meter,amount,currency\n" + "".join(
    f"2026-{month:02}-{day:02},openai,gpt-4o-mini,output,{amount},USD\n"
    for month, day, amount in ((7, 1, "0.6"), (7, 2, "0.6"), (8, 1, "0.6"), (8, 2, "0.6"), (8, 3, "0.9"))
)


def section_of(db):
    facts = Facts(tf.attribute(tf.open_log(db)), None, quarter("2026Q3"), Settings())
    return facts, scope.section(facts)


@pytest.mark.full
def test_reconciliation_by_provider_and_month_with_causes(tmp_path):
    db = tmp_path / "u.duckdb"
    (tmp_path / "rows.csv").write_text(ROWS)
    load(tmp_path / "rows.csv", db=db)
    facts, section = section_of(db)
    assert facts.is_reconciled is None
    assert any("savings are unreconciled" in getattr(block, "text", "") for block in section.blocks)
    (tmp_path / "bill.csv").write_text(
        BILL + "2026-08-04,openai,gpt-4o-mini,output,5,EUR\n2026-08-32,openai,gpt-4o-mini,output,5,USD\n"
    )
    load(tmp_path / "bill.csv", db=db)
    facts, section = section_of(db)
    assert facts.is_reconciled is False
    grids = {block.grid.name: block.grid for block in section.blocks if block.kind == "table"}
    usd = 10**12
    assert [row[:5] for row in grids["table-reconciled"].rows] == [
        ("openai", "2026-07", 1.2 * usd, 1.2 * usd, 0),
        ("openai", "2026-08", 1.2 * usd, 2.1 * usd, 0.9 * usd),
        ("all", "", 2.4 * usd, 3.3 * usd, 0.9 * usd),
    ]
    assert grids["table-drift"].rows[0][:2] == ("not in log", 0.9 * usd)
    assert grids["table-dropped"].rows[0][4] == "5 EUR"
    refused = grids["table-dropped"].rows[1]
    assert refused[:4] == ("refused by the reader: what it bills is unknown", None, 1, None)
    assert "bill.csv:8: no date: '2026-08-32'" in refused[5]
    said = " ".join(line for block in section.blocks if block.kind == "lines" for line in block.items)
    assert "the drift is 27.27 % of what was billed, above the limit of 1.0 %: savings are unreconciled" in said
    assert "the log has no request in 2026-08-03" in said
    assert {note.key for note in section.made} >= {"made-coverage", "made-reconciled"}
