"""What else was under way while a request waited and was answered: counted from the arrivals and ends in the log."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from tenfold.latency.records import Floats, Ints, Window

# Share of a request's own part below which what else was under way is rounding.
_EXACT = 1e-9


class UnderWay(NamedTuple):
    """What else a request's replica had to do, a place a request; NaN where its times are not known.

    Args:
        at_arrival: Others under way when it arrived, waiting ones too.
        at_start: Others whose answer was being written when its prompt was scheduled.
        decoding: Others whose answer was being written, on average over the time of its own.
        context: Tokens held by them, on average over that time.
        between: Uncached prompt tokens of others whose first token came in that time, an output token of its own: every
            step gives it one, so that is what its steps had to compute beside.
        span_s: Seconds of its own answer.
    """

    at_arrival: Floats
    at_start: Floats
    decoding: Floats
    context: Floats
    between: Floats
    span_s: Floats


def under_way(window: Window, uncached: Floats) -> UnderWay:
    """Count what else was under way, replica by replica; all is one replica where the log names none.

    Where the log has the engine's own count (``running``), what it holds beyond the log's requests is added.

    Args:
        window: The window.
        uncached: Uncached prompt tokens of its requests.

    Returns:
        The counts.
    """
    out = UnderWay(*(np.full(window.size, np.nan) for _ in UnderWay._fields))
    times = _times(window)
    codes = np.zeros(window.size, np.int32) if window.replica is None else window.replica.codes
    order = np.argsort(codes, kind="stable")
    bounds = np.flatnonzero(np.diff(codes[order])) + 1
    for all_rows in np.split(order, bounds):
        rows = all_rows[np.isfinite(times.end[all_rows])]
        if rows.size:
            _of_replica(out, window, times, uncached, rows)
    return out


class _Times(NamedTuple):
    """Arrival, schedule, first token and end of requests, in seconds from the start of the window."""

    arrival: Floats
    scheduled: Floats
    first: Floats
    end: Floats


def _times(window: Window) -> _Times:
    """Give what the log says of every request, failed ones too.

    Where the first token is not known, an answered request is taken to have had it when the median one has it, and a
    failed one never.
    """
    arrival = window.ts_s - window.since_s
    first = window.ttft_s if window.seen_first_s is None else window.seen_first_s
    end = window.e2e_s if window.seen_end_s is None else window.seen_end_s
    known = np.isfinite(window.ttft_s)
    usual = float(np.median(window.ttft_s[known])) if known.any() else 0.0
    first = np.minimum(np.where(np.isfinite(first), first, np.where(window.ok, usual, end)), end)
    queue = np.zeros(window.size) if window.queue_s is None else np.nan_to_num(window.queue_s)
    return _Times(arrival, arrival + np.minimum(queue, first), arrival + first, arrival + end)


def _of_replica(out: UnderWay, window: Window, times: _Times, uncached: Floats, rows: Ints) -> None:
    arrival, scheduled, first, end = (column[rows] for column in times)
    arrivals, firsts, ends = np.sort(arrival), np.sort(first), np.sort(end)
    # a request is not its own neighbour: `left` on starts leaves it out
    # what begins and ends at that very instant would be taken off without having been counted
    out.at_arrival[rows] = np.maximum(_up_to(arrivals, arrival, "left") - _up_to(ends, arrival, "right"), 0)
    out.at_start[rows] = np.maximum(_up_to(firsts, scheduled, "left") - _up_to(ends, scheduled, "right"), 0)
    span = end - first
    out.span_s[rows] = span
    safe = np.where(span > 0, span, np.nan)
    ones = np.ones(rows.size)
    held = np.nan_to_num(window.input[rows]) + np.nan_to_num(window.output[rows]) / 2
    for target, weight in ((out.decoding, ones), (out.context, held)):
        begun = _mass(first, weight, end) - _mass(first, weight, first)
        ended = _mass(end, weight, end) - _mass(end, weight, first)
        # sums of many times are not exact: what is nothing would come out as nearly nothing
        spent = (begun - ended) / safe - weight
        target[rows] = np.where(spent <= _EXACT * weight, 0.0, spent)
    # a prompt that nobody waited for to its end is not known to have been computed
    tokens = np.where(window.ok[rows] | (span > 0), np.nan_to_num(uncached[rows]), 0.0)
    if window.running is not None:
        _add_unseen(out, window.running[rows], rows, (arrival, scheduled, first, end), held)
    order = np.argsort(first, kind="stable")
    total = np.concatenate(([0.0], np.cumsum(tokens[order])))
    arrived = total[_up_to(firsts, end, "right")] - total[_up_to(firsts, first, "right")]
    out.between[rows] = arrived / np.maximum(window.output[rows] - 1, 1.0)


def _add_unseen(
    out: UnderWay, running: Floats, rows: Ints, times: tuple[Floats, Floats, Floats, Floats], held: Floats
) -> None:
    """Add what the engine counted and the log does not show: answers being written that nobody waits for any more.

    The gap between the engine's count when a request arrived and the log's is averaged over the arrivals in a span.
    """
    arrival, scheduled, first, end = times
    known = np.flatnonzero(np.isfinite(running))
    if known.size == 0:
        return
    seen = _up_to(np.sort(first), arrival[known], "right") - _up_to(np.sort(end), arrival[known], "right")
    order = np.argsort(arrival[known], kind="stable")
    at, gap = arrival[known][order], (running[known] - seen)[order]
    total = np.concatenate(([0.0], np.cumsum(gap)))
    since, until = _up_to(at, first, "right"), _up_to(at, end, "right")
    latest = gap[np.maximum(until - 1, 0)]
    count = until - since
    mean = np.where(count > 0, (total[until] - total[since]) / np.maximum(count, 1), latest)
    more = np.maximum(mean, 0.0)
    each = np.where(
        out.decoding[rows] > 0, out.context[rows] / np.maximum(out.decoding[rows], 1e-9), float(held.mean())
    )
    out.decoding[rows] += more
    out.context[rows] += more * each
    out.at_start[rows] += np.maximum(gap[np.maximum(_up_to(at, scheduled, "right") - 1, 0)], 0.0)


def _up_to(sorted_times: Floats, at: Floats, side: Literal["left", "right"]) -> Ints:
    return np.searchsorted(sorted_times, at, side=side)


def _mass(times: Floats, weight: Floats, at: Floats) -> Floats:
    """Integrate up to each instant how much weight has begun: sum of weight x (at - time) over earlier times."""
    order = np.argsort(times, kind="stable")
    ordered = times[order]
    count = np.concatenate(([0.0], np.cumsum(weight[order])))
    moment = np.concatenate(([0.0], np.cumsum(weight[order] * ordered)))
    place = np.searchsorted(ordered, at, side="right")
    return count[place] * at - moment[place]
