"""Anthropic's admin reports: usage of messages, and costs, which are decimal text in CENTS.

The cost report leaves Priority Tier out: its absence there is no drift.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from tenfold.logs.buckets import pages
from tenfold.logs.buckets.base import BucketReader, count, held, instant, number, text
from tenfold.prices.words import canonical_tier

if TYPE_CHECKING:
    from collections.abc import Mapping

_METERS = {
    "uncached_input_tokens": "uncached_input",
    "cache_read_input_tokens": "cache_read",
    "cache_creation.ephemeral_5m_input_tokens": "cache_write",
    "cache_creation.ephemeral_1h_input_tokens": "cache_write_long",
    "output_tokens": "output",
}
_NO_REGION = {None, "", "global", "not_available"}


def _usage(bucket: Mapping[str, object], result: Mapping[str, object]) -> list[dict[str, object]]:
    written = held(result.get("cache_creation"), "cache_creation")
    long, short = count(written, "ephemeral_1h_input_tokens"), count(written, "ephemeral_5m_input_tokens")
    read, fresh = count(result, "cache_read_input_tokens"), count(result, "uncached_input_tokens")
    writes = None if long is None and short is None else (long or 0) + (short or 0)
    tools = held(result.get("server_tool_use"), "server_tool_use")
    row = _about(bucket, result) | {
        "input_tokens": None if fresh is None else fresh + (read or 0) + (writes or 0),
        "cache_read_tokens": read,
        "cache_write_tokens": writes,
        "cache_write_long_tokens": long,
        "output_tokens": count(result, "output_tokens"),
        "web_searches": count(tools, "web_search_requests"),
    }
    return [row]


def _costs(bucket: Mapping[str, object], result: Mapping[str, object]) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    currency = str(result.get("currency") or "USD").upper()
    kind, token = text(result.get("cost_type")), text(result.get("token_type"))
    for key, amount_kind in (("amount", "billed"), ("list_amount", "list")):
        cents = number(result.get(key), key)
        if cents is None:
            continue
        dollars = number(cents / 100, key)
        row = _about(bucket, result) | {
            "meter": _METERS.get(token, token) if token else kind,
            "description": text(result.get("description")),
            "amount": dollars,
            "currency": currency,
            "amount_usd": dollars if currency == "USD" else None,
            "amount_kind": amount_kind,
        }
        rows.append(row)
    return rows


def _about(bucket: Mapping[str, object], result: Mapping[str, object]) -> dict[str, object]:
    tier, geo = text(result.get("service_tier")), text(result.get("inference_geo"))
    return {
        "bucket_start": instant(bucket.get("starting_at"), "starting_at"),
        "bucket_end": instant(bucket.get("ending_at"), "ending_at"),
        "provider": "anthropic",
        "project": text(result.get("workspace_id")),
        "api_key_id": text(result.get("api_key_id")),
        "user_id": text(result.get("account_id")),
        "model": text(result.get("model")),
        "service_tier": "fast" if result.get("speed") == "fast" else canonical_tier(tier) if tier else None,
        "region": None if geo in _NO_REGION else geo,
        "context_band": text(result.get("context_window")),
    }


def _is_report(key: str, head: str) -> bool:
    return all(re.search(rf'"{name}"\s*:', head) for name in ("starting_at", "results", key))


ANTHROPIC_USAGE = BucketReader(
    name="anthropic_usage_report",
    holds="tokens and searches by day or hour",
    fits=partial(_is_report, "uncached_input_tokens"),
    read=partial(pages.read, each=_usage),
)
ANTHROPIC_COSTS = BucketReader(
    name="anthropic_cost_report",
    holds="amounts billed by day, in cents",
    fits=partial(_is_report, "amount"),
    read=partial(pages.read, each=_costs),
)
