"""A rule: what a request must look like, and whose it then is. Checked here, whichever file it was written in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tenfold.display import UNALLOCATED
from tenfold.errors import AssumptionError, near

# Columns of requests that a rule may be about.
CONDITIONS = (
    *("org", "project", "environment", "user_id", "api_key_id", "client", "provider", "model", "source_format"),
)
# What a rule gives, and may be about as the log says it: logged.team, logged.feature.
LOGGED = ("logged.team", "logged.feature")
TAG = "tags."
# Version of a mapping without rules.
NONE = "none"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: all conditions hold, each for one of its values.

    Args:
        where: File and place, for messages.
        team: Team that owns what the rule takes, or None.
        feature: Feature that it belongs to, or None.
        conditions: Name of a column, ``tags.<key>`` or ``logged.<column>``, with its values: exact text, or anchored
            patterns in which ``*`` stands for any run of characters; sorted.
        shared: Costs of this team are to be allocated to the others.
        override: The rule's words replace the log's own; by default they fill what the log does not say.
    """

    where: str
    team: str | None
    feature: str | None
    conditions: tuple[tuple[str, tuple[str, ...]], ...]
    shared: bool = False
    override: bool = False

    @property
    def gives(self) -> tuple[str | None, str | None, bool]:
        """What the rule does to a request it takes."""
        return self.team, self.feature, self.override


@dataclass(frozen=True, slots=True)
class Owners:
    """A mapping: rules in order, of which the first that fits a request takes it.

    Args:
        where: File that it was read from.
        rules: The rules.
    """

    where: str
    rules: tuple[Rule, ...] = ()

    @property
    def version(self) -> str:
        """Twelve hexadecimal digits over what the rules do to requests; ``none`` where there is no rule."""
        if not self.rules:
            return NONE
        text = json.dumps([[*rule.gives, rule.conditions] for rule in self.rules], ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def shared_teams(self) -> tuple[str, ...]:
        """Teams that a rule calls shared, in alphabetical order."""
        return tuple(sorted({rule.team for rule in self.rules if rule.shared and rule.team is not None}))

    @property
    def teams(self) -> frozenset[str]:
        """Teams that the rules name."""
        return frozenset(rule.team for rule in self.rules if rule.team is not None)


def checked(
    where: str,
    conditions: Mapping[str, Iterable[str]],
    *,
    team: str | None,
    feature: str | None,
    shared: bool = False,
    override: bool = False,
) -> Rule:
    """Make a rule of what a file says.

    Args:
        where: File and place, for messages.
        conditions: Condition to its values; the names are known to be conditions.
        team: Team, or None.
        feature: Feature, or None.
        shared: As in ``Rule``.
        override: As in ``Rule``.

    Returns:
        The rule.

    Raises:
        AssumptionError: It gives nothing, asks for nothing, or has a word that cannot be used.
    """
    if team is None and feature is None:
        raise AssumptionError(f"{where}: neither team nor feature: say whose these requests are")
    if not conditions:
        raise AssumptionError(
            f'{where}: no condition, so it would take every request. If that is meant: source_format = "*"'
        )
    if shared and team is None:
        raise AssumptionError(f"{where}: shared = true needs the team whose costs are shared")
    words = {"team": (team,), "feature": (feature,), **{name: tuple(values) for name, values in conditions.items()}}
    for name, values in words.items():
        for value in values:
            if value is not None and (not value.strip() or "\0" in value):
                raise AssumptionError(f"{where}: {name} = {value!r}: text without content matches nothing")
    if team is not None and team.strip().lower() == UNALLOCATED:
        raise AssumptionError(f'{where}: team = "{team}" is the word for what nobody owns; take another')
    ordered = tuple((name, tuple(sorted(set(conditions[name])))) for name in sorted(conditions))
    return Rule(where, team, feature, ordered, shared=shared, override=override)


def known_condition(where: str, name: str) -> str:
    """Check the name of a condition.

    Args:
        where: File and place, for the message.
        name: As written: a column, ``tags.<key>`` or ``logged.<column>``.

    Returns:
        The name.

    Raises:
        AssumptionError: There is none of that name; names the nearest.
    """
    is_tag = name.startswith(TAG) and len(name) > len(TAG) and "\0" not in name
    if name in CONDITIONS or name in LOGGED or is_tag:
        return name
    listed = ", ".join((*CONDITIONS, *LOGGED, f"{TAG}<key>"))
    raise AssumptionError(
        f'{where}: unknown key "{name}".{near(name, (*CONDITIONS, *LOGGED, "tags", *GIVEN))} '
        f"A rule gives {', '.join(GIVEN[:2])}; its conditions are {listed}"
    )


GIVEN = ("team", "feature", "shared", "override")
