"""A second, slow way through the p99 runbook: plain lists and loops, every order of causes tried, every pair looked at.

Written from serving.md 12 and the definitions in the docstrings of tenfold.latency; of tenfold it uses nothing but the
columns of a window that it is handed. A missing number is NaN, a missing label None.
"""

from oracle_latency.basics import (
    COMPONENTS,
    SLICES,
    Moved,
    Numbers,
    band_shares,
    between,
    burst,
    component,
    kinds,
    known,
    labels,
    linear_quantile,
    numbers,
    quantiles,
    ranked,
    shapley,
    shift,
    slices_of,
    tpot,
    weights,
    zero,
)
from oracle_latency.game import Game, beyond, fifths, log_ratios
from oracle_latency.load import Model, UnderWay, firsts, hits_put_back, load_shares, uncached, under_way, work
from oracle_latency.rates import cluster_variance, cost_a_day, false_discovery, repeats, standardised, verdict

__all__ = [
    "COMPONENTS",
    "SLICES",
    "Game",
    "Model",
    "Moved",
    "Numbers",
    "UnderWay",
    "band_shares",
    "between",
    "beyond",
    "burst",
    "cluster_variance",
    "component",
    "cost_a_day",
    "false_discovery",
    "fifths",
    "firsts",
    "hits_put_back",
    "kinds",
    "known",
    "labels",
    "linear_quantile",
    "load_shares",
    "log_ratios",
    "numbers",
    "quantiles",
    "ranked",
    "repeats",
    "shapley",
    "shift",
    "slices_of",
    "standardised",
    "tpot",
    "uncached",
    "under_way",
    "verdict",
    "weights",
    "work",
    "zero",
]
