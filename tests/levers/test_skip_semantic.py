"""A labelled sample of a semantic cache: hits weighed by spend, wrong answers at the upper end of what is possible."""

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
from small_logs import facts, ledger, look, row

from tenfold.errors import AssumptionError
from tenfold.levers import LEVERS
from tenfold.levers.assume import assumptions
from tenfold.levers.baselines import semantic_net
from tenfold.levers.semantic import read_sample
from tenfold.levers.skip import LEVER
from tenfold.money import PUSD_PER_USD, to_usd

NOON = datetime(2026, 6, 1, 12)


def log():
    """Four small requests at $0.002 (of 1,000 tokens in) and one of ten times that: $0.028 in all."""
    rows = [row(output_tokens=0, input_tokens=1_000) for _ in range(4)] + [row(output_tokens=0, input_tokens=10_000)]
    made = {"params_hash": "q", "duration_ms": 1.0, "status": "success", "finish_reason": "stop", "org": "acme"}
    return [
        {**one, **made, "prompt_hash": f"p{n}", "request_id": f"r{n}", "ts": NOON + timedelta(seconds=n)}
        for n, one in enumerate(rows)
    ]


def told(folder, sample, **semantic):
    (folder / "sample.csv").write_text(sample, encoding="utf-8")
    given = {"sample": str(folder / "sample.csv"), "wrong_usd": 0, **semantic}
    return facts(look(LEVER, ledger(log()), {"skip": {"where": "true", "semantic": given}}))


def test_hits_are_worth_their_share_of_the_spend(tmp_path):
    # sampled: three small ones and the large one, $0.026; two small ones hit, $0.004
    sample = "request_id,hit,wrong\nr0,1,0\nr1,1,0\nr2,0,\nr4,0,\nelsewhere,1,0\n"
    found = told(tmp_path, sample)
    assert (found["semantic_sampled"], found["semantic_not_found"], found["semantic_labelled_hits"]) == (4, 1, 3)
    assert found["semantic_hit_share_of_requests"] == "0.5000"
    assert found["semantic_hit_share_of_spend"] == "0.1538"  # 0.004 / 0.026, not a half
    assert Decimal(found["semantic_net_usd"]) == round(Decimal("0.028") * 4 / 26, 12)
    assert found["cost_removed_usd"] == "0.00"  # evidence only: nothing of it is in the saving


def test_wrong_answers_are_charged_at_the_upper_end(tmp_path):
    sample = "request_id,hit,wrong\nr0,true,1\nr1,true,0\nr2,false,\n"
    found = told(tmp_path, sample, wrong_usd=Decimal("0.01"), lookup_usd=Decimal("0.0001"))
    # two of three hit: 2/3 of the spend 0.028; of five requests 3 (10/3) hit, half of them wrong; five lookups
    mid = round(Decimal("0.028") * 2 / 3, 12) - Decimal("0.01") * 3 / 2 - Decimal("0.0005")
    assert Decimal(found["semantic_net_mid_usd"]) == mid
    assert found["semantic_wrong_share"] == "0.5000"
    # Wilson's upper end of 1 in 2 is 0.9055
    upper = round(Decimal("0.028") * 2 / 3, 12) - Decimal("0.01") * 3 * Decimal("0.905469") - Decimal("0.0005")
    assert abs(Decimal(found["semantic_net_usd"]) - upper) < Decimal("1e-7")
    assert Decimal(found["semantic_net_usd"]) < 0 < Decimal(found["semantic_break_even_wrong_usd"]) < Decimal("0.01")


@pytest.mark.full
def test_without_judged_hits_there_is_no_figure(tmp_path):
    found = told(tmp_path, "request_id,hit,wrong\nr0,1,\nr1,0,\n")
    assert (found["semantic_labelled_hits"], found["semantic_net_usd"]) == (0, None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("request_id,hit\nr0,1\n", "lacks wrong"),
        ("request_id,hit,wrongs\nr0,1,0\n", 'unknown column "wrongs". Did you mean "wrong"?'),
        ("request_id,hit,wrong\nr0,1,0\nr1,yes,0\n", 'line 3: hit must be 1 or 0, not "yes"'),
        ("request_id,hit,wrong\nr0,1,0\nr0,1,0\n", 'line 3: request_id "r0" stands twice'),
        ("request_id,hit,wrong\n,1,0\n", "line 2: request_id is empty"),
        ("request_id,hit,wrong\nr0,,0\n", "line 2: hit is empty"),
        ("request_id,hit,wrong\nr0,0,0\n", "line 2: wrong is of a hit only"),
        ("", "cannot be read as CSV"),
    ],
)
def test_a_sample_that_cannot_be_used(tmp_path, text, message):
    file = tmp_path / "sample.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(AssumptionError) as raised:
        read_sample(file)
    assert message in str(raised.value)
    assert str(file) in str(raised.value)


def test_the_sample_lies_beside_the_assumptions_file(tmp_path):
    text = '[skip]\nwhere = "true"\nsemantic = { sample = "sample.csv", wrong_usd = 0.5 }\n'
    (tmp_path / "assume.toml").write_text(text, encoding="utf-8")
    given = assumptions(tmp_path / "assume.toml", LEVERS).levers["skip"].values["semantic"]
    assert given == {"sample": tmp_path / "sample.csv", "wrong_usd": Decimal("0.5")}
    with pytest.raises(AssumptionError, match=r"semantic needs wrong_usd"):
        assumptions({"skip": {"semantic": {"sample": "x.csv"}}}, LEVERS)
    with pytest.raises(AssumptionError, match="cannot be read as CSV.*relative to the assumptions file"):
        read_sample(tmp_path / "none.csv")


def test_case_43_net_of_wrong_answers_crosses_zero():
    # the table of GPTCache's benchmark: at 0.8 of 1,000 pairs 904 hits are right, 92 wrong, 3 miss
    def net(wrong_usd):
        return semantic_net(
            saving_pusd=996 * PUSD_PER_USD // 100, hits=996, labelled=996, wrong=92,
            wrong_pusd=round(wrong_usd * PUSD_PER_USD), lookups_pusd=0,
        )  # fmt: skip

    free = net(0)
    assert (f"{free.wrong_share:.3f}", f"{free.bound.low:.3f}", f"{free.bound.high:.3f}") == ("0.092", "0.076", "0.112")
    assert free.net_pusd == 996 * PUSD_PER_USD // 100
    # a cent a hit: gone when a wrong answer costs 1 / 0.112 cents, about nine cents
    assert net(0.08).net_pusd > 0 > net(0.10).net_pusd
    assert f"{to_usd(free.break_even_wrong_pusd):.3f}" == "0.089"


def test_case_44_a_share_of_hits_is_no_share_of_the_bill():
    # $200, 60 % of it output, half of the requests hit: $60 only where embedding and storing eat what input saves
    bill, output, hit = Decimal(200), Decimal("0.6"), Decimal("0.5")
    assert bill * output * hit == 60
    # and where the half that hits is short (a fifth of the spend), it is $40 at most, before any lookup
    rows = [row(output_tokens=0, input_tokens=tokens) for tokens in (1_000, 4_000)]
    same = {"prompt_hash": "p", "params_hash": "q", "duration_ms": 1.0, "status": "success", "finish_reason": "stop"}
    log = [{**rows[1], **same, "ts": NOON}, {**rows[0], **same, "ts": NOON + timedelta(seconds=1)}]
    found = facts(look(LEVER, ledger(log), {"skip": {"where": "true"}}))
    assert (found["hit_share_of_requests"], found["removed_share_of_spend"]) == ("0.5000", "0.2000")
    assert bill * Decimal(found["removed_share_of_spend"]) == 40
