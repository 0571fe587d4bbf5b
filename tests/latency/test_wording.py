"""A diagnosis in words: every figure of the texts follows from a diagnosis made by hand."""

from dataclasses import replace

import diagnoses as made
import pytest

from tenfold.latency import amounts, wording
from tenfold.latency.answers import Shift
from tenfold.latency.records import Finding, Interval

CHANCE = Shift(0.294, 0.624, Interval(-0.05, 0.33, 0.92))


def texts(pairs):
    return [f"{label}: {text}" for label, text in pairs]


class TestAnswer:
    @pytest.mark.parametrize(
        ("one", "says"),
        [
            (made.diagnosis(), "Explained: prefix cache broke (agent/2.4.1), 94 % of the TTFT shift."),
            (made.lost_host(), "Explained: host lost (gpu-03), 92 % of the TTFT shift."),
            (
                made.two_causes(),
                (
                    "Explained: prefix cache broke (agent/2.4.1), 94 % of the TTFT shift; longer or shorter "
                    "answers (summary), 97 % of the output shift."
                ),
            ),
            (
                made.partly(),
                (
                    "Partly explained: prefix cache broke (agent/2.4.1), 42 % of the TTFT shift; 58 % of the TTFT "
                    "shift has no cause here."
                ),
            ),
            (
                made.diagnosis(verdict="partly", causes=(), unexplained={"ttft": 0.3, "tpot": 1.0}),
                "Not explained: 100 % of the TPOT shift has no cause here.",
            ),
            (made.no_change(), "No change: at p99, TTFT, TPOT and output are as they were."),
            (
                made.diagnosis(verdict="no_change", shift={"ttft": CHANCE, "tpot": made.TPOT_SAME}),
                "No certain change: p99 TTFT may have moved, or by chance; TPOT is as it was.",
            ),
            (
                made.diagnosis(verdict="no_change", shift={"ttft": CHANCE}),
                "No certain change: p99 TTFT may have moved, or by chance.",
            ),
            (
                made.refused(),
                (
                    "No diagnosis: the model's revision changed between the windows (2026-08-01 -> 2026-09-08): what "
                    "moved cannot be told from what the other model does."
                ),
            ),
        ],
    )
    def test_says_the_verdict_and_the_first_causes(self, one, says):
        assert wording.answer(one) == says


class TestShifts:
    def test_as_in_the_mock_up(self):
        assert wording.shifts(made.diagnosis()) == (
            "p99 TTFT 0.84 s -> 1.91 s (+1.07 [0.93, 1.20])",
            "p99 TPOT 31.0 ms -> 32.0 ms (no change)",
            "p99 output 812 tokens -> 820 tokens (no change)",
            "p99 E2E 12.4 s -> 13.6 s (+1.2 [0.20, 2.3])",
        )

    @pytest.mark.parametrize(
        ("component", "shift", "says"),
        [
            # one unit for both ends: the longer one's
            ("ttft", Shift(0.31, 14.2, Interval(9.8, 13.89, 18.1)), "0.31 s -> 14.2 s (+13.9 [9.8, 18.1])"),
            ("ttft", Shift(0.5, 0.25, Interval(-0.3, -0.25, -0.2)), "500 ms -> 250 ms (-250 [-300, -200])"),
            ("ttft", Shift(100.0, 300.4, Interval(150, 200.4, 260)), "100 s -> 300 s (+200 [150, 260])"),
            ("tpot", Shift(0.0051, 0.0062, Interval(0.001, 0.0011, 0.002)), "5.10 ms -> 6.20 ms (+1.10 [1.00, 2.00])"),
            ("output", Shift(820, 4100, Interval(2900, 3280, 3600)),
             "820 tokens -> 4,100 tokens (+3,280 [2,900, 3,600])"),
            ("ttft", CHANCE, "294 ms -> 624 ms (not certain: +330 [-50, 920])"),
            ("ttft", Shift(float("nan"), 1.2, Interval(-1, 0, 1)), "unknown s -> 1.20 s (no change)"),
        ],
    )  # fmt: skip
    def test_units_follow_the_size(self, component, shift, says):
        assert amounts.shift_text(component, shift) == says

    def test_a_burst_says_how_little_of_the_time_it_takes(self):
        one = made.diagnosis(shift={"ttft": replace(made.TTFT, burst_slices=2)})
        assert wording.shifts(one)[0].endswith("(+1.07 [0.93, 1.20]), all of it in 5 % of the time")

    def test_a_small_window_says_p95(self):
        assert wording.shifts(made.diagnosis(quantile=0.95))[0].startswith("p95 TTFT")


class TestCauses:
    def test_a_first_cause_has_number_share_evidence_and_what_to_do(self):
        first, follower = wording.told(made.diagnosis()).causes
        assert (first.number, first.title, first.share, first.follows) == (
            "1",
            "Step 3, prefix cache broke (agent/2.4.1)",
            "94 % [86, 99] of the TTFT shift",
            "",
        )
        assert texts(first.said) == [
            "since: 2026-09-08 14:05 UTC",
            "next: diff the system prompt of agent/2.4.0 and agent/2.4.1 above token 28,160",
            "cost: $412 a day (lever 3, prefix_cache)",
        ]
        assert (follower.number, follower.share, follower.follows) == (
            "",
            "9 % [4, 15] of the shift",
            "a consequence of step 3",
        )
        assert follower.said == ()  # a queue goes with its cause

    def test_consequences_name_their_cause_and_other_components(self):
        first, queue, retries = wording.told(made.lost_host()).causes
        assert texts(first.said)[0] == "also: 88 % of the TPOT shift"
        assert {queue.follows, retries.follows} == {"a consequence of step 6"}
        assert texts(retries.said) == ["next: cap retries and add jitter; honour Retry-After"]

    def test_what_follows_from_two_causes_is_told_once(self):
        one = made.two_causes()
        queue = made.diagnosis().causes[1]
        both = replace(one, causes=(one.causes[0], queue, one.causes[1], replace(queue, consequence_of=2)))
        _, told, _, again = wording.told(both).causes
        assert told.evidence
        assert again.evidence == ()
        assert again.share == "9 % [4, 15] of the TTFT shift"  # its first cause moved another component
        assert again.follows == "a consequence of step 2"

    def test_what_fell_is_called_a_fall(self):
        one = made.lost_host()
        faster = replace(one, shift=one.shift | {"tpot": Shift(0.04, 0.03, Interval(-0.02, -0.01, -0.005))})
        said = wording.told(faster)
        assert texts(said.causes[0].said)[0] == "also: 88 % of the fall of TPOT"
        assert texts(said.rest)[0] == "unexplained: 8 % of the TTFT shift and 12 % of the fall of TPOT"

    def test_a_lever_without_a_price_is_named_with_its_number(self):
        said = dict(wording.told(made.two_causes()).causes[1].said)
        assert said["bill"] == "lever 6, trim: tenfold levers"

    def test_every_lever_of_a_kind_has_a_number(self):
        from tenfold.latency.kinds import KINDS

        assert {wording.lever_number(kind.lever) for kind in KINDS.values() if kind.lever} <= set(range(1, 11))

    @pytest.mark.parametrize(
        ("share", "says"),
        [
            (Interval(0.79, 0.86, 0.92), "86 % [79, 92]"),
            (Interval(-0.002, 0.0, 0.004), "0 % [0, 0]"),
            (Interval(-0.3, -0.12, 1.04), "-12 % [-30, 104]"),
        ],
    )
    def test_shares(self, share, says):
        assert amounts.share_text(share) == says

    @pytest.mark.parametrize(
        ("text", "line"),
        [
            ("Hit rate 88.3% -> 6.9%.", "hit rate 88.3 % -> 6.9 %"),
            ("KV cache full", "KV cache full"),
            ("A clock drops.", "a clock drops"),
            ("gpu-1 answered nothing", "gpu-1 answered nothing"),
        ],
    )
    def test_sentences_of_steps_become_lines(self, text, line):
        assert amounts.tidied(text) == line


class TestRest:
    def test_unexplained_innocent_and_not_separable(self):
        assert texts(wording.told(made.diagnosis()).rest) == [
            "unexplained: 6 % of the TTFT shift",
            "not guilty: looked at: 2 lengths, 5 deploy and configuration, 7 upstream",
            "not separable: 6 hardware and hosts (needs --hosts, replica)",
        ]
        blind = [Finding(step, "", "not separable", missing=("x",)) for step in (3, 4)]
        assert texts(wording.told(made.diagnosis(causes=(), findings=blind)).rest)[-1] == (
            "not separable: 3 prefix cache (needs x); 4 scheduling and memory (needs x)"
        )
        hosted = made.diagnosis(causes=(), findings=blind, is_hosted=True)
        assert texts(wording.told(hosted).rest)[-1] == (
            "not separable: 3 prefix cache (needs x); 4 scheduling and memory (steps 4 to 6 are the provider's)"
        )
        said = made.diagnosis(causes=(), findings=blind, next_measurements=("for step 3 log x",))
        assert texts(wording.told(said).rest)[-1] == "not separable: 3 prefix cache; 4 scheduling and memory"

    def test_what_is_seen_and_explains_nothing_is_said(self):
        rest = texts(wording.told(made.partly()).rest)
        assert rest[1] == "step 7: seen, but it moved little or nothing of the tail: repeats 0.3 % -> 6 %"
        assert "7" not in rest[2]

    def test_refused_with_findings_is_no_dead_end(self):
        one = made.diagnosis(verdict="refused", refused="nobody did it", causes=(), findings=made.CALM)
        assert "step 7: upstream, below its threshold: repeats 0.4 % -> 0.4 %" in texts(wording.told(one).rest)

    def test_callers_who_give_up_cut_the_tail_off(self):
        one = made.diagnosis(failed=(0.0, 0.33), gave_up_s=5.0)
        assert wording.told(one).heed == (
            "Callers give up at about 5 s (33 % failed), so the p99 of TTFT is cut off there."
        )
        assert wording.told(made.diagnosis()).heed == ""
        assert "Callers give up" in one._repr_html_()

    def test_short_windows_are_shown_to_the_second(self):
        start = made.WINDOWS[0]
        one = made.diagnosis(windows=(start, start + 600, start + 600, start + 1201))
        assert dict(wording.told(one).windows)["after"] == (
            "61,377 requests, 2026-09-01 00:10:00 to 2026-09-01 00:20:01 UTC"
        )
        assert dict(wording.told(one).causes[0].said)["since"] == "2026-09-08 14:05:00 UTC"

    @pytest.mark.parametrize(
        ("count", "says"),
        [
            (640.4, "about 640"),
            (13_904, "about 13,900"),
            (999_999, "about 1 million"),
            (9_219_331, "about 9.22 million"),
            (27_800_000_000, "about 27.8 billion"),
        ],
    )
    def test_estimates_have_three_figures(self, count, says):
        assert amounts.about(count) == says

    def test_windows(self):
        assert texts(wording.told(made.diagnosis()).windows) == [
            "model: llama-3.1-70b",
            "before: 184,209 requests, 2026-09-01 00:00 to 2026-09-08 00:00 UTC",
            "after: 61,377 requests, 2026-09-08 00:00 to 2026-09-10 00:00 UTC",
        ]
        nan = float("nan")
        assert (
            dict(wording.told(made.diagnosis(windows=(nan,) * 4)).windows)["after"] == "61,377 requests, times unknown"
        )

    def test_the_split_of_step_1(self):
        split = Finding(1, "ttft", "guilty", measures={"ttft_share": 0.92, "tpot_share": 0.03, "output_share": 0.05})
        assert wording.told(made.diagnosis(findings=(split,))).split == (
            "slow requests take longer; of that: TTFT 92 %, TPOT 3 %, output 5 %"
        )
        assert wording.told(made.diagnosis()).split == ""


class TestNotebook:
    def test_one_line_and_a_whole(self):
        one = made.diagnosis(model="<m>")
        assert repr(one) == ("<Diagnosis of <m>: Explained: prefix cache broke (agent/2.4.1), 94 % of the TTFT shift.>")
        html = one._repr_html_()
        assert "<m>" not in html
        assert "<b>1 · Step 3, prefix cache broke (agent/2.4.1)</b>: 94 % [86, 99] of the TTFT shift</p>" in html
        assert "<b>└ Step 4, queueing</b>: 9 % [4, 15] of the shift, a consequence of step 3</p>" in html
