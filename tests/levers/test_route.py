"""Another model for part of the traffic: which requests move, what is charged, and what is said about it."""

from datetime import datetime, timedelta

import pytest
from route_logs import NOON, PLAIN, PRICES, UUSD, alone, asked, found_in, planned
from small_logs import facts, ledger, look, row, saved

import tenfold as tf
from tenfold.errors import AssumptionError
from tenfold.levers.route import LEVER
from tenfold.slo import Slo


def test_a_router_moves_what_scores_well_and_charges_for_all(scored):
    rows = [asked(n) for n in range(4)]
    table = {"evals": scored((0, 1), (1, 0.5), (2, 0.4)), "router_usd": 0.000007}
    (found,) = planned(rows, table).estimates
    assert (found.status, found.label, found.addressed_pusd) == ("ok", "measured", 6_000 * UUSD)
    assert saved(found) == 2 * 2_300 * UUSD
    assert found.alone_pusd == (2 * 2_300 - 4 * 7) * UUSD
    told = facts(found)
    assert (told["requests_in_where"], told["requests_routed"], told["fees_usd"]) == (4, 2, "0.000028")
    assert (told["below_quality"], told["no_score"]) == (1, 1)


@pytest.mark.full
def test_without_a_threshold_it_must_do_as_well_as_todays_model(scored):
    own = [{"request_id": "r0", "model": "big", "score": 0.8}, {"feature": "tagging", "model": "big", "score": 0.3}]
    file = scored((0, 0.7), (1, 0.3), *own)
    table = {"where": "true", "to_model": "small", "output_ratio": 1, "evals": file}
    found = look(LEVER, ledger([asked(0), asked(1), asked(2, feature="x")], PRICES), {"route": table})
    assert facts(found)["requests_routed"] == 1  # r1, as good as its feature is today
    assert (facts(found)["below_quality"], facts(found)["no_score"]) == (1, 1)


@pytest.mark.full
def test_a_request_counts_its_own_score_before_that_of_its_feature(scored):
    file = scored((0, 0), {"feature": "tagging", "score": 1})
    assert facts(found_in([asked(0), asked(1)], {"evals": file}))["requests_routed"] == 1


def test_service_levels_by_feature_raise_the_threshold(scored):
    rows = [asked(0), asked(1, feature="docs")]
    table = {"where": "true", "evals": scored((0, 0.7), (1, 0.7))}
    slo = Slo(feature={"docs": {"min_quality": 0.9}})
    assert facts(found_in(rows, table, slo))["requests_routed"] == 1


@pytest.mark.full
def test_service_levels_for_all_traffic_raise_it_too(scored):
    rows = [asked(0), asked(1, feature="docs")]
    table = {"where": "true", "evals": scored((0, 0.7), (1, 0.7))}
    assert facts(found_in(rows, table))["requests_routed"] == 2
    slo = Slo(min_quality=0.9, feature={"docs": {"min_quality": 0.1}})
    assert facts(found_in(rows, table, slo))["requests_routed"] == 1  # docs: the larger one is the lever's own 0.5
    found = found_in(rows, table, Slo(min_quality=0.9))
    assert (found.status, facts(found)["below_quality"]) == ("vetoed", 2)
    assert found.reason == (
        "of 2 requests in its where none may move; 2 are requests whose score is too low, at most 0.7 for small; the "
        "bar is min_quality of the service levels (0.9)"
    )


def unbarred(rows, evals):
    table = {key: value for key, value in PLAIN.items() if key != "min_quality"}
    return look(LEVER, ledger(rows, PRICES), {"route": {**table, "evals": evals}})


@pytest.mark.full
def test_a_bar_that_no_service_level_set_is_no_veto(scored):
    rows, today = (
        [asked(0), asked(1)],
        [{"request_id": f"r{n}", "model": "big", "score": 0.9 + n / 100} for n in (0, 1)],
    )
    table = {"evals": scored((0, 0.7), (1, 0.8), *today), "min_quality": 0.95}
    found = found_in(rows, table, Slo(min_quality=0.2))
    assert (found.status, facts(found)["below_quality"]) == ("nothing_eligible", 2)
    assert found.reason.endswith("at most 0.8 for small; the bar is min_quality of [route] (0.95)")
    found = unbarred(rows, table["evals"])
    assert (found.status, facts(found)["below_quality"]) == ("nothing_eligible", 2)
    assert "the bar is today's model's score (0.9 to 0.91), as no min_quality is stated; min_quality" in found.reason


@pytest.mark.full
def test_scores_without_a_bar_are_not_called_missing(scored):
    found = unbarred([asked(0), asked(1)], scored((0, 0.7), (1, 0.8)))
    assert found.status == "nothing_eligible"
    assert found.reason.startswith(
        "2 of 2 requests have a score of small and nothing to hold it against: state min_qual"
    )


@pytest.mark.full
def test_names_in_the_evals_that_the_log_does_not_have(scored):
    other = row(provider="anthropic", model="claude-haiku-4-5", feature="elsewhere")
    file = scored({"feature": "taging", "score": 1}, (77, 1), (78, 1))
    found = found_in([asked(0), other], {"evals": file})
    assert found.status == "nothing_eligible"
    assert "1 of 1 requests have no score of small in [route] evals (" in found.reason
    feature = 'no request has feature "taging". Did you mean "tagging"?'
    ids = 'no request has request_id "r77". So with 1 more of its request ids.'
    assert found.notes == (f"evals: {feature}", f"evals: {ids}")
    assert found.reason.endswith(f"{feature}; {ids}")
    assert "anthropic" not in found.reason  # its traffic is not in where


SESSIONS = ("a", "a", "b", None, None), (1, 0, 1, 1, 0)


def test_sticky_moves_whole_sessions(scored):
    names, scores = SESSIONS
    rows = [asked(n, session_id=name) for n, name in enumerate(names)]
    found = found_in(rows, {"evals": scored(*enumerate(scores)), "sticky": True})
    assert saved(found) == 2 * 2_300 * UUSD
    assert facts(found)["unlike_session"] == 1
    assert facts(found)["per_request_saving_usd"] == "0.0069"


@pytest.mark.full
def test_what_whole_sessions_would_save_is_told_beside(scored):
    names, scores = SESSIONS
    rows = [asked(n, session_id=name) for n, name in enumerate(names)]
    found = found_in(rows, {"evals": scored(*enumerate(scores))})
    assert saved(found) == 3 * 2_300 * UUSD
    assert facts(found)["sticky_saving_usd"] == "0.0046"


@pytest.mark.full
def test_the_same_model_saves_nothing(scored):
    # M12
    found = found_in([asked(0), asked(1)], {"to_model": "openai/BIG", "evals": scored((0, 1))})
    assert (found.status, found.addressed_pusd, facts(found)["same_model"]) == ("nothing_eligible", 0, 2)
    assert "run on that model already" in found.reason
    assert alone([asked(0)], {"to_model": "big", "evals": scored((0, 1))}) == 0


def test_not_moved(scored):
    rows = [
        asked(0),
        asked(1, is_billable=False),
        asked(2, gateway_cache_hit=True),
        asked(3, output_tokens=None),
        asked(4, service_tier="flex"),  # neither has that tier
        asked(5, feature="other"),
        asked(6, ts=None),
        row(model="unheard-of", request_id="r7"),
    ]
    found = found_in(rows, {"evals": scored(*((n, 1) for n in range(8)))})
    assert saved(found) == 2_300 * UUSD
    assert facts(found)["unpriced"] == 4


@pytest.mark.full
def test_a_request_whose_tier_has_no_price_there_stays(scored):
    rows = [asked(0), asked(1, service_tier="batch")]
    file = scored(*({"request_id": f"r{n}", "score": 1, "model": "tiny"} for n in range(2)))
    found = found_in(rows, {"to_model": "tiny", "evals": file})
    assert (saved(found), facts(found)["no_price"]) == (2_300 * UUSD, 1)


@pytest.mark.full
def test_another_provider(scored):
    prices = tf.price_book()
    rows = [row(provider="anthropic", model="claude-sonnet-4-5", request_id="r0", ts=datetime(2026, 10, 1))]
    file = scored({"request_id": "r0", "model": "gpt-4.1-mini", "score": 1})
    table = {**PLAIN, "to_provider": "OpenAI", "to_model": "gpt-4.1-mini", "evals": file}
    found = look(LEVER, ledger(rows, prices), {"route": table})
    # Sonnet 4.5: 3 and 15 USD per million; GPT-4.1 mini: 0.40 and 1.60
    assert saved(found) == (3_000 + 1_500 - 400 - 160) * UUSD


def test_without_scores_it_is_the_most_there_is():
    rows = [asked(n, ts=NOON + timedelta(days=n % 12)) for n in range(400)] + [asked(400, feature="x")] * 3
    plan = planned(rows, {"where": "true", "output_ratio": [0.7, 1, 1.5]})
    (one,) = plan.estimates
    assert (one.status, one.label, one.saving) == (
        "no_assumption",
        "ceiling",
        (None, 403 * 2_300 * UUSD, 403 * 2_300 * UUSD),
    )
    assert one.reason.startswith("no scores yet: name a file of them as evals of [route]")
    assert (plan.levers, plan.joint_all_pusd) == ((), 0)
    told = {fact["name"]: fact for fact in one.evidence}
    # Wilson at 1/2 within 0.05 takes 381 labels; the other feature has three requests
    assert told["labels_that_would_decide"]["value"] == 381 + 3


def test_traffic_must_be_named():
    made = ledger([asked(0)], PRICES)
    for tables, reason in (
        ({}, "add [route] with where"),
        ({"route": {"to_model": "small"}}, "name the traffic as where"),
    ):
        found = look(LEVER, made, tables)
        assert (found.status, found.applies, found.addressed_pusd) == ("no_assumption", False, None)
        assert reason in found.reason


@pytest.mark.full
def test_a_model_without_a_price(scored):
    found = found_in([asked(0)], {"to_model": "smal", "evals": scored((0, 1))})
    assert (found.status, found.applies) == ("not_measurable", False)
    assert found.reason.startswith("[route] to_model has no price: ")
    assert 'Did you mean "small"?' in found.reason
    # measured costs need none
    file = scored({"request_id": "r0", "model": "own", "score": 1, "cost_usd": 0.0005})
    assert saved(found_in([asked(0)], {"to_model": "own", "evals": file})) == 2_500 * UUSD


@pytest.mark.full
def test_a_model_without_a_score(scored):
    found = found_in([asked(0)], {"to_model": "tiny", "evals": scored((0, 1))})
    assert found.status == "nothing_eligible"
    assert 'has no score of "tiny" (openai).' in found.reason
    assert "It has scores of small" in found.reason


@pytest.mark.full
def test_a_where_that_matches_nothing(scored):
    found = found_in([asked(0)], {"where": "feature = 'taging'", "evals": scored((0, 1))})
    assert (found.status, 'Did you mean "tagging"?' in found.reason) == ("nothing_eligible", True)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"to_model": " "}, "[route]: to_model is missing"),
        (
            {"verifier": {"usd": 0, "candidat_in_prompt": True}},
            'verifier has no key "candidat_in_prompt". Did you mean',
        ),
        ({"verifier": {"candidate_in_prompt": True}}, "verifier needs usd"),
        ({"verifier": {"usd": -1}}, "verifier usd must be a number of at least 0"),
        ({"verifier": 3}, "verifier must be a table"),
        ({"sticky": True, "verifier": {"usd": 0}}, "leave out sticky or verifier"),
        ({"sticky": 1}, "sticky must be true or false"),
        ({"cache": "folow"}, 'Did you mean "follow"?'),
        ({"token_ratio": [1, 0.9, 2]}, "in rising order"),
        ({"output_ratio": "0.1234567"}, "must be a number"),
        ({"evals": "none.csv"}, "[route] evals: none.csv: cannot be read"),
    ],
)
def test_refused(table, error):
    with pytest.raises(AssumptionError) as caught:
        found_in([asked(0)], table)
    assert error in str(caught.value)


def test_what_a_router_is_held_against(scored):
    # both right, only big, only small, both wrong; the router sends the first and the third
    pairs = [(1, 1), (0, 1), (1, 0), (0, 0)]
    told = [(n, weak) for n, (weak, _) in enumerate(pairs)]
    told += [{"request_id": f"r{n}", "model": "big", "score": strong} for n, (_, strong) in enumerate(pairs)]
    told = facts(found_in([asked(n) for n in range(4)], {"evals": scored(*told)}))
    assert told["paired_requests"] == 4
    scores = {name.removeprefix("score_"): value for name, value in told.items() if name.startswith("score_")}
    assert scores == {
        "routed": "0.7500", "all_original": "0.5000", "all_small": "0.5000", "random_same_rate": "0.5000",
        "oracle": "0.7500",
    }  # fmt: skip
    # 700 a small answer, 3,000 a big one; the oracle takes the small one but where only big is right
    costs = {name: told[f"cost_{name}_usd"] for name in scores}
    assert costs == {
        "routed": "0.0074", "all_original": "0.012", "all_small": "0.0028", "random_same_rate": "0.0074",
        "oracle": "0.0051",
    }  # fmt: skip
    assert told["best_static_model"] == "small"  # as good, and cheaper
    assert "gap_recovered" not in told  # there is no gap between the two
    assert told["quality_drop"] == "-0.2500"
    assert "quality_drop_low" not in told  # four pairs bound nothing


@pytest.mark.full
def test_the_gap_recovered_has_a_paired_interval(scored):
    told = [(n, int(n < 20)) for n in range(40)]
    told += [{"request_id": f"r{n}", "model": "big", "score": 1} for n in range(40)]
    told = facts(found_in([asked(n) for n in range(40)], {"evals": scored(*told)}))
    assert (told["gap_recovered"], told["gap_recovered_low"], told["gap_recovered_high"]) == ("1.0000",) * 3
    assert (told["score_routed"], told["score_random_same_rate"]) == ("1.0000", "0.7500")


@pytest.mark.full
def test_what_the_evals_name_and_the_log_does_not_have(scored):
    file = scored((0, 95), (77, 95), {"feature": "gone", "score": 95})
    told = {one["name"]: one for one in found_in([asked(0)], {"evals": file}).evidence}
    assert told["evals_of_unknown_requests"]["value"] == 1
    assert told["evals_of_unknown_features"]["unit"].endswith("gone")
    assert "are they on one scale?" in told["scales_differ"]["unit"]


@pytest.mark.full
def test_cases_38_and_40_a_ratio_of_prices_is_not_the_saving_of_the_traffic(scored):
    # the easy request costs a quarter at small; the traffic saves far less, and the baseline is named
    rows = [asked(0), asked(1, input_tokens=20_000)]
    plan = planned(rows, {"evals": scored((0, 1), (1, 0))})
    (one,) = plan.estimates
    assert one.saving.mid == 2_300 * UUSD
    assert one.saving.mid / one.addressed_pusd > 0.76
    assert one.saving.mid / plan.spend_pusd < 0.06
    assert one.baseline == "the log as billed, at the prices in force when each request ran"
    assert "a range to be sceptical of, never an input" in one.rule_of_thumb


@pytest.mark.full
def test_routerbench_totals(scored):
    # routerbench-mini, totals in CNY (numbers only, taken as USD): always strong .6394404, always cheap .2334852, the
    # router .5503100: 13.9 %. One request stands for those that it routes, one for the others.
    prices = (
        'provider = "openai"\n[[price]]\nmodel = "big"\ninput = 0.1\noutput = 1\nsource = "t"\nchecked = 2026-01-01\n'
    )
    rows = [asked(0, input_tokens=1_891_304, output_tokens=0), asked(1, input_tokens=4_503_100, output_tokens=0)]
    told = [{"request_id": "r0", "score": 1, "cost_usd": 0.1}, {"request_id": "r1", "score": 0, "cost_usd": 0.1334852}]
    told += [{"request_id": f"r{n}", "model": "big", "score": 1} for n in range(2)]
    plan = tf.plan(ledger(rows, prices), assume={"route": {**PLAIN, "evals": scored(*told)}}, levers=(LEVER,))
    (one,) = plan.estimates
    named = {given["name"]: given["value"] for given in one.evidence}
    assert (named["cost_all_original_usd"], named["cost_all_small_usd"]) == ("0.6394404", "0.2334852")
    assert named["cost_routed_usd"] == "0.55031"
    assert round(100 * one.saving.mid / plan.spend_pusd, 1) == 13.9


@pytest.mark.full
def test_advice_names_feature_model_and_money(scored):
    found = found_in([asked(0), asked(1)], {"evals": scored((0, 1), (1, 0))})
    assert found.advice.first_action == (
        "Send the requests of `tagging` that small answers well enough to it: 1 request, $0.00 before router and "
        "verifier."
    )
    assert "`tagging`" in found.advice.verify
    assert "`tagging`" in found.advice.undo


@pytest.mark.full
def test_turns_that_begin_at_one_instant_are_told_apart_by_id_not_by_their_place(scored):
    # r1, which stays, is the turn before r2: its 500 reads at 0.05 are lost, 500 x (0.5 - 0.05) = 225 of what it saves
    later = asked(2, session_id="s", ts=NOON + timedelta(minutes=1), cache_read_tokens=500)
    both = [asked(n, session_id="s", ts=NOON) for n in range(2)]
    table = {"evals": scored((0, 1), (1, 0), (2, 1))}
    found = {alone(order, table) for order in ([*both, later], [*both[::-1], later], [later, *both])}
    assert found == {(2_300 + 2_100 - 700) * UUSD}
