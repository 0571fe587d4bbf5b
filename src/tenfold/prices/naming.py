"""One name for one model, however logs, reports and evals files write it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.prices.words import canonical_provider

if TYPE_CHECKING:
    from tenfold.prices.book import PriceBook

# How the book found an id where it stands for one model; patterns and fine-tunes stand for several.
_SAME_MODEL = ("exact", "alias", "prefix", "dated_id")


def model_key(book: PriceBook, provider: str, model: str) -> str:
    """Name a model one way, however it is written: ``gpt-4o-mini``, ``openai/GPT-4o-mini`` and its dated id are one.

    Args:
        book: The price book, whose ids and aliases decide.
        provider: Who bills, in any known spelling.
        model: The model as written in a file, the assumptions or the log.

    Returns:
        The book's id; for a model that the book lacks, or knows by a pattern only, the name in lower case without the
        provider before it.
    """
    found = book.match(provider, model)
    if found.model and found.how in _SAME_MODEL:
        return found.model
    name = model.strip().lower().removeprefix("models/")
    before, slash, rest = name.partition("/")
    return rest if slash and canonical_provider(before) == canonical_provider(provider) else name
