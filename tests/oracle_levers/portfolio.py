"""All levers together: the cost of any set of them, and how a joint saving is shared out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import permutations
from typing import Any

from oracle import is_billed
from oracle_book import Book

from oracle_levers import batching, distilling, prefix, routing, skipping, trimming
from oracle_levers.core import Bill, Pricer, Request, Table, first_bill, student_book
from oracle_levers.rules import Rules

# The rule: "Mechanical order by stage, then number": removed, model, prompt and output, prefix, tier
ORDER = ("skip", "route", "distill", "trim", "prefix_cache", "batch_api")
RIVALS = ("route", "distill")
BY_NUMBER = ("skip", "route", "prefix_cache", "trim", "distill", "batch_api")


@dataclass
class Portfolio:
    """Levers on one log.

    Args:
        prices: The price book.
        cache_rules: The cache rules.
        requests: The log.
        assume: A table per lever.
        slo: Service levels.
        scenario: `low`, `mid` or `high`.
    """

    prices: Book
    cache_rules: Rules
    requests: list[Request]
    assume: dict[str, Table]
    slo: Table | None = None
    scenario: str = "mid"
    known: dict[Any, Bill] = field(default_factory=dict[Any, Bill])
    sums: dict[Any, int] = field(default_factory=dict[Any, int])
    verdicts: dict[str, routing.Judged] = field(default_factory=dict[str, routing.Judged])

    def __post_init__(self) -> None:
        student = self.assume.get("distill", {}).get("student")
        self._ceded: dict[str, frozenset[int]] | None = None
        self.pricer = Pricer(distilling.with_student(self.prices, student_book(student)) if student else self.prices)
        self.window = distilling.Window.of([one for one in self.requests if is_billed(one)])

    @property
    def spend(self) -> int:
        """The bill as it is."""
        return self.cost(())

    def apply(self, names: Iterable[str], *, reduced: bool = False) -> Bill:
        """The calls that a set of levers leaves, and the fees they charge.

        Args:
            names: The levers, in any order.
            reduced: Without the requests that a lever cedes to its rival: for sets that enter last-in and Shapley.
        """
        wanted = frozenset(names)
        if (wanted, reduced) not in self.known:
            if not wanted:
                return self.known.setdefault((wanted, reduced), first_bill(self.requests))
            last = max(wanted, key=ORDER.index)
            before = self.apply(wanted - {last}, reduced=reduced)
            ceded = self.ceded().get(last, frozenset()) if reduced else frozenset()
            self.known[wanted, reduced] = self._one(last, before, ceded)
        return self.known[wanted, reduced]

    def _one(self, name: str, bill: Bill, ceded: frozenset[int]) -> Bill:
        pricer, table, scenario = self.pricer, self.assume[name], self.scenario
        if name == "skip":
            return skipping.apply(bill, pricer, table, scenario)
        if name == "route":
            return routing.apply(bill, pricer, table, scenario, self._judged(name), ceded)
        if name == "distill":
            return distilling.apply(bill, pricer, table, scenario, self._judged(name), self.window, ceded)
        if name == "trim":
            return trimming.apply(bill, pricer, table, scenario, self.requests)
        if name == "prefix_cache":
            return prefix.apply(bill, pricer, table, scenario, self.cache_rules)
        return batching.apply(bill, pricer, table, scenario, self.requests, self.slo)

    def _judged(self, name: str) -> routing.Judged:
        """What route or distill decides, once, on the log as billed."""
        if name not in self.verdicts:
            room = routing if name == "route" else distilling
            bill = first_bill(self.requests)
            self.verdicts[name] = room.judge(bill, self.pricer, self.assume[name], self.scenario, self.slo)
        return self.verdicts[name]

    def cost(self, names: Iterable[str], *, reduced: bool = False) -> int:
        """The rule: "cost(S) = sum of costs of all versions + fees of requests + fixed charges of the levers in S"."""
        key = (frozenset(names), reduced)
        if key not in self.sums:
            bill = self.apply(names, reduced=reduced)
            self.sums[key] = sum(self.pricer.cost(one) or 0 for one in bill.versions) + bill.fees
        return self.sums[key]

    def value(self, names: Iterable[str]) -> int:
        """The rule: "v(S) = spend - cost(S)", on the traffic that each lever keeps beside its rival."""
        return self.spend - self.cost(names, reduced=True)

    def alone(self, name: str) -> int:
        """A lever by itself, on all of its traffic."""
        return self.spend - self.cost([name])

    def touched(self, name: str) -> frozenset[int]:
        """The requests that a lever changes by itself."""
        return frozenset(self.apply([name]).touched.get(name, ()))

    def ceded(self) -> dict[str, frozenset[int]]:
        """The rule: "per feature the lever whose gross saving alone on those shared requests is larger keeps
        them all".
        """
        if self._ceded is None:
            self._ceded = self._split() if {"route", "distill"} <= set(self.assume) else {}
        return self._ceded

    def _split(self) -> dict[str, frozenset[int]]:
        """Each feature to the lever that saves more of it, or all to one: whichever nets most with its charges."""
        shared = self.touched("route") & self.touched("distill")
        features = {self.requests[one].get("feature") for one in shared}  # "NULL feature is one group"
        own = {
            feature: frozenset(one for one in shared if self.requests[one].get("feature") == feature)
            for feature in features
        }
        saved = {name: {feature: self._gross(name, own[feature]) for feature in features} for name in RIVALS}
        by_feature = {f: "route" if saved["route"][f] >= saved["distill"][f] else "distill" for f in features}
        ways = [by_feature, dict.fromkeys(features, "route"), dict.fromkeys(features, "distill")]

        def net(won: dict[Any, str]) -> int:
            total = sum(saved[name][feature] for feature, name in won.items())
            if "distill" in won.values() or self._changed("distill") - shared:
                total -= self._fixed()
            return total

        best = max(ways, key=net)
        lost: dict[str, set[int]] = {name: set() for name in RIVALS}
        for feature, winner in best.items():
            lost["distill" if winner == "route" else "route"] |= own[feature]
        return {name: frozenset(places) for name, places in lost.items()}

    def _gross(self, name: str, places: frozenset[int]) -> int:
        versions = self.apply([name]).versions
        now = sum(self.pricer.cost(one) or 0 for one in first_bill(self.requests).versions if one.origin in places)
        return now - sum(self.pricer.cost(one) or 0 for one in versions if one.origin in places)

    def _changed(self, name: str) -> frozenset[int]:
        """The requests whose calls a lever changes by itself, those that only lose their cache too."""
        before = {one.origin: one for one in first_bill(self.requests).versions}
        return frozenset(one.origin for one in self.apply([name]).versions if one != before[one.origin])

    def _fixed(self) -> int:
        """What a student costs whatever it answers."""
        return self.apply(["distill"]).fees

    def excluded(self) -> set[str]:
        """The rule: "A loser without any request left is excluded"."""
        return {name for name, places in self.ceded().items() if places and places >= self.touched(name)}

    def withheld(self) -> set[str]:
        """Levers whose dollars are withheld: replays that do not agree with the bill."""
        table = self.assume.get("prefix_cache")
        is_replayed = table is not None and table.get("policy") in ("system", "history")
        versions = first_bill(self.requests).versions
        return {"prefix_cache"} if is_replayed and prefix.is_withheld(versions, table, self.cache_rules) else set()

    def last(self, names: Iterable[str]) -> dict[str, int]:
        """What each lever adds to all the others."""
        everything = frozenset(names)
        return {name: self.value(everything) - self.value(everything - {name}) for name in everything}

    def shapley(self, names: Iterable[str]) -> dict[str, int]:
        """The mean over all orders of what each lever adds; whole pUSD by largest remainder, lower numbers first."""
        wanted = [name for name in BY_NUMBER if name in set(names)]
        total = dict.fromkeys(wanted, Fraction(0))
        orders = list(permutations(wanted))
        for order in orders:
            for place, name in enumerate(order):
                total[name] += self.value(order[: place + 1]) - self.value(order[:place])
        exact = {name: total[name] / len(orders) for name in wanted}
        made = {name: exact[name].numerator // exact[name].denominator for name in wanted}
        spare = int(sum(exact.values(), Fraction(0))) - sum(made.values())
        for name in sorted(wanted, key=lambda one: -(exact[one] - made[one]))[:spare]:
            made[name] += 1
        return made
