"""The reading of a bill: shares, ratios, what they bound, and the plain sentences that say so."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

from tenfold.analysis.composition.in_flight import Concurrency
from tenfold.display import counted, minute, name_of, number, percent, ratio
from tenfold.ledger import KEY_COLUMNS, Coverage
from tenfold.money import shown, usd_text
from tenfold.prices.meters import INPUT_METERS, OUTPUT_METERS
from tenfold.tables import card

# What a better prompt cache can still change: reads are discounted already, writes are what they cost.
UNREAD_METERS = ("uncached_input", "cache_write", "cache_write_long")
DISCOUNT_TIERS = ("batch", "flex")
DIMENSIONS = ("team", "feature", "project", "environment", *KEY_COLUMNS)


class Item(NamedTuple):
    """One value of a dimension, and what it costs.

    Args:
        value: The value; None where the log says nothing.
        cost_pusd: Cost of its priced requests.
        requests: Its billable requests.
        unpriced_requests: Those of them without a price.
    """

    value: str | None
    cost_pusd: int
    requests: int
    unpriced_requests: int


class Bound(NamedTuple):
    """What a share of the bill says about every lever of a kind.

    Args:
        levers: Which levers.
        saves_at_most: The largest share of spend that they can save together.
        because: The share that bounds them.
    """

    levers: str
    saves_at_most: Fraction
    because: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """Known tokens of billable requests; ratios are None where nothing is known."""

    input_tokens: int
    output_tokens: int
    paired_input_tokens: int
    paired_output_tokens: int
    read_known_tokens: int
    cache_read_tokens: int
    write_known_tokens: int
    cache_write_tokens: int
    reasoning_known_tokens: int
    reasoning_tokens: int

    @property
    def input_output_ratio(self) -> Fraction | None:
        """Input to output tokens, over requests where both are known."""
        return _part(self.paired_input_tokens, self.paired_output_tokens)

    @property
    def cache_hit_ratio(self) -> Fraction | None:
        """Share of input read from a prompt cache, where the log tells."""
        return _part(self.cache_read_tokens, self.read_known_tokens)

    @property
    def cache_unknown_ratio(self) -> Fraction | None:
        """Share of input tokens for which the log does not tell whether they were cached."""
        return _part(self.input_tokens - self.read_known_tokens, self.input_tokens)

    @property
    def cache_write_ratio(self) -> Fraction | None:
        """Share of input written to a prompt cache, where the log tells."""
        return _part(self.cache_write_tokens, self.write_known_tokens)

    @property
    def reasoning_ratio(self) -> Fraction | None:
        """Share of output that is reasoning, where the log tells."""
        return _part(self.reasoning_tokens, self.reasoning_known_tokens)


@dataclass(frozen=True, slots=True)
class Reading:
    """A bill read for what bounds its levers. Money is exact; shares are fractions of ``spend_pusd``.

    Args:
        spend_pusd: Cost of everything priced.
        requests: Billable requests.
        first: Start of the first request (aware), or None.
        last: Start of the last one.
        zone: Zone that times are written in.
        meters: Cost by meter, in meter order, for meters that cost anything.
        dimensions: Items by dimension, dearest first, for dimensions that the log fills.
        tokens: Token counts and their ratios.
        retries: Billable retries; None where the log does not mark them.
        retries_pusd: What they cost.
        concurrency: Requests in flight; None when not asked for.
        coverage: What is priced.
    """

    spend_pusd: int
    requests: int
    first: datetime | None
    last: datetime | None
    zone: str
    meters: dict[str, int]
    dimensions: dict[str, tuple[Item, ...]]
    tokens: Tokens
    retries: int | None
    retries_pusd: int | None
    concurrency: Concurrency | None
    coverage: Coverage

    def share(self, *meters: str) -> Fraction | None:
        """Share of spend that some meters make up.

        Args:
            meters: Meter names.

        Returns:
            The share; None for a bill of zero.
        """
        return _part(sum(self.meters.get(meter, 0) for meter in meters), self.spend_pusd)

    def tier_share(self, *tiers: str) -> Fraction | None:
        """Share of spend at some service tiers.

        Args:
            tiers: Tier names.

        Returns:
            The share; None for a bill of zero.
        """
        items = self.dimensions.get("service_tier", ())
        return _part(sum(item.cost_pusd for item in items if item.value in tiers), self.spend_pusd)

    def period(self) -> str:
        """Write the days that the requests span.

        Returns:
            Text such as ``"2026-07-01 to 2026-10-01 (exclusive) UTC"``.
        """
        if self.first is None or self.last is None:
            return "no request has a time"
        place = ZoneInfo(self.zone)
        after = self.last.astimezone(place).date() + timedelta(days=1)
        return f"{self.first.astimezone(place).date()} to {after} (exclusive) {self.zone}"

    def bounds(self) -> tuple[Bound, ...]:
        """Say what the shares bound, tightest statement per kind of lever.

        Returns:
            The bounds; none for a bill of zero.
        """
        inputs, outputs = self.share(*INPUT_METERS), self.share(*OUTPUT_METERS)
        unread, discounted = self.share(*UNREAD_METERS), self.tier_share(*DISCOUNT_TIERS)
        if inputs is None or outputs is None or unread is None or discounted is None:
            return ()
        return (
            Bound("input-side", inputs, f"output is {percent(outputs)} of cost{self._others(inputs, outputs)}"),
            Bound("output-side", outputs, f"input is {percent(inputs)} of cost{self._others(inputs, outputs)}"),
            Bound("prompt-cache", unread, f"uncached input and cache writes are {percent(unread)} of cost"),
            Bound("batch", 1 - discounted, f"batch and flex already carry {percent(discounted)} of cost"),
        )

    def _others(self, inputs: Fraction, outputs: Fraction) -> str:
        return f", other meters {percent(1 - inputs - outputs)}" if inputs + outputs < 1 else ""

    def sentences(self) -> list[str]:
        """Say it in plain lines, the most useful first.

        Returns:
            Lines such as ``input:output 14.2:1 · cache-hit share 61 % · output is 44 % of cost: no input-side lever
            can save more than 56 %``.
        """
        lines = [self._headline()]
        bounds = {bound.levers: bound for bound in self.bounds()}
        if bounds:
            outputs, unread = bounds["output-side"], bounds["prompt-cache"]
            lines.append(
                f"no output-side lever can save more than {percent(outputs.saves_at_most)}; "
                f"{unread.because}: no better prompt cache can save more than that"
            )
        lines += [line for line in (self._largest(), self._tiers(), self._retried(), self._in_flight()) if line]
        return lines

    def _headline(self) -> str:
        tokens = self.tokens
        hit = f"cache-hit share {percent(tokens.cache_hit_ratio)}"
        if tokens.cache_unknown_ratio and tokens.cache_hit_ratio is not None:
            hit += f" (unknown for {percent(tokens.cache_unknown_ratio)} of input)"
        parts = [f"input:output {ratio(tokens.input_output_ratio)}", hit]
        parts += [
            f"{bound.because}: no input-side lever can save more than {percent(bound.saves_at_most)}"
            for bound in self.bounds()[:1]
        ]
        return " · ".join(parts)

    def _largest(self) -> str:
        named: list[str] = []
        for dimension in ("team", "feature", "model"):
            top = self.dimensions.get(dimension, ())[:1]
            if top and top[0].cost_pusd and self.spend_pusd:
                share = percent(Fraction(top[0].cost_pusd, self.spend_pusd))
                named.append(f"{dimension} {name_of(dimension, top[0].value)} {share}")
        return (
            f"largest shares: {', '.join(named)}; a lever on one of them alone can save no more than its share"
            if named
            else ""
        )

    def _tiers(self) -> str:
        discounted = self.tier_share(*DISCOUNT_TIERS)
        return "" if discounted is None else f"batch and flex carry {percent(discounted)} of cost"

    def _retried(self) -> str:
        if self.retries is None or self.retries_pusd is None:
            return "retries: the log does not mark them"
        share = percent(_part(self.retries_pusd, self.spend_pusd) or Fraction(0), 1)
        return f"retries: {counted(self.retries, 'request')}, {shown(self.retries_pusd)} ({share} of cost)"

    def _in_flight(self) -> str:
        found = self.concurrency
        if found is None:
            return ""
        if found.average is None or found.peak_at is None:
            return "concurrency: unknown, no request has both a start and a duration"
        missing = _part(found.requests - found.timed_requests, found.requests)
        gap = f"; duration unknown for {percent(missing)} of requests, so at least this" if missing else ""
        peak = f"{found.peak} at the peak ({minute(found.peak_at, self.zone)})"
        return f"in flight at once: {number(found.average, 2)} on average, {peak}{gap}"

    def __repr__(self) -> str:
        """Say what it is in one line."""
        return f"<Reading {self._bill()}>"

    def _repr_html_(self) -> str:
        """Show the sentences as a list in a notebook."""
        return card(self._bill(), self.sentences())

    def _bill(self) -> str:
        total = "no price" if self.coverage.is_unpriced else shown(self.spend_pusd)
        priced = percent(self.coverage.requests_ratio)
        return f"{total}, {counted(self.requests, 'request')}, {priced} priced, {self.period()}"

    def as_dict(self) -> dict[str, Any]:
        """Give the reading as one JSON document: money as decimal strings, shares as numbers.

        Returns:
            The document.
        """
        found = self.concurrency
        return {
            "spend_usd": usd_text(self.spend_pusd),
            "requests": self.requests,
            "first_ts": None if self.first is None else self.first.isoformat(),
            "last_ts": None if self.last is None else self.last.isoformat(),
            "meters": {
                name: {"cost_usd": usd_text(cost), "share": _float(self.share(name))}
                for name, cost in self.meters.items()
            },
            "input_share": _float(self.share(*INPUT_METERS)),
            "output_share": _float(self.share(*OUTPUT_METERS)),
            "input_output_ratio": _float(self.tokens.input_output_ratio),
            "cache_hit_ratio": _float(self.tokens.cache_hit_ratio),
            "cache_unknown_ratio": _float(self.tokens.cache_unknown_ratio),
            "cache_write_ratio": _float(self.tokens.cache_write_ratio),
            "reasoning_ratio": _float(self.tokens.reasoning_ratio),
            "batch_flex_share": _float(self.tier_share(*DISCOUNT_TIERS)),
            "bounds": [{**bound._asdict(), "saves_at_most": float(bound.saves_at_most)} for bound in self.bounds()],
            "dimensions": {
                name: [
                    {
                        "value": item.value,
                        "cost_usd": usd_text(item.cost_pusd),
                        "share": _float(_part(item.cost_pusd, self.spend_pusd)),
                        "requests": item.requests,
                        "unpriced_requests": item.unpriced_requests,
                    }
                    for item in items
                ]
                for name, items in self.dimensions.items()
            },
            "retries": None
            if self.retries is None
            else {"requests": self.retries, "cost_usd": usd_text(self.retries_pusd)},
            "concurrency": None
            if found is None
            else {
                "average": _float(found.average),
                "peak": found.peak,
                "peak_at": None if found.peak_at is None else found.peak_at.isoformat(),
                "bucket_s": found.bucket_s,
                "requests": found.requests,
                "timed_requests": found.timed_requests,
            },
            "coverage": self.coverage.as_dict(),
            "sentences": self.sentences(),
        }


def _part(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


def _float(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
