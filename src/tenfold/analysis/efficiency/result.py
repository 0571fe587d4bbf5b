"""The indicators of a window: the whole, its months, its parts, and what changed since the window before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, NamedTuple

from tenfold.analysis.efficiency.causes import CAUSES
from tenfold.analysis.efficiency.growth import Growth
from tenfold.analysis.efficiency.kpis import Discount, Kpis
from tenfold.analysis.efficiency.measures import MEASURES, Measure, Value, as_dict
from tenfold.display import UNMEASURED, counted, name_of, number, percent, saved_or_lost, sentence, small_dollars
from tenfold.money import usd_text
from tenfold.tables import Column, Grid, card, grid


class Change(NamedTuple):
    """One indicator now and in the window before.

    Args:
        measure: The indicator.
        now: Its value.
        before: Its value then; None where unknown.
    """

    measure: Measure
    now: Value
    before: Value

    @property
    def difference(self) -> Fraction | None:
        """Now minus before: points for a share. None where one of them is unknown."""
        return None if self.now is None or self.before is None else Fraction(self.now) - self.before


@dataclass(frozen=True, slots=True)
class Efficiency:
    """How well a bill was used.

    Args:
        total: The whole window.
        months: First day of each month with dated requests, in order; they add up to the whole, but for requests
            without a time.
        groups: Column to its values, dearest first; each column's values add up to the whole.
        growth: Growth of the context; None where no request has a session, a time and a known input.
        discount: List cost against effective cost.
        zone: Zone that months are cut in.
    """

    total: Kpis
    months: tuple[tuple[date, Kpis], ...]
    groups: Mapping[str, tuple[tuple[str | None, Kpis], ...]]
    growth: Growth | None
    discount: Discount
    zone: str

    @property
    def not_measurable(self) -> dict[str, str]:
        """What the log does not allow, by indicator, with the columns that would tell."""
        found = {cause.name: cause.needs for cause in CAUSES if self.total.waste_of(cause.name) is None}
        if self.total.cache is None:
            found["cache"] = "cache_read_tokens"
        if not self.total.sums["reasoning_known"]:
            found["reasoning"] = "reasoning_tokens"
        if self.growth is None:
            found["context_growth"] = "session_id, ts and input_tokens"
        if not self.discount.is_own:
            found["effective_discount"] = "prices of your own (--prices)"
        return found

    def against(self, before: Efficiency | None) -> tuple[Change, ...]:
        """Hold the indicators against those of the window before.

        Args:
            before: The window before, or None.

        Returns:
            One change an indicator, in the order of ``MEASURES``.
        """
        return tuple(
            Change(one, one.read(self.total), None if before is None else one.read(before.total)) for one in MEASURES
        )

    def sentences(self) -> list[str]:
        """Say it in plain lines, the largest first.

        Returns:
            Lines for people; what is not measurable is the last.
        """
        return list(_sentences(self))

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Efficiency {'; '.join(self.sentences()[:2])}>"

    def _repr_html_(self) -> str:
        """Show the sentences in a notebook, and the parts that were asked for."""
        return card("Efficiency", map(sentence, self.sentences()), *(self._grid(name) for name in self.groups))

    def _grid(self, name: str) -> Grid:
        columns = [
            Column(name, name),
            Column("spend", "spend (USD)", "pusd"),
            Column("hit", "read from cache", "ratio"),
        ]
        columns += [Column("waste", "waste (USD)", "pusd"), Column("share", "waste, of spend", "ratio")]
        rows = [
            (
                name_of(name, value),
                None if part.is_blank else part.spend_pusd,
                part.cache_hit_ratio,
                part.waste_pusd,
                part.waste_share,
            )
            for value, part in self.groups[name]
        ]
        return grid(f"efficiency-{name}", f"Efficiency by {name}", columns, rows)

    def as_dict(self) -> dict[str, Any]:
        """Give the object ``efficiency`` of ``tenfold kpis --json``.

        Returns:
            The whole's keys (see ``measures.as_dict``), ``effective_discount``, ``context_growth``, ``months[]``,
            ``groups{}``, ``not_measurable{}`` and ``sentences[]``.
        """
        discount = self.discount
        return {
            **as_dict(self.total),
            "effective_discount": {
                "ratio": None if discount.ratio is None else float(discount.ratio),
                "list_usd": usd_text(discount.list_pusd),
                "effective_usd": usd_text(discount.effective_pusd),
                "left_out_requests": discount.left_out_requests,
            },
            "context_growth": None if self.growth is None else self.growth.as_dict(),
            "months": [{"month": f"{month:%Y-%m}", **as_dict(kpis)} for month, kpis in self.months],
            "groups": {
                name: [{"value": value, **as_dict(kpis)} for value, kpis in values]
                for name, values in self.groups.items()
            },
            "not_measurable": self.not_measurable,
            "sentences": self.sentences(),
        }


def _sentences(found: Efficiency) -> Iterator[str]:
    total = found.total
    cache = total.cache
    if cache is not None:
        text = f"prompt caching {saved_or_lost(cache.saving_pusd)} of {small_dollars(cache.uncached_pusd)} of input"
        if cache.roi is not None:
            text += f", {number(cache.roi, 2)} for each $ of write premiums and storage"
        yield f"{text}; {percent(total.cache_hit_ratio)} of input was read from a cache{_where_known(total)}"
    wasted = total.waste_pusd
    if wasted is not None:
        parts = [
            f"{one.cause.title} {_money(one.once_pusd)} ({counted(one.once_requests, 'request')})"
            for one in total.waste
            if one.cause.label == "exact" and one.once_requests
        ]
        share = "" if total.waste_share is None else f", {percent(total.waste_share, 1)} of spend"
        text = f"waste {small_dollars(wasted)}{share}, each request once" + (f": {', '.join(parts)}" if parts else "")
        less = f"; {counted(total.waste_unpriced, 'request')} of it without a price" if total.waste_unpriced else ""
        yield text + less
    for one in total.waste:
        if one.cause.label == "ceiling" and one.once_pusd:
            yield (
                f"{one.cause.title} (equal prompt and parameters): at most {small_dollars(one.once_pusd)} more, "
                f"{counted(one.once_requests, 'request')}; a ceiling, not counted as waste"
            )
    batch, flex = total.tier_share("batch"), total.tier_share("flex")
    if batch is not None and flex is not None:
        tokens = percent(total.tier_share("batch", "tokens"))
        yield f"batch carries {percent(batch)} of spend ({tokens} of tokens), flex {percent(flex)}"
    if found.discount.ratio is not None:
        listed = small_dollars(found.discount.list_pusd)
        yield f"effective discount {percent(found.discount.ratio, 1)} off {listed} by the list"
    if total.reasoning_share is not None:
        yield f"reasoning tokens are {percent(total.reasoning_share)} of spend; whether they are read is not logged"
    if found.growth is not None and found.growth.median is not None:
        yield (
            f"the middle session ends with {number(found.growth.median, 2)} times the input it began with "
            f"({counted(found.growth.sessions, 'session')} of more than one turn)"
        )
    if found.not_measurable:
        parts = [f"{name.replace('_', ' ')} ({columns})" for name, columns in found.not_measurable.items()]
        yield f"{UNMEASURED}: {', '.join(parts)}"


def _money(pusd: int | None) -> str:
    return "without a price" if pusd is None else small_dollars(pusd)


def _where_known(total: Kpis) -> str:
    known = total.cache_known_ratio
    return "" if known is None or known == 1 else f" (unknown for {percent(1 - known)} of input)"
