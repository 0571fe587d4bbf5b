"""The oracle against arithmetic done by hand, on small price books written here.

Numbers such as B034 are cases from public bug reports; the comment beside each is the sum in USD per million
tokens x tokens, so that it can be followed without running anything.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from oracle import (
    Priced,
    as_billed_saving,
    batch_saving,
    bill,
    find_model,
    group,
    load_book,
    price_request,
    read_book,
)

ENTRIES = """
claude-sonnet          | input=3, cache_read=0.3, cache_write=3.75, cache_write_long=6, output=15, web_search=10
claude-sonnet          | service_tier="batch", input=1.5, cache_read=0.15, cache_write=1.875, output=7.5
claude-sonnet-5        | input=2, cache_read=0.2, cache_write=2.5, output=10
claude-sonnet-1m       | input=3, cache_read=0.3, cache_write=3.75, cache_write_long=6, output=15
claude-sonnet-1m       | above_input_tokens=200000, input=6, cache_read=0.6, cache_write=7.5, \
 cache_write_long=12, output=22.5
claude-opus-4-8        | input=5, cache_read="0.1x", cache_write="1.25x", cache_write_long="2x", output="5x"
claude-opus-5-5        | input=4, cache_read="0.05x", output=20
claude-fable-5-2       | input=8, cache_read="0.025x", output=40
claude-3-haiku         | input=0.25, cache_write=0.3, cache_write_long=0.5, output=1.25
claude-opus-4-6        | input=5, output=25
claude-opus-4-6        | above_input_tokens=200000, input=10, output=37.5
claude-opus-4-6        | valid_from=2026-03-13, input=5, output=25
gpt-5                  | aliases=["gpt-5-latest"], input=1.25, cache_read=0.125, output=10
gpt-5                  | service_tier="batch", input=0.625, cache_read=0.0625, output=5
gpt-5                  | service_tier="flex", input=0.625, output=5
gpt-5.5                | input=5, cache_read=0.5, output=30
gpt-5.5                | above_input_tokens=272000, input=10, cache_read=1, output=45
gpt-5.5                | service_tier="batch", input=2.5, output=15
gpt-5.5                | service_tier="batch", above_input_tokens=272000, input=5, output=22.5
gpt-5.4                | input=2.5, output=15, web_search=10
gpt-5.4                | service_tier="priority", input=5, output=30
gpt-5.4                | service_tier="priority", above_input_tokens=272000, ambiguous="no published cell"
gpt-5.6-sol            | input=5, cache_write=6.25, output=30
gpt-5.6-sol            | valid_from=2026-08-21, input=4, cache_write=5, output=20
gpt-5.6-luna           | input=1, output=4
gpt-5.6-luna           | valid_from=2026-07-30, input=0.2, output=1
gpt-6-sol              | input=2, cache_read=0.2, cache_write=2.5, output=10
gpt-6.1-terra          | input=1, cache_write=1.25, cache_write_long=2.5, output=4
o3                     | input=10, cache_read=2.5, output=40
o3                     | valid_from=2025-06-10T17:00:00Z, input=2, cache_read=0.5, output=8
gpt-4                  | input=30, output=60
gpt-4.1                | input=2, output=8
gpt-4.1-mini           | input=0.4, output=1.6
gpt-realtime-mini      | input=0.6, input_audio=10, cache_read=0.06, output=2.4, output_audio=20
gpt-audio              | input=2.5, output=10, output_audio=64
gemini-3-flash         | input=0.5, cache_read=0.05, output=3, input_audio="1x"
gemini-3.5-flash       | input=1.5, cache_read=0.15, output=9
gemini-2.5-flash       | input=0.3, output=2.5
gemini-2.0-flash       | input=0.1, output=0.4
gemini-3-pro-image     | input=2, output=12, output_image=120
gemini-4-argon         | input=2, output=10, valid_to=2026-12-01
gemini-4-argon         | valid_from=2026-12-01, input=4, output=20
gemini-5-gone          | input=1, output=1
gemini-5-gone          | valid_from=2026-01-01, valid_to=2026-02-01, input=2, output=2
sonar-deep             | input=2, output=8, reasoning=3
x:free                 | input=0, output=0
x:free                 | service_tier="batch", input=1, output=1
"""
NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
MILLION = 1_000_000


def book_text(lines: str, head: str = "") -> str:
    entries: list[str] = []
    for line in lines.strip().splitlines():
        model, rest = line.split("|")
        keys = rest.strip().replace(", ", "\n")
        entries.append(f'[[price]]\nmodel = "{model.strip()}"\nsource = "by hand"\nchecked = 2026-11-29\n{keys}\n')
    return f'provider = "acme"\n{head}\n' + "\n".join(entries)


BOOK = read_book(
    [
        book_text(ENTRIES, 'region_neutral = ["global"]')
        + '[[region_factor]]\nregion = "eu"\nfactor = "1.1x"\nmodels = ["gpt-5.4", "gpt-5.5"]\n'
    ]
)
# Short names for the counts, as the cases below would not fit a line otherwise.
SHORT = {
    "r": "cache_read_tokens",
    "w": "cache_write_tokens",
    "long": "cache_write_long_tokens",
    "think": "reasoning_tokens",
    "audio": "input_audio_tokens",
    "image": "input_image_tokens",
    "audio_out": "output_audio_tokens",
    "image_out": "output_image_tokens",
    "tier": "service_tier",
}


def use(model: str, i: int | None, o: int | None, **more: Any) -> dict[str, Any]:
    rest = {SHORT.get(name, name): value for name, value in more.items()}
    return {"provider": "acme", "model": model, "ts": NOON, "input_tokens": i, "output_tokens": o, **rest}


def priced(model: str, i: int | None, o: int | None, **more: Any) -> Priced:
    return price_request(BOOK, use(model, i, o, **more))


CASES = [
    # A. counts are inclusive: what was read or written is not input again
    ("B001", use("claude-sonnet", 12_307, 550, w=12_304, r=0), "0.054399"),  # 3x3 + 12,304x3.75 + 550x15
    ("B002", use("claude-sonnet", 1_000, 0, w=700, r=200), "0.002985"),  # 100x3 + 700x3.75 + 200x0.3
    ("B007", use("gemini-3-flash", 20_212, 931, r=16_298), "0.0055649"),  # 3,914x0.5 + 16,298x0.05 + 931x3
    ("B008", use("claude-sonnet-5", 19_073, 0, r=18_971, w=100), "0.0040482"),  # 2x2 + 18,971x0.2 + 100x2.5
    ("B010", use("claude-sonnet", 57_660, 631, r=35_574, w=17_787), "0.09973545"),  # 4,299 uncached
    ("B011", use("claude-sonnet", 4_740, 255, w=4_735), "0.02159625"),  # 5x3 + 4,735x3.75 + 255x15
    ("B013", use("gpt-5.6-sol", 6_000, 200, w=5_000, ts=datetime(2026, 8, 1, tzinfo=UTC)), "0.04225"),
    ("B014", use("gpt-6-sol", 2_600, 100, r=2_000, w=400), "0.0028"),  # 200x2 + 2,000x0.2 + 400x2.5 + 100x10
    ("B017", use("gemini-3.5-flash", 25_978, 13, r=24_540), "0.005955"),  # 1,438x1.5 + 24,540x0.15 + 13x9
    ("B019", use("claude-sonnet", 1_000, 0, r=1_000), "0.0003"),  # nothing uncached, still not free
    # B. writes by lifetime, multipliers of the entry's own input
    ("B023", use("claude-opus-4-8", MILLION, 0, w=MILLION, long=400_000), "7.75"),  # 0.6 x 6.25 + 0.4 x 10
    ("B026", use("claude-3-haiku", 100_000, 0, w=100_000, long=100_000), "0.05"),  # 0.1 x 0.5
    ("B028", use("claude-fable-5-2", MILLION, 0, r=MILLION), "0.2"),  # 8 x 0.025
    ("B029", use("claude-opus-5-5", 2 * MILLION, MILLION, r=MILLION), "24.2"),  # 4 + 4x0.05 + 20
    ("B032", use("gpt-6.1-terra", 10_000, 0, w=10_000, long=10_000), "0.025"),  # 10,000 x 2.5
    # C. bands are cliffs on the total input
    ("B034", use("gpt-5.5", 300_000, 1_000), "3.045"),  # 0.3 x 10 + 0.001 x 45
    ("B034 at the threshold", use("gpt-5.5", 272_000, 0), "1.36"),  # 0.272 x 5: not above it
    ("B034 one above", use("gpt-5.5", 272_001, 0), "2.72001"),  # 0.272001 x 10
    ("B035", use("gpt-5.5", 300_000, 0, r=200_000), "1.2"),  # 0.1 x 10 + 0.2 x 1
    ("B037", use("claude-sonnet-1m", 257_000, 0, w=7_000, long=2_000), "1.5615"),  # 1.5 + 0.0375 + 0.024
    ("B038", use("claude-sonnet-1m", 250_000, 0, r=100_000), "0.96"),  # 0.15 x 6 + 0.1 x 0.6
    ("B040", use("gpt-5.5", 300_000, 1_000, tier="batch"), "1.5225"),  # 0.3 x 5 + 0.001 x 22.5
    ("B041 before", use("claude-opus-4-6", 250_000, 1_000, ts=datetime(2026, 3, 12, 12, tzinfo=UTC)), "2.5375"),
    ("B041 after", use("claude-opus-4-6", 250_000, 1_000, ts=datetime(2026, 3, 13, 12, tzinfo=UTC)), "1.275"),
    # D. tiers
    ("B050", use("gpt-5", MILLION, 100_000, r=500_000, tier="batch"), "0.84375"),  # 0.3125 + 0.03125 + 0.5
    ("B053", use("gpt-5", MILLION, MILLION, tier="Flex"), "5.625"),  # 0.625 + 5
    ("tier words", use("gpt-5", MILLION, 0, tier="default"), "1.25"),
    # E. reasoning is inside the output
    ("B058", use("gemini-2.5-flash", 15, 1_020, think=661), "0.0025545"),  # 15x0.3 + 1,020x2.5
    ("B059", use("gpt-5", 1_000, 1_000, think=800), "0.01125"),  # 0.00125 + 0.01
    ("B062", use("gpt-realtime-mini", 0, 29, think=19), "0.0000696"),  # 29 x 2.4
    ("priced apart", use("sonar-deep", 0, 1_000, think=800), "0.004"),  # 200x8 + 800x3
    ("apart, unknown", use("sonar-deep", 0, 1_000, think=None), "0.008"),  # all of it output
    # F. names
    ("B067", use("gpt-4.1", 1_000, 500), "0.006"),  # 1,000x2 + 500x8, not gpt-4's
    ("B067 mini", use("gpt-4.1-mini", 1_000, 500), "0.0012"),
    ("B067 dated", use("gpt-4.1-2025-04-14", 1_000, 500), "0.006"),
    # H. the price of the day, in UTC
    ("B092 before", use("gpt-5.6-sol", 100_000, 100_000, ts=datetime(2026, 8, 20, 23, 59, 59, tzinfo=UTC)), "3.5"),
    ("B092 after", use("gpt-5.6-sol", 100_000, 100_000, ts=datetime(2026, 8, 21, tzinfo=UTC)), "2.4"),
    ("B094 before", use("gemini-4-argon", MILLION, MILLION, ts=datetime(2026, 11, 30, 12, tzinfo=UTC)), "12"),
    ("B094 after", use("gemini-4-argon", MILLION, MILLION, ts=datetime(2026, 12, 1, 12, tzinfo=UTC)), "24"),
    ("B097", use("o3", MILLION, 0, r=MILLION, ts=datetime(2025, 5, 1, tzinfo=UTC)), "2.5"),
    # 23:30 in Los Angeles is 06:30 UTC of the day of the new price
    ("B098", use("gpt-5.6-luna", 100_000, 0, ts=datetime.fromisoformat("2026-07-29T23:30-07:00")), "0.02"),
    ("B098 in UTC", use("gpt-5.6-luna", 100_000, 0, ts=datetime(2026, 7, 29, 23, 30, tzinfo=UTC)), "0.1"),
    ("instant before", use("o3", MILLION, 0, ts=datetime(2025, 6, 10, 16, 59, 59, tzinfo=UTC)), "10"),
    ("instant", use("o3", MILLION, 0, ts=datetime(2025, 6, 10, 17, tzinfo=UTC)), "2"),
    # I. regions, searches, modalities
    ("B104", use("gpt-5.4", 100_000, 1_000, region="EU"), "0.2915"),  # (0.25 + 0.015) x 1.1
    ("B104 global", use("gpt-5.4", 100_000, 1_000, region="Global"), "0.265"),
    ("searches", use("gpt-5.4", 0, 0, region="eu", web_searches=3), "0.03"),  # no token: no factor
    ("B107", use("claude-sonnet", 0, 0, web_searches=3), "0.03"),  # 3 x 10 / 1,000
    ("B109", use("gemini-2.0-flash", 262, 0, image=258), "0.0000262"),  # image tokens are input: 262 x 0.1
    ("B110", use("gemini-3-pro-image", 0, 1_120, image_out=1_120), "0.1344"),  # 1,120 x 120
    ("B112", use("gpt-audio", 0, 300, audio_out=200), "0.0138"),  # 100x10 + 200x64
    ("audio as text", use("gemini-3-flash", 1_000, 0, audio=900, r=500), "0.000275"),  # 500x0.5 + 500x0.05
    ("audio apart", use("gpt-realtime-mini", 1_000, 0, audio=900, r=0), "0.00906"),  # 100x0.6 + 900x10
]


@pytest.mark.parametrize(("request_", "usd"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_priced_request_costs_what_the_hand_says(request_: dict[str, Any], usd: str):
    result = price_request(BOOK, request_)
    assert (result.status, result.cost_usd) == ("priced", Decimal(usd))
    assert sum(amount for _, amount in result.meters.values()) == result.cost_pusd


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (use("gpt-5", 0, 0), "priced"),  # B088: zero is not missing
        (use("x:free", 1_000, 1_000), "known_zero"),  # B071
        (use("unheard-of", 1_000, 1_000, is_billable=False), "known_zero"),  # not billed comes first
        (use("gpt-5", None, None, gateway_cache_hit=True), "known_zero"),  # B091
        (use("gpt-5", None, None, ts=None), "usage_missing"),
        (use("unheard-of", 1_000, None, ts=None), "usage_partial"),
        (use("gpt-5", None, 1_000), "usage_partial"),
        (use("unheard-of", 1_000, 1_000, ts=None), "ambiguous"),
        (use("gpt-5-mini", 1_000, 1_000), "unpriced_model"),  # B068: no prefix of a name is the name
        (use("gpt-5.5", 1_000, 1_000, tier="flex"), "unpriced_model"),  # B052: no standard instead of flex
        (use("gpt-5", 1_000, 1_000, region="eu"), "unpriced_model"),
        (use("gpt-5", 1_000, 1_000, provider="nowhere"), "unpriced_model"),
        (use("gpt-5", 1_000, 1_000, provider=None), "unpriced_model"),
        # A list that ended does not give way to the one it had replaced.
        (use("gemini-5-gone", 1, 1, ts=datetime(2026, 1, 31, 23, 59, tzinfo=UTC)), "priced"),
        (use("gemini-5-gone", 1, 1, ts=datetime(2026, 2, 1, tzinfo=UTC)), "unpriced_model"),
        (use("gpt-5.4", 300_000, 1_000, tier="priority"), "ambiguous"),  # B043
        (use("gpt-5.4", 272_000, 1_000, tier="priority"), "priced"),
        (use("gpt-5.4", 300_000, 1_000, tier="priority", audio=5), "ambiguous"),  # before any meter
        (use("gpt-5", 1_000, 0, r=0, w=1), "unpriced_meter"),
        (use("gpt-6-sol", 10_000, 0, w=10_000, long=1), "unpriced_meter"),  # B031: never the short rate
        (use("gpt-5", 1_000, 0, audio=1), "unpriced_meter"),
        (use("gpt-5", 0, 10, image_out=1), "unpriced_meter"),
        (use("gpt-5", 0, 10, web_searches=1), "unpriced_meter"),
        (use("gpt-5", 0, 10, web_searches=0), "priced"),  # B106: a declared tool is no call
        (use("gpt-realtime-mini", 1_000, 0, audio=500, r=100), "ambiguous"),
        (use("gpt-realtime-mini", 1_000, 0, audio=500, w=100), "unpriced_meter"),  # no write rate: said first
    ],
)
def test_the_first_rule_that_holds_gives_the_status(request_: dict[str, Any], status: str):
    result = price_request(BOOK, request_)
    assert result.status == status
    has_cost = status in {"priced", "known_zero"}
    assert (result.cost_pusd is not None) == has_cost
    assert has_cost or not result.meters


@pytest.mark.parametrize(
    "request_",
    [
        use("gpt-5", 100, 10, r=500),  # B022
        use("claude-sonnet", 100, 10, w=10, long=20),
        use("claude-sonnet", 100, 10, w=None, long=20),
    ],
)
def test_more_in_the_parts_than_in_the_whole_is_refused(request_: dict[str, Any]):
    with pytest.raises(ValueError, match="impossible usage"):
        price_request(BOOK, request_)


def test_price_at_gives_a_date_to_rows_without_one_and_replaces_the_others():
    request_ = use("gpt-5.6-sol", 100_000, 100_000, ts=None)
    assert price_request(BOOK, request_, datetime(2026, 8, 1, tzinfo=UTC)).cost_usd == Decimal("3.5")
    assert price_request(BOOK, {**request_, "ts": NOON}, datetime(2026, 8, 1, tzinfo=UTC)).cost_usd == Decimal("3.5")


def test_meters_hold_each_token_once():
    result = priced("claude-sonnet", 1_000, 300, r=200, w=500, long=100, think=50, web_searches=2)
    assert {meter: units for meter, (units, _) in result.meters.items()} == {
        "uncached_input": 300,
        "cache_read": 200,
        "cache_write": 400,
        "cache_write_long": 100,
        "output": 300,
        "web_search": 2,
    }


@pytest.mark.parametrize(
    ("more", "is_unknown"),
    [
        ({"r": 0, "w": 0, "think": 0}, False),
        ({"r": None, "w": 0, "think": 0}, True),
        ({"r": 0, "w": None, "think": 0}, False),
        ({"r": 0, "w": 0, "think": None}, False),
    ],
)
def test_an_unknown_cached_share_is_flagged(more: dict[str, Any], *, is_unknown: bool):
    assert priced("gpt-5", 10, 10, **more).split_unknown is is_unknown


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("GPT-5", "gpt-5"),
        ("gpt-5-latest", "gpt-5"),
        ("acme/gpt-5", "gpt-5"),
        ("acme/GPT-5-latest", "gpt-5"),
        ("gpt-5-2026-03-05", "gpt-5"),
        ("gpt-5-20260305", "gpt-5"),
        ("gpt-5@20260305", "gpt-5"),
        ("acme/gpt-5@20260305", "gpt-5"),
        ("elsewhere/gpt-5", None),
        ("gpt-5-0305", None),
        ("gpt-5-mini", None),
        ("gpt", None),
        ("", None),
    ],
)
def test_names_are_matched_by_the_stated_rules_only(name: str, model: str | None):
    assert find_model(BOOK, "acme", name) == model


def test_an_own_entry_for_a_dated_id_comes_before_the_suffix_rule():
    book = read_book([book_text("m | input=1\nm-2026-01-01 | input=2\nm-2026-02-02 | input=3, status='withdrawn'")])
    at = {"input_tokens": 1, "output_tokens": 0, "ts": NOON, "provider": "acme"}
    assert price_request(book, {**at, "model": "m-2026-01-01"}).cost_pusd == 2 * MILLION
    assert price_request(book, {**at, "model": "m-2026-03-03"}).cost_pusd == MILLION
    assert price_request(book, {**at, "model": "m-2026-02-02"}).status == "unpriced_model"


def test_a_factor_with_a_date_starts_in_the_middle_of_a_price_list():
    lines = "m | input=1\nm | valid_from=2026-02-01, input=2\nm | valid_from=2026-04-01, input=3"
    lines += "\nm | region='eu', valid_from=2026-05-01, input=9"  # a region's own entry is not taken into another one
    factor = '[[region_factor]]\nregion = "us"\nfactor = "1.1x"\nmodels = ["M"]\nvalid_from = 2026-03-01\n'
    book = read_book([book_text(lines) + factor])
    request_ = {"provider": "acme", "model": "m", "region": "us", "input_tokens": 10, "output_tokens": 0}
    costs = [price_request(book, {**request_, "ts": datetime(2026, m, 1, tzinfo=UTC)}).cost_usd for m in (2, 3, 4, 5)]
    assert costs == [None, Decimal("0.000022"), Decimal("0.000033"), Decimal("0.000033")]


@pytest.mark.parametrize(
    "lines",
    [
        "m | input=1.0000001",  # finer than 1 pUSD a token
        "m | input=0.001, cache_read='0.0001x'",
        "m | input=-1",
        "m | input=1, colour='red'",
        "m | input=1, ambiguous='why'",
        "m | service_tier='batch'",
        "m | input=1\nm | input=2",
        "m | input=1, aliases=['x']\nn | input=1, aliases=['x']",
    ],
)
def test_a_book_that_cannot_be_meant_is_refused(lines: str):
    with pytest.raises(ValueError, match=r"finer|negative|unknown|same band|two models"):
        read_book([book_text(lines)])


def test_a_folder_is_read_by_its_provider_keys(tmp_path: Any):
    (tmp_path / "any_name.toml").write_text(book_text("m | input=1"), encoding="utf-8")
    (tmp_path / "gpus.toml").write_text('[[gpu]]\nname = "h100"\n', encoding="utf-8")
    assert [(entry.provider, entry.model) for entry in load_book(tmp_path).entries] == [("acme", "m")]


def test_a_bill_is_exact_and_keeps_what_it_cannot_price_in_sight():
    rows = [use("gpt-4.1", 200, 0)] * 1_000 + [use("unheard-of", 37, 5), use("gpt-4.1", None, 7)]
    total = bill(BOOK, rows)
    assert total.total_pusd == 4 * 10**11  # B115: 1,000 x 200 x $2 / 1M = $0.40, not 1,000 x $0.00
    assert total.by_status == {"priced": 1_000, "unpriced_model": 1, "usage_partial": 1}
    assert total.tokens_by_status == {"priced": 200_000, "unpriced_model": 42, "usage_partial": 7}
    assert total.by_meter == {"uncached_input": (200_000, Decimal(4 * 10**11))}
    assert total.split_unknown == 1_000


def test_days_are_those_of_the_report_zone():
    evening = use("gpt-5", 8, 0, ts=datetime(2025, 1, 25, 4, 8, tzinfo=UTC))  # B100
    new_year = use("gpt-5", 4, 0, ts=datetime(2025, 1, 1, 23, 30, tzinfo=UTC))  # B101
    undated = use("gpt-5", 1, 0, ts=None)
    rows = [evening, new_year, undated]

    def days(zone: str) -> dict[str, Decimal]:
        return {str(day): total.total_pusd for (day,), total in group(BOOK, rows, ["day"], ZoneInfo(zone)).items()}

    # 8 and 4 tokens at 1,250,000 pUSD; the row without a time has no price
    assert days("America/Los_Angeles") == {"2025-01-24": 10 * MILLION, "2025-01-01": 5 * MILLION, "None": 0}
    assert days("Asia/Shanghai") == {"2025-01-25": 10 * MILLION, "2025-01-02": 5 * MILLION, "None": 0}


def test_caching_as_billed_counts_the_write_premium():
    # B122: 1,000 x (3 - 0.3) - 20,000 x (3.75 - 3) = 2,700 - 15,000 = -12,300 USD per million
    row = use("claude-sonnet", 21_000, 0, r=1_000, w=20_000)
    assert as_billed_saving(BOOK, [row, use("unheard-of", 5, 5, r=5)]) == -12_300 * MILLION
    # half of the writes long: 10,000 x (3.75 - 3) + 10,000 x (6 - 3) = 37,500
    assert as_billed_saving(BOOK, [{**row, "cache_write_long_tokens": 10_000}]) == (2_700 - 37_500) * MILLION


def test_batch_loses_reads_and_leaves_alone_what_has_no_batch_price():
    row = use("gpt-5", 1_000, 100, r=401)
    other = [use("gpt-4", 1_000, 100), use("unheard-of", 1, 1), use("gpt-5", 1_000, 0, w=1), use("x:free", 9, 9)]
    # now 599x1.25 + 401x0.125 + 100x10 = 1,798.875; of 401 reads half is 200.5, up to 201 kept:
    # batch 799x0.625 + 201x0.0625 + 100x5 = 1,011.9375; saved 786.9375
    saving = batch_saving(BOOK, [row, *other], lambda _: True, Decimal("0.5"))
    assert saving == Decimal("786.9375") * MILLION
    assert batch_saving(BOOK, [row, *other], lambda request: request["model"] != "gpt-5", Decimal(1)) == 0
    # all reads kept: everything halves
    assert batch_saving(BOOK, [row], lambda _: True, Decimal(1)) == Decimal("899.4375") * MILLION


RULES = """
m          | patterns=["m-preview-*"], input=1, cache_read=0.1, input_image=5, cache_read_image=0.3, request=5, output=2
m          | weekdays=["tue"]; hours=["09:00-18:00"]; zone="Europe/Berlin", input=3, output=2
w          | input=1, output=2, audio_hour=0.36, min_audio_s=10, round_audio_s=6, output_hour=0.0000018
w          | region="eu", input=7, output=2
"""
TUESDAY = datetime(2026, 9, 1, 6, 59, tzinfo=UTC)  # 08:59 in Berlin


@pytest.mark.parametrize(
    ("request_", "pusd"),
    [
        (use("m", 1_000, 0, ts=TUESDAY), 1_000 * MILLION + 5 * 10**9),
        (use("m", 1_000, 0, ts=TUESDAY.replace(hour=7, minute=0)), 3_000 * MILLION),  # its list has no fee
        (use("m", 1_000, 0, ts=TUESDAY.replace(hour=16, minute=0)), 1_000 * MILLION + 5 * 10**9),
        (use("m", 1_000, 0, ts=datetime(2026, 9, 2, 8, tzinfo=UTC)), 1_000 * MILLION + 5 * 10**9),
        (use("m", 1_000, 0, ts=datetime(2026, 11, 3, 7, 30, tzinfo=UTC)), 1_000 * MILLION + 5 * 10**9),  # 08:30: winter
        (use("acme/models/M-Preview-7", 1_000, 0), 1_000 * MILLION + 5 * 10**9),
        # 100 images apart, 200 of 500 reads images, 400 more input: 100 x 5 + 200 x 0.3 + 300 x 0.1 + 400
        (use("m", 1_000, 0, r=500, image=300, cache_read_image_tokens=200), 990 * MILLION + 5 * 10**9),
        (use("w", 0, 0, input_audio_ms=1), 10**9),  # 10 s of 0.0001 USD
        (use("w", 0, 0, input_audio_ms=12_001), 18 * 10**8),
        (use("w", 0, 0, output_media_ms=3), 2),  # 1.5, to the even one
        (use("w", 0, 0, output_media_ms=5), 2),
        (use("w", 1, 0, region="Frankfurt"), 7 * MILLION),
        (use("w", 1, 0, region="global"), 7 * MILLION),  # an alias goes before the neutral words
        (use("m", 1_000, 0, region="global", ts=TUESDAY), 1_000 * MILLION + 5 * 10**9),
    ],
)
def test_windows_patterns_aliases_and_time_by_hand(request_: dict[str, Any], pusd: int):
    text = book_text(RULES.replace("; ", ", "), 'region_neutral = ["global"]')
    text += '[[region_alias]]\nwords = ["frankfurt", "GLOBAL"]\nregion = "eu"\nmodels = ["w*"]\n'
    assert price_request(read_book([text]), request_).cost_pusd == pusd
