"""Windows that are odd but true: no times, no tokens, retries alone, other names; every warning of numpy fails."""

from __future__ import annotations

import dataclasses
import math

import diagnoses as made
import numpy as np
import pytest

from tenfold.latency import diagnosis, front_end
from tenfold.latency.answers import instant_text
from tenfold.latency.facts import facts_of
from tenfold.latency.shift import shifts
from tenfold.latency.steps import s2_lengths, s3_cache
from tenfold.latency.visible import visible

from .windows_made import made_pair


def sides(**more):
    """Two windows of 2,000 requests, the same for all."""
    ts = np.arange(2000.0)
    names = np.array(["a", "b"], object)[np.arange(2000) % 2]
    side = {"tenant": names, "route": names, "input": 1000.0, "cached": 500.0, **more}
    return {"ts_s": ts, **side}, {"ts_s": ts + 2000, **side}


def told(step, before, after):
    pair = made_pair(before, after)
    return step.look(pair, facts_of(pair, 0.95))


def test_a_document_has_no_time_where_none_is_known():
    assert instant_text(math.nan) is None
    assert dataclasses.replace(made.no_change(), windows=(math.nan,) * 4).as_dict()["windows"] == {
        side: {"from": None, "to": None} for side in ("before", "after")
    }


def test_answers_of_no_token_have_no_shift():
    pair = made_pair(*sides(output=0.0))
    moved = shifts(pair, facts_of(pair, 0.95))
    assert (moved["output"].before, moved["output"].after, moved["output"].is_change) == (0.0, 0.0, False)


def test_windows_of_retries_alone_tell_nothing_of_the_cache():
    (found,) = told(s3_cache, *sides(attempt=1.0))
    assert found.status == "not separable"
    assert "retries alone" in found.evidence[0]


def test_prompts_that_need_no_prefill_have_no_ratio():
    assert front_end._apart(0.0, 0.0) == front_end._apart(5.0, 5.0) == 0
    assert front_end._apart(0.0, 5.0) == front_end._apart(5.0, 0.0) == math.inf
    assert front_end._apart(1.0, math.e) == pytest.approx(1)


def test_renamed_tenants_have_no_lengths_to_compare():
    before, after = sides()
    (found,) = told(s2_lengths, before, {**after, "tenant": "c"})
    assert found.status == "innocent"
    assert found.evidence[0].startswith("No tenant and route is in both windows")


@pytest.mark.parametrize(
    ("verdicts", "main"),
    [
        ((("refused", 200), ("no_change", 3000)), "no_change"),
        ((("no_change", 200), ("refused", 3000)), "refused"),
        ((("refused", 3000), ("partly", 200), ("explained", 10)), "explained"),
    ],
)
def test_a_small_model_that_tells_nothing_does_not_decide(monkeypatch, verdicts, main):
    found = [
        dataclasses.replace(made.no_change(), verdict=verdict, requests=(9000, size)) for verdict, size in verdicts
    ]
    monkeypatch.setattr(diagnosis, "diagnose_pair", lambda place, _: found[place])
    assert diagnosis.answers_of(range(len(found))).main.verdict == main


def test_control_characters_are_written_out_and_other_signs_kept():
    assert visible("a\x1b[31m\x07\x9b\x7f") == r"a\x1b[31m\x07\x9b\x7f"
    assert visible("a\tb\r\nc\u2028d") == "a b  c d"
    assert visible("é\u00a0猫 😀") == "é\u00a0猫 😀"
