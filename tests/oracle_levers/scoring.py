"""Quality: the score of a model on a request, and the score it must reach."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from oracle_levers.core import Request, Table, level, number

Score = Callable[[Request], Fraction | None]


def score(evals: list[dict[str, Any]], model: str, request: Request) -> Fraction | None:
    """The rule: "mean of evals rows with model = to_model and its request_id; else with its feature; else none"."""
    own = [row for row in evals if str(row["model"]).lower() == model.lower() and row.get("score") is not None]
    for column in ("request_id", "feature"):
        wanted = request.get(column)
        rows = [row for row in own if row.get(column) == wanted] if wanted is not None else []
        if column == "feature":
            rows = [row for row in rows if row.get("request_id") is None]
        if rows:
            return sum((number(row["score"]) for row in rows), Fraction(0)) / len(rows)
    return None


def threshold(table: Table, slo: Table | None, request: Request, evals: list[dict[str, Any]]) -> Fraction | None:
    """The rule: "the larger of min_quality and slo min_quality of its feature; if neither is stated: the score
    of its own model".
    """
    stated = [table.get("min_quality"), level(slo, request, "min_quality")]
    numbers = [number(one) for one in stated if one is not None]
    return max(numbers) if numbers else score(evals, str(request.get("model")), request)


def measured(table: Table, model: str, request: Request) -> dict[str, Any]:
    """Counts and cost that the evals give for this very request."""
    for row in table.get("evals") or ():
        is_own = row.get("request_id") is not None and row.get("request_id") == request.get("request_id")
        if is_own and str(row["model"]).lower() == model.lower():
            return row
    return {}
