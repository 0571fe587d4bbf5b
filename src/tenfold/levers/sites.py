"""Where self-hosted models run, and what sets of levers would make of it: they change one fleet together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from typing import Any, NamedTuple

import polars as pl

from tenfold.ledger.session import Session
from tenfold.levers.base import Scenario
from tenfold.prices.compiling import with_price
from tenfold.serving.capacity import Load, pace
from tenfold.serving.fleet import micros
from tenfold.serving.hosted import PROVIDER, Hosted
from tenfold.serving.profile import profile
from tenfold.serving.replanning import Hosting, Rehosted, Site, Tokens, rehosted
from tenfold.serving.roofline import interval
from tenfold.slo import Slo
from tenfold.store import steps

# Name in the book of what models cost under sets of levers.
_ELSEWHERE = "fleet-plan"
SCENARIOS: tuple[Scenario, ...] = ("low", "mid", "high")
# A measured pace says something of batches up to this many times its own.
_NEAR = 4
_HOUR_US, _MINUTE_US = 3_600_000_000, 60_000_000
_STRETCHES: dict[str, pl.DataType] = {
    "place": pl.Int32(),
    "price_key": pl.Int32(),
    "since": pl.Datetime("us"),
    "until": pl.Datetime("us"),
}
_MOVES: dict[str, pl.DataType] = {
    "price_key": pl.Int32(),
    "since": pl.Datetime("us"),
    "until": pl.Datetime("us"),
    "moved_key": pl.Int32(),
}


class Place(NamedTuple):
    """A model on the fleet over a stretch of time.

    Args:
        hosted: What the fleet says of it.
        keys: Price keys of its requests.
        site: How it is hosted and what is asked of it; None where that cannot be said.
        reason: Why it cannot.
        is_calibrated: Whether the log's own pace is near enough to the planned one to narrow the interval.
    """

    hosted: Hosted
    keys: tuple[int, ...]
    site: Site | None
    reason: str
    is_calibrated: bool

    @property
    def name(self) -> str:
        """What it is called for people."""
        return f"`{self.hosted.model}`"


Change = Callable[[Place, Scenario], Hosting]


@dataclass(slots=True)
class Sites:
    """A fleet's models in one session, with what levers change of them.

    Args:
        session: The priced session.
        hosted: The fleet's models, by stretches of time.
        slo: The service levels.
    """

    session: Session
    hosted: tuple[Hosted, ...]
    slo: Slo
    changes: dict[str, Mapping[int, Change]] = field(init=False, default_factory=dict[str, "Mapping[int, Change]"])
    """Lever to what it changes, by the number of the place."""
    _places: tuple[Place, ...] | None = field(init=False, default=None)
    _made: dict[tuple[int, frozenset[str], Scenario], Rehosted] = field(
        init=False, default_factory=dict[tuple[int, frozenset[str], Scenario], Rehosted]
    )
    _keys: dict[tuple[int, frozenset[str], Scenario, int], int] | None = field(init=False, default=None)

    @property
    def names(self) -> frozenset[str]:
        """Levers that change the fleet."""
        return frozenset(self.changes)

    @property
    def places(self) -> tuple[Place, ...]:
        """The fleet's models that have requests in the window; known once the log's own bill is laid."""
        if self._places is None:
            features = self.session.engine.fetch("select distinct price_key, feature from lever_base where is_billed")
            by_key: dict[int, set[str | None]] = {}
            for key, feature in features.iter_rows():
                by_key.setdefault(key, set()).add(feature)
            self._places = self._profiled([self._place(one, by_key) for one in self.hosted], "false")
        return self._places

    def rehosted(self, number: int, names: frozenset[str], scenario: Scenario) -> Rehosted:
        """Work out a place under a set of levers.

        Args:
            number: Of the place.
            names: The levers; those that leave the place alone count nothing.
            scenario: Which end of the assumed ranges and of the model's interval holds.

        Returns:
            The hosting. Where a set cannot be (a model that no longer fits), the levers that make it so are left out,
            the last first.
        """
        acting = [name for name in self.changes if name in names and number in self.changes[name]]
        key = (number, frozenset(acting), scenario)
        if key not in self._made:
            place = self.places[number]
            assert place.site is not None
            found = None
            while found is None:
                how = Hosting()
                for name in acting:
                    how = _laid_over(how, self.changes[name][number](place, scenario))
                found = rehosted(place.site, how._replace(pace=factor(place, how, scenario)))
                acting = acting[:-1]
            self._made[key] = found
        return self._made[key]

    def tried(self, number: int, change: Change) -> Rehosted | None:
        """Work out a place under one change, apart from any lever.

        Args:
            number: Of the place.
            change: What is changed.

        Returns:
            The hosting; None where the model does not fit.
        """
        place = self.places[number]
        assert place.site is not None
        return rehosted(place.site, change(place, "mid"))

    def let_wait(self, mark: str) -> None:
        """Tell every place which of its output may wait.

        Args:
            mark: Column of ``lever_base`` that marks those requests.
        """
        self._places = self._profiled(self.places, f"b.{mark}")

    def _profiled(self, places: Sequence[Place], waits: str) -> tuple[Place, ...]:
        """Lay over places how their output comes in, minute by minute."""
        rows = [
            (number, key, naive(place.hosted.since), naive(place.hosted.until))
            for number, place in enumerate(places)
            for key in place.keys
        ]
        self.session.engine.register("lever_hosting_places", pl.DataFrame(rows, schema=_STRETCHES, orient="row"))
        sql = steps.filled("lever_hosting_minutes", waits=waits, places="lever_hosting_places")
        found: dict[int, list[tuple[datetime, int, int]]] = {}
        for number, minute, output, late in self.session.engine.fetch(sql).iter_rows():
            found.setdefault(number, []).append((minute, output or 0, late))
        return tuple(_over_time(place, found.get(number, [])) for number, place in enumerate(places))

    def charge(self, names: frozenset[str], scenario: Scenario) -> int:
        """Give what a set of levers adds to the charges that hang on no request: the GPUs' idle time, then less now.

        Args:
            names: The levers.
            scenario: Which end holds.

        Returns:
            pUSD; negative where less stands idle.
        """
        changed = 0
        for number, place in enumerate(self.places):
            if any(number in self.changes[name] for name in names):
                changed += self.rehosted(number, names, scenario).idle_pusd - place.hosted.idle_pusd
        return changed

    def moves(self, name: str, scenario: Scenario) -> pl.DataFrame:
        """List where a lever moves price keys: from each set of the other levers to the same with it.

        Args:
            name: The lever.
            scenario: Which end holds.

        Returns:
            ``price_key``, ``since``, ``until`` (of the stretch, naive UTC), ``moved_key``.
        """
        keys = self._all_keys()
        rows: list[tuple[Any, ...]] = []
        for number, place in enumerate(self.places):
            if number not in self.changes[name]:
                continue
            since, until = (naive(instant) for instant in (place.hosted.since, place.hosted.until))
            others = [one for one in self.changes if one != name and number in self.changes[one]]
            for own in place.keys:
                for chosen in _subsets(others):
                    before = keys[number, chosen, scenario, own] if chosen else own
                    rows.append((before, since, until, keys[number, chosen | {name}, scenario, own]))
        # a model of several keys, spelt or routed in different ways, has one key elsewhere
        return pl.DataFrame(list(dict.fromkeys(rows)), schema=_MOVES, orient="row")

    def _all_keys(self) -> dict[tuple[int, frozenset[str], Scenario, int], int]:
        """Give every place a price under every set of levers that touches it, all at once."""
        if self._keys is None:
            named: list[tuple[tuple[int, frozenset[str], Scenario, int], dict[str, str]]] = []
            entries: list[dict[str, Any]] = []
            for number, place in enumerate(self.places):
                acting = [name for name in self.changes if number in self.changes[name]]
                for chosen in _subsets(acting):
                    for scenario in _scenarios(chosen):
                        model = f"{number}-{'-'.join(sorted(chosen))}-{scenario}".replace("_", "-")
                        entries.append(_entry(model, self.rehosted(number, chosen, scenario).rates))
                        key = {"provider": _ELSEWHERE, "model": model, "service_tier": "standard", "region": ""}
                        named.extend(((number, chosen, scenario, own), key) for own in place.keys)
            if entries:
                raw = {"provider": _ELSEWHERE, "price": entries}
                self.session.book = with_price(self.session.book, "fleet", raw)
            made = self.session.add_key_list([(which[3], change) for which, change in named])
            self._keys = {which: key for (which, _), key in zip(named, made, strict=True)}
        return self._keys

    def _place(self, one: Hosted, features: Mapping[int, set[str | None]]) -> Place:
        model = one.model.lower()
        matches = self.session.card.matches
        keys = tuple(key for key, provider, *_ in self.session.keys
                     if provider == PROVIDER and key in features and matches[key].model.lower() == model)  # fmt: skip
        kinds = {(pool.gpu, pool.tp, pool.weights, pool.kv, pool.usd_per_hour, pool.max_batch) for pool in one.pools}
        demand = one.demand
        reason = ""
        if not keys or not demand.output_tokens:
            reason = "no priced request of it has output tokens"
        elif len(kinds) > 1:
            reason = f"{len(kinds)} kinds of pools serve it at once: nothing says which request ran on which"
        if reason:
            return Place(one, keys, None, reason, is_calibrated=False)
        served = {feature for key in keys for feature in features[key]}
        limits = [self.slo.limits(feature) for feature in served]
        requests = demand.requests
        load = Load(demand.uncached_tokens / requests, demand.cached_tokens / requests, demand.output_tokens / requests)
        pool = one.pools[0]
        scale, is_near = _measured(one, load)
        site = Site(
            one.deployment,
            one.replicas,
            pool.usd_per_hour,
            Fraction(micros(one.since, one.until), _HOUR_US),
            pool.max_batch,
            load,
            Tokens(demand.uncached_tokens, demand.cached_tokens, demand.output_tokens),
            (),
            (),
            one.busy_ratio,
            _strictest(one.tpot_p95_ms for one in limits),
            _strictest(one.ttft_p95_ms for one in limits),
            scale,
        )
        return Place(one, keys, site, "", is_calibrated=is_near)


def _strictest(limits_ms: Iterable[float | None]) -> float | None:
    """Give the strictest of some limits, in seconds: a replica serves all features, at one batch."""
    finite = [ms for ms in limits_ms if ms is not None and math.isfinite(ms)]
    return min(finite) / 1000 if finite else None


def _measured(one: Hosted, load: Load) -> tuple[float, bool]:
    """Give the log's pace over the modelled one at the same batch, and whether it was measured near full batches."""
    demand = one.demand
    if not demand.busy_s or demand.timed_requests < demand.requests:
        return 1.0, False
    modelled = pace(one.deployment, load, one.batch).tokens_per_s
    in_memory = one.deployment.concurrency(load.resident_tokens)
    return demand.output_tokens / demand.busy_s / modelled, one.batch * _NEAR >= in_memory


def factor(place: Place, how: Hosting, scenario: Scenario) -> float:
    """Give the factor on a modelled pace at one end of the model's interval.

    Args:
        place: Where.
        how: What is changed.
        scenario: Which end.

    Returns:
        The factor, 1 in the middle.
    """
    model = place.hosted.deployment.model
    # a pace measured here says nothing of another GPU; of a mixture of experts, nothing of other numbers either
    is_elsewhere = how.gpu is not None or (model.is_moe and (how.weights is not None or how.kv is not None))
    low, high = interval(place.is_calibrated and not is_elsewhere, model.is_moe)
    return {"low": low, "mid": 1.0, "high": high}[scenario]


def _laid_over(under: Hosting, over: Hosting) -> Hosting:
    """Lay one lever's change over another's; each has its own fields."""
    said = {key: value for key, value in over._asdict().items() if value != Hosting._field_defaults[key]}
    return under._replace(**said)


def _scenarios(chosen: frozenset[str]) -> tuple[Scenario, ...]:
    """Ends of which a set of levers has rates: the empty one has the ledger's own."""
    return SCENARIOS if chosen else ()


def _subsets(names: Iterable[str]) -> list[frozenset[str]]:
    listed = list(names)
    return [frozenset(chosen) for size in range(len(listed) + 1) for chosen in combinations(listed, size)]


def _entry(model: str, rates: Tokens) -> dict[str, Any]:
    """Write rates as an entry of a price file: USD a million tokens, exact; what is written to a cache was computed."""
    per_million = {key: Decimal(pusd) / 1_000_000 for key, pusd in rates._asdict().items()}
    return {
        "model": model,
        "input": per_million["input"],
        "cache_read": per_million["cached"],
        "cache_write": per_million["input"],
        "cache_write_long": per_million["input"],
        "output": per_million["output"],
        "source": "the fleet's bill, shared out by GPU time",
        "checked": date.min,
    }


def naive(instant: datetime) -> datetime:
    """Write an aware instant as the store has it.

    Args:
        instant: The instant.

    Returns:
        Naive UTC.
    """
    return instant.astimezone(UTC).replace(tzinfo=None)


def _over_time(place: Place, minutes: Iterable[tuple[datetime, int, int]]) -> Place:
    """Lay a place's output over the time of its stretch."""
    if place.site is None:
        return place
    since, until = place.hosted.since, place.hosted.until
    counted = ((micros(since, minute.replace(tzinfo=UTC)) // _MINUTE_US, *rest) for minute, *rest in minutes)
    found = profile(((number, output, late) for number, output, late in counted), (until - since).total_seconds())
    return place._replace(site=place.site._replace(**found._asdict()))
