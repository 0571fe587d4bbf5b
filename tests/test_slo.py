"""Service levels: which requests may wait."""

import math

import pytest

import tenfold as tf
from tenfold.errors import AssumptionError

DAY_S = 86_400


def load(tmp_path, text):
    file = tmp_path / "slo.toml"
    file.write_text(text, encoding="utf-8")
    return tf.Slo.load(file)


@pytest.mark.parametrize(
    ("limits", "may_wait"),
    [
        ({}, True),
        ({"ttft_p95_ms": 800}, False),
        ({"ttft_p95_ms": math.inf}, True),
        ({"tpot_p95_ms": 40}, True),  # nobody streams from a batch: only the first token and the deadline count
        ({"deadline_s": 86_399}, False),
        ({"deadline_s": 86_400}, True),
        ({"deadline_s": math.inf}, True),
        ({"ttft_p95_ms": math.inf, "deadline_s": 60}, False),
        ({"min_quality": 0.9}, True),
    ],
)
def test_a_day_of_waiting(limits, may_wait):
    assert tf.Slo(**limits).may_wait(DAY_S) == str(may_wait).lower()


def test_features_override_key_by_key(tmp_path):
    slo = load(
        tmp_path,
        """
ttft_p95_ms = 800
deadline_s = 200000
[feature."nightly tagging"]
ttft_p95_ms = inf
[feature."it's due"]
ttft_p95_ms = inf
deadline_s = 3600
""",
    )
    assert slo.limits("chat") == slo.limits(None)
    assert slo.limits("nightly tagging").deadline_s == 200_000
    assert slo.may_wait(DAY_S) == "case when feature in ('nightly tagging') then true else false end"
    assert slo.may_wait(60) == "case when feature in ('nightly tagging', 'it''s due') then true else false end"
    assert slo.as_dict()["feature"]["nightly tagging"] == {"ttft_p95_ms": "inf"}


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("ttft_p95 = 800\n", 'unknown key "ttft_p95". Did you mean "ttft_p95_ms"'),
        ("ttft_p95_ms = '800'\n", "ttft_p95_ms must be a number"),
        ("ttft_p95_ms = true\n", "ttft_p95_ms must be a number"),
        ("deadline_s = -1\n", "deadline_s must be a number of at least 0"),
        ("deadline_s = nan\n", "deadline_s must be a number"),
        ("min_quality = inf\n", "min_quality must be finite"),
        ("feature = 3\n", "feature must be tables"),
        ("feature.chat = 3\n", "must be a table"),
        ('[feature."chat"]\ndeadlines = 3\n', r'\[feature."chat"\]: unknown key "deadlines"'),
        ("deadline_s = \n", "not valid TOML"),
    ],
)
def test_refused(tmp_path, text, what):
    with pytest.raises(AssumptionError, match=what):
        load(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "is_blank"), [("min_quality = ...\n", True), ("a = 1\nb = [..., 0.5]\n", True), ("deadline_s = \n", False)]
)
def test_a_value_left_to_be_filled_in_is_called_so(tmp_path, text, is_blank):
    with pytest.raises(AssumptionError, match="not valid TOML") as caught:
        load(tmp_path, text)
    assert ("`...` stands for a value to fill in" in str(caught.value)) == is_blank


def test_keywords_are_checked_too():
    with pytest.raises(AssumptionError, match="deadline_s must be a number"):
        tf.Slo(deadline_s=-5)
    with pytest.raises(AssumptionError, match='feature "chat": unknown key'):
        tf.Slo(feature={"chat": {"ttft": 3}})
    with pytest.raises(AssumptionError, match="cannot be read"):
        tf.Slo.load("nowhere.toml")
