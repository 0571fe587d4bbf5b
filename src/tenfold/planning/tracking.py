"""Promised against realised: what a plan said it would save, held against a later log, feature by feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.errors import AssumptionError, StepError
from tenfold.ledger import Ledger, Session
from tenfold.levers.where import check
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.planning.intervals import MIN_BLOCKS, MIN_DAYS, Draws
from tenfold.store import steps

_BEFORE = "the same feature's cost a request before the plan"
_CONTROL = "the same feature's cost a request in the requests held back"


class Promise(NamedTuple):
    """What a plan promised for one feature.

    Args:
        requests: Billed and priced requests of its window.
        cost_pusd: What they cost.
        saving_pusd: What the plan saves of that.
    """

    requests: int
    cost_pusd: int
    saving_pusd: int


class Kept(NamedTuple):
    """One feature, promised against realised.

    Args:
        feature: Its name; None for requests without one.
        requests: Priced requests of the later log that the plan is about.
        cost_pusd: What they cost.
        expected_pusd: What they would have cost at the baseline's cost a request.
        promised_pusd: What the plan promised for that many requests.
    """

    feature: str | None
    requests: int
    cost_pusd: int
    expected_pusd: Fraction
    promised_pusd: Fraction

    @property
    def realised_pusd(self) -> Fraction:
        """What was saved."""
        return self.expected_pusd - self.cost_pusd


@dataclass(frozen=True, slots=True)
class Tracked:
    """A plan's promise against a later log.

    Args:
        label: ``measured`` against requests held back, ``modelled`` against the time before the plan.
        baseline: What the later cost is held against.
        rows: Features of the plan, the largest promise first.
        low_pusd: Lower end of the realised saving, from days drawn again; None below seven days or ten with requests.
        high_pusd: Its upper end.
        unseen: Features of the plan that the later log does not have.
        notes: What else is known to differ.
    """

    label: str
    baseline: str
    rows: tuple[Kept, ...]
    low_pusd: int | None
    high_pusd: int | None
    unseen: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def promised_pusd(self) -> int:
        """What the plan promised for the requests of the later log."""
        return round(sum((row.promised_pusd for row in self.rows), Fraction(0)))

    @property
    def realised_pusd(self) -> int:
        """What was saved."""
        return round(sum((row.realised_pusd for row in self.rows), Fraction(0)))

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold levers --track --json``.

        Returns:
            ``label, baseline, promised_usd, realised_usd{low, mid, high}, kept_ratio, features[], unseen[], notes[]``.
        """
        promised, realised = self.promised_pusd, self.realised_pusd
        return {
            "label": self.label,
            "baseline": self.baseline,
            "promised_usd": usd_text(promised),
            "realised_usd": {
                "low": usd_text(self.low_pusd), "mid": usd_text(realised), "high": usd_text(self.high_pusd),
            },
            "kept_ratio": realised / promised if promised else None,
            "features": [
                {
                    "feature": row.feature,
                    "requests": row.requests,
                    "cost_usd": usd_text(row.cost_pusd),
                    "expected_usd": usd_text(round(row.expected_pusd)),
                    "promised_usd": usd_text(round(row.promised_pusd)),
                    "realised_usd": usd_text(round(row.realised_pusd)),
                }
                for row in self.rows
            ],
            "unseen": list(self.unseen),
            "notes": list(self.notes),
        }  # fmt: skip


def promised(session: Session, left: Mapping[str | None, int]) -> tuple[dict[str, Any], ...]:
    """Write what a plan promises of the provider's bill, for the document of ``tenfold levers --json``.

    Args:
        session: The priced session of the plan's log.
        left: Feature to the cost in pUSD that the plan leaves; charges that are no provider's (lookups, hosting) are
            in neither log and so in no promise.

    Returns:
        One object a feature whose cost the plan changes: ``feature, requests, cost_usd, saving_usd``.
    """
    now: dict[str | None, tuple[int, int]] = {}
    for row in _later(session, None):
        requests, pusd = now.get(row.feature, (0, 0))
        now[row.feature] = (requests + row.requests, pusd + row.cost_pusd)
    return tuple(
        {
            "feature": feature,
            "requests": requests,
            "cost_usd": usd_text(pusd),
            "saving_usd": usd_text(pusd - left.get(feature, 0)),
        }
        for feature, (requests, pusd) in sorted(now.items(), key=lambda one: one[0] or "")
        if pusd != left.get(feature, 0)
    )


def track(document: Mapping[str, Any], ledger: Ledger, *, control: str | None = None) -> Tracked:
    """Hold a plan's promise against a later log.

    Args:
        document: The document of ``tenfold levers --json`` (or ``Plan.as_dict()``) that made the promise.
        ledger: The later log, priced.
        control: SQL predicate naming the requests that were held back from the change; without one, the baseline is
            the time before the plan.

    Returns:
        Promised and realised by feature.

    Raises:
        AssumptionError: The document is no plan or promises nothing, or the predicate cannot be used.

    Formula:
        realised = requests x baseline cost a request - cost, feature by feature, so that growth is no loss and
        shrinking no saving.
    """
    promises = _promises(document)
    held = None if control is None else check(control, "--control")
    with ledger.session() as session:
        rows = _later(session, held)
    days = sorted({row.day for row in rows if row.day is not None})
    kept = [_kept(feature, promise, rows, is_held=held is not None) for feature, promise in promises.items()]
    found = tuple(sorted((row for row in kept if row is not None), key=lambda row: -row.promised_pusd))
    low, high = _ends(found, rows, days)
    seen = {row.feature for row in found}
    notes = (
        []
        if document.get("card_version") == ledger.book.version
        else [_CARD.format(document.get("card_version"), ledger.book.version)]
    )
    return Tracked(
        "measured" if held else "modelled",
        _CONTROL if held else _BEFORE,
        found,
        low,
        high,
        tuple(sorted(str(feature) for feature in promises if feature not in seen)),
        (*notes, *([] if held else [_OTHER])),
    )


_CARD = "the plan was priced by card {} and this log by {}: a price change between them is in the figure"
_OTHER = "whatever else changed in this traffic is in the figure: hold back a share of it and name it with --control"


class _Row(NamedTuple):
    feature: str | None
    day: date | None
    is_held: bool
    requests: int
    cost_pusd: int


def _promises(document: Mapping[str, Any]) -> dict[str | None, Promise]:
    plan: Mapping[str, Any] = document.get("plan") or {}
    rows: Sequence[Mapping[str, Any]] | None = plan.get("promised")
    if rows is None:
        raise AssumptionError("not a plan: it has no plan.promised; give what `tenfold levers --json` printed")
    if not rows:
        raise AssumptionError("this plan has no lever: it promises nothing that could be tracked")
    return {row["feature"]: Promise(row["requests"], _pusd(row["cost_usd"]), _pusd(row["saving_usd"])) for row in rows}


def _pusd(usd: str) -> int:
    return int(Decimal(usd) * PUSD_PER_USD)


def _later(session: Session, control: str | None) -> list[_Row]:
    meters = "\n    + ".join(f"coalesce(sum(cast({one.name}_pusd as decimal(38, 0))), 0)" for one in session.meters)
    sql = steps.filled("plan_tracked", held=f"coalesce(({control}), false)" if control else "false", cost=meters)
    try:
        found = session.engine.fetch(f"{sql}\norder by all")
    except StepError as error:
        reason = str(error.__cause__).splitlines()[0]
        raise AssumptionError(f"--control cannot be evaluated on this log ({reason}). In: {control}") from error
    return [
        _Row(row["feature"], row["day"], row["is_held"], row["requests"], int(row["cost_pusd"]))
        for row in found.rows(named=True)
    ]


def _kept(feature: str | None, promise: Promise, rows: Sequence[_Row], *, is_held: bool) -> Kept | None:
    own = [row for row in rows if row.feature == feature and not row.is_held]
    requests = sum(row.requests for row in own)
    if not requests:
        return None
    unit = Fraction(promise.cost_pusd, promise.requests)
    if is_held:
        back = [row for row in rows if row.feature == feature and row.is_held]
        if not back:
            raise AssumptionError(f"--control holds back no request of {feature or 'requests without a feature'}")
        unit = Fraction(sum(row.cost_pusd for row in back), sum(row.requests for row in back))
    part = Fraction(promise.saving_pusd, promise.requests)
    return Kept(feature, requests, sum(row.cost_pusd for row in own), unit * requests, part * requests)


def _ends(found: Sequence[Kept], rows: Sequence[_Row], days: Sequence[date]) -> tuple[int | None, int | None]:
    """Draw days again: each day's realised saving at the baseline's cost a request."""
    if not days or (days[-1] - days[0]).days + 1 < MIN_DAYS or len(days) < MIN_BLOCKS:
        return None, None
    unit = {row.feature: row.expected_pusd / row.requests for row in found}
    by_day = dict.fromkeys((str(day) for day in days), Fraction(0))
    rest = Fraction(0)
    for row in rows:
        if row.feature in unit and not row.is_held:
            saved = unit[row.feature] * row.requests - row.cost_pusd
            if row.day is None:
                rest += saved
            else:
                by_day[str(row.day)] += saved
    whole = {day: round(pusd) for day, pusd in by_day.items()}
    low, high = Draws(list(by_day)).interval(whole, round(rest))
    return low, high
