"""Fleet files: what they say, what they cost, and how mistakes in them are named."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from fleets import MODEL, START, at, fleet_file, pool

from tenfold.errors import ServingError
from tenfold.serving.fleet import Fleet, Period, Pool

HOUR = 3600


def test_reads_every_key(tmp_path):
    text = pool(replicas=2, usd=2.95, tp=4, spec="llama-3.1-8b", weights="fp8", kv="fp8", commitment="reserved_1y",
                max_batch=64, **{"from": "2026-07-01", "to": "2026-08-01T12:00:00Z"})  # fmt: skip
    (read,) = Fleet.load(fleet_file(tmp_path, text)).pools
    assert read == Pool(
        MODEL, "h100-sxm", 2, Decimal("2.95"), tp=4, commitment="reserved_1y", since=START,
        until=START + timedelta(days=31, hours=12), spec="llama-3.1-8b", weights="fp8", kv="fp8", max_batch=64,
    )  # fmt: skip
    assert read.gpus == 8
    assert read.deployment.weights.name == "fp8"


def test_bill_is_gpus_times_price_times_hours(tmp_path):
    (read,) = Fleet.load(fleet_file(tmp_path, pool(replicas=2, usd=2.95, tp=4))).pools
    month = timedelta(hours=730)
    assert read.bill_pusd(START, START + month) == 17_228 * 10**12  # 8 x 2.95 x 730, by hand
    assert read.sum_text(START, START + month) == "8 GPUs x $2.95/h x 730 h"


def test_bill_is_half_even_to_the_picodollar():
    # 3.6e-9 USD an hour is 1 pUSD a second: half a second is half a pUSD
    one = Pool(MODEL, "h100-sxm", 1, Decimal("0.0000000036"))
    bills = [one.bill_pusd(START, START + timedelta(seconds=seconds)) for seconds in (0.5, 1.5, 2.5)]
    assert bills == [0, 2, 2]


def covered(since, until, *log):
    """A window in hours, covered by a log from one hour to another: by default all of it."""
    log = [at(hour * HOUR) for hour in log] or [at(since * HOUR), at(until * HOUR)]
    return Period(at(since * HOUR), at(until * HOUR), tuple(log))


@pytest.mark.parametrize(
    ("pool", "billed"),
    [
        ((None, None), (10, 20)),  # the log says how long
        ((5, None), (5, 20)),  # what is stated says more, on its side
        ((None, 90), (10, 90)),
        ((5, 200), (5, 100)),  # never beyond the window
        ((12, 15), (12, 15)),  # or less
        ((30, None), None),  # after the log: nothing says until when
        ((110, 120), None),
    ],
)
def test_a_pool_is_billed_while_the_log_runs_or_as_it_states(pool, billed):
    since, until = (None if hour is None else at(hour * HOUR) for hour in pool)
    one = Pool(MODEL, "h100-sxm", 1, Decimal(1), since=since, until=until)
    assert one.billed(covered(0, 100, 10, 20)) == (billed and tuple(at(hour * HOUR) for hour in billed))
    alone = one.billed(Period(at(0), at(100 * HOUR), None))  # the log is elsewhere
    assert (alone is not None) is (pool in ((5, 200), (12, 15)))


def test_stretches_cut_where_pools_change():
    def made(since, until, model=MODEL):
        return Pool(model, "h100-sxm", 1, Decimal(1), since=since, until=until)

    always, part, other = made(None, None), made(at(HOUR), at(2 * HOUR)), made(at(3 * HOUR), None, "Llama-3.1-70B")
    late = made(at(8 * HOUR), None)
    fleet = Fleet((always, part, other, late))
    found = [(one.model, one.since, one.until, one.pools) for one in fleet.stretches(covered(0, 4))]
    name = MODEL.lower()
    assert found == [
        (name, at(0), at(HOUR), (always,)),
        (name, at(HOUR), at(2 * HOUR), (always, part)),
        (name, at(2 * HOUR), at(4 * HOUR), (always,)),
        ("llama-3.1-70b", at(3 * HOUR), at(4 * HOUR), (other,)),
    ]


def test_a_gap_has_no_stretch():
    first = Pool(MODEL, "h100-sxm", 1, Decimal(1), until=at(HOUR))
    last = Pool(MODEL, "h100-sxm", 1, Decimal(1), since=at(2 * HOUR))
    found = [(one.since, one.until) for one in Fleet((first, last)).stretches(covered(0, 3))]
    assert found == [(at(0), at(HOUR)), (at(2 * HOUR), at(3 * HOUR))]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (pool().replace("replicas", "replica"), 'unknown key "replica". Did you mean "replicas"?'),
        (pool(gpu="h100-sxn"), 'GPU "h100-sxn" is not in pricing/gpus.toml'),
        (pool(model="our-chat-model"), "write that in spec"),
        (pool(spec="llama-3.1-9b"), 'pool 1 (model "meta-llama/Llama-3.1-8B-Instruct"): model "llama-3.1-9b"'),
        (pool(weights="fp7"), 'weights "fp7" is not known'),
        (pool(usd=-1), "must be USD for one GPU and hour, at least 0"),
        (pool(usd='"2.95"'), "must be USD for one GPU and hour, at least 0"),
        (pool(usd="1e-13"), "finer than 1e-12 USD"),
        (pool(replicas=0), "replicas"),
        (pool(replicas=10**18), "replicas: must be at most 1000000"),
        (pool(tp=10**9), "tp: must be at most 1024"),
        (pool(commitment="reserved"), "commitment"),
        (pool(**{"from": "2026-07-02", "to": "2026-07-02"}), "to must be after from"),
        (pool(**{"from": "2026-07-02T00:00:00"}), "an instant needs a zone"),
        (pool(model="meta-llama/Llama-3.1-70B-Instruct"), "its weights do not fit on 1 h100-sxm in bf16"),
        ("", "no [[pool]] table"),
        ("[[pool]", "not valid TOML"),
        ("[pool]\nmodel = 1", "pool must be written as [[pool]] tables"),
    ],
)  # fmt: skip
def test_mistakes_are_named(tmp_path, text, said):
    file = fleet_file(tmp_path, text)
    with pytest.raises(ServingError) as caught:
        Fleet.load(file)
    assert said in str(caught.value)
    assert "fleet.toml" in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ServingError, match="cannot be read"):
        Fleet.load(tmp_path / "none.toml")


def test_the_second_pool_is_counted_from_one(tmp_path):
    with pytest.raises(ServingError, match=r"pool 2 \(model"):
        Fleet.load(fleet_file(tmp_path, pool(), pool(gpu="nope")))


def test_all_missing_keys_of_a_pool_at_once(tmp_path):
    file = tmp_path / "fleet.toml"
    for text, said in (
        ("[[pool]]\nreplicas = 2\n", 'pool 1 (model "?"): model, gpu, usd_per_hour missing'),
        ('[[pool]]\nmodel = "m"\ngpu = "l4"\n', 'pool 1 (model "m"): usd_per_hour missing'),
        ('[[pool]]\nmodel = "m"\ngpu = "l4"\nusd_per_hour = 1\ntp = "2"\n', "tp: write a whole number, not '2'"),
        ('[[pool]]\nmodel = "m"\ngpu = "l4"\nusd_per_hour = 1\ntp = 0\n', "tp: must be at least 1, not 0"),
        ('[[pool]]\nmodel = "m"\ngpu = 4\nusd_per_hour = 1\n', 'gpu: write text in quotes, such as "...", not 4'),
    ):
        file.write_text(text)
        with pytest.raises(ServingError, match=re.escape(said)):
            Fleet.load(file)
