"""Which incidents can be made: the twelve scenarios, one planted cause each (two in S11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from .incident_replicas import Clients, Engine
from .incident_traffic import Pattern

_PER_S = 11.0


class Side(NamedTuple):
    """What a window is made with."""

    pattern: Pattern = Pattern(_PER_S)
    engine: Engine = Engine()
    clients: Clients = Clients()


class Knob(NamedTuple):
    """A planted cause.

    Args:
        step: Step of the runbook that it belongs to.
        kinds: What that step should call it.
        moves: Components whose p99 it moves, itself or by what follows from it.
        pattern: What it changes of the traffic.
        engine: What it changes of the engine.
        clients: What it changes of the clients' patience.
        labels: Labels that it changes, by column: old and new.
        label_share: Share of the sessions whose labels it changes.
        event: Kind, what and where of the event that tells of it.
        samples: By metric and replica: what its host's samples are times as large as before.
        effect: What happens to requests beside the engine: a name in ``incident_effects.EFFECTS``.
    """

    step: int
    kinds: frozenset[str]
    moves: tuple[str, ...]
    pattern: Mapping[str, Any] = {}
    engine: Mapping[str, Any] = {}
    clients: Mapping[str, Any] = {}
    labels: Mapping[str, tuple[str, str]] = {}
    label_share: float = 1.0
    event: tuple[str, str, str] | None = None
    samples: Mapping[str, Mapping[int, float]] = {}
    effect: str = ""

    def turned(self, side: Side) -> Side:
        """Give a window's makings with this changed."""
        return Side(
            side.pattern._replace(**self.pattern),
            side.engine._replace(**self.engine),
            side.clients._replace(**self.clients),
        )


class Scenario(NamedTuple):
    """A pair of windows to make.

    Args:
        like: What it is like, and where that was reported.
        knobs: What is planted in the window after.
        base: What both windows are made with.
        consequences: Steps that show it as a consequence, and the step of which.
        verdict: What a diagnosis must come to.
        also: Steps that may be named as causes too.
    """

    like: str
    knobs: tuple[Knob, ...]
    base: Side = Side()
    consequences: Mapping[int, int] = {}
    verdict: str = "explained"
    also: frozenset[int] = frozenset()


_CACHE_BROKEN = Knob(
    3, frozenset({"cache_broken"}), ("ttft", "tpot"),
    pattern={"broken": (0, 10)},
    labels={"client": ("codepilot/2.4.1", "codepilot/2.5.0")},
    event=("client", "codepilot 2.5.0 released", "codepilot/2.5.0"),
)  # fmt: skip
_LONG_ANSWERS = Knob(
    2, frozenset({"output_length"}), ("output",), pattern={"output_factor": (1, 1, 1, 11)},
)  # fmt: skip

TIGHT = Side(Pattern(4.0, output_factor=(2.5,) * 4), Engine(max_num_seqs=256, kv_pool_tokens=170_000, watermark=0.0))
"""Long answers and little memory for them."""

SCENARIOS: dict[str, Scenario] = {
    "S1": Scenario(
        "a client's release breaks its prompt cache near the front (I04)", (_CACHE_BROKEN,), base=Side(Pattern(8.0))
    ),
    "S2": Scenario(
        "a version with a small token budget: later first tokens, faster answers (I20)",
        (
            Knob(
                5, frozenset({"version"}), ("ttft", "tpot"),
                engine={"policy": "chunked", "budget": 160, "decode_speed": (1.2,) * 4},
                labels={"deployment": ("vllm-0.6.1.post2", "vllm-0.7.0")},
                event=("deploy", "vllm 0.6.1.post2 -> 0.7.0", ""),
            ),
        ),
        base=Side(engine=Engine(policy="prefill_first", budget=8192)),
    ),
    "S3": Scenario(
        "a prompt of 200,000 tokens every five minutes (I15)",
        (Knob(4, frozenset({"head_of_line"}), ("ttft", "tpot"), pattern={"huge": (200_000, 300.0)}),),
        base=Side(Pattern(6.0), Engine(model="Qwen/Qwen3-30B-A3B-Instruct-2507", weights="fp8")),
    ),
    "S4": Scenario(
        "more concurrency than the KV cache holds (I10)",
        (Knob(4, frozenset({"kv_exhausted"}), ("ttft", "tpot"), pattern={"per_s": 6.9}),),
        base=TIGHT,
        also=frozenset({3}),  # where memory is short, prefixes are thrown out
    ),
    "S5": Scenario("one feature's answers eleven times as long (I32)", (_LONG_ANSWERS,), base=Side(Pattern(9.5))),
    "S6": Scenario(
        "one of four hosts decodes at half speed (I37)",
        (
            Knob(
                6, frozenset({"slow_host"}), ("tpot",),
                engine={"decode_speed": (1.0, 1.0, 0.5, 1.0), "spread": (1.0, 1.0, 0.6, 1.0)},
                samples={"cpu_ratio": {2: 2.7}},
            ),
        ),
    ),
    "S7": Scenario(
        "clients retry three times without jitter (I46, I47)",
        (
            Knob(
                7, frozenset({"retries"}), ("ttft",),
                clients={"retries": 3, "wait_s": 2.0},
            ),
        ),
        base=Side(Pattern(10.6), Engine(max_num_seqs=24), Clients(stuck=0.2, stuck_s=10.0)),
    ),
    "S8": Scenario(
        "one of four replicas is lost: queues, time-outs, retries (I43)",
        (
            Knob(
                6, frozenset({"lost_host"}), ("ttft", "tpot"),
                engine={"lost": (1, 0.15)},
            ),
        ),
        base=Side(Pattern(14.4), clients=Clients(first_token_s=5.0, retries=2, wait_s=1.0)),
        consequences={4: 6, 7: 6},
    ),
    "S9": Scenario("nothing", (), verdict="no_change"),
    "S10": Scenario(
        "another revision of the model (I35)",
        (
            Knob(
                0, frozenset(), (),
                pattern={"output_factor": (1.4, 1.4, 1.4, 1.4)},
                labels={"model_revision": ("0e9e39f", "8c22764")},
            ),
        ),
        verdict="refused",
    ),
    "S11": Scenario("S1 and S5 at once", (_CACHE_BROKEN, _LONG_ANSWERS), base=Side(Pattern(7.0))),
    "S12": Scenario(
        "the shares of tenants shift to one with long texts; each is unchanged (Simpson)",
        (
            Knob(
                2, frozenset({"mix"}), ("output", "ttft", "tpot"),
                pattern={"shares": (0.25, 0.17, 0.13, 0.10, 0.08, 0.27)},
            ),
        ),
        base=Side(Pattern(8.5)),
    ),
}  # fmt: skip
