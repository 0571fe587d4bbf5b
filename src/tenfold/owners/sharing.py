"""How shared costs are allocated: the ``[allocation]`` table of ``tenfold.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any, cast

from tenfold.errors import AssumptionError, near

METHODS = ("usage", "even", "fixed")
BASES = ("cost", "tokens", "requests")


@dataclass(frozen=True, slots=True)
class Sharing:
    """A method of allocation.

    Args:
        method: ``usage`` (in proportion to the basis), ``even`` or ``fixed`` (by the weights).
        basis: What usage is measured in: ``cost``, ``tokens`` or ``requests``.
        weights: Team to its part of 1, for ``fixed``.
        include_unallocated: Also allocate the cost of what nobody owns.
        where: Place to name in errors.

    Raises:
        AssumptionError: A word is unknown, a weight is below 0, or the weights do not sum to 1.
    """

    method: str = "usage"
    basis: str = "cost"
    weights: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    include_unallocated: bool = False
    where: str = "allocation"

    def __post_init__(self) -> None:
        for name, known in (("method", METHODS), ("basis", BASES)):
            value = getattr(self, name)
            if value not in known:
                nearest = near(str(value), known)
                raise AssumptionError(f"{self.where}.{name} = {value!r}: one of {', '.join(known)}.{nearest}")
        for team, weight in self.weights.items():
            if not weight.is_finite() or weight < 0:
                raise AssumptionError(f"{self.where}.weights.{team} = {weight}: a part of 1, at least 0")
        if self.method == "fixed" and not self.weights:
            raise AssumptionError(f'{self.where}.weights: method "fixed" needs them, such as weights = {{search = 1}}')
        if self.weights and sum(self.weights.values()) != 1:
            raise AssumptionError(
                f"{self.where}.weights: they sum to {sum(self.weights.values())}, not to 1 "
                f"({', '.join(f'{team} {weight}' for team, weight in self.weights.items())})"
            )


def from_table(where: str, table: object) -> Sharing:
    """Read an ``[allocation]`` table.

    Args:
        where: File and table, for messages.
        table: Its content, decimal numbers read as Decimal; None where there is none.

    Returns:
        The method; the defaults where nothing is said.

    Raises:
        AssumptionError: A key or value cannot be used; names it, and the nearest known one.
    """
    if table is None:
        return Sharing(where=where)
    if not isinstance(table, dict):
        raise AssumptionError(f"{where} must be a table: [allocation]")
    raw = dict(cast("dict[str, Any]", table))
    known = [one.name for one in fields(Sharing) if one.name != "where"]
    for key in raw:
        if key not in known:
            raise AssumptionError(f'{where}: unknown key "{key}".{near(key, known)}')
    if not isinstance(raw.get("include_unallocated", False), bool):
        raise AssumptionError(f"{where}.include_unallocated = {raw['include_unallocated']!r}: write true or false")
    weights: object = raw.get("weights", {})
    if not isinstance(weights, dict):
        raise AssumptionError(f"{where}.weights must be a table: weights = {{search = 0.6, support = 0.4}}")
    for team, weight in cast("dict[str, object]", weights).items():
        if isinstance(weight, bool) or not isinstance(weight, int | Decimal):
            raise AssumptionError(f"{where}.weights.{team} = {weight!r}: write a number, such as 0.6")
        raw.setdefault("parts", {})[team] = Decimal(weight)
    raw["weights"] = raw.pop("parts", {})
    return Sharing(**raw, where=where)
