"""Forgetting: requests of a user, or before a day, leave the database, its file and the published copies for good."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tenfold import config
from tenfold.display import counted
from tenfold.errors import AssumptionError, StoreError
from tenfold.export.day_files import Published, check_target, publish_keeping
from tenfold.ledger import Session, Window
from tenfold.ledger.session import timestamp
from tenfold.logs import Log, cube, forgotten, open_log
from tenfold.money import shown, usd_text
from tenfold.prices import PriceBook, price_book
from tenfold.store.engines.duckdb import DuckDBEngine
from tenfold.store.manifest import is_published
from tenfold.store.published import check_writable
from tenfold.store.rewriting import rewrite

if TYPE_CHECKING:
    from collections.abc import Mapping

_WHO, _RENAMED = "temp.forget_who", "temp.forget_settings"
# Columns in which an id may stand that is no user's there.
_WHERE_ELSE = ("org", "project", "team", "feature", "environment", "session_id", "api_key_id", "client", "trace_id")
_GONE = "(SELECT * FROM {held}requests WHERE {condition})"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was removed, or would be.

    Args:
        user: The user; None where a day was the limit.
        before: Requests before this moment (aware); None where a user was named.
        is_dry: Nothing was changed.
        requests: Requests.
        requests_left: Requests that stay.
        unpriced_requests: Billable ones among those removed that have no price.
        cost_pusd: What they cost at list prices, pUSD.
        texts: Kept prompts and answers.
        buckets: Rows of reports that name a user.
        excerpts: Excerpts of refused lines that may be theirs; the lines stay, as file and number.
        undated: Requests without a time, which ``before`` cannot judge and leaves.
        elsewhere: What else names the user and stays, in sentences.
        published: What publishing anew did; None where no folder was named.
    """

    user: str | None
    before: datetime | None
    is_dry: bool
    requests: int
    requests_left: int
    unpriced_requests: int
    cost_pusd: int
    texts: int
    buckets: int
    excerpts: int
    undated: int
    elsewhere: tuple[str, ...] = ()
    published: Published | None = None

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold forget --json``.

        Returns:
            ``user``, ``before``, ``dry_run``, ``requests``, ``requests_left``, ``unpriced_requests``, ``cost_usd``,
            ``texts``, ``buckets``, ``excerpts``, ``undated``, ``elsewhere[]``, ``published{}``.
        """
        return {
            "user": self.user,
            "before": None if self.before is None else self.before.isoformat(),
            "dry_run": self.is_dry,
            "requests": self.requests,
            "requests_left": self.requests_left,
            "unpriced_requests": self.unpriced_requests,
            "cost_usd": usd_text(self.cost_pusd),
            "texts": self.texts,
            "buckets": self.buckets,
            "excerpts": self.excerpts,
            "undated": self.undated,
            "elsewhere": list(self.elsewhere),
            "published": None if self.published is None else self.published.as_dict(),
        }

    def sentences(self) -> list[str]:
        """Say it for people.

        Returns:
            What went, what it cost, what stays, and where copies may be.
        """
        verb = "would be removed" if self.is_dry else "removed"
        unpriced = f", {self.unpriced_requests:,} of them without a price" if self.unpriced_requests else ""
        went = (
            f"{counted(self.requests, 'request')} ({shown(self.cost_pusd)} at list prices{unpriced})",
            counted(self.texts, "kept text"),
            f"{counted(self.buckets, 'row')} of reports by user",
            f"{counted(self.excerpts, 'excerpt')} of refused lines",
        )
        said = [f"{verb}: {', '.join(went)}; {counted(self.requests_left, 'request')} stay"]
        if self.undated:
            said.append(f"{counted(self.undated, 'request')} without a time stay: no day says whether they are older")
        if self.user is not None and not any((self.requests, self.texts, self.buckets)):
            said.append("nothing here is of this user: check the spelling, ids are taken letter by letter")
        said += self.elsewhere
        if self.is_dry:
            return [*said, "dry: the database is as it was"]
        said.append("the database was written anew, so its file holds no bytes of those requests")
        if self.user is None:
            said.append("a file loaded before is skipped; another file that holds such requests brings them back")
        else:
            said.append(
                "loads refuse what the user asked up to now, from whatever file, by a keyed hash of the id; it is then "
                "counted among the rejected lines"
            )
        if self.published is None:
            said.append(
                "published folders (their older snapshots too), exports, backups and the logs themselves may still "
                "hold them: --published DIR makes a folder anew and removes its older snapshots"
            )
        else:
            said.append(
                f"{self.published.out} holds one snapshot now, without them; exports, backups and the logs themselves "
                "may still hold them"
            )
        return said


def forget(
    log: Log,
    *,
    user: str | None = None,
    before: str | date | datetime | None = None,
    zone: str = "UTC",
    published: str | Path | None = None,
    dry_run: bool = False,
    book: PriceBook | None = None,
) -> Forgotten:
    """Remove the requests of a user, or those before a day, with all that was made of them; whole or not at all.

    The file is written anew without them and takes the old one's place, so it needs that much space for a moment.
    Requests, their hashes and kept texts go; reports that name a user (the one, or any before the day); excerpts of
    refused lines of the files in question. Totals fall by exactly what went. Loads refuse what a forgotten user had
    asked until now, whatever file it comes from; of a day there is no such memory.

    Args:
        log: The log.
        user: Its ``user_id``.
        before: First day, or instant, that stays.
        zone: Zone of the day, and of an instant without one.
        published: A published folder that is to be made anew at once, its older snapshots removed.
        dry_run: Only say what would go.
        book: Prices for what it cost; the shipped ones by default.

    Returns:
        What went.

    Raises:
        AssumptionError: Neither or both of user and day.
        StoreError: The log is a published folder, is in use, or there is no space; nothing was changed. Or it was
            forgotten and ``published`` could not be made anew: says so.
    """
    check_writable(log.store.path)
    if (user is None) == (before is None):
        raise AssumptionError("forget either a user or what was before a day: --user U or --before D")
    if published is not None and not is_published(published):
        raise StoreError(f"{published}: no published folder. Name the one that tenfold publish wrote: --published DIR")
    if not dry_run and published is not None:
        check_target(log, Path(published))
    limit = _instant(before, zone)
    what = _What(user, limit)
    with log.store.reading() if dry_run else log.store.writing() as connection:
        found = what.counted(connection, book or price_book(), is_dry=dry_run)
        if dry_run:
            return found
        rewrite(connection, log.store.path, what.stays(), lambda held: what.finish(connection, held, found))
    if published is None:
        return found
    try:
        whole = log if log.store.path is None else open_log(log.store.path)
        return replace(found, published=publish_keeping(whole, published, 1, even_read=True))
    except (StoreError, OSError) as error:
        raise StoreError(
            f"forgotten in the database, but not in {published}, which still holds it all ({error}). Once that is "
            f"mended: tenfold publish --db {log.store.path} --out {published}, and remove its older snapshots"
        ) from error


def _instant(before: str | date | None, zone: str) -> datetime | None:
    if isinstance(before, datetime) and before.tzinfo is not None:
        return before
    return config.instant(before.isoformat() if isinstance(before, date) else before, zone, "--before")


class _What:
    """What is to be forgotten, as SQL.

    Args:
        user: A user's id.
        before: First instant that stays.
    """

    def __init__(self, user: str | None, before: datetime | None) -> None:
        self.user = user
        self.before = before
        if before is None:
            self.condition = f"coalesce(user_id IN (SELECT user_id FROM {_WHO}), false)"
            self.reports = self.condition
            self.excerpts = f"coalesce(contains(excerpt, (SELECT user_id FROM {_WHO})), false)"
        else:
            limit = timestamp(before)
            self.condition = f"coalesce(ts < {limit}, false)"
            self.reports = f"(user_id IS NOT NULL AND coalesce(bucket_end <= {limit}, false))"
            self.excerpts = f"load_id IN (SELECT load_id FROM {{held}}loads WHERE loaded_at < {limit})"
        self.excerpts = (
            f"(excerpt IS NOT NULL AND ({self.excerpts} OR load_id IN "
            f"(SELECT load_id FROM {{held}}requests WHERE {self.condition})))"
        )
        alike = " AND ".join(
            f"t.{name} IS NOT DISTINCT FROM g.{name}" for name in ("load_id", "source_line", "dedup_key")
        )
        self.texts = f"EXISTS (SELECT 1 FROM {self._gone()} g WHERE {alike})"

    def _gone(self) -> str:
        return _GONE.replace("{condition}", self.condition)

    def stays(self) -> Mapping[str, str]:
        """Give what stays of each table that is touched."""
        return {
            "requests": f"SELECT * FROM {{held}}requests WHERE NOT {self.condition}",
            "texts": f"SELECT * FROM {{held}}texts t WHERE NOT {self.texts}",
            "usage_buckets": f"SELECT * FROM {{held}}usage_buckets WHERE NOT {self.reports}",
            "rejects": (
                f"SELECT * REPLACE (CASE WHEN NOT {self.excerpts} THEN excerpt END AS excerpt) FROM {{held}}rejects"
            ),
            "loads": (
                "SELECT l.* REPLACE (coalesce(n.made, l.settings) AS settings) FROM {held}loads l "
                f"LEFT JOIN {_RENAMED} n ON n.settings = l.settings ORDER BY l.load_id"
            ),
        }

    def counted(self, connection: duckdb.DuckDBPyConnection, book: PriceBook, *, is_dry: bool) -> Forgotten:
        """Count what goes, and price it."""
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {_WHO.removeprefix('temp.')} (user_id VARCHAR)")
        if self.user is not None:
            connection.execute(f"INSERT INTO {_WHO} VALUES (?)", [self.user])
        self._note_settings(connection)

        def one(sql: str) -> int:
            return int(connection.execute(sql.format(held="")).fetchall()[0][0])

        gone = one(f"SELECT count(*) FROM requests WHERE {self.condition}")
        cost = unpriced = 0
        if gone:
            session = Session(DuckDBEngine(connection), book, Window())
            totals = session.totals(condition=self.condition)
            cost, unpriced = (int(totals[name].sum() or 0) for name in ("cost_pusd", "unpriced_requests"))
        return Forgotten(
            self.user,
            self.before,
            is_dry,
            gone,
            one("SELECT count(*) FROM requests") - gone,
            unpriced,
            cost,
            one(f"SELECT count(*) FROM texts t WHERE {self.texts}"),
            one(f"SELECT count(*) FROM usage_buckets WHERE {self.reports}"),
            one(f"SELECT count(*) FROM rejects WHERE {self.excerpts}"),
            0 if self.before is None else one("SELECT count(*) FROM requests WHERE ts IS NULL"),
            () if self.user is None else self._elsewhere(connection),
        )

    def _note_settings(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Note settings of loads that state the user for all their rows, and what they become."""
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE {_RENAMED.removeprefix('temp.')} (settings VARCHAR, made VARCHAR)"
        )
        for (text,) in connection.execute("SELECT DISTINCT settings FROM loads").fetchall():
            held: dict[str, Any] = json.loads(text) if text else {}
            if self.user is not None and (held.get("set") or {}).get("user_id") == self.user:
                held["set"]["user_id"] = None
                connection.execute(f"INSERT INTO {_RENAMED} VALUES (?, ?)", [text, json.dumps(held, sort_keys=True)])

    def _elsewhere(self, connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
        places = {
            "requests of others bear the id in a tag": (
                f"SELECT count(*) FROM requests WHERE NOT {self.condition} AND list_contains(map_values(tags), $1)"
            ),
            "requests of others bear the id in another column": (
                f"SELECT count(*) FROM requests WHERE NOT {self.condition} AND $1 IN ({', '.join(_WHERE_ELSE)})"
            ),
            "loaded files bear the id in their name": "SELECT count(*) FROM loads WHERE contains(source_file, $1)",
            "recorded plans bear the id": ("SELECT count(*) FROM plans WHERE contains(document, '\"' || $1 || '\"')"),
        }
        found = {what: connection.execute(sql, [self.user]).fetchall()[0][0] for what, sql in places.items()}
        return tuple(f"{count:,} {what}, which stays" for what, count in found.items() if count)

    def finish(self, connection: duckdb.DuckDBPyConnection, held: str, found: Forgotten) -> None:
        """Bring the cube in step, and write down that it was done."""
        if found.requests:
            gone = self._gone().format(held=held)
            cube.add(connection, gone, cube.thresholds_of(connection) or (), -1)
            cube.compact(connection, force=True)
        now = datetime.now(UTC).replace(tzinfo=None)
        what = f"{found.requests} {found.texts} {found.buckets} {found.cost_pusd}"
        forgotten.note(connection, self.user, now, what)
