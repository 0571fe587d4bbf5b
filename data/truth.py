"""What a correct loader must find in the demo data, computed from the generator's own records."""

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta

from .company import BATCH_FEATURES, IN_AN_HOUR, PRICE_FALLS, UNPRICED_MODEL, WORKLOADS
from .harm import Harm
from .record import START, Request

COLUMNS = (
    "input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens", "output_tokens",
    "reasoning_tokens", "web_searches",
)  # fmt: skip

LONG_CONTEXT_TOKENS = 272_000


def file_truth(requests: list[Request], harm: Harm, *, physical_lines: int, header: bool) -> dict[str, object]:
    """State what one file holds.

    Args:
        requests: Its requests.
        harm: What was done to its lines.
        physical_lines: Number of lines, the header and an unterminated last line included.
        header: Whether the first line is a header.

    Returns:
        Counts of lines and requests, line numbers (from 1) of rejects and flagged rows, sums of counted rows.
    """
    flags = sorted({request.flag for request in requests if request.flag is not None})
    return {
        "physical_lines": physical_lines,
        "header_lines": int(header),
        "requests": len(requests),
        "duplicates": len(harm.duplicates),
        "duplicate_lines": list(harm.duplicates),
        "rejected": [{"line": line, "kind": kind} for line, kind in harm.rejected],
        "flagged": {flag: [r.line for r in requests if r.flag == flag] for flag in flags},
        "status": dict(sorted(Counter(request.status for request in requests).items())),
        "retried": sum(request.retry_of is not None for request in requests),
        "gateway_cache_hits": sum(request.gateway_cache_hit for request in requests),
        "counted": _sums(requests),
    }


def totals(requests: list[Request]) -> dict[str, object]:
    """State what all files hold together.

    Args:
        requests: All requests.

    Returns:
        Sums over counted rows by team, feature, model, tier and UTC day, and the facts that were planted.
    """
    losing = next(work for work in WORKLOADS if work.caching == "broken")
    batch = [r for r in requests if r.feature in BATCH_FEATURES and r.tier == "standard" and not r.stream]
    return {
        "requests": len(requests),
        "total": _sums(requests),
        "by_team": _by(requests, lambda r: r.team),
        "by_feature": _by(requests, lambda r: r.feature),
        "by_model": _by(requests, lambda r: r.model),
        "by_provider": _by(requests, lambda r: r.provider),
        "by_tier": _by(requests, lambda r: r.tier),
        "by_environment": _by([r for r in requests if r.source != "gateway"], lambda r: r.environment),
        "by_day": _by(requests, lambda r: f"{r.start:%Y-%m-%d}"),
        "batch_eligible": {
            "total": _sums(batch),
            "by_model_and_feature": _rows(batch, lambda r: (r.model, r.feature), ("model", "feature")),
            "vetoed_by_slo": [IN_AN_HOUR],
        },
        "unpriced": {"model": UNPRICED_MODEL} | _sums(r for r in requests if r.model == UNPRICED_MODEL),
        "losing_cache": {"feature": losing.feature, "model": losing.model}
        | _sums(r for r in requests if r.feature == losing.feature),
        "price_falls": [
            {
                "model": model,
                "at": f"{START + timedelta(days=day):%Y-%m-%d}",
                "before": _sums(r for r in requests if r.model == model and r.ts_ms < day * 86_400_000),
                "from": _sums(r for r in requests if r.model == model and r.ts_ms >= day * 86_400_000),
            }
            for model, day in PRICE_FALLS.items()
        ],
        "long_context": {
            "above_input_tokens": LONG_CONTEXT_TOKENS,
            "by_model_and_tier": _rows(
                [r for r in requests if r.input_tokens > LONG_CONTEXT_TOKENS],
                lambda r: (r.model, r.tier),
                ("model", "tier"),
            ),
        },
    }


def _sums(requests: Iterable[Request]) -> dict[str, int]:
    """Add up the counted requests."""
    counted = [request for request in requests if request.counted]
    return {"requests": len(counted)} | {name: sum(getattr(r, name) for r in counted) for name in COLUMNS}


def _by(requests: Iterable[Request], key: Callable[[Request], str]) -> dict[str, dict[str, int]]:
    """Add up the counted requests of each value of a key."""
    groups: dict[str, list[Request]] = {}
    for request in (request for request in requests if request.counted):
        groups.setdefault(key(request), []).append(request)
    return {value: _sums(groups[value]) for value in sorted(groups)}


def _rows(
    requests: Iterable[Request], key: Callable[[Request], tuple[str, ...]], names: tuple[str, ...]
) -> list[dict[str, object]]:
    """Add up the counted requests of each value of a compound key."""
    groups: dict[tuple[str, ...], list[Request]] = {}
    for request in (request for request in requests if request.counted):
        groups.setdefault(key(request), []).append(request)
    return [{**dict(zip(names, value, strict=True)), **_sums(groups[value])} for value in sorted(groups)]
