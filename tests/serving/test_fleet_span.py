"""What a fleet is billed for, who carries idle time, what is refused, and a rate worked out again from its trace."""

from decimal import Decimal

import pytest
from fleets import MODEL, at, carried_pusd, on, pool, rates, request

import tenfold as tf
from tenfold.errors import NotEvaluable
from tenfold.ledger import Window
from tenfold.owners import Sharing

HOUR = 3600
USD = 10**12


def test_requests_without_a_time_are_said_to_have_none(tmp_path):
    undated = [request(0, 1) | {"ts": None}, request(0, 1) | {"ts": None}]
    with pytest.raises(NotEvaluable, match='2 requests of provider "self-hosted" and none with a time'):
        on([*undated, {**request(0, 1), "provider": "openai", "model": "m1"}], tmp_path)
    notes = on([*undated, request(0, 1)], tmp_path, hours=None).notes
    assert "2 self-hosted requests without a time: on no pool, so without a price" in notes


@pytest.mark.full
def test_a_pool_of_no_logged_model_is_warned_of_and_named(tmp_path):
    near, far = MODEL.replace("3.1", "3.2"), "deepseek-ai/DeepSeek-V3"
    with pytest.raises(NotEvaluable, match=rf'pool 1 is of "{MODEL}". Did you mean "{near}"'):
        on([request(0, 1, model=near)], tmp_path)
    with pytest.raises(NotEvaluable, match=rf"Self-hosted models of the log: {far}"):
        on([request(0, 1, model=far)], tmp_path)
    ledger = on([request(0, 1), request(5, 1, model=near)], tmp_path, pool(), pool(model="llama-3.3-70b", tp=4))
    (warning,) = ledger.warnings
    assert "fleet.toml, pool 2: no request of the log is of model" in warning
    assert ledger.notes[0] == warning
    (unpriced,) = ledger.coverage.unpriced
    assert unpriced["reason"].startswith(f'no pool of the fleet ({ledger.fleet.place}) runs "{near}". Did you mean')


def test_a_window_without_traffic_has_its_own_reason(tmp_path):
    # the model has no priced request in this window, so the card is empty: the fleet's pools are still the reason
    ledger = on([request(0, 1), request(7200, 1, model="our/other")], tmp_path, hours=3)
    later = ledger.within(Window(at(3600), at(3 * HOUR)))
    assert later.coverage.unpriced[0]["reason"] == f'no pool of the fleet ({ledger.fleet.place}) runs "our/other".'


def test_the_bill_runs_while_the_log_does(tmp_path):
    # requests of anyone say that the log runs: from 1:00 to 3:00, in a window of 100 hours
    log = [
        request(HOUR, 1) | {"provider": "openai", "model": "m1"}, request(2 * HOUR, 60),
        request(3 * HOUR - 1, 1) | {"provider": "openai", "model": "m1", "is_billable": False},
    ]  # fmt: skip
    ledger = on(log, tmp_path, hours=100, stated=False)
    assert ledger.bill_pusd == 2 * USD * 2
    assert ledger.span == ledger.period.covered == (at(HOUR), at(3 * HOUR))
    assert any(
        note.startswith("the log covers 2026-07-01 01:00 UTC to 2026-07-01 03:00 UTC of") for note in ledger.notes
    )
    assert carried_pusd(ledger) + ledger.idle_pusd == ledger.bill_pusd
    ends = on(log, tmp_path, pool(to="2026-07-02T00:00:00Z"), hours=100, stated=False)
    assert ends.bill_pusd == 2 * USD * 23
    # the log is elsewhere: only what states both ends has a bill
    elsewhere = ends.within(Window(at(10 * HOUR), at(30 * HOUR)))
    assert (elsewhere.bill_pusd, elsewhere.hosted) == (0, ())
    assert "the log covers nothing of this window: only pools with from and to have a bill" in elsewhere.notes
    with pytest.raises(NotEvaluable, match="nothing of this window"):
        ends.within(Window(at(10 * HOUR), None))


def test_idle_time_by_month_sums_to_all_of_it(tmp_path):
    # 31 July days and 10 August days of one replica at 2 USD an hour
    ledger = on([request(0, 60), request(35 * 86400, 60)], tmp_path, hours=41 * 24)
    months = ledger.charges_by_month()
    assert [month.isoformat() for month in months] == ["2026-07-01", "2026-08-01"]
    assert sum(months.values()) == ledger.idle_pusd
    assert months[min(months)] * 10 == pytest.approx(months[max(months)] * 31, rel=1e-12)


@pytest.mark.full
def test_idle_time_that_no_team_can_carry_stays_and_is_named(tmp_path):
    # a and b in July, nobody in August: by requests, July's idle time goes 2:1 and August's to nobody
    log = [request(60 * n, 60, team=team) for n, team in enumerate("aab")]
    ledger = on(log, tmp_path, hours=41 * 24)
    sharing = Sharing("usage", "requests")
    found = tf.allocate(ledger, ("team", "month"), sharing=sharing, shared=())
    july, august = ledger.charges_by_month().values()
    assert [money for _, money in found.charge_lines()] == [(july, july, 0, 0), (august, 0, 0, august)]
    carried = {row["team"]: int(row["allocated_pusd"]) for row in found.frame.rows(named=True)}
    assert carried == {"a": -(-july * 2 // 3), "b": july // 3} or carried == {"a": july * 2 // 3, "b": -(-july // 3)}
    (left,) = found.left
    assert left[1:] == (august, "no other team has a request in it")
    total = sum(int(row["total_pusd"]) for row in found.frame.rows(named=True))
    assert total + august == ledger.total_pusd + ledger.charges_pusd
    fixed = tf.allocate(ledger, sharing=Sharing("fixed", weights={"a": Decimal("0.3"), "b": Decimal("0.7")}), shared=())
    assert fixed.charges_shared_pusd == ledger.idle_pusd
    assert [values for values, _ in fixed.charge_lines()] == [("(idle)",)]


def test_a_rate_can_be_worked_out_again_from_its_trace(tmp_path):
    log = [request(0, 900, 1000, 500, 100, request_id="r"), request(450, 900, 3000, 1500, 300)]
    log.append({**request(0, 1, request_id="api"), "provider": "openai", "model": "m1"})
    ledger = on(log, tmp_path)
    traced = ledger.explain("r")["fleet"]
    assert (traced["bill_usd"], traced["pools"][0]["sum"]) == ("2.00", "1 GPU x $2.00/h x 1 h")
    assert (traced["busy_replica_seconds"], traced["replica_seconds"]) == (1350, 3600)
    assert traced["busy_pusd"] == 2 * USD * 1350 // 3600
    kinds = ("input", "cached", "output")
    tokens, seconds = ([traced[name][kind] for kind in kinds] for name in ("tokens", "gpu_seconds"))
    assert tokens == [4000, 2000, 400]
    assert tuple(traced["rates_pusd"].values()) == rates(traced["busy_pusd"], tokens, seconds)
    meters = ledger.explain("r")["meters"]
    assert meters["output"]["rate_pusd"] == traced["rates_pusd"]["output"]
    busy_gpu_s = sum(count * second for count, second in zip(tokens, seconds, strict=True))
    assert traced["pace_ratio"] == pytest.approx(busy_gpu_s / 1350)
    assert traced["labels"]["gpu_seconds"].startswith("modelled")
    assert "fleet" not in ledger.explain("api")
