"""Every public case about savings is a test, or is listed with the reason why it is not."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = Path(os.environ.get("TENFOLD_REAL_DATA", ROOT.parent / "shared" / "data")).parent / "cases" / "levers.md"
COUNTS, TOKENS, QUALITY = (f"tests/cases/test_lever_cases_{name}.py" for name in ("counts", "tokens", "quality"))
BREAK_EVENS, BREAKS = "tests/analysis/test_break_evens.py", "tests/analysis/test_cache_breaks.py"
STACKING, PLAN = "tests/levers/test_batch_stacking.py", "tests/planning/test_plan.py"
# Case -> the tests that hold it.
TESTS = {
    1: ("tests/cases/test_cost_cases.py::test_right_value",),  # B001 there
    2: (f"{COUNTS}::test_case_2_the_buckets_of_a_prompt_sum_to_it",),
    4: (f"{COUNTS}::test_case_4_cached_tokens_are_billed_once",),
    5: (f"{COUNTS}::test_case_5_input_tokens_are_the_uncached_rest",),
    7: (f"{COUNTS}::test_case_7_cached_tokens_of_both_shapes",),
    8: (
        f"{COUNTS}::test_case_8_written_tokens_of_no_stated_lifetime_are_not_free",
        "tests/cases/test_cost_cases.py::test_b031_unknown_lifetime_is_unpriced_not_free",
    ),
    10: ("tests/levers/test_prefix_cache.py::test_litellm_36452",),
    11: (f"{COUNTS}::test_case_11_writes_that_live_an_hour_cost_twice_the_input",),
    13: (
        f"{BREAK_EVENS}::test_case_13_the_first_estimate_double_counted",
        f"{BREAKS}::test_gaps_are_weighed_by_tokens_not_by_count",
    ),
    14: (f"{BREAKS}::test_a_gap_beyond_the_lifetime", f"{BREAKS}::test_gaps_are_weighed_by_tokens_not_by_count"),
    16: (
        f"{COUNTS}::test_case_16_one_minimum_on_every_platform",
        f"{BREAKS}::test_below_the_minimum_and_an_unknown_one",
    ),
    17: (
        f"{COUNTS}::test_case_17_being_eligible_is_no_hit",
        f"{BREAKS}::test_nothing_read_though_the_prefix_was_there",
    ),
    19: (f"{BREAK_EVENS}::test_rented_caches",),
    20: (f"{COUNTS}::test_case_20_a_stored_cache_is_billed_for_as_long_as_it_lived",),
    22: (
        "tests/analysis/test_cache_breaks_measured.py::test_the_sweep_of_timers_recovers_nothing_below_five_minutes",
        "tests/analysis/test_cache_breaks_measured.py::test_the_browser_agent_at_two_paces",
    ),
    23: (f"{BREAK_EVENS}::test_reads_that_pay_one_write",),
    25: (
        f"{TOKENS}::test_case_25_what_a_compaction_sends_anew",
        f"{BREAK_EVENS}::test_case_25_five_compactions_resend_137519_tokens",
    ),
    26: (
        f"{TOKENS}::test_case_26_compressing_a_cached_prompt_can_raise_the_bill",
        f"{BREAK_EVENS}::test_case_26_a_compaction_that_rewrites_at_the_write_price",
    ),
    28: (f"{TOKENS}::test_case_28_removals_after_the_cache_expired_are_worth_a_write",),
    29: (
        f"{STACKING}::test_case_29_the_stack_matrix",
        f"{STACKING}::test_case_29_lost_reads_are_uncached_input_at_the_batch_rate",
    ),
    31: (f"{STACKING}::test_case_31_gemini_saves_nothing_on_cached_tokens",),
    32: (f"{COUNTS}::test_case_32_groqs_batch_price_holds_for_cached_tokens_too",),
    35: (f"{STACKING}::test_case_35_a_ceiling_says_that_it_is_one",),
    37: (f"{QUALITY}::test_case_37_a_ratio_to_chance_is_no_saving",),
    40: (f"{QUALITY}::test_case_40_the_price_ratio_of_one_request_is_not_the_saving_of_the_traffic",),
    41: (f"{QUALITY}::test_case_41_a_learned_router_below_chance_at_its_own_rate",),
    43: (
        f"{QUALITY}::test_case_43_wrong_hits_cost_until_the_saving_is_gone",
        "tests/levers/test_skip_semantic.py::test_case_43_net_of_wrong_answers_crosses_zero",
    ),
    44: (
        f"{QUALITY}::test_case_44_hits_are_weighed_by_what_they_cost_and_lookups_are_paid",
        "tests/levers/test_skip_semantic.py::test_case_44_a_share_of_hits_is_no_share_of_the_bill",
    ),
    46: (
        "tests/levers/test_prefix_cache.py::test_money_already_saved_is_in_no_ranking_sum_or_fold",
        f"{PLAN}::test_requests_without_a_time_have_no_price_and_no_day",  # coverage beside the total
    ),
    47: (
        f"{PLAN}::test_of_two_rivals_the_one_that_saves_less_is_excluded",
        f"{PLAN}::test_joint_value_is_re_priced_not_added",
    ),
}
# Cases that are about what to say or whom to believe, and hold no figure to recompute.
NO_TEST = {
    34: "two ledgers of the same user disagree: the log's own cost is kept beside the price of the book and takes no "
    "part in it, tests/cases/test_cost_in_logs.py::test_b083_the_logged_spend_is_kept",
    38: "wording: every estimate names its baseline, its assumptions and where each comes from, "
    "tests/planning/test_plan.py::test_the_document_is_plain_json_and_the_same_every_time",
}


def test_every_case_has_a_test_that_is_there():
    named = [test for tests in TESTS.values() for test in tests]
    named += [test for reason in NO_TEST.values() for test in re.findall(r"tests/[\w/]+\.py::\w+", reason)]
    for test in named:
        file, name = test.split("::")
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), test


def test_a_test_that_names_a_case_is_listed_for_it():
    files = {test.split("::")[0] for tests in TESTS.values() for test in tests} | {COUNTS, TOKENS, QUALITY}
    for file in sorted(files):
        for name, case in re.findall(r"^def (test_case_(\d+)_\w+)\(", (ROOT / file).read_text("utf-8"), re.MULTILINE):
            assert f"{file}::{name}" in TESTS[int(case)]


def test_every_case_of_the_page_is_listed():
    if not PAGE.is_file():
        pytest.skip(f"no {PAGE}: set TENFOLD_REAL_DATA to the data folder beside it")
    printed = re.findall(r"^(\d+)\. ", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(printed) == len(set(printed)) >= 30
    assert sorted(map(int, printed)) == sorted([*TESTS, *NO_TEST])
