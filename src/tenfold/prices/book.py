"""The price book: every dated entry compiled to price lists that are looked up by (provider, model, tier, region)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeAlias

from tenfold.errors import near
from tenfold.prices.words import canonical_provider, canonical_tier

FOREVER = datetime.max.replace(tzinfo=UTC)
EVER = datetime.min.replace(tzinfo=UTC)
NO_LIMIT = 2**62
_DATED = re.compile(r"^(?P<base>.+?)[-@](?:\d{4}-\d{2}-\d{2}|\d{8})$")


class Entry(NamedTuple):
    """Where a rate comes from and what it is.

    Args:
        provider: Who bills.
        model: Canonical model id.
        tier: Service tier.
        region: Price region; empty for none.
        above: The band applies above this total input, in tokens (-1 for the base band).
        up_to: And up to this one, in tokens.
        rates: pUSD per unit, one per meter in meter order; None where there is no price.
        file: File that holds the entry.
        number: Its place in that file, from 1.
        source: Where the figure comes from.
        checked: ISO date on which it was checked.
        status: confirmed or announced.
        note: What else is known.
        ambiguous: Why there is no agreed price; empty where there is one.
    """

    provider: str
    model: str
    tier: str
    region: str
    above: int
    up_to: int
    rates: tuple[int | None, ...]
    file: str
    number: int
    source: str
    checked: str
    status: str
    note: str
    ambiguous: str

    def as_dict(self, valid_from: datetime | None, valid_to: datetime | None) -> dict[str, Any]:
        """Give the entry the keys that scripts rely on.

        Args:
            valid_from: Start of its price list; ``EVER`` and None have no known start.
            valid_to: Its end; ``FOREVER`` and None have none.

        Returns:
            Where it stands, what it applies to, and its source.
        """
        return {
            "file": self.file,
            "number": self.number,
            "provider": self.provider,
            "model": self.model,
            "service_tier": self.tier,
            "region": self.region or None,
            "above_input_tokens": max(self.above, 0),
            "valid_from": None if valid_from in (None, EVER) else valid_from.isoformat(),
            "valid_to": None if valid_to in (None, FOREVER) else valid_to.isoformat(),
            "source": self.source,
            "checked": self.checked,
            "status": self.status,
            "note": self.note or None,
        }


class PriceList(NamedTuple):
    """All context bands of one (provider, model, tier, region) between two instants, ``[valid_from, valid_to)``."""

    valid_from: datetime
    valid_to: datetime
    bands: tuple[Entry, ...]

    def band(self, input_tokens: int) -> Entry:
        """Find the band of a request: a cliff on its total input, strictly above the threshold.

        Args:
            input_tokens: Total input of the request, in tokens.

        Returns:
            The entry whose rates the whole request takes.
        """
        return next(entry for entry in reversed(self.bands) if input_tokens > entry.above)


class Match(NamedTuple):
    """What the book knows for one (provider, model, tier, region).

    Args:
        lists: Price lists in time order; empty where there is no price.
        how: exact, alias, prefix, dated_id, fine_tune or none.
        model: Canonical id that was found; empty where none was.
        reason: Why there is no price, with the near match; empty where there is one.
    """

    lists: tuple[PriceList, ...]
    how: str
    model: str
    reason: str

    def at(self, instant: datetime) -> PriceList | None:
        """Find the list in force at an instant.

        Args:
            instant: An aware instant.

        Returns:
            The list, or None where the book has none for that time.
        """
        return next((found for found in self.lists if found.valid_from <= instant < found.valid_to), None)


Key: TypeAlias = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class PriceBook:
    """All price lists of some files, looked up by what a log says.

    Args:
        lists: Price lists by (provider, canonical model, tier, region), in time order.
        ids: (provider, lower-case id) to (canonical model, how it was found).
        neutral_regions: Per provider, the region words that mean no region.
        version: Card version: hash of the files.
    """

    lists: Mapping[Key, tuple[PriceList, ...]]
    ids: Mapping[tuple[str, str], tuple[str, str]]
    neutral_regions: Mapping[str, frozenset[str]]
    version: str
    _memo: dict[Key, Match] = field(default_factory=dict[Key, "Match"], repr=False, compare=False)

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Every context threshold that any entry has used, in tokens, ascending."""
        found = {entry.above for lists in self.lists.values() for one in lists for entry in one.bands}
        return tuple(sorted(found - {-1}))

    def match(
        self, provider: str | None, model: str | None, tier: str | None = None, region: str | None = None
    ) -> Match:
        """Look up the price lists for what a log or a caller says.

        Args:
            provider: Who bills, in any known spelling.
            model: Model id as served.
            tier: Service tier; None is standard.
            region: Price region; None is none.

        Returns:
            The match; one without lists carries the reason and the near match. Nothing falls back silently.
        """
        asked = (
            canonical_provider(provider),
            (model or "").strip(),
            canonical_tier(tier),
            (region or "").strip().lower(),
        )
        if asked not in self._memo:
            self._memo[asked] = self._find(*asked)
        return self._memo[asked]

    def _find(self, provider: str, model: str, tier: str, region: str) -> Match:
        canonical, how = self._identify(provider, model.lower())
        if not canonical:
            return Match((), "none", "", self._no_model(provider, model))
        place = "" if region in self.neutral_regions.get(provider, frozenset()) else region
        found = self.lists.get((provider, canonical, tier, place), ())
        if found:
            return Match(found, how, canonical, "")
        cells = [(key[2], key[3]) for key in self.lists if key[:2] == (provider, canonical)]
        tiers = sorted({cell[0] for cell in cells})
        if tier not in tiers:
            reason = f'{provider} has no "{tier}" price for {canonical}, only {", ".join(tiers)}.{near(tier, tiers)}'
        else:
            regions = sorted({cell[1] or "(none)" for cell in cells if cell[0] == tier})
            priced = ", ".join(regions)
            reason = f'{provider} has no price for {canonical} ({tier}) in region "{region}", only in {priced}'
        return Match((), how, canonical, reason)

    def _identify(self, provider: str, name: str) -> tuple[str, str]:
        bare = name.removeprefix("models/").removeprefix(f"{provider}/")
        if "/" in bare and canonical_provider(bare.split("/", 1)[0]) == provider:
            bare = bare.split("/", 1)[1]
        for candidate, via in ((name, ""), (bare, "prefix")):
            found = self.ids.get((provider, candidate))
            if found:
                return found[0], via or found[1]
        if bare.startswith("ft:"):  # OpenAI: ft:<base snapshot>:<organisation>:<name>:<id>
            found = self.ids.get((provider, ":".join(bare.split(":", 2)[:2])))
            return (found[0], "fine_tune") if found else ("", "none")
        dated = _DATED.match(bare)
        found = self.ids.get((provider, dated["base"])) if dated else None
        return (found[0], "dated_id") if found else ("", "none")

    def _no_model(self, provider: str, model: str) -> str:
        providers = {key[0] for key in self.lists}
        if provider not in providers:
            known = ", ".join(sorted(providers))
            return f'no prices for provider "{provider}", only for {known}.{near(provider, providers)}'
        if not model:
            return f"the log names no model (provider {provider})"
        ids = [name for owner, name in self.ids if owner == provider]
        return f'{provider} has no price for model "{model}".{near(model.lower(), ids)}'
