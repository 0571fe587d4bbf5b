"""What was done to the servers, and when: events of the file, new deployment labels, replicas that name an event."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tenfold.latency.facts import SLICES, Derived, Facts
from tenfold.latency.records import Event, Mask, Pair, Window

# Kinds of events that are about servers; kind ``client`` and the like are not.
SERVER = ("deploy", "config", "scale", "restart", "rollout", "rollback", "upgrade", "reload")
_ELSEWHERE = ("client", "app", "agent", "sdk")
# A label is new when it has less than this share before and more after; one that took over gained this much.
_NEW, _GAINED = 0.01, 0.2
# Rows that a moment needs to be looked at.
_LEAST = 50


class Moment(NamedTuple):
    """Something done to servers, whose rows can be compared with what was before.

    Args:
        kind: ``label`` or the event's kind.
        what: What was done, in words.
        who: Deployment, replica or other place; empty: everywhere.
        ts_s: When, in seconds since 1970.
        place: Slice, the 40 of the window before and the 40 of the window after in one row.
        rows: Requests of the window after that it touches.
        ground: Requests of the window before to compare them with.
        beside: Requests of the window after that ran without it at the same time.
        line: Line of the event; 0: a label.
    """

    kind: str
    what: str
    who: str
    ts_s: float
    place: int
    rows: Mask
    ground: Mask
    beside: Mask
    line: int


def moments(pair: Pair, facts: Facts) -> list[Moment]:
    """List what was done to servers between the windows or in the window after.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        New labels first, then events in order of time.
    """
    return [*_labels(pair, facts), *_events(pair, facts)]


def everywhere(pair: Pair, kind: str, what: str) -> Moment:
    """Make a moment between the windows that touches all requests.

    Args:
        pair: The windows.
        kind: Its kind.
        what: What was done, in words.

    Returns:
        The moment.
    """
    rows, ground, beside = (
        np.ones(pair.after.size, np.bool_),
        np.ones(pair.before.size, np.bool_),
        np.zeros(pair.after.size, np.bool_),
    )
    return Moment(kind, what, "", pair.after.since_s, SLICES, rows, ground, beside, 0)


def during(pair: Pair, events: tuple[Event, ...] | None) -> list[Event]:
    """List the events about servers that can have to do with a change from one window to the other.

    Args:
        pair: The windows.
        events: Events.

    Returns:
        From a slice before the end of the window before to the end of the window after.
    """
    first = min(pair.before.until_s - _length(pair.before), pair.after.since_s)
    return [
        one
        for one in events or ()
        if first <= one.ts_s < pair.after.until_s and one.kind.lower() not in _ELSEWHERE and not _is_outside(pair, one)
    ]


def place_of(pair: Pair, ts_s: float) -> int:
    """Give the slice of an instant, of both windows in one row.

    Args:
        pair: The windows.
        ts_s: The instant, in seconds since 1970.

    Returns:
        40 for what was done between the windows; 80 at most.
    """
    inside = (ts_s - pair.after.since_s) / _length(pair.after)
    return SLICES + int(np.clip(np.floor(inside), 0, SLICES))


def naming(pair: Pair, replica: str, at_s: float) -> bool:
    """Tell whether an event says that a replica went: one naming it, or scaling or a deploy everywhere.

    Args:
        pair: The windows.
        replica: The replica.
        at_s: When it was last seen.

    Returns:
        Whether one does.
    """
    slack = _length(pair.after)
    return any(
        (one.where == replica or (one.kind.lower() in ("scale", "deploy") and not one.where))
        and (at_s - slack <= one.ts_s <= at_s + 2 * slack or (at_s <= pair.after.since_s and one.ts_s <= at_s + slack))
        for one in during(pair, pair.events)
        if one.kind.lower() in SERVER
    )


def changed_replicas(pair: Pair) -> set[int]:
    """List replicas whose deployment changed: a label they did not have before, or an event that names them.

    Args:
        pair: The windows.

    Returns:
        Their codes.
    """
    replicas = pair.after.replica
    if replicas is None:
        return set()
    found = {
        replicas.names.index(one.where)
        for one in during(pair, pair.events)
        if one.where in replicas.names and one.kind.lower() in ("deploy", "config", "rollout", "rollback", "upgrade")
    }
    return found | set(changed_at(pair))


def changed_at(pair: Pair) -> dict[int, float]:
    """Tell when replicas that were there before first answered with a deployment that they did not have before.

    Args:
        pair: The windows.

    Returns:
        Seconds since 1970 by code of the replica.
    """
    old, new = pair.before, pair.after
    if old.deployment is None or new.deployment is None or old.replica is None or new.replica is None:
        return {}
    many = len(new.deployment.names)
    codes: list[np.ndarray] = []
    for replica, deployment in ((old.replica, old.deployment), (new.replica, new.deployment)):
        both = replica.codes.astype(np.int64) * many + deployment.codes
        codes.append(np.where((replica.codes >= 0) & (deployment.codes >= 0), both, -1))
    there, had = np.unique(old.replica.codes), np.unique(codes[0])
    values, first = np.unique(codes[1], return_index=True)
    found: dict[int, float] = {}
    for value, row in zip(values.tolist(), first.tolist(), strict=True):
        if value >= 0 and value not in had and value // many in there:
            found[value // many] = min(found.get(value // many, np.inf), float(new.ts_s[row]))
    return found


def _labels(pair: Pair, facts: Facts) -> list[Moment]:
    old, new = pair.before.deployment, pair.after.deployment
    if old is None or new is None or not (old.codes >= 0).any():
        return []
    many = len(new.names)
    shares = [
        np.bincount(each.codes[each.codes >= 0], minlength=many) / max(int((each.codes >= 0).sum()), 1)
        for each in (old, new)
    ]
    fresh = np.flatnonzero((shares[0] < _NEW) & (shares[1] >= _NEW))
    grown = np.flatnonzero((shares[0] >= _NEW) & (shares[1] - shares[0] >= _GAINED))
    found: list[Moment] = []
    # labels that came together are one change: a label a replica would else be tested one by one
    for label in sorted((*fresh, *grown), key=lambda at: -shares[1][at])[:4]:
        rows = new.codes == label
        if rows.sum() < _LEAST:
            continue
        at = float(pair.after.ts_s[np.argmax(rows)])
        ground = _alike(facts.before, facts.after, rows, ~np.isin(old.codes, [label]))
        before = ", ".join(
            old.names[int(each)] for each in np.flatnonzero((shares[0] >= _NEW) & (shares[1] < shares[0]))[:3]
        )
        what = f"deployment {new.names[label]} (before: {before or 'none'})"
        beside = (new.codes >= 0) & ~np.isin(new.codes, fresh) & ~rows
        found.append(Moment("label", what, new.names[label], at, place_of(pair, at), rows, ground, beside, 0))
    return found


def _events(pair: Pair, facts: Facts) -> list[Moment]:
    found: list[Moment] = []
    for one in during(pair, pair.events):
        rows = pair.after.ts_s >= one.ts_s
        named = _named(pair.after, one.where)
        beside = np.zeros(pair.after.size, np.bool_)
        if named is not None:
            rows, beside = rows & named, rows & ~named
        if rows.sum() < _LEAST:
            continue
        everything = np.ones(pair.before.size, np.bool_)
        same = _named(pair.before, one.where)
        ground = (
            same if same is not None and same.sum() >= _LEAST else _alike(facts.before, facts.after, rows, everything)
        )
        where = f" on {one.where}" if one.where else ""
        what = f"{one.kind} event{where}: {one.what}"
        found.append(
            Moment(
                one.kind.lower(), what, one.where, one.ts_s, place_of(pair, one.ts_s), rows, ground, beside, one.line
            )
        )
    return found


def _alike(before: Derived, after: Derived, rows: Mask, allowed: Mask) -> Mask:
    """Rows before on the same replicas, if they are there; else all that are allowed."""
    same = allowed & np.isin(before.replica, np.unique(after.replica[rows]))
    return same if same.sum() >= 4 * _LEAST else allowed


def _named(window: Window, where: str) -> Mask | None:
    """Rows of the replica, deployment or region of a name; None where it names none of them, so all."""
    for labels in (window.replica, window.deployment, window.region):
        if labels is not None and where in labels.names:
            return labels.codes == labels.names.index(where)
    return None


def _is_outside(pair: Pair, one: Event) -> bool:
    """Whether it names a client, tenant or route: nothing on the servers."""
    return any(
        labels is not None and one.where in labels.names
        for labels in (pair.after.client, pair.after.tenant, pair.after.route)
    )


def _length(window: Window) -> float:
    return max(window.until_s - window.since_s, 1e-9) / SLICES
