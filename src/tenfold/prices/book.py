"""The price book: every dated entry compiled to price lists that are looked up by (provider, model, tier, region)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tenfold.errors import near
from tenfold.prices.globs import matches
from tenfold.prices.words import arn_region, canonical_provider, canonical_tier, profile_of

if TYPE_CHECKING:
    from tenfold.prices.windows import Window

FOREVER = datetime.max.replace(tzinfo=UTC)
EVER = datetime.min.replace(tzinfo=UTC)
NO_LIMIT = 2**62
_DATED = re.compile(r"^(?P<base>.+?)[-@](?P<year>\d{4})(?P<dash>-?)(?P<month>\d{2})(?P=dash)(?P<day>\d{2})$")


def _dated(name: str) -> tuple[str, ...] | None:
    """Split a date off an id: the id without it, and the id with the date in every spelling."""
    found = _DATED.match(name)
    if found is None:
        return None
    year, month, day = found["year"], found["month"], found["day"]
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return None
    base = found["base"]
    return base, *(f"{base}{sign}{when}" for sign in "-@" for when in (f"{year}-{month}-{day}", f"{year}{month}{day}"))


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
        currency: Currency the price is written in.
        native: The rates in 1e-12 of that currency per unit, as written.
        exchange: USD for one unit of that currency, where the rates were converted; empty for USD.
        layer: ``list``, or ``contract`` where your own prices made the rates.
        adjusted: What was done to the written rates (region factor, discount, conversion), and where it was rounded.
        audio_min_ms: Least audio that is billed a request.
        audio_step_ms: Billed audio is rounded up to a multiple of this.
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
    currency: str = "USD"
    native: tuple[int | None, ...] = ()
    exchange: str = ""
    layer: str = "list"
    adjusted: str = ""
    audio_min_ms: int = 0
    audio_step_ms: int = 1

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
            "currency": self.currency,
            "exchange_usd": self.exchange or None,
            "layer": self.layer,
            "adjusted": self.adjusted or None,
        }


class PriceList(NamedTuple):
    """All context bands of one (provider, model, tier, region) between two instants, ``[valid_from, valid_to)``.

    A list with a window holds at those times of the week only, and goes before one without.
    """

    valid_from: datetime
    valid_to: datetime
    bands: tuple[Entry, ...]
    window: Window | None = None

    def band(self, input_tokens: int) -> Entry:
        """Find the band of a request: a cliff on its total input, strictly above the threshold.

        Args:
            input_tokens: Total input of the request, in tokens.

        Returns:
            The entry whose rates the whole request takes.
        """
        return next(entry for entry in reversed(self.bands) if input_tokens > entry.above)


def in_order(lists: list[PriceList]) -> tuple[PriceList, ...]:
    """Put price lists in the order in which they are tried.

    Args:
        lists: Lists of one (provider, model, tier, region).

    Returns:
        Those with a window first, each kind in time order.
    """
    return tuple(sorted(lists, key=lambda one: (one.window is None, one.valid_from, one.window or ())))


class Match(NamedTuple):
    """What the book knows for one (provider, model, tier, region).

    Args:
        lists: Price lists in the order in which they are tried; empty where there is no price.
        how: exact, alias, prefix, dated_id, fine_tune, pattern or none.
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
        for found in self.lists:
            if found.valid_from <= instant < found.valid_to and (found.window is None or found.window.covers(instant)):
                return found
        return None

    def missing(self, instant: datetime) -> str:
        """Say why there is no price at an instant.

        Args:
            instant: The instant.

        Returns:
            The reason, with the time for which the book has one.
        """
        if not self.lists:
            return self.reason
        first = min(one.valid_from for one in self.lists)
        last = max(one.valid_to for one in self.lists)
        if instant >= last:
            return f"{self.model} has no price at {instant.isoformat()}: the last one ended {last.isoformat()}"
        if instant < first:
            return f"{self.model} has no price at {instant.isoformat()}: the first one begins {first.isoformat()}"
        return f"{self.model} has no price at {instant.isoformat()}"

    def how_priced(self, entry: Entry | None) -> str:
        """Say how a price was found.

        Args:
            entry: The entry that priced, or None.

        Returns:
            ``override`` where your own prices made it; else how the id was matched.
        """
        return "override" if entry is not None and entry.layer == "contract" else self.how


class Commitment(NamedTuple):
    """A flat cost that requests share: capacity by the hour, or an amount to be spent in a window.

    Args:
        name: What it is called.
        provider: Who bills.
        models: Globs of canonical model ids it covers; empty for all.
        tiers: Service tiers it covers; empty for all.
        pusd_per_hour: Cost of the capacity by the hour, or None.
        pusd: Amount to be spent between the two instants, or None.
        valid_from: Start.
        valid_to: End, exclusive.
        source: Where the figure comes from.
    """

    name: str
    provider: str
    models: tuple[str, ...]
    tiers: tuple[str, ...]
    pusd_per_hour: int | None
    pusd: int | None
    valid_from: datetime
    valid_to: datetime
    source: str

    def covers(self, provider: str, model: str, tier: str) -> bool:
        """Tell whether it pays for requests of a canonical (provider, model, tier)."""
        return (
            provider == self.provider
            and (not self.tiers or tier in self.tiers)
            and (not self.models or any(matches(pattern, model) for pattern in self.models))
        )


class RegionWord(NamedTuple):
    """What a word of the logs means as a price region, for some models or all (no globs)."""

    region: str
    models: tuple[str, ...]


Key: TypeAlias = tuple[str, str, str, str]


class PriceBook:
    """All price lists of some files, looked up by what a log says.

    Args:
        lists: Price lists by (provider, canonical model, tier, region), in the order in which they are tried.
        ids: (provider, lower-case id) to (canonical model, how it was found).
        patterns: Per provider, (pattern, canonical model).
        regions: (provider, word of the logs) to what it means.
        version: Card version: hash of the files.
        commitments: Flat costs that requests share.
        list_book: The list prices, where ``lists`` holds your own over them; itself otherwise.
        caching: Contents of the ``caching.toml`` files that go with it, the first to be tried first; unread until a
            cache is looked at (``tenfold.prices.caching.rules_of``).
        unknown: Per provider whose models are known in full, what to say of another model.
    """

    __slots__ = (
        *("_memo", "caching", "commitments", "fast", "ids", "list_book", "lists", "patterns", "regions"),
        *("unknown", "version"),
    )

    def __init__(
        self,
        lists: Mapping[Key, tuple[PriceList, ...]],
        ids: Mapping[tuple[str, str], tuple[str, str]],
        patterns: Mapping[str, tuple[tuple[str, str], ...]],
        regions: Mapping[tuple[str, str], tuple[RegionWord, ...]],
        version: str,
        commitments: tuple[Commitment, ...] = (),
        list_book: PriceBook | None = None,
        caching: tuple[bytes, ...] = (),
        unknown: Mapping[str, Callable[[str], str]] | None = None,
    ) -> None:
        self.lists = lists
        self.ids = ids
        self.patterns = patterns
        self.regions = regions
        self.version = version
        self.commitments = commitments
        self.list_book: PriceBook = list_book or self
        self.caching = caching
        self.unknown = unknown or {}
        self._memo: dict[Key, Match] = {}
        # What the single price call keeps: (provider, model, tier, region) as given to something ready to multiply.
        self.fast: dict[tuple[str, str, str | None, str | None], Any] = {}

    @property
    def is_own(self) -> bool:
        """Whether it holds prices or commitments of your own, so that list and contracted cost may differ."""
        return self.list_book is not self or bool(self.commitments)

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
        # A Bedrock inference profile is part of the id and says where the request is priced, whatever the log's region.
        profile, bare = profile_of(provider, model.lower())
        canonical, how = self._identify(provider, model.lower())
        if not canonical and bare != model.lower():
            canonical, how = self._identify(provider, bare)
            how = "prefix" if canonical else how
            region = (profile or region or arn_region(model)) if canonical else region
        if not canonical:
            return Match((), "none", "", self._no_model(provider, model))
        place = self._region(provider, canonical, region)
        found = self.lists.get((provider, canonical, tier, place), ())
        if found:
            return Match(found, how, canonical, "")
        cells = [(key[2], key[3]) for key in self.lists if key[:2] == (provider, canonical)]
        tiers = sorted({cell[0] for cell in cells})
        if tier not in tiers:
            reason = f'{provider} has no "{tier}" price for {canonical}, only {", ".join(tiers)}.{near(tier, tiers)}'
        else:
            regions = sorted({cell[1] for cell in cells if cell[0] == tier})
            priced = ", ".join(f'"{name}"' if name else "calls without a region" for name in regions)
            if region != place:
                region = f'{region}" (as "{place}") "'.removesuffix(' "')
            reason = f'{provider} has no price for {canonical} ({tier}) in region "{region}", only for {priced}.'
            words = [
                word
                for (owner, word), _ in self.regions.items()
                if owner == provider and self._region(provider, canonical, word) in regions
            ]
            reason += near(region, [name for name in (*regions, *words) if name and name != region])
        return Match((), how, canonical, reason)

    def _region(self, provider: str, canonical: str, region: str) -> str:
        for word in self.regions.get((provider, region), ()):
            if not word.models or any(matches(pattern, canonical) for pattern in word.models):
                return word.region
        return region

    def _identify(self, provider: str, name: str) -> tuple[str, str]:
        bare = name.removeprefix("models/").removeprefix(f"{provider}/").removeprefix("models/")
        if "/" in bare and canonical_provider(bare.split("/", 1)[0]) == provider:
            bare = bare.split("/", 1)[1]
        for candidate, via in ((name, ""), (bare, "prefix")):
            found = self.ids.get((provider, candidate))
            if found:
                return found[0], via or found[1]
        if bare.startswith("ft:"):  # OpenAI: ft:<base snapshot>:<organisation>:<name>:<id>
            found = self.ids.get((provider, ":".join(bare.split(":", 2)[:2])))
            return (found[0], "fine_tune") if found else ("", "none")
        dated = _dated(bare)
        if dated:
            # Another spelling of a date that is known goes before the id without any.
            spelt = (self.ids.get((provider, name)) for name in dated[1:])
            found = next((one for one in spelt if one), None)
            if found:
                return found[0], "alias"
            found = self.ids.get((provider, dated[0]))
            if found:
                return found[0], "dated_id"
        by_shape = (model for pattern, model in self.patterns.get(provider, ()) if matches(pattern, bare))
        model = next(by_shape, "") if bare else ""
        return (model, "pattern") if model else ("", "none")

    def _no_model(self, provider: str, model: str) -> str:
        providers = {key[0] for key in self.lists}
        if not provider:
            return "the log names no provider: load it into a new database with --set provider=NAME"
        if provider in self.unknown:
            return self.unknown[provider](model)
        if provider not in providers:
            only = f"only for {', '.join(sorted(providers))}.{near(provider, providers)}"
            return f'no prices for provider "{provider}", {only}'
        if not model:
            return f"the log names no model (provider {provider})"
        ids = [name for owner, name in self.ids if owner == provider]
        return f'{provider} has no price for model "{model}".{near(model.lower(), ids)}'
