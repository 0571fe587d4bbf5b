"""Load and attribute a log of N requests, beside a bare scan and beside genai-prices' and litellm's per-call loops.

What is timed is CPU (user and system, the best of three, one process); peak memory is that of a fresh child process
that loads and attributes. The per-call loops run on the log's first 20,000 rows, and their totals are compared.
"""

from __future__ import annotations

import json
import os
import platform
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import tenfold as tf
from tenfold.money import to_usd
from tenfold.store import schema
from tenfold.store.database import query

MODELS = ("gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-mini", "gpt-5", "gpt-5-mini", "gpt-5-nano")
TEAMS = ("search", "agents", "support", "platform", "growth", "finance")
START = int(datetime(2026, 7, 1, tzinfo=UTC).timestamp())
SECONDS = 92 * 86_400
PEER_ROWS = 20_000
MEMORY_LIMIT = "512MB"


def write_log(path: Path, rows: int) -> None:
    """Write a synthetic OpenAI Chat log, one JSON a line, in time order."""
    rng = random.Random(7)
    with path.open("w") as file:
        for number in range(rows):
            prompt = rng.randrange(200, 12_000)
            cached = prompt // 128 * 128 if rng.random() < 0.4 else 0
            file.write(
                f'{{"id": "chatcmpl-{number:09d}", "object": "chat.completion", "created": {START + number * SECONDS // rows}, '
                f'"model": "{MODELS[rng.randrange(8)]}", "service_tier": "default", "choices": [], "usage": {{"prompt_tokens": '
                f'{prompt}, "completion_tokens": {rng.randrange(1, 1500)}, "prompt_tokens_details": {{"cached_tokens": {cached}}}, '
                f'"completion_tokens_details": {{"reasoning_tokens": 0}}}}, "metadata": {{"team": "{TEAMS[number % 6]}"}}}}\n'
            )


def cpu(work: Callable[[], Any], times: int = 3) -> float:
    """CPU seconds of the best of some runs."""
    best = float("inf")
    for _ in range(times):
        before = time.process_time()
        work()
        best = min(best, time.process_time() - before)
    return best


def child(log: str, db: str) -> None:
    """Load and attribute in a fresh process and print what it took."""
    before = time.process_time()
    loaded = tf.load([log], db=db)
    load_cpu = time.process_time() - before
    ledger = tf.attribute(loaded)
    document = {
        "load_cpu_s": load_cpu,
        "total_usd": str(to_usd(ledger.total_pusd)),
        "requests": loaded.summary["requests"],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    sys.stdout.write(json.dumps(document))


def peers(rows: list[tuple[Any, ...]]) -> dict[str, tuple[float, Decimal]]:
    """Per-call loops of the peers over the same rows: CPU seconds and total in USD."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    import genai_prices
    import litellm

    def genai_loop() -> Decimal:
        return sum(
            (
                genai_prices.calc_price(
                    genai_prices.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o),
                    model_ref=model,
                    provider_id="openai",
                    genai_request_timestamp=ts.replace(tzinfo=UTC),
                ).total_price
                for model, i, c, o, ts in rows
            ),
            Decimal(0),
        )

    def litellm_loop() -> Decimal:
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

    def own_loop() -> Decimal:
        total = 0
        for model, i, c, o, ts in rows:
            usage = tf.Usage(input_tokens=i, cache_read_tokens=c, output_tokens=o)
            total += tf.price(provider="openai", model=model, at=ts.replace(tzinfo=UTC), usage=usage).cost_pusd or 0
        return to_usd(total)

    loops = {"genai-prices 0.2.3 loop": genai_loop, "litellm 1.110.2 loop": litellm_loop, "tf.price loop": own_loop}
    return {name: (cpu(loop, times=1), loop()) for name, loop in loops.items()}


def main(rows: int) -> None:
    """Run the benchmark and print one table."""
    with tempfile.TemporaryDirectory() as folder:
        log, db = Path(folder) / "log.jsonl", Path(folder) / "usage.duckdb"
        write_log(log, rows)
        (Path(folder) / "tenfold.toml").write_text(f'memory_limit = "{MEMORY_LIMIT}"\n')
        size_mb = log.stat().st_size / 1e6
        run = subprocess.run(
            [sys.executable, "-c", f"from benchmarks.attribution import child; child({str(log)!r}, {str(db)!r})"],
            capture_output=True, text=True, check=True, cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        )  # fmt: skip
        took = json.loads(run.stdout)
        ledger = tf.attribute(tf.open_log(db))
        tokens = ", ".join(f"sum({name})" for name in schema.TOKEN_COLUMNS)
        with ledger.session() as session:
            connection = session.engine.connection  # type: ignore[attr-defined]
            by = ["day", "team", "model"]
            timed = {
                "bare scan (12 token sums)": cpu(lambda: query(connection, f"select {tokens}, max(ts) from requests")),
                "group by day, team, model": cpu(
                    lambda: query(
                        connection, f"select cast(ts as date), team, price_key, {tokens} from requests group by all"
                    )
                ),
                "attribution, raw rows": cpu(lambda: session.totals(by, priced="priced_requests")),
                "attribution, daily cube": cpu(lambda: session.totals(by)),
            }
            first = query(
                connection,
                "select model, input_tokens, cache_read_tokens, output_tokens, ts from requests "
                f"order by source_line limit {PEER_ROWS}",
            ).rows()
    compared = peers(first)
    own = compared["tf.price loop"][1]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}; {rows:,} requests, {size_mb:,.0f} MB"
    )
    print(f"load: {rows / took['load_cpu_s']:,.0f} rows/CPU-s, {size_mb / took['load_cpu_s']:,.0f} MB/CPU-s")
    print(f"peak memory of load and attribution: {took['peak_mb']:,.0f} MB with memory_limit {MEMORY_LIMIT}")
    print(f"total: ${took['total_usd']} over {took['requests']:,} requests\n")
    scan = timed["bare scan (12 token sums)"]
    print(f"{'what':<28}{'rows/CPU-s':>14}{'x bare scan':>13}{'total USD (first 20,000)':>28}")
    for name, seconds in timed.items():
        print(f"{name:<28}{rows / seconds:>14,.0f}{seconds / scan:>12.2f}x")
    raw = rows / timed["attribution, raw rows"]
    for name, (seconds, total) in compared.items():
        rate = len(first) / seconds
        print(f"{name:<28}{rate:>14,.0f}{'':>13}{total:>28.9f}   attribution is {raw / rate:,.0f}x")
        if abs(total - own) > Decimal("0.000001"):
            print(f"{'':<28}differs from tenfold by {total - own:.9f} USD")
