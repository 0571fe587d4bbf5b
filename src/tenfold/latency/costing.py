"""What a cause costs beside time: the price of a mean call now, less that of one with the cause away."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np

from tenfold.latency.guilty import CACHE
from tenfold.latency.records import Finding, Floats, Pair
from tenfold.money import PUSD_PER_USD, shown
from tenfold.prices import PriceBook
from tenfold.prices.single import price


def cost_words(one: Finding, pair: Pair, uncached_back: Floats, book: PriceBook | None) -> str | None:
    """Say what a cause costs a day.

    Args:
        one: The finding.
        pair: The windows.
        uncached_back: Uncached tokens after, had the cache held what it held before.
        book: Price book; None: the shipped one.

    Returns:
        Words, or None where it bears on no token that is billed, or the model has no price.

    Formula:
        (price of the window's mean call - price of that call with its cached tokens, or the length that changed, put
        back) x requests a day. Prices of the instant at which the window after begins.
    """
    after = pair.after
    call = _mean_call(pair)
    if call is None or not all(pair.billed):
        return None
    back = dict(call)
    if one.kind in CACHE:
        used = after.ok & np.isfinite(after.input)
        back["cache_read_tokens"] = max(call["input_tokens"] - round(float(uncached_back[used].mean())), 0)
    elif one.kind in ("input_length", "output_length"):
        kept = float(np.exp(-one.measures["within_log_change"]))
        name = "input_tokens" if one.kind == "input_length" else "output_tokens"
        back[name] = round(call[name] * kept)
        back["cache_read_tokens"] = min(back["cache_read_tokens"], back["input_tokens"])
    else:
        return None
    at = datetime.fromtimestamp(after.since_s, UTC)
    now, calm = (
        price(provider=pair.billed[0], model=pair.billed[1], at=at, usage=usage, book=book).cost_pusd
        for usage in (call, back)
    )
    if now is None or calm is None:
        return None
    a_day = round((now - calm) * after.size * 86400 / max(after.until_s - after.since_s, 1.0))
    if abs(a_day) < PUSD_PER_USD:
        return None
    return f"{shown(abs(a_day), 0)} a day {'more' if a_day > 0 else 'less'}, at the pace of the window after"


def _mean_call(pair: Pair) -> dict[str, int] | None:
    after = pair.after
    used = after.ok & np.isfinite(after.input) & np.isfinite(after.output)
    if not used.any():
        return None
    cached = 0.0 if after.cached is None else float(np.nan_to_num(after.cached[used]).mean())
    return {
        "input_tokens": round(float(after.input[used].mean())),
        "cache_read_tokens": round(cached),
        "output_tokens": round(float(after.output[used].mean())),
    }
