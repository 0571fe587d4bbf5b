"""``tenfold assume``: an assumptions file to fill in, with every key, its default and where that comes from."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import cast

from tenfold.cli.common import Json, print_json
from tenfold.levers import LEVERS, Assumption, Lever
from tenfold.levers.assume import DAY_RATE_USD, HORIZON_MONTHS, plain

_HEAD = """\
# What a lever may touch and what is assumed of it. Take the # away before a table and the keys that you know; a lever
# without its table has no figure, or only a ceiling. `where` is one SQL condition over the columns of requests.
# Ranges are [low, mid, high] in rising order. Paths are relative to this file.
"""


def assume(json: Json = False) -> None:
    """Print an assumptions file to fill in: every lever's keys, defaults and where those come from."""
    if json:
        print_json({"levers": [_document(lever) for lever in sorted(LEVERS, key=lambda one: one.number)]})
        return
    parts = [_HEAD, *(_table(lever) for lever in sorted(LEVERS, key=lambda one: one.number)), _plan()]
    sys.stdout.write("\n".join(parts))


def _document(lever: Lever) -> dict[str, object]:
    keys = [
        {"name": one.name, "default": plain(one.default), "unit": one.unit, "source": one.source}
        for one in lever.assumptions
    ]
    return {
        "name": lever.name,
        "number": lever.number,
        "rule_of_thumb": lever.rule_of_thumb,
        "effort_days": str(lever.effort_days),
        "assumptions": keys,
    }


def _table(lever: Lever) -> str:
    lines = [f"# lever {lever.number}; rule of thumb, never an input: {lever.rule_of_thumb}", f"# [{lever.name}]"]
    lines.append("# where = \"feature in ('...')\"")
    lines += [_key(one) for one in lever.assumptions]
    lines += [f"# effort_days = {float(lever.effort_days):g}", "# running_usd_per_month = 0", ""]
    return "\n".join(lines)


def _key(one: Assumption) -> str:
    value = plain(one.default)
    written = "..." if value is None else _toml(value)
    return f"# {one.name} = {written}    # {one.unit}; default: {one.source}"


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "{ ... }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(one) for one in cast('Sequence[object]', value))}]"
    text = str(value)
    is_number = text.replace(".", "", 1).replace("-", "", 1).isdigit()
    return text if is_number else f'"{text}"'


def _plan() -> str:
    return (
        "# [plan]\n"
        f"# horizon_months = {HORIZON_MONTHS}    # months over which a saving is held against its effort\n"
        f"# day_rate_usd = {DAY_RATE_USD}    # price of a working day\n"
        '# include = ["..."]    # levers to consider; default: all\n'
        '# exclude = ["..."]\n'
    )
