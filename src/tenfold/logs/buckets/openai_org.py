"""OpenAI's organisation reports: usage (tokens, images, seconds, ...) and costs, which are in DOLLARS."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tenfold.logs.buckets import pages
from tenfold.logs.buckets.base import BucketReader, count, held, instant, number, text
from tenfold.prices.words import canonical_tier

if TYPE_CHECKING:
    from collections.abc import Mapping

_TOKENS = {
    "input_tokens": "input_tokens",
    "cache_read_tokens": "input_cached_tokens",
    "cache_write_tokens": "input_cache_write_tokens",
    "cache_write_long_tokens": "input_cache_write_12h_tokens",
    "input_audio_tokens": "input_audio_tokens",
    "input_image_tokens": "input_image_tokens",
    "output_tokens": "output_tokens",
    "output_audio_tokens": "output_audio_tokens",
    "output_image_tokens": "output_image_tokens",
}
# What other usage reports count -> its meter and unit.
_QUANTITIES = {
    "images": ("images", "images"),
    "characters": ("characters", "characters"),
    "seconds": ("audio", "s"),
    "usage_bytes": ("vector_stores", "bytes"),
    "num_sessions": ("code_sessions", "sessions"),
}
_METERS = {
    "input_tokens": "uncached_input",
    "cached_input_tokens": "cache_read",
    "input_cached_tokens": "cache_read",
    "input_cache_write_tokens": "cache_write",
    "output_tokens": "output",
}
_THOUSANDS = {"1000_tokens": "tokens"}


def _usage(bucket: Mapping[str, object], result: Mapping[str, object]) -> list[dict[str, object]]:
    tier = text(result.get("service_tier"))
    requests = count(result, "num_model_requests")
    row: dict[str, object] = {
        **_about(bucket, result),
        "user_id": text(result.get("user_id")),
        "model": text(result.get("model")),
        "service_tier": "batch" if result.get("batch") is True else canonical_tier(tier) if tier else None,
        "requests": requests if requests is not None else count(result, "num_requests"),
        **{column: count(result, key) for column, key in _TOKENS.items()},
    }
    for key, (meter, unit) in _QUANTITIES.items():
        if key in result:
            row |= {"meter": meter, "unit": unit, "quantity": number(result[key], key)}
    return [row]


def _costs(bucket: Mapping[str, object], result: Mapping[str, object]) -> list[dict[str, object]]:
    amount = held(result.get("amount"), "amount")
    dollars, currency = number(amount.get("value"), "amount.value"), str(amount.get("currency") or "usd").upper()
    item = text(result.get("line_item"))
    model, _, word = (item or "").rpartition(", ")
    quantity, unit = number(result.get("quantity"), "quantity"), text(result.get("quantity_unit"))
    if quantity is not None and unit in _THOUSANDS:
        quantity, unit = quantity * 1000, _THOUSANDS[unit]
    return [
        {
            **_about(bucket, result),
            "model": model or None,
            "meter": _METERS.get(word, word) or None,
            "description": item,
            "quantity": quantity,
            "unit": unit,
            "amount": dollars,
            "currency": currency,
            "amount_usd": dollars if currency == "USD" else None,
            "amount_kind": "billed",
        }
    ]


def _about(bucket: Mapping[str, object], result: Mapping[str, object]) -> dict[str, object]:
    return {
        "bucket_start": instant(bucket.get("start_time"), "start_time"),
        "bucket_end": instant(bucket.get("end_time"), "end_time"),
        "provider": "openai",
        "org": text(result.get("organization_id")),
        "project": text(result.get("project_id")),
        "api_key_id": text(result.get("api_key_id")),
    }


def _holds(words: str, head: str) -> bool:
    return words in head and '"results"' in head


OPENAI_ORG_USAGE = BucketReader(
    name="openai_org_usage",
    holds="tokens, calls and other units by minute, hour or day",
    fits=partial(_holds, '"organization.usage.'),
    read=partial(pages.read, each=_usage),
)
OPENAI_ORG_COSTS = BucketReader(
    name="openai_org_costs",
    holds="amounts billed by day, in dollars",
    fits=partial(_holds, '"organization.costs.result"'),
    read=partial(pages.read, each=_costs),
)
