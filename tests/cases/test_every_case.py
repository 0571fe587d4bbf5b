"""Every public cost case is a test here or is listed with the reason why it is not."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
CASES = Path(os.environ.get("TENFOLD_REAL_DATA", ROOT.parent / "shared" / "data")).parent / "cases" / "cost.md"

# Cases that are no test in this folder; a reason may name the test elsewhere that holds the case.
NOT_HERE = {
    "B025": "an aggregate of one session, without its tokens; the two rates of writes are B023's",
    "B073": "an aggregate of a month, without its tokens; how it went wrong: "
    "tests/cases/test_own_prices.py::test_reads_without_a_price_of_their_own_are_not_free",
    "B082": "tests/logs/test_spans.py::test_b082_an_agents_sum_does_not_count_beside_its_calls",
    "B118": "tests/logs/test_openrouter.py::test_b118_the_upstream_charge_is_added_only_with_a_key_of_ones_own",
    "B122": "tests/levers/test_prefix_cache.py::test_litellm_36452",
    "B127": "what a cache saves without tenfold is in no sum or ranking: "
    "tests/levers/test_prefix_cache.py::test_money_already_saved_is_in_no_ranking_sum_or_fold",
    "B130": "tests/levers/test_route_tokens.py::test_case_b130_another_models_tokens_are_a_range",
}
# The nine rules at the head of the cases, each with cases that would fail without it and with tests of its own.
FALLBACK, LOGS = "tests/cases/test_no_silent_fallback.py", "tests/cases/test_cost_in_logs.py"
RULES = {
    1: (("B001", "B011", "B014", "B022"), f"{LOGS}::test_a_total_that_fits_no_reading_is_flagged"),
    2: (("B065", "B071", "B074"), f"{FALLBACK}::test_every_status_without_a_cost_says_why"),
    3: (("B041", "B064", "B095", "B104"), f"{FALLBACK}::test_both_sides_of_midnight_on_the_day_a_price_changed"),
    4: (("B034", "B035", "B037"), f"{FALLBACK}::test_exactly_at_the_edge_of_a_band"),
    5: (("B026", "B028", "B029", "B032"), "tests/cases/test_cost_cases.py::test_right_value"),
    6: (("B113", "B115"), f"{LOGS}::test_b115_a_thousand_small_calls_are_not_rounded_away"),
    7: (("B079", "B083", "B086"), f"{LOGS}::test_what_would_count_twice_is_refused_as_long_as_no_reader_knows_it"),
    8: (("B098", "B100", "B101"), f"{LOGS}::test_days_are_cut_in_the_report_zone"),
    9: (("B124", "B128"), "tests/levers/test_prefix_cache.py::test_litellm_36452"),
}
CASE = re.compile(r"\bB\d{3}\b")


def modules():
    for file in sorted(HERE.glob("test_*.py")):
        if file.name != Path(__file__).name:
            spec = importlib.util.spec_from_file_location(f"cases_{file.stem}", file)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            yield module


def names(test):
    """The name of a test function and the ids of its parameters; none of what is skipped."""
    marks = getattr(test, "pytestmark", [])
    if any(mark.name in {"skip", "skipif"} for mark in marks):
        return
    yield from (part.upper() for part in test.__name__.split("_"))
    for mark in marks:
        if mark.name == "parametrize":
            yield from mark.kwargs.get("ids") or ()
            yield from (value.id for value in mark.args[1] if isinstance(value, type(pytest.param())) and value.id)


@pytest.fixture(scope="module")
def tested():
    tests = [one for module in modules() for name, one in vars(module).items() if name.startswith("test_")]
    return {case for test in tests for name in names(test) for case in CASE.findall(name)}


def test_no_case_is_both_tested_and_listed(tested):
    assert len(tested) >= 70
    assert not tested & NOT_HERE.keys()


def test_every_case_is_tested_or_listed(tested):
    if not CASES.is_file():
        pytest.skip(f"no {CASES}: set TENFOLD_REAL_DATA to the data folder beside it")
    printed = re.findall(r"^\*\*(B\d{3})\*\*", CASES.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(printed) == len(set(printed)) > 80
    assert sorted(tested | NOT_HERE.keys()) == sorted(printed)


def test_every_rule_has_its_cases(tested):
    for number, (cases, test) in RULES.items():
        assert set(cases) <= tested, number
        assert is_there(test), number
    if CASES.is_file():
        head = CASES.read_text(encoding="utf-8").split("\n## A.")[0]
        assert [int(number) for number in re.findall(r"^(\d+)\. ", head, re.MULTILINE)] == list(RULES)


def is_there(test):
    file, name = test.split("::")
    return re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_tests_named_in_a_reason_are_there():
    named = [test for reason in NOT_HERE.values() for test in re.findall(r"tests/[\w/]+\.py::\w+", reason)]
    assert [test for test in named if not is_there(test)] == []
    assert len(set(named)) == 6
