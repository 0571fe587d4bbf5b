"""Laying the current owner rules over everything stored, and what that did: what each rule took, what nobody owns."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tenfold import config
from tenfold.display import NONE, counted, percent
from tenfold.errors import AssumptionError
from tenfold.logs import cube, owning
from tenfold.owners import Owners
from tenfold.store.published import check_writable

if TYPE_CHECKING:
    import duckdb

    from tenfold.store.database import Store

_ALONE = ("project", "api_key_id")


@dataclass(frozen=True, slots=True)
class Took:
    """What one rule did.

    Args:
        where: File and place of the rule.
        team: The team it gives.
        feature: The feature it gives.
        shared: Whether the team's costs are allocated to others.
        matched_rows: Stored rows that it fits.
        rows: Those that no rule before it fits: it takes them.
        requests: Billable requests among them.
        kept_rows: Those whose log names another team, which stands (the rule does not override).
    """

    where: str
    team: str | None
    feature: str | None
    shared: bool
    matched_rows: int
    rows: int
    requests: int
    kept_rows: int


@dataclass(frozen=True, slots=True)
class Remapped:
    """What a mapping does to a store.

    Args:
        version: Version of the mapping.
        before: Versions that the rows bore.
        is_dry: Nothing was written.
        rows: Stored rows.
        requests: Billable requests.
        tokens: Their known tokens.
        changed: Rows whose team or feature changes.
        rules: What each rule does, in order.
        overlaps: Pairs of rules that fit the same rows: place of the one that takes them, place of the other, rows.
        unallocated: Projects and keys without a team: ``project``, ``api_key_id``, ``requests``, ``tokens``; most
            requests first.
    """

    version: str
    before: tuple[str, ...]
    is_dry: bool
    rows: int
    requests: int
    tokens: int
    changed: int
    rules: tuple[Took, ...]
    overlaps: tuple[tuple[str, str, int], ...]
    unallocated: tuple[tuple[str | None, str | None, int, int], ...]

    @property
    def unused(self) -> tuple[str, ...]:
        """Places of rules that take nothing."""
        return tuple(rule.where for rule in self.rules if not rule.rows)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold owners --json``.

        Returns:
            ``mapping``, ``before``, ``dry_run``, ``rows``, ``requests``, ``changed_rows``, ``rules[]``, ``unused[]``,
            ``overlaps[]``, ``unallocated{requests, requests_ratio, tokens, tokens_ratio, by[]}``.
        """
        lost = sum(row[2] for row in self.unallocated), sum(row[3] for row in self.unallocated)
        return {
            "mapping": self.version,
            "before": list(self.before),
            "dry_run": self.is_dry,
            "rows": self.rows,
            "requests": self.requests,
            "changed_rows": self.changed,
            "rules": [{name: getattr(rule, name) for name in Took.__dataclass_fields__} for rule in self.rules],
            "unused": list(self.unused),
            "overlaps": [{"taken_by": first, "also": other, "rows": rows} for first, other, rows in self.overlaps],
            "unallocated": {
                **self._shares(*lost),
                "by": [
                    {"project": project, "api_key_id": key, **self._shares(requests, tokens)}
                    for project, key, requests, tokens in self.unallocated
                ],
            },
        }

    def _shares(self, requests: int, tokens: int) -> dict[str, int | float | None]:
        return {
            "requests": requests,
            "requests_ratio": requests / self.requests if self.requests else None,
            "tokens": tokens,
            "tokens_ratio": tokens / self.tokens if self.tokens else None,
        }

    def sentences(self) -> list[str]:
        """Say it for people.

        Returns:
            One sentence each: what changed, rules without effect, overlaps, what is unallocated.
        """
        verb = "would change" if self.is_dry else "changed"
        said = [f"{counted(self.changed, 'row')} of {self.rows:,} {verb}; mapping {self.version}"]
        if self.unused:
            said.append(f"took nothing: {_some(self.unused)}")
        if self.overlaps:
            pairs = [f"{first} before {other} ({rows:,})" for first, other, rows in self.overlaps]
            said.append(f"overlaps, the first wins: {_some(pairs)}")
        lost = self.as_dict()["unallocated"]
        if lost["requests"]:
            requests = percent(Fraction(lost["requests"], self.requests), 2)
            tokens = percent(Fraction(lost["tokens"], self.tokens), 2) if self.tokens else "none"
            said.append(f"unallocated: {lost['requests']:,} requests ({requests}), {tokens} of tokens")
        else:
            said.append("unallocated: nothing")
        return said

    def unallocated_rows(self) -> list[tuple[str, str, int, Fraction, Fraction | None]]:
        """Give what is unallocated for reading.

        Returns:
            Project, key, requests, and their shares of all requests and tokens.
        """
        return [
            (
                project or NONE,
                key or NONE,
                requests,
                Fraction(requests, self.requests),
                Fraction(tokens, self.tokens) if self.tokens else None,
            )
            for project, key, requests, tokens in self.unallocated
        ]


def _some(items: tuple[str, ...] | list[str], most: int = 8) -> str:
    return "; ".join(items[:most]) + (f"; and {len(items) - most:,} more" if len(items) > most else "")


def remap(store: Store, mapping: Owners | None = None, *, dry_run: bool = False) -> Remapped:
    """Lay owner rules over all stored requests, in one transaction, and bring the cube in step.

    What the log itself said is kept, so that another mapping, or one without rules, can follow.

    Args:
        store: The store.
        mapping: The rules; those of ``tenfold.toml`` by default.
        dry_run: Only tell what it would do.

    Returns:
        What it did.

    Raises:
        AssumptionError: There is no ``tenfold.toml`` here, or a rule in it cannot be used.
        StoreError: The store cannot be used.
    """
    if not dry_run:
        check_writable(store.path)
    rules = config.owners() if mapping is None else mapping
    if rules is None:
        raise AssumptionError(
            f"there is no {config.FILE} here. Write the rules into one ([[owner]] with a team and what it owns), or an "
            "empty file to put back what the logs say"
        )
    with store.reading() if dry_run else store.writing() as connection:
        try:
            owning.match(connection, "requests", rules, _ALONE)
            if dry_run:
                return _told(connection, rules, _changing(connection), is_dry=True)
            connection.execute("BEGIN")
            try:
                changed = owning.update(connection, "requests", rules)
                if changed:
                    cube.rebuild(connection, cube.thresholds_of(connection) or ())
                done = _told(connection, rules, changed, is_dry=False)
                owning.put_applied(connection, [rules.version])
                connection.execute("COMMIT")
            except BaseException:
                connection.execute("ROLLBACK")
                raise
            return done
        finally:
            owning.clean(connection)


def _changing(connection: duckdb.DuckDBPyConnection) -> int:
    return _numbers(
        connection,
        "SELECT coalesce(sum(row_count), 0)::BIGINT FROM owner_new "
        "WHERE new_team IS DISTINCT FROM team OR new_feature IS DISTINCT FROM feature",
    )[0]


def _numbers(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[int, ...]:
    return connection.execute(sql).fetchall()[0]


def _told(connection: duckdb.DuckDBPyConnection, mapping: Owners, changed: int, *, is_dry: bool) -> Remapped:
    kept = "team_logged IS NOT NULL AND team_logged IS NOT DISTINCT FROM new_team AND r.team <> team_logged"
    taken = {
        row[0]: row[1:]
        for row in connection.execute(
            "SELECT n.rule, sum(row_count)::BIGINT, sum(n.requests)::BIGINT, "
            f"coalesce(sum(row_count) FILTER ({kept}), 0)::BIGINT "
            "FROM owner_new n JOIN owner_rules r USING (rule) GROUP BY n.rule"
        ).fetchall()
    }
    matched = dict(
        connection.execute(
            "SELECT m.rule, sum(w.row_count)::BIGINT FROM owner_matched m JOIN owner_who w USING (who) GROUP BY m.rule"
        ).fetchall()
    )
    overlaps: list[tuple[int, int, int]] = connection.execute(
        "SELECT n.rule, m.rule AS other, sum(n.row_count)::BIGINT AS shared_rows FROM owner_new n "
        "JOIN owner_matched m USING (who) WHERE m.rule > n.rule GROUP BY ALL ORDER BY shared_rows DESC, n.rule, other"
    ).fetchall()
    alone = ", ".join(_ALONE)
    lost = connection.execute(
        f"SELECT {alone}, sum(requests)::BIGINT AS n, sum(tokens)::BIGINT FROM owner_new WHERE new_team IS NULL "
        f"GROUP BY {alone} HAVING sum(requests) > 0 ORDER BY n DESC, {alone}"
    ).fetchall()
    rows, requests, tokens = _numbers(
        connection,
        "SELECT coalesce(sum(row_count), 0)::BIGINT, coalesce(sum(requests), 0)::BIGINT, "
        "coalesce(sum(tokens), 0)::BIGINT FROM owner_who",
    )
    where = [rule.where for rule in mapping.rules]
    return Remapped(
        mapping.version,
        owning.applied(connection),
        is_dry,
        rows,
        requests,
        tokens,
        changed,
        tuple(
            Took(rule.where, rule.team, rule.feature, rule.shared, matched.get(i, 0), *taken.get(i, (0, 0, 0)))
            for i, rule in enumerate(mapping.rules)
        ),
        tuple((where[first], where[other], shared) for first, other, shared in overlaps),
        tuple(lost),
    )
