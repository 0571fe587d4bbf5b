"""What breaks the prompt cache, as found: frames for charts and evidence, and the same as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from tenfold.analysis.cache_breaks.remedies import Break, ranked
from tenfold.money import usd_text

# Each request has one cause: the first that holds, in this order.
CAUSES: dict[str, str] = {
    "no_rule": "nothing is known of this model's cache",
    "split_unknown": "the log does not say what was read",
    "below_minimum": "the prompt is shorter than the model caches",
    "volatile_head": "nearly every prompt of the feature begins anew",
    "first": "nothing before it begins alike",
    "not_cached": "the request before was not put in the cache",
    "read": "its beginning was read as far as it could be",
    "gap": "the pause since the turn before was longer than the cache lives",
    "cold_start": "the same beginning was last sent longer ago than the cache lives",
    "model_switch": "the turn before was another model's, and caches are by model",
    "in_flight": "sent before the one that writes the cache had begun to answer",
    "prefix_broken": "it does not begin as the turn before it",
    "missed": "the same beginning within the lifetime, and nothing read",
    "partly_read": "the same beginning within the lifetime, and less read than was there",
    "rewritten": "it is shorter than the turn before: earlier turns were left out or summarised",
    "unexplained": "less read than was there; without prefix hashes a changed prefix and a miss look alike",
    "write_unread": "written to the cache, and read by nothing within the lifetime",
}
# What is counted, not costed.
UNCOSTED = frozenset({"no_rule", "split_unknown", "below_minimum", "first", "not_cached", "read"})
CEILINGS = frozenset({"volatile_head"})


@dataclass(frozen=True, slots=True)
class CacheBreaks:
    """What breaks the prompt cache in a log as billed, each with its cost.

    Args:
        frame: One row per (provider, model, feature, cause, place): ``label`` (replayed, or ceiling), ``turns``,
            ``tokens`` (that would have been read; of ``write_unread`` written in vain; of causes without a cost all
            input), ``unpriced_turns``, ``cost_pusd`` (NULL where the cause is only counted). ``place`` is of broken
            prefixes: head, fixed_depth, elsewhere.
        depths: One row per (provider, model, feature, block) at which prefixes broke: ``block`` (the first that
            differs, 0 first), ``token`` (where it begins), ``place``, ``sessions``, ``turns``, ``tokens``,
            ``cost_pusd``.
        gaps: One row per (provider, model, feature, gap): ``turns``, ``prefix_tokens`` (of the turn before, at stake).
        lifetimes: One row per (provider, model, feature) whose provider has a longer lifetime: ``band_tokens`` (lost
            at gaps that it would have covered), ``written_tokens`` (then written at its price), ``saving_pusd`` (both
            terms; negative where it does not pay), ``unpriced_turns``.
        heads: One row per (provider, model, feature): ``starts``, ``heads`` (distinct first blocks), ``is_volatile``.
        misses: One row per (provider, model, feature): ``eligible_turns`` (the same beginning within the lifetime),
            ``missed_turns`` (nothing read).
        rules: One row per (provider, model, time) with the rule that was used; ``is_min_published`` and
            ``is_lifetime_published`` are false where a stand-in was.
        break_evens: (Provider, model) to its break-evens from the card's rates.
        texts: One row per (provider, model, feature, cause, place, why): ``turns``, ``tokens``,
            ``cost_pusd``, of the dearest breaks whose prompts were kept; parts of ``frame``, not beside it.
        not_measurable: Part to the columns that it lacks.
    """

    frame: pl.DataFrame
    depths: pl.DataFrame
    gaps: pl.DataFrame
    lifetimes: pl.DataFrame
    heads: pl.DataFrame
    misses: pl.DataFrame
    rules: pl.DataFrame
    break_evens: Mapping[tuple[str, str], Mapping[str, Fraction | None]]
    texts: pl.DataFrame
    not_measurable: Mapping[str, tuple[str, ...]]

    @property
    def cost_pusd(self) -> int:
        """What all breaks together cost, ceilings left out; no token is in two of them."""
        return int(self.frame.filter(pl.col("label") == "replayed")["cost_pusd"].sum() or 0)

    def cost(self, cause: str) -> int:
        """Sum one cause.

        Args:
            cause: A key of ``CAUSES``.

        Returns:
            pUSD over all features.
        """
        return int(self.frame.filter(pl.col("cause") == cause)["cost_pusd"].sum() or 0)

    def turns(self, cause: str) -> int:
        """Count the requests of one cause.

        Args:
            cause: A key of ``CAUSES``.

        Returns:
            The number.
        """
        return int(self.frame.filter(pl.col("cause") == cause)["turns"].sum() or 0)

    def ranked(self) -> tuple[Break, ...]:
        """Put the breaks in order, each with what to do about it.

        Returns:
            One a cause, place and feature, the dearest first, ceilings behind all others.
        """
        return ranked(self.frame, self.texts, self.lifetimes)

    def as_dict(self) -> dict[str, Any]:
        """Give everything as JSON values.

        Returns:
            ``cost_usd``, ``ranked[]`` (each with ``text`` and ``to_do``), ``breaks[]``, ``depths[]``, ``gaps[]``,
            ``lifetimes[]``, ``heads[]``, ``misses[]``, ``rules[]``, ``break_evens[]``, ``texts[]``,
            ``not_measurable{}``; money as decimal strings of USD.
        """
        return {
            "cost_usd": usd_text(self.cost_pusd),
            "ranked": [one.as_dict() for one in self.ranked()],
            "breaks": _rows(self.frame),
            "depths": _rows(self.depths),
            "gaps": _rows(self.gaps),
            "lifetimes": _rows(self.lifetimes),
            "heads": _rows(self.heads),
            "misses": _rows(self.misses),
            "rules": _rows(self.rules),
            "break_evens": [
                {"provider": provider, "model": model, **{name: _short(value) for name, value in values.items()}}
                for (provider, model), values in self.break_evens.items()
            ],
            "texts": _rows(self.texts),
            "not_measurable": {part: list(columns) for part, columns in self.not_measurable.items()},
        }


def _rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return [dict(_plain(row.items())) for row in frame.rows(named=True)]


def _plain(items: Iterable[tuple[str, Any]]) -> Iterable[tuple[str, Any]]:
    for name, value in items:
        if name.endswith("_pusd"):
            yield f"{name.removesuffix('_pusd')}_usd", usd_text(None if value is None else int(value))
        else:
            yield name, value.isoformat() if hasattr(value, "isoformat") else value


def _short(value: Fraction | None) -> str | None:
    """Write a fraction with at most six decimals."""
    if value is None:
        return None
    rounded = round(value, 6)
    return str(Decimal(rounded.numerator) / Decimal(rounded.denominator))
