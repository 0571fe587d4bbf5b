"""From price files to a price book: dates to half-open intervals, bands to cliffs, overlays on top, all checked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from tenfold.errors import PriceFileError, near
from tenfold.prices import models
from tenfold.prices.book import EVER, FOREVER, NO_LIMIT, Entry, Key, PriceBook, PriceList
from tenfold.prices.files import shipped, toml_files, version_of
from tenfold.prices.meters import meters
from tenfold.prices.words import canonical_provider, canonical_tier


def price_book(path: str | Path | None = None, *, overlay: str | Path | None = None) -> PriceBook:
    """Load a price book.

    Args:
        path: Folder of price files that replaces the shipped book; None takes the shipped one.
        overlay: Folder of price files laid over it: from its dates on, its price lists take the place of those of
            the same provider, model, tier and region.

    Returns:
        The book.

    Raises:
        PriceFileError: A file cannot be used; names file, entry, key and the near match.
    """
    if path is None and overlay is None:
        return _shipped_book()
    base = shipped() if path is None else Path(path)
    return _read(base, Path(overlay) if overlay is not None else None)


@cache
def _shipped_book() -> PriceBook:
    return _read(shipped(), None)


def _read(base: Traversable | Path, overlay: Path | None) -> PriceBook:
    files = toml_files(base)
    under = _compile(files)
    if overlay is None:
        return PriceBook(*under, version_of(files))
    over_files = toml_files(overlay)
    over = _compile(over_files)
    lists = {**under[0]}
    for key, added in over[0].items():
        lists[key] = _laid_over(under[0].get(key, ()), added)
    neutral = {
        **under[2],
        **{name: words | under[2].get(name, frozenset()) for name, words in over[2].items()},
    }
    version = version_of([*files, *((f"overlay/{name}", content) for name, content in over_files)])
    return PriceBook(lists, {**under[1], **over[1]}, neutral, version)


_Compiled = tuple[dict[Key, tuple[PriceList, ...]], dict[tuple[str, str], tuple[str, str]], dict[str, frozenset[str]]]


def _compile(files: Iterable[tuple[str, bytes]]) -> _Compiled:
    lists: dict[Key, tuple[PriceList, ...]] = {}
    ids: dict[tuple[str, str], tuple[str, str]] = {}
    neutral: dict[str, frozenset[str]] = {}
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
        neutral[provider] = frozenset(word.lower() for word in parsed.region_neutral)
        _collect_ids(name, provider, parsed, ids)
        lists.update(_price_lists(name, provider, parsed))
    return lists, ids, neutral


def _collect_ids(
    file: str, provider: str, parsed: models.PriceFile, ids: dict[tuple[str, str], tuple[str, str]]
) -> None:
    canonical = {entry.model.lower() for entry in parsed.price if entry.status != "withdrawn"}
    for name in sorted(canonical):
        ids[provider, name] = (name, "exact")
    for number, entry in enumerate(parsed.price, 1):
        for alias in entry.aliases:
            where = f"{file}, {models.place(number, entry)}"
            if alias.lower() in canonical:
                raise PriceFileError(f'{where}: alias "{alias}" is a model of its own here; remove one of the two')
            known = ids.setdefault((provider, alias.lower()), (entry.model.lower(), "alias"))
            if known[0] != entry.model.lower():
                raise PriceFileError(
                    f'{where}: alias "{alias}" already stands for {known[0]}; an id bills one way only'
                )


def _price_lists(file: str, provider: str, parsed: models.PriceFile) -> dict[Key, tuple[PriceList, ...]]:
    dated: dict[Key, dict[datetime, dict[int, tuple[Entry, datetime]]]] = defaultdict(lambda: defaultdict(dict))
    for number, entry in enumerate(parsed.price, 1):
        where = f"{file}, {models.place(number, entry)}"
        try:
            rates = entry.rates()
        except ValueError as error:
            raise PriceFileError(f"{where}: {error}") from error
        starts, ends = entry.valid_from or EVER, entry.valid_to or FOREVER
        if ends <= starts:
            raise PriceFileError(f"{where}: valid_to must be after valid_from")
        if entry.status == "withdrawn":
            continue
        key = (provider, entry.model.lower(), canonical_tier(entry.service_tier), entry.region.lower())
        bands = dated[key][starts]
        if entry.above_input_tokens in bands:
            twin = bands[entry.above_input_tokens][0].number
            raise PriceFileError(
                f"{where}: same model, tier, region, date and band as entry {twin}; date the newer one (valid_from)"
            )
        made = Entry(
            *key, entry.above_input_tokens, NO_LIMIT, rates, file, number, entry.source,
            entry.checked.isoformat(), entry.status, entry.note, entry.ambiguous,
        )  # fmt: skip
        bands[entry.above_input_tokens] = (made, ends)
    lists = {key: tuple(_intervals(file, key, versions)) for key, versions in dated.items()}
    known = {entry.model.lower() for entry in parsed.price}
    for number, factor in enumerate(parsed.region_factor, 1):
        where = f'{file}, region_factor {number} (region "{factor.region}")'
        for model in factor.models:
            if model.lower() not in known:
                raise PriceFileError(f'{where}: no entry for model "{model}".{near(model.lower(), known)}')
        _add_region(where, factor, lists)
    return lists


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
                    PriceList(
                        max(one.valid_from, since), one.valid_to, tuple(_scaled(band, factor) for band in one.bands)
                    )
                    for one in lists[key]
                    if one.valid_to > since
                )
            except ValueError as error:
                raise PriceFileError(f"{where}, {model}: {error}") from error


def _scaled(band: Entry, factor: models.RegionFactor) -> Entry:
    rates = tuple(
        _times(rate, factor.factor) if meter.unit == "tokens" else rate
        for rate, meter in zip(band.rates, meters(), strict=True)
    )
    return band._replace(region=factor.region.lower(), rates=rates)


def _times(rate: int | None, factor: str) -> int | None:
    if rate is None:
        return None
    by = models.decimal(factor.removesuffix("x"))
    numerator, denominator = by.as_integer_ratio()
    scaled, rest = divmod(rate * numerator, denominator)
    if rest:
        raise ValueError(f"{rate} pUSD times {factor} is finer than 1 pUSD")
    return scaled


def _intervals(file: str, key: Key, versions: dict[datetime, dict[int, tuple[Entry, datetime]]]) -> Iterator[PriceList]:
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
        yield PriceList(valid_from, ends, tuple(made))


def _laid_over(under: tuple[PriceList, ...], over: tuple[PriceList, ...]) -> tuple[PriceList, ...]:
    kept: list[PriceList] = []
    for shipped_list in under:
        pieces = [(shipped_list.valid_from, shipped_list.valid_to)]
        for added in over:
            pieces = [
                piece
                for start, end in pieces
                for piece in ((start, min(end, added.valid_from)), (max(start, added.valid_to), end))
                if piece[0] < piece[1]
            ]
        kept += [shipped_list._replace(valid_from=start, valid_to=end) for start, end in pieces]
    return tuple(sorted([*kept, *over]))
