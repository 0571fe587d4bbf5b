"""The section on the spend bridge: the worked example on two quarters, its bands, and when it is left out."""

from dataclasses import replace
from datetime import datetime
from fractions import Fraction

import pytest
from small_logs import ledger

from tenfold.config import Settings, Thresholds
from tenfold.reviewing.document import Lines, Picture, Prose, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import spend_bridge

PRICES = """
provider = "openai"
[[price]]
model = "a"
input = 5
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "a"
valid_from = 2026-07-01
input = 4
output = 4
source = "test"
checked = 2026-01-01
[[price]]
model = "<b>"
input = 0.5
output = 0.5
source = "test"
checked = 2026-01-01
"""
MAY, AUGUST = datetime(2026, 5, 1), datetime(2026, 8, 1)


def row(model, ts, millions):
    made = {"provider": "openai", "model": model, "ts": ts}
    return {**made, "input_tokens": millions * 1_000_000, "output_tokens": 0, "cache_read_tokens": 0}


ROWS = [row("a", MAY, 80), row("<b>", MAY, 20), row("a", AUGUST, 90), row("<b>", AUGUST, 110)]


def facts(rows, settings=None):
    # days apart stand for whole quarters
    return WholeQuarters(ledger(rows, PRICES), None, quarter("2026Q3"), settings or Settings())


class WholeQuarters(Facts):
    pace = Fraction(1)
    pace_note = ""


def of(section, kind):
    return [block for block in section.blocks if isinstance(block, kind)]


def test_the_worked_example():
    given = facts(ROWS)
    section = spend_bridge.section(given)
    prose = of(section, Prose)[0].text
    assert prose.startswith("Spend rose by $5.00 (1.2 %), from $410.00 to $415.00. That is within the 5 % ")
    picture = of(section, Picture)[0]
    said = "2026Q2: $410.00. Intensity +$410.00, mix -$315.00, price -$90.00. 2026Q3: $415.00."
    assert picture.text == said
    bars, mix, movers = (block.grid for block in of(section, Table))
    assert bars.texts()[0][:2] == ["spend before", "$410.00"]
    assert sum(line[1] for line in bars.rows[:-1]) == bars.rows[-1][1] == 415 * 10**12
    assert [line[:2] for line in mix.texts()] == [
        ["model", "-$315.00"], ["service tier", "$0.00"], ["kind of token", "$0.00"], ["mix", "-$315.00"],
    ]  # fmt: skip
    assert movers.rows[0][0] == "<b>"
    large = of(section, Lines)[0].items
    assert (
        large[0]
        == "Intensity +$410.00, 100.0 % of the spend before: asks for a decision; most of it `a standard` (+$400.00)"
    )
    assert large[-1].startswith("Price -$90.00")
    assert {block.made for block in section.blocks if getattr(block, "made", "")} == {"made-bridge"}
    assert section.made[0].key == "made-bridge"
    # as settings have it, 1 % asks for a decision
    given.settings = replace(Settings(), thresholds=Thresholds(explain=0.005, act=0.01))
    assert "above the 1 % from which a variance asks for a decision" in of(spend_bridge.section(given), Prose)[0].text


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (ROWS[2:], "the log has no request in 2026Q2; load that quarter's logs into the same database"),
        ([row("ghost", MAY, 1), row("ghost", AUGUST, 1)], "nothing in 2026Q2 or 2026Q3 has a price; see coverage"),
    ],
)
def test_it_is_left_out_with_a_reason(rows, reason):
    section = spend_bridge.section(facts(rows))
    assert isinstance(section, Skipped)
    assert section.reason.startswith(reason)
