"""Logs in which everything is set, unknown or odd at random."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

from small_logs import row


def mixed_rows(seed, count=120):
    """Requests with everything set, unknown or odd at random, in a shuffled order, over three months."""
    draw = random.Random(seed)
    start = datetime(2026, 5, 20)

    def maybe(value, share=0.2):
        return None if draw.random() < share else value

    rows = []
    for n in range(count):
        tokens = draw.randrange(1, 5_000)
        read = draw.randrange(tokens + 1)
        written = draw.randrange(tokens - read + 1)
        rows.append(
            row(
                request_id=f"r{n}",
                ts=start + timedelta(minutes=draw.randrange(60 * 24 * 60)),
                model=draw.choice(["stacks"] * 4 + ["ghost"]),
                team=maybe(draw.choice("abc")),
                input_tokens=maybe(tokens, 0.05),
                cache_read_tokens=maybe(read),
                cache_write_tokens=(written := maybe(written)),
                cache_write_long_tokens=None if written is None else maybe(draw.randrange(written + 1)),
                output_tokens=(output := draw.randrange(500)),
                reasoning_tokens=maybe(draw.randrange(output + 1)),
                session_id=maybe(f"s{draw.randrange(60)}", 0.4),
                trace_id=maybe(f"t{draw.randrange(60)}", 0.4),
                user_id=maybe(f"u{draw.randrange(9)}"),
                attempt=maybe(draw.choice([0, 0, 1])),
                retry_of=f"r{draw.randrange(count)}" if draw.random() < 0.2 else None,
                status=maybe(draw.choice(["success"] * 4 + ["error", "timeout", "incomplete"])),
                finish_reason=maybe(draw.choice(["stop", "stop", "length"])),
                prompt_hash=maybe(f"p{draw.randrange(30)}"),
                params_hash="q",
                outcome_ok=maybe(draw.choice([True, True, False]), 0.4),
                is_billable=draw.choice([None, True, True, False]),
                gateway_cache_hit=draw.choice([None, False, False, False, True]),
            )
        )
    return rows
