"""A diagnosis in words, once for the terminal, the page and the notebook: each sets the same texts in its own way."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from tenfold.display import counted, percent
from tenfold.latency.amounts import (
    NAMES,
    is_open,
    moment,
    needs_seconds,
    share_of,
    share_text,
    shift_text,
    spaced,
    tidied,
    unit_of,
)
from tenfold.latency.answers import COMPONENTS, Cause, Diagnosis, Shift
from tenfold.latency.facts import SLICES
from tenfold.latency.kinds import STEPS
from tenfold.tables import framed

# Share of requests without an answer from which it is said beside their number.
_FAILED = 0.005
# A cause's share of a component beside its main one is told from here on.
_TOLD = 0.1
_QUEUE = 4
# Sentences of what a step saw that is no cause.
_GLIMPSE = 2
# The same where no cause is named at all.
_GLIMPSES = 3
# Steps that a provider's log alone cannot look at (serving.md 12).
_PROVIDERS = (4, 5, 6)
# Files that a step may lack, as they are given.
_FILES = {name: f"--{name}" for name in ("events", "hosts", "metrics")}


class Said(NamedTuple):
    """A labelled sentence.

    Args:
        label: What it is about, such as ``next``.
        text: The sentence.
    """

    label: str
    text: str


class CauseSaid(NamedTuple):
    """A cause in words.

    Args:
        number: Its number among the first causes; empty for a consequence.
        title: Such as ``"Step 3, prefix cache broke (agent/2.4.1)"``.
        share: Such as ``"86 % [79, 92] of the TTFT shift"``; a consequence of the same shift does not name it again.
        follows: Such as ``"a consequence of step 6"``; empty for a first cause.
        evidence: Sentences.
        said: What else there is to say and do.
    """

    number: str
    title: str
    share: str
    follows: str
    evidence: tuple[str, ...]
    said: tuple[Said, ...]


class Told(NamedTuple):
    """A diagnosis in words.

    Args:
        answer: The answer in one sentence.
        windows: The model, and what was compared.
        heed: What to know before the figures are read; empty: nothing.
        shifts: How each component moved.
        split: Which part of the slow requests' time is which; empty where none moved.
        causes: First causes, each followed by its consequences.
        rest: What is unexplained, and what the other steps say.
        next: What to measure or log.
        notes: What to know of the data.
    """

    answer: str
    windows: tuple[Said, ...]
    heed: str
    shifts: tuple[str, ...]
    split: str
    causes: tuple[CauseSaid, ...]
    rest: tuple[Said, ...]
    next: tuple[str, ...]
    notes: tuple[str, ...]


def told(one: Diagnosis) -> Told:
    """Put a diagnosis in words.

    Args:
        one: The diagnosis.

    Returns:
        Its texts.
    """
    return Told(
        answer=answer(one),
        windows=_windows(one),
        heed=_heed(one),
        shifts=shifts(one),
        split=_split(one),
        causes=tuple(_causes(one)),
        rest=tuple(_rest(one)),
        next=tuple(tidied(text) for text in one.next_measurements),
        notes=tuple(spaced(note) for note in one.notes),
    )


def as_html(one: Diagnosis) -> str:
    """Set a diagnosis for a notebook.

    Args:
        one: The diagnosis.

    Returns:
        HTML in the frame that all results have.
    """
    texts = told(one)
    lines = [*texts.shifts, *([texts.split] if texts.split else [])]
    parts = (
        f"<p><b>{escape(texts.answer)}</b></p>",
        f"<p>{'<br>'.join(escape(f'{label}: {text}') for label, text in texts.windows)}</p>",
        f"<p>{escape(texts.heed)}</p>" if texts.heed else "",
        f"<p>{'<br>'.join(map(escape, lines))}</p>" if lines else "",
        *(_cause_html(cause) for cause in texts.causes),
        f"<p>{'<br>'.join(escape(f'{label}: {text}') for label, text in texts.rest)}</p>" if texts.rest else "",
        f"<p>measure: {escape('; '.join(texts.next))}</p>" if texts.next else "",
    )
    return framed("".join(parts))


def _cause_html(cause: CauseSaid) -> str:
    head = ", ".join(text for text in (cause.share, cause.follows) if text)
    said = [*cause.evidence, *(f"{label}: {text}" for label, text in cause.said)]
    rows = "".join(f"<li>{escape(text)}</li>" for text in said)
    title = f"{cause.number} · {cause.title}" if cause.number else f"└ {cause.title}"
    return f"<p><b>{escape(title)}</b>: {escape(head)}</p><ul>{rows}</ul>"


def answer(one: Diagnosis) -> str:
    """Give the answer in one sentence.

    Args:
        one: The diagnosis.

    Returns:
        Text such as ``"Explained: prefix cache broke, 86 % of the TTFT shift."``.
    """
    if one.verdict == "refused":
        return f"No diagnosis: {tidied(one.refused or 'the data cannot carry one')}."
    if one.verdict == "no_change":
        open_ones = [name for name, shift in one.shift.items() if is_open(shift)]
        calm = _listed([NAMES[name] for name in one.shift if name not in open_ones])
        same = f"{calm} {'is as it was' if len(one.shift) - len(open_ones) == 1 else 'are as they were'}"
        if not open_ones:
            return f"No change: at {one.percent}, {same}."
        chance = f"{one.percent} {_listed([NAMES[name] for name in open_ones])} may have moved, or by chance"
        return f"No certain change: {chance}{f'; {same}' if calm else ''}."
    first = [cause for cause in one.causes if cause.consequence_of is None]
    said = "; ".join(
        f"{cause_name(cause)}, {share_of(cause.share.mid)} of {_moved(one, cause.component)}" for cause in first
    )
    if one.verdict == "explained":
        return f"Explained: {said}." if said else "Explained."
    most = max(one.unexplained, key=lambda name: one.unexplained[name], default="ttft")
    left = f"{percent(one.unexplained_ratio)} of {_moved(one, most)} has no cause here"
    return f"Partly explained: {said}; {left}." if said else f"Not explained: {left}."


def shifts(one: Diagnosis) -> tuple[str, ...]:
    """Say how each component moved.

    Args:
        one: The diagnosis.

    Returns:
        Texts such as ``"p99 TTFT 0.84 s -> 1.91 s (+1.07 [0.93, 1.20])"``.
    """
    return tuple(
        f"{one.percent} {NAMES[name]} {shift_text(name, shift)}{_burst(shift)}" for name, shift in one.shift.items()
    )


def _burst(shift: Shift) -> str:
    """Say that all of a shift sits in a small part of the time."""
    return f", all of it in {percent(shift.burst_slices / SLICES)} of the time" if shift.burst_slices else ""


def cause_name(cause: Cause) -> str:
    """Name a cause, and whom it is about.

    Args:
        cause: The cause.

    Returns:
        Text such as ``"slow host (gpu-03)"``.
    """
    return f"{cause.name} ({cause.who})" if cause.who else cause.name


def _windows(one: Diagnosis) -> tuple[Said, ...]:
    before, after = one.requests
    since, until, then, end = one.windows
    exact = needs_seconds(one.windows)
    return (
        Said("model", one.model),
        Said(
            "before", f"{counted(before, 'request')}{_failed(one.failed[0])}, {_range(since, until, to_second=exact)}"
        ),
        Said("after", f"{counted(after, 'request')}{_failed(one.failed[1])}, {_range(then, end, to_second=exact)}"),
    )


def _failed(share: float) -> str:
    return f" ({percent(share)} not answered)" if share >= _FAILED else ""


def _heed(one: Diagnosis) -> str:
    if one.gave_up_s is None:
        return ""
    unit = unit_of("ttft", one.gave_up_s)
    at = f"{round(one.gave_up_s * unit.scale, 1):g} {unit.name} ({percent(one.failed[1])} failed)"
    return f"Callers give up at about {at}, so the {one.percent} of TTFT is cut off there."


def _range(since: float, until: float, *, to_second: bool) -> str:
    if math.isnan(since) or math.isnan(until):
        return "times unknown"
    return f"{moment(since, to_second=to_second).removesuffix(' UTC')} to {moment(until, to_second=to_second)}"


def _causes(one: Diagnosis) -> Iterable[CauseSaid]:
    number, root, shown = 0, None, set[tuple[int, str]]()
    for cause in one.causes:
        follows = ""
        if cause.consequence_of is None:
            number, root = number + 1, cause
        else:
            follows = f"a consequence of step {cause.consequence_of}"
        same = root is not None and root is not cause and root.component == cause.component
        # what follows from two causes is told once
        is_new = (cause.step, cause.kind) not in shown
        shown.add((cause.step, cause.kind))
        yield CauseSaid(
            number="" if follows else str(number),
            title=f"Step {cause.step}, {cause_name(cause)}",
            share=f"{share_text(cause.share)} of {'the shift' if same else _moved(one, cause.component)}",
            follows=follows,
            evidence=tuple(tidied(text) for text in cause.evidence) if is_new else (),
            said=tuple(_about(one, cause)) if is_new or not follows else (),
        )


def _about(one: Diagnosis, cause: Cause) -> Iterable[Said]:
    is_first = cause.consequence_of is None
    others = [
        f"{share_of(share.mid)} of {_moved(one, name)}"
        for name, share in cause.shares.items()
        if name != cause.component and abs(share.mid) >= _TOLD and name in one.shift and one.shift[name].is_change
    ]
    if others:
        yield Said("also", _listed(others))
    if is_first and cause.since_s is not None and math.isfinite(cause.since_s):
        yield Said("since", moment(cause.since_s, to_second=needs_seconds(one.windows)))
    # a queue that follows from something else goes with it: there is nothing to do about it
    if cause.next_action and (is_first or cause.step != _QUEUE):
        yield Said("next", tidied(cause.next_action))
    if is_first and cause.lever is not None:
        lever = f"lever {lever_number(cause.lever)}, {cause.lever}"
        yield Said("cost", f"{cause.cost} ({lever})") if cause.cost else Said("bill", f"{lever}: tenfold levers")


def lever_number(name: str) -> int:
    """Give the number of a lever, as practitioners rank them.

    Args:
        name: The lever.

    Returns:
        1 to 10.
    """
    from tenfold.levers import LEVERS

    return next(lever.number for lever in LEVERS if lever.name == name)


def _rest(one: Diagnosis) -> Iterable[Said]:
    if one.unexplained:
        left = [f"{share_of(share)} of {_moved(one, name)}" for name, share in one.unexplained.items()]
        over = (
            "; below zero: the causes put back undo more than the shift"
            if min(one.unexplained.values()) < -_TOLD
            else ""
        )
        yield Said("unexplained", _listed(left) + over)
    blamed = {cause.step for cause in one.causes}
    by_step = {step: [each for each in one.findings if each.step == step] for step in STEPS if step > 1}
    seen = [
        step for step, found in by_step.items() if step not in blamed and any(each.status == "guilty" for each in found)
    ]
    for step in seen:
        found = [tidied(line) for each in by_step[step] if each.status == "guilty" for line in each.evidence]
        yield Said(f"step {step}", f"seen, but it moved little or nothing of the tail: {'; '.join(found[:_GLIMPSE])}")
    innocent = [
        step
        for step, found in by_step.items()
        if found and step not in blamed and step not in seen and all(each.status == "innocent" for each in found)
    ]
    if one.verdict == "refused":
        yield from _asked(one)
    if innocent and one.verdict == "refused":
        # where no cause is named, what stayed below its threshold is all there is to go on with
        for step in innocent:
            found = [tidied(line) for each in by_step[step] for line in each.evidence]
            yield Said(f"step {step}", f"{STEPS[step]}, below its threshold: {'; '.join(found[:_GLIMPSES])}")
    elif innocent:
        yield Said("not guilty", f"looked at: {_steps(innocent)}")
    # what is missing is said once: with what to measure, where that is said
    is_said = bool(one.next_measurements)
    lacks = {
        step: sorted(
            {_FILES.get(name, name) for each in found if each.status == "not separable" for name in each.missing}
        )
        for step, found in by_step.items()
        if step not in blamed and step not in seen
    }
    named = [
        _steps([step]) if is_said or (one.is_hosted and step in _PROVIDERS) else _needing(step, missing)
        for step, missing in lacks.items()
        if missing
    ]
    if named:
        whose = " (steps 4 to 6 are the provider's)" if one.is_hosted else ""
        yield Said("not separable", f"{'; '.join(named)}{whose}")


def _asked(one: Diagnosis) -> Iterable[Said]:
    """Say how many more requests callers known before made."""
    rates = (finding.measures.get("organic_rate_log_change", math.nan) for finding in one.findings)
    known = next((rate for rate in rates if math.isfinite(rate)), None)
    if known is not None:
        yield Said("arrivals", f"{spaced(f'{math.expm1(known):+.0%}')} of callers known before")


def _needing(step: int, missing: Sequence[str]) -> str:
    return f"{_steps([step])} (needs {', '.join(missing)})"


def _split(one: Diagnosis) -> str:
    """Say which part of the slow requests' time is which, as step 1 found, where that time moved."""
    whole = one.shift.get("e2e")
    if whole is None or not whole.is_change:
        return ""
    shares = {
        name: finding.measures[f"{name}_share"]
        for finding in one.findings
        if finding.step == 1 and finding.status == "guilty"
        for name in COMPONENTS
        if math.isfinite(finding.measures.get(f"{name}_share", math.nan))
    }
    parts = ", ".join(f"{NAMES[name]} {share_of(share)}" for name, share in shares.items())
    way = "longer" if whole.after > whole.before else "shorter"
    return f"slow requests take {way}; of that: {parts}" if parts else ""


def _steps(steps: Sequence[int]) -> str:
    return ", ".join(f"{step} {STEPS[step]}" for step in steps)


def _moved(one: Diagnosis, component: str) -> str:
    """Name a component's shift; where it fell while causes are told, as the fall that it is."""
    fell = component in one.shift and one.shift[component].change.mid < 0
    return f"the fall of {NAMES[component]}" if fell else f"the {NAMES[component]} shift"


def _listed(texts: Sequence[str]) -> str:
    """Join texts as a sentence does."""
    return f"{', '.join(texts[:-1])} and {texts[-1]}" if len(texts) > 1 else "".join(texts)
