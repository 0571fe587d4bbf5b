"""A stream of requests, priced one by one as they happen: running totals per team, exact to the picodollar.

    my_gateway | python stream.py --every 1000

Every line of standard input is one request, with the names of tenfold's `requests` table:

    {"provider": "openai", "model": "gpt-5", "ts": "2026-10-01T12:00:00Z", "team": "search",
     "input_tokens": 1200, "cache_read_tokens": 1024, "output_tokens": 300}

What comes out is a JSON line of totals every so many requests, and at the end. What has no price is counted apart by
why, never as zero; a line that is no request is counted too. The price book is read again when its files change, so a
price that is announced late applies from the next request on; what was priced before keeps its price. Loading the same
lines into a database and asking `tenfold cost --by team` gives the same integers.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tenfold as tf
from tenfold.store.schema import TOKEN_COLUMNS


@dataclass
class Totals:
    """What has come so far.

    Args:
        pusd: Team to cost in picodollars (1e-12 USD).
        requests: Team to priced requests.
        unpriced: (team, why) to requests without a price.
        broken: Lines that are no request.
        not_billed: Requests that nobody is billed for.
    """

    pusd: Counter[str] = field(default_factory=Counter)
    requests: Counter[str] = field(default_factory=Counter)
    unpriced: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: int = 0
    not_billed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Give the totals as a document; money as whole picodollars and, for people, as USD."""
        return {
            "total_pusd": self.pusd.total(),
            "total_usd": f"{self.pusd.total() / 10**12:.6f}",
            "teams": {
                team: {"pusd": self.pusd[team], "requests": self.requests[team]} for team in sorted(self.requests)
            },
            "unpriced": [
                {"team": team, "why": why, "requests": count} for (team, why), count in sorted(self.unpriced.items())
            ],
            "broken": self.broken,
            "not_billed": self.not_billed,
        }


class Book:
    """A price book that is read again when a file of its folder changes.

    Args:
        folder: Your own price files, laid over the shipped ones; None for the shipped ones alone.
        look_every_s: Seconds between two looks at the folder.
    """

    def __init__(self, folder: Path | None = None, look_every_s: float = 10.0) -> None:
        self.folder = folder
        self.look_every_s = look_every_s
        self._looked = time.monotonic()
        self._state = self._files()
        self.now = self._read()

    def _read(self) -> tf.PriceBook:
        return tf.price_book(overlay=self.folder) if self.folder and self._files() else tf.price_book()

    def _files(self) -> list[tuple[str, int, int]]:
        files = sorted(self.folder.glob("*.toml")) if self.folder else []
        return [(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files]

    def current(self) -> tf.PriceBook:
        """Give the book, read again where its files have changed since the last look."""
        if self.folder and time.monotonic() - self._looked >= self.look_every_s:
            self._looked = time.monotonic()
            state = self._files()
            if state != self._state:
                try:
                    self.now, self._state = self._read(), state
                except tf.TenfoldError as error:  # half written, or wrong: the book before goes on
                    sys.stderr.write(f"stream: the price book stays as it was: {error}\n")
        return self.now


def add(totals: Totals, request: Mapping[str, Any], book: tf.PriceBook) -> None:
    """Price one request and add it to the totals.

    Args:
        totals: What it is added to.
        request: The request, by the names of the `requests` table.
        book: The price book.
    """
    if request.get("is_billable") is False or request.get("gateway_cache_hit") is True:
        totals.not_billed += 1
        return
    team = request.get("team") or "unallocated"
    try:
        priced = tf.price(
            provider=request["provider"],
            model=request["model"],
            at=request["ts"],
            tier=request.get("service_tier"),
            region=request.get("region"),
            usage=tf.Usage(**{name: value for name, value in request.items() if is_count(name)}),
            book=book,
        )
    except (tf.TenfoldError, KeyError, TypeError):
        totals.broken += 1
        return
    if priced.cost_pusd is None:
        totals.unpriced[team, f"{priced.status}: {request['provider']} {request['model']}"] += 1
        return
    totals.pusd[team] += priced.cost_pusd
    totals.requests[team] += 1


def is_count(name: str) -> bool:
    """Tell a count from other columns; one that tenfold does not know makes the request broken, never cheaper."""
    return name in TOKEN_COLUMNS or (name.endswith("_tokens") and name != "prefix_block_tokens")


def follow(requests: Iterable[Mapping[str, Any]], book: Book, totals: Totals, every: int = 0) -> Iterator[Totals]:
    """Price a stream.

    Args:
        requests: The requests as they come.
        book: The price book, read again when it changes.
        totals: Where they are added up.
        every: Give the totals after so many requests; 0 for the end alone.

    Yields:
        The totals so far.
    """
    for number, request in enumerate(requests, 1):
        add(totals, request, book.current())
        if every and number % every == 0:
            yield totals
    yield totals


def read(lines: Iterable[str], totals: Totals) -> Iterator[Mapping[str, Any]]:
    """Read JSON lines; what is no JSON object is counted as broken."""
    for line in lines:
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError:
            found = None
        if isinstance(found, dict):
            yield found
        else:
            totals.broken += 1


def main() -> None:
    """Price standard input."""
    parser = argparse.ArgumentParser(description="Price a stream of requests.")
    parser.add_argument("--every", type=int, default=0, help="print totals after so many requests")
    parser.add_argument("--prices", type=Path, help="folder of your own price files over the shipped ones")
    given = parser.parse_args()
    totals, began = Totals(), time.perf_counter()
    for so_far in follow(read(sys.stdin, totals), Book(given.prices), totals, given.every):
        sys.stdout.write(json.dumps(so_far.as_dict()) + "\n")
        sys.stdout.flush()
    seconds = time.perf_counter() - began
    count = totals.requests.total() + totals.unpriced.total() + totals.broken + totals.not_billed
    sys.stderr.write(f"stream: {count:,} requests in {seconds:.2f} s, {count / max(seconds, 1e-9):,.0f} a second\n")


if __name__ == "__main__":
    main()
