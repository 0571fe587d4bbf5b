"""Settings from ``tenfold.toml`` in the working directory: report zone, memory and lock limits, owners, allocation.

Zones and the instants that options give are read here, too.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from tenfold.errors import AssumptionError, near
from tenfold.owners import Owners, Sharing, from_table
from tenfold.owners.sharing import from_table as sharing_of

FILE = "tenfold.toml"
# Tables that are read when they are asked for.
_TABLES = ("owner", "owners", "allocation")


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets once.

    Args:
        report_zone: IANA zone that report days are cut in.
        memory_limit: DuckDB memory limit, such as ``"2GB"``; beyond it work spills to disk.
        lock_timeout_s: Seconds to wait for another process's lock before giving up.
        max_expansion: Times its size that a gzip or zstd file above 1 GiB unpacked may expand to.
    """

    report_zone: str = "UTC"
    memory_limit: str = "2GB"
    lock_timeout_s: float = 30.0
    max_expansion: float = 200.0


def settings(path: str | Path = FILE) -> Settings:
    """Read ``tenfold.toml``; a missing file gives the defaults.

    Args:
        path: The settings file.

    Returns:
        The settings.

    Raises:
        AssumptionError: An unknown key or a value that cannot be used; names the nearest key.
    """
    file = Path(path)
    raw = _raw(file) or {}
    known = {*(field.name for field in fields(Settings)), *_TABLES}
    for key in raw:
        if key not in known:
            raise AssumptionError(f'{file}: unknown key "{key}".{near(key, known)}')
    for field in fields(Settings):
        wanted = str if isinstance(field.default, str) else float
        value = raw.get(field.name, field.default)
        if isinstance(value, bool) or not isinstance(value, str if wanted is str else (int, float)):
            like = f'"{field.default}"' if wanted is str else f"{field.default:g}"
            raise AssumptionError(f"{file}: {field.name} = {value!r}: write it like {like}")
    found = Settings(**{key: value for key, value in raw.items() if key not in _TABLES})
    zone(found.report_zone, where=f"{file}: report_zone")
    return found


def owners(path: str | Path = FILE) -> Owners | None:
    """Read who owns what: the ``[[owner]]`` tables of the settings file, and the list that ``owners`` names.

    Args:
        path: The settings file.

    Returns:
        The mapping, without a rule where the file has none; None where there is no file.

    Raises:
        AssumptionError: A rule cannot be used; names file, place and key.
    """
    file = Path(path)
    raw = _raw(file)
    return None if raw is None else from_table(file, raw)


def allocation(path: str | Path = FILE) -> Sharing:
    """Read how shared costs are allocated: the ``[allocation]`` table of the settings file.

    Args:
        path: The settings file.

    Returns:
        The method; by usage, measured in cost, where nothing is said.

    Raises:
        AssumptionError: A key or value cannot be used; names it.
    """
    return sharing_of(f"{path}: allocation", (_raw(Path(path), Decimal) or {}).get("allocation"))


def _raw(file: Path, number: type[float | Decimal] = float) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"), parse_float=number)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssumptionError(f"{file}: not valid TOML: {error}") from error


def zone(name: str, *, where: str = "zone") -> ZoneInfo:
    """Look up an IANA time zone.

    Args:
        name: Zone name, such as ``"Europe/Berlin"``.
        where: Place to name in the error.

    Returns:
        The zone.

    Raises:
        AssumptionError: There is no such zone; names the nearest.
    """
    if name not in _zones():
        raise AssumptionError(f'{where}: unknown time zone "{name}".{near(name, _zones())}')
    return ZoneInfo(name)


def instant(text: str | None, zone_name: str, option: str) -> datetime | None:
    """Read a day (midnight in the zone) or an instant.

    Args:
        text: What the user wrote, or None.
        zone_name: IANA zone of bare days and naive times.
        option: Option to name in the error.

    Returns:
        The aware instant, or None.

    Raises:
        AssumptionError: The text is neither.
    """
    if text is None:
        return None
    local = zone(zone_name, where="--zone")
    try:
        if len(text) <= 10:
            return _utc(datetime.combine(date.fromisoformat(text), time(), local), option)
        read = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        raise AssumptionError(f'{option} "{text}": write a day such as 2026-07-01, or 2026-07-01T12:00:00Z') from error
    return _utc(read if read.tzinfo else read.replace(tzinfo=local), option)


def _utc(read: datetime, option: str) -> datetime:
    try:
        return read.astimezone(UTC)
    except OverflowError as error:
        raise AssumptionError(f"{option} {read.isoformat()} is outside the calendar") from error


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())
