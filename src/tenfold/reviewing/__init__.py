"""The review: one self-contained page with the spend of a quarter, what it is made of, and what would shrink it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from tenfold.display import minute
from tenfold.errors import NotEvaluable
from tenfold.extras import need
from tenfold.ledger import Ledger, Window
from tenfold.reviewing import appendix, bill, covered, ranked, summary, trend
from tenfold.reviewing.facts import Facts
from tenfold.reviewing.page import Section, Skipped, render
from tenfold.reviewing.quarter import quarter as read_quarter
from tenfold.reviewing.quarter import quarter_bounds

__all__ = ["SECTIONS", "Review", "quarter_bounds", "review"]

Maker: TypeAlias = Callable[[Facts], Section | Skipped]

# The sections in order. A new one is a module with a function section(facts), and a line here.
SECTIONS: tuple[Maker, ...] = (
    summary.section,
    covered.section,
    bill.section,
    trend.section,
    ranked.section,
    appendix.section,
)


class Planned(Protocol):
    """A plan of levers."""

    def as_dict(self) -> Mapping[str, Any]:
        """Give the document of ``tenfold levers --json``."""
        ...


@dataclass(frozen=True, slots=True)
class Review:
    """A finished review.

    Args:
        html: The page: one HTML document, nothing to load.
        skipped: Sections left out, with the reason.
        title: What it is.
    """

    html: str
    skipped: tuple[Skipped, ...]
    title: str = "LLM cost review"

    def save(self, path: str | Path) -> Path:
        """Write the page to a file.

        Args:
            path: Where to write it.

        Returns:
            The path.
        """
        file = Path(path)
        file.write_text(self.html, encoding="utf-8", newline="\n")
        return file

    def __repr__(self) -> str:
        """Say what it is in one line."""
        out = f", without {', '.join(one.title for one in self.skipped)}" if self.skipped else ""
        return f"<Review {self.title}: {len(self.html.encode()) // 1000:,} kB{out}; save(path) writes it>"

    def _repr_html_(self) -> str:
        """Show the page in a notebook: in a frame of its own, so that its style stays in it."""
        style = "width: 100%; height: 40rem; border: 1px solid"
        frame = f'<iframe title="{escape(self.title)}" style="{style}" srcdoc="{escape(self.html)}"></iframe>'
        return f"<p>{escape(repr(self))}</p>{frame}"


def review(
    ledger: Ledger, plan: Planned | Mapping[str, Any] | None = None, *, quarter: str, zone: str | None = None
) -> Review:
    """Review a quarter.

    Args:
        ledger: The priced log; the quarter takes the place of its own window.
        plan: The plan of levers, or its document; without one that section is left out.
        quarter: Year and quarter, such as ``2026Q3``.
        zone: IANA zone that the quarter and its days are cut in; the ledger's own by default.

    Returns:
        The review: the same bytes for the same log, prices and plan.

    Raises:
        AssumptionError: The quarter or the zone cannot be read.
        NotEvaluable: The log has no request in that quarter.
        MissingExtraError: The ``report`` extra is not installed.
    """
    need("jinja2", "altair", "great_tables", "vl_convert", what="a review")
    chosen = read_quarter(quarter, zone or ledger.window.zone)
    document = None if plan is None else plan if isinstance(plan, Mapping) else plan.as_dict()
    facts = Facts(ledger.within(chosen.window), document, chosen)
    if facts.reading.first is None:
        raise NotEvaluable(_nothing(ledger, facts))
    made = [maker(facts) for maker in SECTIONS]
    sections = [one for one in made if isinstance(one, Section)]
    skipped = [one for one in made if isinstance(one, Skipped)]
    title = f"LLM cost review {chosen.name}"
    return Review(render(title, _subtitle(facts), sections, skipped), tuple(skipped), title)


def _subtitle(facts: Facts) -> str:
    since, until = facts.quarter.bounds
    return f"{since:%Y-%m-%d} to {until:%Y-%m-%d} (exclusive), {facts.zone} · prices {facts.ledger.book.version}"


def _nothing(ledger: Ledger, facts: Facts) -> str:
    whole = Facts(Ledger(ledger.log, ledger.book, Window(zone=facts.zone)), None, facts.quarter).reading
    if whole.first is None or whole.last is None:
        return "the log has no request with a time, so it has no quarter to review"
    first, last = minute(whole.first, facts.zone), minute(whole.last, facts.zone)
    return f"no request in {facts.quarter.name} ({facts.zone}); the log runs from {first} to {last}"
