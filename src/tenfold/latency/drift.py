"""Hosts that slow down the longer they are busy, and recover when they rest: heat.

A replica's residuals by slice are regressed on its time under load (busy share, fading over some slices) beside its
load of the moment. Slices are not independent: the t value counts as many of them as their autocorrelation leaves
(Dawdy and Matalas 1964). A change of level that explains as much is a change of level and no drift.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.changepoints import best_split
from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.host_cells import cells_of, known_rows, load_cells, residual_cells
from tenfold.latency.host_samples import moved_most
from tenfold.latency.records import Finding, Floats, Interval, Pair, Window
from tenfold.latency.slices import percent
from tenfold.latency.slower import slower_log

# Slices over which time under load fades: heat sinks know none of ours, so several are tried.
_FADES = (1.5, 3.0, 6.0, 12.0)
_LEAST = 20
COMPONENTS = ("prefill", "decode")
# t value of the slope on time under load: Bonferroni over 64 replicas, two components and the fades at 0.01.
T_NEEDED = 5.0
# Log of the rise over the window that can matter, as for a slow host.
LEAST = float(np.log(1.10))
# Time under load varies by less than this: nothing to see it by.
_VARIES = 0.1
# What the slope leaves unexplained, over what one change of level leaves: above, it is a change of level.
_BETTER = 0.9


class Drift(NamedTuple):
    """How a replica's residuals go with its time under load.

    Args:
        rise: Log from least to most time under load in the window after, with its interval.
        rise_before: The same in the window before; 0 where it is not clear.
        t: t value of the slope.
        level: Log of the mean residual after less before.
        rests: Whether time under load also fell in the window after, by a quarter of its range.
        slices: Slices in which it had been under load for long.
    """

    rise: Interval
    rise_before: float
    t: float
    level: float
    rests: bool
    slices: np.ndarray

    @property
    def is_guilty(self) -> bool:
        """Whether it drifts, more than before, and by enough."""
        return (
            self.t >= T_NEEDED
            and self.rise.mid >= LEAST
            and self.rise.mid - self.rise_before >= LEAST
            and self.level >= LEAST / 2
        )


def drifts(pair: Pair, facts: Facts, many: int, component: str) -> list[Drift | None]:
    """Look at every replica's residuals over its time under load.

    Args:
        pair: The windows.
        facts: What is known of them.
        many: Replicas.
        component: ``prefill`` or ``decode``.

    Returns:
        A drift a replica; None where it has too few slices, or its load hardly varies.
    """
    cells = residual_cells(facts, known_rows(pair, facts, many), many, component)
    now = load_cells(facts, many, "prefill")
    busy = [_busy(window, one, many) for window, one in zip(pair.windows, facts.windows, strict=True)]
    return [
        _best(*((cells[at][replica], now[at][replica], busy[at][replica]) for at in (0, 1))) for replica in range(many)
    ]


def _busy(window: Window, one: Derived, many: int) -> Floats:
    """Share of each slice that each replica was busy, as of requests that come by chance: 1 - exp(-under way)."""
    length = max(window.until_s - window.since_s, 1e-9) / SLICES
    queue = 0.0 if window.queue_s is None else np.nan_to_num(window.queue_s)
    spent = np.maximum(np.nan_to_num(window.e2e_s) - queue, 0.0)
    under_way = np.bincount(cells_of(one), spent, many * SLICES).reshape(many, SLICES) / length
    return -np.expm1(-under_way)


def _best(before: tuple[Floats, Floats, Floats], after: tuple[Floats, Floats, Floats]) -> Drift | None:
    found: list[Drift] = []
    for fade in _FADES:
        new = _fit(after[0], after[1], _under_load(after[2], fade))
        if new is None:
            continue
        slope, error, t, heat = new
        old = _fit(before[0], before[1], _under_load(before[2], fade))
        low, high = (float(each) for each in np.quantile(heat[np.isfinite(after[0])], (0.05, 0.95)))
        reach = high - low
        top = int(np.argmax(heat))
        before_slope = old[0] if old is not None and abs(old[2]) >= 2 else 0.0
        found.append(
            Drift(
                rise=Interval(
                    (slope - T_NEEDED / 2 * error) * reach, slope * reach, (slope + T_NEEDED / 2 * error) * reach
                ),
                rise_before=before_slope * reach,
                t=t,
                level=float(np.nanmean(after[0]) - np.nanmean(before[0])) if np.isfinite(before[0]).any() else 0.0,
                rests=bool(heat[top] - heat[top:].min() >= reach / 4),
                slices=heat >= (low + high) / 2,
            )
        )
    return max(found, key=lambda one: one.t, default=None)


def _under_load(busy: Floats, fade: float) -> Floats:
    """Busy share, fading: as a body of one time constant warms up."""
    keep = float(np.exp(-1 / fade))
    out = np.empty(busy.size)
    heat = 0.0
    for at, share in enumerate(busy):
        # half of the slice's own share has acted by the time of its typical request
        out[at] = heat * np.sqrt(keep) + share * (1 - np.sqrt(keep))
        heat = heat * keep + share * (1 - keep)
    return out


# Part of the window that is soon after its start, and the share of the worst from which it is no drift.
_SOON, _SOON_SHARE = 10, 0.7


def _fit(cells: Floats, load: Floats, heat: Floats) -> tuple[float, float, float, Floats] | None:
    known = np.isfinite(cells) & np.isfinite(load)
    if known.sum() < _LEAST:
        return None
    y, warm = cells[known], heat[known]
    # heat takes time: what is as slow soon after the start as at its worst was slow to begin with (the first piece may
    # still lie before the change)
    soon = y[1 : 1 + max(2, y.size // _SOON)]
    if float(np.median(soon)) >= _SOON_SHARE * float(np.quantile(y, 0.9)) > 0:
        return None
    if np.quantile(warm, 0.95) - np.quantile(warm, 0.05) < _VARIES:
        return None
    ground = np.column_stack([np.ones(y.size), load[known]])
    y_left, warm_left = (each - ground @ np.linalg.lstsq(ground, each, rcond=None)[0] for each in (y, warm))
    square = float(warm_left @ warm_left)
    if square < 1e-6:
        return None
    slope = float(warm_left @ y_left) / square
    left = y_left - slope * warm_left
    alike = max(_lag_one(y_left) * _lag_one(warm_left), 0.0)
    effective = max(y.size * (1 - alike) / (1 + alike) - 3, 1.0)
    error = float(np.sqrt((left @ left) / effective / square)) * np.sqrt(y.size / (effective + 3))
    place, gain = best_split(y_left)
    by_level = float(y_left @ y_left) * (1 - gain**2) if place else float(y_left @ y_left)
    if float(left @ left) > _BETTER * by_level:
        return None
    return slope, error, slope / max(error, 1e-12), heat


def _lag_one(values: Floats) -> float:
    apart = values - values.mean()
    square = float(apart @ apart)
    return float(apart[1:] @ apart[:-1]) / square if square > 0 else 0.0


def look_for_drift(pair: Pair, facts: Facts, names: tuple[str, ...], looked: list[str]) -> list[Finding]:
    """Look for hosts that slow down under load.

    Args:
        pair: The windows.
        facts: What is known of them.
        names: Replicas; one empty name where the log has none.
        looked: Takes a sentence of what was looked at.

    Returns:
        One guilty finding, or none.
    """
    by_component = {each: drifts(pair, facts, len(names), each) for each in COMPONENTS}
    found: dict[int, tuple[str, Drift]] = {}
    seen = [(one.t, each, at, one) for each, all_of in by_component.items() for at, one in enumerate(all_of) if one]
    for _, each, at, one in sorted(seen, key=lambda entry: entry[0]):
        if one.is_guilty:
            found[at] = (each, one)
    if not seen:
        looked.append("Load varies too little within the replicas, or is too thin, to tell heat.")
        return []
    top = max(seen, key=lambda entry: entry[0])
    looked.append(
        f"Strongest drift with time under load: {top[1]} of {names[top[2]] or 'the server'} "
        f"{percent(top[3].rise.mid)} ({top[0]:.1f} standard errors; 10 % and 5 standard errors are needed)."
    )
    if not found:
        return []
    order = sorted(found, key=lambda at: -found[at][1].t)
    rows = np.isin(facts.after.replica, order)
    rises = {
        each: float(np.mean([one.rise.mid if (one := by_component[each][at]) is not None else 0.0 for at in order]))
        for each in COMPONENTS
    }
    strongest = found[order[0]][1]
    evidence = [
        f"{names[at] or 'The server'}: {found[at][0]} rises by {percent(found[at][1].rise.mid)} "
        f"[{percent(found[at][1].rise.low)}, {percent(found[at][1].rise.high)}] with time under load "
        f"({found[at][1].t:.1f} standard errors; before: {percent(found[at][1].rise_before)})"
        + (" and falls again when it rests." if found[at][1].rests else "; it has not rested since.")
        for at in order[:5]
    ]
    evidence.extend(sentence for at in order[:5] if (sentence := moved_most(pair, names[at], names)) is not None)
    first = int(np.flatnonzero(strongest.slices)[0])
    length = (pair.after.until_s - pair.after.since_s) / SLICES
    levels = {
        each: float(
            np.mean([max(one.level, 0.0) if (one := by_component[each][at]) is not None else 0.0 for at in order])
        )
        for each in COMPONENTS
    }
    return [
        Finding(
            step=6,
            kind="drift",
            status="guilty",
            evidence=tuple(evidence),
            measures={
                "prefill_effect": rises["prefill"],
                "decode_effect": rises["decode"],
                "hosts": float(len(order)),
                "row_share": float(rows.mean()),
                "slower_log": slower_log(pair, facts, rows, levels["prefill"], levels["decode"]),
            },
            effect=strongest.rise,
            effect_name=f"log rise of {found[order[0]][0]} time from least to most time under load",
            missing=() if pair.hosts is not None else ("hosts",),
            since_s=pair.after.since_s + first * length,
            rows=rows,
            who=", ".join(names[at] for at in order),
            next_action=(
                "Log clocks, temperature and throttle reasons while busy; check fans, inlet temperature and the power "
                "cap; until then cap the load of these hosts."
            ),
        )
    ]
