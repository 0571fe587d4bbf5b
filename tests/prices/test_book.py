"""How price files become price lists, and what a bad file says."""

from datetime import UTC, datetime

import pytest

from tenfold.errors import PriceFileError
from tenfold.prices import price_book
from tenfold.prices.meters import METER_NAMES, meters

HEAD = 'provider = "acme"\n'
TAIL = 'source = "test"\nchecked = 2026-11-29\n'


def entry(body: str, model: str = "acme-large") -> str:
    return f'[[price]]\nmodel = "{model}"\n{body}\n{TAIL}'


@pytest.fixture
def book_of(tmp_path):
    def make(*entries: str, head: str = HEAD, name: str = "acme.toml", **options):
        (tmp_path / name).write_text(head + "\n".join(entries))
        return price_book(tmp_path, **options)

    return make


def rate(book, at, meter="uncached_input", tokens=1, tier=None, model="acme-large", region=None):
    found = book.match("acme", model, tier, region).at(datetime.fromisoformat(at))
    return None if found is None else found.band(tokens).rates[METER_NAMES.index(meter)]


def test_meter_file_and_code_agree():
    assert tuple(meter.name for meter in meters()) == METER_NAMES


def test_intervals_are_half_open(book_of):
    book = book_of(entry("input = 5\noutput = 25"), entry("valid_from = 2026-07-30\ninput = 1\noutput = 5"))
    assert rate(book, "2026-07-29T23:59:59.999999+00:00") == 5_000_000
    assert rate(book, "2026-07-30T00:00:00+00:00") == 1_000_000


def test_a_price_that_ended_is_gone(book_of):
    book = book_of(entry("valid_to = 2026-07-30\ninput = 5\noutput = 25"))
    assert rate(book, "2026-07-29T23:59:59+00:00") == 5_000_000
    assert rate(book, "2026-07-30T00:00:00+00:00") is None


def test_a_new_list_drops_the_old_bands(book_of):
    book = book_of(
        entry("input = 5\noutput = 25"),
        entry("above_input_tokens = 200_000\ninput = 10\noutput = 50"),
        entry("valid_from = 2026-03-13\ninput = 5\noutput = 25"),
    )
    before, after = "2026-03-12T00:00:00+00:00", "2026-03-13T00:00:00+00:00"
    assert rate(book, before, tokens=200_000) == 5_000_000  # exactly the edge is still below the cliff
    assert rate(book, before, tokens=200_001) == 10_000_000
    assert rate(book, after, tokens=200_001) == 5_000_000
    assert book.thresholds == (200_000,)


def test_multipliers_are_resolved_exactly(book_of):
    book = book_of(entry('input = 0.20\ncache_read = "0.1x"\ncache_write = "1.25x"\noutput = 1.2'))
    at = "2026-01-01T00:00:00+00:00"
    assert rate(book, at, "cache_read") == 20_000
    assert rate(book, at, "cache_write") == 250_000
    assert rate(book, at, "cache_write_long") is None


def test_region_factor_makes_entries(book_of):
    factor = '[[region_factor]]\nregion = "us"\nfactor = "1.1x"\nmodels = ["acme-large"]\n' + TAIL
    book = book_of(
        entry("input = 3\noutput = 15\nweb_search = 10"),
        factor,
        head='provider = "acme"\nregion_neutral = ["global"]\n',
    )
    at = "2026-01-01T00:00:00+00:00"
    assert rate(book, at, region="us") == 3_300_000
    assert rate(book, at, "web_search", region="us") == 10_000_000_000  # a call's price is not a token rate
    assert rate(book, at, region="global") == 3_000_000
    assert book.match("acme", "acme-large", None, "eu").lists == ()


def test_withdrawn_never_applies_and_announced_does(book_of):
    book = book_of(
        entry("input = 3\noutput = 15"),
        entry('valid_from = 2026-09-01\nstatus = "withdrawn"\ninput = 9\noutput = 15'),
        entry('valid_from = 2027-01-01\nstatus = "announced"\ninput = 6\noutput = 15'),
    )
    assert rate(book, "2026-10-01T00:00:00+00:00") == 3_000_000
    assert rate(book, "2027-01-01T00:00:00+00:00") == 6_000_000


@pytest.mark.parametrize(
    ("asked", "how"),
    [
        ("acme-large", "exact"),
        ("ACME-Large", "exact"),
        ("acme-large-2026-01-01", "alias"),
        ("acme/acme-large", "prefix"),
        ("acme-large-2026-05-05", "dated_id"),
        ("acme-large@20260505", "dated_id"),
        ("acme-larg", "none"),
        ("acme-large-pro", "none"),
        ("acme", "none"),
    ],
)
def test_how_ids_match(book_of, asked, how):
    book = book_of(entry('aliases = ["acme-large-2026-01-01"]\ninput = 3\noutput = 15'))
    assert book.match("acme", asked).how == how


def test_what_is_missing_names_the_near_match(book_of):
    book = book_of(entry("input = 3\noutput = 15"), entry('service_tier = "batch"\ninput = 1.5\noutput = 7.5'))
    assert 'Did you mean "acme-large"' in book.match("acme", "acme-lrge").reason
    assert 'Did you mean "batch"' in book.match("acme", "acme-large", "bacth").reason
    assert 'Did you mean "acme"' in book.match("acmee", "acme-large").reason


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("cache_raed = 1\ninput = 3\noutput = 15", 'unknown key "cache_raed". Did you mean "cache_read"?'),
        ("input = 0.0000001\noutput = 15", "input: 1E-7 USD per 1,000,000 units is finer"),
        ('input = 3\noutput = "5y"', 'output: "5y" is no number'),
        ("input = -3\noutput = 15", "input: a price must be"),
        ("input = true\noutput = 15", "input"),
        ('input = "2x"\noutput = 15', "multiplies input"),
        ("valid_from = 2026-01-01T00:00:00\ninput = 3\noutput = 15", "valid_from: an instant needs a zone"),
        ("valid_from = 2026-02-01\nvalid_to = 2026-01-01\ninput = 3\noutput = 15", "valid_to must be after"),
        ("cache_read = 1", "needs input and output"),
        ('ambiguous = "two sources"\ninput = 3', "must not carry rates"),
        ("above_input_tokens = 1000\ninput = 3\noutput = 15", "needs its base band"),
        ('status = "maybe"\ninput = 3\noutput = 15', "status"),
    ],
)
def test_a_bad_entry_is_named(book_of, body, says):
    with pytest.raises(PriceFileError) as raised:
        book_of(entry(body))
    assert "acme.toml" in str(raised.value)
    assert "acme-large" in str(raised.value)
    assert says in str(raised.value)


def test_twins_and_shared_ids_are_refused(book_of):
    with pytest.raises(PriceFileError, match="entry 2.*same model, tier, region, date, hours and band as entry 1"):
        book_of(entry("input = 3\noutput = 15"), entry("input = 4\noutput = 15"))
    with pytest.raises(PriceFileError, match='alias "b" is a model of its own'):
        book_of(entry('aliases = ["b"]\ninput = 3\noutput = 15', "a"), entry("input = 3\noutput = 15", "b"))
    with pytest.raises(PriceFileError, match='alias "x" already stands for a'):
        book_of(
            entry('aliases = ["x"]\ninput = 3\noutput = 15', "a"), entry('aliases = ["x"]\ninput = 3\noutput = 15', "b")
        )


def test_an_overlay_takes_the_place_from_its_date_on(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'provider = "openai"\n'
        + entry("valid_from = 2026-09-01\nvalid_to = 2026-10-01\ninput = 1\noutput = 4", "gpt-4.1")
    )
    book = price_book(overlay=tmp_path)

    def at(text, tier=None):
        return (
            book.match("openai", "gpt-4.1", tier).at(datetime.fromisoformat(text).replace(tzinfo=UTC)).bands[0].rates[0]
        )

    assert [at("2026-08-31T23:59"), at("2026-09-01T00:00"), at("2026-10-01T00:00")] == [2_000_000, 1_000_000, 2_000_000]
    assert at("2026-09-15T00:00", "batch") == 1_000_000  # other tiers keep the shipped price
    assert book.version != price_book().version


def test_a_folder_without_price_files_is_refused(tmp_path):
    with pytest.raises(PriceFileError, match="no .toml file"):
        price_book(tmp_path)
    with pytest.raises(PriceFileError, match="no such folder"):
        price_book(tmp_path / "nowhere")


def test_shipped_book_has_the_three_providers():
    book = price_book()
    assert {key[0] for key in book.lists} >= {"openai", "anthropic", "google"}
    for lists in book.lists.values():
        for one in lists:
            for band in one.bands:
                assert band.source
                assert band.checked


def test_a_dated_region_factor_starts_on_its_date_in_the_list_then_in_force(book_of):
    factor = (
        '[[region_factor]]\nregion = "us"\nfactor = "1.1x"\nvalid_from = 2026-05-01\nmodels = ["acme-large"]\n' + TAIL
    )
    book = book_of(
        entry("input = 1\noutput = 5"),
        entry("valid_from = 2026-03-01\ninput = 2\noutput = 5"),
        entry("valid_from = 2026-07-01\ninput = 3\noutput = 5"),
        factor,
    )
    days = ("2026-04-30", "2026-05-01", "2026-07-01")
    assert [rate(book, f"{day}T00:00:00+00:00", region="us") for day in days] == [None, 2_200_000, 3_300_000]


@pytest.mark.parametrize(
    ("tail", "says"),
    [
        ('factor = "1.1x"\nmodels = ["acme-lrge"]', 'no entry for model "acme-lrge". Did you mean "acme-large"?'),
        ('factor = "1.0000001x"\nmodels = ["acme-large"]', "finer than 1 pUSD"),
        ('factor = "much"\nmodels = ["acme-large"]', '"much" is no number'),
    ],
)
def test_a_bad_region_factor_is_named(book_of, tail, says):
    with pytest.raises(PriceFileError) as raised:
        book_of(entry("input = 0.000001\noutput = 5"), f'[[region_factor]]\nregion = "us"\n{tail}\n' + TAIL)
    assert "region_factor 1" in str(raised.value)
    assert says in str(raised.value)


def test_bands_of_one_list_end_as_one(book_of):
    with pytest.raises(PriceFileError, match="end at different times"):
        book_of(
            entry("input = 1\noutput = 5"),
            entry("above_input_tokens = 1000\nvalid_to = 2026-07-01\ninput = 2\noutput = 5"),
        )
