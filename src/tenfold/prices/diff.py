"""What differs between two price books: lists added and removed, rates changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from tenfold.money import usd_text
from tenfold.prices.book import EVER, Entry, PriceBook, PriceList
from tenfold.prices.meters import meters

# Provider, model, tier, region, window in words, start of validity.
ListKey: TypeAlias = tuple[str, str, str, str, str, datetime]


class Difference(NamedTuple):
    """A whole price list that only one of the books has.

    Args:
        key: What it applies to.
        price_list: The list.
    """

    key: ListKey
    price_list: PriceList

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices diff --json``.

        Returns:
            What it applies to, and its bands with their rates in USD.
        """
        bands = [
            {
                "above_input_tokens": max(entry.above, 0),
                "rates_usd": _listed(entry),
                "ambiguous": entry.ambiguous or None,
            }
            for entry in self.price_list.bands
        ]
        return {**_where(self.key), "bands": bands}


class Change(NamedTuple):
    """A rate that the two books have differently.

    Args:
        key: The price list it stands in.
        above_input_tokens: Its context band.
        meter: Its price key.
        from_usd: USD in the first book for the meter's units; None where it has no such rate.
        to_usd: USD in the second, likewise.
    """

    key: ListKey
    above_input_tokens: int
    meter: str
    from_usd: str | None
    to_usd: str | None

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices diff --json``.

        Returns:
            What it applies to, the meter, and both figures.
        """
        return {
            **_where(self.key),
            "above_input_tokens": self.above_input_tokens,
            "meter": self.meter,
            "from_usd": self.from_usd,
            "to_usd": self.to_usd,
        }


class BookDiff(NamedTuple):
    """What differs between two books.

    Args:
        versions: Card versions of both.
        added: Price lists that only the second has.
        removed: Price lists that only the first has.
        changed: Rates in lists that both have.
    """

    versions: tuple[str, str]
    added: tuple[Difference, ...]
    removed: tuple[Difference, ...]
    changed: tuple[Change, ...]

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices diff --json``.

        Returns:
            ``card_versions{a, b}``, ``added[]``, ``removed[]``, ``changed[]``.
        """
        return {
            "card_versions": {"a": self.versions[0], "b": self.versions[1]},
            "added": [one.as_dict() for one in self.added],
            "removed": [one.as_dict() for one in self.removed],
            "changed": [one.as_dict() for one in self.changed],
        }


def diff(a: PriceBook, b: PriceBook) -> BookDiff:
    """Compare two books by what they bill, whatever their files look like.

    Args:
        a: The first book.
        b: The second.

    Returns:
        The differences, in the order of provider, model, tier, region and date.
    """
    left, right = _lists(a), _lists(b)
    changed = (change for key in sorted(left.keys() & right.keys()) for change in _changes(key, left[key], right[key]))
    return BookDiff(
        (a.version, b.version),
        tuple(Difference(key, right[key]) for key in sorted(right.keys() - left.keys())),
        tuple(Difference(key, left[key]) for key in sorted(left.keys() - right.keys())),
        tuple(changed),
    )


def _lists(book: PriceBook) -> dict[ListKey, PriceList]:
    return {
        (*key, "" if one.window is None else one.window.text(), one.valid_from): one
        for key, lists in book.lists.items()
        for one in lists
    }


def _changes(key: ListKey, left: PriceList, right: PriceList) -> Iterator[Change]:
    bands = [{max(entry.above, 0): _listed(entry) for entry in one.bands} for one in (left, right)]
    for above in sorted({*bands[0], *bands[1]}):
        old, new = bands[0].get(above, {}), bands[1].get(above, {})
        for meter in meters():
            if old.get(meter.price) != new.get(meter.price):
                yield Change(key, above, meter.price, old.get(meter.price), new.get(meter.price))


def _listed(entry: Entry) -> dict[str, str]:
    rates = zip(meters(), entry.rates, strict=True)
    return {meter.price: usd_text(rate * meter.per) or "" for meter, rate in rates if rate is not None}


def _where(key: ListKey) -> dict[str, Any]:
    provider, model, tier, region, window, valid_from = key
    return {
        "provider": provider,
        "model": model,
        "service_tier": tier,
        "region": region or None,
        "window": window or None,
        "valid_from": None if valid_from == EVER else valid_from.isoformat(),
    }
