"""A bridge as tables, rounded so that what is shown foots."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tenfold.money import divided, footed
from tenfold.tables import Column, Grid

if TYPE_CHECKING:
    from tenfold.analysis.bridge.result import Bridge

_ALL = "all"


def bars(bridge: Bridge, name: str) -> Grid:
    """Make the table of the bars, from the spend before to the spend after; rounded so that it foots.

    Args:
        bridge: The bridge.
        name: Id of the table.

    Returns:
        The table.
    """
    first, _, last = bridge.rounded()
    rows = [
        ("spend before", first, None, bridge.before.period()),
        *((bar.name, pusd, bridge.share(bar.pusd), bar.what) for bar, pusd in bridge.shown_bars()),
        ("spend after", last, None, bridge.after.period()),
    ]
    columns = (
        Column("bar", "bar"),
        Column("pusd", "USD", "pusd", bridge.decimals, sums=True),
        Column("share", "of spend before", "ratio", 1),
        Column("what", "what it is"),
    )
    note = "Above zero: the bill grew (unfavourable). Below zero: it shrank (favourable)."
    return Grid(name, f"Spend bridge, {bridge.how()}", columns, tuple(rows), note=note, has_total=True)


def movers(bridge: Bridge, name: str, *, top: int, most: int) -> Grid:
    """Make the table of the segments that moved most; each column foots as shown.

    Args:
        bridge: The bridge.
        name: Id of the table.
        top: How many segments; the others are one row.
        most: How many bars; the smaller ones are one column.

    Returns:
        The table.
    """
    own = [bar for bar in bridge.bars if bar.pusd and f"{bar.key}_pusd" in bridge.movers.columns]
    # the largest first: where a screen has no room, the smallest is left out
    own.sort(key=lambda bar: -abs(bar.pusd))
    large = own[: most if len(own) > most + 1 else len(own)]
    rest = [f"{bar.key}_pusd" for bar in own if bar not in large]
    summed: dict[str, tuple[str, list[str]]] = {
        "before": ("before", ["before_pusd"]),
        "after": ("after", ["after_pusd"]),
        "change": ("change", []),
        **{bar.key: (bar.name, [f"{bar.key}_pusd"]) for bar in own if bar in large},
        **({"other": ("other bars", rest)} if rest else {}),
    }
    rounded = bridge.movers_shown()
    kept, others = rounded[:top], rounded[top:]
    cells: dict[str, list[int]] = {}
    for key, (_, names) in summed.items():
        amounts = [sum(row[one] for one in names) for row in kept]
        cells[key] = amounts + [sum(row[one] for row in others for one in names)] * bool(others)
    cells["change"] = [after - before for before, after in zip(cells["before"], cells["after"], strict=True)]
    keys = bridge.by or ("segment",)
    blank = (None,) * (len(keys) - 1)
    heads: list[tuple[str | None, ...]] = [
        tuple(bridge.named(row, one) for one in bridge.by) or (_ALL,) for row in kept
    ]
    heads += [(f"{len(others):,} more", *blank)] * bool(others)
    rows = [(*head, *(cells[key][at] for key in summed)) for at, head in enumerate(heads)]
    columns = [
        *(Column(one, one.replace("_", " ")) for one in keys),
        *(Column(key, label, "pusd", bridge.decimals, sums=True) for key, (label, _) in summed.items()),
    ]
    total = (_ALL, *blank, *(sum(cells[key]) for key in summed))
    return Grid(name, "Segments by how far their cost moved", tuple(columns), (*rows, total), has_total=True)


def rounded_movers(bridge: Bridge) -> list[dict[str, Any]]:
    """Round every column of the movers to what is shown: that of a bar sums to the bar as shown.

    Args:
        bridge: The bridge.

    Returns:
        The rows, amounts in pUSD.
    """
    unit = 10 ** (12 - bridge.decimals)
    rows = [dict(row) for row in bridge.movers.rows(named=True)]
    totals = {f"{bar.key}_pusd": pusd // unit for bar, pusd in bridge.shown_bars()}
    for name in bridge.movers.columns[len(bridge.by) :] if rows else ():
        amounts = [int(row[name]) for row in rows]
        total = totals.get(name, divided(sum(amounts), unit))
        parts = footed([Fraction(one, unit) for one in amounts], total)
        for row, part in zip(rows, parts, strict=True):
            row[name] = part * unit
    for row in rows:
        row["change_pusd"] = row["after_pusd"] - row["before_pusd"]
    return rows
