"""What the bars of a bridge are, in words whose figures give the bar when one does the sum by hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from tenfold.analysis.bridge import bars
from tenfold.analysis.bridge.periods import Period
from tenfold.analysis.bridge.sides import listed, whole
from tenfold.display import name_of, percent
from tenfold.money import divided, shown

if TYPE_CHECKING:
    from tenfold.analysis.bridge.result import Bridge

_NAMED = 4  # segments in a note
_FIXED = {
    bars.WITHIN: "other context lengths, regions or hours, prices unchanged",
    bars.PRICE: "other prices in the price lists for what was used",
    bars.DISCOUNT: "your own prices against the list",
    bars.NEW: "what had no price in the period before",
    bars.DISCONTINUED: "what is no longer used, or no longer had a price",
    bars.IDLE: "GPUs paid for while no request ran on them",
}
_NAMES = {bars.WITHIN: "within segments", bars.DISCOUNT: "discounts", bars.IDLE: "idle GPUs"}


def name(key: str, old: Period, new: Period) -> str:
    """Name a bar.

    Args:
        key: Its driver.
        old: The period before.
        new: The period after.

    Returns:
        Text such as ``web search``.
    """
    if key == bars.PRICE:
        return "list price" if old.is_own or new.is_own else "price"
    return _NAMES.get(key, key.replace("_", " "))


class Words:
    """Words for the bars of two periods.

    Args:
        old: The period before.
        new: The period after.
        sums: The effects, with what they were computed from.
        scale: What the period before is multiplied with.
        base: ``requests`` or ``outcomes``.
        by: The dimensions.
        is_ordered: The method takes volume, then intensity: each is its growth times one amount.
        places: Decimals of a dollar to show.
    """

    def __init__(
        self, old: Period, new: Period, sums: bars.Sums, *, scale: Fraction, base: str, by: Sequence[str],
        is_ordered: bool, places: int,
    ) -> None:  # fmt: skip
        self.old, self.new, self.sums = old, new, sums
        self.scale, self.by, self.is_ordered, self.places = scale, by, is_ordered, places
        self.one = "request" if base == "requests" else "successful outcome"
        self.before, self.after = old.base * scale, Fraction(new.base)

    def what(self, key: str) -> str:
        """Say what a bar is.

        Args:
            key: Its driver.

        Returns:
            Text such as ``2 requests before, 4 after: +100.0 % of the $410.00 that what goes on cost before``.
        """
        if key == bars.VOLUME:
            return f"{whole(self.before)} {self.one}s before, {whole(self.after)} after{self._grown()}"
        if key == bars.INTENSITY:
            each = (self.old.tokens, self.old.base), (self.new.tokens, self.new.base)
            was, now = (whole(Fraction(tokens, many)) if many else "none" for tokens, many in each)
            return f"{was} tokens a {self.one} before, {now} after{self._denser()}"
        if key == bars.MIX:
            return f"other shares of {listed(self.by)}"
        return _FIXED.get(key) or self._counted(key)

    def _grown(self) -> str:
        going_on = self.sums.going_on
        if not self.is_ordered or not self.before or not going_on or self.before == self.after:
            return ""
        # what is discontinued, and what is no token, has a bar of its own
        is_all = going_on == self.old.cost * self.scale
        what = "spend before" if is_all else "that the tokens of continuing segments cost before"
        return f": {_signed(self.after / self.before - 1)} of the {self._money(going_on)} {what}"

    def _denser(self) -> str:
        if not self.is_ordered or not (self.old.tokens and self.new.tokens and self.before and self.after):
            return ""
        then = self.sums.going_on * self.after / self.before
        ratio = Fraction(self.new.tokens, self.new.base) / Fraction(self.old.tokens, self.old.base)
        if ratio == 1 or not then:
            return ""
        return f": {_signed(ratio - 1)} of {self._money(then)}, these tokens' cost before with the volume of after"

    def _counted(self, kind: str) -> str:
        """Count what a bar of units is computed from, and what of them other bars hold."""
        was, now = self.sums.counted.get(kind, (Fraction(0), Fraction(0)))
        left = self.old.units(kind) * self.scale - was, self.new.units(kind) - now
        text = f"{whole(was)} before, {whole(now)} after"
        if left[0]:
            text += f"; {whole(left[0])} of before are in discontinued"
        return text + (f"; {whole(left[1])} of after are in new" if left[1] else "")

    def _money(self, pusd: Fraction) -> str:
        return shown(divided(pusd.numerator, pusd.denominator), self.places)


def came_and_went(found: Bridge) -> Iterator[str]:
    """Name the segments of one period alone: what took another's place is mix, what it replaced is discontinued.

    Args:
        found: The bridge.

    Yields:
        What began, then what ended, dearest first.
    """
    movers = found.movers_shown()
    for verb, empty, other in (("began", "before_pusd", "after_pusd"), ("ended", "after_pusd", "before_pusd")):
        rows = [row for row in movers if not row[empty] and row[other] > 0]
        rows.sort(key=lambda row: -row[other])
        if rows and found.by:
            named = [
                f"{' '.join(name_of(one, row[one]) for one in found.by)} ({found.money(row[other])})"
                for row in rows[:_NAMED]
            ]
            more = f" and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
            yield f"{verb}: {', '.join(named)}{more}"


def _signed(share: Fraction) -> str:
    return f"{'+' if share > 0 else '-'}{percent(abs(share), 1)}"
