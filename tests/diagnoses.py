"""Diagnoses made by hand, for the tests of words, pictures and the command."""

from __future__ import annotations

from datetime import UTC, datetime

from tenfold.latency.answers import Cause, Diagnosis, Shift
from tenfold.latency.records import Finding, Interval


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


WINDOWS = (at("2026-09-01"), at("2026-09-08"), at("2026-09-08"), at("2026-09-10"))
TTFT = Shift(0.84, 1.91, Interval(0.93, 1.07, 1.20))
TPOT_SAME = Shift(0.031, 0.032, Interval(-0.001, 0.001, 0.003))
OUTPUT_SAME = Shift(812.0, 820.0, Interval(-22.0, 8.0, 41.0))
E2E = Shift(12.4, 13.6, Interval(0.2, 1.2, 2.3))
CALM = (
    Finding(2, "", "innocent", ("prompts and answers are as long as they were",)),
    Finding(5, "", "innocent", ("no change point near an event",)),
    Finding(7, "", "innocent", ("repeats 0.4 % -> 0.4 %",)),
)


def diagnosis(**changes) -> Diagnosis:
    """The broken cache of the mock-up, with changes."""
    made = {
        "model": "llama-3.1-70b",
        "verdict": "explained",
        "quantile": 0.99,
        "requests": (184_209, 61_377),
        "windows": WINDOWS,
        "shift": {"ttft": TTFT, "tpot": TPOT_SAME, "output": OUTPUT_SAME, "e2e": E2E},
        "causes": (
            Cause(
                step=3,
                kind="cache_broken",
                name="prefix cache broke",
                component="ttft",
                shares={"ttft": Interval(0.86, 0.94, 0.99)},
                evidence=(
                    "hit share 71 % -> 12 % for client agent/2.4.1, 68 % -> 67 % for all others",
                    "cached tokens stuck at 28,160 while prompts grow",
                ),
                who="agent/2.4.1",
                since_s=at("2026-09-08T14:05"),
                next_action="diff the system prompt of agent/2.4.0 and agent/2.4.1 above token 28,160",
                lever="prefix_cache",
                cost="$412 a day",
            ),
            Cause(
                step=4,
                kind="queueing",
                name="queueing",
                component="ttft",
                shares={"ttft": Interval(0.04, 0.09, 0.15)},
                consequence_of=3,
                evidence=("queue share of the p99 TTFT 4 % -> 11 %",),
                next_action="none of its own: it goes with its cause",
            ),
        ),
        "findings": (
            *CALM,
            Finding(6, "", "not separable", ("no host is named",), missing=("replica", "hosts")),
        ),
        "unexplained": {"ttft": 0.06},
        **changes,
    }
    return Diagnosis(**made)


def lost_host() -> Diagnosis:
    """S8: a lost host, queueing and retries that follow; two components."""
    moved = {
        "ttft": Shift(0.31, 14.2, Interval(9.8, 13.89, 18.1)),
        "tpot": Shift(0.028, 0.041, Interval(0.009, 0.013, 0.017)),
    }
    first = Cause(
        step=6,
        kind="lost_host",
        name="host lost",
        component="ttft",
        shares={"ttft": Interval(0.81, 0.92, 1.0), "tpot": Interval(0.7, 0.88, 1.0)},
        evidence=("gpu-03 answers nothing from 09:12 on; three replicas took 33 % more each",),
        who="gpu-03",
        since_s=at("2026-09-08T09:12"),
        next_action="bring gpu-03 back or add a replica; then look whether the queue drains",
    )
    followers = (
        Cause(4, "queueing", "queueing", "ttft", {"ttft": Interval(0.52, 0.6, 0.69), "tpot": Interval(0.5, 0.6, 0.7)},
              6,
              ("queue share of the p99 TTFT 8 % -> 83 %",), lever="continuous_batching"),
        Cause(7, "retries", "retries", "ttft", {"ttft": Interval(0.24, 0.32, 0.4)}, 6,
              ("repeats 0.3 % -> 14 %, 2.0 attempts a request",),
              next_action="cap retries and add jitter; honour Retry-After"),
    )  # fmt: skip
    return diagnosis(
        shift=moved, causes=(first, *followers), unexplained={"ttft": 0.08, "tpot": 0.12}, findings=CALM[:2]
    )


def two_causes() -> Diagnosis:
    """S11: a broken cache and longer answers on one route."""
    longer = Cause(
        2, "output_length", "longer or shorter answers", "output",
        {"output": Interval(0.9, 0.97, 1.0), "ttft": Interval(0.02, 0.05, 0.08)}, None,
        ("route summary: median answer 350 -> 3,900 tokens", "all other routes are as they were"),
        who="summary", since_s=at("2026-09-08T10:00"),
        next_action="look what changed in the request builder of summary (reasoning, max_tokens)", lever="trim",
    )  # fmt: skip
    moved = {"ttft": TTFT, "tpot": TPOT_SAME, "output": Shift(820, 4100, Interval(2900, 3280, 3600)), "e2e": E2E}
    return diagnosis(
        shift=moved,
        causes=(diagnosis().causes[0], longer),
        unexplained={"ttft": 0.01, "output": 0.03},
        verdict="explained",
    )


def refused() -> Diagnosis:
    """S10: the model changed."""
    return diagnosis(
        verdict="refused",
        causes=(),
        unexplained={},
        refused="the model's revision changed between the windows (2026-08-01 -> 2026-09-08): what moved "
        "cannot be told from what the other model does",
        next_measurements=(
            "send a sample of the same prompts to both revisions, side by side, and compare them with --compare",
        ),
    )


def no_change() -> Diagnosis:
    """S9."""
    same = {"ttft": Shift(0.84, 0.86, Interval(-0.09, 0.02, 0.12)), "tpot": TPOT_SAME, "output": OUTPUT_SAME}
    calm = (*CALM, *(Finding(step, "", "innocent") for step in (3, 4, 6)))
    return diagnosis(verdict="no_change", shift=same, causes=(), unexplained={}, findings=calm)


def partly() -> Diagnosis:
    """More is unexplained than explained."""
    cause = diagnosis().causes[0]
    small = Cause(
        **{name: getattr(cause, name) for name in cause.__slots__} | {"shares": {"ttft": Interval(0.31, 0.42, 0.55)}}
    )
    seen = Finding(7, "retries", "guilty", ("repeats 0.3 % -> 6 %",))
    return diagnosis(
        verdict="partly", causes=(small,), unexplained={"ttft": 0.58}, findings=(*CALM[:2], seen),
        next_measurements=("log replica and queue_ms: steps 4 and 6 cannot be looked at without",),
        notes=("Window after: 12 requests without a time are left out (column ts)",),
    )  # fmt: skip


ALL = (diagnosis, lost_host, two_causes, partly, no_change, refused)
