"""One lever as a card: first action, how to verify and undo, what it assumes, and the evidence with its SQL steps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tenfold.display import number, percent, small_dollars
from tenfold.money import read_usd
from tenfold.reviewing.document import Card

_STEP = re.compile(r"[\w.]+")
_DECIMAL = re.compile(r"-?\d+(\.\d+)?")


def card(lever: Mapping[str, Any]) -> Card:
    """Write a lever's card.

    Args:
        lever: One of ``levers[]`` of the document of ``tenfold levers --json``.

    Returns:
        The card; what is empty is left out.
    """
    pairs = [
        ("First action", (str(lever["first_action"] or ""),)),
        ("Risk", _risks(lever)),
        ("Verify", (str(lever["verify"] or ""),)),
        ("Undo", (str(lever["undo"] or ""),)),
        ("Assumes", tuple(_assumed(item) for item in lever["assumptions"] or ())),
        ("Not touched", tuple(str(item["text"]) for item in lever.get("left_out") or ())),
        ("Excludes", tuple(_excluded(str(item)) for item in lever["conflicts"] or ())),
        ("Evidence", tuple(_seen(item) for item in lever["evidence"] or ())),
    ]
    return Card(str(lever["name"]), tuple((title, lines) for title, lines in pairs if any(lines)))


def _risks(lever: Mapping[str, Any]) -> tuple[str, ...]:
    """Say how risky it is, what it does to latency, and whether it can be taken back."""
    slo, is_final = lever.get("slo_effect"), lever.get("reversible") is False
    said = [str(lever["risk"] or ""), f"service levels: {slo}" if slo else "", "no way back" if is_final else ""]
    return tuple(one for one in said if one)


def _excluded(rival: str) -> str:
    """Say that it is requests that exclude each other, not plans: two rivals may both be in one."""
    return f"{rival}, request by request: on requests that both want, only one of them acts."


def _assumed(item: object) -> str:
    """Write one assumption: its value, where it comes from, and whether it errs towards a larger saving."""
    facts = _keys(item)
    if facts is None:
        return str(item)
    source = str(facts.get("source") or "no source")
    daring = "; errs towards a larger saving" if facts.get("conservative") is False else ""
    said = _value(facts.get("value"))
    return f"{facts.get('name')}{said} ({facts.get('unit')}; {source}{daring})"


def _value(value: object) -> str:
    """Write an assumption's value as its file would."""
    if value is None:
        return ": not stated"
    return f" = {_toml(value)}"


def _toml(value: object) -> str:
    if (given := _keys(value)) is not None:
        return f"{{ {', '.join(f'{key} = {_toml(one)}' for key, one in given.items())} }}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        items: Sequence[object] = value  # pyright: ignore[reportUnknownVariableType]
        return f"[{', '.join(map(_toml, items))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _seen(item: object) -> str:
    """Write one piece of evidence with the SQL step that gave it."""
    facts = _keys(item)
    if facts is None:
        return str(item)
    name, value, unit = str(facts.get("name", "")).replace("_", " "), facts.get("value"), str(facts.get("unit") or "")
    # some facts are arithmetic on others and name a formula in place of a step
    step = f" (step {facts['step']})" if _STEP.fullmatch(str(facts.get("step") or "")) else ""
    if unit.startswith("USD"):
        return f"{name.removesuffix(' usd')}: {_money(value)}{unit.removeprefix('USD')}{step}"
    if unit.startswith("times"):
        return f"{name}: {_amount(value)}x{unit.removeprefix('times')}{step}"
    if unit.startswith("share") and _DECIMAL.fullmatch(str(value)):
        return f"{name}: {percent(Fraction(str(value)))} ({unit}){step}"
    return f"{name}: {_amount(value)} {unit}".rstrip() + step


def _money(value: object) -> str:
    return "unknown" if value is None else small_dollars(read_usd(str(value)))


def _amount(value: object) -> str:
    """Write a measured value: counts with separators, decimals with two places, or four below 1."""
    if value is None:
        return "unknown"
    if isinstance(value, int):
        return f"{value:,}"
    text = str(value)
    if not _DECIMAL.fullmatch(text):
        return text
    value = Fraction(text)
    return number(value, min(4 if abs(value) < 1 else 2, len(text.partition(".")[2])))


def _keys(item: object) -> dict[str, Any] | None:
    if not isinstance(item, Mapping):
        return None
    found: Mapping[Any, Any] = item  # pyright: ignore[reportUnknownVariableType]
    return {str(key): value for key, value in found.items()}
