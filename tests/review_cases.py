"""Logs whose reviews are held against a second implementation: small random ones, and the demo."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from oracle_review import basics

import tenfold as tf
from tenfold.ledger import Window

ROOT = Path(__file__).parents[1]
DEMO = ROOT / "data" / "demo"
USD = 10**12
APRIL, JULY, OCTOBER = datetime(2026, 4, 1), datetime(2026, 7, 1), datetime(2026, 10, 1)
COLUMNS = ("team", "model", "feature", "service_tier")


def pusd(text):
    exact = Decimal(text) * USD
    assert exact == int(exact)
    return int(exact)


def utc(at):
    return at.replace(tzinfo=UTC)


def near(found, exact, within=1e-9):
    """A float of a document is an exact ratio."""
    if exact is None or found is None:
        return exact is None and found is None
    return abs(Fraction(found) - exact) <= within * max(1, abs(exact))


class Case:
    """One log, priced twice; the quarter and the one before."""

    def __init__(self, log, book, prices, page=None):
        self.log, self.prices, self.page = log, prices, page
        self.ledger = tf.attribute(log, book, since=utc(JULY), until=utc(OCTOBER))
        self.before = self.ledger.within(Window(utc(APRIL), utc(JULY), "UTC"))
        rows = basics.price(prices, log.requests.drop("tags").iter_rows(named=True))
        self.all = rows
        self.rows, self.old = basics.within(rows, JULY, OCTOBER), basics.within(rows, APRIL, JULY)
        self.spend = basics.spend(self.rows)


# Small random logs: five models, three of which change price or are priced only from a date; a model without a price.
PRICES = "\n".join(
    ['provider = "openai"']
    + [
        f'[[price]]\nmodel = "{model}"\n{body}\nsource = "t"\nchecked = 2026-01-01'
        for model, body in {
            "a": "input = 2\ncache_read = 0.2\ncache_write = 2.5\ncache_write_long = 4\noutput = 10\nweb_search = 10",
            "b": "input = 5\ncache_read = 0.5\noutput = 30",
            "c": "valid_from = 2026-08-01\ninput = 3\ncache_read = 0.3\noutput = 9",
            "d": "input = 0.4\ncache_read = 0.1\noutput = 1.6\nreasoning = 3",
        }.items()
    ]
    + [
        (
            '[[price]]\nmodel = "b"\nvalid_from = 2026-08-15\ninput = 4\ncache_read = 0.4\noutput = 20\n'
            'source = "t"\nchecked = 2026-01-01'
        ),
        (
            '[[price]]\nmodel = "a"\nservice_tier = "batch"\ninput = 1\ncache_read = 0.1\ncache_write = 1.25\n'
            'cache_write_long = 2\noutput = 5\nweb_search = 10\nsource = "t"\nchecked = 2026-01-01'
        ),
        (
            '[[price]]\nmodel = "b"\nabove_input_tokens = 200000\ninput = 10\ncache_read = 1\noutput = 45\n'
            'source = "t"\nchecked = 2026-01-01'
        ),
    ]
)


def drawn(seed, n=150):
    """Requests of two quarters: everything that a definition speaks of occurs in some seed."""
    luck = random.Random(seed)
    made = []
    is_judged = luck.random() < 0.5
    for at in range(n):
        ts = APRIL + timedelta(seconds=luck.randrange(183 * 86_400 - 1))
        size = int(luck.lognormvariate(8, 1.5))
        model = luck.choices(("a", "b", "c", "d", "ghost"), (4, 3, 2, 3, 0.3))[0]
        if model == "d" and ts >= JULY and seed % 2:
            model = "a"  # d is given up
        read = luck.choice((0, 0, size // 2)) if model != "c" or ts < JULY else luck.choice((0, size // 3))
        written = luck.choice((0, 0, size // 4)) if model == "a" else 0
        row = {
            "request_id": f"r{at:04}", "ts": ts, "provider": "openai", "model": model,
            "duration_ms": float(luck.randrange(100, 60_000)),
            "team": luck.choice(("search", "agents", "ops", None)), "feature": luck.choice(("f", "g", None)),
            "user_id": luck.choice(("u1", "u2", "u3", None)),
            "session_id": luck.choice((None, *(f"s{i}" for i in range(30)))),
            "service_tier": luck.choice(("batch", None, "standard", "standard")) if model == "a" else "standard",
            "input_tokens": size if luck.random() < 0.97 else None,
            "cache_read_tokens": luck.choice((read, read, None)),
            "cache_write_tokens": written, "cache_write_long_tokens": luck.choice((0, written)),
            "output_tokens": (size // luck.randrange(3, 30)) if luck.random() < 0.97 else None,
            "web_searches": luck.choice((0, 0, 2)) if model == "a" else 0,
            "status": luck.choices(("success", "error", "timeout", None), (8, 1, 0.5, 0.5))[0],
            "finish_reason": luck.choice(("stop", "stop", "stop", "length")),
            "is_billable": luck.choices((True, None, False), (8, 1, 1))[0],
            "gateway_cache_hit": luck.choices((False, None, True), (8, 1, 0.7))[0],
            "attempt": luck.choices((0, 1), (9, 1))[0],
            "prompt_hash": luck.choice((None, "p1", "p2")), "params_hash": "x",
            "outcome_ok": luck.choice((True, False, None)) if is_judged else None,
        }  # fmt: skip
        row["reasoning_tokens"] = (row["output_tokens"] or 0) // luck.randrange(1, 5)
        if row["input_tokens"] is None:
            row.update(cache_read_tokens=None, cache_write_tokens=None, cache_write_long_tokens=None)
        if row["attempt"] and made and luck.random() < 0.7:
            row["retry_of"] = luck.choice(made)["request_id"]
        made.append(row)
    return made
