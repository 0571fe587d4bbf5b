"""Which serving engine: features measured in the log and facts that the user states, reasons for and against, scored.

Engines differ by about 30 % in speed, either way, which is as much as any model of them errs: so features choose, other
people's benchmarks are shown and never counted, and two candidates are measured with the user's own trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple, TypeVar

from tenfold.display import counted, number, percent
from tenfold.serving.framework_facts import HARDWARE, Benchmark, Framework, frameworks
from tenfold.serving.traffic import Traffic

# Rules of serving.md 11: where a feature begins to matter. Points are the house's judgement of how much.
FEW_AT_ONCE = 4
SHARED = 0.5
TURNS = 0.5
STRUCTURED = 0.2
TTFT_BOUND = 0.3
MANY_GPUS = 16
CLOSE = 10
_SMALL = ("cpu", "apple", "edge")
_PERCENT_PAYS = 0.01
_Value = TypeVar("_Value")

ORDER_OF_WORK = (
    "run vLLM with its defaults; where it does not run on your hardware, the first of the ranking",
    "measure the bottleneck under your own trace: queueing, memory (KV use, preemptions), decoding, prefix-cache hits",
    "then decide: another engine for a feature it alone has, or for a gain that you measured yourself",
)


class Custom(NamedTuple):
    """Why an engine of one's own.

    Args:
        because: ``hardware`` that no engine supports, or a ``scale`` where one per cent pays a team.
        serving_usd_per_year: What serving costs in a year; needed for ``scale``.
        team_usd_per_year: What a team costs in a year.
    """

    because: Literal["hardware", "scale"]
    serving_usd_per_year: float | None
    team_usd_per_year: float


class Facts(NamedTuple):
    """What no log says; None where it is not stated.

    Args:
        hardware: Kind of hardware (``framework_facts.HARDWARE``).
        gpus: GPUs there are.
        new_models: Whether models are needed within days of their release.
        adapters: Whether many LoRA adapters share a model.
        pinned: Whether one model stays and the team pins driver, CUDA and engine.
        running: Name of the engine that runs today.
        custom: Why an engine of one's own; None where none is thought of.
    """

    hardware: str | None = None
    gpus: int | None = None
    new_models: bool | None = None
    adapters: bool | None = None
    pinned: bool | None = None
    running: str | None = None
    custom: Custom | None = None


class Ranked(NamedTuple):
    """An engine, or an orchestrator, with what speaks for and against it.

    Args:
        framework: Which.
        score: Points: its base and those of all signals; 0 where it is not eligible.
        eligible: Whether it can be recommended at all.
        pro: Reasons for, points first.
        con: Reasons against.
    """

    framework: Framework
    score: int
    eligible: bool
    pro: tuple[str, ...]
    con: tuple[str, ...]


class Missing(NamedTuple):
    """A fact that would have counted.

    Args:
        fact: What is not known.
        how: How to give it.
    """

    fact: str
    how: str


class Choice(NamedTuple):
    """The answer.

    Args:
        ranking: Engines, the best first; those that cannot be recommended last.
        orchestration: What could run above them; eligible where it is worth a look.
        missing: Facts that would have counted.
        candidates: The engines to measure against each other: two, or fewer where no more are left.
        benchmarks: What others measured; not in any score.
        notes: What to know beside.
    """

    ranking: tuple[Ranked, ...]
    orchestration: tuple[Ranked, ...]
    missing: tuple[Missing, ...]
    candidates: tuple[Framework, ...]
    benchmarks: tuple[Benchmark, ...]
    notes: tuple[str, ...]


class _Signal(NamedTuple):
    """Something measured or stated, and how many points it gives to whom; ``holds`` is None where it is not known."""

    holds: bool | None
    why: str
    points: Mapping[str, int]
    missing: Missing | None = None


def choose(traffic: Traffic, facts: Facts) -> Choice:
    """Rank the engines for a traffic.

    Args:
        traffic: Its measured features.
        facts: What the user states.

    Returns:
        The ranking with its reasons.
    """
    table = frameworks()
    signals = [*_measured(traffic), *_stated(traffic, facts)]
    ranked = [_ranked(one, signals, facts) for one in table.all.values() if one.role != "orchestration"]
    ranking = sorted(ranked, key=lambda one: (not one.eligible, -one.score))
    orchestration = tuple(_above(one, traffic, facts) for one in table.all.values() if one.role == "orchestration")
    candidates = tuple(one.framework for one in ranking if one.eligible and one.framework.role == "engine")[:2]
    return Choice(
        ranking=tuple(ranking),
        orchestration=orchestration,
        missing=tuple(_missing(signals, traffic, facts)),
        candidates=candidates,
        benchmarks=table.benchmarks,
        notes=tuple(_notes(ranking, orchestration, facts)),
    )


def _measured(traffic: Traffic) -> list[_Signal]:
    peak, shared = traffic.peak, traffic.shared_ratio
    turns, structured = traffic.multi_turn_ratio, traffic.structured_ratio
    return [
        _Signal(
            _known(peak, lambda most: most <= FEW_AT_ONCE),
            f"at most {counted(peak or 0, 'request')} at once: nothing here needs a batching engine",
            {"llama.cpp": 30},
            Missing("concurrency", "load logs that have duration_ms beside the start"),
        ),
        _Signal(
            _known(peak, lambda most: most > FEW_AT_ONCE),
            f"{peak} requests at once at the peak: fixed slots without paged memory are outgrown",
            {"llama.cpp": -20},
        ),
        _Signal(
            _known(shared, lambda share: share >= SHARED),
            f"{percent(shared)} of prompt tokens come back: a prefix cache takes them (its gain, not the engine's)",
            {"sglang": 15, "vllm": 15, "tensorrt-llm": 8},
            Missing("shared prefixes", "load logs with cached tokens, or with text or prefix hashes"),
        ),
        _Signal(
            _known(turns, lambda share: share >= TURNS),
            f"{percent(turns)} of requests are turns of a longer session: prefixes grow and come back",
            {"sglang": 10, "vllm": 10, "tensorrt-llm": 5},
            Missing("sessions", "load logs with session_id"),
        ),
        _Signal(
            _known(structured, lambda share: share >= STRUCTURED),
            f"{percent(structured)} of answers must fit a schema: grammar-guided decoding is built in",
            {"vllm": 10, "sglang": 10, "tensorrt-llm": 7, "llama.cpp": 5},
            Missing("structured output", "load logs with is_structured"),
        ),
    ]  # fmt: skip


def _stated(traffic: Traffic, facts: Facts) -> list[_Signal]:
    late = traffic.ttft_ratio
    narrow = _all(
        _known(facts.hardware, lambda kind: kind == "nvidia"),
        facts.pinned,
        None if facts.new_models is None else not facts.new_models,
        _known(late, lambda share: share >= TTFT_BOUND),
    )
    return [
        _Signal(
            _known(facts.hardware, lambda kind: kind in _SMALL),
            f"made for small hardware such as {_hardware(facts)}",
            {"llama.cpp": 40},
            Missing("hardware", "--hardware GPU or kind, such as h100-sxm, amd or cpu"),
        ),
        _Signal(
            _known(facts.hardware, lambda kind: kind not in {"nvidia", *_SMALL, "own"}),
            f"{_hardware(facts)} is served by its main line or a plug-in that is kept up",
            {"vllm": 10},
        ),
        _Signal(
            facts.new_models,
            "models are wanted within days of their release",
            {"vllm": 20, "sglang": 10, "tensorrt-llm": -15},
            Missing("new models", "--new-models or --no-new-models"),
        ),
        _Signal(
            facts.adapters,
            "many adapters share one model",
            {"vllm": 15, "sglang": 8},
            Missing("LoRA adapters", "--adapters or --no-adapters"),
        ),
        _Signal(
            narrow,
            f"one stable model on NVIDIA, pinned versions, {percent(late)} of the time is spent before the first token",
            {"tensorrt-llm": 25},
            None if facts.pinned is not None else Missing("one stable model, pinned", "--pinned or --no-pinned"),
        ),
    ]  # fmt: skip


def _ranked(one: Framework, signals: list[_Signal], facts: Facts) -> Ranked:
    barred = _barred(one, facts)
    pro, con = list(one.strengths), [*barred, *one.weaknesses]
    if one.role == "custom" and not barred:
        pro.append(_justified(facts))
    if pro:
        pro[0] += f" ({one.base:+d})"
    score = one.base
    for signal in signals:
        points = signal.points.get(one.name, 0)
        if signal.holds and points:
            score += points
            (pro if points > 0 else con).insert(0, f"{signal.why} ({points:+d})")
    return Ranked(one, 0 if barred else score, not barred, tuple(pro), tuple(con))


def _barred(one: Framework, facts: Facts) -> list[str]:
    """Say why a framework cannot be recommended; empty where it can."""
    if one.role == "custom":
        return _unjustified(facts)
    if one.status != "active":
        return [f"{one.status}: not for new work"]
    if facts.hardware is not None and facts.hardware not in one.hardware:
        return [f"does not run on {_hardware(facts)}"]
    return []


def _unjustified(facts: Facts) -> list[str]:
    wanted = facts.custom
    if wanted is None:
        return ["no reason given that the field accepts: hardware that no engine supports, or one per cent pays a team"]
    if wanted.because == "hardware":
        able = [
            other.label
            for other in frameworks().all.values()
            if other.role == "engine" and other.status == "active" and facts.hardware in other.hardware
        ]
        if facts.hardware is None:
            return ["hardware of your own is claimed, but which is not stated: --hardware own"]
        return [f"{', '.join(able)} run on {_hardware(facts)}"] if able else []
    if wanted.serving_usd_per_year is None:
        return ["scale is claimed, but what serving costs in a year is not stated"]
    gained = wanted.serving_usd_per_year * _PERCENT_PAYS
    if gained >= wanted.team_usd_per_year:
        return []
    return [f"one per cent of serving is ${number(gained, 0)} a year, a team ${number(wanted.team_usd_per_year, 0)}"]


def _justified(facts: Facts) -> str:
    wanted = facts.custom
    if wanted is None or wanted.because == "hardware" or wanted.serving_usd_per_year is None:
        return "no engine runs on this hardware"
    gained = wanted.serving_usd_per_year * _PERCENT_PAYS
    return f"one per cent of serving is ${number(gained, 0)} a year and pays a team"


def _above(one: Framework, traffic: Traffic, facts: Facts) -> Ranked:
    pro, con = list(one.strengths), list(one.weaknesses)
    enough = facts.gpus is not None and facts.gpus >= MANY_GPUS
    runs = facts.hardware is None or facts.hardware in one.hardware
    if facts.gpus is not None:
        said = f"{facts.gpus} GPUs, {'enough' if enough else 'too few'} to route among (from {MANY_GPUS} on)"
        (pro if enough else con).insert(0, said)
    if enough and traffic.shared_ratio is not None and traffic.shared_ratio >= SHARED:
        pro.insert(
            0, f"{percent(traffic.shared_ratio)} of prompt tokens come back: who is sent where decides what is cached"
        )
    if not runs:
        con.insert(0, f"does not run on {_hardware(facts)}")
    return Ranked(one, 0, enough and runs, tuple(pro), tuple(con))


def _missing(signals: list[_Signal], traffic: Traffic, facts: Facts) -> list[Missing]:
    found = [signal.missing for signal in signals if signal.holds is None and signal.missing is not None]
    if traffic.ttft_ratio is None:
        found.append(Missing("time to first token", "load logs with ttft_ms and duration_ms"))
    if facts.gpus is None:
        found.append(Missing("number of GPUs", "--gpus N"))
    return found


def _notes(ranking: list[Ranked], orchestration: tuple[Ranked, ...], facts: Facts) -> list[str]:
    notes = ["points are the house's judgement of features; engines differ by about 30 % in speed, either way"]
    eligible = [one for one in ranking if one.eligible]
    if len(eligible) > 1 and eligible[0].score - eligible[1].score <= CLOSE:
        first, second = eligible[0].framework.label, eligible[1].framework.label
        notes.append(f"{first} and {second} are even by features: only a measurement can tell")
    if not eligible:
        notes.append("no engine that is maintained runs on this hardware, and none of your own is justified")
    above = [one.framework.label for one in orchestration if one.eligible]
    if above:
        notes.append(f"{facts.gpus} GPUs: {' or '.join(above)} above the engine, once one replica of it is measured")
    running = frameworks().all.get(facts.running or "")
    if running is not None and running.status != "active":
        notes.append(
            f"{running.label} runs today and is {running.status}: plan the move; clients of its OpenAI-compatible API "
            "need a new address only"
        )
    return notes


def _hardware(facts: Facts) -> str:
    return HARDWARE.get(facts.hardware or "", "")


def _known(value: _Value | None, holds: Callable[[_Value], bool]) -> bool | None:
    return None if value is None else holds(value)


def _all(*parts: bool | None) -> bool | None:
    if any(part is False for part in parts):
        return False
    return None if any(part is None for part in parts) else True
