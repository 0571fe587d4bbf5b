"""Larkspur's quarter before (2026Q2): half the traffic, an older planner, no contracts; in tenfold's own columns."""

from dataclasses import replace

from .company import MODELS, WORKLOADS, Model, Workload
from .record import Request
from .traffic import draw
from .writers import csv_row

DAYS = (-91, 0)
"""The quarter's days, counted from the first of the next one."""
FILE = "2026Q2.csv.gz"
COLUMNS = (
    "request_id", "ts", "duration_ms", "ttft_ms", "team", "feature", "user_id", "session_id", "environment",
    "api_key_id", "provider", "model", "service_tier", "is_stream", "input_tokens", "cache_read_tokens",
    "cache_write_tokens", "cache_write_long_tokens", "output_tokens", "reasoning_tokens", "web_searches", "attempt",
    "retry_of", "status", "finish_reason", "http_status", "is_billable", "gateway_cache_hit",
)  # fmt: skip

_YES_NO = ("false", "true")
_SHARE = 0.45
"""Of the requests of a workload that ran from the first day of the next quarter."""
_NEW = ("contract-qa", "lead-notes")
_OLD_PLANNER = "claude-opus-4-5"
_MODELS = {**MODELS, _OLD_PLANNER: Model("anthropic", 1_300, 19_000)}


def _workloads() -> list[Workload]:
    """Tell what ran: what the next quarter began with, on the models of the time, and a feature that was given up."""
    kept = [work for work in WORKLOADS if work.days[0] == 0 and work.feature not in _NEW]
    earlier = [
        replace(
            work,
            model=_OLD_PLANNER if work.model == "claude-opus-5" else work.model,
            requests=round(work.requests * _SHARE),
            days=DAYS,
            growth=0.35,
        )
        for work in kept
    ]
    triage = next(work for work in WORKLOADS if work.feature == "ticket-triage")
    scoring = replace(triage, feature="lead-scoring", team="growth", requests=420, days=(-91, -24), growth=0.0)
    return [*earlier, scoring]


def make_earlier(seed: int, scale: float) -> list[Request]:
    """Draw the quarter before.

    Args:
        seed: Of all draws.
        scale: Factor on the number of requests.

    Returns:
        Its requests by start, with ids.
    """
    requests = draw(_workloads(), _MODELS, f"{seed}/earlier", scale)
    found = sorted((one for one in requests if one.ts_ms < 0), key=lambda one: (one.ts_ms, one.source))
    for number, request in enumerate(found, 1):
        request.request_id = f"lk-{number:06d}"
        # what the warehouse kept is whole: streams without usage were filled from the provider's answer
        request.flag = None
    return found


def line(request: Request) -> str:
    """Write a request with tenfold's own columns.

    Args:
        request: The request.

    Returns:
        One CSV line, without a newline.
    """
    failed = request.status == "error"
    first = f"{request.start:%Y-%m-%dT%H:%M:%S}.{request.ts_ms % 1_000:03d}Z"
    tokens = [getattr(request, name) for name in COLUMNS[14:21]]
    return csv_row(
        (
            request.request_id, first, request.duration_ms, "" if request.ttft_ms is None else request.ttft_ms,
            request.team, request.feature, request.user, request.session or "", request.environment, request.api_key,
            request.provider, request.model, request.tier, _YES_NO[request.stream],
            *(["", "", "", "", "", "", ""] if failed else tokens), request.attempt,
            request.retry_of.request_id if request.retry_of else "", request.status, request.finish,
            request.http_status, _YES_NO[not failed], _YES_NO[request.gateway_cache_hit],
        )
    )  # fmt: skip
