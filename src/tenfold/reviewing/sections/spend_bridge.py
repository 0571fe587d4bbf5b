"""The spend bridge: what moved the spend from the quarter before, in bars that foot to the cent."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from tenfold.analysis.bridge import Bar, Bridge
from tenfold.display import minute, percent, sentence, shortened, visible
from tenfold.reviewing.document import Block, Heading, Lines, Made, Picture, Prose, Section, Skipped, Table
from tenfold.reviewing.facts import Facts
from tenfold.tables import Column, Grid, grid

_TITLE = "Spend bridge"
_MADE = "made-bridge"
_BARS = 3  # columns of bars that a page has room for, the smaller ones in one


def section(facts: Facts) -> Section | Skipped:
    """Write the section on what moved the spend.

    Args:
        facts: What the review knows.

    Returns:
        The section; skipped where the log has no quarter before, or nothing in either has a price.
    """
    found = facts.bridge
    if found is None:
        if facts.before is None:
            reason = (
                f"the log has no request in {facts.previous.title}; load that quarter's logs into the same database "
                "to see what moved the spend"
            )
        else:
            reason = f"nothing in {facts.previous.title} or {facts.quarter.title} has a price; see coverage"
        return Skipped(_TITLE, reason)
    start, end = facts.previous.title, facts.quarter.title
    blocks: list[Block] = [
        Prose(f"{sentence(found.sentences()[0])}. {_verdict(facts, found)}", _MADE),
        Picture(
            found.waterfall(start=start, end=end),
            "bridge-picture",
            f"Spend bridge from {start} to {end}",
            _said(found, start, end),
            _MADE,
            f"From {start} to {end}: ▲ added to the bill, ▼ taken off it. The bars sum to the change exactly.",
        ),
        Table(found.grid(), _MADE),
    ]
    if found.swaps:
        blocks += [Heading("A model took another's place"), Lines(tuple(found.swap_lines()), _MADE)]
    if found.bar("mix"):
        blocks += [Heading("The mix, by dimension"), Table(_mix(found), _MADE)]
    if len(found.movers):
        blocks += [Heading("Segments that moved most"), Table(found.movers_grid(most=_BARS), _MADE)]
    large = tuple(_large(facts, found))
    if large:
        blocks += [Heading("What asks for an explanation"), Lines(large, _MADE)]
    if found.notes:
        blocks += [Heading("To be known"), Lines(tuple(map(sentence, found.notes)), _MADE)]
    return Section("bridge", _TITLE, tuple(blocks), (_made(found, facts.zone),))


def _made(found: Bridge, zone: str) -> Made:
    return Made(
        _MADE,
        "Spend bridge",
        f"Method: {found.how()}. Volume is more or fewer requests at the tokens and prices of the quarter before; "
        "intensity more or fewer tokens a request; mix other shares of models, tiers and kinds of token, at the prices "
        "before; price what other prices did to this quarter's tokens. What is new has the price that the price book "
        "held for it before, and stands apart where there was none; what is no longer used stands apart with what it "
        f"had cost. Both quarters are also priced at the lists in force at {minute(found.price_at, zone)}, which tells "
        "changes of price from changes within a segment (context bands, regions, hours), and list prices from "
        "discounts. All in whole picodollars; rounded to what is shown by largest remainder.",
        "bridge_sums",
    )


def _verdict(facts: Facts, found: Bridge) -> str:
    share = found.share(abs(found.change_pusd))
    limits = facts.settings.thresholds
    explain, act = percent(Fraction(str(limits.explain))), percent(Fraction(str(limits.act)))
    if share is None:
        return "Nothing was spent before, so there is no share to hold it against."
    if share >= Fraction(str(limits.act)):
        return f"That is above the {act} from which a variance asks for a decision."
    if share >= Fraction(str(limits.explain)):
        return f"That is above the {explain} from which a variance is explained, and below the {act} for a decision."
    return f"That is within the {explain} from which a variance is explained."


def _large(facts: Facts, found: Bridge) -> Iterator[str]:
    """Name the bars beyond the variance bands, and what moved most in each."""
    limits = facts.settings.thresholds
    for bar, pusd in sorted(found.shown_bars(), key=lambda pair: -abs(pair[0].pusd)):
        share = found.share(abs(bar.pusd))
        if share is None or not bar.pusd or share < Fraction(str(limits.explain)):
            continue
        band = "asks for a decision" if share >= Fraction(str(limits.act)) else "to be explained"
        yield (
            f"{sentence(bar.name)} {found.signed(pusd)}, {percent(share, 1)} of the spend before: {band}"
            f"{_mostly(found, bar)}"
        )


def _mostly(found: Bridge, bar: Bar) -> str:
    column = f"{bar.key}_pusd"
    if column not in found.movers.columns:
        return ""
    rows = [row for row in found.movers_shown() if row[column] * bar.pusd > 0]
    if not rows:
        return ""
    row = max(rows, key=lambda one: abs(one[column]))
    names = shortened(visible(" ".join(found.named(row, name) for name in found.by)))
    return f"; most of it `{names}` ({found.signed(row[column])})" if names else ""


def _mix(found: Bridge) -> Grid:
    rows = [(name.replace("_", " "), pusd, found.share(pusd)) for name, pusd in found.mix_shown().items()]
    total = sum(row[1] for row in rows)
    return grid(
        "bridge-mix",
        "Parts of the mix, each within the one before it",
        (
            Column("dimension", "dimension"),
            Column("pusd", "USD", "pusd", found.decimals, sums=True),
            Column("share", "of spend before", "ratio", 1),
        ),
        (*rows, ("mix", total, found.share(total))),
        note="The share of each model at its mean price; then, within it, of each tier; then of each kind of token.",
        has_total=True,
    )


def _said(found: Bridge, start: str, end: str) -> str:
    first, _, last = found.rounded()
    steps = ", ".join(f"{bar.name} {found.signed(pusd)}" for bar, pusd in found.shown_bars() if bar.pusd)
    return f"{start}: {found.money(first)}. {sentence(steps)}. {end}: {found.money(last)}."
