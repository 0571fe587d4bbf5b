"""Shorter prompts and answers: classes, rounding, bands, caps, samples, and what is said beside the saving."""

from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_logs import PRICES, facts, ledger, look, row, saved

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions
from tenfold.levers.repricing import own_bill
from tenfold.levers.trim import LEVER
from tenfold.planning.portfolio import Portfolio
from tenfold.slo import Slo

NOON = datetime(2026, 6, 1, 12)
UUSD = 10**6  # one millionth of a USD, in pUSD
COUNTS = (
    *("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_long_tokens"),
    *("output_tokens", "reasoning_tokens"),
)
CLIFF = f"""{PRICES}
[[price]]
model = "cliff"
input = 2
output = 10
source = "test"
checked = 2026-01-01
[[price]]
model = "cliff"
above_input_tokens = 272000
input = 4
output = 15
source = "test"
checked = 2026-01-01
"""


def found_in(rows, slo=None, prices=PRICES, **table):
    return look(LEVER, ledger(rows, prices), {"trim": {"where": "true", **table}}, slo)


def trimmed(rows, *more, prices=PRICES, **table):
    """The counts after, in order of the rows."""
    assumed = assumptions({"trim": {"where": "true", **table}}, LEVERS).levers
    with ledger(rows, prices).session() as session:
        bill = own_bill(session, (LEVER,), assumed, Slo())
        Portfolio(bill, (LEVER,), assumed, {"trim": LEVER.judge(bill, assumed["trim"])})
        columns = ", ".join((*COUNTS, *more))
        return session.engine.fetch(f"select {columns} from lever_alone_trim order by rid").rows()


def sample(path, rows):
    """Write an evals file."""
    names = list(dict.fromkeys(name for one in rows for name in one))
    lines = [",".join(str(one.get(name, "")) for name in names) for one in rows]
    path.write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    return str(path)


def test_every_class_loses_its_share():
    # 400 uncached, 300 read, 300 written (100 of them long); a quarter of each goes, answers keep four fifths
    one = row(cache_read_tokens=300, cache_write_tokens=300, cache_write_long_tokens=100, reasoning_tokens=50)
    table = {"input_remove_ratio": 0.25, "output_ratio": 0.8}
    assert trimmed([one], "trim_cut", **table) == [(750, 225, 225, 75, 80, 40, "tail")]
    found = found_in([one], **table)
    # 100 x 2 + 75 x 0.2 + 50 x 2.5 + 25 x 4 of input, 20 x 10 of output
    assert saved(found) == 640 * UUSD
    assert (found.status, found.label, found.addressed_pusd) == ("ok", "modelled", 2_760 * UUSD)
    told = facts(found)
    assert [told[f"removed_{name}_tokens"] for name in ("uncached", "reads", "writes", "long_writes", "output")] == [
        *(100, 75, 50, 25, 20)
    ]
    assert [told[f"removed_{name}_usd"] for name in ("uncached", "reads", "writes", "long_writes", "output")] == [
        *("0.0002", "0.000015", "0.000125", "0.0001", "0.0002")
    ]
    assert (told["removed_input_usd"], told["removed_input_list_usd"], told["list_overstates"]) == (
        *("0.00044", "0.0005", "1.14"),
    )
    assert "band_change_usd" not in told


def test_each_part_is_rounded_half_to_even():
    # of 5, 7, 1, 3 go 2.5, 3.5, 0.5, 1.5 in each class: 2, 4, 0, 2; answers keep 2, 4, 0, 2
    parts = {5: (3, 2), 7: (3, 4), 1: (1, 0), 3: (1, 2)}
    rows = [
        row(input_tokens=3 * n, cache_read_tokens=n, cache_write_tokens=n, output_tokens=n, reasoning_tokens=n)
        for n in parts
    ]
    # what is not known stays so; long writes stay within the writes: of 3 and 3 go 2 each, of 3 and 1 go 2 and 0
    rows += [row(cache_read_tokens=None, cache_write_tokens=None, output_tokens=0)]
    rows += [row(cache_write_tokens=3, cache_write_long_tokens=long, output_tokens=0) for long in (3, 1)]
    made = trimmed(rows, input_remove_ratio=0.5, output_ratio=0.5)
    assert made[:4] == [(3 * left, left, left, None, kept, kept) for left, kept in parts.values()]
    assert made[4] == (500, None, None, None, 0, None)
    assert [one[2:4] for one in made[5:]] == [(1, 1), (1, 1)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("tokens", "share", "left"), [(2, "0.25", 2), (6, "0.25", 4), (9, "1", 0), (9, "0", 9), (3, "0.666667", 1)]
)
def test_other_shares(tokens, share, left):
    one = row(input_tokens=3 * tokens, cache_read_tokens=tokens, cache_write_tokens=tokens, output_tokens=tokens)
    [made] = trimmed([one], input_remove_ratio=Decimal(share), output_ratio=1 - Decimal(share))
    assert made == (3 * left, left, left, None, left, None)
    assert trimmed([one], output_ratio=1.5)[0][4] == round(tokens * Fraction(3, 2))


@pytest.mark.full
def test_media_stay():
    # 1,000 in: 200 image tokens, 100 of which were read; 400 read in all. Text: 500 uncached, 300 read.
    one = row(cache_read_tokens=400, input_image_tokens=200, cache_read_image_tokens=100)
    more = ("input_image_tokens", "cache_read_image_tokens")
    [made] = trimmed([one], *more, input_remove_ratio=0.5)
    assert made == (600, 250, 0, None, 100, None, 200, 100)
    # 100 out, 40 of them image: no cap cuts into it
    spoken = row(output_tokens=100, output_image_tokens=40)
    prices = PRICES.replace("output = 10\n", "output = 10\noutput_image = 30\n")
    assert trimmed([spoken], output_ratio=0.5, prices=prices)[0][4] == 70
    assert trimmed([spoken], output_cap=30, prices=prices)[0][4] == 40


def test_a_request_that_falls_below_a_threshold_is_priced_anew_as_a_whole():
    # 320,000 x 4 + 1,000 x 15 now; 48,000 go, and 272,000 are still below: 272,000 x 2 + 1,000 x 10. Two tokens more
    # are above, before and after.
    rows = [row(model="cliff", input_tokens=tokens, output_tokens=1_000) for tokens in (320_000, 320_002)]
    found = found_in(rows, prices=CLIFF, input_remove_ratio=0.15)
    assert saved(found) == (1_295_000 - 554_000 + 48_000 * 4) * UUSD
    assert facts(found)["removed_uncached_usd"] == "0.384"  # 96,000 at 4
    assert facts(found)["band_change_usd"] == "0.549"


def test_answers_that_ended_at_their_limit_are_no_saving():
    rows = [row(finish_reason="length"), row(finish_reason="stop"), row(finish_reason=None)]
    found = found_in(rows, output_ratio=0.6)
    assert saved(found) == 2 * 40 * 10 * UUSD
    told = facts(found)
    assert (told["truncated_requests"], told["truncated_usd"]) == (1, "0.003")
    assert (told["requests_in_where"], told["requests_shortened"]) == (3, 2)
    assert found.addressed_pusd == 2 * 3_000 * UUSD  # the cut answer does not change


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=6), st.lists(st.integers(0, 4_000), min_size=2, max_size=3))
def test_a_cap_saves_less_the_higher_it_is_and_nothing_above_the_longest_answer(outputs, caps):
    made = ledger([row(output_tokens=output) for output in outputs])

    def saving(cap):
        found = saved(look(LEVER, made, {"trim": {"where": "true", "output_cap": cap}}))
        assert found == sum(max(0, output - cap) for output in outputs) * 10 * UUSD
        return found

    savings = [saving(cap) for cap in sorted(caps)]
    assert savings == sorted(savings, reverse=True)
    assert saving(max(outputs)) == 0


def test_a_cap():
    # of 100, 60 and 20 tokens, 50 and 10 are above 50; a cut answer is held to it too
    rows = [row(), row(output_tokens=60, finish_reason="length"), row(output_tokens=20)]
    assert saved(found_in(rows, output_cap=50)) == 60 * 10 * UUSD


LOGS = st.lists(
    st.tuples(st.integers(0, 9_999), st.integers(0, 9_999), st.integers(0, 9_999), st.integers(0, 5_000)),
    min_size=1,
    max_size=5,
)


@pytest.mark.full
@settings(max_examples=25, deadline=None)
@given(LOGS, st.integers(0, 100), st.integers(0, 100))
def test_a_saving_lies_between_nothing_and_what_it_addresses_and_scales_with_the_log(parts, removed, kept):
    rows = [
        row(input_tokens=a + b + c, cache_read_tokens=b, cache_write_tokens=c, output_tokens=o) for a, b, c, o in parts
    ]
    table = {"input_remove_ratio": Decimal(removed) / 100, "output_ratio": Decimal(kept) / 100}
    found = found_in(rows, **table)
    expected = 0
    for a, b, c, o in parts:  # Python rounds half to even too
        gone = [round(part * Fraction(removed, 100)) for part in (a, b, c)]
        expected += 20 * gone[0] + 2 * gone[1] + 25 * gone[2] + 100 * (o - round(o * Fraction(kept, 100)))
    assert saved(found) == expected * UUSD // 10
    assert 0 <= saved(found) <= found.addressed_pusd
    assert saved(found_in(rows * 3, **table)) == 3 * saved(found)


def test_nothing_is_assumed_by_default():
    made = ledger([row()])
    for assume, said in (
        ({"trim": {"input_remove_ratio": 0.5}}, "`where` of [trim]"),
        ({"trim": {"where": "true", "cut": "head"}}, "input_remove_ratio, output_ratio, output_cap, or evals"),
    ):
        found = look(LEVER, made, assume)
        assert (found.status, found.applies, found.addressed_pusd) == ("no_assumption", False, None)
        assert said in found.reason


@pytest.mark.full
def test_no_traffic():
    found = look(LEVER, ledger([row()]), {"trim": {"where": "feature = 'taging'", "output_ratio": 0.5}})
    assert (found.status, saved(found), found.addressed_pusd) == ("nothing_eligible", 0, 0)
    assert 'Did you mean "tagging"' in found.reason
    found = found_in([row(model="unheard-of"), row(is_billable=False)], output_ratio=0.5)
    assert found.status == "nothing_eligible"
    assert (facts(found)["unpriced"], facts(found)["not_billed"]) == (1, 1)
    assert found_in([row(output_tokens=None)], output_ratio=0.5).status == "not_measurable"


@pytest.mark.full
def test_a_range_is_told_by_its_ends():
    rows = [row(ts=NOON + timedelta(days=day)) for day in range(12)]
    table = {"where": "true", "input_remove_ratio": [0.1, 0.2, 0.3], "output_ratio": [0.5, 0.6, 0.9], "effort_days": 0}
    plan = tf.plan(ledger(rows), assume={"trim": table}, levers=(LEVER,))
    # a day: 100 x 2 + 10 x 10; 200 x 2 + 40 x 10; 300 x 2 + 50 x 10
    assert plan.estimates[0].saving == tuple(12 * one * UUSD for one in (300, 800, 1_100))
    assert plan.levers == ("trim",)


@pytest.mark.full
def test_with_a_batch_the_savings_are_not_added():
    rows = [row(ts=NOON + timedelta(days=day), cache_read_tokens=500) for day in range(12)]
    assume = {
        "trim": {"where": "true", "input_remove_ratio": 0.5, "output_ratio": 0.5, "effort_days": 0},
        "batch_api": {"where": "true", "cache_hit_factor": 1, "effort_days": 0},
    }
    plan = tf.plan(ledger(rows), assume=assume)
    alone = {one.name: one.alone_pusd for one in plan.estimates}
    assert (alone["trim"], alone["batch_api"]) == (12 * 1_050 * UUSD, 12 * 1_050 * UUSD)  # half of 2,100 each
    assert plan.joint_all_pusd == 12 * 1_575 * UUSD  # half of half is left, not nothing


def test_what_is_beside_the_saving():
    # 10,000 in, all read, of which 1,000 go: 9,000 would be written at 2.5 instead of read at 0.2 if the head were cut;
    # each call saves 200 uUSD of reads. Two blocks of five are shared by all ten.
    def asked(number, **columns):
        hashes = ["system", "examples", *(f"own{number}-{n}" for n in range(3))]
        blocks = {"prefix_hashes": hashes, "prefix_block_tokens": 2_000}
        return row(input_tokens=10_000, cache_read_tokens=10_000, **blocks, **columns)

    turns = [asked(n, session_id="s", ts=NOON + timedelta(minutes=n)) for n in range(3)]
    rows = [*turns, *(asked(n) for n in range(3, 10))]
    rare = [{**asked(n), "feature": "rare"} for n in range(10, 19)]  # each block has eight others there: too few
    found = found_in([*rows, *rare], input_remove_ratio=0.1, output_ratio=0.5, cut="head")
    assert saved(found) == 19 * (200 + 500) * UUSD
    told = facts(found)
    assert (told["head_cut_rewrite_usd"], told["head_cut_break_even_calls"]) == ("0.0207", "103.5")  # 20,700 / 200
    assert "at the head" in found.advice.first_action
    # 50 tokens less, sent again twice (two turns follow) and once, read at 0.2
    assert (told["later_turn_tokens"], told["later_turn_usd"]) == (150, "0.00003")
    assert (told["fixed_text of tagging"], told["fixed_text of rare"]) == ("40.0 %", "0.0 %")


def paired(count=12):
    """A log with a sample of it: 100 tokens each, so many after."""
    rows = [row(request_id=f"r{n}", ts=NOON + timedelta(days=n % 12)) for n in range(count)]
    return rows, [{"request_id": f"r{n}", "output_tokens": 60, "score": 0.9} for n in range(count)]


def test_a_paired_sample_gives_the_ratio(tmp_path):
    rows, pairs = paired()
    pairs[1]["model"] = "openai/Stacks"
    pairs[0]["output_tokens"] = 37  # 11 x 60 + 37 = 697 of 1,200
    found = found_in([*rows, row(output_tokens=1_000)], evals=sample(tmp_path / "s.csv", pairs))
    assert found.label == "measured"
    assert saved(found) == sum(one - round(one * Fraction(697, 1_200)) for one in [100] * 12 + [1_000]) * 10 * UUSD
    told = facts(found)
    assert (told["sample_rows"], told["output_ratio"], told["mean_score"]) == (12, "0.5808", "0.9")


def test_truncated_pairs_are_left_out_and_rows_without_a_request_are_counted(tmp_path):
    rows, pairs = paired()
    pairs[0] |= {"output_tokens": 10, "finish_reason": "length"}
    rows[1]["finish_reason"] = "length"
    pairs[1]["output_tokens"] = 1
    pairs += [{"request_id": "nobody", "output_tokens": 5, "score": 1}, {"feature": "tagging", "output_tokens": 5}]
    found = found_in(rows, evals=sample(tmp_path / "s.csv", pairs))
    assert facts(found)["output_ratio"] == "0.6000"
    assert facts(found)["sample_unpaired"] == 2
    unit = next(one["unit"] for one in found.evidence if one["name"] == "output_ratio")
    assert "2 truncated ones left out" in unit


@pytest.mark.full
def test_features_that_are_named_have_ratios_of_their_own(tmp_path):
    rows = [row(request_id=f"{name}{n}", feature=name) for name in ("a", "b", "c") for n in range(2)]
    pairs = [
        {"request_id": f"{name}{n}", "output_tokens": after, "feature": name if name == "a" else "", "score": 1}
        for name, after in (("a", 20), ("b", 50))
        for n in range(2)
    ]
    pairs[0]["input_tokens"] = 900  # known for one pair of a: 900 of 1,000
    file = sample(tmp_path / "s.csv", pairs)
    assert [made[::4] for made in trimmed(rows, evals=file)] == [(900, 20)] * 2 + [(1_000, 50)] * 4
    # c has the ratio of the pairs that name no feature; without such pairs it stays as assumed, and is not measured
    assert found_in(rows, evals=file).label == "measured"
    only = sample(tmp_path / "a.csv", pairs[:2])
    assert [made[4] for made in trimmed(rows, evals=only)] == [20] * 2 + [100] * 4
    assert found_in(rows, evals=only).label == "modelled"


@pytest.mark.full
def test_the_interval_of_the_sample_is_that_of_the_saving(tmp_path):
    rows, pairs = paired(24)
    for number, pair in enumerate(pairs):
        pair["output_tokens"] = 40 if number % 2 else 80
    table = {"where": "true", "evals": sample(tmp_path / "s.csv", pairs), "effort_days": 0}
    [one] = tf.plan(ledger(rows), assume={"trim": table}, levers=(LEVER,)).estimates
    assert one.saving.mid == 24 * 40 * 10 * UUSD
    # half of the pairs keep 40, half 80: the ratio's standard error is 0.2 / sqrt(24) = 0.041, so about 0.08 either way
    for end, sign in ((one.saving.low, -1), (one.saving.high, 1)):
        assert end / one.saving.mid == pytest.approx(1 + sign * 0.08 / 0.4, abs=0.05)
    few = {**table, "evals": sample(tmp_path / "few.csv", pairs[:9])}  # nine bound nothing
    [one] = tf.plan(ledger(rows), assume={"trim": few}, levers=(LEVER,)).estimates
    assert one.saving.low == one.saving.mid == one.saving.high
    assert "too few to bound it" in next(fact["unit"] for fact in one.evidence if fact["name"] == "output_ratio")


@pytest.mark.parametrize(
    ("own", "slo", "vetoed"),
    [
        pytest.param(None, None, 0, marks=pytest.mark.full),
        pytest.param(0.9, None, 0, marks=pytest.mark.full),
        pytest.param(Decimal("0.900001"), None, 2, marks=pytest.mark.full),
        pytest.param(None, Slo(min_quality=0.95), 2, marks=pytest.mark.full),
        (0.5, Slo(feature={"a": {"min_quality": 0.95}}), 1),
        pytest.param(0.95, Slo(min_quality=0.1), 2, marks=pytest.mark.full),
    ],
)
def test_the_sample_must_reach_the_quality_that_is_asked_for(tmp_path, own, slo, vetoed):
    rows = [row(request_id="r0", feature="a"), row(request_id="r1", feature="b")]
    pairs = [{"request_id": f"r{n}", "output_tokens": 50, "score": score} for n, score in enumerate((0.8, 1))]
    table = {"evals": sample(tmp_path / "s.csv", pairs)} | ({} if own is None else {"min_quality": own})
    found = found_in(rows, slo, **table)
    assert facts(found).get("vetoed", 0) == vetoed
    assert found.status == ("vetoed" if vetoed == 2 else "ok")
    assert saved(found) == (2 - vetoed) * 500 * UUSD
    assert len(found.left_out) == vetoed


@pytest.mark.full
def test_a_sample_without_scores_reaches_no_quality(tmp_path):
    file = sample(tmp_path / "s.csv", [{"request_id": "r0", "output_tokens": 50}])
    assert found_in([row(request_id="r0")], evals=file).status == "ok"
    assert found_in([row(request_id="r0")], evals=file, min_quality=0.1).status == "vetoed"


@pytest.mark.full
def test_a_sample_of_nothing_in_the_log(tmp_path):
    file = sample(tmp_path / "s.csv", [{"request_id": "r0", "output_tokens": 50}])
    found = found_in([row(request_id="r1")], evals=file)
    assert found.status == "not_measurable"
    assert "none of the 1 rows" in found.reason
    assert found_in([row(request_id="r0"), row(request_id="r0")], evals=file).status == "not_measurable"  # which one?
    assert found_in([row(request_id="r1")], evals=file, output_ratio=0.5).label == "modelled"


def test_a_sample_of_another_model_is_refused(tmp_path):
    file = sample(tmp_path / "s.csv", [{"request_id": "r0", "output_tokens": 50, "model": "plain"}])
    with pytest.raises(AssumptionError, match=r's\.csv, line 2: model "plain" is not the one that request r0 ran on'):
        found_in([row(request_id="r0")], evals=file)
    file = sample(tmp_path / "u.csv", [{"request_id": "r0", "score": 1}])
    with pytest.raises(AssumptionError, match="no column output_tokens"):
        found_in([row(request_id="r0")], evals=file)
