"""What a simulation says: times of requests and tokens, memory, goodput and money."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

from tenfold.serving.simulator.layout import GAP_BIN, GAP_FROM_S, Floats, Ints, Records


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """What came out of a simulation; times in seconds.

    Args:
        requests: One record a request, in order of arrival (``layout.REQUEST``).
        replicas: One record a replica.
        tally: Counts over all steps.
        gaps: Histograms of times between two tokens of a request, by group.
        points: Time series of what ran, waited and was used.
        capacity: Pages in a replica's pool.
        gpus: GPUs of all replicas.
        refused: Requests that do not fit into the pool at all; not simulated.
        left_out: Requests of the log that could not be replayed, or not with their prefix, by reason.
    """

    requests: Records
    replicas: Records
    tally: Records
    gaps: Ints
    points: Ints
    capacity: int
    gpus: int
    refused: int
    left_out: tuple[tuple[str, int], ...] = ()

    @property
    def ttft_s(self) -> Floats:
        """Time from arrival to the first token, a request."""
        return self.requests["first_s"] - self.requests["arrival_s"]

    @property
    def e2e_s(self) -> Floats:
        """Time from arrival to the last token, a request."""
        return self.requests["last_s"] - self.requests["arrival_s"]

    @property
    def queue_s(self) -> Floats:
        """Time from arrival until the first token of the prompt was scheduled, a request."""
        return self.requests["admitted_s"] - self.requests["arrival_s"]

    @property
    def tpot_s(self) -> Floats:
        """Mean time an output token after the first, a request; NaN where there is only one."""
        after = self.requests["output"] - 1
        spent = self.requests["last_s"] - self.requests["first_s"]
        return np.where(after > 0, spent / np.maximum(after, 1), np.nan)

    @property
    def span_s(self) -> float:
        """Time from the first arrival to the last token."""
        return float(np.nanmax(self.requests["last_s"]) - self.requests["arrival_s"].min())

    @property
    def is_overloaded(self) -> bool:
        """Whether waits grow to the end: the last wait over 1 s, and twice as long as those in the middle."""
        parts = np.array_split(self.queue_s, 4)
        return float(parts[3].mean()) > max(1.0, 2 * float(parts[1].mean())) if self.requests.size >= 8 else False

    @property
    def recompute_ratio(self) -> float:
        """Share of computed tokens that had been computed before (vllm#54644: recomputed over total)."""
        computed = int(self.tally["prefilled"][0] + self.tally["decoded"][0])
        return int(self.requests["recomputed"].sum()) / computed

    @property
    def kv_peak_ratio(self) -> float:
        """Most of a replica's pool that requests held at once."""
        return int(self.replicas["peak"].max()) / self.capacity if self.capacity else 0.0

    @property
    def tokens_per_s(self) -> float:
        """Output tokens a second, over all replicas and the whole span."""
        return int(self.requests["output"].sum()) / self.span_s

    def itl_s(self, quantile: float, group: int | None = None) -> float:
        """Give a quantile of the time between two tokens of a request.

        Args:
            quantile: 0..1; at 1 the exact longest over all requests of the group, else within 0.5 %.
            group: Which requests; None is all.

        Returns:
            Seconds; NaN where no request has two tokens.
        """
        counts = self.gaps.sum(axis=0) if group is None else self.gaps[group]
        total = int(counts.sum())
        if total == 0:
            return math.nan
        if quantile >= 1:
            longest = self.requests["gap_s"]
            return float(longest.max() if group is None else longest[self.requests["group"] == group].max())
        place = int(np.searchsorted(np.cumsum(counts), quantile * total))
        return GAP_FROM_S * math.exp((place + 0.5) * GAP_BIN)

    def goodput_ratio(self, ttft_s: float | None = None, tpot_s: float | None = None) -> float | None:
        """Give the share of requests that keep both bounds; what was refused keeps none.

        Args:
            ttft_s: Bound of the time to the first token; None: no bound.
            tpot_s: Bound of the time an output token; a request with one token keeps it.

        Returns:
            Share, or None without a bound.
        """
        if ttft_s is None and tpot_s is None:
            return None
        good = ~np.isnan(self.requests["first_s"])  # the others were given up
        if ttft_s is not None:
            good &= self.ttft_s <= ttft_s
        if tpot_s is not None:
            good &= ~(self.tpot_s > tpot_s)
        return int(good.sum()) / (self.requests.size + self.refused)

    def usd(self, usd_per_gpu_hour: Decimal) -> Decimal:
        """Give what the GPUs cost from the first arrival to the last token, to 1 pUSD.

        Args:
            usd_per_gpu_hour: Price of a GPU and hour, in USD.

        Returns:
            USD.
        """
        hours = Decimal(self.span_s) / 3600
        return (usd_per_gpu_hour * self.gpus * hours).quantize(Decimal("1e-12"))

    def frame(self) -> pl.DataFrame:
        """Give one row a request, in order of arrival.

        Returns:
            Times in seconds (``arrival_s``, ``queue_s``, ``ttft_s``, ``tpot_s``, ``e2e_s``, longest ``gap_s``), tokens
            (``input_tokens``, ``output_tokens``, ``cached_tokens``, ``recomputed_tokens``), ``preemptions`` and
            ``replica``.
        """
        names = {"input": "input_tokens", "output": "output_tokens", "cached": "cached_tokens"}
        names |= {"recomputed": "recomputed_tokens", "preempted": "preemptions"}
        kept = ("arrival_s", "gap_s", *names, "replica")
        return pl.DataFrame(
            {
                **{names.get(name, name): np.ascontiguousarray(self.requests[name]) for name in kept},
                "queue_s": self.queue_s,
                "ttft_s": self.ttft_s,
                "tpot_s": self.tpot_s,
                "e2e_s": self.e2e_s,
            }
        )

    def series(self) -> list[dict[str, float]]:
        """Give the time series: the most that ran, waited and was held, over all replicas, in each piece of time.

        Returns:
            Pieces with ``from_s``, ``running``, ``waiting``, ``kv_ratio``; those in which no step ended are left out.
        """
        width, pools = float(self.tally["point_s"][0]), self.capacity * self.replicas.size
        return [
            {"from_s": place * width, "running": int(running), "waiting": int(waiting), "kv_ratio": int(used) / pools}
            for place, (running, waiting, used) in enumerate(self.points)
            if running >= 0
        ]

    def as_dict(
        self,
        *,
        ttft_slo_s: float | None = None,
        tpot_slo_s: float | None = None,
        usd_per_gpu_hour: Decimal | None = None,
    ) -> dict[str, Any]:
        """Give the document of ``tenfold serving simulate --json``; times in ms.

        Args:
            ttft_slo_s: Bound of the time to the first token.
            tpot_slo_s: Bound of the time an output token.
            usd_per_gpu_hour: Price of a GPU and hour, in USD.

        Returns:
            Plain values; money as a decimal string.
        """
        usd = None if usd_per_gpu_hour is None else self.usd(usd_per_gpu_hour)
        return {
            "requests": self.requests.size,
            "refused": self.refused,
            "left_out": dict(self.left_out),
            "span_s": self.span_s,
            "gpus": self.gpus,
            "ttft_ms": _quantiles(self.ttft_s),
            "itl_ms": {name: milliseconds(self.itl_s(at)) for name, at in (("p50", 0.5), ("p99", 0.99), ("max", 1.0))},
            "tpot_ms": _quantiles(self.tpot_s),
            "e2e_ms": _quantiles(self.e2e_s),
            "queue_ms": _quantiles(self.queue_s),
            "goodput_ratio": self.goodput_ratio(ttft_slo_s, tpot_slo_s),
            "tokens_per_s": self.tokens_per_s,
            "tokens_per_s_per_gpu": self.tokens_per_s / self.gpus,
            "busy_ratio": float(self.replicas["busy_s"].sum()) / (self.span_s * self.replicas.size),
            "preemptions": int(self.tally["preempted"][0]),
            "preempted_requests": int((self.requests["preempted"] > 0).sum()),
            "recomputed_tokens": int(self.requests["recomputed"].sum()),
            "recompute_ratio": self.recompute_ratio,
            "cached_ratio": int(self.requests["cached"].sum()) / int(self.requests["input"].sum()),
            "kv_peak_ratio": self.kv_peak_ratio,
            "steps": int(self.tally["steps"][0]),
            "usd": None if usd is None else str(usd),
            "usd_per_million_output": None
            if usd is None
            else str((usd * 1_000_000 / int(self.requests["output"].sum())).quantize(Decimal("1e-6"))),
        }


def _quantiles(seconds: Floats) -> dict[str, float | None]:
    """Linear between the two nearest, as numpy does by default."""
    seconds = seconds[~np.isnan(seconds)]
    if seconds.size == 0:
        return {"p50": None, "p95": None, "p99": None}
    return {f"p{part}": float(np.quantile(seconds, part / 100)) * 1000 for part in (50, 95, 99)}


def milliseconds(seconds: float) -> float | None:
    """Write seconds for a document.

    Args:
        seconds: The seconds; NaN is not known.

    Returns:
        Milliseconds, or None.
    """
    return None if math.isnan(seconds) else seconds * 1000
