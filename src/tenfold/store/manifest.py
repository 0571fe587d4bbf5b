"""How a published folder is laid out: Parquet by day under snapshots, of which one is current. Written by `export/`.

    DIR/current -> snapshots/<UTC stamp>-<hash>         the newest, swapped whole
    DIR/snapshots/<...>/requests/day=YYYY-MM-DD/requests.parquet             rid, then the columns of `requests`
    DIR/snapshots/<...>/prefix_blocks/day=YYYY-MM-DD/prefix_blocks.parquet   rid, block_no from 1, hash
    DIR/snapshots/<...>/<table>.parquet                 the small tables
    DIR/snapshots/<...>/manifest.json                   what there is, with sizes and hashes; written last

Texts are not in it, and of `meta` only what reading takes. ``rid`` is the day's number since 1970-01-01 times 2^32
plus the row's place in its file; rows without a time have the day number 2^27, which no TIMESTAMP reaches.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from tenfold.errors import StoreError
from tenfold.store import schema

CURRENT: Final = "current"
SNAPSHOTS: Final = "snapshots"
MANIFEST: Final = "manifest.json"
# Held by whoever publishes; tells a folder that was published into from any other.
MARK: Final = ".tenfold-publish"
REQUESTS: Final = "requests"
BLOCKS: Final = "prefix_blocks"
# Tables that are one file each.
TABLES: Final = ("cube", "price_keys", "rejects", "loads", "usage_buckets", "plans", "meta")
UNDATED: Final = "undated"
UNDATED_DAY: Final = 2**27
RID_STEP: Final = 2**32
_NAME = re.compile(r"\d{8}T\d{6}Z-(?P<digest>[0-9a-f]{12})x*")
_AGAIN = "Publish anew: tenfold publish --db FILE --out DIR"


class Written(NamedTuple):
    """One Parquet file of a snapshot.

    Args:
        rows: Its rows.
        bytes: Its size.
        sha256: Hash of its bytes.
    """

    rows: int
    bytes: int
    sha256: str


class Day(NamedTuple):
    """One day of a snapshot.

    Args:
        content: What the rows say, as one number (see ``export/day_files.py``).
        requests: The file of requests.
        prefix_blocks: The file of their prefix blocks.
    """

    content: str
    requests: Written
    prefix_blocks: Written


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One whole state of a published log.

    Args:
        folder: Where it lies.
        made_at: When it was made, UTC, ISO 8601.
        log_hash: Hash of what had been loaded, as ``Log.log_hash``.
        tenfold_version: Version that wrote it.
        writer: Program that wrote the Parquet files and made the days' content numbers.
        days: Name of a day (``YYYY-MM-DD``, ``undated``) to what is in it, in order.
        tables: Name of a small table to its file.
    """

    folder: Path
    made_at: str
    log_hash: str
    tenfold_version: str
    writer: str
    days: dict[str, Day]
    tables: dict[str, Written]

    def file(self, table: str, day: str | None = None) -> Path:
        """Say where a file lies.

        Args:
            table: ``requests``, ``prefix_blocks`` or one of the small tables.
            day: Name of a day; None for the small tables.

        Returns:
            The path.
        """
        return place(self.folder, table, day)

    def files(self, table: str) -> list[Path]:
        """List the files of a table.

        Args:
            table: ``requests``, ``prefix_blocks`` or one of the small tables.

        Returns:
            One a day in order, or the one of a small table.
        """
        return [self.file(table, day) for day in self.days] if table in (REQUESTS, BLOCKS) else [self.file(table)]

    @property
    def digest(self) -> str:
        """Hash of what the manifest says is in it: the end of the folder's name."""
        held = self.as_dict()
        return hashlib.sha256(json.dumps([held["days"], held["tables"]]).encode()).hexdigest()[:12]

    def as_dict(self) -> dict[str, Any]:
        """Give the manifest.

        Returns:
            What ``manifest.json`` holds.
        """
        return {
            "tenfold": self.tenfold_version,
            "schema_version": schema.SCHEMA_VERSION,
            "writer": self.writer,
            "made_at": self.made_at,
            "log_hash": self.log_hash,
            "rows": sum(day.requests.rows for day in self.days.values()),
            "days": {
                name: {
                    "content": day.content,
                    REQUESTS: day.requests._asdict(),
                    BLOCKS: day.prefix_blocks._asdict(),
                }
                for name, day in self.days.items()
            },
            "tables": {name: written._asdict() for name, written in self.tables.items()},
        }


def place(folder: Path, table: str, day: str | None = None) -> Path:
    """Say where a file of a snapshot lies.

    Args:
        folder: The snapshot.
        table: Name of the table.
        day: Name of a day; None for the small tables.

    Returns:
        The path.
    """
    return folder / f"{table}.parquet" if day is None else folder / table / f"day={day}" / f"{table}.parquet"


def is_published(path: str | Path) -> bool:
    """Tell whether a path is a published folder, its ``current``, or one snapshot.

    Args:
        path: The path.

    Returns:
        Whether it is one, whole or not.
    """
    folder = Path(path)
    if (folder / MARK).is_file() or (folder / CURRENT).is_symlink():
        return True
    real = folder.resolve()
    return (real / REQUESTS).is_dir() and ((real / MANIFEST).exists() or real.parent.name == SNAPSHOTS)


def read(folder: Path) -> Snapshot:
    """Read and check a snapshot's manifest.

    Args:
        folder: The snapshot.

    Returns:
        What is in it.

    Raises:
        StoreError: There is no manifest, it is broken or of another schema, or a file is missing or cut short.
    """
    path = folder / MANIFEST
    refuse_pattern(folder)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        version = held["schema_version"]
        if version != schema.SCHEMA_VERSION:
            raise StoreError(
                f"{folder}: published by another version of tenfold (schema {version}, this is "
                f"{schema.SCHEMA_VERSION}). {_AGAIN}"
            )
        found = Snapshot(
            folder,
            held["made_at"],
            held["log_hash"],
            held["tenfold"],
            held["writer"],
            {
                name: Day(day["content"], Written(**day[REQUESTS]), Written(**day[BLOCKS]))
                for name, day in held["days"].items()
            },
            {name: Written(**held["tables"][name]) for name in TABLES},
        )
    except FileNotFoundError as error:
        raise StoreError(f"{folder}: no {MANIFEST} in it: no whole snapshot. {_AGAIN}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StoreError(f"{path}: broken ({type(error).__name__}: {error}). {_AGAIN}") from error
    named = _NAME.fullmatch(folder.name)
    if named and named["digest"] != found.digest:
        raise StoreError(f"{path}: changed since it was written (the folder's name says {named['digest']}). {_AGAIN}")
    for file, written in _all(found):
        size = file.stat().st_size if file.is_file() else None
        if size != written.bytes:
            what = "missing" if size is None else f"{size:,} bytes long, not {written.bytes:,} as the manifest says"
            raise StoreError(f"{file}: {what}. {_AGAIN}")
    return found


def _all(snapshot: Snapshot) -> Generator[tuple[Path, Written]]:
    for name, day in snapshot.days.items():
        yield snapshot.file(REQUESTS, name), day.requests
        yield snapshot.file(BLOCKS, name), day.prefix_blocks
    for name, written in snapshot.tables.items():
        yield snapshot.file(name), written


def refuse_pattern(folder: Path) -> None:
    """Refuse a folder whose path readers of Parquet would take for a pattern, and read others beside it.

    Args:
        folder: A published folder, or a snapshot.

    Raises:
        StoreError: It holds ``*`` or ``?``.
    """
    if set(str(folder)) & set("*?"):
        raise StoreError(f"{folder}: readers of Parquet take * and ? for a pattern. Give the folder another name")


def resolved(path: Path) -> Path:
    """Find the snapshot that a path stands for at this moment.

    Args:
        path: A published folder, its ``current``, or a snapshot.

    Returns:
        The snapshot's folder.

    Raises:
        StoreError: There is none.
    """
    if not path.exists():
        raise StoreError(f"{path}: no such folder. Make it with: tenfold publish --db FILE --out {path}")
    if not is_published(path):
        raise StoreError(
            f"{path}: a directory, not a database, and nothing was published into it. Name a file (--db FILE), or "
            f"publish one: tenfold publish --db FILE --out {path}"
        )
    if (path / MANIFEST).is_file():
        return path.resolve()
    current = path / CURRENT
    if current.is_dir():
        return current.resolve()
    said = "points to nothing" if os.path.lexists(current) else "is not there: nothing has been published whole yet"
    raise StoreError(f"{current}: {said}. Publish: tenfold publish --db FILE --out {path}")
