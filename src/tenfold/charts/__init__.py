"""Pictures: a small frame in, an Altair chart out. The only room that imports Altair, and only inside its functions."""

from tenfold.charts.in_flight import concurrency
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
    "spend_per_day",
    "to_svg",
    "token_budgets",
    "waterfall",
]
