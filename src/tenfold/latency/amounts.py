"""Amounts of a diagnosis in words: shifts in their unit, shares with their interval, instants."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, datetime

from tenfold.display import Unit, minute, percent, unit_of_ms
from tenfold.latency.answers import Shift
from tenfold.latency.records import Interval

NAMES = {"ttft": "TTFT", "tpot": "TPOT", "output": "output", "e2e": "E2E"}
# A share below that is none, and a change of this part of what it was is much.
_NOTHING, _MUCH = 0.005, 0.1
# Windows shorter than this, in seconds, are shown to the second.
_SHORT_S = 6 * 3600
_PERCENT = re.compile(r"(\d)%")


def shift_text(component: str, shift: Shift) -> str:
    """Say how a component moved.

    Args:
        component: ttft, tpot, output or e2e.
        shift: Its shift.

    Returns:
        Text such as ``"0.84 s -> 1.91 s (+1.07 [0.93, 1.20])"``.
    """
    unit = unit_of(component, shift.before, shift.after)
    ends = f"{_value(unit, shift.before)} {unit.name} -> {_value(unit, shift.after)} {unit.name}"
    return f"{ends} ({change_text(component, shift)})"


def change_text(component: str, shift: Shift) -> str:
    """Say by how much a component moved, in the unit that its values are shown in.

    Args:
        component: ttft, tpot, output or e2e.
        shift: Its shift.

    Returns:
        Text such as ``"+1.07 [0.93, 1.20]"``, ``"no change"`` or ``"not certain: +0.33 [-0.05, 0.92]"``.
    """
    if not shift.is_change and not is_open(shift):
        return "no change"
    unit = unit_of(component, shift.before, shift.after)
    low, mid, high = (_value(unit, end) for end in shift.change)
    change = f"{'+' if shift.change.mid > 0 else ''}{mid} [{low}, {high}]"
    return change if shift.is_change else f"not certain: {change}"


def is_open(shift: Shift) -> bool:
    """Tell whether a quantile moved by much, and yet perhaps by chance.

    Args:
        shift: Its shift.

    Returns:
        Whether it is a tenth away from before while the interval holds zero.
    """
    return not shift.is_change and abs(shift.change.mid) >= _MUCH * abs(shift.before)


def unit_of(component: str, *values: float) -> Unit:
    """Choose the unit that a component is shown in.

    Args:
        component: ttft, tpot, output or e2e.
        values: What is shown together: seconds, or tokens of output.

    Returns:
        The unit; its scale turns seconds into it.
    """
    if component == "output":
        return Unit("tokens", 1.0, 0)
    unit = unit_of_ms(max((abs(value) for value in values if math.isfinite(value)), default=0.0) * 1000)
    return unit._replace(scale=unit.scale * 1000)


def share_text(share: Interval) -> str:
    """Write a share with its interval.

    Args:
        share: The share, 1 being all.

    Returns:
        Text such as ``"86 % [79, 92]"``.
    """
    low, high = (share_of(end).removesuffix(" %") for end in (share.low, share.high))
    return f"{share_of(share.mid)} [{low}, {high}]"


def share_of(share: float) -> str:
    """Write a share of a shift; what rounds to nothing is 0, whatever its sign.

    Args:
        share: The share, 1 being all.

    Returns:
        Text such as ``"86 %"``.
    """
    return percent(0 if abs(share) < _NOTHING else share)


def moment(at_s: float, *, to_second: bool = False) -> str:
    """Write an instant to the minute, or to the second.

    Args:
        at_s: Seconds since 1970.
        to_second: Whether seconds are shown.

    Returns:
        Text such as ``"2026-09-08 14:05 UTC"``.
    """
    at = datetime.fromtimestamp(at_s, UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if to_second else minute(at)


def needs_seconds(windows: Sequence[float]) -> bool:
    """Tell whether windows are so short that instants within them are shown to the second.

    Args:
        windows: Start and end of both, in seconds since 1970.

    Returns:
        Whether either is shorter than six hours.
    """
    since, until, then, end = windows
    return min(until - since, end - then) < _SHORT_S


def about(count: float) -> str:
    """Write a large count that is an estimate, to three figures.

    Args:
        count: The count.

    Returns:
        Text such as ``"about 9.22 million"``.
    """
    size = abs(count)
    if size < 1000:
        return f"about {count:,.0f}"
    rounded = float(f"{count:.3g}")
    for unit, word in ((1e9, "billion"), (1e6, "million")):
        if abs(rounded) >= unit:
            return f"about {rounded / unit:.3g} {word}"
    return f"about {rounded:,.0f}"


def tidied(text: str) -> str:
    """Set a step's sentence as the house does: as a line of its own, and percent apart from its number.

    Args:
        text: The sentence.

    Returns:
        The line.
    """
    return spaced(_inner(text.strip().removesuffix(".")))


def spaced(text: str) -> str:
    """Set percent apart from its number.

    Args:
        text: A sentence.

    Returns:
        The same.
    """
    return _PERCENT.sub(r"\1 %", text)


def _inner(text: str) -> str:
    """Begin a sentence inside another one; abbreviations stay as they are."""
    return text[:1].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text


def _value(unit: Unit, amount: float) -> str:
    return unit.text(amount) if math.isfinite(amount) else "unknown"
