"""Self-hosted serving on both engines: fleets, traffic, break-even and arrivals."""

from __future__ import annotations

import pytest
from fleets import fleet_file, ledger_of, pool, request
from small_logs import ledger
from spark.rich import PRICES, rich_rows

import tenfold as tf
from tenfold.ledger import Ledger
from tenfold.serving.api_mix import api_mix
from tenfold.serving.simulator.arrivals import _from_log
from tenfold.serving.traffic import measure, write_trace


@pytest.fixture(scope="module")
def made():
    return ledger(rich_rows(3, 60), PRICES)


def on(twins, one):
    return Ledger(one.log.on(twins), one.book, one.window, one.price_at)


def test_fleet(twins, tmp_path):
    requests = [request(100 * n, 150, uncached=100 + n, cached=7 * n, replica=("a", None)[n % 2]) for n in range(8)]
    requests.append(request(50, None))
    requests.append(request(60, 1e12))
    made = ledger_of(requests, tmp_path)
    file = fleet_file(tmp_path, pool(replicas=2))
    own, found = tf.on_fleet(made, file), tf.on_fleet(on(twins, made), file)
    assert found.bill_pusd == own.bill_pusd
    assert found.hosted == own.hosted
    assert found.composition(["model"]).frame.equals(own.composition(["model"]).frame)


def test_traffic_and_trace(made, twins, tmp_path):
    twin = on(twins, made)
    assert measure(twin) == measure(made)
    one, other = tmp_path / "one.jsonl", tmp_path / "other.jsonl"
    assert write_trace(twin, one) == write_trace(made, other)
    assert one.read_text() == other.read_text()


def test_break_even(made, twins):
    where = "provider = 'openai'"
    assert api_mix(on(twins, made), where=where) == api_mix(made, where=where)
    api = ("openai", "stacks")
    assert api_mix(on(twins, made), where=where, api=api) == api_mix(made, where=where, api=api)


def test_arrivals(made, twins, monkeypatch):
    own = _from_log(made.log, "log")
    twins.everywhere(monkeypatch)
    found = _from_log(made.log, "log")
    assert (found.arrival_s == own.arrival_s).all()
    assert (found.input_tokens == own.input_tokens).all()
