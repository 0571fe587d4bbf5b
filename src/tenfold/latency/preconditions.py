"""Whether two windows can carry a diagnosis: columns, one model and revision, enough requests, times."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np

from tenfold.latency.records import Labels, Mask, Pair, Window

# Usable requests that each window needs for a quantile (serving.md 12, "Precondition"), the farthest out first.
NEEDED = ((0.99, 2_000), (0.95, 400))
_COLUMNS = {"ts": "ts_s", "ttft_ms": "ttft_s", "duration_ms": "e2e_s", "output_tokens": "output"}
_HOW = {
    "ts": "ts: when each request arrived, with its offset from UTC",
    "ttft_ms": (
        "ttft_ms: start to first token, which only a streamed answer shows its caller; engines log it themselves "
        "(vLLM and SGLang: time to first token by request, as a trace's gen_ai.latency.time_to_first_token)"
    ),
    "duration_ms": "duration_ms: start to last token",
    "output_tokens": "output_tokens: all tokens of the answer, reasoning in them",
}
# Change of the share of requests without a latency that a reader must know of.
_FAILING = 0.05
# Share below which a count of them is left out.
_SAID = 0.005
_CHANGED = "model changed: not a latency incident of the runbook"


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What the windows can carry.

    Args:
        pair: The windows; of one revision where they hold several.
        quantile: The quantile that both can tell: 0.99, or 0.95 with fewer requests.
        refused: Why they can carry none; None: they can.
        next_measurements: What to log or widen so that they can.
        notes: What a reader must know.
    """

    pair: Pair
    quantile: float
    refused: str | None = None
    next_measurements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class _Objection(NamedTuple):
    """Why windows cannot be compared, and the way out."""

    why: str
    next: tuple[str, ...] = ()


def usable(window: Window) -> Mask:
    """Tell which requests count.

    Args:
        window: The window.

    Returns:
        Those that were answered, at a known time, with both latencies and the length of the answer.
    """
    numbers = (window.ts_s, window.ttft_s, window.e2e_s, window.output)
    return window.ok & ~np.isnan(np.stack(numbers)).any(axis=0)


def check(pair: Pair) -> Judged:
    """Judge whether two windows can carry a diagnosis.

    Args:
        pair: The windows.

    Returns:
        The windows to compare and the quantile to compare them at, or why not.
    """
    same, note, changed = _of_one_revision(pair)
    if changed is not None:
        return Judged(pair, NEEDED[0][0], changed.why, changed.next)
    unanswered = [one for one in same.windows if one.status is not None and not one.ok.any()]
    lacking = [
        name
        for name, field in _COLUMNS.items()
        if any(_is_blank(one, field) for one in same.windows) and (name in pair.missing or not unanswered)
    ]
    counts = [one.size if lacking else int(np.count_nonzero(usable(one))) for one in same.windows]
    quantile = next((quantile for quantile, needed in NEEDED if min(counts) >= needed), None)
    objections = [
        *([_columns(lacking)] if lacking else []),
        *(_unanswered(one) for one in unanswered),
        *([_rows(counts)] if quantile is None else []),
        *([_times(same)] if not lacking and _is_one_instant(same) else []),
    ]
    if objections:
        why = ". ".join(one.why for one in objections)
        out = tuple(step for one in objections for step in one.next)
        return Judged(same, quantile or NEEDED[0][0], why, out, note)
    assert quantile is not None
    if quantile != NEEDED[0][0]:
        most = NEEDED[0][1]
        note = (
            *note,
            f"p95: p99 takes {most:,} usable requests in each window, there are {counts[0]:,} and {counts[1]:,}",
        )
    return Judged(same, quantile, notes=(*note, *_failing(same)))


def _failing(pair: Pair) -> tuple[str, ...]:
    """Say where the requests that have no latency became more or fewer: the tail is that of the others."""
    shares = [1 - int(one.judged.sum()) / max(one.asked_size, 1) for one in pair.windows]
    if abs(shares[1] - shares[0]) < _FAILING:
        return ()
    failed = [failed_share(one) for one in pair.windows]
    blank = [max(share - part, 0.0) for share, part in zip(shares, failed, strict=True)]
    told = [
        f"{both[0]:.0%} of requests before and {both[1]:.0%} after {what}"
        for both, what in ((failed, "failed"), (blank, "lack a latency"))
        if max(both) >= _SAID
    ]
    return (f"{'; '.join(told)}: the tail is that of the others",)


def failed_rows(window: Window) -> Mask:
    """Tell which of the requests that are looked at failed, by their status.

    Args:
        window: The window.

    Returns:
        A mask; none where the log has no status.
    """
    if window.status is None:
        return np.zeros(window.size, np.bool_)
    # the last place is that of requests without a status
    good = np.array([*(name in ("ok", "incomplete") for name in window.status.names), True])
    failed = ~good[window.status.codes]
    return failed if window.asked is None else failed & window.asked


def failed_share(window: Window) -> float:
    """Give the share of the requests that are looked at that failed.

    Args:
        window: The window.

    Returns:
        0 to 1.
    """
    return int(failed_rows(window).sum()) / max(window.asked_size, 1)


def _columns(lacking: list[str]) -> _Objection:
    why = f"each request must say {', '.join(_COLUMNS)}; not in both windows: {', '.join(lacking)}"
    return _Objection(why, tuple(f"Log {_HOW[name]}" for name in lacking))


def _unanswered(window: Window) -> _Objection:
    labels = cast("Labels", window.status)
    codes: list[int] = np.unique(labels.codes).tolist()
    said = ", ".join(labels.names[code] for code in codes if code >= 0)
    return _Objection(
        f"no request of the window {window.name} was answered (status: {said or 'none'})",
        ('Say with the column status which requests were answered: "success", or what went wrong',),
    )


def _is_blank(window: Window, field: str) -> bool:
    return bool(np.isnan(getattr(window, field)).all())


def _rows(counts: list[int]) -> _Objection:
    needs = " or ".join(f"{needed:,} for p{quantile * 100:.0f}" for quantile, needed in NEEDED)
    short = [f"the window {name} {_short(count)}" for name, count in zip(("before", "after"), counts, strict=True)]
    why = f"each window needs {needs} answered requests with latencies; {'; '.join(short)}"
    return _Objection(why, ("Widen the windows, or drop --where",))


def _short(count: int) -> str:
    missing = [f"{needed - count:,} missing for p{quantile * 100:.0f}" for quantile, needed in NEEDED if count < needed]
    told = f" ({', '.join(missing)})" if missing else ""
    return f"has {count:,}{told}"


def _is_one_instant(pair: Pair) -> bool:
    return any(one.size and float(np.ptp(one.ts_s)) == 0.0 for one in pair.windows)


def _times(pair: Pair) -> _Objection:
    names = " and ".join(one.name for one in pair.windows if float(np.ptp(one.ts_s)) == 0.0)
    return _Objection(f"all requests of the window {names} bear one and the same time (ts)", (f"Log {_HOW['ts']}",))


def _of_one_revision(pair: Pair) -> tuple[Pair, tuple[str, ...], _Objection | None]:
    """Keep the revision that both windows share, where they hold several."""
    before, after = pair.before.revision, pair.after.revision
    if before is None or after is None:
        return pair, (), None
    counts = [_counts(labels, usable(one)) for labels, one in zip((before, after), pair.windows, strict=True)]
    # without latencies, it is the requests themselves that tell whether the model is the same
    if min(one.sum() for one in counts) == 0:
        counts = [_counts(labels, np.ones(labels.codes.size, np.bool_)) for labels in (before, after)]
    names = (*before.names, "no revision named")
    told = [", ".join(names[place] for place in np.flatnonzero(one)) for one in counts]
    shared = np.minimum(*counts)
    most = int(np.argmax(shared))
    if shared[most] == 0:
        way_out = "Take windows on one side of the change of model, or compare the two models with --compare"
        return pair, (), _Objection(f"{_CHANGED} (before: {told[0]}; after: {told[1]})", (way_out,))
    if all(one[most] == one.sum() for one in counts):
        return pair, (), None
    if shared[most] < NEEDED[-1][1]:
        why = (
            f"{_CHANGED} (before: {told[0]}; after: {told[1]}), and of {names[most]}, which both windows hold, there "
            f"are only {counts[0][most]:,} and {counts[1][most]:,} usable requests ({NEEDED[-1][1]:,} needed in each)"
        )
        return pair, (), _Objection(why, ("Take windows on one side of the change of model",))
    code = most if most < len(before.names) else -1
    kept = dataclasses.replace(pair, before=_only(pair.before, before, code), after=_only(pair.after, after, code))
    note = (
        f"Both windows hold several revisions of the model (before: {told[0]}; after: {told[1]}): compared within "
        f"{names[most]} ({kept.before.size:,} of {pair.before.size:,} requests before, {kept.after.size:,} of "
        f"{pair.after.size:,} after)"
    )
    return kept, (note,), None


def _counts(labels: Labels, rows: Mask) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Count requests a revision; those without one in the last place."""
    size = len(labels.names)
    codes = np.where(labels.codes >= 0, labels.codes, size)[rows]
    return np.bincount(codes, minlength=size + 1).astype(np.int64)


def _only(window: Window, labels: Labels, code: int) -> Window:
    """Keep the requests of one revision."""
    rows = labels.codes == code
    cut: dict[str, object] = {}
    for one in dataclasses.fields(window):
        held = getattr(window, one.name)
        if isinstance(held, Labels):
            cut[one.name] = Labels(held.codes[rows], held.names)
        elif isinstance(held, np.ndarray):
            cut[one.name] = cast("Mask", held)[rows]
    return dataclasses.replace(window, **cut)  # pyright: ignore[reportArgumentType] -- each column of its own kind
