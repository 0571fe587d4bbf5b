"""A quarter of 100,000,000 requests: growth with size, peak memory, and re-pricing through the cube."""

from __future__ import annotations

import tenfold as tf
from benchmarks import data
from benchmarks.attribution import BY, VERSIONS, attribute, check, memory
from benchmarks.measuring import Measured, cpu, side_by_side

DATA = data.DATA


def measure(rows: int) -> list[Measured]:
    """Compare with a tenth of the rows, and the cube with a scan.

    Args:
        rows: Requests; a tenth of them is the other size.

    Returns:
        The lines of the table.
    """
    db, tenth, card = data.store(rows), data.store(rows // 10), data.book(VERSIONS)
    ledger, fewer = (tf.attribute(tf.open_log(file), card) for file in (db, tenth))
    few, many = side_by_side(lambda: attribute(fewer), lambda: attribute(ledger))
    with ledger.session() as session:
        check(session, rows)
        sums = ", ".join(f"sum({meter.column}) as {meter.name}" for meter in session.meters)
        scan = cpu(lambda: session.engine.fetch(f"select {sums}, max(ts) as last from requests"))
        cube = cpu(lambda: session.totals(BY))
        cells = session.engine.fetch("select count(*) as cells from cube")["cells"][0]
    return [
        Measured("at_scale/growth", f"{rows:,} requests / {rows // 10:,} of them", many / few, 10.5, rows=rows, seconds=many),
        memory(db, "at_scale/memory", rows),
        Measured("at_scale/cube", "re-pricing through the cube / a bare scan of six token columns and the time", cube / scan, 0.25,
                 rows=rows, seconds=cube, note=f"{cells:,} cells"),
    ]  # fmt: skip
