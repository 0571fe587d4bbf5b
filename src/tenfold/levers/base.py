"""What a lever is: a function from a bill to a bill, with what it needs, assumes and forbids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from tenfold.ledger.session import Session
from tenfold.levers.values import Range, Reader, Value
from tenfold.slo import Slo

Status: TypeAlias = Literal["ok", "no_assumption", "nothing_eligible", "vetoed", "excluded", "not_measurable"]
Label: TypeAlias = Literal["exact", "replayed", "measured", "modelled", "ceiling"]
Scenario: TypeAlias = Literal["low", "mid", "high"]


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
        laid: Versions of these requests that the session already holds; one log's bills share it.
    """

    session: Session
    requests: str
    marks: tuple[str, ...]
    fixed_pusd: int = 0
    laid: set[str] = field(default_factory=set[str])


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
        left_out: Traffic in its ``where`` that it may not touch, dearest first: ``why``, ``feature``, ``requests``,
            ``cost_usd`` and a ``text`` for people.
    """

    status: Status
    reason: str
    label: Label
    addressed_pusd: int | None
    as_billed_pusd: int | None
    evidence: tuple[dict[str, Any], ...]
    advice: Advice
    applies: bool
    left_out: tuple[dict[str, Any], ...] = ()


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
