"""Incidents with planted causes: two windows of requests, and why the second is slower than the first.

`incident("S1", seed)` draws traffic, answers it with tenfold's simulator of serving engines, and does so again for the
window after with one thing changed. Nothing of what diagnoses incidents is used here, so the truth is the generator's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .incident_effects import EFFECTS
from .incident_replicas import CANCELLED, GOLDEN, OK, STATUSES, Served, serve
from .incident_reports import REPORTS
from .incident_scenarios import SCENARIOS, Knob, Scenario, Side
from .incident_traffic import CLIENTS, FEATURE_NAMES, FEATURES, TEAM_NAMES, Floats, Ints, draw

START = datetime(2026, 11, 16, 9, tzinfo=UTC)
COMPONENTS = ("ttft", "tpot", "output")
ALL: dict[str, Scenario] = {**SCENARIOS, **REPORTS}
_WARM_UP_S = 300.0
_QUANTILE = 0.99
_SAMPLES = {"cpu_ratio": 0.35, "gpu_clock_mhz": 1740.0}
_MOST = {"cpu_ratio": 1.0}


@dataclass(frozen=True, slots=True)
class Truth:
    """What was planted.

    Args:
        first: Steps of the first causes.
        kinds: What they are called.
        component: The component whose p99 moved most.
        shares: By step and component: share of that component's shift, with all that follows from the cause; only
            components that it moves.
        consequences: Steps that show a consequence, and the step of its cause.
        verdict: What a diagnosis must come to: ``explained``, ``no_change`` or ``refused``.
        also: Steps that may be named as causes too; all others are innocent.
    """

    first: frozenset[int]
    kinds: frozenset[str]
    component: str
    shares: dict[int, dict[str, float]] = field(default_factory=dict[int, dict[str, float]])
    consequences: dict[int, int] = field(default_factory=dict[int, int])
    verdict: str = "explained"
    also: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, eq=False)
class Incident:
    """Two windows and what else is known of their time.

    Args:
        name: Name of the scenario.
        before: Requests of the first window, columns as in tenfold's ``requests``.
        after: Requests of the second, which starts where the first ends.
        events: ``ts``, ``kind``, ``what``, ``where``.
        hosts: ``ts``, ``replica``, ``metric``, ``value``.
        truth: What was planted.
    """

    name: str
    before: pl.DataFrame
    after: pl.DataFrame
    events: list[dict[str, Any]]
    hosts: list[dict[str, Any]]
    truth: Truth

    def write(self, directory: Path) -> dict[str, Path]:
        """Write ``before.parquet``, ``after.parquet``, ``events.csv`` and ``hosts.csv``.

        Args:
            directory: Where to; made if missing.

        Returns:
            The files, by ``before``, ``after``, ``events`` and ``hosts``.
        """
        directory.mkdir(parents=True, exist_ok=True)
        files = {name: directory / f"{name}.parquet" for name in ("before", "after")}
        self.before.write_parquet(files["before"])
        self.after.write_parquet(files["after"])
        for name, rows, columns in (
            ("events", self.events, ("ts", "kind", "what", "where")),
            ("hosts", self.hosts, ("ts", "replica", "metric", "value")),
        ):
            files[name] = directory / f"{name}.csv"
            frame = pl.DataFrame(rows, schema=None if rows else dict.fromkeys(columns, pl.String))
            frame.write_csv(files[name], datetime_format="%Y-%m-%dT%H:%M:%S%.3fZ")
        return files


def incident(name: str, seed: int, requests: int = 20_000) -> Incident:
    """Make an incident.

    Args:
        name: Its name: S1 to S12, or I01 to I51 for a small replica of what was reported.
        seed: Of all random draws; equal seeds give equal incidents.
        requests: Requests of the window before, about; the window after lasts as long.

    Returns:
        Its windows, what is known of their time, and the truth.
    """
    scenario = ALL[name]
    span_s = requests / scenario.base.pattern.per_s
    seeds = [int(one) for one in np.random.SeedSequence([seed, *name.encode()]).generate_state(3, np.uint64)]
    every = tuple(range(len(scenario.knobs)))
    before = _served(scenario, (), seeds[0], span_s)
    wanted = _subsets(len(every)) if len(every) > 1 else [every]
    served = {chosen: _served(scenario, chosen, seeds[1], span_s) for chosen in wanted}
    after = served[every]
    border = START + timedelta(seconds=span_s)
    return Incident(
        name=name,
        before=_frame(before, scenario, f"{name}-{seed}-a", START, ()),
        after=_frame(after, scenario, f"{name}-{seed}-b", border, scenario.knobs),
        events=[
            dict(zip(("ts", "kind", "what", "where"), (border, *knob.event), strict=True))
            for knob in scenario.knobs
            if knob.event
        ],
        hosts=_hosts(scenario, np.random.default_rng(seeds[2]), span_s),
        truth=_truth(scenario, served),
    )


def _served(scenario: Scenario, chosen: tuple[int, ...], seed: int, span_s: float) -> Served:
    side = _turned(scenario, chosen)
    traffic, effects = (np.random.default_rng(one) for one in np.random.SeedSequence(seed).spawn(2))
    served = serve(draw(traffic, side.pattern, _WARM_UP_S, span_s), side.engine, side.clients, span_s)
    for at in chosen:
        if scenario.knobs[at].effect:
            served = EFFECTS[scenario.knobs[at].effect](served, effects, span_s)
    return served


def _turned(scenario: Scenario, chosen: tuple[int, ...]) -> Side:
    side = scenario.base
    for at in chosen:
        side = scenario.knobs[at].turned(side)
    return side


def _subsets(count: int) -> list[tuple[int, ...]]:
    return [chosen for size in range(count + 1) for chosen in itertools.combinations(range(count), size)]


def _truth(scenario: Scenario, served: Mapping[tuple[int, ...], Served]) -> Truth:
    knobs = scenario.knobs
    if scenario.verdict != "explained":
        return Truth(frozenset(), frozenset(), "", verdict=scenario.verdict, also=scenario.also)
    shares = {knob.step: dict.fromkeys(knob.moves, 1.0) for knob in knobs}
    if len(knobs) > 1:
        tails = {chosen: _tails(one) for chosen, one in served.items()}
        shares = {knob.step: _shapley(at, len(knobs), tails) for at, knob in enumerate(knobs)}
    return Truth(
        first=frozenset(knob.step for knob in knobs),
        kinds=frozenset(kind for knob in knobs for kind in knob.kinds),
        component=next(name for knob in knobs for name in knob.moves),
        shares=shares,
        consequences=dict(scenario.consequences),
        also=scenario.also,
    )


def _tails(served: Served) -> Floats:
    """Give the p99 of each component over the answered requests of the window."""
    requests = served.requests
    good = (requests.at_s >= 0) & (served.status == OK)
    tpot_s = (served.e2e_s - served.ttft_s) / np.maximum(requests.output - 1, 1)
    columns = (served.ttft_s[good], tpot_s[good & (requests.output >= 16)], requests.output[good])
    return np.array([np.quantile(column, _QUANTILE) for column in columns])


def _shapley(at: int, count: int, tails: Mapping[tuple[int, ...], Floats]) -> dict[str, float]:
    """Give a knob's share of each component's shift: its mean effect over all orders of turning the knobs."""
    effect = np.zeros(len(COMPONENTS))
    for chosen in _subsets(count):
        if at not in chosen:
            weight = math.factorial(len(chosen)) * math.factorial(count - len(chosen) - 1) / math.factorial(count)
            effect += weight * (tails[tuple(sorted((*chosen, at)))] - tails[chosen])
    shift = tails[tuple(range(count))] - tails[()]
    return {
        name: float(effect[place] / shift[place])
        for place, name in enumerate(COMPONENTS)
        if abs(shift[place]) > 0.1 * tails[()][place]
    }


def _frame(served: Served, scenario: Scenario, prefix: str, start: datetime, knobs: tuple[Knob, ...]) -> pl.DataFrame:
    served = served.take(served.requests.at_s >= 0)  # what came before warmed the caches up
    requests = served.requests
    structured = np.array([one.is_structured for one in FEATURES])
    answered = (served.status == OK) | (served.status == CANCELLED)
    since_start = pl.Series(np.rint(requests.at_s * 1e6).astype(np.int64)).cast(pl.Duration("us"))
    frame = pl.select(
        request_id=pl.format("{}-{}", pl.lit(prefix), pl.int_range(requests.at_s.size)),
        ts=pl.lit(start).cast(pl.Datetime("us", "UTC")) + since_start,
        duration_ms=_milliseconds(served.e2e_s),
        ttft_ms=_milliseconds(served.ttft_s),
        queue_ms=_milliseconds(served.queue_s),
        provider=pl.lit("self_hosted"),
        model=pl.lit(scenario.base.engine.model),
        model_revision=pl.lit("0e9e39f"),
        deployment=pl.lit("vllm-0.6.1.post2"),
        replica=pl.format("gpu-{}", pl.Series(served.replica)),
        client=_named(CLIENTS, requests.client),
        team=_named(TEAM_NAMES, requests.team),
        feature=_named(FEATURE_NAMES, requests.feature),
        session_id=pl.format("{}-s{}", pl.lit(prefix), pl.Series(requests.session)),
        attempt=requests.attempt,
        prompt_hash=pl.format("{}-p{}", pl.lit(prefix), pl.Series(requests.number)),
        params_hash=_named([f"params-{name}" for name in FEATURE_NAMES], requests.feature),
        input_tokens=requests.input,
        cache_read_tokens=pl.Series(served.cached).replace(-1, None),
        output_tokens=pl.when(pl.Series(answered)).then(pl.Series(requests.output)),
        preemptions=served.preempted,
        running=served.running,
        waiting=served.waiting,
        kv_usage_ratio=pl.Series(served.kv).round(4),
        is_stream=pl.lit(True),
        is_structured=structured[requests.feature],
        status=_named(STATUSES, served.status),
    )
    for knob in knobs:
        some = pl.Series(requests.session * GOLDEN % 1.0 < knob.label_share)
        for column, (old, new) in knob.labels.items():
            changed = pl.col(column).replace(old, new)
            frame = frame.with_columns(pl.when(some).then(changed).otherwise(column).alias(column))
    return frame


def _named(names: Sequence[str], codes: Ints) -> pl.Series:
    return pl.Series(np.array(names)[codes])


def _milliseconds(seconds: Floats) -> pl.Series:
    return pl.Series(seconds * 1e3).fill_nan(None).round(3)


def _hosts(scenario: Scenario, rng: np.random.Generator, span_s: float) -> list[dict[str, Any]]:
    """Sample each host once a minute, over both windows; one that is lost has no samples any more."""
    factors = {metric: by for knob in scenario.knobs for metric, by in knob.samples.items()}
    engine = _turned(scenario, tuple(range(len(scenario.knobs)))).engine
    lost, gone_s = engine.lost[0], span_s * (1 + engine.lost[1])
    rows: list[dict[str, Any]] = []
    for second in range(30, int(2 * span_s), 60):
        for at in range(engine.replicas):
            for metric, usual in _SAMPLES.items():
                value = usual * rng.lognormal(0, 0.01 if metric == "gpu_clock_mhz" else 0.06)
                value *= factors.get(metric, {}).get(at, 1.0) if second >= span_s else 1.0
                if at != lost or second < gone_s:
                    sampled = {"ts": START + timedelta(seconds=second), "replica": f"gpu-{at}", "metric": metric}
                    rows.append(sampled | {"value": round(min(value, _MOST.get(metric, math.inf)), 4)})
    return rows
