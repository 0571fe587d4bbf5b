"""Prompt-cache rules of ``pricing/caching.toml``: what a provider caches, for how long and at which multiples."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field

from tenfold.errors import PriceFileError
from tenfold.prices.book import EVER, FOREVER, PriceBook
from tenfold.prices.files import CACHING, shipped, toml_files
from tenfold.prices.globs import matches
from tenfold.prices.models import Amount, Instant, Strict, parse_as
from tenfold.prices.words import canonical_provider


class CacheRule(Strict):
    """One ``[[rule]]`` table; ``None`` is unknown, as the head of the file says key by key."""

    provider: str = Field(min_length=1)
    surface: str = ""
    models: list[str] = Field(default=[])
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    control: Literal["automatic", "explicit", "both", "none"]
    min_tokens: int | None = Field(default=None, ge=0)
    increment_tokens: int | None = Field(default=None, ge=0)
    lifetime_s: int | None = Field(default=None, gt=0)
    lifetime_high_s: int | None = Field(default=None, gt=0)
    long_lifetime_s: int | None = Field(default=None, gt=0)
    refresh_on_read: bool | None = None
    breakpoints: int | None = Field(default=None, ge=0)
    lookback_blocks: int | None = Field(default=None, ge=0)
    scope: list[str] = Field(default=[])
    write_factor: str = ""
    long_write_factor: str = ""
    read_factor: str = ""
    stacks_with_batch: Literal["yes", "no", "unlisted"] = "unlisted"
    guaranteed: bool | None = None
    storage_usd: Amount | None = None
    source: str = Field(min_length=1)
    checked: date
    note: str = ""

    def applies(self, model: str, at: datetime) -> bool:
        """Tell whether the rule is about a model at an instant.

        Args:
            model: Canonical model id.
            at: An aware instant.

        Returns:
            Whether it is.
        """
        is_then = (self.valid_from or EVER) <= at < (self.valid_to or FOREVER)
        return is_then and (not self.models or any(matches(glob.lower(), model.lower()) for glob in self.models))


class CachingFile(Strict):
    """The whole file."""

    rule: list[CacheRule] = Field(default=[])


@dataclass(frozen=True, slots=True)
class CacheRules:
    """All rules, in file order: the first that applies holds.

    Args:
        rules: The rules.
    """

    rules: tuple[CacheRule, ...]

    def find(self, provider: str, model: str, at: datetime, *, surface: str = "") -> CacheRule | None:
        """Find the rule for a model.

        Args:
            provider: Who bills, in any known spelling.
            model: Canonical model id.
            at: An aware instant.
            surface: ``implicit`` or ``explicit`` where the provider has both; empty takes the first.

        Returns:
            The rule; None where nothing is known of that provider's cache.
        """
        who = canonical_provider(provider)
        own = (rule for rule in self.rules if canonical_provider(rule.provider) == who)
        fitting = (rule for rule in own if not surface or rule.surface in ("", surface))
        return next((rule for rule in fitting if rule.applies(model, at)), None)

    def minimum(self, rule: CacheRule) -> tuple[int | None, bool]:
        """Give the shortest prefix that is cached.

        Args:
            rule: A rule of these.

        Returns:
            Tokens, and whether that is published for the rule itself; where it is not, the highest that the provider
            publishes for any model stands in (None where it publishes none).
        """
        if rule.min_tokens is not None:
            return rule.min_tokens, True
        published = [other.min_tokens for other in self.rules if other.provider == rule.provider]
        return max((tokens for tokens in published if tokens is not None), default=None), False


def read(files: Iterable[tuple[str, bytes]]) -> CacheRules:
    """Read the rules among the files of a folder.

    Args:
        files: Pairs of file name and bytes.

    Returns:
        The rules; none without the file.

    Raises:
        PriceFileError: Something in it cannot be used, or a rule can never apply because an earlier one always does.
    """
    content = dict(files).get(CACHING)
    return CacheRules(()) if content is None else _parsed(content)


def _parsed(content: bytes) -> CacheRules:
    rules = parse_as(CACHING, content, CachingFile, {"rule": CacheRule}).rule
    for number, rule in enumerate(rules, 1):
        for earlier in rules[: number - 1]:
            if _hides(earlier, rule):
                place = f"{CACHING}, rule {number} ({rule.provider})"
                raise PriceFileError(f"{place}: an earlier rule always applies first")
    return CacheRules(tuple(rules))


@cache
def cache_rules(path: str | Path | None = None) -> CacheRules:
    """Load the cache rules.

    Args:
        path: Folder of price files; the shipped one by default.

    Returns:
        The rules.

    Raises:
        PriceFileError: The file cannot be used.
    """
    return read(toml_files(shipped() if path is None else Path(path)))


def rules_of(book: PriceBook) -> CacheRules:
    """Give the rules that go with a price book.

    Args:
        book: The book.

    Returns:
        Those of an overlay first, then those of the book below.

    Raises:
        PriceFileError: A ``caching.toml`` cannot be used.
    """
    return _merged(book.caching)


@cache
def _merged(contents: tuple[bytes, ...]) -> CacheRules:
    return CacheRules(tuple(rule for content in contents for rule in _parsed(content).rules))


def _hides(earlier: CacheRule, rule: CacheRule) -> bool:
    return (
        earlier.provider == rule.provider
        and earlier.surface in ("", rule.surface)
        and (not earlier.models or (bool(rule.models) and set(rule.models) <= set(earlier.models)))
        and (earlier.valid_from or EVER) <= (rule.valid_from or EVER)
        and (earlier.valid_to or FOREVER) >= (rule.valid_to or FOREVER)
    )
