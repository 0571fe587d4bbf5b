"""Larkspur's requests: when they come, what they hold, what the provider's cache does, what goes wrong."""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .caching import Cache
from .company import MODELS, SHAPES, SUMMER_DAYS, SUMMER_RATE, USERS, WORKLOADS, Model, Shape, Workload
from .draws import PROBABILITIES, Draws, Quantiles, cumulative
from .record import END_MS, START, Request

BERLIN_HOURS = 2
"""Berlin is at UTC+2 throughout the quarter, so that no zone database is needed."""

_FAILURES: dict[str, tuple[int, ...]] = {
    "openai": (429, 429, 500),
    "anthropic": (529, 429, 529),
    "google": (429,),
}


@dataclass(slots=True)
class _Turn:
    """One request before the cache and the outcome are known; `order` keeps equal instants in order."""

    request: Request
    group: int
    order: int
    prompt: int
    fresh: int
    long: bool


def make_requests(seed: int, scale: float) -> list[Request]:
    """Draw the whole quarter.

    Args:
        seed: Of all draws; each workload has its own stream, so that changing one leaves the others alone.
        scale: Factor on the number of requests.

    Returns:
        All requests, failed attempts included, by source and start; ids and lines are not set yet.
    """
    requests = draw(WORKLOADS, MODELS, str(seed), scale)
    return sorted(requests, key=lambda request: (request.source, request.ts_ms))


def draw(works: Sequence[Workload], models: Mapping[str, Model], key: str, scale: float) -> list[Request]:
    """Draw the requests of some workloads.

    Args:
        works: The workloads.
        models: How their models answer.
        key: Names the draws.
        scale: Factor on the number of requests.

    Returns:
        Requests by workload, failed attempts included.
    """
    requests: list[Request] = []
    for number, work in enumerate(works):
        draws = Draws(f"{key}/{work.source}/{work.feature}/{work.model}")
        cache = Cache(work, models[work.model])
        for turn in _turns(work, models[work.model], number, draws, scale):
            cache.serve(turn.request, group=turn.group, prompt=turn.prompt, fresh=turn.fresh, long=turn.long)
            requests.extend(_outcome(turn.request, work, draws))
    return requests


def hour_weights(shape: Shape, *, growth: float, days: tuple[int, int]) -> list[float]:
    """Say how much of a workload starts in each hour.

    Args:
        shape: Rates by Berlin hour and weekday.
        growth: Rise of the rate over the quarter: 0.5 is half as much again at its end.
        days: First day of the workload, and the day after its last, from 0.

    Returns:
        Weights of the hours (UTC) from the first day on.
    """
    weights: list[float] = []
    for hour in range(days[0] * 24, days[1] * 24):
        local = hour + BERLIN_HOURS
        day = local // 24
        rate = float(shape.hours[local % 24]) * float(shape.weekdays[(START.weekday() + day) % 7])
        if not shape.even and SUMMER_DAYS[0] <= day <= SUMMER_DAYS[1]:
            rate *= SUMMER_RATE
        weights.append(rate * (1.0 + growth * hour / (END_MS / 3_600_000)))
    return weights


def _mean(table: Quantiles) -> float:
    """Mean of a distribution given by its quantiles."""
    parts = range(1, len(table))
    return sum((table[i] + table[i - 1]) / 2 * (PROBABILITIES[i] - PROBABILITIES[i - 1]) for i in parts)


def _starts(work: Workload, draws: Draws, scale: float) -> list[int]:
    """Draw when the sessions or runs of a workload begin, in milliseconds, in order."""
    shape = SHAPES[work.shape]
    sums = cumulative(hour_weights(shape, growth=work.growth, days=work.days))
    count = max(1, round(work.requests * scale / _mean(work.turns)))
    starts: list[int] = []
    for index in range(count):
        unit = (index + 0.5) / count if shape.even else draws.unit()
        hour = work.days[0] * 24 + bisect_right(sums, unit)
        starts.append(hour * 3_600_000 + draws.between(0, 3_599_999 if not shape.even else 540_000))
    return sorted(starts)


def _turns(work: Workload, model: Model, number: int, draws: Draws, scale: float) -> list[_Turn]:
    """Draw the requests of a workload with their prompts and answers, by start."""
    turns: list[_Turn] = []
    for group, start in enumerate(_starts(work, draws, scale)):
        environment = "staging" if draws.chance(work.staging_ratio) else "prod"
        user = f"u-{work.team}-{draws.skewed(USERS[work.team]):03d}"
        session = f"s{number:02d}-{group:05d}" if work.session else None
        long = draws.chance(work.long_ratio)
        history = draws.quantile(work.document)
        ts_ms = start
        for order in range(length := draws.quantile(work.turns)):
            fresh, output = draws.quantile(work.fresh), max(1, draws.quantile(work.output))
            prompt = work.system_tokens + history + fresh
            if ts_ms >= END_MS or prompt > work.context_tokens:
                break
            request = _request(work, model, draws, ts_ms=ts_ms, fresh=fresh + history * (order == 0), output=output)
            request.user, request.session, request.environment = user, session, environment
            request.api_key = f"key-{work.team}-{environment}"
            if work.tool_turns and order < length - 1:
                request.finish = "tool_calls"
            turns.append(_Turn(request, group, order, prompt, fresh, long))
            if work.session:
                history += fresh + request.output_tokens - request.reasoning_tokens
            ts_ms += request.duration_ms + draws.quantile(work.gap_s) * 1_000 + draws.between(0, 999)
    return sorted(turns, key=lambda turn: (turn.request.ts_ms, turn.group, turn.order))


def _request(work: Workload, model: Model, draws: Draws, *, ts_ms: int, fresh: int, output: int) -> Request:
    """Draw one request's answer, tier and latency; `fresh` is what the provider must read anew, in tokens."""
    truncated = draws.chance(0.012)
    if truncated:
        output = work.output[-2]
    reasoning = output * draws.between(*work.thinking) // 100
    searches = draws.between(1, 4) if draws.chance(work.search_ratio) else 0
    ttft_ms = model.first_ms * draws.between(70, 190) // 100 + fresh * draws.between(18, 34) // 1_000
    ttft_ms += searches * draws.between(700, 1_900)
    return Request(
        source=work.source,
        ts_ms=ts_ms,
        duration_ms=ttft_ms + (output - 1) * model.token_us * draws.between(80, 145) // 100_000,
        ttft_ms=ttft_ms if work.stream else None,
        team=work.team,
        feature=work.feature,
        user="",
        session=None,
        environment="",
        api_key="",
        provider=model.provider,
        model=work.model,
        tier=_tier(work, draws),
        stream=work.stream,
        output_tokens=output,
        reasoning_tokens=reasoning,
        web_searches=searches,
        finish="length" if truncated else "stop",
        status="incomplete" if truncated and work.source == "openai_responses" else "success",
    )


def _tier(work: Workload, draws: Draws) -> str:
    """Draw the service tier that the provider answered with."""
    sums = cumulative([share for _, share in work.tiers])
    return work.tiers[min(bisect_right(sums, draws.unit()), len(sums) - 1)][0]


def _outcome(request: Request, work: Workload, draws: Draws) -> list[Request]:
    """Draw what goes wrong: a failed attempt, a lost usage record, a cancellation, a cached answer."""
    if draws.chance(work.gateway_hit_ratio):
        request.gateway_cache_hit = True
        request.duration_ms = draws.between(9, 48)
        request.ttft_ms = request.duration_ms if request.stream else None
        return [request]
    if request.source == "openai_responses" and draws.chance(0.006):
        request.status, request.finish = "cancelled", ""
        return [request]
    if request.source == "openai_chat" and request.stream and draws.chance(0.005):
        request.flag = "stream_without_usage"
        return [request]
    if draws.chance(work.fail_ratio):
        failed = _failure(request, draws)
        given_up = draws.chance(0.2)
        if failed.ts_ms >= work.days[0] * 86_400_000 and not given_up:
            request.attempt, request.retry_of = 1, failed
            return [failed, request]
        if given_up:
            failed.ts_ms = request.ts_ms
            return [failed]
    return [request]


def _failure(request: Request, draws: Draws) -> Request:
    """Make the attempt that failed before a request."""
    codes = _FAILURES[request.provider]
    http_status = codes[draws.between(0, len(codes) - 1)]
    duration_ms = draws.between(60, 900) if http_status == 429 else draws.between(900, 9_000)
    return Request(
        source=request.source,
        ts_ms=request.ts_ms - duration_ms - draws.between(500, 8_000),
        duration_ms=duration_ms,
        ttft_ms=None,
        team=request.team,
        feature=request.feature,
        user=request.user,
        session=request.session,
        environment=request.environment,
        api_key=request.api_key,
        provider=request.provider,
        model=request.model,
        tier=request.tier,
        stream=request.stream,
        status="error",
        finish="",
        http_status=http_status,
    )
