"""Changing a bill: the log with its marks, a change tried and priced by the one pricing function, and what it did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from tenfold.display import counted, small_dollars
from tenfold.errors import AssumptionError, StepError
from tenfold.ledger.session import Session
from tenfold.levers.base import Bill, Lever
from tenfold.money import usd_text
from tenfold.prices.meters import Meter
from tenfold.store import schema, steps

COLUMNS = schema.names("requests")
# Columns that the base view adds for every lever, beside those of requests and each lever's own two marks.
SHARED_MARKS = ("next_ts", "is_rebilled")
MOVED = "moved"


class Tally(NamedTuple):
    """What a lever did to the requests in its ``where``, counted.

    Args:
        frame: One row per (fate, feature, model): requests, cached reads and writes as
            logged, reads after the change, cost before and after in pUSD.
    """

    frame: pl.DataFrame

    def requests(self, *fates: str) -> int:
        """Count requests.

        Args:
            *fates: Which fates; all without any.

        Returns:
            The number.
        """
        return self.total("requests", *fates)

    def total(self, column: str, *fates: str) -> int:
        """Sum a column exactly.

        Args:
            column: A counted column.
            *fates: Over which fates; all without any.

        Returns:
            The sum; NULL counts as 0.
        """
        rows = self.frame.filter(pl.col("fate").is_in(fates)) if fates else self.frame
        return sum(int(value) for value in rows[column] if value is not None)

    def fates(self, words: Mapping[str, str], step: str) -> list[dict[str, Any]]:
        """Write the requests that were left as they are as evidence, by reason.

        Args:
            words: Fate to what it means.
            step: SQL step that decided it.

        Returns:
            One fact per fate that occurs.
        """
        return [fact(name, self.requests(name), text, step) for name, text in words.items() if self.requests(name)]

    def left_out(self, fate: str, why: str) -> tuple[dict[str, Any], ...]:
        """List requests of a fate by feature, as traffic that a lever may not touch.

        Args:
            fate: Which.
            why: Why, for people.

        Returns:
            JSON objects, dearest first: ``why`` (the fate), ``feature``, ``requests``, ``cost_usd`` and ``text``.
        """
        sums: dict[str | None, tuple[int, int]] = {}
        for row in self.frame.filter(fate=fate).rows(named=True):
            requests, pusd = sums.get(row["feature"], (0, 0))
            sums[row["feature"]] = (requests + row["requests"], pusd + int(row["now_pusd"]))
        return tuple(
            {
                "why": fate,
                "feature": feature,
                "requests": requests,
                "cost_usd": usd_text(pusd),
                "text": ", ".join(
                    (f"{why}: {feature or 'without a feature'}", counted(requests, "request"), small_dollars(pusd))
                ),
            }
            for feature, (requests, pusd) in sorted(sums.items(), key=lambda one: (-one[1][1], one[0] or ""))
        )

    def by_saving(self) -> list[tuple[str, int, int]]:
        """List what was moved by feature (by model, for traffic without one).

        Returns:
            (Name as code, requests, saving in pUSD), the largest saving first, the largest loss last.
        """
        sums: dict[str, tuple[int, int]] = {}
        for row in self.frame.filter(fate=MOVED).rows(named=True):
            name = f"`{row['feature']}`" if row["feature"] else f"model `{row['model']}`"
            requests, saved = sums.get(name, (0, 0))
            sums[name] = (requests + row["requests"], saved + int(row["now_pusd"]) - int(row["then_pusd"]))
        return sorted(((name, *found) for name, found in sums.items()), key=lambda row: (-row[2], row[0]))


def mark_where(lever: str) -> str:
    """Name the mark of requests in a lever's ``where``."""
    return f"in_{lever}"


def mark_allowed(lever: str) -> str:
    """Name the mark of requests that the service levels leave to a lever."""
    return f"allowed_{lever}"


def own_bill(session: Session, wanted: Mapping[str, tuple[str, str]]) -> Bill:
    """Lay the marks over the log: what each lever may touch is decided once, on the requests as logged.

    Args:
        session: The priced session.
        wanted: Lever name to its checked ``where`` and its service-level condition.

    Returns:
        The log's own bill.

    Raises:
        AssumptionError: A predicate cannot be evaluated on this log (a cast that one of its values does not survive).
    """
    for name, where in ((name, where) for name, (where, _) in wanted.items() if where != "true"):
        try:
            session.engine.fetch(f"select count(*) from requests where (\n{where}\n)")
        except StepError as error:
            reason = str(error.__cause__).splitlines()[0]
            raise AssumptionError(f"[{name}] where cannot be evaluated on this log ({reason}). In: {where}") from error
    marks = {mark_where(name): where for name, (where, _) in wanted.items()}
    marks |= {mark_allowed(name): allowed for name, (_, allowed) in wanted.items()}
    steps.run(
        session.engine,
        "lever_base",
        columns=listed(COLUMNS, "requests"),
        marks="".join(f",\n    coalesce((\n{text}\n), false) as {mark}" for mark, text in marks.items()),
        marked=listed((*COLUMNS, *marks), "marked"),
    )
    return Bill(session, "lever_base", (*marks, *SHARED_MARKS))


def repriced(bill: Bill, name: str, step: str, changed: tuple[str, ...], **words: str) -> Bill:
    """Try a change on every request, price it, and keep it where the request has a price before and after.

    Args:
        bill: The bill before.
        name: View to make; ``<name>_now``, ``_tried`` and ``_then`` are taken too.
        step: The lever's own step: reads the requests priced as they are, gives ``fate`` (``touched`` where it wants
            the change), the changed columns, and each of those as it was under ``own_<column>``.
        changed: Columns of ``requests`` that the step changes.
        **words: Further views for the step.

    Returns:
        The bill after. ``<name>_then`` holds every request with its fate, ``now_pusd`` and the price tried.
    """
    session = bill.session
    if name in bill.laid:
        return replace(bill, requests=name)
    kept = tuple(column for column in (*COLUMNS, *bill.marks) if column not in changed)
    session.price(bill.requests, f"{name}_now")
    texts = {
        "priced": f"{name}_now",
        "columns": listed(kept, "p"),
        "kept": listed(kept, "judged"),
        "cost": cost("p", session.meters),
    }
    session.engine.step(f"{name}_tried", steps.filled(step, **texts, **words))
    session.price(f"{name}_tried", f"{name}_then")
    new = (f"case when fate = 'touched' and is_priced then {one} else own_{one} end as {one}" for one in changed)
    steps.run(session.engine, "lever_kept", name=name, priced=f"{name}_then", columns=",\n  ".join((*kept, *new)))
    bill.laid.add(name)
    return replace(bill, requests=name)


def tally(bill: Bill, name: str) -> Tally:
    """Count what ``repriced`` did.

    Args:
        bill: The bill before or after.
        name: The name given to ``repriced``.

    Returns:
        Counts by fate (``moved`` where the change was kept, ``no_price`` where the price tried does not exist).
    """
    sql = steps.filled("lever_tally", priced=f"{name}_then", cost_sum=cost_sum("p", bill.session.meters))
    return Tally(bill.session.engine.fetch(f"{sql}\norder by all"))


def filled_columns(bill: Bill, columns: tuple[str, ...]) -> dict[str, int]:
    """Count the billed requests of the window in which columns hold something.

    Args:
        bill: The log's own bill.
        columns: Columns of ``requests``.

    Returns:
        Column to number of requests.
    """
    counts = ", ".join(f"cast(count({column}) as bigint) as {column}" for column in columns)
    sql = f"select {counts} from priced_requests_cells where is_billed"
    return {str(name): int(value) for name, value in bill.session.engine.fetch(sql).row(0, named=True).items()}


def missing(lever: Lever, bill: Bill) -> str:
    """Say what a lever needs and the log does not have.

    Args:
        lever: The lever.
        bill: The log's own bill.

    Returns:
        One sentence naming the columns; empty where nothing is missing.
    """
    counts = filled_columns(bill, tuple(dict.fromkeys(column for group in lever.needs for column in group)))
    lacking = [" and ".join(group) for group in lever.needs if not any(counts[column] for column in group)]
    return f"no billed request of this log has {', or '.join(lacking)}" if lacking else ""


def fact(name: str, value: int | str | None, unit: str, step: str) -> dict[str, Any]:
    """Write one piece of evidence.

    Args:
        name: What was measured.
        value: The value; money as a decimal string.
        unit: Its unit.
        step: SQL step that gave it.

    Returns:
        The JSON object.
    """
    return {"name": name, "value": value, "unit": unit, "step": step}


def cost(alias: str, meters: Sequence[Meter]) -> str:
    """Write a priced request's cost as SQL: the sum of its meters, NULL where it has no price.

    Args:
        alias: Name of the priced view in the query.
        meters: Meters in use.

    Returns:
        SQL text.
    """
    return " + ".join(f"{alias}.{meter.name}_pusd" for meter in meters)


def cost_sum(alias: str, meters: Sequence[Meter]) -> str:
    """Write the exact cost of a group of priced requests as SQL: meter by meter, which plans far faster than one sum.

    Args:
        alias: Name of the priced view in the query.
        meters: Meters in use.

    Returns:
        SQL text; 0 where nothing in the group has a price.
    """
    return "\n    + ".join(f"coalesce(sum(cast({alias}.{meter.name}_pusd as decimal(38, 0))), 0)" for meter in meters)


def listed(columns: tuple[str, ...], alias: str) -> str:
    """Write an explicit column list.

    Args:
        columns: Column names.
        alias: Name of the view in the query.

    Returns:
        SQL text.
    """
    return ",\n    ".join(f"{alias}.{column}" for column in columns)
