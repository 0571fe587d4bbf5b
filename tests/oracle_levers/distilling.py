"""Lever 7: a student trained for the traffic, with its own price row and fixed charges."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from fractions import Fraction

from oracle_book import Book, instant

from oracle_levers.core import Bill, Pricer, Request, Table, Version, in_where, number, pusd, rhe, start_us
from oracle_levers.routing import Judged, forfeited, kept_reads, retold
from oracle_levers.scoring import score, threshold

STUDENT = {"provider": "student", "model": "student", "service_tier": "standard", "region": None}


@dataclass(frozen=True)
class Window:
    """The log's window: hours from first to last ts, and calendar days, of billed requests."""

    hours: Fraction
    days: int

    @classmethod
    def of(cls, requests: list[Request]) -> Window:
        """The window of these requests."""
        times = [t for one in requests if (t := start_us(one)) is not None]
        days: list[date] = [instant(one["ts"]).date() for one in requests if one.get("ts") is not None]
        if not times:
            return cls(Fraction(0), 0)
        return cls(Fraction(max(times) - min(times), 3_600_000_000), (max(days) - min(days)).days + 1)


def judge(bill: Bill, pricer: Pricer, table: Table, scenario: str, slo: Table | None) -> Judged:
    """Decide on the requests as they were billed, like routing; what has no price there stays where it was."""
    goes = [one for one in bill.versions if in_where(table, one.request) and _is_good(one.request, table, slo)]
    places = frozenset(one.origin for one in goes)
    keeps = kept_reads(bill.versions, places, table, scenario)
    tried = frozenset(
        one.origin for one in goes if pricer.may_become(one, [_moved(one, pricer, table, scenario, keeps)])
    )
    return Judged(dict.fromkeys(places, True), tried, kept_reads(bill.versions, tried, table, scenario))


def apply(
    bill: Bill,
    pricer: Pricer,
    table: Table,
    scenario: str,
    judged: Judged,
    window: Window,
    ceded: Collection[int] = (),
) -> Bill:
    """Touched requests run on the student; "exclusive per request" with route."""
    made = Bill([], bill.fees, dict(bill.touched))
    before: list[int] = []
    for one in bill.versions:
        after = one
        if one.origin in judged.tried and one.origin not in ceded and not one.by_route:
            moved = _moved(one, pricer, table, scenario, judged.keeps)
            if pricer.may_become(one, [moved]):
                after = moved
                made.touch("distill", one.origin)
                before.append(pricer.cost(one))
        elif one.origin not in judged.tried and not judged.keeps.get(one.origin, True):
            without = forfeited(one)
            after = without if pricer.may_become(one, [without]) else one
        made.versions.append(after)
    made.fees += charges(table, window, before)
    return made


def _moved(one: Version, pricer: Pricer, table: Table, scenario: str, keeps: dict[int, bool]) -> Version:
    return one.changed(retold({**one.request, **STUDENT}, pricer, table, scenario, {}, keeps_reads=keeps[one.origin]))


def _is_good(request: Request, table: Table, slo: Table | None) -> bool:
    """The rule: "measured with evals (min_quality gate like route)"; the student's rows are of model `student`."""
    evals = table.get("evals")
    if evals is None:
        return True
    has, needs = score(evals, "student", request), threshold(table, slo, request, evals)
    return has is not None and needs is not None and has >= needs


def charges(table: Table, window: Window, before: list[int]) -> int:
    """The rule: "hosting x hours + (training + labels x mean cost) x window days / retrain_days. rhe to pUSD."""
    mean = Fraction(sum(before), len(before)) if before else Fraction(0)
    labels = number(table.get("labels", 0)) * mean
    training = (pusd(table.get("training_usd", 0)) + labels) * window.days / number(table.get("retrain_days", 90))
    return rhe(pusd(table.get("hosting_usd_per_hour", 0)) * window.hours + training)


def with_student(book: Book, student: Book) -> Book:
    """A book that also knows the student."""
    return Book(
        lists={**book.lists, **student.lists},
        ids={**book.ids, **student.ids},
        aliases=book.aliases,
        patterns=book.patterns,
        neutral_regions=book.neutral_regions,
        region_aliases=book.region_aliases,
    )
