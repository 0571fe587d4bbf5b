"""Two systems side by side, no cause claimed: how fast each is, and which part of the time makes the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tenfold.errors import NotEvaluable
from tenfold.latency.facts import SLICES
from tenfold.latency.records import Codes, Floats, Interval, Pair, Window
from tenfold.latency.steps.s1_split import band_shares
from tenfold.latency.tails import Tail, draws_of
from tenfold.latency.windows import Spec, read_pair

_QUANTILES = (0.5, 0.9, 0.95, 0.99)
# Requests beyond a quantile that both systems need for it to be told.
_BEYOND = 10


class Row(NamedTuple):
    """A quantile of one component in both systems.

    Args:
        component: ``ttft``, ``tpot``, ``output`` or ``e2e``.
        quantile: 0..1.
        before: Of the first system, with its 95 % interval; seconds, or tokens.
        after: Of the second.
        ratio: Second over first.
    """

    component: str
    quantile: float
    before: Interval
    after: Interval
    ratio: Interval


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Two systems.

    Args:
        requests: Requests of either that were answered.
        rows: Quantiles, as far as the requests carry them.
        split: Shares of TTFT, TPOT and output in the difference of the slow requests' time (``split_quantile`` and up).
        split_quantile: Where the slow requests begin.
        notes: What to know of the data.
    """

    requests: tuple[int, int]
    rows: tuple[Row, ...]
    split: dict[str, float]
    split_quantile: float
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Give the document of ``tenfold diagnose --compare --json``; times in milliseconds.

        Returns:
            Plain values.
        """
        return {
            "requests": {"before": self.requests[0], "after": self.requests[1]},
            "quantiles": [_document(row) for row in self.rows],
            "split": self.split,
            "split_quantile": self.split_quantile,
            "notes": list(self.notes),
        }


def compare(
    before: Spec,
    after: Spec,
    *,
    where: str | None = None,
    zone: str | None = None,
    reading_options: Mapping[str, Any] | None = None,
) -> Comparison:
    """Compare two systems on their logs.

    Args:
        before: Log of the first: paths, or ``FILE.duckdb@FROM..TO``.
        after: Log of the second.
        where: SQL predicate over columns of ``requests``: whose latencies are looked at, in both.
        zone: Time zone of days and instants that name none.
        reading_options: What ``load`` is told of logs that are read now (``map``, ``format``, ``set``).

    Returns:
        The comparison.

    Raises:
        NotEvaluable: One of them has no request with a latency, or too few.
    """
    found = read_pair(before, after, where=where, zone=zone, any_model=True, reading_options=reading_options)
    return comparison_of(found.pairs[0], found.notes)


def comparison_of(pair: Pair, notes: tuple[str, ...] = ()) -> Comparison:
    """Compare the windows of a pair.

    Args:
        pair: The two systems.
        notes: What to know of the data.

    Returns:
        The comparison.

    Raises:
        NotEvaluable: Too few requests have a latency.
    """
    counts = [int(np.isfinite(window.e2e_s).sum()) for window in pair.windows]
    least = int(_BEYOND / (1 - _QUANTILES[0]))
    if min(counts) < least:
        raise NotEvaluable(
            f"{counts[0]:,} and {counts[1]:,} requests have a latency (duration_ms); comparing medians takes {least} "
            "each: give longer logs"
        )
    rows: list[Row] = []
    for name in ("ttft", "tpot", "output", "e2e"):
        columns = [_column(window, name) for window in pair.windows]
        fewest = min(int(np.isfinite(column).sum()) for column in columns)
        rows.extend(_row(name, each, columns) for each in _QUANTILES if fewest * (1 - each) >= _BEYOND - 1e-9)
    carried = [row.quantile for row in rows if row.component == "e2e"]
    return Comparison(
        requests=(counts[0], counts[1]),
        rows=tuple(rows),
        split=band_shares(pair, carried[-1]),
        split_quantile=carried[-1],
        notes=(*notes, *pair.notes),
    )


def _column(window: Window, name: str) -> Floats:
    if name == "ttft":
        return window.ttft_s
    if name == "tpot":
        return window.tpot_s
    return window.e2e_s if name == "e2e" else np.where(window.judged, window.output, np.nan)


def _row(name: str, quantile: float, columns: Sequence[Floats]) -> Row:
    drawn: list[Floats] = []
    for at, column in enumerate(columns):
        values = column[np.isfinite(column)]
        slices: Codes = (np.arange(values.size) * SLICES // values.size).astype(np.int32)
        counts = np.vstack([np.ones((1, SLICES)), draws_of(SLICES, stream=at)])
        drawn.append(Tail.of(values, slices, quantile, SLICES).at(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = drawn[1] / drawn[0]
    return Row(name, quantile, _interval(drawn[0]), _interval(drawn[1]), _interval(ratio))


def _interval(drawn: Floats) -> Interval:
    """Give the value, in the first place, with the 95 % interval of the others."""
    low, high = np.quantile(drawn[1:], (0.025, 0.975))
    mid = float(drawn[0])
    return Interval(min(float(low), mid), mid, max(float(high), mid))


def _document(row: Row) -> dict[str, Any]:
    scale, unit = (1.0, "tokens") if row.component == "output" else (1000.0, "ms")
    return {
        "component": row.component,
        "quantile": row.quantile,
        "unit": unit,
        "before": {name: value * scale for name, value in row.before._asdict().items()},
        "after": {name: value * scale for name, value in row.after._asdict().items()},
        "ratio": row.ratio._asdict(),
    }
