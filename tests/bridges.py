"""What tests of the bridge share: a small price book, rows, and every way in which a bridge must foot."""

from datetime import UTC, datetime
from fractions import Fraction

from small_logs import ledger

from tenfold.analysis.bridge import bridge
from tenfold.ledger import Window

JULY = datetime(2026, 7, 1, tzinfo=UTC)
Q2 = Window(datetime(2026, 4, 1, tzinfo=UTC), JULY)
Q3 = Window(JULY, datetime(2026, 10, 1, tzinfo=UTC))
MAY, AUGUST = datetime(2026, 5, 10, 12), datetime(2026, 8, 10, 12)
USD = 10**12
MILLION = 1_000_000


def priced(model, rates, **more):
    keys = "\n".join(f"{name} = {value}" for name, value in {**rates, **more}.items())
    return f'[[price]]\nmodel = "{model}"\n{keys}\nsource = "test"\nchecked = 2026-01-01\n'


HEAD = 'provider = "openai"\n'
# USD per million: A 5, from July on 4; B 0.5
EXAMPLE = HEAD + "".join([
    priced("A", {"input": 5, "cache_read": 0.5, "output": 5}),
    priced("A", {"input": 4, "cache_read": 0.4, "output": 4}, valid_from="2026-07-01"),
    priced("B", {"input": 0.5, "output": 0.5}),
])  # fmt: skip


def asked(model="A", ts=MAY, millions=1, **more):
    return {
        "provider": "openai", "model": model, "ts": ts, "input_tokens": millions * MILLION, "output_tokens": 0,
        "cache_read_tokens": 0, **more,
    }  # fmt: skip


def between(rows, prices=EXAMPLE, **options):
    made = ledger(rows, prices)
    found = bridge(made.within(Q2), made.within(Q3), **options)
    assert_foots(found, made.within(Q2), made.within(Q3), options.get("scale", 1))
    return found


def assert_foots(found, before, after, scale=1):
    assert found.after.pusd == after.total_pusd + after.charges_pusd
    assert abs(found.before.pusd - (before.total_pusd + before.charges_pusd) * Fraction(scale)) <= Fraction(1, 2)
    foots_itself(found)


def foots_itself(found):
    assert sum(bar.pusd for bar in found.bars) == found.after.pusd - found.before.pusd
    assert sum(found.mix_by.values()) == found.bar("mix")
    first, bars, last = found.rounded()
    assert first + sum(bars) == last
    for row in found.movers.rows(named=True):
        own = sum(int(row[name]) for name in found.movers.columns[len(found.by) + 3 :])
        assert own == int(row["change_pusd"]) == int(row["after_pusd"]) - int(row["before_pusd"])
    assert int(found.movers["change_pusd"].sum() or 0) == found.change_pusd - found.bar("idle_gpus")
    for grid in (found.grid(), found.movers_grid(top=1, most=1)):
        keys = [n for n, column in enumerate(grid.columns) if column.sums]
        assert all(sum(row[n] for row in grid.rows[:-1]) == grid.rows[-1][n] for n in keys)


def usd(found):
    return {bar.key: Fraction(bar.pusd, USD) for bar in found.bars}
