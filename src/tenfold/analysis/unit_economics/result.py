"""What units of work cost over a window, its months and its parts, and what changed since the window before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any

from tenfold.analysis.unit_economics.units import Basis, UnitCost, Units, dollars_each
from tenfold.display import UNMEASURED, counted, name_of, percent, ratio, sentence
from tenfold.tables import Column, Grid, card, grid

# Tags that name a customer, the first that occurs is taken.
CUSTOMER_TAGS = ("customer", "customer_id", "tenant", "tenant_id", "account")


@dataclass(frozen=True, slots=True)
class UnitEconomics:
    """What units of work cost, over a window, its months and parts of it.

    Args:
        total: The whole window.
        months: First day of each month with dated requests, in order. A session or user of two months is one in each.
        groups: Column to its values, dearest first.
        customer_tag: Tag that names customers; None where none occurs.
        zone: Zone that months are cut in.
    """

    total: Units
    months: tuple[tuple[date, Units], ...]
    groups: Mapping[str, tuple[tuple[str | None, Units], ...]]
    customer_tag: str | None
    zone: str

    @property
    def basis(self) -> Basis | None:
        """What tells a good outcome: the caller's judgement, else the status; None where nothing does."""
        return self.total.basis

    @property
    def not_measurable(self) -> dict[str, str]:
        """Units that the log does not allow, with the column that would tell."""
        wanted = {"outcome": "outcome_ok or status", "session": "session_id", "user": "user_id"}
        found = {name: column for name, column in wanted.items() if self.total.unit(name) is None}
        if self.total.customer is None:
            found["customer"] = f"a tag such as {CUSTOMER_TAGS[0]}"
        return found

    def change(self, before: UnitEconomics | None, name: str) -> Fraction | None:
        """Give the change of a unit's cost against the window before.

        Args:
            before: The window before, or None.
            name: The unit.

        Returns:
            Now over then, minus 1; None where one of them is unknown, or good outcomes were told otherwise.
        """
        now, then = self.total.unit(name), None if before is None else before.total.unit(name)
        if now is None or then is None or now.basis != then.basis:
            return None
        return now.per_unit / then.per_unit - 1 if now.per_unit is not None and then.per_unit else None

    def sentences(self) -> list[str]:
        """Say it in plain lines, cost per successful outcome first.

        Returns:
            Lines for people; what is not measurable is the last.
        """
        return list(_sentences(self))

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<UnitEconomics {'; '.join(self.sentences()[:2])}>"

    def _repr_html_(self) -> str:
        """Show the sentences in a notebook, and the parts that were asked for."""
        return card("Unit economics", map(sentence, self.sentences()), *(self._grid(name) for name in self.groups))

    def _grid(self, name: str) -> Grid:
        columns = [Column(name, name), Column("spend", "spend (USD)", "pusd"), Column("requests", "requests", "count")]
        units = ["request"] if self.basis is None else ["outcome", "request"]
        columns += [Column(unit, f"USD per {unit}", "pusd") for unit in units]
        rows = [
            (
                name_of(name, value),
                part.spend_pusd if part.sums["costed"] else None,
                part.sums["requests"],
                *(_each(part, unit) for unit in units),
            )
            for value, part in self.groups[name]
        ]
        return grid(f"units-{name}", f"Unit costs by {name}", columns, rows)

    def as_dict(self) -> dict[str, Any]:
        """Give the object ``unit_economics`` of ``tenfold kpis --json``.

        Returns:
            The whole's keys (see ``Units.as_dict``), ``basis``, ``customer_tag``, ``months[]``, ``groups{}``,
            ``not_measurable{}``, ``sentences[]``.
        """
        return {
            "basis": self.basis,
            **self.total.as_dict(),
            "customer_tag": self.customer_tag,
            "months": [{"month": f"{month:%Y-%m}", **units.as_dict()} for month, units in self.months],
            "groups": {
                name: [{"value": value, **units.as_dict()} for value, units in values]
                for name, values in self.groups.items()
            },
            "not_measurable": self.not_measurable,
            "sentences": self.sentences(),
        }


def _each(part: Units, unit: str) -> int | None:
    found = part.unit(unit)
    return None if found is None or found.per_unit is None else round(found.per_unit)


_SAID: Mapping[str, str] = {"outcome_ok": "successful outcome", "status": "successful request"}


def _sentences(found: UnitEconomics) -> Iterator[str]:
    outcome = found.total.outcome
    if outcome is not None:
        yield f"{dollars_each(outcome.per_unit)} per {_SAID.get(outcome.basis, '')}, {_of(outcome)}"
        if outcome.basis == "status":
            yield (
                "a stand-in: no request has outcome_ok, so every status success counts as an outcome, that of a "
                "gateway's cache too"
            )
        low, high = found.total.outcome_bounds
        if outcome.requests_share is not None and outcome.requests_share < 1 and low is not None:
            yield (
                f"the outcome of {percent(1 - outcome.requests_share, 1)} of requests is unknown and left out: over "
                f"all cost, from {dollars_each(low)} (all of them good) to {dollars_each(high)} (none)"
            )
    parts = [
        f"{dollars_each(one.per_unit)} per {'active user' if one.name == 'user' else one.name} ({_of(one)})"
        for one in found.total.all
        if one.name != "outcome"
    ]
    yield "; ".join(parts)
    prices = [f"{one.title} {dollars_each(one.per_million)}" for one in found.total.tokens if one.tokens]
    if prices:
        yield f"per million tokens: {', '.join(prices)}; input:output {ratio(found.total.input_output_ratio)}"
    if found.not_measurable:
        lacking = [f"{name} ({column})" for name, column in found.not_measurable.items()]
        yield f"{UNMEASURED}: {', '.join(lacking)}"


def _of(one: UnitCost) -> str:
    text = counted(one.units, _SAID.get(one.basis, one.name))
    if one.spend_share is not None and one.spend_share != 1:
        text += f", {percent(one.spend_share, 1)} of spend"
    return text
