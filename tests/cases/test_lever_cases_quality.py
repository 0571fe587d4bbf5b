"""Public claims about routing and semantic caches (sections E and F of the levers' cases): what the numbers mean."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tenfold.levers.baselines import Outcome, baselines, cost_saving_ratio, saving_at_share, semantic_net
from tenfold.levers.quality import gap_recovered, wilson

STRONG, WEAK = Decimal("24.7"), Decimal("0.24")  # USD per million tokens, RouteLLM Table 6
USD = 10**12


@pytest.mark.parametrize(
    ("random_share", "router_share", "claimed", "saving", "fold"),
    [
        pytest.param("49.03", "13.40", "3.66", "85.8", "7.0", id="mt-bench-50"),
        pytest.param("78.08", "31.31", "2.49", "68.0", "3.1", id="mt-bench-80"),
        pytest.param("50.07", "35.40", "1.41", "64.0", "2.8", id="mmlu-50"),
        pytest.param("79.93", "70.31", "1.14", "29.4", "1.42", id="mmlu-80"),
        pytest.param("50.00", "33.64", "1.49", "65.7", "2.9", id="gsm8k-50"),
        pytest.param("80.08", "63.26", "1.27", "36.4", "1.57", id="gsm8k-80"),
    ],
)
def test_case_37_a_ratio_to_chance_is_no_saving(random_share, router_share, claimed, saving, fold):
    ratio = cost_saving_ratio(Decimal(random_share), Decimal(router_share))
    assert round(ratio, 2) == Decimal(claimed)
    true = saving_at_share(Decimal(router_share) / 100, STRONG, WEAK)
    assert round(100 * true, 1) == Decimal(saving)
    assert f"{1 / (1 - true):.{len(fold.split('.')[1])}f}" == fold


def test_case_40_the_price_ratio_of_one_request_is_not_the_saving_of_the_traffic():
    # one easy query answered by a model at 6 % of the price: 94 % of that request
    dear, cheap = Decimal(100), Decimal(6)
    assert saving_at_share(Decimal(0), dear, cheap) == Decimal("0.94")
    # "up to 30 %" on traffic is what is left when 68 % must stay with the dear one
    assert round(100 * saving_at_share(Decimal("0.68"), dear, cheap)) == 30
    # and where what may move is small, less again: two requests, the easy one a tenth of the size
    easy, hard = Outcome(Decimal(1), Decimal(1), 6, 100), Outcome(Decimal(0), Decimal(1), 60, 1_000)
    found = baselines([easy, hard], [True, False])
    assert found.routed.quality == found.always_strong.quality
    assert round(1 - Decimal(found.routed.cost_pusd) / found.always_strong.cost_pusd, 4) == Decimal("0.0855")


def test_case_41_a_learned_router_below_chance_at_its_own_rate():
    # 800 requests with the published margins: small model right on 546, 64 more only by the large one (oracle 76.25 %
    # at 8 % strong), 26 only by the small one; the router sends 81 to it, ten of which only the large one gets right
    yes, no = Decimal(1), Decimal(0)
    kinds = {
        "only_strong": (Outcome(no, yes, 35, 100), 64, 10),
        "only_weak": (Outcome(yes, no, 35, 100), 26, 2),
        "both": (Outcome(yes, yes, 35, 100), 520, 69),
        "none": (Outcome(no, no, 35, 100), 190, 0),
    }
    sample, to_weak = [], []
    for outcome, count, small in kinds.values():
        sample += [outcome] * count
        to_weak += [True] * small + [False] * (count - small)
    found = baselines(sample, to_weak)
    percents = [round(100 * one.quality, 2) for one in (found.routed, found.random, found.oracle)]
    assert percents == [Decimal("72.00"), Decimal("72.52"), Decimal("76.25")]
    assert found.oracle.strong_share == Decimal("0.08")
    assert found.routed.cost_pusd == found.random.cost_pusd
    # it recovers less of the gap than chance, which recovers its own share of strong calls
    weak, strong = [float(one.weak) for one in sample], [float(one.strong) for one in sample]
    routed = [w if small else s for w, s, small in zip(weak, strong, to_weak, strict=True)]
    recovered = gap_recovered(routed, weak, strong)
    assert recovered.value == pytest.approx(30 / 38)
    assert recovered.value < found.random.strong_share


def test_case_43_wrong_hits_cost_until_the_saving_is_gone():
    # a threshold as loose as can be finds nearly all, and still one hit in eleven is wrong
    for right, wrong, saved_cents in ((425, 25, 450), (804, 77, 881), (904, 92, 996)):
        hits = right + wrong
        found = {
            cents: semantic_net(
                saving_pusd=saved_cents * USD // 100,  # a cent a hit
                hits=hits,
                labelled=hits,
                wrong=wrong,
                wrong_pusd=cents * USD // 100,
                lookups_pusd=0,
            )
            for cents in (0, 5, 50)
        }
        assert found[0].net_pusd == found[0].net_mid_pusd == saved_cents * USD // 100
        assert found[5].net_pusd > 0 > found[50].net_pusd
        # the harm of one wrong answer may be one cent over the bound of their share
        edge = found[5].break_even_wrong_pusd
        assert edge == pytest.approx(USD / 100 / wilson(wrong, hits).high)
        assert 5 * USD // 100 < edge < 50 * USD // 100


def test_case_44_hits_are_weighed_by_what_they_cost_and_lookups_are_paid():
    # a bill of $200, 60 % of it output, half of the requests hit: a calculator says 200 x 0.6 x 0.5 = $60
    def net(saved_usd, lookups_usd):
        made = semantic_net(
            saving_pusd=saved_usd * USD, hits=500, labelled=500, wrong=0, wrong_pusd=0, lookups_pusd=lookups_usd * USD
        )
        return made.net_pusd // USD

    # that holds only if embeddings and storage eat exactly the input that is saved, 200 x 0.4 x 0.5 = $40
    assert net(saved_usd=100, lookups_usd=40) == 60
    assert net(saved_usd=100, lookups_usd=5) == 95
    # and if hits are as dear as misses: half of 1,000 requests at 4 cents hit, the other half cost 36 cents
    dear, cheap = 500 * 36, 500 * 4
    assert dear + cheap == 200 * 100
    assert net(saved_usd=cheap // 100, lookups_usd=8) == 12
