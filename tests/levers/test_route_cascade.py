"""Another model that is tried first: who is asked again, and what both calls cost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from route_logs import UUSD, alone, asked, found_in, planned
from small_logs import facts

from tenfold.levers import batch_api
from tenfold.levers.route import LEVER
from tenfold.slo import Slo

CASCADE = {"verifier": {"usd": 0.00001}}


def test_a_cascade_asks_again_where_the_score_is_too_low(scored):
    rows = [asked(n) for n in range(3)]
    file = scored((0, 1), (1, 0))
    # r0: 700 + 10; r1: 700 + 10 and 3,000 again; r2 has no score and stays
    (found,) = planned(rows, {"evals": file, **CASCADE}).estimates
    assert found.alone_pusd == (3_000 - 710 - 710) * UUSD
    told = facts(found)
    assert (told["requests_routed"], told["requests_escalated"], told["no_score"]) == (2, 1, 1)


def test_the_first_answer_joins_the_second_prompt(scored):
    rows, file = [asked(n) for n in range(3)], scored((0, 1), (1, 0))
    # the candidate's 100 tokens at 2 each
    table = {"evals": file, "verifier": {"usd": 0.00001, "candidate_in_prompt": True}}
    assert alone(rows, table) == (3_000 - 710 - 710 - 200) * UUSD
    longer = scored((0, 1), {"request_id": "r1", "score": 0, "input_tokens": 1_000, "output_tokens": 40})
    assert alone(rows, {**table, "evals": longer}) == (3_000 - 710 - 590 - 80) * UUSD


@pytest.mark.full
def test_a_cascade_charges_a_router_only_where_one_is_stated(scored):
    table = {"evals": scored((0, 1)), **CASCADE, "router_usd": 0.000001}
    assert alone([asked(0), asked(1)], table) == (2_300 - 10 - 2) * UUSD


@pytest.mark.full
def test_both_calls_of_a_cascade_can_be_batched(scored):
    table = {"evals": scored((0, 0)), "verifier": {"usd": 0, "candidate_in_prompt": True}}
    plan = planned([asked(0)], table, levers=(LEVER, batch_api.LEVER), batch_api={"where": "true"})
    assert plan.joint_all_pusd == (3_000 - 350 - 1_600) * UUSD


def test_a_cascade_that_the_service_levels_cannot_hold_is_vetoed(scored):
    rows = [asked(n, ttft_ms=300.0, duration_ms=2_000.0) for n in range(3)] + [asked(3)]
    told = [{"request_id": f"r{n}", "score": 1, "latency_ms": ms} for n, ms in enumerate((500, 501, None, 9_000))]
    table = {"evals": scored(*told), **CASCADE, "router_usd": 0.000001}
    found = found_in(rows, table, Slo(ttft_p95_ms=800))
    assert (facts(found)["vetoed"], facts(found)["requests_routed"]) == (1, 3)  # what is not known is not vetoed
    assert facts(found)["fees_usd"] == "0.000033"  # a vetoed request pays nothing
    assert found.left_out[0]["why"] == "vetoed"


@pytest.mark.full
def test_deadlines_and_lifted_limits_of_a_cascade(scored):
    rows = [asked(n, ttft_ms=300.0, duration_ms=2_000.0) for n in range(2)]
    told = [{"request_id": f"r{n}", "score": 1, "latency_ms": ms} for n, ms in enumerate((500, 501))]
    table = {"evals": scored(*told), **CASCADE}
    assert facts(found_in(rows, table, Slo(deadline_s=2.5)))["vetoed"] == 1
    assert "vetoed" not in facts(
        found_in(rows, table, Slo(ttft_p95_ms=100, feature={"tagging": {"ttft_p95_ms": float("inf")}}))
    )
    router = {"evals": scored(*told)}
    assert "vetoed" not in facts(found_in(rows, router, Slo(ttft_p95_ms=1)))


@pytest.mark.full
@given(
    sizes=st.lists(st.tuples(st.integers(1, 5_000), st.integers(1, 500)), min_size=1, max_size=4),
    usd=st.integers(0, 500),
    has_candidate=st.booleans(),
)
@settings(max_examples=20, deadline=None)
def test_a_cascade_lies_between_the_small_model_and_more_than_the_big_one(tmp_path_factory, sizes, usd, has_candidate):
    # M13: all asked again costs at least always-big; none asked again costs the small model and the verifier
    rows = [asked(n, input_tokens=tokens, output_tokens=output) for n, (tokens, output) in enumerate(sizes)]
    file = tmp_path_factory.mktemp("evals") / "evals.csv"
    verifier = {"usd": usd / 10**6, "candidate_in_prompt": has_candidate}
    made = {}
    for score in (0, 1):
        lines = [f"r{n},small,{score}\n" for n in range(len(rows))]
        file.write_text("request_id,model,score\n" + "".join(lines), encoding="utf-8")
        made[score] = alone(rows, {"evals": str(file), "verifier": verifier})
    small = sum(tokens * UUSD // 2 + output * 2 * UUSD for tokens, output in sizes)
    big = sum(tokens * 2 * UUSD + output * 10 * UUSD for tokens, output in sizes)
    assert made[1] == big - small - usd * UUSD * len(rows)
    candidates = sum(output * 2 * UUSD for _, output in sizes) if has_candidate else 0
    assert made[0] == -(small + usd * UUSD * len(rows) + candidates) <= 0
