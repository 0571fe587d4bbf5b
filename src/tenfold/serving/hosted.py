"""A ledger with a fleet under it: self-hosted requests priced by what GPUs cost, idle time as charges of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tenfold.display import counted, number
from tenfold.errors import AssumptionError, ServingError
from tenfold.ledger import Charge, Ledger, Window
from tenfold.money import divided, share_out
from tenfold.prices import PriceBook
from tenfold.prices.compiling import with_price
from tenfold.prices.words import canonical_provider
from tenfold.serving import allocation, hosted_notes, rate_card, tracing
from tenfold.serving.allocation import Busy, GpuSeconds, Rates
from tenfold.serving.demand import Demand, Hour, demands, lay, unserved
from tenfold.serving.fleet import PROVIDER, Fleet, Period, Pool, Stretch, micros
from tenfold.serving.memory import Deployment, default_caps

__all__ = [
    "PROVIDER",
    "Charge",
    "Demand",
    "Fleet",
    "GpuSeconds",
    "Hosted",
    "HostedLedger",
    "Hour",
    "Pool",
    "Rates",
    "on_fleet",
]


@dataclass(frozen=True, slots=True)
class Hosted:
    """A model on a fleet, over a stretch of time in which its pools stay the same.

    Args:
        model: The model, as the fleet file calls it.
        pools: Pools that run throughout the stretch.
        deployment: One replica; where pools differ, of the one that costs most.
        demand: What was asked of it.
        gpu_s: GPU seconds a token, by the roofline at ``batch``; where pools differ, their mean by cost.
        batch: Requests under way in a busy replica, on average; what ``gpu_s.output`` is at.
        busy_ratio: Share of the replicas' time in which they had a request.
        hours: Length of the stretch.
        bill_pusd: Cost of the pools over the stretch.
        busy_pusd: The part of it for the time in which replicas had a request: what ``rates`` share out.
        rates: What a token costs.
        idle_pusd: What requests do not carry: ``bill_pusd`` less the cost of the stretch's requests, exactly.
        modelled_ratio: GPU time that the roofline asks for, over the GPU time of busy replicas; None without requests.
        since: Start of the stretch (aware).
        until: Its end, exclusive.
        label: ``measured`` where durations say how busy it was, else ``modelled``.
        notes: What a reader must know.
    """

    model: str
    pools: tuple[Pool, ...]
    deployment: Deployment
    demand: Demand
    gpu_s: GpuSeconds
    batch: float
    busy_ratio: float
    hours: float
    bill_pusd: int
    busy_pusd: int
    rates: Rates
    idle_pusd: int
    modelled_ratio: float | None
    since: datetime
    until: datetime
    label: Literal["measured", "modelled"]
    notes: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """Replicas of all its pools."""
        return sum(pool.replicas for pool in self.pools)

    @property
    def gpus(self) -> int:
        """GPUs of all its pools."""
        return sum(pool.gpus for pool in self.pools)

    @property
    def loaded_pusd(self) -> int | None:
        """Price of a token, idle time included, in pUSD a million: the bill over all tokens; None without tokens."""
        tokens = self.demand.input_tokens + self.demand.output_tokens
        return divided(self.bill_pusd * 10**6, tokens) if tokens else None


class HostedLedger(Ledger):
    """A ledger whose self-hosted requests are priced by a fleet; its bill is their cost and the idle charges.

    Args:
        base: The ledger that the fleet is laid under.
        book: Its price book, with the fleet's rate card.
        fleet: The fleet.
        hosted: Each model on it, by stretches of time.
        period: The window, and what the log covers of it.
        warnings: Pools that no request of the log can be on.
        notes: What else a reader must know, of the fleet as a whole.
    """

    def __init__(
        self,
        base: Ledger,
        book: PriceBook,
        *,
        fleet: Fleet,
        hosted: Sequence[Hosted],
        period: Period,
        warnings: Sequence[str] = (),
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(base.log, book, base.window)
        self.base = base
        self.fleet = fleet
        self.hosted = tuple(hosted)
        self.period = period
        self.warnings = tuple(warnings)
        self.notes = (*warnings, *notes)
        # each pool's bill, and its part of the idle time by what it costs
        bills, idle = dict.fromkeys(range(len(fleet.pools)), 0), dict.fromkeys(range(len(fleet.pools)), 0)
        for one in self.hosted:
            places = [place for place, pool in enumerate(fleet.pools) if any(pool is own for own in one.pools)]
            parts = [fleet.pools[place].bill_pusd(one.since, one.until) for place in places]
            shares = share_out(one.idle_pusd, parts) if one.bill_pusd else parts
            for place, part, share in zip(places, parts, shares, strict=True):
                bills[place] += part
                idle[place] += share
        self.pool_bills = tuple(bills.values())
        self.charges = tuple(
            Charge(pool.name, "idle", pusd, PROVIDER, pool.model)
            for pool, pusd in zip(fleet.pools, idle.values(), strict=True)
        )

    @property
    def span(self) -> tuple[datetime, datetime]:
        """First instant and end of the bill."""
        if not self.hosted:
            return self.period.covered or (self.period.since, self.period.until)
        return min(one.since for one in self.hosted), max(one.until for one in self.hosted)

    @property
    def bill_pusd(self) -> int:
        """What the fleet costs over its span: its requests and its idle time."""
        return sum(one.bill_pusd for one in self.hosted)

    @property
    def idle_pusd(self) -> int:
        """What of it no request carries."""
        return sum(one.idle_pusd for one in self.hosted)

    def charges_by_month(self) -> dict[date, int]:
        """Cut idle time into calendar months of the window's zone, each stretch's by the hours in them.

        Returns:
            First day of the month to pUSD; together all charges.
        """
        place = ZoneInfo(self.window.zone)
        found: dict[date, int] = {}
        for one in self.hosted:
            edges = [one.since]
            while (after := _next_month(edges[-1], place)) < one.until:
                edges.append(after)
            lasts = [micros(*span) for span in pairwise([*edges, one.until])]
            for start, part in zip(edges, share_out(one.idle_pusd, lasts), strict=True):
                month = start.astimezone(place).date().replace(day=1)
                found[month] = found.get(month, 0) + part
        return found

    def explain(self, request_id: str) -> dict[str, Any]:
        """Trace one request's cost; a self-hosted one's further to its pools, their bill and the rate that follows.

        Args:
            request_id: Provider's id of the request, or its place in the log, ``FILE:LINE``.

        Returns:
            The trace, with the keys of ``tenfold explain --json``; ``fleet{}`` of a request that a pool served.

        Raises:
            ColumnError: No request, or more than one, has that id or place.
        """
        made = super().explain(request_id)
        asked, model = made["request"], made["how_matched"]["model"]
        if canonical_provider(asked["provider"] or "") != PROVIDER or not asked["ts"] or not model:
            return made
        at = datetime.fromisoformat(asked["ts"])
        own = (one for one in self.hosted if one.model.lower() == model.lower() and one.since <= at < one.until)
        found = next(own, None)
        return made if found is None else {**made, "fleet": tracing.traced(found)}

    def within(self, window: Window) -> HostedLedger:
        """Price another window of the same log: the fleet's bill, and so its rates, are of that window.

        Args:
            window: Which requests, and how days are cut.

        Returns:
            The ledger of that window.
        """
        return on_fleet(self.base.within(window), self.fleet)


def on_fleet(ledger: Ledger, fleet: Fleet | str | Path) -> HostedLedger:
    """Price a log's self-hosted requests by what the fleet that serves them costs.

    The bill is GPUs x price x hours over the part of the ledger's window that the log covers, from the first start to
    the last end of all its requests, at whatever provider; where a pool's ``from`` or ``to`` says more, that far within
    the window that was asked for. Its busy share is carried by the requests, by GPU time; the rest is idle. Time on
    requests that are not billed (failed ones), or that were under way before the window began, counts as idle.

    Args:
        ledger: The priced log; requests are the fleet's where ``provider`` is ``self-hosted``.
        fleet: The fleet, or its file.

    Returns:
        A ledger in which those requests have prices, with idle time in ``charges``: together exactly the fleet's bill.

    Raises:
        ServingError: The fleet cannot be used, was busier than its size allows, or would be billed for more than
            twenty years; names pool and ratio.
        AssumptionError: The ledger prices everything at one instant; a rate card of a window has no other instant.
        PriceFileError: The price book has prices of self-hosted models already.
        NotEvaluable: No pool matches any self-hosted request of the log, none of them has a time, or the log has
            nothing in the window.
    """
    if isinstance(fleet, Fleet):
        fleet.check()
    else:
        fleet = Fleet.load(fleet)
    if ledger.price_at is not None:
        raise AssumptionError("a fleet's rates are those of its window: leave out --price-at (price_at) with a fleet")
    base = ledger.base if isinstance(ledger, HostedLedger) else ledger
    models = tuple(dict.fromkeys(pool.model.lower() for pool in fleet.pools))
    kinds = rate_card.kinds(base.log)
    # any price will do to cut the tokens as the ledger cuts them
    entries = [rate_card.entry(model, Rates(0, 0, 0), "to cut the tokens", date.min) for model in models]
    probe = with_price(base.book, fleet.place, {"provider": PROVIDER, "price": rate_card.for_all(entries, kinds)})
    with Ledger(base.log, probe, base.window).session() as session:
        seen = lay(session, models)
        hosted_notes.check(fleet, seen, session.keys)
        period = hosted_notes.period(base.window, seen)
        stretches = fleet.stretches(period)
        hosted_notes.check_length(fleet, stretches, period, seen, base.window.zone)
        asked = demands(session, models, stretches)
        others, served = unserved(session)
    hosted = [_hosted(fleet, one, demand) for one, demand in zip(stretches, asked, strict=True)]
    card = {"provider": PROVIDER, "price": rate_card.for_all(rate_card.entries(hosted), kinds)}
    version = f"{base.book.version}+{fleet.version}"
    book = with_price(base.book, fleet.place, card, version=version, unknown=rate_card.unknown(fleet))
    unpriced = served - sum(demand.requests for demand in asked)
    made = HostedLedger(
        base, book, fleet=fleet, hosted=hosted, period=period, warnings=hosted_notes.strangers(fleet, seen)
    )
    made.notes += hosted_notes.notes(made, seen, others, unpriced)
    return made


def _next_month(instant: datetime, place: ZoneInfo) -> datetime:
    """Give the first instant of the month after, in a zone."""
    first = instant.astimezone(place).date().replace(day=1)
    after = (first + timedelta(days=32)).replace(day=1)
    return datetime.combine(after, time(), place).astimezone(UTC)


# A pod that ends while the next one starts makes a replica count twice for moments; beyond this the fleet is too small.
_OVER = Fraction(105, 100)
# Share of requests that must have a duration for the busy share to be measured.
_TIMED = Fraction(9, 10)
# Roofline over busy GPU time: outside, one of the two is wrong (three times the interval of an uncalibrated roofline).
_NEAR = (0.25, 1.75)


def _hosted(fleet: Fleet, stretch: Stretch, demand: Demand) -> Hosted:
    bills = [pool.bill_pusd(stretch.since, stretch.until) for pool in stretch.pools]
    pools, bill = stretch.pools, sum(bills)
    main = max(pools, key=lambda pool: pool.gpus * pool.pusd_per_hour)
    lasts_us = micros(stretch.since, stretch.until)
    busy, seconds, batch = Busy(Fraction(0), 0.0), GpuSeconds(0.0, 0.0, 0.0), 0.0
    label: Literal["measured", "modelled"] = "measured"
    notes = hosted_notes.assumed(pools)
    if demand.requests:
        load = allocation.load_of(demand)
        most = allocation.room(main.deployment, load, main.max_batch or default_caps(main.deployment.gpu).sequences)
        replicas = sum(pool.replicas for pool in pools)
        label = "measured" if demand.busy_us and demand.timed_requests >= _TIMED * demand.requests else "modelled"
        if label == "measured":
            busy = allocation.measured(demand, replicas, lasts_us)
        else:
            busy = allocation.modelled(demand, main.deployment, replicas, most)
        batch = min(busy.batch, most)
        seconds = allocation.seconds_a_token(pools, bills, load, batch)
        busy, more = _checked(f'{fleet.place}, model "{main.model}"', busy, label, replicas, demand)
        notes += [*more, *hosted_notes.said(label, busy, most, demand, pools)]
    busy_pusd = int(bill * busy.ratio)
    rates = allocation.rate_card(busy_pusd, demand, seconds)
    gpu_s = float(busy.ratio) * lasts_us / 1e6 * sum(pool.gpus for pool in pools)
    ratio = allocation.gpu_time(demand, seconds) / gpu_s if gpu_s else None
    if ratio is not None and not _NEAR[0] <= ratio <= _NEAR[1]:
        notes.append(
            f"by the roofline its tokens take {number(ratio, 2)} times the GPU time in which replicas were busy; check "
            "gpu, tp, weights and replicas of the pool (waiting in a queue also makes replicas look busy)"
        )
    return Hosted(
        model=main.model,
        pools=pools,
        deployment=main.deployment,
        demand=demand,
        gpu_s=seconds,
        batch=batch,
        busy_ratio=float(busy.ratio),
        hours=lasts_us / 3.6e9,
        bill_pusd=bill,
        busy_pusd=busy_pusd,
        rates=rates,
        idle_pusd=bill - rates.cost_pusd(demand),
        modelled_ratio=ratio,
        since=stretch.since,
        until=stretch.until,
        label=label,
        notes=tuple(notes),
    )


def _checked(where: str, busy: Busy, label: str, replicas: int, demand: Demand) -> tuple[Busy, list[str]]:
    """Refuse a demand that the fleet cannot have served; one that is a little over is a full fleet, and is said."""
    if busy.ratio <= 1:
        return busy, []
    times = number(busy.ratio, 2)
    if label == "modelled":
        said = (
            f"by the roofline its tokens take {times} times what {counted(replicas, 'replica')} can give in this window"
        )
    else:
        seen = f"{demand.replicas_seen} replicas in the log"
        said = f"{seen} were busy for {times} times the hours that the fleet's {replicas} have"
    if busy.ratio > _OVER:
        raise ServingError(f"{where}: {said}; list every pool that ran, with its replicas, from and to")
    return busy._replace(ratio=Fraction(1)), [f"{said}: taken for busy throughout"]
