"""Many calls at once: the same statuses and integers as one by one, whatever the frame looks like."""

from datetime import UTC, date, datetime, timedelta, timezone

import polars as pl
import pytest
import strategies
from hypothesis import HealthCheck, Phase, given, settings

import tenfold as tf
from tenfold.errors import ColumnError, UsageError
from tenfold.prices import price_book
from tenfold.store import schema

CALLS = {
    "provider": ["openai", "gemini", "openai", None],
    "model": ["gpt-5", "gemini-2.5-pro", "gpt-nope", "gpt-5"],
    "ts": [datetime(2026, 10, 1, 12, tzinfo=UTC)] * 3 + [None],
    "input_tokens": [1000, 300_000, 5, 5],
    "output_tokens": [10, 10, None, 5],
    "mine": ["a", "b", "c", "d"],
}


@pytest.mark.filterwarnings("ignore:Generating overly large repr")
@given(strategies.books_and_logs(min_size=10, max_size=25))
@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # shrinking takes minutes and helps little
)
def test_as_one_by_one(tmp_path_factory, drawn):
    text, rows = drawn
    folder = tmp_path_factory.mktemp("book")
    (folder / "openai.toml").write_text(text)
    book = price_book(folder)
    rows = [row for row in rows if row.get("ts") is not None]
    names = ("provider", "model", "service_tier", "region", "ts", *schema.TOKEN_COLUMNS)
    if not rows:
        return
    kinds = dict.fromkeys(schema.TOKEN_COLUMNS, pl.Int64) | {"ts": pl.Datetime("us", "UTC")}
    frame = pl.DataFrame([{name: row.get(name) for name in names} for row in rows], schema_overrides=kinds)
    found = tf.price_many(frame, book=book)
    for row, made in zip(rows, found.rows(named=True), strict=True):
        one = tf.price(
            provider=row["provider"] or "", model=row["model"] or "", at=row["ts"], tier=row["service_tier"],
            region=row["region"], usage={name: row.get(name) for name in schema.TOKEN_COLUMNS}, book=book,
        )  # fmt: skip
        assert (made["price_status"], made["cost_pusd"]) == (one.status, one.cost_pusd)
        assert made["how_matched"] == one.how_matched
        if one.entry and one.cost_pusd is not None:
            assert (made["price_file"], made["price_entry"]) == (one.entry.file, one.entry.number)


def test_rows_keep_their_place_and_their_columns():
    found = tf.price_many(pl.DataFrame(CALLS), meters=True)
    assert found.columns[:6] == list(CALLS)
    assert found["mine"].to_list() == ["a", "b", "c", "d"]
    assert found["price_status"].to_list() == ["priced", "priced", "usage_partial", "ambiguous"]
    assert found["cost_pusd"].to_list() == [
        1000 * 1_250_000 + 10 * 10_000_000,
        300_000 * 2_500_000 + 150_000_000,
        None,
        None,
    ]
    assert found["output_pusd"][0] == 100_000_000
    assert set(found["card_version"]) == {tf.price_book().version}


def test_any_frame_and_any_time():
    calls = {
        **CALLS,
        "ts": [datetime(2026, 7, 29, 23, 30, tzinfo=timezone(timedelta(hours=-7)))] * 4,
        "model": ["gpt-5.6-luna"] * 4,
        "provider": ["openai"] * 4,
    }
    later = tf.price_many(calls)["cost_pusd"][0]
    naive = tf.price_many({**calls, "ts": [datetime(2026, 7, 29, 23, 30)] * 4})["cost_pusd"][0]
    day = tf.price_many({**calls, "ts": [date(2026, 7, 30)] * 4})["cost_pusd"][0]
    assert naive == 5 * later == 5 * day  # cut to a fifth at 2026-07-30T00:00Z
    assert tf.price_many(pl.LazyFrame(calls))["cost_pusd"][0] == later
    assert tf.price_many({**calls, "ts": ["2026-07-30T06:30:00Z"] * 4})["cost_pusd"][0] == later


@pytest.mark.parametrize(
    "counts",
    [
        {"cache_read_tokens": 500, "cache_read_audio_tokens": 100},
        {"input_audio_tokens": 500, "cache_read_audio_tokens": 100},
        {"cache_read_audio_tokens": 100},
        {"cache_write_long_tokens": 500},
    ],
)
def test_an_unknown_whole_is_at_least_its_part(counts):
    model = (
        ("anthropic", "claude-sonnet-4-5") if "cache_write_long_tokens" in counts else ("google", "gemini-2.5-flash")
    )
    call = {"input_tokens": 1000, "output_tokens": 10, **counts}
    many = tf.price_many(
        {**{k: [v] for k, v in call.items()}, "provider": [model[0]], "model": [model[1]], "ts": [date(2026, 10, 1)]},
        meters=True,
    )
    one = tf.price(provider=model[0], model=model[1], at="2026-10-01", usage=call)
    assert many["cost_pusd"][0] == one.cost_pusd
    assert all(line.units > 0 for line in one.meters.values())
    assert all(many[name][0] >= 0 for name in many.columns if name.endswith("_units"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"input_tokens": [1, 2, -3, 4]}, "row 2: input_tokens = -3 is no possible count"),
        ({"input_tokens": [1.0, 2.5, 3.0, 4.0]}, "row 1: input_tokens = 2.5 is not a whole number"),
        ({"cache_read_tokens": [0, 0, 6, 0]}, "row 2: input_tokens = 5 is less than cache_read_tokens"),
        ({"output_tokens": ["1"] * 4}, "holds String, not counts"),
        ({"input_tokens": [1.0, float("nan"), 3.0, 4.0]}, "row 1: input_tokens = nan is not a whole number"),
        (
            {
                "cache_read_tokens": [5, 0, 0, 0],
                "cache_read_audio_tokens": [6, 0, 0, 0],
                "input_audio_tokens": [9, 0, 0, 0],
            },
            "row 0: cache_read_tokens = 5 is less than",
        ),
    ],
)
def test_impossible_counts_name_the_row(change, says):
    with pytest.raises(UsageError) as raised:
        tf.price_many({**CALLS, **change})
    assert says in str(raised.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"output_tokens": None}, 'no column "output_tokens"'),
        ({"cache_raed_tokens": [0] * 4}, 'unknown count "cache_raed_tokens", which would not be priced. Did you mean'),
        ({"cost_pusd": [0] * 4}, 'already has a column "cost_pusd"'),
        ({"ts": ["2026-10-01T12:00:00"] * 4}, 'column "ts": 2026-10-01T12:00:00 has no zone'),
        ({"serviceTier": ["flex"] * 4}, "the requests table calls it service_tier"),
        ({"web_search": [1] * 4}, "the requests table calls it web_searches"),
        ({"is_billable": ["maybe"] * 4}, "does not hold what its name says"),
    ],
)
def test_columns_are_checked(change, says):
    calls = {name: values for name, values in {**CALLS, **change}.items() if values is not None}
    with pytest.raises(ColumnError) as raised:
        tf.price_many(calls)
    assert says in str(raised.value)
