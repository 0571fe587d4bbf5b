"""Settings from ``tenfold.toml`` in the working directory: report zone, memory and lock limits."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from tenfold.errors import AssumptionError, near


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets once.

    Args:
        report_zone: IANA zone that report days are cut in.
        memory_limit: DuckDB memory limit, such as ``"2GB"``; beyond it work spills to disk.
        lock_timeout_s: Seconds to wait for another process's lock before giving up.
    """

    report_zone: str = "UTC"
    memory_limit: str = "2GB"
    lock_timeout_s: float = 30.0


def settings(path: str | Path = "tenfold.toml") -> Settings:
    """Read ``tenfold.toml``; a missing file gives the defaults.

    Args:
        path: The settings file.

    Returns:
        The settings.

    Raises:
        AssumptionError: An unknown key or a value that cannot be used; names the nearest key.
    """
    file = Path(path)
    if not file.is_file():
        return Settings()
    try:
        raw = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AssumptionError(f"{file}: not valid TOML: {error}") from error
    known = {field.name for field in fields(Settings)}
    for key in raw:
        if key not in known:
            raise AssumptionError(f'{file}: unknown key "{key}".{near(key, known)}')
    for field in fields(Settings):
        wanted = str if isinstance(field.default, str) else float
        value = raw.get(field.name, field.default)
        if isinstance(value, bool) or not isinstance(value, str if wanted is str else (int, float)):
            like = f'"{field.default}"' if wanted is str else f"{field.default:g}"
            raise AssumptionError(f"{file}: {field.name} = {value!r}: write it like {like}")
    found = Settings(**raw)
    zone(found.report_zone, where=f"{file}: report_zone")
    return found


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
    if name not in available_timezones():
        raise AssumptionError(f'{where}: unknown time zone "{name}".{near(name, available_timezones())}')
    return ZoneInfo(name)
