"""The price book against the installed genai-prices and litellm data: every difference is listed with its reason."""

import shutil
from pathlib import Path

import pytest
from prices.agreement import agreement, readings, report

from tenfold.prices import price_book

PRICING = Path(__file__).parents[2] / "pricing"
HELD = ("openai", "anthropic", "google")


@pytest.fixture(scope="module")
def found():
    return agreement(price_book())


def test_the_packages_are_the_ones_the_book_names():
    assert [reading.name for reading in readings()] == ["genai-prices 0.2.3", "litellm 1.110.2"]


def test_every_difference_is_listed_with_its_reason(found):
    assert found.unexplained() == [], "correct the book, or list the difference in tests/prices/differences.toml"


def test_no_listed_difference_has_gone(found):
    gone = [f"{one.package} {one.provider} {one.models} {one.figures or one.times}: {one.why}" for one in found.unused]
    assert gone == [], "remove these from tests/prices/differences.toml"


@pytest.mark.parametrize("provider", HELD)
def test_what_both_packages_agree_on_is_in_the_book(found, provider):
    same, equal, others = found.both[provider]
    assert same > 150
    assert equal >= 0.99 * same, others


def test_the_report_has_a_line_for_every_provider_with_prices(found):
    lines = list(report(found))
    providers = {provider for provider, *_ in price_book().lists}
    assert providers <= {line.split()[0] for line in lines if line.strip()}


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("anthropic.toml", "\ninput = 3\n", "\ninput = 3.1\n"),
        pytest.param("openai.toml", "\ncache_read = 0.125\n", "\ncache_read = 0.126\n", marks=pytest.mark.full),
        pytest.param("google.toml", "\noutput = 2.5\n", "\noutput = 2.6\n", marks=pytest.mark.full),
        pytest.param("bedrock.toml", "\noutput = 5.5\n", "\noutput = 5\n", marks=pytest.mark.full),
    ],
)
def test_a_changed_price_is_noticed(tmp_path, file, old, new):
    folder = shutil.copytree(PRICING, tmp_path / "pricing")
    text = (folder / file).read_text()
    assert old in text
    (folder / file).write_text(text.replace(old, new, 1))
    assert agreement(price_book(folder)).unexplained()
