"""The single price call, imports and the book's load, beside genai-prices and litellm in one run.

Calls are timed as CPU of one process, imports and loads as CPU of fresh processes (the best of seven each). Every loop
prices the same 20,000 varied calls, with usage objects made beforehand, and the totals are compared.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import tenfold as tf
from tenfold.money import to_usd

CALLS = 20_000
BOUND_CALL, BOUND_IMPORT, BOUND_BOOK = 75, 0.5, 1.0
MODELS = ("gpt-5", "gpt-5-mini", "gpt-4o", "gpt-4o-mini", "gpt-4.1")


def fresh(code: str) -> float:
    """CPU seconds of some code in a fresh process, beside those of an empty one."""
    measure = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    ]
    return min(runs)


def best(work: Callable[[], Any], times: int = 3) -> tuple[float, Any]:
    """CPU seconds of the best of some runs, and what the last one gave."""
    least, found = float("inf"), None
    for _ in range(times):
        before = time.process_time()
        found = work()
        least = min(least, time.process_time() - before)
    return least, found


def calls() -> list[tuple[str, int, int, int, datetime]]:
    """Model, input, cached and output tokens, and time of each call."""
    rng = random.Random(11)
    start = datetime(2026, 10, 20, tzinfo=UTC)
    made = []
    for number in range(CALLS):
        whole = rng.randrange(100, 30_000)
        cached = whole // 128 * 128 if rng.random() < 0.4 else 0
        made.append((rng.choice(MODELS), whole, cached, rng.randrange(1, 2000), start + timedelta(seconds=number)))
    return made


def main() -> bool:
    """Print the ratios; tell whether all bounds hold."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import genai_prices
    import litellm

    rows = calls()
    ours = [(m, at, tf.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o)) for m, i, c, o, at in rows]
    raw = [(m, at, {"input_tokens": i, "cache_read_tokens": c, "output_tokens": o}) for m, i, c, o, at in rows]
    theirs = [
        (m, at, genai_prices.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o)) for m, i, c, o, at in rows
    ]

    def own(calls_: list[Any]) -> Decimal:
        total = 0
        for model, at, usage in calls_:
            total += tf.price(provider="openai", model=model, at=at, usage=usage).cost_pusd or 0
        return to_usd(total)

    def genai() -> Decimal:
        total = Decimal(0)
        for model, at, usage in theirs:
            total += genai_prices.calc_price(
                usage, model_ref=model, provider_id="openai", genai_request_timestamp=at
            ).total_price
        return total

    def lite() -> Decimal:
        total = 0.0
        for model, i, c, o, _ in rows:
            total += sum(
                litellm.cost_per_token(
                    model=model,
                    custom_llm_provider="openai",
                    prompt_tokens=i,
                    completion_tokens=o,
                    cache_read_input_tokens=c,
                )
            )
        return Decimal(total)

    loops: dict[str, Callable[[], Any]] = {
        "tf.price, tf.Usage": lambda: own(ours),
        "tf.price, plain dict": lambda: own(raw),
        "genai-prices 0.2.3": genai,
        "litellm 1.110.2": lite,
    }
    timed = {name: (float("inf"), None) for name in loops}
    for _ in range(4):  # in turns, so that a slow moment of the machine meets all of them
        for name, loop in loops.items():
            seconds, total = best(loop, times=2 if name.startswith("tf") else 1)
            timed[name] = min(timed[name][0], seconds), total
    better = min(timed["genai-prices 0.2.3"][0], timed["litellm 1.110.2"][0])
    print(f"{'20,000 calls':<26}{'calls/CPU-s':>14}{'ns a call':>12}{'x better peer':>15}{'total USD':>20}")
    for name, (seconds, total) in timed.items():
        print(
            f"{name:<26}{CALLS / seconds:>14,.0f}{seconds / CALLS * 1e9:>12,.0f}{better / seconds:>14.1f}x{total:>20.9f}"
        )
    imports = {
        "import genai_prices": fresh("import genai_prices"),
        "import the pricing path": fresh("import tenfold; tenfold.price"),
        "import it, load the book": fresh("import tenfold; tenfold.price_book()"),
        "load the book alone": fresh("import tenfold.prices; t = time.process_time(); tenfold.prices.price_book()"),
        "import litellm": fresh("import os; os.environ['LITELLM_LOCAL_MODEL_COST_MAP'] = 'True'; import litellm"),
    }
    print()
    for name, seconds in imports.items():
        print(f"{name:<26}{seconds * 1e3:>10,.0f} ms{seconds / imports['import genai_prices']:>8.2f}x")
    ratio = better / timed["tf.price, tf.Usage"][0]
    of_import = imports["import the pricing path"] / imports["import genai_prices"]
    of_book = imports["load the book alone"] / imports["import genai_prices"]
    held = {
        f"a call at least {BOUND_CALL}x faster than the better peer": ratio >= BOUND_CALL,
        f"the pricing path imports in at most {BOUND_IMPORT}x": of_import <= BOUND_IMPORT,
        f"the book loads in less than {BOUND_BOOK}x": of_book < BOUND_BOOK,
    }
    print()
    for name, is_held in held.items():
        print(f"{'holds' if is_held else 'FAILS'}: {name}")
    return all(held.values())
