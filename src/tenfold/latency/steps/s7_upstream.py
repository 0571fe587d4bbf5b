"""Step 7: whether callers ask more than they need: retries, storms of them, new heavy clients, answers thrown away."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from tenfold.latency.arrivals import dispersion
from tenfold.latency.callers import HORIZON_S, Newcomer, Repeats, applications, caller_codes, newcomers, repeats_of
from tenfold.latency.facts import Facts
from tenfold.latency.records import Finding, Floats, Interval, Mask, Pair, Window
from tenfold.latency.statistics import Standardised, onset, ratio

STEP = 7
# Rise of the share of repeats, and of requests for each first one, from which it is amplification (serving.md 12,
# step 7; its factor of 1.3 is for retries that are the cause: those that follow from a lost host amplify less).
LEAST_RISE = 0.05
AMPLIFICATION = 1.06
# Share of repeats that is none.
_NONE = 0.001
# Gaps are counted in bins so wide, as a log, from so many seconds up; so many bins hold so much of a lattice, while
# waits drawn from half to one and a half of a mean put a quarter into as many, and random ones a fifteenth.
_BIN, _SHORTEST = 0.03, 0.05
_VALUES = 6
_LATTICE = 0.6
# Repeats come at once if their counts a second vary this much over their mean, and twice as much as first requests do.
_BUNCHED = 3.0
# More traffic makes more chance repeats: the window before is read with a longer horizon, at most so many times.
_LONGER = 10.0
_NEW_ROWS = 50
_HOLDS = 0.9
# Share of the repeats that must be of live requests for these to be the matter.
_MOSTLY = 0.5
# Rise of the share of failed requests that is one.
_FAILED = 0.01


@dataclass(frozen=True, slots=True, eq=False)
class _Asked:
    """Repeats of both windows, and against what the same callers repeated before."""

    before: Repeats
    after: Repeats
    repeated: Standardised
    live: Standardised
    change: Interval
    excess: float

    @property
    def factor(self) -> float:
        """Requests for each that would have been asked at the rate of repeats before."""
        size = self.after.is_repeat.size
        return size / max(size - max(self.excess, 0.0), 1.0)


def look(pair: Pair, facts: Facts) -> tuple[Finding, ...]:
    """Look at what callers ask.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        Guilty ones of ``retries`` or ``storm``, ``overlap`` and ``new_client``; else one that is innocent or not
        separable.

    Source:
        serving.md 12, step 7; incidents.md, section F.
    """
    columns = {"prompt": "prompt_hash", "attempt": "attempt", "client": "client", "tenant": "team"}
    missing = tuple(
        column for field, column in columns.items() if any(getattr(window, field) is None for window in pair.windows)
    )
    measures = _failures(pair, facts)
    slices = (facts.before.slice, facts.after.slice)
    new = newcomers(pair, (facts.before.uncached, facts.after.uncached), slices)
    new = tuple(one for one in new if one.rows.sum() >= _NEW_ROWS)
    asked = None if {"prompt_hash", "attempt"} <= set(missing) else _asked(pair, facts)
    found: list[Finding] = []
    if asked is not None:
        measures |= _amplification(asked)
        if _is_amplified(asked):
            found.append(_accuse(pair, asked, measures))
        overlap = _overlap(pair, facts, asked, measures)
        if (
            overlap is not None
            and found
            and overlap.measures["overlap_after"] >= _MOSTLY * asked.after.is_repeat.mean()
        ):
            # most of what is asked again is still being answered: one matter, by its sharper name
            found = [replace(overlap, evidence=(*overlap.evidence, *found[0].evidence))]
        elif overlap is not None:
            found.append(overlap)
    found += [_newcomer(pair, one) for one in new]
    if found:
        return tuple(replace(one, measures=measures | one.measures, missing=missing) for one in found)
    status = "innocent"
    if asked is None:
        status = "not separable"
        texts = ["neither prompts nor attempts in the log: whether requests are asked again cannot be told"]
    else:
        change = _points(asked.change)
        times = _arrow(measures, "amplification")
        texts = [f"times that each request was sent {times}, repeats {change} like with like"]
    texts.append("no caller is new and heavy" if len(missing) < 4 else "no callers in the log either")
    return (
        Finding(
            STEP,
            "",
            status,
            (*texts, f"failed {measures['failed_before']:.1%} -> {measures['failed_after']:.1%}"),
            measures,
            None if asked is None else asked.change,
            "" if asked is None else "change of the share of repeats",
            missing,
        ),
    )


def _asked(pair: Pair, facts: Facts) -> _Asked:
    callers = caller_codes(pair)
    count = int(max(callers[0].max(initial=0), callers[1].max(initial=0))) + 1
    rates = [
        np.bincount(codes, minlength=count) / max(window.until_s - window.since_s, 1e-9)
        for window, codes in zip(pair.windows, callers, strict=True)
    ]
    more = np.clip(rates[1] / np.maximum(rates[0], 1e-12), 1.0, _LONGER)
    before = repeats_of(pair.before, callers[0], HORIZON_S * more[callers[0]])
    after = repeats_of(pair.after, callers[1])
    clusters = ((facts.before.slice,), (facts.after.slice,))

    def standard(flags: tuple[Mask, Mask]) -> Standardised:
        old, new = (
            (np.where(flag, 1.0, 0.0), np.ones(flag.size), codes) for flag, codes in zip(flags, callers, strict=True)
        )
        return Standardised.of(old, new, clusters)

    repeated = standard((before.is_repeat, after.is_repeat))
    live = standard((_is_live(pair.before, before), _is_live(pair.after, after)))
    return _Asked(before, after, repeated, live, repeated.change(), float(repeated.excess.sum()))


def _is_live(window: Window, repeats: Repeats) -> Mask:
    """Tell whether the request that is repeated was still being answered."""
    there = repeats.is_repeat & (repeats.previous >= 0)
    # the log of an engine tells when it ended what its caller had given up
    lasted = window.e2e_s if window.seen_end_s is None else window.seen_end_s
    return (
        there & (repeats.gap_s < np.nan_to_num(lasted[np.where(there, repeats.previous, 0)])) if window.size else there
    )


def _failures(pair: Pair, facts: Facts) -> dict[str, float]:
    failed = [_failed(window) for window in pair.windows]
    old, new = (
        ratio(flag, np.ones(flag.size), derived.slice) for flag, derived in zip(failed, facts.windows, strict=True)
    )
    measures = {"failed_before": old.value, "failed_after": new.value, "failures_since_s": math.nan}
    if new.value - old.value >= _FAILED:
        tops = (np.where(failed[0], 1.0, 0.0), np.where(failed[1], 1.0, 0.0))
        began = onset(pair.windows, tops, _ones(pair))
        measures["failures_since_s"] = math.nan if began is None else began
    return measures


def _failed(window: Window) -> Mask:
    if window.status is None:
        return ~window.ok
    good = np.array([name.lower() in {"ok", "success", "incomplete"} for name in window.status.names] + [True])
    return ~good[window.status.codes]


def _amplification(asked: _Asked) -> dict[str, float]:
    shares = [float(one.is_repeat.mean()) if one.is_repeat.size else 0.0 for one in (asked.before, asked.after)]
    return {
        "duplicate_share_before": shares[0],
        "duplicate_share_after": shares[1],
        "amplification_before": 1 / max(1 - shares[0], 1e-9),
        "amplification_after": 1 / max(1 - shares[1], 1e-9),
        "retry_log_change": math.log(asked.factor),
        "retries_since_s": math.nan,
        "lattice_s": math.nan,
        "lattice_share": math.nan,
        "wasted_tokens": 0.0,
    }


def _is_amplified(asked: _Asked) -> bool:
    # where nobody repeated before, repeats are new however they bunch in time: an interval over slices is then too wide
    is_new = float(asked.before.is_repeat.mean()) < _NONE if asked.before.is_repeat.size else False
    is_sure = asked.change.low > 0 or is_new
    return asked.change.mid >= LEAST_RISE and is_sure and asked.factor >= AMPLIFICATION


def _accuse(pair: Pair, asked: _Asked, measures: dict[str, float]) -> Finding:
    share, at_s = _lattice(asked)
    bunched = _is_bunched(pair.after, asked.after.is_repeat)
    is_lattice = share >= _LATTICE
    tops = (np.where(asked.before.is_repeat, 1.0, 0.0), np.where(asked.after.is_repeat, 1.0, 0.0))
    began = onset(pair.windows, tops, _ones(pair))
    measures |= {
        "lattice_share": share,
        "lattice_s": at_s if is_lattice else math.nan,
        "retries_since_s": math.nan if began is None else began,
    }
    who = _who(pair, asked)
    shares, first = _arrow(measures, "duplicate_share", ".1%"), measures["amplification_after"]
    evidence = [
        f"requests that repeat one of the same caller {shares}: {_points(asked.change)}",
        f"each request was sent {first:.2f} times on average, {measures['amplification_before']:.2f} before",
    ]
    if is_lattice:
        evidence.append(f"{share:.0%} of the gaps are one of a few lengths, most of all {at_s:,.1f} s: no jitter")
    times, held = _multiplicity(pair.after, asked.after.is_repeat)
    if held >= 0.5:
        evidence.append(f"{held:.0%} of the prompts asked again came exactly {times} times")
    if is_lattice and bunched:
        evidence.append("they come many in the same second, while first requests do not")
    evidence.append(f"failed {measures['failed_before']:.1%} -> {measures['failed_after']:.1%}")
    return Finding(
        STEP,
        "storm" if is_lattice and bunched else "retries",
        "guilty",
        tuple(evidence),
        {},
        asked.change,
        "change of the share of repeats",
        since_s=began,
        rows=asked.after.is_repeat,
        who=who,
        next_action=(
            f"in {who or 'the callers'}: one layer that retries, a budget for it, waits that grow and are drawn at "
            "random; then see what failed first"
        ),
    )


def _lattice(asked: _Asked) -> tuple[float, float]:
    """Give the share of the gaps in the fullest bins, and the length of the commonest; NaN where there are none.

    The gaps of before are taken off, so that robots that ask by the clock are no lattice.
    """
    logs = [
        np.log(np.maximum(one.gap_s[one.is_repeat & np.isfinite(one.gap_s)], _SHORTEST) / _SHORTEST)
        for one in (asked.before, asked.after)
    ]
    if logs[1].size < _NEW_ROWS:
        return math.nan, math.nan
    count = int(max(each.max(initial=0) for each in logs) / _BIN) + 2
    bins = [np.floor(each / _BIN).astype(np.int64) for each in logs]
    grown = asked.after.is_repeat.size / max(asked.before.is_repeat.size, 1)
    held = np.maximum(np.bincount(bins[1], minlength=count) - grown * np.bincount(bins[0], minlength=count), 0.0)
    if held.sum() <= 0:
        return math.nan, math.nan
    place = int(np.argmax(held))
    length = _SHORTEST * math.exp(float(np.median(logs[1][np.abs(bins[1] - place) <= 1])))
    return float(np.sort(held)[-_VALUES:].sum() / held.sum()), length


def _is_bunched(window: Window, repeated: Mask) -> bool:
    """Tell whether repeats come more at once than first requests, each against its own rate."""
    again, first = dispersion(window, repeated), dispersion(window, ~repeated)
    counts = (max(int(repeated.sum()), 1), max(int((~repeated).sum()), 1))
    return again >= _BUNCHED and (again - 1) / counts[0] >= 2 * max(first - 1, 0.0) / counts[1]


def _multiplicity(window: Window, repeated: Mask) -> tuple[int, float]:
    """Give how often most prompts that were asked again came, and the share of those that did."""
    if window.prompt is None:
        return 0, 0.0
    codes = window.prompt.codes
    again = np.zeros(len(window.prompt.names) + 1, np.bool_)
    again[codes[repeated] + 1] = True
    times = np.bincount(codes + 1, minlength=again.size)[1:][again[1:]]
    if not times.size:
        return 0, 0.0
    counts = np.bincount(times)
    return int(np.argmax(counts)), float(counts.max() / times.size)


def _who(pair: Pair, asked: _Asked) -> str:
    """Name the smallest client or tenant that holds nearly all of the repeats that are more than before."""
    excess = asked.repeated.excess
    best: tuple[int, str] | None = None
    for labels in (pair.after.client, applications(pair.after), pair.after.tenant):
        if labels is None or len(labels.names) < 2:
            continue
        held = np.bincount(labels.codes + 1, excess, len(labels.names) + 1)[1:]
        code = int(np.argmax(held))
        rows = int((labels.codes == code).sum())
        if held[code] >= _HOLDS * excess.sum() and (best is None or rows < best[0]):
            best = rows, labels.names[code]
    return "" if best is None else best[1]


def _overlap(pair: Pair, facts: Facts, asked: _Asked, measures: dict[str, float]) -> Finding | None:
    """Test repeats of requests that were still being answered (I51)."""
    if pair.after.prompt is None:
        return None
    live, change = _is_live(pair.after, asked.after), asked.live.change()
    twice = asked.after.previous[live]
    tokens = np.nan_to_num(facts.after.uncached[twice]) + np.nan_to_num(pair.after.output[twice])
    more = max(float(asked.live.excess.sum()), 0.0) / max(int(live.sum()), 1)
    measures["wasted_tokens"] = float(tokens.sum()) * min(more, 1.0)
    if not (change.mid >= LEAST_RISE and change.low > 0):
        return None
    old = _is_live(pair.before, asked.before)
    tops = (np.where(old, 1.0, 0.0), np.where(live, 1.0, 0.0))
    return Finding(
        STEP,
        "overlap",
        "guilty",
        (
            f"requests that repeat one still being answered {old.mean():.1%} -> {live.mean():.1%}: {_points(change)}",
            f"{measures['wasted_tokens']:,.0f} tokens were computed for answers that nobody waited for",
        ),
        {"overlap_before": float(old.mean()), "overlap_after": float(live.mean())},
        change,
        "change of the share of repeats of live requests",
        since_s=onset(pair.windows, tops, _ones(pair)),
        rows=live,
        who=_who(pair, asked),
        next_action="cancel the request when its caller gives up, and let time-outs be longer than the slowest answers",
    )


def _newcomer(pair: Pair, one: Newcomer) -> Finding:
    rows = int(one.rows.sum())
    factor = pair.after.size / max(pair.after.size - rows, 1)
    low, mid, high = one.after
    tops = (np.zeros(pair.before.size), np.where(one.rows, 1.0, 0.0))
    return Finding(
        STEP,
        "new_client",
        "guilty",
        (
            f"{one.kind} {one.name} asks {mid:.1%} of the requests [{low:.1%}, {high:.1%}], {one.before:.1%} before",
            f"it needs {one.work:.1%} of the tokens that have to be computed; the others ask no less than before",
        ),
        {
            "new_client_log_change": math.log(factor),
            "new_client_share": mid,
            "new_client_work_share": one.work,
            "new_client_share_before": one.before,
        },
        one.after,
        "share of the requests",
        since_s=onset(pair.windows, tops, _ones(pair)),
        rows=one.rows,
        who=one.name,
        next_action=f"limit the rate of {one.name}, or give it replicas of its own; ask whether it can go by batch",
    )


def _arrow(measures: dict[str, float], name: str, form: str = ".2f") -> str:
    return f"{measures[f'{name}_before']:{form}} -> {measures[f'{name}_after']:{form}}"


def _points(change: Interval) -> str:
    low, mid, high = (100 * value for value in change)
    return f"{mid:+.1f} pp [{low:+.1f}, {high:+.1f}]"


def _ones(pair: Pair) -> tuple[Floats, Floats]:
    return np.ones(pair.before.size), np.ones(pair.after.size)
