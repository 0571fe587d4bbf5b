"""Reconciliation: the priced log held against what providers say they bill, by day, model and meter.

Billed amounts are compared, never list or effective ones, and one report for each provider and span, never two. The
drift of every cell is split into causes that sum to it with what is left unexplained, in whole pUSD.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, time
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import polars as pl

from tenfold import config
from tenfold.analysis.reconcile import files
from tenfold.analysis.reconcile import logged as logs_side
from tenfold.analysis.reconcile.files import Rejected
from tenfold.analysis.reconcile.invoiced import COSTS, USAGE, Invoiced, Line
from tenfold.analysis.reconcile.invoiced import read as read_rows
from tenfold.analysis.reconcile.logged import Logged
from tenfold.analysis.reconcile.names import Names
from tenfold.analysis.reconcile.result import CAUSES, Cause, Compared, Reconciliation, Source, in_order
from tenfold.analysis.reconcile.splitting import Report
from tenfold.analysis.reconcile.wording import Held, causes
from tenfold.ledger import Ledger, Window

__all__ = ["CAUSES", "Cause", "Compared", "Reconciliation", "Rejected", "Source", "reconcile"]


def reconcile(
    ledger: Ledger,
    invoices: str | Path | Sequence[str | Path] | None = None,
    *,
    max_drift: Decimal | float | str | None = None,
    zone: str | None = None,
    provider: str | None = None,
) -> Reconciliation:
    """Hold a priced log against providers' reports and invoices.

    Args:
        ledger: The priced log; its window is what is compared.
        invoices: Report and invoice files; without, the reports that are loaded beside the log.
        max_drift: Drift up to which the log counts as reconciled, as a share of what is billed; by default the
            ``drift`` of the thresholds in ``tenfold.toml``.
        zone: Zone that dates without a clock mean; UTC by default, as providers close their days.
        provider: Who bills, for files that do not say.

    Returns:
        The reconciliation; its verdict is ``not_evaluable`` where no report covers the window.

    Raises:
        LogFormatError: A file is no report or invoice.
    """
    limit = config.settings().thresholds.drift if max_drift is None else max_drift
    buckets, rejected = files.loaded(ledger.log.store) if invoices is None else files.read(invoices, zone, provider)
    refused = files.notes(rejected)
    since, until, moved = _days_of_providers(ledger.window)
    if _within(buckets, since, until).is_empty():
        limits = Decimal(str(limit)), ledger.book.version
        return Reconciliation((), (), (), (), rejected, tuple(refused), ledger.total_pusd, 0, *limits)
    logged = logs_side.read(ledger, since, until)
    names = Names(ledger.book, logged.names)
    invoiced = read_rows(buckets, names, since, until)
    reports = _reports(logged, invoiced)
    held = [Held(report, fit := report.fit(), report.split(fit)) for report in reports]
    cells = in_order(cell for one in held for cell in one.report.compared(one.parts))
    of_reports = (note for one in held for note in _notes(one.report, one.fit.alike, names))
    notes = [*refused, *moved, *invoiced.notes, *of_reports]
    return Reconciliation(
        cells=cells,
        causes=causes(held),
        sources=tuple(_source(report) for report in reports),
        dropped=invoiced.dropped,
        rejected=rejected,
        notes=tuple(dict.fromkeys(notes)),
        logged_pusd=logged.billed_pusd(since, until),
        rows=invoiced.rows,
        max_drift=Decimal(str(limit)),
        card_version=ledger.book.version,
    )


def _days_of_providers(window: Window) -> tuple[datetime | None, datetime | None, list[str]]:
    """Give a window in naive UTC; one of whole days of another zone becomes the same days as providers close them."""
    place = ZoneInfo(window.zone)
    bounds: list[datetime | None] = []
    notes: list[str] = []
    for bound in (window.since, window.until):
        local = bound and bound.astimezone(place)
        is_midnight = local is not None and local.timetz().replace(tzinfo=None) == time()
        moved = datetime.combine(local, time()) if local is not None and is_midnight else None
        plain = bound and bound.astimezone(UTC).replace(tzinfo=None)
        bounds.append(moved or plain)
        if moved is not None and moved != plain:
            notes = [f"compared by days of UTC, as providers close them, not by those of {window.zone}"]
    return bounds[0], bounds[1], notes


def _within(buckets: pl.DataFrame, since: datetime | None, until: datetime | None) -> pl.DataFrame:
    rows = buckets.filter(pl.col("source_format").is_in([*COSTS, *USAGE]))
    if since is not None:
        rows = rows.filter(pl.col("bucket_end") > since)
    return rows if until is None else rows.filter(pl.col("bucket_start") < until)


def _reports(logged: Logged, invoiced: Invoiced) -> list[Report]:
    def of(lines: Sequence[Line], provider: str) -> list[Line]:
        return [line for line in lines if line.provider == provider]

    providers = sorted({line.provider for line in (*invoiced.costs, *invoiced.usage)})
    return [
        Report(
            name,
            logged,
            of(invoiced.costs, name),
            of(invoiced.usage, name),
            [one for one in invoiced.left_out if one.provider == name],
        )
        for name in providers
    ]


def _source(report: Report) -> Source:
    names = sorted({line.source for line in report.lines})
    return Source(
        report.provider,
        ", ".join(names),
        min(one.start for one in report.periods),
        max(one.end for one in report.periods),
        len(report.periods),
        not report.is_valued,
    )


def _notes(report: Report, alike: list[str], names: Names) -> list[str]:
    said = [f"{report.provider}: {words}, and this report cannot tell which" for words in alike]
    said += [f"{report.provider}: {words}" for words in report.doubts]
    held = sorted({meter for row in report.logged.of(report.provider) for meter in row.meters} - {*report.known})
    if report.known != {None}:
        folded = [f"{meter} (held in {told})" for meter in held if (told := report.series_of("", meter)[1]) != meter]
        if folded:
            said.append(f"{report.provider}: the report has no row of its own for {', '.join(folded)}")
    if report.is_valued:
        said.append(
            f"{report.provider}: the report has token counts and no amounts: differences are valued at the log's rates"
        )
    said += [
        f"{report.provider}: {model} in the report is {name} of the log, as {equal} of {cells} quantities are equal"
        for model, (name, equal, cells) in report.renamed.items()
    ]
    strange = sorted({line.written for line in report.lines if line.model and not line.is_known})
    if strange:
        asked = [f"{name}{names.asked(report.provider, name)}" for name in strange]
        asked.sort(key=lambda name: "did you mean" not in name)
        said.append(f"{report.provider}: in the report and not in the log: {', '.join(asked[:5])}")
    return said
