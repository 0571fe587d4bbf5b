"""What the route lever says to people: why it has no figure, what to do first, how to verify and to undo it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from tenfold.display import counted as number_of
from tenfold.levers.base import Advice, Assumed, Bill, Status
from tenfold.levers.evals import SCORE_UNITS
from tenfold.levers.matching import matches_none
from tenfold.levers.route_evidence import REFUSED, Found
from tenfold.levers.tally import Tally
from tenfold.money import shown

NO_TABLE = "no assumption yet: add [route] with where and to_model, and evals to have a figure, to the assumptions file"
NO_WHERE = "no assumption yet: name the traffic as where of [route]"
_NO_EVALS = (
    "no scores yet: name a file of them as evals of [route]; until then this is the most there is, if the other model "
    "answered every request in its where well enough"
)
TRY_IT = Advice(
    "Name one feature and a smaller model in [route], and score that model's answers on a sample of its requests.",
    "Run this again with the scores as evals: it then says which requests may move and what that saves.",
    "Nothing to undo.",
)


# Who set the bar that scores do not reach.
_BARS = {
    "own": "the bar is min_quality of [route] ({})",
    "levels": "the bar is min_quality of the service levels ({})",
    "today": "the bar is today's model's score ({}), as no min_quality is stated; min_quality of [route] sets one",
}


def status_of(
    bill: Bill, assumed: Assumed, counts: Found, bars: Mapping[str, Mapping[str, Any]], hints: Sequence[str]
) -> tuple[Status, str]:
    """Say whether there is a figure, and why not.

    Args:
        bill: The log's own bill.
        assumed: The lever's assumptions.
        counts: The judgement, counted.
        bars: Who set the bars that scores do not reach.
        hints: What the evals name that the log does not have, and have no score of; one sentence each.

    Returns:
        Status and reason.
    """
    if not counts.in_where:
        return "nothing_eligible", matches_none(bill.session.engine, assumed.where)
    if counts.routed:
        return ("no_assumption", _NO_EVALS) if assumed.values["evals"] is None else ("ok", "")
    if counts.of("below_quality", "unlike_session", "vetoed"):
        return _refused(assumed, counts, bars)
    if counts.of("no_score"):
        return "nothing_eligible", _no_score(assumed, counts, bars, hints)
    why = max(REFUSED, key=counts.of)
    return "nothing_eligible", f"of {counts.in_where:,} requests in its where, {counts.of(why):,} are {REFUSED[why]}"


def _refused(assumed: Assumed, counts: Found, bars: Mapping[str, Mapping[str, Any]]) -> tuple[Status, str]:
    """Say why scored requests stay; it is a veto only where the service levels did it."""
    why = max(("below_quality", "unlike_session", "vetoed"), key=counts.of)
    said = f"of {counts.in_where:,} requests in its where none may move; {counts.of(why):,} are {REFUSED[why]}"
    if why == "vetoed":
        return "vetoed", said
    bar = max(_BARS, key=lambda one: bars[one]["requests"] if one in bars else 0)
    if bar not in bars:
        return "nothing_eligible", said
    row = bars[bar]
    least, most, best = (_score(row[name]) for name in ("least_e12", "most_e12", "best_e12"))
    text = _BARS[bar].format(least if least == most else f"{least} to {most}")
    reason = f"{said}, at most {best} for {assumed.values['to_model']}; {text}"
    return "vetoed" if bar == "levels" else "nothing_eligible", reason


def _no_score(assumed: Assumed, counts: Found, bars: Mapping[str, Mapping[str, Any]], hints: Sequence[str]) -> str:
    """Say whether a score is missing, or what to hold it against."""
    model, file = str(assumed.values["to_model"]), f"[route] evals ({assumed.values['evals']})"
    unheld, unscored = (bars[one]["requests"] if one in bars else 0 for one in ("no_bar", "no_score"))
    if unheld > unscored:
        return (
            f"{unheld:,} of {counts.in_where:,} requests have a score of {model} and nothing to hold it against: state "
            f"min_quality of [route], or score today's model too in {file}"
        )
    said = f"{counts.of('no_score'):,} of {counts.in_where:,} requests have no score of {model} in {file}"
    return f"{said}: {'; '.join(hints)}" if hints else said


def _score(e12: int) -> str:
    return f"{round(Decimal(e12) / SCORE_UNITS, 4).normalize():f}"


def advice(assumed: Assumed, counts: Found, counted: Tally) -> Advice:
    """Say what to do first, how to verify that it pays, and how to undo it.

    Args:
        assumed: The lever's assumptions.
        counts: The judgement, counted.
        counted: What the lever did on its own.

    Returns:
        One sentence each.
    """
    model = str(assumed.values["to_model"])
    moved = counted.by_saving()
    if not counts.routed or not moved:
        return TRY_IT
    name, requests, saving = moved[0]
    gist = f"{number_of(requests, 'request')}, {shown(saving)} before router and verifier"
    if assumed.values["evals"] is None:
        first = f"Score {model} on a sample of {name} ({gist}) and name the scores as evals of [route]."
    elif assumed.values["verifier"] is not None:
        first = f"Let {model} answer {name} first and ask again where the verifier refuses: {gist}."
    else:
        first = f"Send the requests of {name} that {model} answers well enough to it: {gist}."
    return Advice(
        first,
        f"Move one in twenty of {name} for two weeks: compare score, output tokens and cost a request with today's.",
        f"Send {name} to today's model again; its prompt cache is written anew with the first requests.",
    )
