"""Samples of engines laid beside requests: by replica and minute, under whatever name an engine gives a metric."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from tenfold.latency.records import Floats, Labels, Mask, Pair, Samples, Window

Places: TypeAlias = NDArray[np.int64]
# Our name -> the engines' (serving.md 5): vLLM's, its former ones, SGLang's.
ALIASES: dict[str, tuple[str, ...]] = {
    "running": ("num_requests_running", "num_running_reqs"),
    "waiting": ("num_requests_waiting", "num_queue_reqs"),
    "kv_usage_ratio": ("kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"),
    "preemptions_total": ("num_preemptions_total", "num_preemptions", "num_retracted_requests_total"),
    "prefix_queries_total": ("prefix_cache_queries_total", "prefix_cache_queries", "gpu_prefix_cache_queries_total"),
    "prefix_hits_total": ("prefix_cache_hits_total", "prefix_cache_hits", "gpu_prefix_cache_hits_total"),
}
_ENGINES = ("vllm:", "sglang:", "vllm_", "sglang_")
_MINUTE = 60.0
# Field of a window <- metric; shares of engines under one name are averaged, counts added.
_FILLS = {"running": "running", "waiting": "waiting", "kv": "kv_usage_ratio"}


def named(samples: Samples, metric: str) -> Mask:
    """Find a metric's samples.

    Args:
        samples: The samples.
        metric: Its name here (a key of ``ALIASES``), or as the file calls it.

    Returns:
        Which samples are its.
    """
    wanted = {metric, *ALIASES.get(metric, ())}
    names, places = np.unique(samples.metric, return_inverse=True)
    return np.array([_plain(str(name)) in wanted or str(name) == metric for name in names], dtype=np.bool_)[places]


def _plain(name: str) -> str:
    low = name.lower()
    return next((low.removeprefix(engine) for engine in _ENGINES if low.startswith(engine)), low)


def by_minute(samples: Samples, metric: str, replicas: Labels | None, ts_s: Floats) -> Floats:
    """Give each request the value of its replica's minute.

    Args:
        samples: The samples; those without a replica are of all.
        metric: Name of the metric, as in ``named``. A counter (its name ends in ``_total``) gives what it grew by in
            the minute.
        replicas: Replica a request; None: the log does not say.
        ts_s: When requests arrived, in seconds since 1970.

    Returns:
        A value a request; NaN where no sample is of its replica and minute.
    """
    mine = named(samples, metric)
    found = np.full(ts_s.size, np.nan)
    if not mine.any() or not ts_s.size:
        return found
    names, owner = np.unique(samples.replica[mine], return_inverse=True)
    times, values = samples.ts_s[mine], samples.value[mine]
    is_counter = metric.endswith("_total")
    times, owner, values = _at_once(times, owner, values, adds=metric != "kv_usage_ratio")
    if is_counter:
        times, owner, values = _growth(times, owner, values)
    minutes = np.floor(times / _MINUTE).astype(np.int64)
    known = ~np.isnan(ts_s)
    asked = np.floor(np.where(known, ts_s, 0.0) / _MINUTE).astype(np.int64)
    base = int(min(minutes.min(initial=0), asked.min()))
    span = int(max(minutes.max(initial=0), asked.max())) - base + 1
    keys, places = np.unique(owner * span + (minutes - base), return_inverse=True)
    sums = np.bincount(places, weights=values, minlength=keys.size)
    means = sums if is_counter else sums / np.bincount(places, minlength=keys.size)
    owners = _owners(names, replicas, ts_s.size)
    wanted = owners * span + (asked - base)
    at = np.minimum(np.searchsorted(keys, wanted), max(keys.size - 1, 0))
    hit = (owners >= 0) & known
    if keys.size:
        hit &= keys[at] == wanted
        found[hit] = means[at[hit]]
    return found


def _at_once(times: Floats, owner: Places, values: Floats, *, adds: bool) -> tuple[Floats, Places, Floats]:
    """Make one of the engines that stand under one name at one time: their sum, or their mean."""
    order = np.lexsort((times, owner))
    times, owner, values = times[order], owner[order], values[order]
    starts = np.flatnonzero(np.r_[True, (np.diff(times) != 0) | (np.diff(owner) != 0)])
    sums = np.add.reduceat(values, starts)
    sizes = np.diff(np.r_[starts, values.size])
    return times[starts], owner[starts], sums if adds else sums / sizes


def _growth(times: Floats, owner: Places, values: Floats) -> tuple[Floats, Places, Floats]:
    """Turn a counter into what it grew by since the sample before; one that fell was started anew."""
    grown = np.diff(values)
    grown = np.where(grown >= 0, grown, values[1:])
    same = np.diff(owner) == 0
    return times[1:][same], owner[1:][same], grown[same]


def _owners(names: NDArray[np.str_], replicas: Labels | None, size: int) -> Places:
    """Find whose samples are a request's: its replica's (with or without a port), else those of all, else the one."""
    told = [str(name) for name in names]
    everyone = told.index("") if "" in told else (0 if len(told) == 1 and replicas is None else -1)
    if replicas is None:
        return np.full(size, everyone, dtype=np.int64)
    places = {name: i for i, name in enumerate(told)}
    places |= {name.rsplit(":", 1)[0]: i for name, i in list(places.items()) if name.rsplit(":", 1)[0] not in places}
    known = np.array([*(places.get(name, everyone) for name in replicas.names), everyone], dtype=np.int64)
    return known[replicas.codes]


def filled(pair: Pair) -> Pair:
    """Fill in from the engines' samples what the log does not say of load and memory.

    Args:
        pair: The pair, with ``metrics``.

    Returns:
        The pair; notes say what was filled, and for how many requests.
    """
    metrics = pair.metrics
    if metrics is None:
        return pair
    notes: list[str] = []
    fields: tuple[dict[str, Floats], dict[str, Floats]] = ({}, {})
    missing = list(pair.missing)
    for field, metric in _FILLS.items():
        if getattr(pair.before, field) is not None or not named(metrics, metric).any():
            continue
        values = tuple(by_minute(metrics, metric, window.replica, window.ts_s) for window in pair.windows)
        shares = [float(np.mean(~np.isnan(one))) if one.size else 0.0 for one in values]
        if min(shares) == 0.0:
            notes.append(f"{metric}: no sample of the metrics file is of a replica and minute of {_where(shares)}")
            continue
        if metric == "kv_usage_ratio" and max(np.nanmax(one) for one in values) > 2:
            values = tuple(one / 100 for one in values)
        for kept, one in zip(fields, values, strict=True):
            kept[field] = one
        notes.append(
            f"{metric} is filled from the metrics file, by replica and minute "
            f"({shares[0]:.0%} of requests before, {shares[1]:.0%} after)"
        )
        missing = [column for column in missing if column != metric]
    windows = [_with(window, kept) for window, kept in zip(pair.windows, fields, strict=True)]
    return replace(pair, before=windows[0], after=windows[1], missing=tuple(missing), notes=(*pair.notes, *notes))


def _with(window: Window, fields: dict[str, Floats]) -> Window:
    return replace(window, **fields) if fields else window


def _where(shares: list[float]) -> str:
    return "either window" if max(shares) == 0.0 else f"the window {'before' if shares[0] == 0.0 else 'after'}"
