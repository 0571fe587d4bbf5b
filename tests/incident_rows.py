"""What the tests of incidents ask of their rows."""

from __future__ import annotations

import functools

import polars as pl

from tenfold._shipped.data.incidents import COMPONENTS, incident

made = functools.cache(incident)


def answered(frame):
    return frame.filter(pl.col("status") == "success")


def tpot(frame):
    """Milliseconds an answer token, where there are enough of them."""
    long = answered(frame).filter(pl.col("output_tokens") >= 16)
    return long.select(
        "replica", "ts", tpot=(pl.col("duration_ms") - pl.col("ttft_ms")) / (pl.col("output_tokens") - 1)
    )


def p99(frame):
    """Of each component."""
    good = answered(frame)
    columns = {"ttft": good["ttft_ms"], "tpot": tpot(frame)["tpot"], "output": good["output_tokens"]}
    return {name: column.quantile(0.99, "linear") for name, column in columns.items()}


def ratios(one):
    before, after = p99(one.before), p99(one.after)
    return {name: after[name] / before[name] for name in COMPONENTS}


def hit(frame):
    return frame["cache_read_tokens"].sum() / frame["input_tokens"].sum()


def same(before, after):
    """Whether two samples may well be of one distribution (Kolmogorov-Smirnov)."""
    from scipy.stats import ks_2samp  # slow to import

    return ks_2samp(before.drop_nulls().to_numpy(), after.drop_nulls().to_numpy()).pvalue > 1e-4


def by_prompt(frame):
    """Attempts at each prompt whose first attempt is in the window."""
    prompts = frame.sort("ts").group_by("prompt_hash", maintain_order=True)
    attempts = prompts.agg("attempt", "ts", "input_tokens", "status", "duration_ms", "session_id")
    return attempts.filter(pl.col("attempt").list.first() == 0)
