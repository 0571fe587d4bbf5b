"""From `batch` into `requests`: what is new, what repeats, what is a later snapshot, what only shares an id.

Runs inside the load's one transaction. The rule for rows that share a dedup key: the first one known is the anchor;
a row of the same provider and model, within a day of it, whose counts are all at least (or all at most) the anchor's
is a snapshot of the same request and the fullest one stays; anything else is a conflict and goes to `rejects`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.logs import batch, cube, owning
from tenfold.logs.text.columns import forget_displaced
from tenfold.store import schema

if TYPE_CHECKING:
    import duckdb

    from tenfold.owners import Owners

# Columns that say where a row was read, or what an owner mapping made of it, not what it says.
_PLACE = {"source_format", "source_file", "source_line", "flags", "id_hash", "price_key", "load_id", "team", "feature"}
_PAYLOAD = tuple(name for name in schema.names("requests") if name not in _PLACE)
_COUNTS = schema.TOKEN_COLUMNS
_FULLNESS = ("status", "finish_reason", "duration_ms", "ttft_ms", "model", "provider", "ts")
# Snapshots of one call lie this close together; two calls of one reused id seldom do.
_SNAPSHOT_S = 86_400
CONFLICT = "same id as another request, with an unrelated payload"


def publish(
    connection: duckdb.DuckDBPyConnection,
    first_load: int,
    last_load: int,
    thresholds: tuple[int, ...],
    owners: Owners | None = None,
) -> None:
    """Insert the batch and keep the cube, the price keys and the manifest's counts in step.

    Args:
        connection: The store, in a transaction, with the temporary table `batch`.
        first_load: First row of `loads` that the batch belongs to.
        last_load: Last one.
        thresholds: Long-context thresholds of the cube.
        owners: Rules that give the rows their owners; None where there are no settings.
    """
    batch.see_whole(connection)
    _judge(connection)
    _suspect(connection)
    owning.map_batch(connection, owners)
    deleted = connection.execute("SELECT count(*) FROM displaced").fetchall()[0][0]
    if deleted:
        gone = "(SELECT * FROM requests WHERE rowid IN (SELECT row_id FROM displaced))"
        cube.add(connection, gone, thresholds, -1)
        forget_displaced(connection)
        connection.execute("DELETE FROM requests WHERE rowid IN (SELECT row_id FROM displaced)")
    _price_keys(connection)
    _insert(connection)
    cube.add(connection, f"(SELECT * FROM requests WHERE load_id BETWEEN {first_load} AND {last_load})", thresholds)
    cube.compact(connection, force=bool(deleted))
    reason = f"'{CONFLICT}: ' || j.met_file || ' line ' || j.met_line"
    connection.execute(
        f"INSERT INTO rejects SELECT b.source_file, b.source_line, {reason}, 'id', NULL, b.load_id "
        "FROM arrived b JOIN judged j ON j.row_id = b.row_id WHERE j.verdict = 'conflict'"
    )
    _count(connection, first_load, last_load)
    connection.execute("DROP VIEW arrived")
    for table in ("met", "judged", "displaced", "suspects"):
        connection.execute(f"DROP TABLE {table}")


# Everything a row says, compared value by value (two NULLs are the same).
_SAID = f"row({', '.join(f'{{0}}.{name}' for name in _PAYLOAD)})"
# What tells most rows without an id apart, so that few are compared whole.
_TELLING = ("ts", "input_tokens", "output_tokens", "model", "user_id", "session_id")


_JUDGED = (
    "dedup_key VARCHAR, stored BOOLEAN, row_id BIGINT, known_before BOOLEAN, wins BOOLEAN, verdict VARCHAR, "
    "met_file VARCHAR, met_line BIGINT"
)


def _judge(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE judged ({_JUDGED}); CREATE OR REPLACE TEMP TABLE displaced (row_id BIGINT)"
    )
    is_shared = (
        find_known(connection)
        or connection.execute(
            "SELECT 1 FROM batch WHERE id_hash IS NOT NULL GROUP BY id_hash HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
    )
    if is_shared:
        _compare(connection)


def find_known(connection: duckdb.DuckDBPyConnection) -> bool:
    """Take the stored rows that may be those of the batch into `met`; one pass over the stored hashes finds them.

    Args:
        connection: The store, with the temporary table `batch`.

    Returns:
        Whether there are any.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE hits AS SELECT r.rowid AS row_id FROM requests r SEMI JOIN batch USING (id_hash)"
    )
    first, last = connection.execute("SELECT min(row_id), max(row_id) FROM hits").fetchall()[0]
    found = "false" if first is None else f"rowid BETWEEN {first} AND {last} AND rowid IN (SELECT row_id FROM hits)"
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE met AS SELECT rowid AS row_id, * FROM requests WHERE {found}; DROP TABLE hits"
    )
    return first is not None


def _compare(connection: duckdb.DuckDBPyConnection) -> None:
    # What repeats a stored row word for word (a file that has grown since) needs no further look.
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE repeats AS\n"
        "SELECT b.row_id AS row_id FROM arrived b JOIN met r ON r.id_hash = b.id_hash AND r.dedup_key = b.dedup_key\n"
        f"WHERE {' AND '.join(f'r.{name} IS NOT DISTINCT FROM b.{name}' for name in _PAYLOAD)}"
    )
    counts = ", ".join(_COUNTS)
    columns = f"dedup_key, provider, model, ts, load_id, source_file, source_line, {counts}"
    known = " + ".join(f"({name} IS NOT NULL)::INTEGER" for name in _COUNTS)
    full = " + ".join(f"({name} IS NOT NULL)::INTEGER" for name in _FULLNESS)
    size = "coalesce(input_tokens, 0) + coalesce(output_tokens, 0)"
    shape = f"{known} AS known, {size} AS size, {full} AS fullness"
    grows = " AND ".join(f"(a.{name} IS NULL OR coalesce(c.{name} >= a.{name}, false))" for name in _COUNTS)
    falls = " AND ".join(f"(c.{name} IS NULL OR coalesce(c.{name} <= a.{name}, false))" for name in _COUNTS)
    same = " AND ".join(f"coalesce(c.{name} = a.{name}, true)" for name in ("provider", "model"))
    same += f" AND coalesce(abs(date_diff('second', c.ts, a.ts)) <= {_SNAPSHOT_S}, true)"
    connection.execute(
        "INSERT INTO judged WITH fresh AS (\n"
        "  SELECT b.*, b.row_id AS row_id FROM arrived b ANTI JOIN repeats p ON p.row_id = b.row_id\n),\n"
        "shared AS (\n"
        "  SELECT id_hash FROM fresh WHERE dedup_key IS NOT NULL GROUP BY id_hash HAVING count(*) > 1\n"
        "  UNION SELECT id_hash FROM fresh SEMI JOIN met USING (id_hash)\n),\n"
        "candidates AS (\n"
        f"  SELECT true AS stored, r.row_id, {_SAID.format('r')} AS payload, {shape}, {columns}\n"
        "  FROM met r WHERE id_hash IN (FROM shared)\n"
        f"  UNION ALL SELECT false, b.row_id, {_SAID.format('b')}, {known}, {size}, {full}, {columns}\n"
        "  FROM fresh b WHERE id_hash IN (FROM shared)\n),\n"
        # A stored row stands before the batch; within each, the order of the files and their lines: rows come into the
        # batch in another one, as each slice is read the fastest way.
        "ordered AS (SELECT *, row_number() OVER (PARTITION BY dedup_key ORDER BY NOT stored, load_id, source_line, "
        "row_id) AS place FROM candidates),\n"
        "anchors AS (SELECT * FROM ordered WHERE place = 1),\n"
        "related AS (\n"
        "  SELECT c.*, a.source_file AS met_file, a.source_line AS met_line,\n"
        f"    c.place = 1 OR (({same}) AND (({grows}) OR ({falls}))) AS related\n"
        "  FROM ordered c JOIN anchors a USING (dedup_key)\n),\n"
        "ranked AS (\n"
        "  SELECT *, row_number() OVER (PARTITION BY dedup_key, related ORDER BY known DESC, size DESC, fullness DESC, "
        "place) AS rank,\n"
        "    row_number() OVER (PARTITION BY dedup_key, related, payload ORDER BY place) AS repeat,\n"
        "    bool_or(stored) OVER (PARTITION BY dedup_key) AS known_before\n  FROM related\n)\n"
        "SELECT dedup_key, stored, row_id, known_before, related AND rank = 1 AS wins,\n"
        "  CASE WHEN NOT related THEN 'conflict' WHEN repeat > 1 THEN 'duplicate' "
        "WHEN rank = 1 AND NOT known_before THEN 'new' ELSE 'merged' END AS verdict, met_file, met_line\nFROM ranked"
    )
    connection.execute(
        "INSERT INTO displaced SELECT row_id FROM judged j WHERE stored AND NOT wins "
        "AND EXISTS (SELECT 1 FROM judged w WHERE w.dedup_key = j.dedup_key AND w.wins AND NOT w.stored)"
    )
    connection.execute("DELETE FROM judged WHERE stored")
    repeat = "NULL, false, row_id, true, false, 'duplicate', NULL, NULL"
    connection.execute(f"INSERT INTO judged SELECT {repeat} FROM repeats; DROP TABLE repeats")


def _suspect(connection: duckdb.DuckDBPyConnection) -> None:
    """Find rows without an id that equal another such row, of this batch or stored before."""
    telling = ", ".join(_TELLING)
    alike = " AND ".join(f"c.{name} IS NOT DISTINCT FROM t.{name}" for name in _TELLING)
    every = ", ".join(f"c.{name}" for name in _PAYLOAD)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE suspects AS\n"
        f"WITH nameless AS (SELECT {telling} FROM arrived WHERE dedup_key IS NULL),\n"
        f"stored AS (SELECT r.rowid AS row_id, r.* FROM requests r SEMI JOIN nameless t ON "
        f"{alike.replace('c.', 'r.')} WHERE r.dedup_key IS NULL),\n"
        f"met AS (SELECT {telling} FROM nameless UNION ALL SELECT {telling} FROM stored),\n"
        f"twice AS (SELECT {telling} FROM met GROUP BY ALL HAVING count(*) > 1),\n"
        "candidates AS (\n"
        f"  SELECT false AS is_stored, c.row_id, {every} FROM arrived c SEMI JOIN twice t ON {alike}\n"
        "  WHERE c.dedup_key IS NULL\n"
        f"  UNION ALL SELECT true, c.row_id, {every} FROM stored c\n),\n"
        f"sized AS (SELECT is_stored, row_id, count(*) OVER (PARTITION BY {', '.join(_PAYLOAD)}) AS equals\n"
        "  FROM candidates)\n"
        "SELECT row_id FROM sized WHERE equals > 1 AND NOT is_stored"
    )


_PRICED = {
    "provider": "coalesce(b.provider, '')",
    "model": "coalesce(b.model, '')",
    "service_tier": "coalesce(b.service_tier, 'standard')",
    "region": "coalesce(b.region, '')",
}


def _price_keys(connection: duckdb.DuckDBPyConnection) -> None:
    names = ", ".join(_PRICED)
    connection.execute(
        f"INSERT INTO price_keys WITH found AS (SELECT DISTINCT {', '.join(_PRICED.values())} FROM arrived b),\n"
        f"named AS (SELECT * FROM found AS f ({names})),\n"
        f"fresh AS (FROM named EXCEPT SELECT {names} FROM price_keys)\n"
        "SELECT (SELECT coalesce(max(price_key), 0) FROM price_keys) + row_number() OVER "
        f"(ORDER BY {names}), {names} FROM fresh ORDER BY ALL"
    )


def _insert(connection: duckdb.DuckDBPyConnection) -> None:
    flags = "CASE WHEN s.row_id IS NULL THEN b.flags ELSE list_append(coalesce(b.flags, []), 'dup_suspect') END"
    own = {"price_key": "k.price_key", "flags": flags}
    columns = ", ".join(own.get(name, f"b.{name}") for name in schema.names("requests"))
    matched = " AND ".join(f"k.{name} = {value}" for name, value in _PRICED.items())
    connection.execute(
        f"INSERT INTO requests SELECT {columns} FROM arrived b JOIN price_keys k ON {matched}\n"
        "LEFT JOIN suspects s ON s.row_id = b.row_id\n"
        "WHERE NOT EXISTS (SELECT 1 FROM judged j WHERE j.row_id = b.row_id AND NOT j.wins)"
    )


def _count(connection: duckdb.DuckDBPyConnection, first_load: int, last_load: int) -> None:
    connection.execute(
        "UPDATE loads SET requests = c.requests, duplicates = c.duplicates, merged = loads.merged + c.merged, "
        "rejected = loads.rejected + c.conflicts, flagged = c.flagged FROM (\n"
        "  SELECT b.load_id, count(*) FILTER (WHERE j.verdict IS NULL OR j.verdict = 'new') AS requests,\n"
        "    count(*) FILTER (WHERE j.verdict = 'duplicate') AS duplicates,\n"
        "    count(*) FILTER (WHERE j.verdict = 'merged') AS merged,\n"
        "    count(*) FILTER (WHERE j.verdict = 'conflict') AS conflicts,\n"
        "    count(*) FILTER (WHERE (j.wins IS NULL OR j.wins) AND (b.flags IS NOT NULL OR s.row_id IS NOT NULL)) "
        "AS flagged\n"
        "  FROM arrived b LEFT JOIN judged j ON j.row_id = b.row_id LEFT JOIN suspects s ON s.row_id = b.row_id\n"
        f"  GROUP BY b.load_id) c WHERE loads.load_id = c.load_id AND c.load_id BETWEEN {first_load} AND {last_load}"
    )
