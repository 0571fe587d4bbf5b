"""Logs and reports with known drift: the traffic is drawn once, the log and the report each show their part of it.

Costs and causes are summed here from the drawn requests, by code of their own, in whole pUSD.
"""

from __future__ import annotations

import csv
import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from small_logs import ledger

START = datetime(2026, 6, 1)
METERS = ("uncached_input", "cache_read", "cache_write", "output")
# USD per million tokens, by model: what `PRICES` says, for each tier times a factor.
RATES = {
    "large": ("2", "0.2", "2.5", "10"),
    "medium": ("0.8", "0.08", "1", "4"),
    "small": ("0.1", "0.01", "0.125", "0.4"),
}
TIERS = {"standard": "1", "batch": "0.5", "priority": "2"}


def prices(provider: str) -> str:
    """The price file of the rates."""
    text = f'provider = "{provider}"\n'
    for model, rates in RATES.items():
        for tier, factor in TIERS.items():
            values = [Decimal(rate) * Decimal(factor) for rate in rates]
            names = zip(("input", "cache_read", "cache_write", "output"), values, strict=True)
            text += f'[[price]]\nmodel = "{model}"\nservice_tier = "{tier}"\n'
            text += "".join(f"{name} = {value.normalize():f}\n" for name, value in names)
            text += 'source = "test"\nchecked = 2026-01-01\n'
    return text


def rate(model: str, tier: str, meter: int) -> int:
    """pUSD a token."""
    return int(Decimal(RATES[model][meter]) * Decimal(TIERS[tier]) * 10**6)


@dataclass(frozen=True)
class Call:
    """One request as it really was."""

    ts: datetime
    model: str
    tier: str
    tokens: tuple[int, int, int, int]
    is_stream: bool
    has_usage: bool = True
    log: tuple[tuple[str, Any], ...] = ()  # other columns of its log line
    is_logged: bool = True
    is_billed: bool = True  # by the provider

    def cost(self, meter: int) -> int:
        return self.tokens[meter] * rate(self.model, self.tier, meter)


@dataclass
class Planted:
    """A log, what the provider bills, and what explains the difference."""

    calls: list[Call]
    days: int
    provider: str = "openai"
    without_tiers: frozenset[str] = frozenset()
    # Day number to hours by which it is cut later.
    shifts: dict[int, float] = field(default_factory=dict)
    discount: Decimal = Decimal(1)
    absent_days: frozenset[int] = frozenset()

    def ledger(self, **options: Any) -> Any:
        rows = []
        for number, call in enumerate(self.calls):
            if not call.is_logged:
                continue
            inp, read, write, out = call.tokens
            counts = {
                "input_tokens": inp + read + write if call.has_usage else None,
                "cache_read_tokens": read if call.has_usage else None,
                "cache_write_tokens": write if call.has_usage else None,
                "output_tokens": out if call.has_usage else None,
            }
            row = {
                "request_id": f"r{number}", "ts": call.ts, "provider": self.provider, "model": call.model,
                "service_tier": call.tier, "is_stream": call.is_stream, "status": "success", "attempt": 0,
                "is_billable": None, "gateway_cache_hit": None, "project": None, "flags": None, **counts,
            }  # fmt: skip
            rows.append(row | dict(call.log))
        return ledger(rows, prices(self.provider), **options)

    def window(self, day: int) -> tuple[datetime, datetime]:
        """What the report really counts to a day."""
        start = START + timedelta(days=day, hours=self.shifts.get(day, 0))
        return start, start + timedelta(days=1)

    def cells(self, *, by_tier: bool = False) -> dict[tuple[int, str, str, int], list[int]]:
        """The report: (day, model, tier or nothing, meter) to tokens and pUSD."""
        found: dict[tuple[int, str, str, int], list[int]] = defaultdict(lambda: [0, 0])
        for day in range(self.days):
            if day in self.absent_days:
                continue
            start, end = self.window(day)
            for call in self.calls:
                if start <= call.ts < end and call.tier not in self.without_tiers and call.is_billed:
                    for meter in range(4):
                        cell = found[day, call.model, call.tier if by_tier else "", meter]
                        cell[0] += call.tokens[meter]
                        cell[1] += int(call.cost(meter) * self.discount)
        return found

    def truth(self) -> dict[str, int]:
        """Cause to pUSD, summed from the calls."""
        last = START + timedelta(days=self.days)
        found: dict[str, int] = defaultdict(int)
        for call in self.calls:
            cost = sum(call.cost(meter) for meter in range(4))
            days = [day for day in range(self.days) if day not in self.absent_days
                    and self.window(day)[0] <= call.ts < self.window(day)[1]]  # fmt: skip
            is_counted = call.has_usage and call.is_logged and START <= call.ts < last
            if call.tier in self.without_tiers:
                found["tier_missing"] -= cost if is_counted else 0
                continue
            if not call.is_logged:
                found["not_in_log"] += len(days) * cost
            elif call.has_usage:
                found["day_boundaries"] += (len(days) - is_counted) * cost
            else:
                found["usage_missing"] += len(days) * cost
        return {cause: pusd for cause, pusd in found.items() if pusd}


def drawn(seed: int, days: int = 10, per_day: int = 400, **options: Any) -> Planted:
    """Draw traffic with a daily curve, a day more at both ends."""
    luck = random.Random(seed)
    calls = []
    for day in range(-1, days + 1):
        for _ in range(per_day):
            hour = luck.choices(range(24), [1 + max(0, 10 - abs(h - 14)) for h in range(24)])[0]
            ts = START + timedelta(days=day, hours=hour, seconds=luck.randrange(3600))
            size = int(luck.lognormvariate(7, 0.8))
            tokens = (
                size,
                luck.choice((0, 1, 2)) * size,
                luck.choice((0, 0, size // 4)),
                1 + int(luck.lognormvariate(5, 0.7)),
            )
            model = luck.choices(list(RATES), (3, 3, 4))[0]
            tier = luck.choices(list(TIERS), (8, 1, 1))[0]
            calls.append(Call(ts, model, tier, tokens, luck.random() < 0.7))
    return Planted(sorted(calls, key=lambda call: call.ts), days, **options)


def changed(
    planted: Planted, where: Callable[[Call], bool], seed: int = 0, share: float = 1, **changes: Any
) -> Planted:
    """Change a share of some calls."""
    luck = random.Random(seed)
    calls = [replace(call, **changes) if where(call) and luck.random() < share else call for call in planted.calls]
    return replace(planted, calls=calls)


def lose_streams(planted: Planted, share: float = 0.02, seed: int = 1) -> Planted:
    """Take the usage of some streams out of the log."""
    return changed(planted, lambda call: call.is_stream, seed, share, has_usage=False)


def by_cause(found: Any) -> dict[str, int]:
    """Cause to pUSD, with what is unexplained."""
    return {cause.name: cause.pusd for cause in found.causes} | {"unexplained": found.unexplained_pusd}


def usd(pusd: int) -> Decimal:
    return Decimal(pusd).scaleb(-12)


def openai_costs(planted: Planted, file: Path, *, with_quantity: bool = True) -> Path:
    """OpenAI's costs: dollars, no tiers, quantities in tokens."""
    words = ("input_tokens", "cached_input_tokens", "input_cache_write_tokens", "output_tokens")
    buckets: dict[int, list[dict[str, Any]]] = {day: [] for day in range(planted.days)}
    for (day, model, _, meter), (tokens, pusd) in planted.cells().items():
        result = {
            "object": "organization.costs.result",
            "amount": {"value": f"@{usd(pusd):f}@", "currency": "usd"},
            "line_item": f"{model}, {words[meter]}",
            "project_id": None,
        }
        if with_quantity:
            result |= {"quantity": tokens, "quantity_unit": "tokens"}
        buckets[day].append(result)
    data = [
        {"object": "bucket", "start_time": at(day), "end_time": at(day + 1), "results": results}
        for day, results in buckets.items()
    ]
    text = json.dumps({"object": "page", "data": data, "has_more": False}).replace('"@', "").replace('@"', "")
    file.write_text(text)
    return file


def at(day: int) -> int:
    return int((START + timedelta(days=day)).replace(tzinfo=UTC).timestamp())


def iso(day: int) -> str:
    return f"{START + timedelta(days=day):%Y-%m-%dT%H:%M:%SZ}"


def anthropic_costs(planted: Planted, file: Path) -> Path:
    """Anthropic's cost report: cents as text, tiers named."""
    words = (
        "uncached_input_tokens",
        "cache_read_input_tokens",
        "cache_creation.ephemeral_5m_input_tokens",
        "output_tokens",
    )
    buckets: dict[int, list[dict[str, Any]]] = {day: [] for day in range(planted.days)}
    for (day, model, tier, meter), (_, pusd) in planted.cells(by_tier=True).items():
        buckets[day].append({
            "currency": "USD", "amount": f"{usd(pusd) * 100:f}", "workspace_id": None, "description": f"{model} Usage",
            "cost_type": "tokens", "context_window": "0-200k", "model": model, "service_tier": tier,
            "token_type": words[meter], "inference_geo": "global",
        })  # fmt: skip
    data = [{"starting_at": iso(day), "ending_at": iso(day + 1), "results": rows} for day, rows in buckets.items()]
    file.write_text(json.dumps({"data": data, "has_more": False}))
    return file


def focus(planted: Planted, file: Path) -> Path:
    """A FOCUS 1.2 file without tiers."""
    words = ("Input Tokens", "Cache Read Input Tokens", "Cache Write Input Tokens", "Output Tokens")
    rows = [
        {
            "BilledCost": f"{usd(pusd):f}", "EffectiveCost": f"{usd(pusd):f}", "ListCost": f"{usd(pusd):f}",
            "BillingCurrency": "USD", "BillingPeriodStart": iso(0), "BillingPeriodEnd": iso(30),
            "ChargePeriodStart": iso(day), "ChargePeriodEnd": iso(day + 1), "ChargeCategory": "Usage",
            "ConsumedQuantity": str(tokens), "ConsumedUnit": "Tokens", "ProviderName": "OpenAI",
            "ServiceCategory": "AI and Machine Learning", "SkuMeter": words[meter],
            "SkuPriceDetails": json.dumps({"x_ModelId": model}),
        }
        for (day, model, _, meter), (tokens, pusd) in planted.cells().items()
    ]  # fmt: skip
    return write_csv(file, rows)


def invoice(planted: Planted, file: Path, *, with_quantity: bool = True) -> Path:
    """A plain CSV invoice, in cents' thousandths so that rounding does not hide what is looked for."""
    words = ("Input tokens", "Cached input tokens", "Cache write tokens", "Output tokens")
    rows = []
    for (day, model, _, meter), (tokens, pusd) in planted.cells().items():
        row = {
            "Date": f"{START + timedelta(days=day):%Y-%m-%d}",
            "Model": model.title(),
            "Line item": words[meter],
            "Amount (USD)": f"${usd(pusd):,.6f}",
        }
        rows.append(row | ({"Quantity": f"{tokens:,}", "Unit": "tokens"} if with_quantity else {}))
    return write_csv(file, rows)


def write_csv(file: Path, rows: list[dict[str, str]]) -> Path:
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return file
