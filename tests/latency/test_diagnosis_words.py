"""What a diagnosis says where a provider serves the model, and where callers give up: on windows made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from tenfold.latency import diagnosis
from tenfold.latency.answers import Shift
from tenfold.latency.records import Finding, Interval

from .windows_made import made_pair

MOVED = {
    "ttft": Shift(0.84, 1.91, Interval(0.93, 1.07, 1.20)),
    "tpot": Shift(0.031, 0.032, Interval(-0.001, 0.001, 0.003)),
}
FINDINGS = (
    Finding(3, "", "not separable", missing=("cache_read_tokens",)),
    Finding(4, "", "not separable", missing=("queue_ms", "kv_usage_ratio")),
    Finding(5, "", "not separable", missing=("deployment", "events")),
    Finding(7, "", "not separable", missing=("prompt_hash", "attempt")),
)


def side(count=100, **more):
    return {"ts_s": 1_788_825_600 + np.arange(count, dtype=float), **more}


def later(count=100, **more):
    return {"ts_s": 1_788_826_000 + np.arange(count, dtype=float), **more}


def test_a_provider_gets_a_ticket_and_no_column_of_its_servers_is_asked_for():
    pair = replace(made_pair(side(), later()), billed=("openai", "gpt-4o"))
    ticket, log, events = diagnosis._next_to_log(pair, FINDINGS, MOVED)
    assert ticket == (
        "Steps 4 to 6 are the provider's: open a ticket with the split (TTFT 0.84 s -> 1.91 s (+1.07 [0.93, 1.20])) "
        "and the time (from 2026-09-08 00:06 UTC)."
    )
    assert log == "Meanwhile log cache_read_tokens, prompt_hash, attempt."
    assert "--events" in events


@pytest.mark.parametrize(
    ("billed", "more", "is_hosted"),
    [
        (("openai", "m"), {}, True),
        (("self-hosted", "m"), {}, False),
        (("", "m"), {}, False),
        (("openai", "m"), {"replica": "gpu-1"}, False),
        (("openai", "m"), {"queue_s": 0.1}, False),
    ],
)
def test_who_serves(billed, more, is_hosted):
    pair = replace(made_pair(side(**more), later(**more)), billed=billed)
    assert diagnosis._is_hosted(pair) is is_hosted


def test_on_own_servers_columns_are_named_by_step_and_files_once():
    said = diagnosis._next_to_log(made_pair(side(), later()), FINDINGS, MOVED)
    assert said[1] == "For step 4 log queue_ms, kv_usage_ratio."
    assert said[2] == "For step 5 log deployment."
    assert sum("events" in each for each in said) == 1


@pytest.mark.parametrize(
    ("failed", "end_s", "gave_up_s"),
    [
        (0.10, 2.0, 2.0),  # within a tenth of the p99 after, 1.91 s
        (0.10, 2.2, None),
        (0.10, 1.5, None),
        (0.02, 2.0, None),  # too few failed
    ],
)
def test_callers_who_give_up_where_the_tail_ends(failed, end_s, gave_up_s):
    names = ["timeout" if n < 100 * failed else "ok" for n in range(100)]
    pair = made_pair(side(), later(status=names, ok=[name == "ok" for name in names], seen_end_s=end_s))
    assert diagnosis._gave_up(pair.after, MOVED) == gave_up_s
