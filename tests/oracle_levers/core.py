"""What all levers share: versions of requests, their price, rounding, times and the ends of ranges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from oracle import find_entry, is_billed, price_request
from oracle_book import Book, Entry, instant, read_book

Request = Mapping[str, Any]
Table = Mapping[str, Any]

DAY_US = 86_400_000_000
PUSD = 10**12
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STANDARD = {"", "standard", "default", "auto", "on_demand"}
MEDIA_IN = ("input_audio_tokens", "input_image_tokens", "input_video_tokens")


def rhe(value: Fraction | int) -> int:
    """Round half to even (Python's `round` of a Fraction does)."""
    return round(Fraction(value))


def number(value: Any) -> Fraction:
    """Read a number as it was written."""
    return Fraction(str(value))


def pusd(usd: Any) -> int:
    """USD as whole pUSD."""
    return rhe(number(usd) * PUSD)


def end_of(value: Any, scenario: str, *, low_is_largest: bool = False) -> Fraction:
    """One end of a range: "low" takes the end that saves least, "high" the one that saves most."""
    if not isinstance(value, list | tuple):
        return number(value)
    order = list(value)[::-1] if low_is_largest else list(value)
    return number(order[("low", "mid", "high").index(scenario)])


def count(request: Request, column: str) -> int:
    """The rule: "NULL parts count as 0 for arithmetic"."""
    return int(request.get(column) or 0)


def parts(request: Request) -> tuple[int, int, int, int]:
    """Classes of input: uncached text, read, write, and the long part of write. Media are outside of them."""
    read, write = count(request, "cache_read_tokens"), count(request, "cache_write_tokens")
    media = sum(count(request, column) for column in MEDIA_IN)
    text = count(request, "input_tokens") - read - write - media
    return text, read, write, count(request, "cache_write_long_tokens")


def with_parts(request: Request, text: int, read: int, write: int, long: int) -> dict[str, Any]:
    """The request with other classes of input; "a NULL read stays NULL unless a lever sets it"."""
    media = sum(count(request, column) for column in MEDIA_IN)
    made = {**request, "input_tokens": text + read + write + media}
    classes = {"cache_read_tokens": read, "cache_write_tokens": write, "cache_write_long_tokens": long}
    made |= {name: value for name, value in classes.items() if value or request.get(name) is not None}
    return made


def micros(at: datetime) -> int:
    """An instant in whole microseconds."""
    since = instant(at) - EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def start_us(request: Request) -> int | None:
    """When a request began; None where unknown."""
    return None if request.get("ts") is None else micros(request["ts"])


def after_us(request: Request, column: str) -> int | None:
    """Start plus a duration in ms, which is "rounded half even to whole microseconds"."""
    ms = request.get(column)
    return None if ms is None else micros(request["ts"]) + rhe(number(ms) * 1_000)


@dataclass(frozen=True)
class Version:
    """A call that is made instead of a request of the log (two in a cascade that escalates)."""

    origin: int  # place of the request in the log
    request: Request
    fixed: int | None = None  # "the routed request costs exactly that", in pUSD
    blocks: tuple[Any, ...] = ()  # identities of the prefix blocks
    by_route: bool = False

    def changed(self, request: Request, **other: Any) -> Version:
        """The same call with another request."""
        return replace(self, request=request, **other)


@dataclass
class Pricer:
    """Prices of versions, remembered."""

    book: Book
    known: dict[Any, tuple[str, int | None]] = field(default_factory=dict[Any, Any])

    def _priced(self, request: Request) -> tuple[str, int | None]:
        key = tuple(map(request.get, PRICED))
        if key not in self.known:
            found = price_request(self.book, request)
            self.known[key] = (found.status, None if found.cost_pusd is None else int(found.cost_pusd))
        return self.known[key]

    def cost(self, version: Version) -> int | None:
        """Cost in pUSD; None without a price."""
        return version.fixed if version.fixed is not None else self._priced(version.request)[1]

    def is_priced(self, version: Version) -> bool:
        """The rule: "priced" = price status `priced`."""
        return version.fixed is not None or self._priced(version.request)[0] == "priced"

    def may_become(self, before: Version, after: Iterable[Version]) -> bool:
        """The rule: "The change is kept only if the request has a price before and after it"."""
        return self.is_priced(before) and all(self.cost(one) is not None for one in after)

    def entry(self, request: Request) -> Entry | None:
        """The price entry of a request."""
        at = request.get("ts")
        return None if at is None else find_entry(self.book, request, instant(at))


PRICED = (
    *("provider", "model", "service_tier", "region", "ts", "is_billable", "gateway_cache_hit"),
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", *MEDIA_IN),
    *("output_tokens", "reasoning_tokens", "web_searches"),
)


@dataclass
class Bill:
    """What a set of levers leaves: the calls made, the fees paid, and which requests each lever touched."""

    versions: list[Version]
    fees: int = 0
    touched: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def touch(self, lever: str, origin: int) -> None:
        """Note that a lever changed a request."""
        self.touched.setdefault(lever, set()).add(origin)


def first_bill(requests: Iterable[Request]) -> Bill:
    """The rule: "Population: billed requests"; each is one call."""
    return Bill(
        [
            Version(place, request, blocks=tuple(request.get("prefix_hashes") or ()))
            for place, request in enumerate(requests)
            if is_billed(request)
        ]
    )


def in_where(table: Table, request: Request) -> bool:
    """Whether a lever may touch a request; without `where` it is all traffic."""
    where = table.get("where")
    return where is None or bool(where(request))


def level(slo: Table | None, request: Request, key: str) -> Any:
    """A service level: by feature if it differs, else for all traffic."""
    if slo is None:
        return None
    own = slo.get("feature", {}).get(request.get("feature"), {})
    return own[key] if key in own else slo.get(key)


def student_book(rates: Table) -> Book:
    """The rule: "touched requests are priced by the student's row"."""
    lines = [f'{name} = "{value}"' for name, value in rates.items()]
    return read_book(
        [
            'provider = "student"\n[[price]]\nmodel = "student"\n'
            + "\n".join(lines)
            + '\nsource = "t"\nchecked = 2026-01-01\n'
        ]
    )
