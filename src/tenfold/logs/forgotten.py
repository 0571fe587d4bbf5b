"""Users who were forgotten: known by a keyed hash alone, so that no later load brings back what was removed.

What they asked up to the moment of forgetting is refused; what they ask after it is new. Where nobody was forgotten a
load does not look.
"""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Final

from tenfold.logs import batch
from tenfold.logs.buckets import storing

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

# Of `meta`: the key of the hashes, and a hash over all that was forgotten, by which states of a log differ.
_KEY: Final = "forgotten_key"
FORGOTTEN: Final = "forgotten"
REASON: Final = "of a user who was forgotten (tenfold forget); what was asked before then is not loaded again"
_DIGEST = 16


def note(connection: duckdb.DuckDBPyConnection, user: str | None, at: datetime, what: str) -> None:
    """Write down that something was forgotten, in the caller's transaction.

    Args:
        connection: The store.
        user: Id of the user; None where a day was the limit.
        at: The moment (naive UTC).
        what: What was removed, as counts: no names.
    """
    if user is not None:
        key = _key(connection) or secrets.token_bytes(32)
        connection.execute("DELETE FROM meta WHERE name = ?", [_KEY])
        connection.execute("INSERT INTO meta VALUES (?, ?)", [_KEY, key.hex()])
        named = _hash(user, key)
        connection.execute("DELETE FROM forgotten WHERE user_hash = ?", [named])
        connection.execute("INSERT INTO forgotten VALUES (?, ?)", [named, at])
    before = connection.execute("SELECT value FROM meta WHERE name = ?", [FORGOTTEN]).fetchall()
    made = hashlib.sha256(f"{before}{at.isoformat()}{what}".encode()).hexdigest()
    connection.execute("DELETE FROM meta WHERE name = ?", [FORGOTTEN])
    connection.execute("INSERT INTO meta VALUES (?, ?)", [FORGOTTEN, made])


def refuse(connection: duckdb.DuckDBPyConnection) -> None:
    """Take out of a load what would bring back a forgotten user; every row is in `rejects`, with the reason.

    Args:
        connection: The store, in the load's transaction, with the staged tables and the load's rows of `loads`.
    """
    known = dict(connection.execute("SELECT user_hash, forgotten_at FROM forgotten").fetchall())
    key = _key(connection)
    if not known or key is None:
        return
    batch.see_whole(connection)
    users = connection.execute(
        f"SELECT user_id FROM arrived WHERE user_id IS NOT NULL UNION SELECT user_id FROM {storing.STAGED} "
        "WHERE user_id IS NOT NULL"
    ).fetchall()
    met = [(user, known[named]) for (user,) in users if (named := _hash(user, key)) in known]
    if not met:
        return
    connection.execute("CREATE OR REPLACE TEMP TABLE forgotten_met (user_id VARCHAR, until TIMESTAMP)")
    connection.executemany("INSERT INTO forgotten_met VALUES (?, ?)", met)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE forgotten_rows AS\n"
        "SELECT true AS is_request, r.row_id, r.source_file, r.source_line, r.load_id\n"
        "FROM arrived r JOIN forgotten_met m USING (user_id) WHERE r.ts IS NULL OR r.ts <= m.until\n"
        "UNION ALL SELECT false, b.rowid, b.source_file, b.source_line, b.load_id\n"
        f"FROM {storing.STAGED} b JOIN forgotten_met m USING (user_id)\n"
        "WHERE b.bucket_start IS NULL OR b.bucket_start <= m.until"
    )
    for table, which in (("batch", "is_request"), (storing.STAGED, "NOT is_request")):
        connection.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT row_id FROM forgotten_rows WHERE {which})")
    connection.execute(
        "INSERT INTO rejects SELECT source_file, source_line, $1, 'user_id', NULL, load_id FROM forgotten_rows",
        [REASON],
    )
    connection.execute(
        "UPDATE loads SET rejected = loads.rejected + f.rows, buckets = loads.buckets - f.buckets FROM ("
        "SELECT load_id, count(*) AS rows, count(*) FILTER (NOT is_request) AS buckets FROM forgotten_rows "
        "GROUP BY load_id) f "
        "WHERE loads.load_id = f.load_id"
    )
    connection.execute("DROP TABLE forgotten_met; DROP TABLE forgotten_rows")


def _key(connection: duckdb.DuckDBPyConnection) -> bytes | None:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", [_KEY]).fetchall()
    return bytes.fromhex(found[0][0]) if found else None


def _hash(user: str, key: bytes) -> str:
    return hashlib.blake2b(user.encode("utf-8", "surrogatepass"), digest_size=_DIGEST, key=key).hexdigest()
