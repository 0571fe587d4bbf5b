"""Who asks, and what is asked again: families of clients, callers that are new, prompts that come once more."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from tenfold.latency.records import Codes, Floats, Interval, Labels, Mask, Pair, Window
from tenfold.latency.statistics import around, dense, ratio

# An application's version: after a slash, an at sign or a space, or a number with a dot.
_VERSION = re.compile(r"(?:[/@ ]v?\d[\w.+-]*|[-_: ]v?\d+\.\d[\w.+-]*)$")
# Gaps up to which a prompt asked again counts: the longest waits reported are 600 s and 900 s (I47, I50).
HORIZON_S = 1200.0
# A caller's share of requests or of tokens computed from which it is heavy, and how little of it there was before.
_HEAVY = 0.1
_BEFORE = 0.2
# What the others may ask less: below, traffic moved to another name.
_OTHERS = 0.85


class Repeats(NamedTuple):
    """Requests that came again, a place a request.

    Args:
        is_repeat: A further attempt, or the same prompt of the same caller again within the horizon.
        gap_s: Seconds since the same prompt came last; NaN: never, or prompts are not known.
        previous: Place of that request; -1: none.
    """

    is_repeat: Mask
    gap_s: Floats
    previous: Codes


class Newcomer(NamedTuple):
    """A caller that was not there before and is heavy now.

    Args:
        name: Its name.
        kind: ``client`` or ``tenant``.
        rows: Its requests after.
        before: Its share of requests before.
        after: Its share of requests after.
        work: Its share after of the tokens that had to be computed.
    """

    name: str
    kind: str
    rows: Mask
    before: float
    after: Interval
    work: float


def applications(window: Window) -> Labels | None:
    """Take the versions off the names of a window's clients.

    Args:
        window: The window.

    Returns:
        Applications; None where the log names no clients.
    """
    return None if window.client is None else _families(window.client)


def _families(labels: Labels) -> Labels:
    plain = [_VERSION.sub("", name) or name for name in labels.names]
    names = tuple(sorted(set(plain)))
    place = {name: at for at, name in enumerate(names)}
    codes = np.array([*(place[name] for name in plain), -1], np.int32)
    return Labels(codes[labels.codes], names)


def caller_codes(pair: Pair) -> tuple[Codes, Codes]:
    """Number the callers: tenant and application together, as far as the log names them.

    Args:
        pair: The windows.

    Returns:
        A number a request, from 0, of both windows.
    """
    return joint(
        pair,
        (pair.before.tenant, pair.after.tenant),
        (applications(pair.before), applications(pair.after)),
    )


def joint(pair: Pair, *columns: tuple[Labels | None, Labels | None]) -> tuple[Codes, Codes]:
    """Number the combinations of labels, the same numbers in both windows.

    Args:
        pair: The windows.
        columns: A column of labels of both; those that one window lacks are left out.

    Returns:
        A number a request, from 0, of both windows.
    """
    sides = [np.concatenate([old.codes, new.codes]) for old, new in columns if old is not None and new is not None]
    size = pair.before.size
    codes = dense(*sides) if sides else np.zeros(size + pair.after.size, np.int32)
    return codes[:size], codes[size:]


def repeats_of(window: Window, callers: Codes, horizon_s: Floats | float = HORIZON_S) -> Repeats:
    """Find the requests that came again.

    Args:
        window: The window.
        callers: Number of each request's caller: the same prompt of another is no repeat.
        horizon_s: Gap up to which the same prompt counts as a repeat, in seconds.

    Returns:
        The repeats; by attempts alone where prompts are not known.
    """
    gap = np.full(window.size, np.nan)
    previous = np.full(window.size, -1, np.int32)
    if window.prompt is not None:
        prompt = window.prompt.codes
        order = np.lexsort((window.ts_s, callers, prompt))
        again = (np.diff(prompt[order]) == 0) & (np.diff(callers[order]) == 0) & (prompt[order[1:]] >= 0)
        later, earlier = order[1:][again], order[:-1][again]
        gap[later] = window.ts_s[later] - window.ts_s[earlier]
        previous[later] = earlier
    with np.errstate(invalid="ignore"):
        is_repeat = gap <= horizon_s
    if window.attempt is not None:
        is_repeat |= np.nan_to_num(window.attempt) > 0
    return Repeats(is_repeat, gap, previous)


def newcomers(pair: Pair, uncached: tuple[Floats, Floats], slices: tuple[Codes, Codes]) -> tuple[Newcomer, ...]:
    """Find callers that are heavy now and were not there, or hardly, before.

    A caller that others made room for is none: that is traffic under another name.

    Args:
        pair: The windows.
        uncached: Uncached prompt tokens, of both windows.
        slices: Slice of time of each request, of both windows.

    Returns:
        The newcomers, heaviest first; of two names for the same requests the client's.
    """
    found: list[Newcomer] = []
    for kind in ("client", "tenant"):
        sides = [getattr(window, kind) for window in pair.windows]
        if any(side is None for side in sides):
            continue
        old, new = (_families(side) if kind == "client" else side for side in sides)
        found += _of_kind(pair, kind, (old, new), uncached, slices)
    kept: list[Newcomer] = []
    for one in sorted(found, key=lambda each: (-each.after.mid, each.kind)):
        shared = [int((one.rows & other.rows).sum()) for other in kept]
        if not any(both >= 0.5 * one.rows.sum() for both in shared):
            kept.append(one)
    return tuple(kept)


def _of_kind(
    pair: Pair, kind: str, sides: tuple[Labels, Labels], uncached: tuple[Floats, Floats], slices: tuple[Codes, Codes]
) -> list[Newcomer]:
    count = len(sides[0].names)
    if count < 2:
        return []
    shares: list[Floats] = []
    works: list[Floats] = []
    rates: list[Floats] = []
    for window, labels, tokens in zip(pair.windows, sides, uncached, strict=True):
        named = labels.codes >= 0
        codes = labels.codes[named]
        rows = np.bincount(codes, minlength=count)
        work = np.bincount(codes, np.nan_to_num(tokens[named]) + np.nan_to_num(window.output[named]), count)
        shares.append(rows / max(window.size, 1))
        works.append(work / max(work.sum(), 1.0))
        rates.append(rows / max(window.until_s - window.since_s, 1e-9))
    found: list[Newcomer] = []
    heavy = np.maximum(shares[1], works[1]) >= _HEAVY
    by_rows = (shares[1] >= _HEAVY) & (shares[0] < _BEFORE * shares[1])
    by_work = (works[1] >= _HEAVY) & (works[0] < _BEFORE * works[1])
    # the others are those that were there before: where these are gone too, names have changed and not callers
    known = shares[0] >= _BEFORE * shares[1]
    unnamed = 1 - float(shares[0].sum())
    for code in np.flatnonzero(heavy & (by_rows | by_work)).tolist():
        if rates[1][known].sum() < _OTHERS * (rates[0].sum() - rates[0][code]) or unnamed >= 0.5 * shares[1][code]:
            continue
        asked = sides[1].codes == code
        share = around(ratio(asked, np.ones(pair.after.size), slices[1]))
        share = Interval(max(share.low, 0.0), share.mid, min(share.high, 1.0))
        name = sides[1].names[code]
        found.append(Newcomer(name, kind, asked, float(shares[0][code]), share, float(works[1][code])))
    return found
