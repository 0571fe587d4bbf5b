"""What differs between two price books: lists added and removed, rates changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from tenfold.money import usd_text
from tenfold.prices.book import EVER, FOREVER, Entry, PriceBook, PriceList
from tenfold.prices.meters import meters

# Provider, model, tier, region, window in words, start of validity.
ListKey: TypeAlias = tuple[str, str, str, str, str, datetime]
# Context band to what a list says there, as text.
Facts: TypeAlias = dict[int, dict[str, str]]


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


class Name(NamedTuple):
    """What a word means in one book and not, or otherwise, in the other.

    Args:
        kind: ``id``, ``pattern``, ``region`` or ``commitment``.
        provider: Whose.
        name: The word.
        before: Its meaning in the first book; None where it has none.
        after: In the second, likewise.
    """

    kind: str
    provider: str
    name: str
    before: str | None
    after: str | None

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices diff --json``.

        Returns:
            ``kind``, ``provider``, ``name``, ``from``, ``to``.
        """
        named = {"kind": self.kind, "provider": self.provider, "name": self.name}
        return {**named, "from": self.before, "to": self.after}


class BookDiff(NamedTuple):
    """What differs between two books.

    Args:
        versions: Card versions of both.
        added: Price lists that only the second has.
        removed: Price lists that only the first has.
        changed: Rates (and ends, minimums, ambiguity) in lists that both have.
        names: Ids, patterns, region words and commitments that mean something else.
    """

    versions: tuple[str, str]
    added: tuple[Difference, ...]
    removed: tuple[Difference, ...]
    changed: tuple[Change, ...]
    names: tuple[Name, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold prices diff --json``.

        Returns:
            ``card_versions{a, b}``, ``added[]``, ``removed[]``, ``changed[]``, ``names[]``.
        """
        return {
            "card_versions": {"a": self.versions[0], "b": self.versions[1]},
            "added": [one.as_dict() for one in self.added],
            "removed": [one.as_dict() for one in self.removed],
            "changed": [one.as_dict() for one in self.changed],
            "names": [one.as_dict() for one in self.names],
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
    both = sorted(left.keys() & right.keys())
    changed = (change for key in both for change in _changes(key, _facts(key, left), _facts(key, right)))
    return BookDiff(
        (a.version, b.version),
        tuple(Difference(key, right[key]) for key in sorted(right.keys() - left.keys())),
        tuple(Difference(key, left[key]) for key in sorted(left.keys() - right.keys())),
        tuple(changed),
        tuple(_names(a, b)),
    )


def _lists(book: PriceBook) -> dict[ListKey, PriceList]:
    return {
        (*key, "" if one.window is None else one.window.text(), one.valid_from): one
        for key, lists in book.lists.items()
        for one in lists
    }


def _changes(key: ListKey, left: Facts, right: Facts) -> Iterator[Change]:
    for above in sorted({*left, *right}):
        old, new = left.get(above, {}), right.get(above, {})
        for fact in dict.fromkeys((*old, *new)):
            if old.get(fact) != new.get(fact):
                yield Change(key, above, fact, old.get(fact), new.get(fact))


def _listed(entry: Entry) -> dict[str, str]:
    rates = zip(meters(), entry.rates, strict=True)
    return {meter.price: usd_text(rate * meter.per) or "" for meter, rate in rates if rate is not None}


def _facts(key: ListKey, lists: Mapping[ListKey, PriceList]) -> Facts:
    """Give each band of a list what decides a bill: rates, and what stands beside them."""
    one = lists[key]
    # A list that ends where the next one begins says nothing of its own.
    has_end = one.valid_to != FOREVER and (*key[:5], one.valid_to) not in lists
    found: Facts = {}
    for entry in one.bands:
        beside = {
            "valid_to": one.valid_to.isoformat() if has_end else "",
            "min_audio_s": str(entry.audio_min_ms // 1000) if entry.audio_min_ms else "",
            "round_audio_s": str(entry.audio_step_ms // 1000) if entry.audio_step_ms > 1 else "",
            "ambiguous": entry.ambiguous,
        }
        found[max(entry.above, 0)] = _listed(entry) | {name: text for name, text in beside.items() if text}
    return found


def _names(a: PriceBook, b: PriceBook) -> Iterator[Name]:
    for kind, left, right in (
        ("id", {key: model for key, (model, _) in a.ids.items()}, {key: model for key, (model, _) in b.ids.items()}),
        ("pattern", _patterns(a), _patterns(b)),
        ("region", _regions(a), _regions(b)),
        ("commitment", _commitments(a), _commitments(b)),
    ):
        for key in sorted({*left, *right}):
            if left.get(key) != right.get(key):
                yield Name(kind, *key, left.get(key), right.get(key))


def _patterns(book: PriceBook) -> dict[tuple[str, str], str]:
    return {(owner, shape): model for owner, found in book.patterns.items() for shape, model in found}


def _regions(book: PriceBook) -> dict[tuple[str, str], str]:
    return {
        key: "; ".join(f'"{one.region}"' + (f" for {', '.join(one.models)}" if one.models else "") for one in found)
        for key, found in book.regions.items()
    }


def _commitments(book: PriceBook) -> dict[tuple[str, str], str]:
    return {(one.provider, one.name): str(one) for one in book.commitments}


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
