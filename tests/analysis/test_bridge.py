"""The bridge between two ledgers, by hand, to the picodollar."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from bridges import (
    AUGUST,
    EXAMPLE,
    HEAD,
    JULY,
    MAY,
    MILLION,
    Q2,
    Q3,
    USD,
    asked,
    assert_foots,
    between,
    foots_itself,
    priced,
    usd,
)
from small_logs import book, ledger

import tenfold as tf
from tenfold.analysis.bridge import bridge
from tenfold.errors import AssumptionError, ColumnError, NotEvaluable
from tenfold.ledger import Charge, Window, attribute
from tenfold.prices import price_book


def test_the_worked_example_on_a_log():
    rows = [asked("A", MAY, 80), asked("B", MAY, 20), asked("A", AUGUST, 45), asked("A", AUGUST, 45)]
    rows += [asked("B", AUGUST, 55), asked("B", AUGUST, 55)]
    # twice the requests, twice the tokens: volume alone, mix by model alone
    found = between(rows)
    assert usd(found) == {"volume": 410, "intensity": 0, "mix": -315, "price": -90}
    assert found.mix_by == {"model": -315 * USD, "service_tier": 0, "kind of token": 0}
    assert (found.before.pusd, found.after.pusd, found.change_pusd) == (410 * USD, 415 * USD, 5 * USD)
    assert found.price_at == JULY - timedelta(microseconds=1)
    assert [bar.favourable for bar in found.bars] == [False, None, True, True]
    assert found.sentences() == [
        "spend rose by $5.00 (1.2 %), from $410.00 to $415.00",
        "volume +$410.00: 2 requests before, 4 after: +100.0 % of the $410.00 spend before",
        "mix -$315.00: other shares of model, service tier and kind of token",
        "price -$90.00: other prices in the price lists for what was used",
    ]
    assert found.movers.rows()[0][:5] == ("B", "standard", 10 * USD, 55 * USD, 45 * USD)
    bennet = between(rows, method="bennet")
    assert (bennet.bar("price"), bennet.change_pusd) == (-85 * USD, 5 * USD)


@pytest.mark.full
def test_intensity_and_kinds_of_token():
    # 10 requests of 1 M uncached, then 20 of 2 M, half of them read from the cache, at the same prices
    rows = [asked()] * 10 + [asked(ts=AUGUST, millions=2, cache_read_tokens=MILLION)] * 20
    prices = HEAD + priced("A", {"input": 5, "cache_read": 0.5, "output": 5})
    found = between(rows, prices)
    assert usd(found) == {"volume": 50, "intensity": 100, "mix": -90, "price": 0}
    assert found.mix_by["kind of token"] == -90 * USD
    assert (
        "1,000,000 tokens a request before, 2,000,000 after: +100.0 % of $100.00, these tokens' cost before with the "
        "volume of after"
    ) in [bar.what for bar in found.bars]


@pytest.mark.full
def test_successful_outcomes_as_the_base():
    rows = [asked(outcome_ok=True)] * 2 + [asked(outcome_ok=False)] * 2 + [asked()]
    rows += [asked(ts=AUGUST, outcome_ok=True)] * 5
    prices = HEAD + priced("A", {"input": 5, "output": 5})
    # 5 M tokens for 2 outcomes, then for 5: volume 1.5 times 25, less tokens an outcome
    assert usd(between(rows, prices, base="outcomes")) == {
        "volume": Fraction(75, 2), "intensity": Fraction(-75, 2), "mix": 0, "price": 0,
    }  # fmt: skip
    with pytest.raises(NotEvaluable, match="no request of the period after has outcome_ok = true"):
        between([asked(outcome_ok=True), asked(ts=AUGUST)], prices, base="outcomes")


def test_everything_at_once():
    """New, discontinued, a price change in mid-period, searches and something unpriced, in one log."""
    prices = HEAD + priced("A", {"input": 5, "cache_read": 0.5, "output": 5, "web_search": 10})
    prices += priced("A", {"input": 4, "cache_read": 0.4, "output": 4, "web_search": 10}, valid_from="2026-08-01")
    prices += priced("B", {"input": 1, "output": 1}) + priced("C", {"input": 2, "output": 2}, valid_from="2026-07-15")
    rows = [asked("A", MAY, 10, web_searches=100), asked("B", MAY, 3), asked("ghost", MAY)]
    rows += [
        asked("A", AUGUST, 9, is_billable=False),
        asked("A", datetime(2026, 7, 2), 10),
        asked("A", AUGUST, 10, web_searches=250),
        asked("C", AUGUST, 4),
    ]
    found = between(rows, prices)
    # 2 requests of 13 M became 3 of 24 M, A's 10 M became 20 M, half of them at 4; 150 more searches at 0.01
    mix = Fraction(24) * (Fraction(20, 24) - Fraction(10, 13)) * 5
    assert {key: round(amount, 9) for key, amount in usd(found).items()} == {
        "volume": 25, "intensity": round(50 - 25 - mix, 9), "mix": round(mix, 9), "web_search": Fraction(3, 2),
        "price": -10, "new": 8, "discontinued": -3,
    }  # fmt: skip
    assert found.notes[:3] == (
        "began: C standard ($8.00)",
        "ended: B standard ($3.00)",
        "1 request of the period before without a price: in no bar; ghost (1)",
    )


@pytest.mark.full
class TestPrices:
    def test_a_new_model_has_the_price_it_had_before(self):
        # B was in the book in Q2: mix at 0.5, and nothing of it is price
        found = between([asked("A", MAY, 10), asked("A", AUGUST, 10), asked("B", AUGUST, 10)], by=("model",))
        # 1 request and 10 M, then 2 and 20 M: volume 50, mix 20 * (0.5 * 5 + 0.5 * 0.5 - 5), price 10 * -1
        assert usd(found) == {"volume": 50, "intensity": 0, "mix": -45, "price": -10}

    def test_a_model_without_a_price_before_is_new_and_never_price(self):
        prices = EXAMPLE + priced("C", {"input": 2, "output": 2}, valid_from="2026-07-15")
        prices += priced("C", {"input": 3, "output": 3}, valid_from="2026-09-01")
        rows = [asked("B", MAY, 10), asked("B", AUGUST, 10)]
        found = between([*rows, asked("C", AUGUST, 7), asked("C", AUGUST + timedelta(days=30), 1)], prices)
        # 1 request of 10 M became 3 of 6 M, of which B has 10 M of 18 M: what it cost stays the same
        assert usd(found) == {"volume": 10, "intensity": -6, "mix": -4, "price": 0, "new": 17}

    def test_discontinued_is_what_it_cost(self):
        # half the requests, all of B: volume -2.5, and B's share doubled
        found = between([asked("A", MAY, 10), asked("B", MAY, 10), asked("B", AUGUST, 10)])
        assert usd(found) == {
            "volume": Fraction(-5, 2), "intensity": 0, "mix": Fraction(5, 2), "price": 0, "discontinued": -50,
        }  # fmt: skip

    def test_one_model_for_another(self):
        # all that A did, B does: requests and tokens stay, B's half of the mix became all of it
        found = between([asked("A", MAY, 10), asked("B", MAY, 10), asked("B", AUGUST, 20), asked("B", AUGUST, 0)])
        assert usd(found) == {"volume": 0, "intensity": 0, "mix": 5, "price": 0, "discontinued": -50}

    def test_what_lost_its_price_before_the_boundary_is_discontinued_too(self):
        prices = EXAMPLE + priced("C", {"input": 2, "output": 2}, valid_to="2026-06-01")
        found = between([asked("C", MAY, 10), asked("C", AUGUST, 10), asked("B", MAY), asked("B", AUGUST)], prices)
        assert found.bar("discontinued") == -20 * USD
        assert found.bar("volume") + found.bar("intensity") + found.bar("mix") == 0
        assert "1 request of the period after without a price: in no bar; C (1)" in found.notes

    @pytest.mark.parametrize("day", [15, 31])
    def test_a_change_within_the_period_is_its_effect_on_what_came_after_it(self, day):
        prices = EXAMPLE + priced("D", {"input": 1, "output": 1})
        prices += priced("D", {"input": 3, "output": 3}, valid_from="2026-08-20")
        prices += priced("D", {"input": 2, "output": 2}, valid_from=f"2026-05-{day}")
        late = datetime(2026, 8, 20, 13)
        # before: 4 M at 1 on 10 May and 4 M at 2 in June; after: 4 M at 2, 4 M at 3
        rows = [asked("D", MAY, 4), asked("D", datetime(2026, 6, 20), 4), asked("D", AUGUST, 4), asked("D", late, 4)]
        # the mean price went from 1.5 to 2.5: all of it price, at 8 M
        assert usd(between(rows, prices)) == {"volume": 0, "intensity": 0, "mix": 0, "price": 8}

    def test_longer_contexts_move_the_mean_within_a_segment(self):
        prices = HEAD + priced("E", {"input": 1, "output": 1})
        prices += priced("E", {"input": 2, "output": 2}, above_input_tokens=200_000)
        rows = [asked("E", MAY, 1, input_tokens=100_000)] * 10 + [asked("E", AUGUST, 1)]
        # the same tokens in one long request: volume -0.9, intensity +0.9, and twice the price for them
        assert usd(between(rows, prices)) == {
            "volume": Fraction(-9, 10), "intensity": Fraction(9, 10), "mix": 0, "within": 1, "price": 0,
        }  # fmt: skip

    def test_searches_and_fees_have_bars_of_their_own(self):
        prices = HEAD + priced("A", {"input": 5, "output": 5, "web_search": 10, "request": 1000})
        prices += priced("A", {"input": 5, "output": 5, "web_search": 20}, valid_from="2026-08-01")
        rows = [asked(web_searches=100)] + [asked(ts=AUGUST, web_searches=50)] * 3
        # tokens +10; 50 more searches at 0.01; 2 more fees at 1; then 150 searches 0.01 dearer, 3 fees that are gone
        assert usd(between(rows, prices)) == {
            "volume": 10, "intensity": 0, "mix": 0, "web_search": Fraction(1, 2), "request": 2,
            "price": Fraction(3, 2) - 3,
        }  # fmt: skip
        assert {bar.key: bar.what for bar in between(rows, prices).bars}["web_search"] == "100 before, 150 after"

    def test_reasoning_that_a_list_prices_apart_is_output_all_along(self):
        prices = HEAD + priced("A", {"input": 5, "output": 5})
        prices += priced("A", {"input": 5, "output": 5, "reasoning": 10}, valid_from="2026-07-01")
        half = {"input_tokens": 0, "output_tokens": 2 * MILLION, "reasoning_tokens": MILLION}
        assert usd(between([asked(**half), asked(ts=AUGUST, **half)], prices)) == {
            "volume": 0, "intensity": 0, "mix": 0, "price": 5,
        }  # fmt: skip

    def test_images_that_a_list_prices_apart_are_input_all_along(self):
        prices = HEAD + priced("A", {"input": 5, "input_image": 5, "output": 5})
        prices += priced("A", {"input": 5, "input_image": 8, "output": 5}, valid_from="2026-07-01")
        half = {"input_tokens": 2 * MILLION, "input_image_tokens": MILLION, "cache_read_image_tokens": 0}
        assert usd(between([asked(**half), asked(ts=AUGUST, **half)], prices)) == {
            "volume": 0, "intensity": 0, "mix": 0, "price": 3,
        }  # fmt: skip

    def test_list_price_and_discount(self, tmp_path):
        (tmp_path / "prices.toml").write_text(EXAMPLE)
        (tmp_path / "contract.toml").write_text(
            '[[discount]]\nprovider = "openai"\nmodels = ["A"]\npercent = 10\nvalid_from = 2026-01-01\n'
            'valid_to = 2026-07-01\nsource = "deal"\n'
            '[[discount]]\nprovider = "openai"\nmodels = ["A"]\npercent = 25\nvalid_from = 2026-07-01\n'
            'source = "deal"\n'
        )
        log = ledger([asked("A", MAY, 10), asked("A", AUGUST, 10)]).log
        made = attribute(log, price_book(tmp_path))
        found = bridge(made.within(Q2), made.within(Q3))
        assert_foots(found, made.within(Q2), made.within(Q3))
        # 4.5 became 3: the list fell by 1, discounts grew from 0.5 to 1
        assert usd(found) == {"volume": 0, "intensity": 0, "mix": 0, "price": -10, "discount": -5}
        assert [bar.name for bar in found.bars][-2:] == ["list price", "discounts"]

    def test_one_book_against_another(self):
        log = ledger([asked("B", MAY, 10), asked("B", AUGUST, 10)]).log
        dearer = book(HEAD + priced("B", {"input": 2, "output": 2}))
        found = bridge(attribute(log, book(EXAMPLE)).within(Q2), attribute(log, dearer).within(Q3))
        assert usd(found) == {"volume": 0, "intensity": 0, "mix": 0, "price": 15}
        assert any(note.startswith("prices of ") for note in found.notes)


def test_labels_give_their_bars_by_hand():
    """What is computed is what is counted: searches and tokens of a model that ended are in no other label."""
    prices = HEAD + priced("A", {"input": 5, "output": 5, "web_search": 10})
    prices += priced("B", {"input": 1, "output": 1, "web_search": 10})
    rows = [asked("B", MAY, 7, web_searches=435), asked("A", MAY, 3), asked("A", MAY, 3)]
    rows += [asked("A", AUGUST, 5, web_searches=913)] * 7
    found = between(rows, prices)
    said = {bar.key: (bar.pusd, bar.what) for bar in found.bars}
    # 913 searches at 0.01; the 435 before ended with B, and so did its 7 dollars
    assert said["web_search"] == (round(9.13 * USD) * 7, "0 before, 6,391 after; 435 of before are in discontinued")
    assert said["discontinued"][0] == -round((7 + 4.35) * USD)
    # (7/3 - 1) x 30, A's own
    assert said["volume"] == (
        40 * USD,
        "3 requests before, 7 after: +133.3 % of the $30.00 that the tokens of continuing segments cost before",
    )
    # other orders weigh both periods: no one amount is multiplied
    assert between(rows, prices, method="bennet").bars[0].what == "3 requests before, 7 after"


def test_one_rounding_wherever_a_bar_is_shown():
    prices = HEAD + priced("A", {"input": 5, "cache_read": 1, "output": 5})
    prices += priced("A", {"input": 4.9, "cache_read": 1.1, "output": 5}, valid_from="2026-07-01")
    rows = [asked("A", MAY, 1, input_tokens=1_234_567 + n, cache_read_tokens=333 * n) for n in range(5)]
    rows += [asked("A", AUGUST, 1, input_tokens=1_777_777 + n, cache_read_tokens=777_777 + n) for n in range(7)]
    found = between(rows, prices)
    table = {line[0]: line[1] for line in found.grid().texts()}
    # rounded apart, volume would be 12.34 and the bars a cent short
    assert any(found.money(bar.pusd) != table[bar.name] for bar in found.bars)
    for bar in found.bars:
        amount = next(found.signed(pusd) for one, pusd in found.shown_bars() if one is bar)
        assert amount.removeprefix("+") == table[bar.name]
        assert f"{bar.name} {amount}" in repr(found)
        assert any(line.startswith(f"{bar.name} {amount}:") for line in found.sentences())
        (line,) = found.movers_shown()
        assert line[f"{bar.key}_pusd"] == next(pusd for one, pusd in found.shown_bars() if one is bar)


def test_a_model_that_took_another_s_place_is_told_once():
    day = timedelta(days=1)
    rows = [asked("A", JULY - day, 4, team="x", feature="f"), asked("A", MAY, 9, team="y", feature="f")]
    # in x B begins where A ended; C begins three weeks later; in y nothing begins, in z nothing ended
    rows += [asked("B", JULY + day, 80, team="x", feature="f"), asked("B", AUGUST, 6, team="z", feature="f")]
    rows += [asked("C", JULY + 21 * day, 1, team="x", feature="f")]
    found = between(rows, EXAMPLE + priced("C", {"input": 1, "output": 1}))
    assert found.swap_lines() == ["x · f: A -$20.00, B +$40.00: net +$20.00"]
    assert found.as_dict()["swaps"] == [
        {"team": "x", "feature": "f", "ended": {"A": "20.00"}, "began": {"B": "40.00"}, "net_usd": "20.00"}
    ]
    made = ledger(rows, EXAMPLE)
    assert bridge(made.within(Q2), made.within(Q3), where={"model": "B"}).swaps == ()
    assert bridge(made.within(Q2), made.within(Q3), where={"team": "x"}).swaps == found.swaps


ROWS = [
    asked("A", MAY, 10, team="x"), asked("B", MAY, 10), asked("A", AUGUST, 30, team="x"),
    asked("B", AUGUST, 10, user_id="o'neil"), asked("A", AUGUST, 2, team="y"),
]  # fmt: skip


class TestParts:
    @pytest.mark.full
    @pytest.mark.parametrize(
        ("where", "change"),
        [({"team": "x"}, 70), ({"team": None}, 0), ({"team": "y"}, 8), ({"model": "A", "team": "x"}, 70),
         ({"user_id": "o'neil"}, 5), ({"service_tier": "batch", "team": "x"}, None)],
    )  # fmt: skip
    def test_a_part_of_the_traffic(self, where, change):
        made = ledger(ROWS, EXAMPLE)
        if change is None:
            with pytest.raises(NotEvaluable, match="neither period has a request with a price"):
                bridge(made.within(Q2), made.within(Q3), where=where)
            return
        found = bridge(made.within(Q2), made.within(Q3), where=where)
        foots_itself(found)
        assert Fraction(found.change_pusd, USD) == change

    @pytest.mark.full
    def test_a_day_against_the_mean_of_several(self):
        days = [asked("B", datetime(2026, 6, 1 + n), 1 + n % 2) for n in range(28)]
        made = ledger([*days, *[asked("B", datetime(2026, 6, 29), 3)] * 2], EXAMPLE)
        first, last, end = (datetime(2026, 6, day, tzinfo=UTC) for day in (1, 29, 30))
        windows = made.within(Window(first, last)), made.within(Window(last, end))
        found = bridge(*windows, scale=Fraction(1, 28))
        assert_foots(found, *windows, Fraction(1, 28))
        # a mean day has one request of 1.5 M: 0.75 USD; this one two of 3 M
        assert usd(found) == {"volume": Fraction(3, 4), "intensity": Fraction(3, 2), "mix": 0, "price": 0}
        assert "the period before is multiplied with 1/28" in found.notes

    @pytest.mark.full
    def test_rounding_of_a_scaled_period_foots(self):
        days = [asked("B", datetime(2026, 6, 1), 1, input_tokens=n + 1) for n in range(5)]
        made = ledger([*days, asked("A", AUGUST, 1, input_tokens=3)], EXAMPLE)
        foots_itself(bridge(made.within(Q2), made.within(Q3), scale=Fraction(1, 7)))

    def test_idle_gpus_are_a_bar(self):
        made = ledger(ROWS, EXAMPLE)
        old, new = made.within(Q2), made.within(Q3)
        old.charges = (Charge("pool", "idle", 3 * USD, "self-hosted", "llama"),)
        new.charges = (Charge("pool", "idle", 10 * USD, "self-hosted", "llama"),)
        found = bridge(old, new, scale=2)
        assert found.bar("idle_gpus") == 4 * USD
        assert_foots(found, old, new, 2)
        part = bridge(old, new, where={"team": "x"})
        assert part.bar("idle_gpus") == 0
        assert any("idle GPUs are in no bar" in note for note in part.notes)

    @pytest.mark.full
    def test_requests_without_a_price_are_in_no_bar_and_named(self):
        found = between([*ROWS, asked("ghost", AUGUST), asked("A", AUGUST, output_tokens=None)])
        assert "2 requests of the period after without a price: in no bar; A (1), ghost (1)" in found.notes
        assert found.as_dict()["after"]["unpriced_requests"] == 2

    @pytest.mark.full
    def test_nothing_before_is_volume(self):
        assert usd(between([asked("B", AUGUST, 4)])) == {"volume": 2, "intensity": 0, "mix": 0, "price": 0}
        assert usd(between([asked("B", MAY, 4)])) == {
            "volume": 0, "intensity": 0, "mix": 0, "price": 0, "discontinued": -2,
        }  # fmt: skip

    @pytest.mark.full
    def test_windows_without_ends(self):
        made = ledger([asked("A", MAY, 4), asked("A", AUGUST, 4)], EXAMPLE)
        found = bridge(made.within(Window(until=JULY)), made.within(Window(since=JULY)))
        assert usd(found)["price"] == -4
        two = ledger([asked("A", MAY, 4)], EXAMPLE), ledger([asked("A", AUGUST, 4)], EXAMPLE)
        found = bridge(*two)
        assert found.price_at == datetime(2026, 5, 10, 23, 59, 59, 999999, tzinfo=UTC)
        assert usd(found)["price"] == -4

    @pytest.mark.parametrize(
        ("options", "error", "says"),
        [
            ({"by": ["modle"]}, ColumnError, 'no column "modle".*Did you mean "model"'),
            ({"by": ["month"]}, ColumnError, "cannot be cut by month"),
            ({"where": {"day": "2026-07-01"}}, ColumnError, "cannot be cut by day"),
            ({"where": {"squad": "x"}}, ColumnError, 'no column "squad"'),
            ({"base": "request"}, AssumptionError, 'Did you mean "requests"'),
            ({"method": "paasche"}, AssumptionError, "one of pvm, bennet, lmdi, shapley"),
            ({"scale": 0}, AssumptionError, "a number above 0"),
        ],
    )
    def test_what_is_refused(self, options, error, says):
        with pytest.raises(error, match=says):
            between(ROWS, **options)


def test_the_document_and_the_page():
    found = between([asked("A", MAY, 80), asked("B", MAY, 20), asked("A", AUGUST, 90), asked("B", AUGUST, 110)])
    document = json.loads(json.dumps(found.as_dict()))
    assert document["change_usd"] == "5.00"
    assert sum(Decimal(bar["usd"]) for bar in document["bars"]) == 5
    assert document["before"]["from"] == "2026-04-01T00:00:00+00:00"
    assert (document["method"], document["base"], document["scale"]) == ("pvm", "requests", "1")
    assert found.frame()["usd"].sum() == 5
    assert repr(found) == "<Bridge $410.00 to $415.00: intensity +$410.00, mix -$315.00, price -$90.00>"
    assert "Spend rose by $5.00" in found._repr_html_()
    assert "-$315.00" in found._repr_html_()


@pytest.mark.full
def test_small_bills_are_shown_to_the_millionth():
    found = between([asked("B", MAY, 1, input_tokens=3), asked("B", AUGUST, 1, input_tokens=4)])
    assert found.decimals == 6
    assert found.grid().texts()[0][1] == "$0.000002"


def test_it_is_public():
    assert tf.bridge is bridge
