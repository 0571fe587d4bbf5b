"""Shares of the tail's shift, held against a world where every part can really be put back."""

from itertools import combinations
from math import factorial

import numpy as np
import pytest

from tenfold.latency.blame import parts_of_load
from tenfold.latency.cells import kinds_of, ranked, weights_of
from tenfold.latency.counterfactual import Counterfactual, Parts
from tenfold.latency.facts import facts_of

from .windows_made import made_pair

COUNT = 20_000


def world(knobs, seed):
    """Requests of three tenants: a wait, and a service time in proportion to uncached tokens.

    The same seed draws the same requests, so that knobs are all that differs.
    """
    random = np.random.default_rng(seed)
    uniform = random.random((6, COUNT))
    shares = [0.2, 0.3, 0.5] if "mix" in knobs else [0.5, 0.3, 0.2]
    tenant = np.searchsorted(np.cumsum(shares), uniform[0], side="right").clip(0, 2)
    normal = random.standard_normal((3, COUNT))
    tokens = np.exp(np.log([300.0, 1000, 4000])[tenant] + (0.6 + 0.3 * ("within" in knobs)) * normal[0]).round() + 1
    hit = (0.1 if "cache" in knobs else 0.7) + 0.2 * uniform[1]
    cached = np.floor(tokens * hit)
    wait = -np.log(uniform[2]) * (0.4 if "prompts" in knobs else 0.05)
    service = (0.02 + 2e-4 * (tokens - cached)) * np.exp(0.1 * normal[1]) * (1.6 if "deploy" in knobs else 1.0)
    ttft = wait + service
    return {
        "ts_s": np.linspace(0, 3600, COUNT, endpoint=False), "input": tokens, "cached": cached, "queue_s": wait,
        "ttft_s": ttft, "e2e_s": ttft + 0.5, "output": np.full(COUNT, 20.0),
        "tenant": np.array(["a", "b", "c"], object)[tenant],
    }  # fmt: skip


def q99(rows):
    values = np.sort(rows["ttft_s"])
    return values[int(np.ceil(0.99 * COUNT)) - 1]


def truth(knobs, seed):
    """Shapley over the worlds of every subset of knobs."""
    out = dict.fromkeys(knobs, 0.0)
    for knob in knobs:
        others = [other for other in knobs if other != knob]
        for size in range(len(others) + 1):
            weight = factorial(size) * factorial(len(knobs) - size - 1) / factorial(len(knobs))
            for there in combinations(others, size):
                out[knob] += weight * (q99(world({*there, knob}, seed)) - q99(world(set(there), seed)))
    whole = q99(world(set(knobs), seed)) - q99(world(set(), seed))
    return {knob: amount / whole for knob, amount in out.items()}


def found(knobs, seed):
    before, after = world(set(), seed + 1), world(set(knobs), seed)
    after["ts_s"] = after["ts_s"] + 3600
    pair = made_pair(before, after)
    everything = np.ones(COUNT, bool)
    residuals = (("deploy", everything, frozenset({"ttft"})),) if "deploy" in knobs else ()
    parts = Parts(cache="cache" in knobs, mix="mix" in knobs, within="within" in knobs, residuals=residuals)
    return Counterfactual(pair, facts_of(pair, 0.99), parts).shares("ttft")


@pytest.mark.parametrize(
    "knobs",
    [("prompts",), ("cache",), ("mix",), ("deploy",), ("within",), ("prompts", "cache"), ("cache", "mix", "deploy")],
    ids="+".join,
)
def test_shares_are_those_of_the_world(knobs):
    seed = 27
    shares = found(knobs, seed)
    expected = truth(knobs, seed)
    for knob, share in expected.items():
        assert shares.parts[knob].mid == pytest.approx(share, abs=0.1), knob
        assert shares.parts[knob].low <= shares.parts[knob].mid <= shares.parts[knob].high
    for name, share in shares.parts.items():
        if name not in expected:
            assert abs(share.mid) < 0.1, name
    assert abs(shares.unexplained.mid) < 0.1
    total = sum(share.mid for share in shares.parts.values()) + shares.unexplained.mid
    assert total == pytest.approx(1, abs=1e-9)


def test_weights_give_back_the_composition():
    """Two tenants, one length: by hand. a goes from 3 of 4 to 1 of 4 requests."""
    before = {"ts_s": np.arange(400.0), "tenant": np.array(["a"] * 300 + ["b"] * 100, object)}
    after = {"ts_s": np.arange(400.0), "tenant": np.array(["a"] * 100 + ["b"] * 300, object)}
    pair = made_pair(before, after)
    used = np.ones(400, bool), np.ones(400, bool)
    found = weights_of(kinds_of(pair), (pair.before.input, pair.after.input), used)
    assert found.mix[:100].tolist() == [3.0] * 100
    assert found.mix[100:] == pytest.approx(1 / 3)
    assert found.within == pytest.approx(1)
    assert found.overlap == 1
    assert found.effective == pytest.approx(400**2 / (100 * 9 + 300 / 9) / 400)


def test_values_get_the_reference_value_of_their_rank():
    values = np.array([5.0, 1.0, np.nan, 3.0, 10.0, 20.0])
    cells = np.array([0, 0, 0, 0, 1, 1])
    reference = np.array([100.0, 300.0, 200.0, 7.0, 9.0])
    mapped = ranked(values, reference, (cells, np.array([0, 0, 0, 1, 1])), least=2)
    assert mapped[[0, 1, 3]].tolist() == [300.0, 100.0, 200.0]
    assert np.isnan(mapped[2])
    assert mapped[4:].tolist() == [7.0, 9.0]


def test_load_is_shared_as_a_queue_would():
    """From u0 = 0.5, two loads of x1.3 each: W = u/(1-u) is 1, 1.857 with one, 5.452 with both."""
    one, both = 0.65 / 0.35, 0.845 / 0.155
    logs = [np.log(1.3)] * 2
    assert parts_of_load(logs, both / 1.0) == pytest.approx([0.5, 0.5])
    first, second, ratio = 1.2, 1.5, (0.9 / 0.1) / 1.0
    shares = parts_of_load([np.log(first), np.log(second)], ratio)
    waits = {name: 0.5 * made / (1 - 0.5 * made) for name, made in (("a", first), ("b", second), ("ab", 1.8))}
    a = (waits["a"] - 1 + waits["ab"] - waits["b"]) / 2 / (waits["ab"] - 1)
    assert shares == pytest.approx([a, 1 - a])
    assert one > 1.8
    # far from saturation, and where the wait grows less than the load, in proportion to what each adds
    assert parts_of_load([0.2, 0.2], 1.1) == pytest.approx([0.5, 0.5])
    assert parts_of_load([0.3], 8.0) == [1.0]


def test_lengths_that_hardly_meet_have_no_share():
    """Prompts forty times as long: no request after is like one before, and nothing can be reweighted."""
    before, after = world(set(), 1), world(set(), 2)
    after["input"] = after["input"] * 40
    after["ts_s"] = after["ts_s"] + 3600
    pair = made_pair(before, after)
    game = Counterfactual(pair, facts_of(pair, 0.99), Parts(within=True))
    assert set(game.shares("ttft").parts) == {"prompts", "answers"}
    assert game.apart["ttft"] < 0.3
    assert "within" in game.shares("output").parts


def test_answers_of_any_length_are_put_back_by_rank():
    before, after = world(set(), 1), world(set(), 2)
    before["output"], after["output"] = (np.random.default_rng(at).integers(20, 200, COUNT) for at in (3, 4))
    after["output"] = after["output"] * 40.0
    after["ts_s"] = after["ts_s"] + 3600
    pair = made_pair(before, after)
    shares = Counterfactual(pair, facts_of(pair, 0.99), Parts(within=True)).shares("output")
    assert shares.parts["within"].mid == pytest.approx(1, abs=0.01)
