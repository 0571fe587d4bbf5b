"""One bill, whatever the machine does: threads, row orders, files, memory, designs, reruns give the same integers."""

import random
from datetime import UTC, datetime, timedelta

import oracle
import polars as pl
import pytest

import tenfold as tf
from tenfold.prices import price_book
from tenfold.prices.meters import METER_NAMES

START = datetime(2026, 9, 1, tzinfo=UTC)
BY = (("day", "team", "model"), ("feature",), ("user_id",), ())
# A price that changes at noon, one that changes at midnight, a band, a model without a write rate, a free one.
PRICES = """
provider = "acme"
[[price]]
model = "noon"
input = 3.000001
cache_read = 0.300007
cache_write = 3.75
output = 15
reasoning = 16.1
source = "test"
checked = 2026-11-29
[[price]]
model = "noon"
valid_from = 2026-09-03T12:00:00Z
input = 2.999999
cache_read = 0.1
cache_write = 3.7
output = 14.5
source = "test"
checked = 2026-11-29
[[price]]
model = "band"
input = 1.25
cache_read = 0.125
output = 10
source = "test"
checked = 2026-11-29
[[price]]
model = "band"
above_input_tokens = 20000
input = 2.5
cache_read = 0.25
output = 15
source = "test"
checked = 2026-11-29
[[price]]
model = "night"
service_tier = "batch"
input = 0.333333
output = 0.777777
source = "test"
checked = 2026-11-29
[[price]]
model = "night"
service_tier = "batch"
valid_from = 2026-09-04
input = 0.222222
output = 0.888888
source = "test"
checked = 2026-11-29
[[price]]
model = "gift"
input = 0
output = 0
source = "test"
checked = 2026-11-29
"""


def requests(count):
    draw = random.Random(count)
    rows = []
    for number in range(count):
        whole, answer = draw.randrange(1, 40_000), draw.randrange(1, 3_000)
        model = draw.choice(("noon", "band", "band", "night", "gift", "unheard-of"))
        rows.append({
            "request_id": f"r{number}", "provider": "acme", "model": model,
            "ts": START + timedelta(milliseconds=draw.randrange(5 * 86_400_000)),
            "service_tier": "batch" if model == "night" else "standard",
            "team": draw.choice(("a", "b", None)), "feature": draw.choice(("x", "y")),
            "user_id": f"u{draw.randrange(40)}",
            "input_tokens": None if draw.random() < 0.02 else whole,
            "cache_read_tokens": draw.choice((None, 0, whole // 2)) if draw.random() < 0.5 else 0,
            "cache_write_tokens": whole // 3 if draw.random() < 0.1 else 0,
            "output_tokens": None if draw.random() < 0.01 else answer,
            "reasoning_tokens": draw.choice((None, 0, answer // 2)),
            "is_billable": draw.random() > 0.03,
        })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prices")
    (folder / "acme.toml").write_text(PRICES)
    return price_book(folder), oracle.load_book(folder)


def loaded(rows, folder, files=1):
    """The rows as Parquet files, in their order, loaded one after the other."""
    db = folder / "usage.duckdb"
    schema = {"ts": pl.Datetime("us", "UTC")}
    for number in range(files):
        file = folder / f"part-{number}.parquet"
        pl.DataFrame(rows[number::files], schema_overrides=schema, infer_schema_length=None).write_parquet(file)
        tf.load(file, db=db)
    return tf.open_log(db)


def bill(log, book, *, threads=2, memory="1GB", design=None):
    """Every integer of the compositions."""
    names = ("rows_seen", "requests", "unpriced_requests", "tokens", "split_unknown", "usage_unknown_requests")
    columns = [*names, "cost_pusd", *(f"{meter}_{kind}" for meter in METER_NAMES for kind in ("units", "pusd"))]
    found = []
    with tf.attribute(log, book).session() as session:
        session.engine.connection.execute(f"SET threads = {threads}; SET memory_limit = '{memory}'")
        for by in BY:
            frame = session.totals(by, priced=design)
            found.append([tuple(map(str, row)) for row in frame.select(*by, *columns).rows()])
        sums = " + ".join(f"{meter.name}_pusd" for meter in session.meters)
        rows = session.engine.fetch(f"select cast(sum({sums}) as decimal(38, 0)) as total from priced_requests")
        assert int(rows["total"][0]) == int(frame["cost_pusd"][0]), "the sum of the ledger's rows is the bill"
    return found


def hold_identical(rows, book, folder, orders, machines):
    card, slow = book
    first = None
    for number, (ordered, files) in enumerate(orders):
        place = folder / str(number)
        place.mkdir()
        log = loaded(ordered, place, files)
        for threads, memory, design in machines:
            made = bill(log, card, threads=threads, memory=memory, design=design)
            first = first or made
            assert made == first, (number, threads, memory, design)
    frame = tf.attribute(log, card).composition("user_id").frame
    by_user = dict(zip(frame["user_id"], map(int, frame["cost_pusd"]), strict=True))
    for user in ("u3", "u7", "u31"):
        assert by_user[user] == oracle.bill(slow, [row for row in rows if row["user_id"] == user]).total_pusd


def shuffled(rows):
    return random.Random(3).sample(rows, len(rows))


def test_the_same_integers(book, tmp_path):
    rows = requests(400)
    machines = [(1, "1GB", None), (4, "64MB", "priced_requests")]
    hold_identical(rows, book, tmp_path, [(rows, 1), (shuffled(rows), 2)], machines)


@pytest.mark.full
def test_the_same_integers_of_many(book, tmp_path):
    rows = requests(60_000)
    by_time = sorted(rows, key=lambda row: row["ts"], reverse=True)
    machines = [(n, limit, how) for n in (1, 2, 4) for limit in ("96MB", "1GB") for how in (None, "priced_requests")]
    orders = [(rows, 1), (rows, 3), (shuffled(rows), 2), (by_time, 1)]
    hold_identical(rows, book, tmp_path, orders, [*machines, machines[0]])
