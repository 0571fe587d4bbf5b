"""What planted logs share: prices as a table of rates, the arithmetic of one request, predicates, and the truth."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold.prices import PriceBook

Row = dict[str, Any]

CACHING = Path(__file__).parents[2] / "pricing" / "caching.toml"
START = datetime(2026, 6, 1)
PUSD = 10**12
MICRO = 10**6  # pUSD of a millionth of a USD

# pUSD per token, that is USD per million times 10**6: input, read, write, long write, output. 0: no such rate.
SONNET, HAIKU, GPT, MINI, OLD, FLASH, LONG = (
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-haiku-4-5"),
    ("openai", "gpt-5"),
    ("openai", "gpt-5-mini"),
    ("openai", "gpt-4.1"),
    ("google", "gemini-2.5-flash"),
    ("openai", "gpt-5.4"),
)
RATES: dict[tuple[str, str], dict[str, tuple[int, int, int, int, int]]] = {
    SONNET: {
        "standard": (3_000_000, 300_000, 3_750_000, 6_000_000, 15_000_000),
        "batch": (1_500_000, 150_000, 1_875_000, 3_000_000, 7_500_000),  # batch and cache stack
    },
    HAIKU: {  # a third of sonnet in every class
        "standard": (1_000_000, 100_000, 1_250_000, 2_000_000, 5_000_000),
        "batch": (500_000, 50_000, 625_000, 1_000_000, 2_500_000),
    },
    GPT: {
        "standard": (1_250_000, 125_000, 0, 0, 10_000_000),
        "batch": (625_000, 62_500, 0, 0, 5_000_000),
    },
    MINI: {"standard": (250_000, 25_000, 0, 0, 2_000_000)},
    OLD: {  # no cached price in batch: the full batch input price
        "standard": (2_000_000, 500_000, 0, 0, 8_000_000),
        "batch": (1_000_000, 1_000_000, 0, 0, 4_000_000),
    },
    FLASH: {  # the cache discount takes precedence: the same in batch
        "standard": (300_000, 30_000, 0, 0, 2_500_000),
        "batch": (150_000, 30_000, 0, 0, 1_250_000),
    },
    LONG: {
        "standard": (2_500_000, 250_000, 0, 0, 15_000_000),
        "above 272,000": (5_000_000, 500_000, 0, 0, 22_500_000),
    },
}
NAMES = ("input", "cache_read", "cache_write", "cache_write_long", "output")


def prices() -> dict[str, str]:
    """The rates as price files: name to text."""
    texts: dict[str, str] = {}
    for (provider, model), lists in RATES.items():
        for words, rates in lists.items():
            lines = [f'[[price]]\nmodel = "{model}"\nsource = "planted"\nchecked = 2026-01-01']
            if words == "batch":
                lines.append('service_tier = "batch"')
            if words.startswith("above"):
                lines.append("above_input_tokens = 272_000")
            lines += [f"{name} = {rate / MICRO}" for name, rate in zip(NAMES, rates, strict=True) if rate]
            head = texts.setdefault(f"{provider}.toml", f'provider = "{provider}"\n')
            texts[f"{provider}.toml"] = head + "\n".join(lines) + "\n"
    return texts


def book() -> PriceBook:
    """The rates as a price book, with the shipped cache rules beside them."""
    from tenfold.prices import price_book

    with tempfile.TemporaryDirectory() as folder:
        for name, text in prices().items():
            Path(folder, name).write_text(text, encoding="utf-8")
        Path(folder, "caching.toml").write_bytes(CACHING.read_bytes())
        return price_book(folder)


def cost(
    model: tuple[str, str], text: int, output: int, read: int = 0, write: int = 0, long: int = 0, tier: str = "standard"
) -> int:
    """What one request costs, in pUSD: each class times its rate (`write` without the long part)."""
    if model == LONG and text + read + write + long > 272_000:
        tier = "above 272,000"
    rates = RATES[model][tier]
    return sum(n * rate for n, rate in zip((text, read, write, long, output), rates, strict=True))


@dataclass(frozen=True)
class Pred:
    """A predicate as SQL for the assumptions file, and as a function of a request."""

    sql: str
    holds: Callable[[Mapping[str, Any]], bool]

    def __call__(self, request: Mapping[str, Any]) -> bool:
        """Whether it holds."""
        return self.holds(request)


def is_one_of(column: str, *values: str) -> Pred:
    """A column has one of some values."""
    words = ", ".join(f"'{value}'" for value in values)
    return Pred(f"{column} in ({words})", lambda request: request.get(column) in values)


@dataclass
class Planted:
    """A log and its truth.

    Args:
        rows: Requests.
        assume: A table per lever: `where` and the like are `Pred`, `evals` are lists of dicts.
        truth: Lever to what it saves alone, in pUSD.
        joint: What all of them save together; None where that is not known by construction.
        exact: Whether the truth is the very saving on this log (else an expectation, which an interval must cover).
        slo: Service levels.
    """

    rows: list[Row] = field(default_factory=list[Row])
    assume: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    truth: dict[str, int] = field(default_factory=dict[str, int])
    joint: int | None = None
    exact: bool = True
    slo: dict[str, Any] | None = None

    def add(self, model: tuple[str, str], at: datetime, tokens: int, output: int, **columns: Any) -> Row:
        """Add a request."""
        number = len(self.rows)
        row = {
            "request_id": f"r{number}",
            "provider": model[0],
            "model": model[1],
            "ts": at,
            "duration_ms": 4_000.0,
            "ttft_ms": 800.0,
            "input_tokens": tokens,
            "cache_read_tokens": 0,
            "cache_write_tokens": 0,
            "cache_write_long_tokens": 0,
            "output_tokens": output,
            "is_stream": False,
            "status": "success",
            "finish_reason": "stop",
            "org": "acme",
            "user_id": f"u{number % 37}",
            **columns,
        }
        self.rows.append(row)
        return row

    def fill(self, rng: random.Random, days: int, feature: str = "rest") -> None:
        """Add a few requests a day that no lever may touch, so that every day has some; then put all in time order."""
        for day in range(days):
            for _ in range(rng.randint(2, 4)):
                self.add(
                    SONNET, when(rng, day), rng.randint(100, 900), rng.randint(10, 300), feature=feature, is_stream=True
                )
        self.rows.sort(key=lambda row: row["ts"])


def when(rng: random.Random, day: int, latest_s: int = 86_000) -> datetime:
    """Some second of a day."""
    return START + timedelta(days=day, seconds=rng.randrange(latest_s), milliseconds=rng.randrange(1_000))


def for_plan(planted: Planted, folder: Path) -> dict[str, Any]:
    """The assumptions as `tf.plan` takes them: predicates as SQL, evals in files of a folder."""
    return {
        lever: {key: _told(lever, key, value, folder) for key, value in table.items()}
        for lever, table in planted.assume.items()
    }


def _told(lever: str, key: str, value: Any, folder: Path) -> Any:
    if isinstance(value, Pred):
        return value.sql
    if key == "evals":
        path = folder / f"{lever}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in value), encoding="utf-8")
        return str(path)
    return value
