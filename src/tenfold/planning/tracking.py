"""Promised against realised: what a plan said it would save, held against a later log, feature by feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.display import name_of, percent, sentence
from tenfold.errors import AssumptionError, StepError
from tenfold.ledger import Ledger, Session
from tenfold.levers.where import check
from tenfold.money import read_usd, shown, usd_text
from tenfold.planning.intervals import MIN_BLOCKS, MIN_DAYS, Draws
from tenfold.store import steps
from tenfold.tables import Column, card, grid

_BEFORE = "the same feature's cost a request before the plan"
_CONTROL = "the same feature's cost a request in the requests held back"


class Promise(NamedTuple):
    """What a plan promised for one feature.

    Args:
        requests: Billed and priced requests of its window.
        cost_pusd: What they cost.
        saving_pusd: What the plan saves of that.
        base_pusd: What they would have cost at the last prices of its window, to which a later log is held.
    """

    requests: int
    cost_pusd: int
    saving_pusd: int
    base_pusd: int


class Kept(NamedTuple):
    """One feature, promised against realised.

    Args:
        feature: Its name; None for requests without one.
        requests: Priced requests of the later log that the plan is about.
        cost_pusd: What they cost, at the baseline's prices.
        billed_pusd: What they cost at the prices in force when each ran.
        expected_pusd: What they would have cost at the baseline's cost a request.
        promised_pusd: What the plan promised for that many requests.
    """

    feature: str | None
    requests: int
    cost_pusd: int
    billed_pusd: int
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

    @property
    def price_change_pusd(self) -> int:
        """What changed prices took off beside it (negative where they rose): nobody's saving."""
        return sum(row.cost_pusd - row.billed_pusd for row in self.rows)

    @property
    def kept_ratio(self) -> Fraction | None:
        """Realised over promised; None where nothing was promised."""
        return Fraction(self.realised_pusd, self.promised_pusd) if self.promised_pusd else None

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold levers --track --json``.

        Returns:
            ``label, baseline, promised_usd, realised_usd{low, mid, high}, kept_ratio, price_change_usd, features[],
            unseen[], notes[]``.
        """
        promised, realised = self.promised_pusd, self.realised_pusd
        return {
            "label": self.label,
            "baseline": self.baseline,
            "promised_usd": usd_text(promised),
            "realised_usd": {
                "low": usd_text(self.low_pusd), "mid": usd_text(realised), "high": usd_text(self.high_pusd),
            },
            "kept_ratio": None if self.kept_ratio is None else float(self.kept_ratio),
            "price_change_usd": usd_text(self.price_change_pusd),
            "features": [
                {
                    "feature": row.feature,
                    "requests": row.requests,
                    "cost_usd": usd_text(row.cost_pusd),
                    "billed_usd": usd_text(row.billed_pusd),
                    "expected_usd": usd_text(round(row.expected_pusd)),
                    "promised_usd": usd_text(round(row.promised_pusd)),
                    "realised_usd": usd_text(round(row.realised_pusd)),
                }
                for row in self.rows
            ],
            "unseen": list(self.unseen),
            "notes": list(self.notes),
        }  # fmt: skip

    def _repr_html_(self) -> str:
        """Show promised and realised by feature in a notebook."""
        ends = "" if self.low_pusd is None or self.high_pusd is None else (
            f" [{shown(self.low_pusd)} to {shown(self.high_pusd)}]"
        )  # fmt: skip
        kept = f", {percent(self.kept_ratio)} of {shown(self.promised_pusd)} promised" if self.promised_pusd else ""
        lines = [f"against {self.baseline}", f"changed prices took off {shown(self.price_change_pusd)} beside it"]
        lines += [f"not in the later log: {', '.join(self.unseen)}"] if self.unseen else []
        columns = [Column("feature", "feature"), Column("requests", "requests", "count", sums=True)]
        columns += [Column(name, f"{name} (USD)", "pusd", sums=True) for name in ("promised", "realised")]
        rows = [
            (name_of("feature", row.feature), row.requests, round(row.promised_pusd), round(row.realised_pusd))
            for row in self.rows
        ]
        rows.append(("total", sum(row.requests for row in self.rows), self.promised_pusd, self.realised_pusd))
        table = grid("tracked", "Promised and realised", columns, rows, has_total=True)
        title = f"Realised {shown(self.realised_pusd)}{ends}{kept} ({self.label})"
        return card(title, map(sentence, (*lines, *self.notes)), table)


class Promised(NamedTuple):
    """What a plan promises of the provider's bill.

    Args:
        rows: One object a feature whose cost the plan changes: ``feature, requests, cost_usd, saving_usd, base_usd``.
        prices_at: The instant whose prices ``base_usd`` is at: that of the last request; None without any.
    """

    rows: tuple[dict[str, Any], ...] = ()
    prices_at: str | None = None


def promised(ledger: Ledger, left: Mapping[str | None, int]) -> Promised:
    """Write what a plan promises of the provider's bill, for the document of ``tenfold levers --json``.

    Args:
        ledger: The plan's log, priced.
        left: Feature to the cost in pUSD that the plan leaves; charges that are no provider's (lookups, hosting) are
            in neither log and so in no promise.

    Returns:
        The promise.
    """
    with ledger.session() as session:
        now = _by_feature(_later(session, None))
        last: datetime | None = session.engine.fetch("select max(ts) as ts from priced_requests where is_billed")["ts"][
            0
        ]
    if last is None:
        return Promised()
    at = last.replace(tzinfo=UTC)
    with _priced_at(ledger, at).session() as session:
        base = _by_feature(_later(session, None))
    rows = tuple(
        {
            "feature": feature,
            "requests": requests,
            "cost_usd": usd_text(pusd),
            "saving_usd": usd_text(pusd - left.get(feature, 0)),
            "base_usd": usd_text(base.get(feature, (0, pusd))[1]),
        }
        for feature, (requests, pusd) in sorted(now.items(), key=lambda one: one[0] or "")
        if pusd != left.get(feature, 0)
    )
    return Promised(rows, at.isoformat())


def _priced_at(ledger: Ledger, at: datetime) -> Ledger:
    return Ledger(ledger.log, ledger.book, ledger.window, at)


def _by_feature(rows: Sequence[_Row]) -> dict[str | None, tuple[int, int]]:
    sums: dict[str | None, tuple[int, int]] = {}
    for row in rows:
        requests, pusd = sums.get(row.feature, (0, 0))
        sums[row.feature] = (requests + row.requests, pusd + row.cost_pusd)
    return sums


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
        shrinking no saving; both at the last prices of the plan's window, so that a price cut is no saving either.
    """
    promises, at = _promises(document)
    held = None if control is None else check(control, "--control")
    with ledger.session() as session:
        billed = _later(session, held)
    rows = billed
    if at is not None:
        with _priced_at(ledger, at).session() as session:
            rows = _later(session, held)
    days = sorted({row.day for row in rows if row.day is not None})
    kept = [_kept(feature, promise, rows, billed) for feature, promise in promises.items()]
    past = sorted(
        row.feature or "requests without a feature" for row in kept if row and held and not _held(rows, row.feature)
    )
    found = tuple(sorted((row for row in kept if row is not None), key=lambda row: -row.promised_pusd))
    low, high = _ends(found, rows, days)
    seen = {row.feature for row in found}
    notes = [] if document.get("card_version") == ledger.book.version else [_CARD.format(ledger.book.version)]
    lost = sum(row.requests for row in billed) - sum(row.requests for row in rows)
    notes += [_LOST.format(lost, document["plan"]["prices_at"])] if lost else []
    notes += [_PAST.format(", ".join(past))] if past else []
    return Tracked(
        "measured" if held and not past else "modelled",
        _CONTROL if held else _BEFORE,
        found,
        low,
        high,
        tuple(sorted(str(feature) for feature in promises if feature not in seen)),
        (*notes, *([] if held else [_OTHER])),
    )


_CARD = "the plan was priced by another card than {}: corrected prices between the two are in the figure"
_LOST = "{:,} requests have no price at {}, the end of the plan's window: they are left out"
_PAST = "--control holds back no request of {}: held against the time before the plan"
_OTHER = "whatever else changed in this traffic is in the figure: hold back a share of it and name it with --control"


class _Row(NamedTuple):
    feature: str | None
    day: date | None
    is_held: bool
    requests: int
    cost_pusd: int


def _promises(document: Mapping[str, Any]) -> tuple[dict[str | None, Promise], datetime | None]:
    plan: Mapping[str, Any] = document.get("plan") or {}
    rows: Sequence[Mapping[str, Any]] | None = plan.get("promised")
    if rows is None:
        raise AssumptionError("not a plan: it has no plan.promised; give what `tenfold levers --json` printed")
    if not rows:
        raise AssumptionError("this plan has no lever: it promises nothing that could be tracked")
    at: str | None = plan.get("prices_at")
    promises = {
        row["feature"]: Promise(
            row["requests"],
            read_usd(row["cost_usd"]),
            read_usd(row["saving_usd"]),
            read_usd(row["base_usd"] if at else row["cost_usd"]),
        )
        for row in rows
    }
    return promises, None if at is None else datetime.fromisoformat(at)


def _later(session: Session, control: str | None) -> list[_Row]:
    meters = "\n    + ".join(f"coalesce(sum(cast({one.name}_pusd as decimal(38, 0))), 0)" for one in session.meters)
    sql = steps.filled("plan_tracked", held=f"coalesce(({control}), false)" if control else "false", cost=meters)
    try:
        found = session.engine.fetch(f"{sql}\norder by all nulls last")
    except StepError as error:
        reason = str(error.__cause__).splitlines()[0]
        raise AssumptionError(f"--control cannot be evaluated on this log ({reason}). In: {control}") from error
    return [
        _Row(row["feature"], row["day"], row["is_held"], row["requests"], int(row["cost_pusd"]))
        for row in found.rows(named=True)
    ]


def _held(rows: Sequence[_Row], feature: str | None) -> list[_Row]:
    return [row for row in rows if row.feature == feature and row.is_held]


def _kept(feature: str | None, promise: Promise, rows: Sequence[_Row], billed: Sequence[_Row]) -> Kept | None:
    own = [row for row in rows if row.feature == feature and not row.is_held]
    requests = sum(row.requests for row in own)
    if not requests:
        return None
    back = _held(rows, feature)
    unit = Fraction(promise.base_pusd, promise.requests)
    if back:
        unit = Fraction(sum(row.cost_pusd for row in back), sum(row.requests for row in back))
    part = Fraction(promise.saving_pusd, promise.requests)
    paid = sum(row.cost_pusd for row in billed if row.feature == feature and not row.is_held)
    return Kept(feature, requests, sum(row.cost_pusd for row in own), paid, unit * requests, part * requests)


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
