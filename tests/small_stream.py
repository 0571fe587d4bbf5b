"""Requests by tenfold's own names: what a gateway could send to a stream or write to a file, dear and odd ones too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

MODELS = (
    ("openai", "gpt-5"),
    ("openai", "gpt-4o"),
    ("anthropic", "claude-sonnet-4-5"),
    ("google", "gemini-2.5-pro"),
)
TEAMS = ("search", "support", "agents", None)
FIRST = datetime(2026, 10, 1, tzinfo=UTC)


def requests(days: int, each: int, seed: int = 1, first: datetime = FIRST) -> list[dict[str, Any]]:
    """Make some days of requests; every count of them has a price, but for one model and some without their usage."""
    rng = Random(seed)
    made = []
    for day in range(days):
        for n in range(each):
            provider, model = MODELS[rng.choices(range(4), (40, 25, 20, 15))[0]]
            whole = rng.choice((rng.randrange(10, 4_000), rng.randrange(150_000, 400_000)))
            row: dict[str, Any] = {
                "request_id": f"r-{seed}-{day}-{n}",
                "provider": provider,
                "model": model,
                "ts": (first + timedelta(days=day, seconds=n * 60 % 86_400)).isoformat().replace("+00:00", "Z"),
                "team": rng.choice(TEAMS),
                "feature": rng.choice(("chat", "batch")),
                "environment": "production",
                "input_tokens": whole,
                "cache_read_tokens": rng.choice((0, whole // 2)),
                "output_tokens": rng.randrange(1, 3_000),
                "status": "success",
            }
            if n % 50 == 7:
                del row["output_tokens"]
            if n % 50 == 8:
                row |= {"is_billable": False, "status": "error"}
            if n % 50 == 10:
                row |= {"provider": "openai", "model": "no-such-model"}
            if n % 50 == 9:
                row["service_tier"] = "default"
            made.append(row)
    return made
