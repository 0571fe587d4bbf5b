"""The assumptions file: one TOML table per lever and ``[plan]``, checked key by key, defaults stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple, cast

from tenfold.errors import AssumptionError, near
from tenfold.levers.base import Assumed, Assumption, Lever
from tenfold.levers.values import Predicate, Range, Reader, Value, amount, count, predicate, text, words
from tenfold.levers.where import check
from tenfold.money import PUSD_PER_USD, usd_text
from tenfold.slo import read_toml


class PlanTable(NamedTuple):
    """The ``[plan]`` table.

    Args:
        horizon_months: Months over which a saving is held against its effort.
        day_rate_pusd: Price of a working day, in pUSD.
        include: Levers to consider; None for all.
        exclude: Levers to leave out.
    """

    horizon_months: int
    day_rate_pusd: int
    include: tuple[str, ...] | None
    exclude: tuple[str, ...]


DAY_RATE_USD = 800
HORIZON_MONTHS = 12
_PLAN: dict[str, Reader] = {"horizon_months": count, "day_rate_usd": amount, "include": words, "exclude": words}


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Everything assumed: per lever, and for the plan.

    Args:
        levers: Lever name to what is assumed for it.
        plan: The ``[plan]`` table.
        source: File or ``defaults``, for errors and reports.
    """

    levers: Mapping[str, Assumed]
    plan: PlanTable
    source: str

    def as_dict(self) -> dict[str, Any]:
        """Give the assumptions as plain values for JSON.

        Returns:
            ``source``, ``plan`` and one object per lever with a table; money and ratios as decimal strings.
        """
        plan = self.plan
        return {
            "source": self.source,
            "plan": {
                "horizon_months": plan.horizon_months,
                "day_rate_usd": usd_text(plan.day_rate_pusd),
                "include": None if plan.include is None else list(plan.include),
                "exclude": list(plan.exclude),
            },
            **{
                name: {
                    "where": assumed.where,
                    **{key: plain(value) for key, value in assumed.values.items()},
                    "effort_days": plain(assumed.effort_days),
                    "running_usd_per_month": usd_text(assumed.running_pusd_per_month),
                }
                for name, assumed in self.levers.items()
                if assumed.has_table
            },
        }


def assumptions(source: str | Path | Mapping[str, Any] | None, levers: Sequence[Lever]) -> Assumptions:
    """Read assumptions.

    Args:
        source: An assumptions file, the same tables as a mapping, or None for the defaults.
        levers: The levers there are.

    Returns:
        The assumptions, every default filled in.

    Raises:
        AssumptionError: The file cannot be read, or a table, key or value cannot be used; names the place and the near
            match.
    """
    place, tables = _tables(source)
    folder = Path() if source is None or isinstance(source, Mapping) else Path(source).parent
    known = {lever.name: lever for lever in levers}
    for name, table in tables.items():
        if name not in (*known, "plan"):
            raise AssumptionError(
                f"{place}: unknown table [{name}].{near(name, (*known, 'plan'))} "
                f"This version has {', '.join(f'[{one}]' for one in (*known, 'plan'))}"
            )
        if not isinstance(table, Mapping):
            raise AssumptionError(f"{place}: {name} must be a table: [{name}]")
    return Assumptions(
        {name: _lever(lever, tables.get(name), f"{place}: [{name}]", folder) for name, lever in known.items()},
        _plan(tables.get("plan", {}), f"{place}: [plan]", tuple(known)),
        place,
    )


def described(lever: Lever, assumed: Assumed) -> list[dict[str, Any]]:
    """List a lever's assumptions with where each value comes from.

    Args:
        lever: The lever.
        assumed: What is assumed for it.

    Returns:
        JSON objects: ``name, value, unit, source, stated, conservative``.
    """
    where = Assumption("where", None, "SQL predicate over requests", "none named", conservative=True, read=text)
    return [
        {
            "name": one.name,
            "value": plain(assumed.where if one is where else assumed.values[one.name]),
            "unit": one.unit,
            "source": "stated" if one.name in assumed.stated else f"default: {one.source}",
            "stated": one.name in assumed.stated,
            "conservative": one.conservative,
        }
        for one in (where, *lever.assumptions)
    ]


def plain(value: Value) -> str | int | tuple[str, ...] | list[str] | dict[str, Any] | None:
    """Give a value a form that JSON can hold exactly.

    Args:
        value: An assumption's value.

    Returns:
        Decimals and paths as strings, a range as its three ends unless they are alike, a table as an object.
    """
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, Range):
        return str(value.mid) if len(set(value)) == 1 else [str(one) for one in value]
    if isinstance(value, Path):
        return value.as_posix()
    return str(value) if isinstance(value, Decimal) else value


def _tables(source: str | Path | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    if source is None:
        return "defaults", {}
    if isinstance(source, Mapping):
        return "assumptions", dict(source)
    return str(source), read_toml(source, parse_float=Decimal)


def _lever(lever: Lever, table: Mapping[str, Any] | None, place: str, folder: Path) -> Assumed:
    own: dict[str, Reader] = {one.name: one.read for one in lever.assumptions}
    common: dict[str, Reader] = {"where": predicate, "effort_days": amount, "running_usd_per_month": amount}
    read = _read(table or {}, own | common, place)
    where = read.get("where")
    effort = read.get("effort_days", lever.effort_days)
    running = read.get("running_usd_per_month", Decimal(0))
    return Assumed(
        values={one.name: _placed(read.get(one.name, one.default), folder) for one in lever.assumptions},
        stated=frozenset(read),
        where=None if where is None else str(where),
        effort_days=cast("Decimal", effort),
        running_pusd_per_month=int(cast("Decimal", running) * PUSD_PER_USD),
        has_table=table is not None,
        falling=frozenset(one.name for one in lever.assumptions if one.falls),
    )


def _placed(value: Value, folder: Path) -> Value:
    """Take a file from the folder of the assumptions file, in nested tables too; an absolute path stays."""
    if isinstance(value, Mapping):
        return {key: _placed(one, folder) for key, one in value.items()}
    return folder / value if isinstance(value, Path) else value


def _plan(table: Mapping[str, Any], place: str, levers: tuple[str, ...]) -> PlanTable:
    read = _read(table, _PLAN, place)
    for key in ("include", "exclude"):
        for name in cast("tuple[str, ...]", read.get(key, ())):
            if name not in levers:
                raise AssumptionError(f'{place} {key}: no lever "{name}".{near(name, levers)}')
    day_rate = cast("Decimal", read.get("day_rate_usd", Decimal(DAY_RATE_USD)))
    return PlanTable(
        horizon_months=cast("int", read.get("horizon_months", HORIZON_MONTHS)),
        day_rate_pusd=int(day_rate * PUSD_PER_USD),
        include=cast("tuple[str, ...] | None", read.get("include")),
        exclude=cast("tuple[str, ...]", read.get("exclude", ())),
    )


def _read(table: Mapping[str, Any], readers: Mapping[str, Reader], place: str) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for key, raw in table.items():
        if key not in readers:
            raise AssumptionError(f'{place}: unknown key "{key}".{near(key, readers)} It takes {", ".join(readers)}')
        try:
            value = found[key] = readers[key](raw)
        except ValueError as error:
            raise AssumptionError(f"{place}: {key} {error}") from None
        if isinstance(value, Predicate):
            check(value, f"{place} {key}")
    return found
