"""What a reconciliation says: cells, their drift split into causes, what was left out, and a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from tenfold.analysis.reconcile.files import Rejected
from tenfold.analysis.reconcile.invoiced import Dropped
from tenfold.display import counted, percent, sentence
from tenfold.money import shown, usd_text
from tenfold.prices.meters import METER_NAMES, meters
from tenfold.tables import Column, card, grid

Verdict: TypeAlias = Literal["reconciled", "unreconciled", "not_evaluable"]
# Causes in the order in which a reader asks for them, with what each is.
CAUSES = {
    "tier_missing": "service tiers that the report leaves out",
    "day_boundaries": "days of the report cut in another zone or at another hour",
    "usage_missing": "requests whose usage the log lacks, such as interrupted streams",
    "retries": "retries that the provider does not bill",
    "failed_calls": "failed calls billed otherwise than the log says",
    "gateway_hits": "calls that a gateway's cache answered, billed all the same",
    "duplicates": "lines that are in the log or in the invoices twice",
    "unpriced": "requests that the price book has no price for",
    "rates": "another rate than the price book's: a discount, or another price",
    "not_in_log": "traffic that the log does not have",
    "not_in_report": "traffic that the report does not have",
    "rounding": "amounts that the report rounds",
}
# Causes that move amounts from one cell to another.
_MOVING = {"day_boundaries", "rounding"}


class Compared(NamedTuple):
    """One cell: what log and provider say of a meter of a model in a day or month.

    Args:
        period: Day (2026-07-01), month (2026-07) or span.
        month: First day of the calendar month that it begins in.
        provider: Who bills.
        model: Model; None for all together.
        meter: Meter; None for all together.
        logged_pusd: What the log says, by the calendar that the report's days mean.
        invoiced_pusd: What is billed; at the log's own rates where a report has tokens only.
        logged_units: Units in the log, those without a price included.
        invoiced_units: Units in the report; None where it has none.
        explained: Cause to pUSD.
        is_valued: The report has no amount.
    """

    period: str
    month: date
    provider: str
    model: str | None
    meter: str | None
    logged_pusd: int
    invoiced_pusd: int
    logged_units: int
    invoiced_units: int | None
    explained: Mapping[str, int]
    is_valued: bool

    @property
    def drift_pusd(self) -> int:
        """Billed minus logged."""
        return self.invoiced_pusd - self.logged_pusd

    @property
    def unexplained_pusd(self) -> int:
        """The drift that no cause accounts for."""
        return self.drift_pusd - sum(self.explained.values())

    def as_dict(self) -> dict[str, Any]:
        """Give the cell the keys that scripts rely on."""
        is_tokens = {meter.name: meter.unit for meter in meters()}.get(self.meter or "", "tokens") == "tokens"
        unit = "tokens" if is_tokens else "units"
        return {
            "day": self.period,
            "provider": self.provider,
            "model": self.model,
            "meter": self.meter,
            "logged_usd": usd_text(self.logged_pusd),
            "invoiced_usd": None if self.is_valued else usd_text(self.invoiced_pusd),
            "drift_usd": usd_text(self.drift_pusd),
            "drift_ratio": ratio(self.drift_pusd, self.invoiced_pusd),
            f"logged_{unit}": self.logged_units,
            f"invoiced_{unit}": self.invoiced_units,
            "explained": [{"cause": name, "usd": usd_text(pusd)} for name, pusd in self.explained.items() if pusd],
            "unexplained_usd": usd_text(self.unexplained_pusd),
        }


class Cause(NamedTuple):
    """One cause of the drift.

    Args:
        name: Key of ``CAUSES``.
        pusd: Its part of the drift.
        evidence: What shows it.
    """

    name: str
    pusd: int
    evidence: tuple[str, ...]


class Source(NamedTuple):
    """A report that the log was held against.

    Args:
        provider: Who bills.
        name: Reader that read it.
        since: First instant that it covers, naive UTC.
        until: Instant after the last.
        periods: Days or months in it.
        has_amounts: It says money, not tokens only.
    """

    provider: str
    name: str
    since: datetime
    until: datetime
    periods: int
    has_amounts: bool


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """The log held against what providers bill.

    Args:
        cells: Cells, by provider, period, model and meter.
        causes: What explains the drift, in the order of ``CAUSES``.
        sources: Reports used.
        dropped: Rows that were not held against the log.
        rejected: Rows that their reader refused; of loaded reports, whatever their date.
        notes: What a reader must know.
        logged_pusd: What the log costs in the whole window, compared or not.
        rows: Rows with amounts billed that were read.
        max_drift: Drift up to which the log counts as reconciled, as a share of what is billed.
        card_version: Prices that the log was priced with.
    """

    cells: tuple[Compared, ...]
    causes: tuple[Cause, ...]
    sources: tuple[Source, ...]
    dropped: tuple[Dropped, ...]
    rejected: tuple[Rejected, ...]
    notes: tuple[str, ...]
    logged_pusd: int
    rows: int
    max_drift: Decimal
    card_version: str

    @property
    def compared_pusd(self) -> int:
        """What the log says of the cells."""
        return sum(cell.logged_pusd for cell in self.cells)

    @property
    def invoiced_pusd(self) -> int:
        """What the providers say of the cells."""
        return sum(cell.invoiced_pusd for cell in self.cells)

    @property
    def drift_pusd(self) -> int:
        """Billed minus logged, over all cells."""
        return self.invoiced_pusd - self.compared_pusd

    @property
    def unexplained_pusd(self) -> int:
        """The drift that no cause accounts for."""
        return sum(cell.unexplained_pusd for cell in self.cells)

    @property
    def gross_pusd(self) -> int:
        """The drift without what cancels.

        Over the window, each cause and what is unexplained is summed for every (provider, model, meter) and counts by
        its size: more output than logged does not make up for less input, nor one cause for another. Days of a series
        may cancel, as they are cut and rounded; day boundaries and rounding, which only move amounts, may cancel
        between the series of a provider too.
        """
        sums: dict[tuple[str, str, str | None, str | None], int] = {}
        for cell in self.cells:
            for cause, pusd in (*cell.explained.items(), ("unexplained", cell.unexplained_pusd)):
                model, meter = (None, None) if cause in _MOVING else (cell.model, cell.meter)
                key = (cell.provider, cause, model, meter)
                sums[key] = sums.get(key, 0) + pusd
        return sum(abs(pusd) for pusd in sums.values())

    @property
    def drift_ratio(self) -> Fraction | None:
        """Gross drift over what is billed; None where nothing is."""
        whole = self.invoiced_pusd or self.compared_pusd
        return Fraction(self.gross_pusd, abs(whole)) if whole else None

    @property
    def covered_ratio(self) -> Fraction | None:
        """Share of the log's spend in the window that a report covers; None where nothing is logged."""
        return Fraction(self.compared_pusd, self.logged_pusd) if self.logged_pusd else None

    @property
    def verdict(self) -> Verdict:
        """Whether the log may be relied on: its drift that does not cancel (`gross_pusd`) is at most ``max_drift``."""
        if not self.cells:
            return "not_evaluable"
        drift = self.drift_ratio
        is_far = self.gross_pusd != 0 if drift is None else drift > Fraction(self.max_drift)
        return "unreconciled" if is_far else "reconciled"

    def frame(self) -> pl.DataFrame:
        """Give the cells as a frame: money in USD, exact.

        Returns:
            One row a cell, with a column for each cause that occurs.
        """
        names = [cause.name for cause in self.causes]
        usd = pl.Decimal(38, 12)
        rows = [
            {
                "day": cell.period, "provider": cell.provider, "model": cell.model, "meter": cell.meter,
                "logged_usd": usd_text(cell.logged_pusd),
                "invoiced_usd": None if cell.is_valued else usd_text(cell.invoiced_pusd),
                "drift_usd": usd_text(cell.drift_pusd),
                **{f"{name}_usd": usd_text(cell.explained.get(name, 0)) for name in names},
                "unexplained_usd": usd_text(cell.unexplained_pusd),
            }
            for cell in self.cells
        ]  # fmt: skip
        words = ("day", "provider", "model", "meter")
        schema = dict.fromkeys(words, pl.String) | {name: pl.String for row in rows[:1] for name in row}
        return pl.DataFrame(rows, schema=schema).with_columns(pl.exclude(*words).cast(usd))

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold reconcile --json``.

        Returns:
            Its keys.
        """
        return {
            "verdict": self.verdict,
            "max_drift": str(self.max_drift),
            "amounts": "billed",
            "total": {
                "logged_usd": usd_text(self.compared_pusd),
                "invoiced_usd": usd_text(self.invoiced_pusd),
                "drift_usd": usd_text(self.drift_pusd),
                "drift_ratio": ratio(self.drift_pusd, self.invoiced_pusd),
                "gross_usd": usd_text(self.gross_pusd),
                "gross_ratio": None if self.drift_ratio is None else float(self.drift_ratio),
                "explained_usd": usd_text(self.drift_pusd - self.unexplained_pusd),
            },
            "causes": [
                {
                    "cause": cause.name,
                    "usd": usd_text(cause.pusd),
                    "ratio": ratio(cause.pusd, self.invoiced_pusd),
                    "evidence": list(cause.evidence),
                }
                for cause in self.causes
            ],
            "unexplained_usd": usd_text(self.unexplained_pusd),
            "by_meter": [cell.as_dict() for cell in self.cells],
            "coverage": {
                "window_logged_usd": usd_text(self.logged_pusd),
                "compared_ratio": None if self.covered_ratio is None else float(self.covered_ratio),
                "invoice_rows": self.rows,
                "dropped_rows": sum(one.rows for one in self.dropped),
                "rejected_rows": len(self.rejected),
                "sources": [
                    {
                        "provider": one.provider,
                        "format": one.name,
                        "since": one.since.isoformat() + "Z",
                        "until": one.until.isoformat() + "Z",
                        "periods": one.periods,
                        "has_amounts": one.has_amounts,
                    }
                    for one in self.sources
                ],
            },
            "dropped": [
                {
                    "reason": one.reason,
                    "provider": one.provider,
                    "rows": one.rows,
                    "usd": usd_text(one.pusd),
                    "other_currencies": {name: str(amount) for name, amount in one.amounts.items()},
                    "examples": list(one.examples),
                }
                for one in self.dropped
            ],
            "rejected": [one._asdict() for one in self.rejected],
            "notes": list(self.notes),
            "card_version": self.card_version,
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        drift = percent(self.drift_ratio, 2)
        cells = counted(len(self.cells), "cell")
        return f"<Reconciliation {self.verdict}: drift {shown(self.drift_pusd)} ({drift}) in {cells}>"

    def _repr_html_(self) -> str:
        """Show the verdict and what explains the drift in a notebook."""
        if not self.cells:
            return card("Not evaluable: no report covers the window", self.notes)
        title = (
            f"{sentence(self.verdict)}: {shown(self.invoiced_pusd)} billed, {shown(self.compared_pusd)} logged; "
            f"without what cancels {percent(self.drift_ratio, 2)} apart, {percent(Fraction(self.max_drift), 2)} allowed"
        )
        covered = f"Reports cover {percent(self.covered_ratio, 1)} of what is logged"
        whole = self.invoiced_pusd or None
        rows = [(CAUSES[one.name], one.pusd, whole and Fraction(one.pusd, whole)) for one in self.causes]
        rows.append(("unexplained", self.unexplained_pusd, whole and Fraction(self.unexplained_pusd, whole)))
        rows.append(("drift", self.drift_pusd, whole and Fraction(self.drift_pusd, whole)))
        columns = [
            Column("cause", "cause"),
            Column("usd", "USD", "pusd", sums=True),
            Column("of", "of billed", "ratio", 2),
        ]
        table = grid("drift", "Billed less logged, by cause", columns, rows, has_total=True)
        return card(title, (covered, *self.notes), table)


def ratio(part: int, whole: int) -> float | None:
    """Divide for a document; None where there is nothing to divide by."""
    return float(Fraction(part, whole)) if whole else None


def in_order(cells: Iterable[Compared]) -> tuple[Compared, ...]:
    """Put cells in order: provider, period, model, meter as ledgers have them."""
    places = {name: place for place, name in enumerate(METER_NAMES)}

    def key(cell: Compared) -> tuple[str, str, str, int, str]:
        return (
            cell.provider,
            cell.period,
            cell.model or "",
            places.get(cell.meter or "", len(places)),
            cell.meter or "",
        )

    return tuple(sorted(cells, key=key))
