"""Prompt-cache rules, read from `caching.toml` as its head says: the first rule that fits holds."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import Any

from oracle_book import fits, instant

HIGHEST_PUBLISHED = 4_096  # "none published: 4,096"
LIFETIME_S = 300  # "rule.lifetime_s NULL -> 300"


@dataclass(frozen=True)
class Rule:
    """One rule, with the minimum that holds for it."""

    control: str
    min_tokens: int
    increment_tokens: int
    lifetime_s: int
    lifetime_high_s: int | None
    long_lifetime_s: int | None
    per_project: bool  # "plus project where the rule's scope holds workspace"

    def lifetime_us(self, which: str, scenario: str) -> int:
        """Idle lifetime in microseconds; four fifths of it in the pessimistic scenario."""
        high = self.lifetime_high_s if scenario == "high" else None
        seconds = (self.long_lifetime_s or self.lifetime_s) if which == "long" else (high or self.lifetime_s)
        return 1_000_000 * seconds * (4 if scenario == "low" else 5) // 5


@dataclass(frozen=True)
class Rules:
    """The tables of the file, in file order."""

    tables: tuple[dict[str, Any], ...]
    known: dict[Any, Rule | None] = field(default_factory=dict[Any, Any])

    def find(self, provider: str, model: str, at: datetime) -> Rule | None:
        """The rule of a model at an instant; None where it has no cache."""
        key = (provider, model, instant(at).date())  # all the tests' logs are of days on which no rule changes
        if key not in self.known:
            self.known[key] = self._find(provider, model, at)
        return self.known[key]

    def _find(self, provider: str, model: str, at: datetime) -> Rule | None:
        own = [table for table in self.tables if table["provider"].lower() == provider.lower()]
        published = [table["min_tokens"] for table in own if "min_tokens" in table]
        for table in own:
            globs = table.get("models", [])
            if globs and not any(fits(glob.lower(), model.lower()) for glob in globs):
                continue
            if not _in_force(table, at):
                continue
            if table["control"] == "none":
                return None
            return Rule(
                control=table["control"],
                min_tokens=table.get("min_tokens", max(published, default=HIGHEST_PUBLISHED)),
                increment_tokens=table.get("increment_tokens", 0),
                lifetime_s=table.get("lifetime_s", LIFETIME_S),
                lifetime_high_s=table.get("lifetime_high_s"),
                long_lifetime_s=table.get("long_lifetime_s"),
                per_project="workspace" in table.get("scope", []),
            )
        return None


def _in_force(table: dict[str, Any], at: datetime) -> bool:
    start, end = table.get("valid_from", date.min), table.get("valid_to")
    return instant(start) <= instant(at) and (end is None or instant(at) < instant(end))


def read_rules(path: str | Path) -> Rules:
    """Read the file."""
    return Rules(tuple(tomllib.loads(Path(path).read_text(encoding="utf-8"))["rule"]))
