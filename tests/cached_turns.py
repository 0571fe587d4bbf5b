"""Requests of Sonnet 4.6 (and GPT-4.1) as they use the prompt cache: prices, turns, hashes of their blocks.

Rates in USD per million: Sonnet 4.6 input 3, read 0.30, write 3.75, long write 6; GPT-4.1 input 2, read 0.50.
A token lost where it was written costs 3.75 - 0.30 = 3.45, where it was uncached 3 - 0.30 = 2.70.
"""

import hashlib
from datetime import datetime, timedelta
from decimal import Decimal

from small_logs import row

START = datetime(2026, 7, 1, 9)
B = 128
ANTHROPIC = """
provider = "anthropic"
[[price]]
model = "claude-sonnet-4-6"
input = 3
cache_read = 0.3
cache_write = 3.75
cache_write_long = 6
output = 15
source = "test"
checked = 2026-01-01
[[price]]
model = "claude-sonnet-4-5"
input = 3
cache_read = 0.3
cache_write = 3.75
cache_write_long = 6
output = 15
source = "test"
checked = 2026-01-01
[[price]]
model = "claude-haiku-4-5"
input = 1
cache_read = 0.1
cache_write = 1.25
cache_write_long = 2
output = 5
source = "test"
checked = 2026-01-01
[[price]]
model = "claude-unheard-of"
input = 1
cache_read = 0.1
cache_write = 1.25
output = 5
source = "test"
checked = 2026-01-01
"""
OPENAI = """
provider = "openai"
[[price]]
model = "gpt-4.1"
input = 2
cache_read = 0.5
output = 8
source = "test"
checked = 2026-01-01
"""


def usd(text):
    return int(Decimal(text) * 10**12)


def per_million(tokens, dollars):
    return int(tokens * Decimal(dollars) * 10**6)


def hashes(*blocks):
    """Cumulative hashes of blocks that are given as texts."""
    made, before = [], ""
    for block in blocks:
        before = hashlib.md5(f"{before}|{block}".encode()).hexdigest()[:16]
        made.append(before)
    return made


def turn(at, read, write, uncached=0, *, blocks=None, **columns):
    """One request of Sonnet 4.6, `at` seconds after the start, of session s."""
    turn.line += 1
    return row(
        **{
            "provider": "anthropic",
            "model": "claude-sonnet-4-6",
            "ts": START + timedelta(seconds=at),
            "session_id": "s",
            "input_tokens": read + write + uncached,
            "cache_read_tokens": read,
            "cache_write_tokens": write,
            "cache_write_long_tokens": 0,
            "load_id": 1,
            "source_line": turn.line,
            **({} if blocks is None else {"prefix_hashes": hashes(*blocks), "prefix_block_tokens": B}),
            **columns,
        }
    )


turn.line = 0


def late():
    """A request of other traffic, so that what came before has had its whole lifetime."""
    return turn(100_000, 0, 0, 10, session_id="late", feature="late")


def causes(breaks, *features):
    """Count turns by cause, of some features or of all but the late request."""
    counts = {}
    for one in breaks.frame.rows(named=True):
        if one["feature"] in features or (not features and one["feature"] != "late"):
            counts[one["cause"]] = counts.get(one["cause"], 0) + one["turns"]
    return counts


def blocks(count, *changed):
    made = [f"b{n}" for n in range(count)]
    for at, text in changed:
        made[at] = text
    return made
