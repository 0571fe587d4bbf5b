"""Cache rules of a log's price keys: by hand from the shipped file, by date, with one's own on top."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from small_logs import ledger, row

from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.caching import cache_rules, rules_of
from tenfold.replay.rules import rule_frame

NOON = datetime(2026, 6, 1, 12)
HEAD = '[[rule]]\nprovider = "openai"\nsource = "test"\nchecked = 2026-01-01\n'


def log(*keys, days=(NOON,), **options):
    rows = [row(provider=provider, model=model, ts=ts) for provider, model in keys for ts in days]
    return ledger(rows, price_book(), **options)


def frame_of(made, rules=None, **options):
    with made.session() as session:
        return rule_frame(session, rules, **options)


def own(tmp_path, text):
    (tmp_path / "caching.toml").write_text(text)
    return tmp_path


def test_shipped_rules_by_hand():
    keys = [
        ("anthropic", "claude-haiku-4-5-20251001"),
        ("anthropic", "claude-fable-5-2"),  # no minimum is published for it: the provider's highest
        ("openai", "gpt-5"),
        ("mistral", "mistral-large-latest"),  # nor any lifetime
        ("elsewhere", "x"),
    ]
    found = {one["model"]: one for one in frame_of(log(*keys)).to_dicts()}
    assert set(found) == {model for _, model in keys[:-1]}
    haiku = found["claude-haiku-4-5-20251001"]
    assert haiku == {
        "price_key": 1,
        "valid_from": datetime(2026, 6, 1),
        "valid_to": datetime(2026, 6, 2),
        "provider": "anthropic",
        "model": "claude-haiku-4-5-20251001",
        "control": "both",
        "min_tokens": 4096,
        "min_is_known": True,
        "increment_tokens": 0,
        "lifetime_us": 300_000_000,
        "lifetime_is_known": True,
        "lifetime_high_us": 300_000_000,
        "long_lifetime_us": 3_600_000_000,
        "is_isolated_by_project": True,
        "lookback_blocks": 20,
    }
    fable, gpt, mistral = (found[name] for name in ("claude-fable-5-2", "gpt-5", "mistral-large-latest"))
    assert (fable["min_tokens"], fable["min_is_known"]) == (4096, False)
    assert (gpt["min_tokens"], gpt["increment_tokens"], gpt["control"]) == (1024, 128, "automatic")
    assert (gpt["lifetime_us"], gpt["lifetime_high_us"], gpt["long_lifetime_us"]) == (
        3 * 10**8,
        36 * 10**8,
        864 * 10**8,
    )
    assert (gpt["is_isolated_by_project"], gpt["lookback_blocks"]) == (False, None)
    assert (mistral["lifetime_us"], mistral["lifetime_is_known"]) == (3 * 10**8, False)


def test_no_minimum_at_all_and_rules_by_date(tmp_path):
    dated = (
        f'{HEAD}models = ["other"]\ncontrol = "both"\nvalid_to = 2026-06-02\n\n'
        f'{HEAD}control = "none"\nvalid_to = 2026-06-03\n\n'
        f'{HEAD}control = "automatic"\nvalid_from = 2026-06-03\nvalid_to = 2026-06-04T06:00:00Z\nlifetime_s = 60\n\n'
        f'{HEAD}control = "automatic"\nvalid_from = 2026-06-05\nscope = ["workspace"]\n'
    )
    rules = cache_rules(own(tmp_path, dated))
    days = (datetime(2026, 6, 1, 9), datetime(2026, 6, 7, 9))
    found = frame_of(log(("openai", "gpt-5"), days=days), rules)
    named = ("valid_from", "valid_to", "control", "min_tokens", "min_is_known", "lifetime_us", "is_isolated_by_project")
    # one rule over a cut of another model's is one row; no rule from the 4th, 6 o'clock, to the 5th
    assert found.select(named).rows() == [
        (datetime(2026, 6, 1), datetime(2026, 6, 3), "none", 4096, False, 3 * 10**8, False),
        (datetime(2026, 6, 3), datetime(2026, 6, 4, 6), "automatic", 4096, False, 6 * 10**7, False),
        (datetime(2026, 6, 5), datetime(2026, 6, 8), "automatic", 4096, False, 3 * 10**8, True),
    ]
    # priced at one instant: its rule, all through
    at = log(("openai", "gpt-5"), days=days, price_at=datetime(2026, 6, 3, 12, tzinfo=UTC))
    found = frame_of(at, rules)
    assert found.select(named[:3]).rows() == [(datetime(2026, 6, 1), datetime(2026, 6, 8), "automatic")]


def test_surfaces():
    made = log(("google", "gemini-2.5-pro"))
    assert [one["control"] for one in frame_of(made).to_dicts()] == ["automatic"]
    assert [one["control"] for one in frame_of(made, surface="explicit").to_dicts()] == ["explicit"]


PRICE = """provider = "openai"
[[price]]
model = "gpt-5"
input = 1
output = 1
source = "test"
checked = 2026-01-01
"""


def test_rules_of_an_overlay_are_tried_before_the_books(tmp_path):
    book = price_book(overlay=own(tmp_path, f'{HEAD}models = ["gpt-5"]\ncontrol = "both"\nmin_tokens = 7\n'))
    made = ledger([row(model=model) for model in ("gpt-5", "gpt-4o")], book)
    assert {one["model"]: one["min_tokens"] for one in frame_of(made).to_dicts()} == {"gpt-5": 7, "gpt-4o": 1024}
    assert len(rules_of(book).rules) == 1 + len(cache_rules().rules)


def test_rules_of_a_book_of_ones_own(tmp_path):
    (tmp_path / "openai.toml").write_text(PRICE)
    assert rules_of(price_book(tmp_path)) == cache_rules() == rules_of(price_book())
    own(tmp_path, f'{HEAD}control = "none"\n')
    assert [one.control for one in rules_of(price_book(tmp_path)).rules] == ["none"]
    above = tmp_path / "above"
    above.mkdir()
    own(above, f'{HEAD}control = "automatic"\n')
    over = price_book(tmp_path, overlay=above)
    assert [one.control for one in rules_of(over).rules] == ["automatic", "none"]
    own(above, "[[rule]]\n")
    with pytest.raises(PriceFileError, match=r"caching\.toml"):
        rules_of(price_book(overlay=above))


def test_a_log_without_days_has_no_rules():
    assert frame_of(ledger([row(ts=None)])).is_empty()
