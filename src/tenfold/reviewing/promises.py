"""The plan recorded on the quarter before, held against this one; and the command that records this quarter's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenfold.display import minute
from tenfold.errors import AssumptionError
from tenfold.ledger import Ledger
from tenfold.planning import Recorded, Tracked, track
from tenfold.planning.recording import quoted
from tenfold.reviewing.quarter import Quarter


@dataclass(frozen=True, slots=True)
class Followed:
    """A recorded plan and what came of it.

    Args:
        plan: The plan.
        kept: Promised against realised; None where it cannot be held to anything.
        why_not: Why it cannot; empty where it can.
        others: Other recorded plans, each with the reason why it is not the one.
        notes: What is to be known about the record.
    """

    plan: Recorded
    kept: Tracked | None
    why_not: str
    others: tuple[str, ...]
    notes: tuple[str, ...]


def followed(plans: Sequence[Recorded], ledger: Ledger, quarter: Quarter) -> Followed | None:
    """Hold the last plan recorded on the quarter before against a quarter.

    A plan is of the quarter in which its window ends, by the days of its own zone.

    Args:
        plans: The recorded plans, the earliest first.
        ledger: The quarter, priced.
        quarter: The quarter.

    Returns:
        Promised against realised; None where no plan was recorded on the quarter before.
    """
    of_it = of_quarter(plans, quarter.previous)
    if not of_it:
        return None
    chosen = of_it[-1]
    try:
        kept, why_not = track(chosen.document, ledger), ""
    except AssumptionError as error:
        kept, why_not = None, str(error)
    notes: list[str] = []
    if chosen.recorded_at >= quarter.bounds[1]:
        notes.append("it was recorded after this quarter had ended: no promise that was made before its outcome")
    if chosen.zone != quarter.zone:
        notes.append(f"its days are cut in {chosen.zone}, those of this review in {quarter.zone}")
    others = tuple(f"{named(one)}: {_why_other(one, of_it, quarter)}" for one in plans if one is not chosen)
    return Followed(chosen, kept, why_not, others, tuple(notes))


def of_quarter(plans: Sequence[Recorded], quarter: Quarter) -> list[Recorded]:
    """Take the plans whose window ends in a quarter.

    Args:
        plans: The recorded plans.
        quarter: The quarter.

    Returns:
        Those of them, in their order.
    """
    return [one for one in plans if one.last_day and quarter.first_day <= one.last_day <= quarter.last_day]


def named(plan: Recorded) -> str:
    """Name a recorded plan with its window and date.

    Args:
        plan: The plan.

    Returns:
        Text such as ``"2026Q2" (2026-04-01 to 2026-06-30 (UTC), recorded 2026-07-03 09:30 UTC)``.
    """
    return f'"{quoted(plan.name)}" ({plan.window}, recorded {minute(plan.recorded_at)})'


def how_to_record(quarter: Quarter) -> str:
    """Write the command that records a quarter's plan.

    Args:
        quarter: The quarter.

    Returns:
        The command, in backticks.
    """
    since, until = (bound.date() for bound in quarter.bounds)
    zone = "" if quarter.zone == "UTC" else f" --zone {quarter.zone}"
    return f"`tenfold levers --db FILE --from {since} --to {until}{zone} --assume FILE --record {quarter.name}`"


def _why_other(plan: Recorded, of_it: Sequence[Recorded], quarter: Quarter) -> str:
    if plan in of_it:
        return "recorded earlier"
    if plan.last_day is None:
        return "made on a log without times"
    if plan.last_day < quarter.previous.first_day:
        return f"of a window before {quarter.previous.title}"
    return f"its window reaches into {quarter.title}" if plan.last_day <= quarter.last_day else "of a later window"
