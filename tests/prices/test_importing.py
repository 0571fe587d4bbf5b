"""What other packages' price tables are read as, and what they would add to price files."""

import importlib
import json
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from prices.agreement import readings

from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.compiling import compiled
from tenfold.prices.files import shipped, toml_files
from tenfold.prices.importing import genai_prices, litellm
from tenfold.prices.importing.compare import compare
from tenfold.prices.importing.propose import propose
from tenfold.prices.importing.quotes import MissingPeerError, listed

TODAY = datetime(2026, 11, 29, 12, tzinfo=UTC)
ACME = """provider = "openai"

# One comment that stays.
[[price]]
model = "gpt-a"
input = 2
cache_read = 0.2
output = 8
source = "test"
checked = 2026-11-01

[[price]]
model = "gpt-a"
above_input_tokens = 200_000
input = 4
cache_read = 0.4
output = 12
source = "test"
checked = 2026-11-01

[[price]]
model = "gpt-z"
input = 1
output = 2
source = "test"
checked = 2026-11-01
"""


@pytest.fixture
def table(tmp_path):
    def make(**rows):
        path = tmp_path / "table.json"
        path.write_text(
            json.dumps({name.replace("__", "/"): {"litellm_provider": "openai"} | row for name, row in rows.items()})
        )
        return path

    return make


@pytest.fixture
def proposed(tmp_path, table):
    """Propose a table's rows for the book above; gives the proposal and the book with it applied."""

    def make(text=ACME, **rows):
        folder = tmp_path / "pricing"
        folder.mkdir(exist_ok=True)
        (folder / "openai.toml").write_text(text)
        files = toml_files(folder)
        made = propose(litellm.read(table(**rows)), compiled(files), files, TODAY)
        after = dict(files) | {name: new.encode() for name, (_, new) in made.files.items()}
        return made, compiled(sorted(after.items()))

    return make


def quoted(reading, **wanted):
    found = [q for q in reading.quotes if all(getattr(q, name) == value for name, value in wanted.items())]
    return {(q.tier, q.region, q.above_input_tokens, q.meter): q.usd for q in found}


def test_suffixes_of_litellm_are_tiers_bands_and_meters(table):
    row = {
        "input_cost_per_token": 2e-06, "input_cost_per_token_batches": 1e-06,
        "input_cost_per_token_above_200k_tokens_priority": 8e-06,
        "cache_creation_input_token_cost_above_1hr": 4e-06,
        "cache_creation_input_token_cost_above_12hr_above_272k_tokens_flex": 5e-06,
        "output_cost_per_reasoning_token": 9e-06, "search_context_cost_per_query": {"low": 0.01, "high": 0.01},
        "regional_processing_uplift_multiplier_eu": 1.1, "provider_specific_entry": {"fast": 2.0},
    }  # fmt: skip
    reading = litellm.read(table(m=row))
    assert quoted(reading, region="", note="") == {
        ("standard", "", 0, "uncached_input"): 2,
        ("batch", "", 0, "uncached_input"): 1,
        ("priority", "", 200_000, "uncached_input"): 8,
        ("standard", "", 0, "cache_write_long"): 4,
        ("flex", "", 272_000, "cache_write_long"): 5,
        ("standard", "", 0, "reasoning"): 9,
        ("standard", "", 0, "web_search"): 10,
        ("fast", "", 0, "web_search"): 10,
    }
    assert quoted(reading, region="eu")["batch", "eu", 0, "uncached_input"] == Decimal("1.1")
    assert quoted(reading, region="eu")["standard", "eu", 0, "web_search"] == 10  # a call is not a token
    assert quoted(reading, tier="fast")["fast", "", 0, "uncached_input"] == 4


def test_what_has_no_meter_is_named_and_counted(table):
    reading = litellm.read(
        table(
            a={"input_cost_per_token": 1e-06, "input_cost_per_pixel": 1e-08, "output_cost_per_second_4k": 0.3},
            b={"input_cost_per_pixel": 1e-08, "search_context_cost_per_query": {"low": 0.01, "high": 0.02}},
            c={"litellm_provider": "novita", "input_cost_per_token": 1e-06},
        )
    )
    assert reading.left_out == {
        "input_cost_per_pixel": 2,
        "output_cost_per_second_4k": 1,
        "search_context_cost_per_query (by size)": 1,
        "provider novita": 1,
    }


@pytest.mark.parametrize(
    ("usd", "found"),
    [
        ("0.10000000000000001", "0.1"),
        ("1.0000000000000002", "1"),
        ("0.0833333333333333", "0.0833333333333333"),  # not a listed price: stays as it is
        ("1.2345671", "1.2345671"),
        ("0.000001", "0.000001"),
    ],
)
def test_float_noise_goes_and_nothing_else(usd, found):
    assert listed(Decimal(usd)) == Decimal(found)


def test_off_peak_hours_of_litellm_and_their_complement():
    found = [q for q in readings()[1].quotes if q.key == "deepseek/deepseek-v4-pro" and q.meter == "uncached_input"]
    assert {(q.window_text, q.usd.normalize()) for q in found} == {
        ("mon-fri 01:00-04:00, 06:00-10:00 UTC", Decimal("1.32")),
        ("mon-fri 00:00-01:00, 04:00-06:00, 10:00-24:00 UTC", Decimal("0.66")),
        ("sat-sun 00:00-24:00 UTC", Decimal("0.66")),
    }


@pytest.mark.parametrize(
    ("key", "provider", "found"),
    [
        ("azure/us/gpt-4o", "azure", ("gpt-4o", "us")),
        ("azure_ai/grok-4.7", "azure", ("grok-4.7", "")),
        ("bedrock/eu-west-1/anthropic.claude-v2", "bedrock", ("anthropic.claude-v2", "eu-west-1")),
        ("us.openai.gpt-6-sol", "bedrock", ("openai.gpt-6-sol", "us")),
        ("vertex_ai/claude-opus-5", "vertex", ("claude-opus-5", "")),
        ("groq/openai/gpt-oss-20b", "groq", ("openai/gpt-oss-20b", "")),
        ("ft:gpt-4o", "openai", ("ft:gpt-4o", "")),
    ],
)
def test_keys_of_litellm_are_model_and_region(key, provider, found):
    assert litellm.place(key, provider) == found


def test_days_of_verification_are_no_start_of_a_price():
    batch = [q for q in readings()[0].quotes if q.key == "openai/gpt-5" and q.tier == "batch"]
    assert {q.valid_from for q in batch} == {None}
    assert {q.note for q in batch if q.meter == "web_search"} == {"as in the standard tier"}


def test_profiles_of_bedrock_are_regions():
    found = quoted(readings()[0], provider="bedrock", model="anthropic.claude-haiku-5-5", meter="uncached_input")
    assert found["standard", "global", 0, "uncached_input"] == Decimal("0.1")
    assert found["standard", "", 0, "uncached_input"] == found["standard", "us", 0, "uncached_input"] == Decimal("0.11")


def test_litellm_is_read_without_running_it():
    code = (
        "import sys; from tenfold.prices.importing import litellm; litellm.read(); sys.exit('litellm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_says_how_to_get_it(monkeypatch):
    def absent(name):
        raise ModuleNotFoundError(name=name)

    monkeypatch.setattr(litellm, "find_spec", lambda _: None)
    with pytest.raises(MissingPeerError, match=r"pip install --no-deps litellm==.*--from"):
        litellm.read()
    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingPeerError, match="pip install genai-prices=="):
        genai_prices.read()


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(PriceFileError, match=r"x.json: no price table"):
        litellm.read(tmp_path / "x.json")
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(PriceFileError, match=r"x.json: not valid JSON"):
        litellm.read(tmp_path / "x.json")


def test_a_changed_price_is_a_new_dated_list_that_repeats_what_stays(proposed):
    made, book = proposed(**{"gpt-a": {"input_cost_per_token": 1e-06, "output_cost_per_token": 8e-06}})
    (added,) = made.added
    assert (added.why, added.valid_from, added.differences) == ("changed", date(2026, 11, 29), {"input": ("2.00", "1")})
    diff = made.diffs()["openai.toml"]
    assert [line for line in diff.splitlines() if line.startswith("-") and not line.startswith("---")] == []
    assert "# One comment that stays." in made.files["openai.toml"][1]
    before, after = (book.match("openai", "gpt-a").at(datetime(2026, 11, day, 23, tzinfo=UTC)) for day in (28, 29))
    assert [entry.rates[:2] for entry in before.bands] == [(2_000_000, 200_000), (4_000_000, 400_000)]
    assert [entry.rates[:2] for entry in after.bands] == [(1_000_000, 200_000), (4_000_000, 400_000)]


def test_a_new_model_and_a_new_tier_have_no_date(proposed):
    rates = {"input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06}
    batch = {"input_cost_per_token_batches": 5e-07, "output_cost_per_token_batches": 1e-06}
    made, book = proposed(**{"gpt-n": rates, "gpt-z": rates | batch})
    assert [(one.model, one.service_tier, one.why, one.valid_from) for one in made.added] == [
        ("gpt-n", "standard", "new_model", None),
        ("gpt-z", "batch", "new_list", None),
    ]
    assert book.match("openai", "gpt-z", "batch").lists[0].bands[0].rates[0] == 500_000
    order = [line for line in made.files["openai.toml"][1].splitlines() if line.startswith("model")]
    assert order == ['model = "gpt-a"', 'model = "gpt-a"', 'model = "gpt-z"', 'model = "gpt-n"', 'model = "gpt-z"']


def test_a_tier_without_an_output_rate_is_not_proposed(proposed):
    made, _ = proposed(**{"gpt-z": {"input_cost_per_token_batches": 5e-07}})
    assert made.added == []
    assert made.skipped == {"a tier without an input or output rate": 1}


def test_where_the_package_contradicts_itself_nothing_is_proposed(proposed):
    low, high = ({"input_cost_per_token": usd, "output_cost_per_token": 2e-06} for usd in (3e-06, 4e-06))
    made, _ = proposed(**{"openai__gpt-z": low, "gpt-z": high})
    assert made.added == []
    assert made.skipped == {"the package contradicts itself": 1}
    made, _ = proposed(**{"openai__gpt-z": low, "gpt-z": low | {"input_cost_per_token": 1e-06}})
    assert made.added == []  # one of them says what the book does


@pytest.mark.full
def test_what_both_packages_propose_for_the_shipped_book_loads():
    files, book = toml_files(shipped()), price_book()
    for reading in readings():
        made = propose(reading, book, files, TODAY)
        after = dict(files) | {name: new.encode() for name, (_, new) in made.files.items()}
        then = compiled(sorted(after.items()))
        for name, (old, new) in made.files.items():
            assert set(old.splitlines()) <= set(new.splitlines()), name
        counts = {one.outcome for one in compare(reading.quotes, then, TODAY)}
        assert "equal" in counts
        wanted = {(one.provider, one.model, one.service_tier) for one in made.added}
        assert wanted <= {key[:3] for key in then.lists}
