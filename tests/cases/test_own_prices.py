"""Public billing bugs with their right values: prices of your own, by time, in another currency, with a bill beside them."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from decimal import Decimal

import polars as pl
import pytest
from log_files import write

import tenfold as tf
from tenfold.cli import main
from tenfold.ledger.repricing import reprice
from tenfold.money import PUSD_PER_USD

AT = "2026-10-01"
SOURCE = 'source = "by the case"\nchecked = 2026-11-29\n'


def written(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


def laid_over(folder, **files):
    """The shipped book under these files."""
    return tf.price_book(overlay=written(folder, **files))


def alone(folder, **files):
    """These files and no others: quicker to read."""
    return tf.price_book(written(folder, **files))


def own_price(provider, model, rates):
    return f'provider = "{provider}"\n[[price]]\nmodel = "{model}"\n{rates}\n{SOURCE}'


def in_a_frame(provider, model, usage, book):
    """The cost by the ledger's own SQL."""
    row = {"provider": provider, "model": model, "ts": datetime(2026, 10, 1, tzinfo=UTC), **usage}
    (cost,) = tf.price_many(pl.DataFrame([row]), book=book)["cost_pusd"]
    return Decimal(cost) / PUSD_PER_USD


def test_b002_custom_rates_do_not_double_count(tmp_path):
    rates = "input = 3\ncache_read = 0.30\ncache_write = 3.75\noutput = 15"
    book = laid_over(tmp_path, own=own_price("anthropic", "custom", rates))
    usage = {"input_tokens": 1000, "cache_read_tokens": 200, "cache_write_tokens": 700, "output_tokens": 0}
    found = tf.price(provider="anthropic", model="custom", at=AT, usage=tf.Usage(**usage), book=book)
    assert found.cost_usd == Decimal("0.002985")  # 100 x 3 + 200 x 0.30 + 700 x 3.75 per million
    assert in_a_frame("anthropic", "custom", usage, book) == Decimal("0.002985")


def test_reads_without_a_price_of_their_own_are_not_free(tmp_path):
    # B073's way to $17.37 instead of $1,600.18: a price without a rate for reads, and 99.6 % of the volume are reads
    book = alone(tmp_path, own=own_price("anthropic", "fallback", "input = 5\noutput = 25"))
    usage = tf.Usage(input_tokens=1_000_000, cache_read_tokens=996_000, cache_write_tokens=0, output_tokens=0)
    found = tf.price(provider="anthropic", model="fallback", at=AT, usage=usage, book=book)
    assert (found.status, found.cost_usd) == ("unpriced_meter", None)
    assert "cache_read" in found.reason
    shipped = tf.price(provider="anthropic", model="claude-opus-5", at=AT, usage=usage)
    assert shipped.cost_usd == Decimal("0.518")  # 4,000 x 5 + 996,000 x 0.50 per million


@pytest.mark.parametrize(
    ("rules", "ms", "right"),
    [
        pytest.param("", 521_500, "0.05215", id="B113 as it is"),  # 521.5 s x 0.36 / 3600
        pytest.param("round_audio_s = 1", 521_500, "0.0522", id="B113 by the second"),
        pytest.param("round_audio_s = 60", 521_500, "0.054", id="B113 by the minute"),
        pytest.param("min_audio_s = 10", 3_000, "0.001", id="B113 at least ten seconds"),
        pytest.param("min_audio_s = 10", 10_500, "0.00105", id="B113 above the least"),
    ],
)
def test_audio_by_time(tmp_path, rules, ms, right):
    book = alone(tmp_path, speech=own_price("speech", "nova", f"input = 0\noutput = 0\naudio_hour = 0.36\n{rules}"))
    usage = {"input_tokens": 0, "output_tokens": 0, "input_audio_ms": ms}
    found = tf.price(provider="speech", model="nova", at=AT, usage=tf.Usage(**usage), book=book)
    assert found.cost_usd == Decimal(right)
    assert in_a_frame("speech", "nova", usage, book) == Decimal(right)


def test_b113_groq_bills_ten_seconds_at_least():
    def cost(ms):
        usage = tf.Usage(input_tokens=0, output_tokens=0, input_audio_ms=ms)
        return tf.price(provider="groq", model="whisper-large-v3", at=AT, usage=usage).cost_usd

    assert cost(3_000) == cost(10_000) == Decimal("0.000308333333")  # 0.111 an hour, to the pUSD
    assert cost(11_000) == Decimal("0.000339166667")


def test_b116_another_currency_is_converted_once_at_a_dated_rate(tmp_path):
    # 7.2 CNY for a dollar from June on: 14.4 CNY are $2, neither $14.40 nor $103.68
    rate = '[[rate]]\ncurrency = "CNY"\nusd = 0.1388888889\nvalid_from = 2026-06-01\nsource = "case B116: 7.2"\n'
    price = own_price("dsh", "m", "input = 14.4\noutput = 0").replace("[[price]]", 'currency = "CNY"\n[[price]]')
    book = alone(tmp_path, dsh=price, currencies=rate)
    usage = {"input_tokens": 1_000_000, "output_tokens": 0}
    found = tf.price(provider="dsh", model="m", at=AT, usage=tf.Usage(**usage), book=book)
    assert (found.status, found.cost_usd) == ("priced", Decimal(2))
    assert in_a_frame("dsh", "m", usage, book) == Decimal(2)
    assert found.entry.currency == "CNY"
    assert "CNY at 0.1388888889 USD (case B116: 7.2)" in found.entry.adjusted
    before = tf.price(provider="dsh", model="m", at="2026-05-31", usage=tf.Usage(**usage), book=book)
    assert (before.status, before.cost_usd) == ("ambiguous", None)
    assert "CNY" in before.reason


OPENROUTER = {
    "prompt_tokens": 15328,
    "completion_tokens": 457,
    "prompt_tokens_details": {"cached_tokens": 15252, "cache_write_tokens": 70},
}


def test_b119_the_shipped_book_gives_the_billed_usage():
    found = tf.price(provider="openrouter", model="anthropic/claude-3.7-sonnet", at="2025-07-01", usage=OPENROUTER)
    assert found.cost_usd == Decimal("0.0117111")


def test_b119_cached_tokens_are_never_billed_at_the_full_rate(tmp_path):
    at = "2025-07-01"
    shipped = tf.price(provider="openrouter", model="anthropic/claude-3.7-sonnet", at=at, usage=OPENROUTER)
    assert shipped.cost_usd != Decimal(15328 * 3 + 457 * 15) / 1_000_000
    rates = "input = 3\ncache_read = 0.30\ncache_write = 3.75\noutput = 15"
    book = laid_over(tmp_path, own=own_price("openrouter", "anthropic/claude-3.7-sonnet", rates))
    found = tf.price(provider="openrouter", model="anthropic/claude-3.7-sonnet", at=at, usage=OPENROUTER, book=book)
    assert found.cost_usd == Decimal("0.0117111")  # 6 fresh, 70 written, 15,252 read, 457 out
    assert found.how_matched == "override"


def test_a_bill_inside_the_usage_is_no_price():
    # B118: usage.cost is a bill to compare with (and under BYOK only the fee); it is never added to the list price
    usage = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100}
    plain = tf.price(provider="openrouter", model="anthropic/claude-3.7-sonnet", at=AT, usage=usage)
    billed = {**usage, "cost": 0.25, "cost_details": {"upstream_inference_cost": 0.25}}
    found = tf.price(provider="openrouter", model="anthropic/claude-3.7-sonnet", at=AT, usage=billed)
    assert found.cost_usd == plain.cost_usd == Decimal("0.0045")


# B121: 217.8 million tokens at $5 over eleven days are $1,089; 32 % more are $1,437.48, and $130.68 a day.
LISTED, OWN, OWN_DAY = Decimal(1089), Decimal("1437.48"), Decimal("130.68")
DEARER = '[[discount]]\nprovider = "anthropic"\npercent = -32\nsource = "case B121"\n'


@pytest.fixture
def dearer(tmp_path):
    days = [*range(26, 32), *range(1, 6)]
    rows = [
        {"provider": "anthropic", "model": "claude-opus-4-5", "ts": f"2026-{10 if day > 20 else 11}-{day:02}T12:00:00Z", "request_id": f"m{day}",
         "input_tokens": 19_800_000, "cache_read_tokens": 0, "cache_write_tokens": 0, "output_tokens": 0}
        for day in days
    ]  # fmt: skip
    folder = tmp_path / "own"
    folder.mkdir()
    tf.load(write(tmp_path / "log.jsonl", rows), db=tmp_path / "u.duckdb")
    return tmp_path / "u.duckdb", folder, laid_over(folder, contract=DEARER)


@pytest.mark.full
def test_b121_one_overlay_in_price_cost_plan_and_review(dearer):
    db, _, book = dearer
    log = tf.open_log(db)
    assert tf.attribute(log).total_pusd == LISTED * PUSD_PER_USD
    usage = tf.Usage(input_tokens=19_800_000, output_tokens=0)
    one = tf.price(provider="anthropic", model="claude-opus-4-5", at=AT, usage=usage, book=book)
    assert one.cost_usd == OWN_DAY
    ledger = tf.attribute(log, book)
    assert ledger.total_pusd == OWN * PUSD_PER_USD
    for grain in ("day", "week", "month", "quarter", "model"):
        assert sum(Decimal(row["cost_usd"]) for row in ledger.composition([grain]).rows()) == OWN
    assert {row["cost_usd"] for row in ledger.composition(["day"]).rows()} == {str(OWN_DAY)}
    assert {row["cost_usd"] for row in ledger.composition(["month"]).rows()} == {str(6 * OWN_DAY), str(5 * OWN_DAY)}
    costs = ledger.costs()
    assert [costs.total(kind) / PUSD_PER_USD for kind in ("list", "contracted", "effective")] == [
        1089,
        1437.48,
        1437.48,
    ]
    assert tf.plan(ledger).spend_pusd == OWN * PUSD_PER_USD
    changed = reprice(log, book.list_book, book, by_request=True)  # what `prices reprice --credit` prints
    assert [changed.total(side) for side in ("old", "new")] == [LISTED * PUSD_PER_USD, OWN * PUSD_PER_USD]
    assert (
        changed.adjustments.select(pl.col("new_pusd") - pl.col("old_pusd")).to_series().to_list()
        == [(OWN_DAY - 99) * PUSD_PER_USD] * 11
    )
    page = tf.review(ledger, quarter="2026Q4").html
    assert "$1,437" in page
    assert page.count("$1,089") == 1  # said beside the contracted cost, and nowhere else
    assert "List $1,089.00 · contracted $1,437.48" in page


def test_b121_one_overlay_in_every_command(dearer, monkeypatch, capsys):
    db, folder, _ = dearer

    def said(*words):
        monkeypatch.setattr(sys, "argv", ["tenfold", *map(str, words), "--prices", str(folder), "--json"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return json.loads(capsys.readouterr().out)

    assert Decimal(said("cost", "--db", db, "--by", "month")["total_usd"]) == OWN
    assert Decimal(said("levers", "--db", db)["spend_usd"]) == OWN
    usage = '{"input_tokens": 19800000, "output_tokens": 0}'
    words = ("price", "--provider", "anthropic", "--model", "claude-opus-4-5", "--at", AT, "--usage", usage)
    assert Decimal(said(*words)["cost_usd"]) == OWN_DAY
