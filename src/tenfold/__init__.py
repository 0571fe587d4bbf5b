"""tenfold: find the next 10x in an LLM bill. Exact cost from per-request token logs, and a ranked plan to shrink it.

The public names are loaded when first used, so ``import tenfold`` takes no heavy library and no network.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.analysis.allocation import allocate
    from tenfold.analysis.anomalies import anomalies
    from tenfold.analysis.bridge import bridge
    from tenfold.analysis.budgets import burn
    from tenfold.analysis.cache_breaks import cache_breaks
    from tenfold.analysis.efficiency import efficiency
    from tenfold.analysis.forecast import forecast
    from tenfold.analysis.reconcile import reconcile
    from tenfold.analysis.unit_economics import unit_economics
    from tenfold.errors import NotEvaluable, TenfoldError
    from tenfold.export import export_focus, export_table, forget, publish
    from tenfold.latency import compare, diagnose
    from tenfold.ledger import Ledger, attribute
    from tenfold.ledger.many import price_many
    from tenfold.ledger.on_spark import Spark
    from tenfold.logs import Log, load, open_log
    from tenfold.planning import Plan, plan, record, recorded, track
    from tenfold.prices import PriceBook, price_book
    from tenfold.prices.single import price
    from tenfold.reviewing import review
    from tenfold.serving.fleet import Fleet
    from tenfold.serving.hosted import on_fleet
    from tenfold.slo import Slo
    from tenfold.usage import Usage

_HOME = {
    "Fleet": "tenfold.serving.fleet",
    "Ledger": "tenfold.ledger",
    "Log": "tenfold.logs",
    "NotEvaluable": "tenfold.errors",
    "Plan": "tenfold.planning",
    "PriceBook": "tenfold.prices",
    "Slo": "tenfold.slo",
    "Spark": "tenfold.ledger.on_spark",
    "TenfoldError": "tenfold.errors",
    "Usage": "tenfold.usage",
    "allocate": "tenfold.analysis.allocation",
    "anomalies": "tenfold.analysis.anomalies",
    "attribute": "tenfold.ledger",
    "bridge": "tenfold.analysis.bridge",
    "burn": "tenfold.analysis.budgets",
    "cache_breaks": "tenfold.analysis.cache_breaks",
    "compare": "tenfold.latency",
    "diagnose": "tenfold.latency",
    "efficiency": "tenfold.analysis.efficiency",
    "export_focus": "tenfold.export",
    "export_table": "tenfold.export",
    "forecast": "tenfold.analysis.forecast",
    "forget": "tenfold.export",
    "load": "tenfold.logs",
    "on_fleet": "tenfold.serving.hosted",
    "open_log": "tenfold.logs",
    "plan": "tenfold.planning",
    "price": "tenfold.prices.single",
    "price_book": "tenfold.prices",
    "price_many": "tenfold.ledger.many",
    "publish": "tenfold.export",
    "reconcile": "tenfold.analysis.reconcile",
    "record": "tenfold.planning",
    "recorded": "tenfold.planning",
    "review": "tenfold.reviewing",
    "track": "tenfold.planning",
    "unit_economics": "tenfold.analysis.unit_economics",
}

__all__ = [
    "Fleet",
    "Ledger",
    "Log",
    "NotEvaluable",
    "Plan",
    "PriceBook",
    "Slo",
    "Spark",
    "TenfoldError",
    "Usage",
    "allocate",
    "anomalies",
    "attribute",
    "bridge",
    "burn",
    "cache_breaks",
    "compare",
    "diagnose",
    "efficiency",
    "export_focus",
    "export_table",
    "forecast",
    "forget",
    "load",
    "on_fleet",
    "open_log",
    "plan",
    "price",
    "price_book",
    "price_many",
    "publish",
    "reconcile",
    "record",
    "recorded",
    "review",
    "track",
    "unit_economics",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 -- any public name
    if name == "__version__":
        from importlib import metadata  # takes longer than all of the pricing path

        return metadata.version("tenfold")
    if name not in _HOME:
        raise AttributeError(f"module 'tenfold' has no attribute {name!r}")
    found = getattr(import_module(_HOME[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
