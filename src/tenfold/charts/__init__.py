"""Pictures: a small frame in, an Altair chart out. The only room that imports Altair, and only inside its functions."""

from tenfold.charts.anomalies import anomaly_days
from tenfold.charts.efficiency import context_growth, unit_cost_trend, waste_bars
from tenfold.charts.forecast import forecast_months
from tenfold.charts.in_flight import concurrency
from tenfold.charts.latency import quantile_shift, tail_waterfall
from tenfold.charts.latency_time import tail_timeline
from tenfold.charts.meters import composition, meter_shares
from tenfold.charts.serving import frontier, hourly_need, memory_split
from tenfold.charts.serving_choices import break_even, token_budgets
from tenfold.charts.spend import spend_per_day
from tenfold.charts.spend_bridge import spend_bridge
from tenfold.charts.steps import waterfall
from tenfold.charts.svg import PRINTED, spec_of, to_png, to_svg
from tenfold.charts.theme import INK, METER_COLOURS, METER_LABELS

__all__ = [
    "INK",
    "METER_COLOURS",
    "METER_LABELS",
    "PRINTED",
    "anomaly_days",
    "break_even",
    "composition",
    "concurrency",
    "context_growth",
    "forecast_months",
    "frontier",
    "hourly_need",
    "memory_split",
    "meter_shares",
    "quantile_shift",
    "spec_of",
    "spend_bridge",
    "spend_per_day",
    "tail_timeline",
    "tail_waterfall",
    "to_png",
    "to_svg",
    "token_budgets",
    "unit_cost_trend",
    "waste_bars",
    "waterfall",
]
