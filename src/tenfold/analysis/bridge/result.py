"""A bridge between two periods: bars that foot, in figures, words and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from tenfold.analysis.bridge import grids
from tenfold.analysis.bridge.sides import Side, decimals, listed
from tenfold.analysis.bridge.swaps import Swap
from tenfold.display import name_of, percent, sentence
from tenfold.money import divided, footed, shown, to_usd, usd_text
from tenfold.tables import Grid, card

if TYPE_CHECKING:
    from tenfold.charts.theme import AnyChart

_METHOD_NAMES = {"pvm": "price-volume-mix", "bennet": "Bennet", "lmdi": "LMDI", "shapley": "Shapley"}
_SWAPS = 4  # places that are told


class Bar(NamedTuple):
    """One bar.

    Args:
        key: Its driver: ``volume``, ``intensity``, ``mix``, ``within``, ``price``, ``discount``, ``new``,
            ``discontinued``, ``idle_gpus``, or a kind of unit that is no token.
        name: For people.
        pusd: What it added to the bill, in pUSD; below 0 it took off it.
        what: What it is, with figures.
    """

    key: str
    name: str
    pusd: int
    what: str

    @property
    def favourable(self) -> bool | None:
        """Whether it made the bill smaller; None for a bar of nothing."""
        return self.pusd < 0 if self.pusd else None


@dataclass(frozen=True, slots=True)
class Bridge:
    """What moved a bill from one period to the next.

    Args:
        bars: The bars in order; they sum to ``after.pusd - before.pusd``.
        before: The period before.
        after: The period after.
        mix_by: Dimension to its part of the mix, in pUSD; they sum to the bar.
        movers: One row a segment, by how far it moved: dimensions, ``before_pusd``, ``after_pusd``, ``change_pusd``
            and per bar ``<key>_pusd``; a row's bars sum to its change.
        by: Dimensions of a segment.
        base: ``requests`` or ``outcomes``.
        method: How effects were told apart.
        price_at: The boundary whose prices both periods were held against.
        scale: What the period before was multiplied with.
        where: The part of the traffic that is looked at.
        swaps: Models that took another's place in a team and feature, the largest first.
        notes: What a reader must know.
        versions: Card versions, before and after.
        log_hashes: Hashes of the logs, before and after.
    """

    bars: tuple[Bar, ...]
    before: Side
    after: Side
    mix_by: Mapping[str, int]
    movers: pl.DataFrame
    by: tuple[str, ...]
    base: str
    method: str
    price_at: datetime
    scale: Fraction
    where: Mapping[str, str | None]
    swaps: tuple[Swap, ...]
    notes: tuple[str, ...]
    versions: tuple[str, str]
    log_hashes: tuple[str, str]

    @property
    def change_pusd(self) -> int:
        """Spend after less spend before, in pUSD."""
        return self.after.pusd - self.before.pusd

    def bar(self, key: str) -> int:
        """Give one bar.

        Args:
            key: Its key.

        Returns:
            pUSD; 0 where there is no such bar.
        """
        return sum(bar.pusd for bar in self.bars if bar.key == key)

    def share(self, pusd: int) -> Fraction | None:
        """Give an amount as a share of the spend before.

        Args:
            pusd: The amount.

        Returns:
            The share; None where nothing was spent before.
        """
        return Fraction(pusd, self.before.pusd) if self.before.pusd else None

    @property
    def decimals(self) -> int:
        """Decimals of a dollar to show: cents, and finer where less than a dollar was spent."""
        return decimals(self.before, self.after)

    def rounded(self) -> tuple[int, tuple[int, ...], int]:
        """Round spend and bars to what is shown, so that they still foot.

        Returns:
            pUSD, whole cents (or millionths of a dollar): before, each bar, after.
        """
        unit = 10 ** (12 - self.decimals)
        first, last = divided(self.before.pusd, unit), divided(self.after.pusd, unit)
        bars = footed([Fraction(bar.pusd, unit) for bar in self.bars], last - first) if self.bars else []
        return first * unit, tuple(bar * unit for bar in bars), last * unit

    def shown_bars(self) -> Iterator[tuple[Bar, int]]:
        """Pair the bars with what is shown of them: the one rounding that tables, sentences and pictures share.

        Yields:
            Bar, and its pUSD in whole cents (or millionths of a dollar).
        """
        yield from zip(self.bars, self.rounded()[1], strict=True)

    def movers_shown(self) -> list[dict[str, Any]]:
        """Round the movers to what is shown, so that every selection of them reads alike and columns foot.

        Returns:
            The rows of ``movers``, amounts in pUSD of whole cents (or millionths of a dollar).
        """
        return grids.rounded_movers(self)

    def swap_lines(self) -> list[str]:
        """Say which models took another's place, in one line a team and feature.

        Returns:
            Lines such as ``agents · planner: m1 -$484.50, m2 +$1,019.79: net +$535.29``.
        """
        unit = 10 ** (12 - self.decimals)
        said: list[str] = []
        for one in self.swaps[:_SWAPS]:
            pairs = [*((model, -pusd) for model, pusd in one.ended), *one.began]
            parts = [(model, divided(pusd, unit) * unit) for model, pusd in pairs]
            named = ", ".join(f"{model} {self.signed(pusd)}" for model, pusd in parts)
            said.append(f"{one.place}: {named}: net {self.signed(sum(pusd for _, pusd in parts))}")
        if len(self.swaps) > _SWAPS:
            said.append(f"{len(self.swaps) - _SWAPS} more places where a model took another's")
        return said

    def mix_shown(self) -> dict[str, int]:
        """Round the parts of the mix to what is shown, so that they sum to the bar as shown.

        Returns:
            Dimension to pUSD.
        """
        unit = 10 ** (12 - self.decimals)
        bars = {bar.key: pusd for bar, pusd in self.shown_bars()}
        parts = [Fraction(pusd, unit) for pusd in self.mix_by.values()]
        return dict(zip(self.mix_by, (one * unit for one in footed(parts, bars["mix"] // unit)), strict=True))

    def sentences(self) -> list[str]:
        """Say the change and its causes for people, the largest first.

        Returns:
            One sentence each.
        """
        first, last = self.money(self.before.pusd), self.money(self.after.pusd)
        if self.change_pusd:
            verb = "rose" if self.change_pusd > 0 else "fell"
            share = self.share(abs(self.change_pusd))
            ratio = "" if share is None else f" ({percent(share, 1)})"
            said = f"spend {verb} by {self.money(abs(self.change_pusd))}{ratio}, from {first} to {last}"
        else:
            said = f"spend stayed at {last}"
        ordered = sorted((pair for pair in self.shown_bars() if pair[0].pusd), key=lambda pair: -abs(pair[0].pusd))
        return [said, *(f"{bar.name} {self.signed(pusd)}: {bar.what}" for bar, pusd in ordered)]

    def money(self, pusd: int) -> str:
        """Write an amount as the bridge shows money.

        Args:
            pusd: The amount.

        Returns:
            Text such as ``$1,234.50``.
        """
        return shown(pusd, self.decimals)

    def signed(self, pusd: int) -> str:
        """Write a change.

        Args:
            pusd: The change.

        Returns:
            Text such as ``+$12.00``.
        """
        return f"+{self.money(pusd)}" if pusd > 0 else self.money(pusd)

    def grid(self, name: str = "bridge") -> Grid:
        """Make the table of the bars, from the spend before to the spend after; rounded so that it foots.

        Args:
            name: Id of the table.

        Returns:
            The table.
        """
        return grids.bars(self, name)

    def movers_grid(self, name: str = "bridge-movers", *, top: int = 10, most: int = 5) -> Grid:
        """Make the table of the segments that moved most; each column foots as shown.

        Args:
            name: Id of the table.
            top: How many segments; the others are one row.
            most: How many bars; the smaller ones are one column.

        Returns:
            The table.
        """
        return grids.movers(self, name, top=top, most=most)

    def how(self) -> str:
        """Say the method and the segments.

        Returns:
            Text such as ``price-volume-mix by model, service tier and kind of token, volume in requests``.
        """
        return f"{_METHOD_NAMES[self.method]} by {listed(self.by)}, volume in {self.base}"

    def named(self, row: Mapping[str, Any], name: str) -> str:
        """Write a segment's value of a dimension.

        Args:
            row: Row of ``movers``.
            name: The dimension.

        Returns:
            The value, or the word for none.
        """
        return name_of(name, row[name])

    def frame(self) -> pl.DataFrame:
        """Give the bars as a frame: ``key``, ``bar``, ``usd`` (exact), ``favourable``."""
        return pl.DataFrame(
            {
                "key": [bar.key for bar in self.bars],
                "bar": [bar.name for bar in self.bars],
                "usd": pl.Series([to_usd(bar.pusd) for bar in self.bars], dtype=pl.Decimal(38, 12)),
                "favourable": pl.Series([bar.favourable for bar in self.bars], dtype=pl.Boolean),
            }
        )

    def waterfall(self, *, start: str = "spend before", end: str = "spend after") -> AnyChart:
        """Draw the bridge.

        Args:
            start: Name of the spend before.
            end: Name of the spend after.

        Returns:
            The chart.

        Raises:
            MissingExtraError: Altair is not installed.
        """
        from tenfold.charts import spend_bridge

        first, bars, last = self.rounded()
        steps = [start, *(bar.name for bar in self.bars), end]
        frame = pl.DataFrame(
            {
                "step": steps,
                "pusd": pl.Series([Decimal(one) for one in (first, *bars, last)], dtype=pl.Decimal(38, 0)),
            }
        )
        return spend_bridge(frame, decimals=self.decimals)

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold bridge --json``.

        Returns:
            ``before{}``, ``after{}``, ``change_usd``, ``bars[]`` (key, name, usd, shown_usd, share_of_before,
            favourable, what), ``mix_by{}``, ``movers[]``, ``by``, ``base``, ``method``, ``price_at``, ``scale``,
            ``where{}``, ``swaps[]``, ``notes[]``, ``card_version``, ``log_hash``, and of the period before where they
            differ ``before_card_version``, ``before_log_hash``.
        """
        other = {
            f"before_{name}": pair[0]
            for name, pair in (("card_version", self.versions), ("log_hash", self.log_hashes))
            if pair[0] != pair[1]
        }
        return {
            "before": self.before.as_dict(),
            "after": self.after.as_dict(),
            "change_usd": usd_text(self.change_pusd),
            "bars": [
                {
                    "key": bar.key,
                    "name": bar.name,
                    "usd": usd_text(bar.pusd),
                    "shown_usd": usd_text(pusd),
                    "share_of_before": None if (share := self.share(bar.pusd)) is None else float(share),
                    "favourable": bar.favourable,
                    "what": bar.what,
                }
                for bar, pusd in self.shown_bars()
            ],
            "mix_by": {name: usd_text(pusd) for name, pusd in self.mix_by.items()},
            "movers": [
                {
                    **{name: row[name] for name in self.by},
                    **{
                        f"{name.removesuffix('_pusd')}_usd": usd_text(int(row[name]))
                        for name in self.movers.columns[len(self.by) :]
                    },
                }
                for row in self.movers.rows(named=True)
            ],
            "by": list(self.by),
            "base": self.base,
            "method": self.method,
            "price_at": self.price_at.isoformat(),
            "scale": str(self.scale),
            "where": dict(self.where),
            "swaps": [one.as_dict() for one in self.swaps],
            "notes": list(self.notes),
            "card_version": self.versions[1],
            "log_hash": self.log_hashes[1],
            **other,
        }

    def _repr_html_(self) -> str:
        """Show the change and its bars in a notebook."""
        return card(sentence(self.sentences()[0]), (*self.swap_lines(), *self.notes), self.grid())

    def __repr__(self) -> str:
        moved = ", ".join(f"{bar.name} {self.signed(pusd)}" for bar, pusd in self.shown_bars() if bar.pusd)
        return f"<Bridge {self.money(self.before.pusd)} to {self.money(self.after.pusd)}: {moved or 'nothing moved'}>"
