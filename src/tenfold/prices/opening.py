"""Open a price book: the shipped one, a folder or a wheel of price files, with your own prices on top."""

from __future__ import annotations

from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from tenfold.errors import PriceFileError
from tenfold.prices import stored
from tenfold.prices.book import PriceBook
from tenfold.prices.files import caching_of, shipped, toml_files, version_of

SHIPPED = "shipped"


def price_book(
    path: str | Path | None = None, *, overlay: str | Path | None = None, version: str | None = None
) -> PriceBook:
    """Load a price book.

    Args:
        path: Price files that replace the shipped book: a folder, or a wheel of tenfold (its book of that time); None
            takes the shipped one.
        overlay: Folder of price files laid over it: from its dates on, its price lists take the place of those of the
            same provider, model, tier and region; its ``contract.toml`` holds discounts and commitments.
        version: Card version that the book must have: pins a pipeline to prices that somebody has looked at.

    Returns:
        The book.

    Raises:
        PriceFileError: A file cannot be used; names file, entry, key and the near match. Or the version is another.
    """
    book = shipped_book() if path is None and overlay is None else _read(path, overlay)
    if version is not None and book.version != version:
        raise PriceFileError(
            f"the price book is card version {book.version}, not {version} as pinned. See what changed with "
            "`tenfold prices diff`, then pin the new version; or open the old book: its folder, or the wheel it came in"
        )
    return book


@cache
def shipped_book() -> PriceBook:
    """Load the shipped book once a process, from its stored form where that is of the same version.

    Returns:
        The book.
    """
    files = toml_files(shipped())
    found = stored.load(version_of(files))
    if found is None:
        from tenfold.prices.compiling import compiled

        found = compiled(files)
        stored.save(found)
    found.caching = (caching_of(files),)
    return found


def _read(path: str | Path | None, overlay: str | Path | None) -> PriceBook:
    from tenfold.prices.compiling import compiled, laid_over

    base = shipped_book() if path in (None, SHIPPED) else compiled(toml_files(_place(Path(str(path)))))
    return base if overlay is None else laid_over(base, toml_files(_place(Path(overlay))))


def _place(path: Path) -> Traversable | Path:
    if path.is_file():
        import zipfile  # wheels only: the usual call does without

        if zipfile.is_zipfile(path):
            return zipfile.Path(path, "tenfold/_shipped/pricing/")
    return path
