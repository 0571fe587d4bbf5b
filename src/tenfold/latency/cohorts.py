"""Changes that hit some requests only: structured output, one route, one client."""

from __future__ import annotations

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tenfold.latency.changepoints import gain_at
from tenfold.latency.deploys import LEAST
from tenfold.latency.equal_load import Cells, Loads, Side, at_equal_load
from tenfold.latency.facts import SLICES, Facts
from tenfold.latency.records import Floats, Interval, Mask, Pair
from tenfold.latency.server_changes import Moment
from tenfold.latency.slices import group_quantile

# Rows that a cohort and the rest need in either window, and the largest share of a cohort: the rest is its control.
_ROWS, _MOST = 200, 0.6
# Cohorts of a column at most, the largest ones.
_MANY = 20
_AT_IT, _BROAD = 0.8, 0.6


class Cohort(NamedTuple):
    """Requests whose residual moved while the others' did not.

    Args:
        name: Such as ``structured output`` or ``route search``.
        who: Route or client; empty for structured output.
        component: ``prefill`` or ``decode``.
        shift: Log of its residual after over before, less that of the rest, with its interval.
        rest: Shift of the rest.
        effects: Shifts of its prompt and answer residual.
        rows: Its requests in the window after, from the moment on.
        moment: What was done to the servers then; None: nothing known.
    """

    name: str
    who: str
    component: str
    shift: Interval
    rest: float
    effects: tuple[float, float]
    rows: Mask
    moment: Moment | None


def cohort_of(pair: Pair, facts: Facts, loads: Loads, done: list[Moment]) -> Cohort | None:
    """Find the cohort that a change hit.

    Args:
        pair: The windows.
        facts: What is known of them.
        loads: Cells of load.
        done: What was done to the servers; a route or client counts only with such a moment, structured output, which
            only the server makes, without one too.

    Returns:
        The clearest; None where there is none.
    """
    candidates = [one for one in _candidates(pair) if done or one[0] == _STRUCTURED]
    # the rest has the same load, and what holds the cohort up may well be its load: lengths alone are made equal
    columns = [
        ("prefill", facts.before.prefill_residual, facts.after.prefill_residual, loads.length),
        ("decode", facts.before.decode_residual, facts.after.decode_residual, loads.length),
    ]
    found: list[tuple[float, Cohort]] = []
    # Bonferroni over the cohorts, two-sided 1 %, as a multiple of the interval's 99 %
    wider = NormalDist().inv_cdf(1 - 0.005 / max(2 * len(candidates), 1)) / NormalDist().inv_cdf(0.995)
    for name, who, before, after in candidates:
        needs_moment = name != _STRUCTURED
        for component, old, new, cells in columns:
            if component == "prefill" and needs_moment and (pair.before.cached is None or pair.after.cached is None):
                continue
            # at a glance first: most cohorts did not move
            if _glance(old, new, before, after) < LEAST / 2:
                continue
            shift, rest = _difference(facts, old, new, cells, before, after)
            reach = (shift.mid - shift.low) * wider
            if not (shift.mid - reach > 0 and shift.mid >= LEAST and abs(rest) <= shift.mid / 2):
                continue
            series = _series(facts, old, new, before, after)
            at_it = [one for one in done if gain_at(series, one.place) >= _AT_IT]
            if (needs_moment and not at_it) or not _is_broad(facts, old, new, before, after, shift.mid / 2):
                continue
            moment = at_it[0] if at_it else None
            rows = after if moment is None else after & (facts.after.slice >= moment.place - SLICES)
            # structured output says why; a route that is all structured only says where
            effects = [_glance(*column[1:3], before, after) for column in columns]
            score = shift.mid / max(reach, 1e-9) * (1.25 if not needs_moment else 1.0)
            found.append((score, Cohort(name, who, component, shift, rest, (effects[0], effects[1]), rows, moment)))
    return max(found, key=lambda one: one[0])[1] if found else None


_STRUCTURED = "structured output"


def _candidates(pair: Pair) -> list[tuple[str, str, Mask, Mask]]:
    found: list[tuple[str, str, Mask, Mask]] = []
    if pair.before.is_structured is not None and pair.after.is_structured is not None:
        found.append((_STRUCTURED, "", pair.before.is_structured, pair.after.is_structured))
    for column in ("route", "client"):
        old, new = getattr(pair.before, column), getattr(pair.after, column)
        if old is None or new is None or not new.names:
            continue
        counts = np.bincount(new.codes[new.codes >= 0], minlength=len(new.names))
        found.extend(
            (f"{column} {new.names[code]}", new.names[code], old.codes == code, new.codes == code)
            for code in np.argsort(-counts, kind="stable")[:_MANY]
        )
    return [
        one for one in found if min(one[2].sum(), one[3].sum()) >= _ROWS and max(one[2].mean(), one[3].mean()) <= _MOST
    ]


def _glance(old: Floats, new: Floats, before: Mask, after: Mask) -> float:
    """Shift of the cohort's median less that of the rest's; 0 where one is not known."""
    medians = [
        float(np.median(known)) if (known := values[rows & np.isfinite(values)]).size else float("nan")
        for values, rows in ((new, after), (old, before), (new, ~after), (old, ~before))
    ]
    gap = medians[0] - medians[1] - (medians[2] - medians[3])
    return gap if np.isfinite(gap) else 0.0


def _difference(
    facts: Facts, old: Floats, new: Floats, cells: Cells, before: Mask, after: Mask
) -> tuple[Interval, float]:
    """Shift of the cohort less that of the rest, on the same replicas."""
    parts: list[Interval] = []
    for old_rows, new_rows in ((before, after), (~before, ~after)):
        parts.append(
            at_equal_load(
                Side(new, new_rows, cells.after, facts.after.slice, 1),
                Side(old, old_rows, cells.before, facts.before.slice, 0),
            ).median
        )
    mine, rest = parts
    mid = mine.mid - rest.mid
    reach = float(np.hypot(mine.high - mine.mid, rest.high - rest.mid))
    return Interval(mid - reach, mid, mid + reach), rest.mid


def _series(facts: Facts, old: Floats, new: Floats, before: Mask, after: Mask) -> Floats:
    return np.concatenate(
        [
            group_quantile(np.where(rows, values, np.nan), one.slice, SLICES, 0.5, 3)
            for values, rows, one in ((old, before, facts.before), (new, after, facts.after))
        ]
    )


def _is_broad(facts: Facts, old: Floats, new: Floats, before: Mask, after: Mask, least: float) -> bool:
    """Whether most replicas show it: a cohort of its own on a slow host is the host's."""
    many = int(max(one.replica.max(initial=0) for one in facts.windows)) + 1
    gaps: list[Floats] = []
    for old_rows, new_rows in ((before, after), (~before, ~after)):
        base = group_quantile(np.where(old_rows, old, np.nan), facts.before.replica, many, 0.5, 10)
        gaps.append(group_quantile(np.where(new_rows, new, np.nan), facts.after.replica, many, 0.5, 10) - base)
    moved = (gaps[0] - gaps[1])[np.isfinite(gaps[0] - gaps[1])]
    return not moved.size or float((moved >= least).mean()) >= _BROAD
