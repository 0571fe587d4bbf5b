"""What a window is asked for as: paths of logs, ``FILE.duckdb@FROM..TO``, or an open log between two instants."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeAlias

from tenfold import config
from tenfold.errors import AssumptionError
from tenfold.logs import Log, load, open_log
from tenfold.store.manifest import is_published

_RANGE = re.compile(r"(?P<path>.+)@(?P<since>[^@]*)\.\.(?P<until>[^@]*)")
_DATABASES = (".duckdb", ".ddb", ".db")


@dataclass(frozen=True, slots=True)
class Part:
    """Requests of a log between two instants.

    Args:
        log: The open log.
        since: First instant (aware); None: from its start.
        until: Instant to stop before (aware); None: to its end.
        text: As it was written, for messages.
    """

    log: Log
    since: datetime | None = None
    until: datetime | None = None
    text: str = "the log"


Spec: TypeAlias = str | Path | Sequence[str | Path] | Part


@dataclass(frozen=True, slots=True)
class Place:
    """Where a window's requests lie, before it is opened.

    Args:
        text: As it was written.
        since: First instant; None: from the log's start.
        until: Instant to stop before; None: to its end.
        log: The open log; None: ``paths`` or ``database`` say where it is.
        database: A database of tenfold's.
        paths: Logs to load into memory.
    """

    text: str
    since: datetime | None = None
    until: datetime | None = None
    log: Log | None = None
    database: Path | None = None
    paths: tuple[str, ...] = field(default=())

    def opened(self, reading: Mapping[str, object]) -> Part:
        """Open it.

        Args:
            reading: What ``load`` is told of logs that are read now (``map``, ``format``, ``zone``, ``set``).

        Returns:
            The log and its bounds.

        Raises:
            LogFormatError: A file is no log that tenfold reads.
            StoreError: The database cannot be read.
        """
        if self.log is not None:
            log = self.log
        elif self.database is not None:
            log = open_log(self.database)
        else:
            log = load(self.paths, **reading)  # pyright: ignore[reportArgumentType] -- checked by load
        return Part(log, self.since, self.until, self.text)

    def is_of(self, other: Place) -> bool:
        """Tell whether both lie in one log.

        Args:
            other: The other place.

        Returns:
            Whether it is the same open log, the same database or the same files.
        """
        if self.log is not None or other.log is not None:
            return self.log is not None and other.log is not None and self.log.store is other.log.store
        if self.database is not None or other.database is not None:
            return self.database == other.database
        return self.paths == other.paths


def place(spec: Spec, which: str, zone: str | None = None) -> Place:
    """Read how a window was asked for.

    Args:
        spec: Paths or globs of logs; ``FILE.duckdb`` or ``FILE.duckdb@FROM..TO`` (TO is not in it; either may be left
            out); or an open log between two instants.
        which: Option to name in errors, such as ``--before``.
        zone: Zone of days and of times without an offset; by default that of ``tenfold.toml``, else UTC.

    Returns:
        Where the requests lie.

    Raises:
        AssumptionError: It names nothing, or its bounds are no instants or in the wrong order.
    """
    if isinstance(spec, Part):
        found = Place(spec.text, spec.since, spec.until, log=spec.log)
    else:
        written = [str(one) for one in ((spec,) if isinstance(spec, str | Path) else spec)]
        text = " ".join(written)
        if not text.strip():
            raise AssumptionError(f"{which}: names no log. Write paths of logs, or FILE.duckdb@FROM..TO")
        found = _paths(text, tuple(written), which)
        asked = _RANGE.fullmatch(written[0]) if len(written) == 1 else None
        if asked is not None:
            local = zone or config.settings().report_zone
            since, until = (config.instant(asked[name] or None, local, which) for name in ("since", "until"))
            found = replace(_paths(text, (asked["path"],), which), since=since, until=until)
    if found.since is not None and found.until is not None and found.since >= found.until:
        raise AssumptionError(
            f"{which} {found.text}: ends ({found.until.isoformat()}) before it begins ({found.since.isoformat()}). "
            "Write FILE.duckdb@FROM..TO with TO, which is not in it, after FROM"
        )
    return found


def _paths(text: str, paths: tuple[str, ...], which: str) -> Place:
    stores = [path for path in paths if Path(path).suffix.lower() in _DATABASES or is_published(path)]
    if not stores:
        return Place(text, paths=paths)
    if len(paths) > 1:
        raise AssumptionError(f"{which}: {stores[0]} is a database: name it alone, or name the logs themselves")
    return Place(text, database=Path(stores[0]).resolve())
