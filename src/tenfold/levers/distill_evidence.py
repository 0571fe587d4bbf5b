"""What the distill lever found, as facts: gross saving, fixed charges, break-even, drift, and who is eligible."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import polars as pl

from tenfold import display
from tenfold.ledger.session import DAYS_PER_MONTH
from tenfold.levers.base import Advice, Assumed, Bill, Look, Status
from tenfold.levers.distill_charges import Charges
from tenfold.levers.evals import Evals
from tenfold.levers.matching import matches_none
from tenfold.levers.scoring import unmatched
from tenfold.levers.tally import MOVED, Tally, fact
from tenfold.money import shown, usd_text
from tenfold.store import steps

# Months between trainings that the drift table shows.
DRIFT_MONTHS = (1, 3, 6)
# Below this many days of log nothing is said by the month.
_LEAST_DAYS = 7
# Features that are listed, those with the most requests first.
_MOST_FEATURES = 10
_FOUND, _JUDGED = "lever_distill_found", "lever_distill_judged"
_FACTS = {
    "no_score": "requests without a score of the student: left as they are",
    "below_quality": "requests whose score is too low",
    "unpriced": "requests without a price now: left as they are",
    "no_price": "requests that use what the student has no rate for: left as they are",
}


class Found(NamedTuple):
    """A judgement, counted.

    Args:
        frame: Rows of ``lever_distill_found``.
    """

    frame: pl.DataFrame

    def of(self, *verdicts: str) -> int:
        """Count requests in where by verdict."""
        return int(self.frame.filter(pl.col("verdict").is_in(verdicts))["requests"].sum() or 0)

    @property
    def in_where(self) -> int:
        """Billed requests in where."""
        return int(self.frame.filter(pl.col("verdict").is_not_null())["requests"].sum() or 0)

    @property
    def moved(self) -> int:
        """Requests that the student answers."""
        return self.of("routed")

    @property
    def now_pusd(self) -> int:
        """What those cost now."""
        return sum(int(value) for value in self.frame.filter(verdict="routed")["now_pusd"])

    @property
    def forfeited(self) -> int:
        """Requests that stay with today's model and find no cache after a turn at the student."""
        return int(self.frame.filter(way="forfeited")["requests"].sum() or 0)

    @property
    def unknown_reads(self) -> int:
        """Cached reads of requests that no session says anything about."""
        return int(self.frame.filter(verdict="routed")["unknown_read_tokens"].sum() or 0)


def found(bill: Bill, judged: str) -> Found:
    """Count a judgement.

    Args:
        bill: The log's own bill.
        judged: View of what was judged.

    Returns:
        The counts.
    """
    return Found(bill.session.engine.fetch(f"{steps.filled(_FOUND, judged=judged)}\norder by all nulls last"))


def without(status: Literal["no_assumption", "not_measurable"], why: str) -> Look:
    """Answer without a figure.

    Args:
        status: The status.
        why: The reason.

    Returns:
        The whole answer.
    """
    return Look(status, why, "modelled", None, None, (), _ASK, applies=False)


def look(bill: Bill, assumed: Assumed, counted: Tally, counts: Found, own: Charges, evals: Evals) -> Look:
    """Say what a student comes to.

    Args:
        bill: The log's own bill.
        assumed: The assumptions.
        counted: What it did on its own, counted; without fixed charges.
        counts: The judgement, counted.
        own: Its fixed charges.
        evals: The evals; without rows where there is no file.

    Returns:
        Status, facts and advice.
    """
    status, reason = _status(bill, assumed, counts)
    gross = counted.total("now_pusd", MOVED) - counted.total("then_pusd", MOVED)
    return Look(
        status,
        reason,
        "measured" if assumed.values["evals"] is not None else "modelled",
        counted.total("now_pusd", MOVED),
        None,
        (
            *_money(counted, counts, own, gross),
            *_pays(counts, own, gross),
            *_eligible(counts, own),
            *_scored(bill, evals),
            *[fact(name, counts.of(name), text, _JUDGED) for name, text in _FACTS.items() if counts.of(name)],
        ),
        _advice(counts, own, gross),
        applies=status == "ok",
        left_out=counted.left_out("below_quality", "left out by the quality that is asked for"),
    )


def _status(bill: Bill, assumed: Assumed, counts: Found) -> tuple[Status, str]:
    if counts.moved:
        return "ok", ""
    if not counts.in_where:
        return "nothing_eligible", matches_none(bill.session.engine, assumed.where)
    largest = max(_FACTS, key=counts.of)
    said = f"of {counts.in_where:,} requests in its where none may move; {counts.of(largest):,} are {_FACTS[largest]}"
    return "vetoed" if largest == "below_quality" else "nothing_eligible", said


def _money(counted: Tally, counts: Found, own: Charges, gross: int) -> list[dict[str, Any]]:
    facts = [
        fact("requests_in_where", counts.in_where, "requests", _JUDGED),
        fact("requests_moved", counts.moved, "requests", _JUDGED),
        fact("cost_now_usd", usd_text(counted.total("now_pusd", MOVED)), "USD", "priced"),
        fact("cost_moved_usd", usd_text(counted.total("then_pusd", MOVED)), "USD at the student's rates", "priced"),
        fact("gross_saving_usd", usd_text(gross), "USD before fixed charges", "priced"),
        fact("hosting_usd", usd_text(round(own.hosting)), f"USD for {display.number(own.hours, 1)} hours", _WINDOW),
        fact("training_usd", usd_text(round(own.in_window(own.training))), _share(own), _WINDOW),
        fact("labels_usd", usd_text(round(own.in_window(own.labels))), _share(own), _WINDOW),
        fact("net_saving_usd", usd_text(gross - own.total), "USD after fixed charges", "priced"),
    ]
    if counts.forfeited:
        what = "requests that stay and find no cache after a turn at the student: their loss is in the gross saving"
        facts.append(fact("forfeited", counts.forfeited, what, _JUDGED))
    return facts


def _share(own: Charges) -> str:
    return f"USD: {own.days:,} of {own.retrain_days} days until the next"


def _pays(counts: Found, own: Charges, gross: int) -> list[dict[str, Any]]:
    """Say from which traffic and after which time it pays, and what becomes of it as traffic drifts."""
    facts: list[dict[str, Any]] = []
    if own.days >= _LEAST_DAYS:
        least, months = own.break_even(gross, counts.moved), own.payback_months(gross)
        never = "never: a request saves no more than its hosting costs"
        facts = [
            fact(
                "break_even_requests_per_month",
                None if least is None else display.number(least, 1),
                never if least is None else "requests a month that pay training and labels, net of hosting a request",
                "F / (mean saving - hosting per request)",
            ),
            fact(
                "payback_months",
                None if months is None else display.number(months, 1),
                never if months is None else "months until the first training and its labels are paid",
                _WINDOW,
            ),
        ]
    for months in DRIFT_MONTHS:
        net = usd_text(gross - own.retrained_every(months))
        every = display.counted(months, "month")
        facts.append(
            fact(f"net_if_retrained_every_{months}_months_usd", net, f"USD, if trained every {every}", _WINDOW)
        )
    return facts


def _eligible(counts: Found, own: Charges) -> list[dict[str, Any]]:
    """Say by feature how many requests a month move and how many different answers they have, where known."""
    if own.days < _LEAST_DAYS:
        return []
    rows = sorted(
        counts.frame.filter(verdict="routed").rows(named=True), key=lambda row: (-row["requests"], row["feature"] or "")
    )
    return [
        fact(
            f"requests_per_month of {row['feature'] or 'no feature'}",
            display.number(row["requests"] * DAYS_PER_MONTH / own.days, 0),
            f"requests a month; {_answers(row)}",
            _FOUND,
        )
        for row in rows[:_MOST_FEATURES]
    ]


def _answers(row: dict[str, Any]) -> str:
    parts: list[str] = []
    if row["known_answers"]:
        parts.append(f"{row['distinct_answers']:,} different answers in {row['known_answers']:,}")
    if row["structured"] is not None:
        parts.append(f"{row['structured']:,} of {row['requests']:,} ask for a fixed form")
    return ", ".join(parts) or "how many different answers there are is not known"


def _scored(bill: Bill, evals: Evals) -> list[dict[str, Any]]:
    if not len(evals.frame):
        return []
    lacking = unmatched(bill.session.engine, evals)
    facts = [fact("evals_rows", len(evals.frame), f"rows of {evals.file.name}", "evals")]
    if lacking.request_ids or lacking.features:
        unknown = lacking.request_ids + len(lacking.features)
        facts.append(fact("evals_unmatched", unknown, "ids and features that the log does not have", "evals"))
    return facts


def _advice(counts: Found, own: Charges, gross: int) -> Advice:
    if not counts.moved:
        return _ASK
    rows = counts.frame.filter(verdict="routed").rows(named=True)
    largest = max(rows, key=lambda row: (row["now_pusd"], row["feature"] or ""))
    name = f"`{largest['feature']}`" if largest["feature"] else "the traffic without a feature"
    gist = f"{display.counted(largest['requests'], 'request')} for {shown(int(largest['now_pusd']))} now"
    net = gross - own.total
    if net <= 0:
        first = (
            f"Do not train a student for this traffic: it saves {shown(gross)} and costs {shown(own.total)} to "
            "train and host over this log."
        )
    else:
        first = f"Collect answers of today's model to {name} ({gist}) and train a student on them; net {shown(net)}."
    return Advice(
        first,
        f"Score it on a held-out sample of {name}, then send it one in twenty for two weeks: compare score, output "
        "tokens and cost a request, hosting included.",
        f"Send {name} to today's model again and stop the hosting; what training cost is spent.",
    )


_WINDOW = "lever_distill_window"
_ASK = Advice(
    "Name one feature of many requests and few kinds of answers in [distill], with the rates of a model that you could "
    "host and train for it.",
    "Run this again: it says from how many requests a month that pays.",
    "Nothing to undo.",
)
