"""What requests read from the prefix cache, like with like; and prompts that only grew behind what they read."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenfold.latency.callers import applications, joint
from tenfold.latency.cells import kinds_of
from tenfold.latency.facts import Facts
from tenfold.latency.load import first_attempts
from tenfold.latency.records import Codes, Floats, Labels, Mask, Pair
from tenfold.latency.statistics import Standardised, dense

# A prompt of fewer tokens is shorter than the least that providers and engines cache by far: it is never called cold.
LONG = 1024
# Share of a prompt below which it found nearly nothing.
COLD = 0.1
# Prompts so much longer, that read at least this much of what they read before.
_LONGER, _AS_MUCH = 1.2, 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Reads:
    """Reads of both windows.

    Args:
        known: Requests whose reads are known, of both windows.
        hit: Tokens read over tokens asked, against what the same cells gave before.
        cold: Long prompts that found nearly nothing, likewise.
    """

    known: tuple[Mask, Mask]
    hit: Standardised
    cold: Standardised


def only_longer(pair: Pair, reads: Reads) -> Mask:
    """Tell requests of tenants and routes whose prompts grew behind what is read as before (I33).

    Their hit rate falls, and no cache broke.

    Args:
        pair: The windows.
        reads: Their reads.

    Returns:
        Whether a request after is one.
    """
    kinds = kinds_of(pair)
    many = len(kinds.names)
    means: list[tuple[Floats, Floats]] = []
    for (read, asked, _), kind, known in zip(
        (reads.hit.before, reads.hit.after), (kinds.before, kinds.after), reads.known, strict=True
    ):
        count = np.maximum(np.bincount(kind[known], minlength=many), 1)
        means.append(
            (np.bincount(kind[known], read[known], many) / count, np.bincount(kind[known], asked[known], many) / count)
        )
    (read_before, asked_before), (read_after, asked_after) = means
    grew = (asked_before > 0) & (asked_after >= _LONGER * asked_before) & (read_after >= _AS_MUCH * read_before)
    return grew[kinds.after]


def reads_of(pair: Pair, facts: Facts) -> Reads | None:
    """Take the reads of first attempts; None where half of a window's requests lack them.

    What a retry finds in the cache is a matter of how long it waited, which step 7 looks at.

    Args:
        pair: The windows.
        facts: What is known of them.

    Returns:
        The reads.
    """
    known: list[Mask] = []
    for window in pair.windows:
        if window.cached is None:
            return None
        mask = np.isfinite(window.cached) & np.isfinite(window.input) & (window.input > 0)
        if mask.sum() < 0.5 * max(int(window.ok.sum()), 1) or not mask.any():
            return None
        known.append(mask & first_attempts(window))
    before, after = pair.windows
    labels = joint(
        pair,
        (before.tenant, after.tenant),
        (before.route, after.route),
        (applications(before), applications(after)),
    )
    octaves = [
        np.floor(np.log2(np.maximum(np.nan_to_num(window.input), 1))).astype(np.int32) for window in pair.windows
    ]
    both = dense(np.concatenate(labels), np.concatenate(octaves))
    cells = (both[: before.size], both[before.size :])
    clusters = (_clusters(before.session, facts.before.slice), _clusters(after.session, facts.after.slice))
    parts: list[tuple[tuple[Floats, Floats, Codes], tuple[Floats, Floats, Codes]]] = []
    for window, mask, cell in zip(pair.windows, known, cells, strict=True):
        read = np.zeros(window.size) if window.cached is None else np.where(mask, np.nan_to_num(window.cached), 0.0)
        asked = np.where(mask, np.nan_to_num(window.input), 0.0)
        cold = ((asked >= LONG) & (read < COLD * asked)).astype(np.float64)
        parts.append(((read, asked, cell), (cold, (asked >= LONG).astype(np.float64), cell)))
    hit, cold = (Standardised.of(parts[0][at], parts[1][at], clusters) for at in (0, 1))
    return Reads((known[0], known[1]), hit, cold)


def _clusters(session: Labels | None, slices: Codes) -> tuple[Codes, ...]:
    return (slices,) if session is None or (session.codes < 0).mean() > 0.1 else (slices, session.codes)
