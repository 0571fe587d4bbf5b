"""From what moved to why: first causes, what follows from them, and what nothing explains.

A part of a component's shift (``counterfactual.py``) belongs to the finding that is about it. The load's part belongs
to whoever made the load: each finding that added work or arrivals or took capacity away, by its log of load
(``load.py``). Queueing is then a consequence, and so are retries that came with it: causal order 6, 4, 7 (serving.md
12).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tenfold.latency.answers import Cause, Shift
from tenfold.latency.blame import Load, parts_of_load
from tenfold.latency.counterfactual import ANSWERS, PROMPTS, Shares
from tenfold.latency.guilty import CACHE, Guilty
from tenfold.latency.kinds import KINDS
from tenfold.latency.records import Component, Finding, Interval

# A cause with a smaller share of every component is none; one of so much is named even where its interval holds zero.
_LEAST_SHARE, _MOST = 0.1, 0.5


def causes_of(
    guilty: Guilty, shares: Mapping[Component, Shares], moved: Mapping[str, Shift], load: Load
) -> tuple[tuple[Cause, ...], dict[Component, float]]:
    """Name the causes of the shift.

    Args:
        guilty: The findings that accuse.
        shares: Shares of the parts, by component that moved.
        moved: How the quantiles moved.
        load: Who made the load.

    Returns:
        Causes, first causes by share, each before its consequences; and the share of each component that none explains.
    """
    owned: dict[int, dict[Component, Interval]] = {}
    through: dict[tuple[int, int], dict[Component, Interval]] = {}
    finding_of = {id(one): one for one in (*guilty.all, *([guilty.evicted] if guilty.evicted else []))}
    for component, found in shares.items():
        for name, share in found.parts.items():
            is_load = name in (PROMPTS, ANSWERS)
            if is_load or (name == "cache" and load.evicted is not None):
                shown = load.pressure if is_load else load.evicted
                _give_load(owned, through, component, share, load, shown, load.of(name), moved[component])
            else:
                for one, weight in _owners(guilty, name, component):
                    _add(owned.setdefault(id(one), {}), component, _scaled(share, weight))
    groups: list[list[Cause]] = []
    for key, mine in owned.items():
        if not any(_counts(share) for share in mine.values()):
            continue
        first = _cause(finding_of[key], mine, moved, None)
        parts = [
            _cause(finding_of[other], part, moved, first.step)
            for (root, other), part in through.items()
            if root == key and max(share.mid for share in part.values()) >= _LEAST_SHARE / 2
        ]
        groups.append([first, *sorted(parts, key=lambda one: one.step)])
    groups.sort(key=lambda group: -group[0].share.mid * _size(moved, group[0].component))
    ordered = tuple(one for group in groups for one in group)
    rest: dict[Component, float] = {
        component: 1
        - sum(one.shares[component].mid for one in ordered if one.consequence_of is None and component in one.shares)
        for component in shares
    }
    return ordered, rest


def _give_load(
    owned: dict[int, dict[Component, Interval]],
    through: dict[tuple[int, int], dict[Component, Interval]],
    component: Component,
    share: Interval,
    load: Load,
    shown: Finding | None,
    logs: Sequence[tuple[Finding, float]],
    one_shift: Shift,
) -> None:
    """Give the load's part to who made the load; what followed from them is a part of theirs, as is where it shows."""
    if not logs:
        return
    calm = max(one_shift.after - share.mid * (one_shift.after - one_shift.before), 1e-9)
    parts = parts_of_load([value for _, value in logs], one_shift.after / calm)
    split = list(zip((one for one, _ in logs), parts, strict=True))
    roots = [(one, part) for one, part in split if one not in load.followers]
    ground = sum(part for _, part in roots)
    for one, part in roots:
        mine = _scaled(share, part / ground)
        _add(owned.setdefault(id(one), {}), component, mine)
        for follower, followed in split:
            if follower in load.followers:
                _add(through.setdefault((id(one), id(follower)), {}), component, _scaled(mine, followed))
        if shown is not None and shown is not one:
            _add(through.setdefault((id(one), id(shown)), {}), component, _scaled(mine, ground))


def _owners(guilty: Guilty, part: str, component: Component) -> list[tuple[Finding, float]]:
    """Give the findings that a part belongs to, with their shares of it."""
    if part == "cache":
        kinds: tuple[str, ...] = CACHE
    elif part == "mix":
        kinds = ("mix",)
    elif part == "new clients":
        kinds = ("new_client",)
    elif part == "within":
        kinds = ("input_length", "output_length") if component == "ttft" else ("output_length", "input_length")
    else:
        kind, at = part.rsplit(" ", 1)
        return [([one for one in guilty.all if one.kind == kind][int(at)], 1.0)]
    one = guilty.of(*kinds)
    return [] if one is None else [(one, 1.0)]


_DIRECTED = {
    ("input_length", False): "longer prompts",
    ("input_length", True): "shorter prompts",
    ("output_length", False): "longer answers",
    ("output_length", True): "shorter answers",
}


def _cause(one: Finding, mine: dict[Component, Interval], moved: Mapping[str, Shift], root: int | None) -> Cause:
    kind = KINDS[one.kind]
    component = max(mine, key=lambda name: mine[name].mid * _size(moved, name))
    return Cause(
        step=one.step,
        kind=one.kind,
        name=_DIRECTED.get((one.kind, one.effect is not None and one.effect.mid < 0), kind.name),
        component=component,
        shares=mine,
        consequence_of=root,
        evidence=one.evidence,
        who=one.who,
        since_s=one.since_s,
        next_action=one.next_action,
        lever=kind.lever,
    )


def _counts(share: Interval) -> bool:
    """Tell whether a share makes a cause: large enough, and either surely above zero or most of the shift."""
    return share.mid >= _LEAST_SHARE and (share.low > 0 or share.mid >= _MOST)


def _size(moved: Mapping[str, Shift], name: str) -> float:
    one = moved.get(name)
    return abs(float(np.log(one.after / one.before))) if one and one.before > 0 and one.after > 0 else 0.0


def _add(shares: dict[Component, Interval], component: Component, share: Interval) -> None:
    old = shares.get(component, Interval(0.0, 0.0, 0.0))
    shares[component] = Interval(*(float(a + b) for a, b in zip(old, share, strict=True)))


def _scaled(share: Interval, weight: float) -> Interval:
    return Interval(*(float(end * weight) for end in share))
