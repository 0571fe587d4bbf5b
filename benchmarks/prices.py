"""The single price call, imports and the book's load, beside genai-prices and litellm in one run.

Calls are timed as CPU of one process, imports and loads as CPU of fresh processes (the best of seven each). Every loop
prices the same varied calls, with usage objects made beforehand, and the totals are compared.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec

import tenfold as tf
from benchmarks.measuring import Measured, side_by_side
from tenfold.money import to_usd

DATA = "varied calls of five models at standard prices, up to 30,000 tokens, 40 % with cached ones"
BOUND_CALL, BOUND_IMPORT, BOUND_BOOK = 75.0, 0.5, 1.0
PEERS = ("genai_prices", "litellm")
MODELS = ("gpt-5", "gpt-5-mini", "gpt-4o", "gpt-4o-mini", "gpt-4.1")


def fresh(code: str) -> float:
    """CPU seconds of some code in a fresh process, beside those of an empty one."""
    measure = f"import time; t = time.process_time(); {code}; print(time.process_time() - t)"
    runs = [
        float(subprocess.run([sys.executable, "-c", measure], capture_output=True, text=True, check=True).stdout)
        for _ in range(7)
    ]
    return min(runs)


def calls(count: int) -> list[tuple[str, int, int, int, datetime]]:
    """Model, input, cached and output tokens, and time of each call."""
    rng = random.Random(11)
    start = datetime(2026, 10, 20, tzinfo=UTC)
    made = []
    for number in range(count):
        whole = rng.randrange(100, 30_000)
        cached = whole // 128 * 128 if rng.random() < 0.4 else 0
        made.append((rng.choice(MODELS), whole, cached, rng.randrange(1, 2000), start + timedelta(seconds=number)))
    return made


def loops(count: int) -> dict[str, Callable[[], Decimal]]:
    """The same calls priced one by one: by tenfold, and by the peers that are there."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    rows = calls(count)
    ours = [(m, at, tf.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o)) for m, i, c, o, at in rows]

    def own() -> Decimal:
        total = 0
        for model, at, usage in ours:
            total += tf.price(provider="openai", model=model, at=at, usage=usage).cost_pusd or 0
        return to_usd(total)

    found: dict[str, Callable[[], Decimal]] = {"tenfold": own}
    if find_spec("genai_prices"):
        import genai_prices

        theirs = [
            (m, at, genai_prices.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o)) for m, i, c, o, at in rows
        ]

        def genai() -> Decimal:
            total = Decimal(0)
            for model, at, usage in theirs:
                total += genai_prices.calc_price(
                    usage, model_ref=model, provider_id="openai", genai_request_timestamp=at
                ).total_price
            return total

        found["genai_prices"] = genai
    if _is_importable("litellm"):
        import litellm

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

        found["litellm"] = lite
    return found


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Calls.

    Returns:
        Times quicker than each peer; the import and the book beside an import of genai-prices.
    """
    rows = min(rows, 20_000)
    made = loops(rows)
    totals = {name: loop() for name, loop in made.items()}
    seconds = dict(zip(made, side_by_side(*made.values()), strict=True))
    found: list[Measured] = []
    for peer in PEERS:
        name, what = f"prices/{peer}", f"{peer} call by call / tf.price"
        if peer not in made:
            found.append(Measured(name, what, None, BOUND_CALL, is_lower_better=False, note="not installed here"))
            continue
        apart = abs(totals[peer] - totals["tenfold"])
        note = f"{peer.replace('_', '-')} {version(peer.replace('_', '-'))}; totals differ by ${apart:.6f}"
        found.append(
            Measured(name, what, seconds[peer] / seconds["tenfold"], BOUND_CALL, is_lower_better=False, rows=rows,
                     seconds=seconds["tenfold"], note=note)
        )  # fmt: skip
    if "genai_prices" in made:
        peers = fresh("import genai_prices")
        path = fresh("import tenfold; tenfold.price")
        book = fresh("import tenfold.prices; t = time.process_time(); tenfold.prices.price_book()")
        what = "/ import genai_prices (fresh processes)"
        found.append(
            Measured("prices/import", f"import tenfold; tenfold.price {what}", path / peers, BOUND_IMPORT, seconds=path)
        )
        found.append(
            Measured("prices/book", f"loading the compiled book {what}", book / peers, BOUND_BOOK, seconds=book)
        )
    return found


def _is_importable(name: str) -> bool:
    """Tell whether a package is there with what it needs: tests install litellm for one of its files alone."""
    if find_spec(name) is None:
        return False
    done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, check=False, env=os.environ)
    return done.returncode == 0
