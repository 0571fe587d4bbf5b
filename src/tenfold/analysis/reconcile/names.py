"""Which model, meter and provider of the log a row of an invoice is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tenfold.logs.buckets.words import meter_of
from tenfold.prices import PriceBook
from tenfold.prices.meters import METER_NAMES
from tenfold.prices.naming import model_key
from tenfold.prices.words import canonical_provider

# Where an invoice has no line for a meter, the meter that its line holds it in.
HELD_IN = {
    "cache_write_long": "cache_write",
    "cache_write": "uncached_input",
    "cache_read": "uncached_input",
    "cache_read_audio": "cache_read",
    "cache_read_image": "cache_read",
    "cache_read_video": "cache_read",
    "input_audio": "uncached_input",
    "input_image": "uncached_input",
    "input_video": "uncached_input",
    "reasoning": "output",
    "output_audio": "output",
    "output_image": "output",
    "output_video": "output",
    "web_search_preview": "web_search",
}
# Words of other reports for meters.
_METERS = {"images": "image", "audio": "audio_time", "code_sessions": "code_session", "code_execution": "code_session"}
_TAIL = re.compile(r"\s+(usage|api|tokens?)$", re.IGNORECASE)


def meter_name(said: str | None) -> str | None:
    """Name a meter as the log does.

    Args:
        said: The report's word.

    Returns:
        tenfold's word, else the report's own; None stays None.
    """
    if said is None or said in METER_NAMES:
        return said
    return _METERS.get(said) or meter_of(said) or said


def told_in(meter: str, known: Iterable[str | None]) -> str | None:
    """Find the line of an invoice that holds a meter of the log.

    Args:
        meter: Meter of the log.
        known: Meters that the invoice has; only None where it has amounts by model alone.

    Returns:
        The line's meter; the log's own where no line holds it.
    """
    lines = set(known)
    if lines == {None}:
        return None
    held: str | None = meter
    while held is not None and held not in lines:
        held = HELD_IN.get(held)
    return meter if held is None else held


def one_edit(word: str, known: Iterable[str]) -> str | None:
    """Find a word that is one edit away: a character more, less or other (Levenshtein distance 1).

    Args:
        word: The word.
        known: What could have been meant.

    Returns:
        The first that is; None where none is.
    """
    for other in known:
        short, long = sorted((word, other), key=len)
        same = next((n for n, pair in enumerate(zip(short, long, strict=False)) if pair[0] != pair[1]), len(short))
        if word != other and long[same + 1 :] == short[same + (len(short) == len(long)) :]:
            return other
    return None


class Names:
    """The names of a log's models, however an invoice writes them.

    Args:
        book: The price book, whose ids and aliases decide.
        names: Provider to the log's own model names, each with the book's name.
    """

    def __init__(self, book: PriceBook, names: Mapping[str, Mapping[str, str]]) -> None:
        self.book = book
        self.names = names
        self._compact = {
            provider: {_compact(name): known for said, known in models.items() for name in (known, said)}
            for provider, models in names.items()
        }
        self._seen: dict[tuple[str, str], str | None] = {}  # a report names few models in many rows

    def provider(self, said: str | None, model: str | None) -> str | None:
        """Name the provider of a row.

        Args:
            said: What the row calls it, or None.
            model: Its model, as written: where no provider is said, the log's only one that has it.

        Returns:
            A provider; None where neither tells.
        """
        if said:
            name = canonical_provider(said)
            words = re.split(r"[^a-z]+", name)
            if name in self.names:
                return name
            return next((known for known in self.names if known in words), name)
        having = [provider for provider in self.names if model and self._found(provider, model)]
        words = re.split(r"[^a-z]+", (model or "").lower())
        having = having or [provider for provider in self.names if provider and provider in words]
        if len(having) == 1:
            return having[0]
        return next(iter(self.names)) if len(self.names) == 1 and not having else None

    def model(self, provider: str, said: str) -> tuple[str | None, bool]:
        """Name the model of a row.

        Args:
            provider: The row's provider.
            said: The model, as written.

        Returns:
            Its name, and whether the log has it; None for a text that is the provider's name alone.
        """
        found = self._found(provider, said)
        if found:
            return found, True
        words = re.split(r"[^a-z]+", said.lower())
        if provider in words and not self.book.match(provider, _slug(said)).model:
            return None, False
        return model_key(self.book, provider, said), False

    def asked(self, provider: str | None, said: str) -> str:
        """Ask about a model that the log does not have and that is one letter off one that it has.

        Args:
            provider: The row's provider; None for any.
            said: The model, as written.

        Returns:
            The question in brackets, with a space before it; empty where there is none to ask.
        """
        held = self.names.values() if provider is None else [self.names.get(provider, {})]
        meant = one_edit(_slug(said), sorted({name for models in held for pair in models.items() for name in pair}))
        return f' (did you mean "{meant}"?)' if meant else ""

    def _found(self, provider: str, said: str) -> str | None:
        if (provider, said) not in self._seen:
            self._seen[provider, said] = self._look_up(provider, said)
        return self._seen[provider, said]

    def _look_up(self, provider: str, said: str) -> str | None:
        mine = self.names.get(provider, {})
        known = set(mine.values())
        for name in (said, _slug(said), _slug(said).replace(".", "-")):
            key = model_key(self.book, provider, name)
            if key in known:
                return key
        return self._compact.get(provider, {}).get(_compact(said))


def _slug(said: str) -> str:
    """Write a display name as an id: ``Claude Opus 5.5 usage`` as ``claude-opus-5.5``."""
    return re.sub(r"[\s_]+", "-", _TAIL.sub("", said.strip().lower()))


def _compact(said: str) -> str:
    return re.sub(r"[^a-z0-9]", "", _TAIL.sub("", said.lower()))
