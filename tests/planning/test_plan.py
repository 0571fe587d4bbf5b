"""Plans: re-priced together, never added up; who gives way; what a short log may not say."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from quick import few
from small_logs import Shorten, ledger, row

import tenfold as tf
from tenfold import extras
from tenfold.errors import AssumptionError
from tenfold.levers import batch_api, prefix_cache
from tenfold.money import PUSD_PER_USD

NOON = datetime(2026, 6, 1, 12)
UUSD = 10**6
TWO = (prefix_cache.LEVER, batch_api.LEVER)
BATCH = {"where": "true", "effort_days": 0}


def days(count, **columns):
    """One request a day."""
    return [row(ts=NOON + timedelta(days=n), **columns) for n in range(count)]


def batched(made, slo=None, plan=None, **table):
    """A plan with one lever only: quicker, and alone, last-in and joint value are one."""
    assume = {"batch_api": {**BATCH, **table}} | ({"plan": plan} if plan else {})
    return plan_of(made, assume=assume, slo=slo, levers=(batch_api.LEVER,))


def plan_of(made, *, levers=TWO, **options):
    """A plan of two levers: what holds of a plan holds of any number of them, and two are quick."""
    return tf.plan(made, levers=levers, **options)


def of(plan, name):
    return next(one for one in plan.estimates if one.name == name)


def test_nothing_is_assumed():
    plan = plan_of(ledger([row(), row(cache_read_tokens=500)]))
    assert plan.spend_pusd == 5_100 * UUSD
    assert (plan.levers, plan.fold, plan.joint_all_pusd, plan.saving) == ((), 1.0, 0, (None, 0, None))
    assert [one.status for one in plan.estimates] == ["no_assumption", "no_assumption"]
    assert plan.is_evaluable


def test_a_ceiling_is_shown_beside_the_plan_and_has_no_lower_end():
    plan = plan_of(ledger(days(12)))
    batch = of(plan, "batch_api")
    assert (batch.status, batch.label) == ("no_assumption", "ceiling")
    assert batch.saving == (None, 12 * 1_500 * UUSD, 12 * 1_500 * UUSD)
    assert (batch.last_pusd, batch.shapley_pusd, batch.per_month_pusd) == (None, None, None)
    assert (plan.levers, plan.joint_all_pusd, plan.saving, plan.fold) == ((), 0, (0, 0, 0), 1.0)
    assert "Nothing assumed yet for prefix_cache, batch_api: write an assumptions file" in plan.headline()


def test_a_lever_that_changes_nothing_is_in_no_plan():
    plan = plan_of(ledger(days(12)), assume={"batch_api": BATCH, "prefix_cache": {"effort_days": 0}})
    assert of(plan, "prefix_cache").status == "ok"
    assert plan.levers == ("batch_api",)


def test_joint_value_is_re_priced_not_added():
    # One request a day: 1,000 input of which 1,000 written: 1,000 x 2.5 + 100 x 10 = 3,500 now.
    # none alone: 1,000 x 2 + 1,000 = 3,000, saves 500. batch alone: 1,000 x 1.25 + 500 = 1,750, saves 1,750.
    # both: 1,000 x 1 + 500 = 1,500, saves 2,000, not 2,250. Shapley: (500 + 250) / 2 and (1,750 + 1,500) / 2.
    plan = plan_of(
        ledger(days(12, cache_write_tokens=1_000)),
        assume={"batch_api": BATCH, "prefix_cache": {"policy": "none", "effort_days": 0}},
    )
    batch, none = of(plan, "batch_api"), of(plan, "prefix_cache")
    assert plan.spend_pusd == 12 * 3_500 * UUSD
    assert [batch.alone_pusd, none.alone_pusd] == [12 * 1_750 * UUSD, 12 * 500 * UUSD]
    assert [batch.last_pusd, none.last_pusd] == [12 * 1_500 * UUSD, 12 * 250 * UUSD]
    assert [batch.shapley_pusd, none.shapley_pusd] == [12 * 1_625 * UUSD, 12 * 375 * UUSD]
    assert plan.joint_all_pusd == plan.saving.mid == 12 * 2_000 * UUSD
    assert plan.roadmap == (("batch_api", 12 * 1_750 * UUSD), ("prefix_cache", 12 * 250 * UUSD))
    assert plan.fold == 3_500 / 1_500
    # the whole is in proportion to the days, so every draw of days costs the same
    assert plan.saving == (plan.saving.mid,) * 3
    assert batch.per_month_pusd == PUSD_PER_USD // 20  # 12 x 1,750 uUSD x 30.4 / 12 = 0.0532 USD, to the cent: 0.05
    assert plan.payback_days == 0.0


@pytest.mark.full
def test_per_month_is_withheld_below_seven_days():
    assert of(batched(ledger(days(6))), "batch_api").per_month_pusd is None
    seven = of(batched(ledger([*days(7), row(input_tokens=10**9)])), "batch_api")
    # (7 x 1,500 + 1,000,000,000 + 500) uUSD x 30.4 / 7 = 4,342.904914... USD, to the cent
    assert seven.per_month_pusd == 434_290 * PUSD_PER_USD // 100


@pytest.mark.parametrize(("count", "is_short"), few(1, [(6, True), (9, True), (10, False)]))
def test_a_short_log_has_no_interval(count, is_short):
    plan = batched(ledger(days(count)), effort_days=100)
    batch = of(plan, "batch_api")
    assert (batch.saving.low is None) == (batch.saving.high is None) == (plan.saving.low is None) == is_short
    assert (plan.bound_by == "short_log") == is_short
    # a short log maximises the middle saving and leaves the effort out; a long one weighs it
    assert plan.levers == (("batch_api",) if is_short else ())


def test_effort_and_running_cost_are_weighed():
    # 12 days x 1,500,500 uUSD = 18.006 USD saved; over 12 months of 30.4 days: 547.38 USD.
    made = ledger(days(12, input_tokens=1_500_000))
    horizon = {"horizon_months": 12, "day_rate_usd": 500}

    def planned(**table):
        return batched(made, plan=horizon, **table)

    assert planned(effort_days=1).levers == ("batch_api",)  # 500 USD of work
    assert planned(effort_days=0, running_usd_per_month=45).levers == ("batch_api",)  # 540 USD
    running = planned(effort_days=0, running_usd_per_month=46)  # 552 USD
    assert running.levers == ()
    told = of(running, "batch_api").reason
    assert "and $46 a month to run; set effort_days and running_usd_per_month in [batch_api]" in told
    plan = planned(effort_days=2)
    assert plan.levers == ()
    assert plan.why_none() == "none pays for its effort: batch_api"
    assert "None pays for its effort: batch_api." in plan.headline()
    reason = of(plan, "batch_api").reason
    assert "takes $1,000.00 (2 d of work at $500 a day; set effort_days in [batch_api], day_rate_usd" in reason
    assert "horizon_months in [plan])" in reason
    assert "at least $547.38" in of(plan, "batch_api").reason


def test_ranges_widen_the_interval_and_mid_stays():
    # 500 reads kept to 0, 250 or 500: input 1,000 / 775 / 550, output 500; now 2,100.
    plan = batched(ledger(days(12, cache_read_tokens=500)), cache_hit_factor=[0, 0.5, 1])
    batch = of(plan, "batch_api")
    assert batch.saving == (12 * 600 * UUSD, 12 * 825 * UUSD, 12 * 1_050 * UUSD)
    assert batch.label == "modelled"
    assert plan.saving == batch.saving


@pytest.mark.full
def test_days_that_differ_widen_the_interval():
    rows = [row(ts=NOON + timedelta(days=n), output_tokens=100 * n) for n in range(20)]
    batch = of(batched(ledger(rows)), "batch_api")
    assert batch.saving.low < batch.saving.mid < batch.saving.high
    assert batch.saving.mid == (20 * 1_000 + 190 * 500) * UUSD


@pytest.mark.full
def test_disjoint_levers_add_up():
    rows = [*days(12, feature="a"), *days(12, feature="b", is_stream=True, cache_write_tokens=1_000)]
    plan = plan_of(
        ledger(rows),
        assume={
            "batch_api": {"where": "feature = 'a'", "effort_days": 0},
            "prefix_cache": {"where": "feature = 'b'", "policy": "none", "effort_days": 0},
        },
    )
    assert [of(plan, name).alone_pusd for name in ("batch_api", "prefix_cache")] == [12 * 1_500 * UUSD, 12 * 500 * UUSD]
    for one in plan.estimates:
        assert one.alone_pusd == one.last_pusd == one.shapley_pusd
    assert plan.joint_all_pusd == 12 * 2_000 * UUSD


@pytest.mark.full
def test_a_further_lever_is_one_more_in_the_list():
    # A quarter of the output goes (75 left): 2,000 + 750 = 2,750 online, 1,000 + 375 = 1,375 in batch, of 3,000.
    quarter = Shorten("shorten", 25)
    plan = plan_of(ledger(days(12)), assume={"batch_api": BATCH}, levers=(*TWO, quarter))
    assert of(plan, "shorten").alone_pusd == 12 * 250 * UUSD
    assert of(plan, "batch_api").alone_pusd == 12 * 1_500 * UUSD
    assert plan.joint_all_pusd == 12 * 1_625 * UUSD
    assert sum(one.shapley_pusd or 0 for one in plan.estimates) == plan.joint_all_pusd
    assert sum(pusd for _, pusd in plan.roadmap) == plan.saving.mid
    # in the mechanical order, output is edited before the tier is applied, whatever the order of the list
    assert set(quarter.given) == {"lever_given_shorten"}


def test_of_two_rivals_the_one_that_saves_less_is_excluded():
    half, quarter = Shorten("halve", 50), Shorten("quarter", 25, conflicts=("halve",))
    plan = plan_of(ledger(days(12)), levers=(quarter, half))
    assert plan.levers == ("halve",)
    rival = of(plan, "quarter")
    assert (rival.status, rival.reason) == ("excluded", "shares its traffic with halve (halve saves more)")
    assert (rival.alone_pusd, rival.last_pusd, rival.shapley_pusd) == (12 * 250 * UUSD, None, None)
    assert plan.joint_all_pusd == of(plan, "halve").alone_pusd == 12 * 500 * UUSD


def test_include_and_exclude():
    made = ledger(days(12))
    for table in ({"exclude": ["batch_api"]}, {"include": ["prefix_cache"]}):
        plan = plan_of(made, assume={"batch_api": BATCH, "plan": table})
        batch = of(plan, "batch_api")
        assert (batch.status, batch.alone_pusd, batch.last_pusd) == ("excluded", 12 * 1_500 * UUSD, None)
        assert batch.reason.startswith(f"left out by [plan] {next(iter(table))}")
        assert "left out: batch_api" in plan.why_none()
        assert (plan.levers, plan.joint_all_pusd) == ((), 0)


def test_vetoed_by_the_service_levels():
    plan = batched(ledger(days(12)), tf.Slo(ttft_p95_ms=800))
    batch = of(plan, "batch_api")
    assert (batch.status, batch.saving, batch.addressed_pusd) == ("vetoed", (0, 0, 0), 0)
    assert plan.is_evaluable
    assert plan.as_dict()["slo"]["ttft_p95_ms"] == 800
    lifted = tf.Slo(ttft_p95_ms=800, feature={"tagging": {"ttft_p95_ms": math.inf}})
    assert batched(ledger(days(12)), lifted).levers == ("batch_api",)


def test_not_evaluable_without_any_column():
    plan = plan_of(ledger(days(12, is_stream=None, cache_read_tokens=None, cache_write_tokens=None)))
    assert [one.status for one in plan.estimates] == ["not_measurable", "not_measurable"]
    assert not plan.is_evaluable
    assert plan.why_none() == "not measurable: prefix_cache, batch_api"
    assert plan.as_dict()["levers"][0]["saving_usd"] == {"low": None, "mid": None, "high": None}


def test_an_empty_log():
    plan = batched(ledger([]))
    assert (plan.spend_pusd, plan.days, plan.fold, plan.bound_by) == (0, 0, 1.0, "short_log")
    assert not plan.is_evaluable


def test_the_window_of_the_ledger_holds():
    since, until = datetime(2026, 6, 3, tzinfo=UTC), datetime(2026, 6, 17, tzinfo=UTC)
    made = ledger(days(20), since=since, until=until)
    plan = batched(made)
    assert plan.spend_pusd == made.total_pusd == 14 * 3_000 * UUSD
    assert (plan.first_day, plan.last_day, plan.days) == (since.date(), datetime(2026, 6, 16, tzinfo=UTC).date(), 14)
    assert of(plan, "batch_api").saving.mid == 14 * 1_500 * UUSD


@pytest.mark.full
def test_days_are_cut_in_the_report_zone():
    # 23:30 UTC is the next day in Berlin
    rows = [row(ts=datetime(2026, 6, n, 23, 30)) for n in range(1, 13)]
    plan = batched(ledger(rows, zone="Europe/Berlin"))
    assert (plan.first_day.day, plan.last_day.day, plan.days) == (2, 13, 12)
    assert plan.saving == (12 * 1_500 * UUSD,) * 3


@pytest.mark.full
def test_requests_without_a_time_have_no_price_and_no_day():
    plan = batched(ledger([*days(12), row(ts=None)]))
    assert (plan.days, plan.requests, plan.unpriced_requests) == (12, 13, 1)
    assert plan.spend_pusd == 12 * 3_000 * UUSD
    assert "without 1 of 13 requests (7.7 %) that have no price" in plan.headline()
    assert "have no price" not in batched(ledger(days(12))).headline()


def test_nothing_priced_is_no_spend_of_zero():
    plan = batched(ledger(days(12, model="unheard-of")))
    assert plan.as_dict()["spend_usd"] is None
    assert plan.headline().startswith("None of the 12 requests has a price")
    assert repr(plan) == "<Plan no lever: none of 12 requests has a price>"
    assert batched(ledger([])).as_dict()["spend_usd"] == "0.00"


@pytest.mark.full
def test_what_was_named_and_is_not_there_is_noted():
    slo = tf.Slo(feature={"taging": {"deadline_s": 60}, "tagging": {"deadline_s": math.inf}})
    plan = batched(ledger(days(2)), slo, where="feature in ('tagging', 'invoice') or team = 'x'")
    assert plan.notes == (
        'service levels: no request has feature "taging". Did you mean "tagging"?',
        '[batch_api] where: no request has feature "invoice".',
        '[batch_api] where: no request has team "x".',
    )
    assert plan.as_dict()["notes"] == list(plan.notes)
    assert "\nNote: service levels: no request has feature" in plan.headline()
    assert batched(ledger(days(2)), tf.Slo(feature={"tagging": {"deadline_s": 60}})).notes == ()


def test_a_value_outside_the_window_is_no_misspelling():
    rows = [*days(12), row(ts=NOON - timedelta(days=30), feature="weekly")]
    since = datetime(2026, 6, 1, tzinfo=UTC)
    plan = batched(ledger(rows, since=since), tf.Slo(feature={"weekly": {"deadline_s": 60}}))
    assert plan.notes == ()


@pytest.mark.full
def test_a_notebook_shows_the_levers(monkeypatch):
    plan = batched(ledger(days(12)))
    html = plan._repr_html_()
    assert "<table" in html
    assert "batch_api" in html
    assert "\n" not in repr(plan)
    monkeypatch.setattr(extras, "find_spec", lambda _: None)
    without = plan._repr_html_()
    assert "<table" not in without
    assert "Best feasible plan saves" in without


def test_what_bounds_the_fold():
    # after the batch: input 1,000, output 500 of `tagging`; 2,000 + 5,000 of `chat`, which is streamed
    rows = [*days(12), *days(12, feature="chat", output_tokens=500, is_stream=True)]
    plan = batched(ledger(rows))
    assert plan.bound_by == "output of feature chat: 50 % of spend"  # 5,000 of 10,000
    no_feature = batched(ledger(days(12, feature=None, team="ml")))
    assert no_feature.bound_by == "uncached_input of team ml: 33 % of spend"  # 1,000 of 3,000


def test_the_document_is_plain_json_and_the_same_every_time():
    made, assume = ledger(days(12)), {"batch_api": BATCH}
    plan = plan_of(made, assume=assume, slo=tf.Slo(ttft_p95_ms=math.inf))
    text = json.dumps(plan.as_dict(), allow_nan=False)
    again = json.dumps(plan_of(made, assume=assume, slo=tf.Slo(ttft_p95_ms=math.inf)).as_dict(), allow_nan=False)
    assert text == again
    document = json.loads(text)
    assert set(document["levers"][0]) >= {
        *("name", "number", "label", "addressed_usd", "saving_usd", "alone_usd", "last_usd", "shapley_usd"),
        *("as_billed_usd", "per_month_usd", "status", "reason", "rule_of_thumb", "assumptions", "conflicts"),
        *("evidence", "effort_days", "risk", "first_action", "verify", "undo"),
    }
    assert document["plan"]["levers"] == ["batch_api"]
    assert document["plan"]["roadmap"] == [{"name": "batch_api", "marginal_usd": "0.018"}]
    assert document["plan"]["saving_usd"] == {"low": "0.018", "mid": "0.018", "high": "0.018"}
    assert (document["spend_usd"], document["plan"]["fold"]) == ("0.036", 2.0)
    assert document["levers"][0]["saving_usd"]["mid"] == document["levers"][0]["alone_usd"]
    assert document["schema_version"] == 1
    assert document["card_version"] == made.book.version
    assert document["log_hash"] == made.log.log_hash
    assert document["assumptions"]["batch_api"]["where"] == "true"


@pytest.mark.full
def test_doubling_the_log_doubles_every_saving():
    rows = [row(ts=NOON + timedelta(days=n), cache_write_tokens=50 * n, session_id=f"s{n}") for n in range(12)]
    twice = [*rows, *({**one, "session_id": f"t{n}"} for n, one in enumerate(rows))]
    assume = {"batch_api": BATCH, "prefix_cache": {"policy": "none"}}
    once, double = plan_of(ledger(rows), assume=assume), plan_of(ledger(twice[::-1]), assume=assume)
    for name in ("batch_api", "prefix_cache"):
        assert of(double, name).alone_pusd == 2 * of(once, name).alone_pusd
        assert of(double, name).shapley_pusd == 2 * of(once, name).shapley_pusd
    assert double.saving == tuple(2 * one for one in once.saving)


def test_frame_and_waterfall():
    plan = batched(ledger(days(12)))
    frame = plan.frame()
    assert frame["step"].to_list() == ["spend", "batch_api"]
    assert [int(one) for one in frame["pusd"]] == [12 * 3_000 * UUSD, 12 * 1_500 * UUSD]
    assert "batch_api" in plan.waterfall().to_json()


def test_headline():
    plan = batched(ledger(days(12, output_tokens=1_000_000)))
    # 1,000,000 x 10 USD and 1,000 x 2 USD per million, a day
    assert plan.headline() == (
        "Spend $120.02 in 12 days. Best feasible plan saves $60.01 [$60.01 to $60.01]: fold 2.00.\n"
        "For 10x a plan would need 90 %; this one has 50 %. "
        "The largest cost left is output of feature tagging: 50 % of spend."
    )
    short = batched(ledger(days(1, output_tokens=1_000_000)))
    assert "saves $5.00: fold 2.00." in short.headline()
    assert "1 day." in short.headline()
    assert "too short for an interval" in short.headline()


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(AssumptionError, match="cannot be read"):
        plan_of(ledger([row()]), assume=tmp_path / "none.toml")
    with pytest.raises(AssumptionError, match="cannot be read"):
        plan_of(ledger([row()]), slo=tmp_path / "none.toml")
