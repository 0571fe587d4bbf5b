"""Requests in flight over time."""

from __future__ import annotations

import polars as pl

from tenfold.charts.theme import WIDTH, AnyChart, altair, check, dressed, time_axis


def concurrency(frame: pl.DataFrame) -> AnyChart:
    """Draw the peak and the average number of requests in flight, one panel each over the same time.

    Args:
        frame: Columns ``starts_at``, ``peak``, ``average``, one row a bucket.

    Returns:
        The chart; requests at once.

    Raises:
        TenfoldError: A column is missing, or there are more than 5,000 buckets.
        MissingExtraError: Altair is not installed.
    """
    alt = altair("concurrency")
    check(frame, "concurrency", ["starts_at", "peak", "average"])
    rows = frame.select(pl.col("starts_at").cast(pl.Datetime("ms")).dt.strftime("%Y-%m-%dT%H:%M:%S"), "peak", "average")
    axis = time_axis(alt, frame["starts_at"])
    panels = [
        alt.Chart(rows, width=WIDTH, height=90)
        .mark_area(interpolate="step-after", color=colour, opacity=0.85)
        .encode(
            x=alt.X("starts_at:T", title=None, axis=axis),
            y=alt.Y(f"{column}:Q", title=title, axis=alt.Axis(tickCount=4, format="~g")),
        )
        for column, title, colour in (
            ("peak", "peak requests in flight", "#D55E00"),
            ("average", "average requests in flight", "#0072B2"),
        )
    ]
    return dressed(alt.vconcat(*panels, spacing=28))
