"""What the steps share: derived columns of both windows, how requests were served before, and how the tail moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tenfold.latency.mechanics import Decode, Prefill
from tenfold.latency.records import Codes, Floats, Pair, Window
from tenfold.latency.under_way import UnderWay, under_way

# Pieces of time that the block bootstrap draws (serving.md 12: blocks by hour or tenant).
SLICES = 40


class Derived(NamedTuple):
    """Columns derived from a window, a place a request; NaN where they are not known.

    Args:
        uncached: Prompt tokens that no cache held; all of them where the log has no cached tokens.
        service_s: Time to the first token less the wait; all of it where the wait is not known.
        tpot_s: Time an output token, of answers of 16 tokens and more.
        under: What else was under way.
        prefill_residual: Log of the service time over what the window before gives for its prompt and its neighbours.
        decode_residual: The same of the time an output token.
        slice: Piece of the window's time, 0 to 39.
        replica: Replica; 0 where the log names none.
    """

    uncached: Floats
    service_s: Floats
    tpot_s: Floats
    under: UnderWay
    prefill_residual: Floats
    decode_residual: Floats
    slice: Codes
    replica: Codes

    @property
    def in_flight(self) -> Floats:
        """Others under way on its replica when it arrived."""
        return self.under.at_arrival

    @property
    def in_flight_decode(self) -> Floats:
        """Others whose answers were being written, on average over the time of its own."""
        return self.under.decoding

    @property
    def between(self) -> Floats:
        """Uncached prompt tokens of others that its steps had to compute beside, an output token of its own."""
        return self.under.between


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What is known of both windows.

    Args:
        before: Derived columns of the window before.
        after: Of the window after.
        quantile: The tail that is looked at.
        prefill: How prompts were served before.
        decode: How answers were written before.
    """

    before: Derived
    after: Derived
    quantile: float
    prefill: Prefill
    decode: Decode

    @property
    def windows(self) -> tuple[Derived, Derived]:
        """Both, before and after."""
        return self.before, self.after


def facts_of(pair: Pair, quantile: float) -> Facts:
    """Derive what the steps share.

    Args:
        pair: The windows.
        quantile: The tail that is looked at.

    Returns:
        The facts.
    """
    raw = [_raw(window) for window in pair.windows]
    prefill = Prefill.fit(raw[0].uncached, raw[0].service_s, raw[0].under.at_start)
    decode = Decode.fit(raw[0].tpot_s, raw[0].under)
    before, after = (
        one._replace(
            prefill_residual=_log_ratio(one.service_s, prefill.expected(one.uncached, one.under.at_start)),
            decode_residual=_log_ratio(
                one.tpot_s, decode.expected(one.under.decoding, one.under.context, one.under.between)
            ),
        )
        for one in raw
    )
    return Facts(before=before, after=after, quantile=quantile, prefill=prefill, decode=decode)


def _raw(window: Window) -> Derived:
    uncached = window.input
    if window.cached is not None:
        # of an answered request no cached tokens are none; of a failed one nobody knows
        uncached = window.input - np.where(window.ok, np.nan_to_num(window.cached), window.cached)
    queue = 0.0 if window.queue_s is None else np.nan_to_num(window.queue_s)
    unknown = np.full(window.size, np.nan)
    span = max(window.until_s - window.since_s, 1e-9)
    place = np.floor((window.ts_s - window.since_s) / span * SLICES)
    return Derived(
        uncached=uncached,
        service_s=np.maximum(window.ttft_s - queue, 0.0),
        tpot_s=window.tpot_s,
        under=under_way(window, uncached),
        prefill_residual=unknown,
        decode_residual=unknown,
        slice=np.clip(place, 0, SLICES - 1).astype(np.int32),
        replica=np.zeros(window.size, np.int32) if window.replica is None else np.maximum(window.replica.codes, 0),
    )


def _log_ratio(measured: Floats, expected: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(measured / expected)
    return np.where(np.isfinite(ratio), ratio, np.nan)
