"""The unit costs of one slice of a bill: the whole, a month, a team. Exact fractions; None is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, NamedTuple, TypeAlias

from tenfold.display import METER_GROUPS, nothing_priced
from tenfold.money import PUSD_PER_USD, divided, shown, usd_text

Basis: TypeAlias = Literal["outcome_ok", "status"]
# Kinds of tokens: key, title, meters.
KINDS = tuple(group for group in METER_GROUPS if group[0] in ("uncached", "read", "write", "output"))
_MILLION = 1_000_000
_MOST_DECIMALS = 9
_BASES: Mapping[Basis, str] = {"outcome_ok": "judged", "status": "status"}


class UnitCost(NamedTuple):
    """What one unit costs.

    Args:
        name: ``outcome``, ``request``, ``session``, ``user`` or ``customer``.
        pusd: Cost of the requests that belong to such a unit.
        units: How many units these are.
        requests: Requests with a price that belong to one.
        requests_share: Those over all requests with a price; None without any.
        spend_share: ``pusd`` over all priced cost; None for a spend of zero.
        basis: For outcomes, what tells a good one; empty for other units.
    """

    name: str
    pusd: int
    units: int
    requests: int
    requests_share: Fraction | None
    spend_share: Fraction | None
    basis: Basis | Literal[""] = ""

    @property
    def per_unit(self) -> Fraction | None:
        """Give pUSD a unit; None where there is no unit."""
        return Fraction(self.pusd, self.units) if self.units else None


class TokenPrice(NamedTuple):
    """What tokens of a kind really cost.

    Args:
        kind: ``uncached``, ``read``, ``write`` or ``output`` (reasoning with it); ``blended`` for all.
        title: For people.
        pusd: Their cost; of ``blended``, the whole cost, also of what is no token.
        tokens: How many, of requests with a price.
    """

    kind: str
    title: str
    pusd: int
    tokens: int

    @property
    def per_million(self) -> Fraction | None:
        """Give pUSD for a million tokens; None where there is none."""
        return Fraction(self.pusd * _MILLION, self.tokens) if self.tokens else None


@dataclass(frozen=True, slots=True)
class Units:
    """The unit costs of one slice of a bill.

    Args:
        sums: What ``unit_sums.sql`` counted.
        basis: What tells a good outcome in the whole log; None where nothing does.
    """

    sums: Mapping[str, int]
    basis: Basis | None

    @property
    def spend_pusd(self) -> int:
        """Cost of its priced requests."""
        return self.sums["cost_pusd"]

    @property
    def outcome(self) -> UnitCost | None:
        """Cost per successful outcome; None where the log has neither ``outcome_ok`` nor ``status``."""
        if self.basis is None:
            return None
        return self._cost("outcome", _BASES[self.basis])._replace(basis=self.basis)

    @property
    def outcome_bounds(self) -> tuple[Fraction | None, Fraction | None]:
        """Cost of everything per outcome, had all open ones been good, and had none been."""
        found = self.outcome
        if found is None:
            return None, None
        most = found.units + self.sums[f"{_BASES[found.basis or 'status']}_open"]
        low, high = (Fraction(self.spend_pusd, units) if units else None for units in (most, found.units))
        return low, high

    @property
    def request(self) -> UnitCost:
        """Cost per request that has a price."""
        requests = self.sums["costed"]
        return UnitCost("request", self.spend_pusd, requests, requests, _part(requests, requests), Fraction(1))

    @property
    def session(self) -> UnitCost | None:
        """Cost per session; None where no request with a price names one."""
        return self._named("session")

    @property
    def user(self) -> UnitCost | None:
        """Cost per active user: one with a request that has a price."""
        return self._named("user")

    @property
    def customer(self) -> UnitCost | None:
        """Cost per customer that a tag names."""
        return self._named("customer")

    @property
    def all(self) -> tuple[UnitCost, ...]:
        """Every unit that the log tells of, outcomes first."""
        found = (self.outcome, self.request, self.session, self.user, self.customer)
        return tuple(one for one in found if one is not None)

    def unit(self, name: str) -> UnitCost | None:
        """Give one of the units.

        Args:
            name: Its name.

        Returns:
            The unit; None where the log does not tell of it.
        """
        return next((one for one in self.all if one.name == name), None)

    @property
    def tokens(self) -> tuple[TokenPrice, ...]:
        """What a million tokens cost: blended, then by kind, for kinds that occur."""
        sums = self.sums
        kinds = [TokenPrice(key, title, sums[f"{key}_pusd"], sums[f"{key}_units"]) for key, title, _ in KINDS]
        blended = TokenPrice("blended", "blended", self.spend_pusd, sums["input_tokens"] + sums["output_tokens"])
        return (blended, *(one for one in kinds if one.tokens))

    @property
    def input_output_ratio(self) -> Fraction | None:
        """Input to output tokens, without which a blended price says nothing."""
        return _part(self.sums["input_tokens"], self.sums["output_tokens"])

    @property
    def is_blank(self) -> bool:
        """Whether it has requests and none of them has a price."""
        return nothing_priced(self.sums["requests"], self.sums["requests"] - self.sums["costed"])

    def _named(self, name: str) -> UnitCost | None:
        found = self._cost(name, name)
        return found if found.units else None

    def _cost(self, name: str, column: str) -> UnitCost:
        pusd, requests = self.sums[f"{column}_pusd"], self.sums[f"{column}_requests"]
        shares = _part(requests, self.sums["costed"]), _part(pusd, self.spend_pusd)
        return UnitCost(name, pusd, self.sums[f"{column}_units"], requests, *shares)

    def as_dict(self) -> dict[str, Any]:
        """Give the keys of ``tenfold kpis --json``.

        Returns:
            ``requests``, ``unpriced_requests``, ``spend_usd``, ``units{}``, ``usd_per_million{}``,
            ``input_output_ratio``; money as decimal strings, rounded to 1 pUSD.
        """
        low, high = self.outcome_bounds
        return {
            "requests": self.sums["requests"],
            "unpriced_requests": self.sums["requests"] - self.sums["costed"],
            "spend_usd": None if self.is_blank else usd_text(self.spend_pusd),
            "units": {
                one.name: {
                    "cost_usd": usd_text(one.pusd),
                    "units": one.units,
                    "usd_per_unit": _usd(one.per_unit),
                    "requests": one.requests,
                    "requests_share": _float(one.requests_share),
                    "spend_share": _float(one.spend_share),
                    **({"basis": one.basis, "bounds_usd": [_usd(low), _usd(high)]} if one.basis else {}),
                }
                for one in self.all
            },
            "usd_per_million": {one.kind: _usd(one.per_million) for one in self.tokens},
            "input_output_ratio": _float(self.input_output_ratio),
        }


def dollars_each(pusd: Fraction | None) -> str:
    """Write what one unit costs: cents where it is a dollar or more, else three figures.

    Args:
        pusd: pUSD a unit; None where unknown.

    Returns:
        Text such as ``"$12.40"`` or ``"$0.00316"``.
    """
    if pusd is None:
        return "unknown"
    exact, decimals = abs(pusd) / PUSD_PER_USD, 2
    while 0 < exact < 1 and decimals < _MOST_DECIMALS and exact * 10 ** (decimals - 2) < 1:
        decimals += 1
    if 0 < exact < Fraction(1, 10**_MOST_DECIMALS):
        return f"<$0.{1:0{_MOST_DECIMALS}d}"
    return shown(divided(pusd.numerator, pusd.denominator), decimals)


def _part(of: int, whole: int) -> Fraction | None:
    return Fraction(of, whole) if whole else None


def _usd(pusd: Fraction | None) -> str | None:
    return None if pusd is None else usd_text(divided(pusd.numerator, pusd.denominator))


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
