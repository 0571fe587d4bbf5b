"""Pictures: a small frame in, an Altair chart out. The only room that imports Altair, and only inside its functions."""

from tenfold.charts.in_flight import concurrency
from tenfold.charts.latency import quantile_shift, tail_waterfall
from tenfold.charts.latency_time import tail_timeline
from tenfold.charts.meters import composition, meter_shares
from tenfold.charts.serving import frontier, hourly_need, memory_split
from tenfold.charts.serving_choices import break_even, token_budgets
from tenfold.charts.spend import spend_per_day
from tenfold.charts.steps import waterfall
from tenfold.charts.svg import to_svg
from tenfold.charts.theme import INK, METER_COLOURS, METER_LABELS

__all__ = [
    "INK",
    "METER_COLOURS",
    "METER_LABELS",
    "break_even",
    "composition",
    "concurrency",
    "frontier",
    "hourly_need",
    "memory_split",
    "meter_shares",
    "quantile_shift",
    "spend_per_day",
    "tail_timeline",
    "tail_waterfall",
    "to_svg",
    "token_budgets",
    "waterfall",
]
