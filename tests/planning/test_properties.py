"""Metamorphic properties of the levers on drawn logs: what a change to the log or the prices must do to every figure.

They go by the numbers M1 to M25 of the plan of proofs. Those that other tests hold, wholly or in part:

M2   test_plan.py::test_an_empty_log; a lever without traffic: M15 here
M7   of a verifier: test_route_cascade.py, M13 there (a line in what it costs); of harm:
     test_baselines.py::test_semantic_net_falls_with_the_harm_and_crosses_zero; of prices: test_properties_of_prices.py
M8   test_lru.py, test_prefix.py (replay), test_prefix_replay.py::test_properties
M9   test_prefix_replay.py::test_a_cache_that_costs_what_input_costs_saves_nothing
M10  of prefixes: test_prefix.py::test_merged_pools_and_longer_lifetimes_never_read_less
M12  test_route.py::test_the_same_model_saves_nothing
M13  test_route_cascade.py::test_a_cascade_lies_between_the_small_model_and_more_than_the_big_one
M14  of any game, with the null player: test_attribution.py
M16  by provider: test_batch_stacking.py::test_case_29_the_stack_matrix; on drawn requests: test_properties_of_prices.py
M20  test_prefix_replay.py::test_properties, and M21 and M22 with it
M23  test_intervals.py::test_more_blocks_narrow_the_interval_by_the_root and ::test_bounds_hold_the_sum_exactly
M4, M18, M24, M25: test_properties_of_prices.py
"""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from planning.worth import LEVER, PAIR, SEEDS, drawn_plan, drawn_worth, plan_of, worth_of
from planted.base import Pred
from planted.drawn import LEVERS, drawn
from replay.frames import SECOND, exact, prefix

NOBODY = Pred("feature = 'nobody'", lambda request: request.get("feature") == "nobody")
HEAD = ("request_id", "retry_of", "session_id", "prompt_hash")


def without(log, **keys):
    """The log without some keys of some levers' tables."""
    tables = log.assume.items()
    assume = {name: {k: v for k, v in table.items() if k not in keys.get(name, ())} for name, table in tables}
    return replace(log, assume=assume)


def adding_up(log):
    """The log without what counts once however much traffic there is: places in a cache, and fixed charges."""
    return without(log, skip=("capacity",), distill=("training_usd", "hosting_usd_per_hour"))


def copied(log):
    """The same requests of other orgs, in other sessions, with other prompts."""

    def other(row):
        new = {name: row[name] and f"{row[name]} copy" for name in HEAD if name in row}
        hashes = row.get("prefix_hashes") and [f"{one} copy" for one in row["prefix_hashes"]]
        return {**row, **new, "org": f"{row['org']} copy", **({"prefix_hashes": hashes} if hashes else {})}

    def scored(row):
        return {**row, "request_id": f"{row['request_id']} copy"} if row.get("request_id") else row

    assume = {}
    for name, table in log.assume.items():
        evals = table.get("evals")
        both = {"evals": [*evals, *(scored(one) for one in evals if one.get("request_id"))]} if evals else {}
        assume[name] = {**table, **both}
    return replace(log, rows=[*log.rows, *map(other, log.rows)], assume=assume)


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m1_no_more_is_saved_than_the_touched_requests_cost(seed, size, levers):
    log = drawn(seed, size, levers)
    found = drawn_worth(seed, size, levers)
    for name, saved in found.alone.items():
        assert saved <= found.addressed[name], name
        # the exceptions below 0: fees, fixed charges, premiums of writes, lost reads, dearer targets
        if name == "trim" or (name == "skip" and not log.assume[name]["lookup_usd"]):
            assert saved >= 0, name
    assert max(found.sets.values()) <= found.spend


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m3_the_log_twice_saves_twice(seed, size, levers):
    log = adding_up(drawn(seed, size, levers))
    once, twice = worth_of(log), worth_of(copied(log))
    assert twice.spend == 2 * once.spend
    assert twice.alone == {name: 2 * pusd for name, pusd in once.alone.items()}
    assert twice.sets == {names: 2 * pusd for names, pusd in once.sets.items()}


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_m3_the_log_twice_has_intervals_twice_as_wide(seed):
    log = adding_up(drawn(seed, 100, PAIR))
    once, twice = plan_of(log), plan_of(copied(log))
    for one, other in zip(once.estimates, twice.estimates, strict=True):
        for end, double in zip(one.saving, other.saving, strict=True):
            assert abs(2 * end - double) <= 2, one.name


def document(plan):
    """What a plan says, but for its dates."""
    told = plan.as_dict()
    del told["window"], told["plan"]["prices_at"]
    return told


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m5_the_order_of_the_rows_changes_nothing(seed, size, levers):
    log = drawn(seed, size, levers)
    rows = random.Random(seed).sample(log.rows, len(log.rows))
    assert plan_of(replace(log, rows=rows)).as_dict() == drawn_plan(seed, size, levers).as_dict()


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m6_whole_days_later_all_is_the_same(seed, size, levers):
    log = drawn(seed, size, levers)
    rows = [{**row, "ts": row["ts"] + timedelta(days=17)} for row in log.rows]
    assert document(plan_of(replace(log, rows=rows))) == document(drawn_plan(seed, size, levers))


@st.composite
def calls(draw):
    """Requests in scopes and for keys, one at a time, each answered at once."""
    rows, now = [], 0
    for rid in range(draw(st.integers(0, 20))):
        now += draw(st.integers(1, 3)) * SECOND
        key, scope = draw(st.sampled_from("ab")), draw(st.sampled_from("xy"))
        rows.append({"rid": rid, "cache_key": f"{scope}{key}", "ts": now, "stored_at": now + 1})
    return rows


@settings(max_examples=6, deadline=None)
@given(calls(), st.integers(1, 8))
def test_m10_one_scope_for_all_hits_no_less(rows, ttl_s):
    hold_m10(rows, ttl_s)


@pytest.mark.full
@settings(max_examples=200, deadline=None)
@given(calls(), st.integers(1, 8))
def test_m10_one_scope_for_all_hits_no_less_on_many_logs(rows, ttl_s):
    hold_m10(rows, ttl_s)


def hold_m10(rows, ttl_s):
    # Exceptions: equal requests at one instant, or while an answer is still being made, all miss. In a wider scope
    # answers expire at other times, which may be just before such a burst.
    merged = [{**row, "cache_key": row["cache_key"][1:]} for row in rows]
    split, one = (exact(found, ttl_s * SECOND) for found in (rows, merged))
    assert len(one) >= len(split)


@pytest.mark.full
@pytest.mark.parametrize("lever", LEVERS)
@pytest.mark.parametrize("seed", range(3))
def test_m11_what_is_eligible_is_saved_from_none_to_all(seed, lever):
    log = adding_up(drawn(seed, 150, (lever,)))
    table = {**log.assume[lever], "where": Pred("true", bool)}

    def saved(where):
        found = worth_of(replace(log, assume={lever: {**table, "where": Pred(where, bool)}}))
        return found.alone.get(lever, 0), found.addressed.get(lever, 0)

    assert saved("false") == (0, 0)
    everything = saved("true")
    if lever not in ("skip", "prefix_cache"):  # of those, one half finds what the other has stored
        halves = [saved("feature in ('ask', 'chat')"), saved("feature not in ('ask', 'chat')")]
        assert tuple(map(sum, zip(*halves, strict=True))) == everything


@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m14_shares_sum_and_do_not_know_the_order_of_the_levers(seed, size, levers):
    log = drawn(seed, size, levers)
    plan, turned = drawn_plan(seed, size, levers), plan_of(log, levers=[LEVER[name] for name in reversed(levers)])
    ok = [one for one in plan.estimates if one.status == "ok"]
    assert sum(one.shapley_pusd for one in ok) == plan.joint_all_pusd
    assert sum(pusd for _, pusd in plan.roadmap) == plan.saving.mid
    assert document(turned) == document(plan)


@pytest.mark.full
@pytest.mark.parametrize(("seed", "size", "levers"), SEEDS)
def test_m15_a_lever_without_traffic_leaves_the_others_alone(seed, size, levers):
    chosen = levers[:3] if len(levers) > 3 else levers
    log, more = drawn(seed, size, chosen), drawn(seed, size, LEVERS)
    idle = {name: {**more.assume[name], "where": NOBODY} for name in LEVERS if name not in chosen}
    found, other = drawn_worth(seed, size, chosen), worth_of(replace(log, assume={**log.assume, **idle}))
    assert (other.alone, other.sets) == (found.alone, found.sets)


def prompt(rid, pool, at, text, first_token_s=0):
    """A request whose blocks are named by the text up to them; its cache lives for six seconds."""
    return {
        "rid": rid,
        "combo": 0,
        "pool": pool,
        "ts": at,
        "readable_at": at + first_token_s * SECOND,
        "lifetime_us": 6 * SECOND,
        "blocks": [text[: n + 1] for n in range(len(text))],
    }


@st.composite
def prompts(draw):
    rows, now = [], 0
    for rid in range(draw(st.integers(1, 14))):
        now += draw(st.integers(0, 4)) * SECOND
        text, pool, first = (
            draw(st.text("ab", max_size=4)),
            draw(st.sampled_from("ppq")),
            draw(st.sampled_from((0, 1, 5))),
        )
        rows.append(prompt(rid, pool, now, text, first))
    return rows


# without the second of its pool, the last finds nothing; one of another pool does nothing
BRIDGED = [prompt(n, pool, at * SECOND, "ab") for n, (pool, at) in enumerate((("p", 0), ("p", 5), ("q", 6), ("p", 11)))]
APART = [prompt(0, "q", 0, "ab"), prompt(1, "p", SECOND, "ab")]


@settings(max_examples=6, deadline=None)
@given(prompts(), st.integers(0, 13))
@example(BRIDGED, 1)
@example(APART, 0)
def test_m17_without_a_request_no_other_reads_more(rows, place):
    hold_m17(rows, place)


@pytest.mark.full
@settings(max_examples=200, deadline=None)
@given(prompts(), st.integers(0, 13))
def test_m17_without_a_request_no_other_reads_more_on_many_logs(rows, place):
    hold_m17(rows, place)


def hold_m17(rows, place):
    gone = rows[place % len(rows)]
    whole, rest = prefix(rows), prefix([row for row in rows if row is not gone])
    others = {row["rid"]: row for row in rows if row is not gone}
    assert all(blocks <= whole[which] for which, blocks in rest.items())
    for (_, rid), blocks in rest.items():
        # and one reads less only if that request had been in its pool before it, with its first block
        one = others[rid]
        is_after = one["pool"] == gone["pool"] and one["ts"] > gone["ts"]
        assert blocks == whole[0, rid] or (is_after and one["blocks"][:1] == gone["blocks"][:1])


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_m19_features_with_caches_of_their_own_add_up(seed):
    # but for fees: where a lever finds nothing to change it is not put in place, and charges nothing
    log = without(adding_up(drawn(seed, 100, LEVERS)), skip=("lookup_usd",), route=("router_usd",))
    parts = {}
    for row in log.rows:
        feature = row["feature"]
        own = {
            "org": f"{row['org']} {feature}",
            "prompt_hash": row["prompt_hash"] and f"{feature} {row['prompt_hash']}",
        }
        if log.assume.get("prefix_cache", {}).get("policy") in ("history", "system"):
            own |= {"cache_read_tokens": 0, "cache_write_tokens": 0, "cache_write_long_tokens": 0}
        half = feature in ("ask", "chat")
        parts.setdefault(half, []).append({**row, **own, "retry_of": None})
    whole = worth_of(replace(log, rows=[row for part in parts.values() for row in part]))
    found = [worth_of(replace(log, rows=part)) for part in parts.values()]
    assert whole.spend == sum(one.spend for one in found)
    assert whole.alone == {name: sum(one.alone.get(name, 0) for one in found) for name in whole.alone}
    for names, pusd in whole.sets.items():
        assert pusd == sum(one.sets[names & one.names] for one in found), names
