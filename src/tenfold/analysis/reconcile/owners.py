"""Projects and keys that a report has and the log does not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tenfold.analysis.reconcile.fitting import AGREES, Fit
from tenfold.analysis.reconcile.invoiced import Line
from tenfold.analysis.reconcile.logged import Logged

if TYPE_CHECKING:
    from tenfold.analysis.reconcile.splitting import Report

_NAMED = 5


def _owners(lines: Iterable[Line]) -> dict[tuple[str, str], list[Line]]:
    """Group rows by what owns them: (``project`` or ``api_key_id``, its value)."""
    found: dict[tuple[str, str], list[Line]] = defaultdict(list)
    for line in lines:
        for name, value in (("project", line.project), ("api_key_id", line.key)):
            if value is not None:
                found[name, value].append(line)
    return found


def strangers_of(lines: list[Line], provider: str, logged: Logged) -> tuple[set[Line], list[str]]:
    """Find rows of projects and keys that the log does not have, where it has others of the report's.

    Args:
        lines: Rows of a report.
        provider: Who bills.
        logged: The log.

    Returns:
        The rows, and what shows it.
    """
    owned = _owners(lines)
    found: set[Line] = set()
    said: list[str] = []
    for name in ("project", "api_key_id"):
        values = {value for kind, value in owned if kind == name}
        known = logged.owners.get((provider, name), frozenset())
        unknown = sorted(values - known)
        if unknown and values & known:
            found.update(line for value in unknown for line in owned[name, value])
            more = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
            said.append(f"{provider}: no request of {name} {', '.join(unknown[:_NAMED])}{more} is in the log")
    return found, said


def absent_owners(report: Report, fit: Fit) -> list[tuple[str, list[Line]]]:
    """Find projects and keys without whose rows the report agrees with a log that does not name projects or keys.

    Args:
        report: The report.
        fit: How it is made of the log.

    Returns:
        What shows it, and the rows.
    """
    fitter = report.fitter
    cells = {(cell.series, cell.period): cell for cell in fitter.cells}
    of_line = {line: part for part in report.parts.values() for line in part.lines}
    owned = _owners(of_line)
    found: list[tuple[str, list[Line]]] = []
    for (name, value), lines in sorted(owned.items()):
        if sum(1 for kind, _ in owned if kind == name) < 2:
            continue
        own: dict[tuple[tuple[str | None, str | None], int], int] = defaultdict(int)
        for line in lines:
            part = of_line[line]
            own[part.key, part.place] += (line.units if part.key in report.by_units else line.pusd) or 0
        touched = [place for place in own if place in cells]
        agreed = 0
        for place in touched:
            told = fitter.told(cells[place], fit.structure)
            rest = cells[place]._replace(observed=cells[place].observed - own[place])
            was_off = fitter.deviation(cells[place], told) > AGREES
            agreed += was_off and fitter.deviation(rest, told) <= AGREES
        if touched and 2 * agreed > len(touched):
            agree = f"without its rows {agreed} of {len(touched)} amounts that differ agree with the log"
            found.append((f"{report.provider}: {name} {value} is not in the log ({agree})", lines))
    return found
