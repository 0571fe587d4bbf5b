"""A small log in which everything is set, unknown or odd: hostile names, NULLs, price cuts inside a day."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from mixed_logs import mixed_rows
from small_logs import CUT, row

HOSTILE = [
    "a",
    "",
    "o'neill",
    'say "hi"',
    "tab\tnew\nline",
    "дом",
    "猫🐈",
    "a`b",
    "{x}",
    "%_\\",
    "NULL",
    " a ",
    "é",
    "e\u0301",
]
# `stacks` changes inside a day, has a long-context band and media prices; `fast` charges by the request.
PRICES = (
    CUT
    + """
[[price]]
model = "stacks"
valid_from = 2026-07-01T09:30:00Z
input = 0.5
cache_read = 0.05
output = 2.5
web_search = 10
source = "test"
checked = 2026-01-01
[[price]]
model = "stacks"
valid_from = 2026-07-01T09:30:00Z
above_input_tokens = 4000
input = 1
cache_read = 0.1
output = 4
source = "test"
checked = 2026-01-01
"""
)


def rich_rows(seed=1, count=120):
    """Requests of `mixed_rows` with hostile names, media, times, tags and block hashes."""
    draw = random.Random(f"rich {seed}")
    rows = mixed_rows(seed, count)
    for number, one in enumerate(rows):
        one.update(
            team=draw.choice([*HOSTILE, None]),
            project=draw.choice([*HOSTILE[:4], None]),
            org=draw.choice(["o1", "o2", None]),
            feature=draw.choice(["chat", "search", None]),
            environment=draw.choice(["prod", None]),
            service_tier=draw.choice([None, None, "batch", "standard"]),
            region=draw.choice([None, None, None, "eu"]),
            is_stream=draw.choice([None, True, False]),
            duration_ms=draw.choice([None, 0.0, 12.5, 900.0, 40_000.25, 1e13]),
            ttft_ms=draw.choice([None, 0.0, 10.0, 250.125]),
            queue_ms=draw.choice([None, 0.0, 3.5]),
            prompt_hash=draw.choice([None, "p1", "p2", "p3"]),
            source_file=draw.choice(["one.jsonl", "two.jsonl"]),
            source_line=number + 1,
            input_image_tokens=draw.choice([None, None, 0]),
            web_searches=draw.choice([None, None, 0, 2]),
            cost_logged_usd=draw.choice([None, 0.25]),
            prefix_block_tokens=128,
            prefix_hashes=[f"h{draw.randrange(3)}-{n}" for n in range(draw.randrange(4))] or None,
            load_id=1,
        )
        if number % 17 == 0:
            one["ts"] = None
        elif number % 5 == 0:
            one["ts"] = datetime(2026, 7, 1, 9, 29, 59, 999_999) + timedelta(microseconds=draw.randrange(3))
    rows.append(row(request_id="twin", ts=rows[1]["ts"], team="a"))
    return rows
