"""Propose what a package says and a book does not: dated additions to price files, as a diff. Nothing is written."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, NamedTuple, TypeAlias, cast

from tenfold.money import usd_text
from tenfold.prices.book import PriceBook, PriceList
from tenfold.prices.compiling import Files
from tenfold.prices.importing.compare import Compared, compare
from tenfold.prices.importing.quotes import Quote, Reading
from tenfold.prices.meters import METER_NAMES, meters
from tenfold.prices.windows import WEEKDAYS, Window
from tenfold.prices.words import canonical_provider

# What makes one price list: provider, model, tier, region, window and a start that lies ahead (or None).
_Key: TypeAlias = tuple[str, str, str, str, Window | None, datetime | None]
_Rates: TypeAlias = dict[int, dict[str, Decimal]]
_BLOCK = re.compile(r"^(?=\[\[)", re.MULTILINE)


class Added(NamedTuple):
    """One price list that a proposal adds.

    Args:
        provider: Who bills.
        model: Model id.
        service_tier: Service tier.
        region: Price region; empty for none.
        valid_from: First day; None where it is new to the book.
        why: ``new_model``, ``new_list`` (a tier, region or hours the book lacks) or ``changed``.
        differences: For a change, meter to (USD in the book, USD in the package), base band first.
        text: Its ``[[price]]`` tables.
    """

    provider: str
    model: str
    service_tier: str
    region: str
    valid_from: date | None
    why: str
    differences: Mapping[str, tuple[str, str]]
    text: str


@dataclass
class Proposal:
    """What a package adds to a folder of price files.

    Args:
        reading: What the package says.
        card_version: Version of the book it was held against.
        added: Price lists to add.
        files: File name to its text before and after.
        outcomes: How many values are equal, differ, ...
        skipped: Lists that were not proposed, by reason.
    """

    reading: Reading
    card_version: str
    added: list[Added] = field(default_factory=list[Added])
    files: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    outcomes: Counter[str] = field(default_factory=Counter[str])
    skipped: Counter[str] = field(default_factory=Counter[str])

    def diffs(self) -> dict[str, str]:
        """Write the proposal as unified diffs.

        Returns:
            File name to its diff, which ``git apply`` takes at the root of a checkout.
        """
        return {name: _diff(name, before, after) for name, (before, after) in self.files.items() if before != after}


def propose(reading: Reading, book: PriceBook, files: Files, today: datetime) -> Proposal:
    """Compare a reading with a book and propose what to add to its files.

    A model, tier or region that the book lacks gets the package's rates; a list of which a value differs gets a new one
    that starts today and repeats what stays. A rate that the book lacks in a list that else agrees is counted, not
    proposed. The rules of ``pricing/README.md`` hold: nothing there is changed or deleted.

    Args:
        reading: What the package says.
        book: The book made of the files.
        files: Names and bytes of the files.
        today: Aware instant at which the two are compared; its day is the start of changed prices.

    Returns:
        The proposal.
    """
    made = Proposal(reading, book.version)
    current = (quote for quote in reading.quotes if quote.valid_to is None or today < quote.valid_to)
    groups: dict[_Key, list[Compared]] = defaultdict(list)
    for one in compare(current, book, today):
        made.outcomes[one.outcome] += 1
        quote = one.quote
        ahead = quote.valid_from if quote.valid_from is not None and today < quote.valid_from else None
        model = one.match.model or quote.model.lower()
        region = quote.region if one.entry is None else one.entry.region
        groups[quote.provider, model, quote.tier, region, quote.window, ahead].append(one)
    for key, found in groups.items():
        refused = _refused(key, found, book)
        added = None if refused else _added(key, found, made, today)
        if refused and refused != _AGREED:
            made.skipped[refused] += 1
        if added is not None:
            made.added.append(added)
    _drop_incomplete(made, book)
    texts = {name: content.decode("utf-8") for name, content in files}
    owners = {canonical_provider(provider): name for name, provider in _owners(texts)}
    by_provider: dict[str, list[Added]] = defaultdict(list)
    for one in made.added:
        by_provider[one.provider].append(one)
    for provider, additions in sorted(by_provider.items()):
        name = owners.get(provider, f"{provider}.toml")
        before = texts.get(name, "")
        made.files[name] = (before, _placed(before or f'provider = "{provider}"\n', additions))
    return made


def _owners(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, text in texts.items():
        provider = tomllib.loads(text).get("provider")
        if isinstance(provider, str):
            yield name, provider


def _refused(key: _Key, found: list[Compared], book: PriceBook) -> str:
    """Say why nothing is proposed for a price list; empty where something is."""
    provider, model, _, region, _, _ = key
    settled = _settled(found)
    bands = [entry for one in found if one.price_list is not None for entry in one.price_list.bands]
    derived = (
        entry.adjusted
        for (owner, name, _, place), lists in book.lists.items()
        if (owner, name, place) == (provider, model, region) and place
        for one in lists
        for entry in one.bands
    )
    agreed = all(one.outcome in ("equal", "no_rate") for one in settled)
    values = {(one.quote.above_input_tokens, one.quote.meter, one.quote.usd) for one in settled}
    reasons = (
        (agreed and not any(one.outcome == "differs" for one in found), _AGREED),
        (agreed, "another id of the package says what the book does"),
        (any(entry.ambiguous for entry in bands), "the book says why it has no agreed price"),
        (any(derived), "the book has the region as a factor on another one"),
        (any(one.outcome == "no_list" and one.match.lists for one in settled), "the book has prices at other times"),
        (len(values) > len({value[:2] for value in values}), "the package contradicts itself"),
        (any(entry.currency != "USD" for entry in bands), "the book has the price in another currency"),
        (all(one.quote.above_input_tokens > 0 for one in found), "a context band without its base band"),
    )
    return next((reason for is_so, reason in reasons if is_so), "")


_AGREED = "agreed"


def _settled(found: list[Compared]) -> list[Compared]:
    """Leave out what another id of the package says as the book does."""
    equal = {(one.quote.above_input_tokens, one.quote.meter) for one in found if one.outcome == "equal"}
    return [one for one in found if (one.quote.above_input_tokens, one.quote.meter) not in equal]


def _added(key: _Key, found: list[Compared], made: Proposal, today: datetime) -> Added | None:
    provider, model, tier, region, window, ahead = key
    settled = _settled(found)
    differing = [one for one in settled if one.outcome == "differs"]
    rates: _Rates = {}
    since, audio = ahead.date() if ahead else None, ""
    if differing and differing[0].price_list is not None:
        known = differing[0].price_list
        window = known.window  # the book's own hours, which may know more than the package's
        rates, audio = _known(known), _audio(known)
        since = since or today.date()
        if known.valid_from.date() == since:
            made.skipped["the book has another price of the same day"] += 1
            return None
    stated: _Rates = {}
    for one in settled:
        if one.outcome in ("differs", "no_model", "no_list"):
            stated.setdefault(one.quote.above_input_tokens, {})[one.quote.meter] = one.quote.usd
    for above, own in sorted(stated.items()):
        rates[above] = rates.get(above, rates.get(0, {})) | own
    amounts = [(name, usd) for own in rates.values() for name, usd in own.items()]
    if any((usd * 10**12 / _PER[name]) % 1 for name, usd in amounts):
        made.skipped["a rate finer than 1 pUSD a unit"] += 1
        return None
    differences = {
        _band(one.quote): (usd_text((one.rate or 0) * _PER[one.quote.meter]) or "", f"{one.quote.usd.normalize():f}")
        for one in differing
    }
    was = "; ".join(f"{name} was {old}" for name, (old, _) in differences.items())
    note = f"Imported: {was}." if was else ""
    where, source = (provider, model, tier, region), _source(found, made.reading)
    status = 'status = "announced"\n' if ahead else ""
    text = "\n".join(
        _table((*where, window), since, above, own, audio)
        + f"source = {json.dumps(source)}\nchecked = {today.date()}\n{status}"
        + (f"note = {json.dumps(note)}\n" if note else "")
        for above, own in sorted(rates.items())
    )
    why = "changed" if differing else "new_list" if found[0].match.model else "new_model"
    return Added(*where, since, why, differences, text)


_PER = {meter.name: meter.per for meter in meters()}
_PRICE = {meter.name: meter.price for meter in meters()}


def _band(quote: Quote) -> str:
    name = _PRICE[quote.meter]
    return f"{name} above {quote.above_input_tokens:,}" if quote.above_input_tokens else name


def _source(found: Iterable[Compared], reading: Reading) -> str:
    keys = dict.fromkeys(one.quote.key for one in found)
    return f"{reading.name} ({', '.join(list(keys)[:3])})"


def _known(price_list: PriceList) -> _Rates:
    """Repeat what the book has: a new list replaces the old one whole, its bands included."""
    return {
        max(entry.above, 0): {
            name: Decimal(usd_text(rate * _PER[name]) or "0")
            for name, rate in zip(METER_NAMES, entry.rates, strict=True)
            if rate is not None
        }
        for entry in price_list.bands
    }


def _audio(price_list: PriceList) -> str:
    entry = price_list.bands[0]
    least = f"min_audio_s = {entry.audio_min_ms // 1000}\n" if entry.audio_min_ms else ""
    return least + (f"round_audio_s = {entry.audio_step_ms // 1000}\n" if entry.audio_step_ms > 1 else "")


def _drop_incomplete(made: Proposal, book: PriceBook) -> None:
    """Leave out lists without input or output where the model bills both: a zero there would price calls too low."""
    rated: set[tuple[str, str, str]] = set()
    for one in made.added:
        rated |= {(one.provider, one.model, key) for key in ("input", "output") if f"\n{key} = " in one.text}
    for (provider, model, _, _), lists in book.lists.items():
        for entry in lists[-1].bands[:1]:
            rated |= {
                (provider, model, key)
                for key, rate in (("input", entry.rates[0]), ("output", entry.rates[_OUT]))
                if rate
            }
    kept: list[Added] = []
    for one in made.added:
        absent = [key for key in ("input", "output") if f"\n{key} = " not in one.text]
        if any((one.provider, one.model, key) in rated for key in absent):
            made.skipped["a tier without an input or output rate"] += 1
        else:
            zeros = "".join(f"{key} = 0\n" for key in absent)
            kept.append(one._replace(text=one.text.replace("\nsource = ", f"\n{zeros}source = ")))
    made.added[:] = kept


_OUT = METER_NAMES.index("output")


def _table(
    where: tuple[str, str, str, str, Window | None],
    since: date | None,
    above: int,
    rates: Mapping[str, Decimal],
    audio: str,
) -> str:
    """Write a price table as far as its rates."""
    _, model, tier, region, window = where
    lines = ["[[price]]", f"model = {json.dumps(model)}"]
    lines += [f"valid_from = {since}"] if since else []
    lines += [f"service_tier = {json.dumps(tier)}"] if tier != "standard" else []
    lines += [f"region = {json.dumps(region)}"] if region else []
    if window is not None:
        ranges = [f"{start // 60:02d}:{start % 60:02d}-{end // 60:02d}:{end % 60:02d}" for start, end in window.hours]
        lines += [f"weekdays = {json.dumps([WEEKDAYS[day] for day in window.weekdays])}"]
        lines += [f"hours = {json.dumps(ranges)}", f"zone = {json.dumps(window.zone)}"]
    lines += [f"above_input_tokens = {above}"] if above else []
    ordered = sorted(rates.items(), key=lambda pair: METER_NAMES.index(pair[0]))
    lines += [f"{_PRICE[name]} = {usd.normalize():f}" for name, usd in ordered]
    return "\n".join(lines) + "\n" + audio


def _placed(text: str, additions: Iterable[Added]) -> str:
    """Put additions after the last entry of their model, and new models after the last entry of the file."""
    blocks = _BLOCK.split(text)
    models = [_model_of(block) for block in blocks]
    last = max((i for i, model in enumerate(models) if model is not None), default=0)
    after: dict[int, list[str]] = defaultdict(list)
    for one in additions:
        found = [i for i, model in enumerate(models) if model == one.model]
        after[found[-1] if found else last].append(one.text)
    made: list[str] = []
    for i, block in enumerate(blocks):
        ends = block.endswith("\n\n") or i + 1 == len(blocks)
        made.append(
            block if not after[i] else "\n".join([block.rstrip("\n") + "\n", *after[i]]) + ("\n" if ends else "")
        )
    return "".join(made).rstrip("\n") + "\n"


def _model_of(block: str) -> str | None:
    if not block.startswith("[[price]]"):
        return None
    rows = cast("list[dict[str, Any]]", tomllib.loads(block)["price"])
    return str(rows[0].get("model", "")).lower()


def _diff(name: str, before: str, after: str) -> str:
    path = f"pricing/{name}"
    lines = difflib.unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        f"a/{path}" if before else "/dev/null",
        f"b/{path}",
    )
    return "".join(lines)
