"""What the drawn books and logs promise: they can be billed, they add up, and they reach every rule."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from oracle import EVER, RATE_OF_METER, bill, find_entry, group, price_request, read_book
from oracle_book import TOKEN_RATES
from strategies import books_and_logs, price_files


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(books_and_logs(max_size=12))
def test_drawn_logs_can_be_billed_and_their_parts_add_up(drawn: tuple[str, list[dict[str, Any]]]):
    text, rows = drawn
    book = read_book([text])
    total = bill(book, rows)
    parts = group(book, rows, ["day", "team"]).values()
    assert sum((part.total_pusd for part in parts), Decimal(0)) == total.total_pusd
    assert sum((amount for _, amount in total.by_meter.values()), Decimal(0)) == total.total_pusd
    tokens = sum(units for meter, (units, _) in total.by_meter.items() if RATE_OF_METER[meter] in TOKEN_RATES)
    billed = [row for row in rows if (result := price_request(book, row)).meters and result.entry]
    assert tokens == sum(row["input_tokens"] + row["output_tokens"] for row in billed)


@pytest.mark.full
def test_the_strategies_reach_every_status_of_a_billed_request():
    reached: set[str] = set()

    @settings(
        max_examples=150,
        deadline=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(books_and_logs(max_size=12))
    def draw_and_price(drawn: tuple[str, list[dict[str, Any]]]) -> None:
        book = read_book([drawn[0]])
        reached.update(price_request(book, row).status for row in drawn[1] if row["is_billable"] is None)

    draw_and_price()
    unpriced = {"unpriced_model", "unpriced_meter", "usage_missing", "usage_partial", "ambiguous"}
    assert set(reached) == {"priced", "known_zero", *unpriced}


@settings(deadline=None, max_examples=25)
@given(price_files(), st.integers(0, 2))
def test_prices_change_only_at_the_edges_that_the_book_names(text: str, hours: int):
    book = read_book([text])
    edges = sorted({edge for e in book.entries for edge in (e.valid_from, e.valid_to) if edge not in (None, EVER)})
    windows = {entry.window for entry in book.entries if entry.window is not None}
    for entry in book.entries:
        for edge in edges:
            later = edge + timedelta(hours=hours)
            is_turned = any(window.is_open(edge) != window.is_open(later) for window in windows)
            if is_turned or any(edge < other <= later for other in edges):
                continue
            request_ = {"provider": entry.provider, "model": entry.model, "service_tier": entry.tier}
            request_ |= {"region": entry.region, "input_tokens": entry.above + 1}
            assert find_entry(book, request_, edge) is find_entry(book, request_, later)
