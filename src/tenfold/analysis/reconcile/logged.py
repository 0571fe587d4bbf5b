"""What the log says: units and cost by half hour, so that a day can be cut anywhere."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from itertools import accumulate
from typing import Any, NamedTuple

from tenfold.ledger import Ledger, Window
from tenfold.ledger.metering import total_words
from tenfold.prices.meters import Meter
from tenfold.prices.naming import model_key
from tenfold.store import schema, steps

SLOT = timedelta(minutes=30)
_A_DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 -- naive UTC, as stored
# How the log says a request is billed; those that it counts in its bill.
BILLED = ("plain", "retry", "failed", "repeat")
FREE = ("not_billed", "gateway")


class Class(NamedTuple):
    """What requests of one kind have in common.

    Args:
        tier: Service tier.
        billing: One of ``BILLED`` or ``FREE``.
        state: ``priced``, ``unpriced`` or ``missing``.
    """

    tier: str
    billing: str
    state: str


@dataclass(slots=True)
class Sizes:
    """How large single requests are.

    Args:
        requests: How many.
        units: Sum, sum of squares and largest of their units.
        pusd: The same of their cost.
    """

    requests: int = 0
    units: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    pusd: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])

    def add(self, requests: int, units: Iterable[float], pusd: Iterable[float]) -> None:
        """Count more requests."""
        self.requests += requests
        for mine, more in ((self.units, units), (self.pusd, pusd)):
            total, squares, largest = more
            mine[0], mine[1], mine[2] = mine[0] + total, mine[1] + squares, max(mine[2], largest)


class Row(NamedTuple):
    """One row of ``reconcile_slots.sql``.

    Args:
        slot: Half hours since 1970.
        provider: Who bills.
        model: The book's name of it.
        about: Tier, billing and state.
        is_stream: Streamed, or not known.
        requests: How many.
        meters: Meter to units, pUSD, squares and largest of both.
    """

    slot: int
    provider: str
    model: str
    about: Class
    is_stream: bool
    requests: int
    meters: Mapping[str, tuple[int, int, float, float, float, float]]


@dataclass(frozen=True, slots=True)
class Logged:
    """The log of a window and a day around it.

    Args:
        rows: Half hours.
        names: Provider to the model names of the log, each with the book's name.
        owners: (provider, ``project`` or ``api_key_id``) to the values that the log has.
    """

    rows: tuple[Row, ...]
    names: Mapping[str, Mapping[str, str]]
    owners: Mapping[tuple[str, str], frozenset[str]]

    @property
    def providers(self) -> tuple[str, ...]:
        """Who bills, in order."""
        return tuple(sorted(self.names))

    def of(self, provider: str) -> Iterator[Row]:
        """Give the rows that one provider bills."""
        return (row for row in self.rows if row.provider == provider)

    def billed_pusd(self, since: datetime | None, until: datetime | None) -> int:
        """Sum what the log counts in its bill.

        Args:
            since: First instant, naive UTC.
            until: Instant after the last.

        Returns:
            pUSD.
        """
        first = -1 if since is None else slot_of(since)
        last = 1 << 62 if until is None else slot_of(until)
        return sum(
            one[1]
            for row in self.rows
            if first <= row.slot < last and row.about.billing in BILLED
            for one in row.meters.values()
        )


def slot_of(instant: datetime) -> int:
    """Number the half hour that an instant is in.

    Args:
        instant: Naive UTC.

    Returns:
        Half hours since 1970.
    """
    return (instant - EPOCH) // SLOT


def start_of(slot: int) -> datetime:
    """Give the first instant of a half hour.

    Args:
        slot: Its number.

    Returns:
        Naive UTC.
    """
    return EPOCH + slot * SLOT


def read(ledger: Ledger, since: datetime | None, until: datetime | None) -> Logged:
    """Price the log by half hours, a day more on both sides.

    Args:
        ledger: The priced log.
        since: First instant wanted, naive UTC, or None.
        until: Instant after the last, or None.

    Returns:
        What the log says.
    """
    window = Window(since and (since - _A_DAY).replace(tzinfo=UTC), until and (until + _A_DAY).replace(tzinfo=UTC))
    with ledger.within(window).session() as session:
        columns = [name for name in schema.names("requests") if name not in ("is_billable", "gateway_cache_hit")]
        steps.run(session.engine, "reconcile_requests", columns=",\n  ".join(columns))
        session.price("reconcile_requests", "reconcile_priced")
        used = session.meters
        sql = steps.filled("reconcile_slots", priced="reconcile_priced", sums=_sums(used))
        frame = session.engine.fetch(sql)
        owned = session.engine.fetch(
            "select distinct price_key, project, api_key_id from requests "
            "where project is not null or api_key_id is not null"
        )
        keys = {key: (provider, model, tier) for key, provider, model, tier, _ in session.keys}
    names: dict[str, dict[str, str]] = defaultdict(dict)
    for provider, model, _ in keys.values():
        names[provider][model] = model_key(ledger.book, provider, model)
    rows: list[Row] = []
    for row in frame.iter_rows(named=True):
        provider, model, tier = keys[row["price_key"]]
        rows.append(
            Row(
                slot_of(datetime.combine(_day(row["day"]), time())) + int(row["half_hour"]),
                provider,
                names[provider][model],
                Class(tier, row["billing"], row["state"]),
                row["is_stream"],
                row["requests"],
                {meter.name: _amounts(row, meter.name) for meter in used if row[f"{meter.name}_units"]},
            )
        )
    owners: dict[tuple[str, str], set[str]] = defaultdict(set)
    for key, *values in owned.rows():
        for name, value in zip(("project", "api_key_id"), values, strict=True):
            if value is not None and key in keys:
                owners[keys[key][0], name].add(value)
    return Logged(tuple(rows), dict(names), {key: frozenset(values) for key, values in owners.items()})


def _day(value: date) -> date:
    return value.date() if isinstance(value, datetime) else value


def _amounts(row: Mapping[str, Any], name: str) -> tuple[int, int, float, float, float, float]:
    return (
        int(row[f"{name}_units"] or 0),
        int(row[f"{name}_pusd"] or 0),
        float(row[f"{name}_units_squares"] or 0),
        float(row[f"{name}_units_most"] or 0),
        float(row[f"{name}_pusd_squares"] or 0),
        float(row[f"{name}_pusd_most"] or 0),
    )


def _sums(used: Iterable[Meter]) -> str:
    """Write the sums of each meter: exact ones as the ledger takes them, squares for how much requests differ."""
    meters = tuple(used)
    words = total_words(meters)
    parts = [words["unit_totals"], words["cost_totals"]]
    for meter in meters:
        for what in ("units", "pusd"):
            value = f"cast({meter.name}_{what} as double)"
            parts.append(f"sum({value} * {value}) as {meter.name}_{what}_squares")
            parts.append(f"max({value}) as {meter.name}_{what}_most")
    return ",\n  ".join(parts)


class Sums:
    """Amounts by half hour, summed once so that any span is a difference."""

    __slots__ = ("_held", "pusd", "slots", "units")

    def __init__(self) -> None:
        self._held: dict[int, tuple[int, int]] = {}
        self.slots: list[int] = []
        self.units = [0]
        self.pusd = [0]

    def add(self, slot: int, units: int, pusd: int) -> None:
        """Count an amount; ``close`` comes after the last."""
        known = self._held.get(slot, (0, 0))
        self._held[slot] = known[0] + units, known[1] + pusd

    def close(self) -> None:
        """Sum up."""
        self.slots = sorted(self._held)
        self.units = list(accumulate((self._held[slot][0] for slot in self.slots), initial=0))
        self.pusd = list(accumulate((self._held[slot][1] for slot in self.slots), initial=0))

    def between(self, since: int, until: int) -> tuple[int, int]:
        """Give units and pUSD of the half hours from one to before another."""
        a, b = bisect_left(self.slots, since), bisect_left(self.slots, until)
        return (self.units[b] - self.units[a], self.pusd[b] - self.pusd[a]) if b > a else (0, 0)


class Series:
    """One (model, meter) of a provider's log, by class of request.

    Args:
        model: The book's name; None for all models together.
        meter: Meter as the invoice tells it; None for all together.
    """

    __slots__ = ("classes", "meter", "model", "sizes")

    def __init__(self, model: str | None, meter: str | None) -> None:
        self.model = model
        self.meter = meter
        self.classes: dict[Class, Sums] = {}
        self.sizes: dict[bool, Sizes] = {}

    def between(self, since: int, until: int, wanted: Callable[[Class], bool]) -> tuple[int, int]:
        """Give units and pUSD of some classes between two half hours."""
        units = pusd = 0
        for about, sums in self.classes.items():
            if wanted(about):
                more, cost = sums.between(since, until)
                units, pusd = units + more, pusd + cost
        return units, pusd


class Book:
    """A provider's log as series that an invoice's rows can be held against.

    Args:
        rows: The provider's half hours.
        series_of: Gives (model, meter) as the invoice tells it.
    """

    def __init__(self, rows: Iterable[Row], series_of: Callable[[str, str], tuple[str | None, str | None]]) -> None:
        self.series: dict[tuple[str | None, str | None], Series] = {}
        # Requests without usage, by model as the invoice tells it: class, is_stream, how many by half hour.
        missing: dict[tuple[str | None, Class, bool], Sums] = {}
        self.requests = Sums()
        counts: dict[tuple[str | None, bool], int] = defaultdict(int)
        for row in rows:
            if row.about.billing in BILLED:
                self.requests.add(row.slot, row.requests, 0)
            if row.about.state == "missing":
                key = (series_of(row.model, "")[0], row.about, row.is_stream)
                missing.setdefault(key, Sums()).add(row.slot, row.requests, 0)
                continue
            self._add(row, series_of)
            if row.about.billing in BILLED and row.about.state == "priced":
                counts[series_of(row.model, "")[0], row.is_stream] += row.requests
        for one in self.series.values():
            for sums in one.classes.values():
                sums.close()
            for is_stream in (True, False):
                one.sizes.setdefault(is_stream, Sizes()).requests = counts[one.model, is_stream]
        for sums in (*missing.values(), self.requests):
            sums.close()
        self.missing: dict[str | None, list[tuple[Class, bool, Sums]]] = defaultdict(list)
        for (model, about, is_stream), sums in missing.items():
            self.missing[model].append((about, is_stream, sums))

    def without_usage(
        self, model: str | None, span: tuple[int, int], wanted: Callable[[Class], bool]
    ) -> Iterator[tuple[bool, int]]:
        """Count requests without usage: streamed or not, and how many."""
        for about, is_stream, sums in self.missing.get(model, ()):
            count = sums.between(*span)[0] if wanted(about) else 0
            if count:
                yield is_stream, count

    def _add(self, row: Row, series_of: Callable[[str, str], tuple[str | None, str | None]]) -> None:
        for meter, (units, pusd, unit_squares, unit_most, pusd_squares, pusd_most) in row.meters.items():
            key = series_of(row.model, meter)
            one = self.series.setdefault(key, Series(*key))
            one.classes.setdefault(row.about, Sums()).add(row.slot, units, pusd)
            if row.about.billing in BILLED and row.about.state == "priced":
                sizes = one.sizes.setdefault(row.is_stream, Sizes())
                sizes.add(0, (units, unit_squares, unit_most), (pusd, pusd_squares, pusd_most))
