"""What a lever is: a function from a bill to a bill, with what it needs, assumes and forbids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

import polars as pl

from tenfold.ledger.session import Session
from tenfold.levers.values import Range, Reader, Value
from tenfold.prices.meters import METER_NAMES
from tenfold.slo import Slo
from tenfold.store import schema, steps

COLUMNS = schema.names("requests")
Status: TypeAlias = Literal["ok", "no_assumption", "nothing_eligible", "vetoed", "excluded", "not_measurable"]
Label: TypeAlias = Literal["exact", "replayed", "measured", "modelled", "ceiling"]
Scenario: TypeAlias = Literal["low", "mid", "high"]
# Columns that the base view adds beside those of requests: they say what a lever may touch, as logged.
NEXT_TS = "next_ts"
TOUCHED, MOVED = "touched", "moved"


class Stage(IntEnum):
    """The order in which levers act on a request, whatever the order in which a plan lists them."""

    REMOVE = 1
    MODEL = 2
    PROMPT = 3
    OUTPUT = 4
    PREFIX = 5
    TIER = 6


class Assumption(NamedTuple):
    """A value that a lever takes from the assumptions file.

    Args:
        name: Key in the lever's table.
        default: Value where the key is not written.
        unit: Unit, or what the words mean.
        source: Where the default comes from.
        conservative: Whether the default errs towards a smaller saving.
        read: Reader of a written value.
    """

    name: str
    default: Value
    unit: str
    source: str
    conservative: bool
    read: Reader


@dataclass(frozen=True, slots=True)
class Assumed:
    """What is assumed for one lever.

    Args:
        values: Every key of the lever with its value, written or default.
        stated: Keys that were written.
        where: Checked predicate, or None for the lever's default traffic.
        effort_days: Working days to put the lever in place.
        running_pusd_per_month: What it costs to keep it in place, in pUSD a month.
        has_table: Whether the assumptions file has the lever's table at all.
        scenario: Which end of the ranges holds; low is the one that saves least.
    """

    values: Mapping[str, Value]
    stated: frozenset[str]
    where: str | None
    effort_days: Decimal
    running_pusd_per_month: int
    has_table: bool
    scenario: Scenario = "mid"

    def at(self, scenario: Scenario) -> Assumed:
        """Take another scenario.

        Args:
            scenario: Which.

        Returns:
            The same assumptions at that end of their ranges.
        """
        return replace(self, scenario=scenario)

    def number(self, name: str) -> Decimal:
        """Give a range's value in this scenario; low is the range's low end.

        Args:
            name: Key of a range.

        Returns:
            The value.
        """
        value = self.values[name]
        assert isinstance(value, Range)
        return getattr(value, self.scenario)

    @property
    def has_range(self) -> bool:
        """Whether the low or high scenario differs from the middle one."""
        return any(isinstance(value, Range) and len(set(value)) > 1 for value in self.values.values())


@dataclass(frozen=True, slots=True)
class Bill:
    """A bill: requests, the card they are priced by (the session's), and charges that hang on no request.

    Args:
        session: Session whose one pricing function prices every version of the requests.
        requests: View with the columns of ``requests`` and the marks.
        marks: Further columns that every version carries along.
        fixed_pusd: Fixed charges over the window, in pUSD.
    """

    session: Session
    requests: str
    marks: tuple[str, ...]
    fixed_pusd: int = 0


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

    def largest(self) -> tuple[str, int, int] | None:
        """Find the feature (or, for traffic without one, the model) with the largest saving.

        Returns:
            Its name as code, its requests and its saving in pUSD; None where nothing was moved.
        """
        sums: dict[str, tuple[int, int]] = {}
        for row in self.frame.filter(fate=MOVED).rows(named=True):
            name = f"`{row['feature']}`" if row["feature"] else f"model `{row['model']}`"
            requests, saved = sums.get(name, (0, 0))
            sums[name] = (requests + row["requests"], saved + int(row["now_pusd"]) - int(row["then_pusd"]))
        found = max(sums, key=lambda name: (abs(sums[name][1]), name), default=None)
        return None if found is None else (found, *sums[found])


class Advice(NamedTuple):
    """One plain sentence each: what to do first, how to check that it pays, how to take it back."""

    first_action: str
    verify: str
    undo: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a lever finds on a log, before it meets the others.

    Args:
        status: Whether it has a figure, and why not.
        reason: The why, in one sentence; empty for ``ok``.
        label: What kind of figure it is.
        addressed_pusd: What the requests that it changes cost now.
        as_billed_pusd: What was already saved (positive) or lost; None for levers that have no past.
        evidence: Measured facts, each with its unit and the SQL step that gave it.
        advice: What to do first, how to verify, how to undo.
        applies: Whether its change to the bill is a figure at all (``ok``, or a ceiling).
    """

    status: Status
    reason: str
    label: Label
    addressed_pusd: int | None
    as_billed_pusd: int | None
    evidence: tuple[dict[str, Any], ...]
    advice: Advice
    applies: bool


class Lever(Protocol):
    """One way to shrink a bill. Each is one module with an instance named in ``LEVERS``."""

    name: str
    number: int
    stage: Stage
    needs: tuple[tuple[str, ...], ...]
    """Columns without which nothing can be said: of each group, one must hold something."""
    assumptions: tuple[Assumption, ...]
    conflicts: tuple[str, ...]
    """Levers that want the same traffic: at most one of them is in a plan."""
    effort_days: Decimal
    risk: Literal["low", "medium", "high"]
    reversible: bool
    rule_of_thumb: str
    slo_effect: str

    def allowed(self, slo: Slo, assumed: Assumed) -> str:
        """Write which requests the service levels leave to this lever.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            A SQL condition over requests, never NULL.
        """
        ...

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill.

        Args:
            bill: The bill before.
            assumed: Its assumptions.

        Returns:
            The bill after: a view over the same requests, in the same columns.
        """
        ...

    def look(self, bill: Bill, assumed: Assumed) -> Look:
        """Say what the lever finds on the log as it was billed.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.

        Returns:
            Status, facts and advice.
        """
        ...


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
    """
    marks = {mark_where(name): where for name, (where, _) in wanted.items()}
    marks |= {mark_allowed(name): allowed for name, (_, allowed) in wanted.items()}
    steps.run(
        session.engine,
        "lever_base",
        columns=listed(COLUMNS, "requests"),
        marks="".join(f",\n    coalesce((\n{text}\n), false) as {mark}" for mark, text in marks.items()),
        marked=listed((*COLUMNS, *marks), "marked"),
    )
    return Bill(session, "lever_base", (*marks, NEXT_TS))


def repriced(bill: Bill, name: str, step: str, changed: tuple[str, ...], **words: str) -> Bill:
    """Try a change on every request, price it, and keep it where the request has a price before and after.

    Args:
        bill: The bill before.
        name: View to make; ``<name>_now``, ``_tried`` and ``_then`` are taken too.
        step: The lever's own step: reads the requests priced as they are, gives ``fate`` (``touched`` where it wants the
            change), the changed columns, and each of those as it was under ``own_<column>``.
        changed: Columns of ``requests`` that the step changes.
        **words: Further views for the step.

    Returns:
        The bill after. ``<name>_then`` holds every request with its fate, ``now_pusd`` and the price tried.
    """
    session = bill.session
    kept = tuple(column for column in (*COLUMNS, *bill.marks) if column not in changed)
    session.price(bill.requests, f"{name}_now")
    texts = {"priced": f"{name}_now", "columns": listed(kept, "p"), "kept": listed(kept, "judged"), "cost": cost("p")}
    steps.run(session.engine, step, name=f"{name}_tried", **texts, **words)
    session.price(f"{name}_tried", f"{name}_then")
    new = (f"case when fate = 'touched' and is_priced then {one} else own_{one} end as {one}" for one in changed)
    steps.run(session.engine, "lever_kept", name=name, priced=f"{name}_then", columns=",\n  ".join((*kept, *new)))
    return replace(bill, requests=name)


def tally(bill: Bill, name: str) -> Tally:
    """Count what ``repriced`` did.

    Args:
        bill: The bill before or after.
        name: The name given to ``repriced``.

    Returns:
        Counts by fate (``moved`` where the change was kept, ``no_price`` where the price tried does not exist).
    """
    sql = steps.filled("lever_tally", priced=f"{name}_then", cost=cost("p"))
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


def cost(alias: str) -> str:
    """Write a priced request's cost as SQL: the sum of its meters, NULL where it has no price.

    Args:
        alias: Name of the priced view in the query.

    Returns:
        SQL text.
    """
    return " + ".join(f"{alias}.{meter}_pusd" for meter in METER_NAMES)


def listed(columns: tuple[str, ...], alias: str) -> str:
    """Write an explicit column list.

    Args:
        columns: Column names.
        alias: Name of the view in the query.

    Returns:
        SQL text.
    """
    return ",\n    ".join(f"{alias}.{column}" for column in columns)
