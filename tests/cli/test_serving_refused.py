"""What no serving command takes: numbers that are not finite, counts that no machine has."""

import json

import pytest

from tenfold.cli.common import print_json

ON = ("--model", "llama-3.1-8b", "--gpu", "h100-sxm", "--isl", "100", "--osl", "10")
SPLIT = (
    "serving",
    "disaggregate",
    *ON,
    "--gpus",
    "8",
    "--link-gbps",
    "400",
    "--ttft-slo-ms",
    "900",
    "--tpot-slo-ms",
    "9",
)
SIMULATE = ("serving", "simulate", *ON, "--rate", "3")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ((*SPLIT, "--link-latency-ms", "inf"), "--link-latency-ms inf"),
        ((*SPLIT, "--link-gbps", "nan"), "--link-gbps nan"),
        (("serving", "size", *ON, "--tpot-slo-ms", "inf"), "--tpot-slo-ms inf"),
        ((*SIMULATE, "--burstiness", "nan"), "--burstiness nan"),
        (("serving", "choose", "--db", "x", "--team-usd-per-year", "inf"), "--team-usd-per-year inf"),
        (("serving", "breakeven", "--db", "x", *ON[:4], "--utilisation", "nan"), "--utilisation nan"),
    ],
)
def test_a_number_that_is_not_finite_is_refused(run, words, option):
    assert run(*words) == (1, "", f"error: {option}: write a finite number\n")


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("serving", "size", *ON, "--tp", "1025"), "--tp"),
        ((*SIMULATE, "--seed", "-1"), "--seed"),
        ((*SIMULATE, "--replicas", "10001"), "--replicas"),
        ((*SPLIT[:-6], "--gpus", "10001"), "--gpus"),
    ],
)
def test_a_count_beyond_its_bounds_is_a_usage_error(run, words, option):
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert f"Invalid value for '{option}'" in err


def test_json_never_holds_what_json_does_not_have(capsys):
    with pytest.raises(ValueError, match="JSON compliant"):
        print_json({"x": float("inf")})
    print_json({"x": 1.5})
    assert json.loads(capsys.readouterr().out)["x"] == 1.5
