"""From price files to a price book: dates to half-open intervals, bands to cliffs, your own prices on top."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tenfold.errors import PriceFileError, near
from tenfold.prices import contract, currency, models, windows
from tenfold.prices.book import (
    EVER,
    FOREVER,
    NO_LIMIT,
    Entry,
    Key,
    PriceBook,
    PriceList,
    RegionWord,
    in_order,
)
from tenfold.prices.files import CACHING, caching_of, version_of
from tenfold.prices.globs import could_both_match
from tenfold.prices.meters import meters
from tenfold.prices.windows import Window
from tenfold.prices.words import canonical_provider, canonical_tier

Files = list[tuple[str, bytes]]


@dataclass
class _Compiled:
    """What some files say."""

    lists: dict[Key, tuple[PriceList, ...]] = field(default_factory=dict[Key, tuple[PriceList, ...]])
    ids: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict[tuple[str, str], tuple[str, str]])
    patterns: dict[str, tuple[tuple[str, str], ...]] = field(default_factory=dict[str, tuple[tuple[str, str], ...]])
    regions: dict[tuple[str, str], tuple[RegionWord, ...]] = field(
        default_factory=dict[tuple[str, str], tuple[RegionWord, ...]]
    )


def compiled(files: Files) -> PriceBook:
    """Compile price files to a book; a contract among them goes over their list prices.

    Args:
        files: Names and bytes of the price files.

    Returns:
        The book; with a contract in it, ``list_book`` holds the list prices.

    Raises:
        PriceFileError: A file cannot be used; names file, entry, key and the near match.
    """
    found = _compile(files)
    lists = currency.converted(found.lists, currency.read(files))
    caching = (caching_of(files),)
    base = PriceBook(lists, found.ids, found.patterns, found.regions, version_of(files), caching=caching)
    own = contract.read(files)
    if own is None:
        return base
    return PriceBook(
        contract.applied(own, lists, base.ids),
        base.ids,
        base.patterns,
        base.regions,
        base.version,
        own.commitments,
        base,
        caching,
    )


def laid_over(under: PriceBook, files: Files) -> PriceBook:
    """Lay your own price files over a book.

    Args:
        under: The book below; its list prices stay the list.
        files: Names and bytes of your own files: from their dates on, their price lists take the place of those of the
            same provider, model, tier and region; their contract applies to what is then in force.

    Returns:
        The book.

    Raises:
        PriceFileError: A file cannot be used; names file, entry, key and the near match.
    """
    over = _compile(files)
    _check_ids(under, over)
    conversions = currency.read(files)
    lists = dict(currency.converted(under.lists, conversions))
    for key, added in currency.converted(over.lists, conversions).items():
        ours = [one._replace(bands=tuple(band._replace(layer="contract") for band in one.bands)) for one in added]
        lists[key] = _laid_over(lists.get(key, ()), ours)
    own = contract.read(files)
    ids = {**under.ids, **over.ids}
    return PriceBook(
        lists if own is None else contract.applied(own, lists, ids),
        ids,
        {
            name: over.patterns.get(name, ()) + under.patterns.get(name, ())
            for name in {**under.patterns, **over.patterns}
        },
        {word: over.regions.get(word, ()) + under.regions.get(word, ()) for word in {**under.regions, **over.regions}},
        version_of([("below", under.version.encode()), *files]),
        under.commitments if own is None else own.commitments,
        under.list_book,
        tuple(content for name, content in files if name == CACHING) + under.caching,
    )


def with_price(
    book: PriceBook,
    place: str,
    raw: dict[str, Any],
    *,
    version: str = "",
    unknown: Callable[[str], str] | None = None,
) -> PriceBook:
    """Give a book the prices of one more provider, which no file has: a model that one means to host, say.

    Args:
        book: The book.
        place: Where the prices are written, for errors.
        raw: Keys of a price file, as TOML gives them.
        version: Version of the book that is made; by default that of the book.
        unknown: Says why a model of that provider has no price, where it is not among these.

    Returns:
        A book with those price lists too, in its list prices as well.

    Raises:
        PriceFileError: Something in it cannot be used, or the book has prices of that provider; names the place.
    """
    parsed = models.price_file(place, raw)
    provider = canonical_provider(parsed.provider)
    if any(key[0] == provider for key in book.lists):
        raise PriceFileError(f'{place}: the price book has prices of provider "{provider}" already')
    made = _Compiled()
    _collect_ids(place, provider, parsed, made)
    lists = _price_lists(place, provider, parsed)

    def extended(under: PriceBook, listed: PriceBook | None) -> PriceBook:
        return PriceBook(
            {**under.lists, **lists},
            {**under.ids, **made.ids},
            under.patterns,
            under.regions,
            version or under.version,
            under.commitments,
            listed,
            under.caching,
            {**under.unknown, **({provider: unknown} if unknown else {})},
        )

    return extended(book, None if book.list_book is book else extended(book.list_book, None))


def _check_ids(under: PriceBook, over: _Compiled) -> None:
    """Refuse your own ids that would mean another model than the book below says: one of the two would be missed."""
    for (provider, name), (model, how) in over.ids.items():
        below = under.ids.get((provider, name))
        if below is not None and below[0] != model:
            what = f'model "{name}"' if how == "exact" else f'alias "{name}" of {model}'
            raise PriceFileError(
                f"your prices of {provider}: {what} is known as {below[0]} in the book below; write your entries under "
                f'model = "{below[0]}"'
            )


def _compile(files: Iterable[tuple[str, bytes]]) -> _Compiled:
    made = _Compiled()
    owner: dict[str, str] = {}
    for name, content in files:
        parsed = models.parse(name, content)
        if parsed is None:
            continue
        provider = canonical_provider(parsed.provider)
        if provider in owner:
            raise PriceFileError(
                f'{name}: provider "{provider}" is also in {owner[provider]}; keep one file a provider'
            )
        owner[provider] = name
        _collect_regions(provider, parsed, made)
        _collect_ids(name, provider, parsed, made)
        made.lists.update(_price_lists(name, provider, parsed))
    return made


def _collect_regions(provider: str, parsed: models.PriceFile, made: _Compiled) -> None:
    found: dict[str, list[RegionWord]] = defaultdict(list)
    for alias in parsed.region_alias:
        for word in alias.words:
            found[word.lower()].append(RegionWord(alias.region.lower(), tuple(glob.lower() for glob in alias.models)))
    for word in parsed.region_neutral:
        found[word.lower()].append(RegionWord("", ()))
    made.regions.update({(provider, word): tuple(meanings) for word, meanings in found.items()})


def _collect_ids(file: str, provider: str, parsed: models.PriceFile, made: _Compiled) -> None:
    canonical = {entry.model.lower() for entry in parsed.price if entry.status != "withdrawn"}
    for name in sorted(canonical):
        made.ids[provider, name] = (name, "exact")
    shapes: list[tuple[str, str]] = []
    for number, entry in enumerate(parsed.price, 1):
        where = f"{file}, {models.place(number, entry)}"
        model = entry.model.lower()
        for alias in entry.aliases:
            if alias.lower() in canonical:
                raise PriceFileError(f'{where}: alias "{alias}" is a model of its own here; remove one of the two')
            known = made.ids.setdefault((provider, alias.lower()), (model, "alias"))
            if known[0] != model:
                raise PriceFileError(
                    f'{where}: alias "{alias}" already stands for {known[0]}; an id bills one way only'
                )
        for pattern in (text.lower() for text in entry.patterns):
            for other, owner in shapes:
                if owner != model and could_both_match(pattern, other):
                    raise PriceFileError(
                        f'{where}: pattern "{pattern}" and "{other}" of {owner} can match the same id; make one of '
                        "them narrower, or list the ids under aliases (exact ids go first)"
                    )
            shapes.append((pattern, model))
    if shapes:
        made.patterns[provider] = tuple(dict.fromkeys(shapes))


_Group = tuple[Key, Window | None]


def _price_lists(file: str, provider: str, parsed: models.PriceFile) -> dict[Key, tuple[PriceList, ...]]:
    dated: dict[_Group, dict[datetime, dict[int, tuple[Entry, datetime]]]] = defaultdict(lambda: defaultdict(dict))
    for number, entry in enumerate(parsed.price, 1):
        where = f"{file}, {models.place(number, entry)}"
        try:
            rates = entry.rates()
            window = windows.window(entry.weekdays, entry.hours, entry.zone)
        except ValueError as error:
            raise PriceFileError(f"{where}: {error}") from error
        starts, ends = entry.valid_from or EVER, entry.valid_to or FOREVER
        if ends <= starts:
            raise PriceFileError(f"{where}: valid_to must be after valid_from")
        if entry.status == "withdrawn":
            continue
        key = (provider, entry.model.lower(), canonical_tier(entry.service_tier), entry.region.lower())
        bands = dated[key, window][starts]
        if entry.above_input_tokens in bands:
            twin = bands[entry.above_input_tokens][0].number
            raise PriceFileError(
                f"{where}: same model, tier, region, date, hours and band as entry {twin}; date the newer one "
                "(valid_from)"
            )
        made = Entry(
            *key, entry.above_input_tokens, NO_LIMIT, rates, file, number, entry.source,
            entry.checked.isoformat(), entry.status, entry.note, entry.ambiguous, parsed.currency,
            rates if parsed.currency != "USD" else (), audio_min_ms=entry.min_audio_s * 1000,
            audio_step_ms=max(entry.round_audio_s * 1000, 1),
        )  # fmt: skip
        bands[entry.above_input_tokens] = (made, ends)
    by_key: dict[Key, list[PriceList]] = defaultdict(list)
    for (key, window), versions in dated.items():
        by_key[key] += _intervals(file, key, window, versions)
    _check_windows(file, by_key)
    lists = {key: in_order(found) for key, found in by_key.items()}
    known = {entry.model.lower() for entry in parsed.price}
    for number, factor in enumerate(parsed.region_factor, 1):
        where = f'{file}, region_factor {number} (region "{factor.region}")'
        for model in factor.models:
            if model.lower() not in known:
                raise PriceFileError(f'{where}: no entry for model "{model}".{near(model.lower(), known)}')
        _add_region(where, factor, lists)
    return lists


def _check_windows(file: str, by_key: dict[Key, list[PriceList]]) -> None:
    for key, lists in by_key.items():
        windowed = [one for one in lists if one.window is not None]
        for i, left in enumerate(windowed):
            for right in windowed[i + 1 :]:
                together = left.valid_from < right.valid_to and right.valid_from < left.valid_to
                if together and left.window and right.window and windows.overlap(left.window, right.window):
                    numbers = left.bands[0].number, right.bands[0].number
                    raise PriceFileError(
                        f"{file}: entries {numbers[0]} and {numbers[1]} of {key[1]} ({key[2]}) both apply at some "
                        "hours of the week; cut their hours apart, or date one of them"
                    )


def _add_region(where: str, factor: models.RegionFactor, lists: dict[Key, tuple[PriceList, ...]]) -> None:
    """Add the lists of a region whose token rates are a multiple, from the factor's date on."""
    since = factor.valid_from or EVER
    for model in factor.models:
        for key in [key for key in lists if key[1] == model.lower() and not key[3]]:
            made = (*key[:3], factor.region.lower())
            if made in lists:
                raise PriceFileError(
                    f"{where}: {model} ({key[2]}) has entries of its own in that region; keep one of the two"
                )
            try:
                lists[made] = tuple(
                    one._replace(
                        valid_from=max(one.valid_from, since),
                        bands=tuple(_scaled(band, factor, where) for band in one.bands),
                    )
                    for one in lists[key]
                    if one.valid_to > since
                )
            except ValueError as error:
                raise PriceFileError(f"{where}, {model}: {error}") from error


def _scaled(band: Entry, factor: models.RegionFactor, where: str) -> Entry:
    def scaled(rates: tuple[int | None, ...]) -> tuple[int | None, ...]:
        return tuple(
            _times(rate, factor.factor) if meter.unit == "tokens" else rate
            for rate, meter in zip(rates, meters(), strict=bool(rates))
        )

    said = f"token rates times {factor.factor.removesuffix('x')} ({where})"
    return band._replace(
        region=factor.region.lower(), rates=scaled(band.rates), native=scaled(band.native), adjusted=said
    )


def _times(rate: int | None, factor: str) -> int | None:
    if rate is None:
        return None
    by = models.decimal(factor.removesuffix("x"))
    if by <= 0:
        raise ValueError(f"factor {factor} must be above 0")
    numerator, denominator = by.as_integer_ratio()
    scaled, rest = divmod(rate * numerator, denominator)
    if rest:
        raise ValueError(f"{rate} pUSD times {factor} is finer than 1 pUSD")
    return scaled


def _intervals(
    file: str, key: Key, window: Window | None, versions: dict[datetime, dict[int, tuple[Entry, datetime]]]
) -> Iterator[PriceList]:
    starts = sorted(versions)
    for valid_from, following in zip(starts, [*starts[1:], FOREVER], strict=True):
        bands = sorted(versions[valid_from].items())
        if bands[0][0] != 0:
            raise PriceFileError(
                f"{file}: {key[1]} ({key[2]}) has a band above {bands[0][0]:,} tokens but none from 0 on with the same "
                "valid_from; a price list needs its base band"
            )
        if len({end for _, (_, end) in bands}) > 1:
            raise PriceFileError(
                f"{file}: the bands of {key[1]} ({key[2]}) with one valid_from end at different times; a price "
                "list ends as one, so give them the same valid_to"
            )
        ends = min(following, bands[0][1][1])
        limits = [above for above, _ in bands[1:]] + [NO_LIMIT]
        made = [
            entry._replace(above=above or -1, up_to=limit)
            for (above, (entry, _)), limit in zip(bands, limits, strict=True)
        ]
        yield PriceList(valid_from, ends, tuple(made), window)


def _laid_over(under: tuple[PriceList, ...], over: list[PriceList]) -> tuple[PriceList, ...]:
    """Let your own lists go before the others: at all their hours, and where they have none, at all their dates."""
    kept: list[PriceList] = []
    for shipped_list in under:
        pieces = [(shipped_list.valid_from, shipped_list.valid_to)]
        for added in (one for one in over if one.window is None):
            pieces = [
                piece
                for start, end in pieces
                for piece in ((start, min(end, added.valid_from)), (max(start, added.valid_to), end))
                if piece[0] < piece[1]
            ]
        kept += [shipped_list._replace(valid_from=start, valid_to=end) for start, end in pieces]
    first = [one for one in over if one.window is not None]
    return (*in_order(first), *in_order([*kept, *(one for one in over if one.window is None)]))
