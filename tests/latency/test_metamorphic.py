"""What must not change the runbook's answer: units, days, order, names; and what must turn it round."""

from __future__ import annotations

from functools import cache

import numpy as np
import oracle_latency as slow
import pytest
from quick import few

from tenfold.latency.diagnosis import diagnose_pair

from .oracle_windows import HOUR, names, near
from .windows_made import made_pair

SPANS = ((0.0, HOUR), (HOUR, 2 * HOUR))
CASES = ["cache, host", "none", "deploy", "length", "mix"]


def calm(seed, side, case, rows):
    """Draw a window with a steady tail; after, with the causes of a case."""
    random = np.random.default_rng((seed, side, 7))
    on = set(case.split(", ")) if side else set()
    tenant = random.choice(3, rows, p=[0.3, 0.3, 0.4] if "mix" in on else [0.8, 0.15, 0.05])
    replica = random.integers(0, 5, rows)
    tokens = np.floor(np.exp(random.normal(6.5 + (0.9 if "mix" in case else 0.3) * tenant, 0.3, rows)))
    cached = np.floor(tokens * np.clip((0.2 if "cache" in on else 0.7) + 0.05 * random.standard_normal(rows), 0, 0.95))
    output = np.floor(np.exp(random.normal(4.6 + (0.8 if "length" in on else 0), 0.3, rows))) + 1
    pace = 2.0 if "deploy" in on else np.where((replica == 3) & ("host" in on), 2.5, 1.0)
    queue = random.exponential(0.01, rows)
    ttft = queue + (0.02 + 1e-4 * (tokens - cached)) * pace * np.exp(0.05 * random.standard_normal(rows))
    return {
        # sixteenths of a second: sums with whole seconds are exact
        "ts_s": np.sort(np.floor(random.uniform(0, HOUR, rows) * 16) / 16) + side * HOUR,
        "input": tokens,
        "cached": cached,
        "output": output,
        "queue_s": queue,
        "ttft_s": ttft,
        "e2e_s": ttft + 0.01 * pace * (output - 1) * np.exp(0.05 * random.standard_normal(rows)),
        "tenant": names("t", tenant),
        "route": names("/r", random.integers(0, 2, rows)),
        "replica": names("pod-", replica),
        "deployment": names("v", np.full(rows, int("deploy" in on))),
    }


def answered(sides, spans=SPANS):
    return diagnose_pair(made_pair(*sides, spans=spans))


@cache
def base(case, seed, rows):
    """The windows of a case, and its answer."""
    sides = tuple(calm(seed, side, case, rows) for side in (0, 1))
    return sides, answered(sides)


def same_answer(found, expected, scale=1.0, who=lambda name: name, least=1e-6):
    """Whether two answers say the same; times of the first are so many times as long, names renamed."""
    assert found.verdict == expected.verdict
    for name, one in found.shift.items():
        factor = 1.0 if name == "output" else scale
        other = expected.shift[name]
        near((one.before, one.after, *one.change), np.array((other.before, other.after, *other.change)) * factor)
    told = [[(one.kind, one.consequence_of, one.component) for one in each.causes] for each in (found, expected)]
    assert told[0] == told[1]
    for one, other in zip(found.causes, expected.causes, strict=True):
        assert one.who == who(other.who)
        assert set(one.shares) == set(other.shares)
        for name, share in one.shares.items():
            near(share, other.shares[name], least=least)
    near(list(found.unexplained.values()), list(expected.unexplained.values()), least=least)


ALL = few(1, [(case, seed, rows) for rows in (450, 2400) for seed in (1, 2) for case in CASES])
metamorphic = pytest.mark.parametrize(("case", "seed", "rows"), ALL)


@metamorphic
def test_causes_that_were_planted_are_told(case, seed, rows):
    kinds = {"cache": "cache_broken", "host": "slow_host", "deploy": "version", "length": "output_length", "mix": "mix"}
    _, found = base(case, seed, rows)
    roots = {one.kind for one in found.causes if one.consequence_of is None}
    assert roots == (set() if case == "none" else {kinds[one] for one in case.split(", ")})


@metamorphic
def test_times_twice_as_long_shift_twice_as_much_for_the_same_causes(case, seed, rows):
    sides, expected = base(case, seed, rows)
    twice = [{name: value * 2 if name.endswith("_s") else value for name, value in side.items()} for side in sides]
    same_answer(answered(twice, tuple((2 * since, 2 * until) for since, until in SPANS)), expected, 2.0)


@metamorphic
def test_another_day_changes_nothing(case, seed, rows):
    sides, expected = base(case, seed, rows)
    days = 86_400.0 * 20_000
    later = [{**side, "ts_s": side["ts_s"] + days} for side in sides]
    same_answer(answered(later, tuple((since + days, until + days) for since, until in SPANS)), expected)


@pytest.mark.full
@metamorphic
def test_the_order_of_rows_changes_nothing(case, seed, rows):
    """Rows of one instant, of which a log in whole seconds has many, come in any order.

    Ranks of equal values go by it: shares may differ by half a hundredth.
    """
    sides, _ = base(case, seed, rows)
    coarse = [{**side, "ts_s": np.floor(side["ts_s"] / 30) * 30} for side in sides]
    order = [np.random.default_rng((seed, rows, at)).permutation(rows) for at in (0, 1)]
    mixed = [{name: value[by] for name, value in side.items()} for side, by in zip(coarse, order, strict=True)]
    same_answer(answered(mixed), answered(coarse), least=0.005)


@pytest.mark.full
@metamorphic
def test_other_names_change_nothing_but_names(case, seed, rows):
    sides, expected = base(case, seed, rows)

    def other(name):
        """Reverse the order of tenants and of replicas."""
        kinds = {"pod-": 9, "t": 9, "v": 9}
        head = next((head for head in kinds if name.startswith(head)), None)
        if head is None:
            return name
        digit = name[len(head)]
        return f"{head}{9 - int(digit)}{name[len(head) + 1 :]}"

    named = [
        {
            name: np.array([other(each) for each in value], object) if value.dtype == object else value
            for name, value in side.items()
        }
        for side in sides
    ]
    same_answer(answered(named), expected, who=other)


@metamorphic
def test_a_window_against_itself_did_not_change(case, seed, rows):
    sides, _ = base(case, seed, rows)
    for side in sides[: 1 if rows < 1000 else 2]:
        first = side["ts_s"].min() // HOUR * HOUR
        found = answered(
            (side, {**side, "ts_s": side["ts_s"] + HOUR}), ((first, first + HOUR), (first + HOUR, first + 2 * HOUR))
        )
        assert found.verdict == "no_change"
        assert all(one.change.mid == 0 and not one.is_change for one in found.shift.values())
        assert not any(one.status == "guilty" for one in found.findings)


@metamorphic
def test_an_untouched_tenant_far_from_the_tail_is_not_accused(case, seed, rows):
    sides, expected = base(case, seed, rows)
    more = []
    for at, side in enumerate(sides):
        random = np.random.default_rng((seed, 5))
        count = rows // 5
        extra = {
            "ts_s": np.sort(random.integers(0, int(HOUR), count)) + at * HOUR,
            "input": random.integers(200, 300, count).astype(float),
            "cached": np.full(count, 192.0),
            "output": random.integers(20, 40, count).astype(float),
            "queue_s": np.full(count, 0.001),
            "ttft_s": 0.02 + 0.001 * random.random(count),
            "tenant": names("quiet", [""] * count),
            "route": names("/quiet", [""] * count),
            "replica": names("pod-quiet", [""] * count),
            "deployment": names("v", [0] * count),
        }
        extra["e2e_s"] = extra["ttft_s"] + 0.01 * (extra["output"] - 1)
        more.append({name: np.concatenate([value, extra[name]]) for name, value in side.items()})
    found = answered(more)
    assert not any("quiet" in one.who for one in found.findings if one.status == "guilty")
    assert {one.kind for one in found.causes} == {one.kind for one in expected.causes}


@metamorphic
def test_windows_the_other_way_round_shift_the_other_way(case, seed, rows):
    sides, expected = base(case, seed, rows)
    found = answered(sides[::-1], SPANS[::-1])
    for name, one in found.shift.items():
        other = expected.shift[name]
        assert (one.before, one.after, one.change.mid) == (other.after, other.before, -other.change.mid)
        # the draws are others
        if min(abs(other.change.low), abs(other.change.high)) > 0.3 * abs(other.change.mid) or not other.is_change:
            assert one.is_change == other.is_change, name
        if one.is_change and other.is_change:
            assert one.change.mid * other.change.mid < 0


@metamorphic
def test_the_verdict_follows_from_shifts_and_first_causes(case, seed, rows):
    _, found = base(case, seed, rows)
    moved = {
        name: (one.before, one.after, one.is_change) for name, one in found.shift.items() if name in slow.COMPONENTS
    }
    roots = [one for one in found.causes if one.consequence_of is None]
    verdict, rest = slow.verdict(moved, [{name: one.mid for name, one in each.shares.items()} for each in roots])
    assert found.verdict == verdict
    assert dict(found.unexplained) == pytest.approx(rest)
    assert (found.refused is not None) == (verdict == "refused")
    for name, share in found.unexplained.items():
        assert share + sum(one.shares[name].mid for one in roots if name in one.shares) == pytest.approx(1)
