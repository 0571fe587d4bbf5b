"""A small bill by hand: a price book in one string, requests as dicts, and the ledger of both."""

from datetime import UTC, datetime

import stores

from tenfold.ledger import Ledger, Window
from tenfold.prices import price_book

# USD per million tokens: input 1, cached 0.1, written 1.25, output 4; from 2026-08-01 on output 2. Batch: half.
BOOK = """
provider = "openai"
[[price]]
model = "m1"
input = 1
cache_read = 0.1
cache_write = 1.25
output = 4
source = "by hand"
checked = 2026-11-29
[[price]]
model = "m1"
valid_from = 2026-08-01
input = 1
cache_read = 0.1
cache_write = 1.25
output = 2
source = "by hand"
checked = 2026-11-29
[[price]]
model = "m1"
service_tier = "batch"
input = 0.5
output = 2
source = "by hand"
checked = 2026-11-29
"""
# Five requests of 2026-07-10 between 10:00 and 10:05 UTC. Costs in USD:
#   a  400k uncached 0.40 + 400k read 0.04 + 200k written 0.25 + 100k out 0.40 = 1.09
#   b  500k in, cached share unknown, 0.50 + 250k out 1.00                      = 1.50
#   c  a retry, 10k in                                                          = 0.01
#   d  a model without a price;  e  answered by a gateway's cache: not billed
# spend 2.60: output 1.40, uncached 0.91, read 0.04, written 0.25
FIVE = [
    {
        "request_id": "a", "ts": "2026-07-10T10:00:00", "duration_ms": 60_000, "team": "search", "feature": "rag",
        "input_tokens": 1_000_000, "cache_read_tokens": 400_000, "cache_write_tokens": 200_000,
        "output_tokens": 100_000, "reasoning_tokens": 25_000, "attempt": 0,
    },
    {
        "request_id": "b", "ts": "2026-07-10T10:00:30", "duration_ms": 30_000, "team": "agents", "feature": "plan",
        "input_tokens": 500_000, "output_tokens": 250_000, "attempt": 0,
    },
    {
        "request_id": "c", "ts": "2026-07-10T10:01:00", "duration_ms": 120_000, "team": "agents", "feature": "plan",
        "input_tokens": 10_000, "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0,
        "reasoning_tokens": 0, "attempt": 1,
    },
    {"request_id": "d", "ts": "2026-07-10T10:04:00", "model": "ghost", "input_tokens": 100_000, "output_tokens": 0},
    {
        "request_id": "e", "ts": "2026-07-10T10:02:00", "duration_ms": 9_000, "gateway_cache_hit": True,
        "input_tokens": 7, "output_tokens": 7,
    },
]  # fmt: skip


def log_of(requests):
    """A log in memory; `ts` is ISO text, `provider` and `model` are openai and m1 unless named."""
    return stores.log_of(
        [
            {"provider": "openai", "model": "m1", **request, "ts": datetime.fromisoformat(request["ts"])}
            for request in requests
        ]
    )


def book_of(folder, text=BOOK):
    """The price book of one file's text."""
    (folder / "prices.toml").write_text(text)
    return price_book(folder)


def ledger_of(requests, folder, *, since=None, until=None, zone="UTC"):
    """The ledger of requests by hand, priced by `BOOK`."""
    return Ledger(log_of(requests), book_of(folder), Window(since, until, zone))


def utc(*parts):
    """An aware instant."""
    return datetime(*parts, tzinfo=UTC)
