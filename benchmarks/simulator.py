"""The simulator of serving engines beside a plain Python loop of the same model, one object an event, in one run.

The plain loop is ``tests/oracle_simulator.py``, to which the tests hold the simulator token by token. What is timed is CPU of
one process, machine code loaded before; memory is the peak of a fresh child that simulates a million requests.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measuring import Measured, cpu, in_child
from tenfold.serving.memory import deployment
from tenfold.serving.simulator import from_trace, simulate, steady, timed

if TYPE_CHECKING:
    from tenfold.serving.simulator import Arrivals

DATA = (
    "requests of 1,000 tokens in and out; the first 2,000 of two public Azure traces where TENFOLD_REAL_DATA names them"
)
BOUND, BOUND_MB = 50.0, 1_000.0
REAL = Path(os.environ.get("TENFOLD_REAL_DATA", Path(__file__).parents[2] / "shared" / "data"))
HERE = deployment("meta-llama/Llama-3.1-8B", "h100-sxm")
POOL = 400_000


def plain(arrivals: Arrivals) -> Any:
    """The same with the plain loop."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
    import oracle_simulator

    rows = zip(arrivals.arrival_s, arrivals.input_tokens, arrivals.output_tokens, strict=True)
    requests = [oracle_simulator.Request(n, float(at), int(i), int(o)) for n, (at, i, o) in enumerate(rows)]
    return oracle_simulator.World(HERE, requests, budget=2048, most=256, pool_tokens=POOL)


def head(arrivals: Arrivals, requests: int) -> Arrivals:
    """The first requests of a trace without prefixes."""
    return arrivals._replace(
        arrival_s=arrivals.arrival_s[:requests],
        input_tokens=arrivals.input_tokens[:requests],
        output_tokens=arrivals.output_tokens[:requests],
        chained=arrivals.chained[:requests],
    )


def beside(name: str, arrivals: Arrivals) -> Measured:
    """How many times quicker, on one workload."""
    found: list[Any] = []
    fast = cpu(lambda: found.append(simulate(HERE, arrivals, budget=2048, max_num_seqs=256, kv_pool_tokens=POOL)))
    worlds = [plain(arrivals) for _ in range(2)]
    world = worlds[-1]
    slow = cpu(lambda: worlds.pop().run(), 2)
    out = found[-1]
    count = out.requests.size
    assert int(out.tally["steps"][0]) == world.steps
    tokens = int(out.requests["output"].sum())
    note = f"{tokens / count:.0f} tokens out a request, {tokens / world.steps:.1f} a step"
    what = "a plain loop of the same model / the simulator"
    return Measured(
        f"simulator/{name}", what, slow / fast, BOUND, is_lower_better=False, rows=count, seconds=fast, note=note
    )


def child(rows: int) -> dict[str, Any]:
    """Simulate many requests in a fresh process."""
    simulate(HERE, timed(steady(rows, 500, 100), 20.0), budget=2048, max_num_seqs=256)
    return {}


def measure(rows: int) -> list[Measured]:
    """Measure.

    Args:
        rows: Requests of the run whose memory is measured.

    Returns:
        Times quicker on each workload, and memory.
    """
    simulate(HERE, steady(1, 1, 1), budget=2048, max_num_seqs=256)
    found = [beside("1000 in, 1000 out", timed(steady(400, 1000, 1000), 4.0))]
    for kind in ("conv", "code"):
        path = REAL / "azure" / f"AzureLLMInferenceTrace_{kind}.csv"
        if path.is_file():
            found.append(beside(f"Azure {kind}", head(from_trace(path), 2000)))
        else:
            found.append(Measured(f"simulator/Azure {kind}", "a plain loop / the simulator", None, BOUND,
                                  is_lower_better=False, note="no real data: set TENFOLD_REAL_DATA"))  # fmt: skip
    alone = in_child("benchmarks.simulator:child", rows)
    found.append(
        Measured("simulator/memory", "peak of the process that simulates", alone["peak_mb"], BOUND_MB, rows=rows,
                 seconds=alone["cpu_s"], unit="memory")
    )  # fmt: skip
    return found
