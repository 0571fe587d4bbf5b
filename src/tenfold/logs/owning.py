"""Owner rules laid over stored requests: the first rule that fits gives team and feature, the log's words are kept.

Rules are matched against the distinct combinations of what they are about, as joins between tables: values and
patterns are rows, never SQL text. ``team`` and ``feature`` are always made from ``team_logged`` and ``feature_logged``,
so that a mapping can be changed or taken back at any time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from tenfold import config
from tenfold.owners import LOGGED, NONE, TAG, Owners
from tenfold.store import schema
from tenfold.store.database import Store, put_frame, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

_META = "owners"
_TEMPORARY = ("owner_who", "owner_rules", "owner_conditions", "owner_matched", "owner_new")
_BILLED = "coalesce(is_billable, true) AND NOT coalesce(gateway_cache_hit, false)"
# What a later snapshot of a request may lack: who asked does not change. (Not tags: an update of a nested column moves
# the row, and other tables point to rows of a batch.)
_MADE = ("team", "feature")
_KEPT = tuple(c.name for c in schema.REQUESTS if c.group == "who" and c.name not in (*_MADE, "tags"))


class OwnerState(NamedTuple):
    """Which mapping the rows of a store bear, and which one the settings hold.

    Args:
        applied: Versions of the mappings that rows were given, ``none`` for rows that met no rule file.
        current: Version of the mapping in the settings; None where there is no settings file.
        db: The store, for the way out.
    """

    applied: tuple[str, ...]
    current: str | None
    db: str = "FILE"

    @property
    def note(self) -> str | None:
        """What is to be done, in one sentence; None where the two agree, or neither says anything."""
        way_out = f"Run: tenfold owners --db {self.db}"
        if len(self.applied) > 1:
            return f"the stored requests bear several owner mappings ({', '.join(self.applied)}). {way_out}"
        if self.current is None and self.applied and self.applied[0] != NONE:
            return (
                f"the stored requests bear the owner rules of a {config.FILE} ({self.applied[0]}) that is not in the "
                "working directory: the rules stand, but zone, fiscal year, budgets and thresholds of it are not read"
            )
        if self.current is None or not self.applied or self.applied[0] == self.current:
            return None
        return (
            f"the owner rules of {config.FILE} ({self.current}) are not those that the stored requests bear "
            f"({self.applied[0]}). {way_out}"
        )

    def as_dict(self) -> dict[str, object]:
        """Give the keys of ``tenfold cost --json``.

        Returns:
            ``applied``, ``current``, ``note``.
        """
        return {"applied": list(self.applied), "current": self.current, "note": self.note}


def owner_state(store: Store) -> OwnerState:
    """Compare the mapping that a store's rows bear with the one in the settings.

    Args:
        store: The store.

    Returns:
        Both.

    Raises:
        AssumptionError: The settings hold a rule that cannot be used.
    """
    current = config.owners()
    with store.reading() as connection:
        found = applied(connection)
    return OwnerState(found, None if current is None else current.version, str(store.path or "FILE"))


def applied(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Read which mappings the stored rows bear.

    Args:
        connection: The store.

    Returns:
        Their versions; empty where nothing is stored.
    """
    found = connection.execute("SELECT value FROM meta WHERE name = ?", [_META]).fetchall()
    if found:
        return tuple(found[0][0].split(","))
    return (NONE,) if connection.execute("SELECT 1 FROM requests LIMIT 1").fetchall() else ()


def put_applied(connection: duckdb.DuckDBPyConnection, versions: Sequence[str]) -> None:
    """Write which mappings the stored rows bear.

    Args:
        connection: The store, in a transaction.
        versions: Their versions.
    """
    connection.execute("DELETE FROM meta WHERE name = ?", [_META])
    connection.execute("INSERT INTO meta VALUES (?, ?)", [_META, ",".join(dict.fromkeys(versions))])


def map_batch(connection: duckdb.DuckDBPyConnection, mapping: Owners | None) -> None:
    """Give the rows of a load their owners, before they are stored.

    A snapshot that takes a stored request's place (tables `judged` and `displaced`) keeps what the stored one knew of
    who asked, and its owner where no rule gives one.

    Args:
        connection: The store, in a transaction, with the temporary tables `batch`, `judged` and `displaced`.
        mapping: The mapping; None where there are no settings.
    """
    before = applied(connection)
    names = (*_KEPT, "team_logged", "feature_logged")
    stored = (
        "FROM requests q JOIN displaced d ON d.row_id = q.rowid JOIN judged j ON j.dedup_key = q.dedup_key AND j.wins "
        "WHERE j.row_id = b.rowid"
    )
    displaced = bool(connection.execute("SELECT 1 FROM displaced LIMIT 1").fetchall())
    if displaced:
        kept = ", ".join(f"{name} = coalesce(b.{name}, q.{name})" for name in names)
        made = ", ".join(f"{name} = coalesce(b.{name}_logged, q.{name}_logged)" for name in _MADE)
        connection.execute(f"UPDATE batch AS b SET {kept}, {made} {stored}")
    if mapping is not None and mapping.rules:
        assign(connection, "batch", mapping)
    if displaced:
        kept = ", ".join(f"{name} = coalesce(b.{name}, q.{name})" for name in _MADE)
        connection.execute(f"UPDATE batch AS b SET {kept} {stored}")
    stays = "SELECT 1 FROM batch b WHERE b.rowid NOT IN (SELECT row_id FROM judged WHERE NOT wins) LIMIT 1"
    if connection.execute(stays).fetchall():
        put_applied(connection, (*before, NONE if mapping is None else mapping.version))


def assign(connection: duckdb.DuckDBPyConnection, table: str, mapping: Owners) -> int:
    """Give the rows of a table the owners that the rules say, from what their log said.

    Args:
        connection: The store, in a transaction.
        table: `requests`, or a table with its columns.
        mapping: The rules.

    Returns:
        Rows that changed.
    """
    match(connection, table, mapping)
    changed = update(connection, table, mapping)
    clean(connection)
    return changed


def match(connection: duckdb.DuckDBPyConnection, table: str, mapping: Owners, also: Sequence[str] = ()) -> None:
    """Match the rules, without changing a row.

    Makes temporary tables: `owner_who` (distinct combinations with ``row_count``, ``requests``, ``tokens``),
    `owner_matched` (who, rule: every rule that fits), `owner_new` (who, the rule that takes it, team and feature as
    they are and as they will be).

    Args:
        connection: The store.
        table: `requests`, or a table with its columns.
        mapping: The rules.
        also: Further columns to keep apart.
    """
    keys = keys_of(mapping)
    told = "".join(f"{expression} AS k{i}, " for i, expression in enumerate(map(_expression, keys)))
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE owner_who AS WITH told AS (\n"
        f"  SELECT {told}{''.join(f'{name}, ' for name in also)}team_logged, feature_logged, team, feature,\n"
        f"    count(*) AS row_count, count(*) FILTER ({_BILLED}) AS requests,\n"
        "    coalesce(sum(coalesce(input_tokens, 0) + coalesce(output_tokens, 0)) "
        f"FILTER ({_BILLED}), 0)::BIGINT AS tokens\n"
        f"  FROM {table} GROUP BY ALL)\n"
        "SELECT row_number() OVER () AS who, * FROM told"
    )
    _put_rules(connection, mapping, keys)
    values = [f"SELECT who, {i} AS key, k{i} AS value FROM owner_who WHERE k{i} IS NOT NULL" for i in range(len(keys))]
    told = " UNION ALL ".join(values or ["SELECT 0::BIGINT AS who, 0 AS key, '' AS value WHERE false"])
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE owner_matched AS WITH told AS ({told}),\n"
        "held AS (SELECT DISTINCT key, value FROM told),\n"
        "met AS (\n"
        "  SELECT h.key, h.value, c.rule FROM held h JOIN owner_conditions c ON c.key = h.key AND c.pattern = h.value\n"
        "  WHERE NOT c.is_open\n"
        "  UNION SELECT h.key, h.value, c.rule FROM held h JOIN owner_conditions c ON c.key = h.key\n"
        "  WHERE c.is_open AND h.value LIKE c.pattern ESCAPE '\\'\n)\n"
        "SELECT t.who, m.rule FROM told t JOIN met m ON m.key = t.key AND m.value = t.value\n"
        "JOIN owner_rules r ON r.rule = m.rule GROUP BY t.who, m.rule, r.conditions HAVING count(*) = r.conditions"
    )
    words = ", ".join(
        f"CASE WHEN r.override THEN coalesce(r.{name}, w.{name}_logged) ELSE coalesce(w.{name}_logged, r.{name}) END "
        f"AS new_{name}"
        for name in _MADE
    )
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE owner_new AS SELECT w.*, t.rule, {words} FROM owner_who w\n"
        "LEFT JOIN (SELECT who, min(rule) AS rule FROM owner_matched GROUP BY who) t ON t.who = w.who\n"
        "LEFT JOIN owner_rules r ON r.rule = t.rule"
    )


def update(connection: duckdb.DuckDBPyConnection, table: str, mapping: Owners) -> int:
    """Write what ``match`` found.

    Args:
        connection: The store, in a transaction.
        table: The table that was matched.
        mapping: The rules that it was matched with.

    Returns:
        Rows that changed.
    """
    held = {f"k{i}": _expression(key, "b.") for i, key in enumerate(keys_of(mapping))}
    held |= {name: f"b.{name}" for name in ("team_logged", "feature_logged", "team", "feature")}
    same = (f"{expression} IS NOT DISTINCT FROM n.{name}" for name, expression in held.items())
    found = connection.execute(
        f"UPDATE {table} AS b SET team = n.new_team, feature = n.new_feature FROM (\n"
        f"  SELECT DISTINCT {', '.join(held)}, new_team, new_feature FROM owner_new\n"
        "  WHERE new_team IS DISTINCT FROM team OR new_feature IS DISTINCT FROM feature\n"
        f") n WHERE {' AND '.join(same)}"
    ).fetchall()
    return int(found[0][0])


def clean(connection: duckdb.DuckDBPyConnection) -> None:
    """Drop the temporary tables.

    Args:
        connection: The store.
    """
    for name in _TEMPORARY:
        connection.execute(f"DROP TABLE IF EXISTS temp.{name}")


def keys_of(mapping: Owners) -> list[str]:
    """List what the rules of a mapping are about.

    Args:
        mapping: The rules.

    Returns:
        Names of conditions, sorted.
    """
    return sorted({name for rule in mapping.rules for name, _ in rule.conditions})


def _expression(condition: str, table: str = "") -> str:
    if condition.startswith(TAG):
        return f"{table}tags[{quoted(condition.removeprefix(TAG))}]"
    if condition in LOGGED:
        return f"{table}{condition.partition('.')[2]}_logged"
    return f"{table}{condition}"


def _put_rules(connection: duckdb.DuckDBPyConnection, mapping: Owners, keys: Sequence[str]) -> None:
    number = {key: i for i, key in enumerate(keys)}
    rules = [(i, rule.team, rule.feature, rule.override, len(rule.conditions)) for i, rule in enumerate(mapping.rules)]
    kinds = {"rule": pl.Int32, "team": pl.String, "feature": pl.String, "override": pl.Boolean, "conditions": pl.Int64}
    put_frame(connection, "owner_rules", pl.DataFrame(rules, schema=kinds, orient="row"))
    conditions = [
        (i, number[name], _like(value) if "*" in value else value, "*" in value)
        for i, rule in enumerate(mapping.rules)
        for name, values in rule.conditions
        for value in values
    ]
    kinds = {"rule": pl.Int32, "key": pl.Int32, "pattern": pl.String, "is_open": pl.Boolean}
    put_frame(connection, "owner_conditions", pl.DataFrame(conditions, schema=kinds, orient="row"))


def _like(pattern: str) -> str:
    """Write an anchored pattern for LIKE: ``*`` is any run of characters, everything else is itself."""
    for sign in ("\\", "%", "_"):
        pattern = pattern.replace(sign, f"\\{sign}")
    return pattern.replace("*", "%")
