"""Larkspur, an invented logistics software firm: who calls which model for what, and how much, as tables."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .draws import NOTHING, Quantiles
from .record import DAYS, Source

Caching: TypeAlias = Literal["none", "prefix", "history", "broken"]
"""`prefix`: the shared head is cached. `history`: the whole conversation. `broken`: written, never read."""


@dataclass(frozen=True, slots=True)
class Model:
    """How a model answers: speed, and the cache rules of its provider.

    `block` is the granularity of cache reads in tokens, `lifetime_s` how long an untouched entry lives.
    """

    provider: str
    first_ms: int
    token_us: int
    lifetime_s: int = 300
    block: int = 1
    writes: bool = True
    cache_minimum: int = 1_024


MODELS: dict[str, Model] = {
    "gpt-5.6-luna": Model("openai", 380, 5_500, lifetime_s=1_800, block=128),
    "gpt-5.6-sol": Model("openai", 900, 12_500, lifetime_s=1_800, block=128),
    "gpt-6-astra": Model("openai", 1_600, 21_000, lifetime_s=1_800, block=128),
    "gpt-4o-2024-08-06": Model("openai", 520, 11_000, block=128, writes=False),
    "gpt-4.1-mini": Model("openai", 410, 8_500, block=128, writes=False),
    "gpt-5-nano": Model("openai", 300, 4_800, block=128, writes=False),
    "claude-opus-5": Model("anthropic", 1_100, 17_000),
    "claude-sonnet-5": Model("anthropic", 800, 12_000),
    "claude-sonnet-4-5": Model("anthropic", 850, 13_500),
    "claude-haiku-4-5": Model("anthropic", 450, 7_000),
    "gemini-2.5-flash": Model("google", 350, 5_000, lifetime_s=3_600, writes=False),
    "larkspur-ft-7": Model("openai", 240, 9_000, writes=False),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """When traffic comes.

    `hours` has one digit per hour of the Berlin day, `weekdays` one per day from Monday on: relative rates.
    A job that a scheduler starts is `even`: spread over its slots rather than drawn at random.
    """

    hours: str
    weekdays: str
    even: bool = False


SHAPES: dict[str, Shape] = {
    "office": Shape("000000146899877888642111", "8999711"),
    "extended": Shape("211112346889888998876543", "8888865"),
    "builds": Shape("100000012479988899875321", "7999821"),
    "nightly": Shape("000910000000000000000000", "9999999", even=True),
    "monday": Shape("000009000000000000000000", "9000000", even=True),
}

SUMMER_DAYS = (33, 52)
"""First and last day (from 0) of the holiday weeks in August, when office work is at `SUMMER_RATE`."""
SUMMER_RATE = 0.72

USERS: dict[str, int] = {
    "search": 420, "agents": 38, "support": 64, "platform": 9, "growth": 130, "finance": 22,
}  # fmt: skip
"""Team: number of users whose requests it pays for."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One feature on one model in one log file.

    `requests` is the number in the quarter at scale 1. `turns` is the number of requests in a session, or in
    a run of a job where `session` is false; `gap_s` the pause between two of them. In tokens, `document` is
    what a session starts with, `fresh` what a turn adds to the prompt and `output` what it answers;
    `thinking` is the share of the output that is reasoning, in percent. `days` is the span of days (from 0,
    end excluded) in which the workload exists.
    """

    source: Source
    feature: str
    team: str
    model: str
    requests: int
    shape: str
    fresh: Quantiles
    output: Quantiles
    system_tokens: int = 0
    document: Quantiles = NOTHING
    caching: Caching = "none"
    turns: Quantiles = (1, 1, 1, 1, 1, 1, 1, 1)
    gap_s: Quantiles = (2, 2, 3, 3, 4, 5, 8, 12)
    session: bool = False
    stream: bool = True
    thinking: tuple[int, int] = (0, 0)
    context_tokens: int = 190_000
    growth: float = 0.6
    days: tuple[int, int] = (0, DAYS)
    long_ratio: float = 0.0
    search_ratio: float = 0.0
    tool_turns: bool = False
    staging_ratio: float = 0.06
    fail_ratio: float = 0.012
    gateway_hit_ratio: float = 0.0
    tiers: tuple[tuple[str, float], ...] = (("standard", 1.0),)


_AGENT_TURNS: Quantiles = (2, 4, 7, 12, 19, 28, 44, 60)
_AGENT_GAPS: Quantiles = (2, 4, 8, 20, 48, 130, 560, 1_500)
_CHAT_GAPS: Quantiles = (6, 14, 28, 55, 110, 260, 900, 2_400)
_RUN: Quantiles = (12, 14, 16, 18, 20, 22, 24, 26)

WORKLOADS: tuple[Workload, ...] = (
    Workload(
        "openai_chat", "rag-answer", "search", "gpt-5.6-luna", 4_300, "extended",
        fresh=(500, 1_900, 3_900, 6_400, 9_200, 13_000, 22_000, 31_000),
        output=(60, 180, 320, 560, 900, 1_400, 2_800, 4_096),
        system_tokens=3_200, caching="prefix", turns=(1, 1, 1, 2, 3, 4, 6, 9), gap_s=_CHAT_GAPS,
        session=True, thinking=(0, 30), growth=0.9,
    ),
    Workload(
        "openai_chat", "query-rewrite", "search", "gpt-5-nano", 1_300, "extended",
        fresh=(180, 230, 290, 360, 450, 560, 820, 990), output=(12, 18, 24, 33, 46, 62, 95, 160),
        stream=False, growth=0.9,
    ),
    Workload(
        "openai_chat", "ticket-triage", "support", "gpt-4o-2024-08-06", 1_800, "office",
        fresh=(180, 420, 760, 1_350, 2_300, 3_700, 7_200, 9_800), output=(18, 26, 34, 45, 60, 84, 140, 256),
        system_tokens=1_750, caching="prefix", turns=(1, 1, 1, 1, 2, 3, 5, 8), stream=False, growth=0.3,
    ),
    Workload(
        "openai_chat", "ticket-reply", "support", "gpt-4o-2024-08-06", 900, "office",
        fresh=(300, 900, 1_700, 3_100, 5_200, 8_100, 14_000, 19_000),
        output=(90, 220, 360, 560, 820, 1_150, 1_900, 2_048),
        system_tokens=5_600, caching="prefix", turns=(1, 1, 1, 2, 3, 4, 6, 8), gap_s=_CHAT_GAPS,
        session=True, growth=0.0, days=(0, 47),
    ),
    Workload(
        "openai_chat", "nightly-tagging", "platform", "gpt-4o-2024-08-06", 1_600, "nightly",
        fresh=(400, 900, 1_600, 2_800, 4_600, 7_300, 15_000, 24_000),
        output=(40, 70, 95, 130, 175, 240, 420, 512),
        system_tokens=2_300, caching="prefix", turns=_RUN, stream=False, growth=0.2, staging_ratio=0.0,
    ),
    Workload(
        "openai_chat", "invoice-extraction", "finance", "gpt-4o-2024-08-06", 2_300, "office",
        fresh=(2_600, 5_200, 8_600, 14_500, 22_000, 33_000, 62_000, 84_000),
        output=(300, 700, 1_200, 2_100, 3_600, 5_600, 9_500, 12_288),
        system_tokens=1_500, caching="prefix", turns=(1, 1, 1, 3, 5, 8, 14, 20), stream=False, growth=0.5,
    ),
    Workload(
        "openai_chat", "onboarding-chat", "growth", "gpt-4.1-mini", 650, "extended",
        fresh=(20, 45, 80, 150, 290, 560, 1_600, 2_800), output=(60, 120, 190, 290, 430, 620, 1_000, 1_024),
        system_tokens=2_700, caching="prefix", turns=(1, 2, 3, 4, 7, 10, 16, 22), gap_s=_CHAT_GAPS,
        session=True, growth=0.4, days=(0, 61),
    ),
    Workload(
        "openai_responses", "code-review-agent", "agents", "gpt-5.6-sol", 1_800, "builds",
        fresh=(250, 700, 1_700, 3_900, 7_800, 13_500, 30_000, 46_000),
        output=(180, 700, 1_600, 3_200, 6_000, 9_600, 19_000, 25_000),
        system_tokens=11_500, caching="history", turns=_AGENT_TURNS, gap_s=_AGENT_GAPS, session=True,
        thinking=(30, 80), growth=1.4, tool_turns=True,
    ),
    Workload(
        "openai_responses", "planner-agent", "agents", "gpt-6-astra", 190, "office",
        fresh=(6_000, 14_000, 24_000, 42_000, 70_000, 110_000, 210_000, 280_000),
        output=(700, 1_900, 3_300, 5_600, 9_500, 15_000, 27_000, 32_000),
        system_tokens=20_500, caching="history", turns=(1, 1, 1, 2, 3, 4, 5, 6), gap_s=_AGENT_GAPS,
        session=True, thinking=(40, 85), context_tokens=390_000, growth=0.5, days=(50, DAYS), tool_turns=True,
        tiers=(("standard", 0.78), ("flex", 0.14), ("priority", 0.08)),
    ),
    Workload(
        "openai_responses", "eval-suite", "platform", "gpt-5.6-sol", 1_750, "builds",
        fresh=(300, 900, 1_900, 3_600, 6_400, 10_500, 21_000, 30_000),
        output=(250, 1_100, 2_400, 4_600, 8_200, 13_000, 23_000, 32_000),
        system_tokens=1_900, caching="prefix", turns=(20, 24, 28, 36, 44, 50, 58, 60), stream=False,
        thinking=(40, 80), growth=0.3, staging_ratio=1.0,
    ),
    Workload(
        "anthropic_messages", "planner-agent", "agents", "claude-opus-5", 4_600, "office",
        fresh=(120, 450, 1_200, 3_000, 6_200, 11_500, 27_000, 42_000),
        output=(110, 520, 1_300, 2_900, 5_600, 9_400, 18_500, 26_000),
        system_tokens=17_800, caching="history", turns=_AGENT_TURNS, gap_s=_AGENT_GAPS, session=True,
        thinking=(20, 70), growth=1.6, long_ratio=0.08, search_ratio=0.09, tool_turns=True,
    ),
    Workload(
        "anthropic_messages", "code-review-agent", "agents", "claude-sonnet-5", 1_500, "builds",
        fresh=(200, 600, 1_500, 3_400, 6_900, 12_000, 28_000, 44_000),
        output=(150, 600, 1_400, 2_800, 5_200, 8_600, 16_000, 21_000),
        system_tokens=11_800, caching="history", turns=_AGENT_TURNS, gap_s=_AGENT_GAPS, session=True,
        thinking=(20, 65), growth=1.8, tool_turns=True,
    ),
    Workload(
        "anthropic_messages", "ticket-reply", "support", "claude-sonnet-4-5", 950, "office",
        fresh=(300, 900, 1_700, 3_100, 5_200, 8_100, 14_000, 19_000),
        output=(90, 260, 420, 680, 1_000, 1_450, 2_400, 3_000),
        system_tokens=6_100, caching="prefix", turns=(1, 1, 1, 2, 3, 4, 6, 8), gap_s=_CHAT_GAPS,
        session=True, growth=0.0, days=(47, DAYS),
    ),
    Workload(
        "anthropic_messages", "contract-qa", "finance", "claude-opus-5", 1_250, "office",
        fresh=(60, 110, 170, 280, 520, 1_100, 3_400, 6_000),
        output=(150, 500, 1_100, 2_300, 4_200, 6_800, 12_500, 16_000),
        system_tokens=2_400, document=(7_000, 14_000, 22_000, 34_000, 48_000, 66_000, 104_000, 126_000),
        caching="broken", turns=(1, 2, 3, 4, 6, 9, 14, 18), gap_s=_CHAT_GAPS,
        session=True, thinking=(10, 50), growth=0.8,
    ),
    Workload(
        "anthropic_messages", "weekly-digest", "growth", "claude-sonnet-4-5", 850, "monday",
        fresh=(9_000, 20_000, 33_000, 50_000, 71_000, 96_000, 142_000, 158_000),
        output=(900, 2_000, 3_200, 4_900, 7_100, 9_800, 14_500, 16_000),
        turns=(56, 58, 60, 65, 70, 72, 74, 75), stream=False, growth=0.4, staging_ratio=0.0,
    ),
    Workload(
        "anthropic_messages", "ticket-triage", "support", "claude-haiku-4-5", 600, "office",
        fresh=(180, 420, 760, 1_350, 2_300, 3_700, 7_200, 9_800), output=(18, 26, 34, 45, 60, 84, 140, 256),
        turns=(1, 1, 1, 1, 2, 3, 5, 8), stream=False, growth=0.3, days=(61, DAYS),
    ),
    Workload(
        "litellm_spendlogs", "translation", "growth", "gemini-2.5-flash", 2_500, "extended",
        fresh=(90, 190, 340, 640, 1_150, 2_000, 5_200, 8_200),
        output=(80, 170, 310, 600, 1_100, 1_950, 5_300, 8_192),
        stream=False, growth=0.7, gateway_hit_ratio=0.07, fail_ratio=0.025,
    ),
    Workload(
        "litellm_spendlogs", "onboarding-chat", "growth", "claude-haiku-4-5", 800, "extended",
        fresh=(20, 45, 80, 150, 290, 560, 1_600, 2_800), output=(60, 130, 210, 330, 500, 730, 1_200, 2_000),
        system_tokens=5_200, caching="history", turns=(1, 2, 3, 4, 7, 10, 16, 22), gap_s=_CHAT_GAPS,
        session=True, growth=0.5, days=(46, DAYS), gateway_hit_ratio=0.02, fail_ratio=0.02,
    ),
    Workload(
        "litellm_spendlogs", "address-cleanup", "platform", "larkspur-ft-7", 40, "office",
        fresh=(120, 160, 210, 260, 340, 430, 600, 700), output=(20, 30, 38, 48, 60, 75, 110, 130),
        stream=False, growth=0.0, fail_ratio=0.0,
    ),
    Workload(
        "gateway", "freight-quotes", "finance", "gemini-2.5-flash", 340, "extended",
        fresh=(200, 380, 600, 1_000, 1_700, 2_800, 6_000, 9_000),
        output=(60, 110, 170, 260, 390, 560, 950, 1_400),
        system_tokens=2_200, caching="prefix", turns=(1, 1, 2, 3, 4, 6, 9, 12), stream=False, fail_ratio=0.0,
    ),
    Workload(
        "gateway", "lead-notes", "growth", "gemini-2.5-flash", 280, "office",
        fresh=(500, 1_100, 1_900, 3_300, 5_400, 8_400, 16_000, 22_000),
        output=(90, 160, 240, 370, 540, 760, 1_200, 1_600), stream=False, fail_ratio=0.0,
    ),
)  # fmt: skip

BATCH_FEATURES: tuple[str, ...] = ("nightly-tagging", "weekly-digest", "eval-suite", "invoice-extraction")
"""Jobs that nobody waits for, yet they run online at the standard tier."""

IN_AN_HOUR = "invoice-extraction"
"""The one of `BATCH_FEATURES` whose answers are due within an hour."""

UNPRICED_MODEL = "larkspur-ft-7"
"""A fine-tuned model that no price list knows."""

PRICE_FALLS: dict[str, int] = {"gpt-5.6-luna": 29, "gpt-5.6-sol": 51}
"""Model: the day of the quarter (from 0) on which its list price fell."""
