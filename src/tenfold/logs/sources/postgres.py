"""LiteLLM's spend logs in PostgreSQL, over ADBC: what is new since the last load, as the lines its reader takes.

A load reads from a day before the latest start it has seen (rows are written in batches, after the call, and may be
changed later); the ids recognise what is known. The text of calls is never asked for: of each row only what the reader
uses leaves the server.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import zstandard

from tenfold import extras
from tenfold.errors import near
from tenfold.logs.base import UNREAD, Tree, identifier, tree
from tenfold.logs.litellm_spend import LITELLM_SPEND
from tenfold.logs.sources.base import Answer, Mark, Source, SourceError, asked, kept, scrubbed
from tenfold.store.database import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import polars as pl
    from adbc_driver_manager.dbapi import Connection

_URL = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_TABLE, _SCHEMA, _OVERLAP_DAYS = "LiteLLM_SpendLogs", "public", "1"
_OWN = {"table": _TABLE, "schema": _SCHEMA, "overlap_days": _OVERLAP_DAYS}
_LIBPQ = (
    *("user", "password", "passfile", "connect_timeout", "application_name", "options", "target_session_attrs"),
    *("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "channel_binding", "gssencmode", "krbsrvname"),
)
# What LiteLLM's own address of its database may say to its client, and means nothing here.
_OTHERS = {"connection_limit", "pool_timeout", "socket_timeout", "pgbouncer", "sslaccept", "statement_cache_size"}
_NEEDED = ("request_id", "call_type", "startTime", "spend", "model", "prompt_tokens", "completion_tokens")
_START = identifier("startTime")
_ROWS = 5_000  # taken at a time
_SESSION = (
    "SET default_transaction_read_only = on",
    "SET default_transaction_isolation = 'repeatable read'",
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
)
_MEANINGS = (
    (
        r"password authentication failed|no password supplied|pg_hba|^28",
        "the server refused user or password. Put the password into PGPASSWORD or ~/.pgpass, and the user into the URL",
    ),
    (r"Connection refused", "nothing listens there. Check host and port, and that the server runs"),
    (r"could not translate host name", "there is no such host. Check the name"),
    (r"timeout expired|timed out", "the server does not answer. Check host, port and network"),
    (r'database ".*" does not exist', "there is no such database. Check the name"),
    (r"permission denied", "the user may not read the table. Grant it SELECT"),
    (r"terminating connection|server closed the connection|connection to server was lost", "the connection was cut"),
)


class Place(NamedTuple):
    """A table of spend logs.

    Args:
        name: Its address without user, password and options.
        address: What the client library takes.
        table: Table.
        schema: Its schema.
        overlap_days: How far back of the latest start known a load reads again.
        secrets: What must not be shown.
    """

    name: str
    address: str
    table: str
    schema: str
    overlap_days: int
    secrets: tuple[str, ...]


def is_url(path: str) -> bool:
    """Tell the address of a PostgreSQL database.

    Args:
        path: What the user named.

    Returns:
        Whether it is one.
    """
    return _URL.match(path) is not None


def place(url: str) -> Place:
    """Take a URL apart.

    Args:
        url: ``postgresql://[USER[:PASSWORD]@]HOST[:PORT]/DATABASE[?schema=S&table=T&overlap_days=N&sslmode=...]``.

    Returns:
        The place.

    Raises:
        SourceError: The URL cannot be used; nothing of it is shown that may be part of a password.
    """
    try:
        parts = urlsplit(url)
        port, database = parts.port, unquote(parts.path[1:])
    except ValueError:  # whose text may show what it could not read
        parts, port, database = urlsplit(""), None, ""
    if not database or set("/@:") & set(database) or parts.fragment:
        raise SourceError(
            "postgresql://...: write postgresql://USER@HOST:PORT/DATABASE, with the password in PGPASSWORD; in the URL "
            "its signs are written as %XX (/ as %2F, @ as %40, # as %23)"
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    for key in given:
        if key not in {*_OWN, *_LIBPQ, *_OTHERS}:
            raise SourceError(f'postgresql://...: unknown parameter "{key}".{near(key, [*_OWN, *_LIBPQ])}')
    own = _OWN | {key: value for key, value in given.items() if key in _OWN}
    if not own["overlap_days"].isdecimal():
        raise SourceError(f"postgresql://...: overlap_days={own['overlap_days']}: write whole days, as in 7")
    passed = {"connect_timeout": "10", "application_name": "tenfold"}
    passed |= {key: value for key, value in given.items() if key in _LIBPQ}
    login = {"user": unquote(parts.username or ""), "password": unquote(parts.password or "")}
    passed |= {key: value for key, value in login.items() if value}
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
    server = host + (f":{port}" if port is not None else "")
    table = own["table"] if own["schema"] == _SCHEMA else f"{own['schema']}.{own['table']}"
    return Place(
        f"postgresql://{server}/{database}/{table}",
        f"postgresql://{server}/{quote(database, safe='')}?{urlencode(passed, quote_via=quote)}",
        own["table"],
        own["schema"],
        int(own["overlap_days"]),
        (passed.get("password", ""), quote(passed.get("password", ""), safe="")),
    )


def read(url: str, folder: Path, mark_of: Callable[[str], str | None]) -> Source:
    """Keep what is new in the table as JSON lines, by time of start.

    Args:
        url: See ``place``.
        folder: Where to keep it.
        mark_of: Says how far the table was read, by the mark's name.

    Returns:
        The file, with the mark to be stored with its rows.

    Raises:
        SourceError: The server cannot be reached, refuses, or has no such table.
        MissingExtraError: The library is not installed.
    """
    extras.need("adbc_driver_manager", "adbc_driver_postgresql", what="reading postgresql://", extra="postgres")
    from adbc_driver_postgresql import dbapi

    there = place(url)
    connection = _asked(there, lambda: dbapi.connect(there.address))
    try:
        for sql in _SESSION:
            _asked(there, lambda sql=sql: _run(connection, sql))
        _asked(there, connection.commit)  # the next transaction is the first one with these settings
        return _read(there, connection, folder, mark_of)
    finally:
        connection.close()


def _read(there: Place, connection: Connection, folder: Path, mark_of: Callable[[str], str | None]) -> Source:
    columns = _columns(there, connection)
    name = f"mark:{there.name}"
    before = mark_of(name)
    table = f"{identifier(there.schema)}.{identifier(there.table)}"
    since = "true"
    if before is not None:
        since = f"{_START} >= {quoted(before)}::{columns['startTime']} - interval '{there.overlap_days} days'"
    # A clock that is ahead must not carry the mark past rows to come.
    latest = f"SELECT max({_START})::text AS mark FROM {table} WHERE {_START} <= now()"
    mark = _asked(there, lambda: _run(connection, latest))["mark"][0]
    wanted = ", ".join(_selected(columns))
    rows = f"SELECT {wanted} FROM {table} WHERE {since} ORDER BY {table}.{_START}, {table}.request_id"
    declared = f"DECLARE rows NO SCROLL CURSOR FOR SELECT row_to_json(r)::text AS line FROM ({rows}) r"
    _asked(there, lambda: _run(connection, declared))
    file = kept(_packed(_lines(there, connection)), folder)
    return Source(there.name, file, mark=Mark(name, mark) if mark else None)


def _lines(there: Place, connection: Connection) -> Iterator[bytes]:
    while True:
        frame = _asked(there, lambda: _run(connection, f"FETCH {_ROWS} FROM rows"))
        if frame.is_empty():
            return
        yield "".join(f"{line}\n" for line in frame["line"]).encode()


def _packed(pieces: Iterator[bytes]) -> Iterator[bytes]:
    packer = zstandard.ZstdCompressor().compressobj()
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def _columns(there: Place, connection: Connection) -> dict[str, str]:
    table = quoted(f"{identifier(there.schema)}.{identifier(there.table)}")
    found = _asked(
        there,
        lambda: _run(
            connection,
            "SELECT attname::text AS name, format_type(atttypid, NULL) AS type FROM pg_attribute "
            f"WHERE attrelid = to_regclass({table}) AND attnum > 0 AND NOT attisdropped",
        ),
    )
    columns = dict(zip(found["name"], found["type"], strict=True))
    if not columns:
        raise SourceError(
            f"{there.name}: there is no such table in the database. Name it with ?schema=SCHEMA&table=TABLE, where "
            "LiteLLM's tables are not in public"
        )
    missing = [name for name in _NEEDED if name not in columns]
    if missing:
        raise SourceError(
            f"{there.name}: the table has no column {', '.join(missing)}, so it holds no spend logs that can be read. "
            "Check the table's name and LiteLLM's version"
        )
    return columns


def _selected(columns: dict[str, str]) -> Iterator[str]:
    """Give what the reader takes of a row, times as a CSV export writes them."""
    for name, node in tree(LITELLM_SPEND.leaves).items():
        kind, column = columns.get(name), identifier(name)
        if kind is None:
            continue
        if kind.startswith("timestamp"):
            yield f"{column}::text AS {column}"
        elif isinstance(node, dict) and kind == "jsonb":
            yield f"{_pruned(column, node)} AS {column}"
        elif kind == "json":
            yield f"replace(replace({column}::text, chr(10), ' '), chr(13), ' ')::json AS {column}"
        else:
            yield column


def _pruned(value: str, node: Tree) -> str:
    """Keep the values that the reader knows; what is no object stays as it is, for the reader to judge."""
    kept: list[str] = []
    for key, below in node.items():
        held = f"{value}->{quoted(key)}"
        if key != UNREAD:
            kept.append(f"{quoted(key)}, {_pruned(held, below) if isinstance(below, dict) else held}")
    made = f"jsonb_strip_nulls(jsonb_build_object({', '.join(kept)}))"
    return f"CASE jsonb_typeof({value}) WHEN 'object' THEN {made} ELSE {value} END"


def _run(connection: Connection, sql: str) -> pl.DataFrame:
    # A cursor of the server cannot be read by COPY, the driver's usual way.
    with connection.cursor(adbc_stmt_kwargs={"adbc.postgresql.use_copy": "false"}) as cursor:
        cursor.execute(sql)
        return cursor.fetch_polars()


def _asked(there: Place, call: Callable[[], Answer]) -> Answer:
    from adbc_driver_manager import Error

    def reason(error: Exception) -> str:
        text = scrubbed(str(error), *there.secrets)
        return next((meaning for said, meaning in _MEANINGS if re.search(said, text)), text)

    return asked(there.name, Error, reason, call)
