"""Efficiency: worked examples by hand, a slow second reading over random logs, and sums that must add up."""

from datetime import datetime, timedelta
from fractions import Fraction

import bills
import oracle_efficiency as slow
import pytest
from mixed_logs import mixed_rows
from oracle import load_book
from small_logs import PRICES, facts, ledger, look, row

from tenfold.analysis.efficiency import CAUSES, efficiency
from tenfold.errors import ColumnError
from tenfold.ledger import Window
from tenfold.levers.prefix_cache import LEVER as PREFIX_CACHE
from tenfold.prices import price_book

USD = 10**12
# FOCUS draft, prompt caching examples: input 3, read 0.3, write 3.75 USD per million; a host whose writes cost no more
# than input but who rents the cache at 1 USD for a million tokens and hour.
FOCUS = """
provider = "openai"
[[price]]
model = "writes"
input = 3
cache_read = 0.3
cache_write = 3.75
output = 15
source = "test"
checked = 2026-01-01
[[price]]
model = "rents"
input = 3
cache_read = 0.3
cache_storage = 1
output = 15
source = "test"
checked = 2026-01-01
"""


def usd(pusd):
    return Fraction(pusd, USD)


def test_the_caching_examples_of_focus():
    # 10.5 million tokens in: 0.5 uncached, 8 read, 2 written
    counts = {"input_tokens": 10_500_000, "cache_read_tokens": 8_000_000, "output_tokens": 0}
    writes = efficiency(ledger([row(model="writes", cache_write_tokens=2_000_000, **counts)], FOCUS)).total.cache
    assert (usd(writes.uncached_pusd), usd(writes.billed_pusd)) == (Fraction("31.5"), Fraction("11.4"))
    assert (usd(writes.premium_pusd), usd(writes.saving_pusd)) == (Fraction("1.5"), Fraction("20.1"))
    assert writes.roi == Fraction("20.1") / Fraction("1.5")
    # writes at the input's price, six million token-hours held: 9.90 + 6.00
    held = row(model="rents", cache_storage_token_s=6_000_000 * 3_600, **counts)
    rents = efficiency(ledger([held], FOCUS)).total.cache
    assert usd(rents.billed_pusd) == Fraction("15.9")
    assert (usd(rents.saving_pusd), rents.roi) == (Fraction("15.6"), Fraction("2.6"))


def test_by_hand(tmp_path):
    """The five requests of `bills`: a reads 0.4 of 1.0 million, c is a retry, b's split is unknown, d has no price."""
    found = efficiency(bills.ledger_of(bills.FIVE, tmp_path), "team")
    total = found.total
    assert usd(total.spend_pusd) == Fraction("2.6")
    assert total.cache_hit_ratio == Fraction(400_000, 1_010_000)
    assert total.cache_hit_requests_ratio == Fraction(1, 2)  # a and c tell
    assert total.cache_known_ratio == Fraction(1_010_000, 1_610_000)
    # a uncached: 1.00 instead of 0.69; the premium of 200k written is 0.05
    assert (usd(total.cache.saving_pusd), usd(total.cache.premium_pusd)) == (Fraction("0.31"), Fraction("0.05"))
    retry = total.waste_of("retry")
    assert (retry.requests, usd(retry.pusd), retry.share) == (1, Fraction("0.01"), Fraction(1, 260))
    assert usd(total.sums["reasoning_pusd"]) == Fraction("0.1")  # 25k of a at 4 per million
    assert total.mean_input_tokens == Fraction(1_610_000, 4)
    assert {name: usd(kpis.spend_pusd) for name, kpis in found.groups["team"]} == {
        "agents": Fraction("1.51"),
        "search": Fraction("1.09"),
        None: 0,
    }
    assert set(found.not_measurable) == {
        *("error", "truncated", "duplicate", "context_growth", "effective_discount"),
    }  # fmt: skip
    blank = dict(found.groups["team"])[None]
    assert blank.is_blank
    assert found.as_dict()["groups"]["team"][-1]["spend_usd"] is None


def _hashed(n, **columns):
    at = datetime(2026, 6, 1, 12) + timedelta(minutes=n)
    return row(request_id=f"r{n}", ts=at, prompt_hash="p", params_hash="q", status="success", **columns)


def test_each_request_is_wasted_once_and_for_one_cause():
    cost = Fraction("0.003")  # 1,000 in, 100 out
    rows = [
        _hashed(0, attempt=0, finish_reason="stop"),
        _hashed(1, attempt=0, finish_reason="stop"),  # asks again: duplicate
        _hashed(2, attempt=1, finish_reason="length"),  # retry before truncated; no answer to keep
        {**_hashed(3, attempt=0), "status": "error"},  # failed and billed
        _hashed(4, attempt=1, retry_of="r3"),  # its failed attempt is the waste: no retry, but a duplicate
        {**_hashed(5, attempt=1, retry_of="r0"), "status": "timeout"},  # failed before retry
        {**_hashed(6), "status": "error", "gateway_cache_hit": True},  # costs nothing
        {**_hashed(7), "status": "error", "input_tokens": None, "output_tokens": None},  # failed, no usage: no price
    ]
    found = efficiency(ledger(rows)).total
    once = {one.cause.name: (one.once_requests, usd(one.once_pusd)) for one in found.waste}
    assert once == {"error": (3, 2 * cost), "retry": (1, cost), "truncated": (0, 0), "duplicate": (2, 2 * cost)}
    marked = {one.cause.name: one.requests for one in found.waste}
    assert marked == {"error": 3, "retry": 3, "truncated": 1, "duplicate": 2}
    assert (usd(found.waste_pusd), found.waste_unpriced) == (3 * cost, 1)  # the ceiling is not in it
    assert found.waste_share == Fraction(3, 6)


def _turn(session, minute, tokens):
    at = datetime(2026, 6, 1, 12, minute)
    return row(session_id=session, ts=at, input_tokens=tokens, team="turns", org="turns")


# Logs of one team each: what the teams' indicators are must not depend on the others.
TEAMS = [
    # the tiers of 0.003, 0.0015 and 0.00225
    *(row(team="tiers", **one) for one in ({}, {"service_tier": "batch"}, {"model": "plain", "service_tier": "flex"})),
    # one write that nothing reads: 1,000 at 2.5 instead of 2
    row(team="loses", cache_write_tokens=1_000),
    row(team="ghosts", model="ghost", status="error", cache_read_tokens=5),
    row(team="half", status="success"),
    row(team="half", status="error", model="ghost"),
    row(team="thinks", input_tokens=0, reasoning_tokens=40),
    *({**_hashed(n), "team": "scope", **one} for n, one in enumerate((
        {}, {"org": "o"}, {"project": "p"}, {"model": "plain"}, {"prompt_hash": "z"}, {"params_hash": "z"},
    ))),
    {**_hashed(9), "team": "scope", "service_tier": "batch"},  # the tier does not change the answer
    *(_turn("a", n, 100 * (n + 1)) for n in range(12)), _turn("b", 0, 400), _turn("b", 5, 200), _turn("c", 1, 9),
]  # fmt: skip


@pytest.fixture(scope="module")
def teams():
    return efficiency(ledger(TEAMS), "team")


def test_tiers_by_money_and_tokens(teams):
    tiers = dict(teams.groups["team"])["tiers"]
    assert (tiers.tier_share("batch"), tiers.tier_share("flex")) == (Fraction(150, 675), Fraction(225, 675))
    assert tiers.tier_share("batch", "tokens") == tiers.tier_share("flex", "tokens") == Fraction(1, 3)


def test_caching_that_loses_is_shown_negative(teams):
    loses = dict(teams.groups["team"])["loses"].cache
    assert (usd(loses.saving_pusd), loses.roi) == (Fraction("-0.0005"), -1)
    assert teams.sentences()[0].startswith("prompt caching lost")


def test_what_has_no_price_is_not_free(teams):
    half = dict(teams.groups["team"])["half"].waste_of("error")
    assert (half.requests, half.unpriced_requests, half.pusd, half.share) == (1, 1, None, None)
    ghosts = dict(teams.groups["team"])["ghosts"]
    assert (ghosts.is_blank, ghosts.cache, ghosts.waste_pusd) == (True, None, None)
    found = next(one for one in teams.as_dict()["groups"]["team"] if one["value"] == "ghosts")
    assert (found["spend_usd"], found["cache"], found["waste"][0]["cost_usd"]) == (None, None, None)


def test_reasoning_is_priced_within_the_output(teams):
    thinks = dict(teams.groups["team"])["thinks"]
    assert thinks.reasoning_share == Fraction(40, 100)


def test_reasoning_at_its_own_rate():
    own = FOCUS.replace("output = 15", "output = 15\nreasoning = 30")
    found = efficiency(ledger([row(model="writes", input_tokens=0, reasoning_tokens=40)], own))
    assert found.total.reasoning_share == Fraction(40 * 30, 60 * 15 + 40 * 30)


def test_duplicates_stay_within_their_scope(teams):
    assert dict(teams.groups["team"])["scope"].waste_of("duplicate").requests == 1


def test_context_growth_by_turn_and_session(teams):
    found = teams.growth
    assert (found.sessions, found.grown) == (2, 1)
    assert found.median == (Fraction(12) + Fraction(1, 2)) / 2
    assert found.ratio == Fraction(1200 + 200, 100 + 400)
    by_turn = {one.name: (one.requests, one.mean_tokens, one.ratio) for one in found.turns}
    assert by_turn["1"] == (3, Fraction(509, 3), 1)
    assert by_turn["2"] == (2, 200, Fraction(400, 500))
    assert by_turn["11-20"] == (2, 1150, Fraction(2300, 200))


@pytest.mark.full
def test_the_cache_saved_what_the_lever_says():
    rows = [row(cache_read_tokens=n * 100, cache_write_tokens=n * 50, cache_write_long_tokens=n * 20) for n in range(6)]
    made = ledger(rows)
    found = look(PREFIX_CACHE, made)
    assert efficiency(made).total.cache.saving_pusd == found.as_billed_pusd
    assert facts(found)["cached_requests"] == efficiency(made).total.cache.requests == 5


def test_the_discount_is_over_what_has_both_prices(tmp_path):
    base, own = tmp_path / "base", tmp_path / "own"
    base.mkdir()
    own.mkdir()
    (base / "prices.toml").write_text(PRICES)
    (own / "contract.toml").write_text('[[discount]]\nsource = "ours"\nprovider = "openai"\npercent = 15\n')
    found = efficiency(ledger([row(), row(model="ghost")], price_book(base, overlay=own))).discount
    assert (found.ratio, usd(found.list_pusd), found.left_out_requests) == (Fraction(15, 100), Fraction("0.003"), 1)


def test_a_breakdown_by_a_period_or_a_wrong_name_is_refused():
    with pytest.raises(ColumnError, match="months are always given"):
        efficiency(ledger([row()]), "month")
    with pytest.raises(ColumnError, match="team"):
        efficiency(ledger([row()]), "taem")


def test_an_empty_window_measures_nothing():
    found = efficiency(ledger([row()], since=bills.utc(2030, 1, 1)))
    assert (found.total.spend_pusd, found.total.waste_pusd, found.months) == (0, None, ())
    assert found.as_dict()["cache_hit_ratio"] is None


@pytest.fixture(scope="module")
def plain_book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("book")
    (folder / "prices.toml").write_text(PRICES)
    return load_book(folder)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3))])
def test_the_slow_reading_says_the_same(plain_book, seed):
    rows = mixed_rows(seed)
    found = efficiency(ledger(rows), ("team", "model"))
    total = found.total
    marked, once = slow.waste(plain_book, rows)
    for cause in CAUSES:
        one = total.waste_of(cause.name)
        assert (one.requests, one.pusd or 0) == marked.get(cause.name, (0, 0)), cause.name
        assert (one.once_requests, one.once_pusd or 0) == once.get(cause.name, (0, 0)), cause.name
    uncached, billed, premium = slow.caching(plain_book, rows)
    assert (total.cache.uncached_pusd, total.cache.billed_pusd) == (uncached, billed)
    assert premium > 0
    ratios = sorted(slow.growth(rows))
    middle = ratios[(len(ratios) - 1) // 2 : len(ratios) // 2 + 1]
    assert found.growth.sessions == len(ratios)
    assert found.growth.median == sum(middle) / len(middle)
    # months and the values of each column add up
    for parts in (found.months, *found.groups.values()):
        for name, value in found.total.sums.items():
            assert sum(kpis.sums[name] for _, kpis in parts) == value, name


@pytest.mark.full
def test_windows_add_up_and_the_order_of_rows_is_nothing():
    rows = mixed_rows(4)
    made = ledger(rows)
    found = efficiency(made, ("team", "model"))
    shuffled = efficiency(ledger(rows[::-1]), ("team", "model"))
    assert shuffled.as_dict() == found.as_dict()
    # two windows add up in all that does not look across requests
    cut = bills.utc(2026, 6, 15)
    halves = [efficiency(made.within(Window(*bounds))).total.sums for bounds in ((None, cut), (cut, None))]
    across = ("duplicate", "retry_once", "truncated_once")
    for name, value in found.total.sums.items():
        if not name.startswith(across):
            assert sum(half[name] for half in halves) == value, name


def test_months_are_cut_in_the_zone():
    late = row(ts=datetime(2026, 6, 30, 23, 30))
    assert [f"{m:%Y-%m}" for m, _ in efficiency(ledger([late], zone="Europe/Berlin")).months] == ["2026-07"]
