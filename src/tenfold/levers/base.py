"""What a lever is: a function from a bill to a bill, with what it needs, assumes and forbids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

from tenfold.ledger.session import Session
from tenfold.levers.values import Range, Reader, Value
from tenfold.slo import Slo

if TYPE_CHECKING:
    from tenfold.levers.sites import Sites
    from tenfold.levers.tally import Tally

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
    HOSTING = 7


class Assumption(NamedTuple):
    """A value that a lever takes from the assumptions file.

    Args:
        name: Key in the lever's table.
        default: Value where the key is not written.
        unit: Unit, or what the words mean.
        source: Where the default comes from.
        conservative: Whether the default errs towards a smaller saving.
        read: Reader of a written value.
        falls: Whether a larger value saves less, so that a range's low scenario is its high end.
    """

    name: str
    default: Value
    unit: str
    source: str
    conservative: bool
    read: Reader
    falls: bool = False


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
        falling: Keys of ranges of which a larger value saves less.
        scenario: Which end of the ranges holds; low is the one that saves least.
    """

    values: Mapping[str, Value]
    stated: frozenset[str]
    where: str | None
    effort_days: Decimal
    running_pusd_per_month: int
    has_table: bool
    falling: frozenset[str] = frozenset()
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
        """Give a range's value in this scenario: low takes the end that saves least.

        Args:
            name: Key of a range.

        Returns:
            The value.
        """
        value = self.values[name]
        assert isinstance(value, Range)
        if name in self.falling:
            value = Range(*reversed(value))
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
        requests: View of requests, or of versions of them: ``rid`` (the request), ``call_id`` (the call: a request that
            became two calls has two), ``ts``, ``price_key``, the counts, ``cost_pusd``, what the levers judged by.
        columns: Its columns.
        fixed_pusd: Fixed charges over the window, in pUSD.
        filled: Column to the number of billed requests in which it holds something, as far as counted.
        slo: The service levels.
        sites: Where self-hosted models run, and what they would cost elsewhere; None without a fleet.
        settled: What the lever that made this bill has a changed request cost: SQL of ``new_pusd`` and ``own_pusd``; as
            priced for most.
    """

    session: Session
    requests: str
    columns: tuple[str, ...]
    fixed_pusd: int = 0
    settled: str = "new_pusd"
    filled: Mapping[str, int] = field(default_factory=dict[str, int])
    slo: Slo = field(default_factory=Slo)
    sites: Sites | None = None


class Advice(NamedTuple):
    """One plain sentence each: what to do first, how to check that it pays, how to take it back."""

    first_action: str
    verify: str
    undo: str


class Judged(NamedTuple):
    """Which requests a lever wants to change, decided once, on the log as it was billed.

    Args:
        view: View or table of ``rid`` and ``fate`` (``touched``, why not, NULL outside its ``where``), the knobs, and
            ``fee_pusd`` where it charges by the request (also for requests that it leaves as they are).
        knobs: Columns of the view that its change needs on every version of a request.
        lasting: Those of the knobs that levers after it read too; the others are dropped once it has acted.
        aside: SQL over the knobs that tells requests which it changes but does not want for itself: no rival's claim to
            them is settled against it.
        has_fee: Whether the view has ``fee_pusd``.
        is_ceiling: Whether its figure is only the most there could be.
        group: Knob that tells groups of requests apart, where its change to one request depends on what the levers
            before it did to others of its group (a replay); empty where it does not.
        is_ranged: Whether its change differs by scenario, whatever its assumptions' ranges are.
        settings: Values that it chose itself, in place of those assumed.
        evidence: Facts of the judgement, beside those of the look.
        holdout_pusd: What a policy that was searched for on the earlier part of the log saves on the later.
    """

    view: str
    knobs: tuple[str, ...] = ()
    lasting: tuple[str, ...] = ()
    aside: str = "false"
    has_fee: bool = False
    is_ceiling: bool = False
    group: str = ""
    is_ranged: bool = False
    settings: Mapping[str, Value] = MappingProxyType({})
    evidence: tuple[dict[str, Any], ...] = ()
    holdout_pusd: int | None = None

    @property
    def is_replayed(self) -> bool:
        """Whether its change to one request depends on what was done to others."""
        return bool(self.group)


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
        notes: What its files name that the log does not have, one sentence each.
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
    notes: tuple[str, ...] = ()


class Change(Protocol):
    """A change to a bill: what a lever does to requests, whoever chose them."""

    @property
    def changed(self) -> tuple[str, ...]:
        """Columns that the change gives anew: counts, ``price_key``, ``set_pusd`` (a measured cost)."""
        ...

    def apply(self, bill: Bill, assumed: Assumed) -> Bill:
        """Change the bill.

        Args:
            bill: Versions of requests that are to be changed, with the knobs that were judged for them.
            assumed: The assumptions.

        Returns:
            The bill after: a view of the same rows and columns (more rows where a request becomes several calls, fewer
            where it goes), with ``new_<column>`` for every column of ``changed``; and its fixed charges.
        """
        ...


@runtime_checkable
class Marking(Protocol):
    """A lever that reads more off each request than whether it may touch it: a service level's number, say."""

    def marks(self, slo: Slo, assumed: Assumed) -> Mapping[str, str]:
        """Write what it reads off a request.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            Column of ``lever_base`` (begins with the lever's name) to a SQL expression over requests.
        """
        ...


@runtime_checkable
class Meeting(Protocol):
    """A lever whose saving others change without taking its traffic."""

    meets: tuple[str, ...]
    """Names of those levers."""


class Lever(Change, Protocol):
    """One way to shrink a bill. Each is one module with an instance named in ``LEVERS``."""

    name: str
    number: int
    stage: Stage
    needs: tuple[tuple[str, ...], ...]
    """Columns without which nothing can be said: of each group, one must hold something."""
    columns: tuple[str, ...]
    """Columns of requests that it judges by, beside its marks, the counts, owner, time and price key."""
    assumptions: tuple[Assumption, ...]
    conflicts: tuple[str, ...]
    """Levers that want the same traffic: a request goes to one of them."""
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

    def judge(self, bill: Bill, assumed: Assumed) -> Judged | Look:
        """Decide which requests the lever wants to change.

        Args:
            bill: The log's own bill, one row a request of the window.
            assumed: Its assumptions.

        Returns:
            What it judged, or the whole answer where it has no figure.
        """
        ...

    def look(self, bill: Bill, assumed: Assumed, counted: Tally) -> Look:
        """Say what the lever found.

        Args:
            bill: The log's own bill.
            assumed: Its assumptions.
            counted: What it did on its own, counted.

        Returns:
            Status, facts and advice.
        """
        ...


class Unvetoed:
    """A lever that the service levels keep from no request beforehand: it has no latency model, or judges it itself."""

    def allowed(self, slo: Slo, assumed: Assumed) -> str:  # noqa: ARG002 -- the protocol's arguments
        """Write which requests the service levels leave to this lever: all.

        Args:
            slo: The service levels.
            assumed: Its assumptions.

        Returns:
            A SQL condition.
        """
        return "true"
