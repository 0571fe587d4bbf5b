"""What a log says about the engine that would serve it: shared prefixes, structured output, concurrency, turns."""

from __future__ import annotations

import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from tenfold.analysis.composition import CELLS, concurrency
from tenfold.errors import NotEvaluable
from tenfold.ledger import Ledger, Session
from tenfold.store import steps

_CHOSEN = "serving_chosen_cells"


class Traffic(NamedTuple):
    """Measured features of some requests; None where the log does not say.

    Args:
        requests: Requests that reached an engine.
        models: Different models.
        mean_input: Prompt tokens of a request.
        mean_output: Answer tokens of a request.
        cached_ratio: Share of prompt tokens that a prompt cache answered, as logged.
        repeated_ratio: Share of prompt blocks whose whole prefix had been sent before: what an endless cache holds.
        structured_ratio: Share of requests whose answer had to fit a schema.
        multi_turn_ratio: Share of requests that belong to a session of several.
        ttft_ratio: Share of the time of requests that passes before their first token.
        in_flight: Requests under way, on average (Little's law: time under way over time).
        peak: The most at once.
        model: The model that most requests ask for.
    """

    requests: int
    models: int
    mean_input: float | None
    mean_output: float | None
    cached_ratio: float | None
    repeated_ratio: float | None
    structured_ratio: float | None
    multi_turn_ratio: float | None
    ttft_ratio: float | None
    in_flight: float | None
    peak: int | None
    model: str | None = None

    @property
    def shared_ratio(self) -> float | None:
        """Share of prompts that a prefix cache can take: the larger of what one took and of what repeats."""
        known = [share for share in (self.cached_ratio, self.repeated_ratio) if share is not None]
        return max(known, default=None)


class Trace(NamedTuple):
    """A log written as a trace that load generators replay.

    Args:
        requests: Requests in it.
        left_out: Requests of the window without a time or a count, or answered by a gateway.
        block_tokens: Tokens of a prefix block; None where no request has blocks.
        seconds: From first to last start.
    """

    requests: int
    left_out: int
    block_tokens: int | None
    seconds: float


def measure(ledger: Ledger, where: str = "true") -> Traffic:
    """Measure the features of a log's requests.

    Args:
        ledger: The log; its window is what is read.
        where: A checked SQL condition over requests.

    Returns:
        The features.

    Raises:
        NotEvaluable: No request is left.
    """
    with ledger.session() as session:
        cells = _chosen(session, where)
        found = session.engine.fetch(steps.filled("serving_features", cells=cells)).row(0, named=True)
        if not found["requests"]:
            raise NotEvaluable("no request in this window reached an engine: nothing to choose by")
        asked = session.engine.fetch(steps.filled("serving_models", cells=cells))["model"]
        repeated = None
        if found["hashed_requests"]:
            chosen = f"{session.window.condition('ts', 'ts is not null')} and (\n{where}\n)"
            sql = steps.filled("serving_prefixes", row_id=session.engine.row_id, condition=chosen)
            blocks = session.engine.fetch(sql).row(0, named=True)
            repeated = _share(blocks["blocks"] - blocks["distinct_blocks"], blocks["blocks"])
        calls = session.engine.fetch(steps.filled("calls", cells=cells)).row(0, named=True)
        swept = concurrency(session, calls, cells)
    return Traffic(
        requests=found["requests"],
        models=found["models"],
        mean_input=_share(found["input_tokens"], found["input_known"]),
        mean_output=_share(found["output_tokens"], found["output_known"]),
        cached_ratio=_share(found["cache_read_tokens"], found["read_known_tokens"]),
        repeated_ratio=repeated,
        structured_ratio=_share(found["structured_requests"], found["structured_known"]),
        multi_turn_ratio=_share(found["multi_turn_requests"], found["session_requests"]),
        ttft_ratio=_share(found["ttft_ms"], found["ttft_known_ms"]),
        in_flight=None if swept.average is None else float(swept.average),
        peak=swept.peak,
        model=asked[0] if len(asked) else None,
    )


def write_trace(ledger: Ledger, path: Path, where: str = "true") -> Trace:
    """Write a log as a Mooncake trace (JSON lines): start in ms, tokens, numbers of prefix blocks.

    Blocks are numbered anew, so that nothing of the log's hashes leaves it; a prompt's blocks beyond the known ones are
    its own.

    Args:
        ledger: The log; its window is what is written.
        path: File to write.
        where: A checked SQL condition over requests.

    Returns:
        What was written.

    Raises:
        NotEvaluable: No request has a time and both counts.
    """
    with ledger.session() as session:
        cells = _chosen(session, where)
        rows = session.engine.fetch(steps.filled("serving_trace", cells=cells))
        counted = session.engine.fetch(steps.filled("serving_features", cells=cells)).row(0, named=True)
    if rows.is_empty():
        raise NotEvaluable("no request here has a start, input_tokens and output_tokens: nothing to replay")
    sizes = Counter(rows.filter(pl.col("prefix_hashes").is_not_null())["prefix_block_tokens"].drop_nulls().to_list())
    block = int(sizes.most_common(1)[0][0]) if sizes else None
    with path.open("w", encoding="utf-8") as handle:
        handle.writelines(json.dumps(line) + "\n" for line in _lines(rows, block))
    first, last = rows["ts"][0], rows["ts"][-1]
    return Trace(len(rows), counted["requests"] - len(rows), block, (last - first).total_seconds())


def _lines(rows: pl.DataFrame, block: int | None) -> Iterator[dict[str, Any]]:
    fresh = itertools.count()
    numbers: defaultdict[object, int] = defaultdict(lambda: next(fresh))
    first = rows["ts"][0]
    for row in rows.iter_rows(named=True):
        line = {
            "timestamp": round((row["ts"] - first).total_seconds() * 1e3),
            "input_length": row["input_tokens"],
            "output_length": row["output_tokens"],
        }
        if block is not None and row["prefix_hashes"] is not None and row["prefix_block_tokens"] == block:
            wanted = -(-row["input_tokens"] // block)
            known = [numbers[hashed] for hashed in row["prefix_hashes"][:wanted]]
            line["hash_ids"] = [*known, *itertools.islice(fresh, wanted - len(known))]
        yield line


def _chosen(session: Session, where: str) -> str:
    if where == "true":
        return CELLS
    session.engine.step(_CHOSEN, f"select * from {CELLS} where (\n{where}\n)")
    return _CHOSEN


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None
