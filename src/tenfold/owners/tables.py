"""Rules as they are written: ``[[owner]]`` tables of ``tenfold.toml``, and lists that are kept in a spreadsheet (CSV).

In a table the keys are ``team``, ``feature``, ``shared``, ``override`` and conditions, each a text or a list of texts.
In a list the columns have the same names, a cell holds one value, and an empty cell is no condition.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from tenfold.errors import AssumptionError, near
from tenfold.owners.rules import GIVEN, Owners, Rule, checked, known_condition

_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}
_SIGNS = (",", ";", "\t")
# What a spreadsheet makes of a long number.
_REWRITTEN = re.compile(r"\d[.,]?\d*E\+\d+")
# Clashes that a refusal names.
_NAMED = 5


def from_table(file: Path, raw: Mapping[str, Any]) -> Owners:
    """Read the rules of a settings file: its ``[[owner]]`` tables, then the list that ``owners`` names.

    Args:
        file: The settings file; the list's path is relative to its folder.
        raw: Its content.

    Returns:
        The mapping.

    Raises:
        AssumptionError: A rule cannot be used; names file, place and key.
    """
    tables = raw.get("owner", [])
    if not isinstance(tables, list) or not all(isinstance(one, dict) for one in cast("list[object]", tables)):
        raise AssumptionError(f"{file}: owner must be a list of tables: write each rule under [[owner]]")
    rules = [
        _rule(f"{file}, owner {number}", one) for number, one in enumerate(cast("list[dict[str, Any]]", tables), 1)
    ]
    listed = raw.get("owners")
    if listed is not None:
        if not isinstance(listed, str) or not listed:
            if isinstance(listed, list):
                raise AssumptionError(f"{file}: [[owners]]: a rule is an [[owner]]")
            raise AssumptionError(f'{file}: owners = {listed!r}: write the name of a CSV file, such as "owners.csv"')
        rules += _listed(file.parent / listed)
    return Owners(str(file), tuple(rules))


def _rule(where: str, table: Mapping[str, Any]) -> Rule:
    given = {name: table.get(name) for name in GIVEN}
    for name in ("team", "feature"):
        if given[name] is not None and not isinstance(given[name], str):
            raise AssumptionError(f'{where}: {name} = {given[name]!r}: write it as text, "{given[name]}"')
    for name in ("shared", "override"):
        if given[name] not in (None, True, False) or isinstance(given[name], int) != isinstance(given[name], bool):
            raise AssumptionError(f"{where}: {name} = {given[name]!r}: write true or false")
    conditions: dict[str, tuple[str, ...]] = {}
    for name, value in table.items():
        if name in GIVEN:
            continue
        if name in ("tags", "logged"):
            if not isinstance(value, dict):
                key = "team" if name == "logged" else "cost_center"
                raise AssumptionError(f'{where}: {name} needs a key, such as {name}.{key} = "..."')
            held = {f"{name}.{key}": one for key, one in cast("dict[str, Any]", value).items()}
        else:
            held = {name: value}
        for key, one in held.items():
            known = known_condition(where, key)
            conditions[known] = _values(where, known, one)
    return checked(
        where,
        conditions,
        team=given["team"],
        feature=given["feature"],
        shared=bool(given["shared"]),
        override=bool(given["override"]),
    )


def _values(where: str, name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, dict):
        raise AssumptionError(f'{where}: {name} holds a table; a key with dots is quoted: tags."a.b" = "..."')
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    if not values:
        raise AssumptionError(f"{where}: {name} = []: an empty list matches nothing")
    for one in values:
        if not isinstance(one, str):
            raise AssumptionError(f'{where}: {name} = {one!r}: write it as text, "{one}"')
    return tuple(cast("list[str]", values))


def _listed(file: Path) -> list[Rule]:
    """Read a list of rules; a line that says what another says is left out, one that says otherwise is refused."""
    seen: dict[object, Rule] = {}
    clashes: list[str] = []
    for number, row in _rows(file):
        where = f"{file}, line {number}"
        given = {name: row.pop(name, "") for name in GIVEN}
        for name in ("shared", "override"):
            if given[name].lower() not in _TRUTH:
                raise AssumptionError(f'{where}: {name} = "{given[name]}": write true or false, or nothing')
        for name, value in row.items():
            if _REWRITTEN.fullmatch(value):
                raise AssumptionError(
                    f'{where}: {name} = "{value}" is what a spreadsheet makes of a long number. Format the column as '
                    "text, and enter it again"
                )
        rule = checked(
            where,
            {name: (value,) for name, value in row.items() if value},
            team=given["team"] or None,
            feature=given["feature"] or None,
            shared=_TRUTH[given["shared"].lower()],
            override=_TRUTH[given["override"].lower()],
        )
        before = seen.setdefault(rule.conditions, rule)
        if before.gives != rule.gives or before.shared != rule.shared:
            what = ", ".join(f"{name} {values[0]}" for name, values in rule.conditions)
            lines = f"lines {before.where.rpartition(' ')[2]} and {number}"
            clashes.append(f"{lines} ({what}: {_owner(before)}, {_owner(rule)})")
    if clashes:
        more = f"; and {len(clashes) - _NAMED} more" * (len(clashes) > _NAMED)
        raise AssumptionError(
            f"{file}: the same requests have two owners: {'; '.join(clashes[:_NAMED])}{more}. Keep one line of each"
        )
    return list(seen.values())


def _owner(rule: Rule) -> str:
    marks = [name for name, is_set in (("shared", rule.shared), ("override", rule.override)) if is_set]
    return "/".join([*(name for name in (rule.team, rule.feature) if name), *marks])


def _rows(file: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Read a CSV file: the line that each record begins on, and its cells by column."""
    if not file.is_file():
        raise AssumptionError(f"{file}: no such file; it is named by owners = in tenfold.toml")
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise AssumptionError(f'{file}: not UTF-8 (byte {error.start + 1}). Save it as "CSV UTF-8"') from error
    head = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(_SIGNS, key=head.count), strict=True)
    columns: list[str] | None = None
    begin = 1
    try:
        for cells in reader:
            number, begin = begin, reader.line_num + 1
            row = [cell.strip() for cell in cells]
            if not any(row):
                continue
            if columns is None:
                columns = _columns(f"{file}, line {number}", row)
                continue
            if len(row) > len(columns) and any(row[len(columns) :]):
                raise AssumptionError(f"{file}, line {number}: {len(row)} cells for {len(columns)} columns")
            yield number, dict(zip(columns, [*row, *[""] * (len(columns) - len(row))], strict=False))
    except csv.Error as error:
        raise AssumptionError(f"{file}, line {begin}: cannot be read as CSV: {error}") from error
    if columns is None:
        raise AssumptionError(f"{file}: empty; its first line names the columns, such as api_key_id,team")


def _columns(where: str, row: list[str]) -> list[str]:
    names = [name if name.startswith("tags.") else name.lower() for name in row]
    while names and not names[-1]:
        names.pop()
    for name in names:
        if not name:
            raise AssumptionError(f"{where}: a column without a name")
        if name not in GIVEN:
            known_condition(where, name)
        if names.count(name) > 1:
            raise AssumptionError(f'{where}: column "{name}" twice')
    if not {"team", "feature"} & set(names):
        raise AssumptionError(f"{where}: no column team.{near('team', names)} It says whose the requests are")
    return names
