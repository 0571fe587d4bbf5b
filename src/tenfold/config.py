"""Settings from ``tenfold.toml`` in the working directory: report zone, fiscal year, limits, owners, thresholds.

Zones and the instants that options give are read here, too.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from functools import cache
from math import inf
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from tenfold.errors import AssumptionError, near
from tenfold.owners import Owners, Sharing, from_table
from tenfold.owners.sharing import from_table as sharing_of

FILE = "tenfold.toml"
# Tables that are read when they are asked for.
_TABLES = ("owner", "owners", "allocation")
_OBJECTS = ("currency", "thresholds")
# What texts without a default look like.
_SUCH_AS = {"budgets": "budgets.csv", "code": "EUR", "per_usd": "0.92", "source": "ECB, 2026-10-01"}
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z]+|%)\s*")
# Thresholds that are shares; a budget may be exceeded many times, yet 50 is 50 % and no fifty budgets.
_SHARES, _MOST_ALERT = ("drift", "explain", "act"), 10
_KINDS: dict[type, tuple[type, ...]] = {str: (str,), int: (int,), float: (int, float), tuple: (list,)}


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What a review calls large.

    Args:
        drift: Share of the invoice that the logged cost may differ from it; above, savings are unreconciled.
        explain: Share of last quarter's spend (or of a budget) from which a variance is explained.
        act: Share from which it asks for a decision.
        anomaly_k: How many scaled median absolute deviations from the expected cost of a day make an anomaly.
        anomaly_usd: USD below which an anomaly is not shown.
        budget_alerts: Shares of a budget whose crossing is told.
    """

    drift: float = 0.01
    explain: float = 0.05
    act: float = 0.10
    anomaly_k: float = 4.0
    anomaly_usd: float = 0.0
    budget_alerts: tuple[float, ...] = (0.5, 0.8, 1.0)


@dataclass(frozen=True, slots=True)
class Currency:
    """A currency that reports show beside USD.

    Args:
        code: ISO 4217 code, such as ``EUR``.
        per_usd: Its units for one USD, as decimal text.
        source: Who says so, and when.
    """

    code: str
    per_usd: str
    source: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project sets once.

    Args:
        report_zone: IANA zone that report days are cut in.
        memory_limit: Memory for data, such as ``"2GB"``; beyond it work spills to disk.
        lock_timeout_s: Seconds to wait for another process's lock before giving up.
        max_expansion: Times its size that a gzip or zstd file above 1 GiB unpacked may expand to.
        fiscal_year_start: Month in which a fiscal year begins; it bears the calendar year in which it ends.
        budgets: File of budgets (owner, month, usd); empty for none.
        thresholds: What a review calls large.
        currency: What is shown beside USD; None for nothing.
    """

    report_zone: str = "UTC"
    memory_limit: str = "2GB"
    lock_timeout_s: float = 30.0
    max_expansion: float = 200.0
    fiscal_year_start: int = 1
    budgets: str = ""
    thresholds: Thresholds = field(default_factory=Thresholds)
    currency: Currency | None = None

    @property
    def pool(self) -> str:
        """DuckDB's part of ``memory_limit``: two thirds, as its results and our frames are not in its count."""
        found = _SIZE.fullmatch(self.memory_limit)
        return f"{float(found['number']) * 2 / 3:.6g}{found['unit']}" if found else self.memory_limit


def settings(path: str | Path = FILE) -> Settings:
    """Read ``tenfold.toml``; a missing file gives the defaults.

    Args:
        path: The settings file.

    Returns:
        The settings; the path of the budgets is relative to the file.

    Raises:
        AssumptionError: An unknown key or a value that cannot be used; names the nearest key.
    """
    file = Path(path)
    raw = {key: value for key, value in (_raw(file) or {}).items() if key not in _TABLES}
    objects = {name: raw.pop(name) for name in _OBJECTS if name in raw}
    _checked(f"{file}", raw, _defaults(Settings, without=_OBJECTS), also=(*_TABLES, *_OBJECTS))
    found = Settings(**raw, thresholds=_thresholds(file, objects), currency=_currency(file, objects.get("currency")))
    zone(found.report_zone, where=f"{file}: report_zone")
    if found.memory_limit != "-1" and not _SIZE.fullmatch(found.memory_limit):
        raise AssumptionError(f'{file}: memory_limit = "{found.memory_limit}": write a size, such as "2GB"')
    if not 1 <= found.fiscal_year_start <= 12:
        raise AssumptionError(f"{file}: fiscal_year_start = {found.fiscal_year_start}: write a month from 1 to 12")
    return replace(found, budgets=str(file.parent / found.budgets)) if found.budgets else found


def _defaults(kind: type[Any], without: tuple[str, ...] = ()) -> dict[str, Any]:
    return {one.name: "" if one.default is MISSING else one.default for one in fields(kind) if one.name not in without}


def _checked(place: str, raw: dict[str, Any], defaults: dict[str, Any], also: tuple[str, ...] = ()) -> None:
    """Refuse keys that are unknown and values of another kind than their defaults."""
    for key, value in raw.items():
        if key not in defaults:
            raise AssumptionError(f'{place}: unknown key "{key}".{near(key, {*defaults, *also})}')
        default = defaults[key]
        if isinstance(value, bool) or not isinstance(value, _KINDS[type(default)]):
            like = json.dumps(default or _SUCH_AS.get(key, default))
            quotes = ", in quotes" if isinstance(default, str) else ""
            raise AssumptionError(f"{place}: {key} = {value!r}: write it like {like}{quotes}")


def _thresholds(file: Path, objects: dict[str, Any]) -> Thresholds:
    place, raw = f"{file}: thresholds", objects.get("thresholds", {})
    if not isinstance(raw, dict):
        raise AssumptionError(f"{place}: write a table: [thresholds]")
    given: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]
    _checked(place, given, _defaults(Thresholds))
    alerts = given.get("budget_alerts", Thresholds().budget_alerts)
    numbers = [*(value for key, value in given.items() if key != "budget_alerts"), *alerts]
    if any(isinstance(one, bool) or not isinstance(one, (int, float)) or not 0 <= one < inf for one in numbers):
        raise AssumptionError(f"{place}: write numbers of at least 0, shares as 0.05")
    if any(one > _MOST_ALERT for one in alerts):
        raise AssumptionError(f"{place}: budget_alerts = {list(alerts)}: write shares, 0.5 for 50 %")
    for key in _SHARES:
        if key in given and given[key] > 1:
            said = given[key]
            raise AssumptionError(f"{place}: {key} = {said!r}: write a share, {said / 100:g} for {said:g} %")
    values: dict[str, Any] = {**given, "budget_alerts": tuple(sorted(float(one) for one in alerts))}
    return Thresholds(**values)


def _currency(file: Path, raw: object) -> Currency | None:
    if raw is None:
        return None
    place = f"{file}: currency"
    if not isinstance(raw, dict):
        raise AssumptionError(f'{place}: write a table: [currency], code = "EUR", per_usd = "0.92"')
    given: dict[str, Any] = raw  # pyright: ignore[reportUnknownVariableType]
    _checked(place, given, _defaults(Currency))
    code, rate = given.get("code", ""), given.get("per_usd", "")
    if not re.fullmatch(r"[A-Z]{3}", code):
        raise AssumptionError(f'{place}: code = "{code}": write an ISO 4217 code such as "EUR"')
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", rate) or not Decimal(rate):
        raise AssumptionError(f'{place}: per_usd = "{rate}": write its units for one USD as text, such as "0.92"')
    return Currency(code, rate, given.get("source", ""))


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
