"""The shipped book compiled once and kept beside the package, like Python's own bytecode: the TOML stays the source.

The stored form names the card version it was made from; where that is not the version of the price files, or the file
is not there, the book is compiled from TOML and stored anew (if the folder can be written).
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenfold.prices.book import EVER, FOREVER, Entry, PriceBook, PriceList, RegionWord
from tenfold.prices.meters import METER_NAMES

if TYPE_CHECKING:
    from tenfold.prices.windows import Window

NAME = "book.json"
# Raised with the form below or the meters, so that an older stored book is not misread.
_FORM = f"4 {len(METER_NAMES)} {len(Entry._fields)}"
_TUPLES = (Entry._fields.index("rates"), Entry._fields.index("native"))


def place() -> Traversable:
    """Find where the shipped book is stored.

    Returns:
        The file, which need not exist.
    """
    return resources.files("tenfold._shipped") / NAME


def load(version: str) -> PriceBook | None:
    """Read the stored book.

    Args:
        version: Card version of the price files.

    Returns:
        The book; None where none is stored for that version.
    """
    try:
        content = place().read_bytes()
    except OSError:
        return None
    head, _, body = content.partition(b"\n")
    # The hash tells a damaged file from a whole one: what is read then is what was written.
    if head.decode("utf-8", "replace") != f"{_FORM} {version} {hashlib.sha256(body).hexdigest()}":
        return None
    return _decoded(json.loads(body), version)


def save(book: PriceBook, target: Path | None = None) -> None:
    """Store a book, all of it or nothing.

    Args:
        book: The shipped book.
        target: Another file than the usual one.
    """
    found = place()
    path = target or (found if isinstance(found, Path) else None)
    if path is None:
        return
    from tempfile import NamedTemporaryFile

    body = json.dumps(_encoded(book), separators=(",", ":")).encode()
    head = f"{_FORM} {book.version} {hashlib.sha256(body).hexdigest()}\n".encode()
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{NAME}.", delete=False) as file:
            file.write(head + body)
    except OSError:  # a read-only installation compiles each time
        return
    made = Path(file.name)
    try:
        made.chmod(0o644)
        made.replace(path)
    except OSError:
        made.unlink(missing_ok=True)


def _encoded(book: PriceBook) -> dict[str, Any]:
    return {
        "lists": [
            [*key, [[_text(one.valid_from), _text(one.valid_to), one.window, one.bands] for one in lists]]
            for key, lists in book.lists.items()
        ],
        "ids": [[*key, *value] for key, value in book.ids.items()],
        "patterns": dict(book.patterns),
        "regions": [[*key, value] for key, value in book.regions.items()],
    }


def _decoded(raw: dict[str, Any], version: str) -> PriceBook:
    lists = {
        (provider, model, tier, region): tuple(
            PriceList(_instant(since, EVER), _instant(until, FOREVER), tuple(map(_entry, bands)), _window(window))
            for since, until, window, bands in found
        )
        for provider, model, tier, region, found in raw["lists"]
    }
    return PriceBook(
        lists,
        {(provider, name): (model, how) for provider, name, model, how in raw["ids"]},
        {provider: tuple((shape, model) for shape, model in found) for provider, found in raw["patterns"].items()},
        {
            (provider, word): tuple(RegionWord(region, tuple(models)) for region, models in found)
            for provider, word, found in raw["regions"]
        },
        version,
    )


def _entry(raw: list[Any]) -> Entry:
    for i in _TUPLES:
        raw[i] = tuple(raw[i])
    return Entry._make(raw)


def _window(raw: list[Any] | None) -> Window | None:
    if raw is None:
        return None
    from tenfold.prices.windows import Window  # few books have hours, and zones take their time to import

    return Window(tuple(raw[0]), tuple((start, end) for start, end in raw[1]), raw[2])


def _text(instant: datetime) -> str:
    return "" if instant in (EVER, FOREVER) else instant.isoformat()


def _instant(text: str, none: datetime) -> datetime:
    return datetime.fromisoformat(text) if text else none
