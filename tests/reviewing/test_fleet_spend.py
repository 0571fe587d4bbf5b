"""Spend of a review with GPUs of one's own: one meaning, idle time named wherever it is left out."""

from fleets import at, fleet_file, ledger_of, pool, request

import tenfold as tf
from tenfold.config import Settings
from tenfold.reviewing.document import Lines, Picture, Tiles
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter
from tenfold.reviewing.sections import composition, scope, summary


def test_idle_time_is_spend_without_an_owner_and_is_named_where_it_is_left_out(tmp_path):
    # two hours of one GPU at 2 USD, busy for half of them, and 0.0014 USD at an API
    log = [
        request(0, 3600, team="a"),
        request(7199, 1, team="b") | {"provider": "openai", "model": "m1"},
    ]
    chosen = quarter("2026Q3")
    ledger = tf.on_fleet(ledger_of(log, tmp_path, at(0), at(86400)), fleet_file(tmp_path, pool()))
    facts = Facts(ledger, None, chosen, Settings())
    tiles = {tile.label: tile for block in summary.section(facts).blocks if isinstance(block, Tiles)
             for tile in block.items}  # fmt: skip
    assert tiles["spend, priced"].value == "$4.00"
    assert tiles["spend, priced"].note.startswith("2 requests: $2.00 and idle GPUs $2.00")
    assert tiles["idle GPUs"].note == "in the spend; 50 % of it"
    owned = next(line for line in scope.section(facts).blocks[0].items if line.startswith("Owned"))
    assert owned == "Owned: 50.02 % of spend; $2.00 is unallocated, of which $2.00 is idle GPUs, which no team owns."
    titles = [block.caption for block in composition.section(facts).blocks
              if isinstance(block, Picture) and block.made != "made-in-flight"]  # fmt: skip
    assert len(titles) >= 3
    assert all("idle GPUs left out" in title for title in titles)
    lines = [block.items for block in (*summary.section(facts).blocks, *composition.section(facts).blocks)
             if isinstance(block, Lines) and block.made == "made-reading"]  # fmt: skip
    assert [items[0] for items in lines] == ["Of what requests carry, idle GPUs left out:"] * 2
