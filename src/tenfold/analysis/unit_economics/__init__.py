"""What one unit of work costs: a successful outcome first, then a request, a session, a user, a customer, a token.

Cost per successful outcome is the cost of all attempts, failed and retried ones included, over the outcomes that the
caller judged good (FinOps practice for AI). Only requests of which the outcome is known are in it; a failed attempt, or
one that was tried again, is known to be no good outcome, and what else a session (a trace, where there is no session)
holds in which an outcome was judged was done for that one. Where the log has no ``outcome_ok`` at all, requests that
succeeded stand in, and every text says so. A request without a session is in no figure by session, one without a price
in no figure at all; the share that is left out stands beside each. Fractions are exact; None is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tenfold.analysis.unit_economics.result import CUSTOMER_TAGS, UnitEconomics
from tenfold.analysis.unit_economics.units import KINDS, Basis, TokenPrice, UnitCost, Units, dollars_each
from tenfold.ledger import Ledger, Session
from tenfold.ledger.breakdowns import breakdowns, columns_sql, cost_sql, failed_sql, names_sql
from tenfold.ledger.periods import month_of_request
from tenfold.store import steps
from tenfold.store.database import quoted

__all__ = [
    "CUSTOMER_TAGS",
    "Basis",
    "TokenPrice",
    "UnitCost",
    "UnitEconomics",
    "Units",
    "dollars_each",
    "unit_economics",
]


def unit_economics(priced: Ledger, by: str | Sequence[str] = ()) -> UnitEconomics:
    """Divide a bill by what was done with it.

    Args:
        priced: The ledger; its window is what is measured, its zone cuts the months.
        by: Columns of ``requests``; each gives a breakdown of its own.

    Returns:
        Unit costs of the whole, of each month and of each value of the columns.

    Raises:
        ColumnError: A column does not exist; names the near match.
    """
    names = breakdowns(by)
    with priced.session() as session:
        tag = _customer_tag(session)
        frame = _sums(session, names, tag)
    rows = list(frame.rows(named=True))
    whole = next(row for row in rows if all(row[f"all_{name}"] for name in ("month", *names)))
    basis = _basis(whole)

    def of(name: str) -> list[tuple[Any, Units]]:
        found = [row for row in rows if not row[f"all_{name}"]]
        return [(row[name], Units(_counts(row, names), basis)) for row in found]

    return UnitEconomics(
        total=Units(_counts(whole, names), basis),
        months=tuple(sorted((one for one in of("month") if one[0] is not None), key=lambda one: one[0])),
        groups={
            name: tuple(sorted(of(name), key=lambda one: (-one[1].spend_pusd, one[0] is None, str(one[0]))))
            for name in names
        },
        customer_tag=tag,
        zone=priced.window.zone,
    )


def _customer_tag(session: Session) -> str | None:
    """Choose the first tag that names a customer in the window's requests."""
    told = ", ".join(f"count(tags[{quoted(tag)}]) as {tag}" for tag in CUSTOMER_TAGS)
    found = session.engine.fetch(f"select {told} from priced_requests_cells where tags is not null").row(0, named=True)
    return next((tag for tag in CUSTOMER_TAGS if found[tag]), None)


def _sums(session: Session, names: Sequence[str], tag: str | None) -> pl.DataFrame:
    used = {meter.name for meter in session.meters}
    groups = [(key, [name for name in meters if name in used]) for key, _, meters in KINDS]
    kinds = "".join(
        f"case when p.is_priced then {' + '.join(f'p.{name}_units' for name in meters)} end as {key}_units,\n    "
        f"{cost_sql(session, meters)} as {key}_pusd,\n    "
        for key, meters in groups
    )
    kind_sums = "".join(
        f"cast(coalesce(sum(case when is_costed then {key}_units end), 0) as bigint) as {key}_units,\n  "
        f"coalesce(sum(case when is_costed then cast({key}_pusd as decimal(38, 0)) end), 0) as {key}_pusd,\n  "
        for key, _ in groups
    )
    sql = steps.filled(
        "unit_sums",
        priced="priced_requests",
        failed=failed_sql(),
        month=month_of_request(session.window.zone, "p"),
        dimensions=columns_sql(names),
        names=names_sql(names),
        grouped="".join(f"grouping({name}) as all_{name},\n  " for name in ("month", *names)),
        cost=cost_sql(session),
        customer="cast(null as varchar(1))" if tag is None else f"p.tags[{quoted(tag)}]",
        kinds=kinds,
        kind_sums=kind_sums,
        sets=", ".join(["()", "(month)", *(f"({name})" for name in names)]),
    )
    return session.engine.fetch(sql)


def _counts(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    without = {"month", *names}
    return {name: int(value) for name, value in row.items() if name not in without and not name.startswith("all_")}


def _basis(whole: Mapping[str, Any]) -> Basis | None:
    if whole["judged_told"]:
        return "outcome_ok"
    return "status" if whole["status_told"] else None
