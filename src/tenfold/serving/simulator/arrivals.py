"""What is asked of the replicas: requests with times and lengths, from a log, a trace or a process."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from tenfold.errors import NotEvaluable, ServingError, near
from tenfold.logs import Log, load, open_log
from tenfold.serving.memory import BLOCK_TOKENS
from tenfold.serving.simulator.layout import Floats, Ints
from tenfold.store import steps
from tenfold.store.engines.duckdb import reading


class Arrivals(NamedTuple):
    """Requests in order of arrival.

    Args:
        arrival_s: Seconds from the first; in a closed loop, not used.
        input_tokens: Tokens of the prompt, at least 1.
        output_tokens: Tokens of the answer, at least 1.
        chained: Prefix blocks of each request.
        chain: Numbers of the prefix blocks of all requests, one after the other: equal numbers are equal content.
        block_tokens: Tokens of a prefix block.
        left_out: Requests of the log that cannot be replayed, or not with their prefix, by reason.
    """

    arrival_s: Floats
    input_tokens: Ints
    output_tokens: Ints
    chained: Ints
    chain: Ints
    block_tokens: int = 0
    left_out: tuple[tuple[str, int], ...] = ()


def from_trace(path: str | Path) -> Arrivals:
    """Read a trace or log file.

    Args:
        path: The file, in any format that ``tenfold load`` knows.

    Returns:
        Its requests.

    Raises:
        LogFormatError: The format is not known.
        NotEvaluable: It has no request with a time and both counts.
    """
    return _from_log(load(path), str(path))


def from_database(db: str | Path, *, model: str | None = None) -> Arrivals:
    """Read the requests that were loaded into a database.

    Args:
        db: The database.
        model: Only requests that this model served.

    Returns:
        Its requests.

    Raises:
        StoreError: It is no database of tenfold.
        NotEvaluable: It has no request with a time and both counts.
    """
    return _from_log(open_log(db), str(db), model)


def steady(requests: int, input_tokens: int, output_tokens: int) -> Arrivals:
    """Make requests that are all alike and there from the start: for a closed loop, or an offline batch.

    Args:
        requests: How many.
        input_tokens: Tokens of each prompt.
        output_tokens: Tokens of each answer.

    Returns:
        The requests.

    Raises:
        ServingError: A number is not positive.
    """
    for what, number in (("requests", requests), ("input tokens", input_tokens), ("output tokens", output_tokens)):
        if number < 1:
            raise ServingError(f"{what} {number}: must be at least 1")
    return _plain(np.zeros(requests), np.full(requests, input_tokens), np.full(requests, output_tokens))


def timed(arrivals: Arrivals, rate_per_s: float, *, burstiness: float = 1.0, seed: int = 0) -> Arrivals:
    """Give requests new times: independent gaps of a mean rate.

    Args:
        arrivals: The requests; their order and lengths stay.
        rate_per_s: Requests a second, on average.
        burstiness: Squared coefficient of variation of the gaps: 1 is a Poisson process, more comes in bursts (gamma
            distributed gaps), below 1 is more even. (vLLM's ``--burstiness`` is its inverse.)
        seed: Of the random numbers; equal seeds give equal times.

    Returns:
        The same requests at other times, the first at 0.

    Raises:
        ServingError: The rate or the burstiness is not positive.
    """
    if not (rate_per_s > 0 and burstiness > 0 and np.isfinite(rate_per_s) and np.isfinite(burstiness)):
        raise ServingError(f"rate {rate_per_s}, burstiness {burstiness}: both must be positive")
    gaps = np.random.default_rng(seed).gamma(1 / burstiness, burstiness / rate_per_s, arrivals.arrival_s.size)
    times = np.cumsum(gaps)
    return arrivals._replace(arrival_s=times - times[0])


def repeated(arrivals: Arrivals, requests: int) -> Arrivals:
    """Take requests from the start of a log, over and over; times are those of ``steady`` until ``timed`` gives some.

    Each time around, prefixes are new content: requests share them as in the log, and not with their own repetition.

    Args:
        arrivals: The log.
        requests: How many to take.

    Returns:
        That many requests.

    Raises:
        ServingError: None are asked for.
    """
    if requests < 1:
        raise ServingError(f"requests {requests}: must be at least 1")
    times = -(-requests // arrivals.arrival_s.size)
    chained = np.tile(arrivals.chained, times)[:requests]
    blocks = int(arrivals.chain.max()) + 1 if arrivals.chain.size else 0
    chain = np.tile(arrivals.chain, times) + np.repeat(np.arange(times) * blocks, arrivals.chain.size)
    return arrivals._replace(
        arrival_s=np.zeros(requests),
        input_tokens=np.tile(arrivals.input_tokens, times)[:requests],
        output_tokens=np.tile(arrivals.output_tokens, times)[:requests],
        chained=chained,
        chain=chain[: int(chained.sum())],
    )


def _plain(arrival_s: Floats, input_tokens: Ints, output_tokens: Ints) -> Arrivals:
    none = np.zeros(0, np.int64)
    return Arrivals(arrival_s, input_tokens, output_tokens, np.zeros(arrival_s.size, np.int64), none)


def _from_log(log: Log, place: str, model: str | None = None) -> Arrivals:
    with reading(log.store) as engine:
        steps.run(engine, "serving_arrivals")
        frame = engine.fetch("select * from serving_arrivals")
    if model is not None:
        served = frame.filter(pl.col("model") == model)
        if served.is_empty():
            known = sorted(name for name in frame["model"].unique().to_list() if name)
            raise NotEvaluable(f'{place}: no request of model "{model}".{near(model, known)}')
        frame = served
    reasons = {
        "no time": pl.col("ts").is_null(),
        "no count of input or output tokens": pl.col("input_tokens").is_null() | pl.col("output_tokens").is_null(),
        "no tokens of input or output": (pl.col("input_tokens") < 1) | (pl.col("output_tokens") < 1),
    }
    left_out: list[tuple[str, int]] = []
    for reason, condition in reasons.items():
        kept = frame.filter(~condition)
        if kept.height < frame.height:
            left_out.append((reason, frame.height - kept.height))
        frame = kept
    if frame.is_empty():
        why = "; ".join(f"{count} have {reason}" for reason, count in left_out) or "it has no request at all"
        raise NotEvaluable(f"{place}: no request can be replayed: {why}")
    return _with_prefixes(frame, left_out)


def _with_prefixes(frame: pl.DataFrame, left_out: list[tuple[str, int]]) -> Arrivals:
    """Number the prefix blocks. Blocks of another size than most have cannot be matched with theirs."""
    at_us = frame["ts"].to_physical().to_numpy()
    has_prefix = frame["prefix_hashes"].list.len().fill_null(0) > 0
    sizes = frame.filter(has_prefix & (pl.col("prefix_block_tokens") % BLOCK_TOKENS == 0))["prefix_block_tokens"]
    block_tokens = int(sizes.mode().sort()[0]) if sizes.len() else 0
    without = frame.filter(has_prefix & pl.col("prefix_block_tokens").ne_missing(block_tokens)).height
    if without:
        usable = f"of {block_tokens} tokens, as most" if block_tokens else f"of a multiple of {BLOCK_TOKENS} tokens"
        left_out.append((f"prefixes in blocks that are not {usable}", without))
    chains = frame.select(
        pl.when(pl.col("prefix_block_tokens") == block_tokens).then(
            pl.col("prefix_hashes").list.head(pl.col("input_tokens") // max(block_tokens, 1))
        )
    ).to_series()
    numbers = chains.explode().drop_nulls().rank("dense") - 1
    return Arrivals(
        arrival_s=(at_us - at_us[0]) / 1e6,
        input_tokens=np.array(frame["input_tokens"], np.int64),
        output_tokens=np.array(frame["output_tokens"], np.int64),
        chained=np.array(chains.list.len().fill_null(0), np.int64),
        chain=np.array(numbers, np.int64),
        block_tokens=block_tokens,
        left_out=tuple(left_out),
    )
