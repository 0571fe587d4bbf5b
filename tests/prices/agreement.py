"""How far the price book agrees with the installed genai-prices and litellm: counts, every difference with its reason.

Run by ``make agreement`` (``python tests/prices/agreement.py``); ``test_agreement.py`` holds the book to it.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from tenfold.prices import PriceBook, price_book
from tenfold.prices.importing import genai_prices, litellm
from tenfold.prices.importing.compare import Compared, compare
from tenfold.prices.importing.quotes import Reading, per_of
from tenfold.prices.meters import METER_NAMES, meters

DIFFERENCES = Path(__file__).with_name("differences.toml")
TODAY = datetime(2026, 11, 29, 12, tzinfo=UTC)  # the day the packages were read
PRICE_KEY = {meter.name: meter.price for meter in meters()}
COLUMNS = ("equal", "differ", "ambiguous here", "only there", "only here")


@dataclass
class Difference:
    """One ``[[difference]]`` of the data file: a reason, and what it covers."""

    package: str
    provider: str
    models: list[str]
    why: str
    source: str
    meters: list[str] = field(default_factory=list)
    tiers: list[str] = field(default_factory=list)
    regions: list[str] = field(default_factory=list)
    figures: list[str] = field(default_factory=list)
    times: str = ""

    def __post_init__(self) -> None:
        if bool(self.figures) == bool(self.times):
            raise ValueError(f"{self}: give either figures (theirs > ours) or times (ours / theirs)")

    def covers(self, package: str, one: Compared) -> bool:
        quote = one.quote
        ours = listed_usd(one)
        fits = (
            package == self.package
            and quote.provider == self.provider
            and any(fnmatchcase(quote.key, glob) or fnmatchcase(quote.model, glob) for glob in self.models)
            and (not self.meters or PRICE_KEY[quote.meter] in self.meters)
            and (not self.tiers or quote.tier in self.tiers)
            and (not self.regions or quote.region in self.regions)
        )
        if not fits:
            return False
        if self.times:
            return quote.usd * Decimal(self.times) == ours
        return f"{plain(quote.usd)} > {plain(ours)}" in self.figures


@dataclass
class Provider:
    """What one package says about one provider."""

    outcomes: Counter[str] = field(default_factory=Counter)
    only_here: int = 0
    differing: list[tuple[Compared, Difference | None]] = field(default_factory=list)

    def row(self) -> tuple[int, ...]:
        found = self.outcomes
        only_there = found["no_model"] + found["no_list"] + found["no_rate"]
        return found["equal"], found["differs"], found["ambiguous"], only_there, self.only_here


@dataclass
class Agreement:
    """What the packages say about the book."""

    packages: dict[str, dict[str, Provider]] = field(default_factory=dict)
    unused: list[Difference] = field(default_factory=list)
    # Provider: values on which both packages agree, those of them that are in the book and equal, and the others.
    both: dict[str, tuple[int, int, list[tuple[str, ...]]]] = field(default_factory=dict)

    def unexplained(self) -> list[str]:
        return [
            f"{package}: {said(one)}"
            for package, providers in self.packages.items()
            for found in providers.values()
            for one, why in found.differing
            if why is None
        ]


@cache
def readings() -> tuple[Reading, Reading]:
    return genai_prices.read(), litellm.read()


@cache
def differences() -> tuple[Difference, ...]:
    return tuple(Difference(**row) for row in tomllib.loads(DIFFERENCES.read_text())["difference"])


def agreement(book: PriceBook) -> Agreement:
    made = Agreement()
    used: set[int] = set()
    values: dict[str, dict[tuple, list[Compared]]] = {}
    owned = {provider for provider, *_ in book.lists}
    for reading in readings():
        providers = made.packages.setdefault(reading.package, {name: Provider() for name in sorted(owned)})
        touched: set[tuple] = set()
        by_value = values.setdefault(reading.package, defaultdict(list))
        for one in compare((quote for quote in reading.quotes if quote.provider in owned), book, TODAY):
            found = providers[one.quote.provider]
            found.outcomes[one.outcome] += 1
            if one.entry is not None and one.outcome != "ambiguous":
                touched.add((one.quote.provider, one.match.model, *one.entry[2:5], one.quote.meter))
            if one.quote.in_force(TODAY):
                by_value[value_of(one)].append(one)
            if one.outcome == "differs":
                why = next((i for i, known in enumerate(differences()) if known.covers(reading.package, one)), None)
                used |= {i for i, known in enumerate(differences()) if known.covers(reading.package, one)}
                found.differing.append((one, None if why is None else differences()[why]))
        for provider, number in Counter(cell[0] for cell in cells(book) - touched).items():
            providers[provider].only_here = number
    made.unused = [known for i, known in enumerate(differences()) if i not in used]
    for provider in sorted(owned):
        made.both[provider] = agreed(provider, *values.values())
    return made


def value_of(one: Compared) -> tuple:
    quote = one.quote
    model = one.match.model or quote.model.lower()
    return quote.provider, model, quote.tier, quote.region, quote.above_input_tokens, quote.meter, quote.window_text


def agreed(provider: str, left: dict, right: dict) -> tuple[int, int, list[tuple[str, ...]]]:
    both = [key for key in left.keys() & right.keys() if key[0] == provider]
    same = [key for key in both if len({one.quote.usd for one in left[key] + right[key]}) == 1]
    equal = [key for key in same if all(one.outcome == "equal" for one in left[key] + right[key])]
    others = sorted(tuple(map(str, (*key[1:6], left[key][0].outcome))) for key in set(same) - set(equal))
    return len(same), len(equal), others


def cells(book: PriceBook) -> set[tuple]:
    """Every rate in force, by what it applies to."""
    return {
        (provider, model, entry.tier, entry.region, entry.above, name)
        for (provider, model, _, _), lists in book.lists.items()
        for one in lists
        if one.valid_from <= TODAY < one.valid_to
        for entry in one.bands
        for name, rate in zip(METER_NAMES, entry.rates, strict=True)
        if rate is not None
    }


def plain(usd: Decimal) -> str:
    return f"{usd.normalize():f}"


def listed_usd(one: Compared) -> Decimal:
    return Decimal(one.rate or 0) * per_of(one.quote.meter) / 10**12


def said(one: Compared) -> str:
    quote = one.quote
    where = [
        quote.key,
        quote.tier,
        quote.region,
        f"above {quote.above_input_tokens:,}" * bool(quote.above_input_tokens),
    ]
    ours = f"{one.entry.file} entry {one.entry.number}" if one.entry else ""
    words = " ".join(word for word in where if word)
    return f"{words} {PRICE_KEY[quote.meter]}: {plain(quote.usd)} there, {plain(listed_usd(one))} here ({ours})"


def report(found: Agreement) -> Iterable[str]:
    for reading in readings():
        yield f"{reading.name}: values per provider"
        yield "  " + "".join(f"{word:>16}" for word in ("", *COLUMNS))
        for provider, one in found.packages[reading.package].items():
            yield "  " + f"{provider:>16}" + "".join(f"{count:>16,}" for count in one.row())
        yield ""
    yield "values on which both packages agree, of which in the book and equal"
    for provider, (same, equal, _) in found.both.items():
        if same:
            yield f"  {provider:>16}{same:>16,}{equal:>16,}  {equal / same:.2%}"
    for package, providers in found.packages.items():
        for provider, one in providers.items():
            by_reason: dict[str, list[Compared]] = defaultdict(list)
            for compared, why in one.differing:
                by_reason["NOT LISTED" if why is None else f"{why.why} [{why.source}]"].append(compared)
            for reason, rows in by_reason.items():
                yield ""
                yield f"{package}, {provider}: {len(rows)} values. {reason}"
                yield from (f"    {said(row)}" for row in rows)


if __name__ == "__main__":
    result = agreement(price_book(*sys.argv[1:2]))
    sys.stdout.write("\n".join(report(result)) + "\n")
    sys.exit(1 if result.unexplained() or result.unused else 0)
