"""Whether separate pools for prefill and decode pay: the gain under a service level, and the conditions it hangs on.

The gain is one of the conditions, not the verdict: field reports of eight GPUs are negative although models promise a
gain, so size, shape of the traffic and link are asked for as well, and what fails is named with its value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tenfold.display import percent
from tenfold.errors import ServingError
from tenfold.serving.capacity import Load
from tenfold.serving.memory import Deployment
from tenfold.serving.pools import Bounds, Split, Together, best_split, best_together, prefill_service_s, worker_sizes
from tenfold.serving.roofline import decode_s, step_cost
from tenfold.serving.transfer import Link, kv_bytes, sustained_gbps

# Thresholds of serving.md 8: derived there from a modelled table, field reports and llm-d's guide, not measured.
MIN_GAIN = 1.25
MIN_INPUT_PER_OUTPUT = 5.0
MIN_PARAMS = 30e9
MIN_LINK_GBPS = 100.0
MIN_GPUS = 16


class Sizes(NamedTuple):
    """GPUs a worker, where they are given; None for the best.

    Args:
        today: Of an aggregated replica as it runs now. A split is held against the best replicas all the same: what
            other replicas gain needs no second pool.
        prefill: Of a prefill worker.
        decode: Of a decode worker.
    """

    today: int | None = None
    prefill: int | None = None
    decode: int | None = None


class Condition(NamedTuple):
    """One thing that must hold for a split to pay.

    Args:
        name: ``gain``, ``input_per_output``, ``model``, ``link`` or ``gpus``.
        measured: Its value here; None where there is none.
        threshold: The least that it must be.
        holds: Whether it is.
        why: What it is about, in a sentence.
    """

    name: str
    measured: float | None
    threshold: float
    holds: bool
    why: str

    def as_dict(self) -> dict[str, Any]:
        """Give the condition as plain values for JSON.

        Returns:
            Its fields.
        """
        return {**self._asdict(), "measured": None if self.measured is None else round(self.measured, 3)}


class Verdict(NamedTuple):
    """Whether a split pays here.

    Args:
        gpus: GPUs that were to be divided.
        gain: Requests within the service level of the best split over those of the best aggregated replicas; None where
            these meet it not at all.
        together: The best aggregated replicas; None where none meets the service level.
        today: Aggregated replicas of the size that is given; None where none is, or they miss the service level.
        split: The best split; None likewise.
        transfer_s: Time that one prompt's KV cache takes over the link.
        exposed_s: The part of it that a request waits for.
        sustained_gbps: What a prefill worker that never pauses sends; None without a split.
        conditions: All conditions.
        advice: What to do, in a sentence.
        notes: What to know about the figures.
    """

    gpus: int
    gain: float | None
    together: Together | None
    today: Together | None
    split: Split | None
    transfer_s: float
    exposed_s: float
    sustained_gbps: float | None
    conditions: tuple[Condition, ...]
    advice: str
    notes: tuple[str, ...]

    @property
    def failing(self) -> tuple[Condition, ...]:
        """Conditions that do not hold."""
        return tuple(one for one in self.conditions if not one.holds)

    @property
    def pays(self) -> bool:
        """Whether every condition holds."""
        return not self.failing


def disaggregate(
    one: Deployment,
    load: Load,
    bounds: Bounds,
    gpus: int,
    link: Link,
    *,
    sizes: Sizes | None = None,
    scale: float = 1.0,
) -> Verdict:
    """Judge whether dividing GPUs into a prefill pool and a decode pool pays.

    Args:
        one: Model, GPU and schemes; its own number of GPUs is not looked at.
        load: What requests look like.
        bounds: The service level.
        gpus: GPUs there are.
        link: What the KV cache travels over, for each prefill worker.
        sizes: GPUs a worker, where they are given.
        scale: Measured over predicted rate, from a calibration.

    Returns:
        The verdict.

    Raises:
        ServingError: The model and one request fit on none of the workers that are allowed.

    Formula:
        serving.md 8: gain = best split / best aggregated replicas, in requests a second within the service level; it
        pays if gain > 1.25, input/output >= 5, at least 30 G parameters or a mixture of experts, at least 100 Gb/s a
        prefill worker and at least 16 GPUs. Against aiconfigurator 0.12.0 (vLLM, H200, Llama 8B and 70B) the gain is
        within 20 % in all 15 cells of the table there (tests/serving/test_disaggregation.py).
    """
    sizes = sizes or Sizes()
    _check_room(one, load, gpus, sizes)
    together = best_together(one, load, bounds, gpus, scale=scale)
    today = best_together(one, load, bounds, gpus, tp=sizes.today, scale=scale) if sizes.today else None
    split = best_split(one, load, bounds, gpus, link, prefill_tp=sizes.prefill, decode_tp=sizes.decode, scale=scale)
    gain = None if together is None else (split.requests_per_s if split else 0.0) / together.requests_per_s
    conditions = _conditions(one, load, gpus, link, gain, is_met=split is not None)
    size = kv_bytes(one, load)
    return Verdict(
        gpus=gpus,
        gain=gain,
        together=together,
        today=today,
        split=split,
        transfer_s=link.transfer_s(size),
        exposed_s=link.exposed_s(size, one.model.layer_count),
        sustained_gbps=_sustained(one, load, split, scale),
        conditions=conditions,
        advice=_advice(conditions, together, split),
        notes=(
            *_notes(one, load, bounds, gpus, together, split, sizes, scale),
            *_today(sizes.today, today, together),
        ),
    )


def _check_room(one: Deployment, load: Load, gpus: int, sizes: Sizes) -> None:
    for tp in {sizes.today, sizes.prefill, sizes.decode}:
        if not worker_sizes(one, gpus, tp, load.resident_tokens):
            where = f"{tp} GPUs a worker" if tp else f"{gpus} GPUs"
            raise ServingError(
                f"{one.model.name} with {one.weights.name} weights and a request of {load.resident_tokens:,.0f} tokens "
                f"does not fit on {where} ({one.gpu.name}, {gpus} there are). Give more GPUs (--gpus), larger workers, "
                "or narrower numbers (--weights, --kv)"
            )


def _conditions(
    one: Deployment, load: Load, gpus: int, link: Link, gain: float | None, *, is_met: bool
) -> tuple[Condition, ...]:
    asked = load.input_tokens / load.output_tokens
    params = one.model.params
    return (
        Condition(
            "gain", gain, MIN_GAIN, is_met and (gain is None or gain > MIN_GAIN),
            "requests a second within the service level, split over together; a smaller gain does not repay a second "
            "pool and a transfer path",
        ),
        Condition(
            "input_per_output", asked, MIN_INPUT_PER_OUTPUT, asked >= MIN_INPUT_PER_OUTPUT,
            "with little prefill there is little to take out of the way of decoding",
        ),
        Condition(
            "model", params / 1e9, MIN_PARAMS / 1e9, one.model.is_moe or params >= MIN_PARAMS,
            "the prompts of a small model hold up nobody for long",
        ),
        Condition(
            "link", link.gbps, MIN_LINK_GBPS, link.gbps >= MIN_LINK_GBPS,
            "over a slower link the KV cache arrives long after the prompt is done",
        ),
        Condition(
            "gpus", gpus, MIN_GPUS, gpus >= MIN_GPUS,
            "workers are whole, so with few GPUs one of the pools idles, and one failure stops both",
        ),
    )  # fmt: skip


def _sustained(one: Deployment, load: Load, split: Split | None, scale: float) -> float | None:
    if split is None:
        return None
    worker = one._replace(tp=split.prefill_tp)
    prompts_per_s = 1 / prefill_service_s(step_cost(worker, scale=scale), load)
    tokens = load.input_tokens + load.cached_tokens
    return sustained_gbps(kv_bytes(one, load) / tokens, prompts_per_s * tokens)


_WORDS = {
    "gain": "the gain is too small",
    "input_per_output": "prompts are too short for their answers",
    "model": "the model is too small",
    "link": "the link is too slow",
    "gpus": "the fleet is too small",
}


def _advice(conditions: tuple[Condition, ...], together: Together | None, split: Split | None) -> str:
    failing = [_WORDS[one.name] for one in conditions if not one.holds]
    if together is None and split is None:
        return "neither way meets the service level on these GPUs: relax it, or take faster or more GPUs"
    if not failing:
        return (
            "a split pays by this model: replay your own trace on both (tenfold serving simulate) before you build it"
        )
    if together is None:
        return f"only a split meets the service level, but {_listed(failing)}: relax it, or size chunked prefill anew"
    return f"chunked prefill first: {_listed(failing)}. It needs no second pool; tune its token budget before you split"


def _listed(parts: list[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _notes(
    one: Deployment,
    load: Load,
    bounds: Bounds,
    gpus: int,
    together: Together | None,
    split: Split | None,
    sizes: Sizes,
    scale: float,
) -> list[str]:
    notes = [
        "modelled: means under a steady load of equal requests; mixed lengths and bursts need tenfold serving simulate",
        "the gain was within 20 % of aiconfigurator 0.12.0 in all set-ups compared: Llama 8B and 70B on 8 to 32 H200",
        "the thresholds are rules, from a modelled table and field reports of 8 to 16 GPUs, not measured limits",
    ]
    if split is not None and split.unrounded_per_s > split.requests_per_s * 1.005:
        lost = 1 - split.requests_per_s / split.unrounded_per_s
        slow, idle = sorted(
            ((split.prefill_per_s, "prefill"), (split.decode_per_s, "decode")), key=lambda pool: pool[0]
        )
        notes.append(
            f"whole workers cost {percent(lost)}: the {slow[1]} pool carries {slow[0]:.3g} requests/s, the {idle[1]} "
            f"pool could {idle[0]:.3g}"
        )
    if together is None or split is None:
        ttft, tpot = _fastest(one, load, gpus, sizes, scale)
        notes.append(
            f"alone on the fastest worker a request takes {ttft * 1e3:,.0f} ms to its first token (bound "
            f"{bounds.ttft_s * 1e3:,.0f} ms) and {tpot * 1e3:.3g} ms a token (bound {bounds.tpot_s * 1e3:.3g} ms)"
        )
    if one.model.is_moe:
        notes.append("mixtures of experts: expert parallelism over many GPUs, where splits gain most, is not modelled")
    if load.cached_tokens:
        notes.append(
            "cached prompt tokens still travel unless decode workers keep a prefix cache too; with one, a report saw "
            "TTFT fall by 90 % while the gap between tokens doubled (sglang PR 19746)"
        )
    return notes


def _today(tp: int | None, today: Together | None, together: Together | None) -> list[str]:
    if tp is None or together is None or tp == together.tp:
        return []
    carried = "miss the service level" if today is None else f"carry {today.requests_per_s:.3g} requests/s"
    return [
        f"replicas of {tp} GPUs, as today, {carried}; of {together.tp} {together.requests_per_s:.3g}: change that first"
    ]


def _fastest(one: Deployment, load: Load, gpus: int, sizes: Sizes, scale: float) -> tuple[float, float]:
    workers = [
        one._replace(tp=n)
        for tp in {sizes.today, sizes.prefill, sizes.decode}
        for n in worker_sizes(one, gpus, tp, load.resident_tokens)
    ]
    costs = [(worker, step_cost(worker, scale=scale)) for worker in workers]
    return (
        min(prefill_service_s(cost, load) for _, cost in costs),
        min(decode_s(worker, cost, 1, load.resident_tokens) for worker, cost in costs),
    )
