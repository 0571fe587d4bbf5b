"""Prompt-cache rules: the published ones by hand, and every rule against the rates of the price book."""

from datetime import UTC, datetime
from fractions import Fraction

import pytest

from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.caching import cache_rules
from tenfold.prices.meters import METER_NAMES

AT = datetime(2026, 11, 29, tzinfo=UTC)


# reference: Anthropic's and OpenAI's prompt-caching pages, 2026-11 (levers 4.1)
@pytest.mark.parametrize(
    ("provider", "model", "minimum", "lifetime", "long", "write", "read"),
    [
        ("anthropic", "claude-opus-5", (512, True), 300, 3600, "1.25x", "0.1x"),
        ("anthropic", "claude-opus-5-5", (512, True), 300, 3600, "1.25x", "0.05x"),
        ("anthropic", "claude-sonnet-4-5", (1024, True), 300, 3600, "1.25x", "0.1x"),
        ("anthropic", "claude-opus-4-7", (2048, True), 300, 3600, "1.25x", "0.1x"),
        ("anthropic", "claude-haiku-4-5", (4096, True), 300, 3600, "1.25x", "0.1x"),
        ("anthropic", "claude-fable-5-2", (4096, False), 300, 3600, "1.25x", "0.025x"),  # minimum not published
        ("openai", "gpt-5", (1024, True), 300, 86_400, "1x", "0.1x"),
        ("openai", "gpt-4o", (1024, True), 300, None, "1x", "0.5x"),
        ("openai", "gpt-6-sol", (1024, True), 1800, 43_200, "1.25x", "0.1x"),
    ],
)
def test_published_rules(provider, model, minimum, lifetime, long, write, read):
    rules = cache_rules()
    rule = rules.find(provider, model, AT)
    assert rules.minimum(rule) == minimum
    assert (rule.lifetime_s, rule.long_lifetime_s, rule.write_factor, rule.read_factor) == (lifetime, long, write, read)


def test_surfaces_and_stacking():
    rules = cache_rules()
    implicit = rules.find("google", "gemini-2.5-pro", AT, surface="implicit")
    explicit = rules.find("google", "gemini-2.5-pro", AT, surface="explicit")
    assert (implicit.guaranteed, explicit.guaranteed) == (False, True)
    assert explicit.storage_usd is not None
    assert rules.find("anthropic", "claude-sonnet-5", AT).stacks_with_batch == "yes"
    assert rules.find("google", "gemini-2.5-pro", AT).stacks_with_batch == "no"
    assert rules.find("elsewhere", "x", AT) is None


def test_factors_are_those_of_the_price_book():
    """Rates decide; a stated factor that is not theirs must say in its note that it is rounded or an exception."""
    rules, book = cache_rules(), price_book()
    at = {name: METER_NAMES.index(name) for name in ("uncached_input", "cache_read", "cache_write")}
    checked, wrong = 0, []
    for (provider, model, tier, region), lists in book.lists.items():
        one = lists[-1]
        rule = rules.find(provider, model, AT)
        if tier != "standard" or region or rule is None or not one.valid_from <= AT < one.valid_to:
            continue
        rates = one.bands[0].rates
        base = rates[at["uncached_input"]]
        for factor, meter in ((rule.read_factor, "cache_read"), (rule.write_factor, "cache_write")):
            rate = rates[at[meter]]
            if factor and rate and base:
                checked += 1
                stated = Fraction(factor.removesuffix("x"))
                if abs(Fraction(rate, base) - stated) > stated / 20 and not rule.note:
                    wrong.append((provider, model, meter, factor, float(Fraction(rate, base))))
    assert checked > 800
    assert not wrong


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[rule]]\nprovider = "a"\ncontrol = "sometimes"\nsource = "s"\nchecked = 2026-11-29\n', "control"),
        ('[[rule]]\nprovider = "a"\nmin_tokns = 5\ncontrol = "both"\nsource = "s"\nchecked = 2026-11-29\n', 'Did you mean "min_tokens"'),
        (2 * '[[rule]]\nprovider = "a"\ncontrol = "both"\nsource = "s"\nchecked = 2026-11-29\n', "an earlier rule always applies first"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, text, says):
    (tmp_path / "caching.toml").write_text(text)
    with pytest.raises(PriceFileError) as raised:
        cache_rules(tmp_path)
    assert "caching.toml" in str(raised.value)
    assert says in str(raised.value)
