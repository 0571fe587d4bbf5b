"""Plans kept in the store of the log they were made on, so that a later review can hold them to what happened."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol

from tenfold.display import minute, shortened, visible
from tenfold.errors import AssumptionError, near
from tenfold.logs import Log
from tenfold.money import read_usd, shown
from tenfold.store import schema
from tenfold.store.published import check_writable
from tenfold.tables import card

if TYPE_CHECKING:
    import duckdb

# Keys of the document of ``tenfold levers --json`` without which nothing could be said about it later.
_KEYS = {
    "": ("window", "plan", "levers", "card_version", "log_hash"),
    "window": ("first_day", "last_day", "zone"),
    "plan": ("levers", "roadmap", "saving_usd", "promised"),
}
_NAMED = 5
_LINE_ENDS = str.maketrans({mark: f"⟨U+{ord(mark):04X}⟩" for mark in "\t\n\r"})


class Planned(Protocol):
    """A plan of levers."""

    def as_dict(self) -> Mapping[str, Any]:
        """Give the document of ``tenfold levers --json``."""
        ...


@dataclass(frozen=True, slots=True)
class Recorded:
    """A plan as it was recorded.

    Args:
        name: What it is called.
        recorded_at: When, in UTC.
        first_day: First day of the window it was made on; None for a log without times.
        last_day: Last day of it.
        zone: Zone that those days are cut in.
        card_version: Hash of the price files it was priced by.
        log_hash: Hash of the files that had been loaded.
        tenfold_version: Version that recorded it.
        document: What ``tenfold levers --json`` printed.
    """

    name: str
    recorded_at: datetime
    first_day: date | None
    last_day: date | None
    zone: str
    card_version: str
    log_hash: str
    tenfold_version: str
    document: Mapping[str, Any]

    @property
    def levers(self) -> tuple[str, ...]:
        """The plan's levers in roadmap order."""
        return tuple(self.document["plan"]["levers"])

    @property
    def window(self) -> str:
        """The days it was made on, for people."""
        if self.first_day is None or self.last_day is None:
            return "a log without times"
        return f"{self.first_day} to {self.last_day} ({self.zone})"

    def as_dict(self) -> dict[str, Any]:
        """Give one row of ``tenfold levers --recorded --json``.

        Returns:
            ``name, recorded_at, window{first_day, last_day, zone}, levers[], spend_usd, saving_usd{low, mid, high},
            card_version, log_hash, tenfold_version``.
        """
        return {
            "name": self.name,
            "recorded_at": self.recorded_at.isoformat(),
            "window": {
                "first_day": None if self.first_day is None else self.first_day.isoformat(),
                "last_day": None if self.last_day is None else self.last_day.isoformat(),
                "zone": self.zone,
            },
            "levers": list(self.levers),
            "spend_usd": self.document.get("spend_usd"),
            "saving_usd": self.document["plan"]["saving_usd"],
            "card_version": self.card_version,
            "log_hash": self.log_hash,
            "tenfold_version": self.tenfold_version,
        }

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Recorded {self.name!r}: {', '.join(self.levers) or 'no lever'}, made on {self.window}>"

    def _repr_html_(self) -> str:
        """Show in a notebook what was recorded, and what it can be checked by."""
        saves = self.document["plan"]["saving_usd"]["mid"]
        lines = [
            f"Made on {self.window}, recorded {minute(self.recorded_at)}",
            f"Levers: {', '.join(self.levers) or 'none'}",
            f"Prices: card {self.card_version}; log {self.log_hash[:12]}",
        ]
        return card(f"Plan {self.name}: saves {'nothing known' if saves is None else shown(read_usd(saves))}", lines)


def record(
    plan: Planned | Mapping[str, Any], log: Log, name: str, *, replace: bool = False, at: datetime | None = None
) -> Recorded:
    """Keep a plan in the store of a log; all of it or, on any error, nothing.

    Args:
        plan: The plan, or the document of ``tenfold levers --json``.
        log: The log in whose store it is kept.
        name: What to call it: any text that is not blank.
        replace: Take the place of a recorded plan of that name.
        at: Instant of the record, aware; now by default.

    Returns:
        What was recorded.

    Raises:
        AssumptionError: The name is taken or blank, or the document is no plan.
        StoreError: The store cannot be written.
    """
    document = _checked(plan if isinstance(plan, Mapping) else plan.as_dict())
    window: Mapping[str, Any] = document["window"]
    made = Recorded(
        check_name(name),
        (at or datetime.now(UTC)).astimezone(UTC),
        _day(window["first_day"]),
        _day(window["last_day"]),
        str(window["zone"]),
        str(document["card_version"]),
        str(document["log_hash"]),
        metadata.version("tenfold"),
        document,
    )
    with log.store.writing() as connection:
        connection.execute("BEGIN")
        try:
            _insert(connection, made, replace=replace)
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise
    return made


def _insert(connection: duckdb.DuckDBPyConnection, made: Recorded, *, replace: bool) -> None:
    if replace:
        connection.execute("DELETE FROM plans WHERE name = ?", [made.name])
    else:
        _free(connection, made.name)
    text = json.dumps(made.document, default=str, allow_nan=False)
    values = [
        made.name, made.recorded_at.replace(tzinfo=None), made.first_day, made.last_day, made.zone, made.card_version,
        made.log_hash, made.tenfold_version, text,
    ]  # fmt: skip
    marks = ", ".join("?" for _ in values)
    connection.execute(f"INSERT INTO plans ({', '.join(schema.names('plans'))}) VALUES ({marks})", values)


def _free(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    taken = connection.execute("SELECT recorded_at FROM plans WHERE name = ?", [name]).fetchall()
    if taken:
        raise AssumptionError(
            f'a plan "{quoted(name)}" was recorded at {taken[0][0]:%Y-%m-%d %H:%M} UTC: choose another name, or put '
            "this one in its place with --replace"
        )


def check_free(log: Log, name: str, *, replace: bool = False) -> None:
    """Find out that a name cannot be recorded before a plan is made for it.

    Args:
        log: The log in whose store it would be kept.
        name: What the plan would be called.
        replace: It may take the place of a recorded plan of that name.

    Raises:
        AssumptionError: The name is taken or blank.
        StoreError: The log is a published folder, which keeps no plan.
    """
    check_writable(log.store.path)
    check_name(name)
    if not replace:
        with log.store.reading() as connection:
            _free(connection, name)


def check_name(name: str) -> str:
    """Refuse a name by which no plan could be found again.

    Args:
        name: Any text.

    Returns:
        The name as it is.

    Raises:
        AssumptionError: It is blank, or no text that can be stored.
    """
    if not name.strip():
        raise AssumptionError("a recorded plan needs a name that is not blank, such as 2026Q3")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise AssumptionError(f'the name "{quoted(name)}" is not valid UTF-8: choose another one') from error
    return name


def recorded(log: Log) -> tuple[Recorded, ...]:
    """List the plans that were recorded in the store of a log.

    Args:
        log: The log.

    Returns:
        The plans, the earliest first; none for a store made before plans could be recorded.
    """
    with log.store.reading() as connection:
        return _found(connection, "true", [])


def read_back(log: Log, name: str) -> Recorded:
    """Take one recorded plan by its name.

    Args:
        log: The log in whose store it is kept.
        name: What it is called.

    Returns:
        The plan.

    Raises:
        AssumptionError: There is none of that name; names the nearest, and what there is.
    """
    found = find(log, name)
    if found is None:
        raise AssumptionError(f'no plan "{quoted(name)}" was recorded.{there_are(log, name)}')
    return found


def find(log: Log, name: str) -> Recorded | None:
    """Look for one recorded plan by its name.

    Args:
        log: The log in whose store it would be kept.
        name: What it is called.

    Returns:
        The plan, or None.
    """
    with log.store.reading() as connection:
        found = _found(connection, "name = ?", [name])
    return found[0] if found else None


def there_are(log: Log, name: str) -> str:
    """Say which plans were recorded, as the tail of an error message.

    Args:
        log: The log in whose store they are kept.
        name: What was looked for.

    Returns:
        The nearest name, the names, or how to record one.
    """
    names = [quoted(one.name) for one in recorded(log)]
    if not names:
        return " None was: tenfold levers --record NAME keeps one"
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{near(quoted(name), names)} Recorded: {', '.join(names[-_NAMED:])}{more}"


def quoted(name: str) -> str:
    """Write a plan's name in a line for people: what would hide, turn or end it is seen, a long one is cut.

    Args:
        name: The name.

    Returns:
        The name, harmless in a line of text.
    """
    return shortened(visible(name).translate(_LINE_ENDS), 120)


def _found(connection: duckdb.DuckDBPyConnection, where: str, values: Sequence[str]) -> tuple[Recorded, ...]:
    columns = ", ".join(schema.names("plans"))
    rows = connection.execute(
        f"SELECT {columns} FROM plans WHERE {where} ORDER BY recorded_at, name", list(values)
    ).fetchall()
    return tuple(
        Recorded(name, at.replace(tzinfo=UTC), first, last, zone, card, log_hash, version, json.loads(document))
        for name, at, first, last, zone, card, log_hash, version, document in rows
    )


def _checked(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse what is no plan: of each object of it, the keys that are read later must be there."""
    for place, keys in _KEYS.items():
        found = document.get(place) if place else document
        missing = [key for key in keys if not isinstance(found, Mapping) or key not in found]
        if missing:
            where = f"{place}." if place else ""
            raise AssumptionError(
                f"not a plan: it has no {where}{missing[0]}; give what `tenfold levers --json` printed"
            )
    return document


def _day(text: object) -> date | None:
    try:
        return None if text is None else date.fromisoformat(str(text))
    except ValueError as error:
        raise AssumptionError(f"not a plan: its window has the day {text!r}, which is none") from error
