"""Your own prices: discounts, markups and commitments over the list, in every command alike."""

from datetime import UTC, datetime
from decimal import Decimal, localcontext
from itertools import pairwise

import polars as pl
import pytest
from stores import log_of

import tenfold as tf
from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.meters import METER_NAMES

AT = "2026-10-01"
USAGE = tf.Usage(input_tokens=1_000_000, output_tokens=100_000)


@pytest.fixture
def own(tmp_path):
    def make(text: str, name: str = "contract.toml"):
        (tmp_path / name).write_text(text)
        return price_book(overlay=tmp_path)

    return make


def discount(body: str) -> str:
    return f'[[discount]]\nsource = "our contract"\n{body}\n'


def cost(book, at=AT, model="claude-sonnet-4-6", **options):
    return tf.price(provider="anthropic", model=model, at=at, usage=USAGE, book=book, **options)


def test_a_percentage_off_from_a_date_on(own):
    book = own(discount('provider = "anthropic"\npercent = 15\nvalid_from = 2026-09-01'))
    assert cost(book, "2026-08-31").cost_usd == Decimal("4.5")
    found = cost(book)
    assert found.cost_usd == Decimal("3.825")  # 4.5 x 0.85
    assert found.how_matched == "override"
    assert found.entry.adjusted == "15% off (contract.toml, discount 1: our contract)"
    assert (found.entry.file, found.entry.layer) == ("anthropic.toml", "contract")
    assert tf.price(provider="openai", model="gpt-5", at=AT, usage=USAGE, book=book).how_matched == "exact"


def test_a_markup_models_tiers_and_meters(own):
    book = own(
        discount(
            'provider = "anthropic"\nmodels = ["claude-sonnet-*"]\ntiers = ["batch"]\nmeters = ["output"]\npercent = "-32"'
        )
    )
    assert cost(book).cost_usd == Decimal("4.5")
    batch = cost(book, tier="batch")
    assert batch.cost_usd == Decimal("1.5") + Decimal("0.75") * Decimal("1.32")
    assert cost(book, model="claude-haiku-4-5", tier="batch").how_matched != "override"


def test_a_discounted_rate_is_rounded_half_even_and_says_so(tmp_path):
    base = tmp_path / "base"
    base.mkdir()
    rows = [
        f'[[price]]\nmodel = "m{n}"\ninput = {n}e-6\noutput = 1\nsource = "t"\nchecked = 2026-11-29\n' for n in (3, 5)
    ]
    (base / "acme.toml").write_text('provider = "acme"\n' + "".join(rows))
    (tmp_path / "contract.toml").write_text(discount('provider = "acme"\npercent = 50'))
    book = price_book(base, overlay=tmp_path)
    rates = [book.lists["acme", name, "standard", ""][0].bands[0] for name in ("m3", "m5")]
    assert [entry.rates[0] for entry in rates] == [2, 2]  # 1.5 and 2.5 pUSD, to the even one
    assert all("rounded half-even" in entry.adjusted for entry in rates)


PTU = """
[[commitment]]
name = "PTU"
provider = "openai"
models = ["gpt-4.1*"]
tiers = ["provisioned"]
usd_per_hour = "0.000001"
units = 3
valid_from = 2026-10-01T06:00:00Z
valid_to = 2026-10-02
source = "contract"
"""


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (discount('provider = "anthropc"\npercent = 5'), 'no prices of provider "anthropc". Did you mean "anthropic"'),
        (discount('provider = "anthropic"\nmodels = ["gpt-*"]\npercent = 5'), 'no price for a model "gpt-*"'),
        (discount('provider = "anthropic"\nmeters = ["outptu"]\npercent = 5'), 'no meter "outptu". Did you mean "output"'),
        (discount('provider = "anthropic"\npercent = 101'), "more than the whole price"),
        (discount('provider = "anthropic"\npercent = -101'), "more than doubles the price"),
        (discount('provider = "anthropic"\ntiers = ["standard", "btach"]\npercent = 5'), 'sold as tier "btach". Did you mean "batch"'),
        (discount('provider = "anthropic"\nmodels = ["claude-sonnet-4-5", "claude-sonet-5"]\npercent = 5'), 'model "claude-sonet-5". Did you mean'),
        (discount('provider = "openai"\nmodels = ["gpt-audio-mini"]\nmeters = ["input"]\npercent = 99.999999999'), "no whole rate of at least 1 pUSD"),
        (2 * PTU, 'the name "PTU" is taken'),
        (PTU.replace('"openai"', '"opneai"'), 'no prices of provider "opneai". Did you mean "openai"'),
        (discount('provider = "anthropic"\npercnt = 5'), 'unknown key "percnt". Did you mean "percent"'),
        (2 * discount('provider = "anthropic"\npercent = 5'), "already has discount 1 at that time; cut the two apart"),
        ('[[commitment]]\nname = "x"\nprovider = "openai"\nvalid_from = 2026-01-01\nvalid_to = 2027-01-01\nsource = "s"\n',
         "usd_per_hour (capacity) or usd"),
    ],
)  # fmt: skip
def test_mistakes_are_named(own, text, says):
    with pytest.raises(PriceFileError) as raised:
        own(text)
    assert "contract.toml" in str(raised.value)
    assert says in str(raised.value)


def test_two_discounts_that_follow_each_other(own):
    text = discount('provider = "anthropic"\npercent = 10\nvalid_to = 2026-07-01') + discount(
        'provider = "anthropic"\npercent = 20\nvalid_from = 2026-07-01'
    )
    book = own(text)
    assert [cost(book, day).cost_usd for day in ("2026-06-30", "2026-07-01")] == [Decimal("4.05"), Decimal("3.6")]


ROWS = [
    {"request_id": f"r{n}", "provider": "openai", "model": model, "ts": datetime(2026, 10, 1 + n % 2, 12, tzinfo=UTC),
     "input_tokens": 1000 * (n + 1), "output_tokens": 100, "cache_read_tokens": 0, "team": team, "service_tier": tier}
    for n, (model, team, tier) in enumerate(
        [("gpt-4.1", "a", "provisioned"), ("gpt-4.1", "b", "provisioned"), ("gpt-5", "a", None), ("gpt-4.1", None, "provisioned")]
    )
]  # fmt: skip
FREE = """
provider = "openai"
[[price]]
model = "gpt-4.1"
service_tier = "provisioned"
input = 0
output = 0
source = "contract"
checked = 2026-11-29
"""


def test_capacity_is_shared_out_by_tokens_and_sums_exactly(own, tmp_path):
    (tmp_path / "openai.toml").write_text(FREE)
    book = own(PTU)
    ledger = tf.attribute(log_of(ROWS), book)
    whole = ledger.costs()
    (one,) = whole.commitments
    # 18 hours of 3 units at a microdollar; r0 and r2 ran on that day, and r2 is no gpt-4.1.
    assert (one.flat_pusd, one.allocated_pusd, one.requests, one.tokens) == (54_000_000, 54_000_000, 1, 1100)
    gpt5 = ledger.composition(["model"]).frame.filter(pl.col("model") == "gpt-5")["cost_pusd"][0]
    assert (whole.total("contracted"), whole.total("effective")) == (gpt5, gpt5 + 54_000_000)
    assert whole.frame["list_unpriced_requests"][0] == 3
    assert one.note == ""
    for by in (["team"], ["model", "team"], ["day"]):
        split = ledger.costs(by)
        assert split.total("effective") == whole.total("effective")
        assert split.total("contracted") == whole.total("contracted")


def test_capacity_nobody_used_is_a_line_of_its_own(own):
    book = own(PTU.replace("gpt-4.1*", "gpt-4o-mini"))
    costs = tf.attribute(log_of(ROWS), book).costs(["team"])
    assert costs.commitments[0].unallocated_pusd == 54_000_000
    assert costs.total("effective") == costs.total("contracted") + 54_000_000
    assert costs.frame["effective_pusd"].to_list() == costs.frame["contracted_pusd"].to_list()
    assert costs.commitments[0].note == "no request of the window is covered by it"


def test_idle_days_are_nobodys(own):
    two_days = PTU.replace("2026-10-01T06:00:00Z", "2026-10-01").replace("2026-10-02", "2026-10-04")
    costs = tf.attribute(log_of(ROWS), own(two_days), since=datetime(2026, 10, 1, tzinfo=UTC)).costs(["day"])
    one = costs.commitments[0]
    # Requests on the 1st and the 2nd; without an end of its own the window ends with the log's last day.
    assert (one.flat_pusd, one.unallocated_pusd) == (144_000_000, 0)
    longer = tf.attribute(log_of(ROWS), own(two_days), until=datetime(2026, 11, 1, tzinfo=UTC)).costs(["team"])
    assert (longer.commitments[0].flat_pusd, longer.commitments[0].unallocated_pusd) == (216_000_000, 72_000_000)
    for by in ([], ["day"], ["month", "team"]):
        split = tf.attribute(log_of(ROWS), own(two_days), zone="Asia/Kathmandu").costs(by)
        assert split.total("effective") == split.total("contracted") + 144_000_000
    by_day = {str(row["day"]): row for row in costs.frame.rows(named=True)}
    assert by_day["2026-10-01"]["effective_pusd"] - by_day["2026-10-01"]["contracted_pusd"] == 72_000_000


@pytest.mark.full
def test_a_spend_that_was_not_reached_is_due_when_its_term_ends(own):
    text = (
        '[[commitment]]\nname = "term"\nprovider = "openai"\nusd = 10\nvalid_from = 2026-09-25\nvalid_to = 2026-10-03\n'
        'source = "contract"\n'
    )
    book = own(text)
    log = log_of([ROWS[2], {**ROWS[2], "request_id": "later", "ts": datetime(2026, 10, 2, tzinfo=UTC)}])
    whole = tf.attribute(log, book).costs(["team"])
    spent = whole.total("contracted")
    assert whole.commitments[0].flat_pusd == whole.commitments[0].unallocated_pusd == 10**13 - spent
    assert whole.total("effective") == 10**13
    days = [datetime(2026, 10, day, tzinfo=UTC) for day in (1, 2, 3)]
    parts = [tf.attribute(log, book, since=a, until=b).costs() for a, b in pairwise(days)]
    assert sum(part.total("effective") for part in parts) == whole.total("effective")
    assert "nothing is due before" in parts[0].commitments[0].note


def test_list_and_contracted_stay_apart(own):
    book = own(discount('provider = "openai"\npercent = 12.5'))
    ledger = tf.attribute(log_of([ROWS[2]]), book)
    costs = ledger.costs()
    assert costs.total("contracted") * 8 == costs.total("list") * 7
    assert costs.total("list") == tf.attribute(ledger.log).total_pusd


def test_without_prices_of_your_own_the_three_are_one():
    costs = tf.attribute(log_of([ROWS[2]])).costs(["team"])
    assert costs.total("list") == costs.total("contracted") == costs.total("effective") > 0


def test_other_currencies_by_a_dated_table(tmp_path):
    (tmp_path / "acme.toml").write_text(
        'provider = "acme"\ncurrency = "CNY"\n[[price]]\nmodel = "m"\ninput = 8\noutput = 24.5\nsource = "t"\nchecked = 2026-11-29\n'
    )
    (tmp_path / "currencies.toml").write_text(
        '[[rate]]\ncurrency = "CNY"\nusd = 0.14\nvalid_from = 2026-01-01\nsource = "ECB"\n'
        '[[rate]]\ncurrency = "CNY"\nusd = 0.1388889\nvalid_from = 2026-07-01\nvalid_to = 2026-12-01\nsource = "ECB"\n'
    )
    book = price_book(tmp_path)

    def found(at):
        return tf.price(provider="acme", model="m", at=at, usage=USAGE, book=book)

    assert found("2026-06-30").cost_usd == Decimal(8) * Decimal("0.14") + Decimal("2.45") * Decimal("0.14")
    later = found("2026-07-01")
    assert later.entry.rates[0] == 1_111_111  # 8e6 x 0.1388889 = 1,111,111.2
    assert later.entry.native[METER_NAMES.index("output")] == 24_500_000
    assert "CNY at 0.1388889 USD (ECB), rates rounded half-even" in later.entry.adjusted
    for day in ("2025-12-31", "2026-12-01"):
        assert found(day).status == "ambiguous"
        assert "no rate for that time" in found(day).reason


def test_a_pinned_version():
    book = price_book()
    assert price_book(version=book.version) is book
    with pytest.raises(PriceFileError, match=f"card version {book.version}, not abc as pinned"):
        price_book(version="abc")


def test_a_regional_price_in_another_currency(tmp_path):
    (tmp_path / "acme.toml").write_text(
        'provider = "acme"\ncurrency = "CNY"\n[[price]]\nmodel = "m"\ninput = 8\noutput = 24\nsource = "t"\nchecked = 2026-11-29\n'
        '[[region_factor]]\nregion = "cn"\nfactor = "1.5x"\nmodels = ["m"]\nsource = "t"\nchecked = 2026-11-29\n'
    )
    (tmp_path / "currencies.toml").write_text('[[rate]]\ncurrency = "CNY"\nusd = 0.125\nsource = "ECB"\n')
    found = tf.price(provider="acme", model="m", at=AT, usage=USAGE, region="cn", book=price_book(tmp_path))
    assert found.cost_usd == Decimal("1.95")  # (8 + 2.4) x 1.5 x 0.125
    assert found.entry.native[0] == 12_000_000


def test_a_contract_may_name_models_as_logs_spell_them(own):
    book = own(discount('provider = "openai"\nmodels = ["gpt-4o-2024-08-06"]\nmeters = ["input"]\npercent = 10'))
    found = tf.price(provider="openai", model="gpt-4o", at=AT, usage=USAGE, book=book)
    assert found.meters["uncached_input"].rate_pusd == 2_250_000
    assert found.meters["output"].rate_pusd == 10_000_000


def test_the_callers_decimal_settings_change_nothing(own):
    text = discount('provider = "openai"\nmodels = ["gpt-4o"]\npercent = 12.3456')
    right = own(text).lists["openai", "gpt-4o", "standard", ""][0].bands[0].rates
    with localcontext() as context:
        context.prec = 3
        assert own(text).lists["openai", "gpt-4o", "standard", ""][0].bands[0].rates == right


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("contract.toml", "discount = 5", "discount must be written as [[discount]] tables"),
        ("contract.toml", "discount = [1]", "discount must be written as [[discount]] tables"),
        ("currencies.toml", '[[rate]]\ncurrency = "EUR"\nusd = 1e999999999\nsource = "x"', "no number of a price's size"),
        ("openai.toml", 'provider = "openai"\nprice = 5', "price must be written as [[price]] tables"),
        ("openai.toml", "x = " + "[" * 5000, "not valid TOML"),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "gpt-4o-2024-08-06"\ninput = 1\noutput = 1\nsource = "x"\nchecked = 2026-11-29',
         'is known as gpt-4o in the book below; write your entries under model = "gpt-4o"'),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "mine"\naliases = ["gpt-4o"]\ninput = 1\noutput = 1\nsource = "x"\nchecked = 2026-11-29',
         'alias "gpt-4o" of mine is known as gpt-4o'),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "m"\ninput = 1e30\noutput = 1\nsource = "x"\nchecked = 2026-11-29', "more than any price"),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "m"\ninput = 1\noutput = 1\nsource = "x"\nchecked = 2026-11-29\n[[region_factor]]\nregion = "x"\nfactor = "-1.5x"\nmodels = ["m"]\nsource = "x"\nchecked = 2026-11-29', "must be above 0"),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "m"\ninput = 3\ncache_read = "0.33333333333333333333333333333333333333x"\noutput = 1\nsource = "x"\nchecked = 2026-11-29',
         "finer than 1e-12 USD"),
        ("openai.toml", 'provider = "openai"\n[[price]]\nmodel = "m"\nvalid_from = 0001-01-01T00:00:00+05:00\ninput = 3\noutput = 1\nsource = "x"\nchecked = 2026-11-29',
         "outside the calendar"),
        ("Contract.toml", "", "rename it to contract.toml"),
    ],
)  # fmt: skip
def test_broken_files_are_named(own, name, text, says):
    with pytest.raises(PriceFileError) as raised:
        own(text, name)
    assert says in str(raised.value)


def test_your_patterns_and_regions_stand_beside_the_shipped_ones(own):
    entry = '[[price]]\nmodel = "acme/x"\npatterns = ["acme/x-*"]\ninput = 1\noutput = 1\nsource = "x"\nchecked = 2026-11-29'
    book = own('provider = "openrouter"\n' + entry, "openrouter.toml")
    assert book.match("openrouter", "acme/x-9").how == "pattern"
    assert book.match("openrouter", "foo/bar:free").how == "pattern"
