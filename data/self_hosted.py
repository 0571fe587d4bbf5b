"""Write ten days of a serving engine's log: `python -m data.self_hosted` makes `self_hosted.csv`.

Larkspur also runs two open models on GPUs of its own: a small one for chat, summaries and a nightly job, and a larger
one for contracts. The columns have the names of tenfold's `requests` table, so the file needs no map.
"""

import argparse
import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from .draws import Draws, Quantiles

SMALL = "meta-llama/Llama-3.1-8B-Instruct"
LARGE = "Qwen/Qwen3-32B"
START = datetime(2026, 11, 2, tzinfo=UTC)

_OFFICE = (0, 0, 0, 0, 0, 0, 1, 3, 7, 10, 10, 9, 6, 8, 10, 9, 8, 5, 2, 1, 1, 0, 0, 0)
_NIGHT = (0, 10, 10, 8, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
_WEEKEND = 0.15
_SURGE = (range(3 * 24 + 13, 3 * 24 + 16), 3)
"""Hours of the first Thursday in which a portal is down and everybody asks support, and how many times as many do."""

COLUMNS: tuple[str, ...] = (
    "request_id", "ts", "duration_ms", "ttft_ms", "provider", "model", "feature", "session_id", "replica",
    "is_stream", "is_structured", "input_tokens", "cache_read_tokens", "output_tokens", "status",
)  # fmt: skip


class _Pace(NamedTuple):
    """How fast a model answers: ms before the prompt, ms a prompt token, and between which ms an answer token is."""

    before_ms: float
    prompt_ms: float
    fastest_ms: float
    slowest_ms: float
    replicas: int


class _Feature(NamedTuple):
    """One kind of traffic; `busiest` is its requests an hour where the profile says 10."""

    name: str
    model: str
    profile: tuple[int, ...]
    busiest: int
    prompt: Quantiles
    answer: Quantiles
    system_tokens: int
    turns: int = 1
    is_structured: bool = False
    on_weekends: float = _WEEKEND
    surges: bool = False


_PACES = {SMALL: _Pace(90, 0.24, 68, 84, 5), LARGE: _Pace(60, 0.07, 17, 24, 2)}
_FEATURES = (
    _Feature("support-chat", SMALL, _OFFICE, 270, (20, 60, 150, 320, 700, 1500, 2600, 3200),
             (20, 180, 390, 720, 1200, 1800, 2800, 3500), 640, turns=6, surges=True),
    _Feature("doc-summary", SMALL, _OFFICE, 45, (2500, 3500, 5000, 7200, 9500, 12000, 15000, 16000),
             (80, 200, 300, 450, 650, 900, 1300, 1500), 96),
    _Feature("night-enrich", SMALL, _NIGHT, 200, (300, 500, 700, 900, 1200, 1500, 2200, 2600),
             (100, 240, 400, 640, 950, 1300, 1800, 2100), 320, is_structured=True, on_weekends=1.0),
    _Feature("contract-review", LARGE, _OFFICE, 55, (3000, 5000, 7000, 9000, 12000, 16000, 24000, 28000),
             (100, 250, 400, 600, 900, 1300, 1900, 2200), 512, is_structured=True),
)  # fmt: skip


def write_self_hosted(out: Path, *, seed: int = 7, days: int = 10) -> Path:
    """Write the log of an engine, from Monday, 2026-11-02 (UTC).

    The same seed and number of days give the same bytes on every platform.

    Args:
        out: Directory to write into; made if missing.
        seed: Of all random draws.
        days: Length of the log.

    Returns:
        The file, `self_hosted.csv`.
    """
    out.mkdir(parents=True, exist_ok=True)
    rows = [row for feature in _FEATURES for row in _rows(feature, Draws(f"{seed} {feature.name}"), days)]
    rows.sort(key=lambda row: (row["ts"], row["request_id"]))
    file = out / "self_hosted.csv"
    with file.open("w", newline="", encoding="utf-8") as opened:
        writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return file


def _rows(feature: _Feature, draws: Draws, days: int) -> list[dict[str, object]]:
    pace = _PACES[feature.model]
    made: list[dict[str, object]] = []
    for hour in range(24 * days):
        share = feature.profile[hour % 24] / 10 * (feature.on_weekends if hour // 24 % 7 >= 5 else 1)
        share *= _SURGE[1] if feature.surges and hour in _SURGE[0] else 1
        for _ in range(round(feature.busiest * share * (0.85 + 0.3 * draws.unit()))):
            turn = draws.between(1, feature.turns)
            prompt = feature.system_tokens + sum(draws.quantile(feature.prompt) for _ in range(turn))
            answer = draws.quantile(feature.answer)
            # what earlier turns, or at least the system prompt, left in the engine's cache, in blocks of 16
            cached = (prompt * (turn - 1) // turn if turn > 1 else feature.system_tokens) // 16 * 16
            cached = cached if draws.chance(0.9) else 0
            first_ms = pace.before_ms + (prompt - cached) * pace.prompt_ms + 60 * draws.unit()
            each_ms = pace.fastest_ms + (pace.slowest_ms - pace.fastest_ms) * draws.unit()
            at = START + timedelta(hours=hour, milliseconds=draws.between(0, 3_599_999))
            session = f"{feature.name}-{draws.between(1, 40 * days)}" if feature.turns > 1 else ""
            made.append({
                "request_id": f"{feature.name}-{len(made):06d}", "ts": at.isoformat(timespec="milliseconds"),
                "duration_ms": round(first_ms + each_ms * (answer - 1)), "ttft_ms": round(first_ms),
                "provider": "self-hosted", "model": feature.model, "feature": feature.name, "session_id": session,
                "replica": f"{feature.model.rpartition('/')[2].lower()}-{draws.between(0, pace.replicas - 1)}",
                "is_stream": "true", "is_structured": str(feature.is_structured).lower(), "input_tokens": prompt,
                "cache_read_tokens": cached, "output_tokens": answer, "status": "success",
            })  # fmt: skip
    return made


def _main() -> None:
    """Parse the command line and write."""
    parser = argparse.ArgumentParser(description="Write ten days of a serving engine's log.")
    parser.add_argument("--out", type=Path, default=Path(), help="directory (default: here)")
    parser.add_argument("--seed", type=int, default=7, help="of all random draws (default 7)")
    parser.add_argument("--days", type=int, default=10, help="length (default 10)")
    given = parser.parse_args()
    write_self_hosted(given.out, seed=given.seed, days=given.days)


if __name__ == "__main__":
    _main()
