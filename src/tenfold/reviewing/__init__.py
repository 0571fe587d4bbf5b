"""The review: what a quarter cost, why, what would shrink it, and how each figure was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tenfold import config
from tenfold.display import minute
from tenfold.errors import NotEvaluable
from tenfold.extras import need
from tenfold.ledger import Ledger, Window
from tenfold.reviewing.document import Document, Section, Skipped
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.quarter import quarter as read_quarter
from tenfold.reviewing.quarter import quarter_bounds
from tenfold.reviewing.rendering import write
from tenfold.reviewing.rendering.html import render
from tenfold.reviewing.sections import (
    allocation,
    anomalies,
    appendix,
    composition,
    decisions,
    efficiency,
    forecast,
    levers,
    rates,
    scope,
    spend_bridge,
    summary,
    unit_economics,
)

__all__ = ["SECTIONS", "Review", "quarter_bounds", "review"]

Maker: TypeAlias = Callable[[Facts], Section | Skipped]

# The sections in order. A new one is a module with a function section(facts), and a line here.
SECTIONS: tuple[Maker, ...] = (
    summary.section,
    scope.section,
    spend_bridge.section,
    composition.section,
    allocation.section,
    unit_economics.section,
    efficiency.section,
    rates.section,
    anomalies.section,
    levers.section,
    forecast.section,
    decisions.section,
    appendix.section,
)


class Planned(Protocol):
    """A plan of levers."""

    def as_dict(self) -> Mapping[str, Any]:
        """Give the document of ``tenfold levers --json``."""
        ...


@dataclass(frozen=True)
class Review:
    """A finished review.

    Args:
        document: What it says, before it is written down.
    """

    document: Document

    @property
    def title(self) -> str:
        """What it is."""
        return self.document.title

    @property
    def skipped(self) -> tuple[Skipped, ...]:
        """Sections left out, with the reason."""
        return self.document.skipped

    @cached_property
    def html(self) -> str:
        """The page: one HTML document, nothing to load."""
        return render(self.document)

    def save(self, path: str | Path, *, interactive: bool = False) -> Path:
        """Write the review to a file.

        Args:
            path: Where to write it; its ending says the form: ``.html``, ``.md``, ``.xlsx`` or ``.pdf``.
            interactive: Let the charts of a page be drawn by Vega, which the page then carries along.

        Returns:
            The path.

        Raises:
            AssumptionError: There is no such form.
            MissingExtraError: The ``report`` extra is not installed.
        """
        return write(self.document, Path(path), interactive=interactive)

    def __repr__(self) -> str:
        """Say what it is in one line."""
        out = f", without {', '.join(one.title for one in self.skipped)}" if self.skipped else ""
        return f"<Review {self.title}: {len(self.document.sections)} sections{out}; save(path) writes it>"

    def _repr_html_(self) -> str:
        """Show the page in a notebook: in a frame of its own, so that its style stays in it."""
        style = "width: 100%; height: 40rem; border: 1px solid"
        frame = f'<iframe title="{escape(self.title)}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'
        return f"<p>{escape(repr(self))}</p>{frame}"


def review(
    ledger: Ledger,
    plan: Planned | Mapping[str, Any] | None = None,
    *,
    quarter: str,
    zone: str | None = None,
    settings: config.Settings | None = None,
) -> Review:
    """Review a quarter.

    Args:
        ledger: The priced log; the quarter takes the place of its own window.
        plan: The plan of levers, or its document; without one that section is left out.
        quarter: Year and quarter, such as ``2026Q3``, of the fiscal year that the settings say.
        zone: IANA zone that the quarter and its days are cut in; the ledger's own by default.
        settings: Fiscal year, thresholds, budgets and currency; those of ``tenfold.toml`` by default.

    Returns:
        The review: the same bytes for the same log, prices, plan and settings.

    Raises:
        AssumptionError: The quarter or the zone cannot be read.
        NotEvaluable: The log has no request in that quarter.
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("jinja2", "altair", "great_tables", "vl_convert", what="a review")
    settings = settings or config.settings()
    chosen = read_quarter(quarter, zone or ledger.window.zone, fiscal_year_start=settings.fiscal_year_start)
    document = None if plan is None else plan if isinstance(plan, Mapping) else plan.as_dict()
    facts = Facts(ledger, document, chosen, settings)
    with ledger.log.steady():
        if facts.reading.first is None:
            raise NotEvaluable(_nothing(ledger, facts))
        made = [maker(facts) for maker in SECTIONS]
    sections = tuple(one for one in made if isinstance(one, Section))
    skipped = tuple(one for one in made if isinstance(one, Skipped))
    return Review(Document(f"LLM cost review {chosen.title}", _subtitle(facts), sections, skipped))


def _subtitle(facts: Facts) -> str:
    since, until = facts.quarter.bounds
    return f"{since:%Y-%m-%d} to {until:%Y-%m-%d} (exclusive), {facts.zone} · prices {facts.ledger.book.version}"


def _nothing(ledger: Ledger, facts: Facts) -> str:
    whole = Facts(ledger, None, facts.quarter, facts.settings, window=Window(zone=facts.zone)).reading
    if whole.first is None or whole.last is None:
        return "the log has no request with a time, so it has no quarter to review"
    first, last = minute(whole.first, facts.zone), minute(whole.last, facts.zone)
    since, until = facts.quarter.first_day, facts.quarter.last_day
    held = (
        f"no request in {facts.quarter.title}, {since} to {until} ({facts.zone}); the log runs from {first} to {last}"
    )
    if facts.settings.fiscal_year_start == 1:
        return held
    return f"{held}. A fiscal year bears the year in which it ends (fiscal_year_start in {config.FILE})"
