"""Small replicas of incidents that were reported, I01 to I51: their signatures, by the knobs of the scenarios.

Where the report's numbers need another size of engine or hours of time, the signature is kept and the size is not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .incident_replicas import Clients, Engine
from .incident_scenarios import SCENARIOS, TIGHT, Knob, Scenario, Side
from .incident_traffic import Pattern


def _one(
    like: str,
    step: int,
    kind: str,
    moves: tuple[str, ...],
    base: Side | None = None,
    *,
    also: tuple[int, ...] = (),
    consequences: Mapping[int, int] | None = None,
    **knob: Any,  # noqa: ANN401 -- fields of Knob
) -> Scenario:
    """Make a scenario of one knob."""
    kinds = frozenset(kind.split())
    return Scenario(like, (Knob(step, kinds, moves, **knob),), base or Side(), consequences or {}, also=frozenset(also))


def _control(like: str, base: Side | None = None, **knob: Any) -> Scenario:  # noqa: ANN401 -- fields of Knob
    """Make a scenario in which nothing may be accused."""
    return Scenario(like, (Knob(0, frozenset(), (), **knob),) if knob else (), base or Side(), verdict="no_change")


def _deploy(old: str, new: str) -> dict[str, Any]:
    return {"labels": {"deployment": ("vllm-0.6.1.post2", new)}, "event": ("deploy", f"{old} -> {new}", "")}


def _client(new: str) -> dict[str, Any]:
    return {"labels": {"client": ("codepilot/2.4.1", new)}, "event": ("client", f"{new} released", new)}


_CALM = Side(Pattern(8.0))
_ALL = ("ttft", "tpot")

_CACHE = {
    "I01": _one("claude-code#87227: a client's release defeats the prefix cache", 3, "cache_broken", _ALL, _CALM,
                pattern={"broken": (0, 0)}, **_client("codepilot/2.5.0")),
    "I02": _one("claude-code-router#1220: a hash of each request at the head of the system prompt", 3, "cache_broken",
                _ALL, _CALM, pattern={"broken": (0, 1)}, **_client("codepilot/2.5.1")),
    "I03": _one("sglang#36877: rolling breakpoints, all or nothing in turns", 3, "cache_broken", _ALL, _CALM,
                pattern={"broken": (0, 0), "broken_every": 2}),
    "I04": SCENARIOS["S1"],
    "I05": _one("opencrabs#657: the second in the system prompt", 3, "cache_broken", _ALL, _CALM,
                pattern={"broken": (0, 2)}),
    "I06": _one("MeshWeaver#2108: a clock in the system prompt, one a round", 3, "cache_broken", _ALL, _CALM,
                pattern={"broken": (0, 2), "broken_turns": 3}),
    "I07": _one("production-stack#884: more replicas behind a router that knows no prefixes", 3, "cache_diluted", _ALL,
                Side(Pattern(2.2), Engine(is_sticky=False, replicas=1)), also=(5,), engine={"replicas": 4},
                event=("scale", "1 -> 4 replicas", "")),
    "I08": _one("sglang#19746: a cache beside decoding: sooner first tokens, slower answers", 3, "cache_gained", _ALL,
                Side(Pattern(6.0), Engine(prefix_cache=False)), also=(5,),
                engine={"prefix_cache": True, "decode_speed": (0.36,) * 4}),
}  # fmt: skip
_SCHEDULING = {
    "I09": _one("vllm#25538: preempted over and over", 4, "kv_exhausted", _ALL, TIGHT, pattern={"per_s": 7.2}),
    "I10": SCENARIOS["S4"],
    "I11": _control("inference-sim#963: pressure, no storm",
                    Side(Pattern(4.5, input_factor=(0.25,) * 4, output_factor=(3.0,) * 4),
                         Engine(max_num_seqs=20, kv_pool_tokens=105_000, watermark=0.0))),
    "I12": _one("vllm#54644: a tax of recomputation", 4, "kv_exhausted", _ALL, TIGHT, pattern={"per_s": 7.4}),
    "I13": _one("vllm#18115: KV usage creeps up to 1", 4, "kv_exhausted", _ALL, TIGHT,
                pattern={"per_s": 6.3, "ramp": 0.35}),
    "I14": _one("ATOM#1835: short prompts wait behind one of 250,000 tokens", 4, "head_of_line", _ALL,
                SCENARIOS["S3"].base, pattern={"huge": (250_000, 300.0)}),
    "I15": SCENARIOS["S3"],
    "I16": _one("mlx-serve#205: a cold prompt of 52,900 tokens stops all others", 4, "head_of_line", _ALL, _CALM,
                pattern={"huge": (52_900, 40.0)}),
    "I17": _one("imp#1725: fewer chunks a step: shorter gaps, slower prompts", 5, "limit", ("ttft",),
                Side(engine=Engine(budget=8192)), also=(4,), engine={"budget": 256},
                labels={"deployment": ("vllm-0.6.1.post2", "vllm-0.6.1.post2-b256")},
                event=("config", "max_num_batched_tokens 8192 -> 256", "")),
    "I18": _one("vllm#40279: the balancer sticks to one replica", 4, "imbalance", _ALL,
                engine={"spread": (2.6, 1.0, 1.0, 1.0)}),
    "I19": _one("Sarathi anecdote: long prompts every half minute", 4, "head_of_line", _ALL, _CALM,
                pattern={"huge": (30_000, 25.0)}),
}  # fmt: skip
_VERSIONS = {
    "I20": SCENARIOS["S2"],
    "I21": _one("vllm#12274: a version slower in all", 5, "version", _ALL, _CALM, engine={"speed": (0.6,) * 4},
                **_deploy("0.6.1.post2", "vllm-0.6.6.post1")),
    "I22": _one("vllm#32494: a version whose first tokens are late under load", 5, "version", ("ttft",),
                engine={"budget": 224}, **_deploy("0.9.0", "vllm-0.13.0")),
    "I23": _one("vllm#8918: a version that is slower with prompts", 5, "version", _ALL, _CALM,
                engine={"speed": (0.5,) * 4, "decode_speed": (2.0,) * 4}, **_deploy("0.5.4", "vllm-0.6.2")),
    "I24": _one("vllm#17885: a default budget too large", 5, "limit version", ("tpot",),
                Side(Pattern(8.0), Engine(budget=512)), also=(4,), engine={"budget": 16_384, "speed": (0.74,) * 4},
                **_deploy("0.8.4", "vllm-0.8.5")),
    "I25": _one("vllm#51726: equal arguments, another default on some machines", 5, "limit version", _ALL, _CALM,
                engine={"policy": "prefill_first", "budget": 16_384, "speed": (0.7, 0.7, 0.7, 0.7)},
                **_deploy("0.32.0", "vllm-0.33.0")),
    "I26": _one("vllm#12122: another grammar backend holds up structured answers", 5, "cohort version", ("ttft",),
                effect="grammar", **_deploy("0.6.6", "vllm-0.7.0")),
    "I27": _one("vllm#19996: speculative decoding with its overhead", 5, "version limit", _ALL, _CALM,
                engine={"speed": (0.72,) * 4}, labels={"deployment": ("vllm-0.6.1.post2", "vllm-0.6.1.post2-spec")},
                event=("config", "speculative decoding on", "")),
    "I28": _one("vllm#43308: a version counts KV bytes another way: less fits", 5, "version limit", _ALL,
                Side(Pattern(9.0)), also=(3, 4), consequences={4: 5}, engine={"kv_pool_tokens": 170_000},
                **_deploy("0.20.0", "vllm-0.21.0")),
    "I29": _one("dynamo#3774: moved to separate prefill and decode, too little prefill", 5, "version limit", _ALL,
                Side(Pattern(7.0)), also=(3, 4), engine={"pools": (1, 3)}, **_deploy("agg", "dynamo-disagg-1p3d")),
    "I30": _one("vllm-ascend#14324: kernels compiled while serving", 5, "warm_up version", ("tpot",), also=(6,),
                effect="compiling", **_deploy("0.11.0", "vllm-0.12.0")),
    "I31": _one("sglang#14685: the first requests after a start", 5, "warm_up", ("ttft",), effect="cold_start",
                event=("restart", "engine restarted", "")),
}  # fmt: skip
_LENGTHS = {
    "I32": SCENARIOS["S5"],
    "I33": _one("VOC#306: input no longer truncated", 2, "input_length", _ALL, Side(Pattern(7.0)),
                pattern={"input_factor": (1, 1, 3.3, 1)}),
    "I34": _one("bano#30: shorter answers", 2, "output_length", ("output",), pattern={"output_factor": (0.5,) * 4}),
    "I35": SCENARIOS["S10"],
    "I36": _one("litellm#1393: slower by the request, not by the token", 2, "output_length", ("output",), _CALM,
                pattern={"output_factor": (1.7,) * 4}),
}  # fmt: skip
_HOSTS = {
    "I37": SCENARIOS["S6"],
    "I38": _one("sglang#7250: an event loop in front", 6, "front_end", ("ttft",), also=(5,), effect="front_end",
                samples={"cpu_ratio": dict.fromkeys(range(4), 2.7)}),
    "I39": _one("vllm#31602: clocks drop after ten idle seconds", 6, "idle_clocks", ("ttft",), Side(Pattern(0.5)),
                effect="idle_clocks"),
    "I40": _one("llm-rig#100: throttled by heat", 6, "drift", ("tpot",), effect="heat",
                samples={"gpu_clock_mhz": dict.fromkeys(range(4), 0.6)}),
    "I41": _one("idrac#3: one GPU capped at half its power", 6, "slow_host", _ALL, _CALM,
                engine={"speed": (1.0, 1.0, 1.0, 0.5), "spread": (1.0, 1.0, 1.0, 0.6)},
                samples={"gpu_clock_mhz": {3: 0.55}}),
    "I42": _one("1bit-MONSTER#1216: clocks cost prompts, not answers", 6, "slow_host", ("ttft",), _CALM,
                engine={"speed": (0.5, 1.0, 1.0, 1.0), "decode_speed": (2.0, 1.0, 1.0, 1.0)},
                samples={"gpu_clock_mhz": {0: 0.45}}),
    "I43": SCENARIOS["S8"],
    "I44": _control("OpenAI 2024-12-11: errors, those served as fast as ever", effect="outage"),
    "I45": _control("Anthropic 2025-09-17: some sessions on another pool, as fast", label_share=0.16,
                    labels={"deployment": ("vllm-0.6.1.post2", "vllm-0.6.1.post2-1m")}),
}  # fmt: skip
_STUCK = Clients(stuck=0.2, stuck_s=10.0)
_NARROW = Engine(max_num_seqs=24)
_ONE_REPLICA = Engine(replicas=1)
_RETRIES = {
    "I46": SCENARIOS["S7"],
    "I47": _one("hermes-agent#109234: 600 s, to the second", 7, "retries", _ALL,
                Side(Pattern(2.75), _ONE_REPLICA, _STUCK), clients={"retries": 3, "wait_s": 600.0}),
    "I48": _one("experiential#946: a gateway answers its own workers' retries", 7, "retries storm", _ALL,
                Side(Pattern(7.8), _NARROW, Clients(stuck=0.05, stuck_s=0.2)),
                clients={"retries": 16, "wait_s": 1.0}),
    "I49": _one("deer-flow#4294: 1, 2, 4, 8 s for everybody", 7, "retries", ("ttft",),
                Side(Pattern(9.4), _NARROW, _STUCK), clients={"retries": 4, "wait_s": 1.0, "growth": 2.0}),
    "I50": _one("vm0#34461: a queue's expiry of 900 s, retried", 7, "retries", _ALL,
                Side(Pattern(2.6), _ONE_REPLICA, Clients(stuck=0.25, stuck_s=900.0)),
                clients={"retries": 3, "wait_s": 0.0}),
    "I51": _one("llm-exe#797: the time-out does not stop the answer", 7, "overlap", _ALL,
                Side(Pattern(8.2), _NARROW, Clients(stuck=0.3, stuck_s=2.0, is_whole=True)),
                clients={"retries": 3, "wait_s": 0.5}),
}  # fmt: skip

REPORTS: dict[str, Scenario] = {**_CACHE, **_SCHEDULING, **_VERSIONS, **_LENGTHS, **_HOSTS, **_RETRIES}
"""By the number that the report has in tenfold's collection of incidents."""
